"""The ledger in one SQLite file: WAL, synchronous=FULL, one writer at a time.

Several processes on one machine may use the same file; several machines may not.
"""

from __future__ import annotations

import os
import secrets
import threading
import time
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar

from ascertain.core.errors import (
    AscertainError,
    SchemaMismatch,
    StoreCorrupt,
    StoreError,
    StoreUnavailable,
    UsageError,
)
from ascertain.core.model import Change, Snapshot
from ascertain.store import apply, reads, rows
from ascertain.store.base import PAGE, Posting, Written
from ascertain.store.committer import Answer, Committer, Item
from ascertain.store.driver import (
    FLOOR,
    VERSION,
    Connection,
    Kind,
    Trouble,
    explain,
    remote_file_system,
)
from ascertain.store.loader import Query, load, migrations, too_new
from ascertain.store.records import TABLES, named, snapshot
from ascertain.store.rows import LEAST, NotPlain, Rows

T = TypeVar("T")

MEMORY = ":memory:"
APPLICATION = 0x41534354  # "ASCT" in the file's header: nobody else's database is migrated
READERS = 8  # connections that read at the same time
TIMEOUT = 10.0  # seconds to wait for another process
FORK_WAIT = 5.0  # seconds that a fork waits for the store to come to rest
USES = (*apply.USES, *reads.USES, *rows.USES, "take_due", "take_move")


def _wall() -> int:
    return time.time_ns() // 1000


class SqliteStore(reads.SharedVerbs):
    """Keeps the ledger in a file, or in memory for tests (`:memory:`)."""

    durability = "SQLite WAL, synchronous=FULL"

    def __init__(
        self,
        path: str | os.PathLike[str],
        clock: Callable[[], int] | None = None,
        *,
        migrate: bool = True,
        timeout: float = TIMEOUT,
    ) -> None:
        """Open the file, making or migrating it; durable on return.

        Raises StoreUnavailable, StoreBusy, StoreCorrupt or SchemaMismatch, each naming the file
        and the next step.
        """
        self.path = os.fspath(path)
        self.now = clock or _wall
        self.queries = load("sqlite")
        self.queries.expect(USES)
        self._timeout = timeout
        self._applier = apply.Applier(self.queries, alone=True)
        self._rows = Rows(self.queries)
        self._memory = self.path == MEMORY
        if self._memory:
            self.durability = "memory only: nothing is durable"
        else:
            self.path = str(Path(self.path).absolute())
        self._dead: StoreError | None = None
        self._exporting = 0
        self._start()
        try:
            with self._explained():
                self._prepare(allowed=migrate)
        except BaseException:
            self.close()
            raise
        _stores.add(self)

    # --- opening and closing ---------------------------------------------------------------

    def _start(self) -> None:
        self._writer: Connection | None = None
        self._readers: list[Connection] = []
        self._reading = threading.BoundedSemaphore(READERS)
        self._committer = Committer(self._commit, self.path)

    def _prepare(self, *, allowed: bool) -> None:
        if tuple(int(part) for part in VERSION.split(".")[:2]) < FLOOR:
            raise StoreUnavailable(f"SQLite {VERSION} is too old for {self.path}; 3.37 is needed.")
        if not self._memory:
            self._check_place(Path(self.path))
        with self._committer.exclusive():
            self._migrate(self._write_connection(), allowed=allowed)

    def _check_place(self, path: Path) -> None:
        if not path.parent.is_dir():
            raise StoreUnavailable(
                f"The folder {path.parent} of the store {path.name} does not exist; create it."
            )
        if path.is_dir():
            raise StoreUnavailable(f"The store {path} is a folder; name a file in it.")
        mounts = Path("/proc/self/mountinfo")
        if mounts.exists():
            lines = mounts.read_text("utf-8", "replace").splitlines()
            if kind := remote_file_system(path.resolve(), lines):
                raise StoreUnavailable(
                    f"The store {path} lies on a network file system ({kind}), where locks do not "
                    "hold; put it on a local disk, or use PostgreSQL."
                )

    def _write_connection(self) -> Connection:
        """Return the connection that writes; the caller holds the committer's turn."""
        if self._dead is not None:
            raise self._dead
        if self._writer is None:
            if not self._memory:
                self._make_private()
            new = Connection(self.path, self._timeout)
            try:
                self._configure(new)
            except BaseException:
                new.close()
                raise
            self._writer = new
        return self._writer

    def _make_private(self) -> None:
        """Make the file for its owner alone, since it holds what people sent: SQLite by itself
        follows the umask, and gives its further files the mode of this one."""
        with suppress(OSError):  # it exists, or cannot be made, which opening it says
            os.close(os.open(self.path, os.O_CREAT | os.O_EXCL, 0o600))

    def _configure(self, new: Connection) -> None:
        if not new.writable:
            raise StoreUnavailable(
                f"The store {self.path} cannot be written; give this user write permission to the "
                "file and its folder."
            )
        application = new.ask("pragma application_id")[0][0]
        if application != APPLICATION and new.ask("select 1 from sqlite_schema limit 1"):
            raise SchemaMismatch(
                f"{self.path} is a database of another program; name another file for the store."
            )
        mode = self._ask_for_wal(new)
        if mode != ("memory" if self._memory else "wal"):
            raise StoreUnavailable(
                f"The store {self.path} cannot use a write-ahead log here (journal mode {mode}); "
                "put it on a local disk."
            )
        # A commit returns when it survives power loss (law 1); checkpoints recycle the log, because
        # overwriting it is twice as fast as growing it.
        for setting in (
            "synchronous = full",
            "wal_autocheckpoint = 2000",
            "temp_store = memory",
            "cache_size = -16000",
        ):
            new.ask(f"pragma {setting}")

    def _ask_for_wal(self, new: Connection) -> str:
        # While another process makes the same new file, SQLite refuses at once, without waiting.
        until = time.monotonic() + self._timeout
        while True:
            try:
                return str(new.ask("pragma journal_mode = wal")[0][0])
            except Trouble as trouble:
                if trouble.kind is not Kind.BUSY or time.monotonic() > until:
                    raise
                time.sleep(0.01)

    def _migrate(self, writer: Connection, *, allowed: bool) -> None:
        steps = migrations("sqlite")
        newest = steps[-1][0]
        if self._version(writer) != newest:
            try:
                writer.do("begin immediate")  # a second process waits and finds it done
                self._migrate_locked(writer, steps, allowed=allowed)
                writer.do("commit")
            finally:
                writer.rollback()

    def _version(self, writer: Connection) -> int:
        if not writer.ask("select 1 from sqlite_schema where name = 'meta'"):
            return 0
        rows = writer.ask(self.queries["meta_get"], ("schema",))
        return int(rows[0][0]) if rows else 0

    def _migrate_locked(
        self, writer: Connection, steps: Sequence[tuple[int, str, str]], *, allowed: bool
    ) -> None:
        version, newest = self._version(writer), steps[-1][0]
        if version > newest:
            raise too_new(self.path, version, newest)
        if version < newest and not allowed:
            raise SchemaMismatch(
                f"The store {self.path} has schema {version}, this version of Ascertain needs "
                f"{newest}; stop its older users, then run `ascertain store migrate`."
            )
        for number, _, text in steps:
            if number > version:
                writer.do(text)
        writer.do(f"pragma application_id = {APPLICATION}")
        writer.do(self.queries["meta_set"], ("schema", str(newest)))
        # Made once, at the store's creation: all processes derive the same target keys from it.
        writer.do(self.queries["meta_first"], ("secret", secrets.token_hex(32)))

    def close(self) -> None:
        """Write what is queued, then let go of the file."""
        _stores.discard(self)
        self._committer.close()
        with self._committer.exclusive():
            self._let_go()
            if self._dead is None:
                self._dead = StoreUnavailable(f"The store {self.path} is closed; open it again.")

    def _let_go(self) -> None:
        connections = [*self._readers, self._writer]
        self._readers, self._writer = [], None
        for connection in connections:
            if connection is not None:
                connection.close()

    def rest(self) -> bool:
        """Let go of the file for a fork, and hold everybody back; False if somebody is slow."""
        until = time.monotonic() + FORK_WAIT
        if not self._committer.exclusive().acquire(timeout=FORK_WAIT):
            return False
        held = 0
        while held < READERS and self._reading.acquire(timeout=max(0.0, until - time.monotonic())):
            held += 1
        if held == READERS and not self._exporting:
            if not self._memory:
                self._let_go()
            return True
        for _ in range(held):
            self._reading.release()
        self._committer.exclusive().release()
        return False

    def wake(self) -> None:
        """Go on after a fork, in the parent."""
        for _ in range(READERS):
            self._reading.release()
        self._committer.exclusive().release()

    def reborn(self, *, rested: bool) -> None:
        """Go on after a fork, in the child: with its own connections, thread and queue."""
        inherited = [*self._readers, self._writer]
        self._committer.forget()
        self._start()
        self._exporting = 0
        if self._memory or not rested:
            _inherited.extend(inherited)
            why = "is in memory" if self._memory else "was busy while this process was forked"
            self._dead = StoreUnavailable(
                f"The store {self.path} {why}, so it cannot be used here; open it in this process."
            )

    # --- errors ----------------------------------------------------------------------------

    @contextmanager
    def _explained(self) -> Iterator[None]:
        """Turn the driver's trouble into an error that names the file and the next step."""
        try:
            yield
        except Trouble as trouble:
            raise self._error(trouble) from trouble

    def _error(self, trouble: Trouble) -> StoreError:
        return explain(trouble, self.path, self._timeout)

    def _fail(self, trouble: Trouble) -> StoreError:
        error = self._error(trouble)
        if trouble.kind in (Kind.DISK, Kind.DAMAGED, Kind.OTHER):
            # After a failed fsync, what the system holds in memory and what the disk holds may
            # differ, and a second fsync may lie. Nothing more is written by this process.
            self._dead = error
        return error

    # --- writing ---------------------------------------------------------------------------

    def join(self, connection: Any, changes: Sequence[Change]) -> list[Written]:
        """Refused: a transaction is shared on PostgreSQL only."""
        raise UsageError("Joining a caller's transaction needs a PostgreSQL store.")

    def _commit(self, changes: Sequence[Item], waiting: Callable[[], None]) -> list[Answer]:
        """Write one group; the committer holds the turn."""
        try:
            writer = self._write_connection()
            return self._in_transaction(
                writer,
                lambda: self._apply(writer, changes),
                waiting,
                lazy=all(change.lazy for change in changes),
            )
        except Trouble as trouble:
            if trouble.kind is not Kind.ITEM or len(changes) == 1:
                return [self._fail(trouble)] * len(changes)
        except AscertainError as error:
            if self._dead is not None or len(changes) == 1:
                return [error] * len(changes)
        # One of them is bad: each for itself, so that it fails alone.
        return [answer for change in changes for answer in self._commit([change], waiting)]

    def _apply(self, writer: Connection, items: Sequence[Item]) -> list[Answer]:
        """Write a group within its transaction: together what can go together, first."""
        answers: dict[int, Answer] = {}
        changes = {n: item for n, item in enumerate(items) if not isinstance(item, Posting)}
        if len(changes) >= LEAST:
            places = list(changes)
            with suppress(NotPlain):
                went = self._rows.together(writer, list(changes.values()))
                answers = dict.fromkeys((places[n] for n in went), apply.APPLIED)
        for n, item in enumerate(items):
            if isinstance(item, Posting):
                answers[n] = self._applier.post(writer, item)
            elif n not in answers:
                answers[n] = self._applier.apply(writer, item)
        return [answers[n] for n in range(len(items))]

    def _in_transaction(
        self,
        writer: Connection,
        work: Callable[[], T],
        waiting: Callable[[], None],
        *,
        lazy: bool = False,
    ) -> T:
        writer.wait_for_disk(wanted=not lazy)
        try:  # from the start: an interrupt may come as soon as it has begun
            if not writer.begin_at_once():
                waiting()
                writer.do("begin immediate")
            result = work()
            waiting()
            writer.do("commit")
        finally:
            writer.rollback()
        return result

    def _transaction(self, work: Callable[[apply.Session], T]) -> T:
        with self._committer.exclusive():
            try:
                writer = self._write_connection()
                return self._in_transaction(writer, lambda: work(writer), lambda: None)
            except Trouble as trouble:
                raise self._fail(trouble) from trouble

    def take(
        self, now: int, until: int, namespace: str, actions: Sequence[str], limit: int
    ) -> list[Snapshot]:
        """Take due work: unsettled, `due_at` <= now; oldest first, no row twice at once."""
        due: list[tuple[int, str]] = []
        bound = max(0, min(limit, PAGE))
        for action in dict.fromkeys(actions):
            values = {"namespace": namespace, "action": action, "now": now, "limit": bound}
            rows = self._ask(self.queries["take_due"], values)
            due += [(due_at, operation) for operation, due_at in rows]
        if not due:
            return []  # idle: nothing was locked and nothing is written

        def work(session: apply.Session) -> list[Snapshot]:
            taken: list[Snapshot] = []
            for due_at, operation in sorted(due)[:bound]:
                query = self.queries["snapshot_by_id"]
                found = [snapshot(row) for row in session.ask(query, (operation,))]
                move = self.queries["take_move"]
                values = move.values({"until": until, "operation": operation, "due_at": due_at})
                if found and session.do(move, values):
                    taken += found
            return taken

        return self._transaction(work)

    # --- reading ---------------------------------------------------------------------------

    @contextmanager
    def _reader(self) -> Iterator[Connection]:
        if self._memory:
            with self._committer.exclusive():
                yield self._write_connection()
            return
        with self._reading:
            if self._dead is not None:
                raise self._dead
            try:
                reader = self._readers.pop()
            except IndexError:
                reader = Connection(self.path, self._timeout, readonly=True)
            try:
                yield reader
            finally:
                self._readers.append(reader)

    def _ask(self, query: Query, values: Mapping[str, Any]) -> list[tuple[Any, ...]]:
        with self._explained(), self._reader() as reader:
            return reader.ask(query, query.values(values))

    def snapshots(self, ids: Sequence[str]) -> dict[str, Snapshot]:
        """Read operations with their status, settled or not, by id."""
        query = self.queries["snapshot_by_id"]
        with self._explained(), self._reader() as reader:
            rows = [row for one in dict.fromkeys(ids) for row in reader.ask(query, (one,))]
        return {found.operation.id: found for found in map(snapshot, rows)}

    def by_keys(self, namespace: str, pairs: Sequence[tuple[str, str]]) -> list[Snapshot | None]:
        """Read operations by (action, key), in order; None where there is none."""
        query = self.queries["snapshot_by_key"]
        with self._explained(), self._reader() as reader:
            found = [reader.ask(query, (namespace, action, key)) for action, key in pairs]
        return [snapshot(rows[0]) if rows else None for rows in found]

    def rows(self) -> Iterator[tuple[str, dict[str, Any]]]:
        """Iterate over everything as (table, row) in one read snapshot, for export."""
        if self._memory:
            with self._reader() as reader:
                found = list(self._export(reader))
            yield from found
            return
        with self._explained():
            if self._dead is not None:
                raise self._dead
            reader = Connection(self.path, self._timeout, readonly=True)
            self._exporting += 1
            try:
                reader.do("begin")
                yield from self._export(reader)
            finally:
                self._exporting -= 1
                reader.close()

    def _export(self, reader: Connection) -> Iterator[tuple[str, dict[str, Any]]]:
        for table in TABLES:
            for names, row in reader.each(self.queries[f"export_{table}"]):
                yield table, named(names, row)

    def check(self) -> list[str]:
        """Check the file's and the ledger's integrity and return what is wrong, in words."""
        try:
            with self._explained(), self._reader() as reader:
                found = [str(row[0]) for row in reader.ask("pragma integrity_check(100)")]
            wrong = [f"{self.path}: {words}" for words in found if words != "ok"]
            return wrong or self._inconsistencies()
        except StoreCorrupt as error:
            return [str(error)]


# --- forks -----------------------------------------------------------------------------------
# SQLite keeps its locks per process and remembers them in memory that a child inherits, so a child
# would believe that it holds its parent's locks. Therefore the file is let go of before a fork, and
# both sides open it again when they need it.

_stores: weakref.WeakSet[SqliteStore] = weakref.WeakSet()
_resting: list[SqliteStore] = []
_inherited: list[Connection | None] = []  # a parent's: closing one here would touch its locks


def _before_fork() -> None:
    _resting.extend(store for store in list(_stores) if store.rest())


def _after_fork_in_parent() -> None:
    while _resting:
        _resting.pop().wake()


def _after_fork_in_child() -> None:
    rested = {id(store) for store in _resting}
    _resting.clear()
    for store in list(_stores):
        store.reborn(rested=id(store) in rested)


os.register_at_fork(
    before=_before_fork,
    after_in_parent=_after_fork_in_parent,
    after_in_child=_after_fork_in_child,
)

"""The one place that knows psycopg: connections, a bounded pool, and what kind of trouble it is."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from enum import Enum, auto
from typing import Any, TypeVar

import psycopg
from psycopg import errors
from psycopg.conninfo import conninfo_to_dict
from psycopg.rows import tuple_row

from ascertain.core.errors import StoreBusy, StoreCorrupt, StoreError, StoreUnavailable
from ascertain.store.loader import Query

T = TypeVar("T")
Row = tuple[Any, ...]
Raw = psycopg.Connection[Any]
CONNECT_TIMEOUT = 5  # seconds
PLANS = "set plan_cache_mode = force_generic_plan; set enable_seqscan = off"
# The plan or the statement is gone, or somebody else's: nothing was written.
UNPREPARED = (
    errors.InvalidSqlStatementName,
    errors.DuplicatePreparedStatement,
    errors.FeatureNotSupported,
)
LOST_AFTER = 15_000  # ms without an answer to what was sent, then the connection counts as lost


class Own(psycopg.Connection[Any]):
    """A connection of ours: it hears whether the server gave up waiting for a standby.

    Then the change is committed here and maybe not there, and the answer is a success with a
    warning (PostgreSQL 18: SyncRepWaitForLSN), so it must not count as durable.
    """

    gave_up = False

    def hear(self, notice: psycopg.errors.Diagnostic) -> None:
        """Take note of a warning."""
        if notice.source_function == "SyncRepWaitForLSN":
            self.gave_up = True

    def check(self) -> None:
        """Raise if what was committed is not known to be durable; the connection is closed."""
        if self.gave_up:
            self.close()
            raise psycopg.OperationalError("the wait for the synchronous standby was cancelled")


class Kind(Enum):
    """What kind of trouble the database is in."""

    ITEM = auto()  # this statement's values are refused; the neighbours are fine
    BLOCKED = auto()  # a row is locked by a transaction that somebody holds open
    LOST = auto()  # the connection or the server went away: what was committed is not known
    FULL = auto()  # no space left; nothing was written
    DENIED = auto()  # no permission, no such database, a read-only server
    DAMAGED = auto()  # the server found its files damaged
    OTHER = auto()


_KINDS: tuple[tuple[type[psycopg.Error] | tuple[type[psycopg.Error], ...], Kind], ...] = (
    ((errors.LockNotAvailable, errors.DeadlockDetected), Kind.BLOCKED),
    ((errors.QueryCanceled, errors.SerializationFailure), Kind.BLOCKED),
    ((errors.DiskFull, errors.OutOfMemory), Kind.FULL),
    ((errors.ReadOnlySqlTransaction, errors.InsufficientPrivilege), Kind.DENIED),
    ((errors.InvalidPassword, errors.InvalidCatalogName), Kind.DENIED),
    ((errors.UndefinedTable, errors.UndefinedColumn), Kind.DENIED),
    ((errors.DataCorrupted, errors.IndexCorrupted, errors.IoError), Kind.DAMAGED),
    ((psycopg.IntegrityError, psycopg.DataError, errors.ProgrammingError), Kind.ITEM),
    ((psycopg.OperationalError, psycopg.InterfaceError), Kind.LOST),
)


def kind_of(error: BaseException) -> Kind:
    """Return what kind of trouble an error of psycopg is."""
    return next((kind for kinds, kind in _KINDS if isinstance(error, kinds)), Kind.OTHER)


def name_of(dsn: str) -> str:
    """Return the database's name and host for messages, without the password."""
    try:
        parts = conninfo_to_dict(dsn)
    except psycopg.ProgrammingError as error:
        raise StoreUnavailable(f"The store's address cannot be read: {error}.") from error
    host = parts.get("host") or parts.get("hostaddr") or "local"
    return f"postgresql://{host}:{parts.get('port') or 5432}/{parts.get('dbname') or ''}"


def explain(error: BaseException, name: str) -> StoreError:
    """Return an error that names the database and the next step."""
    kind, text = kind_of(error), " ".join(str(error).split())
    if kind is Kind.ITEM:
        if isinstance(error, psycopg.Error) and error.diag.message_primary:
            text = error.diag.message_primary  # its details hold the row: inputs, personal data
        return StoreError(f"The store {name} refused a row, and wrote nothing of it: {text}")
    if kind is Kind.BLOCKED:
        return StoreBusy(
            f"A row of the store {name} is locked by an open transaction, nothing was written "
            f"({text}); end that transaction, then try again."
        )
    if kind is Kind.FULL:
        return StoreUnavailable(
            f"The server of the store {name} has no space left, nothing was written ({text}); "
            "free space, then try again."
        )
    if kind is Kind.DAMAGED:
        return StoreCorrupt(
            f"The server of the store {name} found damage ({text}), nothing is sent; restore a "
            "copy, then run `ascertain store restored`."
        )
    if kind is Kind.DENIED:
        return StoreUnavailable(
            f"The store {name} cannot be used ({text}); check the database, its schema, the "
            "user's rights, and that the server is not a read-only standby."
        )
    return StoreUnavailable(
        f"The store {name} cannot be reached ({text}); nothing is sent until it can: check that "
        "the server runs and the address is right."
    )


class Session:
    """One connection with an open transaction, as `apply.Session` wants it."""

    def __init__(self, raw: Raw, *, prepare: bool = False) -> None:
        """Use a connection; its own row factory and settings are left alone.

        `prepare`: the server keeps the plans, if the connection allows it (see `Pool`).
        """
        self.raw = raw
        self.prepare = prepare

    def _run(self, query: Query, values: Sequence[Any]) -> psycopg.Cursor[Row]:
        cursor = self.raw.cursor(row_factory=tuple_row)
        named = dict(zip(query.params, values, strict=True))
        return cursor.execute(str(query), named, prepare=self.prepare)

    def ask(self, query: Query, values: Sequence[Any]) -> list[Row]:
        """Run a statement and return its rows."""
        return self._run(query, values).fetchall()

    def do(self, query: Query, values: Sequence[Any]) -> int:
        """Run a statement and return how many rows it changed."""
        return self._run(query, values).rowcount

    @contextmanager
    def savepoint(self) -> Iterator[None]:
        """Undo what is done within it if it is left by an exception."""
        with self.raw.transaction():
            yield


def is_direct(raw: Raw) -> bool:
    """Tell whether the server itself is at the other end: a pooler that shares its sessions out
    gives each client a process number of its own making."""
    rows = raw.execute("select pg_backend_pid()", prepare=False).fetchall()
    return bool(rows[0][0] == raw.info.backend_pid)


class Pool:
    """A bounded set of connections; one at a time per thread, made when needed."""

    def __init__(
        self, dsn: str, size: int, timeout: float, *, prepare: bool | None = False
    ) -> None:
        """Make no connection yet. `prepare`: connections may keep statements prepared; None:
        where the server itself answers, not a pooler that changes it below us."""
        self.prepare = prepare
        self._dsn = dsn
        self._free: list[Own] = []
        self._mutex = threading.Lock()
        self._places = threading.BoundedSemaphore(size)
        self._timeout = timeout
        self._size = size

    def connect(self) -> Own:
        """Open a connection: without session state or prepared statements, for PgBouncer's sake,
        unless `prepare` allows them."""
        raw = Own.connect(
            self._dsn,
            autocommit=True,
            prepare_threshold=None,
            connect_timeout=CONNECT_TIMEOUT,
            keepalives_idle=10,
            keepalives_interval=5,
            keepalives_count=3,
            tcp_user_timeout=LOST_AFTER,
            application_name="ascertain",
        )
        raw.add_notice_handler(raw.hear)
        if self.prepare or (self.prepare is None and is_direct(raw)):
            # Planned once, maybe while a table is empty: by index, so that it stays right as it
            # grows. Planning is half of what a single change costs.
            raw.execute(PLANS)
            raw.prepare_threshold = 0
        return raw

    @contextmanager
    def use(self) -> Iterator[Own]:
        """Lend a connection; one that broke is thrown away."""
        if not self._places.acquire(timeout=self._timeout):
            raise psycopg.OperationalError(
                f"all {self._size} connections were busy for {self._timeout:g} s"
            )
        raw: Own | None = None
        try:
            with self._mutex:
                raw = self._free.pop() if self._free else None
            if raw is None:
                raw = self.connect()
            yield raw
        finally:
            if raw is not None:
                self._give_back(raw)
            self._places.release()

    def _give_back(self, raw: Own) -> None:
        idle = psycopg.pq.TransactionStatus.IDLE
        if raw.closed or raw.info.transaction_status != idle:
            raw.close()
            return
        with self._mutex:
            self._free.append(raw)

    def again(self, work: Callable[[Raw], T]) -> T:
        """Run a reading on a connection; once more on a new one if the first was lost."""
        try:
            with self.use() as raw:
                return work(raw)
        except psycopg.Error as error:
            if kind_of(error) is not Kind.LOST:
                raise
        self.drop()
        with self.use() as raw:
            return work(raw)

    def drop(self) -> None:
        """Close what is idle: after one was lost, the others are as old."""
        with self._mutex:
            free, self._free = self._free, []
        for raw in free:
            raw.close()

    def inherited(self) -> list[Own]:
        """Give up a parent's connections without closing them: closing would end its sessions."""
        free, self._free = self._free, []
        return free


class ServerClock:
    """The server's clock, estimated: a local clock that counts suspend, plus an offset.

    The server answered after a request was sent and before its answer was read; so each round
    trip bounds the offset from both sides, and the estimate moves only if it lies outside.
    """

    FRESH = 1_000_000  # µs; an older estimate is refreshed

    def __init__(self) -> None:
        """Know nothing yet."""
        self._offset: int | None = None
        self._refreshed = 0

    @staticmethod
    def local() -> int:
        """Return a local time in µs that counts suspend and never steps."""
        boot = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
        return time.clock_gettime_ns(boot) // 1000

    def learn(self, sent: int, server: int) -> None:
        """Learn from a round trip that began at local time `sent` and ends now."""
        received = self.local()
        low, high = server - received, server - sent
        if self._offset is None:
            self._offset = (low + high) // 2
        self._offset = min(max(self._offset, low), high)
        self._refreshed = received

    def now(self, ask: Callable[[], int]) -> int:
        """Return the server's time; `ask` it where the estimate is not fresh."""
        local = self.local()
        if self._offset is None or local - self._refreshed > self.FRESH:
            try:
                self.learn(local, ask())
            except (psycopg.Error, StoreError):
                # Nothing can be claimed or settled while the server is away, so an older
                # estimate harms nobody; without any there is no time to speak of.
                if self._offset is None:
                    raise
        return self.local() + (self._offset or 0)

"""The one place that knows which SQLite library is used: apsw (docs/decisions/0004).

Everything else sees a Connection that asks and does, and Trouble that says what kind it is.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from enum import Enum, auto
from pathlib import Path
from typing import Any

import apsw

from ascertain.core.errors import StoreBusy, StoreCorrupt, StoreError, StoreUnavailable

Row = tuple[Any, ...]
FLOOR = (3, 37)  # STRICT tables
VERSION = apsw.sqlite_lib_version()
BUSY_STEP = 0.001  # seconds between two tries for a lock that another process holds
STATEMENTS = 200  # prepared statements kept per connection
# File systems whose locks or shared memory do not hold between machines: WAL corrupts there.
REMOTE = frozenset(
    (
        *("nfs", "nfs4", "cifs", "smb3", "smbfs", "afs", "ceph", "9p", "glusterfs", "lustre"),
        *("fuse.sshfs", "fuse.glusterfs"),
    )
)


class Kind(Enum):
    """What kind of trouble the database is in."""

    ITEM = auto()  # this statement's values are refused; the neighbours are fine
    BUSY = auto()  # locked by another process beyond the time-out
    FULL = auto()  # the disk or the page limit; nothing was written
    DENIED = auto()  # the file or the folder cannot be opened or written
    DAMAGED = auto()  # the file is not a sound database
    DISK = auto()  # the disk failed: what was committed is not known
    OTHER = auto()


class Trouble(Exception):
    """The database refused; `kind` says why."""

    def __init__(self, kind: Kind, text: str) -> None:
        """Keep both."""
        super().__init__(text)
        self.kind = kind


_KINDS: tuple[tuple[type[BaseException] | tuple[type[BaseException], ...], Kind], ...] = (
    ((apsw.ConstraintError, apsw.MismatchError, apsw.TooBigError, apsw.RangeError), Kind.ITEM),
    ((TypeError, ValueError, OverflowError), Kind.ITEM),
    ((apsw.BusyError, apsw.LockedError), Kind.BUSY),
    (apsw.FullError, Kind.FULL),
    ((apsw.ReadOnlyError, apsw.CantOpenError, apsw.PermissionsError), Kind.DENIED),
    ((apsw.CorruptError, apsw.NotADBError, apsw.FormatError), Kind.DAMAGED),
    (apsw.IOError, Kind.DISK),
)
_CAUGHT = (apsw.Error, TypeError, ValueError, OverflowError)


def _trouble(error: BaseException) -> Trouble:
    kind = next((kind for kinds, kind in _KINDS if isinstance(error, kinds)), Kind.OTHER)
    return Trouble(kind, f"{type(error).__name__}: {error}")


def explain(trouble: Trouble, path: str, timeout: float) -> StoreError:
    """Return an error that names the file and the next step."""
    if trouble.kind is Kind.ITEM:
        return StoreError(f"The store {path} refused a row, and wrote nothing of it: {trouble}.")
    if trouble.kind is Kind.BUSY:
        return StoreBusy(
            f"The store {path} was locked by another process for {timeout:g} s, nothing "
            "was written; end what holds it, then try again."
        )
    if trouble.kind is Kind.FULL:
        return StoreUnavailable(
            f"The disk of the store {path} is full, nothing was written; free space, then try "
            "again."
        )
    if trouble.kind is Kind.DENIED:
        return StoreUnavailable(
            f"The store {path} cannot be opened or written ({trouble}); give this user write "
            "permission to the file and its folder."
        )
    if trouble.kind is Kind.DAMAGED:
        return StoreCorrupt(
            f"The store {path} is damaged or is no SQLite database ({trouble}), nothing is "
            "sent; restore a copy, then run `ascertain store restored`."
        )
    return StoreUnavailable(
        f"The disk of the store {path} failed ({trouble}), nothing is sent any more; whether "
        "the last changes were written shows when it is opened again: check the disk, then "
        "start again."
    )


class Connection:
    """One connection; used by one thread at a time."""

    def __init__(self, path: str, timeout: float, *, readonly: bool = False) -> None:
        """Open the file; a missing one is made, unless `readonly`."""
        flags = apsw.SQLITE_OPEN_READWRITE | (0 if readonly else apsw.SQLITE_OPEN_CREATE)
        try:
            self._raw = apsw.Connection(path, flags=flags, statementcachesize=STATEMENTS)
            # Else SQLite parses a statement again whenever a value is bound that might decide
            # about a partial index: of a join of two tables, 40 of its 48 µs (measured).
            self._raw.config(apsw.SQLITE_DBCONFIG_ENABLE_QPSG, 1)
            self._timeout, self._patient, self._since = timeout, True, 0.0
            self._raw.set_busy_handler(self._wait)
            if readonly:
                self._raw.execute("pragma query_only = on")
        except _CAUGHT as error:
            raise _trouble(error) from error
        self._waits = True  # a commit waits for the disk, once the connection is configured
        self._execute = self._raw.execute
        self._changes = self._raw.changes

    def ask(self, query: str, values: Sequence[Any] = ()) -> list[Row]:
        """Run a statement and return all of its rows."""
        try:
            return self._execute(query, values).fetchall()
        except _CAUGHT as error:
            raise _trouble(error) from error

    def do(self, query: str, values: Sequence[Any] = ()) -> int:
        """Run a statement and return how many rows it changed."""
        try:
            self._execute(query, values)
        except _CAUGHT as error:
            raise _trouble(error) from error
        return self._changes()

    def wait_for_disk(self, *, wanted: bool) -> None:
        """Let the next commits wait for the disk, or leave it to a later one that does: the log
        is one stream, so that one makes all before it durable too. Outside a transaction only."""
        if wanted is not self._waits:
            self.do("pragma synchronous = full" if wanted else "pragma synchronous = normal")
            self._waits = wanted

    def begin_at_once(self) -> bool:
        """Begin a write transaction if nobody else holds one; else return False."""
        self._patient = False
        try:
            self.do("begin immediate")
        except Trouble as trouble:
            if trouble.kind is Kind.BUSY:
                return False
            raise
        finally:
            self._patient = True
        return True

    def _wait(self, tries: int) -> bool:
        """Wait a moment for another process's lock; False once the time-out is over.

        SQLite's own handler sleeps longer and longer, up to 0.1 s, and whoever has just begun to
        wait overtakes: of four workers two did nothing (bench/recovery.py, fairness).
        """
        now = time.monotonic()
        if tries == 0:
            self._since = now
        if not self._patient or now - self._since > self._timeout:
            return False
        time.sleep(BUSY_STEP * (0.5 + now * 1e6 % 1))  # uneven, so that waiters do not keep step
        return True

    def each(self, query: str) -> Iterator[tuple[tuple[str, ...], Row]]:
        """Iterate over a statement's rows as (column names, row)."""
        try:
            cursor = self._execute(query)
            names: tuple[str, ...] | None = None
            for row in cursor:
                if names is None:
                    names = tuple(column[0] for column in cursor.description)
                yield names, row
        except _CAUGHT as error:
            raise _trouble(error) from error

    @contextmanager
    def savepoint(self) -> Iterator[None]:
        """Undo what is done within it if it is left by an exception."""
        self.do("savepoint change")
        try:
            yield
        except BaseException:
            # A full disk or a failed one has undone the whole transaction already.
            if self.open:
                self.do("rollback to change")
                self.do("release change")
            raise
        self.do("release change")

    @property
    def open(self) -> bool:
        """Whether a transaction is open."""
        return self._raw.in_transaction

    @property
    def writable(self) -> bool:
        """Whether the file could be opened for writing."""
        return not self._raw.readonly("main")

    def rollback(self) -> None:
        """Undo the open transaction, if one is left; never raises."""
        try:
            if self._raw.in_transaction:
                self._raw.execute("rollback")
        except apsw.Error:
            pass

    def close(self) -> None:
        """Let go of the file."""
        self._raw.close(force=True)


def remote_file_system(path: Path, mounts: Iterable[str]) -> str:
    """Return the type of the network file system that a path lies on, or nothing."""
    best, kind = Path("/"), ""
    for line in mounts:
        fields, _, rest = line.partition(" - ")
        point = Path(fields.split()[4].replace("\\040", " "))
        if path.is_relative_to(point) and len(point.parts) >= len(best.parts):
            best, kind = point, rest.split()[0]
    return kind if kind in REMOTE else ""

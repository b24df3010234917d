"""A backup: every row of a store in one file, taken in use, the same for both databases.

gzip over lines of JSON: a head, `{"table", "row"}` for each row in the order of `Store.rows`, and a
foot with the number of rows by table and a checksum. So a copy of an SQLite file can become a
PostgreSQL database, and a file that was cut off is known as such. It is read in one snapshot.
"""

from __future__ import annotations

import gzip
import hashlib
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import IO, Any

import msgspec

from ascertain.core.errors import StoreError
from ascertain.store.base import Store
from ascertain.store.loader import UNFINISHED, migrations
from ascertain.store.reads import SharedVerbs
from ascertain.store.records import TABLES

FORMAT = 1
LEVEL = 1  # of compression: the disk is waited for, not the processor
ROWS = 100  # of one statement
LINE_BYTES = 512 * 1024 * 1024  # of one row at most
MARGIN = 60_000_000  # µs: what was written so long before the copy may not have been in it yet
_NAME = re.compile(r"[a-z_]{1,40}")
Row = tuple[str, dict[str, Any]]


class BadBackup(Exception):
    """The file is no whole backup; says why."""


class Head(msgspec.Struct, frozen=True, tag_field="ascertain", tag="backup"):
    """The first line: of which schema it is, and when it was taken, in µs on the store's clock."""

    format: int
    schema: int
    taken_at: int


class Foot(msgspec.Struct, frozen=True):
    """The last line."""

    rows: dict[str, int]
    digest: str


class Summary(msgspec.Struct, frozen=True):
    """What a backup holds: how many rows by table, and how many operations are still open."""

    head: Head
    rows: dict[str, int]
    digest: str
    open: int

    @property
    def count(self) -> int:
        """How many rows in all."""
        return sum(self.rows.values())

    @property
    def gap_from(self) -> int:
        """Since when writes may be missing in it (law 21)."""
        return self.head.taken_at - MARGIN


class _Digest:
    """A checksum over rows that does not depend on their order: databases sort differently."""

    def __init__(self) -> None:
        self.rows, self._sum = Counter[str](), 0

    def add(self, table: str, row: dict[str, Any]) -> None:
        self.rows[table] += 1
        plain = {n: int(v) if isinstance(v, bool) else v for n, v in row.items()}
        line = msgspec.json.encode((table, sorted(plain.items())))
        self._sum += int.from_bytes(hashlib.sha256(line).digest(), "big")

    @property
    def digest(self) -> str:
        return f"{self._sum % 2**256:064x}"


def take(store: Store, out: IO[bytes]) -> Summary:
    """Write a backup of a store in use; the caller makes the file durable."""
    schema = int(store.meta("schema") or 0)
    head = Head(FORMAT, schema, store.now())  # before the snapshot begins
    seen, waiting = _Digest(), 0
    with gzip.GzipFile(fileobj=out, mode="wb", compresslevel=LEVEL, mtime=0) as packed:
        packed.write(msgspec.json.encode(head) + b"\n")
        for table, row in store.rows():
            seen.add(table, row)
            waiting += table == "unsettled"
            packed.write(msgspec.json.encode({"table": table, "row": row}) + b"\n")
        foot = Foot(dict(seen.rows), seen.digest)
        packed.write(msgspec.json.encode(foot) + b"\n")
    return Summary(head, foot.rows, foot.digest, waiting)


def examine(file: Path) -> Summary:
    """Read a whole backup and compare it with its checksum; raises BadBackup or OSError."""
    seen, waiting, head, foot = _Digest(), 0, None, None
    for line in _lines(file):
        if head is None:
            head = _as(Head, line, "it does not begin like one")
        elif foot is not None:
            raise BadBackup("something follows its end")
        elif line.startswith(b'{"table"'):
            table, row = _row(line)
            seen.add(table, row)
            waiting += table == "unsettled"
        else:
            foot = _as(Foot, line, "a line in it is damaged")
    if head is None or foot is None:
        raise BadBackup("it is cut off")
    if (dict(seen.rows), seen.digest) != (foot.rows, foot.digest):
        raise BadBackup("its rows are not those that were written")
    if head.format != FORMAT:
        raise BadBackup(f"it has format {head.format}, this version reads {FORMAT}")
    return Summary(head, foot.rows, foot.digest, waiting)


def fill(store: Store, file: Path, summary: Summary) -> None:
    """Write a backup's rows into an empty store, in one transaction, durable on return.

    From then on the store cannot be opened until `finish`: whoever stops half-way has no store
    that looks sound and has not been told of its restore (law 21). Raises StoreError.
    """
    assert isinstance(store, SharedVerbs), "a store of this package"
    if summary.head.schema != migrations("sqlite")[-1][0]:
        raise StoreError(f"The backup has schema {summary.head.schema}, the store another one.")
    rows = (_row(line) for line in _lines(file) if line.startswith(b'{"table"'))
    store.fill(_groups(rows), UNFINISHED)
    found = _Digest()
    schema = {"name": "schema", "value": str(summary.head.schema)}
    for table, row in store.rows():
        is_schema = (table, row.get("name")) == ("meta", "schema")
        found.add(table, schema if is_schema else row)
    if (dict(found.rows), found.digest) != (summary.rows, summary.digest):
        raise StoreError("What was restored differs from the backup; make an empty store again.")


def finish(store: Store, summary: Summary) -> None:
    """Let a restored store be opened; durable on return."""
    assert isinstance(store, SharedVerbs), "a store of this package"
    store.filled(summary.head.schema)


def is_empty(store: Store) -> bool:
    """Tell whether nothing was ever kept in a store, but what it began with."""
    return all(table == "meta" for table, _ in islice(store.rows(), 100))


def _groups(rows: Iterable[Row]) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """Return rows of one table together, at most ROWS."""
    group: list[dict[str, Any]] = []
    current = ""
    for table, row in rows:
        if group and (table != current or len(group) >= ROWS):
            yield current, group
            group = []
        current = table
        group.append(row)
    if group:
        yield current, group


def _lines(file: Path) -> Iterator[bytes]:
    try:
        with gzip.open(file) as packed:
            while line := packed.readline(LINE_BYTES):
                yield line
    except (gzip.BadGzipFile, EOFError, ValueError) as error:
        raise BadBackup("it is cut off or damaged") from error
    except Exception as error:
        if type(error).__module__ == "zlib":
            raise BadBackup("it is damaged") from error
        raise


def _row(line: bytes) -> Row:
    try:
        found = msgspec.json.decode(line)
        table, row = found["table"], found["row"]
        good = table in TABLES and all(_NAME.fullmatch(name) for name in row)
    except (msgspec.DecodeError, KeyError, TypeError, AttributeError) as error:
        raise BadBackup("a line in it is damaged") from error
    if not good:
        raise BadBackup(f"it has a table {table!r} that no store has")
    return table, row


def _as(kind: Any, line: bytes, why: str) -> Any:
    try:
        return msgspec.json.decode(line, type=kind)
    except msgspec.DecodeError as error:
        raise BadBackup(why) from error

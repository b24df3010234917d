"""The store's protocol: what a database must do. It decides nothing.

A `Change` is decided by `core` on a `Snapshot` and applied only while the status still carries
the stamp it was decided on. So two callers can never both win (law 2), and a batch whose COMMIT
lost its connection can be written again: a change whose own stamp is found has been applied.
Every verb takes lists; one is a list of one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Protocol, TypeVar, overload

import msgspec

from ascertain.core.model import (
    Approval,
    Attempt,
    Change,
    Control,
    Evidence,
    Expected,
    FrozenRequest,
    Incarnation,
    Record,
    Reference,
    Review,
    Run,
    Snapshot,
)

R = TypeVar("R", bound=Record)
A_co = TypeVar("A_co", covariant=True)
BATCH = 500  # changes in one transaction at most
PAGE = 1000  # rows that one reading verb returns at most


class Written(msgspec.Struct, frozen=True):
    """The answer to one change.

    `applied`: it is durable. Otherwise nothing of it was written, and `current` is what the
    store holds now (None: no such operation), or `taken_by` is the operation that already owns
    one of its effect references under the same contract, or already supersedes the same one.
    If a change of `also` fails, `current` is the main operation's (None if it is new).
    """

    applied: bool
    current: Snapshot | None = None
    taken_by: str | None = None


class Posting(msgspec.Struct, frozen=True):
    """Statements of the books, by name and with their values, written all or nothing.

    `must` are the places of those that have to change a row: a guard that does not hold undoes
    the whole. A posting whose COMMIT lost its connection is written again, so statements must bear
    being repeated. `lazy`: it may be answered before the disk has it.
    """

    lines: tuple[tuple[str, Record | Mapping[str, Any]], ...]
    must: tuple[int, ...] = ()
    lazy: bool = False


class Posted(msgspec.Struct, frozen=True):
    """The answer to one posting: whether it is durable, and how many rows each line changed."""

    applied: bool
    rows: tuple[int, ...] = ()


class Beside(msgspec.Struct, frozen=True):
    """What a decision about an operation needs beside its status."""

    attempts: Sequence[Attempt]  # oldest first
    reviews: Sequence[Review]  # the open ones, oldest first
    successor: Snapshot | None  # the operation that supersedes it


class Filter(msgspec.Struct, frozen=True, kw_only=True):
    """What `find` looks for; fields left at None do not restrict."""

    namespace: str | None = None
    action: str | None = None
    key: str | None = None
    run: str | None = None
    event: str | None = None
    ref: str | None = None
    states: Sequence[str] | None = None
    waiting_on: str | None = None
    supersedes: str | None = None  # id of the older operation
    text: str | None = None  # plain text within key or title
    unsettled: bool | None = None
    title: str | None = None  # plain text within the title
    actions: Sequence[str] | None = None  # of one of these actions
    no_actions: Sequence[str] | None = None  # of none of these
    found_by: Sequence[str] | None = None  # done, and found out by one of these
    not_found_by: Sequence[str] | None = None  # done, and found out by none of these
    reviewed: str | None = None  # it has a review: of this road, or "any"
    no_own: bool = False  # our own notices are left out
    until: str | None = None  # ids below this one
    newest: bool = False  # the newest first; `after` is the oldest bound then
    few: bool = False  # the namespace has few operations: they are found by it, and sorted


class Commit(Protocol[A_co]):
    """A change or posting on its way to the disk; nobody can take it back."""

    def result(self, timeout: float | None = None) -> A_co:
        """Return the answer once the change is durable, or raise what it met; after `timeout`
        seconds TimeoutError."""


class Store(Protocol):
    """A database that keeps the ledger. All methods may be called from any thread.

    All raise StoreError subclasses only: StoreBusy, StoreUnavailable, StoreCorrupt,
    SchemaMismatch; after any of them nothing of the call is known to be written, except by
    `write` and `put`, which resolve whether it was before they raise.
    """

    durability: str  # for receipts and figures, e.g. "SQLite WAL, synchronous=FULL"

    def now(self) -> int:
        """Return the store's clock in µs: the only clock of leases and retention."""

    @overload
    def put(self, change: Change, landed: Callable[[], None] | None = None) -> Commit[Written]: ...

    @overload
    def put(self, change: Posting, landed: Callable[[], None] | None = None) -> Commit[Posted]: ...

    def put(
        self, change: Change | Posting, landed: Callable[[], None] | None = None
    ) -> Commit[Written] | Commit[Posted]:
        """Queue one change or posting for the committer, without waiting.

        `landed` is called once it is answered, on the committer's thread: it must not wait for
        the store.
        """

    def write(self, changes: Sequence[Change]) -> list[Written]:
        """Write changes, each all or nothing, and return when they are durable.

        Where all that are committed together are `lazy`, it may return before the disk has
        them: a power cut takes them unless anything durable was written after them.
        One answer per change, in order; a bad or conflicting one fails no neighbour.
        """

    def post(self, postings: Sequence[Posting]) -> list[Posted]:
        """Write postings, each all or nothing, and return when they are durable; in order."""

    def ask(self, record: type[R], query: str, /, **values: Any) -> list[R]:
        """Read rows of the books by a named query; its columns are the record's fields."""

    def snapshots(self, ids: Sequence[str]) -> dict[str, Snapshot]:
        """Read operations with their status, settled or not, by id."""

    def by_keys(self, namespace: str, pairs: Sequence[tuple[str, str]]) -> list[Snapshot | None]:
        """Read operations by (action, key), in order; None where there is none."""

    def take(
        self, now: int, until: int, namespace: str, actions: Sequence[str], limit: int
    ) -> list[Snapshot]:
        """Take due work: unsettled, `due_at` <= now; oldest first, no row twice at once.

        Moves each one's `due_at` to `until`, so that other workers pass it by meanwhile; the
        stamp stays, and the snapshot returned shows `due_at` as it was. Skips locked rows.
        """

    def find(self, what: Filter, after: str = "", limit: int = 100) -> list[Snapshot]:
        """Read operations by filter, ordered by id (time), between `after` and `until`."""

    def how_many(self, what: Filter, after: str, most: int) -> int:
        """Count what `find` would find, up to so many."""

    def beside(self, ids: Sequence[str]) -> dict[str, Beside]:
        """Read what a decision about each of these operations needs beside its status."""

    def attempts(self, operation: str) -> list[Attempt]:
        """Read all attempts of an operation, oldest first."""

    def evidence(self, operation: str) -> list[Evidence]:
        """Read the evidence of an operation in order."""

    def references(self, operation: str) -> list[Reference]:
        """Read the effect references of an operation, oldest first."""

    def requests(self, operation: str) -> list[FrozenRequest]:
        """Read the frozen requests of an operation by epoch."""

    def approvals(self, operation: str) -> list[Approval]:
        """Read the approvals asked for an operation, oldest first."""

    def reviews(
        self, namespace: str | None, operation: str | None = None, *, closed: bool = False
    ) -> list[Review]:
        """Read reviews, oldest first: open ones, or with `closed` all."""

    def control(self, namespace: str, action: str, scope: str) -> Control | None:
        """Read the positive control of an action in a scope."""

    def open_run(self, run: Run, expected: Sequence[Expected]) -> Run:
        """Write a run (or change the one of this id) and add keys that it expects; durable."""

    def runs(self, namespace: str, name: str | None = None) -> list[Run]:
        """Read runs, newest first, of one name or all."""

    def expected(self, run: str) -> list[Expected]:
        """Read the keys that a run expects."""

    def counts(self, namespace: str) -> dict[str, int]:
        """Count the working set by state, and open reviews as `reviews`; never scans history."""

    def incarnations(self, new: Incarnation | None = None) -> list[Incarnation]:
        """Read the lives of the store, oldest first, after adding `new` if given; durable."""

    def meta(self, name: str, value: str | None = None) -> str | None:
        """Read a named setting of the store (`secret`, `clock`, …), after setting it if given."""

    def prune(self, before: int, limit: int) -> int:
        """Turn settled operations last changed before that time into tombstones (law 19).

        Removes input, result, attempts, evidence, requests and approvals; keeps key,
        fingerprint, state and effect references. Returns how many; at most `limit`.
        """

    def join(self, connection: Any, changes: Sequence[Change]) -> list[Written]:
        """Write changes in the caller's own open transaction (PostgreSQL); he commits."""

    def rows(self) -> Iterator[tuple[str, dict[str, Any]]]:
        """Iterate over everything as (table, row) in a consistent order, for export."""

    def check(self) -> list[str]:
        """Check the store's integrity and return what is wrong, in words; empty when sound."""

    def close(self) -> None:
        """Write what is queued, then let go of the database."""

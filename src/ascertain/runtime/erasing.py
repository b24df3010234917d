"""A client's data out, or gone: what `ascertain namespace export` and `erase` do.

Nothing unresolved is ever erased, and tombstones stay: key, fingerprint, state and effect reference
of every operation, and the ids of events, so that nothing is done twice (law 19).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import msgspec

from ascertain.core.books import Account, Bulk, Event, Watch
from ascertain.core.errors import Refused
from ascertain.core.model import Record
from ascertain.core.rights import EVERYWHERE
from ascertain.store.base import Filter, Posting, Store

from .audit import AuditLog, Who

AT_ONCE = 200  # rows of one kind in one turn
NAMED = 20  # of what is unresolved, in a message
# In this order: nobody gets in any more before anything is erased.
DOORS = (
    "erase_tokens", "erase_links", "erase_sessions", "erase_accounts", "erase_members",
    "erase_gates",
)  # fmt: skip
SHARES = ("erase_events", "erase_spooled", "erase_watches", "erase_bulks")
PARTS = (
    "erase_settled", "erase_attempt", "erase_evidence", "erase_request", "erase_approval",
    "erase_operation",
)  # fmt: skip
# Tables with a namespace that keep their rows: what was agreed and counted, and what of it says
# that something was done. A test fails on a table that stands in neither list.
KEPT = (
    "operation", "unsettled", "settled", "reference", "review", "control", "run", "expected",
    "delivery", "subject", "audit", "cost", "asset", "tally",
)  # fmt: skip
# What never leaves the store as text, whoever asks: hashes that are there to be compared with.
HIDDEN: dict[str, tuple[str, ...]] = {"account": ("password",), "api_token": ("hash",)}
SECRET_TABLES = ("session", "link")
OF_THE_STORE = ("incarnation",)  # rows without a namespace that belong to all


class Open(msgspec.Struct, frozen=True):
    """Something of a namespace that is not resolved: what it is, and how it is called."""

    kind: str  # operation, review, event, watch, bulk
    id: str
    name: str


def unresolved(store: Store, namespace: str, most: int = NAMED) -> list[Open]:
    """Return what of a namespace is not resolved yet; at most so many of each kind."""
    asked = {"namespace": namespace, "limit": most}
    found = [
        Open("operation", s.operation.id, f"{s.operation.action} {s.operation.key}")
        for s in store.find(Filter(namespace=namespace, unsettled=True), "", most)
    ]
    found += [Open("review", r.id, r.operation) for r in store.reviews(namespace)[:most]]
    found += [
        Open("event", e.id, f"{e.source} {e.id}")
        for e in store.ask(Event, "erase_open_events", **asked)
    ]
    found += [
        Open("watch", w.operation, w.operation)
        for w in store.ask(Watch, "erase_open_watches", **asked)
    ]
    found += [Open("bulk", b.id, b.did) for b in store.ask(Bulk, "erase_running_bulks", **asked)]
    return found


def erase(
    store: Store, namespace: str, *, who: Who, told: Callable[[int], None] = lambda _: None
) -> int:
    """Erase a namespace's inputs, evidence, results, frozen requests, bodies of events, large
    bodies, memberships, tokens and links, and the names and passwords of people who belong to no
    other one; returns how many operations became tombstones.

    In bounded shares, each durable by itself: run again after a crash, it goes on. Raises
    Refused, naming them, while something is unresolved; nothing is erased then.
    """
    found = unresolved(store, namespace)
    if found:
        names = ", ".join(f"{one.kind} {one.name}" for one in found[:NAMED])
        raise Refused(
            f"namespace {namespace!r} has what is not resolved yet, and nothing of that is ever"
            f" deleted: {names}. Settle it first"
        )
    log = AuditLog(store)
    values = {"namespace": namespace, "limit": AT_ONCE, "now": store.now()}
    begun = log.line(who, namespace, "namespace.erase", reason="begun")
    store.post([Posting((*((name, values) for name in DOORS), begun))])
    count = _operations(store, namespace, told)
    for name in SHARES:
        while store.post([Posting(((name, values),))])[0].rows[0]:
            pass
    log.note(who, namespace, "namespace.erase", reason="ended", after=f"{count} operations")
    return count


class _Due(Record, frozen=True, kw_only=True):
    operation: str


def _operations(store: Store, namespace: str, told: Callable[[int], None]) -> int:
    count, after = 0, ""
    while due := store.ask(_Due, "erase_due", namespace=namespace, after=after, limit=AT_ONCE):
        postings = [
            Posting(
                tuple((name, {"operation": one.operation, "namespace": namespace})
                      for name in PARTS),
                must=(0,),
            )
            for one in due
        ]  # fmt: skip
        count += sum(posted.applied for posted in store.post(postings))
        told(count)
        after = due[-1].operation
    return count


# --- export --------------------------------------------------------------------------------


class _Body(Record, frozen=True, kw_only=True):
    body: str


def rows_of(store: Store, namespace: str | None) -> Iterator[tuple[str, dict[str, Any]]]:
    """Give each row of a namespace, or with None of all, as (table, row), in the order of
    `Store.rows`: an operation comes before what belongs to it.

    What is there to be compared with is left out: passwords, sessions, hashes of tokens and
    links. A table that has neither a namespace nor an operation belongs to nobody, so its rows
    are given only where it is known whose they are. Settings of the store are given whole.
    """
    if namespace is None:
        for table, row in store.rows():
            if table not in SECRET_TABLES:
                yield table, _plain(table, row)
        return
    mine = _Mine(store, namespace)
    for table, row in store.rows():
        if table not in SECRET_TABLES and mine.has(table, row):
            yield table, _plain(table, row)


class _Mine:
    """Knows of each row whether it is a namespace's."""

    def __init__(self, store: Store, namespace: str) -> None:
        self._namespace = namespace
        self._people, self._bodies = _people(store, namespace), _bodies(store, namespace)
        self._operations: set[str] = set()

    def has(self, table: str, row: dict[str, Any]) -> bool:
        if table == "meta":
            return True  # its caller knows which settings may leave
        if "namespace" in row:
            mine = bool(row["namespace"] == self._namespace)
            if mine and table == "operation":
                self._operations.add(row["id"])
            return mine
        if "operation" in row:
            return row["operation"] in self._operations
        if table == "account":
            return row["id"] in self._people
        if table == "blob":
            return row["body"] in self._bodies
        return table in OF_THE_STORE


def _plain(table: str, row: dict[str, Any]) -> dict[str, Any]:
    hidden = HIDDEN.get(table, ())
    return {name: value for name, value in row.items() if name not in hidden}


def _people(store: Store, namespace: str) -> set[str]:
    """Return the ids of a namespace's own people; those of all namespaces are not its data."""
    found, after = set[str](), ""
    while page := store.ask(
        Account, "accounts_in", namespace=namespace, after=after, limit=AT_ONCE
    ):
        found |= {account.id for account in page}
        after = page[-1].id
    everywhere, after = set[str](), ""
    while page := store.ask(
        Account, "accounts_in", namespace=EVERYWHERE, after=after, limit=AT_ONCE
    ):
        everywhere |= {account.id for account in page}
        after = page[-1].id
    return found - everywhere


def _bodies(store: Store, namespace: str) -> set[str]:
    found, after = set[str](), ""
    while page := store.ask(_Body, "erase_bodies", namespace=namespace, after=after, limit=AT_ONCE):
        found |= {one.body for one in page}
        after = page[-1].body
    return found

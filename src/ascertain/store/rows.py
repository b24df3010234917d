"""A group of changes on SQLite: a statement per table for all of them, not one per row.

Each statement gives up Python's lock and waits for it again, which beside busy callers costs more
than the statement itself; so a group of 64 runs a dozen statements instead of seven hundred. As
soon as one row does not go the plain way, nothing of the group is written, and the caller writes
its changes one by one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from itertools import chain
from typing import Any

from ascertain.core.machine import is_settled
from ascertain.core.model import Change, Status
from ascertain.store.apply import EXTRA, Session
from ascertain.store.bulk import apart
from ascertain.store.driver import Connection, Kind, Trouble
from ascertain.store.loader import Queries, Query
from ascertain.store.records import is_beside, request_values

USES = ("rows_known", "rows_gone", "rows_ended")
SIZES = (64, 16, 4, 1)  # rows of one statement: each size is prepared once
LEAST = 4  # changes that are worth a group
Row = tuple[Any, ...]
Identity = tuple[str, str, str]  # namespace, action, key


class NotPlain(Exception):
    """One of the rows met something: write the changes one by one."""


class Rows:
    """Writes the rows of a group of changes that have nothing in common."""

    def __init__(self, queries: Queries) -> None:
        """Bind the statements."""
        self._queries = queries
        self._read: dict[str, Callable[[Any], Row]] = {
            name: queries[name].reader(without=1 if name in EXTRA else 0)
            for name in (
                "operation_insert",
                "unsettled_insert",
                "settled_insert",
                "attempt_insert",
                "evidence_insert",
                "reference_insert",
                "review_write",
                "approval_write",
                "control_insert",
            )
        }

    def together(self, session: Connection, changes: Sequence[Change]) -> list[int]:
        """Write those changes of a group that have nothing in common and are not there yet;
        return their places. Raises NotPlain, with nothing written."""
        places = apart(changes)[0]
        known = self._known(session, [changes[place] for place in places])
        if known:
            places = [place for place in places if _identity(changes[place]) not in known]
        if len(places) >= LEAST:
            try:
                with session.savepoint():
                    self._write(session, [changes[place] for place in places])
                return places
            except Trouble as trouble:
                if trouble.kind is not Kind.ITEM:
                    raise
                raise NotPlain(str(trouble)) from trouble
        return []

    def _known(self, session: Session, changes: Sequence[Change]) -> set[Identity]:
        """Return which of the new operations are in the store already: repeats are common."""
        new = [c.operation for c in changes if c.guard is None and c.operation is not None]
        rows = [(o.namespace, o.action, o.key) for o in new]
        query, found = self._queries["rows_known"], set[Identity]()
        for part in _parts(rows):
            found.update(session.ask(many(query, len(part)), tuple(chain.from_iterable(part))))
        return found

    def _write(self, session: Session, changes: Sequence[Change]) -> None:
        """Write them all; raises NotPlain, after which the caller must undo what was written."""
        new = [c.operation for c in changes if c.guard is None]
        self._all(session, "operation_insert", map(self._read["operation_insert"], new), len(new))
        gone = [(c.status.operation, c.guard) for c in changes if c.guard is not None]
        self._all(session, "rows_gone", gone, len(gone))
        open_: list[Status] = []
        settled: list[Status] = []
        for change in changes:
            (settled if is_settled(change.status) else open_).append(change.status)
        self._records(session, "unsettled_insert", open_)
        self._records(session, "settled_insert", settled)
        self._records(session, "attempt_insert", [c.attempt for c in changes if c.attempt])
        ends = [
            (c.status.operation, token, outcome, c.status.updated_at)
            for c in changes
            for token, outcome in c.ends
        ]
        self._all(session, "rows_ended", ends)
        self._records(session, "evidence_insert", _flat(c.evidence for c in changes))
        references = [
            (*self._read["reference_insert"](r), is_beside(r, c.status))
            for c in changes
            for r in c.references
        ]
        self._all(session, "reference_insert", references, len(references))
        self._records(session, "review_write", _flat(c.reviews for c in changes))
        self._records(session, "approval_write", _flat(c.approvals for c in changes))
        query = self._queries["request_insert"]
        requests = [query.values(request_values(c.request)) for c in changes if c.request]
        self._all(session, "request_insert", requests)
        self._records(session, "control_insert", [c.control for c in changes if c.control])

    def _records(self, session: Session, name: str, records: Sequence[Any]) -> None:
        self._all(session, name, map(self._read[name], records))

    def _all(
        self, session: Session, name: str, rows: Iterable[Row], expected: int | None = None
    ) -> None:
        """Write rows in few statements; `expected` of them must count."""
        query, changed = self._queries[name], 0
        for part in _parts(list(rows)):
            changed += session.do(many(query, len(part)), tuple(chain.from_iterable(part)))
        if expected is not None and changed != expected:
            raise NotPlain(name)


def _identity(change: Change) -> Identity | None:
    new = change.operation if change.guard is None else None
    return None if new is None else (new.namespace, new.action, new.key)


def _parts(rows: Sequence[Row]) -> Iterator[Sequence[Row]]:
    start = 0
    while start < len(rows):
        size = next(size for size in SIZES if size <= len(rows) - start)
        yield rows[start : start + size]
        start += size


def _flat(rows: Iterable[Sequence[Any]]) -> list[Any]:
    return list(chain.from_iterable(rows))


@cache
def many(query: Query, rows: int) -> Query:
    """Return a statement with its one row of values as often as there are rows."""
    head, _, tail = query.partition("values (")
    row, end, rest = tail.partition(")")
    marks = ", ".join("?" for _ in row.split(","))
    text = f"{head}values {', '.join([f'({marks})'] * rows)}{rest}"
    assert end
    return Query(f"{query.name} of {rows}", text, query.params)

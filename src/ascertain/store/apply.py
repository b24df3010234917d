"""How one change is written, on either database: guarded, all or nothing, safe to write again."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Protocol

from msgspec.structs import asdict

from ascertain.core.errors import StoreError
from ascertain.core.machine import is_settled
from ascertain.core.model import Change, Record, Snapshot
from ascertain.store.base import Posted, Posting, Written
from ascertain.store.loader import Queries, Query
from ascertain.store.records import is_beside, request_values, snapshot

# The statements that this module uses.
USES = (
    "operation_insert",
    "unsettled_insert",
    "settled_insert",
    "unsettled_update",
    "unsettled_delete",
    "settled_delete",
    "attempt_insert",
    "attempt_end",
    "attempt_extend",
    "evidence_insert",
    "reference_insert",
    "reference_owner",
    "request_insert",
    "review_write",
    "approval_write",
    "control_insert",
    "snapshot_by_key",
    "snapshot_by_id",
    "successor",
)
# Their last parameter is none of the record's.
EXTRA = ("unsettled_update", "reference_insert")
APPLIED = Written(applied=True)


class Session(Protocol):
    """One open transaction."""

    def ask(self, query: Query, values: Sequence[Any]) -> list[tuple[Any, ...]]:
        """Run a statement and return its rows."""

    def do(self, query: Query, values: Sequence[Any]) -> int:
        """Run a statement and return how many rows it changed."""

    def savepoint(self) -> AbstractContextManager[Any]:
        """Undo what is done within it if it is left by an exception."""


class _Undo(Exception):
    """Leave a savepoint with this answer."""

    def __init__(self, answer: Written) -> None:
        self.answer = answer


class _Unmet(Exception):
    """Leave a savepoint: a line that had to change a row changed none."""


class Applier:
    """Writes changes one by one; the statements are prepared once per store."""

    def __init__(self, queries: Queries, *, alone: bool) -> None:
        """Bind the statements. `alone`: the transaction excludes every other writer (SQLite)."""
        self.queries = queries
        self.alone = alone
        self._read: dict[str, Callable[[Any], tuple[Any, ...]]] = {
            name: queries[name].reader(without=1 if name in EXTRA else 0)
            for name in (
                "operation_insert",
                "unsettled_insert",
                "settled_insert",
                "unsettled_update",
                "attempt_insert",
                "evidence_insert",
                "reference_insert",
                "review_write",
                "approval_write",
                "control_insert",
            )
        }

    def post(self, session: Session, posting: Posting) -> Posted:
        """Write the lines of a posting, or nothing where one that must did not change a row."""
        rows: list[int] = []
        try:
            # Only a line that must change a row can undo what came before it; what the database
            # refuses undoes the whole group, and each is then written alone.
            alone = len(posting.lines) == 1 or not posting.must
            with nullcontext() if alone else session.savepoint():
                self._lines(session, posting, rows)
        except _Unmet:
            return Posted(applied=False, rows=tuple(rows))
        return Posted(applied=True, rows=tuple(rows))

    def _lines(self, session: Session, posting: Posting, rows: list[int]) -> None:
        for place, (name, values) in enumerate(posting.lines):
            rows.append(self._line(session, name, values))
            if place in posting.must and not rows[-1]:
                raise _Unmet

    def _line(self, session: Session, name: str, values: Record | Mapping[str, Any]) -> int:
        query = self.queries[name]
        assert name in self.queries.books, name
        given = values if isinstance(values, Mapping) else asdict(values)
        return session.do(query, query.values(given))

    def apply(self, session: Session, change: Change) -> Written:
        """Write a change and all in `also`, or nothing; say what stands in the way."""
        # Alone, everything that can stand in the way is seen before the first row is written,
        # unless several operations change together.
        plain = self.alone and not change.also
        try:
            with nullcontext() if plain else session.savepoint():
                return self._whole(session, change)
        except _Undo as undo:
            answer = undo.answer
            if answer.taken_by is None and not answer.applied and answer.current is None:
                # Another operation moved; what was read of this one was read before the undo.
                answer = Written(applied=False, current=self.current(session, change))
            return answer

    def _whole(self, session: Session, change: Change) -> Written:
        answer = self._one(session, change)
        if answer is not APPLIED:
            raise _Undo(answer)
        self._also(session, change)
        return answer

    def current(self, session: Session, change: Change) -> Snapshot | None:
        """Read what the store holds of a change's operation, in a new statement."""
        if change.guard is None and (new := change.operation) is not None:
            query = self.queries["snapshot_by_key"]
            rows = session.ask(query, (new.namespace, new.action, new.key))
        else:
            rows = session.ask(self.queries["snapshot_by_id"], (change.status.operation,))
        return snapshot(rows[0]) if rows else None

    def _also(self, session: Session, change: Change) -> None:
        for other in change.also:
            answer = self._one(session, other)
            if answer is not APPLIED:
                raise _Undo(Written(applied=False, taken_by=answer.taken_by))
            self._also(session, other)

    def _one(self, session: Session, change: Change) -> Written:
        """Write one operation's part; APPLIED means just now, another answer means by whom."""
        taken_by = self._taken(session, change)
        if taken_by is not None:
            # An own re-run finds its references in place; then this is no obstacle.
            return self._written_before(session, change) or Written(
                applied=False, taken_by=taken_by
            )
        moved = (
            self._begin(session, change) if change.guard is None else self._move(session, change)
        )
        if moved is not None:
            return moved
        self._details(session, change)
        return APPLIED

    def _taken(self, session: Session, change: Change) -> str | None:
        for reference in change.references:
            query = self.queries["reference_owner"]
            for (owner,) in session.ask(query, (reference.reference, reference.contract)):
                if owner != reference.operation:
                    return str(owner)
        return None

    def _written_before(self, session: Session, change: Change) -> Written | None:
        current = self.current(session, change)
        if current is not None and is_ours(change, current):
            return Written(applied=True)
        return None

    def _begin(self, session: Session, change: Change) -> Written | None:
        new = change.operation
        if new is None or new.id != change.status.operation:
            raise StoreError(
                f"A change of {change.status.operation} without a guard is new: give its operation."
            )
        if session.do(self.queries["operation_insert"], self._read["operation_insert"](new)):
            name = "settled_insert" if is_settled(change.status) else "unsettled_insert"
            session.do(self.queries[name], self._read[name](change.status))
            return None
        current = self.current(session, change)
        if current is not None:
            return Written(applied=is_ours(change, current), current=current)
        successors = session.ask(self.queries["successor"], (new.supersedes,))
        if successors:
            return Written(applied=False, taken_by=str(successors[0][0]))
        raise StoreError(f"The id {new.id} of {new.key!r} is another operation's; mint a new one.")

    def _move(self, session: Session, change: Change) -> Written | None:
        status, guard = change.status, change.guard
        target = "settled_insert" if is_settled(status) else "unsettled_insert"
        if target == "unsettled_insert":
            values = (*self._read["unsettled_update"](status), guard)
            if session.do(self.queries["unsettled_update"], values):
                return None
        elif session.do(self.queries["unsettled_delete"], (status.operation, guard)):
            session.do(self.queries[target], self._read[target](status))
            return None
        if session.do(self.queries["settled_delete"], (status.operation, guard)):
            session.do(self.queries[target], self._read[target](status))
            return None
        current = self.current(session, change)
        ours = current is not None and is_ours(change, current)
        return Written(applied=ours, current=current)

    def _details(self, session: Session, change: Change) -> None:
        do, queries, read = session.do, self.queries, self._read
        operation = change.status.operation
        values: dict[str, Any]
        if change.attempt is not None:
            do(queries["attempt_insert"], read["attempt_insert"](change.attempt))
        if change.extends is not None:
            token, deadline = change.extends
            query = queries["attempt_extend"]
            values = {"operation": operation, "token": token, "deadline": deadline}
            do(query, query.values(values))
        for token, outcome in change.ends:
            query = queries["attempt_end"]
            values = {"operation": operation, "token": token, "outcome": outcome}
            do(query, query.values(values | {"ended_at": change.status.updated_at}))
        for entry in change.evidence:
            do(queries["evidence_insert"], read["evidence_insert"](entry))
        self._refer(session, change)
        for name, rows in (("review_write", change.reviews), ("approval_write", change.approvals)):
            for row in rows:
                do(queries[name], read[name](row))
        if change.request is not None:
            query = queries["request_insert"]
            do(query, query.values(request_values(change.request)))
        if change.control is not None:
            do(queries["control_insert"], read["control_insert"](change.control))
        for name, record in change.lines:
            self._line(session, name, record)

    def _refer(self, session: Session, change: Change) -> None:
        query = self.queries["reference_insert"]
        for reference in change.references:
            beside = is_beside(reference, change.status)
            written = session.do(query, (*self._read["reference_insert"](reference), beside))
            if written or self.alone:
                continue
            # Somebody else's commit came between our look and our insert.
            taken_by = self._taken(session, change)
            if taken_by is not None:
                raise _Undo(Written(applied=False, taken_by=taken_by))


def is_ours(change: Change, current: Snapshot) -> bool:
    """Tell whether the store holds this very change, written before."""
    return (
        current.operation.id == change.status.operation
        and current.status.stamp == change.status.stamp
    )

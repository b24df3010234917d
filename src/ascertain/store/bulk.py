"""Which changes of a group go together in one statement, and their rows as JSON per table."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec
from msgspec.structs import asdict

from ascertain.core.machine import is_settled
from ascertain.core.model import Attempt, Change, Evidence, Operation, Record, Status
from ascertain.store.records import is_beside, request_values


def apart(changes: Sequence[Change]) -> tuple[list[int], list[int]]:
    """Return the places of changes that touch nothing in common, and of the rest, in order.

    The rest are those with `also`, `lines` or `extends`, and those that meet an earlier one of the
    group: they are written one by one after the others, so that each sees what came before it.
    """
    together: list[int] = []
    rest: list[int] = []
    seen: set[object] = set()
    for place, change in enumerate(changes):
        marks = set(_marks(change))
        lacking = change.guard is None and change.operation is None
        alone = change.also or change.lines or change.extends is not None or lacking
        if alone or not seen.isdisjoint(marks):
            rest.append(place)
        else:
            together.append(place)
        # Those of the rest count too: what comes after one of them waits for it.
        seen |= marks
    return together, rest


def _marks(change: Change) -> Iterable[object]:
    """Yield everything that two changes must not have in common."""
    yield change.status.operation
    new = change.operation
    if new is not None and change.guard is None:
        yield (new.namespace, new.action, new.key)
        if new.supersedes is not None:
            yield ("successor of", new.supersedes)
    for reference in change.references:
        yield ("reference", reference.contract, reference.reference)
    for review in change.reviews:
        yield ("review", review.id)
    for approval in change.approvals:
        yield ("approval", approval.id)
    for other in change.also:
        yield from _marks(other)


def _json(rows: Any) -> str:
    return msgspec.json.encode(rows).decode()


def _base(record: type[Record]) -> str:
    """Return the defaults of a record, which its own JSON leaves out."""
    fields = msgspec.structs.fields(record)
    return _json({f.name: f.default for f in fields if f.default is not msgspec.NODEFAULT})


BASES = {
    "operation_base": _base(Operation),
    "status_base": _base(Status),
    "attempt_base": _base(Attempt),
    "evidence_base": _base(Evidence),
}


def parts(changes: Sequence[Change]) -> tuple[list[str], dict[str, Any]]:
    """Return the names of the parts that a group's statement needs, and all its parameters."""
    new = [change.operation for change in changes if change.guard is None]
    moving = [change for change in changes if change.guard is not None]
    moving.sort(key=lambda change: change.status.operation)
    ends = [(t, o, change.status.updated_at) for change in changes for t, o in change.ends]
    statuses = [(is_settled(change.status), change.status) for change in changes]
    tables: dict[str, list[Any]] = {
        "unsettled": [status for settled, status in statuses if not settled],
        "settled": [status for settled, status in statuses if settled],
        "attempt": [change.attempt for change in changes if change.attempt is not None],
        "evidence": [entry for change in changes for entry in change.evidence],
        "reference": [
            {**asdict(reference), "beside": is_beside(reference, change.status)}
            for change in changes
            for reference in change.references
        ],
        "request": [request_values(c.request) for c in changes if c.request is not None],
        "review": [review for change in changes for review in change.reviews],
        "approval": [approval for change in changes for approval in change.approvals],
        "control": [change.control for change in changes if change.control is not None],
    }
    names = [*(["fresh"] if new else []), *(["gone"] if moving else [])]
    names.append("won_both" if len(names) > 1 else f"won_{names[0]}")
    values: dict[str, Any] = {
        **BASES,
        "synchronous_commit": "off" if all(change.lazy for change in changes) else "on",
        "operations": _json(new),
        "moving": [change.status.operation for change in moving],
        "guards": [change.guard for change in moving],
    }
    for name, rows in tables.items():
        if rows:
            names.append(name)
            values[f"{name}_rows"] = _json(rows)
    if ends:
        names.append("ends")
        values["ends"] = _json({str(token): (outcome, at) for token, outcome, at in ends})
        values["ended"] = [token for token, _, _ in ends]
    return ["group_begin", *(f"group_{name}" for name in names), "group_end"], values

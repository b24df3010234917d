"""Which changes of a group go together in one statement, and their rows as JSON per table."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from ascertain.core.machine import is_settled
from ascertain.core.model import Change
from ascertain.store.records import request_values


def apart(changes: Sequence[Change]) -> tuple[list[int], list[int]]:
    """Return the places of changes that touch nothing in common, and of the rest, in order.

    The rest are those with `also` or `extends`, and those that meet an earlier one of the group:
    they are written one by one after the others, so that each sees what came before it.
    """
    together: list[int] = []
    rest: list[int] = []
    seen: set[object] = set()
    for place, change in enumerate(changes):
        marks = set(_marks(change))
        lacking = change.guard is None and change.operation is None
        alone = change.also or change.extends is not None or lacking
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


def _json(rows: Sequence[Any]) -> str:
    return msgspec.json.encode(rows).decode()


def is_plain(changes: Iterable[Change]) -> bool:
    """Tell whether no change has anything of what is rarer."""
    return not any(c.request or c.reviews or c.approvals or c.control for c in changes)


def parameters(changes: Sequence[Change]) -> dict[str, Any]:
    """Return the parameters of `write_group_whole`; `write_group` uses some of them."""
    statuses = [change.status for change in changes]
    moving = [change for change in changes if change.guard is not None]
    moving.sort(key=lambda change: change.status.operation)
    ends = [
        (token, outcome, change.status.updated_at)
        for change in changes
        for token, outcome in change.ends
    ]
    requests = [request_values(c.request) for c in changes if c.request is not None]
    return {
        "operations": _json([c.operation for c in changes if c.guard is None]),
        "moving": [change.status.operation for change in moving],
        "guards": [change.guard for change in moving],
        "unsettled": _json([status for status in statuses if not is_settled(status)]),
        "settled": _json([status for status in statuses if is_settled(status)]),
        "attempts": _json([c.attempt for c in changes if c.attempt is not None]),
        "ends": msgspec.json.encode({str(t): (o, at) for t, o, at in ends}).decode(),
        "ended": [token for token, _, _ in ends],
        "evidence": _json([entry for c in changes for entry in c.evidence]),
        "references": _json([reference for c in changes for reference in c.references]),
        "requests": _json(requests),
        "reviews": _json([review for c in changes for review in c.reviews]),
        "approvals": _json([approval for c in changes for approval in c.approvals]),
        "controls": _json([c.control for c in changes if c.control is not None]),
    }

"""What should have happened and did not (law 20): missing keys, and people who are late."""

from __future__ import annotations

import msgspec

from ascertain.core.model import Snapshot, Status, WaitingOn
from ascertain.core.words import HELD_CODES
from ascertain.store.base import Filter

from .engine import Engine
from .flow import missing

PATIENCE = 24 * 3600 * 1_000_000  # µs that an approval, a review or a held version may take
LIMIT = 1000  # alarms of one kind that are listed


class Alarm(msgspec.Struct, frozen=True, kw_only=True):
    """Something that is overdue: what, since when (µs since 1970), and with whom it is."""

    kind: str  # missing, review, approval, held, stumbled, overdue
    action: str
    key: str
    owner: str = ""
    since: int | None = None
    operation: str | None = None


def alarms(engine: Engine, patience: int = PATIENCE) -> list[Alarm]:
    """List everything that is missing or waits longer than `patience` µs."""
    now = engine.store.now()
    found = [Alarm(kind="missing", action=m.action, key=m.key) for m in missing(engine)]
    reviews = engine.store.reviews(engine.namespace)
    old = {r.operation: r for r in reviews if r.opened_at + patience <= now}
    for ident, snapshot in engine.store.snapshots(list(old)).items():
        found.append(_alarm("review", snapshot, old[ident].opened_at, old[ident].owner))
    for waits in (WaitingOn.APPROVAL, WaitingOn.CLOCK):
        what = Filter(namespace=engine.namespace, unsettled=True, waiting_on=waits.value)
        for snapshot in engine.store.find(what, "", LIMIT):
            kind, since = _late(snapshot.status)
            if kind and since + patience <= now:
                found.append(_alarm(kind, snapshot, since, snapshot.status.owner))
    return found


def _late(status: Status) -> tuple[str, int]:
    """Return which alarm an operation may become, and since when it waits.

    What is due and taken by no worker, e.g. since none has the code of its action, is overdue;
    a worker that takes it moves its due time.
    """
    if status.waiting_on is WaitingOn.APPROVAL:
        return "approval", status.started_at
    if status.said in HELD_CODES:
        return "held", status.started_at
    if status.said == "stumbled":
        return "stumbled", status.started_at
    return ("overdue", status.due_at) if status.due_at is not None else ("", 0)


def _alarm(kind: str, snapshot: Snapshot, since: int, owner: str) -> Alarm:
    operation = snapshot.operation
    return Alarm(
        kind=kind,
        action=operation.action,
        key=operation.key,
        owner=owner,
        since=since,
        operation=operation.id,
    )

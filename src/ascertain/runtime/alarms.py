"""What should have happened and did not (law 20): missing keys, and people who are late."""

from __future__ import annotations

import msgspec

from ascertain.core.model import Snapshot, WaitingOn
from ascertain.core.words import HELD_CODES
from ascertain.store.base import Filter

from .engine import Engine
from .flow import missing

PATIENCE = 24 * 3600 * 1_000_000  # µs that an approval, a review or a held version may take
LIMIT = 1000  # alarms of one kind that are listed


class Alarm(msgspec.Struct, frozen=True, kw_only=True):
    """Something that is overdue: what, since when (µs since 1970), and with whom it is."""

    kind: str  # missing, review, approval, held
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
    for waits, kind in ((WaitingOn.APPROVAL, "approval"), (WaitingOn.CLOCK, "held")):
        what = Filter(namespace=engine.namespace, unsettled=True, waiting_on=waits.value)
        for snapshot in engine.store.find(what, "", LIMIT):
            status = snapshot.status
            if kind == "held" and status.said not in HELD_CODES:
                continue
            if status.started_at + patience <= now:
                found.append(_alarm(kind, snapshot, status.started_at, status.owner))
    return found


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

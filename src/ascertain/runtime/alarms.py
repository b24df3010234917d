"""What should have happened and did not (law 20): missing keys, and people who are late.

Our own notices raise none: what cannot be told is counted, and not told about.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from ascertain.core.figures import is_own
from ascertain.core.model import Record, Review, Snapshot, Status, WaitingOn
from ascertain.core.words import HELD_CODES
from ascertain.store.base import Filter

from . import verified
from .engine import Engine

PATIENCE = 24 * 3600 * 1_000_000  # µs that a review, an approval or a held version may take
EVENT_PATIENCE = 15 * 60 * 1_000_000  # µs until an event must have its operations
LIMIT = 1000  # alarms of one kind that are listed


class Times(msgspec.Struct, frozen=True, kw_only=True):
    """How long people may take with an action's operations, in µs: until somebody has taken a
    review (None: that is not asked for), and until it, or an approval, is decided."""

    respond: int | None = None
    decide: int = PATIENCE


class Alarm(msgspec.Struct, frozen=True, kw_only=True):
    """Something that is overdue: what, since when (µs since 1970), and with whom it is."""

    kind: str  # of core.notices
    action: str
    key: str
    owner: str = ""
    since: int | None = None
    operation: str | None = None
    run: str = ""


class _Missing(Record, frozen=True):
    action: str
    key: str
    run: str
    name: str
    due_at: int


class _Event(Record, frozen=True):
    source: str
    id: str
    state: str
    received_at: int


class _Oldest(Record, frozen=True):
    operation: str
    started_at: int


def alarms(engine: Engine, patience: int | None = None) -> list[Alarm]:
    """List everything that is missing or waits longer than its time; `patience` µs where no time
    is declared."""
    now = engine.store.now()
    usual = Times(decide=PATIENCE if patience is None else patience)
    found = [*_missing(engine, now), *_reviews(engine, usual, now)]
    for waits in (WaitingOn.APPROVAL, WaitingOn.CLOCK):
        what = Filter(namespace=engine.namespace, unsettled=True, waiting_on=waits.value)
        for snapshot in engine.store.find(what, "", LIMIT):
            kind, since = _late(snapshot.status)
            times = engine.times.get(snapshot.operation.action, usual)
            if kind and since + times.decide <= now and not is_own(snapshot.operation.action):
                found.append(_alarm(kind, snapshot, since, snapshot.status.owner))
    found += _backlog(engine, now)
    found += _events(engine, now)
    found += [
        Alarm(kind="self_test", action=name, key="", owner=d.terms.owner("unknown"))
        for name, d in list(engine.actions.items())
        if verified.failed(engine.store, engine.namespace, name)
    ]
    return found


def _missing(engine: Engine, now: int) -> Iterator[Alarm]:
    asked = {"namespace": engine.namespace, "now": now, "limit": LIMIT}
    for one in engine.store.ask(_Missing, "missing_keys", **asked):
        yield Alarm(kind="missing", action=one.action, key=one.key, since=one.due_at, run=one.name)


def _reviews(engine: Engine, usual: Times, now: int) -> Iterator[Alarm]:
    least = min([usual.decide, *(t.decide for t in engine.times.values())])
    least = min([least, *(t.respond for t in engine.times.values() if t.respond is not None)])
    waiting = [
        r
        for r in engine.store.reviews(engine.namespace)
        if r.road == "duplicate" or r.opened_at + least <= now
    ]
    known = engine.store.snapshots([r.operation for r in waiting])
    for review in waiting:
        snapshot = known.get(review.operation)
        if snapshot is None or is_own(snapshot.operation.action):
            continue
        times = engine.times.get(snapshot.operation.action, usual)
        kind = _late_review(review, times, now)
        if kind:
            yield _alarm(kind, snapshot, review.opened_at, review.taken_by or review.owner)


def _late_review(review: Review, times: Times, now: int) -> str:
    if review.road == "duplicate":
        return "duplicate"
    if review.snoozed_until is not None and review.snoozed_until > now:
        return ""
    if review.opened_at + times.decide <= now:
        return "review"
    taken = bool(review.taken_by) or times.respond is None
    return "" if taken or review.opened_at + (times.respond or 0) > now else "response"


def _backlog(engine: Engine, now: int) -> list[Alarm]:
    """Return the oldest operation whose outcome is not known, if it has been so for too long."""
    asked = {"namespace": engine.namespace, "before": now - engine.backlog}
    oldest = engine.store.ask(_Oldest, "open_oldest_unknown", **asked)
    known = engine.store.snapshots([o.operation for o in oldest])
    return [
        _alarm("backlog", known[o.operation], o.started_at, known[o.operation].status.owner)
        for o in oldest
        if o.operation in known
    ]


def _events(engine: Engine, now: int) -> Iterator[Alarm]:
    asked = {"namespace": engine.namespace, "before": now - EVENT_PATIENCE, "limit": LIMIT}
    for one in engine.store.ask(_Event, "events_alarming", **asked):
        yield Alarm(kind="event", action=one.source, key=one.id, since=one.received_at)


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

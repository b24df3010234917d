"""The loop that takes an operation as far as it can go now, shared by both drivers.

A generator: it yields what a driver must carry out (act, look, sleep) and is sent the case that
follows. It never repeats anything by itself: each step is the one that `reconcile` names.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import msgspec

from ascertain.core.draft import Case
from ascertain.core.errors import Conflict
from ascertain.core.model import Kind, NotDone, NotDoneKind, State
from ascertain.core.reconcile import Do

from .engine import ACTIONS, Engine, Ticket

POLL = 100_000  # µs between looks at an operation that somebody else is working on


class Act(msgspec.Struct, frozen=True):
    """Run the action's code, then settle it."""

    ticket: Ticket


class Look(msgspec.Struct, frozen=True):
    """Run the look-up, then settle it."""

    ticket: Ticket


class Sleep(msgspec.Struct, frozen=True):
    """Wait that many µs."""

    duration: int


Driving = Generator[Act | Look | Sleep, Any, Case]


def driving(
    engine: Engine, start: Ticket | Case, given: dict[str, Any] | None, until: int
) -> Driving:
    """Carry an operation on until it is settled, a person is next, or the time is over.

    `until` is on the local clock; steps that are due already are taken even when it has passed.
    `given` is the input of the caller, who may hold what the store does not keep.
    """
    at = start
    while True:
        if isinstance(at, Ticket):
            looks = at.attempt.kind is Kind.LOOK_UP
            at = yield (Look(at) if looks else Act(at))
            continue
        moved = move_on(engine, at, given)
        if moved is not None:
            at = moved
            continue
        left = until - engine.clock.boottime()
        known = at.status.state in (State.DONE, State.ACCEPTED)  # what follows is not awaited
        if at.status.due_at is None or left <= 0 or known:
            return at
        wait = max(at.status.due_at - engine.store.now(), 1000)
        held = at.status.token is not None
        yield Sleep(min(left, POLL if held else wait))
        at = engine.case(engine.snapshot(at.operation.id), at.terms)


def not_started(engine: Engine, ticket: Ticket) -> Case:
    """Give back a claim whose code was not begun in time: proven not sent (laws 2, 5)."""
    try:
        return engine.release(ticket)
    except Conflict:  # its lease ran out: this is a late report (law 8)
        late = NotDone(NotDoneKind.TRANSIENT, "its time was over before it was started")
        return engine.finish(ticket, late)


def move_on(engine: Engine, case: Case, given: dict[str, Any] | None) -> Ticket | Case | None:
    """Take the step that is due now: a ticket to act on, a newer case, or None if none is."""
    status = case.status
    if status.due_at is None:  # decided without the store: asyncio relies on it
        return None
    world = engine.world()
    if status.due_at > world.now:
        return None
    if status.token is not None:
        try:
            return engine.expire(case)
        except Conflict:
            return engine.case(engine.snapshot(case.operation.id), case.terms)
    step = engine.step(case, world)
    if step.do in ACTIONS and step.at <= world.now:
        return engine.claim(case, step.do, given)
    if step.do in (Do.REVIEW, Do.GIVE_UP, Do.CLOSE) or step.at > status.due_at:
        return engine.advance(case, step)
    return None

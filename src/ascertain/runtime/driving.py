"""The loop that takes an operation as far as it can go now, shared by both drivers.

A generator: it yields what a driver must carry out (act, look, sleep, write, read) and is sent
what came of it. It never repeats anything by itself: each step is the one that `reconcile` names.
Only a sweep queues its commits, for several operations at once.
"""

from __future__ import annotations

from collections.abc import Generator
from functools import partial
from typing import Any

import msgspec

from ascertain.core.draft import Case
from ascertain.core.errors import Conflict
from ascertain.core.model import Change, Kind, State
from ascertain.core.reconcile import Do
from ascertain.store.base import Commit, Written

from .asks import Read, Storing, Write
from .attempts import advancing, claiming, ending, expiring, finding_out
from .engine import ACTIONS, Engine
from .ticket import Ticket

POLL = 100_000  # µs between looks at an operation that somebody else is working on


class Act(msgspec.Struct, frozen=True):
    """Run the action's code; answered with its finding, or None if its time was over before it
    was begun."""

    ticket: Ticket


class Look(msgspec.Struct, frozen=True):
    """Run the look-up; answered with its report."""

    ticket: Ticket


class Sleep(msgspec.Struct, frozen=True):
    """Wait that many µs."""

    duration: int


class Queue(msgspec.Struct, frozen=True):
    """Commit a change without waiting; answered at once, with what to wait for."""

    change: Change


class Wait(msgspec.Struct, frozen=True):
    """Wait for a queued commit; answered with its (Written or None, error or None)."""

    commit: Commit[Written]


Asked = Act | Look | Sleep | Write | Read | Queue | Wait
Driving = Generator[Asked, Any, Case]


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
            at = yield from _carried_out(engine, at)
            continue
        moved = yield from moving_on(engine, at, given)
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
        at = yield Read(partial(engine.again, at))


def _carried_out(engine: Engine, ticket: Ticket) -> Driving:
    if ticket.attempt.kind is Kind.LOOK_UP:
        report = yield Look(ticket)
        return (yield from finding_out(engine, ticket, report))
    return (yield from ending(engine, ticket, (yield Act(ticket))))


def moving_on(
    engine: Engine, case: Case, given: dict[str, Any] | None
) -> Storing[Ticket | Case | None]:
    """Take the step that is due now: a ticket to act on, a newer case, or None if none is."""
    status = case.status
    if status.due_at is None:
        return None
    world = engine.world()
    if status.due_at > world.now:
        return None
    if status.token is not None:
        try:
            return (yield from expiring(engine, case))
        except Conflict:
            newer: Case = yield Read(partial(engine.again, case))
            return newer
    step = engine.step(case, world)
    if step.do in ACTIONS and step.at <= world.now:
        return (yield from claiming(engine, case, step.do, given))
    if step.do in (Do.REVIEW, Do.GIVE_UP, Do.CLOSE) or step.at > status.due_at:
        return (yield from advancing(engine, case, step))
    return None

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

from ascertain.core import gates
from ascertain.core.draft import Case
from ascertain.core.errors import Conflict
from ascertain.core.model import Change, Kind, State
from ascertain.core.reconcile import Do
from ascertain.store.base import Commit, Written

from .asks import Read, Storing, Write
from .attempts import advancing, ending, expiring, finding_out, heard, may_act, starting
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


class Place(msgspec.Struct, frozen=True):
    """Wait until an action's code can begin: what is claimed starts now (law 2). Answered with
    False where the caller does not wait for that any longer."""


class Sleep(msgspec.Struct, frozen=True):
    """Wait that many µs."""

    duration: int


class Queue(msgspec.Struct, frozen=True):
    """Commit a change without waiting; answered at once, with what to wait for."""

    change: Change


class Wait(msgspec.Struct, frozen=True):
    """Wait for a queued commit; answered with its (Written or None, error or None)."""

    commit: Commit[Written]


Asked = Act | Look | Place | Sleep | Write | Read | Queue | Wait
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
        if _may_be_claimed(engine, at) and (yield Place()) is False:
            newest: Case = yield Read(partial(engine.again, at))  # others went on meanwhile
            return newest
        # If it is not as it was before it waited for its place, its stamp says so.
        moved = yield from moving_on(engine, at, given)
        if moved is not None:
            at = moved
            continue
        left = until - engine.clock.boottime()
        known = at.status.state in (State.DONE, State.ACCEPTED)  # what follows is not awaited
        paused = at.status.said == gates.SAID[gates.PAUSED]  # until a person resumes it
        if at.status.due_at is None or left <= 0 or known or paused:
            return at
        wait = at.status.due_at - engine.store.now()
        others = at.status.token is not None or wait <= 0  # somebody else acts, or is to
        yield Sleep(min(left, POLL if others else max(wait, 1000)))
        at = yield Read(partial(engine.again, at))


def _may_be_claimed(engine: Engine, case: Case) -> bool:
    status = case.status
    due = status.due_at is not None and status.due_at <= engine.store.now()
    return due and status.token is None and may_act(engine.definition(status.action), "")


def _carried_out(engine: Engine, ticket: Ticket) -> Driving:
    if ticket.attempt.kind is Kind.LOOK_UP:
        report = yield Look(ticket)
        case = yield from finding_out(engine, ticket, report)
        yield from heard(engine, ticket, report.finding)
        return case
    finding = yield Act(ticket)
    case = yield from ending(engine, ticket, finding)
    yield from heard(engine, ticket, finding)
    return case


def moving_on(
    engine: Engine, case: Case, given: dict[str, Any] | None, client: str = ""
) -> Storing[Ticket | Case | None]:
    """Take the step that is due now: a ticket to act on, a newer case, or None if none is.

    `client` is who acts by own code outside: attempts of such an action are begun for nobody
    else.
    """
    status = case.status
    if status.due_at is None:
        return None
    if engine.gates.stale:
        yield Read(engine.gates.refresh)
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
    if step.said in gates.CODES:  # it may have been opened just now: then nothing is held
        yield Read(engine.gates.refresh)
        world = engine.world()
        step = engine.step(case, world)
    if step.do in ACTIONS and step.at <= world.now:
        if not may_act(engine.definition(case.operation.action), client):
            return None
        return (yield from starting(engine, case, step.do, given, client))
    if step.do in (Do.REVIEW, Do.GIVE_UP, Do.CLOSE) or step.at > status.due_at:
        return (yield from advancing(engine, case, step))
    return None

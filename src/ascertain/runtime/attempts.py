"""How later attempts are claimed, and how every attempt ends: by its finding or its time.

Every write is a change that `core` decided on what was read; if something newer is in the
store, it is read again and decided again, so no caller can act on an old picture.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from ascertain.core import claims, settle
from ascertain.core.draft import Case, after
from ascertain.core.errors import Conflict, LeaseLost, Refused, StoreError, UnknownOperation
from ascertain.core.model import ActFinding, Change, Finding, FrozenRequest, NotDone, NotDoneKind
from ascertain.core.reconcile import Do, LookReport, Step, World

from . import freezing, versions
from .action import Definition
from .asks import Read, Storing, Write
from .charging import charged, silent
from .storable import storable
from .ticket import Ticket

if TYPE_CHECKING:
    from .engine import Engine

TRIES = 50  # how often a decision is made again on newer facts before it gives up


class Taken(Exception):
    """An effect reference already belongs to another operation."""

    def __init__(self, other: str, change: Change) -> None:
        """Keep whose it is, and the change that reported it."""
        self.other, self.change = other, change
        super().__init__(other)


def writing(engine: Engine, case: Case, decide: Callable[[Case], Change]) -> Storing[Case]:
    """Decide and write; on newer facts decide again. Returns the case as it is then.

    Raises what `decide` raises, Taken, or StoreError.
    """
    for _ in range(TRIES):
        change = decide(case)
        written = yield Write(change)
        if written.applied:
            if change.control is not None and not change.lazy:  # only what is durable is kept
                engine.controls.add((change.control.action, change.control.scope))
            return after(case, change)
        if written.taken_by is not None:
            raise Taken(written.taken_by, change)
        if written.current is None:
            raise UnknownOperation(operation=case.operation.id)
        case = yield Read(partial(engine.case, written.current, case.terms))
    raise StoreError(
        f"operation {case.operation.key}: too many writers at once; nothing was written here"
    )


# --- claiming ---


def may_act(d: Definition, client: str) -> bool:
    """Tell whether an attempt of an action may begin here: own code outside, a named `client`,
    begins what is declared as its own, and nobody else does; it begins nothing else."""
    return d.remote is bool(client)


def starting(
    engine: Engine, case: Case, do: Do, given: dict[str, Any] | None, client: str = ""
) -> Storing[Ticket | Case]:
    """Claim a step that is due. Where its target's gate is closed and may be tried, be the one
    who tries it, or return the case as it is now."""
    gate = engine.gates.to_try(case.operation.action, engine.store.now())
    if gate is None:
        return (yield from claiming(engine, case, do, given, client))
    until = engine.store.now() + case.terms.bounds.lease
    trial = yield Read(partial(engine.gates.take_trial, gate, until))
    if trial is None:
        newer: Case = yield Read(partial(engine.again, case))
        return newer
    try:
        started = yield from claiming(engine, case, do, given, client)
    except Exception:
        yield Read(partial(engine.gates.not_tried, trial))
        raise
    if isinstance(started, Ticket):
        engine.gates.try_with(trial, started.attempt.token)
    else:
        yield Read(partial(engine.gates.not_tried, trial))
    return started


def heard(engine: Engine, ticket: Ticket, finding: Finding | None) -> Storing[None]:
    """Tell the target's gate how an attempt ended; it writes only where the gate changes.

    The attempt is settled by then: that the gate could not be written must not make it look
    otherwise, and the next one says it again.
    """
    change = engine.gates.heard(ticket.definition.name, ticket.attempt.token, finding)
    if change is not None:
        with suppress(StoreError):
            yield Read(change)


def claiming(
    engine: Engine, case: Case, do: Do, given: dict[str, Any] | None = None, client: str = ""
) -> Storing[Ticket | Case]:
    """Take the lease for a step; returns the newer case where somebody was first.

    `client` is who acts by own code outside. Raises Refused where somebody else acts.
    """
    local = engine.clock.boottime()
    world = engine.world(client)
    d = engine.definition(case.operation.action)
    if not may_act(d, client):
        raise Refused(
            f"operation {case.operation.key}: action {d.name} is carried out by"
            f" {'own code, which claims it' if d.remote else 'the server, not by own code'}",
            operation=case.operation.id,
        )
    values = None
    if do is not Do.LOOK_UP:
        values = d.restore_input(case.operation, given)
        if case.operation.supersedes or case.operation.compensates:
            why = yield Read(partial(versions.why_held, engine, case, world))
            if why:
                return (yield from _holding(engine, case, world, why))
    change = claims.claim(
        case,
        do,
        world,
        token=engine.clock.token(),
        stamp=engine.clock.token(),
        next_key=lambda epoch: engine.target_key(d.name, case.operation.key, epoch),
    )
    frozen: FrozenRequest | None = None
    if values is not None:
        frozen, change = yield Read(
            partial(freezing.frozen_for, engine.store, d, values, case, change)
        )
    if do is Do.EXECUTE and case.operation.supersedes and not case.status.attempts:
        also = yield Read(partial(versions.closing_older, engine, case, world))
        if isinstance(also, str):
            return (yield from _holding(engine, case, world, also))
        change = replace(change, also=also)
    attempt = change.attempt
    assert attempt is not None
    written = yield Write(change)
    if not written.applied:
        return (yield from _newer(engine, case, written.current))
    return Ticket(
        case=after(case, change),
        attempt=attempt,
        definition=d,
        input=values,
        request=freezing.request_of(frozen),
        deadline=local + d.terms.bounds.lease,
    )


def _holding(engine: Engine, case: Case, world: World, why: str) -> Storing[Case]:
    return (yield from writing(engine, case, lambda c: versions.hold(engine, c, world, why)))


def advancing(engine: Engine, case: Case, step: Step) -> Storing[Case]:
    """Write a step that needs no attempt; returns the newer case on a conflict."""
    change = claims.advance(case, step, engine.world(), engine.clock.token())
    written = yield Write(change)
    if not written.applied:
        return (yield from _newer(engine, case, written.current))
    return after(case, change)


def _newer(engine: Engine, case: Case, current: Any) -> Storing[Case]:
    if current is None:
        raise UnknownOperation(operation=case.operation.id)
    newer: Case = yield Read(partial(engine.case, current, case.terms))
    return newer


# --- ending ---


def finishing(engine: Engine, ticket: Ticket, finding: ActFinding) -> Storing[Case]:
    """Settle an effect attempt by its finding; durable when it returns. Never loses it:
    without the lease it is kept as a late report (law 8)."""
    case, kept = ticket.case, storable(finding)
    if ticket.definition.sends_itself and ticket.attempt.hard:
        case = replace(case, terms=ticket.definition.terms)

    def decide(c: Case) -> Change:
        change = settle.report(c, ticket.attempt, kept, engine.world(), engine.clock.token())
        return charged(engine, ticket, kept, _control_once(engine, change))

    try:
        return (yield from writing(engine, case, decide))
    except Taken as taken:
        return (yield from _foreign(engine, ticket, taken, kept))


def ending(engine: Engine, ticket: Ticket, finding: ActFinding | None) -> Storing[Case]:
    """End an effect attempt: by its finding, or where its code was not begun in time by giving
    the claim back as never started (laws 2, 5)."""
    if finding is None:
        try:
            return (yield from releasing(engine, ticket))
        except Conflict:  # its lease ran out: this is a late report (law 8)
            late = "its time was over before it was started"
            finding = NotDone(NotDoneKind.TRANSIENT, late)
    return (yield from finishing(engine, ticket, finding))


def finding_out(engine: Engine, ticket: Ticket, report: LookReport) -> Storing[Case]:
    """Settle a look-up by what it found; durable when it returns."""

    def decide(c: Case) -> Change:
        change = settle.looked(c, ticket.attempt, report, engine.world(), engine.clock.token())
        return charged(engine, ticket, report.finding, _control_once(engine, change))

    try:
        return (yield from writing(engine, ticket.case, decide))
    except Taken as taken:
        return (yield from _foreign(engine, ticket, taken, report.finding))


def releasing(engine: Engine, ticket: Ticket) -> Storing[Case]:
    """Give back a claim whose action never started (law 2); raises Conflict without the lease."""

    def decide(c: Case) -> Change:
        if c.status.token != ticket.attempt.token:
            raise Conflict(operation=c.operation.id)
        return claims.release(c, engine.world(), engine.clock.token())

    return (yield from writing(engine, ticket.case, decide))


def extending(engine: Engine, ticket: Ticket, by: int) -> Storing[None]:
    """Lengthen a lease; committed before the new deadline applies. Raises LeaseLost."""
    local = engine.clock.boottime()

    def decide(c: Case) -> Change:
        if c.status.token != ticket.attempt.token:
            raise LeaseLost(
                f"operation {c.operation.key}: this attempt lost its lease; send nothing more",
                operation=c.operation.id,
            )
        return claims.extend(c, engine.world(), engine.clock.token(), by)

    ticket.case = yield from writing(engine, ticket.case, decide)
    ticket.deadline = max(ticket.deadline, local + by)


def expiring(engine: Engine, case: Case) -> Storing[Case]:
    """End a lease that ran out (law 3); raises Conflict if it was extended or ended."""

    def decide(c: Case) -> Change:
        world = engine.world()
        if c.status.token is None or (c.status.due_at or 0) > world.now:
            raise Conflict(operation=c.operation.id)
        return silent(engine, c, claims.expire(c, world, engine.clock.token()))

    return (yield from writing(engine, case, decide))


def _control_once(engine: Engine, change: Change) -> Change:
    known = change.control
    if known is not None and (known.action, known.scope) in engine.controls:
        return replace(change, control=None)
    return change


def _foreign(engine: Engine, ticket: Ticket, taken: Taken, finding: Finding) -> Storing[Case]:
    ref = taken.change.references[0].reference if taken.change.references else ""
    current = yield Read(partial(engine.again, ticket.case))

    def decide(c: Case) -> Change:
        world, stamp = engine.world(), engine.clock.token()
        change = settle.foreign(c, ticket.attempt, world, stamp, ref=ref, other=taken.other)
        return charged(engine, ticket, finding, change)

    return (yield from writing(engine, current, decide))

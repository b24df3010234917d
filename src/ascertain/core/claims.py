"""How attempts begin and end without a finding: submit, claim, release, extend, expire."""

from __future__ import annotations

from collections.abc import Callable

from msgspec.structs import replace

from .contract import identity, race_free, window_end
from .draft import Case, Draft, effects, ended, go_on, own_attempt, recompute_deadline
from .errors import Refused
from .machine import Input
from .model import FOREVER, Attempt, Change, Kind, Outcome, Reason, State, WaitingOn
from .reconcile import Do, Step, World, new_epoch_needed, others_may_have_sent
from .settle import answered, end_of_answered

_CLAIMS = {
    Do.EXECUTE: (Input.EXECUTE, Kind.EXECUTE),
    Do.REPLAY: (Input.REPLAY, Kind.REPLAY),
    Do.REDO: (Input.REDO, Kind.EXECUTE),
    Do.FORCE: (Input.FORCE, Kind.EXECUTE),
    Do.LOOK_UP: (Input.LOOK_UP, Kind.LOOK_UP),
}


def submit(case: Case, world: World, stamp: int, *, gap_from: int | None = None) -> Change:
    """Record the intent: pending, due now, or waiting for an approval.

    `gap_from` is set where writes since then may have been lost (law 21): the operation may
    have been executed by then, so its outcome is unknown from the start.
    """
    draft = Draft(case, world, stamp)
    waits = WaitingOn.APPROVAL if case.terms.approval else WaitingOn.CLOCK
    draft.set(
        waiting_on=waits,
        due_at=None if case.terms.approval else case.status.due_at or world.now,
        said="waits_approval" if case.terms.approval else "due",
        owner=case.terms.owner("unknown"),
        started_at=world.now,
    )
    if gap_from is not None:
        _restore(draft, gap_from)
    return replace(draft.change(), operation=case.operation, guard=None)


def claim(
    case: Case,
    do: Do,
    world: World,
    *,
    token: int,
    stamp: int,
    next_key: Callable[[int], str] = lambda _epoch: "",
) -> Change:
    """Take the lease for one attempt (laws 1, 2); the attempt row is written in this change.

    `next_key` gives the target key of an epoch, for the case that a new one begins (law 12).
    """
    given, kind = _CLAIMS[do]
    draft = Draft(case, world, stamp)
    before, terms = case.status, case.terms
    if before.token is not None:
        raise Refused(
            f"operation {case.operation.key}: an attempt is under way; wait for its end",
            operation=case.operation.id,
        )
    lease_end = world.now + terms.bounds.lease
    deadline = lease_end if kind is Kind.LOOK_UP else world.now + terms.sending
    draft.move(given, token=token, kind=kind, due_at=lease_end)
    if kind is Kind.LOOK_UP:
        draft.set(lookups=before.lookups + 1)
    else:
        if do is Do.EXECUTE and before.first_claim_at is not None:
            _maybe_new_epoch(draft, next_key)
        if not draft.status.target_key:
            draft.set(target_key=next_key(draft.status.epoch))
        draft.set(
            attempts=before.attempts + 1,
            first_claim_at=draft.status.first_claim_at or world.now,
            last_deadline=max(before.last_deadline or 0, deadline),
            forced_by="",
        )
    draft.more["attempt"] = Attempt(
        token=token,
        operation=before.operation,
        kind=kind,
        epoch=draft.status.epoch,
        started_at=world.now,
        deadline=deadline,
        hard=terms.hard,
        taken_from=before.state,
        on_absence=kind is not Kind.LOOK_UP and _rests_on_absence(case, do),
        without_proof=do is Do.FORCE,
        revision=terms.contract.revision if terms.contract.id != "none.opaque" else "",
        scope=terms.scope,
        worker=world.worker,
    )
    return draft.change()


def _maybe_new_epoch(draft: Draft, next_key: Callable[[int], str]) -> None:
    status = draft.status
    if new_epoch_needed(status, draft.case.terms, draft.world, dead=not status.target_key):
        epoch = status.epoch + 1
        draft.set(epoch=epoch, target_key=next_key(epoch), first_claim_at=None)


def _rests_on_absence(case: Case, do: Do) -> bool:
    """Tell whether a second effect would show a wrong premise: an earlier attempt may have
    sent, and neither its proof nor a protected key rules it out (law 8)."""
    if do is Do.REDO or not others_may_have_sent(case.attempts, 0):
        return False
    if do is not Do.REPLAY:
        return True
    overwrites = case.terms.contract.repeat.answer == "overwrite"
    return identity(case.terms) and (overwrites or not race_free(case.terms))


def advance(case: Case, step: Step, world: World, stamp: int) -> Change:
    """Write a step that needs no attempt: a due time, a review, the bound."""
    draft = Draft(case, world, stamp)
    draft.proceed(step)
    return draft.change()


def release(case: Case, world: World, stamp: int) -> Change:
    """Give back a claim whose action never started: proven not sent, back to where it was."""
    draft = Draft(case, world, stamp)
    own = own_attempt(case)
    draft.ends.append((own.token, Outcome.RELEASED))
    if end_of_answered(draft, proven=True):
        return draft.change()
    draft.move(Input.RELEASE, token=None, kind=None, due_at=world.now)
    if own.kind is Kind.LOOK_UP:
        draft.set(lookups=max(case.status.lookups - 1, 0))
        go_on(draft, case.attempts)
    else:
        draft.set(attempts=max(case.status.attempts - 1, 0))
        recompute_deadline(draft, own, ends=None)
        if not any(a for a in effects(case) if a.token != own.token and a.epoch == own.epoch):
            draft.set(first_claim_at=None)
    return draft.change()


def extend(case: Case, world: World, stamp: int, by: int) -> Change:
    """Lengthen the lease of the attempt that holds it; durable before it applies (law 5).

    Raises Refused beyond the bound of extensions (law 15), and for a replay that could then
    land after the target has forgotten its key (law 6).
    """
    draft = Draft(case, world, stamp)
    deadline = world.now + by
    own, terms = own_attempt(case), case.terms
    token = own.token
    end = window_end(terms, case.status.first_claim_at or 0)
    bounded = own.kind is Kind.REPLAY and end is not None and end < FOREVER
    too_late = bounded and (terms.late is None or deadline + terms.late >= (end or 0))
    if too_late or deadline > own.started_at + terms.bounds.longest:
        raise Refused(
            f"operation {case.operation.key}: the attempt cannot be extended that far; end it"
            " and report what is known",
            operation=case.operation.id,
        )
    draft.set(due_at=max(case.status.due_at or 0, deadline))
    if case.status.kind is not Kind.LOOK_UP:
        draft.set(last_deadline=max(case.status.last_deadline or 0, deadline))
    draft.more["extends"] = (token, deadline)
    return draft.change()


def expire(case: Case, world: World, stamp: int) -> Change:
    """End a lease that ran out: an effect attempt's outcome is unknown, never "not done"
    (law 3); a look-up's lease is freed and the state stays (law 14)."""
    draft = Draft(case, world, stamp)
    own = own_attempt(case)
    draft.ends.append((own.token, Outcome.EXPIRED))
    draft.note("expired", shows="unknown", attempt=own.token, said="expired")
    if own.kind is Kind.LOOK_UP:
        draft.move(Input.NOT_EARNED, token=None, kind=None)
    elif end_of_answered(draft, proven=False):
        return draft.change()
    else:
        draft.move(Input.EXPIRED, token=None, kind=None)
    go_on(draft, ended(case, own, Outcome.EXPIRED))
    return draft.change()


def _restore(draft: Draft, gap_from: int) -> None:
    """Treat the operation as one that may have been acted on and forgotten (law 21).

    An attempt is written for what may have been lost: it sends until the longest deadline,
    under this epoch's key or one not known here, and nothing proves it not done but a look-up.
    """
    before, terms, world = draft.status, draft.case.terms, draft.world
    lost = Attempt(
        token=draft.stamp,
        operation=before.operation,
        kind=Kind.EXECUTE,
        epoch=before.epoch + 1,
        started_at=gap_from,
        deadline=world.now + terms.bounds.longest,
        hard=terms.hard,
        taken_from=before.state,
        scope=terms.scope,
        worker="restored",
        outcome=Outcome.EXPIRED,
        ended_at=world.now,
    )
    draft.more["attempt"] = lost
    draft.note("restored", shows="unknown", said="restored")
    draft.set(token=None, kind=None, last_deadline=lost.deadline, started_at=world.now)
    attempts = [*draft.case.attempts, lost]
    if before.state is State.DONE or answered(before):
        if before.state is State.RUNNING:
            draft.move(Input.KNOWN_BEFORE, verify=True, confirmed_at=world.now)
        go_on(draft, attempts)
        return
    waits = before.waiting_on if before.waiting_on is WaitingOn.APPROVAL else WaitingOn.CLOCK
    draft.move(Input.RESTORED, waiting_on=waits, reason=Reason.NONE, said="restored")
    draft.set(
        first_claim_at=min(before.first_claim_at or gap_from, gap_from),
        verify=False,
        forced_by="",
        confirmed_by="",
        confirmed_at=None,
    )
    go_on(draft, attempts)


def restored(case: Case, world: World, stamp: int, gap_from: int) -> Change:
    """Make an open operation unknown after a restore: the lost writes may have acted on it."""
    draft = Draft(case, world, stamp)
    if case.status.token is not None:
        draft.ends.append((case.status.token, Outcome.EXPIRED))
    _restore(draft, gap_from)
    return draft.change()

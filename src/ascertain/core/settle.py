"""What a report, a look-up or a late truth changes: one function each, pure.

Every function takes a `Case` (the operation as it was read) and returns the `Change` to write,
guarded by the stamp of what was read. If the guard fails the caller reads again and asks again:
the report of an attempt that lost its lease in between is then a late report (law 8), by the
same code.
"""

from __future__ import annotations

from typing import assert_never

from msgspec.structs import replace

from . import policy
from .contract import Terms, repeatable
from .draft import (
    NOTHING_SENT,
    Case,
    Draft,
    as_json,
    costs_a_look_up,
    effects,
    ended,
    go_on,
    own_attempt,
    recompute_deadline,
    shown,
    step_after,
)
from .machine import Input
from .model import (
    Absent,
    Accepted,
    ActFinding,
    Attempt,
    Change,
    Control,
    Done,
    Finding,
    Kind,
    NotDone,
    Operation,
    Outcome,
    Reason,
    Reference,
    Review,
    Several,
    State,
    Status,
    Unknown,
    WaitingOn,
)
from .reconcile import (
    FINAL,
    Do,
    LookReport,
    Step,
    World,
    absence_counts,
    others_may_have_sent,
    quiet_end,
)

# --- reports of effect attempts ------------------------------------------------------------


def report(case: Case, attempt: Attempt, finding: ActFinding, world: World, stamp: int) -> Change:
    """Settle an effect attempt by its finding, or keep it as a late report (laws 7, 8, 13)."""
    draft = Draft(case, world, stamp)
    if _reported(case, attempt, finding):
        return draft.change()
    if case.status.token != attempt.token:
        _late(draft, finding, attempt=attempt)
        return draft.change()
    outcome = _OUTCOMES[type(finding)]
    draft.ends.append((attempt.token, outcome))
    draft.set(token=None, kind=None)
    draft.note("finding", **shown(finding), attempt=attempt.token)
    match finding:
        case Done():
            by = "answer" if attempt.kind is Kind.EXECUTE else "replay"
            happened(draft, Input.DONE, finding, by)
        case Accepted() if answered(case.status):
            _second(draft, finding)
            end_of_answered(draft, proven=False)
        case Accepted():
            _accept(draft, Input.ACCEPTED, finding)
        case Unknown():
            _not_known(draft, attempt, finding)
        case NotDone():
            _refused(draft, attempt, finding)
        case _:
            assert_never(finding)
    draft.more["lazy"] = costs_a_look_up(draft, finding)
    return draft.change()


_OUTCOMES: dict[type, Outcome] = {
    Done: Outcome.DONE,
    Accepted: Outcome.ACCEPTED,
    Unknown: Outcome.UNKNOWN,
    NotDone: Outcome.NOT_DONE,
}


def _reported(case: Case, attempt: Attempt, finding: ActFinding) -> bool:
    """Tell whether this very report was settled before: twice changes nothing (law 8)."""
    before = next((a.outcome for a in case.attempts if a.token == attempt.token), None)
    if case.status.token == attempt.token or before is not _OUTCOMES[type(finding)]:
        return False
    if not isinstance(finding, Done | Accepted):
        return True
    known = finding.ref is None or str(finding.ref) == case.status.ref
    return known and case.status.state in (State.DONE, State.ACCEPTED)


def _not_known(draft: Draft, attempt: Attempt, finding: Unknown) -> None:
    if end_of_answered(draft, proven=False):
        return
    draft.move(Input.UNKNOWN, said="unknown")
    if attempt.hard and "sends_within" not in draft.case.terms.assumed:
        # The runtime has closed this attempt's connection: it sends nothing after this. Code
        # that sends by itself may go on until the time that it declares (law 5).
        recompute_deadline(draft, attempt, ends=draft.world.now)
    go_on(draft, ended(draft.case, attempt, Outcome.UNKNOWN), wait=finding.retry_after)


def _refused(draft: Draft, attempt: Attempt, finding: NotDone) -> None:
    """Take the road of a proven refusal; it speaks for this attempt alone (law 7)."""
    attempts = ended(draft.case, attempt, Outcome.NOT_DONE)
    if end_of_answered(draft, proven=True):
        return
    recompute_deadline(draft, attempt, ends=None)
    terms, world = draft.case.terms, draft.world
    if not _speaks_for_all(draft.case, attempt, finding):
        draft.move(Input.NOT_PROVEN, said="not_proven")
        go_on(draft, attempts, wait=finding.retry_after)
        if finding.kind == "unauthorized" and draft.status.waiting_on is WaitingOn.CLOCK:
            draft.set(waiting_on=WaitingOn.AUTHORIZATION, owner=terms.owner("authorization"))
        return
    _take_road(draft, finding, policy.road(finding, draft.status, terms.bounds, world.now))


def _speaks_for_all(case: Case, attempt: Attempt, finding: NotDone) -> bool:
    """Tell whether a refusal proves every attempt not done: all others are, or they used the
    key whose stored outcome this is, by no person's risk (law 7)."""
    others = case.attempts
    if finding.stored and not attempt.without_proof:
        others = [a for a in others if a.epoch != attempt.epoch]
    return not others_may_have_sent(others, attempt.token)


def _take_road(draft: Draft, finding: NotDone, given: Input) -> None:
    terms, world = draft.case.terms, draft.world
    said = finding.kind.value if given is Input.LATER else given.value
    if finding.stored:
        _end_all_of_key(draft)
        draft.set(target_key="")  # the key is dead: the next attempt begins a new epoch
    draft.move(given, said=said, due_at=None)
    draft.close_reviews("not_done")
    if given is Input.LATER:
        tries = draft.status.attempts
        at = policy.retry_at(finding.retry_after, tries, terms, world.now, world.jitter)
        draft.set(due_at=at)
    else:
        road = "authorization" if given is Input.UNAUTHORIZED else "input"
        draft.set(owner=terms.owner(road))


def _end_all_of_key(draft: Draft) -> None:
    """A stored outcome of the key is the outcome of every attempt under it (law 7)."""
    known = {token for token, _ in draft.ends}
    for attempt in effects(draft.case):
        if attempt.epoch == draft.status.epoch and attempt.token not in known:
            draft.ends.append((attempt.token, Outcome.NOT_DONE))


def answered(status: Status) -> bool:
    """Tell whether a late truth has said "done" while another attempt held the lease."""
    return status.state is State.RUNNING and status.confirmed_by not in ("", "accepted")


def end_of_answered(draft: Draft, *, proven: bool) -> bool:
    """End an attempt whose operation a late truth has answered meanwhile; False if none has.

    Done, and where this attempt may have sent too, a second effect is looked for, unless it
    used the same protected target key (law 8). Accepted: the target's final word is awaited.
    """
    if draft.case.status.state is not State.RUNNING or not draft.case.status.confirmed_by:
        return False
    own = own_attempt(draft.case)
    if answered(draft.case.status):
        same = own.kind is Kind.REPLAY and not own.on_absence
        same = same or repeatable(draft.case.terms)
        draft.move(Input.KNOWN_BEFORE, token=None, kind=None, due_at=None, said="known_before")
        draft.set(verify=not proven and not same, confirmed_at=draft.world.now)
        draft.close_reviews("there")
    else:
        draft.move(Input.ACCEPTED, token=None, kind=None, said="accepted")
        draft.set(confirmed_at=draft.world.now)
    go_on(draft, draft.case.attempts)
    return True


# --- what happened -------------------------------------------------------------------------


def happened(
    draft: Draft, given: Input, finding: Done | Accepted, by: str, *, person: str = ""
) -> None:
    """Close the operation as done; keep every reference; a second effect opens a review. `person`:
    who decided it, if a person did."""
    before = draft.status
    ref = None if finding.ref is None else str(finding.ref)
    draft.move(given, said=given.value)
    _second(draft, finding)
    _despite_successor(draft, before)
    if draft.status.state is not State.DONE:  # another effect attempt holds the lease
        first = before.ref if answered(before) else None
        draft.set(ref=first or ref or before.ref, confirmed_by=by, waiting_on=before.waiting_on)
        return
    if before.state is State.DONE and not before.verify:
        return
    known = before.state is State.DONE or answered(before)
    draft.set(
        ref=(before.ref if known else None) or ref or before.ref,
        result=(before.result if known else None) or as_json(finding.result),
        confirmed_at=draft.world.now,
        confirmed_by=by,
        token=None,
        kind=None,
        due_at=None,
        verify=_must_verify(draft),
    )
    draft.close_reviews("there", person)
    if draft.status.verify:
        go_on(draft, draft.case.attempts)
    elif by == "answer" and draft.case.terms.can_look_up and draft.status.ref:
        operation = draft.case.operation
        draft.more["control"] = Control(
            namespace=operation.namespace,
            action=operation.action,
            scope=draft.case.terms.scope,
            operation=operation.id,
            target_key=draft.status.target_key,
            ref=draft.status.ref,
        )


def _second(draft: Draft, finding: Done | Accepted) -> None:
    """Keep an effect reference; another one beside a known one is a second effect (law 8)."""
    before = draft.case.status
    ref = None if finding.ref is None else str(finding.ref)
    _reference(draft, ref)
    known = before.state is State.DONE or answered(before)
    if repeatable(draft.case.terms):
        return  # a second is no harm: that is what its contract says
    if known and ref is not None and before.ref not in (None, ref):
        draft.open_review("duplicate", "duplicate")


def _despite_successor(draft: Draft, before: Status) -> None:
    """Open a duplicate review on both versions where one happened although its successor had
    already begun: it was superseded, or somebody took the risk of not waiting (law 10)."""
    newer = draft.case.successor
    overtaken = newer is not None and newer.attempts > 0 and before.state is not State.DONE
    if before.reason is not Reason.SUPERSEDED and not overtaken:
        return
    draft.open_review("duplicate", "duplicate")
    if newer is None:
        return
    review = Review(
        id=f"{newer.operation}-duplicate-{draft.case.operation.id}",
        operation=newer.operation,
        namespace=newer.namespace,
        road="duplicate",
        owner=draft.case.terms.owner("duplicate"),
        opened_at=draft.world.now,
        said="duplicate",
    )
    status = replace(newer, stamp=draft.stamp, updated_at=draft.world.now)
    draft.more["also"] = (Change(status=status, guard=newer.stamp, reviews=(review,)),)


def _must_verify(draft: Draft) -> bool:
    """Tell whether a look-up for a second effect is still due (law 8)."""
    case = draft.case
    if not case.terms.can_look_up or case.terms.quiet is None:
        return False
    return any(a.on_absence and a.outcome not in NOTHING_SENT for a in case.attempts)


def _accept(draft: Draft, given: Input, finding: Accepted) -> None:
    ref = None if finding.ref is None else str(finding.ref)
    before = draft.status
    draft.move(given, said="accepted")
    _reference(draft, ref)
    _despite_successor(draft, before)
    if draft.status.state is not State.ACCEPTED:  # an attempt holds the lease, or it is done
        draft.set(waiting_on=before.waiting_on, said=before.said)
        if draft.status.state is State.RUNNING and not answered(before):
            draft.set(ref=ref or before.ref, confirmed_by="accepted")
        elif draft.status.verify and draft.status.token is None:
            go_on(draft, draft.case.attempts)
    elif before.state is State.ACCEPTED:  # a look-up says so again: its time goes on running
        draft.set(token=None, kind=None)
        go_on(draft, draft.case.attempts)
    else:
        draft.set(ref=ref or before.ref, result=as_json(finding.result))
        draft.set(token=None, kind=None, confirmed_at=draft.world.now, confirmed_by="accepted")
        draft.close_reviews("accepted")
        go_on(draft, draft.case.attempts)


def _reference(draft: Draft, ref: str | None) -> None:
    if not ref:
        return
    operation, terms = draft.case.operation, draft.case.terms
    draft.references.append(
        Reference(
            contract=reference_space(operation, terms),
            reference=ref,
            operation=operation.id,
            at=draft.world.now,
        )
    )


def reference_space(operation: Operation, terms: Terms) -> str:
    """Name the space in which an effect reference belongs to one operation: a contract in one
    scope; without a contract the action."""
    kind = terms.contract.id if terms.contract.id != "none.opaque" else operation.action
    return f"{operation.namespace}/{kind}@{terms.scope}"


def foreign(
    case: Case, attempt: Attempt, world: World, stamp: int, *, ref: str, other: str
) -> Change:
    """Keep an answer whose effect reference already belongs to another operation: it shows
    that operation's effect, not this one's, so a person decides."""
    draft = Draft(case, world, stamp)
    looked_up = attempt.kind is Kind.LOOK_UP
    draft.ends.append((attempt.token, Outcome.LOOKED if looked_up else Outcome.UNKNOWN))
    data = {"ref": ref, "other": other}
    draft.note("foreign", shows="several", said="foreign", attempt=attempt.token, data=data)
    if case.status.token != attempt.token:
        draft.move(Input.LATE_OTHER)
        draft.open_review("duplicate", "foreign")
        return draft.change()
    draft.set(token=None, kind=None)
    if end_of_answered(draft, proven=False):
        return draft.change()
    draft.move(Input.NOT_EARNED if looked_up else Input.UNKNOWN)
    if draft.status.state in (State.UNKNOWN, State.ACCEPTED):
        draft.proceed(Step(Do.REVIEW, world.now, "foreign"))
    else:
        go_on(draft, case.attempts)
    return draft.change()


# --- look-ups ------------------------------------------------------------------------------


def looked(case: Case, look: Attempt, given: LookReport, world: World, stamp: int) -> Change:
    """Apply what a look-up found (laws 5, 8, 14). Its errors prove nothing."""
    draft = Draft(case, world, stamp)
    draft.ends.append((look.token, Outcome.LOOKED))
    finding = given.finding
    if given.invented_found:  # it ignores the key: neither its hits nor its misses mean anything
        finding = Unknown(reason="the look-up also finds a key that was never sent")
    why = ""
    if isinstance(finding, Absent | Unknown):
        why = absence_counts(given, look, case.status, case.terms, case.attempts, world=world)
    held = case.status.token == look.token
    draft.note(
        "look_up",
        **{**shown(finding), "said": why or shown(finding)["said"]},
        attempt=look.token,
    )
    if held:
        draft.set(token=None, kind=None, due_at=None)
    match finding:
        case Done():
            happened(draft, Input.FOUND, finding, "look_up")
            _verified(draft, look)
        case Accepted():
            _accept(draft, Input.FOUND_ACCEPTED, finding)
        case Several():
            _several(draft, finding)
        case _ if held and not why and case.status.state is State.UNKNOWN:
            draft.move(Input.ABSENT, due_at=world.now, said="absent")
            draft.close_reviews("not_there")
            if case.status.waiting_on is WaitingOn.APPROVAL:  # of a restored one (laws 11, 21)
                draft.set(waiting_on=WaitingOn.APPROVAL, due_at=None, said="waits_approval")
            if policy.exhausted(draft.status, case.terms.bounds, world.now):
                draft.proceed(Step(Do.GIVE_UP, world.now, "gave_up"))
        case _:
            _not_earned(draft, finding, why, held=held)
    return draft.change()


def _verified(draft: Draft, look: Attempt) -> None:
    """A look-up begun after the quiet period that found one object found them all."""
    quiet = quiet_end(draft.case.status, draft.case.terms, draft.world)
    if draft.status.verify and quiet is not None and look.started_at > quiet:
        draft.set(verify=False, due_at=None, said="verified")


def _several(draft: Draft, finding: Several) -> None:
    """Never pick one: a person sees them all; beside a done operation as a duplicate."""
    before = draft.status
    draft.move(Input.SEVERAL, said="several")
    _despite_successor(draft, before)
    for ref in finding.refs:
        _reference(draft, str(ref))
    if before.state is State.DONE:
        draft.set(verify=False, due_at=None, waiting_on=WaitingOn.NOTHING, said="duplicate")
        draft.open_review("duplicate", "duplicate")
    elif before.state is State.RUNNING:  # a look-up that lost its lease long ago
        draft.set(waiting_on=before.waiting_on, said=before.said)
        draft.open_review("duplicate", "several")
    else:
        draft.set(due_at=None, owner=draft.case.terms.owner("duplicate"))
        draft.open_review("unknown", "several")


def _not_earned(draft: Draft, finding: Finding, why: str, *, held: bool) -> None:
    draft.move(Input.NOT_EARNED)
    if not held:
        return
    if draft.status.state is State.PENDING:
        draft.set(due_at=draft.world.now)
    wait = finding.retry_after if isinstance(finding, Unknown) else None
    case, world = draft.case, draft.world
    quiet = quiet_end(case.status, case.terms, world)
    step = step_after(draft, case.attempts, wait)
    if (
        draft.status.state is State.UNKNOWN
        and step.do is Do.LOOK_UP
        and why in FINAL
        and (quiet is None or world.now > quiet)
    ):
        step = Step(Do.REVIEW, world.now, why)
    draft.proceed(step)


# --- late reports and the target's own events ----------------------------------------------


def outside(
    case: Case, finding: ActFinding, world: World, stamp: int, *, by: str, report: str = ""
) -> Change:
    """Apply what the target itself says, e.g. its webhook; `report` makes it once only."""
    draft = Draft(case, world, stamp)
    _late(draft, finding, by=by, report=report)
    return draft.change()


def _late(
    draft: Draft,
    finding: ActFinding,
    *,
    attempt: Attempt | None = None,
    by: str = "late_report",
    report: str = "",
) -> None:
    """Keep a truth that came without the lease (law 8); it is matched by operation."""
    token = attempt.token if attempt else None
    if attempt is not None:
        draft.ends.append((attempt.token, _OUTCOMES[type(finding)]))
    kind = "late_report" if attempt else "event"
    draft.note(kind, **shown(finding), attempt=token, id=report, by=by if report else "")
    match finding:
        case Done():
            happened(draft, Input.LATE_DONE, finding, by)
        case Accepted():
            if draft.status.state is not State.ACCEPTED:
                _accept(draft, Input.LATE_ACCEPTED, finding)
        case NotDone() if attempt is None and draft.status.state is State.ACCEPTED:
            draft.move(Input.FAILED, due_at=None, said="failed_after_acceptance")
            draft.set(owner=draft.case.terms.owner("input"))
            draft.close_reviews("failed")
        case NotDone() if attempt is not None and draft.status.state is State.UNKNOWN:
            _late_refusal(draft, finding, attempt)
        case _:
            draft.move(Input.LATE_OTHER)


def _late_refusal(draft: Draft, finding: NotDone, attempt: Attempt) -> None:
    """The last attempt that may have sent says it did not: now every one is proven (law 7)."""
    if not _speaks_for_all(draft.case, attempt, finding):
        draft.move(Input.LATE_OTHER)
        return
    draft.set(token=None, kind=None)
    recompute_deadline(draft, attempt, ends=None)
    bounds, now = draft.case.terms.bounds, draft.world.now
    _take_road(draft, finding, policy.road(finding, draft.status, bounds, now))

"""What a person's word changes: decisions, approvals, versions. Pure, like `settle`.

A decision is evidence: who, when, on what ground. It names the last thing the person saw (the
stamp), so anything newer is a clean conflict; it is corrected by a later one, never edited.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import assert_never

from msgspec.structs import replace

from .draft import Case, Draft, go_on
from .errors import ApprovalStale, Refused
from .machine import TABLE, Input
from .model import Approval, Attempt, Change, Done, Kind, Outcome, Reason, State, Status
from .reconcile import World, deadlines_known, quiet_end
from .settle import happened


class Answer(StrEnum):
    """What a person may say about an operation that waits for one."""

    THERE = "there"  # it is there, with its reference
    NOT_THERE = "not_there"  # allows one more attempt
    CANNOT_TELL = "cannot_tell"
    LEAVE = "leave"  # give up; stays visible
    DUPLICATE_SETTLED = "duplicate_settled"  # the second effect was dealt with at the target


def proven_absent(case: Case, world: World) -> bool:
    """Tell whether a person's "not there" comes after the quiet period: before it, or where
    none is known, acting on it is acting without proof."""
    quiet = quiet_end(case.status, case.terms, world)
    return quiet is not None and world.now > quiet and deadlines_known(case.attempts)


def allowed(case: Case) -> list[Answer]:
    """List the decisions that are possible now."""
    state = case.status.state
    answers = [a for a in Answer if (state, _INPUTS.get(a)) in TABLE]
    if state in (State.PENDING, State.NOT_DONE) and Answer.LEAVE in answers:
        answers = [Answer.THERE, Answer.LEAVE]
    if state is State.DONE:
        answers = []
    if any(r.road == "duplicate" for r in case.reviews):
        answers.append(Answer.DUPLICATE_SETTLED)
    return answers


_INPUTS = {
    Answer.THERE: Input.THERE,
    Answer.NOT_THERE: Input.NOT_THERE,
    Answer.CANNOT_TELL: Input.CANNOT_TELL,
    Answer.LEAVE: Input.LEAVE,
}


def decide(
    case: Case,
    answer: Answer,
    world: World,
    stamp: int,
    *,
    by: str,
    ref: str | None = None,
    why: str = "",
    without_proof: bool = False,
) -> Change:
    """Apply a person's decision (SEMANTICS, People). `without_proof` says that the caller has
    the role to accept the risk of a second effect; it is recorded as his."""
    draft = Draft(case, world, stamp)
    data = {"why": why, **({"ref": ref} if ref else {})}
    shows = "done" if answer is Answer.THERE else ""
    risk = answer is Answer.NOT_THERE and not proven_absent(case, world)
    said = "risk" if risk else answer.value
    if case.status.token is not None:
        raise Refused(
            f"operation {case.operation.key} has an attempt under way: decide when it has ended",
            operation=case.operation.id,
        )
    if answer not in allowed(case):
        raise Refused(
            f"operation {case.operation.key} is {case.status.state}: {answer} answers nothing"
            f" that is open now (possible: {', '.join(allowed(case)) or 'nothing'})",
            operation=case.operation.id,
        )
    if answer is Answer.THERE and not (ref or case.status.ref):
        raise Refused(
            f"operation {case.operation.key}: give the reference of what is there, so that it is"
            " known which object this operation made",
            operation=case.operation.id,
        )
    draft.note("decision", shows=shows, said=said, by=by, data=data)
    match answer:
        case Answer.THERE:
            happened(draft, Input.THERE, Done(ref=ref or case.status.ref), "person")
        case Answer.NOT_THERE if risk:
            if not without_proof:
                raise Refused(
                    f"operation {case.operation.key}: the observation period has not ended, or"
                    " none is known, so acting on this answer may make a second effect. Accept"
                    " the risk explicitly, or wait",
                    operation=case.operation.id,
                )
            draft.move(Input.RISK, forced_by=by, due_at=world.now, said="risk")
            draft.close_reviews("risk", by)
        case Answer.NOT_THERE:
            draft.move(Input.NOT_THERE, forced_by=by, due_at=world.now, said="not_there")
            draft.close_reviews("not_there", by)
        case Answer.CANNOT_TELL:
            draft.move(Input.CANNOT_TELL, due_at=None, said="cannot_tell")
            if all(r.road == "duplicate" for r in case.reviews):
                draft.open_review("unknown", "cannot_tell")
        case Answer.LEAVE:
            draft.move(Input.LEAVE, due_at=None, said="left")
            draft.close_reviews("leave", by)
        case Answer.DUPLICATE_SETTLED:
            draft.close_reviews("duplicate_settled", by)
        case _:
            assert_never(answer)
    return draft.change()


def approve(
    case: Case,
    approvals: Sequence[Approval],
    world: World,
    stamp: int,
    *,
    role: str,
    digest: str,
    by: str,
    consent: bool,
    note: str = "",
) -> Change:
    """Record a person's consent, or refusal, in one role (law 11).

    The operation becomes due when every role has consented. Raises ApprovalStale if the digest
    is not of what would be sent, Refused if nothing is asked of this role.
    """
    draft = Draft(case, world, stamp)
    now = [a for a in approvals if a.role == role and a.state == "asked"]
    asked = next((a for a in now if a.digest == digest), now[0] if now else None)
    if asked is None:
        raise Refused(
            f"operation {case.operation.key}: no approval is asked of role {role!r} now",
            operation=case.operation.id,
        )
    if asked.digest != digest:
        raise ApprovalStale(
            f"operation {case.operation.key}: the request changed after it was shown; look at"
            " it again and approve what is shown then",
            operation=case.operation.id,
        )
    state = "approved" if consent else "rejected"
    answer = replace(asked, state=state, decided_at=world.now, by=by, note=note)
    draft.more["approvals"] = (answer,)
    draft.note("approval", said=state, by=by, data={"role": role, "note": note, "digest": digest})
    others = [a for a in approvals if a.id != asked.id and a.digest == digest]
    if not consent:
        draft.move(Input.REJECT, due_at=None, said="rejected_by_person")
    elif all(a.state == "approved" for a in others):
        due = world.now if case.status.token is None else case.status.due_at
        draft.move(Input.APPROVE, due_at=due, started_at=world.now, said="approved")
    return draft.change()


def ask(
    case: Case, approvals: Sequence[Approval], world: World, stamp: int, *, digest: str, until: int
) -> Change:
    """Ask the roles whose consent is not of exactly what would be sent (law 11).

    A pending operation waits for it; an unknown one is looked up meanwhile, or seen again at
    `until`.
    """
    draft = Draft(case, world, stamp)
    known = {a.role for a in approvals if a.digest == digest and a.state in ("asked", "approved")}
    roles = case.terms.approval or ("approver",)
    draft.move(Input.ASK, due_at=None, said="waits_approval")
    draft.note("approval", said="waits_approval", data={"digest": digest})
    draft.more["approvals"] = tuple(
        Approval(
            id=f"{case.operation.id}-{role}-{draft.status.entries}",
            operation=case.operation.id,
            namespace=case.operation.namespace,
            role=role,
            digest=digest,
            asked_at=world.now,
        )
        for role in roles
        if role not in known
    )
    if draft.status.forced_by:
        draft.set(due_at=until)
    elif draft.status.state is State.UNKNOWN:
        go_on(draft, case.attempts)
    return draft.change()


def renew(case: Case, world: World, stamp: int, by: str) -> Change:
    """Make an operation due again after its authorization was renewed (laws 7, 13).

    Its time and look-ups are counted anew; a proven refusal gets one more attempt.
    """
    draft = Draft(case, world, stamp)
    draft.note("renewed", said="renewed", by=by)
    draft.move(Input.RENEW, started_at=world.now, lookups=0, said="renewed")
    if draft.status.state is State.PENDING:
        draft.set(due_at=world.now, forced_by=by)
    if draft.status.token is None:
        go_on(draft, case.attempts)
    return draft.change()


def supersede(case: Case, world: World, stamp: int, *, successor: str) -> Change:
    """Close an operation because its successor starts; written with that claim (law 10).

    Raises Refused while the older one may still act, or nothing is proven about it.
    """
    draft = Draft(case, world, stamp)
    draft.move(Input.SUPERSEDE, due_at=None, said="superseded")
    draft.note("superseded", said="superseded", data={"by": successor})
    return draft.change()


def blocks(older: Case, world: World, *, overwrites: bool) -> str:
    """Return why a successor must still wait for the older version, as a code, or nothing."""
    status = older.status
    if status.state in (State.RUNNING, State.UNKNOWN, State.ACCEPTED):
        return f"waits_{status.state}"
    if status.reason in (Reason.LEFT, Reason.FAILED_AFTER_ACCEPTANCE):
        return "waits_override"
    if overwrites and status.last_deadline is not None:
        quiet = quiet_end(status, older.terms, world)
        if quiet is None or world.now <= quiet:
            return "waits_quiet"
    return ""


def hold(case: Case, world: World, stamp: int, *, why: str, until: int) -> Change:
    """Let a successor wait, visibly, for the version before it (law 10)."""
    draft = Draft(case, world, stamp)
    draft.move(Input.HOLD, due_at=until, said=why)
    return draft.change()


def may_undo(status: Status, attempts: Sequence[Attempt], quiet: int | None, now: int) -> bool:
    """Tell whether an operation may be compensated: it is done or accepted, and no attempt can
    still land (law 18). An attempt that reported its own end lands no more."""
    if status.state not in (State.DONE, State.ACCEPTED):
        return False
    finished = (Outcome.DONE, Outcome.ACCEPTED, Outcome.NOT_DONE, Outcome.RELEASED)
    if all(a.outcome in finished for a in attempts if a.kind is not Kind.LOOK_UP):
        return True
    return quiet is not None and now > quiet


def first_word(case: Case, world: World, stamp: int, *, by: str) -> Change:
    """Keep the first of two people's word on a risky target; nothing becomes due by it."""
    draft = Draft(case, world, stamp)
    draft.move(Input.CANNOT_TELL, due_at=None, said="waits_second")
    draft.open_review("unknown", "waits_second")
    draft.note("decision", said="waits_second", by=by)
    return draft.change()

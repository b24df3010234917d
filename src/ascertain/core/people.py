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
from .errors import ApprovalStale, Conflict, Refused
from .machine import TABLE, Input
from .model import (
    SECOND,
    Approval,
    Attempt,
    Change,
    Done,
    Kind,
    Outcome,
    Reason,
    Review,
    State,
    Status,
    WaitingOn,
)
from .reconcile import World, deadlines_known, quiet_end
from .settle import happened

LONGEST_SNOOZE = 30 * 86400 * SECOND  # a review that nobody sees for longer is forgotten
SECOND_PERSON = "second_person"  # the role in which the first of two people's word is kept


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
            happened(draft, Input.THERE, Done(ref=ref or case.status.ref), "person", person=by)
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
    asked = _asked(case, approvals, role, digest)
    state = "approved" if consent else "rejected"
    answer = replace(asked, state=state, decided_at=world.now, by=by, note=note)
    draft.more["approvals"] = (answer,)
    draft.note("approval", said=state, by=by, data={"role": role, "note": note, "digest": digest})
    others = [a for a in approvals if a.id != asked.id and a.digest == digest]
    if not consent:
        draft.move(Input.REJECT, due_at=None, said="rejected_by_person")
        draft.more["approvals"] = (answer, *_withdrawn(approvals, asked.id, world))
    elif all(a.state == "approved" for a in others):
        due = world.now if case.status.token is None else case.status.due_at
        draft.move(Input.APPROVE, due_at=due, started_at=world.now, said="approved")
    return draft.change()


def respond(
    case: Case,
    approvals: Sequence[Approval],
    world: World,
    stamp: int,
    *,
    role: str,
    digest: str,
    by: str,
    note: str,
    said: str = "responded",
) -> Change:
    """Send a request back to its author: nobody is asked any more, nothing is sent, and a
    corrected version is what it waits for. Raises like `approve`."""
    draft = Draft(case, world, stamp)
    asked = _asked(case, approvals, role, digest)
    answer = replace(asked, state="responded", decided_at=world.now, by=by, note=note)
    draft.more["approvals"] = (answer, *_withdrawn(approvals, asked.id, world))
    draft.note("approval", said=said, by=by, data={"role": role, "why": note, "digest": digest})
    draft.move(Input.RESPOND, due_at=None, said=said, owner=case.terms.owner("input"))
    return draft.change()


def _asked(case: Case, approvals: Sequence[Approval], role: str, digest: str) -> Approval:
    """Return what is asked of a role now; refuses what is not, or is of another request."""
    now = [a for a in approvals if a.role == role and a.state == "asked"]
    asked = next((a for a in now if a.digest == digest), now[0] if now else None)
    if asked is None or (case.status.state, Input.APPROVE) not in TABLE:
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
    return asked


def _withdrawn(
    approvals: Sequence[Approval], but: str, world: World, digest: str | None = None
) -> tuple[Approval, ...]:
    """Return the other asks as withdrawn, except those for this digest: nobody need answer."""
    return tuple(
        replace(a, state="withdrawn", decided_at=world.now)
        for a in approvals
        if a.state == "asked" and a.role != SECOND_PERSON and a.id != but and a.digest != digest
    )


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
    asked = tuple(
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
    draft.more["approvals"] = (*asked, *_withdrawn(approvals, "", world, digest))
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


def first_word(case: Case, world: World, stamp: int, *, by: str, why: str = "") -> Change:
    """Keep the first of two people's word on a risky target; nothing becomes due by it."""
    draft = Draft(case, world, stamp)
    draft.move(Input.CANNOT_TELL, due_at=None, said="waits_second")
    draft.open_review("unknown", "waits_second")
    draft.note("decision", said="waits_second", by=by, data={"why": why} if why else {})
    return draft.change()


def same_question(status: Status) -> str:
    """Name the question that the first of two people answered: once another attempt was made, or
    somebody looked, his word is about something else and counts no more."""
    return f"{status.attempts}/{status.lookups}"


# --- who looks into it; nothing of this says what happened ---


def take(case: Case, review: str, world: World, stamp: int, *, by: str) -> Change | None:
    """Take a review on; None if it is his already. Raises Conflict if somebody else has it."""
    found = the_review(case, review)
    if found.taken_by == by and found.snoozed_until is None:
        return None
    if found.taken_by not in ("", by):
        raise Conflict(
            f"operation {case.operation.key}: {found.taken_by} has taken this review; ask for it,"
            " or hand it over to yourself",
            operation=case.operation.id,
        )
    draft = Draft(case, world, stamp)
    draft.reviews.append(replace(found, taken_by=by, snoozed_until=None))
    draft.note("review", said="taken", by=by, data={"review": review})
    return draft.change()


def hand_over(
    case: Case, review: str, world: World, stamp: int, *, by: str, to: str, why: str = ""
) -> Change:
    """Give a review to somebody; to nobody ("") gives it back to its owner, not taken."""
    found = the_review(case, review)
    draft = Draft(case, world, stamp)
    draft.reviews.append(replace(found, taken_by=to, snoozed_until=None))
    data = {"review": review, "from": found.taken_by, "to": to or found.owner, "why": why}
    draft.note("review", said="handed_over", by=by, data=data)
    return draft.change()


def snooze(
    case: Case, review: str, world: World, stamp: int, *, by: str, until: int | None, why: str = ""
) -> Change:
    """Put a review off until a time, bounded; None brings it back. The operation's own times go
    on: a window that closes meanwhile closes."""
    found = the_review(case, review)
    if until is not None and not world.now < until <= world.now + LONGEST_SNOOZE:
        raise Refused(
            f"operation {case.operation.key}: put it off until a time within the next"
            f" {LONGEST_SNOOZE // (86400 * SECOND)} days",
            operation=case.operation.id,
        )
    draft = Draft(case, world, stamp)
    draft.reviews.append(replace(found, snoozed_until=until))
    said = "woken" if until is None else "snoozed"
    draft.note("review", said=said, by=by, data={"review": review, "until": until, "why": why})
    return draft.change()


def leave_note(case: Case, world: World, stamp: int, *, by: str, text: str) -> Change:
    """Keep what a person wants the next one to know; it proves nothing and changes nothing."""
    draft = Draft(case, world, stamp)
    draft.note("note", said="noted", by=by, data={"why": text})
    return draft.change()


def the_review(case: Case, review: str) -> Review:
    """Return an open review; raises Conflict if it is closed."""
    found = next((r for r in case.reviews if r.id == review), None)
    if found is None:
        raise Conflict(
            f"operation {case.operation.key}: this review is closed; look at the operation",
            operation=case.operation.id,
        )
    return found


# --- what may be done with many at once ---

BULK = ("look_up", "take", "hand_over", "leave", "renew", "snooze")  # never: send again


def bulk_refusal(case: Case, did: str) -> str:
    """Return why a bulk action may not be done to an operation, as a code, or nothing. Sending
    again what is unknown is no bulk action: each such decision needs a person's own look."""
    status = case.status
    if did not in BULK:
        return "no_bulk_action"
    if did in ("take", "hand_over", "snooze"):
        return "" if case.reviews else "no_review"
    if status.token is not None:
        return "under_way"
    if did == "look_up":
        return "" if case.terms.can_look_up else "no_look_up"
    if did == "leave":
        if Answer.LEAVE not in allowed(case) or status.waiting_on is WaitingOn.NOTHING:
            return "nothing_to_leave"
        by_itself = status.state is not State.NOT_DONE and status.waiting_on is not WaitingOn.REVIEW
        return "still_checked" if by_itself else ""
    refused = status.state is State.NOT_DONE and status.reason is Reason.UNAUTHORIZED
    waits = status.waiting_on is WaitingOn.AUTHORIZATION
    return "" if refused or (waits and status.state is State.UNKNOWN) else "not_authorization"

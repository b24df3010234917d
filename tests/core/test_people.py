"""Decisions, approvals and versions (SEMANTICS, People; laws 10, 11, 18)."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from ascertain.core import people
from ascertain.core.errors import ApprovalStale, Refused
from ascertain.core.model import (
    SECOND,
    Absent,
    Accepted,
    Approval,
    Done,
    NotDone,
    NotDoneKind,
    Outcome,
    Reason,
    State,
    Unknown,
)
from ascertain.core.people import Answer, allowed, blocks, may_undo
from ascertain.core.reconcile import Do
from core.driver import Ledger
from core.scenarios import LATE, idempotent, identified, lost, opaque, searchable

X = NotDoneKind.UNAUTHORIZED
T, N, C, L, S = (
    Answer.THERE, Answer.NOT_THERE, Answer.CANNOT_TELL, Answer.LEAVE, Answer.DUPLICATE_SETTLED,
)  # fmt: skip


def in_state(state: State) -> Ledger:
    book = Ledger(opaque()).submit()
    if state is State.PENDING:
        return book
    attempt = book.execute()
    if state is State.UNKNOWN:
        return book.lost(attempt)
    if state is State.RUNNING:
        return book
    finding = {
        State.ACCEPTED: Accepted("j"), State.DONE: Done("d"), State.NOT_DONE: NotDone(X),
    }[state]  # fmt: skip
    return book.report(attempt, finding)


@pytest.mark.parametrize(
    ("state", "answers"),
    [
        (State.PENDING, [T]),
        (State.RUNNING, []),
        (State.UNKNOWN, [T, N, C, L]),
        (State.ACCEPTED, [T, C, L]),
        (State.DONE, []),
        (State.NOT_DONE, [T, L]),
    ],
)
def test_the_decisions_that_are_allowed_now(state: State, answers: list[Answer]) -> None:
    assert allowed(in_state(state).case) == answers


def test_there_makes_it_done_with_its_reference() -> None:
    book = in_state(State.UNKNOWN).decide("there", ref="d-7", why="seen in the shop")
    assert (book.status.state, book.status.ref, book.status.confirmed_by) == (
        State.DONE, "d-7", "person",
    )  # fmt: skip
    assert (book.open_reviews, book.evidence[-1].by, book.evidence[-1].shows) == ([], "bob", "done")


def test_nobody_decides_while_an_attempt_is_under_way() -> None:
    for book in (in_state(State.RUNNING), lost(searchable())):
        if book.status.token is None:
            book.claim(Do.LOOK_UP)
        with pytest.raises(Refused, match="under way"):
            book.decide("there")


def test_not_there_before_the_quiet_period_is_a_risk_of_its_own() -> None:
    for terms in (opaque(), searchable()):
        book = lost(terms)
        with pytest.raises(Refused, match="Accept the risk"):
            book.decide("not_there")
        book.decide("not_there", without_proof=True, why="urgent")
        assert (book.status.state, book.status.forced_by) == (State.UNKNOWN, "bob")
        attempt = book.claim(Do.FORCE)
        assert (attempt.without_proof, attempt.on_absence) == (True, True)
        assert book.status.forced_by == ""
        assert book.report(attempt, NotDone(X)).status.state is State.UNKNOWN


def test_not_there_after_the_quiet_period_allows_one_more_attempt() -> None:
    book = lost(searchable(bounds=replace(searchable().bounds, attempts=1))).wait(LATE + 1)
    book.decide("not_there")
    assert (book.status.state, book.step.do) == (State.PENDING, Do.EXECUTE)
    assert not book.execute().without_proof


def test_the_quiet_period_says_nothing_where_no_deadline_is_known() -> None:
    book = lost(searchable(hard=False)).wait(10**4)
    assert not people.proven_absent(book.case, book.world)


def test_cannot_tell_keeps_it_with_a_person() -> None:
    book = lost(searchable()).decide("cannot_tell")
    assert (book.status.state, book.open_reviews, book.status.due_at) == (
        State.UNKNOWN, ["unknown"], None,
    )  # fmt: skip
    assert len(book.decide("cannot_tell").reviews) == 1
    assert book.advance().status.due_at is None
    accepted = in_state(State.ACCEPTED).wait(10**6).advance().decide("cannot_tell")
    assert (accepted.status.state, accepted.open_reviews) == (State.ACCEPTED, ["accepted"])


def test_leave_proves_nothing_and_is_shown_so() -> None:
    book = in_state(State.UNKNOWN).decide("leave")
    assert (book.status.state, book.status.reason) == (State.NOT_DONE, Reason.LEFT)
    proven = in_state(State.NOT_DONE).decide("leave")
    assert (proven.status.reason, proven.status.waiting_on) == (Reason.UNAUTHORIZED, "")


def test_a_settled_duplicate_closes_its_review() -> None:
    book = Ledger(opaque()).submit()
    first = book.execute()
    book.report(first, Done("d-1")).event(Done("d-2"))
    assert allowed(book.case) == [S]
    book.decide("duplicate_settled", why="second one deleted")
    assert (book.open_reviews, book.status.state) == ([], State.DONE)


def test_a_decision_is_corrected_by_a_later_one() -> None:
    book = in_state(State.UNKNOWN).decide("leave").decide("there", ref="d-1")
    assert (book.status.state, book.status.reason) == (State.DONE, "")
    assert [e.kind for e in book.evidence] == ["expired", "decision", "decision"]


def test_the_first_of_two_people_makes_nothing_due() -> None:
    book = in_state(State.UNKNOWN)
    book.apply(people.first_word(book.case, book.world, book.stamp(), by="bob"))
    assert (book.status.state, book.status.due_at) == (State.UNKNOWN, None)


# --- approvals (law 11) ---


def asked(*roles: str) -> tuple[Ledger, list[Approval]]:
    book = Ledger(searchable(approval=roles)).submit()
    return book, [
        Approval(id=r, operation="op", namespace="n", role=r, digest="d", asked_at=0) for r in roles
    ]


def answer(book: Ledger, approvals: list[Approval], role: str, **more: Any) -> list[Approval]:
    given = {"digest": "d", "by": "eva", "consent": True, **more}
    change = people.approve(book.case, approvals, book.world, book.stamp(), role=role, **given)
    book.apply(change)
    return [book.approvals.get(a.id, a) for a in approvals]


def test_it_becomes_due_when_every_role_has_consented() -> None:
    book, approvals = asked("editor", "legal")
    book.wait(10**5)
    approvals = answer(book, approvals, "editor")
    assert (book.status.waiting_on, book.status.due_at) == ("approval", None)
    approvals = answer(book, approvals, "legal")
    assert (book.status.waiting_on, book.status.due_at) == ("clock", book.now)
    # The time that people took is not the time to find out what happened.
    book.report(book.execute(), Unknown())
    assert (book.step.do, [a.state for a in approvals]) == (Do.LOOK_UP, ["approved"] * 2)


def test_a_refused_consent_stops_it_for_good() -> None:
    book, approvals = asked("editor")
    answer(book, approvals, "editor", consent=False, note="wrong price")
    assert (book.status.state, book.status.reason) == (State.NOT_DONE, "rejected")
    with pytest.raises(Refused, match="no approval is asked"):
        answer(book, [replace(approvals[0], state="rejected")], "editor")


def test_a_consent_to_something_else_is_stale() -> None:
    book, approvals = asked("editor")
    with pytest.raises(ApprovalStale, match="changed after it was shown"):
        answer(book, approvals, "editor", digest="other")


def test_a_consent_during_a_look_up_leaves_its_lease() -> None:
    book, approvals = asked("editor")
    look = book.claim(Do.LOOK_UP)
    answer(book, approvals, "editor")
    assert (book.status.token, book.status.due_at) == (look.token, look.deadline)
    assert book.looked(look, Absent()).step.do is Do.EXECUTE


# --- authorization (laws 7, 13) ---


def renew(book: Ledger) -> Ledger:
    book.apply(people.renew(book.case, book.world, book.stamp(), "it"))
    return book


def test_a_renewed_authorization_makes_it_due_even_at_the_bound() -> None:
    book = Ledger(searchable(bounds=replace(searchable().bounds, attempts=1))).submit()
    book.report(book.execute(), NotDone(X)).wait(10**6)
    assert (renew(book).status.state, book.step.do) == (State.PENDING, Do.EXECUTE)
    unknown = lost(idempotent())
    unknown.report(unknown.claim(Do.REPLAY), NotDone(X)).wait(10**6).advance()
    assert renew(unknown).status.waiting_on == "review"  # its window is over: a person's
    looks = lost(searchable()).wait(10**6).advance()
    assert (renew(looks).status.waiting_on, looks.step.do) == ("clock", Do.LOOK_UP)


def test_a_renewal_during_a_look_up_leaves_its_lease() -> None:
    book = lost(searchable())
    look = book.claim(Do.LOOK_UP)
    assert renew(book).status.due_at == look.deadline


# --- versions (law 10) ---


@pytest.mark.parametrize(
    ("book", "code"),
    [
        (in_state(State.RUNNING), "waits_running"),
        (in_state(State.UNKNOWN), "waits_unknown"),
        (in_state(State.ACCEPTED), "waits_accepted"),
        (in_state(State.UNKNOWN).decide("leave"), "waits_override"),
        (in_state(State.ACCEPTED).event(NotDone(X)), "waits_override"),
        (in_state(State.NOT_DONE), ""),
        (in_state(State.DONE), ""),
        (in_state(State.PENDING), ""),
    ],
    ids=range(8),
)
def test_a_successor_waits_while_the_older_version_may_act(book: Ledger, code: str) -> None:
    assert blocks(book.case, book.world, overwrites=False) == code


def test_where_the_contract_overwrites_the_successor_waits_for_the_quiet_period() -> None:
    book = Ledger(replace(searchable(), lag=0)).submit()
    book.report(book.execute(), Done("d"))
    assert blocks(book.case, book.world, overwrites=True) == "waits_quiet"
    book.wait(60 + LATE + 1)
    assert blocks(book.case, book.world, overwrites=True) == ""
    unknown = Ledger(opaque()).submit()
    unknown.report(unknown.execute(), Done("d"))
    assert blocks(unknown.case, unknown.world, overwrites=True) == "waits_quiet"
    assert blocks(in_state(State.PENDING).case, unknown.world, overwrites=True) == ""


def test_starting_a_successor_closes_the_older_version() -> None:
    for state in (State.PENDING, State.NOT_DONE):
        book = in_state(state)
        book.apply(people.supersede(book.case, book.world, book.stamp(), successor="op-2"))
        assert (book.status.state, book.status.reason) == (State.NOT_DONE, "superseded")
    left = in_state(State.UNKNOWN).decide("leave")
    with pytest.raises(Refused, match="left"):
        people.supersede(left.case, left.world, 1, successor="op-2")
    looked_at = Ledger(searchable()).submit()
    looked_at.claim(Do.LOOK_UP)
    change = people.supersede(looked_at.case, looked_at.world, 99, successor="op-2")
    assert looked_at.apply(change).status.token is None


def test_a_successor_waits_visibly() -> None:
    book = in_state(State.PENDING)
    book.apply(
        people.hold(book.case, book.world, book.stamp(), why="waits_unknown", until=book.now + 7)
    )
    assert (book.status.said, book.status.due_at) == ("waits_unknown", book.now + 7)
    waiting = Ledger(searchable(approval=("editor",))).submit()
    held = people.hold(waiting.case, waiting.world, 9, why="waits_unknown", until=1)
    assert held.status.waiting_on == "approval"


# --- undoing (law 18) ---


@pytest.mark.parametrize("state", [s for s in State if s not in (State.DONE, State.ACCEPTED)])
def test_only_what_happened_is_undone(state: State) -> None:
    book = in_state(state)
    assert not may_undo(book.status, book.case.attempts, 0, 1)


def test_it_is_undone_when_nothing_can_land_any_more() -> None:
    book = in_state(State.DONE)
    assert may_undo(book.status, book.case.attempts, None, book.now)
    silent = [replace(a, outcome=Outcome.EXPIRED) for a in book.case.attempts]
    quiet = book.now + 100 * SECOND
    assert not may_undo(book.status, silent, None, quiet + 1)
    assert not may_undo(book.status, silent, quiet, quiet)
    assert may_undo(book.status, silent, quiet, quiet + 1)


def test_an_identity_keeps_its_key_after_a_persons_word() -> None:
    book = lost(replace(identified(atomic=None), lag=0)).wait(LATE + 1).decide("not_there")
    assert (book.execute().epoch, book.status.target_key) == (1, "key-1")

"""What reports, look-ups and late truths change, as sentences of the laws."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from ascertain.core import claims, people, settle
from ascertain.core.contract import Contract
from ascertain.core.errors import Refused
from ascertain.core.model import (
    SECOND,
    Absent,
    Accepted,
    Done,
    NotDone,
    NotDoneKind,
    Outcome,
    Reason,
    Several,
    State,
    Status,
    Unknown,
)
from ascertain.core.reconcile import Do
from core.driver import LEASE, Ledger, declared
from core.scenarios import (
    KEEPS,
    LATE,
    found_absent,
    idempotent,
    identified,
    lost,
    opaque,
    searchable,
)

T, R, X = NotDoneKind.TRANSIENT, NotDoneKind.REJECTED, NotDoneKind.UNAUTHORIZED


def running(terms: object = None) -> tuple[Ledger, object]:
    book = Ledger(terms or searchable()).submit()
    return book, book.execute()


# --- laws 1 and 2: intent, and one actor ---


def test_the_attempt_is_recorded_with_its_claim() -> None:
    book, attempt = running(idempotent())
    assert book.attempts[attempt.token].deadline == book.now + LEASE * SECOND
    assert book.status.last_deadline == attempt.deadline == book.status.due_at
    assert (book.status.attempts, attempt.revision) == (1, book.terms.contract.revision)
    assert running(declared(Contract(id="none.opaque")))[1].revision == ""


@pytest.mark.parametrize("do", [Do.EXECUTE, Do.REPLAY, Do.LOOK_UP])
def test_while_one_acts_or_looks_nobody_else_may(do: Do) -> None:
    book = running()[0]
    with pytest.raises(Refused, match="under way"):
        book.claim(do)
    looking = Ledger(searchable()).submit()
    looking.claim(Do.LOOK_UP)
    with pytest.raises(Refused, match="under way"):
        looking.claim(do)


def test_a_claim_that_never_started_is_released_as_not_sent() -> None:
    book = running()[0].release()
    assert (book.status.state, book.status.attempts) == (State.PENDING, 0)
    assert (book.status.first_claim_at, book.status.last_deadline) == (None, None)
    book = lost(idempotent())
    deadline = book.status.last_deadline
    book.claim(Do.REPLAY)
    book.release()
    assert (book.status.state, book.status.last_deadline) == (State.UNKNOWN, deadline)
    assert book.status.first_claim_at is not None
    book = Ledger(searchable()).submit()
    book.claim(Do.LOOK_UP)
    assert (book.release().status.state, book.status.lookups) == (State.PENDING, 0)


def test_an_extension_is_bounded() -> None:
    book, attempt = running()
    book.wait(50).extend(60)
    assert book.status.due_at == book.now + 60 * SECOND == book.status.last_deadline
    assert book.attempts[attempt.token].deadline == book.status.due_at
    with pytest.raises(Refused, match="cannot be extended"):
        book.extend(LEASE * 11)
    looking = Ledger(searchable()).submit()
    looking.claim(Do.LOOK_UP)
    assert looking.extend(90).status.last_deadline is None


def test_a_replay_is_not_extended_beyond_its_window() -> None:
    book = lost(replace(idempotent(), keeps=600 * SECOND))
    book.claim(Do.REPLAY)
    book.extend(100)
    with pytest.raises(Refused, match="cannot be extended"):
        book.extend(500)
    free = lost(identified())
    free.claim(Do.REPLAY)
    assert free.extend(500).status.due_at == free.now + 500 * SECOND


# --- laws 3 and 13: what an end proves ---


def test_a_refusal_before_processing_takes_its_road() -> None:
    for kind, reason, waits in (
        (NotDoneKind.INVALID, "invalid", "input"),
        (R, "rejected", "input"),
        (X, "unauthorized", "authorization"),
    ):
        book, attempt = running(searchable(owners={"": "anna", "authorization": "it"}))
        book.report(attempt, NotDone(kind, "no"))
        assert (book.status.state, book.status.reason) == (State.NOT_DONE, reason)
        assert book.status.waiting_on == waits
        assert book.status.owner == ("it" if kind is X else "anna")


def test_throttled_is_pending_at_the_time_asked_for() -> None:
    book, attempt = running()
    book.report(attempt, NotDone(NotDoneKind.THROTTLED, retry_after=90))
    assert (book.status.state, book.status.due_at) == (State.PENDING, book.now + 90 * SECOND)
    assert (book.status.said, book.status.last_deadline) == ("throttled", None)


def test_unknown_ends_the_sending_where_the_runtime_closed_the_connection() -> None:
    book, attempt = running()
    book.wait(5).report(attempt, Unknown("reset", retry_after=7))
    assert book.status.last_deadline == book.now
    assert book.status.due_at == book.now + 7 * SECOND
    book, attempt = running(searchable(hard=False))
    book.wait(5).report(attempt, Unknown("reset"))
    assert book.status.last_deadline == attempt.deadline


def test_every_outcome_is_kept_with_its_attempt() -> None:
    for finding, outcome in (
        (Done("d"), Outcome.DONE), (Accepted("j"), Outcome.ACCEPTED),
        (Unknown(), Outcome.UNKNOWN), (NotDone(T), Outcome.NOT_DONE),
    ):  # fmt: skip
        book, attempt = running()
        book.report(attempt, finding)
        assert book.attempts[attempt.token].outcome is outcome
    assert book.evidence[-1].shows == "not_done"


def test_done_keeps_reference_result_and_the_first_control() -> None:
    book, attempt = running()
    book.report(attempt, Done(ref=17, result={"url": "/17"}))
    assert (book.status.ref, book.status.result) == ("17", '{"url":"/17"}')
    assert book.control.ref == "17"
    assert book.references[0].contract == "acme/shop.order@acme"
    plain = replace(book.terms, contract=replace(book.terms.contract, id="none.opaque"))
    assert settle.reference_space(book.operation, plain) == "acme/shop.order@acme"


# --- law 7: an attempt speaks only for itself ---


def test_not_done_is_proof_once_every_attempt_is_proven() -> None:
    book = lost(idempotent())
    first, replay = next(iter(book.attempts.values())), book.claim(Do.REPLAY)
    book.report(replay, NotDone(R)).report(first, NotDone(R))
    assert (book.status.state, book.status.reason) == (State.NOT_DONE, "rejected")


def test_a_late_refusal_does_not_speak_for_others() -> None:
    book = lost(idempotent())
    first, replay = next(iter(book.attempts.values())), book.claim(Do.REPLAY)
    book.lost(replay).report(first, NotDone(T))
    assert book.status.state is State.UNKNOWN
    book.report(replay, NotDone(T, stored=True))
    assert (book.status.state, book.status.target_key) == (State.PENDING, "")


def test_a_stored_answer_speaks_only_for_its_own_key() -> None:
    book = lost(replace(idempotent(), can_look_up=True, lag=0))
    book.wait(KEEPS).look(Absent())
    second = book.execute()
    assert second.epoch == 2
    book.report(second, NotDone(R, stored=True))
    assert book.status.state is State.UNKNOWN


def test_retry_after_of_an_unproven_refusal_sets_only_the_time() -> None:
    book = lost(idempotent())
    book.report(book.claim(Do.REPLAY), NotDone(NotDoneKind.THROTTLED, retry_after=30))
    assert (book.status.state, book.status.waiting_on) == (State.UNKNOWN, "clock")
    assert book.status.due_at == book.now + 30 * SECOND


# --- law 8: a late truth is never thrown away ---


def test_reporting_twice_changes_nothing() -> None:
    for finding in (Done("d-1"), NotDone(R), Unknown("x"), Accepted("j-1")):
        book, attempt = running(opaque())
        book.report(attempt, finding)
        entries, state, refs = book.status.entries, book.status.state, list(book.references)
        book.report(attempt, finding)
        assert (book.status.entries, book.status.state, book.references) == (entries, state, refs)


def test_done_reported_again_after_a_restore_is_news() -> None:
    book, attempt = running(opaque())
    book.report(attempt, Accepted("j-1")).restore(1000)
    assert book.report(attempt, Accepted("j-1")).status.state is State.ACCEPTED


def test_a_late_done_is_kept_in_every_state() -> None:
    stopped, attempt = running()
    stopped.report(attempt, NotDone(R)).report(attempt, Done("d-1"))
    assert (stopped.status.state, stopped.status.reason) == (State.DONE, "")
    pending = found_absent(searchable())
    pending.report(next(iter(pending.attempts.values())), Done("d-1"))
    assert pending.status.state is State.DONE
    accepted, attempt = running()
    accepted.report(attempt, Accepted("j-1")).event(Done("d-1"))
    assert (accepted.status.ref, accepted.status.confirmed_by) == ("d-1", "event")
    assert accepted.refs == ["j-1", "d-1"]


def test_a_protected_replay_needs_no_look_for_a_second_effect() -> None:
    book = lost(replace(idempotent(), can_look_up=True, lag=0))
    replay = book.claim(Do.REPLAY)
    book.report(next(iter(book.attempts.values())), Done("d-1")).lost(replay)
    assert (book.status.state, book.status.verify) == (State.DONE, False)


def second_running(terms: object = None) -> tuple[Ledger, object, object]:
    book = found_absent(terms or searchable())
    first = next(iter(book.attempts.values()))
    return book, first, book.execute()


@pytest.mark.parametrize(
    ("end", "verify"),
    [(Unknown(), True), (NotDone(T), False), (Done("d-1"), True), (Accepted("d-1"), True)],
    ids=range(4),
)
def test_an_answered_operation_is_done_however_its_attempt_ends(end: object, verify: bool) -> None:
    book, first, second = second_running()
    book.report(first, Done("d-1"))
    assert book.status.state is State.RUNNING
    book.report(second, end)
    assert (book.status.state, book.status.ref) == (State.DONE, "d-1")
    assert (book.status.verify, book.open_reviews) == (verify, [])


def test_an_answered_operation_is_done_when_its_claim_is_released() -> None:
    book, first, _ = second_running()
    book.report(first, Done("d-1")).release()
    assert (book.status.state, book.status.verify) == (State.DONE, False)


def test_two_late_truths_while_another_attempt_runs_are_two_effects() -> None:
    book, first, second = second_running()
    book.report(first, Done("d-1")).event(Done("d-2"))
    assert (book.status.ref, book.open_reviews) == ("d-1", ["duplicate"])
    book.report(second, Accepted("d-3"))
    assert (book.status.state, book.refs) == (State.DONE, ["d-1", "d-2", "d-3"])
    book.wait(3600).look(Several(["d-1", "d-2"]))
    assert (book.status.verify, book.open_reviews) == (False, ["duplicate"])


def test_an_acceptance_while_another_attempt_runs_is_not_forgotten() -> None:
    for end in ("unknown", "expired", "released", "not done"):
        book, first, second = second_running()
        book.report(first, Accepted("j-1"))
        assert book.status.state is State.RUNNING
        if end == "expired":
            book.lost(second)
        elif end == "released":
            book.release()
        else:
            book.report(second, Unknown() if end == "unknown" else NotDone(T))
        assert (book.status.state, book.status.ref) == (State.ACCEPTED, "j-1")


def test_a_second_effect_that_cannot_be_looked_for_is_a_persons() -> None:
    book = lost(opaque()).decide("not_there", without_proof=True)
    first, second = next(iter(book.attempts.values())), book.claim(Do.FORCE)
    book.report(first, Done("d-1")).lost(second).advance()
    assert (book.status.state, book.status.verify) == (State.DONE, False)
    assert book.open_reviews == ["duplicate"]


def test_a_look_up_after_the_quiet_period_ends_the_search_for_a_second_effect() -> None:
    book, _, second = second_running()
    book.report(second, Done("d-2")).wait(LATE)
    book.look(Done("d-2"))
    assert book.status.verify  # too early
    book.wait(LEASE + 1).look(Done("d-2"))
    assert (book.status.verify, book.status.said) == (False, "verified")


def test_an_unknown_late_report_changes_no_state() -> None:
    book, attempt = running(opaque())
    book.lost(attempt).report(attempt, Unknown("thawed"))
    assert book.status.state is State.UNKNOWN
    assert [e.kind for e in book.evidence] == ["expired", "late_report"]


# --- law 10: a superseded version that happened after all ---


@pytest.mark.parametrize(
    "truth", [Done("d-1"), Accepted("j-1"), Several(["d-1", "d-2"])], ids=["done", "accepted", "2"]
)
def test_a_superseded_version_that_happened_is_a_duplicate_on_both(truth: object) -> None:
    book, attempt = running()
    book.report(attempt, NotDone(R))
    book.apply(people.supersede(book.case, book.world, book.stamp(), successor="op-2"))
    book.successor = Status(
        operation="op-2", namespace="acme", action="a", state=State.RUNNING, stamp=77
    )
    if isinstance(truth, Several):
        book.look(truth)
    else:
        book.report(attempt, truth)
    assert "duplicate" in book.open_reviews
    [other] = book.others
    assert (other.guard, other.status.state) == (77, State.RUNNING)
    assert [(r.operation, r.road) for r in other.reviews] == [("op-2", "duplicate")]


def test_without_a_known_successor_the_older_one_is_reviewed() -> None:
    book, attempt = running()
    book.report(attempt, NotDone(R))
    book.status = replace(book.status, reason=Reason.SUPERSEDED, waiting_on="")
    book.report(attempt, Done("d-1"))
    assert (book.open_reviews, book.others) == (["duplicate"], [])


# --- law 12: the target key is kept ---


def test_a_dead_key_of_an_identity_is_used_again() -> None:
    book, attempt = running(identified())
    book.report(attempt, NotDone(T, stored=True))
    book.now = book.status.due_at
    assert (book.execute().epoch, book.status.target_key) == (1, "key-1")


def test_a_dead_key_is_minted_again_for_whatever_follows_without_proof() -> None:
    book, attempt = running(idempotent())
    book.report(attempt, NotDone(T, stored=True)).restore(1000)
    assert book.claim(Do.REPLAY).epoch == 1
    assert book.status.target_key == "key-1"


# --- law 14: a look-up only looks ---


def test_a_look_ups_error_or_expiry_changes_nothing() -> None:
    book = lost(searchable())
    book.look(Unknown("503", retry_after=9))
    assert (book.status.state, book.status.due_at) == (State.UNKNOWN, book.now + 9 * SECOND)
    look = book.claim(Do.LOOK_UP)
    book.lost(look)
    assert (book.status.state, book.status.token) == (State.UNKNOWN, None)


def test_a_look_up_that_lost_its_lease_still_finds() -> None:
    book = lost(searchable())
    look = book.claim(Do.LOOK_UP)
    book.lost(look).looked(look, Done("d-1"))
    assert (book.status.state, book.status.confirmed_by) == (State.DONE, "look_up")


@pytest.mark.parametrize(
    "late", [Absent(), Unknown(), Several(["a", "b"]), Done("a")], ids=range(4)
)
def test_a_stale_look_up_beside_a_running_attempt_only_adds(late: object) -> None:
    book = lost(searchable())
    look = book.claim(Do.LOOK_UP)
    book.lost(look).wait(LATE + 1).look(Absent())
    second = book.execute()
    book.looked(look, late)
    assert (book.status.state, book.status.token) == (State.RUNNING, second.token)
    assert book.open_reviews == (["duplicate"] if isinstance(late, Several) else [])


def test_a_truth_that_comes_meanwhile_ends_a_look_up() -> None:
    book, attempt = running()
    book.report(attempt, Accepted("j-1"))
    look = book.claim(Do.LOOK_UP)
    book.event(NotDone(R, "bounced"))
    assert (book.status.state, book.status.token) == (State.NOT_DONE, None)
    assert book.status.reason == "failed_after_acceptance"
    book.looked(look, Absent())
    assert book.status.reason == "failed_after_acceptance"


def test_several_are_never_picked_from() -> None:
    book = lost(searchable()).look(Several(["a", "b"]))
    assert (book.status.state, book.status.ref) == (State.UNKNOWN, None)
    assert (book.refs, book.open_reviews) == (["a", "b"], ["unknown"])
    assert book.status.due_at is None


def test_an_earned_absence_at_the_bound_gives_up() -> None:
    few = replace(searchable().bounds, attempts=1)
    book = found_absent(searchable(bounds=few))
    assert (book.status.state, book.status.reason) == (State.NOT_DONE, "gave_up")


def test_an_absence_that_can_never_be_earned_goes_to_a_person_after_the_quiet_period() -> None:
    terms = searchable(hard=False)
    early = lost(terms).look(Absent())
    assert (early.status.state, early.open_reviews) == (State.UNKNOWN, [])
    assert early.wait(LATE).look(Absent()).open_reviews == ["unknown"]


def test_looking_at_what_is_pending_or_done_leaves_it() -> None:
    book = Ledger(searchable()).submit().look(Absent())
    assert (book.status.state, book.status.due_at) == (State.PENDING, book.now)
    book.look(Done("d-1")).look(Absent())
    assert book.status.state is State.DONE
    assert book.look(Accepted("d-1")).status.state is State.DONE


def test_found_accepted_is_followed() -> None:
    book = lost(searchable()).look(Accepted("j-1"))
    assert (book.status.state, book.status.due_at is not None) == (State.ACCEPTED, True)


# --- the target's own events, and what belongs to another operation ---


def test_an_event_says_what_happened_once() -> None:
    book = lost(opaque()).event(Done("d-1"), "evt-7")
    assert (book.status.state, book.evidence[-1].id) == (State.DONE, "evt-7")
    assert book.evidence[-1].by == "event"


def test_an_event_that_says_not_done_proves_nothing_about_what_was_not_accepted() -> None:
    book = lost(opaque()).event(NotDone(R))
    assert book.status.state is State.UNKNOWN


def test_accepted_twice_is_accepted_once() -> None:
    book, attempt = running(opaque())
    book.report(attempt, Accepted("j-1"))
    due = book.status.due_at
    assert book.wait(9).event(Accepted("j-1")).status.due_at == due


def foreign(book: Ledger, attempt: object) -> Ledger:
    book.apply(
        settle.foreign(book.case, attempt, book.world, book.stamp(), ref="d-9", other="op-9")
    )
    return book


def test_an_effect_of_another_operation_is_no_proof_of_this_one() -> None:
    book, attempt = running()
    assert (foreign(book, attempt).status.state, book.open_reviews) == (State.UNKNOWN, ["unknown"])
    book = lost(searchable())
    assert foreign(book, book.claim(Do.LOOK_UP)).open_reviews == ["unknown"]
    book = Ledger(searchable()).submit()
    assert foreign(book, book.claim(Do.LOOK_UP)).status.state is State.PENDING
    book, attempt = running()
    assert foreign(book.lost(attempt), attempt).open_reviews == ["duplicate"]
    book, first, second = second_running()
    book.report(first, Done("d-1"))
    assert foreign(book, second).status.state is State.DONE


# --- law 21: a store that may have lost writes ---


def test_a_restore_makes_what_is_open_unknown_until_the_longest_deadline() -> None:
    longest = searchable().bounds.longest
    for state in ("pending", "running", "unknown", "accepted", "not_done"):
        book, attempt = running()
        if state == "pending":
            book = Ledger(searchable()).submit()
        elif state == "unknown":
            book.lost(attempt)
        elif state != "running":
            book.report(attempt, Accepted("j") if state == "accepted" else NotDone(R))
        assert book.status.state == state
        book.wait(500).restore(900)
        assert (book.status.state, book.status.token) == (State.UNKNOWN, None)
        assert book.status.last_deadline == book.now + longest
        assert book.status.first_claim_at == 900 * SECOND
        assert [a.epoch for a in book.attempts.values() if a.worker == "restored"] == [2]


def test_a_new_key_in_the_gap_may_have_been_executed() -> None:
    book = Ledger(opaque()).submit(gap_from=900 * SECOND)
    assert (book.status.state, book.open_reviews) == (State.UNKNOWN, ["unknown"])
    protected = Ledger(identified()).submit(gap_from=900 * SECOND)
    assert protected.step.do is Do.REPLAY


def test_what_nobody_approved_is_not_sent_after_a_restore() -> None:
    book = Ledger(searchable(approval=("editor",))).submit().restore(900)
    assert (book.status.state, book.status.waiting_on) == (State.UNKNOWN, "approval")
    book.wait(3600).look(Absent())
    assert (book.status.state, book.status.waiting_on) == (State.PENDING, "approval")
    assert book.status.due_at is None
    replays = Ledger(identified(approval=("editor",))).submit().restore(900)
    assert replays.open_reviews == ["unknown"]


def test_a_restore_leaves_what_is_known_to_be_done() -> None:
    book, first, second = second_running()
    book.report(first, Done("d-1")).restore(900)
    assert (book.status.state, book.status.verify) == (State.DONE, True)
    book, _, second = second_running()
    book.report(second, Done("d-2")).restore(900)
    assert (book.status.state, book.status.verify) == (State.DONE, True)
    plain, attempt = running()
    plain.report(attempt, Done("d-1"))
    plain.claim(Do.LOOK_UP)
    assert (plain.restore(900).status.state, plain.status.token) == (State.DONE, None)


def test_a_superseded_version_is_not_reopened_by_a_restore() -> None:
    book, attempt = running()
    book.report(attempt, NotDone(R))
    book.status = replace(book.status, reason=Reason.SUPERSEDED)
    with pytest.raises(Refused, match="superseded"):
        claims.restored(book.case, book.world, 9, 0)


def test_an_acceptance_seen_while_a_second_effect_is_looked_for_keeps_the_search_due() -> None:
    book, _, second = second_running()
    book.report(second, Done("d-2")).look(Accepted("d-2"))
    assert (book.status.state, book.status.verify) == (State.DONE, True)
    assert book.status.due_at is not None


def test_the_targets_word_about_the_only_attempt_is_no_second_effect() -> None:
    book, attempt = running(opaque())
    book.event(Done("d-1")).lost(attempt).advance()
    assert (book.status.state, book.status.verify, book.open_reviews) == (State.DONE, False, [])

"""Scenarios in sentences. Each returns what went wrong, in words: nothing where the laws hold.

The tests ask for nothing; tests/mutants switches a guard off and asks for the named verdict.
"""

from __future__ import annotations

from collections.abc import Callable

from msgspec.structs import replace

from ascertain.core.contract import KeyRule, LateRule, LookupRule, RepeatRule, Terms
from ascertain.core.model import (
    SECOND,
    Absent,
    Accepted,
    Done,
    NotDone,
    NotDoneKind,
    Several,
    State,
    Unknown,
)
from ascertain.core.reconcile import Do
from core.driver import Ledger, contract, declared

LATE, LAG, KEEPS = 20, 30, 3600
REQUEST = KeyRule(at="header:Idempotency-Key", kind="request")
RESOURCE = KeyRule(at="body:id", kind="resource")

Check = Callable[[], list[str]]
SCENARIOS: dict[str, Check] = {}


def scenario(check: Check) -> Check:
    SCENARIOS[check.__name__] = check
    return check


def searchable(*, lag: int = 0, **more: object) -> Terms:
    c = contract(late=LateRule(max=f"{LATE}s"), lookup=LookupRule(by="meta.op", lag=f"{lag}s"))
    return declared(c, **{"can_look_up": True, **more})


def idempotent(*, atomic: bool | None = True, **more: object) -> Terms:
    c = contract(
        key=REQUEST,
        repeat=RepeatRule(answer="replay", keeps=f"{KEEPS}s", atomic=atomic),
        late=LateRule(max=f"{LATE}s"),
    )
    return declared(c, **{"same_bytes": True, **more})


def identified(*, atomic: bool | None = True, answer: str = "exists", **more: object) -> Terms:
    c = contract(
        key=RESOURCE,
        repeat=RepeatRule(answer=answer, keeps="forever", atomic=atomic),
        late=LateRule(max=f"{LATE}s"),
    )
    return declared(c, **{"same_bytes": True, **more})


def opaque(**more: object) -> Terms:
    return declared(contract(), **more)


def lost(terms: Terms) -> Ledger:
    """An operation whose first attempt never reported."""
    book = Ledger(terms).submit()
    return book.lost(book.execute())


def found_absent(terms: Terms, **more: object) -> Ledger:
    """The same, looked up after the quiet period, and not there."""
    return lost(terms).wait(LATE + LAG + 1).look(Absent(), **more)


# --- law 3, 13: what nobody knows is unknown -----------------------------------------------


@scenario
def a_lease_that_ran_out_leaves_the_outcome_unknown() -> list[str]:
    state = lost(searchable()).status.state
    return [] if state is State.UNKNOWN else ["a lost attempt counts as not executed"]


@scenario
def what_nobody_classified_is_unknown() -> list[str]:
    book = Ledger(searchable()).submit()
    book.report(book.execute(), Unknown("KeyError: 'id'"))
    good = book.status.state is State.UNKNOWN
    return [] if good else ["an unclassified error counts as not executed"]


# --- law 5: absence must be earned ---------------------------------------------------------


def _earned(book: Ledger, verdict: str) -> list[str]:
    return [verdict] if book.status.state is State.PENDING else []


@scenario
def an_absence_that_is_earned_makes_it_pending() -> list[str]:
    book = found_absent(searchable(lag=LAG))
    return [] if book.status.state is State.PENDING else ["an earned absence proves nothing"]


@scenario
def not_found_before_the_quiet_period_proves_nothing() -> list[str]:
    book = lost(searchable(lag=LAG)).wait(LATE + LAG - 1).look(Absent())
    return _earned(book, "an early absence counts")


@scenario
def not_found_right_after_a_clock_step_proves_nothing() -> list[str]:
    book = lost(searchable())
    book.stepped_at = book.wait(3600).now
    return _earned(book.wait(1).look(Absent()), "an absence after a clock step counts")


@scenario
def not_found_without_a_positive_control_proves_nothing() -> list[str]:
    book = found_absent(searchable(), control="none")
    return _earned(book, "an absence without a control counts")


@scenario
def not_found_by_a_look_up_that_finds_anything_proves_nothing() -> list[str]:
    book = found_absent(searchable(), invented_found=True)
    return _earned(book, "an absence of a look-up that ignores the key counts")


@scenario
def found_by_a_look_up_that_finds_anything_proves_nothing() -> list[str]:
    book = lost(searchable()).look(Done("other"), invented_found=True)
    done = book.status.state is State.DONE
    return ["a hit of a look-up that ignores the key counts"] if done else []


@scenario
def not_found_in_part_of_the_epochs_proves_nothing() -> list[str]:
    book = found_absent(searchable(), epochs=frozenset())
    return _earned(book, "an absence in part of the epochs counts")


@scenario
def not_found_on_part_of_the_pages_proves_nothing() -> list[str]:
    book = lost(searchable()).wait(LATE + 1).look(Absent(complete=False))
    return _earned(book, "an incomplete absence counts")


@scenario
def not_found_while_code_of_unknown_deadline_may_send_proves_nothing() -> list[str]:
    book = found_absent(searchable(hard=False))
    return _earned(book, "an absence without a deadline counts")


@scenario
def not_found_by_a_look_up_blind_to_drafts_proves_nothing() -> list[str]:
    terms = searchable()
    blind = replace(terms.contract.lookup, blind=("drafts",))
    terms = replace(terms, contract=replace(terms.contract, lookup=blind))
    return _earned(found_absent(terms), "a blind absence counts")


@scenario
def not_found_in_one_account_says_nothing_about_another() -> list[str]:
    book = lost(searchable()).wait(LATE + 1)
    book.terms = replace(book.terms, scope="other")
    return _earned(book.look(Absent()), "an absence in another scope counts")


@scenario
def not_found_on_an_assumption_sends_no_mail_twice() -> list[str]:
    book = found_absent(replace(searchable(), assumed=("late",), contract=replace(
        searchable().contract, undo="none")))  # fmt: skip
    if "unknown" not in book.open_reviews:
        return ["an assumed absence of an effect that cannot be undone counts"]
    return []


@scenario
def not_found_after_the_target_took_it_over_proves_nothing() -> list[str]:
    book = Ledger(searchable()).submit()
    first = book.execute()
    book.lost(first).wait(LATE + 1).look(Absent())
    second = book.execute()
    book.report(first, Accepted("job-1")).report(second, Unknown("timeout"))
    if book.status.state is not State.ACCEPTED:
        return ["an acceptance that came late is forgotten"]
    book.restore(1000).wait(3600).look(Absent())
    return _earned(book, "an absence after an acceptance counts")


# --- law 6: replay must be earned ----------------------------------------------------------


def _step(book: Ledger) -> Do:
    step = book.step
    return step.do if step.at <= book.now else Do.WAIT


@scenario
def a_replay_that_would_land_outside_the_window_is_not_made() -> list[str]:
    book = lost(idempotent())
    claimed = book.status.first_claim_at or 0
    end = claimed + KEEPS * SECOND * 9 // 10
    book.now = end - (60 + LATE) * SECOND - 1
    inside = book.step.do
    book.now += 1
    wrong = [] if inside is Do.REPLAY else ["a protected replay is not made"]
    return wrong if book.step.do is Do.REVIEW else [*wrong, "a replay lands outside the window"]


@scenario
def a_window_that_opened_before_a_clock_step_is_closed() -> list[str]:
    book = lost(idempotent())
    book.stepped_at = book.now
    good = book.step.do is Do.REVIEW
    return [] if good else ["a window from before a clock step protects a replay"]


@scenario
def a_replay_under_another_account_is_not_made() -> list[str]:
    book = lost(idempotent())
    book.terms = replace(book.terms, scope="other")
    return [] if book.step.do is Do.REVIEW else ["a key is replayed in another scope"]


@scenario
def overlapping_replays_wait_for_the_quiet_period() -> list[str]:
    wrong = []
    for terms in (idempotent(atomic=None), identified(atomic=None)):
        book = lost(terms)
        if _step(book) is Do.REPLAY:
            wrong = ["a replay overlaps where that makes two"]
        if _step(book.wait(LATE + 1)) is not Do.REPLAY:
            wrong.append("a protected replay is not made")
    return wrong


@scenario
def code_of_unknown_deadline_is_not_replayed_within_a_window() -> list[str]:
    book = lost(idempotent(hard=False))
    good = book.step.do is not Do.REPLAY
    return [] if good else ["a request of unknown deadline may land after the window"]


# --- law 7: an attempt speaks only for itself ----------------------------------------------


@scenario
def a_replay_answered_401_after_a_lost_attempt_leaves_it_unknown() -> list[str]:
    book = lost(idempotent())
    book.report(book.claim(Do.REPLAY), NotDone(NotDoneKind.UNAUTHORIZED, "401"))
    if book.status.state is not State.UNKNOWN:
        return ["a refused replay speaks for the lost attempt"]
    if book.status.waiting_on != "authorization" or book.status.due_at is None:
        return ["nobody is asked to renew the authorization"]
    return []


@scenario
def after_a_persons_risk_a_stored_refusal_speaks_for_nobody_else() -> list[str]:
    book = lost(idempotent())
    book.now += KEEPS * SECOND
    book.advance().decide("not_there", without_proof=True, why="customer waits")
    book.report(book.claim(Do.FORCE), NotDone(NotDoneKind.REJECTED, stored=True))
    good = book.status.state is State.UNKNOWN
    return [] if good else ["an attempt without proof speaks for an earlier one"]


@scenario
def a_refusal_after_a_restore_says_nothing_about_what_was_lost() -> list[str]:
    book = Ledger(identified()).submit().wait(60).restore(1000)
    book.report(book.claim(Do.REPLAY), NotDone(NotDoneKind.THROTTLED, "429"))
    good = book.status.state is State.UNKNOWN
    return [] if good else ["a refusal speaks for attempts that a restore forgot"]


# --- law 8: a late truth is never thrown away ----------------------------------------------


@scenario
def done_reported_after_the_lease_makes_it_done() -> list[str]:
    book = Ledger(opaque()).submit()
    first = book.execute()
    book.lost(first).advance().report(first, Done("d-1"))
    good = book.status.state is State.DONE and not book.open_reviews
    return [] if good else ["a late done is thrown away"]


@scenario
def late_done_while_another_attempt_runs_closes_it_only_when_that_ended() -> list[str]:
    book = Ledger(searchable()).submit()
    first = book.execute()
    book.lost(first).wait(LATE + 1).look(Absent())
    second = book.execute()
    book.report(first, Done("d-1"))
    if book.status.state is not State.RUNNING:
        return ["it is closed while an attempt may be acting"]
    book.lost(second)
    wrong = [] if book.status.state is State.DONE else ["a late done is thrown away"]
    return wrong if book.status.verify else [*wrong, "a second effect is not looked for"]


@scenario
def after_an_absence_a_second_effect_is_looked_for() -> list[str]:
    book = found_absent(searchable())
    book.report(book.execute(), Done("d-2"))
    if not book.status.verify:
        return ["a second effect is not looked for"]
    book.wait(60 + LATE + 1).look(Several(["d-1", "d-2"]))
    kept = book.refs == ["d-2", "d-1"] and book.open_reviews == ["duplicate"]
    return [] if kept else ["a second effect is not shown"]


@scenario
def a_second_reference_opens_a_duplicate_review() -> list[str]:
    book = Ledger(opaque()).submit()
    first = book.execute()
    book.lost(first).advance().decide("not_there", without_proof=True, why="urgent")
    book.report(book.claim(Do.FORCE), Done("d-2")).report(first, Done("d-1"))
    good = book.open_reviews == ["duplicate"] and sorted(book.refs) == ["d-1", "d-2"]
    return [] if good else ["a second effect is not shown"]


# --- law 12: the target key is kept --------------------------------------------------------


@scenario
def a_stored_error_starts_a_new_epoch_only_after_proof() -> list[str]:
    book = Ledger(idempotent()).submit()
    book.lost(book.execute())
    replay = book.claim(Do.REPLAY)
    if (replay.epoch, book.status.target_key) != (1, "key-1"):
        return ["a new key is used without proof"]
    book.report(replay, NotDone(NotDoneKind.TRANSIENT, "500", stored=True))
    book.now = book.status.due_at or 0
    second = book.execute()
    good = second.epoch == 2 and book.status.target_key == "key-2"
    return [] if good else ["a dead key is used again"]


@scenario
def an_identity_keeps_its_key_even_after_a_persons_word() -> list[str]:
    terms = identified(hard=False, atomic=None, lag=0)
    book = lost(terms).advance().decide("not_there", without_proof=True, why="urgent")
    attempt = book.claim(Do.FORCE)
    good = attempt.epoch == 1 and book.status.target_key == "key-1"
    return [] if good else ["an identity was given another key"]

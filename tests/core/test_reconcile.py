"""Situations and the next step: what may follow an unknown outcome, and when (laws 4 to 6, 15)."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from ascertain.core import reconcile
from ascertain.core.contract import Bounds, Terms
from ascertain.core.model import (
    SECOND,
    Absent,
    Accepted,
    Done,
    Kind,
    NotDone,
    NotDoneKind,
    Outcome,
    State,
    Unknown,
    WaitingOn,
)
from ascertain.core.reconcile import Do, new_epoch_needed, next_step, protection_now
from core.driver import LEASE, Ledger, contract, declared
from core.scenarios import KEEPS, LATE, idempotent, identified, lost, opaque, searchable

LAGGING = searchable(lag=30)
LAG_UNKNOWN = replace(LAGGING, lag=None)
BOTH = replace(idempotent(), can_look_up=True, lag=0)
RACES = idempotent(atomic=None)
RACES_AND_LOOKS = replace(RACES, can_look_up=True, lag=0)
IDENTITY_RACES = identified(atomic=None)
IDENTITY_RACES_AND_LOOKS = replace(IDENTITY_RACES, can_look_up=True, lag=0)
OVERWRITES = identified(answer="overwrite")
REPEATABLE = declared(contract(harm="cost_only"), may_repeat=True)
QUIET = LEASE + LATE + 1  # s after the claim: the attempt's deadline and lateness are over
WINDOW = KEEPS * 9 // 10 - LEASE - LATE  # s: the last replay begins before this


NOW, LATER = "now", "later"
TABLE: list[tuple[str, Terms, float, dict[str, Any], Do, str]] = [
    # class and situation, terms, seconds, more, step, when
    ("repeatable", REPEATABLE, 61, {}, Do.REDO, NOW),
    ("repeatable elsewhere", REPEATABLE, 61, {"sent_to": "x"}, Do.REDO, NOW),
    ("idempotent inside", idempotent(), 61, {}, Do.REPLAY, NOW),
    ("idempotent last moment", idempotent(), WINDOW - 1, {}, Do.REPLAY, NOW),
    ("idempotent outside", idempotent(), WINDOW, {}, Do.REVIEW, NOW),
    ("idempotent outside, looks", BOTH, WINDOW, {}, Do.LOOK_UP, NOW),
    ("idempotent, late unknown", replace(idempotent(), late=None), 61, {}, Do.REVIEW, NOW),
    ("idempotent elsewhere", idempotent(), 61, {"sent_to": "x"}, Do.REVIEW, NOW),
    ("idempotent, no deadline", idempotent(), 61, {"hard": False}, Do.REVIEW, NOW),
    ("idempotent, clock step", idempotent(), 61, {"stepped_at": 1061 * SECOND}, Do.REVIEW, NOW),
    ("idempotent, step before", idempotent(), 61, {"stepped_at": 999 * SECOND}, Do.REPLAY, NOW),
    ("idempotent, bytes not frozen", replace(idempotent(), same_bytes=False), 61, {}, Do.REVIEW,
     NOW),
    ("idempotent races, busy", RACES, 61, {}, Do.REPLAY, LATER),
    ("idempotent races, quiet", RACES, QUIET, {}, Do.REPLAY, NOW),
    ("idempotent not atomic", idempotent(atomic=False), 61, {}, Do.REPLAY, LATER),
    ("idempotent races, outside", RACES, WINDOW, {}, Do.REVIEW, NOW),
    ("idempotent races, looks first", RACES_AND_LOOKS, 61, {}, Do.LOOK_UP, NOW),
    ("idempotent races, looked out", RACES_AND_LOOKS, 61, {"looked": 12}, Do.REPLAY, LATER),
    ("idempotent races, looks, quiet", RACES_AND_LOOKS, QUIET, {}, Do.REPLAY, NOW),
    ("identified", identified(), 61, {}, Do.REPLAY, NOW),
    ("identified, after years", identified(), 80_000, {}, Do.REPLAY, NOW),
    ("identified, no deadline", identified(), 61, {"hard": False}, Do.REPLAY, NOW),
    ("identified, clock step", identified(), 61, {"stepped_at": 1061 * SECOND}, Do.REPLAY, NOW),
    ("identified elsewhere", identified(), 61, {"sent_to": "x"}, Do.REVIEW, NOW),
    ("identified, exhausted", identified(), 61, {"attempts": 5}, Do.REVIEW, NOW),
    ("identified, exhausted, looks", replace(identified(), can_look_up=True), 61, {"attempts": 5},
     Do.LOOK_UP, NOW),
    ("identity races, busy", IDENTITY_RACES, 61, {}, Do.REPLAY, LATER),
    ("identity races, quiet", IDENTITY_RACES, QUIET, {}, Do.REPLAY, NOW),
    ("identity races, late unknown", replace(IDENTITY_RACES, late=None), 9e3, {}, Do.REVIEW, NOW),
    ("identity races, no deadline", IDENTITY_RACES, 9e3, {"hard": False}, Do.REVIEW, NOW),
    ("identity races, clock step", IDENTITY_RACES, QUIET, {"stepped_at": 1081 * SECOND}, Do.REPLAY,
     LATER),
    ("identity races, looks", IDENTITY_RACES_AND_LOOKS, 61, {}, Do.LOOK_UP, NOW),
    ("identity races, not looked since", IDENTITY_RACES_AND_LOOKS, QUIET, {"looked_at": 70},
     Do.LOOK_UP, NOW),
    ("identity races, looked since", IDENTITY_RACES_AND_LOOKS, QUIET + 9, {"looked_at": QUIET},
     Do.REPLAY, NOW),
    ("identity races, looked out", IDENTITY_RACES_AND_LOOKS, QUIET, {"looked": 12}, Do.REPLAY, NOW),
    ("overwrites", OVERWRITES, 61, {}, Do.REPLAY, LATER),
    ("searchable, early", searchable(), 61, {}, Do.LOOK_UP, NOW),
    ("searchable, quiet", searchable(), QUIET, {}, Do.LOOK_UP, NOW),
    ("searchable, two looks left", searchable(), 61, {"looked": 10}, Do.LOOK_UP, LATER),
    ("searchable, looked out", searchable(), 61, {"looked": 12}, Do.REVIEW, NOW),
    ("searchable, exhausted", searchable(), 61, {"attempts": 5}, Do.LOOK_UP, NOW),
    ("searchable, overdue", searchable(), 86_400, {}, Do.REVIEW, NOW),
    ("lagging, early", LAGGING, 61, {}, Do.LOOK_UP, NOW),
    ("lagging, two looks left", LAGGING, 61, {"looked": 10}, Do.LOOK_UP, LATER),
    ("lag unknown", LAG_UNKNOWN, 61, {"looked": 10}, Do.LOOK_UP, NOW),
    ("opaque", opaque(), 61, {}, Do.REVIEW, NOW),
    ("opaque, in review", opaque(), 61, {"waiting_on": WaitingOn.REVIEW}, Do.NOTHING, NOW),
    ("opaque, risk taken", opaque(), 61, {"forced_by": "bob"}, Do.FORCE, NOW),
    ("risk taken, then several seen", opaque(), 61,
     {"forced_by": "bob", "waiting_on": WaitingOn.REVIEW}, Do.NOTHING, NOW),
    ("restored, never approved", identified(), 61, {"waiting_on": WaitingOn.APPROVAL}, Do.REVIEW,
     NOW),
    ("restored, never approved, looks", searchable(), 61, {"waiting_on": WaitingOn.APPROVAL},
     Do.LOOK_UP, NOW),
]  # fmt: skip


@pytest.mark.parametrize(
    ("terms", "seconds", "more", "do", "when"),
    [row[1:] for row in TABLE],
    ids=[row[0] for row in TABLE],
)
def test_what_follows_an_unknown_outcome(
    terms: Terms, seconds: float, more: dict[str, Any], do: Do, when: str
) -> None:
    step = _step(terms, seconds, more)
    assert step.do is do
    due = round(seconds * SECOND)
    assert (step.at <= due) if when == NOW else (step.at > due)


def _step(terms: Terms, seconds: float, more: dict[str, Any]) -> reconcile.Step:
    """The step so many seconds after the only claim, whose attempt never reported."""
    book = Ledger(terms).submit()
    attempt = replace(
        book.execute(), outcome=Outcome.EXPIRED, hard=more.get("hard", True),
        scope=more.get("sent_to", "acme"),
    )  # fmt: skip
    began = book.now
    names = {"attempts", "forced_by"}
    status = replace(
        book.status, state=State.UNKNOWN, token=None, kind=None,
        waiting_on=more.get("waiting_on", WaitingOn.CLOCK),
        lookups=more.get("looked", 0), **{n: more[n] for n in names & set(more)},
    )  # fmt: skip
    attempts = [attempt]
    if "looked_at" in more:
        start = began + more["looked_at"] * SECOND
        attempts.append(
            replace(attempt, kind=Kind.LOOK_UP, outcome=Outcome.LOOKED, started_at=start)
        )
    world = replace(book.wait(seconds).world, stepped_at=more.get("stepped_at"))
    step = next_step(status, terms, attempts, world)
    return replace(step, at=step.at - began)


def test_a_wait_never_passes_the_last_protected_moment() -> None:
    far = 10**6 * SECOND
    for terms in (idempotent(), RACES, RACES_AND_LOOKS):
        book = lost(terms)
        claimed = book.status.first_claim_at or 0
        step = next_step(book.status, terms, book.case.attempts, book.world, delay=far)
        assert step.at < claimed + WINDOW * SECOND
    limited = replace(identified(atomic=None), keeps=KEEPS * SECOND, can_look_up=True, lag=0)
    book = lost(limited).wait(LATE + 1)
    step = next_step(book.status, limited, book.case.attempts, book.world, delay=far)
    assert (step.do, step.at < WINDOW * SECOND + (book.status.first_claim_at or 0)) == (
        Do.LOOK_UP, True,
    )  # fmt: skip


def test_a_replay_after_a_long_quiet_period_would_miss_its_window() -> None:
    slow = replace(RACES, late=(KEEPS - 100) * SECOND)
    assert lost(slow).open_reviews == ["unknown"]
    assert lost(replace(slow, can_look_up=True)).step.do is Do.LOOK_UP


def test_the_class_decays_when_the_window_ends() -> None:
    book = lost(BOTH)
    assert protection_now(book.status, BOTH, book.world) == "idempotent"
    book.wait(KEEPS)
    assert protection_now(book.status, BOTH, book.world) == "searchable"
    unclaimed = replace(book.status, first_claim_at=None)
    assert protection_now(unclaimed, BOTH, book.world) == "searchable"


# --- the other states ---


def test_pending_is_executed_when_due() -> None:
    book = Ledger(searchable()).submit()
    assert (book.step.do, book.step.at) == (Do.EXECUTE, book.now)
    book.status = replace(book.status, due_at=book.now + 5)
    assert (book.step.do, book.step.at) == (Do.EXECUTE, book.now + 5)


def test_pending_without_approval_waits_for_a_person() -> None:
    book = Ledger(declared(contract(), approval=("editor",))).submit()
    assert (book.status.waiting_on, book.status.due_at) == ("approval", None)
    assert book.step.do is Do.NOTHING


def test_pending_gives_up_at_the_bound_but_not_before_the_first_attempt() -> None:
    book = Ledger(searchable()).submit().wait(10**6)
    assert book.step.do is Do.EXECUTE
    book.report(book.execute(), NotDone(NotDoneKind.TRANSIENT))
    assert (book.status.state, book.status.reason) == (State.NOT_DONE, "gave_up")


def test_pending_that_became_overdue_gives_up() -> None:
    book = Ledger(searchable()).submit()
    book.report(book.execute(), NotDone(NotDoneKind.TRANSIENT)).wait(10**6)
    assert book.step.do is Do.GIVE_UP
    assert book.advance().status.reason == "gave_up"
    assert book.step.do is Do.NOTHING


def test_while_a_lease_is_held_everybody_waits() -> None:
    book = Ledger(searchable()).submit()
    attempt = book.execute()
    assert (book.step.do, book.step.at) == (Do.WAIT, attempt.deadline)


def test_accepted_is_followed_until_its_time_is_over() -> None:
    book = Ledger(searchable()).submit()
    book.report(book.execute(), Accepted("job-1"))
    assert book.step.do is Do.LOOK_UP
    book.look(Absent(), control="found")
    assert (book.status.state, book.status.waiting_on) == (State.ACCEPTED, "target")
    book.look(Accepted("job-1")).wait(24 * 3600)
    assert book.step.do is Do.REVIEW
    assert book.advance().open_reviews == ["accepted"]
    assert book.step.do is Do.NOTHING


def test_accepted_without_a_look_up_waits_for_the_target() -> None:
    book = Ledger(opaque()).submit()
    book.report(book.execute(), Accepted(None))
    assert (book.step.do, book.step.at) == (Do.WAIT, book.now + 24 * 3600 * SECOND)
    unset = replace(book.status, confirmed_at=None)
    assert next_step(unset, book.terms, (), book.world).do is Do.WAIT


def test_verify_ends_within_its_bound_before_a_person() -> None:
    book = lost(searchable()).wait(LATE + 1).look(Absent())
    book.report(book.execute(), Done("d-1"))
    assert book.step.do is Do.LOOK_UP
    for _ in range(40):
        book.now = max(book.now, book.status.due_at or 0)
        if book.step.do is not Do.LOOK_UP:
            break
        book.look(Unknown("503", retry_after=1))
    assert not book.status.verify
    assert book.open_reviews == ["duplicate"]


# --- epochs (law 12) ---


@pytest.mark.parametrize(
    ("terms", "seconds", "dead", "needed"),
    [
        (idempotent(), 61, False, False),
        (idempotent(), 61, True, True),
        (idempotent(), KEEPS, False, True),
        (replace(idempotent(), late=None), 61, False, False),
        (replace(idempotent(), late=None), KEEPS, False, True),
        (replace(idempotent(), keeps=None), 10**6, False, False),
        (replace(idempotent(), keeps=None), 61, True, True),
        (identified(), 10**6, True, False),
        (searchable(), 10**6, True, False),
    ],
    ids=range(9),
)
def test_a_new_key_is_used_only_where_the_old_one_is_dead_or_over(
    terms: Terms, seconds: float, dead: bool, needed: bool
) -> None:
    book = Ledger(terms).submit()
    book.execute()
    book.wait(seconds)
    assert new_epoch_needed(book.status, terms, book.world, dead=dead) is needed


def test_bounds_name_the_longest_deadline() -> None:
    assert Bounds(lease=10, extensions=3).longest == 40

"""Each guard of what people decide is switched off once; a scenario over the real ledger must say
what goes wrong."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest

from ascertain import Conflict, Done, Ledger, Refused, State
from ascertain.core import people
from ascertain.runtime import approving, bulk, deciding
from ascertain.runtime.approving import Approving
from ascertain.runtime.audit import Who
from ascertain.runtime.bulk import BulkRunner, Bulks, Wish
from ascertain.runtime.reviewing import Reviewing
from ascertain.store.sqlite import SqliteStore
from ascertain.testing import FakeClock

Patch = pytest.MonkeyPatch
ANNA, BEN = Who(actor="anna", via="session:1"), Who(actor="ben", via="session:2")
RISK: dict[str, Any] = {"accept_risk": True, "why": "urgent"}


class Room:
    """A ledger with one action whose answer is always lost; `sent` is what reached its target."""

    def __init__(self, **more: Any) -> None:
        clock = FakeClock()
        self.ledger = Ledger(SqliteStore(":memory:", clock=clock.wall), clock=clock, wait=0)
        self.sent: list[str] = []
        declared = {"key": "{order}", "owner": "anna", "sends": "own", **more}
        self.order = self.ledger.action("shop.order", **declared)(self.act)

    def act(self, call: Any, *, order: str, text: str = "") -> Done:
        self.sent.append(text or order)
        if text:
            return Done(ref=text)
        raise TimeoutError

    def lost(self, order: str = "1") -> str:
        return self.order.submit(order=order).id

    def bulk(self, wish: Wish, meanwhile: Callable[[], object]) -> None:
        bulks = Bulks(self.ledger)
        made = bulks.plan(wish)
        meanwhile()
        bulks.start(made, wish.who)
        while BulkRunner({"default": self.ledger}).run():
            pass


def a_first_word_is_about_what_was_known_then() -> list[str]:
    room = Room(risky=True, reversible=True)
    room.order.lookup(lag="1s", late="1s")(lambda call: (_ for _ in ()).throw(TimeoutError))
    ident = room.lost()
    room.ledger.decide(ident, "not_there", by="anna", **RISK)
    room.ledger.confirm(ident)  # somebody looked again since
    room.ledger.decide(ident, "not_there", by="ben", **RISK)
    forced = room.ledger.case_of(ident).status.forced_by
    return ["a word about something else counted"] if forced else []


def what_changed_since_the_plan_is_not_left() -> list[str]:
    room = Room()
    ident = room.lost()
    room.bulk(
        Wish(did="leave", ids=[ident], why="old", who=ANNA),
        lambda: room.ledger.decide(ident, "cannot_tell", by="ben", why="I am looking"),
    )
    left = room.ledger.get(ident).state is not State.UNKNOWN
    return ["left although somebody was looking into it"] if left else []


def what_is_still_checked_is_not_left_in_bulk() -> list[str]:
    room = Room(reversible=True)
    room.order.lookup(lag="1h", late="1s")(lambda call: (_ for _ in ()).throw(TimeoutError))
    ident = room.lost()
    room.bulk(Wish(did="leave", ids=[ident], why="old", who=ANNA), lambda: None)
    left = room.ledger.get(ident).state is not State.UNKNOWN
    return ["left although it was still being checked"] if left else []


def only_who_planned_it_runs_it() -> list[str]:
    room = Room()
    bulks = Bulks(room.ledger)
    made = bulks.plan(Wish(did="leave", ids=[room.lost()], why="old", who=ANNA))
    try:
        bulks.start(made, BEN)
    except Refused:
        return []
    return ["somebody else ran a plan that he had not seen"]


def one_person_has_a_review() -> list[str]:
    room = Room()
    room.lost()
    [review] = room.ledger.reviews()
    reviewing = Reviewing(room.ledger)
    reviewing.take(review, who=ANNA)
    try:
        reviewing.take(review, who=BEN)
    except Conflict:
        return []
    return ["a review was taken out of somebody's hands"]


def an_edited_version_is_never_sent() -> list[str]:
    room = Room(approval="chef")
    room.order.submit(order="1", text="old")
    desk = Approving(room.ledger)
    [ask] = desk.find()
    desk.edit(ask, {"text": "new"}, who=ANNA, why="typo")
    with suppress(Refused):
        room.ledger.approve(ask.operation, by="eva", role="chef", digest=ask.digest)
    room.ledger.recover()
    return ["the old version was sent"] if "old" in room.sent else []


def a_refusal_is_one_for_every_role() -> list[str]:
    room = Room(approval=["chef", "legal"])
    waits = room.order.submit(order="1", text="x")
    room.ledger.reject(waits, by="eva", role="chef")
    asks = [a.state for a in room.ledger.store.approvals(waits.id)]
    return ["somebody is still asked"] if "asked" in asks else []


def every_word_counts(patch: Patch) -> None:
    patch.setattr(deciding, "first_words", lambda asked, _: [
        a for a in asked if a.role == people.SECOND_PERSON and a.state == "asked"])  # fmt: skip


def the_plan_is_not_asked(patch: Patch) -> None:
    real = deciding.Deciding.decide
    patch.setattr(deciding.Deciding, "decide", lambda *given, **more: real(
        *given, **{**more, "seen": None}))  # fmt: skip


def everything_may_be_done(patch: Patch) -> None:
    patch.setattr(bulk.people, "bulk_refusal", lambda *_: "")


def anybody_runs_it(patch: Patch) -> None:
    real = Bulks.start
    patch.setattr(Bulks, "start", lambda self, made, who: real(
        self, made, Who(actor=made.by)))  # fmt: skip


def everybody_takes(patch: Patch) -> None:
    def take(case: Any, review: str, world: Any, stamp: int, *, by: str) -> Any:
        return people.hand_over(case, review, world, stamp, by=by, to=by)

    patch.setattr(people, "take", take)


def the_old_ask_stays(patch: Patch) -> None:
    patch.setattr(approving.Approving, "_closing", lambda *_: None)


def the_others_stay_asked(patch: Patch) -> None:
    patch.setattr(people, "_withdrawn", lambda *_: ())


SCENARIOS: list[tuple[Callable[[Patch], None], Callable[[], list[str]], str]] = [
    (every_word_counts, a_first_word_is_about_what_was_known_then,
     "a word about something else counted"),
    (the_plan_is_not_asked, what_changed_since_the_plan_is_not_left,
     "left although somebody was looking into it"),
    (everything_may_be_done, what_is_still_checked_is_not_left_in_bulk,
     "left although it was still being checked"),
    (anybody_runs_it, only_who_planned_it_runs_it,
     "somebody else ran a plan that he had not seen"),
    (everybody_takes, one_person_has_a_review, "a review was taken out of somebody's hands"),
    (the_old_ask_stays, an_edited_version_is_never_sent, "the old version was sent"),
    (the_others_stay_asked, a_refusal_is_one_for_every_role, "somebody is still asked"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("mutant", "scenario", "verdict"), SCENARIOS, ids=[s[1].__name__ for s in SCENARIOS]
)
def test_a_guard_that_is_off_is_seen(
    mutant: Callable[[Patch], None], scenario: Callable[[], list[str]], verdict: str
) -> None:
    assert scenario() == []
    with pytest.MonkeyPatch.context() as patch:
        mutant(patch)
        assert scenario() == [verdict]

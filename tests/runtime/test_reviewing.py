"""Decisions and their lines of the audit are one commit, whoever decides and wherever it stops."""

from __future__ import annotations

from collections.abc import Callable
from threading import Barrier, Thread
from typing import Any

import pytest

import ascertain
from ascertain import Conflict, Done, Refused, State, WaitingOn
from ascertain.core.books import Audit
from ascertain.runtime.approving import Approving
from ascertain.runtime.audit import Wanted, Who
from ascertain.runtime.reviewing import Group, Manner, Reviewing, group_of, link_of
from ascertain.store.base import Written
from shop import Shop, declared

ANNA = Who(actor="anna", role="operator", via="session:1", address="192.0.2.1")
BEN = Who(actor="ben", role="operator", via="session:2")
HOUR = 3600 * 1_000_000


@pytest.fixture(params=["sqlite", "postgres"])
def shop(request: Any, make_shop: Callable[..., Shop]) -> Shop:
    more: dict[str, Any] = {}
    if request.param == "postgres":
        more["url"] = request.getfixturevalue("postgres_database")
    return make_shop("searchable", **more)


def lines(shop: Shop) -> list[Audit]:
    return shop.ledger.log.find("default", Wanted())[::-1]


def lost(shop: Shop, order: int = 1, **more: Any) -> Any:
    """An operation of which only a person can say what happened."""
    name = f"shop.blind{len(shop.ledger.engine.actions)}"

    @shop.ledger.action(name, **declared("opaque", **more))
    def blind(call: Any, *, order: int) -> Any:
        shop.target.send(call.target_key, str(order))
        raise TimeoutError

    found = blind.submit(order=order)
    assert found.waiting_on is WaitingOn.REVIEW
    return found


def test_every_decision_is_audited_with_who_why_before_and_after(shop: Shop) -> None:
    found = lost(shop)
    shop.ledger.decide(found, "cannot_tell", by="anna", why="the shop is closed", who=ANNA)
    shop.ledger.decide(found, "there", by="ben", ref="m-1", why="seen")
    first, second = sorted(lines(shop), key=lambda line: line.actor)
    assert (first.did, first.actor, first.via, first.address, first.reason) == (
        "review.decide", "anna", "session:1", "192.0.2.1", "the shop is closed",
    )  # fmt: skip
    assert (first.before, first.after) == (
        "unknown, waits on review", "cannot_tell: unknown, waits on review",
    )  # fmt: skip
    assert (second.via, second.after) == ("library", "there: done m-1")
    assert {line.subject for line in (first, second)} == {found.id}


def test_approvals_and_renewals_are_audited_too(shop: Shop) -> None:
    @shop.ledger.action("shop.pay", **declared("searchable", approval="chef"))
    def pay(call: Any, *, order: int) -> Any:
        return Done(ref=str(order))

    one, two, three = (pay.submit(order=n) for n in range(3))
    shop.ledger.approve(one, by="eva", note="fine")
    shop.ledger.reject(two, by="eva", note="too much")
    shop.ledger.respond(three, by="eva", note="which account?")
    assert {(line.did, line.role, line.reason) for line in lines(shop)} == {
        ("approval.approve", "chef", "fine"), ("approval.reject", "chef", "too much"),
        ("approval.respond", "chef", "which account?"),
    }  # fmt: skip
    shop.target.script("refuse:unauthorized")
    refused = shop.order.submit(order=9)
    shop.ledger.renew(refused, by="it")
    shop.ledger.report(refused, Done(ref="9"), by="webhook", report="e-1")
    shop.ledger.report(one, Done(ref="8"), by="webhook", report="e-2", who=ANNA)
    others = {line.did for line in lines(shop) if line.did.startswith("operation")}
    assert others == {"operation.renew", "operation.report"}
    assert len(lines(shop)) == 5
    with pytest.raises(ascertain.UsageError, match="should change"):
        shop.ledger.respond(three, by="eva", note=" ")


def test_a_decision_that_is_not_written_leaves_no_line(shop: Shop) -> None:
    found = lost(shop)
    seen = shop.ledger.case_of(found.id).status.stamp
    shop.ledger.decide(found, "cannot_tell", by="ben", why="x")
    before = lines(shop)
    with pytest.raises(Conflict) as caught:
        shop.ledger.decide(found, "leave", by="anna", why="x", seen=seen)
    assert (caught.value.newer.by, caught.value.newer.said) == ("ben", "cannot_tell")
    with pytest.raises(Refused):
        shop.ledger.decide(found, "not_there", by="anna", why="x")
    assert lines(shop) == before


def test_killed_before_its_commit_neither_the_decision_nor_its_line_is_there(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And killed after it both are: there is one commit."""
    found = lost(shop)
    store, reviewing = shop.ledger.store, Reviewing(shop.ledger)
    [review] = shop.ledger.reviews()
    real = store.write

    def killed(*_: Any) -> Any:
        raise KeyboardInterrupt

    def killed_after(changes: Any) -> list[Written]:
        real(changes)
        raise KeyboardInterrupt

    for write, count, state in ((killed, 0, State.UNKNOWN), (killed_after, 1, State.NOT_DONE)):
        seen = shop.ledger.case_of(found.id).status.stamp
        with monkeypatch.context() as patch:
            patch.setattr(store, "write", write)
            with pytest.raises(KeyboardInterrupt):
                reviewing.decide(review, "leave", who=ANNA, why="x", seen=seen)
        assert (len(lines(shop)), shop.get(found).state) == (count, state)
        decided = [e for e in shop.ledger.history(found) if e.kind == "decision"]
        assert len(decided) == count


def test_of_two_who_take_it_at_once_one_has_it(shop: Shop) -> None:
    lost(shop)
    [review] = shop.ledger.reviews()
    start, told = Barrier(2), {}

    def take(who: Who) -> None:
        ledger = shop.another()
        start.wait()
        try:
            told[who.actor] = Reviewing(ledger).take(review, who=who).taken_by
        except Conflict as error:
            told[who.actor] = error

    threads = [Thread(target=take, args=(who,)) for who in (ANNA, BEN)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    [held] = shop.ledger.reviews()
    assert told[held.taken_by] == held.taken_by
    [loser] = [v for v in told.values() if isinstance(v, Conflict)]
    assert f"{held.taken_by} has taken" in str(loser)
    assert [line.actor for line in lines(shop)] == [held.taken_by]


def test_two_first_words_at_once_are_not_mixed_up(shop: Shop) -> None:
    """Neither overwrites the other's, and one of the two acts, or is told to look again."""
    found = lost(shop, risky=True)
    start, told = Barrier(2), {}
    seen = shop.ledger.case_of(found.id).status.stamp

    def say(name: str) -> None:
        ledger = shop.another()
        ledger.engine.actions = shop.ledger.engine.actions
        start.wait()
        try:
            told[name] = ledger.decide(
                found, "not_there", by=name, why="urgent", accept_risk=True, seen=seen
            )
        except Conflict as error:
            told[name] = error

    threads = [Thread(target=say, args=(name,)) for name in ("anna", "ben")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    kinds = sorted(type(t).__name__ for t in told.values())
    assert kinds == ["Conflict", "Receipt"]
    words = [a for a in shop.ledger.store.approvals(found.id) if a.role == "second_person"]
    [winner] = [n for n, t in told.items() if not isinstance(t, Conflict)]
    assert [(w.by, w.state) for w in words] == [(winner, "asked")]
    assert shop.get(found).attempts == 1


def test_a_review_is_listed_by_whom_it_waits_for_and_how_long(shop: Shop) -> None:
    found = lost(shop)
    other = lost(shop, 2)
    manners = {
        shop.get(found).action: Manner("https://x/{ref}", respond_within=HOUR),
        shop.get(other).action: Manner("", respond_within=2 * HOUR, decide_within=HOUR // 2),
    }
    reviewing = Reviewing(shop.ledger, manners)
    page = reviewing.find("anna")
    assert [i.review.operation for i in page.items] == [other.id, found.id]  # least time left first
    first, second = page.items
    assert (first.until_why, second.until_why) == ("decide", "respond")
    assert second.until == second.review.opened_at + HOUR
    reviewing.take(second.review, who=ANNA)
    [taken] = [i for i in reviewing.find("anna").items if i.review.id == second.review.id]
    assert taken.until is None  # it has been responded to
    assert [i.group for i in reviewing.find("cleo").items] == [Group.UNCLAIMED, Group.OTHERS]
    whole = reviewing.whole(taken.review, "anna")
    assert link_of(whole.open, "a/b") == "https://x/a%2Fb"
    assert reviewing.find("anna", owner="nobody").items == []


def test_a_review_put_off_comes_back_by_itself(shop: Shop) -> None:
    lost(shop)
    [review] = shop.ledger.reviews()
    reviewing = Reviewing(shop.ledger)
    now = shop.ledger.store.now()
    off = reviewing.snooze(review, now + HOUR, who=ANNA, why="asked the vendor")
    assert group_of(off, "anna", now) is Group.SNOOZED
    assert group_of(off, "anna", now + HOUR) is Group.YOURS
    with pytest.raises(ascertain.UsageError, match="characters"):
        reviewing.note(off, "x" * 5000, who=ANNA)


def test_a_closed_review_is_a_conflict_for_every_verb_and_can_be_corrected(shop: Shop) -> None:
    found = lost(shop)
    [review] = shop.ledger.reviews()
    shop.ledger.decide(found, "leave", by="ben", why="cancelled")
    reviewing = Reviewing(shop.ledger)
    closed = reviewing.review(review.id)
    assert closed is not None
    verbs: list[Callable[[Any], Any]] = [
        lambda r: reviewing.take(r, who=ANNA),
        lambda r: reviewing.hand_over(r, "ben", who=ANNA),
        lambda r: reviewing.snooze(r, None, who=ANNA),
        lambda r: reviewing.decide(r, "there", who=ANNA, why="x", seen=0, ref="1"),
    ]  # fmt: skip
    for verb in verbs:
        for known in (closed, review):  # also where it was read before it was closed
            with pytest.raises(Conflict):
                verb(known)
    reviewing.note(closed, "the customer called", who=ANNA)
    stamp = shop.ledger.case_of(found.id).status.stamp
    fixed = reviewing.decide(
        closed, "there", who=ANNA, why="found it", seen=stamp, ref="1", correct=True
    )
    assert fixed.done


def test_an_edit_is_one_commit(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    @shop.ledger.action("shop.write", **declared("searchable", approval=True))
    def write(call: Any, *, order: int, text: str) -> Any:
        return Done(ref=str(order))

    found = write.submit(order=1, text="a")
    approving = Approving(shop.ledger)
    [ask] = approving.find()

    def killed(*_: Any) -> Any:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(shop.ledger.store, "write", killed)
        with pytest.raises(KeyboardInterrupt):
            approving.edit(ask, {"text": "b"}, who=ANNA, why="typo")
    assert [a.id for a in approving.find()] == [ask.id]
    new = approving.edit(ask, {"text": "b"}, who=ANNA, why="typo")
    assert (new.key, shop.get(found).next_step["en"][:35]) == (
        "1#v2", "A person made a new version of it; ",
    )  # fmt: skip
    [again] = approving.find()
    newer = approving.edit(again, {"text": "c"}, who=ANNA, why="typo")
    assert newer.key == "1#v3"
    with pytest.raises(Refused, match="nothing is changed"):
        approving.edit(approving.find()[0], {"text": "c"}, who=ANNA, why="typo")
    shop.ledger.approve(newer, by="eva")
    shop.settle()
    assert shop.get(newer).done
    assert [shop.get(o).reason for o in (found, new)] == ["rejected", "superseded"]


def test_an_approval_sent_back_may_still_be_edited_but_not_one_that_is_approved(
    shop: Shop,
) -> None:
    @shop.ledger.action("shop.write", **declared("searchable", approval=True))
    def write(call: Any, *, order: int, text: str) -> Any:
        return Done(ref=str(order))

    approving = Approving(shop.ledger)
    back, sent = write.submit(order=1, text="a"), write.submit(order=2, text="a")
    [one, two] = approving.find()
    shop.ledger.respond(back, by="eva", note="shorter")
    assert approving.edit(one, {"text": "b"}, who=ANNA, why="shorter").key == "1#v2"
    shop.ledger.approve(sent, by="eva")
    with pytest.raises(Refused, match="no approval is asked"):
        approving.edit(two, {"text": "b"}, who=ANNA, why="x")


def test_who_may_not_look_up_is_told_so_before_anything_is_claimed(shop: Shop) -> None:
    import asyncio

    found = lost(shop)

    async def confirm() -> None:
        await shop.aio().confirm(found.id, wait=0)

    with pytest.raises(Refused, match="no look-up"):
        asyncio.run(confirm())
    assert shop.ledger.case_of(found.id).status.token is None

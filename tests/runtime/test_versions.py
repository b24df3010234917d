"""Versions follow one another (law 10), undoing is its own operation (law 18), and a person's
decisions are evidence that something newer overrules (People)."""

from __future__ import annotations

from typing import Any

import pytest

import ascertain
from ascertain import Conflict, Done, Refused, Request, State, StillOpen, WaitingOn
from ascertain.core.reconcile import Do
from ascertain.runtime import versions
from ascertain.runtime.ticket import Ticket
from shop import CONTROL, Shop, declared, register


def versioned(shop: Shop, kind: str = "searchable", **more: Any) -> Any:
    return register(shop.ledger, shop.target, kind, name="shop.page", key="{order}/v{note}", **more)


def test_a_correction_closes_what_it_supersedes(shop: Shop) -> None:
    page = versioned(shop)
    shop.target.script("refuse:invalid")
    old = page.submit(order=1, note="1")
    new = page.using(supersedes=old, reason="price corrected").submit(order=1, note="2")
    assert new.done
    closed = shop.get(old)
    assert (closed.state, closed.reason) == (State.NOT_DONE, "superseded")
    assert closed.waiting_on is WaitingOn.NOTHING


def test_a_version_needs_a_reason_and_one_successor(shop: Shop) -> None:
    page = versioned(shop)
    old = page.enqueue(order=1, note="1")
    with pytest.raises(Refused, match="reason"):
        page.using(supersedes=old)
    page.using(supersedes=old, reason="first").enqueue(order=1, note="2")
    with pytest.raises(Refused, match="has a successor"):
        page.using(supersedes=old, reason="second").enqueue(order=1, note="3")


def test_a_successor_waits_for_an_unknown_version(shop: Shop) -> None:
    page = versioned(shop)
    shop.target.script("late:12")
    old = page.submit(order=1, note="1", wait=0)
    with pytest.raises(StillOpen):
        page.using(supersedes=old, reason="new price")(order=1, note="2", wait=0)
    [new] = shop.ledger.find(key="1/v2")
    assert new.state is State.PENDING
    assert shop.effects(new) == 0
    shop.settle()
    assert shop.get(old).done
    assert shop.effects(old) == 1
    assert shop.get(new).done


def test_an_override_does_not_wait_and_a_late_truth_is_kept(shop: Shop) -> None:
    page = versioned(shop, late=60)
    shop.target.script("late:20")
    old = page.submit(order=1, note="1", wait=0)
    new = page.using(supersedes=old, reason="cannot wait", override="bob").submit(order=1, note="2")
    assert new.done
    shop.settle()
    assert shop.get(old).done
    assert shop.effects(old) == 1
    assert shop.effects(new) == 1


def test_a_late_truth_after_an_override_is_shown_on_both(shop: Shop) -> None:
    page = versioned(shop, late=60)
    shop.target.script("late:20")
    old = page.submit(order=1, note="1", wait=0)
    page.using(supersedes=old, reason="cannot wait", override="bob").submit(order=1, note="2")
    shop.settle()
    assert shop.reviews() == ["duplicate", "duplicate"]


def test_a_superseded_version_that_happened_after_all(shop: Shop) -> None:
    page = versioned(shop)
    old = page.enqueue(order=1, note="1")
    new = page.using(supersedes=old, reason="new price").submit(order=1, note="2")
    assert shop.get(old).reason == "superseded"
    shop.ledger.report(old, Done(ref="late-one"), by="webhook", report="event-1")
    assert shop.get(old).done
    assert sorted(r.operation for r in shop.ledger.reviews()) == sorted([old.id, new.id])
    assert set(shop.reviews()) == {"duplicate"}


def test_what_was_left_needs_the_override(shop: Shop) -> None:
    page = versioned(shop)
    shop.target.script("gone")
    old = page.submit(order=1, note="1", wait=0)
    left = shop.ledger.decide(old, "leave", by="anna")
    assert (left.state, left.reason) == (State.NOT_DONE, "left")
    assert "unknown" in left.next_step["en"] or "not known" in left.next_step["en"]
    waits = page.using(supersedes=old, reason="again").submit(order=1, note="2", wait=0)
    assert waits.state is State.PENDING
    assert "risk" in waits.next_step["en"]
    taken = page.using(supersedes=old, reason="again", override="bob")
    assert taken.submit(order=1, note="2", wait=0).id == waits.id


def test_a_held_version_raises_an_alarm_past_its_time(shop: Shop) -> None:
    page = versioned(shop, "opaque")
    shop.target.script("gone")
    old = page.submit(order=1, note="1", wait=0)
    page.using(supersedes=old, reason="again").submit(order=1, note="2", wait=0)
    shop.clock.advance(25 * 3600)
    assert {a.kind for a in shop.ledger.alarms()} >= {"held", "review"}


def test_a_repeat_is_a_second_effect_with_its_own_consent(shop: Shop) -> None:
    first = shop.order.submit(order=1)
    again = shop.order.repeat(of=first, reason="the parcel was stolen")
    third = shop.order.repeat(of=first, reason="and again")
    assert [again.key, third.key] == ["1#repeat-1", "1#repeat-2"]
    assert again.target_key != first.target_key
    for waits in (again, third):
        assert waits.waiting_on is WaitingOn.APPROVAL
        shop.ledger.approve(waits, by="lea")
    shop.settle()
    assert [shop.effects(r) for r in (first, again, third)] == [1, 1, 1]


# --- undoing ------------------------------------------------------------------------------------


def undo(shop: Shop, kind: str = "searchable") -> Any:
    return register(shop.ledger, shop.target, kind, name="shop.undo", key="undo-{order}")


def test_only_what_is_done_is_undone(shop: Shop) -> None:
    shop.target.script("gone")
    lost = shop.order.submit(order=1, wait=0)
    undoing = undo(shop).using(compensates=lost, reason="cancelled")
    with pytest.raises(Refused, match="can be undone only"):
        undoing.submit(order=1)
    with pytest.raises(Refused, match="can be undone only"):
        undoing.enqueue(order=1)
    assert len(shop.ledger.find()) == 1


def test_undoing_is_an_operation_of_its_own(shop: Shop) -> None:
    first = shop.order.submit(order=1)
    back = undo(shop).using(compensates=first, reason="cancelled")
    shop.target.script("hang")
    undone = back.submit(order=1)
    assert undone.done
    assert back.submit(order=1).reused
    assert shop.effects(undone) == 1
    assert shop.get(first).done


def test_a_failed_undo_is_visible(shop: Shop) -> None:
    first = shop.order.submit(order=1)
    shop.target.script("refuse:rejected")
    failed = undo(shop).using(compensates=first, reason="cancelled").submit(order=1)
    assert (failed.state, failed.waiting_on) == (State.NOT_DONE, WaitingOn.INPUT)
    assert shop.ledger.counts()["not_done"] == 1


def test_nothing_is_undone_while_a_request_may_still_land(shop: Shop) -> None:
    """Done by a look-up, but the attempt never reported its end."""
    shop.target.script("drop")
    found = shop.order.submit(order=1)
    assert found.confirmed_by == "look_up"
    action = undo(shop).using(compensates=found, reason="cancelled")
    with pytest.raises(Refused, match="still land"):
        action.submit(order=1)
    shop.clock.advance(16)
    assert action.submit(order=1).done


# --- decisions ----------------------------------------------------------------------------------


def opaque(shop: Shop, fate: str = "gone", **more: Any) -> tuple[Any, Any]:
    action = register(shop.ledger, shop.target, "opaque", name="shop.mail", **more)
    shop.target.script(fate)
    return action, action.submit(order=1)


def test_there_closes_it_with_its_reference(shop: Shop) -> None:
    _, lost = opaque(shop, "hang")
    done = shop.ledger.decide(lost, "there", by="anna", ref="mail-7", why="seen in the outbox")
    assert (done.state, done.ref, done.confirmed_by) == (State.DONE, "mail-7", "person")
    assert shop.ledger.reviews() == []
    assert shop.ledger.history(done)[-1].by == "anna"


def test_not_there_without_proof_needs_the_risk_taken(shop: Shop) -> None:
    action, lost = opaque(shop)
    with pytest.raises(Refused, match="Accept the risk"):
        shop.ledger.decide(lost, "not_there", by="anna")
    with pytest.raises(ascertain.UsageError, match="reason"):
        shop.ledger.decide(lost, "not_there", by="anna", accept_risk=True)
    stays = shop.ledger.decide(lost, "not_there", by="anna", accept_risk=True, why="nobody got it")
    assert stays.state is State.UNKNOWN
    shop.settle()
    end = shop.get(lost)
    assert end.done
    assert end.attempts == 2
    assert action.submit(order=1).reused


def test_not_there_after_the_observation_period_allows_one_attempt(shop: Shop) -> None:
    shop.target.script("gone")
    lost = shop.order.submit(order=1, wait=0)
    shop.target.looks_fail = "error"
    shop.settle()
    assert shop.get(lost).waiting_on is WaitingOn.REVIEW
    shop.target.looks_fail = ""
    decided = shop.ledger.decide(lost, "not_there", by="anna")
    assert decided.state is State.PENDING
    shop.settle()
    assert shop.get(lost).done
    assert shop.effects(lost) == 1


def test_a_risky_target_needs_two_people(shop: Shop) -> None:
    _, lost = opaque(shop, risky=True)
    said = {"accept_risk": True, "why": "nothing arrived"}
    first = shop.ledger.decide(lost, "not_there", by="anna", **said)
    assert first.waiting_on is WaitingOn.REVIEW
    again = shop.ledger.decide(lost, "not_there", by="anna", **said)
    assert again.waiting_on is WaitingOn.REVIEW
    shop.settle()
    assert shop.effects(lost) == 0
    shop.ledger.decide(lost, "not_there", by="bob", **said)
    shop.settle()
    assert shop.effects(lost) == 1


def test_cannot_tell_stays_open_and_leave_stays_visible(shop: Shop) -> None:
    action, lost = opaque(shop)
    stays = shop.ledger.decide(lost, "cannot_tell", by="anna")
    assert (stays.state, stays.waiting_on) == (State.UNKNOWN, WaitingOn.REVIEW)
    assert len(shop.ledger.reviews()) == 1
    left = shop.ledger.decide(lost, "leave", by="anna", why="customer cancelled")
    assert left.unresolved
    assert "contact us" in left.user_message["en"]
    assert shop.ledger.reviews() == []
    with pytest.raises(ascertain.OutcomeUnknown):
        action(order=1)


def test_a_decision_on_an_old_picture_is_a_conflict(shop: Shop) -> None:
    _, lost = opaque(shop, "hang")
    seen = shop.ledger.case_of(lost.id).status.stamp
    shop.ledger.report(lost, Done(ref="m-1"), by="webhook", report="event-1")
    with pytest.raises(Conflict, match="newer"):
        shop.ledger.decide(lost, "not_there", by="anna", seen=seen)
    again = shop.ledger.report(lost, Done(ref="m-1"), by="webhook", report="event-1")
    assert again.ref == "m-1"
    assert len([e for e in shop.ledger.history(lost) if e.kind == "event"]) == 1


def test_a_reference_belongs_to_one_operation(shop: Shop) -> None:
    action, lost = opaque(shop, "hang")
    other = action.submit(order=2)
    with pytest.raises(Conflict, match="belongs to operation") as caught:
        shop.ledger.decide(lost, "there", by="anna", ref=other.ref)
    assert caught.value.other == other.id
    assert shop.get(lost).state is State.UNKNOWN


def test_a_renewed_authorization_makes_it_due(shop: Shop) -> None:
    shop.target.script("refuse:unauthorized")
    refused = shop.order.submit(order=1)
    assert refused.waiting_on is WaitingOn.AUTHORIZATION
    shop.settle()
    assert shop.effects(refused) == 0
    shop.ledger.renew(refused, by="it")
    shop.settle()
    assert shop.effects(refused) == 1


def test_an_overwriting_version_waits_until_the_older_can_land_no_more(shop: Shop) -> None:
    import msgspec

    from ascertain.core.contract import RepeatRule
    from shop import contract

    overwriting = msgspec.structs.replace(
        contract("identified"),
        repeat=RepeatRule(answer="overwrite", atomic=True, keeps="forever"),
    )
    page = versioned(shop, "identified", contract=overwriting)
    page.lookup(control=CONTROL, lag="0s")(lambda call: shop.target.look(call.target_key))
    shop.target.script("refuse:invalid")
    old = page.submit(order=1, note="1")
    new = page.using(supersedes=old, reason="corrected").submit(order=1, note="2", wait=0)
    assert new.done  # nothing of the older can land: it is proven not done
    assert shop.effects(new) == 1


def test_requests_are_values() -> None:
    assert Request(method="GET", url="x") == Request(method="GET", url="x")
    assert declared("searchable")["owner"] == "anna"


def test_a_version_before_that_begins_between_the_look_and_the_claim_is_waited_for(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Law 10, found by the simulator (seed 200168): the gate is asked where the claim is made."""
    older = shop.order.enqueue(order=1)
    newer = shop.order.using(supersedes=older.id, reason="a correction").enqueue(order=2)
    real, begun = versions.why_held, []

    def late(engine: Any, case: Any, world: Any) -> str:
        why = real(engine, case, world)
        if case.operation.id == newer.id and not begun:
            begun.append(
                shop.ledger.engine.claim(engine.case(engine.snapshot(older.id)), Do.EXECUTE)
            )
        return why

    monkeypatch.setattr(versions, "why_held", late)
    case = shop.ledger.engine.case(shop.ledger.engine.snapshot(newer.id))
    after = shop.ledger.engine.claim(case, Do.EXECUTE)
    assert isinstance(begun[0], Ticket)
    assert not isinstance(after, Ticket)
    assert after.status.attempts == 0

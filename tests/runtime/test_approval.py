"""What was approved is what is sent (law 11); consent says nothing about repeating."""

from __future__ import annotations

from typing import Any

import pytest

import ascertain
from ascertain import ApprovalMissing, ApprovalStale, Done, Refused, Request, State, WaitingOn
from shop import Shop, declared


@pytest.fixture
def shop(make_shop: Any) -> Shop:
    return make_shop("identified")


def publish(shop: Shop, ledger: Any = None, *, sent: list[Any] | None = None, **more: Any) -> Any:
    """An action with a pure `prepare`; what it sends is what was frozen."""
    sent = [] if sent is None else sent
    made = []

    def prepare(call, *, order, body):
        made.append(body)
        text = f"{body}|{call.target_key}|{len(made)}"
        return Request(method="POST", url="http://cms/posts", body=text.encode())

    given = {"approval": "legal", "prepare": prepare, "deterministic": False, **more}

    @(ledger or shop.ledger).action("cms.publish", **declared("identified", **given))
    def action(call, *, order, body):
        sent.append(call.request.body)
        return shop.target.send(call.target_key, call.request.body.decode())

    return action


def test_nothing_is_sent_before_the_approval(shop: Shop) -> None:
    sent: list[Any] = []
    action = publish(shop, sent=sent)
    with pytest.raises(ApprovalMissing):
        action(order=1, body="v1")
    [waits] = shop.ledger.find(waiting_on="approval")
    assert waits.state is State.PENDING
    shop.settle()
    assert sent == []
    [asked] = shop.ledger.asked(waits)
    assert asked.role == "legal"
    assert asked.request["url"] == "http://cms/posts"
    assert asked.input == {"order": 1, "body": "v1"}
    shop.ledger.approve(waits, by="lea")
    shop.settle()
    done = action(order=1, body="v1")
    assert done.reused
    assert len(sent) == 1
    assert shop.effects(done) == 1


def test_exactly_what_was_shown_is_sent_also_on_a_replay(shop: Shop) -> None:
    """`prepare` gives other bytes on every call; the frozen ones go out, each time."""
    sent: list[Any] = []
    action = publish(shop, sent=sent)
    waits = action.submit(order=1, body="v1")
    [asked] = shop.ledger.asked(waits)
    shop.target.script("hang")
    shop.ledger.approve(waits, by="lea", digest=asked.digest)
    shop.settle()
    end = shop.get(waits)
    assert end.done
    assert end.attempts == 2
    assert len(set(sent)) == 1
    assert shop.effects(end) == 1


def test_a_killed_caller_resumes_with_the_approved_content(shop: Shop) -> None:
    action = publish(shop)
    waits = action.submit(order=1, body="v1")
    shop.ledger.approve(waits, by="lea")
    frozen = shop.ledger.asked(waits)[0].request
    sent: list[Any] = []
    other = shop.another()
    publish(shop, other, sent=sent)  # a new process, whose prepare counts anew
    shop.settle(other)
    assert shop.get(waits).done
    assert sent[0].decode().endswith("|1")
    assert frozen["body"]


def test_other_content_under_the_same_key_is_refused(shop: Shop) -> None:
    action = publish(shop)
    waits = action.submit(order=1, body="v1")
    shop.ledger.approve(waits, by="lea")
    with pytest.raises(ascertain.InputMismatch, match="body"):
        action.submit(order=1, body="v2")
    shop.settle()
    assert shop.target.effects(waits.target_key)[0][1].startswith("v1|")


def test_a_consent_to_something_else_is_stale(shop: Shop) -> None:
    action = publish(shop)
    waits = action.submit(order=1, body="v1")
    with pytest.raises(ApprovalStale, match="look at it again"):
        shop.ledger.approve(waits, by="lea", digest="what was shown yesterday")
    assert shop.ledger.asked(waits)[0].state == "asked"


def test_an_approval_of_another_scope_does_not_hold(shop: Shop) -> None:
    """The account was changed after the approval: nothing goes to the other one."""
    action = publish(shop)
    waits = action.submit(order=1, body="v1")
    shop.ledger.approve(waits, by="lea")
    sent: list[Any] = []
    other = shop.another()
    publish(shop, other, sent=sent, scope="another account")
    report = other.recover()
    assert any("approved" in e for e in report.errors)
    assert sent == []
    assert shop.get(waits).state is State.PENDING
    assert action.submit(order=1, body="v1").state is State.PENDING


def test_every_role_consents_once(shop: Shop) -> None:
    action = publish(shop, approval=["legal", "marketing"])
    waits = action.submit(order=1, body="v1")
    with pytest.raises(Refused, match="name the role"):
        shop.ledger.approve(waits, by="lea")
    shop.ledger.approve(waits, by="lea", role="legal")
    shop.settle()
    assert shop.get(waits).waiting_on is WaitingOn.APPROVAL
    with pytest.raises(Refused):
        shop.ledger.approve(waits, by="lea", role="legal")
    shop.ledger.approve(waits, by="max", role="marketing")
    shop.settle()
    assert shop.get(waits).done


def test_a_refusal_ends_it(shop: Shop) -> None:
    action = publish(shop)
    waits = action.submit(order=1, body="v1")
    ended = shop.ledger.reject(waits, by="lea", note="wrong brand")
    assert (ended.state, ended.reason) == (State.NOT_DONE, "rejected")
    shop.settle()
    assert shop.effects(waits) == 0
    with pytest.raises(ascertain.AscertainError):
        shop.ledger.approve(waits, by="lea")
    with pytest.raises(ascertain.InputRejected):
        action(order=1, body="v1")


def test_a_person_has_a_name(shop: Shop) -> None:
    waits = publish(shop).submit(order=1, body="v1")
    with pytest.raises(ascertain.UsageError, match="name the person"):
        shop.ledger.approve(waits, by=" ")


def test_consent_is_used_by_the_operation_and_never_by_a_second_one(shop: Shop) -> None:
    action = publish(shop)
    first = action.submit(order=1, body="v1")
    shop.ledger.approve(first, by="lea")
    shop.settle()
    second = action.submit(order=2, body="v1")
    assert second.waiting_on is WaitingOn.APPROVAL
    again = action.repeat(of=first, reason="a second print run")
    assert again.waiting_on is WaitingOn.APPROVAL
    assert again.key == "1#repeat-1"
    shop.settle()
    assert shop.effects(again) == 0


def test_a_restored_unapproved_operation_is_never_sent(shop: Shop) -> None:
    sent: list[Any] = []
    action = publish(shop, sent=sent)
    waits = action.submit(order=1, body="v1")
    shop.ledger.restored(shop.clock.wall() - 60_000_000)
    shop.settle()
    assert sent == []
    assert shop.get(waits).state is State.UNKNOWN


def test_without_prepare_an_approval_binds_the_input(shop: Shop) -> None:
    @shop.ledger.action("shop.pay", **declared("searchable", approval=True))
    def pay(call, *, order, note=""):
        return Done(ref="p")

    waits = pay.submit(order=1, note="10 EUR")
    assert shop.ledger.asked(waits)[0].role == "approver"
    shop.ledger.approve(waits, by="lea")
    shop.settle()
    assert shop.get(waits).done

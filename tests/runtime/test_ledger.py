"""Both ledgers carry out the same script, on both stores, and give the same receipts."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import ascertain
from ascertain import Done, InProgress, InReview, OutcomeUnknown, Receipt, State
from shop import Shop, register

CALLING = ("batch", "confirm", "enqueue", "recover", "submit", "__call__")


class Sync:
    """An asynchronous ledger or action, called from plain code: every verb runs to its end."""

    def __init__(self, inner: Any, run: Callable[[Any], Any]) -> None:
        self.inner, self.run = inner, run

    def __call__(self, **given: Any) -> Any:
        return self.run(self.inner(**given))

    def __getattr__(self, name: str) -> Any:
        found = getattr(self.inner, name)
        if name in ("action", "step", "flow"):
            return lambda *a, **k: lambda function: Sync(found(*a, **k)(function), self.run)
        if name == "using":
            return lambda **k: Sync(found(**k), self.run)
        if name in ("lookup", "expected", "engine"):
            return found
        return lambda *a, **k: self.run(found(*a, **k))


@pytest.fixture(params=["sqlite", "postgres"])
def url(request: pytest.FixtureRequest) -> str:
    return "" if request.param == "sqlite" else request.getfixturevalue("postgres_database")


@pytest.fixture(params=["Ledger", "AsyncLedger"])
def shop(request: pytest.FixtureRequest, tmp_path: Path, url: str) -> Iterator[Shop]:
    with Shop(tmp_path, url=url) as made, asyncio.Runner() as runner:
        made.facade = made.ledger
        if request.param == "AsyncLedger":
            made.facade = Sync(made.aio(), runner.run)
            made.order = register(made.facade, made.target)
        yield made


SCRIPT: dict[str, tuple[str, ...]] = {
    "done:0:answer": ("ok",),
    "done:0:look_up": ("hang",),
    "unknown:0:": ("late:3",),
    "unknown:1:": ("gone",),
    "pending:0:": ("refuse:transient",),
    "pending:1:": ("refuse:throttled",),
    "not_done:0:": ("refuse:invalid",),
    "not_done:1:": ("refuse:unauthorized",),
    "not_done:2:": ("refuse:rejected",),
}


@pytest.mark.parametrize("what", SCRIPT)
def test_the_same_script_gives_the_same_receipts(shop: Shop, what: str) -> None:
    state, _, by = what.split(":")
    shop.target.script(*SCRIPT[what])
    first = shop.order.submit(order=1, wait=0)
    assert (first.state, first.confirmed_by) == (state, by)
    assert first.next_step["en"]
    assert first.next_step["zh"]
    assert first.owner == "anna"
    again = shop.order.submit(order=1, wait=0)
    assert again.reused
    assert (again.id, again.target_key) == (first.id, first.target_key)
    shop.settle()
    end = shop.get(first)
    assert shop.effects(first) == (0 if state == "not_done" else 1)
    assert end.done == (state != "not_done")
    seen = [e.kind for e in shop.ledger.history(first)]
    assert seen[0] == "finding"


def test_a_call_returns_or_raises_what_the_state_means(shop: Shop) -> None:
    assert shop.order(order=1).done
    shop.target.script("gone")
    with pytest.raises(OutcomeUnknown) as caught:
        shop.order(order=2, wait=0)
    assert caught.value.receipt.state is State.UNKNOWN
    assert isinstance(caught.value.__cause__, TimeoutError)
    shop.target.script("refuse:invalid")
    with pytest.raises(ascertain.InputRejected):
        shop.order(order=3)
    shop.target.script("refuse:unauthorized")
    with pytest.raises(ascertain.AccessRejected):
        shop.order(order=4)
    shop.target.script("refuse:throttled")
    with pytest.raises(ascertain.TemporarilyRefused):
        shop.order(order=5, wait=0)


def test_a_review_is_raised_as_such(shop: Shop) -> None:
    opaque = register(shop.facade, shop.target, "opaque", name="shop.mail")
    shop.target.script("hang")
    with pytest.raises(InReview) as caught:
        opaque(order=1)
    assert caught.value.owner == "anna"


def test_enqueue_batch_find_history_confirm(shop: Shop) -> None:
    waits = shop.order.enqueue(order=1)
    assert waits.state is State.PENDING
    report = shop.facade.recover()
    assert report.worked == 1
    assert report.did == {"act": 1}
    done = shop.order.batch([{"order": n} for n in range(5)])
    assert [r.key for r in done] == ["0", "1", "2", "3", "4"]
    assert [r.reused for r in done] == [False, True, False, False, False]
    found = shop.facade.find(action="shop.order", states=["done"])
    assert len(found) == 5
    page = shop.facade.find(limit=2, after=found[1].id)
    assert [r.id for r in page] == [r.id for r in found[2:4]]
    confirmed = shop.facade.confirm(found[0])
    assert confirmed.done
    assert confirmed.lookups == 1
    assert [e.kind for e in shop.facade.history(found[0])] == ["finding", "look_up"]
    assert shop.facade.get(found[0].id) == confirmed


def test_an_unknown_action_or_operation_says_so(shop: Shop) -> None:
    with pytest.raises(ascertain.UnknownOperation, match="look for it by its key"):
        shop.facade.get("no-such-id")
    other = shop.another()
    receipt = shop.order.submit(order=1)
    assert other.get(receipt).state is State.DONE  # reading needs no code
    with pytest.raises(ascertain.Refused, match="no look-up"):
        other.confirm(receipt)


def test_namespaces_see_nothing_of_each_other(shop: Shop) -> None:
    mine = shop.order.submit(order=1)
    other = shop.another(namespace="other")
    theirs = register(other, shop.target).submit(order=1)
    assert mine.target_key != theirs.target_key
    assert len(shop.target.effects()) == 2 + 1  # and the control
    with pytest.raises(ascertain.UnknownOperation):
        other.get(mine)
    assert [r.id for r in other.find()] == [theirs.id]


def test_generated_content_is_pinned(shop: Shop) -> None:
    made = []

    def write(*, order):
        made.append(order)
        return {"text": f"draft {len(made)}"}

    draft = shop.facade.step("shop.write", key="{order}")(write)
    assert draft(order=1).result == {"text": "draft 1"}
    assert draft(order=1).result == {"text": "draft 1"}
    assert draft(order=2).result == {"text": "draft 2"}
    assert made == [1, 2]


def test_reused_content_is_the_pinned_one(shop: Shop) -> None:
    sent = []

    @shop.facade.action(
        "shop.page", key="{order}", owner="anna", content=["body"], on_changed="reuse"
    )
    def page(call, *, order, body):
        sent.append(body)
        return Done(ref=f"page-{order}")

    assert page(order=1, body="first").ref == "page-1"
    again = page(order=1, body="second")
    assert again.reused
    assert sent == ["first"]


def test_a_second_caller_waits_or_is_told(tmp_path: Path) -> None:
    with Shop(tmp_path) as shop:
        entered, leave = threading.Event(), threading.Event()

        @shop.ledger.action("shop.slow", key="{order}", owner="anna", timeout=100)
        def slow(call, *, order):
            entered.set()
            leave.wait(10)
            return Done(ref="r")

        thread = threading.Thread(target=lambda: slow(order=1))
        thread.start()
        assert entered.wait(10)
        with pytest.raises(InProgress) as caught:
            slow(order=1, wait=0)
        assert caught.value.due_at > shop.clock.wall()
        leave.set()
        thread.join()
        assert slow(order=1).ref == "r"


def test_extending_is_durable_and_bounded(shop: Shop) -> None:
    seen: list[Any] = []

    def work(call, *, order):
        before = shop.ledger.find(key="1")[0].due_at
        call.extend(20)
        seen.append(shop.ledger.find(key="1")[0].due_at - before)
        shop.clock.advance(15)
        seen.append(call.seconds_left)
        try:
            for _ in range(3):
                call.extend(20)
        except ascertain.AscertainError as error:
            seen.append(type(error))
        return Done(ref="r")

    action = shop.facade.action(
        "shop.long", key="{order}", owner="anna", timeout=10, extensions=2, sends_within=10
    )(work)
    assert action(order=1).done
    assert seen[0] == 10_000_000
    assert seen[1] == 5
    assert issubclass(seen[2], ascertain.AscertainError)


def test_notes_and_costs_stay_with_the_finding(shop: Shop) -> None:
    def work(call, *, order):
        call.note("spent some")
        call.cost("0.12", "EUR", what="tokens", payer="content")
        raise TimeoutError

    action = shop.facade.action("shop.costly", key="{order}", owner="anna", sends="own")(work)
    lost = action.submit(order=1)
    [entry] = [e for e in shop.ledger.history(lost) if e.kind == "finding"]
    assert entry.data["notes"] == ["spent some"]
    assert entry.data["costs"][0]["amount"] == "0.12"


def test_the_ledgers_wait_is_what_calls_wait(tmp_path: Path) -> None:
    with Shop(tmp_path) as shop:
        quick = ascertain.Ledger(shop.store(), clock=shop.clock, wait=3)
        shop.ledgers.append(quick)
        order = register(quick, shop.target)
        shop.target.script("gone")
        before = shop.clock.boottime()
        assert order.submit(order=1).state is State.UNKNOWN
        assert 3_000_000 <= shop.clock.boottime() - before < 4_000_000


def test_a_receipt_never_says_done_before_it_is(shop: Shop) -> None:
    shop.target.script("gone")
    lost: Receipt = shop.order.submit(order=1, wait=0)
    assert "checking" in lost.user_message["en"]
    assert "请勿重复提交" in lost.user_message["zh"]
    assert lost.unresolved
    assert "sends_within=10s" in lost.assumptions

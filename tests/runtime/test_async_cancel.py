"""A caller cancelled at every await, early or late: nothing is lost, nothing happens twice.

`stepped` cancels at the n-th time that the task gives way to the loop; a test goes through all
n until the caller is through. Early: the cancellation comes while what it waits for is under
way. Late: in the very moment in which that has ended.
"""

from __future__ import annotations

import asyncio
import types
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from ascertain import AsyncLedger, Done, Receipt, State, WaitingOn
from shop import CONTROL, Shop, declared, send

TIMES = ["early", "late"]
MOST = 60  # awaits of one caller at most


@types.coroutine
def stepped(inner: Coroutine[Any, Any, Any], at: int, when: str, seen: list[int]) -> Any:
    """Run a coroutine, and cancel the task around it at its n-th await."""
    task = asyncio.current_task()
    loop = asyncio.get_running_loop()
    send, given = inner.send, None
    while True:
        try:
            waits = send(given)
        except StopIteration as end:
            return end.value
        seen[0] += 1
        if seen[0] == at:
            if when == "late" and isinstance(waits, asyncio.Future):
                waits.add_done_callback(lambda _: task.cancel())
            else:
                loop.call_soon(task.cancel)
        try:
            given = yield waits
            send = inner.send
        except BaseException as error:
            given, send = error, inner.throw


def cancelled_at(n: int, when: str, make: Callable[[], Coroutine[Any, Any, Any]]) -> bool:
    """Run a caller in a loop of its own, cancelled at its n-th await; False if it was through."""
    seen = [0]

    async def main() -> bool:
        task = asyncio.create_task(whole())
        await asyncio.wait([task])
        return task.cancelled()

    async def whole() -> Any:
        return await stepped(make(), n, when, seen)

    was = asyncio.run(main())
    return was or seen[0] >= n


def register(ledger: AsyncLedger, shop: Shop, how: str) -> Any:
    """An action that gives way before and after it sends; a plain function in a thread."""
    target = shop.target

    async def slow(call: Any, *, order: int) -> Any:
        await asyncio.sleep(0)
        found = send(target, call, str(order))
        await asyncio.sleep(0)
        return found

    def plain(call: Any, *, order: int) -> Any:
        return send(target, call, str(order))

    made = ledger.action("shop.order", **declared("searchable"))(slow if how == "async" else plain)

    async def look(call: Any) -> Any:
        await asyncio.sleep(0)
        return target.look(call.target_key)

    made.lookup(control=CONTROL)(look)
    return made


def judge(shop: Shop, n: int) -> Receipt | None:
    """What stands after a caller was cancelled: known or being found out, and one effect in
    the end."""
    found = shop.ledger.find(key=str(n))
    if not found:  # cancelled before its intent was recorded
        key = shop.ledger.engine.target_key("shop.order", str(n), 1)
        assert not shop.target.requests(key)
        return None
    [stands] = found
    assert stands.state is not State.RUNNING, f"await {n}: a lease without an actor"
    if stands.state is State.PENDING:
        assert not shop.target.requests(stands.target_key), f"await {n}: sent, and called pending"
    if stands.state is State.UNKNOWN:
        assert stands.due_at is not None
    shop.settle()
    assert shop.effects(stands) == 1, f"await {n}"
    assert shop.get(stands).done, f"await {n}"
    return stands


@pytest.mark.parametrize("when", TIMES)
@pytest.mark.parametrize("how", ["async", "plain"])
def test_a_caller_cancelled_at_every_await(
    make_shop: Any, monkeypatch: pytest.MonkeyPatch, how: str, when: str
) -> None:
    monkeypatch.setattr("ascertain.runtime.lives.FRESH", 0)  # as many awaits in every call
    shop = make_shop()
    order = register(shop.aio(), shop, how)
    stood = []
    for n in range(1, MOST):
        if not cancelled_at(n, when, lambda n=n: order.submit(order=n, wait=0)):
            break
        stood.append(judge(shop, n))
    else:
        raise AssertionError("the caller never came to its end")
    assert len(stood) >= 4
    assert any(r is not None and r.state is State.DONE for r in stood)


@pytest.mark.parametrize("when", TIMES)
@pytest.mark.parametrize("how", ["async", "plain"])
@pytest.mark.parametrize("fate", ["hang", "gone", "refuse:transient"])
def test_a_recovery_cancelled_at_every_await(
    make_shop: Any, monkeypatch: pytest.MonkeyPatch, fate: str, how: str, when: str
) -> None:
    monkeypatch.setattr("ascertain.runtime.recovery.HOLD", 1_000_000)
    shop = make_shop()
    ledger = shop.aio()
    order = register(ledger, shop, how)
    for n in range(1, MOST):
        shop.target.script(fate)
        lost = asyncio.run(order.submit(order=n, wait=-1))
        shop.clock.advance(40)
        again = cancelled_at(n, when, ledger.recover)
        key = lost.target_key
        stands = shop.get(lost)
        if stands.state is State.PENDING and fate.startswith("refuse"):
            assert shop.target.requests(key) == 1, f"await {n}: sent, and called pending"
        shop.settle()
        assert shop.effects(lost) == 1, f"await {n}"
        assert shop.get(lost).done, f"await {n}"
        if not again:
            return
    raise AssertionError("the recovery never came to its end")


def test_a_recovery_cancelled_before_the_code_started_gives_its_claim_back(shop: Shop) -> None:
    """Law 2: proven not sent, so pending, never unknown."""
    ledger = shop.aio()
    order = register(ledger, shop, "async")
    for n in range(1, MOST):
        waits = asyncio.run(order.enqueue(order=n))
        again = cancelled_at(n, "late", ledger.recover)
        stands = shop.get(waits)
        assert stands.state is not State.RUNNING, f"await {n}: a lease without an actor"
        if not shop.target.requests(waits.target_key):
            assert stands.state in (State.PENDING, State.UNKNOWN)
        shop.clock.advance(31)
        shop.settle()
        assert shop.effects(waits) == 1, f"await {n}"
        if not again:
            return
    raise AssertionError("the recovery never came to its end")


def test_a_time_out_mid_effect_is_unknown_and_found(shop: Shop) -> None:
    ledger = shop.aio()
    limit = asyncio.Timeout(None)

    @ledger.action("shop.order", **declared("searchable"))
    async def order(call, *, order):
        send(shop.target, call)
        limit.reschedule(0)  # over, however long it took to come here
        await asyncio.sleep(3600)

    order.lookup(control=CONTROL)(lambda call: shop.target.look(call.target_key))

    async def main() -> None:
        async with limit:
            await order.submit(order=1)

    with pytest.raises(TimeoutError):
        asyncio.run(main())
    [stands] = shop.ledger.find(key="1")
    assert stands.state is State.UNKNOWN
    assert stands.waiting_on is WaitingOn.CLOCK
    shop.settle()
    assert shop.effects(stands) == 1
    assert shop.get(stands).confirmed_by == "look_up"


def test_a_time_out_around_a_plain_function_keeps_its_result(shop: Shop) -> None:
    """What the code reported is known, so the cancellation must not make it unknown (law 8)."""
    ledger = shop.aio()

    @ledger.action("shop.order", **declared("opaque"))
    def order(call, *, order):
        found = send(shop.target, call)
        task.get_loop().call_soon_threadsafe(task.cancel)
        return found

    task: Any = None

    async def main() -> None:
        nonlocal task
        task = asyncio.create_task(order.submit(order=1))
        await asyncio.wait([task])
        assert task.cancelled()

    asyncio.run(main())
    [stands] = shop.ledger.find(key="1")
    assert shop.effects(stands) == 1
    assert stands.state is State.DONE
    assert stands.ref is not None


def test_one_of_many_cancelled_disturbs_no_other(shop: Shop) -> None:
    ledger = shop.aio()
    gate = asyncio.Event()

    @ledger.action("shop.order", **declared("searchable"))
    async def order(call, *, order):
        found = send(shop.target, call)
        if order == 3:
            gate.set()
            await asyncio.sleep(3600)
        return found

    order.lookup(control=CONTROL)(lambda call: shop.target.look(call.target_key))

    async def main() -> list[Any]:
        tasks = [asyncio.create_task(order.submit(order=n, wait=0)) for n in range(6)]
        await gate.wait()
        tasks[3].cancel()
        return await asyncio.gather(*tasks, return_exceptions=True)

    ended = asyncio.run(main())
    assert [isinstance(e, asyncio.CancelledError) for e in ended] == [n == 3 for n in range(6)]
    assert all(r.done for n, r in enumerate(ended) if n != 3)
    shop.settle()
    assert len(shop.target.effects()) == 6 + 1  # and the control


def test_awaits_are_counted_until_the_end() -> None:
    """The instrument itself: it cancels at each await once, and says when it was through."""

    async def three() -> Done:
        for _ in range(3):
            await asyncio.sleep(0)
        return Done()

    assert [cancelled_at(n, "early", three) for n in range(1, 5)] == [True, True, True, False]

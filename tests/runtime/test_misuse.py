"""What a newcomer writes, and what threads and forks leave behind."""

from __future__ import annotations

import asyncio
import functools
import os
import signal
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import ascertain
from ascertain import Absent, ActionInvalid, Contract, Done, Reason, State, Unknown
from shop import Shop


def in_a_loop(test: Callable[..., Any]) -> Callable[..., None]:
    """Run an async test in a loop of its own."""

    @functools.wraps(test)
    def run(**given: Any) -> None:
        asyncio.run(test(**given))

    return run


def act(shop: Shop, name: str, function: Any, ledger: Any = None, **more: Any) -> Any:
    given = {"key": "{order}", "owner": "anna", "scope": name, **more}
    return (ledger or shop.ledger).action(name, **given)(function)


# --- what a newcomer writes ---------------------------------------------------------------------


def test_a_generator_function_is_refused(shop: Shop) -> None:
    def code(call, *, order):
        yield Done()

    async def later(call, *, order):
        yield Done()

    for wrong in (code, later):
        with pytest.raises(ActionInvalid, match="yield"):
            act(shop, "g", wrong)


class Coroutine:
    """An object that is called as a coroutine function."""

    async def __call__(self, call, *, order):
        return Done(ref="1")


async def plain(call, *, order):
    return Done(ref="1")


@functools.wraps(plain)
def decorated(*args, **given):
    return plain(*args, **given)


@pytest.mark.parametrize(
    "code",
    [Coroutine(), plain, decorated, functools.partial(plain)],
    ids=["object", "function", "decorated", "partial"],
)
def test_coroutines_in_every_shape_are_awaited(shop: Shop, code: Callable[..., Any]) -> None:
    action, asynchronous = act(shop, "a", code), act(shop, "a", code, shop.aio())
    assert action.submit(order=1).done

    async def within_a_loop() -> None:
        assert action.submit(order=2).reason is Reason.NONE
        await asynchronous.submit(order=3)

    asyncio.run(within_a_loop())
    # The reference "1" is the first one's, so the others' answers are not theirs.
    assert [len(shop.ledger.engine.store.attempts(r.id)) for r in shop.ledger.find()] == [1, 1, 1]
    entries = [shop.ledger.history(r)[-1].kind for r in shop.ledger.find()]
    assert sorted(entries) == ["finding", "foreign", "foreign"]


def test_a_look_up_coroutine_works_within_a_loop(shop: Shop) -> None:
    none = Contract(id="shop.asked")
    action = act(shop, "a", lambda call, *, order: Unknown("x"), contract=none)

    async def look(call):
        return Done(ref="1") if call.target_key == wanted[0] else Absent()

    action.lookup()(look)
    wanted: list[str] = []

    async def within_a_loop() -> State:
        r = action.submit(order=1, wait=0)
        wanted.append(r.target_key)
        return shop.ledger.confirm(r, wait=0).state

    assert asyncio.run(within_a_loop()) is State.DONE


@in_a_loop
async def test_a_bulk_action_runs_on_an_async_ledger(shop: Shop) -> None:
    ledger = shop.aio()

    async def code(call, items):
        return [Done(ref=f"r{item.key}") for item in items]

    action = act(shop, "bulk", code, ledger, batch=True)
    assert (await action.submit(order=1)).done
    second = await action.enqueue(order=2)
    await ledger.recover()
    assert (await ledger.get(second)).done


# --- threads and forks --------------------------------------------------------------------------


@in_a_loop
async def test_slow_plain_functions_hold_up_no_ledger_step(shop: Shop) -> None:
    ledger, go = shop.aio(), threading.Event()

    def slow(call, *, order):
        go.wait(20)
        return Done(ref=f"s{order}")

    async def quick(call, *, order):
        return Done(ref=f"q{order}")

    waiting, other = act(shop, "slow", slow, ledger), act(shop, "quick", quick, ledger)
    tasks = [asyncio.create_task(waiting.submit(order=n)) for n in range(16)]
    await asyncio.sleep(0.3)
    try:
        assert (await asyncio.wait_for(other.submit(order=1), 5)).done
    finally:
        go.set()
    await asyncio.gather(*tasks)


def test_a_child_has_threads_and_a_worker_of_its_own(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/ledger.db"

    async def once(order: int) -> bool:
        async with await ascertain.open_async(url) as ledger:

            @ledger.action("a", key="{order}", owner="anna")
            async def action(call, *, order):
                return Done(ref=f"r{order}")

            return bool((await action.submit(order=order)).done)

    assert asyncio.run(once(1))
    with ascertain.open(url) as ledger:
        ledger.start_worker()
        child = os.fork()
        if child == 0:
            signal.alarm(20)
            good = asyncio.run(once(2)) and ledger.start_worker().is_alive()
            os._exit(0 if good else 1)
        assert os.waitpid(child, 0)[1] == 0

"""What is interrupted or cancelled half-way: no lease without an actor, no finding lost."""

from __future__ import annotations

import asyncio
import gc
import math
import threading
import time
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import ascertain
from ascertain import Accepted, Done, InputRefused, State
from ascertain.runtime import loop as loops
from shop import CONTROL, Shop, declared, send


def stands(shop: Shop) -> list[Any]:
    """The status of everything in the store."""
    found = shop.ledger.find(limit=100)
    return [shop.ledger.store.snapshots([r.id])[r.id].status for r in found]


# --- one asyncio caller --------------------------------------------------------------------------


def test_a_cancellation_in_the_step_of_the_loop_in_which_a_commit_lands(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def main() -> tuple[set[Any], set[Any]]:
        ledger = await ascertain.open_async(str(tmp_path / "ledger.db"))

        @ledger.action("x", key="{n}", owner="anna")
        async def act(call, *, n):
            return Done(ref=n)

        real, hit = loops.Landings._wake, []

        def wake(self: Any) -> None:
            if not hit:
                hit.append(task.cancel())
            real(self)

        monkeypatch.setattr(loops.Landings, "_wake", wake)
        task = asyncio.create_task(act.submit(n="1"))
        ended = await asyncio.wait({task}, timeout=5)
        await ledger.close()
        return ended

    done, pending = asyncio.run(main())
    assert not pending
    assert next(iter(done)).cancelled()


@pytest.mark.parametrize("raised", [StopIteration, asyncio.CancelledError], ids=["stop", "own"])
def test_what_no_future_can_hold_is_an_error_like_any_other(tmp_path: Path, raised: Any) -> None:
    async def main() -> Any:
        ledger = await ascertain.open_async(str(tmp_path / "ledger.db"))

        @ledger.action("x", key="{n}", owner="anna")
        def act(call, *, n):
            raise raised

        found = await asyncio.wait_for(act.submit(n="1"), 5)
        await ledger.close()
        return found

    assert asyncio.run(main()).state is State.UNKNOWN


def test_a_bulk_finding_is_kept_though_its_caller_is_cancelled(tmp_path: Path) -> None:
    async def main() -> Any:
        ledger = await ascertain.open_async(str(tmp_path / "ledger.db"))
        started = threading.Event()

        @ledger.action("x", key="{n}", owner="anna", batch=True)
        def act(call, items):
            started.set()
            time.sleep(0.2)
            return [Done(ref=i.key) for i in items]

        task = asyncio.create_task(act.submit(n="1"))
        while not started.is_set():
            await asyncio.sleep(0.005)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        [found] = await ledger.find()
        await ledger.close()
        return found

    assert (found := asyncio.run(main())).state is State.DONE
    assert found.ref == "1"


def test_a_loop_that_has_ended_is_not_kept(tmp_path: Path) -> None:
    async def main() -> Any:
        ledger = await ascertain.open_async(str(tmp_path / "ledger.db"))

        @ledger.action("x", key="{n}", owner="anna")
        async def act(call, *, n):
            return Done(ref=n)

        await act(n="1")
        await ledger.close()
        return weakref.ref(asyncio.get_running_loop())

    kept = asyncio.run(main())
    gc.collect()
    assert kept() is None


@pytest.mark.parametrize("wait", [math.inf, math.nan, "soon"])
def test_how_long_to_wait_is_known_before_anything_is_claimed(shop: Shop, wait: Any) -> None:
    if wait == math.inf:
        assert shop.order(order=1, wait=wait).done
        return
    with pytest.raises(ValueError, match=r"NaN|float"):
        shop.order(order=1, wait=wait)
    assert not shop.ledger.find()


# --- sweeps --------------------------------------------------------------------------------------


class Stop(BaseException):
    """Ctrl-C, or the end of the process, while code runs."""


@pytest.mark.parametrize("how", ["sync", "async"])
def test_an_interrupted_sweep_leaves_no_lease_without_an_actor(
    make_shop: Callable[..., Shop], how: str
) -> None:
    shop = make_shop()
    for n in range(12):
        shop.die(n, sent=True)
    shop.clock.advance(71)
    looks = [0]

    def look(call: Any) -> Any:
        looks[0] += 1
        if looks[0] == 12:
            raise Stop
        return shop.target.look(call.target_key)

    ledger: Any = shop.aio() if how == "async" else shop.another()
    code = lambda call, *, order, note="": send(shop.target, call, str(order))  # noqa: E731
    action = ledger.action("shop.order", **declared("searchable"))(code)

    async def looked(call: Any) -> Any:
        await asyncio.sleep(0)
        return look(call)

    action.lookup(control=CONTROL)(looked if how == "async" else look)
    with pytest.raises(Stop):
        asyncio.run(ledger.recover()) if how == "async" else ledger.recover()
    assert looks[0] == 12
    assert [s.token for s in stands(shop)] == [None] * 12


def test_a_finding_that_meets_a_newer_fact_outlives_its_neighbours_interrupt(shop: Shop) -> None:
    other = shop.another()
    seen: list[str] = []

    def pay(call: Any, *, n: str) -> Done:
        seen.append(n)
        if n == "1":
            other.report(ids["1"], Accepted(), by="webhook", report="evt-1")
        if n == "2":
            raise Stop
        return Done(ref=f"r{n}")

    acts = [x.action("pay", key="{n}", owner="anna")(pay) for x in (shop.ledger, other)]
    ids = {}
    for n in "0123":
        ids[n] = acts[1].enqueue(n=n).id
        shop.clock.advance(0.01)
    with pytest.raises(Stop):
        shop.ledger.recover()
    assert seen == ["0", "1", "2"]
    assert (shop.ledger.get(ids["1"]).state, shop.ledger.get(ids["1"]).ref) == (State.DONE, "r1")
    assert all(s.token is None for s in stands(shop))


def test_a_lookup_that_is_cancelled_by_itself_starves_nobody(shop: Shop) -> None:
    for n in range(4):
        shop.die(n, sent=True)
    shop.clock.advance(71)
    ledger = shop.aio()
    code = lambda call, *, order, note="": send(shop.target, call, str(order))  # noqa: E731
    action = ledger.action("shop.order", **declared("searchable"))(code)

    @action.lookup(control=CONTROL)
    async def look(call: Any) -> Any:
        if call.key == "0":
            inner = asyncio.create_task(asyncio.sleep(9))
            inner.cancel()
            await inner
        return shop.target.look(call.target_key)

    asyncio.run(ledger.recover())
    found = {r.key: shop.get(r) for r in shop.ledger.find(limit=10)}
    assert [found[n].state for n in "123"] == [State.DONE] * 3
    assert (found["0"].state, found["0"].lookups) == (State.UNKNOWN, 1)


# --- contents and versions -----------------------------------------------------------------------


@pytest.mark.parametrize("approval", ["editor", False])
def test_a_batch_never_sends_another_content_than_the_pinned_one(shop: Shop, approval: Any) -> None:
    """Laws 9, 11: also where the input is not kept, and the caller of a batch brings it again."""
    sent: list[Any] = []

    @shop.ledger.action("x.bulk", key="{n}", owner="anna", batch=True, content=("text",),
                        on_changed="reuse", store_input=("n",), approval=approval)  # fmt: skip
    def bulk(call, items):
        sent.extend(i.input["text"] for i in items)
        return [Done(ref=i.key) for i in items]

    first = bulk.enqueue(n="1", text="approved")
    if approval:
        shop.ledger.approve(first, by="eva", role="editor")
    with pytest.raises(InputRefused):
        bulk.batch([{"n": "1", "text": "other"}])
    assert sent == []
    assert bulk.batch([{"n": "1", "text": "approved"}])[0].done
    assert sent == ["approved"]


def test_an_older_version_that_ends_after_it_was_overridden_sees_its_successor(shop: Shop) -> None:
    """Law 10: two effects of two versions are one duplicate review each, in whatever order."""
    later: list[Callable[[], Any]] = []

    @shop.ledger.action("page", key="{n}", owner="anna")
    def page(call, *, n):
        if later:
            later.pop()()
        return Done(ref=f"r{n}")

    def override() -> None:
        [older] = shop.ledger.find(action="page")
        page.using(supersedes=older.id, reason="a correction", override="boss").submit(n="2")

    later.append(override)
    assert page.submit(n="1").ref == "r1"
    assert shop.reviews() == ["duplicate", "duplicate"]

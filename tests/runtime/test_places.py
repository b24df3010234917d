"""Plain code of actions runs in so many threads at once; who finds none free claims nothing."""

from __future__ import annotations

import asyncio
import functools
import threading
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

import ascertain
from ascertain import AsyncLedger, Done, NotDone, State
from ascertain.runtime import loop
from ascertain.runtime.loop import THREADS, threads

MANY = THREADS + 14


async def states(ledger: AsyncLedger) -> Counter[State]:
    return Counter(one.state for one in await ledger.find(limit=2 * THREADS))


async def until(ledger: AsyncLedger, wanted: dict[State, int]) -> None:
    while await states(ledger) != Counter(wanted):
        await asyncio.sleep(0.01)


def test_no_more_is_claimed_than_can_start_now(tmp_path: Path) -> None:
    """A burst of callers claimed all at once: most waited for a thread while the time of their
    attempts ran, and were cut off in the middle of it; half of them ended with a person."""
    go, began = threading.Event(), Counter[str]()

    async def main() -> None:
        ledger = await ascertain.open_async(str(tmp_path / "ledger.db"))

        @ledger.action("make", key="{name}", owner="anna")
        def make(call: Any, *, name: str) -> Done:
            began[name] += 1
            assert go.wait(15)
            return Done(ref=name)

        callers = [asyncio.create_task(make.submit(name=f"n{n}")) for n in range(MANY)]
        await until(ledger, {State.RUNNING: THREADS, State.PENDING: MANY - THREADS})
        again = await make.submit(name="n0", wait=0)
        assert again.state is State.RUNNING, "who only asks needs no thread"
        late = await make.submit(name=f"n{MANY - 1}", wait=0)
        assert late.state is State.PENDING, "who repeats it does not stand in the line as well"
        callers[-1].cancel()
        go.set()
        receipts = await asyncio.gather(*callers, return_exceptions=True)
        assert isinstance(receipts[-1], asyncio.CancelledError)
        await until(ledger, {State.DONE: MANY - 1, State.PENDING: 1})
        assert (await make.submit(name=f"n{MANY - 1}")).state is State.DONE
        assert began == {f"n{n}": 1 for n in range(MANY)}
        await ledger.close()

    asyncio.run(main())


@pytest.mark.parametrize("why", ["its input is not kept", "his credentials are not kept"])
def test_what_only_its_caller_can_do_is_recorded_when_it_can_begin(
    tmp_path: Path, why: str
) -> None:
    """A worker would try it in vain."""
    kept = "none" if "input" in why else "all"
    go = threading.Event()

    async def main() -> None:
        ledger = await ascertain.open_async(str(tmp_path / "ledger.db"))

        @ledger.action("make", key="{name}", owner="anna", store_input=kept)
        def make(call: Any, *, name: str) -> Done:
            assert go.wait(15)
            return Done(ref=name)

        bound = make.using()
        bound.options = replace(bound.options, only_here=kept == "all")
        callers = [asyncio.create_task(bound.submit(name=f"n{n}")) for n in range(MANY)]
        await until(ledger, {State.RUNNING: THREADS})
        again = await asyncio.wait_for(bound.submit(name="n0", wait=0), 10)
        assert again.state is State.RUNNING, "who only asks needs no thread"
        await ledger.recover()
        go.set()
        assert all(r.state is State.DONE for r in await asyncio.gather(*callers))
        await ledger.close()

    asyncio.run(main())


def test_who_asks_the_target_again_waits_for_a_thread_no_longer_than_he_says(
    tmp_path: Path,
) -> None:
    go = threading.Event()

    async def main() -> None:
        ledger = await ascertain.open_async(str(tmp_path / "ledger.db"))

        @ledger.action("make", key="{name}", owner="anna")
        def make(call: Any, *, name: str) -> Done:
            assert name == "first" or go.wait(15)
            return Done(ref=name)

        @make.lookup(late="1s")
        def look(call: Any) -> Done:
            return Done(ref="first")

        first = await make.submit(name="first")
        callers = [asyncio.create_task(make.submit(name=f"n{n}")) for n in range(THREADS)]
        await until(ledger, {State.RUNNING: THREADS, State.DONE: 1})
        assert (await ledger.confirm(first, wait=0)).lookups == 0
        go.set()
        assert all(r.state is State.DONE for r in await asyncio.gather(*callers))
        assert (await ledger.confirm(first, wait=5)).lookups == 1
        await ledger.close()

    asyncio.run(main())


def test_coroutines_need_no_thread(tmp_path: Path) -> None:
    async def main() -> None:
        ledger, go = await ascertain.open_async(str(tmp_path / "ledger.db")), asyncio.Event()

        @ledger.action("make", key="{name}", owner="anna")
        async def make(call: Any, *, name: str) -> Done:
            await go.wait()
            return Done(ref=name)

        callers = [asyncio.create_task(make.submit(name=f"n{n}")) for n in range(MANY)]
        await until(ledger, {State.RUNNING: MANY})
        go.set()
        assert all(r.state is State.DONE for r in await asyncio.gather(*callers))
        await ledger.close()

    asyncio.run(main())


def test_who_waits_for_a_time_holds_no_place(tmp_path: Path) -> None:
    """While they stood in the line another process tried theirs, and the target asked for time:
    they slept in their places, and nobody else could begin."""
    go = threading.Event()

    async def main() -> None:
        ledger = await ascertain.open_async(str(tmp_path / "ledger.db"))

        @ledger.action("make", key="{name}", owner="anna")
        def make(call: Any, *, name: str) -> Done:
            assert not name.startswith("slow") or go.wait(15)
            return Done(ref=name)

        slow = [asyncio.create_task(make.submit(name=f"slow{n}")) for n in range(THREADS)]
        await until(ledger, {State.RUNNING: THREADS})
        late = [asyncio.create_task(make.submit(name=f"late{n}", wait=90)) for n in range(THREADS)]
        await until(ledger, {State.RUNNING: THREADS, State.PENDING: THREADS})
        with ascertain.open(str(tmp_path / "ledger.db")) as elsewhere:

            @elsewhere.action("make", key="{name}", owner="anna")
            def throttled(call: Any, *, name: str) -> NotDone:
                return NotDone("throttled", "not so fast", retry_after=90)

            for n in range(THREADS):
                throttled.submit(name=f"late{n}", wait=0)
        go.set()
        await asyncio.gather(*slow)
        assert (await asyncio.wait_for(make.submit(name="next"), 20)).state is State.DONE
        for one in late:
            one.cancel()
        await asyncio.gather(*late, return_exceptions=True)
        await ledger.close()

    asyncio.run(main())


def test_whose_time_ends_in_the_line_is_told_how_it_stands_then(tmp_path: Path) -> None:
    go = threading.Event()

    async def main() -> None:
        ledger = await ascertain.open_async(str(tmp_path / "ledger.db"))

        @ledger.action("make", key="{name}", owner="anna")
        def make(call: Any, *, name: str) -> Done:
            assert go.wait(15)
            return Done(ref=name)

        callers = [asyncio.create_task(make.submit(name=f"n{n}")) for n in range(THREADS + 1)]
        await until(ledger, {State.RUNNING: THREADS, State.PENDING: 1})
        again = asyncio.create_task(make.submit(name=f"n{THREADS}", wait=1.5))
        await asyncio.sleep(0.5)  # it stands in the line by now
        with ascertain.open(str(tmp_path / "ledger.db")) as elsewhere:

            @elsewhere.action("make", key="{name}", owner="anna")
            def made(call: Any, *, name: str) -> Done:
                return Done(ref=name)

            assert made.submit(name=f"n{THREADS}").state is State.DONE
        assert (await again).state is State.DONE
        go.set()
        await asyncio.gather(*callers)
        await ledger.close()

    asyncio.run(main())


def plainly(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def wrapper(*args: Any, **given: Any) -> Any:
        return function(*args, **given)

    return wrapper


def test_a_decorated_coroutine_leaves_its_place_to_what_it_calls(tmp_path: Path) -> None:
    """As many of them as there are places kept all of these, and waited for one for ever."""

    async def main() -> None:
        ledger = await ascertain.open_async(str(tmp_path / "ledger.db"))
        inside, all_inside = Counter[str](), asyncio.Event()

        @ledger.action("part", key="{name}", owner="anna")
        def part(call: Any, *, name: str) -> Done:
            return Done(ref=name)

        @ledger.action("whole", key="{name}", owner="anna")
        @plainly
        async def whole(call: Any, *, name: str) -> Done:
            inside[name] += 1
            if len(inside) == THREADS:
                all_inside.set()
            await all_inside.wait()
            return Done(ref=(await part.submit(name=name)).ref)

        callers = [whole.submit(name=f"n{n}") for n in range(THREADS)]
        receipts = await asyncio.wait_for(asyncio.gather(*callers), 25)
        assert all(r.state is State.DONE for r in receipts)
        await ledger.close()

    asyncio.run(main())


def test_a_burst_of_short_code_is_claimed_as_it_is_recorded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Most callers found no place free at that very time, were recorded first and claimed by a
    commit of its own: that cost twice as much."""
    monkeypatch.setattr(loop, "MOMENT", 20.0)  # however slow this machine is

    async def main() -> None:
        ledger = await ascertain.open_async(str(tmp_path / "ledger.db"))
        put, recorded = ledger.engine.store.put, Counter[bool]()

        def counted(change: Any, *then: Any) -> Any:
            if getattr(change, "operation", None) is not None:
                recorded[change.attempt is not None] += 1
            return put(change, *then)

        monkeypatch.setattr(ledger.engine.store, "put", counted)

        @ledger.action("make", key="{name}", owner="anna")
        def make(call: Any, *, name: str) -> Done:
            return Done(ref=name)

        receipts = await asyncio.gather(*(make.submit(name=f"n{n}") for n in range(MANY)))
        assert all(r.state is State.DONE for r in receipts)
        assert recorded == {True: MANY}
        await ledger.close()

    asyncio.run(main())


def test_each_loop_of_a_process_has_its_own_threads(tmp_path: Path) -> None:
    """Two shared them, and each claimed as much as there were: half of it waited, claimed."""
    go, began = threading.Event(), Counter[str]()

    async def main(mine: str) -> list[Any]:
        ledger = await ascertain.open_async(str(tmp_path / f"{mine}.db"))

        @ledger.action("make", key="{name}", owner="anna")
        def make(call: Any, *, name: str) -> Done:
            began[mine] += 1
            assert go.wait(15)
            return Done(ref=name)

        callers = [asyncio.create_task(make.submit(name=f"n{n}")) for n in range(THREADS)]
        await until(ledger, {State.RUNNING: THREADS})
        while began[mine] < THREADS and not go.is_set():
            await asyncio.sleep(0.01)
        receipts = await asyncio.gather(*callers)
        await ledger.close()
        return receipts

    with ThreadPoolExecutor(2) as both:
        ends = [both.submit(asyncio.run, main(mine)) for mine in ("one", "two")]
        deadline = time.monotonic() + 12
        while began.total() < 2 * THREADS and time.monotonic() < deadline:
            time.sleep(0.01)
        there = began.total()
        go.set()
        assert all(r.state is State.DONE for end in ends for r in end.result())
    assert there == 2 * THREADS

    async def after() -> bool:
        return threads.here() is not None and any(one.is_closed() for one in threads.places)

    assert not asyncio.run(after()), "loops that have ended are not kept"

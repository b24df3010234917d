"""Plain code of actions runs in so many threads at once; who finds none free claims nothing."""

from __future__ import annotations

import asyncio
import threading
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

import ascertain
from ascertain import AsyncLedger, Done, State
from ascertain.runtime.loop import THREADS

MANY = THREADS + 14


async def states(ledger: AsyncLedger) -> Counter[State]:
    return Counter(one.state for one in await ledger.find(limit=MANY))


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

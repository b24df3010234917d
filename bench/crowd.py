"""64 callers at once, as threads and as tasks, against one connection behind a lock."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack
from itertools import count
from typing import Any

from bench.common import TEXT, Place, median, noop, paired, ratio

import ascertain

CALLERS = 64


def threads(act: Any) -> Callable[[float], float]:
    """Make a side of 64 threads that call one after the other."""
    numbers = count(1)

    def run(seconds: float) -> float:
        done = [0] * CALLERS
        start = time.perf_counter()

        def caller(place: int) -> None:
            while time.perf_counter() - start < seconds:
                act(number=next(numbers), text=TEXT)
                done[place] += 1

        callers = [threading.Thread(target=caller, args=(n,)) for n in range(CALLERS)]
        for one in callers:
            one.start()
        for one in callers:
            one.join()
        return sum(done) / (time.perf_counter() - start)

    return run


def tasks(act: Any, loop: asyncio.AbstractEventLoop) -> Callable[[float], float]:
    """Make a side of 64 tasks on one loop."""
    numbers = count(1)

    async def crowd(seconds: float) -> float:
        start = time.perf_counter()

        async def caller() -> int:
            done = 0
            while time.perf_counter() - start < seconds:
                await act(number=next(numbers), text=TEXT)
                done += 1
            return done

        done = await asyncio.gather(*(caller() for _ in range(CALLERS)))
        return sum(done) / (time.perf_counter() - start)

    return lambda seconds: loop.run_until_complete(crowd(seconds))


def asynchronous(ledger: Any, loop: asyncio.AbstractEventLoop) -> Any:
    """Give the action of an asyncio ledger on a ledger's store."""
    made = loop.run_until_complete(ascertain.open_async(ledger.store))
    return noop(made, asynchronous=True)


def crowd(at: Place, kind: str, *, quick: bool) -> dict[str, float]:
    """Measure threads, then tasks."""
    seconds, rounds = (0.5, 2) if quick else (1.0, 7)
    found: dict[str, float] = {}
    for form in ("threads", "tasks"):
        with ExitStack() as open_, closing_loop() as loop:
            ledgers = [
                open_.enter_context(at.ledger(kind)),
                open_.enter_context(at.ledger(kind, alone=True)),
            ]
            if form == "threads":
                sides = [threads(noop(ledger)) for ledger in ledgers]
            else:
                sides = [tasks(asynchronous(ledger, loop), loop) for ledger in ledgers]
            named = dict(zip(("coalesced", "alone"), sides, strict=True))
            rates = paired(named, seconds, rounds)
        found |= {
            f"{kind}_64_{form}_to_uncoalesced": ratio(rates, "coalesced", "alone"),
            f"{kind}_64_{form}_per_s": median(rates["coalesced"]),
            f"{kind}_64_{form}_uncoalesced_per_s": median(rates["alone"]),
        }
    return found


class closing_loop:  # noqa: N801 - read as a word of the language
    """An event loop that is closed at the end."""

    def __enter__(self) -> asyncio.AbstractEventLoop:
        self.loop = asyncio.new_event_loop()
        return self.loop

    def __exit__(self, *_: object) -> None:
        self.loop.close()

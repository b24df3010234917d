"""What a request began goes on without its client: it is held here until it has ended.

A client that goes away, or whose time is over, never cancels an effect; only the end of the
server does, after a bound, and then what was under way becomes unknown (law 3).
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Coroutine
from typing import Any, TypeVar

from .holding import LATER, holding
from .problems import ProblemError

T = TypeVar("T")
MOST = 1024  # under way at once: what waits for a slow target has no other bound
END_WITHIN = 20.0  # seconds that what is under way has when the server stops


class InFlight:
    """The tasks of requests that are under way."""

    def __init__(self) -> None:
        """Begin with none."""
        self._tasks: set[asyncio.Task[Any]] = set()

    def __len__(self) -> int:
        """Return how many are under way."""
        return len(self._tasks)

    def admit(self) -> None:
        """End the request where too many are under way; nothing was recorded for it."""
        if len(self._tasks) >= MOST:
            raise ProblemError("overloaded", f"{MOST} operations are under way", retry_after=LATER)

    async def within(self, work: Coroutine[Any, Any, T], seconds: float) -> asyncio.Task[T]:
        """Start work and wait for its end or for so many seconds; it goes on in either case."""
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._ended)
        hold = holding.get()
        if hold is not None:
            hold.share()
            task.add_done_callback(hold.leave)
        await asyncio.wait((task,), timeout=seconds)
        return task

    def _ended(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        if not task.cancelled():
            task.exception()  # looked at: whoever waited for it may be gone

    async def close(self, within: float = END_WITHIN) -> None:
        """Wait for what is under way; what has not ended by then is cancelled, which the ledger
        records before it returns."""
        if self._tasks:
            await asyncio.wait(tuple(self._tasks), timeout=within)
        left = tuple(self._tasks)
        for task in left:
            task.cancel()
        for task in left:
            with contextlib.suppress(asyncio.CancelledError, Exception):
                await task

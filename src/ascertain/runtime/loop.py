"""What waits on an event loop without stopping it: threads for steps that wait, commits without
a thread, and no cancellation that loses a write."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections import deque
from collections.abc import Callable
from concurrent.futures import CancelledError, ThreadPoolExecutor
from contextvars import copy_context
from typing import Any, Generic, TypeVar, overload
from weakref import WeakKeyDictionary, ref

from ascertain.core.model import Change
from ascertain.store.base import Posted, Posting, Store, Written

T = TypeVar("T")
A = TypeVar("A", Written, Posted)
THREADS = 16  # ledger steps under way at once in one process; plain code, for one loop
MOMENT = 0.1  # seconds in which short code of a burst of callers has had its turn


class Threads:
    """Where ledger steps run, and apart from them plain functions of actions: however long
    these take, no outcome waits for them."""

    def __init__(self) -> None:
        """Start without a thread."""
        self.steps = ThreadPoolExecutor(THREADS, thread_name_prefix="ascertain-aio")
        self.places: WeakKeyDictionary[asyncio.AbstractEventLoop, Places] = WeakKeyDictionary()

    @property
    def code(self) -> ThreadPoolExecutor:
        """Where plain functions of actions run for the running loop."""
        return self.here().code

    def here(self) -> Places:
        """Return the places of the running loop."""
        loop = asyncio.get_running_loop()
        found = self.places.get(loop)
        if found is None:
            for other in self.places.keyrefs():  # a semaphore keeps its loop
                if (ended := other()) is not None and ended.is_closed():
                    self.places.pop(ended, None)
            found = self.places[loop] = Places()
        return found


class Places:
    """Threads for plain code of one loop's callers, and who waits for one of them. Other loops
    of the process have their own: whoever has a place here finds a thread free."""

    def __init__(self) -> None:
        """Start without a thread."""
        self.free = asyncio.Semaphore(THREADS)
        self.code = ThreadPoolExecutor(THREADS, thread_name_prefix="ascertain-code")


threads = Threads()
os.register_at_fork(after_in_child=threads.__init__)  # type: ignore[misc]  # threads stay behind


class Room:
    """A caller's place among those whose plain code can run in a thread at once. What claims
    without one would wait for a thread while its time runs (law 2)."""

    def __init__(self, *, needed: bool = True) -> None:
        """Begin without one; where none is needed, it is always there."""
        self._needed, self._held = needed, False
        self.until: float | None = None  # time of the loop until which it is waited for

    async def soon(self, until: float) -> bool:
        """Take one that is free within a moment, and before a time of the loop; return whether
        there is one. What is recorded first and claimed then costs twice as much."""
        later, self.until = self.until, min(until, asyncio.get_running_loop().time() + MOMENT)
        try:
            return await self.wait()
        finally:
            self.until = later

    async def wait(self) -> bool:
        """Take one once it is free; return whether there is one, which is false only where the
        time to wait for it was over."""
        if self._needed and not self._held:
            try:
                async with asyncio.timeout_at(self.until):
                    await threads.here().free.acquire()
            except TimeoutError:
                return False
            self._held = True
        return True

    def leave(self) -> None:
        """Give it to the next one, if there is one to give."""
        if self._held:
            self._held = False
            threads.here().free.release()


async def hop(function: Callable[..., T], *args: Any, **kwargs: Any) -> T:
    """Run a ledger step in a thread and wait for it; see `away`."""
    return await away(threads.steps, lambda: function(*args, **kwargs))


async def away(pool: ThreadPoolExecutor, function: Callable[[], T]) -> T:
    """Run a function in a thread and wait for it, whatever happens to the caller.

    A cancellation that arrives meanwhile is raised after the step has ended, so that what was
    written is known and recorded.
    """
    value, cancelled = await patiently(in_thread(pool, function))
    if cancelled is not None:
        raise cancelled
    return value


def in_thread(pool: ThreadPoolExecutor, function: Callable[[], T]) -> asyncio.Future[T]:
    """Run a function in a thread of a pool, in the caller's context."""
    context = copy_context()

    def run() -> T:
        try:
            return context.run(function)
        except (StopIteration, CancelledError) as error:
            # A future cannot hold the first, and takes the second for its own cancellation.
            raise RuntimeError(f"the code raised {type(error).__name__}: {error}") from error

    return asyncio.get_running_loop().run_in_executor(pool, run)


async def patiently(
    future: asyncio.Future[T],
) -> tuple[T, asyncio.CancelledError | None]:
    """Wait for a future even if the caller is cancelled; return that cancellation with its
    value. Where both went wrong, the cancellation is raised."""
    cancelled: asyncio.CancelledError | None = None
    while not future.done():
        try:
            await asyncio.shield(future)
        except asyncio.CancelledError as error:
            if future.cancelled():
                raise
            cancelled = error
        except Exception:  # noqa: BLE001 - raised by result() below
            break
    if cancelled is not None and (future.cancelled() or future.exception() is not None):
        raise cancelled
    return future.result(), cancelled


async def posted(store: Store, posting: Posting) -> Posted:
    """Write a posting and return when it is durable, whatever happens to the caller: his
    cancellation is raised afterwards."""
    flight = Flight(store, posting)
    cancelled = await flight.landed()
    answer = flight.result()
    if cancelled is not None:
        raise cancelled
    return answer


class Flight(Generic[A]):
    """A change or posting on its way to the disk, awaited without a thread."""

    @overload
    def __init__(self: Flight[Written], store: Store, change: Change) -> None: ...

    @overload
    def __init__(self: Flight[Posted], store: Store, change: Posting) -> None: ...

    def __init__(self, store: Store, change: Change | Posting) -> None:
        """Queue it."""
        landings = _landings_here()
        self._there = False
        self._waiter = asyncio.get_running_loop().create_future()
        self._commit: Any = store.put(change, lambda: landings.add(self))  # on its own thread

    def wake(self) -> None:
        """Wake who waits for it, on the loop."""
        self._there = True  # also where a cancellation has just taken the waiter away
        if not self._waiter.done():
            self._waiter.set_result(True)

    async def landed(self) -> asyncio.CancelledError | None:
        """Wait until it is answered, whatever happens to the caller; return his cancellation."""
        cancelled: asyncio.CancelledError | None = None
        while not self._there:
            try:
                await self._waiter
            except asyncio.CancelledError as error:
                cancelled = error
                if self._waiter.cancelled():  # by the caller's, not by what landed
                    self._waiter = asyncio.get_running_loop().create_future()
        return cancelled

    def result(self, timeout: float | None = None) -> A:
        """Return the answer, or raise what it met; it is there once it has landed."""
        answer: A = self._commit.result(timeout)
        return answer


class Landings:
    """Wakes a loop once for all the commits that land together."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        """Start with none; a loop that has ended is not kept."""
        self._loop = ref(loop)
        self._landed: deque[Flight[Any]] = deque()
        self._called = False

    def add(self, flight: Flight[Any]) -> None:
        """Have it woken; called on the committer's thread."""
        self._landed.append(flight)
        loop = self._loop()
        if not self._called and loop is not None:
            self._called = True
            with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits
                loop.call_soon_threadsafe(self._wake)

    def _wake(self) -> None:
        self._called = False  # first: what is added from now on calls again
        while self._landed:
            self._landed.popleft().wake()


_landings: WeakKeyDictionary[asyncio.AbstractEventLoop, Landings] = WeakKeyDictionary()


def _landings_here() -> Landings:
    loop = asyncio.get_running_loop()
    found = _landings.get(loop)
    if found is None:
        found = _landings[loop] = Landings(loop)
    return found

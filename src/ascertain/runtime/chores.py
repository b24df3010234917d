"""What workers do again and again, in threads that all of it shares.

A chore is safe in any number of processes, and may be killed at any moment. One that fails or is
slow holds up no other: it waits longer and longer, and has no more threads than its own.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from contextlib import suppress

import msgspec

from ascertain.core.errors import StoreError
from ascertain.core.model import SECOND
from ascertain.targets.classify import describe

from .call import cut
from .clock import Clock
from .telemetry import telemetry

THREADS = 16  # of one process, made when they are needed
LONGEST = 300 * SECOND  # µs between two tries of a chore that fails
DOUBLINGS = 10  # of the time between them
PASSES = 1000  # of one chore in `once`
SETTLE_WITHIN = 5.0  # seconds in which an attempt that was cut is written down
CUT_AGAIN = 0.2  # seconds between two cuts
RETRY = SECOND // 10  # µs after which a chore is looked at again that may not have a thread
TURN = SECOND // 2  # µs after which a long turn ends where another chore waits for a thread


class Chore(msgspec.Struct, frozen=True, kw_only=True):
    """One kind of work. `run` does what is due now and returns how much it did; it is called
    again at once while it did something, else after `every` seconds. Safe to run in several
    processes at a time, and to be killed at any moment."""

    name: str
    every: float
    run: Callable[[], int]
    at_once: int = 1  # threads of one process that may do it at a time


class _Known:
    """A chore, and when it is next done."""

    def __init__(self, chore: Chore, due: int) -> None:
        self.chore, self.due = chore, due
        self.running = self.failed = 0


class Runner:
    """Does chores in a bounded number of threads until it is stopped."""

    def __init__(
        self, chores: Sequence[Chore], *, threads: int = THREADS, clock: Clock | None = None
    ) -> None:
        """Start nothing yet."""
        self._clock = clock or Clock()
        self._most = threads
        now = self._clock.boottime()
        self._known = [_Known(chore, now) for chore in chores]
        self._turns = threading.Condition()
        self._threads: list[threading.Thread] = []
        self._resting = 0  # threads that wait for something to do
        self._stopping = False

    @property
    def stopping(self) -> bool:
        """Whether nothing new is to be begun."""
        return self._stopping

    def add(self, chore: Chore) -> None:
        """Do one more chore from now on."""
        with self._turns:
            self._known.append(_Known(chore, self._clock.boottime()))
            self._turns.notify()

    def start(self) -> None:
        """Begin, with one thread; another one is made whenever all are busy."""
        with self._turns:
            self._grow()

    def ended(self, since: int) -> bool:
        """Tell a long turn that began at that time of the local clock whether it is over: the
        runner stops, or another chore is due and no thread is free."""
        if self._stopping:
            return True
        now = self._clock.boottime()
        if now - since < TURN:
            return False
        with self._turns:
            full = not self._resting and len(self._threads) >= self._most
            return full and self._next(now) is not None

    def once(self) -> int:
        """Do everything that is due once, here, until nothing more is; return how much it was."""
        done = 0
        for known in self._known:
            for _ in range(PASSES):
                worked = 0 if self._stopping else self._done(known.chore)
                done += worked or 0
                if not worked:
                    break
        return done

    def hurry(self) -> None:
        """Begin nothing new from now on; what is under way is finished. Does not wait."""
        self._stopping = True
        if self._turns.acquire(blocking=False):  # else whoever has it looks when it lets go
            try:
                self._turns.notify_all()
            finally:
                self._turns.release()

    def stop(self, within: float) -> bool:
        """Finish what is under way within so many seconds; then cut it, so that its outcome is
        written down as unknown. Returns whether every thread has ended."""
        self._stopping = True
        with self._turns:
            self._turns.notify_all()
        if self._ended(within):
            return True
        telemetry.tell("workers.cut", calls=cut())
        for _ in range(int(SETTLE_WITHIN / CUT_AGAIN)):
            if self._ended(CUT_AGAIN):
                return True
            cut()  # what was just about to send when it was cut before
        return False

    # --- inside ---

    def _ended(self, within: float) -> bool:
        until = self._clock.boottime() + int(within * SECOND)
        for thread in list(self._threads):
            thread.join(max(0.0, (until - self._clock.boottime()) / SECOND))
        return not any(thread.is_alive() for thread in self._threads)

    def _grow(self) -> None:
        """Make a thread if all are busy and there may be more; the turn is held."""
        if not self._resting and len(self._threads) < self._most and not self._stopping:
            name = f"ascertain-chores-{len(self._threads)}"
            thread = threading.Thread(target=self._work, name=name, daemon=True)
            self._threads.append(thread)
            thread.start()

    def _next(self, now: int) -> _Known | None:
        """Return what has been due for longest and may be done by one more thread.

        A chore has a second thread only where enough are left for those that have none, so that
        slow ones never take all.
        """
        free = self._most - sum(k.running for k in self._known)
        kept = min(sum(not k.running for k in self._known), self._most // 2)
        due = [
            k
            for k in self._known
            if k.due <= now and k.running < (k.chore.at_once if free > kept else 1)
        ]
        return min(due, key=lambda k: (k.running, k.due), default=None)

    def _work(self) -> None:
        while True:
            with self._turns:
                known = self._wait()
                if known is None:
                    return
                known.running += 1
                # The next thread comes when this one is not back by then.
                known.due = self._clock.boottime() + self._pause(known)
                self._grow()
            worked = self._done(known.chore)
            with self._turns:
                known.running -= 1
                known.failed = min(known.failed + 1, DOUBLINGS) if worked is None else 0
                at_once = bool(worked)
                known.due = self._clock.boottime() + (0 if at_once else self._pause(known))
                if self._resting:
                    self._turns.notify()

    def _wait(self) -> _Known | None:
        """Wait until something is due, with the turn held; None to end."""
        self._resting += 1
        try:
            while not self._stopping:
                now = self._clock.boottime()
                known = self._next(now)
                if known is not None:
                    return known
                ahead = [k.due - now for k in self._known if k.running < k.chore.at_once]
                ahead = [a if a > 0 else RETRY for a in ahead]  # due, and may not be done now
                wait = max(min(ahead), 1000) / SECOND if ahead else None
                self._turns.wait(wait)
            return None
        finally:
            self._resting -= 1

    def _pause(self, known: _Known) -> int:
        every = min(known.chore.every * 2**known.failed * SECOND, max(LONGEST, known.chore.every))
        return int(every * (0.5 + self._clock.jitter()))

    def _done(self, chore: Chore) -> int | None:
        """Do a chore once; None if it failed, which is told."""
        try:
            return chore.run()
        except Exception as error:  # noqa: BLE001 - one bad chore stops no other
            with suppress(Exception):
                down = isinstance(error, StoreError)  # its own words name the next step
                why = " ".join(str(error).split()) if down else describe(error)
                telemetry.tell("chore.failed", chore=chore.name, error=why)
            return None

"""A clock that stands still until it is told to move."""

from __future__ import annotations

import random
import threading

from ascertain.core.model import SECOND
from ascertain.runtime.clock import Clock

START = 1_700_000_000 * SECOND  # what the wall shows at first, µs since 1970 UTC


class FakeClock(Clock):
    """Virtual clocks, sleep and chance for tests; safe to use from several threads.

    Give the same one to the ledger (`clock=fake`) and to the store (`clock=fake.wall`). Sleeping
    moves it, so nothing waits in real time. The same seed gives the same tokens.
    """

    def __init__(self, start: int = START, *, seed: int = 0, boot: str = "fake-boot") -> None:
        """Begin at `start` µs; another `boot` is another start of the machine."""
        self._boottime, self._wall, self._boot = SECOND, start, boot
        self._chance = random.Random(seed)  # noqa: S311 - the same on every run is the point
        self._mutex = threading.Lock()
        self.jitters: float | None = 1.0  # what `jitter` gives; None for seeded chance

    def boottime(self) -> int:
        """Return the virtual clock of deadlines; only `advance` and `sleep` move it."""
        return self._boottime

    def wall(self) -> int:
        """Return the virtual time of day; `step_wall` makes it jump."""
        return self._wall

    def sleep(self, duration: int) -> None:
        """Move both clocks by that many µs; returns at once."""
        self._move(duration)

    def advance(self, seconds: float) -> None:
        """Let that much time pass, on both clocks."""
        self._move(round(seconds * SECOND))

    def step_wall(self, seconds: float) -> None:
        """Let the time of day jump, forwards or back, as an operator or NTP may do."""
        with self._mutex:
            self._wall += round(seconds * SECOND)

    def token(self) -> int:
        """Return a number of the seeded chance, never 0."""
        with self._mutex:
            return self._chance.getrandbits(63) | 1

    def id_bits(self) -> int:
        """Return 80 bits of the seeded chance."""
        with self._mutex:
            return self._chance.getrandbits(80)

    def jitter(self) -> float:
        """Return `jitters`, or the seeded chance."""
        if self.jitters is not None:
            return self.jitters
        with self._mutex:
            return self._chance.random()

    def boot_id(self) -> str:
        """Name the virtual start of the machine."""
        return self._boot

    def _move(self, duration: int) -> None:
        with self._mutex:
            self._boottime += max(duration, 0)
            self._wall += max(duration, 0)

"""The only place with a clock, chance and sleep; tests put a FakeClock in its place."""

from __future__ import annotations

import os
import random
import time
from pathlib import Path


class Clock:
    """The machine's clocks and chance. All times in integer µs."""

    def boottime(self) -> int:
        """Return a local clock that counts suspend: the clock of deadlines (law 5)."""
        return time.clock_gettime_ns(time.CLOCK_BOOTTIME) // 1000

    def wall(self) -> int:
        """Return µs since 1970 UTC: the store's clock where the store has none of its own."""
        return time.time_ns() // 1000

    def sleep(self, duration: int) -> None:
        """Wait that many µs."""
        time.sleep(duration / 1e6)

    def token(self) -> int:
        """Return a random 63-bit number, never 0: a token or a stamp."""
        return int.from_bytes(os.urandom(8), "big") >> 1 | 1

    def id_bits(self) -> int:
        """Return 80 random bits for an identifier."""
        return int.from_bytes(os.urandom(10), "big")

    def jitter(self) -> float:
        """Return a number from 0 to 1 that spreads retries."""
        return random.random()  # noqa: S311 - it spreads retries, nothing more

    def boot_id(self) -> str:
        """Name this boot of the machine: boot times of another boot mean nothing here."""
        try:
            return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        except OSError:
            return ""

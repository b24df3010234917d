"""The only place with a clock, chance and sleep; tests put a FakeClock in its place."""

from __future__ import annotations

import os
import time
from collections import deque

# Asking the system for each number gives up Python's lock, and getting it back cost 43 µs beside
# a busy committer (64 tasks, cProfile): so many are drawn at once. Taking one is atomic, so no two
# threads get the same; a forked child draws its own; and the time goes into each, so that clones
# of a snapshot of this machine's memory part ways too.
_drawn: deque[int] = deque()
_DRAW = 512
_BITS = 2**63 - 1
os.register_at_fork(after_in_child=_drawn.clear)


def _chance() -> int:
    """Return 63 random bits."""
    try:
        number = _drawn.pop()
    except IndexError:
        data = os.urandom(8 * _DRAW)
        numbers = [int.from_bytes(data[at : at + 8], "big") for at in range(0, len(data), 8)]
        number = numbers.pop()
        _drawn.extend(numbers)
    return (number ^ time.time_ns()) & _BITS


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
        return _chance() | 1

    def id_bits(self) -> int:
        """Return random bits for an identifier, at least 80."""
        return _chance() << 63 | _chance()

    def jitter(self) -> float:
        """Return a number from 0 to 1 that spreads retries."""
        return _chance() / 2**63

    def boot_id(self) -> str:
        """Name this boot of the machine: boot times of another boot mean nothing here."""
        from pathlib import Path  # 4 ms of the package's import

        try:
            return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        except OSError:
            return ""

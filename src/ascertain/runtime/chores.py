"""What workers do beside recovery, again and again: each chore in any number of processes."""

from __future__ import annotations

from collections.abc import Callable

import msgspec


class Chore(msgspec.Struct, frozen=True, kw_only=True):
    """One kind of work. `run` does what is due now and returns how much it did; it is called
    again at once while it did something, else after `every` seconds. Safe to run in several
    processes at a time, and to be killed at any moment."""

    name: str
    every: float
    run: Callable[[], int]

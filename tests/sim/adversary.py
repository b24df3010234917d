"""Chance, asked at every point where something can go wrong; written down, so it can be told
again with parts left out."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

Event = tuple[Any, ...]
Plan = dict[tuple[str, int], Event]


class Adversary:
    """By seed, or by a plan: what it did before, or a part of that, and nothing else."""

    def __init__(
        self, seed: int, budget: int, plan: Plan | None = None, often: str = ""
    ) -> None:  # fmt: skip
        self.random = Random(seed * 7 + 1)
        self.plan = plan
        self.often = often  # the kind of point at which it nearly always does something
        self.left = budget
        self.did: Plan = {}
        self._counts: dict[str, int] = {}

    def ask(self, where: str, chance: float, make: Callable[[Random], Event | None]) -> Event:
        """Return what goes wrong at this point, an empty tuple if nothing does."""
        count = self._counts.get(where, 0)
        self._counts[where] = count + 1
        if self.plan is not None:
            event = self.plan.get((where, count), ())
        elif self.left <= 0 or self.random.random() >= self._chance(where, chance):
            return ()
        else:
            event = make(self.random) or ()
            self.left -= bool(event)
        if event:
            self.did[where, count] = event
        return event

    def _chance(self, where: str, chance: float) -> float:
        if self.often and chance and where.rpartition(":")[2] == self.often:
            return 0.8
        return chance

"""The judge: how often something exists, by the target's own storage alone.

Imports nothing of ascertain, so that it cannot believe what the ledger says. It is given the
systems, reads their files, database or stream, and counts creations, so that what was deleted and
made again does not pass.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Protocol


class Storage(Protocol):
    """What the auditor needs of a system."""

    def creations(self, marker: str) -> int:
        """Count how often something with this mark was created."""
        ...


@dataclass(frozen=True)
class Asked:
    """One effect that was asked for, and the marks by which it is known at its target."""

    storage: Storage
    marks: Sequence[str]

    def count(self) -> int:
        """Count its creations; a thing that lost one mark is still known by another."""
        return max(self.storage.creations(mark) for mark in self.marks)


@dataclass(frozen=True)
class Verdict:
    """What the targets hold of the effects that were asked for."""

    counts: tuple[int, ...]

    @property
    def effects(self) -> int:
        """How many effects there are."""
        return sum(self.counts)

    @property
    def wanted(self) -> int:
        """How many there should be."""
        return len(self.counts)

    @property
    def duplicates(self) -> int:
        """How many are too many."""
        return sum(max(count - 1, 0) for count in self.counts)

    @property
    def lost(self) -> int:
        """How many are missing."""
        return sum(count == 0 for count in self.counts)

    @property
    def once(self) -> bool:
        """Whether each exists exactly once."""
        return all(count == 1 for count in self.counts)


def judge(asked: Iterable[Asked]) -> Verdict:
    """Count every effect that was asked for."""
    return Verdict(tuple(one.count() for one in asked))


@dataclass
class Checks:
    """What a scenario must show; each that does not hold is named."""

    failed: list[str] = field(default_factory=list)

    def that(self, holds: object, what: str) -> None:
        """Note ``what`` if it does not hold."""
        if not holds:
            self.failed.append(what)


def once_and_known(verdict: Verdict, refs: Sequence[str | None], checks: Checks) -> None:
    """Demand one effect of each, and a reference for each."""
    checks.that(verdict.once, f"the targets hold {verdict.counts} instead of one each")
    checks.that(all(refs), "an effect reference is missing")

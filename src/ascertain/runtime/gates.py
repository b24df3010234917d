"""The gates of the targets: paused and resumed by people, closed by their circuit breakers.

What the store says is shared by all processes, and known here within a second; nothing is read
or written for a single operation. Failures in a row are counted in each process by itself.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING

import msgspec
from msgspec.structs import asdict, replace

from ascertain.core import gates as rule
from ascertain.core.books import Audit, Gate
from ascertain.core.errors import Conflict, Refused
from ascertain.core.gates import Breaker
from ascertain.core.model import Finding, Record
from ascertain.store.base import Posting, Store

from .clock import Clock

if TYPE_CHECKING:
    from collections.abc import Sequence

FRESH = 1_000_000  # µs within which what other processes did to a gate is seen here
TRIES = 20  # how often a gate is read again because another was first
Line = tuple[str, Record | Mapping[str, object]]
Audited = Callable[[str, str], tuple[str, Audit]]  # state before and after → line of the audit


class Trial(msgspec.Struct, frozen=True):
    """That this process tries a target with one attempt, and as which row of the gate."""

    gate: Gate


class Gates:
    """The gates of one namespace, as one process sees them. Safe to use from several threads."""

    def __init__(self, store: Store, namespace: str, clock: Clock) -> None:
        """Know no target; reads nothing."""
        self._store, self._namespace, self._clock = store, namespace, clock
        self._target: dict[str, str] = {}  # of an action
        self._breakers: dict[str, Breaker | None] = {}  # of a target
        self._known: dict[str, Gate] = {}
        self._read_at: int | None = None
        self._shut: dict[str, Gate] | None = None
        self._failures: dict[str, tuple[int, int]] = {}  # how many in a row, since when
        self._trials: dict[int, Trial] = {}  # by the attempt's token
        self._lock = threading.Lock()

    def watch(self, action: str, target: str, breaker: Breaker | None = None) -> None:
        """Let an action wait for its target's gate."""
        self._target[action] = target
        self._breakers[target] = breaker
        self._read_at = None

    @property
    def targets(self) -> Sequence[str]:
        """The targets that are known here."""
        return sorted(self._breakers)

    def target_of(self, action: str) -> str:
        """Return the target of an action, or nothing."""
        return self._target.get(action, "")

    def actions(self, target: str) -> list[str]:
        """Return the actions of a target."""
        return sorted(a for a, of in self._target.items() if of == target)

    def of(self, target: str) -> Gate:
        """Return a target's gate as it was last read."""
        made = Gate(namespace=self._namespace, target=target, state=rule.OPEN, since=0)
        return self._known.get(target, made)

    # --- what decisions know ---

    @property
    def stale(self) -> bool:
        """Whether to `refresh` before something is sent."""
        if not self._target:
            return False
        read_at = self._read_at
        return read_at is None or self._clock.boottime() - read_at >= FRESH

    def refresh(self) -> None:
        """Read what all processes know about the gates."""
        read_at = self._clock.boottime()  # from before: what is written meanwhile is read again
        rows = self._store.ask(Gate, "gates_of", namespace=self._namespace)
        known = {g.target: g for g in rows}
        shut = {a: g for a, t in self._target.items() if (g := known.get(t)) and g.state != "open"}
        self._known, self._shut, self._read_at = known, shut or None, read_at

    @property
    def shut(self) -> dict[str, Gate] | None:
        """The gates that are not open, by action; None where all are."""
        return self._shut

    # --- the circuit breaker ---

    def to_try(self, action: str, now: int) -> Gate | None:
        """Return the closed gate that a step of this action would try, if it is time."""
        gate = (self._shut or {}).get(action)
        return gate if rule.may_try(gate, now) else None

    def take_trial(self, gate: Gate, until: int) -> Trial | None:
        """Be the one who tries a target; None where another is. Durable when it returns."""
        mine = self._written(gate, state=rule.TRYING, until=until)
        self.refresh()
        return Trial(mine) if mine is not None else None

    def try_with(self, trial: Trial, token: int) -> None:
        """Let an attempt be the trial."""
        with self._lock:
            self._trials[token] = trial

    def not_tried(self, trial: Trial) -> None:
        """Give a trial back that nothing was sent for: the next may try at once."""
        self._written(trial.gate, state=rule.CLOSED, until=self._store.now())
        self.refresh()

    def heard(self, action: str, token: int, finding: Finding | None) -> Callable[[], None] | None:
        """Take note of how an attempt ended; return what has to be written, mostly nothing.

        `finding` is None for an attempt that was not started.
        """
        target = self._target.get(action)
        if target is None:
            return None
        with self._lock:
            trial = self._trials.pop(token, None) if self._trials else None
            if finding is None:
                return None if trial is None else partial(self.not_tried, trial)
            answered = rule.reached(finding)
            if answered or answered is None:
                self._failures.pop(target, None)
                gate = self._known.get(target)
                closed = gate is not None and gate.state in (rule.CLOSED, rule.TRYING)
                return partial(self._reopen, target) if answered and closed else None
            if trial is not None:
                return partial(self._close, target, trial.gate, trial.gate.failures)
            many = self._count(target)
        return None if many is None else partial(self._close, target, None, many)

    def _count(self, target: str) -> int | None:
        """Count a failure in a row; return how many once they are enough to close the gate."""
        breaker = self._breakers.get(target)
        if breaker is None:
            return None
        now = self._clock.boottime()
        many, since = self._failures.get(target, (0, now))
        many, since = (1, now) if now - since > breaker.within else (many + 1, since)
        self._failures[target] = (many, since)
        if many < breaker.failures:
            return None
        del self._failures[target]
        return many

    def _close(self, target: str, gate: Gate | None, failures: int) -> None:
        """Close a gate, unless somebody else did something to it meanwhile."""
        breaker = self._breakers.get(target) or Breaker()
        if gate is None:
            self.refresh()
            gate = self.of(target)
            if gate.state != rule.OPEN:
                return
        until = self._store.now() + breaker.retry_after
        self._written(gate, state=rule.CLOSED, until=until, failures=failures)
        self.refresh()

    def _reopen(self, target: str) -> None:
        """The target answers: what was held becomes due."""
        self.refresh()
        gate = self.of(target)
        if gate.state in (rule.CLOSED, rule.TRYING):
            self._written(gate, state=rule.OPEN, releases=True)
            self.refresh()

    # --- people ---

    def pause(self, target: str, *, by: str, why: str, audited: Audited) -> Gate:
        """Let nothing new be executed or replayed at a target until it is resumed.

        Durable when it returns; other processes heed it within a second, and what has begun goes
        on. Raises Refused for a target that is not known.
        """
        return self._set(target, audited, state=rule.PAUSED, by=by, why=why)

    def resume(self, target: str, *, by: str, why: str, audited: Audited) -> Gate:
        """Open the gate of a target, also where its circuit breaker had closed it; what was held
        is due at once. Durable when it returns. Raises Refused."""
        return self._set(target, audited, state=rule.OPEN, by=by, why=why)

    def _set(self, target: str, audited: Audited, *, state: str, by: str, why: str) -> Gate:
        if target not in self._breakers:
            there = ", ".join(self.targets) or "none"
            raise Refused(f"no target {target!r} is declared here (there are {there})")
        for _ in range(TRIES):
            self.refresh()
            gate = self.of(target)
            if gate.state == state == rule.OPEN:
                return gate
            line = audited(gate.state, state)
            opens = state == rule.OPEN
            made = self._written(gate, (line,), state=state, by=by, why=why, releases=opens)
            if made is not None:
                self.refresh()
                return made
        raise Conflict(f"target {target}: somebody else changes its gate all the time; look again")

    def _written(
        self, gate: Gate, lines: tuple[Line, ...] = (), *, releases: bool = False, state: str,
        until: int | None = None, failures: int = 0, by: str = "", why: str = "",
    ) -> Gate | None:  # fmt: skip
        """Write a gate whole, guarded by what was read of it; None where another was first."""
        now = self._store.now()
        made = replace(
            gate, state=state, since=max(now, gate.since + 1), until=until, failures=failures,
            by=by, why=why,
        )  # fmt: skip
        if gate.since == 0:  # never written: the first one stays
            own: Line = ("gate_add", made)
        else:
            own = ("gate_write", {**asdict(made), "was": gate.state, "was_since": gate.since})
        due: list[Line] = []
        if releases:
            names = self.actions(gate.target)
            due = [("gate_release", self._at(action, now)) for action in names]
        [posted] = self._store.post([Posting((own, *lines, *due), must=(0,))])
        return made if posted.applied else None

    def _at(self, action: str, now: int) -> dict[str, object]:
        return {"namespace": self._namespace, "action": action, "now": now}

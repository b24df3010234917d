"""What people see of targets, and how they pause and resume them, with its line in the audit."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from ascertain.core.books import Audit, Gate
from ascertain.core.model import Record

from .audit import AuditLog, Who
from .engine import Engine
from .gates import Audited

MOST = 10_000  # waiting operations of one action that are counted


class Count(Record, frozen=True):
    """A number of rows."""

    count: int


class ActionState(msgspec.Struct, frozen=True, kw_only=True):
    """An action of a target, and how many of its operations wait for the gate."""

    name: str
    contract: str
    verified: str
    waiting: int
    by_client: bool


class TargetState(msgspec.Struct, frozen=True):
    """A target's gate and its actions."""

    gate: Gate
    actions: list[ActionState]


class Pausing:
    """The targets of one namespace, for people. All verbs read or write the store."""

    def __init__(self, engine: Engine) -> None:
        """Work on one engine."""
        self._engine, self._gates = engine, engine.gates
        self._audit = AuditLog(engine.store, engine.clock)

    @property
    def targets(self) -> Sequence[str]:
        """The targets that are declared in this namespace."""
        return self._gates.targets

    def states(self) -> list[TargetState]:
        """Return every target as it is now."""
        return [self.state(name) for name in self.targets]

    def state(self, target: str) -> TargetState:
        """Return one target as it is now."""
        self._gates.refresh()
        return TargetState(self._gates.of(target), [
            self._action(name) for name in self._gates.actions(target)
        ])  # fmt: skip

    def _action(self, name: str) -> ActionState:
        d, engine = self._engine.definition(name), self._engine
        [waiting] = engine.store.ask(
            Count, "gate_waiting", namespace=engine.namespace, action=name, most=MOST
        )
        return ActionState(
            name=name, contract=d.terms.contract.id, verified=d.terms.verified,
            waiting=waiting.count, by_client=d.remote,
        )  # fmt: skip

    def pause(self, target: str, who: Who, why: str = "") -> Gate:
        """Pause a target; durable with its line of the audit. Raises Refused."""
        line = self._line(who, target, "target.pause", why)
        return self._gates.pause(target, by=who.actor, why=why, audited=line)

    def resume(self, target: str, who: Who, why: str = "") -> Gate:
        """Open a target's gate; durable with its line of the audit. Raises Refused."""
        line = self._line(who, target, "target.resume", why)
        return self._gates.resume(target, by=who.actor, why=why, audited=line)

    def _line(self, who: Who, target: str, did: str, why: str) -> Audited:
        def line(before: str, after: str) -> tuple[str, Audit]:
            return self._audit.line(
                who, self._engine.namespace, did, subject=target, reason=why, before=before,
                after=after,
            )  # fmt: skip

        return line

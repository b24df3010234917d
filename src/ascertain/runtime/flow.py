"""Runs: what a flow or a batch expects, and whether all of it is done (law 20)."""

from __future__ import annotations

import contextvars
from collections.abc import Iterable
from typing import Any, Self

import msgspec

from ascertain.core.keys import run_id
from ascertain.core.model import Expected, Run, Snapshot, State, WaitingOn
from ascertain.store.base import Filter

from .engine import Engine

PAGE = 1000


class Member(msgspec.Struct, frozen=True, kw_only=True):
    """One key of a run and where it stands; `operation` is None where it is absent."""

    action: str
    key: str
    standing: str  # done, accepted, waiting, running, unknown, not_done, missing
    operation: str | None = None
    ref: str | None = None


class Standing(msgspec.Struct, frozen=True, kw_only=True):
    """Where a run stands: green only when every expected key is done, or superseded by one
    that is done; one unknown makes it `unknown`, one absent key `missing`."""

    run: str
    name: str
    standing: str
    members: tuple[Member, ...]

    @property
    def green(self) -> bool:
        """Whether everything that was expected is done."""
        return self.standing == "done"


class RunView:
    """A run that is open: a context manager for submissions, and its standing."""

    def __init__(self, engine: Engine, run: Run, current: contextvars.ContextVar[Any]) -> None:
        """Made by `ledger.run`."""
        self._engine, self.run, self._current = engine, run, current
        self._token: contextvars.Token[Any] | None = None

    @classmethod
    def open(
        cls,
        engine: Engine,
        name: str,
        expects: Iterable[Expected],
        due: float | None,
        current: contextvars.ContextVar[Any],
    ) -> RunView:
        """Open the run of this name, or reopen it, and add what it expects; durable."""
        now = engine.store.now()
        known = engine.store.runs(engine.namespace, name)
        run = known[0] if known else Run(
            id=run_id(engine.namespace, name), namespace=engine.namespace, name=name,
            opened_at=now, due_at=None if due is None else now + int(due * 1e6),
        )  # fmt: skip
        wanted = [msgspec.structs.replace(e, run=run.id) for e in expects]
        return cls(engine, engine.store.open_run(run, wanted), current)

    def expect(self, *keys: Expected) -> None:
        """Add keys that the run expects; durable."""
        wanted = [msgspec.structs.replace(e, run=self.run.id) for e in keys]
        self._engine.store.open_run(self.run, wanted)

    def __enter__(self) -> Self:
        """Let operations submitted from here belong to the run."""
        self._token = self._current.set(self.run.id)
        return self

    def __exit__(self, *_: object) -> None:
        """Stop that."""
        if self._token is not None:
            self._current.reset(self._token)

    def standing(self) -> Standing:
        """Return where the run stands now."""
        return standing(self._engine, self.run)


def standing(engine: Engine, run: Run) -> Standing:
    """Judge a run by its members and the keys that it expects."""
    expected = engine.store.expected(run.id)
    pairs = [(e.action, e.key) for e in expected]
    found = dict(zip(pairs, engine.store.by_keys(engine.namespace, pairs), strict=True))
    after = ""
    while page := engine.store.find(Filter(namespace=engine.namespace, run=run.id), after, PAGE):
        for snapshot in page:
            found.setdefault((snapshot.operation.action, snapshot.operation.key), snapshot)
        after = page[-1].operation.id
    members = tuple(_member(engine, pair, snapshot) for pair, snapshot in found.items())
    return Standing(run=run.id, name=run.name, standing=_judge(members), members=members)


def _member(engine: Engine, pair: tuple[str, str], snapshot: Snapshot | None) -> Member:
    action, key = pair
    if snapshot is None:
        return Member(action=action, key=key, standing="missing")
    status = _latest(engine, snapshot).status
    where = status.state.value
    if status.state is State.PENDING or status.waiting_on is WaitingOn.APPROVAL:
        where = "waiting"
    return Member(
        action=action,
        key=key,
        standing="unknown" if status.reason == "left" else where,
        operation=snapshot.operation.id,
        ref=status.ref,
    )


def _latest(engine: Engine, snapshot: Snapshot) -> Snapshot:
    """Follow successors: a key superseded by one that is done counts as done."""
    for _ in range(100):
        if snapshot.status.reason != "superseded":
            break
        ident = snapshot.operation.id
        newer = engine.store.beside([ident])[ident].successor
        if newer is None:
            break
        snapshot = newer
    return snapshot


_WORST_FIRST = ("unknown", "missing", "not_done", "running", "waiting", "accepted")


def _judge(members: tuple[Member, ...]) -> str:
    present = {m.standing for m in members}
    return next((s for s in _WORST_FIRST if s in present), "done" if members else "missing")


def missing(engine: Engine) -> list[Member]:
    """Return the expected keys that are absent past their run's time (law 20)."""
    now = engine.store.now()
    late = [r for r in engine.store.runs(engine.namespace) if r.due_at and r.due_at <= now]
    return [m for r in late for m in standing(engine, r).members if m.standing == "missing"]

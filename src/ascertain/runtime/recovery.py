"""Recovery: everything that is due, in any number of processes, within bounds (law 15).

It takes due operations so that no two workers take the same, and carries each on by the same
loop as a caller. What recovered by itself is reported too.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Any

import msgspec

from ascertain.core.draft import Case
from ascertain.core.errors import (
    ApprovalStale,
    AscertainError,
    Conflict,
    InputRefused,
    SchemaMismatch,
    StoreBusy,
    StoreCorrupt,
    StoreError,
    StoreUnavailable,
)
from ascertain.core.machine import is_settled
from ascertain.core.model import Snapshot, State, WaitingOn
from ascertain.core.reconcile import Do, Step
from ascertain.targets.classify import describe

from . import freezing
from .alarms import Alarm, alarms
from .driving import Act, Look, Sleep, driving
from .engine import Engine

HOLD = 30_000_000  # µs that a taken operation is passed by by other workers
TAKE = 50  # operations taken at once
ALARMS_EVERY = 10_000_000  # µs between a worker's looks for what is missing or overdue
STORE_DOWN = (StoreBusy, StoreUnavailable, StoreCorrupt, SchemaMismatch)  # it ends a sweep
STUMBLED = 60 * 1_000_000  # µs until an operation that its own code stops is tried again
NEEDS_INPUT = 15 * 60 * 1_000_000  # µs until an operation whose input is not kept is seen again


class Recovered(msgspec.Struct, frozen=True, kw_only=True):
    """One operation that recovered: what was known before, after, and how it was found out."""

    operation: str
    action: str
    key: str
    before: State
    after: State
    how: str
    ref: str | None


class Report(msgspec.Struct, kw_only=True):
    """What one sweep did."""

    worked: int = 0
    recovered: list[Recovered] = []
    reviews: list[str] = []  # operations handed to a person
    errors: list[str] = []
    alarms: list[Alarm] = []  # missing keys, and people who are late (law 20)
    did: dict[str, int] = {}


Sweeping = Generator[Act | Look | Sleep, Any, Report]


def sweeping(
    engine: Engine,
    limit: int,
    stop: Callable[[], bool] = lambda: False,
    *,
    alarms_every: int = 0,
) -> Sweeping:
    """Carry on everything that is due now, at most `limit` operations; then the alarms.

    A generator like `driving`; what goes wrong while a driver carries out is thrown into it,
    and stays with that operation. `alarms_every` µs is how long alarms once looked for are good
    enough: they read more than what is due. A failing store ends the sweep with the error in
    the report; nothing is lost by it.
    """
    report = Report(recovered=[], reviews=[], errors=[], alarms=[], did={})
    try:
        engine.lives.refresh()
        while report.worked < limit and not stop():
            taken = _take(engine, min(TAKE, limit - report.worked))
            for snapshot in taken:
                yield from _carry_on(engine, snapshot, report)
            report.worked += len(taken)
            if not taken:
                break
        engine.lives.remember()
        report.alarms = _alarms(engine, alarms_every)
    except StoreError as error:
        report.errors.append(str(error))
    return report


def _alarms(engine: Engine, every: int) -> list[Alarm]:
    now = engine.clock.boottime()
    if engine.alarms_at is None or now - engine.alarms_at >= every:
        engine.alarms_at, engine.alarms = now, alarms(engine)
    return list(engine.alarms)


def _take(engine: Engine, limit: int) -> list[Snapshot]:
    now = engine.store.now()
    names = sorted(engine.actions)
    if not names:
        return []
    return engine.store.take(now, now + HOLD, engine.namespace, names, limit)


def _carry_on(
    engine: Engine, snapshot: Snapshot, report: Report
) -> Generator[Act | Look | Sleep, Any, None]:
    before = snapshot.status
    try:
        steps = driving(engine, engine.case(snapshot), None, engine.clock.boottime())
        answer: Any = None
        while True:
            asked = steps.send(answer)
            report.did[type(asked).__name__.lower()] = (
                report.did.get(type(asked).__name__.lower(), 0) + 1
            )
            answer = yield asked
    except StopIteration as end:
        _tell(end.value, before.state, report)
    except STORE_DOWN:
        raise  # nothing can be done about any operation now
    except Exception as error:  # noqa: BLE001 - one bad operation stops no neighbour
        try:
            _stumbled(engine, snapshot, error, report)
        except STORE_DOWN:
            raise
        except Exception as second:  # noqa: BLE001 - it stays due, and is seen again
            report.errors.append(f"{snapshot.operation.key}: {describe(second)}")


def _stumbled(engine: Engine, snapshot: Snapshot, error: Exception, report: Report) -> None:
    """Report what stood in the way of one operation, and see it again later."""
    if isinstance(error, ApprovalStale):
        report.errors.append(str(error))
        freezing.ask_again(engine, snapshot, engine.store.now() + NEEDS_INPUT)
    elif isinstance(error, InputRefused):
        report.errors.append(str(error))
        _postpone(engine, snapshot)
    else:  # e.g. of code that runs before anything is sent: a key function, a prepare
        said = str(error) if isinstance(error, AscertainError) else describe(error)
        report.errors.append(f"{snapshot.operation.key}: {said}")
        if not isinstance(error, Conflict):
            _postpone(engine, snapshot, "stumbled", STUMBLED)


def _postpone(engine: Engine, snapshot: Snapshot, said: str = "", wait: int = NEEDS_INPUT) -> None:
    case = engine.case(engine.snapshot(snapshot.operation.id))
    if case.status.token is not None or case.status.due_at is None:
        return  # an attempt's lease, or a person, is what it waits for
    at = engine.store.now() + wait
    engine.advance(case, Step(Do.WAIT, at, said or case.status.said))


def _tell(case: Case, before: State, report: Report) -> None:
    after = case.status
    if after.waiting_on is WaitingOn.REVIEW and after.due_at is None:
        report.reviews.append(case.operation.id)
    uncertain = (State.UNKNOWN, State.RUNNING, State.ACCEPTED)
    if before in uncertain and (is_settled(after) or after.state is State.DONE):
        report.recovered.append(
            Recovered(
                operation=case.operation.id,
                action=case.operation.action,
                key=case.operation.key,
                before=before,
                after=after.state,
                how=after.confirmed_by or after.said,
                ref=after.ref,
            )
        )

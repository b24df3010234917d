"""Recovery: everything that is due, in any number of processes, within bounds (law 15).

It takes due operations so that no two workers take the same, and carries each on by the same
loop as a caller. What recovered by itself is reported too.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Sequence
from contextlib import suppress
from functools import partial
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
from ascertain.core.model import Change, Kind, Record, State, WaitingOn
from ascertain.core.reconcile import Do, Step
from ascertain.store.base import Commit, Written
from ascertain.targets.classify import describe

from . import freezing
from .alarms import Alarm, alarms
from .asks import Read, Write
from .attempts import advancing, releasing
from .driving import Act, Asked, Driving, Look, Queue, Sleep, Wait, driving
from .engine import Engine

HOLD = 30_000_000  # µs that a taken operation is passed by by other workers
TAKE = 50  # operations taken at once
TOGETHER = 16  # of them under way at once
SLOW = 20_000  # µs of one look-up or action from which on only one is under way
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


class Due(Record, frozen=True):
    """An operation that is due."""

    operation: str


class Report(msgspec.Struct, kw_only=True):
    """What one sweep did."""

    worked: int = 0
    recovered: list[Recovered] = []
    reviews: list[str] = []  # operations handed to a person
    errors: list[str] = []
    alarms: list[Alarm] = []  # missing keys, and people who are late (law 20)
    did: dict[str, int] = {}


Sweeping = Generator[Asked, Any, Report]


def taking_in(engine: Engine) -> int:
    """Process events that are due for the hooks of a ledger's configuration: those that ask for
    flows are made into operations only where their code is. Returns how many; none where the
    store fails, which the sweep after it says."""
    if not engine.hooks:
        return 0
    from .intake import Intake  # with the extra that hooks need

    try:
        return Intake(engine.store, {engine.namespace: engine}, engine.hooks).process()
    except StoreError:  # an event that was taken is due again soon
        return 0


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
    the report; nothing is lost by it. Once `stop` says so, nothing more is begun, and what was
    claimed is given back as never started (law 2).
    """
    report = Report(recovered=[], reviews=[], errors=[], alarms=[], did={})
    try:
        yield Read(engine.lives.refresh)
        crowd = _Crowd(engine, report, stop)
        while report.worked < limit and not stop():
            taken = yield Read(partial(_take, engine, min(TAKE, limit - report.worked)))
            if not taken:
                break
            yield from crowd.carry_on(taken)
        if not stop():
            yield from crowd.carry_on((yield Read(partial(_of_own_code, engine))), counts=False)
        yield Read(engine.lives.remember)
        report.alarms = yield Read(partial(_alarms, engine, alarms_every))
    except StoreError as error:
        report.errors.append(str(error))
    return report


class _One:
    """One operation under way, and what its steps wait for."""

    def __init__(self, case: Case, steps: Driving) -> None:
        self.case, self.steps = case, steps
        self.answer: Any = None
        self.error: Exception | None = None

    def go_on(self) -> Asked:
        """Run to what is asked next; raises StopIteration at the end."""
        answer, error, self.answer, self.error = self.answer, self.error, None, None
        return self.steps.send(answer) if error is None else self.steps.throw(error)


class _Crowd:
    """Several operations under way at once, so that their commits wait for the disk together.

    Only commits overlap: code and look-ups run one at a time, and an effect is claimed only
    when its code is the next thing to run, so that no claim waits in a queue (law 2). Unless
    the last look-up was quick, only one operation is under way: others' claims would run out.
    """

    def __init__(self, engine: Engine, report: Report, stop: Callable[[], bool]) -> None:
        self.engine, self.report, self.stop = engine, report, stop
        self.committing: deque[tuple[_One, Commit[Written]]] = deque()
        self.slow = True

    def carry_on(
        self, taken: Sequence[Case], *, counts: bool = True
    ) -> Generator[Asked, Any, None]:
        """Take each as far as it can go now; what goes wrong with one stops no neighbour."""
        waiting = deque(taken)
        try:
            while (waiting and not self.stop()) or self.committing:
                room = 1 if self.slow else TOGETHER
                if waiting and len(self.committing) < room and not self.stop():
                    case = waiting.popleft()
                    self.report.worked += counts
                    steps = driving(self.engine, case, None, self.engine.clock.boottime())
                    yield from self._until_it_commits(_One(case, steps))
                    continue
                one, commit = self.committing.popleft()
                one.answer, one.error = yield Wait(commit)
                yield from self._until_it_commits(one)
        except GeneratorExit:
            raise  # nobody is left to ask
        except BaseException:
            yield from self._wind_up()
            raise

    def _wind_up(self) -> Generator[Asked, Any, None]:
        """Bring what is under way to rest: a finding is written, a claim given back (laws 2, 8)."""
        while self.committing:
            one, commit = self.committing.popleft()
            one.answer, one.error = yield Wait(commit)
            with suppress(Exception):  # its lease ends it: it is unknown then, and looked into
                yield from self._to_rest(one)

    def _to_rest(self, one: _One) -> Generator[Asked, Any, None]:
        while True:
            try:
                asked = one.go_on()
            except StopIteration as end:
                _tell(end.value, one.case.status.state, self.report)
                return
            if isinstance(asked, Act | Look):
                yield from releasing(self.engine, asked.ticket)
            if not isinstance(asked, Write | Read):
                return
            try:
                one.answer = yield asked
            except Exception as error:  # noqa: BLE001 - thrown into what asked for it
                one.error = error

    def _until_it_commits(self, one: _One) -> Generator[Asked, Any, None]:
        """Carry one operation on until its commit is queued, or to its end."""
        try:
            while True:
                asked = one.go_on()
                if isinstance(asked, Write) and not _claims_effect(asked.change):
                    self.committing.append((one, (yield Queue(asked.change))))
                    return
                if isinstance(asked, Act | Look) and self.stop():
                    with suppress(AscertainError):  # somebody was faster, or its lease ends it
                        yield from releasing(self.engine, asked.ticket)
                    return
                self._count(asked)
                began = self.engine.clock.boottime()
                try:
                    one.answer = yield asked
                except Exception as error:  # noqa: BLE001 - thrown into what asked for it
                    one.error = error
                except GeneratorExit:
                    raise
                except BaseException:
                    if isinstance(asked, Look):  # an action's is settled by its driver
                        with suppress(AscertainError):
                            yield from releasing(self.engine, asked.ticket)
                    raise
                if isinstance(asked, Act | Look):
                    self.slow = self.engine.clock.boottime() - began > SLOW
        except StopIteration as end:
            _tell(end.value, one.case.status.state, self.report)
        except STORE_DOWN:
            raise  # nothing can be done about any operation now
        except Exception as error:  # noqa: BLE001 - one bad operation stops no neighbour
            yield from self._stumbled(one.case, error)

    def _count(self, asked: Asked) -> None:
        if isinstance(asked, Act | Look | Sleep):
            name = type(asked).__name__.lower()
            self.report.did[name] = self.report.did.get(name, 0) + 1

    def _stumbled(self, case: Case, error: Exception) -> Generator[Asked, Any, None]:
        try:
            yield Read(partial(stumbled, self.engine, case, error, self.report))
        except STORE_DOWN:
            raise
        except Exception as second:  # noqa: BLE001 - it stays due, and is seen again
            self.report.errors.append(f"{case.operation.key}: {describe(second)}")


def _claims_effect(change: Change) -> bool:
    return change.attempt is not None and change.attempt.kind is not Kind.LOOK_UP


def _alarms(engine: Engine, every: int) -> list[Alarm]:
    now = engine.clock.boottime()
    if engine.alarms_at is None or now - engine.alarms_at >= every:
        engine.alarms_at, engine.alarms = now, alarms(engine)
    return list(engine.alarms)


def _take(engine: Engine, limit: int) -> list[Case]:
    now = engine.store.now()
    names = sorted(n for n, d in engine.actions.items() if not d.remote)
    if not names:
        return []
    return engine.cases(engine.store.take(now, now + HOLD, engine.namespace, names, limit))


def _of_own_code(engine: Engine) -> list[Case]:
    """Return what is due of actions that own code outside carries out, a page after the other.

    Their due times are left alone: the code itself looks for them. Of these only leases that
    ran out are ended, and what needs no attempt is written.
    """
    names = sorted(n for n, d in engine.actions.items() if d.remote)
    if not names:
        return []
    now, pages = engine.store.now(), engine.pages
    idents: list[str] = []
    for name in names:
        rows = engine.store.ask(
            Due, "work_after", namespace=engine.namespace, action=name, now=now,
            after=pages.get(name, ""), most=TAKE,
        )  # fmt: skip
        pages[name] = rows[-1].operation if len(rows) == TAKE else ""
        idents += [row.operation for row in rows]
    snapshots = engine.store.snapshots(idents)
    return engine.cases([s for s in snapshots.values() if s.status.due_at is not None])


def stumbled(engine: Engine, case: Case, error: Exception, report: Report) -> None:
    """Report what stood in the way of one operation, and see it again later."""
    if isinstance(error, ApprovalStale):
        report.errors.append(str(error))
        freezing.ask_again(engine, case, engine.store.now() + NEEDS_INPUT)
    elif isinstance(error, InputRefused):
        report.errors.append(str(error))
        _postpone(engine, case)
    else:  # e.g. of code that runs before anything is sent: a key function, a prepare
        said = str(error) if isinstance(error, AscertainError) else describe(error)
        report.errors.append(f"{case.operation.key}: {said}")
        if not isinstance(error, Conflict):
            _postpone(engine, case, "stumbled", STUMBLED)


def _postpone(engine: Engine, case: Case, said: str = "", wait: int = NEEDS_INPUT) -> None:
    case = engine.again(case)
    if case.status.token is not None or case.status.due_at is None:
        return  # an attempt's lease, or a person, is what it waits for
    at = engine.store.now() + wait
    engine.now(advancing(engine, case, Step(Do.WAIT, at, said or case.status.said)))


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

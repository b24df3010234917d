"""The ledger for threads and scripts: it carries out what `engine` and `driving` say.

In the order of an operation's life: the intent and the lease are one durable commit (laws 1,
2); the code runs, sending at most one effect request before its deadline (5, 17); whatever
comes of it, an exception and an interrupt too, is settled as a finding, and what proves nothing
is unknown (3, 13); then the operation is taken as far as it can go at once: a look-up, a
protected replay, never a blind repeat (4, 5, 6).
"""

from __future__ import annotations

import contextvars
import inspect
import itertools
from collections.abc import Generator, Iterable, Mapping, Sequence
from typing import Any, Self, TypeVar

from msgspec.structs import replace

from ascertain.core.draft import Case
from ascertain.core.errors import Refused
from ascertain.core.model import ActFinding, Done, Expected, NotDone, Run
from ascertain.core.reconcile import Do, LookReport
from ascertain.store.base import Store

from . import perform
from .action import Definition, Intent
from .asks import Read, Write, outcome, together
from .attempts import ending
from .beginning import beginning, enlist
from .call import Item
from .clock import Clock
from .declare import BoundAction, Declaring
from .desk import Desk
from .driving import Act, Asked, Look, Queue, Sleep, Wait, driving
from .engine import Engine
from .flow import RunView
from .looking import finding_of_look, start_looking
from .receipt import Receipt, receipt
from .recovery import Report, sweeping
from .telemetry import telemetry
from .ticket import Options, Ticket
from .together import all_or_first_error, begun, caught
from .versions import check_undo
from .worker import Worker

T = TypeVar("T")

WAIT = 10.0  # seconds that a call waits for an outcome by itself
CONCURRENCY = 4  # calls of a batch at once; so many are claimed at most (law 2)
BULK = 500  # items of one bulk call at most

current_run: contextvars.ContextVar[str | None] = contextvars.ContextVar("run", default=None)


class Ledger(Desk):
    """Records intents before acting, and knows what happened before anything is repeated.

    Use as a context manager, or call `close`. Safe to use from several threads; after a fork
    the store opens itself anew.
    """

    def __init__(
        self, store: Store, *, namespace: str = "default", clock: Clock | None = None,
        wait: float = WAIT, worker: str = "",
    ) -> None:  # fmt: skip
        """Open a ledger on a store; see `ascertain.open`."""
        super().__init__(Engine(store, namespace, clock or Clock(), worker, wait))
        self.wait = wait
        declaring = Declaring(self.engine, Action)
        self._declaring = declaring
        self.action, self.step, self.flow = declaring.action, declaring.step, declaring.flow
        self.actions = declaring.actions
        self.driver = Driver(self.engine)
        self._worker: Worker | None = None

    @property
    def store(self) -> Store:
        """The store that this ledger keeps."""
        return self.engine.store

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close it."""
        self.close()

    def close(self) -> None:
        """Stop the background worker and let go of the store."""
        if self._worker is not None:
            self._worker.stop()
        self.store.close()

    # --- recovery ---

    def recover(self, limit: int = 1000) -> Report:
        """Do everything that is due now, once: expired leases, look-ups, protected replays,
        proven retries, reviews, missing keys. Returns what was done and what recovered."""
        return self.sweep(limit)

    def sweep(self, limit: int = 1000, *, alarms_every: int = 0) -> Report:
        """Do what `recover` does; `alarms_every` µs is how long known alarms are good enough."""
        return self.driver.drive(sweeping(self.engine, limit, alarms_every=alarms_every))

    def start_worker(self, every: float = 0.5) -> Worker:
        """Run `recover` in a background thread until `close`; one per ledger."""
        if self._worker is None or not self._worker.is_alive():  # none, or left behind by a fork
            self._worker = Worker(self, every)
            self._worker.start()
        return self._worker

    def confirm(self, operation: str | Receipt, *, wait: float | None = None) -> Receipt:
        """Ask the target again what happened; allowed in every state but `running`."""
        started = self.engine.claim(self.to_confirm(operation), Do.LOOK_UP)
        return self.finish_driving(started, None, self.wait if wait is None else wait)

    def to_confirm(self, operation: str | Receipt) -> Case:
        """Read an operation whose target can be asked; raises Refused where it cannot be."""
        case = self.case_of(operation if isinstance(operation, str) else operation.id)
        if not case.terms.can_look_up:
            raise Refused(
                f"operation {case.operation.key}: action {case.operation.action} has no look-up"
                " here; declare one, or decide by looking yourself",
                operation=case.operation.id,
            )
        return case

    # --- runs ---

    def run(
        self, name: str, *, expects: Iterable[Expected] = (), due: float | None = None
    ) -> RunView:
        """Open (or reopen) a run: operations submitted inside `with` belong to it, and every
        key it expects must be done before it is green. `due`: seconds until an absent key is
        missing (law 20)."""
        return RunView.open(self.engine, name, expects, due, current_run)

    def runs(self) -> list[Run]:
        """Return the runs of this namespace, newest first."""
        return self.store.runs(self.engine.namespace)

    # --- driving ---

    def finish_driving(
        self, start: Ticket | Case, given: dict[str, Any] | None, wait: float,
        *, reused: bool = False, errors: list[BaseException] | None = None,
    ) -> Receipt:  # fmt: skip
        """Take an operation as far as it goes within `wait` seconds and return its receipt."""
        until = self.engine.clock.boottime() + int(wait * 1e6)
        case = self.driver.drive(driving(self.engine, start, given, until), errors)
        return receipt(case, self.engine.world(), reused=reused)


class Action(BoundAction):
    """An action of a `Ledger`: call it, submit it, enqueue it, or give it a batch."""

    def __call__(self, *, wait: float | None = None, **given: Any) -> Receipt:
        """Do it once and return the receipt, or raise what its state means.

        Durable before the first byte is sent, and again before this returns. Raises
        OutcomeUnknown, InReview, InProgress, ApprovalMissing, StillOpen, TemporarilyRefused,
        InputRejected, AccessRejected, GaveUp; the exception of the code is its cause.
        """
        errors: list[BaseException] = []
        done = self._submit(given, wait, errors)
        try:
            return done.raise_for_state()
        except Exception as error:
            raise error from (errors[-1] if errors else None)

    def submit(self, *, wait: float | None = None, connection: Any = None, **given: Any) -> Receipt:
        """Do it once and return the receipt, whatever its state; raises for wrong calls only.

        With `connection`, an open psycopg connection, the intent joins the caller's own
        transaction and is only enqueued: a worker executes it after his commit.
        """
        if connection is not None:
            return self._enlist(connection, given)
        return self._submit(given, wait, [])

    def enqueue(self, **given: Any) -> Receipt:
        """Record the intent, durably; a worker executes it."""
        intent, options = self._intent(given), self._options()
        check_undo(self.engine, options.compensates)
        started, reused = self.engine.begin(self.definition, intent, options, execute=False)
        assert not isinstance(started, Ticket)
        return receipt(started, self.engine.world(), reused=reused)

    def repeat(self, *, of: str | Receipt, reason: str) -> Receipt:
        """Ask for a deliberate second effect of an operation: a new operation with an approval
        of its own (law 10)."""
        old = self.engine.snapshot(of if isinstance(of, str) else of.id)
        values = self.definition.restore_input(old.operation, None)
        # The key is that of the old operation with a number, whatever the template makes.
        named = old.operation.key if self.definition.takes_key else None
        intent = self.definition.intent(values, self.engine.store.now(), named)
        for count in itertools.count(1):
            key = f"{old.operation.key}#repeat-{count}"
            if self.engine.store.by_keys(self.engine.namespace, [(self.name, key)])[0] is not None:
                continue
            options = replace(self._options(), repeats=old.operation.id, key=key, reason=reason)
            started, reused = self.engine.begin(self.definition, intent, options, execute=False)
            if not reused:  # else another asked for his own at the same moment (law 16)
                assert not isinstance(started, Ticket)
                return receipt(started, self.engine.world())
        raise AssertionError("never reached")

    def batch(
        self, inputs: Sequence[Mapping[str, Any]], *, concurrency: int = CONCURRENCY,
        wait: float | None = None,
    ) -> list[Receipt]:  # fmt: skip
        """Submit many, each with its own receipt, in order; one bad outcome stops no other.

        Wrong inputs are refused before anything is recorded. A bulk action sends them in one
        request; others run `concurrency` at a time. What one of them raises, e.g. InputMismatch,
        is raised when all have ended.
        """
        for given in inputs:
            self._intent(given)
        if self.definition.declared.kind == "bulk":
            done: list[Receipt | Exception] = []
            for start in range(0, len(inputs), BULK):
                done += self._bulk(inputs[start : start + BULK], wait)
            return all_or_first_error(done)
        context = contextvars.copy_context()

        def one(given: Mapping[str, Any]) -> Receipt | Exception:
            return caught(context.copy().run, self._submit, dict(given), wait, [])

        from concurrent.futures import ThreadPoolExecutor

        with ThreadPoolExecutor(max(concurrency, 1)) as pool:
            return all_or_first_error(list(pool.map(one, inputs)))

    # --- inside ---

    def _intent(self, given: Mapping[str, Any]) -> Intent:
        return self.definition.intent(given, self.engine.store.now(), self.options.given_key)

    def _options(self) -> Options:
        run = self.options.run or current_run.get()
        return replace(self.options, run=run) if run else self.options

    def _driver(self) -> Driver:
        return Driver(self.engine)

    def _submit(
        self, given: Mapping[str, Any], wait: float | None, errors: list[BaseException]
    ) -> Receipt:
        intent, options = self._intent(given), self._options()
        check_undo(self.engine, options.compensates)
        until = self.engine.until(wait)
        started, reused = self.engine.begin(self.definition, intent, options, execute=True)
        given_now = None if reused and other_content(started, intent) else intent.input
        steps = driving(self.engine, started, given_now, until)
        case = self._driver().drive(steps, errors)
        return receipt(case, self.engine.world(), reused=reused, warnings=intent.warnings)

    def _enlist(self, connection: Any, given: Mapping[str, Any]) -> Receipt:
        intent, options = self._intent(given), self._options()
        check_undo(self.engine, options.compensates)
        case, reused = enlist(self.engine, self.definition, intent, options, connection)
        return receipt(case, self.engine.world(), reused=reused)

    def _bulk(
        self, inputs: Sequence[Mapping[str, Any]], wait: float | None
    ) -> list[Receipt | Exception]:
        intents = [self._intent(g) for g in inputs]
        engine, options, until = self.engine, self._options(), self.engine.until(wait)
        started = together(
            engine.store,
            [beginning(engine, self.definition, i, options, execute=True) for i in intents],
        )
        tickets = [t for t, _ in begun(started) if isinstance(t, Ticket)]
        settled = dict(
            zip((t.attempt.token for t in tickets), self._driver().act_bulk(tickets), strict=True)
        )

        def on(start: Ticket | Case, intent: Intent, *, reused: bool) -> Receipt:
            at = settled[start.attempt.token] if isinstance(start, Ticket) else start
            given = None if reused and other_content(start, intent) else intent.input
            case = self._driver().drive(driving(self.engine, at, given, until), None)
            return receipt(case, self.engine.world(), reused=reused)

        return [
            one if isinstance(one, Exception) else caught(on, one[0], intent, reused=one[1])
            for one, intent in zip(started, intents, strict=True)
        ]


class Driver:
    """Runs the code of actions and look-ups in the calling thread."""

    def __init__(self, engine: Engine) -> None:
        """Work for one engine."""
        self.engine = engine

    def drive(
        self, steps: Generator[Asked, Any, T], errors: list[BaseException] | None = None
    ) -> T:
        """Carry out what the steps ask for until they return; what goes wrong meanwhile is
        raised within them."""
        answer: Any = None
        error: BaseException | None = None
        while True:
            try:
                asked = steps.send(answer) if error is None else steps.throw(error)
            except StopIteration as end:
                value: T = end.value
                return value
            answer = error = None
            try:
                answer = self.carry_out(asked, errors)
            except BaseException as raised:  # noqa: BLE001 - thrown into what asked for it
                error = raised

    def carry_out(self, asked: Asked, errors: list[BaseException] | None = None) -> Any:
        """Do what was asked for, and return its answer."""
        match asked:
            case Write(change):
                return self.engine.store.write([change])[0]
            case Act(ticket):
                with telemetry.attempting(ticket) as attempt:
                    return attempt.found(self.act(ticket, errors))
            case Look(ticket):
                with telemetry.attempting(ticket) as attempt:
                    return attempt.found(self.look(ticket))
            case Read(what):
                return what()
            case Sleep(duration):
                self.engine.clock.sleep(duration)
            case Queue(change):
                return self.engine.store.put(change)
            case Wait(commit):
                return outcome(commit)
        return None

    def act(self, ticket: Ticket, errors: list[BaseException] | None = None) -> ActFinding | None:
        """Run an action's code and return what came of it, or None if its time was over before
        it was begun; an interrupt is settled here before it is raised again (law 3)."""
        d = ticket.definition
        if not perform.in_time(ticket, self.engine.clock):
            return None
        if d.declared.kind == "bulk":
            [finding], interrupt = self._bulk_findings([ticket])
        else:
            finding, interrupt = self._finding(ticket, errors)
        if interrupt is not None:
            self.engine.finish(ticket, finding)
            raise interrupt
        return finding

    def _finding(
        self, ticket: Ticket, errors: list[BaseException] | None
    ) -> tuple[ActFinding, BaseException | None]:
        d = ticket.definition
        call = perform.make_call(self.engine, ticket, effect=True)
        interrupt: BaseException | None = None
        try:
            leading = [call] if d.declared.kind == "action" else []
            value = _run(d, *leading, **(ticket.input or {}))
            finding = perform.finding_of(value, d, call)
            perform.note_wrong(value, finding, errors)
        except BaseException as error:  # noqa: BLE001 - recorded first, then raised again
            finding = perform.finding_of_error(error, d, call)
            if perform.reads_back(error) and d.look is not None:
                found = self._find(ticket, ticket.case.status.target_key)
                finding = perform.finding_of_read_back(found, error)
            if errors is not None:
                errors.append(error)
            interrupt = None if isinstance(error, Exception) else error
        finally:
            call.close()
        perform.saw_sending(d, call, finding)
        return finding, interrupt

    def act_bulk(self, tickets: Sequence[Ticket]) -> list[Case]:
        """Run a bulk action's code once for all items, and settle each by its own finding
        (law 2), all in common commits."""
        ready = [t for t in tickets if perform.in_time(t, self.engine.clock)]
        found: dict[int, ActFinding] = {}
        interrupt: BaseException | None = None
        if ready:
            findings, interrupt = self._bulk_findings(ready)
            tokens = [t.attempt.token for t in ready]
            found = dict(zip(tokens, findings, strict=True))
        ends = [ending(self.engine, t, found.get(t.attempt.token)) for t in tickets]
        ended = together(self.engine.store, ends)
        if interrupt is not None:
            raise interrupt
        for case in ended:
            if isinstance(case, Exception):
                raise case
        return [case for case in ended if isinstance(case, Case)]

    def _bulk_findings(
        self, tickets: Sequence[Ticket]
    ) -> tuple[list[ActFinding], BaseException | None]:
        d = tickets[0].definition
        call = perform.make_call(self.engine, tickets[0], effect=True)
        items = [
            Item(t.case.operation.key, t.case.status.target_key, t.input or {}) for t in tickets
        ]
        try:
            return perform.findings_of_bulk(_run(d, call, items), d, call, len(items)), None
        except BaseException as error:  # noqa: BLE001 - recorded first, then raised again
            findings = [perform.finding_of_error(error, d, call)] * len(items)
            return findings, None if isinstance(error, Exception) else error
        finally:
            call.close()

    def look(self, ticket: Ticket) -> LookReport:
        """Run a look-up over every epoch and its controls (laws 5, 14)."""
        steps = start_looking(self.engine, ticket)
        key = next(steps)
        while True:
            finding = self._find(ticket, key)
            try:
                key = steps.send(finding)
            except StopIteration as end:
                report: LookReport = end.value
                return report

    def _find(self, ticket: Ticket, key: str) -> Any:
        """Run the look-up function for one target key; its error is Unknown."""
        d = ticket.definition
        assert d.look is not None
        call = perform.make_call(self.engine, ticket, effect=False, key=key)
        try:
            return finding_of_look(_awaited(d.look.function(call)), d.name)
        except Exception as error:  # noqa: BLE001 - a look-up's error is Unknown
            return perform.finding_of_look_error(error, d)
        except BaseException as error:
            if type(error).__name__ != "CancelledError":  # of a task that its coroutine awaited
                raise
            return perform.finding_of_look_error(error, d)
        finally:
            call.close()


def _run(d: Definition, *leading: Any, **given: Any) -> Any:
    return _awaited(d.function(*leading, **given))


def _awaited(value: Any) -> Any:
    """Return what code returned, awaited where it has to be: in a thread of its own where the
    caller is within a loop already."""
    if isinstance(value, Done | NotDone) or not inspect.isawaitable(value):
        return value
    import asyncio
    from concurrent.futures import ThreadPoolExecutor

    async def wait() -> Any:
        return await value

    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(wait())
    context = contextvars.copy_context()
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(context.run, lambda: asyncio.run(wait())).result()


def other_content(started: Ticket | Case, intent: Intent) -> bool:
    """Tell whether a caller brought another content than the pinned one; his is never sent."""
    return not isinstance(started, Ticket) and started.operation.content_hash != intent.content_hash

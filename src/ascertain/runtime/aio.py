"""The ledger for asyncio: the same verbs, no rules of its own.

The user's coroutine runs on the loop; the ledger's own steps run in a thread through one
helper, `hop`, that waits for them even if the caller is cancelled: a cancelled caller never
loses a write, and an action cancelled mid-effect is recorded as unknown before the
cancellation goes on.
"""

from __future__ import annotations

import asyncio
import contextlib
import inspect
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from typing import Any, Self, TypeVar

from msgspec.structs import replace

from ascertain.core.errors import Conflict, Refused
from ascertain.core.model import ActFinding, Expected
from ascertain.core.reconcile import Do, LookReport

from . import perform
from .action import Definition
from .asks import Read, Storing, Write, outcome
from .attempts import claiming, ending, finishing, releasing
from .beginning import beginning
from .declare import BoundAction, Declaring
from .desk import Desk
from .driving import Act, Asked, Look, Place, Queue, Sleep, Wait, driving
from .engine import Engine
from .flow import RunView
from .ledger import CONCURRENCY, Action, Driver, Ledger, current_run, other_content
from .looking import finding_of_look, start_looking
from .loop import Flight, Room, away, hop, in_thread, patiently, threads
from .receipt import Receipt, receipt
from .recovery import Report, sweeping
from .telemetry import telemetry
from .ticket import Ticket
from .together import all_or_first_error
from .versions import check_undo

T = TypeVar("T")


class AsyncAction(BoundAction):
    """An action of an `AsyncLedger`; the verbs of `Action`, awaited."""

    async def __call__(self, *, wait: float | None = None, **given: Any) -> Receipt:
        """Do it once and return the receipt, or raise what its state means; see `Action`."""
        errors: list[BaseException] = []
        done = await self._submit(given, wait, errors)
        try:
            return done.raise_for_state()
        except Exception as error:
            raise error from (errors[-1] if errors else None)

    async def submit(self, *, wait: float | None = None, **given: Any) -> Receipt:
        """Do it once and return the receipt, whatever its state."""
        return await self._submit(given, wait, [])

    async def submit_input(self, given: Mapping[str, Any], *, wait: float | None = None) -> Receipt:
        """Do what `submit` does with an input that comes from outside, whatever its names."""
        return await self._submit(given, wait, [])

    async def enqueue(self, **given: Any) -> Receipt:
        """Record the intent, durably; a worker executes it."""
        return await hop(self._sync().enqueue, **given)

    async def repeat(self, *, of: str | Receipt, reason: str) -> Receipt:
        """Ask for a deliberate second effect, with an approval of its own (law 10)."""
        return await hop(self._sync().repeat, of=of, reason=reason)

    async def batch(
        self, inputs: Sequence[Mapping[str, Any]], *, concurrency: int = CONCURRENCY,
        wait: float | None = None,
    ) -> list[Receipt]:  # fmt: skip
        """Submit many, `concurrency` at a time, each with its own receipt, in order; what one
        raises is raised when all have ended."""
        if self.definition.declared.kind == "bulk":
            raise Refused(f"action {self.name}: bulk actions run on a Ledger, not an AsyncLedger")
        now = self.engine.store.now()
        for given in inputs:
            self.definition.intent(given, now, self.options.given_key)
        gate = asyncio.Semaphore(max(concurrency, 1))

        async def one(given: Mapping[str, Any]) -> Receipt | Exception:
            async with gate:
                try:
                    return await self._submit(given, wait, [])
                except Exception as error:  # noqa: BLE001 - raised when all have ended
                    return error

        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(one(g)) for g in inputs]
        return all_or_first_error([t.result() for t in tasks])

    def _sync(self) -> Action:
        return Action(self.engine, self.definition, self.options)

    async def _submit(
        self, given: Mapping[str, Any], wait: float | None, errors: list[BaseException]
    ) -> Receipt:
        engine = self.engine
        named = self.options.given_key
        intent = self.definition.intent(given, engine.store.now(), named)
        run = self.options.run or current_run.get()
        options = replace(self.options, run=run) if run else self.options
        if options.compensates:
            await hop(check_undo, engine, options.compensates)
        until, room = engine.until(wait), room_for(self.definition)
        driver = AsyncDriver(engine, room)
        try:
            # Where none is free the intent is recorded, and claimed in its turn.
            now = await room.soon(on_loop(engine, until))
            alone = options.only_here or self.definition.declared.store_input != "all"
            if alone and not now and not await self._there(options.key or intent.key):
                now = await room.wait()  # before it is recorded: a worker would try it in vain
            begin = beginning(engine, self.definition, intent, options, execute=now)
            (started, reused), cancelled = await driver.finished(begin)
            if cancelled is not None:  # before its action started: proven not sent (law 2)
                if isinstance(started, Ticket):
                    await driver.give_back(started)
                raise cancelled
            if not isinstance(started, Ticket):
                room.leave()
            if reused:  # who was first stays in the line: it needs nobody twice
                room.until = on_loop(engine, until)
            given_now = None if reused and other_content(started, intent) else intent.input
            case = await driver.drive(driving(engine, started, given_now, until), errors)
        finally:
            room.leave()
        return receipt(case, engine.world(), reused=reused, warnings=intent.warnings)

    async def _there(self, key: str) -> bool:
        """Tell whether the operation of a key is recorded."""
        engine, named = self.engine, [(self.definition.name, key)]
        return (await hop(engine.store.by_keys, engine.namespace, named))[0] is not None


def room_for(d: Definition) -> Room:
    """Return the place that the code of an action needs; a coroutine needs none."""
    return Room(needed=not inspect.iscoroutinefunction(d.function))


def on_loop(engine: Engine, until: int) -> float:
    """Return a time of the local clock as one of the running loop's."""
    return asyncio.get_running_loop().time() + (until - engine.clock.boottime()) / 1e6


class AsyncDriver:
    """Runs the code of actions on the loop; sync functions in a thread."""

    def __init__(self, engine: Engine, room: Room | None = None) -> None:
        """Work for one engine, and where code is run for one caller: in his `room`, which is
        left by whoever made it."""
        self.engine, self._room = engine, room or Room(needed=False)

    async def drive(
        self, steps: Generator[Asked, Any, T], errors: list[BaseException] | None = None
    ) -> T:
        """Carry out what the steps ask for until they return; what goes wrong meanwhile is
        raised within them.

        A claim made for a caller who is cancelled meanwhile is given back, since its action
        never started (law 2); everything else that was being written is written.
        """
        answer: Any = None
        error: BaseException | None = None
        cancelled: asyncio.CancelledError | None = None
        while True:
            try:
                asked = steps.send(answer) if error is None else steps.throw(error)
            except StopIteration as end:
                if cancelled is not None:
                    raise cancelled from None
                value: T = end.value
                return value
            except Exception as raised:
                if cancelled is not None:
                    raise cancelled from raised
                raise
            answer = error = None
            try:
                if not isinstance(asked, Act | Look | Place | Sleep):
                    answer, stopped = await self._stored(asked)
                    cancelled = cancelled or stopped
                elif cancelled is None:
                    answer = await self._carry_out(asked, errors)
                else:
                    if isinstance(asked, Act | Look):
                        await self.give_back(asked.ticket)
                    error, cancelled = cancelled, None
            except BaseException as raised:  # noqa: BLE001 - thrown into what asked for it
                error = raised

    async def finished(self, steps: Storing[T]) -> tuple[T, asyncio.CancelledError | None]:
        """Carry out a step of the ledger to its end, whatever happens to the caller; return
        with its value the cancellation that came meanwhile."""
        answer: Any = None
        error: Exception | None = None
        cancelled: asyncio.CancelledError | None = None
        while True:
            try:
                asked = steps.send(answer) if error is None else steps.throw(error)
            except StopIteration as end:
                return end.value, cancelled
            except Exception as raised:
                if cancelled is not None:
                    raise cancelled from raised
                raise
            answer = error = None
            try:
                answer, stopped = await self._stored(asked)
                cancelled = cancelled or stopped
            except Exception as raised:  # noqa: BLE001 - thrown into what asked for it
                error = raised

    async def _stored(
        self, asked: Write | Read | Queue | Wait
    ) -> tuple[Any, asyncio.CancelledError | None]:
        """Write or read, and wait for it whatever happens to the caller: what was written is
        known. The commit is awaited without a thread, so many callers share it."""
        match asked:
            case Read(what):
                return await patiently(in_thread(threads.steps, what))
            case Queue(change):
                return Flight(self.engine.store, change), None
            case Wait(commit):
                assert isinstance(commit, Flight)
                cancelled = await commit.landed()
                return outcome(commit), cancelled
            case Write(change):
                flight = Flight(self.engine.store, change)
                cancelled = await flight.landed()
                try:
                    return flight.result(), cancelled
                except Exception as error:
                    if cancelled is not None:
                        raise cancelled from error
                    raise

    async def give_back(self, ticket: Ticket) -> None:
        """Give back a claim whose action never started."""
        with contextlib.suppress(Conflict):  # its lease ran out meanwhile, or it was settled
            await self.finished(releasing(self.engine, ticket))

    async def _carry_out(
        self, asked: Act | Look | Place | Sleep, errors: list[BaseException] | None
    ) -> ActFinding | LookReport | bool | None:
        if isinstance(asked, Place):
            return await self._room.wait()
        if isinstance(asked, Sleep):
            self._room.leave()  # somebody was first, or its target rests: others can begin
        try:
            return await self._carried_out(asked, errors)
        finally:
            self._room.leave()  # its code has ended

    async def _carried_out(
        self, asked: Act | Look | Sleep, errors: list[BaseException] | None
    ) -> ActFinding | LookReport | None:
        match asked:
            case Act(ticket):
                with telemetry.attempting(ticket) as attempt:
                    return attempt.found(await self.act(ticket, errors))
            case Look(ticket):
                with telemetry.attempting(ticket) as attempt:
                    return attempt.found(await self.look(ticket))
            case Sleep(duration):
                await asyncio.sleep(duration / 1e6)
        return None

    async def act(
        self, ticket: Ticket, errors: list[BaseException] | None = None
    ) -> ActFinding | None:
        """Run an action's code and return what came of it, or None if its time was over before
        it was begun; a cancellation is settled here, as unknown, before it goes on (law 3)."""
        d = ticket.definition
        if d.declared.kind == "bulk":
            work = in_thread(threads.code, lambda: Driver(self.engine).act(ticket))
            done, stopped = await patiently(work)
            if stopped is not None:
                await self.finished(ending(self.engine, ticket, done))
                raise stopped
            return done
        call = perform.make_call(self.engine, ticket, effect=True)
        kept: list[Any] = []
        entered: list[bool] = []
        interrupt: BaseException | None = None
        try:
            value = await self._code(ticket, call, kept, entered)
            finding = perform.finding_of(value, d, call)
            perform.note_wrong(value, finding, errors)
        except perform.NotStarted:
            return None
        except BaseException as error:
            interrupt = None if isinstance(error, Exception) or _its_own(error) else error
            if interrupt is not None and not entered:  # proven not sent (law 2)
                await self.give_back(ticket)
                raise
            if kept:  # its result is known, though its caller was cancelled (law 8)
                finding = perform.finding_of(kept[0], d, call)
            else:
                finding = perform.finding_of_error(error, d, call)
            if perform.reads_back(error) and d.look is not None:
                try:
                    found = await self._find(ticket, ticket.case.status.target_key)
                    finding = perform.finding_of_read_back(found, error)
                except asyncio.CancelledError as cancelled:
                    interrupt = cancelled
            if errors is not None:
                errors.append(error)
        finally:
            call.close()
        perform.saw_sending(d, call, finding)
        if interrupt is not None:
            await self.finished(finishing(self.engine, ticket, finding))
            raise interrupt
        return finding

    async def _code(self, ticket: Ticket, call: Any, kept: list[Any], entered: list[bool]) -> Any:
        """Run the action's code, unless its time is over by the time a thread is free for it."""
        d = ticket.definition
        leading = [call] if d.declared.kind == "action" else []

        def begin(**given: Any) -> Any:
            if not perform.in_time(ticket, self.engine.clock):
                raise perform.NotStarted
            entered.append(True)
            return d.function(*leading, **given)

        on_loop = inspect.iscoroutinefunction(d.function)
        return await self._run(begin, kept, on_loop=on_loop, given=ticket.input)

    async def look(self, ticket: Ticket) -> LookReport:
        """Run a look-up over every epoch and its controls (laws 5, 14); a cancelled one gives
        its lease back at once."""
        try:
            return await self._look(ticket)
        except asyncio.CancelledError:
            await self.give_back(ticket)
            raise

    async def _look(self, ticket: Ticket) -> LookReport:
        steps = await hop(start_looking, self.engine, ticket)
        key = next(steps)
        while True:
            finding = await self._find(ticket, key)
            try:
                key = steps.send(finding)
            except StopIteration as end:
                report: LookReport = end.value
                return report

    async def _find(self, ticket: Ticket, key: str) -> Any:
        """Run the look-up function for one target key; its error is Unknown."""
        d = ticket.definition
        assert d.look is not None
        call = perform.make_call(self.engine, ticket, effect=False, key=key)
        try:
            function = d.look.function
            on_loop = inspect.iscoroutinefunction(function)
            value = await self._run(function, [], call, on_loop=on_loop)
            return finding_of_look(value, d.name)
        except Exception as error:  # noqa: BLE001 - a look-up's error is Unknown
            return perform.finding_of_look_error(error, d)
        except asyncio.CancelledError as error:
            if not _its_own(error):
                raise
            return perform.finding_of_look_error(error, d)
        finally:
            call.close()

    async def _run(
        self, function: Callable[..., Any], kept: list[Any], *args: Any, on_loop: bool,
        given: Mapping[str, Any] | None = None,
    ) -> Any:  # fmt: skip
        """Run a coroutine function on the loop, a plain one in a thread; what the latter returned
        is in `kept` even if its caller is cancelled."""
        if on_loop:
            return await function(*args, **(given or {}))
        await away(threads.code, lambda: kept.append(function(*args, **(given or {}))))
        if inspect.isawaitable(kept[0]):  # of an object, or of a decorated coroutine function
            self._room.leave()  # what it calls may need the place, and it needs no thread
            return await kept.pop()
        return kept[0]


def _its_own(error: BaseException) -> bool:
    """Tell whether code raised a cancellation that nobody asked of this caller, e.g. of a task
    that it awaited: that is an error like any other."""
    task = asyncio.current_task()
    return isinstance(error, asyncio.CancelledError) and task is not None and not task.cancelling()


class AsyncLedger:
    """The verbs of `Ledger` for asyncio. Use `await ascertain.open_async()`."""

    def __init__(self, ledger: Ledger) -> None:
        """Wrap a ledger; made by `open_async`."""
        self._ledger = ledger
        self.engine = ledger.engine
        self.wait = ledger.wait
        declaring = Declaring(self.engine, AsyncAction)
        self.action, self.step, self.flow = declaring.action, declaring.step, declaring.flow
        self.actions = declaring.actions

    @classmethod
    async def open(cls, make: Callable[[Any], Any], store: Any, **options: Any) -> AsyncLedger:
        """Open the store in a thread and wrap it."""
        return cls(await hop(lambda: Ledger(make(store), **options)))

    async def __aenter__(self) -> Self:
        """Return itself."""
        return self

    async def __aexit__(self, *_: object) -> None:
        """Close it."""
        await self.close()

    async def close(self) -> None:
        """Let go of the store."""
        await hop(self._ledger.close)

    def run(
        self, name: str, *, expects: Iterable[Expected] = (), due: float | None = None
    ) -> RunView:
        """Open (or reopen) a run; see `Ledger.run`. Reads and writes at once, without waiting
        for the loop."""
        return self._ledger.run(name, expects=expects, due=due)

    async def recover(self, limit: int = 1000) -> Report:
        """Do everything that is due now, once; see `Ledger.recover`."""
        room = Room()
        try:
            return await AsyncDriver(self.engine, room).drive(sweeping(self.engine, limit))
        finally:
            room.leave()

    async def confirm(self, operation: str | Receipt, *, wait: float | None = None) -> Receipt:
        """Ask the target again what happened; see `Ledger.confirm`."""
        until, room = self.engine.until(wait), Room()
        driver = AsyncDriver(self.engine, room)
        try:
            room.until = on_loop(self.engine, until)
            if not await room.wait():
                return await hop(self._ledger.get, operation)
            case = await hop(self._ledger.to_confirm, operation)
            look = claiming(self.engine, case, Do.LOOK_UP)
            started, cancelled = await driver.finished(look)
            if cancelled is not None:
                if isinstance(started, Ticket):
                    await driver.give_back(started)
                raise cancelled
            after = await driver.drive(driving(self.engine, started, None, until))
        finally:
            room.leave()
        return receipt(after, self.engine.world())

    def __getattr__(self, name: str) -> Any:
        """Give the reading and deciding verbs of `Desk`, awaited."""
        if name.startswith("_") or not hasattr(Desk, name):
            raise AttributeError(name)
        verb = getattr(self._ledger, name)

        async def awaited(*args: Any, **kwargs: Any) -> Any:
            return await hop(verb, *args, **kwargs)

        return awaited

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
import os
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from typing import Any, Self, TypeVar

from msgspec.structs import replace

from ascertain.core.draft import Case
from ascertain.core.errors import Conflict, Refused
from ascertain.core.model import Expected
from ascertain.core.reconcile import Do, LookReport

from . import perform
from .declare import BoundAction, Declaring
from .desk import Desk
from .driving import Act, Look, Sleep, driving, not_started
from .engine import Engine, Ticket
from .flow import RunView
from .ledger import (
    CONCURRENCY,
    Action,
    Driver,
    Ledger,
    current_run,
    make_call,
    other_content,
    start_looking,
)
from .looking import finding_of_look
from .receipt import Receipt, receipt
from .recovery import Report, sweeping
from .together import all_or_first_error
from .versions import check_undo

T = TypeVar("T")
Steps = Generator[Act | Look | Sleep, Any, T]
THREADS = 16  # ledger steps under way at once in one process


class Threads:
    """Where ledger steps run, and apart from them plain functions of actions: however long
    these take, no outcome waits for them."""

    def __init__(self) -> None:
        """Start without a thread."""
        self.steps = ThreadPoolExecutor(THREADS, thread_name_prefix="ascertain-aio")
        self.code = ThreadPoolExecutor(THREADS, thread_name_prefix="ascertain-code")


_threads = Threads()
os.register_at_fork(after_in_child=_threads.__init__)  # type: ignore[misc]  # threads stay behind


async def hop(function: Callable[..., T], *args: Any, **kwargs: Any) -> T:
    """Run a ledger step in a thread and wait for it; see `_away`."""
    return await _away(_threads.steps, lambda: function(*args, **kwargs))


async def _away(pool: ThreadPoolExecutor, function: Callable[[], T]) -> T:
    """Run a function in a thread and wait for it, whatever happens to the caller.

    A cancellation that arrives meanwhile is raised after the step has ended, so that what was
    written is known and recorded.
    """
    context = copy_context()
    future = asyncio.get_running_loop().run_in_executor(pool, lambda: context.run(function))
    cancelled: asyncio.CancelledError | None = None
    while not future.done():
        try:
            await asyncio.shield(future)
        except asyncio.CancelledError as error:
            if future.cancelled():
                raise
            cancelled = error
        except Exception:  # noqa: BLE001 - raised by result() below
            break
    if cancelled is not None:
        if not future.cancelled():
            future.exception()
        raise cancelled
    return future.result()


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
            self.definition.intent(given, now)
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
        intent = self.definition.intent(given, engine.store.now())
        run = self.options.run or current_run.get()
        options = replace(self.options, run=run) if run else self.options
        if options.compensates:
            await hop(check_undo, engine, options.compensates)
        started, reused = await _begin(engine, self.definition, intent, options)
        given_now = None if reused and other_content(started, intent) else intent.input
        until = engine.clock.boottime() + int((engine.wait if wait is None else wait) * 1e6)
        steps = driving(engine, started, given_now, until)
        asked = next(steps) if isinstance(started, Ticket) else None  # touches no store
        case = await AsyncDriver(engine).drive(steps, errors, asked, alone=True)
        return await hop(lambda: receipt(case, engine.world(), reused=reused))


async def _begin(
    engine: Engine, definition: Any, intent: Any, options: Any
) -> tuple[Ticket | Case, bool]:
    """Begin; if the caller is cancelled before its action started, the claim is given back as
    proven not sent (law 2)."""
    begun: list[tuple[Ticket | Case, bool]] = []

    def step() -> None:
        begun.append(engine.begin(definition, intent, options, execute=True))

    try:
        await hop(step)
    except asyncio.CancelledError:
        if begun and isinstance(begun[0][0], Ticket):
            await _give_back(engine, begun[0][0])
        raise
    return begun[0]


async def _give_back(engine: Engine, ticket: Ticket) -> None:
    with contextlib.suppress(Conflict):  # its lease ran out meanwhile, or it was settled
        await hop(engine.release, ticket)


class AsyncDriver:
    """Runs the code of actions on the loop; sync functions in a thread."""

    def __init__(self, engine: Engine) -> None:
        """Work for one engine."""
        self.engine = engine

    async def drive(
        self,
        steps: Steps[T],
        errors: list[BaseException] | None = None,
        asked: Act | Look | Sleep | None = None,
        *,
        alone: bool = False,
    ) -> T:
        """Carry out what the loop asks for until it returns; `asked` is what it asked already.

        `alone`: it drives one operation, so once that waits for nothing it only returns, and
        needs no thread for it.
        """
        answer: Case | Exception | None = None
        while True:
            if asked is None:
                over = alone and isinstance(answer, Case) and answer.status.due_at is None
                asked, end = (
                    self._step(steps, answer) if over else await self._advance(steps, answer)
                )
            if asked is None:
                assert end is not None
                return end
            try:
                answer = await self.carry_out(asked, errors)
            except Exception as error:  # noqa: BLE001 - thrown into what asked for it
                answer = error
            asked = None

    @staticmethod
    def _step(
        steps: Steps[T], answer: Case | Exception | None
    ) -> tuple[Act | Look | Sleep | None, T | None]:
        try:
            return (
                steps.throw(answer) if isinstance(answer, Exception) else steps.send(answer)
            ), None
        except StopIteration as end:
            return None, end.value

    async def _advance(
        self, steps: Steps[T], answer: Case | Exception | None
    ) -> tuple[Act | Look | Sleep | None, T | None]:
        """Go to the next thing asked for; a claim made for a caller who is cancelled meanwhile
        is given back, since its action never started (law 2)."""
        got: list[tuple[Act | Look | Sleep | None, T | None]] = []

        try:
            await hop(lambda: got.append(self._step(steps, answer)))
        except asyncio.CancelledError:
            asked = got[0][0] if got else None
            if isinstance(asked, Act | Look):
                await _give_back(self.engine, asked.ticket)
            raise
        return got[0]

    async def carry_out(
        self, asked: Act | Look | Sleep, errors: list[BaseException] | None = None
    ) -> Case | None:
        """Act, look or sleep; the first two return the case that follows."""
        match asked:
            case Act(ticket):
                return await self.act(ticket, errors)
            case Look(ticket):
                return await self.look(ticket)
            case Sleep(duration):
                await asyncio.sleep(duration / 1e6)
        return None

    async def act(self, ticket: Ticket, errors: list[BaseException] | None = None) -> Case:
        """Run an action's code and settle what came of it; a cancellation too is settled, as
        unknown, before it goes on (law 3)."""
        d = ticket.definition
        if d.declared.kind == "bulk":
            cases = await _away(_threads.code, lambda: Driver(self.engine).act_bulk([ticket]))
            return cases[0]
        call = make_call(self.engine, ticket, effect=True)
        kept: list[Any] = []
        interrupt: BaseException | None = None
        try:
            value = await self._code(ticket, call, kept)
            finding = perform.finding_of(value, d, call)
            perform.note_wrong(value, finding, errors)
        except perform.NotStarted:
            return await hop(not_started, self.engine, ticket)
        except BaseException as error:  # noqa: BLE001 - recorded first, then raised again
            interrupt = None if isinstance(error, Exception) else error
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
        case = await hop(self.engine.finish, ticket, finding)
        if interrupt is not None:
            raise interrupt
        return case

    async def _code(self, ticket: Ticket, call: Any, kept: list[Any]) -> Any:
        """Run the action's code, unless its time is over by the time a thread is free for it."""
        d = ticket.definition
        leading = [call] if d.declared.kind == "action" else []

        def begin(**given: Any) -> Any:
            if not perform.in_time(ticket, self.engine.clock):
                raise perform.NotStarted
            return d.function(*leading, **given)

        on_loop = inspect.iscoroutinefunction(d.function)
        return await _run(begin, kept, on_loop=on_loop, given=ticket.input)

    async def look(self, ticket: Ticket) -> Case:
        """Run a look-up over every epoch and its controls, and settle it (laws 5, 14); a
        cancelled one gives its lease back at once."""
        try:
            return await self._look(ticket)
        except asyncio.CancelledError:
            await _give_back(self.engine, ticket)
            raise

    async def _look(self, ticket: Ticket) -> Case:
        steps = await hop(start_looking, self.engine, ticket)
        key = next(steps)
        while True:
            finding = await self._find(ticket, key)
            try:
                key = steps.send(finding)
            except StopIteration as end:
                report: LookReport = end.value
                return await hop(self.engine.looked, ticket, report)

    async def _find(self, ticket: Ticket, key: str) -> Any:
        """Run the look-up function for one target key; its error is Unknown."""
        d = ticket.definition
        assert d.look is not None
        call = make_call(self.engine, ticket, effect=False, key=key)
        try:
            function = d.look.function
            value = await _run(function, [], call, on_loop=inspect.iscoroutinefunction(function))
            return finding_of_look(value, d.name)
        except Exception as error:  # noqa: BLE001 - a look-up's error is Unknown
            return perform.finding_of_look_error(error, d)
        finally:
            call.close()


async def _run(
    function: Callable[..., Any], kept: list[Any], *args: Any, on_loop: bool,
    given: Mapping[str, Any] | None = None,
) -> Any:  # fmt: skip
    """Run a coroutine function on the loop, a plain one in a thread; what the latter returned
    is in `kept` even if its caller is cancelled."""
    if on_loop:
        return await function(*args, **(given or {}))
    await _away(_threads.code, lambda: kept.append(function(*args, **(given or {}))))
    if inspect.isawaitable(kept[0]):  # of an object, or of a decorated coroutine function
        return await kept.pop()
    return kept[0]


class AsyncLedger:
    """The verbs of `Ledger` for asyncio. Use `await ascertain.open_async()`."""

    def __init__(self, ledger: Ledger) -> None:
        """Wrap a ledger; made by `open_async`."""
        self._ledger = ledger
        self.engine = ledger.engine
        self.wait = ledger.wait
        declaring = Declaring(self.engine, AsyncAction)
        self.action, self.step, self.flow = declaring.action, declaring.step, declaring.flow
        self._driver = AsyncDriver(self.engine)

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
        return await self._driver.drive(sweeping(self.engine, limit))

    async def confirm(self, operation: str | Receipt, *, wait: float | None = None) -> Receipt:
        """Ask the target again what happened; see `Ledger.confirm`."""
        ident = operation if isinstance(operation, str) else operation.id
        case = await hop(self._ledger.case_of, ident)
        started = await hop(self.engine.claim, case, Do.LOOK_UP)
        until = self.engine.clock.boottime() + int((self.wait if wait is None else wait) * 1e6)
        after = await self._driver.drive(driving(self.engine, started, None, until))
        return await hop(lambda: receipt(after, self.engine.world()))

    def __getattr__(self, name: str) -> Any:
        """Give the reading and deciding verbs of `Desk`, awaited."""
        if name.startswith("_") or not hasattr(Desk, name):
            raise AttributeError(name)
        verb = getattr(self._ledger, name)

        async def awaited(*args: Any, **kwargs: Any) -> Any:
            return await hop(verb, *args, **kwargs)

        return awaited

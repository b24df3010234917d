"""Submits operations for callers over HTTP, and says what came of them.

An answer comes within the time that the caller waits, and what it is about goes on without him:
the work is held by `InFlight`. What is not resolved is a problem with an error status, because
stock nodes of no-code tools take 202 for success and go on.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from datetime import datetime
from typing import Annotated, Any, Literal

import msgspec
from msgspec.structs import replace

from ascertain.config.spaces import Space
from ascertain.core.errors import AscertainError, OperationNotDone
from ascertain.core.model import SECOND, State
from ascertain.runtime.beginning import known
from ascertain.runtime.loop import hop, posted
from ascertain.runtime.receipt import Receipt, error_of
from ascertain.runtime.ticket import Beside
from ascertain.store.base import Posting

from . import shown
from .problems import Problem, ProblemError, problem_of
from .serving import Serving

WAIT = 300.0  # seconds that a request may wait at most
GRACE = 0.25  # seconds after them that an answer which is nearly there is waited for
SOON, LATER = 2.0, 3600.0  # seconds: when to ask again, at least and at most
# No control characters: PostgreSQL keeps no NUL, and people read these in lists.
PLAIN = r"^[^\u0000-\u001f\u007f]*$(?!\n)"
Name = Annotated[str, msgspec.Meta(min_length=1, max_length=200, pattern=PLAIN)]
Text = Annotated[str, msgspec.Meta(max_length=200, pattern=PLAIN)]
Why = Annotated[str, msgspec.Meta(max_length=2000, pattern=r"^[^\u0000]*$")]
Wait = Annotated[float, msgspec.Meta(ge=0, le=WAIT, description="seconds")]
Moment = Annotated[datetime, msgspec.Meta(tz=True)]


class TargetRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A request to a declared target, sent under its contract like one through the gateway: `path`
    and `query` as they stand in an address, and one body, `json` or `text`."""

    path: Annotated[str, msgspec.Meta(min_length=1, max_length=4096, pattern=r"^/[\x21-\x7e]*$")]
    method: Annotated[str, msgspec.Meta(pattern=r"^[A-Z]{1,20}$")] = "POST"
    query: Annotated[str, msgspec.Meta(max_length=8192, pattern=r"^[\x21-\x7e]*$")] = ""
    headers: dict[str, str] = {}
    json: Any = msgspec.UNSET
    text: str | None = None


class Submit(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What is to be done once: an `action` with its `input`, or a `request` to a `target`.

    `key`: what stands for {key} in the action's key template, or must be the key that the input
    gives; the headers `Ascertain-Key` and `Idempotency-Key` give it too. `run`: the name or id of
    a run. `wait`: how long the answer may take. `on_unresolved`: `accept` answers 202 instead of
    409 with what is not resolved. `callback`: an address of a declared host that is called when
    it settles later. `supersedes`: the operation before, with the `reason`. `due`: not earlier.
    """

    action: Name | None = None
    target: Name | None = None
    request: TargetRequest | None = None
    input: dict[str, Any] = {}
    key: Annotated[str, msgspec.Meta(max_length=512)] | None = None
    run: Name | None = None
    event: Name | None = None
    title: Text = ""
    wait: Wait | None = None
    on_unresolved: Literal["error", "accept"] = "error"
    callback: Annotated[str, msgspec.Meta(max_length=2000, pattern=PLAIN)] | None = None
    supersedes: Name | None = None
    reason: Why = ""
    due: Moment | None = None


class Told(msgspec.Struct, frozen=True, omit_defaults=True):
    """What came of one operation: its HTTP status, and the operation or the problem."""

    status: int
    operation: shown.Operation | None = None
    problem: Problem | None = None


async def submit(serving: Serving, space: Space, asked: Submit, key: str | None) -> Told:
    """Submit one and tell what came of it within its time; raises for wrong calls only.

    What is told as done, accepted, waiting or unknown is durable.
    """
    wait = serving.table.wait if asked.wait is None else asked.wait
    asked, key = resolved(serving, space, asked, key)
    serving.in_flight.admit()
    work = performed(space, asked, key, wait)
    task = await serving.in_flight.within(work, wait + GRACE)
    if task.done():
        return await told(serving, space, task.result(), accept=asked.on_unresolved == "accept")
    receipt = await hop(_so_far, space, asked, key)
    if receipt is None:
        raise ProblemError(
            "in_progress", f"{asked.action}: it is still being begun; ask again with the same key",
            retry_after=SOON,
        )  # fmt: skip
    return await told(serving, space, receipt, accept=asked.on_unresolved == "accept")


def resolved(
    serving: Serving, space: Space, asked: Submit, key: str | None
) -> tuple[Submit, str | None]:
    """Return what is submitted with its action: that of a request to a target is found by its
    method and path. Ends the request where it names neither or both."""
    if asked.target is None:
        if asked.action is None or asked.request is not None:
            raise ProblemError(
                "body_invalid", "name an action, or a target with a request", fields=["action"]
            )
        return asked, key
    if asked.request is None or asked.action is not None or asked.input:
        raise ProblemError(
            "body_invalid", "a target goes with a request, and with nothing else that is done",
            fields=["request"],
        )  # fmt: skip
    if key is None:
        raise ProblemError("key_missing", f"a request to {asked.target} needs a key of its own")
    action, given = serving.gateway.input_of(space.namespace, asked.target, asked.request, key)
    return replace(asked, action=action, input=given, target=None, request=None), None


async def performed(space: Space, asked: Submit, key: str | None, wait: float) -> Receipt:
    """Submit one and return its receipt, however long its action takes."""
    assert asked.action is not None, "see resolved"
    action = space.action(asked.action)
    if asked.supersedes and not asked.reason:
        raise ProblemError("body_invalid", "supersedes needs a reason", fields=["reason"])
    run = await space.runs.named(asked.run) if asked.run else None
    beside = watched(space, asked.callback)
    if beside or run or key is not None or _says_more(asked):
        action = action.using(
            run=run, event=asked.event, title=asked.title, supersedes=asked.supersedes,
            reason=asked.reason, due=asked.due, key=key, beside=beside,
        )  # fmt: skip
    receipt: Receipt = await action.submit_input(asked.input, wait=wait)
    if beside and receipt.reused:
        await posted(space.store, Posting(beside(receipt.id)))
    if key is not None and key == asked.run and not receipt.warnings:
        receipt = replace(receipt, warnings=("run_id",))  # a run has many operations
    return receipt


def _says_more(asked: Submit) -> bool:
    return bool(asked.event or asked.title or asked.supersedes or asked.reason or asked.due)


def watched(space: Space, url: str | None) -> Beside | None:
    """Return the line by which a callback is kept with its operation; raises UsageError for an
    address whose host is not declared."""
    if url is None:
        return None
    space.watches.check(url)
    return lambda operation: (space.watches.line(operation, url),)


def _so_far(space: Space, asked: Submit, key: str | None) -> Receipt | None:
    """Read where an operation stands whose action goes on; raises InputMismatch where it is of
    another input, since what was asked for may not have been compared yet."""
    engine = space.engine
    definition = engine.definition(asked.action or "")
    return known(engine, definition, definition.intent(asked.input, space.store.now(), key))


async def told(serving: Serving, space: Space, receipt: Receipt, *, accept: bool) -> Told:
    """Say what a receipt means: 200 where it is done or, as its contract says, accepted; 202
    where it is not resolved and the caller accepts that; else a problem."""
    link = serving.link(receipt.id)
    error = error_of(receipt)
    if error is None:
        return Told(200, shown.operation(receipt, link))
    if accept and (receipt.state is not State.NOT_DONE or receipt.unresolved):
        return Told(202, shown.operation(receipt, link))
    problem = problem_of(error, link, await why(serving, error))
    if problem.status == 409:
        problem = replace(problem, retry_after=ask_again(receipt, space.store.now()))
    return Told(problem.status, problem=problem)


async def why(serving: Serving, error: AscertainError | ProblemError) -> str:
    """Return the reason that the last attempt gave, for the error of what was not done."""
    receipt = error.facts.get("receipt") if isinstance(error, OperationNotDone) else None
    if not isinstance(receipt, Receipt):
        return ""
    try:
        return await hop(serving.space(receipt.namespace).ledger.why, receipt.id)
    except AscertainError:  # the answer is known without it
        return ""


def ask_again(receipt: Receipt, now: int) -> float | None:
    """Return after how many seconds something new can be known; None where a person is next."""
    if receipt.state is State.RUNNING:
        return SOON
    if receipt.due_at is None:
        return None
    return min(max((receipt.due_at - now) / SECOND, SOON), LATER)


async def tried(work: Callable[[], Any], serving: Serving) -> Told:
    """Do one of many: what is wrong with it is told, and stops no neighbour."""
    try:
        found: Told = await work()
    except Exception as error:
        if not isinstance(error, AscertainError | ProblemError):
            logging.getLogger("ascertain").exception("an item of a batch")
            error = ProblemError("broken", "something went wrong here; look at the server's log")
        about = error.facts.get("operation") if isinstance(error, AscertainError) else None
        link = serving.link(about) if about else None
        problem = problem_of(error, link, await why(serving, error))
        return Told(problem.status, problem=problem)
    return found

"""Webhooks come in here. They carry a signature, not a token."""

from __future__ import annotations

import asyncio
from typing import Any, NamedTuple

import msgspec
from fastapi import APIRouter, Request
from starlette.responses import Response

from ascertain.core.books import Event
from ascertain.core.errors import AscertainError, UnknownAction
from ascertain.core.intake import NotAnEvent
from ascertain.core.model import SECOND, State
from ascertain.runtime.intake import Made, checked, said
from ascertain.runtime.loop import hop, posted
from ascertain.runtime.mapping import MappingFailed
from ascertain.runtime.receipt import Receipt
from ascertain.server.messages import JSON, answer, documented
from ascertain.server.problems import ProblemError, problem_answer, problem_of
from ascertain.server.receiving import Received, Receiving
from ascertain.server.serving import Serving

router = APIRouter(tags=["hooks"])
FLOW_WITHIN = 8.0  # seconds until Shopify Flow is answered; it waits for 10
FLOW_HOLD = 30 * SECOND  # µs for which no worker takes what this request processes itself
START = {"type": "http.response.start", "status": 200}


class FlowAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """The answer to a Shopify Flow action: `done`, or it will ask again."""

    done: bool
    event: str
    operations: list[str]


class Ahead:
    """The road of most deliveries, ahead of the application: its layers cost as much again as a
    delivery does. The routes below are the same ones, for the API's description."""

    def __init__(self, app: Any, receiving: Receiving) -> None:
        """Stand before an application; everything else is passed on to it."""
        self._app, self._receiving = app, receiving

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Answer a delivery once its event is durable, and have it processed after the answer."""
        route = _entry(scope)
        if route is None:
            await self._app(scope, receive, send)
            return
        scope["route"] = route
        name, test = scope["path"].split("/")[2], route is TEST_ENTRY
        try:
            told, work = await self._receiving.take(name, scope, receive, test=test)
        except (AscertainError, ProblemError) as error:
            more = error.headers if isinstance(error, ProblemError) else None
            await problem_answer(problem_of(error), more)(scope, receive, send)
            return
        body = msgspec.json.encode(told)
        length = str(len(body)).encode()
        headers = [(b"content-type", JSON.encode()), (b"content-length", length)]
        await send({**START, "headers": headers})
        await send({"type": "http.response.body", "body": body})
        if work:
            await self._receiving.process_soon()


class Entry(NamedTuple):
    """Where deliveries come in; its path is what is told of a request."""

    path: str


ENTRY, TEST_ENTRY = Entry("/hooks/{name}"), Entry("/hooks/{name}/test")


def _entry(scope: Any) -> Entry | None:
    if scope["type"] != "http" or scope["method"] != "POST":
        return None
    match scope["path"].split("/"):
        case ["", "hooks", name] if name:
            return ENTRY
        case ["", "hooks", name, "test"] if name:
            return TEST_ENTRY
    return None


TAKES: dict[str, Any] = documented(Received, problems=(404, 408), anybody=True)


@router.post("/hooks/{name}", **TAKES)
async def receive(name: str, request: Request) -> Response:
    """Receive an event of the declared sender `name`, signed in its vendor's way.

    The event and its delivery are durable when this answers; they are processed afterwards, also
    after a crash. An event that came before is counted. A wrong signature is 401, and nothing of
    it is recorded.
    """
    return await _taken(request, name)


@router.post("/hooks/{name}/test", **TAKES)
async def receive_test(name: str, request: Request) -> Response:
    """Receive an event at the test entry of `name`: it is recorded and shown, never acted on."""
    return await _taken(request, name, test=True)


async def _taken(request: Request, name: str, *, test: bool = False) -> Response:
    serving: Serving = request.app.state.serving
    told, work = await serving.receiving.take(name, request.scope, request.receive, test=test)
    if work:
        await serving.receiving.process_soon()
    return answer(told)


@router.post(
    "/hooks/{name}/flow-action",
    **documented(FlowAnswer, also={202: FlowAnswer}, problems=(404, 408, 409), anybody=True),
)
async def flow_action(name: str, request: Request) -> Response:
    """Carry out a Shopify Flow action; `action_run_id` in its body is the event.

    200 when everything that it asks for is done; 202 while something is not settled, and then
    Flow asks again, for up to 24 hours; 422 where it cannot be done.
    """
    serving: Serving = request.app.state.serving
    hook, arrived = await serving.receiving.signed(name, request.scope, request.receive)
    intake = serving.intake
    new = await intake.receive(hook, arrived, hold=FLOW_HOLD)
    event = await hop(intake.event, hook.namespace, hook.name, arrived.event)
    assert event is not None
    space = serving.space(hook.namespace)
    try:
        found = intake.evaluated(event)
        wanted = [checked(space.engine, plan, intake.store.now()) for plan in found.plans]
    except UnknownAction as error:  # a flow, whose code a worker has
        if new:
            await posted(serving.store, intake.later(event, said(error)))
        return await _elsewhere(serving, event)
    except (MappingFailed, NotAnEvent, AscertainError) as error:  # e.g. its body is gone
        await posted(serving.store, intake.ending(event, "failed", said(error)))
        raise ProblemError("body_invalid", f"hook {name}: {said(error)}") from error
    if found.ignored:
        await posted(serving.store, intake.ending(event, "ignored", found.ignored))
        raise ProblemError("body_invalid", f"hook {name}: {found.ignored}")
    tasks = [
        asyncio.ensure_future(
            space.action(one.plan.action)
            .using(event=event.id, key=one.plan.key)
            .submit_input(one.plan.input, wait=FLOW_WITHIN - 1)
        )
        for one in wanted
    ]
    return await _settled(serving, event, tasks)


async def _settled(serving: Serving, event: Event, tasks: list[asyncio.Future[Any]]) -> Response:
    """Wait for operations within the bound and say where they stand; they go on without us."""

    async def all_of_them() -> list[Any]:
        receipts = await asyncio.gather(*tasks, return_exceptions=True)
        wrong = [said(r) for r in receipts if isinstance(r, Exception)]
        made = [
            Made(action=r.action, key=r.key, operation=r.id, shared=r.reused)
            for r in receipts
            if not isinstance(r, BaseException)
        ]
        await posted(serving.store, serving.intake.outcome(event, made, wrong))
        return receipts

    task = await serving.in_flight.within(all_of_them(), FLOW_WITHIN)
    if not task.done():
        return answer(FlowAnswer(done=False, event=event.id, operations=[]), 202)
    receipts = task.result()
    for one in receipts:
        if isinstance(one, BaseException):
            raise one
    return _stands(event, receipts)


async def _elsewhere(serving: Serving, event: Event) -> Response:
    """Say where an event stands that a worker takes up."""
    if event.state not in ("received", "processed"):
        raise ProblemError("body_invalid", f"hook {event.source}: {event.why}")
    ledger = serving.space(event.namespace).ledger
    made = msgspec.json.decode(event.operations or "[]", type=list[Made])
    return _stands(event, [await hop(ledger.get, one.operation) for one in made])


def _stands(event: Event, receipts: list[Receipt]) -> Response:
    for one in receipts:
        if one.state is State.NOT_DONE:
            raise ProblemError("body_invalid", f"operation {one.key}: {one.next_step['en']}")
    done = bool(receipts) and all(one.state is State.DONE for one in receipts)
    ids = [one.id for one in receipts]
    told = FlowAnswer(done=done, event=event.id, operations=ids)
    return answer(told, 200 if done else 202)

"""Events: what came in, how often, what it led to or why to nothing; and what a map would do."""

from __future__ import annotations

import base64
from datetime import UTC, datetime
from typing import Annotated, Any

import msgspec
from fastapi import APIRouter, Path, Query, Request
from starlette.responses import Response

from ascertain.core.books import Delivery, Event
from ascertain.core.intake import NotAnEvent
from ascertain.core.model import SECOND
from ascertain.runtime import tryout
from ascertain.runtime.hooks import Hook
from ascertain.runtime.intake import TEST, EventLine, Made
from ascertain.runtime.loop import hop
from ascertain.runtime.mapping import MappingFailed
from ascertain.server import shown
from ascertain.server.access import Caller, Reader, Right, needs
from ascertain.server.messages import answer, documented, read_body
from ascertain.server.problems import ProblemError
from ascertain.server.receiving import Received
from ascertain.server.serving import Serving

router = APIRouter(prefix="/v1", tags=["events"])
Sender = Annotated[Caller, needs(Right.EVENT)]
TEXT = r"^[^\x00]*$"  # PostgreSQL keeps no NUL
Ident = Annotated[str, Path(max_length=255, pattern=TEXT)]
Source = Annotated[str, Path(max_length=100, pattern=TEXT)]
Operator = Annotated[Caller, needs(Right.OPERATE)]
ONE = "/events/{source}/{ident:path}"
NEWEST = 2**62  # later than any time in µs


class MadeShown(msgspec.Struct, frozen=True, kw_only=True):
    """One operation that an event led to. `shared`: it was there before, of another event."""

    action: str
    key: str
    operation: str
    shared: bool
    link: str


class EventShown(msgspec.Struct, frozen=True, kw_only=True):
    """An event, with how it arrived. `state`: received (not processed yet), processed, ignored,
    stale (something newer was acted on), failed (a person is next), shown (of a test entry)."""

    source: str
    id: str
    received_at: datetime | None
    processed_at: datetime | None
    topic: str
    state: str
    why: str
    signature: str
    subject: str
    ordinal: int | None
    deliveries: int
    arrivals: int
    subscriptions: int
    operations: list[MadeShown]


class EventList(msgspec.Struct, frozen=True):
    """One page of events, newest first; `next` is the cursor of the following page."""

    items: list[EventShown]
    next: str | None


class DeliveryShown(msgspec.Struct, frozen=True, kw_only=True):
    """The arrivals of an event under one delivery id. `differs`: its body was another one than
    the body that was recorded first."""

    id: str
    first_at: datetime | None
    last_at: datetime | None
    arrivals: int
    subscription: str
    body_hash: str
    differs: bool


class PlanShown(msgspec.Struct, frozen=True, kw_only=True):
    """One operation that an event asks for: whether it exists already, or why it cannot be."""

    action: str
    key: str
    input: dict[str, Any]
    exists: str | None
    state: str
    wrong: str


class EvaluationShown(msgspec.Struct, frozen=True, kw_only=True):
    """What the map makes of an event now. Nothing was recorded or acted on."""

    id: str
    source: str
    topic: str
    plans: list[PlanShown]
    ignored: str
    wrong: str


class EventDetail(EventShown, frozen=True, kw_only=True):
    """An event whole: with its body and the deliveries that brought it."""

    headers: dict[str, str]
    body: str
    arrived: list[DeliveryShown]


class HookShown(msgspec.Struct, frozen=True, kw_only=True):
    """A declared sender, and what this server has counted since it started."""

    name: str
    kind: str
    test: bool
    maps: int
    counts: dict[str, int]


class HookList(msgspec.Struct, frozen=True):
    """The declared senders of a namespace."""

    items: list[HookShown]


class HandIn(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An event, handed in with a token: `source` is a declared hook, `id` the sender's own."""

    source: str
    id: str
    topic: str = ""
    data: Any = None


class Pasted(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An event to try: `id` and `topic` where they do not stand in its headers or body."""

    body: Any
    headers: dict[str, str] = {}
    id: str = ""
    topic: str = ""


class TestMapping(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Events to try a map on."""

    events: Annotated[list[Pasted], msgspec.Meta(min_length=1, max_length=100)]


class SharedShown(msgspec.Struct, frozen=True, kw_only=True):
    """A key that several of the events share: one operation of all of them."""

    action: str
    key: str
    events: list[str]


class MappingTested(msgspec.Struct, frozen=True, kw_only=True):
    """What each event would lead to, and which of them share an operation."""

    items: list[EvaluationShown]
    shared: list[SharedShown]


@router.get("/events", **documented(EventList))
async def listed(
    request: Request,
    caller: Reader,
    *,
    source: Annotated[str | None, Query(max_length=100, pattern=TEXT)] = None,
    state: Annotated[str | None, Query(max_length=20, pattern=TEXT)] = None,
    topic: Annotated[str | None, Query(max_length=200, pattern=TEXT)] = None,
    subject: Annotated[str | None, Query(max_length=255, pattern=TEXT)] = None,
    since: datetime | None = None,
    after: Annotated[str | None, Query(max_length=1000)] = None,
    limit: Annotated[int, Query(ge=1, le=1000)] = 100,
) -> Response:
    """List events, newest first; `after` is the cursor `next` of the page before."""
    serving: Serving = request.app.state.serving
    at, before_source, before_id = _cursor(after)
    found: list[EventLine] = await hop(
        serving.store.ask, EventLine, "events_listed", namespace=caller.namespace,
        source=source, state=state, topic=topic, subject=subject, since=_micros(since),
        before_at=at, before_source=before_source, before_id=before_id, limit=limit,
    )  # fmt: skip
    last = found[-1] if len(found) == limit else None
    next_ = None if last is None else _to_cursor(last.received_at, last.source, last.id)
    return answer(EventList([_line(serving, one) for one in found], next_))


@router.post("/events", **documented(Received, body=HandIn, problems=(404,)))
async def hand_in(request: Request, caller: Sender) -> Response:
    """Hand an event in with a token instead of a signature; durable when this answers.

    With `.test` behind the name of a hook it is shown and never acted on.
    """
    serving: Serving = request.app.state.serving
    given = await read_body(request, HandIn)
    hook = _hook(serving, caller, given.source.removesuffix(TEST))
    test = given.source.endswith(TEST)
    if test and not hook.test:
        raise ProblemError("unknown", f"hook {hook.name!r} has no test entry")
    text = msgspec.json.encode(given.data).decode()
    try:
        arrived = hook.handed_in(given.id, given.topic, text, given.data)
    except (NotAnEvent, MappingFailed) as error:
        raise ProblemError("body_invalid", f"hook {hook.name}: {error}") from error
    new = await serving.intake.receive(hook, arrived, test=test)
    if new and not test:
        await serving.receiving.process_soon()
    return answer(Received(event=arrived.event, new=new))


@router.post(ONE + "/evaluate", **documented(EvaluationShown, problems=(404,)))
async def evaluate(source: Source, ident: Ident, request: Request, caller: Reader) -> Response:
    """Show what the map makes of an event now and what of it exists. It never acts."""
    serving: Serving = request.app.state.serving
    event = await _event(serving, caller, source, ident)
    found = await hop(tryout.evaluation, serving.intake, event)
    return answer(_evaluation(found))


@router.post(ONE + "/process", **documented(EventDetail, problems=(404, 409)))
async def process(source: Source, ident: Ident, request: Request, caller: Operator) -> Response:
    """Let an event that failed be processed again, e.g. once its map is corrected.

    What it led to already has its key and is not made again.
    """
    serving: Serving = request.app.state.serving
    event = await _event(serving, caller, source, ident)
    if not await hop(serving.intake.again, caller.namespace, source, ident, caller.who):
        why = f"event {ident}: it is {event.state}; only one that failed can be processed again"
        raise ProblemError("refused", why)
    await serving.receiving.process_soon()
    return await _shown(serving, await _event(serving, caller, source, ident))


@router.get(ONE, **documented(EventDetail, problems=(404,)))
async def one(source: Source, ident: Ident, request: Request, caller: Reader) -> Response:
    """Return an event: how it arrived, and what it led to or why to nothing."""
    serving: Serving = request.app.state.serving
    return await _shown(serving, await _event(serving, caller, source, ident))


@router.get("/hooks", **documented(HookList))
async def hooks(request: Request, caller: Reader) -> Response:
    """List the declared senders, with what was counted: wrong signatures leave only that."""
    serving: Serving = request.app.state.serving
    found = [h for h in serving.intake.hooks.values() if h.namespace == caller.namespace]
    counts = serving.intake.counts
    return answer(HookList([
        HookShown(
            name=hook.name, kind=hook.kind, test=hook.test, maps=len(hook.rules),
            counts={what: n for (name, what), n in counts.items() if name == hook.name},
        )
        for hook in found
    ]))  # fmt: skip


@router.post(
    "/hooks/{name}/test-mapping", **documented(MappingTested, body=TestMapping, problems=(404,))
)
async def test_mapping(name: str, request: Request, caller: Reader) -> Response:
    """Show for pasted events which keys they would create, which of them share one, and what
    would be ignored and why. It never acts and records nothing."""
    serving: Serving = request.app.state.serving
    given = await read_body(request, TestMapping)
    hook = _hook(serving, caller, name)
    pasted = [
        tryout.Pasted(body=e.body, headers=e.headers, id=e.id, topic=e.topic) for e in given.events
    ]
    found = await hop(tryout.mapping, serving.intake, hook, pasted)
    return answer(MappingTested(
        items=[_evaluation(one) for one in found],
        shared=[
            SharedShown(action=action, key=key, events=events)
            for (action, key), events in tryout.shared(found).items()
        ],
    ))  # fmt: skip


def _hook(serving: Serving, caller: Caller, name: str) -> Hook:
    hook = serving.intake.hook(name, caller.namespace)
    if hook is None:
        raise ProblemError("unknown", f"no hook {name!r} is declared here")
    return hook


async def _event(serving: Serving, caller: Caller, source: str, ident: str) -> Event:
    found: Event | None = await hop(serving.intake.event, caller.namespace, source, ident)
    if found is None:
        raise ProblemError("unknown", f"no event {ident!r} of {source!r} in this namespace")
    return found


async def _shown(serving: Serving, event: Event) -> Response:
    deliveries: list[Delivery] = await hop(serving.intake.deliveries, event)
    first = deliveries[0].body_hash if deliveries else ""
    line = EventLine(
        **{n: getattr(event, n) for n in EventLine.__struct_fields__ if hasattr(event, n)},
        deliveries=len(deliveries), arrivals=sum(d.arrivals for d in deliveries),
        subscriptions=len({d.subscription for d in deliveries if d.subscription}),
    )  # fmt: skip
    arrived = [
        DeliveryShown(
            id=d.id, first_at=shown.time(d.first_at), last_at=shown.time(d.last_at),
            arrivals=d.arrivals, subscription=d.subscription, body_hash=d.body_hash,
            differs=d.body_hash != first,
        )
        for d in deliveries
    ]  # fmt: skip
    short = msgspec.structs.asdict(_line(serving, line))
    headers = msgspec.json.decode(event.headers)
    return answer(EventDetail(**short, headers=headers, body=event.body, arrived=arrived))


def _line(serving: Serving, line: EventLine) -> EventShown:
    made = msgspec.json.decode(line.operations, type=list[Made])
    return EventShown(
        source=line.source, id=line.id, received_at=shown.time(line.received_at),
        processed_at=shown.time(line.processed_at), topic=line.topic, state=line.state,
        why=line.why, signature=line.signature, subject=line.subject, ordinal=line.ordinal,
        deliveries=line.deliveries, arrivals=line.arrivals, subscriptions=line.subscriptions,
        operations=[
            MadeShown(
                action=m.action, key=m.key, operation=m.operation, shared=m.shared,
                link=serving.link(m.operation),
            )
            for m in made
        ],
    )  # fmt: skip


def _evaluation(found: tryout.Evaluation) -> EvaluationShown:
    plans = [
        PlanShown(
            action=p.action, key=p.key, input=p.input, exists=p.exists, state=p.state, wrong=p.wrong
        )
        for p in found.plans
    ]
    return EvaluationShown(
        id=found.id, source=found.source, topic=found.topic, plans=plans, ignored=found.ignored,
        wrong=found.wrong,
    )  # fmt: skip


def _micros(at: datetime | None) -> int:
    if at is None:
        return 0
    try:
        return int((at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp() * SECOND)
    except (OverflowError, ValueError) as error:
        raise ProblemError("body_invalid", "since is no time", fields=["since"]) from error


def _to_cursor(at: int, source: str, ident: str) -> str:
    return base64.urlsafe_b64encode(msgspec.json.encode([at, source, ident])).decode()


def _cursor(given: str | None) -> tuple[int, str, str]:
    if given is None:
        return NEWEST, "", ""
    try:
        raw = base64.urlsafe_b64decode(given.encode("ascii"))
        at, source, ident = msgspec.json.decode(raw, type=tuple[int, str, str])
    except (ValueError, msgspec.MsgspecError) as error:
        raise ProblemError("body_invalid", "after is no cursor", fields=["after"]) from error
    if not (0 <= at <= NEWEST and (source + ident).isprintable()):
        raise ProblemError("body_invalid", "after is no cursor", fields=["after"])
    return at, source, ident

"""The stream of changes, as server-sent events. It is a hint to look again, never the truth.

A browser comes with its cookie, a program with its token in the header: no token stands in an
address.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable
from datetime import datetime
from typing import Any

import msgspec
from fastapi import APIRouter, Request
from starlette.responses import Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from ascertain.core.model import Review
from ascertain.runtime import feed
from ascertain.runtime.feed import LISTENERS, Arrived, Listener, Moved, News, Opened
from ascertain.server import shown
from ascertain.server.access import Caller, Reader, Right, still
from ascertain.server.messages import documented
from ascertain.server.problems import ProblemError
from ascertain.server.serving import Serving

router = APIRouter(prefix="/v1", tags=["stream"])
BEAT = 5.0  # seconds without news until a comment: proxies keep it open, and who is gone is seen
LOOK = 1.0  # seconds between two looks whether the server is to stop
LONGEST = 3600.0  # seconds of one stream
ASKED_AGAIN = 10.0  # seconds until it is asked again who listens: he may be shut out meanwhile
AGAIN = 2000  # ms after which a client comes again
MEDIA = "text/event-stream"


class OperationMoved(msgspec.Struct, frozen=True, kw_only=True):
    """An operation as it is now."""

    id: str
    action: str
    key: str
    title: str
    run: str | None
    state: str
    reason: str
    waiting_on: str
    ref: str | None
    stamp: str
    at: datetime | None


class ReviewMoved(msgspec.Struct, frozen=True, kw_only=True):
    """A review as it is now."""

    id: str
    operation: str
    road: str
    owner: str
    taken_by: str
    snoozed_until: datetime | None
    closed_by: str
    decision: str


class EventMoved(msgspec.Struct, frozen=True, kw_only=True):
    """An event, and what became of it so far."""

    source: str
    id: str
    topic: str
    state: str
    why: str
    received_at: datetime | None


class RunMoved(msgspec.Struct, frozen=True, kw_only=True):
    """A run that was opened, or closed."""

    id: str
    name: str
    opened_at: datetime | None
    closed_at: datetime | None


@router.get("/stream", **documented(media=MEDIA, headers=("Last-Event-ID",)))
async def stream(request: Request, caller: Reader) -> Response:
    """Tell what changes in this namespace, as it changes (within about two seconds).

    Events: `operation`, `review.opened`, `review.changed`, `review.closed`, `event`, `run`, each
    with what it is about as it is now; `many`: more changed than is told one by one, read the
    lists again; `reload`: you were too slow, the stream ends, read the lists again. With
    `Last-Event-ID` what changed meanwhile comes first, some of it perhaps again.
    """
    serving: Serving = request.app.state.serving
    if serving.feed.listeners >= LISTENERS:
        raise ProblemError("too_many", "too many streams at once: ask the lists", retry_after=10)
    last = request.headers.get("last-event-id", "")
    after = int(last) if last.isascii() and last.isdecimal() and len(last) < 19 else None
    listener, now = await serving.feed.listen(caller.namespace, after)
    return _Stream(request, caller, listener, now)


class _Stream(StreamingResponse):
    """A stream to one client; however it ends, its listener leaves."""

    def __init__(self, request: Request, caller: Caller, listener: Listener, now: int) -> None:
        serving: Serving = request.app.state.serving
        headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
        told = _told(request, caller, listener, now)
        super().__init__(told, media_type=MEDIA, headers=headers)
        self._leave: Callable[[], None] = lambda: serving.feed.leave(caller.namespace, listener)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._leave()


async def _told(
    request: Request, caller: Caller, listener: Listener, now: int
) -> AsyncIterator[bytes]:
    serving: Serving = request.app.state.serving
    begun = beat = asked = time.monotonic()
    yield f"retry: {AGAIN}\nevent: hello\nid: {now}\ndata: {{}}\n\n".encode()
    while not serving.stopping and time.monotonic() - begun < LONGEST:
        news = await listener.next(LOOK)
        if time.monotonic() - asked >= ASKED_AGAIN:
            if not await still(request, caller, Right.READ):
                return
            asked = time.monotonic()
        if news is not None:
            yield event(news)
            beat = time.monotonic()
            if news.kind == "reload":
                return
        elif await request.is_disconnected():
            return
        elif time.monotonic() - beat >= BEAT:
            yield b": still here\n\n"
            beat = time.monotonic()


def event(news: News) -> bytes:
    """Return one thing to tell as a server-sent event."""
    data = msgspec.json.encode(_shown(news.what)).decode()
    return f"event: {news.kind}\nid: {news.at}\ndata: {data}\n\n".encode()


def _shown(what: feed.Moved | Review | Arrived | Opened | None) -> Any:
    match what:
        case Moved():
            return OperationMoved(
                id=what.id, action=what.action, key=what.key, title=what.title, run=what.run,
                state=what.state, reason=what.reason, waiting_on=what.waiting_on, ref=what.ref,
                stamp=str(what.stamp), at=shown.time(what.updated_at),
            )  # fmt: skip
        case Review():
            return ReviewMoved(
                id=what.id, operation=what.operation, road=what.road, owner=what.owner,
                taken_by=what.taken_by, snoozed_until=shown.time(what.snoozed_until),
                closed_by=what.closed_by, decision=what.decision,
            )  # fmt: skip
        case Arrived():
            return EventMoved(
                source=what.source, id=what.id, topic=what.topic, state=what.state, why=what.why,
                received_at=shown.time(what.received_at),
            )  # fmt: skip
        case Opened():
            return RunMoved(
                id=what.id, name=what.name, opened_at=shown.time(what.opened_at),
                closed_at=shown.time(what.closed_at),
            )  # fmt: skip
    return {}

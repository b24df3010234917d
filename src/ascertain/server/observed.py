"""Around the whole application: what is refused before it, what is told of each request, and which
requests are under way when the server is to stop.

Nothing that may be secret is told: no query, no body, no header, and of the path only the route.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, MutableMapping
from contextlib import suppress
from typing import Any

from ascertain.runtime.clock import Clock
from ascertain.runtime.telemetry import bound, telemetry
from ascertain.targets.classify import describe

from .holding import Bodies, Hold, holding
from .problems import ProblemError, problem_answer, problem_of
from .tracing import Tracing

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Any]]
Send = Callable[[Any], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]
AT_ONCE = 1024  # requests under way in one process, streams apart
ALWAYS = frozenset({"/healthz", "/readyz", "/metrics"})  # answered whatever else is refused
LATER = 1.0  # seconds after which a refused request may come again
REQUEST_ID = re.compile(rb"[A-Za-z0-9._-]{1,64}")
STREAM = b"text/event-stream"
CUT = (
    "the server was stopped before the outcome was known: ask another one under the same key,"
    " which does nothing twice"
)


class Observed:
    """The application as uvicorn runs it."""

    def __init__(self, app: App, at_once: int = AT_ONCE) -> None:
        """Surround an application."""
        self.stopping = False
        self.under_way = 0
        self._app, self._at_once, self._clock = app, at_once, Clock()
        self.bodies = Bodies()
        self._streams: set[asyncio.Task[Any]] = set()

    @property
    def working(self) -> int:
        """How many requests are under way, streams apart: these have no end of their own."""
        return self.under_way - len(self._streams)

    def stop(self) -> None:
        """Refuse what comes from now on, and end the streams."""
        self.stopping = True
        for task in list(self._streams):
            task.cancel()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        request_id = _request_id(scope) or f"{self._clock.token():016x}"
        seen = _Seen(send, request_id.encode(), self)
        began = self._clock.boottime()
        hold = Hold(self.bodies)
        self.under_way += 1
        asked = holding.set(hold)
        try:
            with bound(request=request_id):
                try:
                    await self._within_span(scope, receive, seen)
                finally:
                    spent = round((self._clock.boottime() - began) / 1000, 1)
                    telemetry.tell("request", method=scope["method"], route=_route(scope),
                                   status=seen.status, ms=spent)  # fmt: skip
        finally:
            self.under_way -= 1
            hold.leave()
            holding.reset(asked)
            if seen.task is not None:
                self._streams.discard(seen.task)

    async def _within_span(self, scope: Scope, receive: Receive, seen: _Seen) -> None:
        tracer = telemetry.tracer
        if not isinstance(tracer, Tracing):
            return await self._answered(scope, receive, seen)
        with tracer.request(scope["method"], scope["headers"]) as span:
            try:
                await self._answered(scope, receive, seen)
            finally:
                tracer.answered(span, scope["method"], _route(scope), seen.status)

    async def _answered(self, scope: Scope, receive: Receive, seen: _Seen) -> None:
        refused = self._refused(scope["path"])
        if refused is not None:
            answer = problem_answer(problem_of(refused), {"Connection": "close"})
            return await answer(scope, receive, seen)
        try:
            await self._app(scope, receive, seen)
        except asyncio.CancelledError:
            if not self.stopping:
                raise
            if seen.task is not None:
                with suppress(RuntimeError):  # it had just ended
                    await seen({"type": "http.response.body", "body": b"", "more_body": False})
            elif not seen.status:  # what it did is written down already
                stopped = ProblemError("stopping", CUT, retry_after=LATER)
                await problem_answer(problem_of(stopped))(scope, receive, seen)
        except Exception as error:  # noqa: BLE001 - told, answered, and one request's alone
            telemetry.tell("request.broken", route=_route(scope), error=describe(error),
                           exception=error)  # fmt: skip
            if not seen.status:
                broken = ProblemError("broken", f"the server met {type(error).__name__}")
                await problem_answer(problem_of(broken))(scope, receive, seen)

    def _refused(self, path: str) -> ProblemError | None:
        if path in ALWAYS:
            return None
        if self.stopping:
            return ProblemError(
                "stopping", "this server is being stopped: ask another one", retry_after=LATER
            )
        if self.working > self._at_once:
            return ProblemError(
                "overloaded", f"{self._at_once} requests are under way", retry_after=LATER
            )
        return None

    def streams(self, task: asyncio.Task[Any]) -> None:
        """Note that a request has become a stream."""
        self._streams.add(task)
        if self.stopping:
            task.cancel()


class _Seen:
    """Passes an answer on, names the request in it, and keeps its status."""

    def __init__(self, send: Send, request_id: bytes, observed: Observed) -> None:
        self._send, self._id, self._observed = send, request_id, observed
        self.status = 0
        self.task: asyncio.Task[Any] | None = None  # of a stream
        own = asyncio.current_task()
        assert own is not None
        self._own = own

    async def __call__(self, message: Any) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            headers = list(message.get("headers", ()))
            if any(n.lower() == b"content-type" and v.startswith(STREAM) for n, v in headers):
                self.task = self._own  # whatever task of the application's sends this
                self._observed.streams(self.task)
            message = {**message, "headers": [*headers, (b"x-request-id", self._id)]}
        await self._send(message)


def _request_id(scope: Scope) -> str:
    given = next((v for n, v in scope["headers"] if n == b"x-request-id"), b"")
    return given.decode() if REQUEST_ID.fullmatch(given) else ""


def _route(scope: Scope) -> str:
    """Return the route's own path, since what fills it may be a secret; nothing if none fits."""
    return str(getattr(scope.get("route"), "path", "") or "")

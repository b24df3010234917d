"""The HTTP protocol with bounds: what is malformed, oversized or slow ends its own connection only.

uvicorn's protocol bounds neither the size of a head nor the time that a request takes to arrive
(0.54, read on 2026-11-29). Here both are: sizes as bytes come in, times once a second, in one walk
over the connections, so that a request costs nothing more.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any

import msgspec
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from .problems import MEDIA, ProblemError, problem_of

HEAD_BYTES = 64 * 1024  # of a request line with its headers
HEAD_WITHIN = 10.0  # seconds for a head, from the connection or its first byte
BODY_GRACE = 10.0  # seconds for a body,
BODY_RATE = 8 * 1024  # and one more for so many bytes that came;
BODY_LONGEST = 900.0  # seconds for any body
READ_WITHIN = 60.0  # seconds in which a client takes some of an answer that waits for it
PIPELINED = 16  # requests of one connection that wait for their turn
CONNECTIONS = 4096  # of one process
TOO_LARGE = f"a head has at most {HEAD_BYTES} bytes"
LATER = 1  # seconds after which a refused client may try again


class Bounded(HttpToolsProtocol):
    """One connection."""

    most = CONNECTIONS

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Take a connection; where there are too many, the one that says nothing for longest
        makes room."""
        self.in_head, self.received, self.head_at = True, 0, 0
        self.since = self.loop.time()  # when this phase began
        self.base = 0  # what was received before it
        self.phase: Any = None
        self.held = 0.0  # seconds of it in which we took nothing
        self.unread = 0.0  # since when the client takes nothing, or 0
        self.refused = False  # before it said anything
        if len(self.connections) >= self.most and not self._make_room():
            self.transport = transport
            transport.write(_raw(503, ProblemError("overloaded", "too many connections")))
            transport.close()
            self.refused = True
            return
        super().connection_made(transport)

    def _make_room(self) -> bool:
        silent = [c for c in self.connections if isinstance(c, Bounded) and c.in_head]
        oldest = min(silent, key=lambda c: c.since, default=None)
        if oldest is not None:
            oldest.cut()
        return oldest is not None

    def data_received(self, data: bytes) -> None:
        """Parse what came, and refuse a head that has no end."""
        if self.refused:
            return
        self.received += len(data)
        super().data_received(data)
        cycle = self._asked()
        if not self.in_head and cycle is not None and cycle.response_complete:
            # Of a request that was answered early, the rest of the body may still come.
            idle = not cycle.more_body and not self.pipeline
            if self.timeout_keep_alive_task is None and idle:
                # Blank lines, which begin no request, and have stopped the timer all the same.
                self.in_head, self.head_at, self.since = True, self.received, self.loop.time()
        elif self.in_head and self.received - self.head_at > HEAD_BYTES:
            self._refuse(431, ProblemError("too_large", TOO_LARGE))

    def eof_received(self) -> bool:  # type: ignore[override]
        """Answer a client who sends no more: his whole request still gets its answer."""
        cycle = self._asked()
        if cycle is not None and not cycle.response_complete and not self.in_head:
            if not cycle.more_body:
                cycle.keep_alive = False
                return True
            self._refuse(400, ProblemError("body_malformed", "the body ended before its length"))
        return False

    def on_message_begin(self) -> None:
        """Begin a request."""
        if len(self.pipeline) >= PIPELINED:
            raise ValueError("too many requests before the answers to those before")
        if not self.in_head:
            self.in_head, self.head_at, self.since = True, self.received, self.loop.time()
        super().on_message_begin()

    def on_header(self, name: bytes, value: bytes) -> None:
        """Keep a header; those after the body are not looked at."""
        if self.in_head:
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        """Hand the request on, unless its head is too large."""
        self.in_head = False
        size = len(self.url) + sum(len(n) + len(v) + 4 for n, v in self.headers)
        if size > HEAD_BYTES:
            self._refuse(431, ProblemError("too_large", TOO_LARGE))
        elif not self.transport.is_closing():
            super().on_headers_complete()

    def send_400_response(self, msg: str) -> None:
        """Answer what is no HTTP."""
        self._refuse(400, ProblemError("body_malformed", "this is no HTTP request"))

    # --- time ---

    def look(self, now: float) -> None:
        """End the connection if its request takes too long to arrive, or its answer to be read."""
        if self.transport.is_closing():
            return
        if not self.flow.write_paused:
            self.unread = 0.0
        elif not self.unread:
            self.unread = now
        elif now - self.unread > READ_WITHIN:
            self.cut()
            return
        cycle = self._asked()
        if self.in_head:
            arriving = ("head", self.head_at)
        elif cycle is not None and cycle.more_body:  # also of a request that is answered already
            arriving = ("body", id(cycle))
        else:
            self.phase = None
            return
        if self.phase != arriving:
            self.phase, self.held, self.base = arriving, 0.0, self.received
            self.since = self.since if self.in_head else now
            return
        if self.flow.read_paused:  # the application is slower than the client
            self.held += 1.0
        self._judge(now - self.since - self.held)

    def _judge(self, spent: float) -> None:
        came = self.received - self.base
        if self.in_head:
            # A connection that is kept open is closed by its own timer, without a word.
            if spent > HEAD_WITHIN and self.timeout_keep_alive_task is None:
                self._too_slow(HEAD_WITHIN)
        elif spent > min(BODY_GRACE + came / BODY_RATE, BODY_LONGEST):
            self._too_slow(BODY_GRACE)

    def _too_slow(self, within: float) -> None:
        cycle = self._asked()
        answered = not self.in_head and cycle is not None and cycle.response_complete
        if answered or self.received == self.head_at:
            self.cut()  # it has its answer, or never said a word
        else:
            text = f"the request did not arrive within {within:g} s, at {BODY_RATE} bytes/s"
            self._refuse(408, ProblemError("too_slow", text))

    def _asked(self) -> RequestResponseCycle | None:
        """Return the last request; there is none before the first head has come."""
        return self.cycle

    # --- ends ---

    def cut(self) -> None:
        """End the connection now, whatever waits to be sent."""
        self.transport.abort()

    def _refuse(self, status: int, error: ProblemError) -> None:
        """Answer by itself, if no answer has begun, and close."""
        cycle = self._asked()
        answering = cycle is not None and cycle.response_started and not cycle.response_complete
        if not self.transport.is_closing():
            if not answering:
                self.transport.write(_raw(status, error))
            self.transport.close()
        self.in_head = False


def look_over(connections: Iterable[Any], now: float) -> None:
    """End every connection that takes too long; called once a second."""
    for connection in list(connections):
        if isinstance(connection, Bounded):
            connection.look(now)


def _raw(status: int, error: ProblemError) -> bytes:
    body = msgspec.json.encode(problem_of(error))
    head = (
        f"HTTP/1.1 {status} {error.code.replace('_', ' ').title()}\r\n"
        f"content-type: {MEDIA}\r\ncontent-length: {len(body)}\r\nconnection: close\r\n"
        + (f"retry-after: {LATER}\r\n" if status == 503 else "")
    )
    return head.encode() + b"\r\n" + body

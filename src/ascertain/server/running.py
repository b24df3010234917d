"""Runs the server in this process until it is told to stop."""

from __future__ import annotations

import asyncio
import gc
import os
import socket
from collections.abc import Callable
from types import FrameType

import uvicorn
from fastapi import FastAPI

from ascertain.core.model import SECOND
from ascertain.runtime.call import cut
from ascertain.runtime.clock import Clock
from ascertain.runtime.telemetry import telemetry

from .app import build
from .observed import Observed
from .protocol import Bounded, look_over
from .routes.hooks import Ahead
from .serving import Serving
from .shield import Shield

BACKLOG = 2048  # connections that the system holds until they are taken
KEEP_ALIVE = 75  # seconds that an idle connection is kept: longer than usual proxies keep theirs
SETTLE_WITHIN = 10.0  # seconds in which what was cut is written down
FLUSH_WITHIN = 2.0  # seconds for answers to leave
TICK = 0.05  # seconds between two looks at what is under way
SPARE = 256  # open files beside connections


class Server(uvicorn.Server):
    """One server. The first signal: `/readyz` says no, nothing new is taken, what is in flight has
    its time, then becomes unknown. The second one ends the process at once: what was in flight
    becomes unknown when its lease ends (law 3)."""

    def __init__(self, config: uvicorn.Config, serving: Serving, observed: Observed) -> None:
        """Serve an application; `hurry` is told as soon as it is to stop."""
        super().__init__(config)
        self.serving, self.observed = serving, observed
        self.hurry: Callable[[], None] = lambda: None
        self.ready: Callable[[], None] = lambda: None  # called once it answers, with signals heard
        self.finished = True  # nothing was cut, nothing is left behind
        self._clock = Clock()
        self._until: int | None = None  # local µs: when what is in flight is cut

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Take note of a signal."""
        if self.serving.stopping:
            os._exit(128 + sig)
        self.serving.stopping = self.observed.stopping = True

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin to answer."""
        await super().startup(sockets)
        self.ready()

    async def on_tick(self, counter: int) -> bool:
        """Look after the connections, and whether it is time to end; ten times a second."""
        if counter % 10 == 0:
            look_over(self.server_state.connections, asyncio.get_running_loop().time())
        if self.serving.stopping and self._may_end():
            return True
        return await super().on_tick(counter)

    def _may_end(self) -> bool:
        """Begin to stop; return whether nothing is in flight any more, or the time is over."""
        now = self._clock.boottime()
        if self._until is None:
            self._until = now + int(self.serving.table.stop_within * SECOND)
            telemetry.tell("server.stopping", requests=self._in_flight)
            self.serving.stopping = True
            self.observed.stop()
            self.hurry()
        return not self._in_flight or now >= self._until

    @property
    def _in_flight(self) -> int:
        return self.observed.working + len(self.serving.in_flight)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """End what is in flight within its time, let answers leave, and let go of the store."""
        self._may_end()
        for server in self.servers:
            server.close()
        for listening in sockets or []:
            listening.close()
        for connection in list(self.server_state.connections):
            connection.shutdown()
        if not await _until(lambda: not self._in_flight, self.left()):
            await self._cut()
        connections = self.server_state.connections
        await _until(lambda: not connections, FLUSH_WITHIN)
        for connection in list(connections):
            connection.transport.abort()
        await self.lifespan.shutdown()
        telemetry.tell("server.stopped")

    def left(self) -> float:
        """Return how many seconds of the time to stop are left."""
        assert self._until is not None, "it is not stopping"
        return max(0, self._until - self._clock.boottime()) / SECOND

    async def _cut(self) -> None:
        """Cut what is in flight: it is settled by what it had sent, mostly as unknown (law 3)."""
        self.finished = False
        telemetry.tell("requests.cut", requests=self._in_flight)
        tasks = self.server_state.tasks
        for task in list(tasks):
            task.cancel("the server was stopped")
        ending = asyncio.get_running_loop().create_task(self.serving.in_flight.close(0))

        def ended() -> bool:
            cut()  # again: something may have been about to send when it was cut before
            return not tasks and ending.done()

        await _until(ended, SETTLE_WITHIN)


async def _until(holds: Callable[[], bool], within: float) -> bool:
    """Wait until something holds, at most so many seconds; return whether it does."""
    loop = asyncio.get_running_loop()
    end = loop.time() + within
    while not (there := holds()) and loop.time() < end:  # noqa: ASYNC110 - there is no event
        await asyncio.sleep(TICK)
    return there


def server(
    serving: Serving, host: str, port: int, pages: Callable[[FastAPI], None] | None = None
) -> Server:
    """Return the server, not started; `pages` adds what people see to the application."""
    app = build(serving)
    if pages is not None:
        pages(app)
    observed = Observed(Ahead(app, serving.receiving))
    shield = Shield(observed, read_only=lambda: serving.read_only, https=serving.site.secure)
    config = uvicorn.Config(
        shield,
        host=host,
        port=port,
        http=Bounded,
        ws="none",
        lifespan="on",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=bool(serving.table.proxies),  # else anybody could say where he comes from
        forwarded_allow_ips=",".join(serving.table.proxies),
        backlog=BACKLOG,
        timeout_keep_alive=KEEP_ALIVE,
    )
    return Server(config, serving, observed)


def listening(host: str, port: int) -> socket.socket:
    """Return a socket that is bound to an address; raises OSError."""
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    family, kind, protocol, _, address = found[0]
    made = socket.socket(family, kind, protocol)
    try:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.bind(address)
    except OSError:
        made.close()
        raise
    return made


def room_for_connections() -> None:
    """Let this process hold as many connections as the system allows, at most our own bound."""
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = min(Bounded.most + SPARE, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
        soft = wanted
    if soft != resource.RLIM_INFINITY:
        Bounded.most = max(1, min(Bounded.most, soft - SPARE))


def loaded_for_good() -> None:
    """Have the garbage collector pass over all that this process has loaded until now: each of its
    full rounds over that held up every request for some 60 ms (measured by bench/intake.py)."""
    gc.collect()
    gc.freeze()

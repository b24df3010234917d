"""`ascertain work` with a configuration: all its namespaces and all chores, in one process."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from types import FrameType
from typing import TYPE_CHECKING

import click

from ascertain import Report, read_config
from ascertain.config import checked
from ascertain.config.reading import Understood
from ascertain.config.spaces import Spaces
from ascertain.config.working import Workers

from .base import Settings, Told
from .opening import the_store
from .out import emit_line
from .telling import Telling

if TYPE_CHECKING:
    from ascertain.server.standing import Standing

HERE = "127.0.0.1"  # where --listen listens that names a port only
LAST = 3  # signals: the first finishes, the second cuts, the third ends at once


def working(settings: Settings, file: str, every: float, *, once: bool, listen: str | None) -> int:
    """Work until a signal, or with `once` until nothing more is due; return the exit code.
    `listen`: where it tells how it stands."""
    understood = checked(read_config(file))
    names = understood.server.namespaces or (understood.namespace,)
    if settings.namespace:
        names = (settings.namespace,)
    with closing(the_store(settings)) as store:
        spaces = Spaces(store, understood, names)
        standing = None if listen is None else _standing(settings, understood, spaces, listen)
        try:
            return _Working(settings, understood, spaces, standing).run(every, once=once)
        finally:
            if standing is not None:
                standing.end()


def _standing(settings: Settings, understood: Understood, spaces: Spaces, listen: str) -> Standing:
    """Begin to tell over HTTP how this worker stands; raises Told where that cannot be."""
    host, _, number = listen.rpartition(":")
    host = host or HERE
    if not number.isdecimal():
        raise Told("serve.bad_listen", listen=listen)
    try:
        from ascertain.server.standing import Standing
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("ascertain"):
            raise
        raise Told("serve.no_extra", name=error.name) from error
    is_open = understood.server.metrics_open
    try:
        made = Standing(host.strip("[]"), int(number), spaces.store, spaces, is_open=is_open)
    except (OSError, OverflowError) as error:
        raise Told(
            "serve.cannot_listen", code="refused", host=host, port=number, why=error
        ) from error
    made.begin()
    address = "{}:{}".format(*made.server_address[:2])
    if settings.json:
        emit_line({"event": "listening", "address": address})
    else:
        click.echo(settings.say("work.listening", address=address))
    sys.stdout.flush()
    return made


class _Working:
    """One worker process."""

    def __init__(
        self, settings: Settings, understood: Understood, spaces: Spaces,
        standing: Standing | None,
    ) -> None:  # fmt: skip
        self.understood, self.spaces, self.standing = understood, spaces, standing
        self.telling = Telling(settings, [space.ledger for space in spaces])
        self.asked = threading.Event()
        self.signals = 0

    def run(self, every: float, *, once: bool) -> int:
        self.workers = Workers(self.understood, self.spaces, every=every, told=self._told)
        with self._signals():
            if once:
                with suppress(KeyboardInterrupt):  # what was under way is unknown (law 3)
                    self.workers.once()
            else:
                self._serve()
        return self.telling.end(once=once)

    def _serve(self) -> None:
        _log()
        try:
            self.workers.start()
            self.asked.wait()
            self.workers.stop(self.understood.server.stop_within)
        except KeyboardInterrupt:
            self.workers.stop(0)  # what is under way is cut, and unknown (law 3)

    def _told(self, namespace: str, report: Report) -> None:
        self.telling.told(self.spaces[namespace].ledger, report)

    @contextmanager
    def _signals(self) -> Iterator[None]:
        before = {s: signal.signal(s, self._stop) for s in (signal.SIGTERM, signal.SIGINT)}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def _stop(self, number: int, frame: FrameType | None) -> None:
        self.signals += 1
        if self.signals >= LAST:
            os._exit(128 + number)
        self.asked.set()
        if self.standing is not None:
            self.standing.stopping = True
        self.workers.hurry()
        if self.signals > 1:
            raise KeyboardInterrupt


def _log() -> None:
    """Write events to standard error, where the server's parts are installed."""
    with suppress(ModuleNotFoundError):
        from ascertain.server.logs import log_from_now
        from ascertain.server.tracing import trace_from_now

        log_from_now()
        trace_from_now()

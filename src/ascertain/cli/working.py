"""`ascertain work` with a configuration: all its namespaces and all chores, in one process."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from types import FrameType

from ascertain import Report, read_config
from ascertain.config import checked
from ascertain.config.reading import Understood
from ascertain.config.spaces import Spaces
from ascertain.config.working import Workers

from .base import Settings
from .opening import the_store
from .telling import Telling

LAST = 3  # signals: the first finishes, the second cuts, the third ends at once


def working(settings: Settings, file: str, every: float, *, once: bool) -> int:
    """Work until a signal, or with `once` until nothing more is due; return the exit code."""
    understood = checked(read_config(file))
    names = understood.server.namespaces or (understood.namespace,)
    if settings.namespace:
        names = (settings.namespace,)
    with closing(the_store(settings)) as store:
        spaces = Spaces(store, understood, names)
        return _Working(settings, understood, spaces).run(every, once=once)


class _Working:
    """One worker process."""

    def __init__(self, settings: Settings, understood: Understood, spaces: Spaces) -> None:
        self.understood, self.spaces = understood, spaces
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

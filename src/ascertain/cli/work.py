"""`ascertain work`: recovery in a loop, in any number of processes."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

import click

from ascertain import Ledger, Report
from ascertain.core.model import SECOND
from ascertain.runtime.recovery import ALARMS_EVERY, sweeping, taking_in

from .base import Cmd, Settings, Told, option
from .opening import application, config_file, opened
from .telling import Telling

BATCH = 50  # operations of one sweep; what happened to them is told when it ends
SLICE = SECOND // 10  # how long a signal may wait while nothing is due


@click.command("work", cls=Cmd, key="work")
@option("--once", is_flag=True, key="work_once")
@option("--every", type=click.FloatRange(0.01, 3600), default=0.5, metavar="SECONDS")
@option("--listen", metavar="[ADDRESS:]PORT", key="work_listen")
@click.pass_obj
def work(settings: Settings, /, once: bool, every: float, listen: str | None) -> int:
    """Recover what is due, again and again."""
    file = None if application(settings) else config_file(settings)
    if file is not None:
        from .working import working  # with the extra `http`, which an application need not have

        return working(settings, file, every, once=once, listen=listen)
    if listen is not None:
        raise Told("work.listen_config")
    with opened(settings, app=True) as ledger:
        return _Work(ledger, settings).run(every, once=once)


class _Work:
    """One worker's loop on the ledger of an application."""

    def __init__(self, ledger: Ledger, settings: Settings) -> None:
        self.ledger, self.telling = ledger, Telling(settings, [ledger])
        self.stopping = False

    def run(self, every: float, *, once: bool) -> int:
        """Sweep until stopped, or with `once` until nothing more is due."""
        with self._signals():
            try:
                while not self.stopping:
                    taken = taking_in(self.ledger.engine)
                    report = self._sweep()
                    self.telling.told(self.ledger, report)
                    if report.worked >= BATCH or taken:
                        continue
                    if once:
                        break
                    if not report.worked:
                        self._wait(every)
            except KeyboardInterrupt:
                pass  # asked twice: what was under way is recorded as unknown (law 3)
        return self.telling.end(once=once)

    # --- stopping ---

    @contextmanager
    def _signals(self) -> Iterator[None]:
        before = {s: signal.signal(s, self._stop) for s in (signal.SIGTERM, signal.SIGINT)}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def _stop(self, number: int, frame: FrameType | None) -> None:
        if self.stopping:
            raise KeyboardInterrupt
        self.stopping = True

    def _wait(self, every: float) -> None:
        clock = self.ledger.engine.clock
        left = int(every * SECOND * (0.5 + clock.jitter()))
        while left > 0 and not self.stopping:
            clock.sleep(min(left, SLICE))
            left -= SLICE

    def _sweep(self) -> Report:
        """Do what is due. Once stopping, the step under way is finished and the next one,
        claimed already, is given back as never started (law 2)."""
        steps = sweeping(
            self.ledger.engine, BATCH, lambda: self.stopping, alarms_every=ALARMS_EVERY
        )
        return self.ledger.driver.drive(steps)

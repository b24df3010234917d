"""The thread that recovers in the background."""

from __future__ import annotations

import sys
import threading
from typing import TYPE_CHECKING

from .recovery import ALARMS_EVERY, taking_in

if TYPE_CHECKING:
    from .ledger import Ledger


class Worker(threading.Thread):
    """A background thread that recovers until it is stopped."""

    def __init__(self, ledger: Ledger, every: float) -> None:
        """`every`: seconds between sweeps that found nothing due."""
        super().__init__(name="ascertain-worker", daemon=True)
        self._ledger, self._every = ledger, every
        self._stopped = threading.Event()

    def run(self) -> None:
        """Sweep until stopped, whatever is raised: a worker that died would recover nothing."""
        while not self._stopped.is_set():
            worked = 0
            try:
                worked = taking_in(self._ledger.engine)
                worked += self._ledger.sweep(alarms_every=ALARMS_EVERY).worked
            except BaseException:  # noqa: BLE001 - shown as any thread's, and gone on from
                args = threading.ExceptHookArgs([*sys.exc_info(), self])
                threading.excepthook(args)
            if not worked:
                jitter = self._ledger.engine.clock.jitter()
                self._stopped.wait(self._every * (0.5 + jitter))

    def stop(self) -> None:
        """Finish the step under way and end."""
        self._stopped.set()
        if self.is_alive() and threading.current_thread() is not self:
            self.join()

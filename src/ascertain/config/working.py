"""What a worker process does for all namespaces of a configuration: recovery, and the chores."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import msgspec

from ascertain.runtime.chores import Chore, Runner
from ascertain.runtime.recovery import ALARMS_EVERY, Report, sweeping
from ascertain.runtime.telemetry import bound, telemetry

from .chores import chores
from .reading import Understood
from .spaces import Space, Spaces

EVERY = 0.5  # seconds between two looks while nothing is due
SWEEP = 16  # operations of one sweep: what is taken waits for those before it
AT_ONCE = 4  # sweeps of one namespace at a time
Told = Callable[[str, Report], None]


class Workers:
    """Recovers every namespace and does every chore, in threads of this process.

    The threads are shared, and fairly: a namespace has its own few, and a long turn ends where
    others wait. So the slow target of one namespace holds up no other.
    """

    def __init__(
        self, understood: Understood, spaces: Spaces, *, every: float = EVERY,
        told: Told | None = None, threads: int | None = None,
        intake: Callable[[], int] | None = None,
    ) -> None:  # fmt: skip
        """Start nothing yet. `told` is called with what each sweep did, on its own thread;
        `intake` as for `chores`."""
        self._told = told
        recovering = [
            Chore(
                name=f"recovery of {space.namespace}", every=every,
                run=partial(self._sweep, space), at_once=AT_ONCE,
            )
            for space in spaces
        ]  # fmt: skip
        found = [*recovering, *chores(understood, spaces, intake)]
        self.runner = Runner(found) if threads is None else Runner(found, threads=threads)

    def start(self) -> None:
        """Begin to work in the background."""
        self.runner.start()

    def once(self) -> int:
        """Do here what is due, until nothing more is; return how much it was."""
        return self.runner.once()

    def hurry(self) -> None:
        """Begin nothing new from now on; does not wait."""
        self.runner.hurry()

    def stop(self, within: float) -> bool:
        """Finish what is under way within so many seconds, else cut it: its outcome is then
        written down as unknown (law 3). Returns whether everything has ended."""
        return self.runner.stop(within)

    def _sweep(self, space: Space) -> int:
        began = space.engine.clock.boottime()
        over = partial(self.runner.ended, began)
        with bound(namespace=space.namespace):
            steps = sweeping(space.engine, SWEEP, over, alarms_every=ALARMS_EVERY)
            report = space.ledger.driver.drive(steps)
            _tell(report)
            if report.worked:
                spent = round((space.engine.clock.boottime() - began) / 1000, 1)
                telemetry.tell("sweep", worked=report.worked, ms=spent)
        if self._told is not None:
            self._told(space.namespace, report)
        return report.worked


def _tell(report: Report) -> None:
    for one in report.recovered:
        telemetry.tell("recovered", **_plain(one))
    for operation in report.reviews:
        telemetry.tell("review", operation=operation)
    for error in report.errors:
        telemetry.tell("recovery.error", error=error)


def _plain(one: msgspec.Struct) -> dict[str, object]:
    data: dict[str, object] = msgspec.to_builtins(one)
    data.pop("key", None)  # it may be personal
    return data

"""A server with its chores, as a process that kills itself (SIGKILL) at a named point.

Arguments: the configuration, the store, the point (or nothing). Prints its port.
"""

from __future__ import annotations

import os
import signal
import socket
import sys
import threading
import time
from typing import Any

from ascertain import open_store
from ascertain.config import checked, read_config
from ascertain.config.chores import chores
from ascertain.runtime import intake
from ascertain.runtime.asks import at_once
from ascertain.server.running import server
from ascertain.server.serving import Serving

HOLD = 300_000  # µs for which an event is taken: short, so that tests are
EVERY = 0.05  # seconds between two rounds of the chores
POINTS = (
    "before the posting", "after the posting, before the answer", "after it was taken",
    "after the first of two operations", "before it is marked", "after it is marked",
)  # fmt: skip


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def killed_at(point: str) -> None:
    """Put the point in."""
    kind = intake.Intake
    receive, taken, recorded, posted = kind.receive, kind._taken, kind._recorded, intake.posted

    if point == "before the posting":

        async def before(*_: Any, **__: Any) -> Any:
            die()

        intake.posted = before
    elif point == "after the posting, before the answer":

        async def after(self: Any, *given: Any, **more: Any) -> Any:
            await receive(self, *given, **more)
            die()

        kind.receive = after
    elif point == "after it was taken":
        kind._taken = lambda self, due, until: taken(self, due, until) and die()
    elif point == "after the first of two operations":

        def one(store: Any, steps: Any) -> Any:
            for step in steps:
                at_once(store, step)
                die()
            return []

        intake.together = one
    elif point == "before it is marked":

        def unmarked(self: Any, *given: Any) -> Any:
            recorded(self, *given)
            die()

        kind._recorded = unmarked
    elif point == "after it is marked":
        process = kind._process

        def marked(self: Any, *given: Any) -> Any:
            if process(self, *given):
                die()
            return 0

        kind._process = marked
    assert posted is not None


def main(config: str, store: str, point: str = "") -> None:
    intake.HOLD = HOLD
    if point:
        killed_at(point)
    understood = checked(read_config(config))
    serving = Serving(open_store(store), understood)
    own = [c for c in chores(understood, serving.spaces) if c.name == "intake"]
    assert len(own) == 1

    def work() -> None:
        while True:
            for chore in own:
                chore.run()
            time.sleep(EVERY)

    listening = socket.socket()
    listening.bind(("127.0.0.1", 0))
    listening.listen()
    print(listening.getsockname()[1], flush=True)
    threading.Thread(target=work, daemon=True).start()
    server(serving, "127.0.0.1", 0).run(sockets=[listening])


if __name__ == "__main__":
    main(*sys.argv[1:])

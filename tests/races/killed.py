"""Workers that kill themselves (SIGKILL) at the n-th point of what they do, as told by JSON.

Each job is a process of its own, forked before anything is opened, a few at a time; printed is
each one's number of points, or -9.

A point is the moment before or after each write to the store, each taking of due work, the start
of the action, and each send to and look at the target. `at` 0 never kills and counts them.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from typing import Any

from ascertain import Ledger, open_store
from ascertain.runtime import recovery
from counting import Target
from shop import CONTROL, LOOKS, TARGETS, declared, send

LEASE, LATE = 0.5, 0.2
TIMES = {
    "lease": LEASE, "late": LATE, "first_delay": 0.05, "longest_delay": 0.3,
    "attempts": 10, "lookups": 25,
}  # fmt: skip
AT_ONCE = 4
HOLD = 300_000  # µs for which a worker keeps what it took: short, so that tests are


class Points:
    """Counts the points, and dies at the one that was told."""

    def __init__(self, at: int) -> None:
        self.at, self.seen = at, 0

    def pass_by(self) -> None:
        self.seen += 1
        if self.seen == self.at:
            os.kill(os.getpid(), signal.SIGKILL)

    def around(self, function: Any) -> Any:
        def wrapped(*args: Any, **given: Any) -> Any:
            self.pass_by()
            done = function(*args, **given)
            self.pass_by()
            return done

        return wrapped


class Watched:
    """A store whose writes and takings are points."""

    def __init__(self, store: Any, points: Points) -> None:
        self._store = store
        self.write, self.take = points.around(store.write), points.around(store.take)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)


def order_of(ledger: Ledger, target: Target, kind: str, points: Points | None = None) -> Any:
    points = points or Points(0)

    @ledger.action("shop.order", **declared(kind, **TIMES))
    def order(call: Any, *, order: str) -> Any:
        points.pass_by()
        done = send(target, call, order)
        points.pass_by()
        return done

    if kind in LOOKS:
        order.lookup(control=CONTROL)(lambda call: points.around(target.look)(call.target_key))
    return order


def target_of(folder: str, kind: str) -> Target:
    return Target(f"{folder}/target.db", TARGETS.get(kind, "plain"))


def main(told: dict[str, Any]) -> int:
    recovery.HOLD = HOLD
    points = Points(0)
    store = Watched(open_store(told["url"]), points)
    with Ledger(store, namespace=told["namespace"]) as ledger:
        order = order_of(ledger, target_of(told["folder"], told["kind"]), told["kind"], points)
        points.at, points.seen = told["at"], 0
        if told["do"] == "submit":
            order.submit(order="7", wait=0)
        else:
            ledger.recover()
    return points.seen


def forked(told: dict[str, Any]) -> int:
    child = os.fork()
    if child:
        return child
    points = 255
    try:
        points = main(told)
    finally:
        os._exit(points)


def all_of(jobs: list[dict[str, Any]]) -> list[int]:
    ended: list[int] = []
    for start in range(0, len(jobs), AT_ONCE):
        children = [forked(job) for job in jobs[start : start + AT_ONCE]]
        ended += [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]
    return ended


if __name__ == "__main__":
    print(json.dumps(all_of(json.loads(sys.argv[1]))))

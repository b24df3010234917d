"""A caller in a process of its own: submits one order as told by JSON, prints its receipt."""

from __future__ import annotations

import json
import os
import signal
import sys
from typing import Any

from counting import Target
from shop import CONTROL, LOOKS, TARGETS, declared, open_real, send

LEASE, LATE = 0.6, 1.0  # seconds; real ones
TIMES = {
    "lease": LEASE, "late": LATE, "first_delay": 0.1, "longest_delay": 0.3,
    "attempts": 10, "lookups": 25,
}  # fmt: skip


def target(folder: str, kind: str) -> Target:
    return Target(f"{folder}/target.db", TARGETS.get(kind, "plain"))


def action(ledger: Any, at: Target, kind: str, freeze: str = "") -> Any:
    """Register the order; `freeze` stops the process before or after its look at the time."""

    @ledger.action("shop.order", **declared(kind, **TIMES))
    def order(call: Any, *, order: str) -> Any:
        if freeze == "before":
            os.kill(os.getpid(), signal.SIGSTOP)
        if freeze == "between" and call.seconds_left:
            os.kill(os.getpid(), signal.SIGSTOP)
            return at.send(call.target_key)
        return send(at, call)

    if kind in LOOKS:
        order.lookup(control=CONTROL)(lambda call: at.look(call.target_key))
    return order


def main(told: dict[str, Any]) -> None:
    with open_real(told["url"]) as ledger:
        at = target(told["folder"], told["kind"])
        order = action(ledger, at, told["kind"], told.get("freeze", ""))
        done = order.submit(order=told["order"], wait=told.get("wait", 0))
        print(json.dumps({"state": done.state, "ref": done.ref, "id": done.id}), flush=True)


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))

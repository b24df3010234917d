"""A caller in a process of its own, to be killed, frozen or raced.

``python -m ascertain.acceptance.worker JSON``: opens the ledger, says ``ready``, waits for a line,
submits, and prints one line of JSON with what it got.
"""

from __future__ import annotations

import json
import signal
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import ascertain

from . import plain
from .actions import Knobs, declare


def freeze_before_answer(ledger: ascertain.Ledger) -> None:
    """Stop this process once, after its first write to the ledger and before it learns of it."""
    original = ledger.store.write
    used: list[bool] = []

    def write(changes: Any) -> Any:
        written = original(changes)
        if not used:
            used.append(True)
            plain.halt(signal.SIGSTOP)
        return written

    ledger.store.write = write  # type: ignore[method-assign]


def main() -> None:
    """Do what the JSON on the command line says."""
    told = json.loads(sys.argv[1])
    plain.end_with_parent(told["parent"])
    with ascertain.open(told["store"], namespace=told["namespace"]) as ledger:
        actions = declare(ledger, Knobs.from_json(told["knobs"]))
        sys.stdout.write("ready\n")
        sys.stdout.flush()
        sys.stdin.readline()
        if told["moment"] == "claimed":
            freeze_before_answer(ledger)
        elif told["moment"]:
            plain.arm(told["moment"], told["word"])
        action, wait = actions[told["action"]], told["wait"]

        def submit(given: dict[str, Any]) -> ascertain.Receipt:
            receipt: ascertain.Receipt = action.submit(wait=wait, **given)
            return receipt

        with ThreadPoolExecutor(told["threads"]) as pool:
            receipts = list(pool.map(submit, told["inputs"]))
        got = [{"state": r.state, "ref": r.ref, "reused": r.reused} for r in receipts]
    sys.stdout.write(json.dumps(got) + "\n")


if __name__ == "__main__":
    main()

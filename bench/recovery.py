"""10,000 operations whose answers were lost, recovered by 4 worker processes.

The target is a function in each worker that knows which objects there are, by our target keys:
an invented one finds nothing. What is measured is the library and the store: take, claim the
look-up, ask, settle.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from bench.common import TEXT, Place

import ascertain
from ascertain.core import settle
from ascertain.core.model import Unknown
from ascertain.runtime import beginning
from ascertain.runtime.ticket import Options

WORKERS = 4
GROUP = 500
PATIENCE = 75.0  # seconds for the recovery; a slow disk may not get through all


def declare(ledger: Any, objects: set[str]) -> Any:
    """Declare the action and its look-up."""

    @ledger.action("bench.lost", key="{number}", owner="bench")
    def act(call, number, text):
        raise TimeoutError("the answer got lost")

    @act.lookup(lag=0, late=1)
    def look(call):
        if call.target_key in objects:
            return ascertain.Done(ref=f"ref-{call.target_key}")
        return ascertain.Absent()

    return act


def recovery(at: Place, kind: str, *, quick: bool) -> dict[str, float]:
    """Submit, lose the answers, and let the workers find out."""
    total = 2_000 if quick else 10_000
    with at.address(kind) as address, ascertain.open(address) as ledger:
        due, keys = lose(ledger, declare(ledger, set()), total)
        objects = at.folder / f"objects-{kind}"
        objects.write_text("\n".join(keys))
        workers = [start(address, objects) for _ in range(WORKERS)]
        for worker in workers:
            worker.stdout.readline()  # it is ready
        time.sleep(max(due - ledger.store.now(), 0) / 1e6)
        for worker in workers:
            print("go", file=worker.stdin, flush=True)
        reports = [json.loads(worker.stdout.readline()) for worker in workers]
        for worker in workers:
            worker.communicate()
        left = sum(ledger.store.counts("default").values())
    shares = [report["recovered"] for report in reports]
    seconds = max(r["until"] for r in reports) - min(r["since"] for r in reports)
    return {
        f"{kind}_recovery_per_s": sum(shares) / seconds,
        f"{kind}_recovery_fairness": sum(shares) ** 2 / (WORKERS * sum(s * s for s in shares)),
        f"{kind}_recovery_operations": total,
        f"{kind}_recovery_left": left,
    }


def lose(ledger: Any, act: Any, total: int) -> tuple[int, list[str]]:
    """Write operations whose attempt ended without an answer; return when all are due, and
    the target keys."""
    engine, d, due, keys = ledger.engine, act.definition, 0, []
    for first in range(0, total, GROUP):
        claims, ends = [], []
        for number in range(first, min(first + GROUP, total)):
            world = engine.world()
            intent = d.intent({"number": number, "text": TEXT}, world.now)
            change, _ = beginning.new(engine, d, intent, Options(), world)
            whole, ticket = beginning.claim_new(engine, d, change, intent, world=world, local=0)
            lost = Unknown(reason="the answer got lost")
            end = settle.report(ticket.case, ticket.attempt, lost, world, engine.clock.token())
            claims.append(whole)
            ends.append(end)
            keys.append(end.status.target_key)
            due = max(due, end.status.due_at or 0)
        ledger.store.write(claims)
        ledger.store.write(ends)
    return due, keys


def start(address: str, objects: Path) -> Any:
    """Start a worker process; it waits for a line."""
    command = [sys.executable, "-m", "bench.recovery", address, str(objects)]
    root = Path(__file__).parents[1]
    return subprocess.Popen(
        command, cwd=root, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )


def work(address: str, objects: str) -> None:
    """Recover until nothing is due, and say how many."""
    with ascertain.open(address) as ledger:
        declare(ledger, set(Path(objects).read_text().splitlines()))
        print("ready", flush=True)
        sys.stdin.readline()
        since = until = time.monotonic()
        recovered = idle = 0
        while idle < 3 and time.monotonic() - since < PATIENCE:
            report = ledger.sweep(100, alarms_every=10**9)
            recovered += len(report.recovered)
            if report.worked:
                idle, until = 0, time.monotonic()
            else:
                idle += 1
                time.sleep(0.2)
        print(json.dumps({"recovered": recovered, "since": since, "until": until}), flush=True)


if __name__ == "__main__":
    work(sys.argv[1], sys.argv[2])

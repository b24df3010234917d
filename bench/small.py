"""What the package costs before it does anything: its import, and an idle worker's memory."""

from __future__ import annotations

import resource
import statistics
import subprocess
import sys
import time

from bench.common import Place

IDLE = """
import re, sys, time, ascertain
ledger = ascertain.open(sys.argv[1])
@ledger.action("bench.noop", key="{number}", owner="bench")
def act(call, number): return ascertain.Done(ref=f"ref-{number}")
act(number=1)
ledger.start_worker(0.1)
time.sleep(1)
print(re.search(r"VmRSS:\\s+(\\d+)", open("/proc/self/status").read())[1])
ledger.close()
"""


def importing(*, quick: bool) -> dict[str, float]:
    """Import in fresh processes, in turn with an interpreter that does nothing."""
    spent: dict[str, list[tuple[float, float]]] = {"pass": [], "import ascertain": []}
    for _ in range(5 if quick else 10):
        for code, times in spent.items():
            times.append(process(code))
    ours, bare = spent["import ascertain"], spent["pass"]
    wall, cpu = (
        1000 * (statistics.median(t[i] for t in ours) - statistics.median(t[i] for t in bare))
        for i in (0, 1)
    )
    return {"import_ms": wall, "import_cpu_ms": cpu}


def process(code: str) -> tuple[float, float]:
    """Return the wall and processor seconds of one process."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    start = time.perf_counter()
    subprocess.run([sys.executable, "-c", code], check=True)
    wall = time.perf_counter() - start
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def memory(at: Place, kind: str) -> dict[str, float]:
    """Return the resident memory of a process whose worker finds nothing to do."""
    with at.address(kind) as address:
        command = [sys.executable, "-c", IDLE, address]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
    return {f"{kind}_idle_worker_mb": int(done.stdout) / 1024}

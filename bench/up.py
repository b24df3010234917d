"""`ascertain up` as a process: how soon it answers for the first time, and what it needs idle."""

from __future__ import annotations

import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

SRC = Path(__file__).parents[1] / "src"
IDLE = 5.0  # seconds until its memory is read
ROUNDS = 3


def up(*, quick: bool) -> dict[str, float]:
    """Start it in empty folders."""
    rounds = [_once(0.5 if quick else IDLE) for _ in range(1 if quick else ROUNDS)]
    seconds, memory = (statistics.median(r[i] for r in rounds) for i in (0, 1))
    return {"up_first_start_s": seconds, "up_idle_mb": memory}


def _once(idle: float) -> tuple[float, float]:
    with tempfile.TemporaryDirectory() as folder:
        began = time.perf_counter()
        process = subprocess.Popen(
            [sys.executable, "-m", "ascertain.cli.main", "up", "--port", "0", "--json"],
            cwd=folder, env={**os.environ, "PYTHONPATH": str(SRC)}, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        try:
            assert process.stdout is not None
            told = json.loads(process.stdout.readline())
            spent = time.perf_counter() - began
            assert told["event"] == "listening"
            time.sleep(idle)
            status = Path(f"/proc/{process.pid}/status").read_text().splitlines()
            [line] = [line for line in status if line.startswith("VmRSS")]
            return spent, int(line.split()[1]) / 1024
        finally:
            process.send_signal(signal.SIGTERM)
            process.communicate(timeout=30)

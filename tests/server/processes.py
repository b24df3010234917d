"""`ascertain up`, `serve` and `work` as the processes that operators start."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx2

from ascertain import open_store
from ascertain.runtime.accounts import Accounts

SRC = Path(__file__).parents[2] / "src"
READY_WITHIN = 20.0
SCOPES = "ops:read ops:write"


class Process:
    """One process; `url` once it listens, `lines` what it said on standard output so far."""

    def __init__(self, folder: Path, *words: str, env: dict[str, str] | None = None) -> None:
        self.folder, self.words = folder, words
        self.begun = time.monotonic()
        given = {"LC_ALL": "C.UTF-8", "PYTHONPATH": str(SRC), "PYTHONWARNINGS": "error"}
        self.errors = folder / f"stderr-{time.monotonic_ns()}.log"
        with self.errors.open("wb") as log:
            self.popen = subprocess.Popen(
                [sys.executable, "-m", "ascertain.cli.main", *words],
                cwd=folder, env={**os.environ, **given, **(env or {})}, text=True,
                stdout=subprocess.PIPE, stderr=log,
            )  # fmt: skip
        self.url = ""

    def listening(self) -> dict[str, Any]:
        """Wait until it says where it listens (`--json`)."""
        assert self.popen.stdout is not None
        line = self.popen.stdout.readline()
        assert line.startswith('{"event'), line + self.log()
        told: dict[str, Any] = json.loads(line)
        self.url = told["url"]
        return told

    def log(self) -> str:
        return self.errors.read_text("utf-8", errors="replace")

    def events(self) -> list[dict[str, Any]]:
        """The lines of its log."""
        return [json.loads(line) for line in self.log().splitlines() if line.startswith("{")]

    def send(self, number: signal.Signals = signal.SIGTERM) -> None:
        self.popen.send_signal(number)

    def ended(self, within: float = 20) -> int:
        """Wait for its end."""
        self.out, _ = self.popen.communicate(timeout=within)
        return self.popen.returncode

    def rss(self) -> int:
        """Memory in bytes."""
        text = Path(f"/proc/{self.popen.pid}/status").read_text()
        [line] = [line for line in text.splitlines() if line.startswith("VmRSS")]
        return int(line.split()[1]) * 1024


@contextmanager
def process(folder: Path, *words: str, **more: Any) -> Iterator[Process]:
    """Start one; it does not outlive the block."""
    started = Process(folder, *words, **more)
    try:
        yield started
    finally:
        if started.popen.poll() is None:
            started.popen.kill()
        started.popen.communicate()


@contextmanager
def client(folder: Path, url: str, store: str = "") -> Iterator[httpx2.Client]:
    """A client with a token of its own."""
    opened = open_store(store or str(folder / "ascertain.db"))
    secret = Accounts(opened).new_token("default", "test", SCOPES, by="test").secret
    opened.close()
    headers = {"Authorization": f"Bearer {secret}"}
    with httpx2.Client(base_url=url, headers=headers, timeout=30, trust_env=False) as made:
        yield made


def until(holds: Callable[[], Any], within: float = 15) -> Any:
    end = time.monotonic() + within
    while not (found := holds()):
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.02)
    return found


def get_ready(url: str) -> None:
    """Wait until a server says that it is ready."""

    def ready() -> bool:
        try:
            return httpx2.get(f"{url}/readyz", trust_env=False).status_code == 200
        except httpx2.HTTPError:
            return False

    until(ready, READY_WITHIN)

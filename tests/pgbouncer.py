"""A private PgBouncer in transaction mode, in front of a private PostgreSQL.

Debian's package `pgbouncer`; root can install it: `apt-get install -y pgbouncer`.
"""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any, Self

import psycopg

from postgres import PrivatePostgres, free_port

READY_WITHIN = 15
SESSIONS = 3  # with the server: fewer than clients, so that these really share them
CONFIG = """
[databases]
* = host=127.0.0.1 port={port} user=postgres

[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {own}
unix_socket_dir =
auth_type = any
pool_mode = transaction
default_pool_size = {sessions}
max_client_conn = 200
logfile = {folder}/log
server_idle_timeout = 5
"""


def program() -> str | None:
    """Where it is installed."""
    return shutil.which("pgbouncer", path=os.environ.get("PATH", "") + ":/usr/sbin")


class PgBouncer:
    """One pooler; use it as a context manager."""

    def __init__(self, server: PrivatePostgres) -> None:
        self.server, self.port = server, free_port()
        self.folder = Path(tempfile.mkdtemp(prefix="ascertain-pgbouncer-"))
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        file = self.folder / "pgbouncer.ini"
        file.write_text(CONFIG.format(port=self.server.port, own=self.port, sessions=SESSIONS,
                                      folder=self.folder))  # fmt: skip
        who: dict[str, Any] = {}
        if os.geteuid() == 0:  # it refuses root
            nobody = pwd.getpwnam("nobody")
            who = {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}
            os.chown(self.folder, nobody.pw_uid, nobody.pw_gid)
        found = program()
        assert found is not None
        dies_with_us = ["setpriv", "--pdeathsig", "INT"] if shutil.which("setpriv") else []
        self._process = subprocess.Popen(
            [*dies_with_us, found, str(file)], stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL, cwd=self.folder, **who,
        )  # fmt: skip
        until = time.monotonic() + READY_WITHIN
        while True:
            try:
                psycopg.connect(self.dsn("postgres"), connect_timeout=2).close()
                return self
            except psycopg.OperationalError:
                log = self.folder / "log"
                if time.monotonic() > until or self._process.poll() is not None:
                    self.__exit__()
                    said = log.read_text() if log.exists() else ""
                    raise RuntimeError(f"PgBouncer did not start:\n{said[-2000:]}") from None
                time.sleep(0.05)

    def __exit__(self, *_: object) -> None:
        if self._process is not None:
            self._process.send_signal(signal.SIGINT)
            try:
                self._process.wait(5)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)

    def dsn(self, database: str) -> str:
        return f"postgresql://postgres@127.0.0.1:{self.port}/{database}"

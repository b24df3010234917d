"""PostgreSQL in pairs: a primary, and a standby that follows it by streaming replication."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg

from postgres import PrivatePostgres

WITHIN = 20.0  # seconds for replication to start, and for a promotion


class Standby(PrivatePostgres):
    """A copy of a running primary that follows it until it is promoted."""

    def __init__(self, primary: PrivatePostgres, **more: Any) -> None:
        self.primary = primary
        super().__init__(**more)

    def _initialise(self) -> None:
        command = [self._bin / "pg_basebackup", "--no-password", "--checkpoint=fast"]
        command += ["--pgdata=data", "--write-recovery-conf", "--wal-method=stream"]
        command += [f"--dbname=host=127.0.0.1 port={self.primary.port} user=postgres"]
        done = subprocess.run(command, check=False, capture_output=True, text=True, **self._where())
        if done.returncode:
            raise RuntimeError(f"pg_basebackup failed:\n{done.stdout}{done.stderr}")
        (self.folder / "run" / "data").chmod(0o700)

    def follow(self, *, synchronous: bool) -> None:
        """Return once the primary streams to it, and with `synchronous` waits for it."""
        names = "*" if synchronous else ""
        with psycopg.connect(self.primary.dsn(), autocommit=True) as admin:
            admin.execute(f"alter system set synchronous_standby_names = '{names}'")
            admin.execute("select pg_reload_conf()")
            wanted = ("streaming", "sync" if synchronous else "async")
            until(
                lambda: (
                    admin.execute("select state, sync_state from pg_stat_replication").fetchall()
                    == [wanted]
                )
            )

    def stop_following(self) -> None:
        """Lag behind from now on: what is acknowledged by the primary is not here."""
        with psycopg.connect(self.dsn(), autocommit=True) as admin:
            admin.execute("alter system set primary_conninfo = ''")
            admin.execute("select pg_reload_conf()")
            until(lambda: not admin.execute("select pid from pg_stat_wal_receiver").fetchall())

    def promote(self) -> None:
        """Become the primary; returns once it takes writes."""
        with psycopg.connect(self.dsn(), autocommit=True) as admin:
            [(promoted,)] = admin.execute(f"select pg_promote(true, {int(WITHIN)})").fetchall()
            assert promoted


@dataclass(frozen=True)
class Pair:
    """A primary and the standby that follows it."""

    primary: PrivatePostgres
    standby: Standby

    def either(self, database: str) -> str:
        """Address whichever of the two takes writes, as clients of a pair do."""
        hosts = f"127.0.0.1:{self.primary.port},127.0.0.1:{self.standby.port}"
        return f"postgresql://postgres@{hosts}/{database}?target_session_attrs=read-write"


def crash(server: PrivatePostgres, *, outright: bool = False) -> None:
    """Stop at once, without a word to anybody (`immediate`); or `outright` by kill -9 of every
    one of its processes."""
    assert server._server is not None
    children = children_of(server._server.pid) if outright else []
    server.stop(signal.SIGKILL if outright else signal.SIGQUIT)
    for child in children:
        with contextlib.suppress(ProcessLookupError):
            os.kill(child, signal.SIGKILL)
    until(lambda: not any(Path(f"/proc/{child}").exists() for child in children))


def children_of(pid: int) -> list[int]:
    return [int(p) for p in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def until(holds: Callable[[], bool]) -> None:
    end = time.monotonic() + WITHIN
    while not holds():
        assert time.monotonic() < end, "the server is too slow"
        time.sleep(0.02)

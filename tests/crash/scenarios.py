"""The storms: each makes its own store and target, does its harm under load, and is audited.

All return an `Audit`. Scenarios on PostgreSQL run a server that waits for the disk.
"""

from __future__ import annotations

import contextlib
import os
import random
import shutil
import signal
import sqlite3
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import psycopg

from ascertain import open_store
from crash.auditor import Audit, Books, audit, command
from crash.driver import Driver
from crash.outside import Outside
from crash.servers import Pair, Standby, crash
from crash.worker import Plan, forked
from postgres import PrivatePostgres

DATABASE = "ledger"
MARGIN = 0.5  # seconds: the gap is declared from so much before the copy was begun
SOME = 30  # calls that end in each phase at least
LIMIT = 1 << 20  # bytes
REFUSED, FULL_WITHIN = 20, 15.0  # refusals that are waited for, and for how many seconds


@dataclass(frozen=True)
class Setting:
    """How a storm is played. `load`: seconds of it in each phase. Without `durable` PostgreSQL
    does not wait for the disk, which the death of processes does not show."""

    seed: int = 0
    load: float = 1.0
    durable: bool = True
    wrong: str = ""  # see Plan
    declared: bool = True  # that writes were lost is said to the ledger
    show: Callable[[str], None] = lambda _: None


class Field(contextlib.ExitStack):
    """What one storm makes, and what ends with it."""

    def __init__(self, setting: Setting) -> None:
        super().__init__()
        self.setting, self.begun = setting, time.monotonic()
        self.folder = Path(
            self.enter_context(tempfile.TemporaryDirectory(prefix="ascertain-crash-"))
        )

    def server(self) -> PrivatePostgres:
        return self.enter_context(PrivatePostgres(durable=self.setting.durable))

    def pair(self, *, synchronous: bool) -> Pair:
        """A primary with the database, and a standby that follows it."""
        primary = self.server()
        in_child(lambda: make_database(primary.dsn(DATABASE)))
        standby = self.enter_context(Standby(primary, durable=self.setting.durable))
        standby.follow(synchronous=synchronous)
        return Pair(primary, standby)

    def url(self, store: str) -> str:
        """A fresh store of this kind."""
        if store == "sqlite":
            return str(self.folder / "ledger.db")
        return self.server().dsn(DATABASE)

    def plan(self, url: str) -> Plan:
        """Make the tables and the target, in a process of its own: the driver opens no store."""
        if url.startswith("postgresql:"):
            in_child(lambda: make_database(url))
        in_child(lambda: open_store(url).close())
        Outside(self.folder).prepare()
        return Plan(url, str(self.folder), self.setting.wrong)

    def driver(self, plan: Plan) -> Driver:
        return self.enter_context(Driver(plan, self.setting.seed, self.setting.show))

    def judged(self, driver: Driver, **more: Any) -> Audit:
        """Audit, and add what else is to be told."""
        gap_from = more.pop("gap_from", None)
        found = audit(driver.plan, driver.journal, gap_from=gap_from)
        found.figures |= more | {"seconds": round(time.monotonic() - self.begun, 1)}
        return found


def make_database(url: str) -> None:
    server, _, name = url.partition("?")[0].rpartition("/")
    with psycopg.connect(f"{server}/postgres", autocommit=True) as admin:
        if not admin.execute("select 1 from pg_database where datname = %s", (name,)).fetchall():
            admin.execute(f"create database {name} template template0")


def in_child(work: Callable[[], None]) -> None:
    with Path("/dev/null").open("wb") as nobody:
        pid = forked(lambda _: work(), "child", nobody.fileno())
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    assert code == 0, f"the child ended with {code}"


# --- workers are killed --------------------------------------------------------------------


def kills(setting: Setting, store: str, count: int) -> Audit:
    """Workers killed at random moments; every killed one's keys are called again."""
    with Field(setting) as field:
        driver = field.driver(field.plan(field.url(store)))
        with driver.load():
            driver.kill(count)
        setting.show("the storm is over; everything is called again, and recovered")
        driver.settle()
        return field.judged(driver)


# --- the server is stopped, or replaced ----------------------------------------------------


def stops(setting: Setting, count: int) -> Audit:
    """PostgreSQL stopped `immediate`, or killed outright, and started again under load."""
    chance = random.Random(setting.seed)
    with Field(setting) as field:
        server = field.server()
        driver = field.driver(field.plan(server.dsn(DATABASE)))
        with driver.load():
            for number in range(count):
                driver.run(chance.uniform(0.5, 1.2) * setting.load)
                crash(server, outright=number % 2 == 1)
                driver.run(chance.uniform(0.0, 0.4))
                server.start()
                setting.show(f"server stopped and started {number + 1} of {count} times")
            driver.run(setting.load, SOME)
        driver.settle()
        return field.judged(driver, stops=count)


def failover(setting: Setting, *, outright: bool = False) -> Audit:
    """The primary dies under load and its synchronous standby takes over: nothing is lost.

    The workers name both servers and go on by themselves, with what they had open.
    """
    with Field(setting) as field:
        pair = field.pair(synchronous=True)
        driver = field.driver(field.plan(pair.either(DATABASE)))
        with driver.load():
            driver.run(setting.load, SOME)
            driver.kill(3)
            before = len(driver.journal.done)
            crash(pair.primary, outright=outright)
            driver.run(0.1)
            pair.standby.promote()
            setting.show("the standby has taken over")
            driver.run(setting.load, SOME)
        after = len(driver.journal.done) - before
        driver.settle()
        return field.judged(driver, done_before=before, done_after=after)


def lagging_failover(setting: Setting) -> Audit:
    """The primary dies and an asynchronous standby that lags takes over: writes are lost, which
    is said to the ledger (law 21), and all keys are called again: nothing is duplicated."""
    with Field(setting) as field:
        pair = field.pair(synchronous=False)
        driver = field.driver(field.plan(pair.primary.dsn(DATABASE)))
        with driver.load():
            driver.run(setting.load, SOME)
            gap_from = time.time() - MARGIN
            pair.standby.stop_following()
            driver.run(setting.load, SOME)
            crash(pair.primary)
        pair.standby.promote()
        left = replace(driver.plan, url=pair.standby.dsn(DATABASE))
        return _goes_on(field, driver, left, gap_from)


def _goes_on(field: Field, driver: Driver, plan: Plan, gap_from: float) -> Audit:
    """Say what was lost, unless nobody does; then load, everything again, and the audit."""
    kept = Books.read(plan).operations
    lost = sum(key not in kept for key in driver.journal.told)
    driver.show(f"{lost} acknowledged operations are missing in the store that is left")
    declared = field.setting.declared
    if declared:
        moment = datetime.fromtimestamp(gap_from, UTC).isoformat()
        command(plan, "--app", "crash.worker:app", "store", "restored", "--gap-from", moment,
                "--note", "crash test", "--yes")  # fmt: skip
    with driver.load(plan):
        driver.run(field.setting.load, SOME)
        driver.kill(3)
    driver.settle()
    return field.judged(driver, gap_from=gap_from if declared else None, lost_by_the_store=lost)


# --- a copy is put back --------------------------------------------------------------------


def restored(setting: Setting, store: str) -> Audit:
    """A copy taken under load (SQLite) or between two loads (PostgreSQL) is put back later."""
    with Field(setting) as field:
        plan = field.plan(field.url(store))
        driver = field.driver(plan)
        with driver.load():
            driver.run(setting.load, SOME)
            gap_from = time.time() - MARGIN
            if store == "sqlite":
                in_child(lambda: _copy_file(plan))
                driver.run(setting.load, SOME)
        if store == "postgres":
            in_child(lambda: _copy_database(plan))
            with driver.load():
                driver.run(setting.load, SOME)
        setting.show("the copy is put back")
        if store == "sqlite":
            for end in ("", "-wal", "-shm"):
                Path(plan.url + end).unlink(missing_ok=True)
            shutil.copy(plan.url + ".copy", plan.url)
        else:
            in_child(lambda: _put_back(plan))
        return _goes_on(field, driver, plan, gap_from)


def _copy_file(plan: Plan) -> None:
    """By SQLite's own means, while others write."""
    with (
        contextlib.closing(sqlite3.connect(plan.url, timeout=10)) as live,
        contextlib.closing(sqlite3.connect(plan.url + ".copy")) as copy,
    ):
        live.backup(copy)


def _copy_database(plan: Plan) -> None:
    server, _, name = plan.url.rpartition("/")
    with psycopg.connect(f"{server}/postgres", autocommit=True) as admin:
        _unused(admin, name)
        admin.execute(f"create database {name}_copy template {name}")


def _put_back(plan: Plan) -> None:
    server, _, name = plan.url.rpartition("/")
    with psycopg.connect(f"{server}/postgres", autocommit=True) as admin:
        admin.execute(f"drop database {name} with (force)")
        admin.execute(f"alter database {name}_copy rename to {name}")


def _unused(admin: Any, name: str) -> None:
    """Wait for the sessions of killed workers to end."""
    admin.execute(
        f"select pg_terminate_backend(pid) from pg_stat_activity where datname = '{name}'"
    )
    while admin.execute("select 1 from pg_stat_activity where datname = %s", (name,)).fetchall():
        time.sleep(0.01)


# --- the disk is full ----------------------------------------------------------------------


class CannotMount(Exception):
    """A real small file system needs root."""


def full_disk(setting: Setting) -> Audit:
    """SQLite on a real file system that fills up under load, and then is given room."""
    with Field(setting) as field:
        place = field.enter_context(_small(field.folder / "small", "2m"))
        driver = field.driver(field.plan(str(place / "ledger.db")))
        with driver.load():
            full = _until_refused(driver)
            subprocess.run(["mount", "-o", "remount,size=512m", str(place)], check=True)
            setting.show("the disk was full, and has room again")
            driver.run(setting.load, SOME)
        driver.settle()
        return field.judged(driver, refused_while_full=full)


def limited_files(setting: Setting) -> Audit:
    """SQLite whose files may not grow beyond a limit (`ulimit -f`), which is lifted later."""
    with Field(setting) as field:
        plan = field.plan(field.url("sqlite"))
        driver = field.driver(plan)
        with driver.load(replace(plan, limit=LIMIT)):
            full = _until_refused(driver)
        setting.show("the limit was met, and is lifted")
        with driver.load(plan):
            driver.run(setting.load, SOME)
        driver.settle()
        return field.judged(driver, refused_while_full=full)


def _until_refused(driver: Driver) -> int:
    """Go on until calls are refused, and some workers killed in that; count the refusals."""
    until = time.monotonic() + FULL_WITHIN
    while driver.journal.errors["StoreUnavailable"] < REFUSED and time.monotonic() < until:
        driver.run(0.1)
    driver.kill(3)
    return driver.journal.errors["StoreUnavailable"]


@contextlib.contextmanager
def _small(place: Path, size: str) -> Iterator[Path]:
    place.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", f"size={size}", "none", str(place)]
    if subprocess.run(command, check=False, capture_output=True).returncode:
        raise CannotMount(f"{' '.join(command)}: needs root")
    try:
        yield place
    finally:
        subprocess.run(["umount", str(place)], check=False)


def interruptible() -> None:
    """Let Ctrl-C and SIGTERM end a storm with all its processes, also in the background."""

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, interrupt)

"""What all measures share: paired rounds, the two stores, the no-op action, the machine."""

from __future__ import annotations

import os
import platform
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any

import ascertain

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

TEXT = "x" * 150  # with the rest, an input of about 200 bytes
FINGERPRINT = "f" * 64
RESULT = "r" * 85
STORES = ("sqlite", "postgres")

Side = Callable[[float], float]  # runs for so many seconds, returns operations per second


def paired(sides: Mapping[str, Side], seconds: float, rounds: int) -> dict[str, list[float]]:
    """Run all sides in turn, each round in another order; the first round only warms up."""
    rates: dict[str, list[float]] = {name: [] for name in sides}
    names = list(sides)
    for number in range(rounds + 1):
        for name in names:
            rate = sides[name](seconds)
            if number:
                rates[name].append(rate)
        names = names[1:] + names[:1]
    return rates


def ratio(rates: Mapping[str, list[float]], of: str, to: str) -> float:
    """Return the median of the ratios of the rounds."""
    return statistics.median(a / b for a, b in zip(rates[of], rates[to], strict=True))


def median(values: list[float]) -> float:
    """Return the median."""
    return statistics.median(values)


def repeated(do: Callable[[int], Any], numbers: Iterator[int]) -> Side:
    """Make a side of one caller from what does one operation."""

    def run(seconds: float) -> float:
        done, start = 0, time.perf_counter()
        while (spent := time.perf_counter() - start) < seconds:
            do(next(numbers))
            done += 1
        return done / spent

    return run


def noop(ledger: Any, *, asynchronous: bool = False, settle: str = "durable") -> Any:
    """Register an action whose effect costs nothing: what remains is the library."""
    if asynchronous:

        @ledger.action("bench.noop", key="{number}", owner="bench")
        async def act(call, number, text):
            return ascertain.Done(ref=f"ref-{number}")
    else:

        @ledger.action("bench.noop", key="{number}", owner="bench", settle=settle)
        def act(call, number, text):
            return ascertain.Done(ref=f"ref-{number}")

    if settle == "lazy":
        act.lookup(lag=0, late=1)(lambda call: ascertain.Absent())
    return act


def uncoalesced(store: Any) -> Any:
    """Let each caller commit his own changes on one connection behind a lock; what is queued,
    a thread commits one by one."""
    import threading
    from concurrent.futures import ThreadPoolExecutor

    from ascertain.store.committer import Ticket

    lock, thread = threading.Lock(), ThreadPoolExecutor(1)

    def write(changes: Any) -> Any:
        with lock:
            return store._commit(changes, lambda: None)

    def put(change: Any, landed: Any = None) -> Any:
        def commit() -> None:
            ticket.answers = write(ticket.changes)
            ticket.wake()

        ticket = Ticket((change,), landed)
        thread.submit(commit)
        return ticket

    store.write = write
    store.put = put
    return store


class SqliteFloor:
    """The bare driver: one table, INSERT in a commit, UPDATE in a commit, the same durability."""

    def __init__(self, path: Path) -> None:
        import apsw

        self.raw = apsw.Connection(str(path))
        for pragma in ("journal_mode = wal", "synchronous = full", "wal_autocheckpoint = 2000"):
            self.raw.execute(f"pragma {pragma}")
        self.raw.execute(
            "create table floor (id integer primary key, key text unique, fp text, input text,"
            " result text, state integer) strict"
        )

    def do(self, number: int) -> None:
        """Two commits."""
        self.many(range(number, number + 1))

    def many(self, numbers: range) -> None:
        """Two commits for a whole batch."""
        run = self.raw.execute
        rows = [(n, str(n), FINGERPRINT, TEXT) for n in numbers]
        run("begin immediate")
        self.raw.executemany("insert into floor values (?, ?, ?, ?, null, 0)", rows)
        run("commit")
        run("begin immediate")
        done = [(RESULT, n) for n in numbers]
        self.raw.executemany("update floor set result = ?, state = 1 where id = ?", done)
        run("commit")

    def close(self) -> None:
        """Close the file."""
        self.raw.close()


class PostgresFloor:
    """As on SQLite, by psycopg in autocommit, with its own prepared statements."""

    def __init__(self, dsn: str) -> None:
        import psycopg

        self.raw = psycopg.connect(dsn, autocommit=True)
        self.raw.execute(
            "create table floor (id bigint primary key, key text unique, fp text, input text,"
            " result text, state int)"
        )

    def do(self, number: int) -> None:
        """Two commits."""
        row = (number, str(number), FINGERPRINT, TEXT)
        self.raw.execute("insert into floor values (%s, %s, %s, %s, null, 0)", row)
        self.raw.execute("update floor set result = %s, state = 1 where id = %s", (RESULT, number))

    def many(self, numbers: range) -> None:
        """Two statements for a whole batch."""
        ids = list(numbers)
        self.raw.execute(
            "insert into floor select i, k, %s, %s, null, 0"
            " from unnest(%s::bigint[], %s::text[]) as x (i, k)",
            (FINGERPRINT, TEXT, ids, [str(n) for n in ids]),
        )
        self.raw.execute(
            "update floor set result = %s, state = 1 where id = any(%s)", (RESULT, ids)
        )

    def close(self) -> None:
        """End the session."""
        self.raw.close()


class Place:
    """Where stores are made: a folder, and a private PostgreSQL that waits for the disk."""

    def __init__(self, folder: Path, server: Any) -> None:
        self.folder, self.server = folder, server
        self._numbers = count(1)

    @contextmanager
    def address(self, kind: str) -> Iterator[str]:
        """Give the address of an empty store."""
        if kind == "sqlite":
            yield str(self.folder / f"store{next(self._numbers)}.db")
            return
        with self.server.database() as dsn:
            yield dsn

    @contextmanager
    def ledger(self, kind: str, *, alone: bool = False) -> Iterator[Any]:
        """Give a ledger on an empty store; `alone`: its callers commit each for himself."""
        with self.address(kind) as address:
            store = ascertain.open_store(address)
            with ascertain.open(uncoalesced(store) if alone else store) as ledger:
                yield ledger

    @contextmanager
    def floor(self, kind: str) -> Iterator[Any]:
        """Give the bare driver on an empty database."""
        with self.address(kind) as address:
            made = SqliteFloor(Path(address)) if kind == "sqlite" else PostgresFloor(address)
            try:
                yield made
            finally:
                made.close()


@contextmanager
def place() -> Iterator[Place]:
    """Make the folder (on the disk of the temporary files) and the server."""
    from postgres import PrivatePostgres

    with (
        tempfile.TemporaryDirectory(prefix="ascertain-bench-") as folder,
        PrivatePostgres(durable=True) as server,
    ):
        yield Place(Path(folder), server)


def disk_wait() -> float:
    """Return the median of µs that fdatasync of 4 KiB takes, which all figures depend on."""
    waits = []
    with tempfile.NamedTemporaryFile() as file:
        file.write(b"0" * 1_000_000)
        for block in range(100):
            os.pwrite(file.fileno(), b"1" * 4096, block * 4096)
            start = time.perf_counter()
            os.fdatasync(file.fileno())
            waits.append((time.perf_counter() - start) * 1e6)
    return median(waits)


def machine() -> str:
    """Name what the figures were measured on."""
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    models = [line.split(":")[1].strip() for line in lines if line.startswith("model name")]
    model = models[0] if models else platform.machine()
    return f"{os.cpu_count()} × {model}, Linux {platform.release().split('-')[0]}, Python " + (
        platform.python_version()
    )

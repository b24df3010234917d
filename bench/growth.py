"""What a long history costs: claim, due scan and counts on a small and on a big store.

The history is made by the ledger itself, a thousand operations, and then multiplied by the
database: every copy has identifiers, keys and effect references of its own, so all tables and
indexes are as big as if each had been called for.
"""

from __future__ import annotations

import random
import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from itertools import count
from pathlib import Path
from typing import Any

from bench.common import TEXT, Place, noop

import ascertain
from ascertain.core.model import Attempt, Evidence, Operation, Record, Reference, Status
from ascertain.store.records import FIELDS
from ascertain.testing.story import NAMESPACE, NOW, Maker

SEED = 1000  # operations that are called for, and copied
COPIES = 50  # in one transaction
DUE = 1000  # unsettled operations in both stores
GROUP = 500
# The number of a copy as eight digits, and what of a row is a copy's own. Identifiers keep their
# width; those of copies are older than those of operations that are called for.
DIGITS = "substr(cast(100000000 + k as text), 2)"
OWN_ID = f"'05' || {DIGITS} || substr({{}}, 11)"
TABLES: dict[str, tuple[type[Record], tuple[str, ...], dict[str, str]]] = {
    "operation": (Operation, (), {"id": OWN_ID.format("id"), "key": f"{DIGITS} || '/' || key"}),
    "settled": (Status, ("pruned",), {"operation": "", "ref": f"{DIGITS} || '/' || ref"}),
    "attempt": (Attempt, (), {"operation": ""}),
    "evidence": (Evidence, (), {"operation": "", "id": OWN_ID.format("id")}),
    "reference": (
        Reference,
        ("beside",),
        {"operation": "", "reference": f"{DIGITS} || '/' || reference"},
    ),
}
SERIES = {
    "sqlite": "with recursive copy (k) as"
    " (select {0} union all select k + 1 from copy where k < {1})",
    "postgres": "with copy (k) as (select generate_series({0}, {1}))",
}


def growth(at: Place, kind: str, *, sizes: tuple[int, int], quick: bool) -> dict[str, float]:
    """Compare both stores call by call, in turn."""
    rounds, big = 100 if quick else 400, sizes[1]
    found: dict[str, float] = {f"{kind}_growth_operations": big}
    with ExitStack() as open_:
        stores = [open_.enter_context(filled(at, kind, size)) for size in sizes]
        found[f"{kind}_bytes_per_operation"] = volume(stores[1], kind) / big
        acts = [noop(ascertain.open(store, namespace="bench")) for store in stores]
        claims = [caller(act, size) for act, size in zip(acts, sizes, strict=True)]
        names = ["cms.create_draft"]
        takes = [
            lambda s=store: s.take(NOW + 10**9, NOW + 10**8, NAMESPACE, names, 100)
            for store in stores
        ]
        counts = [lambda s=store: s.counts(NAMESPACE) for store in stores]
        for name, pair in (("claim", claims), ("due_scan", takes), ("counts", counts)):
            small, grown = in_turn(pair, rounds)
            found[f"{kind}_growth_{name}_to_small"] = grown / small
            found[f"{kind}_growth_{name}_us"] = grown
    return found


def caller(act: Any, size: int) -> Callable[[], Any]:
    """Call with new keys that lie anywhere among those that there are."""
    numbers, chance = count(1), random.Random(size)
    return lambda: act(number=f"{chance.randrange(size // SEED):08d}/new{next(numbers)}", text=TEXT)


def in_turn(pair: list[Callable[[], Any]], rounds: int) -> tuple[float, float]:
    """Return the median µs of each of two, called in turn."""
    spent: tuple[list[float], list[float]] = ([], [])
    for turn in range(rounds + 10):
        for side in (0, 1) if turn % 2 else (1, 0):
            start = time.perf_counter()
            pair[side]()
            if turn >= 10:
                spent[side].append((time.perf_counter() - start) * 1e6)
    return statistics.median(spent[0]), statistics.median(spent[1])


@contextmanager
def filled(at: Place, kind: str, size: int) -> Iterator[Any]:
    """Make a store with so many settled operations, and DUE that are unsettled and due."""
    with at.address(kind) as address:
        store = ascertain.open_store(address)
        try:
            act = noop(ascertain.open(store, namespace="bench"))
            for number in range(SEED):
                act(number=number, text=TEXT)
            multiply(store, kind, size // SEED - 1)
            make = Maker()
            for start in range(0, DUE, GROUP):
                claims = [make.claim(f"due/{n}") for n in range(start, start + GROUP)]
                store.write(claims)
                store.write([make.unknown(claim.status) for claim in claims])
            yield store
        finally:
            store.close()


def multiply(store: Any, kind: str, copies: int) -> None:
    """Copy what is there so many times; the disk is not waited for while it is filled."""
    if kind == "sqlite":
        run = store._writer.do
        settings = ("synchronous = off", "cache_size = -200000")
        after = ("wal_checkpoint(truncate)", "synchronous = full", "cache_size = -16000")
        before, after = ([f"pragma {one}" for one in each] for each in (settings, after))
    else:
        raw = store._pool.connect()
        run = raw.execute
        before, after = ["set synchronous_commit = off"], ["vacuum analyze", "checkpoint"]
    for command in before:
        run(command)
    for table in TABLES:
        run(f"create temporary table seed_{table} as select * from {table}")
    for first in range(1, copies + 1, COPIES):
        run("begin")
        for table, (record, more, own) in TABLES.items():
            names = (*FIELDS[record], *more)
            own_id = OWN_ID.format("operation")
            values = [own.get(name, name) or own_id for name in names]
            series = SERIES[kind].format(first, min(first + COPIES - 1, copies))
            run(
                f"insert into {table} ({', '.join(names)}) {series}"
                f" select {', '.join(values)} from copy cross join seed_{table} order by k, 1"
            )
        run("commit")
    for command in after:
        run(command)


def volume(store: Any, kind: str) -> int:
    """Return the bytes that a store takes on the disk."""
    if kind == "sqlite":
        return Path(store.path).stat().st_size
    with store._pool.use() as raw:
        [(size,)] = raw.execute("select pg_database_size(current_database())").fetchall()
    return int(size)

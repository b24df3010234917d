"""What a long history costs: claim, due scan and counts on a small and on a big SQLite store."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

from bench.common import TEXT, Place, noop
from msgspec.structs import replace

import ascertain
from ascertain.core.model import Change
from ascertain.testing.story import NAMESPACE, NOW, Maker

SMALL = 10_000
DUE = 1000  # unsettled operations in both stores
GROUP = 500


def growth(at: Place, *, big: int, quick: bool) -> dict[str, float]:
    """Compare both stores call by call, in turn."""
    rounds = 100 if quick else 400
    found: dict[str, float] = {"growth_operations": big}
    stores = [filled(at.folder / f"grown{size}.db", size) for size in (SMALL, big)]
    try:
        path = Path(stores[1].path)
        stores[1].meta("measured", "now")
        size = path.stat().st_size
        found["sqlite_bytes_per_operation"] = (size - 4096) / big
        acts = [noop(ascertain.open(store, namespace="bench")) for store in stores]
        number = count(1)
        claims = [lambda a=act: a(number=next(number), text=TEXT) for act in acts]
        names = ["cms.create_draft"]
        takes = [
            lambda s=store: s.take(NOW + 10**9, NOW + 10**8, NAMESPACE, names, 100)
            for store in stores
        ]
        counts = [lambda s=store: s.counts(NAMESPACE) for store in stores]
        for name, pair in (("claim", claims), ("due_scan", takes), ("counts", counts)):
            small, grown = in_turn(pair, rounds)
            found[f"sqlite_growth_{name}_to_small"] = grown / small
            found[f"sqlite_growth_{name}_us"] = grown
    finally:
        for store in stores:
            store.close()
    return found


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


def filled(path: Path, size: int) -> Any:
    """Make a store with so many settled operations, and DUE that are unsettled and due."""
    store = ascertain.open_store(str(path))
    writer = store._writer
    writer.ask("pragma synchronous = off")  # only while it is filled
    make = Maker()
    for start in range(0, size, GROUP):
        store.write([history(make, n) for n in range(start, min(start + GROUP, size))])
    for start in range(0, DUE, GROUP):
        claims = [make.claim(f"due/{n}") for n in range(start, start + GROUP)]
        store.write(claims)
        store.write([make.unknown(claim.status) for claim in claims])
    writer.ask("pragma wal_checkpoint(truncate)")
    writer.ask("pragma synchronous = full")
    return store


def history(make: Maker, number: int) -> Change:
    """Make an operation that is done, as one change with all the rows that two would write."""
    claim = make.claim(f"history/{number}", input=f'{{"text":"{TEXT}"}}')
    done = make.done(claim.status, f"ref-{claim.status.operation}")
    assert claim.attempt is not None
    ended = replace(claim.attempt, outcome="done", ended_at=NOW)
    return replace(done, guard=None, operation=claim.operation, attempt=ended, ends=())

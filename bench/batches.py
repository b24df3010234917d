"""Batches of 100 through `store.write`: a claim and a settlement of each, against the floor."""

from __future__ import annotations

import time
from itertools import count
from typing import Any

from bench.common import Place, median, paired, ratio

from ascertain.testing.story import Maker

BATCH = 100


def batches(at: Place, kind: str, *, quick: bool) -> dict[str, float]:
    """Both commits of a batch, without making the changes: that is the callers' work."""
    with at.ledger(kind) as ledger, at.floor(kind) as floor:
        make, starts = Maker(), count(1, BATCH)
        keys = count(1)

        def library(seconds: float) -> float:
            done, spent = 0, 0.0
            while spent < seconds:
                claims = [make.claim(f"batch/{next(keys)}") for _ in range(BATCH)]
                ends = [make.done(c.status, f"ref-{c.status.operation}") for c in claims]
                start = time.perf_counter()
                written = [*ledger.store.write(claims), *ledger.store.write(ends)]
                spent += time.perf_counter() - start
                check(written)
                done += BATCH
            return done / spent

        def bare(seconds: float) -> float:
            done, start = 0, time.perf_counter()
            while (spent := time.perf_counter() - start) < seconds:
                first = next(starts)
                floor.many(range(first, first + BATCH))
                done += BATCH
            return done / spent

        sides = {"library": library, "floor": bare}
        rates = paired(sides, 0.3 if quick else 1.0, 3 if quick else 9)
    return {
        f"{kind}_batch_100_per_s": median(rates["library"]),
        f"{kind}_batch_100_to_floor": ratio(rates, "library", "floor"),
        f"{kind}_batch_100_floor_per_s": median(rates["floor"]),
    }


def check(written: list[Any]) -> None:
    """Refuse a figure of what was not written."""
    if not all(one.applied for one in written):
        raise RuntimeError("a change of a batch was not written")

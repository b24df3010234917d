"""One caller: the whole library against two commits of the bare driver; its latency at low load."""

from __future__ import annotations

import time
from itertools import count

from bench.common import TEXT, Place, disk_wait, median, noop, paired, ratio, repeated

PAUSE = 0.02  # seconds between two calls at low load


def one_caller(at: Place, kind: str, *, quick: bool) -> dict[str, float]:
    """Claim and settle with the whole library in the path, as a share of the floor."""
    with at.ledger(kind) as ledger, at.ledger(kind) as other, at.floor(kind) as floor:
        act, lazy = noop(ledger), noop(other, settle="lazy")
        busy = [0.0, 0]

        def call(number: int) -> None:
            start = time.process_time()
            act(number=number, text=TEXT)
            busy[0] += time.process_time() - start
            busy[1] += 1

        sides = {
            "library": repeated(call, count(1)),
            "lazy": repeated(lambda number: lazy(number=number, text=TEXT), count(1)),
            "floor": repeated(floor.do, count(1)),
        }
        waits = [disk_wait()]
        rates = paired(sides, 0.35 if quick else 1.0, 5 if quick else 15)
        waits.append(disk_wait())
    library, bare = median(rates["library"]), median(rates["floor"])
    both = zip(rates["library"], rates["floor"], strict=True)
    return {
        f"{kind}_one_caller_to_floor": ratio(rates, "library", "floor"),
        f"{kind}_lazy_to_floor": ratio(rates, "lazy", "floor"),
        f"{kind}_lazy_per_s": median(rates["lazy"]),
        f"{kind}_one_caller_fdatasync_us": median(waits),  # a slow disk flatters the ratio
        f"{kind}_one_caller_per_s": library,
        f"{kind}_floor_per_s": bare,
        f"{kind}_one_caller_added_us": median([1e6 / ours - 1e6 / floor for ours, floor in both]),
        f"{kind}_one_caller_client_cpu_us": busy[0] / busy[1] * 1e6,
    }


def low_load(at: Place, kind: str, *, quick: bool) -> dict[str, float]:
    """Latency of a caller who comes now and then, through the committer and without it."""
    calls = 30 if quick else 150
    with at.ledger(kind) as ledger, at.ledger(kind, alone=True) as alone:
        acts, spent = [noop(ledger), noop(alone)], ([], [])
        for number in range(calls):
            for side in (0, 1) if number % 2 else (1, 0):
                time.sleep(PAUSE / 2)
                start = time.perf_counter()
                acts[side](number=number, text=TEXT)
                spent[side].append((time.perf_counter() - start) * 1e6)
    own = median(spent[0][5:])
    return {
        f"{kind}_low_load_p50_to_uncoalesced": own / median(spent[1][5:]),
        f"{kind}_low_load_p50_us": own,
    }

"""Playing seeds from the command line; a failing one is shrunk and printed."""

from __future__ import annotations

import argparse
import time
from collections import Counter

from .shrink import shortest
from .sim import Outcome, simulate


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.sim")
    parser.add_argument("--seed", type=int, help="play this one and print it")
    parser.add_argument("--whole", action="store_true", help="do not shorten the schedule")
    parser.add_argument("--from", dest="first", type=int, default=0)
    parser.add_argument("--count", type=int, default=200)
    given = parser.parse_args()
    if given.seed is not None:
        return show(given.seed, whole=given.whole)
    begun, bad = time.perf_counter(), Counter[str]()
    kinds: dict[str, list[int]] = {}
    for seed in range(given.first, given.first + given.count):
        out = simulate(seed)
        kinds.setdefault(out.setting.kind.name, []).append(out.needed_person)
        for what in sorted({v.what for v in out.wrong}):
            bad[what] += 1
            print(f"seed {seed} ({out.setting.kind.name}, {out.setting.scenario}): {what}")
    spent = time.perf_counter() - begun
    print(dict(bad), f"{given.count / spent:.0f} schedules/s")
    return 1 if bad else 0


def show(seed: int, *, whole: bool) -> int:
    out = simulate(seed, trace=True)
    if out.wrong and not whole:
        out = shortest(out)
    tell(out)
    return 1 if out.wrong else 0


def tell(out: Outcome) -> None:
    given = out.setting
    print(f"seed {given.seed}: {given}")
    for line in out.trace:
        print(line)
    for (where, count), event in out.plan.items():
        print(f"adversary: {where} #{count}: {event}")
    for verdict in out.verdicts:
        print(f"VERDICT {verdict.what} {verdict.name} {verdict.more}")

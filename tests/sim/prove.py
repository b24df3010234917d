"""`make prove SEEDS=n`: schedules by seed, every interleaving up to a depth, and the mutants.

Prints what it does and writes build/prove.json; ends with 1 if anything is wrong.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import subprocess
import sys
import time
import xml.etree.ElementTree as ET
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT / "src"), str(ROOT / "tests")]

# ruff: noqa: E402 - found only on the path that is set above
from postgres import PrivatePostgres
from sim.command import tell
from sim.exhaustive import MODELS, explore
from sim.postgres import PostgresStores
from sim.shrink import shortest
from sim.sim import simulate

CHUNK = 50  # seeds that one process plays at a time
DEPTH, STATES = 15, 40_000  # of each class
EVERY, MOST = 50, 200  # one seed of so many is played on PostgreSQL too, so many at most
GUARD = "test_a_guard_that_is_off_is_seen"
SHOWN = 5  # failing seeds that are shrunk and printed
VERDICTS = {
    "duplicates": ("duplicated", "hidden_duplicate"),
    "lost": ("lost",),
    "wrong_done": ("wrong_done",),
    "wrong_failed": ("wrong_failed", "hidden_effect"),
    "stuck": ("stuck",),
    "found_after_broken_assumption": ("found_after_broken_assumption",),
}


def play(seeds: range, stores: Any = None) -> dict[str, Any]:
    """Play some seeds in this process and add up what came of them."""
    sums, bad = Counter[str](), []
    persons: dict[str, list[int]] = defaultdict(lambda: [0, 0])
    for seed in seeds:
        out = simulate(seed, stores=stores)
        sums["schedules"] += 1
        sums["postgres"] += stores is not None
        sums["operations"] += len(out.story.final)
        sums["attempts"] += out.attempts
        sums["effects"] += len(out.story.effects)
        for what in {v.what for v in out.verdicts}:
            sums[f"verdict {what}"] += 1
        share = persons[out.setting.kind.cls]
        share[0] += out.needed_person
        share[1] += 1
        if out.wrong:
            bad.append((seed, sorted({v.what for v in out.wrong})))
    return {"sums": sums, "persons": dict(persons), "bad": bad}


def parts(seeds: range, processes: int) -> Iterator[dict[str, Any]]:
    """Play everything: on SQLite in several processes, a share on PostgreSQL in this one."""
    chunks = [seeds[start : start + CHUNK] for start in range(0, len(seeds), CHUNK)]
    with multiprocessing.get_context("spawn").Pool(processes) as pool:
        yield from pool.imap_unordered(play, chunks)
    some = seeds[::EVERY][:MOST]
    print(f"  and {len(some)} of them on PostgreSQL", flush=True)
    with PrivatePostgres() as server, PostgresStores(server.dsn()) as stores:
        for start in range(0, len(some), CHUNK):
            yield play(some[start : start + CHUNK], stores)


def all_seeds(seeds: range, processes: int) -> dict[str, Any]:
    sums, bad = Counter[str](), []
    persons: dict[str, list[int]] = defaultdict(lambda: [0, 0])
    begun = shown = time.monotonic()
    for part in parts(seeds, processes):
        sums += part["sums"]
        bad += part["bad"]
        for name, (needed, count) in part["persons"].items():
            persons[name][0] += needed
            persons[name][1] += count
        now = time.monotonic()
        if now - shown > 5:
            shown = now
            done = sums["schedules"]
            print(f"  {done} of {len(seeds)} schedules, {done / (now - begun):.0f}/s, "
                  f"{len(bad)} wrong", flush=True)  # fmt: skip
    return {"sums": sums, "bad": sorted(bad), "persons": persons,
            "seconds": time.monotonic() - begun}  # fmt: skip


def mutants() -> tuple[int, int]:
    """Return how many guards are switched off, and how many of these are seen."""
    report = ROOT / "build" / "mutants.xml"
    command = [sys.executable, "-m", "pytest", str(ROOT / "tests/mutants"), "-q", "-k", GUARD,
               f"--junitxml={report}", "-p", "no:cacheprovider"]  # fmt: skip
    ended = subprocess.run(command, cwd=ROOT, check=False, capture_output=True, text=True)
    cases = list(ET.parse(report).getroot().iter("testcase"))
    caught = [c for c in cases if not len(c)]
    if len(caught) < len(cases) or not cases:
        print(ended.stdout[-2000:])
    return len(cases), len(caught)


def summary(found: dict[str, Any], states: dict[str, int], guards: tuple[int, int]) -> dict:
    sums = found["sums"]
    known = {v for names in VERDICTS.values() for v in names}
    verdicts = {k.removeprefix("verdict "): n for k, n in sums.items() if k.startswith("verdict")}
    return {
        "seeds": sums["schedules"] - sums["postgres"],
        "schedules": sums["schedules"],
        "operations": sums["operations"],
        "attempts": sums["attempts"],
        "effects": sums["effects"],
        **{name: sum(verdicts.get(v, 0) for v in names) for name, names in VERDICTS.items()},
        "other_verdicts": {v: n for v, n in sorted(verdicts.items()) if v not in known},
        "needed_person": {
            name: round(needed / count, 4)
            for name, (needed, count) in sorted(found["persons"].items())
        },
        "exhaustive_states": sum(states.values()),
        "mutants": {"total": guards[0], "caught": guards[1]},
        "postgres_schedules": sums["postgres"],
        "seconds": 0.0,
    }


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.sim.prove")
    parser.add_argument("--seeds", type=int, default=2000)
    parser.add_argument("--from", dest="first", type=int, default=0)
    parser.add_argument("--processes", type=int, default=2)
    given = parser.parse_args()
    begun = time.monotonic()
    (ROOT / "build").mkdir(exist_ok=True)
    print(f"Playing {given.seeds} schedules ...", flush=True)
    found = all_seeds(range(given.first, given.first + given.seeds), given.processes)
    print(f"Every interleaving of two workers, {DEPTH} steps deep ...", flush=True)
    states, wrong = {}, []
    for model in MODELS:
        states[model.name], bad = explore(model, DEPTH, STATES)
        wrong += [(model.name, what, path) for what, path in bad]
        print(f"  {model.name}: {states[model.name]} states, {len(bad)} wrong", flush=True)
    print("Switching the guards off, one by one ...", flush=True)
    guards = mutants()
    made = summary(found, states, guards)
    made["seconds"] = round(time.monotonic() - begun, 1)
    (ROOT / "build" / "prove.json").write_text(json.dumps(made, indent=2) + "\n")
    print(json.dumps(made, indent=2))
    print(f"{given.seeds / found['seconds']:.0f} schedules/s")
    for name, what, path in wrong[:SHOWN]:
        print(f"WRONG {name}: {what}: {' / '.join(path)}")
    for seed, what in found["bad"][:SHOWN]:
        print(f"WRONG seed {seed}: {what}; again with: python -m tests.sim --seed {seed}")
        tell(shortest(simulate(seed, trace=True)))
    survived = guards[0] - guards[1]
    return 1 if wrong or found["bad"] or survived or not guards[0] else 0


if __name__ == "__main__":
    sys.exit(main())

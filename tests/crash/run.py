"""`make crash KILLS=2000`: all storms; prints progress and figures, writes build/crash.json.
About sixteen minutes on two cores.

One storm alone, e.g. from a test: `python -m tests.crash.run --only kills-sqlite --kills 60`.
Ends with 1 if anything acknowledged was lost, anything happened twice, or anything else is wrong.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT / "src"), str(ROOT / "tests")]

# ruff: noqa: E402 - found only on the path that is set above
from crash import fleet as fleets
from crash import scenarios
from crash.auditor import Audit

BUILD = ROOT / "build" / "crash.json"
BEGUN = time.monotonic()
Storm = Callable[[scenarios.Setting], Audit]


def storms(given: argparse.Namespace) -> dict[str, tuple[int, Storm]]:
    """All storms by name, with how often each is played."""
    s, n = scenarios, given.rounds
    return {
        "kills-sqlite": (1, lambda how: s.kills(how, "sqlite", given.kills)),
        "kills-postgres": (1, lambda how: s.kills(how, "postgres", given.kills)),
        "stops-postgres": (1, lambda how: s.stops(how, given.stops)),
        "failover": (n, s.failover),
        "failover-outright": (n, lambda how: s.failover(how, outright=True)),
        "failover-lagging": (n, s.lagging_failover),
        "restored-sqlite": (n, lambda how: s.restored(how, "sqlite")),
        "restored-postgres": (n, lambda how: s.restored(how, "postgres")),
        "full-disk": (n, s.full_disk),
        "limited-files": (n, s.limited_files),
        "fleet": (1, lambda how: fleets.fleet(how, given.seconds)),
    }


def main() -> int:
    given = _arguments()
    scenarios.interruptible()
    seeds = random.Random(given.seed)
    begun, figures, wrong = time.monotonic(), dict[str, Any](), 0
    chosen = {n: s for n, s in storms(given).items() if given.only in (None, n)}
    if not chosen:
        print(f"no storm {given.only}; there are: {', '.join(storms(given))}", file=sys.stderr)
        return 2
    for name, (rounds, storm) in chosen.items():
        for number in range(rounds):
            title = f"{name} {number + 1} of {rounds}" if rounds > 1 else name
            _show(f"--- {title}")
            try:
                found = storm(setting(given, seeds.randrange(1 << 30)))
            except scenarios.CannotMount as why:
                _show(f"SKIPPED, nothing of it was tested: {why}")
                figures[title] = {"skipped": str(why)}
                continue
            except KeyboardInterrupt:
                _show("stopped; every process that was started has been ended")
                return 130
            figures[title] = found.figures | {"found": found.violations}
            wrong += not found.sound
            _show(str(found))
    summary = {"kills": given.kills, "seed": given.seed, "storms": figures, "wrong": wrong,
               "seconds": round(time.monotonic() - begun, 1)}  # fmt: skip
    if given.json:
        print(json.dumps(summary))
    else:
        summary = {"sums": _sums(figures), **summary}
        if given.only is None:
            BUILD.parent.mkdir(exist_ok=True)
            BUILD.write_text(json.dumps(summary, indent=2) + "\n")
        _show(", ".join(f"{name} {count}" for name, count in summary["sums"].items()))
        _show(f"{len(figures)} storms, {wrong} with violations, {summary['seconds']} s")
    return 1 if wrong else 0


def _sums(figures: dict[str, dict[str, Any]]) -> dict[str, int]:
    played = [one for one in figures.values() if "skipped" not in one]
    kills = sum(sum(one["kills"].values()) for one in played)
    names = ("calls", "keys", "acknowledged_done", "effects", "duplicated", "lost", "violations")
    return {"kills": kills} | {name: sum(one[name] for one in played) for name in names}


def setting(given: argparse.Namespace, seed: int) -> scenarios.Setting:
    return scenarios.Setting(
        seed=seed,
        load=given.load,
        durable=not given.fast,
        wrong=given.wrong,
        declared=not given.undeclared,
        show=_show,
    )


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.crash.run")
    parser.add_argument("--kills", type=int, default=2000, help="on each store")
    parser.add_argument("--stops", type=int, default=10, help="of PostgreSQL")
    parser.add_argument("--rounds", type=int, default=3, help="of every other storm")
    parser.add_argument("--seconds", type=float, default=300, help="of servers under blows")
    parser.add_argument("--load", type=float, default=1.0, help="seconds of each phase")
    parser.add_argument("--fast", action="store_true", help="PostgreSQL waits for no disk")
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 30))
    parser.add_argument("--only", help="one storm by name")
    parser.add_argument("--json", action="store_true", help="print the figures, write no file")
    parser.add_argument("--wrong", default="", choices=["", "blind", "hasty"],
                        help="workers that break their word: does the auditor see it?")  # fmt: skip
    parser.add_argument("--undeclared", action="store_true",
                        help="nobody says that writes were lost: likewise")  # fmt: skip
    return parser.parse_args()


def _show(line: str) -> None:
    print(f"{time.monotonic() - BEGUN:6.1f} s  {line}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())

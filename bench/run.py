"""`make bench`: runs all measures, prints a table, writes build/bench.json.

Every ratio is the median of ratios of rounds in which both sides ran one after the other, because
a shared machine is never the same twice. Rates are of this machine in this minute.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import apsw
from bench import (
    batches,
    console,
    counting,
    crowd,
    finding,
    growth,
    intake,
    one,
    recovery,
    server,
    small,
    up,
)
from bench.common import STORES, Place, disk_wait, machine, place

BUILD = Path(__file__).parents[1] / "build"
# Name: goal of the issue, and whether more is better.
GOALS: dict[str, tuple[float, bool]] = {
    "sqlite_one_caller_to_floor": (0.50, True),
    "postgres_one_caller_to_floor": (0.42, True),
    "sqlite_lazy_to_floor": (0.75, True),
    "postgres_lazy_to_floor": (0.75, True),
    "sqlite_64_threads_to_uncoalesced": (2.5, True),
    "sqlite_64_tasks_to_uncoalesced": (5, True),
    "postgres_64_threads_to_uncoalesced": (2.5, True),
    "postgres_64_tasks_to_uncoalesced": (4, True),
    "sqlite_batch_100_per_s": (10_000, True),
    "postgres_batch_100_per_s": (10_000, True),
    "sqlite_growth_claim_to_small": (1.3, False),
    "sqlite_growth_due_scan_to_small": (1.3, False),
    "sqlite_growth_counts_to_small": (1.3, False),
    "postgres_growth_claim_to_small": (1.3, False),
    "postgres_growth_due_scan_to_small": (1.3, False),
    "postgres_growth_counts_to_small": (1.3, False),
    "sqlite_recovery_per_s": (1000, True),
    "sqlite_recovery_fairness": (0.9, True),
    "postgres_recovery_per_s": (1000, True),
    "postgres_recovery_fairness": (0.9, True),
    "sqlite_low_load_p50_to_uncoalesced": (1.25, False),
    "postgres_low_load_p50_to_uncoalesced": (1.25, False),
    "server_64_connections_to_library": (0.35, True),
    "server_batch_to_library": (0.7, True),
    "sqlite_find_slowest_p95_ms": (100, False),
    "postgres_find_slowest_p95_ms": (100, False),
    "sqlite_intake_full_per_s": (2000, True),
    "sqlite_intake_at_2000_p99_ms": (50, False),
    "up_first_start_s": (3, False),
    "up_idle_mb": (120, False),
    "sqlite_figures_month_p95_ms": (100, False),
    "sqlite_figures_month_by_hour_p95_ms": (100, False),
    "postgres_figures_month_p95_ms": (100, False),
    "postgres_figures_month_by_hour_p95_ms": (100, False),
    "console_slowest_p95_ms": (100, False),
    "import_ms": (60, False),
    "sqlite_idle_worker_mb": (60, False),
    "postgres_idle_worker_mb": (60, False),
}


def measures(at: Place, *, quick: bool, big: int) -> dict[str, Callable[[], dict[str, float]]]:
    """Name everything that is measured, in order."""
    found: dict[str, Callable[[], dict[str, float]]] = {}
    for kind in STORES:
        found |= {
            f"one_{kind}": lambda k=kind: one.one_caller(at, k, quick=quick),
            f"crowd_{kind}": lambda k=kind: crowd.crowd(at, k, quick=quick),
            f"batches_{kind}": lambda k=kind: batches.batches(at, k, quick=quick),
            f"low_{kind}": lambda k=kind: one.low_load(at, k, quick=quick),
            f"recovery_{kind}": lambda k=kind: recovery.recovery(at, k, quick=quick),
            f"memory_{kind}": lambda k=kind: small.memory(at, k),
        }
    found["server"] = lambda: server.server(at, quick=quick)
    found["intake_sqlite"] = lambda: intake.intake(at, "sqlite", quick=quick)
    found["up"] = lambda: up.up(quick=quick)
    found["console"] = lambda: console.console(at, size=big, quick=quick)
    found["import"] = lambda: small.importing(quick=quick)
    sizes = (10_000 if quick else 100_000, big)
    for kind in STORES:
        found[f"find_{kind}"] = lambda k=kind: finding.finding(at, k, size=big, quick=quick)
        found[f"figures_{kind}"] = lambda k=kind: counting.counting(at, k, size=big, quick=quick)
        found[f"growth_{kind}"] = lambda k=kind: growth.growth(at, k, sizes=sizes, quick=quick)
    return found


def main() -> None:
    """Measure what was asked for."""
    parser = argparse.ArgumentParser(prog="make bench ARGS=…", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="about a minute, less exact")
    parser.add_argument("--big", type=int, help="operations in the grown stores (1,000,000)")
    parser.add_argument("--only", default="", help="measures whose name begins so")
    given = parser.parse_args()
    big = given.big or (30_000 if given.quick else 1_000_000)
    start, load = time.monotonic(), os.getloadavg()[0]
    figures: dict[str, Any] = {
        "date": time.strftime("%Y-%m-%d", time.gmtime()),
        "machine": machine(),
        "command": "make bench" + (f' ARGS="{" ".join(sys.argv[1:])}"' if sys.argv[1:] else ""),
        "load_before": load,
        "fdatasync_us": disk_wait(),
    }
    with place() as at:
        figures |= durability(at)
        for name, measure in measures(at, quick=given.quick, big=big).items():
            if name.startswith(given.only):
                began = time.monotonic()
                figures |= measure()
                print(f"  {name}: {time.monotonic() - began:.0f} s", file=sys.stderr, flush=True)
    figures |= {"load_after": os.getloadavg()[0], "seconds": time.monotonic() - start}
    show(figures)
    BUILD.mkdir(exist_ok=True)
    text = json.dumps(figures, indent=1, ensure_ascii=False)
    (BUILD / "bench.json").write_text(text + "\n", encoding="utf-8")


def durability(at: Place) -> dict[str, str]:
    """Name the versions and the durability of both stores."""
    with at.ledger("sqlite") as ledger:
        sqlite = f"{apsw.sqlite_lib_version()}, {ledger.store.durability}"
    with at.ledger("postgres") as ledger, ledger.store._pool.use() as raw:
        [(version, fsync)] = raw.execute(
            "select current_setting('server_version'), current_setting('fsync')"
        ).fetchall()
        postgres = f"{version}, {ledger.store.durability}, fsync={fsync}, direct connection"
    return {"sqlite": sqlite, "postgres": postgres}


def show(figures: dict[str, Any]) -> None:
    """Print the table."""
    for name, value in figures.items():
        if isinstance(value, str):
            print(f"{name:38} {value}")
    for name, value in figures.items():
        if isinstance(value, str):
            continue
        goal, verdict = "", ""
        if name in GOALS:
            bound, more = GOALS[name]
            met = value >= bound if more else value <= bound
            goal = f"{'≥' if more else '≤'} {bound:g}"
            verdict = "met" if met else "missed"
        shown = f"{value:,.2f}" if abs(value) < 100 else f"{value:,.0f}"
        print(f"{name:38} {shown:>10}  {goal:>9}  {verdict}".rstrip())


if __name__ == "__main__":
    main()

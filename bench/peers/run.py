"""`make bench-peers`: other libraries beside this one, in the same run on the same disk.

Every library does the same operation: a function that does nothing, with about 200 bytes of input
under a key of its own, whose result of about 85 bytes is kept. Each has a process of its own. A
round runs all of them in turn, each between two slices of the floor of its store; a share is the
median of the rounds around which the floor did not change.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from statistics import quantiles
from typing import Any

import psycopg
from bench.common import Place, disk_wait, machine, median, place
from bench.peers.processes import Redis, Uncounted, Worker, children, counting
from bench.peers.sides import SIDES

BUILD = Path(__file__).parents[2] / "build"
Slices = list[tuple[float, float, float]]  # of a round: its rate, its floor's before and after
STEADY = 1.5  # a slice counts if the floor's rates around it differ by no more, as a factor
MOST = 280.0  # seconds after which no further round is begun


class Figures(dict[str, Any]):
    """What was found, by name; and what was not, said at once and kept."""

    def skip(self, name: str, why: object) -> None:
        """Say loudly that a figure is missing."""
        self[f"skipped_{name}"] = str(why)
        print(f"\n*** SKIPPED {name}: {why}\n", file=sys.stderr, flush=True)


class Peers:
    """The libraries that run, by store and name, e.g. `sqlite_dbos_step`."""

    def __init__(self, figures: Figures) -> None:
        self.figures = figures
        self.ways: dict[str, tuple[Worker, str]] = {}
        self.replays: list[str] = []
        self.servers: dict[str, int] = {}

    def join(self, name: str, worker: Worker) -> None:
        """Wait until a worker is ready, and take note of what it says."""
        try:
            about = worker.about()
        except RuntimeError as error:
            self.figures.skip(name, error)
            return
        for way, again in about["ways"].items():
            full = f"{name}_{way}" if way else name
            self.ways[full] = (worker, way)
            if again:
                self.replays.append(full)
            for what in ("version", "seen", "durable"):
                self.figures[f"{full}_{what}"] = about[what]

    def rate(self, name: str, seconds: float, *, again: bool = False) -> float | None:
        """Run one slice; a library that fails is left out from then on."""
        worker, way = self.ways[name]
        try:
            done, spent = worker.run(way, seconds, again=again)
        except (RuntimeError, OSError) as error:
            self.figures.skip(name, error)
            worker.end()
            self.ways = {n: both for n, both in self.ways.items() if both[0] is not worker}
            return None
        return done / spent

    def rounds(self, seconds: float, most: int, until: float) -> dict[str, Slices]:
        """Run all in turn, each between two slices of its floor; the first round warms up."""
        found: dict[str, Slices] = {name: [] for name in self.ways}
        names = [name for name in self.ways if not name.endswith("_floor")]
        for number in range(most + 1):
            if time.monotonic() > until and number > 1:
                break
            store, before = "", 0.0
            for name in [name for name in names if name in self.ways]:
                if store_of(name) != store:
                    store = store_of(name)
                    before = self.floor(store, seconds / 2)
                rate = self.rate(name, seconds)
                after = self.floor(store, seconds / 2)
                if number and rate is not None:
                    found[name].append((rate, before, after))
                before = after
            names = names[1:] + names[:1]
            say(f"round {number} of {most}" if number else "warmed up")
        return {name: slices for name, slices in found.items() if name in self.ways and slices}

    def floor(self, store: str, seconds: float) -> float:
        """Run a slice of the bare driver, without which nothing can be compared."""
        rate = self.rate(f"{store}_floor", seconds) if f"{store}_floor" in self.ways else None
        if rate is None:
            raise RuntimeError(f"the floor on {store} could not be measured: see above")
        return rate

    def syncs(self, name: str, seconds: float, folder: Path) -> float:
        """Count how often the disk is waited for, per operation, by the library or its server."""
        worker, way = self.ways[name]
        server = self.servers.get(store_of(name))
        pids = [worker.pid, *([server, *children(server)] if server else [])]
        with counting(pids, folder / "trace") as count:
            done, _ = worker.run(way, seconds)
        return count[0] / done


def say(text: str) -> None:
    """Show how far it is."""
    print(f"  {text}", file=sys.stderr, flush=True)


@contextmanager
def running(at: Place, figures: Figures) -> Iterator[Peers]:
    """Start the servers and the workers; end all that was started."""
    peers = Peers(figures)
    with ExitStack() as ends:
        folder = Path(ends.enter_context(tempfile.TemporaryDirectory(prefix="ascertain-peers-")))
        peers.servers["postgres"] = at.server._server.pid
        redis = redis_at(folder, figures, ends)
        if redis:
            peers.servers["redis"] = redis.pid
        for store in ("sqlite", "redis", "postgres"):
            for number, (name, (_, _, stores)) in enumerate(SIDES.items()):
                if store not in stores or (store == "redis" and not redis):
                    continue
                if redis and store == "redis":
                    address = f"redis://127.0.0.1:{redis.port}/{number}"
                else:
                    address = ends.enter_context(at.address(store))
                full = f"{store}_{name}"
                worker = Worker(name, address, folder / f"{full}.log")
                ends.callback(worker.end)
                peers.join(full, worker)
                say(f"{full} is ready")
        yield peers


def redis_at(folder: Path, figures: Figures, ends: ExitStack) -> Redis | None:
    """Start Redis, or say why not."""
    try:
        redis = Redis(folder)
        ends.callback(redis.end)
        redis.wait()
    except (RuntimeError, ImportError, OSError) as error:
        for name in (n for n, (_, _, stores) in SIDES.items() if "redis" in stores):
            figures.skip(f"redis_{name}", error)
        return None
    return redis


def measure(peers: Peers, *, quick: bool, until: float) -> None:
    """Rates of new operations in rounds; then of known keys; then the waits for the disk."""
    figures = peers.figures
    found = peers.rounds(0.2 if quick else 0.6, 4 if quick else 13, until)
    figures["rounds"] = len(found["sqlite_ascertain"])
    for name, slices in found.items():
        compare(figures, name, slices)
    for name in found:
        store = store_of(name)
        ours, what = f"{store}_ascertain", "to_floor"
        if store == "redis":  # for which Ascertain has no store: its rate on SQLite counts
            ours, what = "sqlite_ascertain", "per_s"
        figures[f"{name}_ascertain_to_it"] = figures[f"{ours}_{what}"] / figures[f"{name}_{what}"]
    for store in {store_of(name): None for name in found}:
        bare = [after for name in found if store_of(name) == store for _, _, after in found[name]]
        figures[f"{store}_floor_per_s"] = median(bare)
    for name in [name for name in peers.replays if name in peers.ways]:
        rates = [peers.rate(name, 0.2, again=True) for _ in range(1 if quick else 3)]
        if None not in rates:
            figures[f"{name}_replay_per_s"] = median([rate for rate in rates if rate])
    say("known keys")
    with tempfile.TemporaryDirectory(prefix="ascertain-peers-") as made:
        folder = Path(made)
        for name in list(peers.ways):
            try:
                figures[f"{name}_syncs"] = peers.syncs(name, 0.3 if quick else 0.5, folder)
            except Uncounted as error:
                figures.skip("syncs", f"{error}; what is durable rests on settings alone")
                break
            except (RuntimeError, OSError) as error:
                figures.skip(f"{name}_syncs", error)
                continue
            # Settings are a promise; the calls are what happens.
            figures[f"{name}_durable"] &= figures[f"{name}_syncs"] > 0.95
    say("waits for the disk")


def compare(figures: Figures, name: str, slices: Slices) -> None:
    """Set one library beside its floor, in the slices around which the floor was steady.

    Where there are not three of them, all count, and the figure is marked.
    """
    steady = [s for s in slices if max(s[1:]) <= STEADY * min(s[1:])]
    enough = len(steady) >= min(3, len(slices))
    if not enough:
        steady = slices
    shares = [2 * rate / (before + after) for rate, before, after in steady]
    low, _, high = quantiles(shares, n=4) if len(shares) > 1 else shares * 3
    figures |= {
        f"{name}_per_s": median([rate for rate, _, _ in steady]),
        f"{name}_to_floor": median(shares),
        f"{name}_to_floor_low": low,
        f"{name}_to_floor_high": high,
        f"{name}_slices": len(steady),
        f"{name}_steady": enough,
    }


def store_of(name: str) -> str:
    """Return the store of `sqlite_dbos_step`."""
    return name.split("_", 1)[0]


def show(figures: Figures) -> None:
    """Print the table."""
    for name in ("date", "machine", "command", "rounds", "load_before", "load_after", "seconds"):
        print(f"{name:12} {figures[name]}")
    for store in ("sqlite", "redis", "postgres"):
        if f"{store}_floor_seen" in figures:
            rate, seen = figures[f"{store}_floor_per_s"], figures[f"{store}_floor_seen"]
            print(f"floor        {rate:,.0f} per s, {seen}")
    print(f"fdatasync    {figures['fdatasync_us']:.0f} to {figures['fdatasync_us_after']:.0f} µs")
    print("Medians of the slices around which the floor was steady, in brackets their middle half;")
    print("~ marks where hardly any was, so that all count: believe those least.")
    head = ("", "per s", "of floor", "slices", "ascertain/it", "replay/s", "syncs/op")
    print("{:25} {:>6} {:>17} {:>6} {:>12} {:>8} {:>8}  version, durability".format(*head))
    for name in [key[: -len("_to_floor")] for key in figures if key.endswith("_to_floor")]:

        def f(what: str, form: str, name: str = name) -> str:
            value = figures.get(f"{name}_{what}")
            return "-" if value is None else format(value, form)

        slices = f("slices", "") + ("" if figures[f"{name}_steady"] else "~")
        durable = "" if figures[f"{name}_durable"] else "NOT DURABLE: "
        half = f"({f('to_floor_low', '.2f')}-{f('to_floor_high', '.2f')})"
        print(
            f"{name:25} {f('per_s', ',.0f'):>6} {f('to_floor', '.2f'):>5} {half}"
            f" {slices:>6} {f('ascertain_to_it', '.2f'):>12}"
            f" {f('replay_per_s', ',.0f'):>8} {f('syncs', '.2f'):>8}"
            f"  {f('version', '')}; {durable}{f('seen', '')}"
        )
    for name, why in figures.items():
        if name.startswith("skipped_"):
            print(f"*** {name}: {why}")


def main() -> None:
    """Measure, print and write build/bench-peers.json."""
    parser = argparse.ArgumentParser(prog="make bench-peers ARGS=…", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="about a minute, less exact")
    given = parser.parse_args()
    stopped: list[int] = []

    def stop(number: int, _: object) -> None:
        """Unwind, which ends what was started; once is enough."""
        for name in (signal.SIGINT, signal.SIGTERM):
            signal.signal(name, signal.SIG_IGN)
        stopped.append(number)
        raise KeyboardInterrupt

    for name in (signal.SIGINT, signal.SIGTERM):
        signal.signal(name, stop)
    start = time.monotonic()
    figures = Figures(
        date=time.strftime("%Y-%m-%d", time.gmtime()),
        machine=machine(),
        command="make bench-peers" + (" ARGS=--quick" if given.quick else ""),
        load_before=os.getloadavg()[0],
        fdatasync_us=disk_wait(),
    )
    try:
        with place() as at, running(at, figures) as peers:
            measure(peers, quick=given.quick, until=start + MOST)
    except (KeyboardInterrupt, psycopg.Error):  # Ctrl-C reaches PostgreSQL as well
        if not stopped:
            raise
        sys.exit("Stopped; the servers and workers are ended, nothing was written.")
    figures |= {
        "fdatasync_us_after": disk_wait(),
        "load_after": os.getloadavg()[0],
        "seconds": round(time.monotonic() - start),
    }
    show(figures)
    BUILD.mkdir(exist_ok=True)
    text = json.dumps(figures, indent=1, ensure_ascii=False)
    (BUILD / "bench-peers.json").write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()

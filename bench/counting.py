"""What figures cost on a long history: a month of operations, rolled up, and the live rest.

The rows are written by the database itself, with identifiers that say their time, as the ledger's
do; counts depend on nothing else of an operation.
"""

from __future__ import annotations

import itertools
import random
import statistics
import time
from collections.abc import Iterator
from typing import Any

from bench.common import Place

import ascertain
from ascertain.core.figures import HOUR, hour_of
from ascertain.core.keys import new_id
from ascertain.core.model import SECOND
from ascertain.runtime.clock import Clock
from ascertain.runtime.figures import Figures, Period
from ascertain.runtime.tallies import Tallies

SPACE = "bench"
ACTIONS = 12
HOURS = 30 * 24
OPEN = 10_000  # operations that are not settled, of any age
REVIEWS = 5_000  # that people have decided
PAGE = 20_000
SETTLED = (
    "insert into settled (operation, namespace, action, state, reason, waiting_on, stamp, attempts,"
    " lookups, epoch, target_key, owner, confirmed_by, said, entries, verify, forced_by,"
    " started_at, updated_at{more}) values ({p}, 'bench', {p}, 'done', '', '', 1, {p}, 0, 1, 'k',"
    " 'anna', {p}, 'done', 2, {no}, '', {p}, {p}{last})"
)
UNSETTLED = (
    "insert into unsettled (operation, namespace, action, state, reason, waiting_on, stamp,"
    " attempts, lookups, epoch, target_key, owner, confirmed_by, said, entries, verify, forced_by,"
    " started_at, updated_at) values ({p}, 'bench', {p}, 'unknown', '', 'review', 1, {p}, 0, 1,"
    " 'k', 'anna', {p}, 'unknown', 2, {no}, '', {p}, {p})"
)
OPERATION = (
    "insert into operation (id, namespace, action, key, fingerprint, content_hash, contract, scope,"
    " title, why, source, created_at) values ({p}, 'bench', {p}, {p}, 'f', '', '', '', '', '', '',"
    " {p})"
)
REVIEW = (
    "insert into review (id, operation, namespace, road, owner, opened_at, said, taken_by,"
    " closed_at, closed_by, decision) values ({p}, {p}, 'bench', 'unknown', 'anna', {p}, '', '',"
    " {p}, 'anna', 'there')"
)


def counting(at: Place, kind: str, *, size: int, quick: bool) -> dict[str, float]:
    """Measure the figures of a month by action, by hour, and of a day, p95 in ms."""
    rounds = 40 if quick else 200
    with at.address(kind) as address:
        store = ascertain.open_store(address)
        try:
            filled = time.perf_counter()
            fill(store, kind, size)
            print(f"  filled in {time.perf_counter() - filled:.0f} s")
            chore, began, hours = Tallies(store, [SPACE]), time.perf_counter(), 0
            while did := chore.run():
                hours += did
            rolling = time.perf_counter() - began
            read = Figures(store, [SPACE], Clock())
            now = store.now()
            found = {
                f"{kind}_figures_operations": size,
                f"{kind}_figures_roll_up_us_per_operation": rolling * 1e6 / size,
            }
            month, day = Period.of(now - HOURS * HOUR, now), Period.of(now - 24 * HOUR, now)
            asked = {
                "month": lambda: read.counts(SPACE, month),
                "month_by_hour": lambda: read.counts(SPACE, month, "hour"),
                "day": lambda: read.counts(SPACE, day),
                "recovery_times": lambda: read.recovery_times(SPACE, month),
                "open_now": lambda: read.open_now(SPACE),
            }
            began = time.perf_counter()
            counted = read.counts(SPACE, month)
            found[f"{kind}_figures_first_ms"] = (time.perf_counter() - began) * 1e3
            total = sum(c.get("operations", 0) for c in counted.groups.values())
            assert total == size + OPEN, total
            for name, ask in asked.items():
                spent = []
                for _ in range(rounds):
                    began = time.perf_counter()
                    ask()
                    spent.append((time.perf_counter() - began) * 1e3)
                found[f"{kind}_figures_{name}_p95_ms"] = statistics.quantiles(spent, n=20)[-1]
            began = time.perf_counter()
            chore.run()
            found[f"{kind}_figures_idle_turn_ms"] = (time.perf_counter() - began) * 1e3
            return found
        finally:
            store.close()


def fill(store: Any, kind: str, size: int) -> None:
    """Write a month of history, at random times in it, and what is open."""
    lite = kind == "sqlite"
    mark = {"p": "?" if lite else "%s", "no": "0" if lite else "false"}
    own = {"more": "" if lite else ", pruned", "last": "" if lite else ", false"}
    chance, now = random.Random(1), store.now()
    begin = hour_of(now) - HOURS * HOUR
    hows = ("answer",) * 95 + ("look_up",) * 3 + ("replay", "person")

    def times(count: int) -> Iterator[tuple[int, int, str]]:
        for number in range(count):
            at = begin + (now - begin) * number // count
            yield number, at, new_id(at, chance.getrandbits(80))

    for statement, count in ((SETTLED, size), (UNSETTLED, OPEN)):
        for page in pages(times(count)):
            run_many(store, lite, OPERATION.format(**mark), [
                (ident, f"action{number % ACTIONS}", ident, at) for number, at, ident in page
            ])  # fmt: skip
            run_many(store, lite, statement.format(**mark, **own), [
                (ident, f"action{number % ACTIONS}", 1 + (number % 20 == 0), hows[number % 100],
                 at, min(at + SECOND, now - HOUR))
                for number, at, ident in page
            ])  # fmt: skip
            each = max(size // REVIEWS, 1)
            if statement is SETTLED:
                run_many(store, lite, REVIEW.format(**mark), [
                    (f"{ident}-unknown-1", ident, at, at + (60 + number % 9999) * SECOND)
                    for number, at, ident in page if number % each == 0
                ])  # fmt: skip
    if not lite:
        with store._pool.use() as raw:
            raw.execute("analyze")


def pages(rows: Iterator[Any]) -> Iterator[list[Any]]:
    """Take rows page by page."""
    while page := list(itertools.islice(rows, PAGE)):
        yield page


def run_many(store: Any, lite: bool, statement: str, values: list[Any]) -> None:
    """Run a statement with many values, in one transaction."""
    if lite:
        raw = store._write_connection()
        raw.do("begin")
        for one in values:
            raw.do(statement, one)
        raw.do("commit")
        return
    with store._pool.use() as raw, raw.transaction(), raw.cursor() as cursor:
        cursor.executemany(statement, values)

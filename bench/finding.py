"""What lists and searches cost at a long history: the slowest question's p95, through the reading
verbs that the API uses, on a store grown as in `growth`."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import Any

from bench.common import TEXT, Place, noop
from bench.growth import SEED, filled

import ascertain
from ascertain.core.model import State
from ascertain.runtime.searching import Searching, Wanted

OWN = 300  # operations that are called for with an event and a run
LONG_AGO = 1  # µs since 1970: lists are asked to go back over all of it


def finding(at: Place, kind: str, *, size: int, quick: bool) -> dict[str, float]:
    """Ask every kind of question in turn, and give the p95 of each and of the slowest."""
    rounds = 10 if quick else 40
    with filled(at, kind, size) as store:
        ledger = ascertain.open(store, namespace="bench")
        act = noop(ledger)
        for number in range(OWN):
            asked = act.using(run=f"run{number % 3}", event=f"evt{number}")
            receipt = asked(number=f"own{number}", text=TEXT)
        searching = Searching(ledger)
        spent = {
            name: asked_often(ask, rounds) for name, ask in questions(searching, receipt).items()
        }
    found = {f"{kind}_find_{name}_p95_ms": p95 for name, p95 in spent.items()}
    return {f"{kind}_find_slowest_p95_ms": max(spent.values())} | found


def questions(searching: Searching, one: Any) -> dict[str, Callable[[int], Any]]:
    """Name what is asked; each is given the number of the round."""

    def page(**wanted: Any) -> Any:
        return searching.page(Wanted(**{"since": LONG_AGO, **wanted}))

    def deep(number: int) -> Any:
        """Lists from places all over the history."""
        return searching.page(Wanted(since=LONG_AGO), f"l.05{number * 100:08d}{'0' * 16}")

    def next_page(_: int) -> Any:
        first = searching.page(Wanted(q="no such words"))
        return searching.page(Wanted(q="no such words"), first.next)

    return {
        "newest": lambda _: page(),
        "oldest": lambda _: page(newest=False),
        "deep": deep,
        "id": lambda _: page(q=one.id),
        "key": lambda n: page(key=f"{n:08d}/{n % SEED}"),
        "word": lambda n: page(q=f"{n:08d}/{n % SEED}"),
        "ref": lambda n: page(ref=f"{n:08d}/ref-{n % SEED}"),
        "event": lambda n: page(event=f"evt{n}"),
        "run": lambda n: page(run=f"run{n % 3}"),
        "not_done": lambda _: page(states=(State.NOT_DONE,)),
        "unsettled": lambda _: page(unsettled=True),
        "unknown": lambda _: page(states=(State.UNKNOWN,)),
        "action_absent": lambda _: page(action="another"),
        "title_absent": lambda _: page(title="no such words"),
        "person": lambda _: page(person="bench"),
        "text_absent": lambda _: page(q="no such words"),
        "text_absent_next": next_page,
        "text_common": lambda _: page(q="/1"),
        "total": lambda _: searching.total(Wanted(since=LONG_AGO)),
        "total_text": lambda _: searching.total(Wanted(since=LONG_AGO, title="no such words")),
    }


def asked_often(ask: Callable[[int], Any], rounds: int) -> float:
    """Return the p95 of ms that a question takes, asked so often."""
    spent = []
    for number in range(rounds):
        start = time.perf_counter()
        ask(number)
        spent.append((time.perf_counter() - start) * 1e3)
    return statistics.quantiles(spent, n=20)[18]

"""What is counted, for a time and by what: roll-ups for hours that are over, and the rest live.

The live rest is the hour under way and the few hours in which something changed since they were
rolled up; it is counted at most every few seconds. So an answer is right as of `as_of`, however
long the history is.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Literal, TypeVar

import msgspec

from ascertain.core import figures
from ascertain.core.books import Tally
from ascertain.core.figures import DAY, HOUR, Group, first_id
from ascertain.core.model import SECOND, Record
from ascertain.store.base import Store

from .clock import Clock
from .tallies import Doors, Mark, changed_hours, count_hours, first_time, mark

AGE = 5 * SECOND  # µs that what was counted live is good enough
LIVE = 48  # hours counted live at most; with more an answer is not complete, and says so
RUNS = 100  # runs of one answer, the newest
REVIEWS = 20_000  # reviews whose times are looked at, the newest
MISSING = 10_000  # absent keys that are counted
KEPT = 1000  # answers that are remembered
SHARE = 0.95
T = TypeVar("T")
By = Literal["action", "hour", "day"]
Counts = dict[str, int]


class Period(msgspec.Struct, frozen=True):
    """From the beginning of an hour to the end of one, in µs since 1970."""

    since: int
    until: int

    @classmethod
    def of(cls, since: int, until: int) -> Period:
        """Widen a time to whole hours."""
        return cls(figures.hour_of(since), figures.hour_of(until + HOUR - 1))


class Counted(msgspec.Struct, kw_only=True):
    """What was counted, by action, or by the beginning of an hour or day."""

    period: Period
    as_of: int
    complete: bool
    groups: dict[str | int, Counts]
    own: Counts = {}  # by action only: of our own notices, which are in no group


class Open(Record, frozen=True):
    """The working set by action and state: how many, and since when the oldest one."""

    action: str
    state: str
    count: int
    oldest: int


class Times(msgspec.Struct, frozen=True):
    """How long reviews waited for a person who decided, in µs."""

    median: int | None
    p95: int | None
    reviews: int
    capped: bool


class Missing(Record, frozen=True):
    """A key that a run expected, and that nobody submitted in time (law 20)."""

    action: str
    key: str
    run: str
    name: str
    due_at: int


class RunOf(Record, frozen=True):
    """A run by its id and name."""

    id: str
    name: str
    opened_at: int


class _Number(Record, frozen=True):
    value: int


class Figures:
    """Reads what is counted; thread-safe, and cheap to ask often."""

    def __init__(
        self, store: Store, namespaces: Sequence[str], clock: Clock, doors: Doors | None = None
    ) -> None:
        """`doors`: what this process counts itself, and has not written yet."""
        self.store, self.namespaces, self.clock = store, tuple(namespaces), clock
        self.doors = doors
        self._lock = threading.Lock()
        self._live: dict[int, tuple[int, list[Tally]]] = {}
        self._remembered: dict[tuple[Any, ...], tuple[int, Any]] = {}
        self._changed: tuple[int, int, set[int]] | None = None

    def counts(self, namespace: str, period: Period, by: By = "action") -> Counted:
        """Count what was submitted and received in a time, by what became of it."""
        self._flush()
        now = self.store.now()
        at = mark(self.store) or Mark(
            0, figures.hour_of(first_time(self.store, now, self.namespaces)), now
        )
        period = Period(period.since, min(period.until, figures.hour_of(now) + HOUR))
        live, complete = self._live_hours(at, period, now)
        groups: dict[str | int, Counts] = {}
        own: dict[str | int, Counts] = {}
        for span, since, until in _ranges(period, live, at.counted, by):
            # By time the sums over all actions are there already.
            known = "total" if span == "hour" and by != "action" else span
            for row in self._sums(namespace, known, since, until, by):
                ours = figures.is_own(row.action)
                figures.add(own if ours else groups, _name(row, by), figures.counts_of(row))
        for hour in live:
            for row in self._of_hour(hour):
                if row.namespace == namespace:
                    ours = row.part == figures.NOTICES
                    figures.add(own if ours else groups, _name(row, by), figures.counts_of(row))
        told: dict[str, Counts] = {}
        for counts in own.values():
            figures.add(told, "", counts)
        return Counted(
            period=period, as_of=now, complete=complete, groups=groups, own=told.get("", {})
        )

    def runs(self, namespace: str, period: Period) -> list[tuple[RunOf, Counts]]:
        """Count by run, of the newest that were opened in a time; and what each misses."""
        asked = {
            "namespace": namespace, "limit": RUNS, "since": period.since, "until": period.until,
        }  # fmt: skip
        found: dict[str, Counts] = {}
        for query in ("runs_settled", "runs_unsettled"):
            for group in self.store.ask(Group, query, **asked):
                figures.add(found, group.run, figures.counted(group))
        for one in self.missing(namespace):
            figures.add(found, one.run, {"missing": 1})
        return [(run, found.get(run.id, {})) for run in self.store.ask(RunOf, "runs_of", **asked)]

    def open_now(self, namespace: str) -> list[Open]:
        """Return the working set as it stands; our own notices are not among it."""

        def read() -> list[Open]:
            rows = self.store.ask(Open, "open_now", namespace=namespace)
            return [row for row in rows if not figures.is_own(row.action)]

        return self._kept(("open", namespace), read)

    def missing(self, namespace: str, limit: int = MISSING) -> list[Missing]:
        """Return the keys that are expected, absent and past their time; the oldest first."""
        now = self.store.now()
        return self.store.ask(Missing, "missing_keys", namespace=namespace, now=now, limit=limit)

    def recovery_times(self, namespace: str, period: Period) -> Times:
        """Return how long people took with the reviews of operations of a time."""

        def read() -> Times:
            asked = {"namespace": namespace, "limit": REVIEWS} | _ids(period)
            [count] = self.store.ask(_Number, "recovery_count", **asked)

            def at(share: float) -> int | None:
                place = figures.place_of(count.value, share)
                found = self.store.ask(_Number, "recovery_time", **asked, place=place)
                return found[0].value if found else None

            return Times(
                median=at(0.5), p95=at(SHARE), reviews=count.value, capped=count.value == REVIEWS
            )

        return self._kept(("times", namespace, period.since, period.until), read)

    # --- inside ---

    def _kept(self, name: tuple[Any, ...], read: Callable[[], T]) -> T:
        """Return what was read at most AGE ago; of many who ask at once, one reads."""
        with self._lock:
            known = self._remembered.get(name)
            if known is None or self.clock.boottime() - known[0] > AGE:
                if len(self._remembered) >= KEPT:
                    self._remembered.clear()
                known = self._remembered[name] = (self.clock.boottime(), read())
            value: T = known[1]
            return value

    def _flush(self) -> None:
        commit = self.doors.flush() if self.doors is not None else None
        if commit is not None:
            commit.result()

    def _live_hours(self, at: Mark, period: Period, now: int) -> tuple[list[int], bool]:
        """Return the hours of a period that roll-ups do not know, or not as they are now."""
        not_yet = range(max(at.counted, period.since), period.until, HOUR)
        changed = {h for h in self._changed_since(at.seen, now) if h < at.counted}
        within = {h for h in changed if period.since <= h < period.until}
        hours = sorted({*not_yet, *within})
        return hours[-LIVE:], len(hours) <= LIVE

    def _changed_since(self, seen: int, now: int) -> set[int]:
        with self._lock:
            known = self._changed
            if known is None or known[0] != seen or self.clock.boottime() - known[1] > AGE:
                known = (seen, self.clock.boottime(), changed_hours(self.store, seen))
                self._changed = known
            return known[2]

    def _of_hour(self, hour: int) -> list[Tally]:
        with self._lock:  # of many who ask at once, one counts
            known = self._live.get(hour)
            if known is None or self.clock.boottime() - known[0] > AGE:
                rows = count_hours(self.store, hour, hour + HOUR, self.namespaces)
                known = (self.clock.boottime(), rows)
                if len(self._live) > LIVE:
                    self._live.clear()
                self._live[hour] = known
            return known[1]

    def _sums(self, namespace: str, span: str, since: int, until: int, by: By) -> list[Tally]:
        query = "tally_by_action" if by == "action" else "tally_by_time"
        asked = {"namespace": namespace, "span": span, "since": since, "until": until}
        return self.store.ask(Tally, query, **asked)


def _ids(period: Period) -> dict[str, str]:
    return {"since": first_id(period.since), "until": first_id(period.until)}


def _name(row: Tally, by: By) -> str | int:
    if by == "action":
        return row.action
    return row.at - row.at % DAY if by == "day" else row.at


def _ranges(
    period: Period, live: Sequence[int], counted: int, by: By
) -> Iterator[tuple[str, int, int]]:
    """Yield which roll-ups make up a period: whole days where nothing is live, and hours; and
    for those hours, live ones too, what was counted at the doors."""
    days_of_live = {hour - hour % DAY for hour in live}
    known = set(live)
    whole = by != "hour"
    open_: dict[str, tuple[int, int]] = {}
    at = period.since
    while at < period.until:
        a_day = at % DAY == 0 and at + DAY <= min(period.until, counted)
        if whole and a_day and at not in days_of_live:
            spans, step = ["day"], DAY
        else:
            spans, step = (["door"] if at in known else ["hour", "door"]), HOUR
        for span in list(open_):
            if span not in spans:
                yield (span, *open_.pop(span))
        for span in spans:
            open_[span] = (open_.get(span, (at, at))[0], at + step)
        at += step
    for span, (since, until) in open_.items():
        yield span, since, until

"""Roll-ups of what is counted, hour by hour: a chore writes them, `figures` reads them.

An hour is counted over again whenever something of it changed, and replaced whole, so counting
twice changes nothing. Of two processes that count at once one writes: every roll-up is guarded by
the turn that was read before counting. Days are sums of their hours.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Sequence
from typing import Any

from ascertain.core import figures
from ascertain.core.books import Tally
from ascertain.core.figures import DAY, HOUR, INTAKE, LEDGER, NOTICES, Group, first_id
from ascertain.core.model import SECOND, Record
from ascertain.store.base import Commit, Posted, Posting, Store

MARGIN = 5 * 60 * SECOND  # µs that a change may take to be seen after the time it bears
MOST = 24  # hours counted in one turn of the chore
LATE = 72  # hours after which repeated deliveries of an event are not counted any more
FLUSH = 5 * SECOND  # µs between writes of what was counted at a door
EVERY = 30.0  # seconds between two turns that find nothing to do


class Mark(Record, frozen=True):
    """How far the roll-ups are: how often they were written, the hour up to which all are there,
    and from when on changes may not be in them."""

    turn: int
    counted: int
    seen: int


class _Text(Record, frozen=True):
    text: str | None


class _Time(Record, frozen=True):
    at: int | None


class _Reviewed(Record, frozen=True):
    namespace: str
    action: str
    reviewed: int
    duplicates: int


class _Intake(Record, frozen=True):
    events: int
    deliveries: int
    arrivals: int


def mark(store: Store) -> Mark | None:
    """Return how far the roll-ups are; None before the first."""
    found = store.ask(Mark, "tally_mark")
    return found[0] if found else None


def first_time(store: Store, now: int, namespaces: Iterable[str]) -> int:
    """Return when the first operation was submitted, or event received, or now."""
    [first] = store.ask(_Text, "tally_first")
    found = [now, figures.time_of(first.text) if first.text else now]
    for namespace in namespaces:
        [event] = store.ask(_Time, "tally_first_event", namespace=namespace)
        found.append(now if event.at is None else event.at)
    return min(found)


def count_hours(store: Store, hour: int, until: int, namespaces: Iterable[str]) -> list[Tally]:
    """Count what was submitted and received from an hour on until a time, as tallies of it."""
    span = {"since": first_id(hour), "until": first_id(until)}
    sums: dict[tuple[str, str, str], dict[str, int]] = {}
    for query in ("count_settled", "count_unsettled"):
        for group in store.ask(Group, query, **span):
            part = NOTICES if figures.is_own(group.action) else LEDGER
            key = (group.namespace, group.action, part)
            figures.add(sums, key, figures.counted(group))
    for one in store.ask(_Reviewed, "count_reviewed", **span):
        if not figures.is_own(one.action):
            counts = {"reviewed": one.reviewed, "duplicates": one.duplicates}
            figures.add(sums, (one.namespace, one.action, LEDGER), counts)
    for namespace in namespaces:
        asked = {"namespace": namespace, "since": hour, "until": until}
        for came in store.ask(_Intake, "count_intake", **asked):
            counts = {name: getattr(came, name) for name in came.__struct_fields__}
            figures.add(sums, (namespace, "", INTAKE), counts)
    return [
        figures.tally(counts, namespace=namespace, span="hour", at=hour, action=action, part=part)
        for (namespace, action, part), counts in sums.items()
        if counts
    ]


def changed_hours(store: Store, since: int) -> set[int]:
    """Return the hours whose operations changed since a time: by index, and the working set."""
    found: set[int] = set()
    for query in ("changed_settled", "changed_unsettled"):
        for one in store.ask(_Text, query, since=since):
            found |= figures.hours_of(one.text or "")
    return found


class Tallies:
    """The chore that keeps the roll-ups; safe in any number of processes."""

    def __init__(self, store: Store, namespaces: Sequence[str]) -> None:
        """Count events of these namespaces, and the operations of all."""
        self.store, self.namespaces = store, tuple(namespaces)

    def run(self) -> int:
        """Count what is due, at most MOST hours; return how many were written anew."""
        try:
            return self._count()
        except Turned:
            return 0

    def _count(self) -> int:
        now = self.store.now()
        at = mark(self.store)
        if at is None:
            return self._begin(now)
        closed = figures.hour_of(now - MARGIN)
        changed = {h for h in changed_hours(self.store, at.seen) if h < at.counted}
        due = sorted(changed)[:MOST]
        written = 0
        for hour in due:
            at, wrote = self._hour(at, hour, {})
            written += wrote
        while at.counted < closed and written < MOST:
            hour = at.counted
            if hour % DAY == 0:  # deliveries of events come again for days
                for late in range(hour - LATE * HOUR, hour, HOUR):
                    at, wrote = self._hour(at, late, {})
                    written += wrote
            at, _ = self._hour(at, hour, {"counted": hour + HOUR})
            written += 1
        if len(due) == len(changed) and now - MARGIN > at.seen and (changed or written):
            self._turn(at, (), {"seen": now - MARGIN})
        return written

    def _begin(self, now: int) -> int:
        began = figures.hour_of(first_time(self.store, now, self.namespaces))
        values = {"arrivals": began, "deliveries": now - MARGIN}
        row = figures.tally(values, span="mark")
        [posted] = self.store.post([Posting((("tally_add", row),))])
        return sum(posted.rows)

    def _hour(self, at: Mark, hour: int, moved: dict[str, int]) -> tuple[Mark, int]:
        """Count an hour anew and write it, and its day, if anything in it is different."""
        rows = count_hours(self.store, hour, hour + HOUR, self.namespaces)
        old = self._rows("hour", hour, hour + HOUR)
        if not moved and not figures.differs(old, rows):
            return at, 0
        day = hour - hour % DAY
        others = [r for r in self._rows("hour", day, day + DAY) if r.at != hour]
        whole = figures.day_of([*others, *rows, *self._rows("door", day, day + DAY)], day)
        lines = (
            ("tally_drop", {"span": "hour", "at": hour}),
            ("tally_drop", {"span": "total", "at": hour}),
            ("tally_drop", {"span": "day", "at": day}),
            *(("tally_add", row) for row in (*rows, *figures.totals(rows), *whole)),
        )
        return self._turn(at, lines, moved), 1

    def _rows(self, span: str, since: int, until: int) -> list[Tally]:
        return self.store.ask(Tally, "tally_rows", span=span, since=since, until=until)

    def _turn(self, at: Mark, lines: Sequence[tuple[str, Any]], moved: dict[str, int]) -> Mark:
        """Write under the turn that was read; raises Turned where another process was first."""
        values = {"turn": at.turn, "counted": at.counted, "seen": at.seen, **moved}
        given = (("tally_turn", values), *lines)
        [posted] = self.store.post([Posting(given, must=(0,))])
        if not posted.applied:
            raise Turned
        return Mark(at.turn + 1, values["counted"], values["seen"])


class Turned(Exception):
    """Another process counted at the same time: nothing was written here."""


class Doors:
    """Counts repeats that were answered from the ledger, for one process.

    What is counted is written every few seconds, as a whole number for the hour so far: written
    twice it stays the same. A crash loses what was counted since, so the figure is a lower bound.
    """

    def __init__(self, store: Store, process: str) -> None:
        """`process` names this one among all that ever write to the store."""
        self.store, self.process = store, process
        self._lock = threading.Lock()
        self._counted: dict[tuple[str, int, str], int] = {}
        self._unwritten: set[tuple[str, int, str]] = set()
        self._written_at = 0

    def repeated(self, namespace: str, action: str) -> None:
        """Count one submission of what was there already; never waits for the disk."""
        if figures.is_own(action):
            return
        now = self.store.now()
        key = (namespace, figures.hour_of(now), action)
        with self._lock:
            self._counted[key] = self._counted.get(key, 0) + 1
            self._unwritten.add(key)
            due = now - self._written_at >= FLUSH
            self._written_at = now if due else self._written_at
        if due:
            self.flush()

    def flush(self) -> Commit[Posted] | None:
        """Write what was counted; returns the commit on its way, or None if there is nothing."""
        with self._lock:
            keys, self._unwritten = self._unwritten, set()
            if not keys:
                return None
            rows = [
                figures.tally(
                    {"folded": self._counted[namespace, hour, action]},
                    namespace=namespace, span="door", at=hour, action=action, part=self.process,
                )
                for namespace, hour, action in sorted(keys)
            ]  # fmt: skip
            newest = max(hour for _, hour, _ in keys)
            self._counted = {k: n for k, n in self._counted.items() if k[1] >= newest - HOUR}
        return self.store.put(Posting(tuple(("tally_folded", row) for row in rows), lazy=True))

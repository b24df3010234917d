"""What is counted, each by itself (docs/semantics.md): pure sums, nothing is read here.

Every operation is counted in exactly one hour, that of its submission, by what is known about it
now. So a late truth moves a number within its hour, and nothing is ever counted twice.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec
from msgspec.structs import asdict

from .books import Tally
from .keys import new_id
from .model import SECOND, Reason, Record, State

HOUR = 3600 * SECOND
DAY = 24 * HOUR
OWN = "ascertain."  # our own actions, e.g. notices: they are no business of anybody's
LEDGER, INTAKE, NOTICES, DOOR, ALL = "ledger", "intake", "own", "door", "all"  # parts of a tally
KEYS = ("namespace", "span", "at", "action", "part")
COUNTS = tuple(f.name for f in msgspec.structs.fields(Tally) if f.name not in KEYS)
# How a confirmed effect was found out, by `confirmed_by`; every other name is a source of events.
_BY = {
    "answer": "by_answer",
    "late_report": "by_late",
    "replay": "by_replay",
    "look_up": "by_look_up",
    "person": "by_person",
}
_NOBODY = ("", "accepted")
EVENT = "event"
_REASONS = {Reason.LEFT: "left_open", Reason.SUPERSEDED: "superseded"}
_DIGITS = "0123456789abcdefghijklmnopqrstuv"
PREFIX = 6  # digits of an identifier that changed hours are named by: 262 s


class Group(Record, frozen=True):
    """Operations that have all of this in common, and how many they are."""

    namespace: str
    action: str
    state: str
    reason: str
    confirmed_by: str
    again: int  # 1: more than one attempt
    operations: int
    attempts: int
    lookups: int
    run: str = ""


def is_own(action: str) -> bool:
    """Tell whether an action is one of ours, e.g. a notice: never counted among operations."""
    return action.startswith(OWN)


def counted(group: Group) -> dict[str, int]:
    """Return the counts that a group adds."""
    found = {"operations": group.operations, "attempts": group.attempts, "lookups": group.lookups}
    found[group.state] = group.operations
    if group.reason in _REASONS:
        found[_REASONS[Reason(group.reason)]] = group.operations
    if group.state == State.DONE and group.confirmed_by not in _NOBODY:
        found[_BY.get(group.confirmed_by, "by_event")] = group.operations
        if group.confirmed_by == "answer" and group.again:
            found["again"] = group.operations
    return found


def ways(asked: Sequence[str] | None) -> tuple[list[str] | None, list[str] | None]:
    """Return by which names effects were found out in these ways, or else by which they were not;
    None: by whatever. "event" is every name that is none of ours."""
    if asked is None:
        return None, None
    if EVENT in asked:
        return None, [one for one in (*_BY, *_NOBODY) if one not in asked]
    return list(asked), None


def found_so(state: str, confirmed_by: str, asked: Sequence[str] | None) -> bool:
    """Tell whether an operation is done and was found out in one of these ways."""
    names, others = ways(asked)
    if names is None and others is None:
        return True
    so = confirmed_by in names if names is not None else confirmed_by not in (others or ())
    return state == State.DONE and so


def tally(given: dict[str, Any], **keys: Any) -> Tally:
    """Return a tally of some counts."""
    return Tally(
        **{"namespace": "", "span": "", "at": 0, "action": "", "part": "", **keys}, **given
    )


def add(into: dict[Any, dict[str, int]], key: Any, counts: dict[str, int]) -> None:
    """Add counts to those that are kept under a key."""
    have = into.setdefault(key, {})
    for name, value in counts.items():
        if value:
            have[name] = have.get(name, 0) + value


def counts_of(row: Tally) -> dict[str, int]:
    """Return what of a tally is not zero."""
    return {name: value for name in COUNTS if (value := getattr(row, name))}


def day_of(rows: Iterable[Tally], day: int) -> list[Tally]:
    """Return the tallies of a day from those of its hours, and of its doors."""
    sums: dict[Any, dict[str, int]] = {}
    for row in rows:
        part = DOOR if row.span == "door" else row.part
        add(sums, (row.namespace, row.action, part), counts_of(row))
    return [
        tally(counts, namespace=namespace, span="day", at=day, action=action, part=part)
        for (namespace, action, part), counts in sums.items()
    ]


def totals(rows: Iterable[Tally]) -> list[Tally]:
    """Return the sums over all actions of an hour, our own left out: one row a namespace."""
    sums: dict[tuple[str, int], dict[str, int]] = {}
    for row in rows:
        if row.part != NOTICES:
            add(sums, (row.namespace, row.at), counts_of(row))
    return [
        tally(counts, namespace=namespace, span="total", at=at, part=ALL)
        for (namespace, at), counts in sums.items()
    ]


def hour_of(at: int) -> int:
    """Return the beginning of the hour of a time."""
    return at - at % HOUR


def first_id(at: int) -> str:
    """Return the least identifier that is made at a time or later."""
    return new_id(max(at, 0), 0)


def time_of(ident: str) -> int:
    """Return when an identifier was made, or its beginning: µs, rounded down to what it says."""
    number = 0
    for digit in ident[:10].ljust(10, "0"):
        number = number * 32 + _DIGITS.index(digit)
    return (number >> 2) * 1000


def hours_of(prefix: str) -> set[int]:
    """Return the hours in which an identifier that begins so may have been made; none for one
    that was made elsewhere and says no time."""
    if len(prefix) < PREFIX or not set(prefix) <= set(_DIGITS):
        return set()
    since = time_of(prefix)
    return {hour_of(since), hour_of(since + (1 << 18) * 1000 - 1)}


def place_of(count: int, share: float) -> int:
    """Return the place, from 0, of the value that this share of so many does not exceed, in their
    order (nearest rank)."""
    return max(0, math.ceil(round(count * share, 9)) - 1)


def differs(old: Iterable[Tally], new: Iterable[Tally]) -> bool:
    """Tell whether two lists of tallies are not the same counts."""
    return sorted(map(_plain, old)) != sorted(map(_plain, new))


def _plain(row: Tally) -> tuple[Any, ...]:
    return tuple(asdict(row).values())

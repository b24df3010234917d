"""The query parameters of lists of operations, and the CSV file of a list."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal

import msgspec
from fastapi import Depends, Query

from ascertain.core.errors import UnknownOperation
from ascertain.core.model import State, WaitingOn
from ascertain.runtime.receipt import Receipt
from ascertain.runtime.searching import How, Wanted

from . import shown
from .problems import ProblemError

MOST = 1000  # rows of one page
WORD = 512  # characters of one parameter
COLUMNS = (
    "id", "action", "key", "title", "state", "reason", "waiting_on", "owner", "ref", "run",
    "attempts", "lookups", "protection", "verified", "due_at", "confirmed_at", "confirmed_by",
    "next_step_en", "next_step_zh", "link",
)  # fmt: skip
Reviewed = Literal["any", "unknown", "duplicate", "accepted"]

_Word = Annotated[str | None, Query(max_length=WORD)]


def wanted(
    *,
    q: _Word = None,
    key: _Word = None,
    action: _Word = None,
    ref: _Word = None,
    event: _Word = None,
    run: _Word = None,
    title: _Word = None,
    person: _Word = None,
    state: Annotated[list[State] | None, Query(max_length=6)] = None,
    waiting_on: WaitingOn | None = None,
    target: _Word = None,
    protection: _Word = None,
    found_by: Annotated[list[How] | None, Query(max_length=6)] = None,
    reviewed: Reviewed | None = None,
    own: bool = True,
    unsettled: bool | None = None,
    since: datetime | None = None,
    until: datetime | None = None,
    oldest_first: bool = False,
) -> Wanted:
    """Return what is looked for: the parameters of a list."""
    words = {"q": q, "key": key, "action": action, "ref": ref, "event": event, "run": run}
    words |= {"title": title, "person": person, "target": target, "protection": protection}
    for name, word in words.items():
        if word is not None and (not word or "\x00" in word):
            raise ProblemError("body_invalid", f"{name} is empty or no text", fields=[name])
    return Wanted(
        **{name: word for name, word in words.items() if word is not None},
        states=tuple(state) if state else None,
        waiting_on=waiting_on or None,
        found_by=tuple(found_by) if found_by else None,
        reviewed=reviewed,
        own=own,
        unsettled=unsettled,
        since=_at("since", since),
        until=_at("until", until),
        newest=not oldest_first,
    )


Looked = Annotated[Wanted, Depends(wanted)]


def _at(name: str, given: datetime | None) -> int | None:
    if given is None:
        return None
    if given.tzinfo is None:
        raise ProblemError(
            "body_invalid", f"{name} has no time zone: 2026-11-30T08:00:00Z", fields=[name]
        )
    return max(shown.stamp(given) or 0, 0)


def known_id(operation: str) -> str:
    """Return an identifier, or raise UnknownOperation for what can be none."""
    if not (operation.isascii() and operation.isalnum() and len(operation) <= 64):
        raise UnknownOperation(f"no operation {operation!r}: its id has 26 letters and digits")
    return operation


class Total(msgspec.Struct, frozen=True):
    """How many there are; `capped`: there may be more, since only so far was counted."""

    total: int
    capped: bool


class Operations(msgspec.Struct, frozen=True, kw_only=True):
    """A page of operations. `next` goes on as `after`, also from a page with few or none.

    `searched_to`: as far as this page looked; null: nothing is left. `since`: how far back it goes
    where nothing else was asked for.
    """

    items: list[shown.Operation]
    next: str | None
    searched_to: datetime | None
    since: datetime | None
    total: Total | None = None


def row(receipt: Receipt, link: str) -> list[object]:
    """Return the cells of an operation; neither inputs nor results are among them."""
    said = {
        "next_step_en": receipt.next_step["en"],
        "next_step_zh": receipt.next_step["zh"],
        "link": link,
        "due_at": shown.time(receipt.due_at),
        "confirmed_at": shown.time(receipt.confirmed_at),
    }
    return [said[name] if name in said else getattr(receipt, name) for name in COLUMNS]

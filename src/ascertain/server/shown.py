"""How things are shown by the API: times as ISO 8601 in UTC, words in both languages."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

import msgspec

from ascertain.core import words
from ascertain.core.error_words import KEY_WARNINGS
from ascertain.core.model import SECOND
from ascertain.runtime import deciding, desk
from ascertain.runtime.receipt import Receipt

# µs of the first and the last second that a date can name.
FIRST, LAST = -62_135_596_800 * SECOND, 253_402_300_799 * SECOND


class Warned(msgspec.Struct, frozen=True):
    """What to be careful about, by its code and in words."""

    code: str
    en: str
    zh: str


class Operation(msgspec.Struct, frozen=True, kw_only=True):
    """An operation as it stands. `user_message` is safe to show to an end user.

    `reused`: it existed before this request. `assumptions` are what its recovery rests on beside
    the vendor's word. `warnings` say what is wrong with the key that was given.
    """

    id: str
    namespace: str
    action: str
    key: str
    title: str
    state: str
    reason: str
    waiting_on: str
    due_at: datetime | None
    owner: str
    ref: str | None
    result: Any
    reused: bool
    protection: str
    assumptions: list[str]
    attempts: int
    lookups: int
    confirmed_at: datetime | None
    confirmed_by: str
    next_step: dict[str, str]
    user_message: dict[str, str]
    run: str | None
    verified: str
    warnings: list[Warned]
    link: str


class Entry(msgspec.Struct, frozen=True, kw_only=True):
    """One piece of evidence: when, what was seen, by which attempt, rule or person."""

    at: datetime | None
    kind: str
    shows: str
    attempt: str | None
    by: str
    says: dict[str, str]
    data: dict[str, Any]


class History(msgspec.Struct, frozen=True):
    """The evidence of an operation, oldest first."""

    items: list[Entry]


class References(msgspec.Struct, frozen=True):
    """The effect references of an operation; several where the effect exists more than once."""

    items: list[str]


class Newer(msgspec.Struct, frozen=True, kw_only=True):
    """What somebody else, or the target, did meanwhile, and where the operation stands now."""

    by: str
    at: datetime | None
    said: str
    says: dict[str, str]
    state: str


def newer(found: deciding.Newer) -> Newer:
    """Return who was first, and with what."""
    return Newer(
        by=found.by,
        at=time(found.at),
        said=found.said,
        says={lang: words.say(found.said, lang) for lang in words.LANGUAGES}
        if found.said in words.SENTENCES
        else {},
        state=found.state,
    )


def time(at: int | None) -> datetime | None:
    """Return a time in µs since 1970 as a date in UTC: the last one there is for what lies beyond,
    as a date of another time zone may, so that what is kept can always be shown."""
    if at is None:
        return None
    return datetime.fromtimestamp(min(max(at, FIRST), LAST) / SECOND, tz=UTC)


def stamp(at: datetime | None) -> int | None:
    """Return a date with a time zone as µs since 1970."""
    return None if at is None else int(at.timestamp() * SECOND)


def entry(one: desk.Entry) -> Entry:
    """Return a piece of evidence; its attempt as text, since JSON readers round large numbers."""
    return Entry(
        at=time(one.at),
        kind=one.kind,
        shows=one.shows,
        attempt=None if one.attempt is None else str(one.attempt),
        by=one.by,
        says=one.says,
        data=one.data,
    )


def warned(codes: Iterable[str]) -> list[Warned]:
    """Return warnings in words."""
    return [Warned(code, *KEY_WARNINGS[code]) for code in codes]


def operation(receipt: Receipt, link: str) -> Operation:
    """Return a receipt as the API shows it."""
    return Operation(
        id=receipt.id,
        namespace=receipt.namespace,
        action=receipt.action,
        key=receipt.key,
        title=receipt.title,
        state=receipt.state,
        reason=receipt.reason,
        waiting_on=receipt.waiting_on,
        due_at=time(receipt.due_at),
        owner=receipt.owner,
        ref=receipt.ref,
        result=receipt.result,
        reused=receipt.reused,
        protection=receipt.protection,
        assumptions=list(receipt.assumptions),
        attempts=receipt.attempts,
        lookups=receipt.lookups,
        confirmed_at=time(receipt.confirmed_at),
        confirmed_by=receipt.confirmed_by,
        next_step=receipt.next_step,
        user_message=receipt.user_message,
        run=receipt.run,
        verified=receipt.verified,
        warnings=warned(receipt.warnings),
        link=link,
    )

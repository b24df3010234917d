"""How things are shown by the API: times as ISO 8601 in UTC, words in both languages."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import msgspec

from ascertain.core.model import SECOND
from ascertain.runtime.receipt import Receipt


class Operation(msgspec.Struct, frozen=True, kw_only=True):
    """An operation as it stands. `user_message` is safe to show to an end user."""

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
    link: str


def time(at: int | None) -> datetime | None:
    """Return a time in µs since 1970 as a date in UTC."""
    return None if at is None else datetime.fromtimestamp(at / SECOND, tz=UTC)


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
        link=link,
    )

"""A time that a question is about, as query parameters `from` and `to`."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, Any

import msgspec
from fastapi import Depends, Query, Request

from ascertain.core.model import SECOND
from ascertain.runtime.loop import hop

DAYS = 30  # days before `to`, unless it is said from when
_SPAN = 24 * 3600 * SECOND
_LAST = 2**52  # µs, in the year 2112


class Span(msgspec.Struct, frozen=True):
    """From a time, up to but without another, in µs since 1970; never before 1970."""

    since: int
    until: int


async def _span(
    request: Request,
    since: Annotated[datetime | None, Query(alias="from")] = None,
    until: Annotated[datetime | None, Query(alias="to")] = None,
) -> Span:
    """`from` and `to`: times, in UTC unless they say their zone; the last 30 days unless it is
    said. What ends before it begins is empty."""
    now = request.app.state.serving.store.now
    to = await hop(now) + 1 if until is None else _moment(until)
    begin = to - DAYS * _SPAN if since is None else _moment(since)
    begin = min(max(begin, 0), _LAST)
    return Span(begin, min(max(to, begin), _LAST))


def _moment(at: datetime) -> int:
    at = at if at.tzinfo is not None else at.replace(tzinfo=UTC)
    return int((at - _EPOCH).total_seconds()) * SECOND + at.microsecond


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
Asked: Any = Annotated[Span, Depends(_span)]

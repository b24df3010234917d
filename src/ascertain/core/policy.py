"""Bounds and delays: which road a failure takes, and when the next step is due (13, 15)."""

from __future__ import annotations

import math

from .contract import Bounds, Terms
from .machine import Input
from .model import SECOND, NotDone, NotDoneKind, Status

_ROADS = {
    NotDoneKind.INVALID: Input.INVALID,
    NotDoneKind.UNAUTHORIZED: Input.UNAUTHORIZED,
    NotDoneKind.REJECTED: Input.REJECTED,
    NotDoneKind.THROTTLED: Input.LATER,
    NotDoneKind.TRANSIENT: Input.LATER,
}
LONGEST_WAIT = 7 * 24 * 3600 * SECOND  # what a target may ask us to wait at most


def road(finding: NotDone, status: Status, bounds: Bounds, now: int) -> Input:
    """Return the road of a proven refusal, or GAVE_UP at the bound."""
    way = _ROADS[finding.kind]
    if way is Input.LATER and exhausted(status, bounds, now):
        return Input.GAVE_UP
    return way


def exhausted(status: Status, bounds: Bounds, now: int) -> bool:
    """Tell whether no further effect attempt is allowed by itself."""
    return status.attempts >= bounds.attempts or overdue(status, bounds, now)


def overdue(status: Status, bounds: Bounds, now: int) -> bool:
    """Tell whether the operation has used up its total time."""
    return now - status.started_at >= bounds.total


def backoff(tries: int, bounds: Bounds, jitter: float) -> int:
    """Return a delay in µs: doubling, bounded, spread by `jitter` (0 to 1) over its half."""
    whole = min(bounds.first_delay * 2 ** min(max(tries - 1, 0), 40), bounds.longest_delay)
    return max(int(whole * (0.5 + jitter / 2)), 1)


def asked_for(seconds: float | None) -> int | None:
    """Return what a target asked us to wait, in µs, bounded; None where it did not say."""
    if seconds is None or not math.isfinite(seconds) or seconds < 0:
        return None
    return min(int(seconds * SECOND), LONGEST_WAIT)


def retry_at(finding_wait: float | None, tries: int, terms: Terms, now: int, jitter: float) -> int:
    """Return when a proven "not done" is tried again: when asked for, else with back-off."""
    asked = asked_for(finding_wait)
    return now + (asked if asked is not None else backoff(tries, terms.bounds, jitter))

"""Bounds and delays (laws 13, 15)."""

from __future__ import annotations

import pytest

from ascertain.core import policy
from ascertain.core.contract import Bounds, Terms
from ascertain.core.machine import Input
from ascertain.core.model import SECOND, NotDone, NotDoneKind, State, Status

BOUNDS = Bounds(attempts=3, total=100 * SECOND, first_delay=SECOND, longest_delay=60 * SECOND)


def status(attempts: int = 0) -> Status:
    return Status(operation="op", namespace="n", action="a", state=State.RUNNING, attempts=attempts)


@pytest.mark.parametrize(
    ("kind", "way"),
    [
        (NotDoneKind.INVALID, Input.INVALID),
        (NotDoneKind.UNAUTHORIZED, Input.UNAUTHORIZED),
        (NotDoneKind.REJECTED, Input.REJECTED),
        (NotDoneKind.THROTTLED, Input.LATER),
        (NotDoneKind.TRANSIENT, Input.LATER),
    ],
)
def test_every_kind_of_refusal_has_its_road(kind: NotDoneKind, way: Input) -> None:
    assert policy.road(NotDone(kind), status(1), BOUNDS, 0) is way


def test_at_the_bound_it_is_not_tried_again_by_itself() -> None:
    later = NotDone(NotDoneKind.TRANSIENT)
    assert policy.road(later, status(2), BOUNDS, 0) is Input.LATER
    assert policy.road(later, status(3), BOUNDS, 0) is Input.GAVE_UP
    assert policy.road(later, status(1), BOUNDS, 100 * SECOND) is Input.GAVE_UP
    assert policy.road(NotDone(NotDoneKind.INVALID), status(9), BOUNDS, 0) is Input.INVALID


def test_delays_double_within_their_bound() -> None:
    assert [policy.backoff(n, BOUNDS, 1.0) // SECOND for n in (0, 1, 2, 3, 4)] == [1, 1, 2, 4, 8]
    assert policy.backoff(10_000, BOUNDS, 1.0) == 60 * SECOND


def test_chance_spreads_a_delay_over_its_upper_half() -> None:
    assert policy.backoff(1, BOUNDS, 0.0) == SECOND // 2
    assert policy.backoff(1, Bounds(first_delay=0), 0.0) == 1


@pytest.mark.parametrize("seconds", [None, float("nan"), float("inf"), -1.0])
def test_a_wait_that_means_nothing_is_not_asked_for(seconds: float | None) -> None:
    assert policy.asked_for(seconds) is None
    assert policy.retry_at(seconds, 1, Terms(bounds=BOUNDS), 5, 1.0) == 5 + SECOND


def test_a_target_may_ask_for_a_bounded_wait() -> None:
    assert policy.asked_for(1.5) == 1_500_000
    assert policy.asked_for(1e12) == policy.LONGEST_WAIT
    assert policy.retry_at(0.0, 9, Terms(), 5, 1.0) == 5

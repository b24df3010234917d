"""The store's clock steps: no quiet period ends early, no window stays open (law 5)."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from ascertain import State, WaitingOn
from shop import LATE, LEASE, Shop, register

STEPS = [-86400.0, -60.0, -3.0, 3.0, 60.0, 86400.0 - 1]


@pytest.mark.parametrize("seconds", STEPS)
def test_a_late_effect_is_not_doubled_by_a_step(
    make_shop: Callable[..., Shop], seconds: float
) -> None:
    """The request lands within the lateness; the clock says that much more time is over."""
    shop = make_shop()
    real = shop.clock.boottime  # the target lives on a clock that does not step
    base = shop.clock.wall() - real()
    shop.target.clock = lambda: base + real()
    shop.target.script("late:12")
    lost = shop.order.submit(order=1, wait=0)
    shop.clock.step_wall(seconds)
    shop.settle(rounds=300)
    shop.clock.advance(20)
    assert shop.effects(lost) == 1
    assert shop.get(lost).state in (State.DONE, State.UNKNOWN)


@pytest.mark.parametrize("seconds", STEPS)
def test_a_step_while_nobody_ran_is_seen_at_the_next_start(
    make_shop: Callable[..., Shop], seconds: float
) -> None:
    shop = make_shop()
    shop.target.script("gone")
    lost = shop.order.submit(order=1, wait=0)
    shop.clock.step_wall(seconds)
    other = shop.another()
    register(other, shop.target)
    begun = shop.clock.boottime()
    shop.settle(other, rounds=300)
    end = shop.get(lost)
    assert shop.effects(lost) <= 1
    if end.done:
        longest = LEASE * 11 + LATE
        assert shop.clock.boottime() - begun >= longest * 1_000_000
    else:
        assert end.waiting_on is WaitingOn.REVIEW


def test_a_small_drift_is_no_step(make_shop: Callable[..., Shop]) -> None:
    shop = make_shop()
    shop.target.script("gone")
    lost = shop.order.submit(order=1, wait=0)
    begun = shop.clock.boottime()
    shop.clock.step_wall(1)
    shop.settle()
    assert shop.get(lost).done
    assert shop.clock.boottime() - begun < LEASE * 11 * 1_000_000


@pytest.mark.parametrize("seconds", [-1800.0, 1800.0])
def test_a_window_opened_before_a_step_is_closed(
    make_shop: Callable[..., Shop], seconds: float
) -> None:
    """The target has kept the key on its own clock; ours cannot be believed any more."""
    shop = make_shop("idempotent")
    real, base = shop.clock.boottime, shop.clock.wall() - shop.clock.boottime()
    shop.target.clock = lambda: base + real()
    shop.target.script("gone", "gone")
    lost = shop.order.submit(order=1, wait=0)
    assert lost.state is State.UNKNOWN
    requests = shop.target.requests(lost.target_key)
    shop.clock.step_wall(seconds)
    shop.clock.advance(2000)
    shop.settle()
    end = shop.get(lost)
    assert end.waiting_on is WaitingOn.REVIEW
    assert shop.target.requests(lost.target_key) == requests


def test_a_lease_survives_a_step_back(make_shop: Callable[..., Shop]) -> None:
    """Nobody takes a lease earlier, and the late report counts whenever it comes."""
    shop = make_shop()
    other = shop.another()
    register(other, shop.target)
    sweeps = []

    @shop.ledger.action("shop.slow", key="{order}", owner="anna", timeout=10, sends_within=10)
    def slow(call, *, order):
        shop.clock.step_wall(-3600)
        shop.clock.advance(5)
        sweeps.append(other.recover().worked)
        return shop.target.send(call.target_key)

    done = slow.submit(order=1)
    assert done.done
    assert shop.effects(done) == 1
    assert sweeps == [0]

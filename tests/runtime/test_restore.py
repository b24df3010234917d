"""Law 21: a store restored from an older copy proves nothing by what it does not hold."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ascertain import Ledger, State, WaitingOn
from ascertain.store.sqlite import SqliteStore
from shop import Shop, register

GAP = 600  # virtual seconds of writes that are lost


class Lost:
    """A shop whose ledger file was put back to an earlier copy."""

    def __init__(self, shop: Shop, kind: str, **more: Any) -> None:
        self.shop, self.kind, self.more = shop, kind, more

    def copy(self) -> None:
        """Keep a copy of the file now, as a backup does, and let some time pass."""
        self.shop.ledger.close()
        self.since = self.shop.clock.wall()
        shutil.copy(self.shop.folder / "ledger.db", self.shop.folder / "backup.db")
        self.reopen("ledger.db")
        self.shop.clock.advance(1)

    def restore(self, *, said: bool = True) -> Ledger:
        """Put the copy back, and say so."""
        self.shop.clock.advance(GAP)
        self.shop.ledger.close()
        for end in ("", "-wal", "-shm"):
            Path(self.shop.folder / f"ledger.db{end}").unlink(missing_ok=True)
        shutil.copy(self.shop.folder / "backup.db", self.shop.folder / "ledger.db")
        self.reopen("ledger.db")
        if said:
            self.shop.ledger.restored(self.since, "disk lost")
        return self.shop.ledger

    def reopen(self, name: str) -> None:
        shop = self.shop
        store = SqliteStore(shop.folder / name, clock=shop.clock.wall)
        shop.ledger = Ledger(store, clock=shop.clock)
        shop.ledgers.append(shop.ledger)
        shop.order = register(shop.ledger, shop.target, self.kind, **self.more)


@pytest.fixture
def lost(make_shop: Callable[..., Shop]) -> Callable[..., Lost]:
    def make(kind: str = "searchable", target_keeps: float = 3600, **more: Any) -> Lost:
        return Lost(make_shop(kind, target_keeps=target_keeps, **more), kind, **more)

    return make


def test_a_key_first_seen_in_the_gap_is_looked_up_before_it_is_sent(
    lost: Callable[..., Lost],
) -> None:
    case = lost()
    case.copy()
    done = case.shop.order.submit(order=1)
    ledger = case.restore()
    assert ledger.find(key="1") == []
    again = case.shop.order.submit(order=1, wait=0)
    assert again.target_key == done.target_key
    case.shop.settle()
    end = case.shop.get(again)
    assert (end.done, end.ref, end.confirmed_by) == (True, done.ref, "look_up")
    assert case.shop.effects(done) == 1


def test_a_new_key_in_the_gap_is_done_after_the_quiet_period(lost: Callable[..., Lost]) -> None:
    case = lost()
    case.copy()
    case.restore()
    new = case.shop.order.submit(order=5, wait=0)
    assert new.state is State.UNKNOWN
    assert case.shop.effects(new) == 0
    before = case.shop.clock.wall()
    case.shop.settle()
    longest = 11 * 10 + 5  # the longest extended attempt, and the lateness
    assert case.shop.clock.wall() - before >= longest * 1_000_000
    assert case.shop.effects(new) == 1


def test_an_opaque_key_in_the_gap_goes_to_a_person(lost: Callable[..., Lost]) -> None:
    case = lost("opaque")
    case.copy()
    done = case.shop.order.submit(order=1)
    case.restore()
    again = case.shop.order.submit(order=1, wait=0)
    case.shop.settle()
    end = case.shop.get(again)
    assert (end.state, end.waiting_on) == (State.UNKNOWN, WaitingOn.REVIEW)
    assert case.shop.effects(done) == 1


def test_an_identified_key_in_the_gap_is_protected_by_itself(lost: Callable[..., Lost]) -> None:
    case = lost("identified")
    case.copy()
    done = case.shop.order.submit(order=1)
    case.restore()
    again = case.shop.order.submit(order=1, wait=0)
    case.shop.settle()
    assert case.shop.get(again).ref == done.ref
    assert case.shop.effects(done) == 1


@pytest.mark.parametrize("fate", ["gone", "hang", "refuse:transient", "refuse:invalid"])
def test_open_operations_become_unknown_and_are_found(lost: Callable[..., Lost], fate: str) -> None:
    """Also what was proven not done: it may have been tried again in the lost time."""
    case = lost()
    case.shop.target.script(fate)
    open_one = case.shop.order.submit(order=1, wait=0)
    case.copy()
    if fate == "refuse:transient":
        case.shop.clock.advance(5)
        case.shop.ledger.recover()  # done in the lost time
    case.restore()
    stands = case.shop.get(open_one)
    assert stands.state in (State.UNKNOWN, State.DONE)
    case.shop.settle()
    end = case.shop.get(open_one)
    assert end.done or end.state is State.NOT_DONE
    assert case.shop.effects(open_one) == 1


def test_what_was_done_stays_done(lost: Callable[..., Lost]) -> None:
    case = lost()
    done = case.shop.order.submit(order=1)
    case.copy()
    case.restore()
    again = case.shop.order.submit(order=1)
    assert (again.reused, again.ref) == (True, done.ref)
    assert case.shop.effects(done) == 1


def test_a_week_later_new_keys_are_new(lost: Callable[..., Lost]) -> None:
    case = lost()
    case.copy()
    case.restore()
    case.shop.clock.advance(8 * 24 * 3600)
    assert case.shop.order.submit(order=9).done


def test_a_window_runs_from_the_start_of_the_gap(lost: Callable[..., Lost]) -> None:
    """The key may have been used at the start of the lost time, so it may be forgotten now."""
    case = lost("idempotent", keeps="15m", target_keeps=900)
    case.copy()
    done = case.shop.order.submit(order=1)
    case.restore()
    case.shop.clock.advance(400)
    again = case.shop.order.submit(order=1, wait=0)
    case.shop.settle()
    end = case.shop.get(again)
    assert case.shop.effects(done) == 1
    assert end.waiting_on is WaitingOn.REVIEW


def test_another_process_learns_of_the_restore(lost: Callable[..., Lost]) -> None:
    case = lost()
    case.copy()
    done = case.shop.order.submit(order=1)
    ledger = case.restore(said=False)
    other = case.shop.another()
    other_order = register(other, case.shop.target)
    ledger.restored(case.since)
    other.recover()
    again = other_order.submit(order=1, wait=0)
    assert again.state in (State.UNKNOWN, State.DONE)
    case.shop.settle()
    assert case.shop.effects(done) == 1


def test_a_process_that_only_submits_sees_a_restore_declared_elsewhere(shop: Shop) -> None:
    """Law 21: it runs no recovery, and still sends no key first seen in the gap blindly."""
    operator = shop.another()
    operator.restored(shop.clock.wall() - 3600 * 1_000_000)
    shop.clock.advance(2)
    r = shop.order.submit(order=1, wait=0)
    assert r.state is State.UNKNOWN
    assert shop.effects(r) == 0

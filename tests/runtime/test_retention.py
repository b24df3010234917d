"""Law 19: details go, key, state and reference stay; nothing unresolved is ever touched."""

from __future__ import annotations

import pytest

import ascertain
from ascertain import State
from shop import Shop, register

DAY = 24 * 3600


def test_a_tombstone_still_stops_a_duplicate(shop: Shop) -> None:
    done = shop.order.submit(order=1, note="private")
    shop.clock.advance(31 * DAY)
    assert shop.ledger.prune(30 * DAY) == 1
    again = shop.order.submit(order=1, note="private")
    assert (again.reused, again.ref, again.id) == (True, done.ref, done.id)
    assert shop.effects(done) == 1
    assert shop.ledger.history(done) == []
    assert shop.ledger.references(done) == [done.ref]
    tables = dict.fromkeys(
        table for table, row in shop.ledger.store.rows() if "private" in str(row)
    )
    assert not tables


def test_a_tombstone_still_refuses_another_input(shop: Shop) -> None:
    shop.order.submit(order=1, note="red")
    shop.clock.advance(31 * DAY)
    shop.ledger.prune(30 * DAY)
    with pytest.raises(ascertain.InputMismatch):
        shop.order.submit(order=1, note="blue")


def test_a_tombstone_still_takes_a_late_truth(shop: Shop) -> None:
    done = shop.order.submit(order=1)
    shop.clock.advance(31 * DAY)
    shop.ledger.prune(30 * DAY)
    shop.ledger.report(done, ascertain.Done(ref="second"), by="webhook", report="event-9")
    assert shop.reviews() == ["duplicate"]
    assert sorted(shop.ledger.references(done)) == sorted([done.ref, "second"])


def test_nothing_unresolved_is_pruned(shop: Shop) -> None:
    opaque = register(shop.ledger, shop.target, "opaque", name="shop.mail")
    shop.target.script("gone")
    unknown = opaque.submit(order=1)
    shop.target.script("refuse:invalid")
    waits = shop.order.submit(order=2)
    shop.target.script("refuse:unauthorized")
    blocked = shop.order.submit(order=3)
    held = shop.order.using(due=shop.clock.wall() / 1e6 + 900 * DAY).enqueue(order=4)
    shop.clock.advance(400 * DAY)
    assert shop.ledger.prune(30 * DAY) == 0
    for receipt in (unknown, waits, blocked, held):
        assert shop.get(receipt).state is not State.DONE
    assert len(shop.ledger.reviews()) == 1
    assert len(shop.ledger.history(unknown)) >= 1


def test_young_ones_stay_and_the_limit_holds(shop: Shop) -> None:
    for n in range(5):
        shop.order.submit(order=n)
    shop.clock.advance(31 * DAY)
    shop.order.submit(order=9, note="young")
    assert [shop.ledger.prune(30 * DAY, limit=2) for _ in range(4)] == [2, 2, 1, 0]
    assert shop.ledger.history(shop.ledger.find(key="9")[0])


def test_an_input_that_is_not_kept_is_nowhere(shop: Shop) -> None:
    secret = register(shop.ledger, shop.target, name="shop.secret", store_input="none")
    secret.submit(order=1, note="a secret text")
    assert not [t for t, row in shop.ledger.store.rows() if "a secret text" in str(row)]
    again = secret.submit(order=1, note="a secret text")
    assert again.reused
    with pytest.raises(ascertain.InputMismatch):
        secret.submit(order=1, note="another")

"""A commit that waits for a synchronous standby, and is disturbed in that: it is not durable yet.

PostgreSQL has committed on the primary by then. If the wait is cancelled it answers as if all
were well, with a warning; if the session ends, whoever connects again finds the change. Acting
on either would be acting on an intent that a fail-over to the standby loses (law 1).
"""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import psycopg
import pytest

from ascertain import Ledger, StoreUnavailable
from ascertain.store.loader import Query
from ascertain.store.pg_driver import Own, Pool
from ascertain.store.postgres import PostgresStore
from crash.outside import Outside
from crash.scenarios import DATABASE, Field, Setting
from crash.servers import Pair, crash, until
from crash.worker import Life, registered

WAITS = "select pid from pg_stat_activity where wait_event = 'SyncRep' and query not like '%pid%'"
LOOKED_FOR = 0.4  # seconds in which nothing may be sent


def disturb(pair: Pair, how: str) -> None:
    """End the wait of whoever waits for the standby."""
    with psycopg.connect(pair.primary.dsn(), autocommit=True) as admin:
        until(lambda: admin.execute(WAITS).fetchall() != [])
        if how == "restart":
            crash(pair.primary)
            pair.primary.start()
        else:
            admin.execute(f"select pg_{how}_backend(pid) from ({WAITS}) as waiting")
    time.sleep(LOOKED_FOR)


def disturbed(field: Field, spoil: Callable[[PostgresStore], None] = lambda _: None) -> Any:
    """Disturb one call in its wait again and again; returns what was sent meanwhile, by how it
    was disturbed, and what goes on from there."""
    pair = field.pair(synchronous=True)
    plan = field.plan(pair.either(DATABASE))
    target, store = Outside(plan.folder), PostgresStore(plan.url)
    spoil(store)
    ledger = Ledger(store)
    field.callback(ledger.close)
    orders = registered(plan, ledger, Life("caller", lambda _: None))
    assert orders["opaque"].submit(order="before").done
    pair.standby.stop_following()
    sent: dict[str, list[str]] = {}
    with ThreadPoolExecutor(1) as pool:
        caller = pool.submit(orders["opaque"].submit, order="while", wait=10)
        for how in ("cancel", "terminate", "restart"):
            disturb(pair, how)
            sent[how] = [e.key for e in target.effects() if e.key != "before"]
            if sent[how]:
                break  # it goes on as if it were durable
        crash(pair.primary)
        pair.standby.promote()
        failed = caller.exception(40)
    return sent, failed, orders["opaque"], target


@pytest.mark.timeout(90)
def test_nothing_is_sent_before_the_standby_has_the_intent() -> None:
    with Field(Setting(durable=False)) as field:
        sent, failed, order, target = disturbed(field)
        assert sent == {"cancel": [], "terminate": [], "restart": []}
        assert failed is None or isinstance(failed, StoreUnavailable)  # after its time-out
        assert order.submit(order="while", wait=10).done
        assert [e.key for e in target.effects()].count("while") == 1


def deaf(store: PostgresStore, _: pytest.MonkeyPatch) -> None:
    """It does not hear that the server gave up waiting."""
    writers = store._writers
    writers.connect = lambda: _deaf(Pool.connect(writers))  # type: ignore[method-assign]


def _deaf(raw: Own) -> Own:
    raw.remove_notice_handler(raw.hear)
    return raw


def hasty(store: PostgresStore, patch: pytest.MonkeyPatch) -> None:
    """It takes what it finds after a lost connection for durable."""
    patch.setitem(store.queries, "await_standby", Query("nothing", "select 1", ()))


@pytest.mark.timeout(90)
@pytest.mark.parametrize("spoil", [deaf, hasty])
def test_without_the_guard_it_is_sent(
    spoil: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    with Field(Setting(durable=False)) as field:
        sent = disturbed(field, lambda store: spoil(store, monkeypatch))[0]
        assert sent == {"cancel": ["while"]}

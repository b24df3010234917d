"""submit(connection=…): the intent is part of the caller's own transaction (PostgreSQL)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

import ascertain
from ascertain import State
from shop import Shop


@pytest.fixture
def shop(tmp_path: Path, postgres_database: str) -> Iterator[Shop]:
    with Shop(tmp_path, url=postgres_database) as made:
        with psycopg.connect(postgres_database) as own:
            own.execute("create table orders (number int primary key)")
        yield made


def test_a_rollback_leaves_nothing(shop: Shop) -> None:
    with psycopg.connect(shop.url) as own:
        own.execute("insert into orders values (1)")
        waits = shop.order.submit(order=1, connection=own)
        assert waits.state is State.PENDING
        own.rollback()
    assert shop.ledger.find() == []
    shop.settle()
    assert len(shop.target.effects()) == 1  # the control
    assert shop.order.submit(order=1).done


def test_a_commit_hands_it_to_a_worker(shop: Shop) -> None:
    with psycopg.connect(shop.url) as own:
        own.execute("insert into orders values (1)")
        waits = shop.order.submit(order=1, connection=own)
        shop.settle()
        assert shop.effects(waits) == 0  # nobody sees it before the commit
    shop.settle()
    assert shop.get(waits).done
    assert shop.effects(waits) == 1


def test_a_known_key_is_answered_within_the_transaction(shop: Shop) -> None:
    done = shop.order.submit(order=1)
    with psycopg.connect(shop.url) as own:
        own.execute("insert into orders values (1)")
        again = shop.order.submit(order=1, connection=own)
        assert (again.reused, again.id, again.ref) == (True, done.id, done.ref)
        assert own.info.transaction_status == psycopg.pq.TransactionStatus.INTRANS
    with psycopg.connect(shop.url) as own:
        assert own.execute("select count(*) from orders").fetchone() == (1,)


def test_another_input_is_refused_and_the_transaction_lives_on(shop: Shop) -> None:
    shop.order.submit(order=1, note="red")
    with psycopg.connect(shop.url) as own:
        own.execute("insert into orders values (1)")
        with pytest.raises(ascertain.InputMismatch):
            shop.order.submit(order=1, note="blue", connection=own)
        own.execute("insert into orders values (2)")
    with psycopg.connect(shop.url) as own:
        assert own.execute("select count(*) from orders").fetchone() == (2,)


@pytest.mark.parametrize("level", ["REPEATABLE READ", "SERIALIZABLE"])
def test_a_stricter_transaction_is_refused(shop: Shop, level: str) -> None:
    with psycopg.connect(shop.url) as own:
        own.execute(f"set transaction isolation level {level}")
        with pytest.raises(ascertain.AscertainError, match=r"(?i)read committed"):
            shop.order.submit(order=1, connection=own)
        own.rollback()
    assert shop.ledger.find() == []


def test_sqlite_has_no_caller_to_join(tmp_path: Path) -> None:
    (tmp_path / "lite").mkdir()
    with Shop(tmp_path / "lite") as lite, pytest.raises(ascertain.UsageError, match="PostgreSQL"):
        lite.order.submit(order=1, connection=object())

"""The store behind a real PgBouncer in transaction mode: any transaction on any session."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import psycopg
import pytest

from ascertain import Done, Ledger
from ascertain.store.postgres import PostgresStore
from ascertain.testing.store_suite import StoreSuite
from ascertain.testing.story import NOW, Maker, write
from pgbouncer import SESSIONS, PgBouncer, program
from postgres import PrivatePostgres

CLIENTS = 4  # stores of one database: more than there are sessions


@pytest.fixture(scope="module")
def bouncer(postgres_server: PrivatePostgres) -> Iterator[PgBouncer]:
    if program() is None:
        pytest.skip("NOT TESTED: PgBouncer is not installed (apt-get install -y pgbouncer)")
    with PgBouncer(postgres_server) as running:
        yield running


@pytest.fixture
def behind(bouncer: PgBouncer, postgres_database: str) -> str:
    """A fresh database, by way of the pooler."""
    return bouncer.dsn(postgres_database.rpartition("/")[2])


@pytest.fixture
def store(behind: str) -> Iterator[PostgresStore]:
    made = PostgresStore(behind, clock=lambda: NOW)
    yield made
    made.close()


class TestBehindPgBouncer(StoreSuite):
    pass


def test_it_is_noticed_and_nothing_is_prepared_on_its_sessions(
    store: PostgresStore, postgres_database: str
) -> None:
    make = Maker()
    write(store, *(make.claim(f"k/{n}") for n in range(20)))
    for _ in range(20):
        store.counts("shop")
    with psycopg.connect(store._dsn, autocommit=True, prepare_threshold=None) as any_session:
        for _ in range(SESSIONS * 4):
            [(count,)] = any_session.execute("select count(*) from pg_prepared_statements")
            [(plans,)] = any_session.execute("show plan_cache_mode")
            assert (count, plans) == (0, "auto")


@pytest.mark.timeout(60)
def test_several_processes_worth_of_writers_share_few_sessions(behind: str) -> None:
    """One effect per key, whoever wins, although no client has a session of its own."""
    stores = [PostgresStore(behind) for _ in range(CLIENTS)]
    effects: list[str] = []
    wrong: list[BaseException] = []

    def work(store: PostgresStore) -> None:
        ledger = Ledger(store)

        @ledger.action("order", key="{name}", owner="anna", sends_within=1, timeout=5)
        def order(call, *, name):
            effects.append(name)
            return Done(ref=f"{name}-{call.attempt}")

        try:
            for number in range(25):
                order.submit(name=f"k{number}", wait=5)
        except BaseException as error:
            wrong.append(error)

    threads = [threading.Thread(target=work, args=(one,)) for one in stores]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
    assert sorted(effects) == sorted(f"k{n}" for n in range(25))
    assert stores[0].check() == []
    for one in stores:
        one.close()

"""PostgreSQL: the conformance suite, the same rows as SQLite, and what only a server has."""

from __future__ import annotations

import threading
import time

import psycopg
import pytest

from ascertain.core.errors import SchemaMismatch, StoreBusy, StoreUnavailable, UsageError
from ascertain.store import open_store
from ascertain.store.loader import migrations
from ascertain.store.pg_driver import ServerClock, Session
from ascertain.store.postgres import PostgresStore
from ascertain.store.sqlite import SqliteStore
from ascertain.testing.store_suite import StoreSuite
from ascertain.testing.story import NOW, Maker, dump, story, write


@pytest.fixture
def store(postgres_database):
    on_server = PostgresStore(postgres_database, clock=lambda: NOW)
    yield on_server
    on_server.close()


class TestPostgres(StoreSuite):
    pass


def test_both_databases_keep_the_same_rows(store):
    sqlite = SqliteStore(":memory:")
    for each in (store, sqlite):
        story(each)
        each.prune(NOW + 2, 10)
    assert dump(store) == dump(sqlite)
    sqlite.close()


def test_what_was_written_is_there_when_it_is_opened_again(postgres_database):
    first = open_store(postgres_database)
    story(first)
    rows = list(first.rows())
    first.close()
    second = open_store(postgres_database, migrate=False)
    assert list(second.rows()) == rows
    second.close()


def test_a_commit_waits_for_the_disk_whatever_the_default(store, postgres_database):
    with psycopg.connect(postgres_database, autocommit=True) as admin:
        name = admin.info.dbname
        admin.execute(f"alter database {name} set synchronous_commit = off")
    other = PostgresStore(postgres_database)
    seen = []
    with other._writers.use() as raw:
        plain = raw.execute("show synchronous_commit").fetchone()
        with raw.transaction():
            other._begin(Session(raw), 1000)
            seen.append(raw.execute("show synchronous_commit").fetchone())
    assert (plain, seen) == (("off",), [("on",)])
    other.close()


def test_many_open_an_empty_database_at_once(postgres_database):
    stores, threads = [], []
    for _ in range(6):
        opening = threading.Thread(target=lambda: stores.append(PostgresStore(postgres_database)))
        opening.start()
        threads.append(opening)
    for thread in threads:
        thread.join()
    assert len(stores) == 6
    assert len({each.meta("secret") for each in stores}) == 1
    for each in stores:
        each.close()


def test_versions(postgres_database, monkeypatch):
    PostgresStore(postgres_database).close()
    more = [*migrations("postgres"), (3, "0003_x.sql", "create table x (y text)")]
    with monkeypatch.context() as patch:
        patch.setattr("ascertain.store.postgres.migrations", lambda _: more)
        with pytest.raises(SchemaMismatch, match=r"schema 2.* needs 3.*`ascertain store migrate`"):
            PostgresStore(postgres_database, migrate=False)
        PostgresStore(postgres_database).close()
    with pytest.raises(SchemaMismatch, match=r"schema 3.* knows 2; install"):
        PostgresStore(postgres_database)


def test_a_server_that_is_not_there_is_named(postgres_database):
    with pytest.raises(
        StoreUnavailable, match=r"postgresql://127.0.0.1:1/x.*check that the server"
    ):
        PostgresStore("postgresql://me:hidden@127.0.0.1:1/x", timeout=0.1)
    nowhere = postgres_database.rsplit("/", 1)[0] + "/nowhere"
    with pytest.raises(StoreUnavailable, match="nowhere"):
        PostgresStore(nowhere)


def test_a_blocked_change_fails_alone_and_stalls_nobody(store, postgres_database):
    make = Maker()
    held, other = make.claim("held"), make.claim("other")
    write(store, held, other)
    with psycopg.connect(postgres_database) as blocker:
        blocker.execute(
            "select 1 from unsettled where operation = %s for update", [held.status.operation]
        )
        began = time.monotonic()
        with pytest.raises(StoreBusy, match=f"{held.status.operation}.*end that transaction") as e:
            store.write([make.done(held.status, "1"), make.done(other.status, "2")])
        assert time.monotonic() - began < 5
        blocked, fine = e.value.facts["written"]
        assert isinstance(blocked, StoreBusy)
        assert fine.applied
        # Locked rows are passed by.
        taken = store.take(NOW * 2, NOW * 3, "default", [held.status.action], 10)
        assert taken == []
        blocker.rollback()
    assert write(store, make.done(held.status, "1")) == [True]


def test_a_server_with_another_default_isolation_is_refused(postgres_database):
    with psycopg.connect(postgres_database, autocommit=True) as admin:
        name = admin.info.dbname
        admin.execute(f"alter database {name} set default_transaction_isolation = serializable")
    with pytest.raises(StoreUnavailable, match=r"SERIALIZABLE.*'read committed'"):
        PostgresStore(postgres_database)


class TestJoin:
    def test_the_caller_commits(self, store, postgres_database):
        make = Maker()
        with psycopg.connect(postgres_database) as mine:
            [answer] = store.join(mine, [make.claim("a")])
            assert answer.applied
            assert store.counts("default") == {"reviews": 0}
            mine.rollback()
            changes = [make.claim("b"), make.claim("a"), make.claim("b")]
            answers = store.join(mine, changes)
            assert [answer.applied for answer in answers] == [True, True, False]
        assert store.counts("default") == {"running": 2, "reviews": 0}

    def test_without_a_transaction_or_with_another_isolation_it_is_refused(
        self, store, postgres_database
    ):
        change = Maker().claim("a")
        mine = psycopg.connect(postgres_database, autocommit=True)
        with mine, pytest.raises(UsageError, match="open transaction"):
            store.join(mine, [change])
        with psycopg.connect(postgres_database) as mine:
            mine.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
            with pytest.raises(UsageError, match="REPEATABLE READ"):
                store.join(mine, [change])
        with pytest.raises(UsageError, match="psycopg"):
            store.join(object(), [change])

    def test_the_callers_own_row_factory_is_left_alone(self, store, postgres_database):
        rows = psycopg.rows.dict_row
        with psycopg.connect(postgres_database, row_factory=rows) as mine:
            assert store.join(mine, [Maker().claim("a")])[0].applied
            assert mine.execute("select 1 as one").fetchone() == {"one": 1}


class TestClock:
    def test_the_estimate_lies_within_the_round_trip(self, postgres_database):
        store = PostgresStore(postgres_database)
        with psycopg.connect(postgres_database, autocommit=True) as other:
            for _ in range(20):
                ask = str(store.queries["clock"])
                before = other.execute(ask).fetchone()[0]
                between = store.now()
                after = other.execute(ask).fetchone()[0]
                assert before - 5_000 <= between <= after + 5_000
        store.close()

    def test_it_is_asked_at_most_once_a_second(self, postgres_database):
        store = PostgresStore(postgres_database)
        asked = []
        ask = store._ask_time
        store._ask_time = lambda: asked.append(1) or ask()
        for _ in range(100):
            store.now()
        assert len(asked) <= 2
        store.close()

    def test_the_estimate_moves_only_when_it_lies_outside(self, monkeypatch):
        clock, at = ServerClock(), [0]
        monkeypatch.setattr(ServerClock, "local", staticmethod(lambda: at[0]))
        at[0] = 100
        clock.learn(0, 1_050)  # the offset lies between 950 and 1050
        assert clock.now(lambda: 0) == 1_100
        at[0] = 300
        clock.learn(200, 1_280)  # between 980 and 1080: it may stay
        assert clock.now(lambda: 0) == 1_300
        at[0] = 320
        clock.learn(310, 1_400)  # between 1080 and 1090: the server's clock stepped
        assert clock.now(lambda: 0) == 1_400

    def test_a_server_that_went_away_leaves_the_estimate(self, monkeypatch):
        clock, at = ServerClock(), [0]
        monkeypatch.setattr(ServerClock, "local", staticmethod(lambda: at[0]))

        def gone():
            raise psycopg.OperationalError("gone")

        with pytest.raises(psycopg.OperationalError):
            clock.now(gone)
        clock.learn(0, 1_000)
        at[0] = 10_000_000
        assert clock.now(gone) == 10_001_000


def test_nothing_is_prepared_on_the_server_and_no_session_state_is_left(postgres_database):
    """What PgBouncer's transaction mode needs: any transaction may run on any session."""
    store = PostgresStore(postgres_database, clock=lambda: NOW, prepare=False)
    story(store)
    store.now()
    list(store.rows())
    with store._writers.use() as raw:
        assert raw.execute("select count(*) from pg_prepared_statements").fetchone() == (0,)
        assert raw.execute("show lock_timeout").fetchone() == ("0",)
        locks = "select count(*) from pg_locks where locktype = 'advisory'"
        assert raw.execute(locks).fetchone() == (0,)
        assert raw.execute("show enable_seqscan").fetchone() == ("on",)
    store.close()


class TestPreparing:
    def prepared(self, store):
        with store._writers.use() as raw:
            [(count,)] = raw.execute("select count(*) from pg_prepared_statements").fetchall()
        return count

    def test_on_a_direct_connection_the_writing_statements_are_prepared(self, store):
        story(store)
        assert self.prepared(store) > 0
        with store._pool.use() as raw:
            assert raw.execute("select count(*) from pg_prepared_statements").fetchone() == (0,)

    def test_a_pooler_is_known_by_the_process_number_that_it_makes_up(
        self, postgres_database, monkeypatch
    ):
        monkeypatch.setattr("ascertain.store.pg_driver.is_direct", lambda _raw: False)
        store = PostgresStore(postgres_database, clock=lambda: NOW)
        story(store)
        assert self.prepared(store) == 0
        store.close()

    def test_a_pooler_that_was_not_noticed_loses_nothing(self, store):
        make = Maker()
        assert write(store, make.claim("one")) == [True]
        with store._writers.use() as raw:
            raw.pgconn.exec_(b"deallocate all")  # as another session is: it has none of them
        assert write(store, make.claim("two")) == [True]
        assert store._writers.prepare is False
        assert self.prepared(store) == 0

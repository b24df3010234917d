"""SQLite, as a file and in memory: the conformance suite, and what is special about a file."""

from __future__ import annotations

import pytest

from ascertain.core.errors import SchemaMismatch, StoreUnavailable, UsageError
from ascertain.store import open_store
from ascertain.store.driver import Connection
from ascertain.store.loader import migrations
from ascertain.store.sqlite import SqliteStore
from ascertain.testing.store_suite import StoreSuite
from ascertain.testing.story import NOW, Maker, story, write


class TestFile(StoreSuite):
    @pytest.fixture
    def store(self, tmp_path):
        with_file = SqliteStore(tmp_path / "ascertain.db", clock=lambda: NOW)
        yield with_file
        with_file.close()


class TestMemory(StoreSuite):
    @pytest.fixture
    def store(self):
        in_memory = SqliteStore(":memory:", clock=lambda: NOW)
        yield in_memory
        in_memory.close()


def test_what_was_written_is_there_when_it_is_opened_again(tmp_path):
    path = tmp_path / "ascertain.db"
    store = open_store(path)
    story(store)
    rows, secret = list(store.rows()), store.meta("secret")
    store.close()
    store = open_store(f"sqlite:///{path}")
    assert (list(store.rows()), store.meta("secret")) == (rows, secret)
    store.close()


def test_a_commit_is_forced_to_the_disk(tmp_path):
    store = SqliteStore(tmp_path / "ascertain.db")
    writer = store._write_connection()
    assert writer.ask("pragma synchronous") == [(2,)]  # full
    assert writer.ask("pragma journal_mode") == [("wal",)]
    assert store.durability == "SQLite WAL, synchronous=FULL"
    store.close()


def test_a_new_store_is_for_its_owner_alone(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    SqliteStore(":memory:")._write_connection()
    assert list(tmp_path.iterdir()) == []
    store = SqliteStore(tmp_path / "ascertain.db")
    store._write_connection()
    modes = {one.name: one.stat().st_mode & 0o777 for one in tmp_path.glob("ascertain.db*")}
    assert modes["ascertain.db"] == modes["ascertain.db-wal"] == 0o600, modes
    store.close()


def test_a_store_of_a_newer_version_is_refused(tmp_path):
    path = tmp_path / "ascertain.db"
    store = SqliteStore(path)
    store._write_connection().do("update meta set value = '999' where name = 'schema'")
    store.close()
    with pytest.raises(SchemaMismatch, match=r"999.* knows 2; install .* newer one"):
        SqliteStore(path)


def test_an_older_store_is_migrated_unless_told_not_to(tmp_path, monkeypatch):
    path = tmp_path / "ascertain.db"
    store = SqliteStore(path)
    story(store)
    rows = [row for row in store.rows() if row[0] != "meta"]
    store.close()
    more = [*migrations("sqlite"), (3, "0003_x.sql", "create table x (y text) strict;")]
    monkeypatch.setattr("ascertain.store.sqlite.migrations", lambda _: more)
    with pytest.raises(SchemaMismatch, match=r"schema 2.* needs 3.*`ascertain store migrate`"):
        SqliteStore(path, migrate=False)
    store = SqliteStore(path)
    assert store.meta("schema") == "3"
    assert [row for row in store.rows() if row[0] != "meta"] == rows
    store.close()


def test_a_migration_that_fails_changes_nothing(tmp_path, monkeypatch):
    path = tmp_path / "ascertain.db"
    SqliteStore(path).close()
    broken = "create table x (y text) strict; insert into nowhere values (1);"
    monkeypatch.setattr(
        "ascertain.store.sqlite.migrations",
        lambda _: [*migrations("sqlite"), (3, "0003_x.sql", broken)],
    )
    with pytest.raises(StoreUnavailable, match="nowhere"):
        SqliteStore(path)
    reader = Connection(str(path), 1)
    assert reader.ask("select value from meta where name = 'schema'") == [("2",)]
    assert reader.ask("select 1 from sqlite_schema where name = 'x'") == []
    reader.close()


def test_joining_a_transaction_needs_postgresql():
    store = SqliteStore(":memory:")
    with pytest.raises(UsageError, match="PostgreSQL"):
        store.join(None, [])
    store.close()


def test_a_closed_store_says_so(tmp_path):
    store = SqliteStore(tmp_path / "ascertain.db")
    change = Maker().claim("a")
    future = store.put(change)
    store.close()
    assert future.result(0).applied  # what was queued is written before it closes
    for use in (lambda: write(store, change), lambda: store.counts(""), lambda: store.put(change)):
        with pytest.raises(StoreUnavailable, match=r"is closed; open it again"):
            use()
    store.close()


def test_the_statements_of_the_hot_path_use_an_index(tmp_path):
    store = SqliteStore(tmp_path / "ascertain.db")
    writer = store._write_connection()
    # Exports, checks, restores, erasures and the hourly retention read all, lists are bounded, the
    # working set is small.
    exempt = (
        "check_", "export_", "find", "reviews_all", "reviews_open_any", "counts", "incarn",
        "restored_", "erase_", "retention_", "open_", "changed_unsettled", "feed_open",
    )  # fmt: skip
    # A handful of rows in all, or only the first one is wanted.
    small = ("gates", "account_any", "account_first")
    # Of what a group brings itself, or a statement has found by an index.
    own = (
        "SCAN newest",
        "SCAN ends",
        "SCAN VALUES CLAUSE",
        "SCAN found",
        "SCAN named",
        "SCAN windowed",
    )
    for name, query in store.queries.items():
        if name.startswith(exempt) or name in small:
            continue
        plan = writer.ask(f"explain query plan {query}", [None] * len(query.params))
        scans = [row[3] for row in plan if row[3].startswith("SCAN") and "CONSTANT" not in row[3]]
        scans = [scan for scan in scans if scan not in own]
        assert not scans, name
    store.close()

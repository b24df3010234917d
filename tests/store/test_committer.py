"""Group commit: who commits, what happens to neighbours, to a lost connection and to a fork."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
import traceback
from urllib.parse import urlsplit

import msgspec
import pytest

from ascertain.core import books
from ascertain.core.errors import StoreError, StoreUnavailable
from ascertain.store.base import BATCH, Posting, Written
from ascertain.store.committer import Committer
from ascertain.store.postgres import PostgresStore
from ascertain.store.sqlite import SqliteStore
from ascertain.testing.story import NAMESPACE, Maker, state, write
from postgres import PrivatePostgres
from store.cutting import CuttingProxy

APPLIED = Written(applied=True)


class Recorder:
    """Stands for a store's commit: notes who committed how many, and waits if told to."""

    def __init__(self) -> None:
        self.calls: list[tuple[int, int]] = []
        self.go = threading.Event()
        self.go.set()
        self.entered = threading.Event()

    def __call__(self, changes, waiting):
        self.entered.set()
        self.go.wait(10)
        self.calls.append((threading.get_ident(), len(changes)))
        return [APPLIED] * len(changes)


@pytest.fixture
def recorder():
    return Recorder()


@pytest.fixture
def committer(recorder):
    made = Committer(recorder, "x")
    yield made
    recorder.go.set()
    made.close()


def start(count, work):
    threads = [threading.Thread(target=work) for _ in range(count)]
    for thread in threads:
        thread.start()
    return threads


class TestWhoCommits:
    def test_an_idle_caller_commits_by_himself(self, committer, recorder):
        change = Maker().claim("a")
        assert committer.write([change, change]) == [APPLIED, APPLIED]
        assert recorder.calls == [(threading.get_ident(), 2)]
        assert committer.write([]) == []

    def test_callers_who_meet_are_committed_together(self, committer, recorder):
        change = Maker().claim("a")
        recorder.go.clear()
        first = start(1, lambda: committer.write([change]))
        assert recorder.entered.wait(5)
        others = start(20, lambda: committer.write([change]))
        while len(committer._queue) < 20:
            time.sleep(0.001)
        recorder.go.set()
        for thread in (*first, *others):
            thread.join(5)
        assert [size for _, size in recorder.calls] == [1, 20]

    def test_a_group_is_bounded(self, committer, recorder):
        change = Maker().claim("a")
        assert len(committer.write([change] * (2 * BATCH + 1))) == 2 * BATCH + 1
        assert max(size for _, size in recorder.calls) <= BATCH

    def test_after_the_crowd_an_idle_caller_commits_by_himself_again(self, committer, recorder):
        change = Maker().claim("a")
        for future in [committer.put(change) for _ in range(20)]:
            assert future.result(5) is APPLIED
        for _ in range(3):
            committer.write([change])
        assert recorder.calls[-1] == (threading.get_ident(), 1)

    def test_who_queued_a_change_is_told_when_it_has_landed(self, committer, recorder):
        landed = threading.Event()
        recorder.go.clear()
        commit = committer.put(Maker().claim("a"), landed.set)
        with pytest.raises(TimeoutError):
            commit.result(0.01)
        assert not landed.is_set()
        recorder.go.set()
        assert landed.wait(5)
        assert commit.result(0) is APPLIED
        assert commit.result(0) is APPLIED


class TestFailures:
    def test_an_interrupted_caller_leaves_the_turn(self):
        def interrupted(changes, waiting):
            raise KeyboardInterrupt

        committer = Committer(interrupted, "x")
        with pytest.raises(KeyboardInterrupt):
            committer.write([Maker().claim("a")])
        assert committer.exclusive().acquire(timeout=1)
        committer.exclusive().release()
        committer.close()

    def test_a_bug_fails_the_group_and_not_the_thread(self, recorder):
        def broken(changes, waiting):
            raise ZeroDivisionError

        committer = Committer(broken, "x")
        for _ in range(2):
            with pytest.raises(StoreUnavailable, match="ZeroDivisionError"):
                committer.put(Maker().claim("a")).result(5)
        committer.close()

    def test_closing_writes_what_is_queued_and_refuses_the_rest(self, committer, recorder):
        change = Maker().claim("a")
        recorder.go.clear()
        futures = [committer.put(change) for _ in range(5)]
        closing = start(1, committer.close)
        recorder.go.set()
        closing[0].join(5)
        assert all(future.result(0) is APPLIED for future in futures)
        with pytest.raises(StoreUnavailable, match="closed"):
            committer.put(change)

    def test_one_bad_change_among_many_callers_fails_alone(self, tmp_path):
        store = SqliteStore(tmp_path / "ascertain.db")
        make = Maker()
        good = [make.claim(f"k{n}") for n in range(30)]
        bad = Maker().claim("bad")  # with an id that is another operation's
        futures = [store.put(change) for change in (*good[:15], bad, *good[15:])]
        failed = futures.pop(15)
        assert all(future.result(10).applied for future in futures)
        with pytest.raises(StoreError, match="another operation's"):
            failed.result(10)
        store.close()

    def test_a_process_that_ends_writes_what_is_queued(self, tmp_path):
        script = (
            "import sys; from ascertain.store.sqlite import SqliteStore\n"
            "from ascertain.testing.story import Maker\n"
            "store = SqliteStore(sys.argv[1]); make = Maker()\n"
            "for n in range(200): store.put(make.claim(str(n)))\n"
        )
        path = tmp_path / "ascertain.db"
        subprocess.run([sys.executable, "-c", script, path], check=True, timeout=20)
        store = SqliteStore(path)
        assert store.counts(NAMESPACE)["running"] == 200
        store.close()


@pytest.fixture
def proxied(postgres_database):
    server = urlsplit(postgres_database)
    proxy = CuttingProxy(server.hostname, server.port)
    store = PostgresStore(postgres_database.replace(f":{server.port}/", f":{proxy.port}/"))
    yield store, proxy
    store.close()
    proxy.close()


@pytest.mark.parametrize("at_once", [False, True])
class TestConnectionLostInCommit:
    """The caller sees no exception, and each change is there exactly once."""

    def test_in_a_group(self, proxied, at_once):
        store, proxy = proxied
        make = Maker()
        old = make.claim("old")
        write(store, old)
        new, done = make.claim("new"), make.done(old.status, "17")
        proxy.arm(b"insert into operation", at_once=at_once)
        assert write(store, new, done) == [True, True]
        assert proxy.cuts == 1
        assert [a.outcome for a in store.attempts(old.status.operation)] == ["done"]
        assert len(store.evidence(old.status.operation)) == 1
        assert len(store.attempts(new.status.operation)) == 1
        assert store.check() == []

    @pytest.mark.parametrize("word", [b"COMMIT", b"insert into evidence"])
    def test_in_a_transaction_of_its_own(self, proxied, at_once, word):
        store, proxy = proxied
        make = Maker()
        old = make.claim("v1")
        write(store, old)
        closed = make.stopped(old.status, "superseded")
        new = make.claim("v2", supersedes=old.status.operation)
        proxy.arm(word, at_once=at_once)
        assert write(store, msgspec.structs.replace(new, also=(closed,))) == [True]
        assert proxy.cuts == 1
        assert len(store.attempts(new.status.operation)) == 1
        assert len(store.evidence(old.status.operation)) == 1
        assert store.check() == []

    def test_while_reading(self, proxied, at_once):
        store, proxy = proxied
        write(store, Maker().claim("a"))
        proxy.arm(b"select state, count", at_once=at_once)
        assert store.counts(NAMESPACE) == {"running": 1, "reviews": 0}
        assert proxy.cuts == 1


def audit(ident):
    return "audit_add", books.Audit(id=ident, namespace=NAMESPACE, at=1, actor="anna", did="x")


class TestWhatAPersonDid:
    """Its commit was there, and the connection lost; the answer once said that it was refused."""

    def test_a_guard_that_it_has_moved_itself(self, proxied):
        store, proxy = proxied
        gate = books.Gate(namespace=NAMESPACE, target="cms", state="open", since=1)
        store.post([Posting((("gate_add", gate),))])
        moved = {**msgspec.structs.asdict(gate), "since": 2, "was": "open", "was_since": 1}
        posting = Posting((("gate_write", moved), audit("1")), must=(0,))
        proxy.arm(b"COMMIT")
        assert store.post([posting])[0].applied
        assert proxy.cuts == 1
        assert not store.post([posting])[0].applied, "nothing was lost here"

    def test_a_decision_from_which_a_worker_has_gone_on(
        self, proxied, postgres_database, monkeypatch
    ):
        store, proxy = proxied
        make = Maker()
        old = make.claim("a")
        write(store, old)
        said = msgspec.structs.replace(make.stopped(old.status, "left"), lines=(audit("1"),))
        other = PostgresStore(postgres_database)
        drop = store._writers.drop

        def meanwhile():
            drop()
            assert write(other, make.next(said.status, owner="ben")) == [True]

        monkeypatch.setattr(store._writers, "drop", meanwhile)
        proxy.arm(b"COMMIT")
        assert write(store, said) == [True]
        assert proxy.cuts == 1
        assert state(store, said).owner == "ben"
        assert write(store, said) == [False], "nothing was lost here"
        monkeypatch.undo()
        other.close()


def test_a_server_that_stays_away_is_reported_and_may_come_back():
    with PrivatePostgres() as server:
        store = PostgresStore(server.dsn(), timeout=0.5)
        make = Maker()
        write(store, make.claim("before"))
        server.stop()
        during = make.claim("during")
        with pytest.raises(StoreUnavailable, match="cannot be reached"):
            store.write([during])
        with pytest.raises(StoreUnavailable, match="cannot be reached"):
            store.counts(NAMESPACE)
        server.start()
        assert write(store, during) == [True]
        assert store.counts(NAMESPACE) == {"running": 2, "reviews": 0}
        store.close()


def in_child(work):
    """Run work in a forked child and return what it returned."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            answer = json.dumps(work())
        except BaseException:
            answer = json.dumps(traceback.format_exc())
        os.write(writing, answer.encode())
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        answer = json.loads(pipe.read())
    os.waitpid(child, 0)
    return answer


class TestFork:
    @pytest.fixture(params=["sqlite", "postgres"])
    def store(self, request, tmp_path):
        if request.param == "sqlite":
            made = SqliteStore(tmp_path / "ascertain.db")
        else:
            made = PostgresStore(request.getfixturevalue("postgres_database"))
        yield made
        made.close()

    def test_parent_and_child_write_with_connections_of_their_own(self, store):
        ours, theirs = Maker(), Maker(1_000)
        write(store, ours.claim("before"))
        for future in [store.put(ours.claim(f"thread {n}")) for n in range(3)]:
            future.result(5)  # so there is a committer's thread, which a child has not

        def child():
            store.counts(NAMESPACE)
            futures = [store.put(theirs.claim(f"child {n}")) for n in range(5)]
            applied = [future.result(5).applied for future in futures]
            return [*applied, *write(store, theirs.claim("child"))]

        assert in_child(child) == [True] * 6
        assert write(store, ours.claim("after")) == [True]
        assert store.counts(NAMESPACE)["running"] == 11
        assert store.check() == []

    def test_a_fork_while_others_write_loses_nothing(self, store):
        makers = [Maker(1_000_000 * n) for n in range(1, 5)]
        written: list[bool] = []
        stop = threading.Event()

        def work(make):
            while not stop.is_set():
                written.extend(write(store, make.claim(f"k{make.number()}")))

        threads = [threading.Thread(target=work, args=(make,)) for make in makers]
        for thread in threads:
            thread.start()
        make = Maker(100_000)
        told = [in_child(lambda n=n: write(store, make.claim(f"child {n}"))) for n in range(3)]
        stop.set()
        for thread in threads:
            thread.join()
        # Each child counted from the same place: the ids of the second and third are the first's.
        assert told[0] == [True]
        assert all(written)
        assert store.counts(NAMESPACE)["running"] == len(written) + 1
        assert store.check() == []

    def test_a_store_in_memory_does_not_survive_a_fork(self):
        store = SqliteStore(":memory:")
        assert "is in memory" in in_child(lambda: store.counts(NAMESPACE))
        assert write(store, Maker().claim("a")) == [True]
        store.close()

    def test_a_fork_in_the_midst_of_an_export_is_refused_in_the_child(self, tmp_path):
        store = SqliteStore(tmp_path / "ascertain.db")
        write(store, Maker().claim("a"))
        export = store.rows()
        next(export)
        assert "was busy" in in_child(lambda: store.counts(NAMESPACE))
        export.close()
        assert in_child(lambda: store.counts(NAMESPACE)["running"]) == 1
        store.close()

"""What can be wrong with a file: the right error, with the file and the next step, and no loss."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import apsw
import pytest

from ascertain.core.errors import SchemaMismatch, StoreBusy, StoreCorrupt, StoreUnavailable
from ascertain.store import sqlite
from ascertain.store.driver import Connection, Kind, Trouble, remote_file_system
from ascertain.store.sqlite import SqliteStore
from ascertain.testing.story import NAMESPACE, Maker, write


@pytest.fixture
def path(tmp_path):
    return tmp_path / "ascertain.db"


def filled(path, count=300):
    make = Maker()
    store = SqliteStore(path)
    write(store, *(make.claim(f"k{n}") for n in range(count)))
    return store


def refused(kind, path, *words):
    with pytest.raises(kind) as caught:
        SqliteStore(path, timeout=0.2)
    text = str(caught.value)
    assert type(caught.value) is kind
    for word in (str(path), *words):
        assert re.search(word, text), text


class TestPlaces:
    def test_a_missing_folder(self, tmp_path):
        with pytest.raises(
            StoreUnavailable, match=r"none of the store a.db does not exist; create"
        ):
            SqliteStore(tmp_path / "none" / "a.db")

    def test_a_folder_instead_of_a_file(self, tmp_path):
        refused(StoreUnavailable, tmp_path, "is a folder; name a file")

    def test_something_that_is_no_database(self, path):
        path.write_text("Dear diary, " * 1000)
        refused(StoreCorrupt, path, "no SQLite database", "restore a copy")

    def test_another_programs_database(self, path):
        other = Connection(str(path), 1)
        other.do("create table photos (name text)")
        other.close()
        refused(SchemaMismatch, path, "another program; name another file")
        other = Connection(str(path), 1)
        assert other.ask("select name from sqlite_schema") == [("photos",)]
        other.close()

    def test_an_empty_file_becomes_a_store(self, path):
        path.touch()
        SqliteStore(path).close()

    def test_a_network_file_system(self, path, monkeypatch):
        lines = [
            "22 1 254:0 / / rw - ext4 /dev/vda rw",
            "40 22 0:50 / /mnt/team\\040share rw,relatime - nfs4 server:/x rw",
            "41 40 254:1 / /mnt/team\\040share/local rw - xfs /dev/vdb rw",
        ]
        assert remote_file_system(Path("/mnt/team share/a.db"), lines) == "nfs4"
        assert remote_file_system(Path("/mnt/team share/local/a.db"), lines) == ""
        assert remote_file_system(Path("/mnt/other/a.db"), lines) == ""
        monkeypatch.setattr(sqlite, "remote_file_system", lambda *_: "nfs4")
        refused(StoreUnavailable, path, "network file system.*use PostgreSQL")

    def test_a_place_where_the_log_does_not_come_up(self, path):
        vfs = apsw.VFS("without shared memory", base="unix-none", makedefault=True)
        try:
            refused(StoreUnavailable, path, "write-ahead log")
        finally:
            apsw.set_default_vfs("unix")
            vfs.unregister()

    def test_an_old_library(self, path, monkeypatch):
        monkeypatch.setattr(sqlite, "VERSION", "3.36.9")
        refused(StoreUnavailable, path, "3.36.9 is too old.*3.37")

    @pytest.mark.parametrize("mode", ["file", "folder"])
    def test_no_permission(self, tmp_path, mode):
        """In a child without root's rights, for which permissions mean nothing."""
        tmp_path.chmod(0o755)
        for parent in list(tmp_path.parents)[:-2]:
            if parent.stat().st_uid == os.geteuid():
                parent.chmod(parent.stat().st_mode | 0o055)
        path = tmp_path / "ascertain.db"
        filled(path).close()
        path.chmod(0o444 if mode == "file" else 0o666)
        tmp_path.chmod(0o777 if mode == "file" else 0o555)
        child = os.fork()
        if child == 0:
            code = 1
            try:
                if os.geteuid() == 0:
                    os.setgroups([])
                    os.setgid(65534)
                    os.setuid(65534)
                refused(StoreUnavailable, path, "give this user write permission")
                code = 0
            except BaseException as error:
                print(repr(error), file=sys.stderr)
            os._exit(code)
        assert os.waitpid(child, 0)[1] == 0
        tmp_path.chmod(0o755)


class TestDamage:
    def test_a_damaged_page_is_found_and_nothing_more_is_written(self, path):
        filled(path, 2_000).close()
        with path.open("r+b") as file:
            file.seek(4096)
            file.write(os.urandom(path.stat().st_size - 8192))
        try:
            store = SqliteStore(path)
        except StoreCorrupt:
            return  # the damage reached what is read at opening
        assert store.check() != []
        make = Maker(10_000)
        with pytest.raises(StoreCorrupt, match="restore a copy"):
            store.write([make.claim(f"new{n}") for n in range(200)])
        with pytest.raises(StoreCorrupt, match=str(path)):
            store.write([make.claim("x")])
        store.close()

    def test_check_names_what_does_not_fit(self, path):
        store = filled(path, 3)
        first, second, third = (found.operation.id for found in store.find(sqlite_filter()))
        writer = store._write_connection()
        writer.do("delete from unsettled where operation = ?", (first,))
        writer.do("delete from operation where id = ?", (second,))
        writer.do(
            "insert into evidence values (?, 9, 'e', 1, 'x', '', null, '', '', '{}')", (third,)
        )
        assert store.check() == [
            f"operation {first} has no status",
            f"something is stored about operation {second}, which is not there",
            f"operation {third} has more evidence than its status counts",
        ]
        store.close()

    def test_after_a_failed_disk_nothing_is_written_until_it_is_opened_again(
        self, path, monkeypatch
    ):
        store = filled(path, 1)
        plain = Connection.do

        def fails(self, query, values=()):
            if query == "commit":
                raise Trouble(Kind.DISK, "IOError: disk I/O error")
            return plain(self, query, values)

        make = Maker(1_000)
        with monkeypatch.context() as patch:
            patch.setattr(Connection, "do", fails)
            with pytest.raises(StoreUnavailable, match=r"disk .* failed.*start again"):
                store.write([make.claim("a")])
        for use in (lambda: store.write([make.claim("b")]), lambda: store.counts(NAMESPACE)):
            with pytest.raises(StoreUnavailable, match="disk"):
                use()
        store.close()
        store = SqliteStore(path)
        assert store.counts(NAMESPACE)["running"] == 1
        assert store.check() == []
        store.close()


def sqlite_filter():
    from ascertain.store.base import Filter

    return Filter()


def written_until_full(store, make):
    written = []

    def fill():
        while len(written) < 10_000:
            written.extend(write(store, make.claim(f"k{make.number()}")))

    with pytest.raises(StoreUnavailable, match="is full, nothing was written; free space"):
        fill()
    return sum(written)


class TestRoomAndLocks:
    def test_a_full_disk_loses_nothing_and_is_left_behind(self, path):
        store = filled(path)
        writer = store._write_connection()
        [(pages,)] = writer.ask("pragma page_count")
        writer.ask(f"pragma max_page_count = {pages + 5}")
        make = Maker(10_000)
        acknowledged = store.counts(NAMESPACE)["running"] + written_until_full(store, make)
        assert store.counts(NAMESPACE)["running"] == acknowledged
        group = [make.claim(f"k{make.number()}") for _ in range(100)]
        with pytest.raises(StoreUnavailable, match="is full"):
            store.write(group)
        assert store.counts(NAMESPACE)["running"] == acknowledged
        writer.ask("pragma max_page_count = 1000000")
        assert all(write(store, *group))
        assert store.counts(NAMESPACE)["running"] == acknowledged + 100
        assert store.check() == []
        store.close()

    def test_a_small_disk(self, tmp_path):
        """The same on a real file system of 1 MB, where one can be mounted."""
        place = tmp_path / "small"
        place.mkdir()
        command = ["mount", "-t", "tmpfs", "-o", "size=1m", "none", str(place)]
        if subprocess.run(command, check=False, capture_output=True).returncode:
            pytest.skip("mounting needs root")
        try:
            store, make = SqliteStore(place / "a.db"), Maker()
            acknowledged = written_until_full(store, make)
            assert store.counts(NAMESPACE)["running"] == acknowledged
            subprocess.run(
                ["mount", "-o", "remount,size=8m", str(place)], check=True, capture_output=True
            )
            assert write(store, make.claim("there is room again")) == [True]
            assert store.check() == []
            store.close()
        finally:
            subprocess.run(["umount", str(place)], check=False)

    def test_a_lock_that_another_holds_too_long(self, path):
        store = SqliteStore(path, timeout=0.2)
        make = Maker()
        other = Connection(str(path), 1)
        other.do("begin immediate")
        with pytest.raises(StoreBusy, match=r"locked by another process for 0\.2 s.*try again"):
            store.write([make.claim("a")])
        with pytest.raises(StoreBusy, match=str(path)):
            store.meta("x", "y")
        assert store.counts(NAMESPACE) == {"reviews": 0}  # reading goes on
        other.do("rollback")
        other.close()
        assert write(store, make.claim("a")) == [True]
        store.close()

    def test_a_lock_that_ends_in_time_is_waited_for(self, path):
        store = SqliteStore(path)
        script = (
            "import sys, time; from ascertain.store.driver import Connection\n"
            "other = Connection(sys.argv[1], 5); other.do('begin immediate')\n"
            "print('locked', flush=True); time.sleep(0.5); other.do('rollback')\n"
        )
        other = subprocess.Popen(
            [sys.executable, "-c", script, path], stdout=subprocess.PIPE, text=True
        )
        with other:
            assert other.stdout.readline() == "locked\n"
            assert write(store, Maker().claim("a")) == [True]
        store.close()


def test_messages_are_json_safe(path):
    path.write_text("x" * 100)
    with pytest.raises(StoreCorrupt) as caught:
        SqliteStore(path)
    assert json.dumps({"code": caught.value.code, "text": str(caught.value)})

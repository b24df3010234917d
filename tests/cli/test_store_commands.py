from __future__ import annotations

import json
import shutil
import sqlite3
import stat
from contextlib import closing
from typing import Any

import pytest

LANGS = pytest.mark.parametrize("lang", ["en", "zh"])


def read(file: Any) -> list[tuple[str, dict[str, Any]]]:
    lines = [json.loads(line) for line in file.read_text("utf-8").splitlines()]
    return [(line["table"], line["row"]) for line in lines]


@LANGS
def test_migrate_makes_a_store_and_check_finds_it_sound(cli, lang) -> None:
    assert cli("store", "check", "--lang", lang).exit_code == 2
    assert not cli.store.exists()  # reading makes nothing
    made = cli("store", "migrate", "--lang", lang)
    assert (made.exit_code, cli.store.exists()) == (0, True)
    sound = cli("store", "check", "--lang", lang)
    assert sound.exit_code == 0
    assert {"en": "is sound", "zh": "完好"}[lang] in sound.stdout
    data = cli.json("store", "check")
    assert set(data) == {"store", "schema", "durability", "sound", "wrong"}
    assert cli.json("store", "migrate") == {
        "store": str(cli.store), "schema": data["schema"], "changed": False
    }  # fmt: skip


@LANGS
def test_a_store_from_a_newer_version_is_refused(cli, lang) -> None:
    cli("store", "migrate")
    with closing(sqlite3.connect(cli.store)) as db:
        db.execute("update meta set value = '999' where name = 'schema'")
        db.commit()
    for verb in ("check", "migrate", "export"):
        done = cli("store", verb, "--lang", lang)
        assert (done.exit_code, done.stderr.count("\n")) == (4, 1)
        assert str(cli.store) in done.stderr
    assert cli.json("op", "list", code=4)["error"]["code"] == "schema_mismatch"


@LANGS
def test_a_damaged_store_is_found(cli, lang) -> None:
    cli.app().order.submit(order="lamp", wait=0)
    cli.close()
    with closing(sqlite3.connect(cli.store)) as db:
        db.execute("delete from unsettled")
        db.execute("delete from settled")  # an operation of which nothing is known
        db.commit()
    done = cli("store", "check", "--lang", lang)
    assert done.exit_code == 4, done.output
    assert "ascertain store restored" in done.output
    assert cli.json("store", "check", code=4)["sound"] is False


def test_an_export_holds_everything_of_its_namespace_and_no_secret(cli) -> None:
    ours, theirs = cli.app(), cli.app("theirs")
    cli.fate("gone")
    ours.opaque.submit(order="lamp", wait=0)
    theirs.opaque.submit(order="chair", wait=0)
    file = cli.folder / "out.jsonl"
    data = cli.json("store", "export", str(file))
    rows = read(file)
    assert data == {"file": str(file), "rows": len(rows)}
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert {t for t, _ in rows} >= {"meta", "operation", "unsettled", "attempt", "evidence"}
    assert "secret" not in {r["name"] for t, r in rows if t == "meta"}
    assert "chair" not in file.read_text()
    assert "theirs" not in file.read_text()
    assert cli("store", "export", str(file)).exit_code == 4  # never overwritten by itself
    whole = cli("store", "export", str(file), "--force", "--all-namespaces", "--with-secret")
    assert whole.exit_code == 0
    assert "chair" in file.read_text()
    assert "secret" in {r["name"] for t, r in read(file) if t == "meta"}


@LANGS
def test_an_export_says_how_much_it_wrote_and_where_it_cannot(cli, lang) -> None:
    cli("store", "migrate")
    done = cli("store", "export", "out.jsonl", "--lang", lang)
    assert {"en": "were written to out.jsonl", "zh": "写入 out.jsonl"}[lang] in done.stdout
    nowhere = cli("store", "export", "no/such/folder.jsonl", "--lang", lang)
    assert (nowhere.exit_code, nowhere.stderr.count("\n")) == (4, 1)
    assert not list(cli.folder.glob(".*"))  # nothing half-written stays


@LANGS
def test_after_a_restore_open_operations_are_unknown_and_are_found_again(cli, lang) -> None:
    app = cli.app()
    app.order.enqueue(order="lamp")
    cli.close()
    copy = cli.folder / "copy.db"
    shutil.copy(cli.store, copy)  # the copy is taken before the order is done
    taken = cli.folder / "before.jsonl"
    assert cli("store", "export", str(taken)).exit_code == 0
    assert cli("work", "--once", app=True).exit_code == 0
    assert len(cli.effects()) == 1
    for file in cli.folder.glob("ledger.db*"):
        file.unlink()
    shutil.copy(copy, cli.store)
    restored = cli.folder / "after.jsonl"
    assert cli("store", "export", str(restored)).exit_code == 0
    kept = [(t, r) for t, r in read(taken) if t != "meta"]
    assert [(t, r) for t, r in read(restored) if t != "meta"] == kept

    args = ("store", "restored", "--gap-from", "2026-01-01T00:00:00+01:00", "--note", "disk")
    declined = cli(*args, "--lang", lang, typed="n\n")
    assert declined.exit_code == 4
    assert {"en": "1 open operations", "zh": "1 项未结束"}[lang] in declined.stderr
    assert {"en": "Without --app", "zh": "未指定 --app"}[lang] in declined.stderr
    assert cli.json("op", "show", "lamp")["operation"]["state"] == "pending"
    agreed = cli(*args, "--lang", lang, "--yes", app=True)
    assert agreed.exit_code == 0, agreed.output
    found = cli.json("op", "confirm", "lamp", app=True)
    assert found["operation"]["state"] == "done"
    assert len(cli.effects()) == 1


def test_the_json_of_a_restore_is_stable(cli) -> None:
    cli.app().approved.submit(order="lamp")
    args = ("store", "restored", "--gap-from", "2026-01-01T00:00:00Z", "--yes")
    assert cli.json(*args, app=True) == {
        "gap_from": 1_767_225_600_000_000, "operations": 1, "unknown": 1, "before": 0
    }  # fmt: skip


@pytest.mark.parametrize("moment", ["yesterday", "2026-01-01T00:00:00", "2999-01-01T00:00:00Z"])
def test_the_gap_begins_at_a_time_with_a_zone_that_has_been(cli, moment) -> None:
    cli("store", "migrate")
    done = cli("store", "restored", "--gap-from", moment, "--yes")
    assert (done.exit_code, done.stderr.count("\n")) == (2, 1)


@pytest.mark.timeout(60)
def test_all_of_it_works_on_postgresql(cli, postgres_database) -> None:
    at = ("--store", postgres_database)
    assert cli.json("store", "migrate", *at)["changed"] is True  # no read ever makes a schema
    assert cli.json("store", "migrate", *at)["changed"] is False
    assert cli.json("store", "check", *at)["sound"] is True
    assert cli.json("op", "list", *at) == {"operations": [], "next": None}
    assert cli("store", "export", *at).exit_code == 0
    assert cli("store", "restored", "--gap-from", "2026-01-01T00:00Z", "--yes", *at).exit_code == 0

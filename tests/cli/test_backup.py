"""`ascertain store backup` and `restore`: everything comes back, and the store knows of it."""

from __future__ import annotations

import gzip
import json
import stat
import threading
from pathlib import Path
from typing import Any

import pytest

from ascertain import Ledger, SchemaMismatch, open_store
from ascertain.core.books import Blob
from ascertain.runtime.accounts import Accounts
from ascertain.store import backup as copies
from ascertain.store.base import Posting
from ascertain.store.loader import UNFINISHED

LANGS = pytest.mark.parametrize("lang", ["en", "zh"])
STORES = pytest.mark.parametrize("kind", ["sqlite", "postgres"])


@pytest.fixture
def elsewhere(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    """Addresses of stores that do not exist yet, by their kind."""

    def address(kind: str) -> str:
        if kind == "sqlite":
            return str(tmp_path / "restored.db")
        return str(request.getfixturevalue("postgres_database"))

    return address


def rows(url: str) -> dict[str, list[Any]]:
    store = open_store(url, migrate=False)
    found: dict[str, list[Any]] = {}
    for table, row in store.rows():
        plain = {n: int(v) if isinstance(v, bool) else v for n, v in row.items()}
        found.setdefault(table, []).append(json.dumps(plain, sort_keys=True))
    store.close()
    return {table: sorted(lines) for table, lines in found.items()}


def filled(cli: Any) -> Any:
    """A store with something of everything: done, unknown, a token, and a large body."""
    app = cli.app()
    app.order.submit(order="done", wait=0)
    cli.fate("gone")
    app.opaque.submit(order="open", wait=0)
    cli.fate("ok")
    Accounts(app.ledger.store).new_token("default", "n8n", "ops:write", by="anna")
    parts = [Blob(body="b", part=n, data="QUJD" * 300_000) for n in range(3)]
    app.ledger.store.post([Posting(tuple(("blob_add", part) for part in parts))])
    return app


@STORES
def test_a_store_comes_back_whole_and_told(cli, elsewhere, kind) -> None:
    """Law 21 in the same step: open operations are unknown, and a new life has begun."""
    app = filled(cli)
    before = rows(str(cli.store))
    made = cli.json("store", "backup", "copy.gz")
    assert made["rows"] == {table: len(lines) for table, lines in before.items()}
    assert stat.S_IMODE((cli.folder / "copy.gz").stat().st_mode) == 0o600
    app.order.submit(order="after the copy", wait=0)

    url = elsewhere(kind)
    done = cli.json("store", "restore", "copy.gz", "--store", url, "--yes")
    assert done["rows"] == sum(made["rows"].values())
    after = rows(url)
    same = set(before) - {"meta", "unsettled", "evidence", "audit", "api_token", "incarnation"}
    same -= {"attempt", "review"}
    assert {t: after[t] for t in same} == {t: before[t] for t in same}
    assert [json.loads(m)["value"] for m in after["meta"] if '"secret"' in m] == [
        json.loads(m)["value"] for m in before["meta"] if '"secret"' in m
    ]
    with Ledger(open_store(url)) as ledger:
        assert [life.gap_from for life in ledger.store.incarnations()] == [done["gap_from"]]
        assert {r.key: r.state.value for r in ledger.find()} == {"done": "done", "open": "unknown"}
        assert ledger.store.check() == []
    [token] = [json.loads(line) for line in after["api_token"]]
    assert token["hash"] == json.loads(before["api_token"][0])["hash"]
    assert token["held_at"] is not None  # nobody knows what was revoked meanwhile


def test_an_older_copy_gives_the_same_target_keys(cli, elsewhere) -> None:
    app = filled(cli)
    cli.json("store", "backup", "copy.gz")
    key = app.ledger.engine.target_key("shop.order", "later", 1)
    url = elsewhere("sqlite")
    cli.json("store", "restore", "copy.gz", "--store", url, "--yes")
    with Ledger(open_store(url)) as ledger:
        assert ledger.engine.target_key("shop.order", "later", 1) == key


@pytest.mark.timeout(60)
def test_a_copy_is_taken_while_others_write(cli, elsewhere) -> None:
    """One snapshot: every operation in it has its status, whatever is written meanwhile."""
    app = filled(cli)
    stop = threading.Event()

    def busy() -> None:
        number = 0
        while not stop.is_set():
            app.order.submit(order=f"b{number}", wait=0)
            number += 1

    thread = threading.Thread(target=busy)
    thread.start()
    try:
        for number in range(5):
            cli.json("store", "backup", f"copy{number}.gz")
    finally:
        stop.set()
        thread.join()
    url = elsewhere("sqlite")
    cli.json("store", "restore", "copy4.gz", "--store", url, "--yes")
    with Ledger(open_store(url)) as ledger:
        assert ledger.store.check() == []


@LANGS
def test_what_is_no_whole_backup_restores_nothing(cli, elsewhere, lang) -> None:
    filled(cli)
    cli.json("store", "backup", "copy.gz")
    whole = gzip.decompress((cli.folder / "copy.gz").read_bytes())
    lines = whole.splitlines(keepends=True)
    changed = whole.replace(b'"shop.opaque"', b'"shop.opaqve"')
    bad = {
        "cut": gzip.compress(b"".join(lines[:-1])),
        "torn": (cli.folder / "copy.gz").read_bytes()[:-200],
        "changed": gzip.compress(changed),
        "no backup": gzip.compress(b"{}\n"),
        "no gzip": b"hello",
        "other table": gzip.compress(lines[0] + b'{"table":"x","row":{}}\n' + lines[-1]),
        "other column": gzip.compress(
            lines[0] + b'{"table":"meta","row":{"name) values (1); --":1}}\n' + lines[-1]
        ),
    }
    for name, data in bad.items():
        (cli.folder / "bad.gz").write_bytes(data)
        url = elsewhere("sqlite")
        done = cli("store", "restore", "bad.gz", "--store", url, "--yes", "--lang", lang)
        assert done.exit_code == 4, (name, done.output)
        assert not Path(url).exists(), name
    assert cli("store", "restore", "none.gz", "--store", "x.db", "--yes").exit_code == 4


@STORES
def test_nothing_is_restored_over_what_is_there(cli, elsewhere, kind) -> None:
    filled(cli)
    cli.json("store", "backup", "copy.gz")
    url = elsewhere(kind)
    cli.json("store", "restore", "copy.gz", "--store", url, "--yes")
    before = rows(url)
    again = cli("store", "restore", "copy.gz", "--store", url, "--yes")
    assert (again.exit_code, "is not empty" in again.stderr) == (4, True)
    assert rows(url) == before


def test_a_backup_overwrites_only_by_force(cli) -> None:
    filled(cli)
    (cli.folder / "copy.gz").write_text("mine")
    assert cli("store", "backup", "copy.gz").exit_code == 4
    assert (cli.folder / "copy.gz").read_text() == "mine"
    assert cli("store", "backup", "copy.gz", "--force").exit_code == 0
    assert cli("store", "backup", "no/such/copy.gz").exit_code == 4
    assert [p.name for p in cli.folder.glob(".copy*")] == []


@STORES
def test_a_restore_that_stopped_half_way_leaves_nothing_to_be_used(cli, elsewhere, kind) -> None:
    """Else a store would look sound that was never told that writes are missing (law 21)."""
    filled(cli)
    cli.json("store", "backup", "copy.gz")
    file, url = cli.folder / "copy.gz", elsewhere(kind)
    store = open_store(url)
    copies.fill(store, file, copies.examine(file))
    store.close()  # as if killed here
    with pytest.raises(SchemaMismatch, match="did not finish"):
        open_store(url)
    assert UNFINISHED > 1000


def test_nothing_is_done_unless_the_sentence_is_answered(cli, elsewhere) -> None:
    filled(cli)
    cli.json("store", "backup", "copy.gz")
    url = elsewhere("sqlite")
    done = cli("store", "restore", "copy.gz", "--store", url, typed="n\n")
    assert (done.exit_code, Path(url).exists()) == (4, False)
    assert "1 open operations become unknown" in done.output

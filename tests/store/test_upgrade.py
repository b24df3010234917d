"""Several versions on one store: what is promised while one is replaced by the next.

A migration only adds, so who is running goes on; who starts on a schema that is not his is refused.
"""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from ascertain import Done, Ledger
from ascertain.core.errors import SchemaMismatch
from ascertain.store import open_store
from ascertain.store.loader import migrations

STARTS = 5  # processes that start on a store that there is not yet
NEXT = {  # what the next version may do: columns and tables that the one before does not know
    "sqlite": "alter table attempt add column more text; create table x (y text) strict;",
    "postgres": "alter table attempt add column more text; create table x (y text);",
}


@pytest.fixture(params=["sqlite", "postgres"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[str, str]]:
    """The kind of a store and its address; there is nothing yet."""
    if request.param == "sqlite":
        yield "sqlite", str(tmp_path / "ledger.db")
    else:
        yield "postgres", request.getfixturevalue("postgres_database")


def next_version(monkeypatch: pytest.MonkeyPatch, kind: str, *, allowed: bool) -> Any:
    """Open as the next version of this package would."""
    newest = migrations(kind)[-1][0]
    steps = [*migrations(kind), (newest + 1, "next.sql", NEXT[kind])]

    def opened(url: str) -> Any:
        with monkeypatch.context() as patch:
            patch.setattr(f"ascertain.store.{kind}.migrations", lambda _: steps)
            return open_store(url, migrate=allowed)

    return opened


def ordering(ledger: Ledger) -> Callable[..., Any]:
    @ledger.action("order", key="{name}", owner="anna", sends_within=1, timeout=5)
    def order(call, *, name):
        return Done(ref=f"ref-{name}")

    return order


@pytest.mark.timeout(60)
def test_who_is_running_goes_on_while_the_next_version_migrates(place, monkeypatch) -> None:
    kind, url = place
    newer = next_version(monkeypatch, kind, allowed=True)
    with Ledger(open_store(url)) as old:
        order, done, wrong = ordering(old), [], []
        stop, warm = threading.Event(), threading.Event()

        def busy() -> None:
            try:
                while not stop.is_set():
                    done.append(order.submit(name=f"old-{len(done)}").state)
                    if len(done) > 20:
                        warm.set()
            except BaseException as error:
                wrong.append(error)
                warm.set()

        threads = [threading.Thread(target=busy) for _ in range(3)]
        for thread in threads:
            thread.start()
        warm.wait(20)
        with Ledger(newer(url)) as new:
            before = len(done)
            assert ordering(new).submit(name="new").state == "done"
            assert [r.state.value for r in new.find(key="old-3")] == ["done"]
            while not wrong and len(done) < before + 20:
                stop.wait(0.02)
        stop.set()
        for thread in threads:
            thread.join()
        assert wrong == []
        assert old.recover().errors == []
        assert old.store.check() == []
        assert len(list(old.store.rows())) > len(done)
        assert {str(state) for state in done} == {"done"}
    with pytest.raises(SchemaMismatch, match="install the version that wrote it"):
        open_store(url)  # started again, it is refused


def test_the_next_version_does_not_migrate_by_itself_where_many_share(place, monkeypatch) -> None:
    kind, url = place
    open_store(url).close()
    with pytest.raises(SchemaMismatch, match="ascertain store migrate"):
        next_version(monkeypatch, kind, allowed=False)(url)
    open_store(url, migrate=False).close()  # nothing was changed


@pytest.mark.timeout(60)
def test_processes_that_start_at_once_make_one_store(place) -> None:
    _, url = place
    command = [sys.executable, "-m", "ascertain.cli.main", "--store", url, "store", "migrate"]
    started = [
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for _ in range(STARTS)
    ]
    said = [process.communicate(timeout=50) for process in started]
    assert [process.returncode for process in started] == [0] * STARTS, said
    store = open_store(url, migrate=False)
    assert store.check() == []
    assert store.meta("secret")
    store.close()

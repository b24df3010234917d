"""Every scenario on every system that starts in seconds: 13 rows, 10 columns.

A cell is played against the real system through a fault proxy, and judged by what the system's own
storage holds. What cannot be played says why. `docs/targets.py` renders what is written here.
"""

from __future__ import annotations

import contextlib
import json
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from ascertain.acceptance import matrix
from ascertain.acceptance.matrix import SCENARIOS, Adapter, Cell, results
from ascertain.acceptance.matrix.expected import DONE, NO_WINDOW, expected
from ascertain.acceptance.matrix.playing import PROTECTED, judge, play, play_all, race
from ascertain.acceptance.systems import (
    Nats,
    Radicale,
    Roundup,
    Smtp,
    System,
    WordPress,
    mail,
    moto,
    packages,
    rclone,
)
from ascertain.acceptance.systems.postgresql import PostgresTable
from postgres import PrivatePostgres

FOUND = Path(__file__).parents[2] / "build" / "targets"
WINDOW = 6.0  # seconds: the stream's memory, long enough for the scenarios inside it

Make = Callable[[Path], contextlib.AbstractContextManager[Adapter]]


def on(adapter: type[Adapter], system: type[System], **more: Any) -> Make:
    @contextlib.contextmanager
    def make(folder: Path) -> Iterator[Adapter]:
        made = system(folder / "system")
        for name, value in more.items():
            setattr(made, name, value)
        with made:
            yield adapter(made)

    return make


@contextlib.contextmanager
def on_postgresql(_: Path) -> Iterator[Adapter]:
    with PrivatePostgres() as server, server.database() as dsn:
        table = PostgresTable(dsn)
        table.set_up()
        yield matrix.Rows(table)


def nothing() -> str:
    return ""


def wordpress() -> str:
    return ", ".join(packages.missing())


SYSTEMS: dict[str, tuple[Make, Callable[[], str]]] = {
    "mail": (on(matrix.Mailbox, mail.Mail), mail.missing),
    "wordpress-media": (on(matrix.Media, WordPress), wordpress),
    "s3-rclone": (on(matrix.Objects, rclone.Rclone), rclone.missing),
    "roundup": (on(matrix.Tickets, Roundup), nothing),
    "nats": (on(matrix.Messages, Nats, window=WINDOW), nothing),
    "wordpress-posts": (on(matrix.Posts, WordPress), wordpress),
    "s3-moto": (on(matrix.ConditionalObjects, moto.Moto), moto.missing),
    "postgresql": (on_postgresql, nothing),
    "radicale": (on(matrix.CalDav, Radicale), nothing),
    "smtp": (on(matrix.MailSink, Smtp), nothing),
}


@contextlib.contextmanager
def started(slug: str) -> Iterator[tuple[Adapter, Path]]:
    make, missing = SYSTEMS[slug]
    if lacking := missing():
        pytest.skip(f"NOT PLAYED: 13 scenarios on {slug}; missing here: {lacking}")
    with tempfile.TemporaryDirectory(prefix="mx-") as made:
        folder = Path(made)
        folder.chmod(0o755)  # servers that refuse root run as somebody else
        with make(folder) as adapter:
            yield adapter, folder


@pytest.mark.timeout(150)
@pytest.mark.parametrize("slug", SYSTEMS)
def test_every_scenario_ends_as_its_ground_says(slug: str) -> None:
    with started(slug) as (adapter, folder):
        assert adapter.slug == slug
        began = time.monotonic()
        cells = play_all(adapter, folder)
        raced = race(adapter)
        found = results.record(adapter, cells, raced, time.monotonic() - began)
    results.write(FOUND, found)
    assert [cell.scenario for cell in cells] == list(SCENARIOS)
    wrong = [f"{cell.scenario}: {text}" for cell in cells for text in cell.failed]
    assert not wrong, "\n".join(wrong)
    protected = adapter.ground in PROTECTED
    assert raced == 1 if protected else raced > 1, "what its contract says of two at once is not so"


# A table that shows only what is right must be able to show what is wrong


@pytest.mark.timeout(60)
def test_a_ledger_that_believes_an_early_absence_is_caught(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("ascertain.core.settle.absence_counts", lambda *_, **__: "")
    with started("s3-rclone") as (adapter, folder):
        [cell] = play_all(adapter, folder, ["late_commit"])
    assert cell.creations == 2
    assert any("no assumption was broken" in text for text in cell.failed)


def test_a_second_creation_needs_a_broken_assumption() -> None:
    for count, broken in ((1, False), (2, True)):
        cell = Cell("normal", creations=count, state="done", who="nobody")
        judge(stub(), cell, [])
        assert bool(cell.failed) is broken
    cell = Cell("recreated", creations=2, state="done", who="nobody")
    judge(stub(), cell, [])
    assert (cell.failed, bool(cell.broken)) == ([], True)
    judge(stub(), cell, ["more was sent"])
    assert cell.failed == ["more was sent"]


def test_what_cannot_be_played_says_why(tmp_path: Path) -> None:
    cell = play(stub(), "window_over", tmp_path)
    assert (cell.impossible, cell.failed, cell.creations) == (NO_WINDOW, [], 0)
    cell = play(stub(), "denied", tmp_path)
    assert cell.impossible == "nobody can be asked"


def test_a_scenario_that_breaks_off_is_a_failure(tmp_path: Path) -> None:
    cell = play(stub(), "normal", tmp_path)
    assert "no proxy here" in cell.failed[0]


@pytest.mark.parametrize("ground", ["identified", "idempotent", "searchable", "delivered"])
def test_every_ground_says_how_every_scenario_ends(ground: Any) -> None:
    for scenario in SCENARIOS:
        wanted, broken = expected(ground, scenario, {})
        assert (wanted.creations > 1) is bool(broken)
    assert expected(ground, "normal", {})[0] is DONE


def test_results_are_written_whole_and_read_back(tmp_path: Path) -> None:
    found = results.record(stub(), [Cell("normal", 1, "done", "nobody", seconds=1.26)], 8, 2.04)
    results.write(tmp_path, found)
    assert results.read(tmp_path) == {"stub": json.loads(json.dumps(found))}
    assert (found["seconds"], found["cells"][0]["seconds"]) == (2.0, 1.3)
    assert results.passed(found)
    assert not results.passed(found | {"cells": [{"failed": ["no"]}]})
    assert [file.name for file in tmp_path.iterdir()] == ["stub.json"]


def stub() -> Any:
    class Stub(matrix.TcpAdapter):
        slug, title, contract = "stub", "a stub", "none.opaque"
        ground: Any = "searchable"
        method = "PUT"
        impossible = {"denied": "nobody can be asked"}  # noqa: RUF012

        def proxy(self) -> Any:
            raise RuntimeError("no proxy here")

        def place(self, port: int, look: Any = "") -> dict[str, Any]:
            return {"port": port}

        @classmethod
        def declare(cls, ledger: Any, times: Any, place: Any) -> Any:
            raise NotImplementedError

        def put(self, key: str, mark: str) -> None:
            raise NotImplementedError

        def delete(self, key: str) -> None:
            raise NotImplementedError

    return Stub(None)

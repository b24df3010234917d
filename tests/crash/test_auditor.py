"""The auditor finds each kind of wrong in books that are sound but for one thing."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from crash import auditor
from crash.auditor import Books, audit
from crash.driver import Journal, Key
from crash.outside import Outside
from crash.worker import Plan

FOUND, ALONE = ("searchable", "1"), ("opaque", "2")


@dataclass
class World:
    """Two operations, both done, both told; each test spoils one thing."""

    folder: Path
    journal: Journal = field(default_factory=Journal)
    books: Books = field(default_factory=Books)

    def happen(self, key: Key) -> str:
        return Outside(self.folder).add(*key, "worker")

    def do(self, key: Key) -> None:
        ref = self.happen(key)
        self.journal.begin(key)
        self.journal.hear(key, "done", ref)
        self.books.operations[key] = {
            "action": f"crash.{key[0]}", "key": key[1], "state": "done", "ref": ref,
            "waiting_on": "nothing", "confirmed_by": "answer", "said": "done",
        }  # fmt: skip

    def review(self, key: Key, road: str) -> None:
        self.books.reviews.append(
            {"of": self.books.operations[key], "road": road, "closed_at": None}
        )

    def is_now(self, key: Key, **status: Any) -> None:
        self.books.operations[key] |= status


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    Outside(tmp_path).prepare()
    made = World(tmp_path)
    made.do(FOUND)
    made.do(ALONE)
    monkeypatch.setattr(auditor.Books, "read", lambda _: made.books)
    return made


def found(world: World, gap_from: float | None = None) -> set[str]:
    return set(audit(Plan("", str(world.folder)), world.journal, gap_from=gap_from).violations)


def test_sound_books(world: World) -> None:
    assert found(world) == set()


@pytest.mark.parametrize(
    ("spoil", "kinds"),
    [
        (lambda w: w.happen(FOUND), {"duplicated"}),
        (lambda w: w.happen(("opaque", "3")), {"not recorded"}),
        (lambda w: w.journal.begin(("opaque", "3")), {"not recorded"}),
        (lambda w: w.books.operations.pop(FOUND), {"not recorded", "lost"}),
        (lambda w: w.is_now(FOUND, ref="other"), {"lost", "wrongly done"}),
        (lambda w: w.is_now(FOUND, state="unknown"), {"lost", "left open"}),
        (lambda w: w.is_now(FOUND, state="pending"), {"lost", "left open", "hidden"}),
        (lambda w: w.is_now(ALONE, state="unknown", waiting_on="review"), {"lost"}),
        (lambda w: w.journal.begun.pop(ALONE), {"invented"}),
        (lambda w: w.journal.hear(FOUND, "done", "other"), {"other reference"}),
        (lambda w: w.journal.broken.append("a worker ended with 1"), {"broken"}),
        (lambda w: w.journal.errors.update(["IOError"]), {"odd error"}),
        (lambda w: w.books.wrong.append("no status"), {"store check"}),
        (lambda w: w.review(FOUND, "unknown"), {"needed a person"}),
        (lambda w: w.review(ALONE, "duplicate"), {"needed a person"}),
    ],
)  # fmt: skip
def test_one_thing_that_is_wrong(
    world: World, spoil: Callable[[World], Any], kinds: set[str]
) -> None:
    spoil(world)
    assert found(world) == kinds


def test_an_effect_that_was_never_made(world: World) -> None:
    world.journal.begin(("opaque", "3"))
    world.journal.hear(("opaque", "3"), "done", "made-up")
    world.books.operations["opaque", "3"] = world.books.operations[ALONE] | {"key": "3"}
    assert {"lost", "wrongly done"} <= found(world)


def test_what_may_wait_for_a_person_after_writes_were_lost(world: World) -> None:
    world.is_now(ALONE, state="unknown", waiting_on="review")
    assert found(world, gap_from=0.0) == set()  # acknowledged within the gap
    world.is_now(FOUND, state="unknown", waiting_on="review")
    assert "lost" in found(world, gap_from=0.0)  # it has a look-up

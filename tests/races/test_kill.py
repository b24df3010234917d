"""A worker killed at every point between claim and settle, and within recovery, on both stores.

For each point a worker of its own, in a namespace of its own, all at once; then one recovery.
Whatever the point: one effect, nothing lost, nothing left in between.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ascertain import Ledger, State, open_store
from ascertain.runtime import recovery
from races import killed
from shop import CONTROL

HERE = Path(__file__).parent
KINDS = ["searchable", "identified", "idempotent"]
BOUND = 15.0


@pytest.fixture(params=["sqlite", "postgres"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return str(tmp_path / "ledger.db")
    return str(request.getfixturevalue("postgres_database"))


class Field:
    """The store and the target of one test, with a ledger for each namespace."""

    def __init__(self, folder: Path, url: str, kind: str) -> None:
        self.folder, self.url, self.kind = folder, url, kind
        self.target = killed.target_of(str(folder), kind)
        self.target.put(CONTROL)
        self.ledgers: dict[str, Ledger] = {}

    def ledger(self, namespace: str) -> Ledger:
        if namespace not in self.ledgers:
            made = Ledger(open_store(self.url), namespace=namespace)
            made.order = killed.order_of(made, self.target, self.kind)
            self.ledgers[namespace] = made
        return self.ledgers[namespace]

    def close(self) -> None:
        for ledger in self.ledgers.values():
            ledger.close()

    def work(self, told: list[dict[str, Any]]) -> list[int | None]:
        """Run workers, a few at a time; each one's points, or None where it was killed."""
        given = {"url": self.url, "folder": str(self.folder), "kind": self.kind}
        done = subprocess.run(
            [sys.executable, str(HERE / "killed.py"), json.dumps([given | t for t in told])],
            env=os.environ | {"PYTHONPATH": os.pathsep.join([str(HERE.parent), *sys.path])},
            stdout=subprocess.PIPE,
            timeout=50,
            check=True,
        )
        ended = json.loads(done.stdout)
        assert all(end == -9 or 0 <= end < 255 for end in ended), ended
        return [None if end == -9 else end for end in ended]

    def until_quiet(self, namespaces: list[str]) -> None:
        end = time.monotonic() + BOUND
        while namespaces:
            assert time.monotonic() < end, namespaces
            for namespace in namespaces[:]:
                ledger = self.ledger(namespace)
                assert not ledger.recover().errors
                if all(r.due_at is None for r in ledger.find(unsettled=True)):
                    namespaces.remove(namespace)
            time.sleep(0.02)

    def judge(self, namespace: str, why: str) -> None:
        ledger = self.ledger(namespace)
        found = ledger.find()
        if not found:  # killed before the intent was durable: the caller submits again
            found = [ledger.order.submit(order="7")]
        [receipt] = found
        effects = self.target.effects(receipt.target_key)
        assert len(effects) == 1, why
        assert (receipt.state, receipt.ref) == (State.DONE, effects[0][2]), why
        assert ledger.reviews() == [], why


@pytest.fixture
def field(tmp_path: Path, url: str, kind: str, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr(recovery, "HOLD", killed.HOLD)
    made = Field(tmp_path, url, kind)
    yield made
    made.close()


@pytest.mark.timeout(60)
@pytest.mark.parametrize("kind", KINDS)
def test_a_caller_killed_at_every_point(field: Field) -> None:
    [points] = field.work([{"do": "submit", "namespace": "all", "at": 0}])
    assert points == 6  # a write, the code, a send, a write; before and after each
    told = [{"do": "submit", "namespace": f"n{n}", "at": n} for n in range(1, points + 1)]
    assert field.work(told) == [None] * points
    before = {t["namespace"]: field.ledger(t["namespace"]).find() for t in told}
    assert before["n1"] == []  # killed before the intent: nothing was sent
    assert not field.target.requests(field.ledger("n1").engine.target_key("shop.order", "7", 1))
    field.until_quiet([t["namespace"] for t in told])
    for t in told:
        field.judge(t["namespace"], f"killed at point {t['at']}")


def lost(field: Field, namespace: str, fate: str) -> None:
    field.target.script(fate)
    receipt = field.ledger(namespace).order.submit(order="7", wait=-1)
    assert receipt.state in (State.UNKNOWN, State.DONE, State.PENDING)


@pytest.mark.timeout(60)
@pytest.mark.parametrize("fate", ["gone", "refuse:transient"])
@pytest.mark.parametrize("kind", KINDS[:2])
def test_a_recovery_killed_at_every_point(field: Field, fate: str) -> None:
    most = 14
    names = [f"n{n}" for n in range(1, most + 1)]
    for name in names:
        lost(field, name, fate)
    time.sleep(killed.LEASE + killed.LATE)
    told = [{"do": "recover", "namespace": f"n{n}", "at": n} for n in range(1, most + 1)]
    ended = field.work(told)
    assert None in ended
    field.until_quiet(names[:])
    for name, end in zip(names, ended, strict=True):
        field.judge(name, f"{name}: killed" if end is None else f"{name}: {end} points")


def test_the_instrument_counts(tmp_path: Path) -> None:
    points = killed.Points(0)
    grown: Callable[[int], int] = points.around(lambda x: x + 1)
    assert grown(1) == 2
    assert points.seen == 2

"""The eight scenarios on which every peer fails one way or the other (docs: peers).

Each is played on both stores, with real processes, kill -9 and SIGSTOP, while recovery runs.
Whatever the order of things: one effect. The counting target keeps them in a file of its own.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from ascertain import Receipt, State
from peers import worker
from shop import CONTROL, open_real

HERE = Path(__file__).parent
KINDS = ["searchable", "identified", "idempotent"]
BOUND = 30.0  # seconds for everything to be known


class Stage:
    """One store, one target, callers in processes, and a recovery loop in this one."""

    def __init__(self, folder: Path, url: str, kind: str) -> None:
        self.folder, self.url, self.kind = folder, url, kind
        self.target = worker.target(str(folder), kind)
        self.target.put(CONTROL)
        self.ledger = open_real(url)
        self.order = worker.action(self.ledger, self.target, kind)
        self.key = self.ledger.engine.target_key("shop.order", "7", 1)
        self.running: list[subprocess.Popen[str]] = []

    def close(self) -> None:
        for process in self.running:
            if process.stdout and not process.stdout.closed:
                self.kill(process)
        self.ledger.close()

    # --- callers ---

    def submit(self, wait: float = 0) -> Receipt:
        return self.order.submit(order="7", wait=wait)

    def start(self, **told: Any) -> subprocess.Popen[str]:
        given = {"url": self.url, "folder": str(self.folder), "kind": self.kind, "order": "7"}
        process = subprocess.Popen(
            [sys.executable, str(HERE / "worker.py"), json.dumps(given | told)],
            env=os.environ | {"PYTHONPATH": os.pathsep.join([str(HERE.parent), *sys.path])},
            stdout=subprocess.PIPE,
            text=True,
        )
        self.running.append(process)
        return process

    def kill(self, process: subprocess.Popen[str]) -> None:
        process.send_signal(signal.SIGKILL)
        process.communicate()

    def frozen(self, freeze: str) -> subprocess.Popen[str]:
        """A caller that has stopped itself in the middle of its action."""
        process = self.start(freeze=freeze)
        os.waitid(os.P_PID, process.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)
        return process

    def thaw(self, process: subprocess.Popen[str]) -> None:
        process.send_signal(signal.SIGCONT)
        process.communicate(timeout=BOUND)
        assert process.returncode == 0

    # --- what is seen ---

    def until(self, seen: Callable[[], object]) -> None:
        end = time.monotonic() + BOUND
        while not seen():
            assert time.monotonic() < end, "did not come to be"
            time.sleep(0.02)

    def arrived(self) -> bool:
        return self.target.requests(self.key) > 0

    def get(self) -> Receipt:
        return self.ledger.find(action="shop.order", key="7")[0]

    def recover(self) -> Receipt:
        """Recover until nobody but a person is next."""

        def quiet() -> bool:
            report = self.ledger.recover()
            assert not report.errors, report.errors
            return all(r.due_at is None for r in self.ledger.find(unsettled=True))

        self.until(quiet)
        return self.get()


@pytest.fixture(params=["sqlite", "postgres"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return str(tmp_path / "ledger.db")
    return str(request.getfixturevalue("postgres_database"))


@pytest.fixture(params=KINDS)
def stage(
    request: pytest.FixtureRequest, tmp_path: Path, url: str, record_property: Any
) -> Iterator[Stage]:
    made = Stage(tmp_path, url, request.param)
    yield made
    try:
        end = made.recover()
        person = bool(made.ledger.reviews()) or end.due_at is not None
        record_property("peer", (made.kind, person))
        effects = made.target.effects(made.key)
        assert len(effects) == 1, effects
        assert end.state is State.DONE
        assert end.ref == effects[0][2]
        assert not person
    finally:
        made.close()


def test_1_normal(stage: Stage) -> None:
    done = stage.submit()
    assert done.done
    assert not done.reused


def test_2_duplicate(stage: Stage) -> None:
    first, second = stage.submit(), stage.submit()
    assert second.reused
    assert second.ref == first.ref
    assert stage.target.requests(stage.key) == 1


def test_3a_timeout_after_the_effect_then_retry(stage: Stage) -> None:
    stage.target.script("hang")
    assert stage.submit().state in (State.UNKNOWN, State.DONE)
    stage.submit()


def test_3b_reset_after_the_effect_then_retry(stage: Stage) -> None:
    stage.target.script("drop")
    assert stage.submit().state in (State.UNKNOWN, State.DONE)
    stage.submit()


def test_4a_eight_threads(stage: Stage) -> None:
    stage.target.script("slow:0.2")
    with ThreadPoolExecutor(8) as pool:
        done = list(pool.map(lambda _: stage.submit(wait=5), range(8)))
    assert len({r.ref for r in done}) == 1
    assert all(r.done for r in done)
    assert stage.target.requests(stage.key) == 1


def test_4b_four_processes(stage: Stage) -> None:
    stage.target.script("slow:0.2")
    processes = [stage.start(wait=5) for _ in range(4)]
    done = [json.loads(p.communicate(timeout=BOUND)[0]) for p in processes]
    assert {r["state"] for r in done} == {"done"}
    assert len({r["ref"] for r in done}) == 1
    assert stage.target.requests(stage.key) == 1


def test_5_killed_after_the_effect_and_run_again_at_once(stage: Stage) -> None:
    stage.target.script("block")
    process = stage.start()
    stage.until(stage.arrived)
    stage.kill(process)
    again = stage.submit()
    assert again.state is State.RUNNING
    assert again.waiting_on != ""


def test_5b_killed_after_the_effect_and_run_again_after_the_lease(stage: Stage) -> None:
    stage.target.script("block")
    process = stage.start()
    stage.until(stage.arrived)
    stage.kill(process)
    time.sleep(worker.LEASE)
    assert stage.submit(wait=5).done


def test_6_slow_caller_past_its_lease(stage: Stage) -> None:
    stage.target.script("slow:1.2")  # twice the lease, within the lateness
    process = stage.start()
    stage.until(stage.arrived)
    stage.until(lambda: stage.get().due_at <= stage.ledger.store.now())
    stage.submit()
    stage.recover()
    process.communicate(timeout=BOUND)


def test_7_killed_and_the_target_commits_late(stage: Stage) -> None:
    stage.target.script("block:1.0")
    process = stage.start()
    stage.until(stage.arrived)
    stage.kill(process)
    assert not stage.target.effects(stage.key)
    time.sleep(worker.LEASE)
    stage.submit()


def test_8a_frozen_before_it_sent_run_again_and_thawed(stage: Stage) -> None:
    process = stage.frozen("before")
    stage.submit()
    stage.recover()
    assert len(stage.target.effects(stage.key)) == 1
    stage.thaw(process)


def test_8b_frozen_after_its_look_at_the_time_and_thawed_within_the_lateness(
    stage: Stage,
) -> None:
    process = stage.frozen("between")
    stage.until(lambda: stage.get().due_at <= stage.ledger.store.now())
    stage.ledger.recover()
    stage.thaw(process)


def test_8c_frozen_for_longer_than_assumed_is_found_and_shown(
    tmp_path: Path, url: str, request: pytest.FixtureRequest
) -> None:
    """Beyond the printed assumption a second effect is possible, but never silent."""
    stage = Stage(tmp_path, url, "searchable")
    try:
        process = stage.frozen("between")
        stage.recover()
        stage.thaw(process)
        stage.recover()
        assert len(stage.target.effects(stage.key)) == 2
        assert [r.road for r in stage.ledger.reviews()] == ["duplicate"]
        assert len(stage.ledger.references(stage.get())) == 2
    finally:
        stage.close()

"""The chores of a worker: none holds up another, none is done by more threads than its own, and
all of them end in time."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from ascertain.runtime.chores import Chore, Runner
from ascertain.runtime.clock import Clock
from ascertain.runtime.telemetry import telemetry

WITHIN = 10.0


def until(holds: Callable[[], Any]) -> None:
    end = time.monotonic() + WITHIN
    while not holds():
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.005)


@contextmanager
def running(*chores: Chore, threads: int = 4) -> Iterator[Runner]:
    runner = Runner(chores, threads=threads)
    runner.start()
    try:
        yield runner
    finally:
        runner.stop(WITHIN)


class Counted:
    """A chore that counts how often and by how many at a time it is done."""

    def __init__(self, name: str, *, every: float = 0.01, at_once: int = 1, work: Any = None):
        self.done = self.now = self.most = 0
        self._work = work or (lambda: 0)
        self._lock = threading.Lock()
        self.chore = Chore(name=name, every=every, run=self._run, at_once=at_once)

    def _run(self) -> int:
        with self._lock:
            self.now += 1
            self.most = max(self.most, self.now)
        try:
            return self._work()
        finally:
            with self._lock:
                self.now -= 1
                self.done += 1


def test_a_chore_that_fails_stops_no_other_and_waits_longer_each_time() -> None:
    told: list[tuple[str, Any]] = []
    ended = telemetry.listen(lambda event, facts: told.append((event, facts)))

    def fail() -> int:
        raise ValueError("no such thing")

    bad, good = Counted("bad", work=fail), Counted("good")
    with running(bad.chore, good.chore):
        until(lambda: bad.done >= 3 and good.done >= 50)
    ended()
    assert bad.done * 4 < good.done
    failed = [facts for event, facts in told if event == "chore.failed"]
    assert {facts["chore"] for facts in failed} == {"bad"}
    assert "no such thing" in failed[0]["error"]


def test_a_slow_chore_holds_up_no_other_and_is_done_by_its_own_threads_only() -> None:
    gate = threading.Event()
    slow = Counted("slow", at_once=2, work=lambda: int(gate.wait(WITHIN)) * 0)
    good = Counted("good")
    with running(slow.chore, good.chore):
        until(lambda: slow.now == 2)
        before = good.done
        until(lambda: good.done > before + 20)
        assert slow.most == 2
        gate.set()


def test_what_did_something_is_done_again_at_once() -> None:
    left = [5]

    def some() -> int:
        left[0] -= left[0] > 0
        return left[0]

    busy = Counted("busy", every=60, work=some)
    with running(busy.chore):
        until(lambda: busy.done == 5)


def test_many_chores_share_a_bounded_number_of_threads() -> None:
    counted = [Counted(f"c{n}") for n in range(20)]
    before = threading.active_count()
    with running(*(one.chore for one in counted), threads=3):
        until(lambda: all(one.done >= 3 for one in counted))
        assert threading.active_count() - before <= 3


def test_a_long_turn_is_told_to_end_where_others_wait_for_a_thread() -> None:
    runner_of: list[Runner] = []
    turns: list[float] = []

    def long() -> int:
        clock, began = Clock(), time.monotonic()
        since = clock.boottime()
        while not runner_of[0].ended(since) and time.monotonic() - began < WITHIN:
            time.sleep(0.01)
        turns.append(time.monotonic() - began)
        return 0

    good = Counted("good")
    chore = Chore(name="long", every=0.01, run=long)
    runner = Runner([chore, good.chore], threads=1)
    runner_of.append(runner)
    runner.start()
    until(lambda: good.done >= 3)
    assert runner.stop(WITHIN)
    assert max(turns) < 3  # half a second, on an idle machine


def test_a_stop_begins_nothing_new_and_says_whether_all_has_ended() -> None:
    gate, entered = threading.Event(), threading.Event()

    def stuck() -> int:
        entered.set()
        gate.wait(WITHIN)
        return 1

    counted = Counted("stuck", work=stuck)
    runner = Runner([counted.chore])
    runner.start()
    entered.wait(WITHIN)
    runner.hurry()
    assert runner.stopping
    gate.set()
    assert runner.stop(WITHIN)
    assert counted.done == 1


def test_once_does_what_is_due_until_nothing_more_is() -> None:
    left = {"a": 3, "b": 0}

    def some(name: str) -> int:
        left[name] -= left[name] > 0
        return left[name]

    counted = [Counted(name, work=lambda name=name: some(name)) for name in left]
    assert Runner([one.chore for one in counted]).once() == 3
    assert [one.done for one in counted] == [3, 1]


@pytest.mark.parametrize("threads", [1, 4])
def test_one_that_is_added_later_is_done_too(threads: int) -> None:
    first, later = Counted("first"), Counted("later")
    with running(first.chore, threads=threads) as runner:
        until(lambda: first.done)
        runner.add(later.chore)
        until(lambda: later.done)

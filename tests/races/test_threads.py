"""The same key by many at once; many keys by many workers: nothing is claimed twice."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from ascertain import Done, Ledger, open_store
from counting import Target
from races import killed
from shop import CONTROL, Shop, declared, register

HERE = Path(__file__).parent
WORKERS, OPERATIONS, ROUNDS = 4, 200, 5


@pytest.fixture(params=["sqlite", "postgres"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return str(tmp_path / "ledger.db")
    return str(request.getfixturevalue("postgres_database"))


@pytest.fixture
def ledgers(url: str) -> Iterator[list[Ledger]]:
    """Several ledgers on one database, as several processes have them."""
    made = [Ledger(open_store(url), worker=f"worker-{n}") for n in range(WORKERS)]
    yield made
    for ledger in made:
        ledger.close()


@pytest.fixture
def target(tmp_path: Path) -> Target:
    made = Target(tmp_path / "target.db")
    made.put(CONTROL)
    return made


def test_the_same_key_by_many_threads_of_many_ledgers(
    ledgers: list[Ledger], target: Target
) -> None:
    orders = [register(ledger, target) for ledger in ledgers]
    barrier = threading.Barrier(16)

    def submit(n: int) -> Any:
        barrier.wait()
        return orders[n % WORKERS].submit(order=1, wait=10)

    with ThreadPoolExecutor(16) as pool:
        done = list(pool.map(submit, range(16)))
    assert len({(r.id, r.ref) for r in done}) == 1
    assert [r.reused for r in done].count(False) == 1
    assert target.requests(done[0].target_key) == 1


def test_many_keys_by_many_threads_each_twice(ledgers: list[Ledger], target: Target) -> None:
    orders = [register(ledger, target) for ledger in ledgers]
    with ThreadPoolExecutor(8) as pool:
        done = list(
            pool.map(lambda n: orders[n % WORKERS].submit(order=n // 2, wait=10), range(80))
        )
    assert all(r.done for r in done)
    assert len(target.effects()) == 40 + 1  # and the control


def test_the_same_key_by_many_processes(url: str, tmp_path: Path) -> None:
    target = killed.target_of(str(tmp_path), "searchable")
    target.put(CONTROL)
    told = {"url": url, "folder": str(tmp_path), "kind": "searchable", "at": 0}
    open_store(url).close()
    job = told | {"do": "submit", "namespace": "default"}
    subprocess.run(
        [sys.executable, str(HERE / "killed.py"), json.dumps([job] * 4)],
        env=os.environ | {"PYTHONPATH": os.pathsep.join([str(HERE.parent), *sys.path])},
        check=True,
        stdout=subprocess.DEVNULL,
        timeout=15,
    )
    assert len(target.effects()) == 1 + 1


@pytest.mark.timeout(60)
def test_br_097_four_workers_two_hundred_operations_five_rounds(
    postgres_database: str,
) -> None:
    """Effects are counted in memory by target key, so that the claims are what is measured."""
    sent: list[str] = []
    ledgers = [Ledger(open_store(postgres_database)) for _ in range(WORKERS)]
    for ledger in ledgers:

        @ledger.action("mail.send", **declared("opaque"))
        def mail(call, *, order):
            sent.append(call.target_key)
            return Done(ref=call.target_key)

        ledger.mail = mail
    for turn in range(ROUNDS):
        with ThreadPoolExecutor(8) as pool:
            jobs = range(turn * OPERATIONS, (turn + 1) * OPERATIONS)
            list(pool.map(lambda n: ledgers[n % WORKERS].mail.enqueue(order=n), jobs))
        with ThreadPoolExecutor(WORKERS) as pool:
            worked = [r.worked for r in pool.map(lambda ledger: ledger.recover(), ledgers)]
        assert sum(worked) == OPERATIONS
        assert len(sent) == len(set(sent)) == (turn + 1) * OPERATIONS
    assert ledgers[0].find(unsettled=True) == []
    for ledger in ledgers:
        ledger.close()


def test_two_recoveries_at_once_recover_each_once(tmp_path: Path) -> None:
    with Shop(tmp_path) as shop:
        lost = []
        for n in range(40):
            shop.target.script("gone" if n % 2 else "hang")
            lost.append(shop.order.submit(order=n, wait=-1))
        shop.clock.advance(30)
        workers = [shop.another() for _ in range(2)]
        for worker in workers:
            register(worker, shop.target)
        with ThreadPoolExecutor(2) as pool:
            reports = list(pool.map(lambda w: w.recover(), workers))
        assert not [e for r in reports for e in r.errors]
        shop.settle()
        assert [shop.effects(r) for r in lost] == [1] * 40
        assert all(shop.get(r).done for r in lost)
        told = [r.operation for report in reports for r in report.recovered]
        assert len(told) == len(set(told))


def test_a_background_worker_beside_callers(ledgers: list[Ledger], target: Target) -> None:
    orders = [register(ledger, target, late=0.2, lease=2, first_delay=0.05) for ledger in ledgers]
    for ledger in ledgers[:2]:
        ledger.start_worker(every=0.02)
    target.script(*["ok", "hang", "refuse:transient", "drop"] * 10)
    with ThreadPoolExecutor(8) as pool:
        done = list(pool.map(lambda n: orders[n % WORKERS].submit(order=n, wait=0.1), range(40)))
    end = time.monotonic() + 12
    while ledgers[0].find(unsettled=True):
        assert time.monotonic() < end
        time.sleep(0.02)
    assert [len(target.effects(r.target_key)) for r in done] == [1] * 40
    assert ledgers[0].reviews() == []

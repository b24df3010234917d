"""SQLite on a disk that fails, fills up, or loses its power: at every write and every sync."""

from __future__ import annotations

import random
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ascertain import Ledger, Receipt, StoreError, StoreUnavailable
from ascertain.store.sqlite import SqliteStore
from crash.disk import FailingDisk
from shop import Shop, register

OPERATIONS = 3
SYNCS = 2 * OPERATIONS  # a claim and a settlement each, when nothing fails
EVERY = {"sync": 1, "write": 3, "full": 3}  # places: a page is two writes, so both are met
PLACES = 300


@pytest.fixture
def disk() -> Iterator[FailingDisk]:
    with FailingDisk() as made:
        yield made


class Case:
    """Operations on a failing disk: what was acknowledged, and what was raised."""

    def __init__(self, folder: Path, disk: FailingDisk) -> None:
        folder.mkdir()
        disk.lies_in(folder)
        self.folder, self.disk = folder, disk
        self.shop = Shop(folder)
        self.done: dict[int, Receipt] = {}
        self.raised: list[StoreError] = []

    def submit(self, numbers: range) -> None:
        """Submit each once; only errors of the library may come out."""
        for number in numbers:
            try:
                receipt = self.shop.order.submit(order=number, wait=0)
            except StoreError as error:
                self.raised.append(error)
            else:
                assert receipt.done
                self.done[number] = receipt
        assert {type(error) for error in self.raised} <= {StoreUnavailable}
        assert all(str(self.folder / "ledger.db") in str(error) for error in self.raised)

    def opened_again(self, path: Path) -> tuple[Ledger, Any]:
        ledger = Ledger(SqliteStore(path, clock=self.shop.clock.wall), clock=self.shop.clock)
        self.shop.ledgers.append(ledger)
        return ledger, register(ledger, self.shop.target)

    def judge(self, path: Path) -> None:
        """Open what is left: nothing acknowledged is lost, no effect is without its intent, and
        after recovery and another call each has happened once."""
        ledger, order = self.opened_again(path)
        held = {receipt.key: receipt for receipt in ledger.find(limit=1000)}
        for number, receipt in self.done.items():
            assert held[str(number)].done
            assert held[str(number)].ref == receipt.ref
        known = {receipt.target_key for receipt in held.values()}
        assert {key for key, _, _ in self.shop.target.effects() if key != "control"} <= known
        assert ledger.store.check() == []
        self.shop.settle(ledger)
        for number in range(OPERATIONS * 2):
            order.submit(order=number, wait=0)
        self.shop.settle(ledger)
        for number in range(OPERATIONS * 2):
            [receipt] = ledger.find(key=str(number))
            assert receipt.done
            assert self.shop.effects(receipt) == 1
        assert ledger.reviews() == []


def until_it_no_longer_fails(tmp_path: Path, disk: FailingDisk, *armed: str) -> Iterator[Case]:
    """One case for each place at which the disk fails once; ends after the last."""
    what, path = armed
    for at in range(1, PLACES, EVERY[what]):
        with_one = Case(tmp_path / f"at-{at}", disk)
        before = len(disk.failed)
        disk.arm(what, at, path)
        with_one.submit(range(OPERATIONS))
        disk.heal()
        if len(disk.failed) == before:
            assert with_one.raised == []
            assert at > SYNCS
            with_one.shop.ledger.close()
            return
        assert len(with_one.raised) >= 1
        yield with_one
        for ledger in with_one.shop.ledgers:
            ledger.close()
    pytest.fail("the disk failed at every place")


@pytest.mark.timeout(60)
@pytest.mark.parametrize("what", ["sync", "write"])
def test_a_disk_that_fails_once_at_every_place(
    tmp_path: Path, disk: FailingDisk, what: str
) -> None:
    """The store says so and sends nothing more; what the power cut leaves holds every promise."""
    for case in until_it_no_longer_fails(tmp_path, disk, what, "-wal"):
        sent = len(case.shop.target.effects())
        case.submit(range(OPERATIONS, OPERATIONS + 1))
        assert len(case.raised) >= 2
        assert len(case.shop.target.effects()) == sent
        assert all("disk" in str(error) and "start again" in str(error) for error in case.raised)
        left = disk.after_power_cut(case.folder / "after")
        case.judge(left)


@pytest.mark.timeout(60)
def test_a_disk_that_is_full_once_at_every_place(tmp_path: Path, disk: FailingDisk) -> None:
    """It says so, is usable as soon as there is room, and nothing is lost on either way."""
    for case in until_it_no_longer_fails(tmp_path, disk, "full", "-wal"):
        assert all("is full, nothing was written" in str(error) for error in case.raised)
        assert len(case.raised) == 1
        case.submit(range(OPERATIONS, OPERATIONS * 2))
        assert len(case.raised) == 1
        left = disk.after_power_cut(case.folder / "after")
        case.judge(left)


@pytest.mark.parametrize("path", ["-wal", "ledger.db"])
def test_a_checkpoint_whose_sync_fails(tmp_path: Path, disk: FailingDisk, path: str) -> None:
    """The log is not begun anew over what did not reach the file."""
    case = Case(tmp_path / "case", disk)
    case.submit(range(2))
    writer = case.shop.ledger.store._write_connection()
    writer.ask("pragma wal_autocheckpoint = 1")
    disk.arm("sync", 2 if path == "-wal" else 1, path)
    case.submit(range(2, OPERATIONS))
    assert disk.failed == [f"sync {'ledger.db-wal' if path == '-wal' else path}"]
    case.judge(disk.after_power_cut(case.folder / "after"))
    for ledger in case.shop.ledgers:
        ledger.close()


def done_in(path: Path, receipts: list[Receipt]) -> list[bool]:
    """Tell which of these operations are done in a store, which must be sound."""
    store = SqliteStore(path)
    assert store.check() == []
    kept = store.snapshots([receipt.id for receipt in receipts])
    store.close()
    return [r.id in kept and kept[r.id].status.state == "done" for r in receipts]


def cut_at_random(tmp_path: Path, disk: FailingDisk, cuts: int, pragma: str = "") -> int:
    """Cut the power at random moments while four threads act; count what was acknowledged and
    is not done in what is left."""
    chance, missing = random.Random(7), 0
    case = Case(tmp_path / "case", disk)
    if pragma:
        case.shop.ledger.store._write_connection().ask(pragma)
    told: list[Receipt] = []
    stop = threading.Event()

    def act(thread: int) -> None:
        number = 0
        while not stop.is_set():
            told.append(case.shop.order.submit(order=f"{thread}-{number}", wait=0))
            number += 1

    threads = [threading.Thread(target=act, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    try:
        for cut in range(cuts):
            stop.wait(chance.uniform(0.01, 0.08))
            before = list(told)  # whoever holds these was told before the power went
            left = disk.after_power_cut(case.folder / f"cut-{cut}", chance if cut % 2 else None)
            missing += sum(not kept for kept in done_in(left, before))
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    assert len(told) > cuts
    case.shop.ledger.close()
    return missing


@pytest.mark.timeout(60)
def test_the_power_is_cut_at_random_moments(tmp_path: Path, disk: FailingDisk) -> None:
    assert cut_at_random(tmp_path, disk, 12) == 0


@pytest.mark.timeout(60)
def test_a_store_that_does_not_wait_for_the_disk_is_seen(tmp_path: Path, disk: FailingDisk) -> None:
    """The instrument can fail: without the sync at each commit the same cuts lose much."""
    assert cut_at_random(tmp_path, disk, 6, "pragma synchronous = normal") > 0

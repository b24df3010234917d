"""Acknowledged but lost must be impossible: the server is killed at every step, and started anew.

Real processes, SIGKILL, a real store. Whatever was answered 200 has its operations, each exactly
once; what was not may be delivered again.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest

from ascertain import open_store
from ascertain.core.books import Event
from ascertain.runtime.intake import EventLine
from ascertain.store.base import Filter
from server import mortal, signing
from server.hooked import ENVIRON, body
from server.house import SHOP

WITHIN = 15.0  # seconds in which a restarted server has processed everything
KILLS, SENDERS = 3, 4
TWO = """
[hooks.shop]
kind = "shopify"
secrets = [{ env = "SECRET" }]
[[hooks.shop.map]]
action = "order"
each = "body.items"
input = { name = "join('-', [id, item])" }
"""
ITEMS = body(items=["A", "B"])
# On PostgreSQL those where the two could differ. Delivered again: what was not acknowledged.
ON_POSTGRES = (mortal.POINTS[1], mortal.POINTS[3], mortal.POINTS[4])
STEPS = [
    *(("sqlite", point, False) for point in mortal.POINTS),
    *(("sqlite", point, True) for point in mortal.POINTS[:2]),
    *(("postgres", point, False) for point in ON_POSTGRES),
]
NEWEST = {"before_at": 2**62, "before_source": "", "before_id": ""}


class Place:
    """A store and a configuration that processes share, and outlive."""

    def __init__(self, folder: Path, store: str) -> None:
        self.config, self.store = folder / "ascertain.toml", store
        self.config.write_text(SHOP.format(target="http://127.0.0.1:1") + TWO, "utf-8")

    @contextmanager
    def server(self, point: str = "") -> Iterator[tuple[subprocess.Popen[str], str]]:
        command = [sys.executable, "-m", "server.mortal", str(self.config), self.store, point]
        tests = str(Path(__file__).parents[1])
        environ = os.environ | ENVIRON | {"PYTHONPATH": tests}
        with subprocess.Popen(command, env=environ, stdout=subprocess.PIPE, text=True) as running:
            assert running.stdout is not None
            try:
                yield running, f"http://127.0.0.1:{int(running.stdout.readline())}"
            finally:
                running.kill()

    def events(self) -> dict[str, Event]:
        with_store = open_store(self.store)
        try:
            lines = with_store.ask(
                EventLine, "events_listed", namespace="default", source=None, state=None,
                topic=None, subject=None, since=0, limit=1000, **NEWEST,
            )  # fmt: skip
            return {line.id: line for line in lines}
        finally:
            with_store.close()

    def operations(self) -> Counter[tuple[str | None, str]]:
        with_store = open_store(self.store)
        try:
            found = with_store.find(Filter(namespace="default"), "", 1000)
            return Counter((s.operation.event, s.operation.key) for s in found)
        finally:
            with_store.close()

    def wait(self, wanted: Any) -> None:
        """Wait until so many events are processed."""
        until = time.monotonic() + WITHIN
        while any(e.state == "received" for e in self.events().values()):
            assert time.monotonic() < until, self.events()
            time.sleep(0.05)
        assert {i for i, e in self.events().items() if e.state == "processed"} >= set(wanted)


@pytest.fixture
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    if request.param == "sqlite":
        return Place(tmp_path, str(tmp_path / "ascertain.db"))
    return Place(tmp_path, request.getfixturevalue("postgres_database"))


def deliver(url: str, ident: str, timeout: float = 5.0) -> bool:
    """Deliver an event as a sender does; tell whether it was acknowledged."""
    headers = {**signing.shopify(ITEMS, ident), "Content-Type": "application/json"}
    try:
        with httpx2.Client(timeout=timeout, trust_env=False) as client:
            answer = client.post(f"{url}/hooks/shop", content=ITEMS, headers=headers)
    except httpx2.TransportError:
        return False
    assert answer.status_code in (200, 503), answer.text
    return answer.status_code == 200


def expected(idents: Any) -> Counter[tuple[str | None, str]]:
    return Counter((ident, f"{ident}-{item}") for ident in idents for item in "AB")


@pytest.mark.timeout(60)
@pytest.mark.parametrize(("place", "point", "again"), STEPS, indirect=["place"])
def test_killed_at_every_step(place: Place, point: str, again: bool) -> None:
    with place.server(point) as (running, url):
        acknowledged = deliver(url, "e1")
        running.wait(WITHIN)
        assert running.returncode == -9
    # what was answered, and nothing else, must be there; what was not may be
    assert acknowledged is (point not in mortal.POINTS[:2])
    recorded = set(place.events())
    assert recorded == (set() if point == mortal.POINTS[0] else {"e1"})
    with place.server() as (_, url):
        if again:
            assert deliver(url, "e1")
            recorded = {"e1"}
        place.wait(recorded)
    assert place.operations() == expected(recorded)
    for event in place.events().values():
        assert event.operations.count('"operation"') == 2


@pytest.mark.timeout(120)
@pytest.mark.parametrize("place", ["sqlite", "postgres"], indirect=True)
def test_killed_at_any_moment_under_load(place: Place) -> None:
    chance = random.Random(7)
    acknowledged: set[str] = set()

    def send(url: str, sender: int, life: int) -> None:
        number = 0
        while True:
            ident = f"e{life}-{sender}-{number}"
            if not deliver(url, ident):
                return
            acknowledged.add(ident)
            number += 1

    for life in range(KILLS):
        with place.server() as (running, url), ThreadPoolExecutor(SENDERS) as pool:
            sending = [pool.submit(send, url, n, life) for n in range(SENDERS)]
            time.sleep(0.3 + chance.random() / 2)
            running.kill()
            for one in sending:
                one.result()
    assert acknowledged
    with place.server():
        place.wait(acknowledged)
    there = set(place.events())
    assert there >= acknowledged
    assert place.operations() == expected(there)

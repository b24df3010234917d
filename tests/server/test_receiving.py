"""Receiving and processing share one process: a burst is taken in first, nothing is left behind."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from ascertain import open_store, read_config
from ascertain.config import checked
from ascertain.config.hooks import intake_of
from ascertain.config.spaces import Spaces
from ascertain.server.receiving import FULL, LEAST, LONGEST, rest
from server.hooked import ENVIRON, HOOKS, effects
from server.house import SHOP
from server.processes import process, until
from server.target import Shop


@pytest.mark.parametrize("load", [0.0, 0.3, 0.6, FULL, 1.0, 1.9])
def test_processing_takes_what_receiving_leaves(load: float) -> None:
    took = 0.01
    share = took / (took + rest(took, load))
    assert share == pytest.approx(max(LEAST, FULL - load))
    assert rest(60, load) <= LONGEST, "a slow disk puts nothing off for long"


@pytest.mark.timeout(60)
@pytest.mark.parametrize("command", [("up",), ("serve", "--store", "ascertain.db")])
def test_what_a_killed_process_received_is_processed_by_the_next(
    tmp_path: Path, target: Shop, monkeypatch: pytest.MonkeyPatch, command: tuple[str, ...]
) -> None:
    """By the server that also works, and by a worker beside one that only serves."""
    for name, value in ENVIRON.items():
        monkeypatch.setenv(name, value)
    config = tmp_path / "ascertain.toml"
    config.write_text(SHOP.format(target=target.url) + HOOKS, "utf-8")
    received(tmp_path)
    with process(tmp_path, *command, "--port", "0", "--json") as server:
        server.listening()
        if command[0] == "up":
            until(lambda: effects(target) == {"#1001": 1})
            return
        with process(tmp_path, "work", "--store", "ascertain.db"):
            until(lambda: effects(target) == {"#1001": 1})


def received(folder: Path) -> None:
    """Leave an event behind as a process does that is killed right after its answer."""
    store = open_store(str(folder / "ascertain.db"))
    try:
        understood = checked(read_config(str(folder / "ascertain.toml")))
        intake = intake_of(understood, Spaces(store, understood, ("default",)))
        hook = intake.hook("shop")
        assert hook is not None
        data = {"name": "#1001"}
        arrived = hook.handed_in("e1", "orders/paid", json.dumps(data), data)
        assert asyncio.run(intake.receive(hook, arrived))
    finally:
        store.close()

"""A small share of `make crash`: each storm once, in a process of its own; and what the auditor
says where workers, or the operator, break the rules."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
KILLS = 60  # on each store
PLAYED_WITHIN = 110  # on a busy machine; most take 3 to 8 s


def played(storm: str, *more: str) -> dict[str, Any]:
    """Play one storm; returns its figures, and under `found` the violations by kind."""
    words = ["--only", storm, "--kills", str(KILLS), "--stops", "1", "--rounds", "1"]
    done = subprocess.run(
        [sys.executable, "-m", "tests.crash.run", "--json", "--fast", "--load", "0.4",
         *words, *more],
        cwd=ROOT, capture_output=True, text=True, timeout=PLAYED_WITHIN, check=False,
    )  # fmt: skip
    assert done.returncode in (0, 1), done.stderr[-3000:]
    [figures] = json.loads(done.stdout)["storms"].values()
    if "skipped" in figures:
        pytest.skip(f"NOT TESTED: {figures['skipped']}")
    assert (done.returncode == 1) == bool(figures["found"]), done.stderr[-3000:]
    return dict(figures)


def is_sound(figures: dict[str, Any]) -> None:
    assert figures["found"] == {}
    assert (figures["duplicated"], figures["lost"]) == (0, 0)
    assert figures["acknowledged_done"] > 0
    assert figures["effects"] >= figures["acknowledged_done"]


@pytest.mark.timeout(120)
@pytest.mark.parametrize("store", ["sqlite", "postgres"])
def test_workers_are_killed_at_random_moments(store: str) -> None:
    figures = played(f"kills-{store}")
    is_sound(figures)
    assert figures["kills"]["call"] + figures["kills"]["recover"] >= KILLS
    fell = figures["fell"]
    assert fell["between claim and effect"] > 0
    assert fell["between effect and settlement"] > 0
    assert figures["confirmed_by"].get("look_up", 0) + figures["confirmed_by"].get("replay", 0) > 0


@pytest.mark.timeout(120)
def test_the_server_stops_at_once_and_comes_back() -> None:
    figures = played("stops-postgres")
    is_sound(figures)
    assert figures["stops"] == 1


@pytest.mark.timeout(120)
def test_a_synchronous_standby_takes_over() -> None:
    figures = played("failover")
    is_sound(figures)
    assert figures["done_before"] > 0
    assert figures["done_after"] > 0  # the workers went on by themselves


@pytest.mark.timeout(120)
@pytest.mark.parametrize("storm", ["failover-lagging", "restored-sqlite"])
def test_what_a_store_lost_is_not_sent_twice_if_that_is_said(storm: str) -> None:
    """Law 21: with a look-up or a protected key it is found; what is opaque goes to a person."""
    figures = played(storm)
    is_sound(figures)
    assert figures["lost_by_the_store"] > 0
    assert figures["with_a_person"] > 0
    assert figures["confirmed_by"]["look_up"] > 0
    assert figures["confirmed_by"]["replay"] > 0


@pytest.mark.timeout(120)
@pytest.mark.parametrize("storm", ["full-disk", "limited-files"])
def test_a_disk_fills_up_under_load(storm: str) -> None:
    figures = played(storm)
    is_sound(figures)
    assert figures["refused_while_full"] > 0
    assert set(figures["store_errors"]) == {"StoreUnavailable"}


@pytest.mark.timeout(120)
def test_the_auditor_sees_workers_that_act_without_a_ledger() -> None:
    figures = played("kills-sqlite", "--wrong", "blind", "--kills", "20")
    assert figures["duplicated"] > 0
    assert {"duplicated", "not recorded"} <= set(figures["found"])


@pytest.mark.timeout(120)
def test_the_auditor_sees_workers_that_take_an_outcome_for_granted() -> None:
    figures = played("kills-sqlite", "--wrong", "hasty", "--kills", "20")
    assert figures["lost"] > 0


@pytest.mark.timeout(120)
def test_the_auditor_sees_a_restore_that_nobody_said() -> None:
    """So the storms above do lose what matters: only the declaration prevents the second send."""
    figures = played("restored-sqlite", "--undeclared")
    assert figures["duplicated"] > 0


@pytest.mark.timeout(120)
def test_servers_and_workers_are_killed_under_load() -> None:
    """Nothing that a server acknowledged is lost, nothing is sent twice, no outcome stays open."""
    figures = played("fleet", "--seconds", "25")
    is_sound(figures)
    assert sum(figures["kills"].values()) > 10
    assert set(figures["statuses"]) >= {"200", "ConnectError"}  # servers were there, and were not
    assert figures["confirmed_by"].get("look_up", 0) + figures["confirmed_by"].get("replay", 0) > 0

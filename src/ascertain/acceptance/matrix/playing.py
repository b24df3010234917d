"""Plays every scenario on one system, side by side, and judges each by the storage."""

from __future__ import annotations

import contextlib
import time
import traceback
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from ascertain import Receipt, WaitingOn

from .adapter import CONTROL, Adapter
from .expected import NO_WINDOW, SCENARIOS, expected
from .scenarios import PLAYS
from .stage import Cell, Stage, make_control

AT_ONCE = 6  # they mostly wait
RACE, RACERS, RACE_SECONDS = "race", 8, 5.0
PROTECTED = ("identified", "idempotent")
# Those that take longest are begun first.
ORDER = ("window_over", "late_commit", "frozen", "denied", "blind", "foreign", "killed")
_WHO = {
    WaitingOn.NOTHING: "nobody",
    WaitingOn.CLOCK: "the clock",
    WaitingOn.TARGET: "the target",
}


def play_all(adapter: Adapter, folder: Path, scenarios: Iterable[str] = ()) -> list[Cell]:
    """Return a cell for every scenario, in the order of the table."""
    wanted = list(scenarios) or list(SCENARIOS)
    if adapter.looks:
        make_control(adapter)
    first = sorted(wanted, key=lambda s: ORDER.index(s) if s in ORDER else len(ORDER))
    with ThreadPoolExecutor(AT_ONCE) as pool:
        playing = {s: pool.submit(play, adapter, s, folder) for s in first}
        return [playing[s].result() for s in wanted]


def race(adapter: Adapter) -> int:
    """Send one thing eight times at once past the ledger, and count what the target made of it:
    what the contract says of two at once is measured here, not through our own claim."""
    key, mark = RACE + "0" * (len(CONTROL) - len(RACE)), "case-race"

    def send(_: int) -> None:
        with contextlib.suppress(Exception):  # a refusal is what is hoped for
            adapter.put(key, mark)

    with ThreadPoolExecutor(RACERS) as pool:
        list(pool.map(send, range(RACERS)))
    wanted = 1 if adapter.ground in PROTECTED else RACERS
    until = time.monotonic() + RACE_SECONDS
    while (made := adapter.creations(mark, key)) < wanted and time.monotonic() < until:
        time.sleep(0.05)  # mail is delivered a moment later
    return made


def play(adapter: Adapter, scenario: str, folder: Path) -> Cell:
    """Play one scenario and judge it; whatever goes wrong makes it fail, and shows why."""
    cell = Cell(scenario)
    cell.impossible = reason(adapter, scenario)
    if cell.impossible:
        return cell
    began = time.monotonic()
    stage = Stage(adapter, scenario, folder)
    try:
        with stage:
            ledger, receipt = PLAYS[scenario](stage)
            duplicates = [r for r in ledger.reviews(receipt) if r.road == "duplicate"]
            cell.who = who(receipt, duplicate=bool(duplicates))
    except Exception:  # noqa: BLE001 - a scenario that breaks is a finding, not the end
        cell.failed.append(traceback.format_exc(limit=-4))
    else:
        cell.state = str(receipt.state)
        cell.creations = stage.creations(receipt.target_key)
        judge(adapter, cell, stage.checks.failed)
    cell.seconds = time.monotonic() - began
    return cell


def judge(adapter: Adapter, cell: Cell, failed: Iterable[str]) -> None:
    """Compare a cell with what it must be; more than one needs a broken assumption."""
    wanted, cell.broken = expected(adapter.ground, cell.scenario, adapter.otherwise)
    cell.failed.extend(failed)
    if cell.text != wanted.text:
        cell.failed.append(f"it is {cell.text}, not {wanted.text}")
    if cell.creations > 1 and not cell.broken:
        cell.failed.append(f"{cell.creations} creations though no assumption was broken")


def reason(adapter: Adapter, scenario: str) -> str:
    """Say why a scenario cannot be played on a system, or nothing."""
    if scenario in adapter.impossible:
        return adapter.impossible[scenario]
    if scenario == "window_over" and adapter.ground != "idempotent":
        return NO_WINDOW
    return ""


def who(receipt: Receipt, *, duplicate: bool) -> str:
    """Say who is next."""
    if duplicate:
        return f"{receipt.owner} (duplicate review)"
    shown = _WHO.get(receipt.waiting_on)
    return shown or f"{receipt.owner} ({receipt.waiting_on})"

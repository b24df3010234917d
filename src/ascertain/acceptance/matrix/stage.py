"""One cell of the table: its ledger, its proxy and its callers; everything ends with it."""

from __future__ import annotations

import contextlib
import json
import os
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

import ascertain
from ascertain import Ledger, Receipt, State, WaitingOn
from ascertain.acceptance.auditor import Checks
from ascertain.acceptance.scenarios.base import Worker, recover, settled, the

from .adapter import CONTROL, TEXT, Adapter, Look, Times

WITHIN = 25.0
MODULE = "ascertain.acceptance.matrix.caller"


@dataclass
class Cell:
    """How one scenario ended on one system.

    ``creations`` is counted in the target's storage; ``foreign`` says what became of an object of
    somebody else. ``broken`` names the stated assumption that the scenario breaks on purpose.
    """

    scenario: str
    creations: int = 0
    state: str = ""
    who: str = ""
    impossible: str = ""
    broken: str = ""
    failed: list[str] = field(default_factory=list)
    seconds: float = 0.0

    @property
    def text(self) -> str:
        """As it is shown in a table."""
        return f"{self.creations} · {self.state} · {self.who}"


@dataclass
class Stage:
    """What a scenario works with."""

    adapter: Adapter
    scenario: str
    folder: Path
    times: Times = field(default_factory=Times)
    look: Look = ""
    stack: contextlib.ExitStack = field(default_factory=contextlib.ExitStack)
    checks: Checks = field(default_factory=Checks)
    others: int = 0  # creations of somebody else's under our key

    def __enter__(self) -> Self:
        """Start the proxy."""
        for name in ("ledgers", "callers"):
            (self.folder / name).mkdir(parents=True, exist_ok=True)
        self.proxy = self.stack.enter_context(self.adapter.proxy())
        return self

    def __exit__(self, *_: object) -> None:
        """End callers, ledgers and the proxy, the latest first."""
        self.stack.close()

    @property
    def case(self) -> str:
        """The business key, and the word by which its effect is known at the target."""
        return f"case-{self.scenario.replace('_', '-')}"

    @property
    def foreign(self) -> str:
        """The word by which somebody else's object is known."""
        return f"foreign-{self.scenario.replace('_', '-')}"

    @property
    def given(self) -> dict[str, str]:
        """The input."""
        return {"case": self.case, "text": TEXT}

    @property
    def store(self) -> str:
        """Where the ledger lies."""
        return str(self.folder / "ledgers" / f"{self.adapter.slug}-{self.scenario}.db")

    @property
    def place(self) -> dict[str, Any]:
        """Where the system is, through the proxy."""
        return self.adapter.place(self.proxy.port, self.look)

    def set(self, look: Look = "", **times: float) -> None:
        """Choose the times, and how look-ups are disturbed."""
        self.times, self.look = self.adapter.times(**times), look
        self.adapter.disturb(self.proxy, look)

    def open(self) -> tuple[Ledger, Any]:
        """Open the ledger in this process."""
        ledger = self.stack.enter_context(ascertain.open(self.store))
        return ledger, self.adapter.declare(ledger, self.times, self.place)

    def caller(self, moment: str = "") -> Worker:
        """Start a caller in a process of its own and wait until it has opened its ledger."""
        told = {
            "parent": os.getpid(),
            "adapter": f"{type(self.adapter).__module__}:{type(self.adapter).__name__}",
            "store": self.store,
            "times": self.times.to_json(),
            "place": self.place,
            "given": self.given,
            "moment": moment,
        }
        command = [sys.executable, "-P", "-m", MODULE, json.dumps(told)]
        log = self.folder / "callers" / f"{self.adapter.slug}-{self.scenario}.log"
        made = Worker(command, log)
        self.stack.callback(made.close)
        made.ready()
        return made

    def operation(self, ledger: Ledger) -> Receipt:
        """Return the operation, once it is in the ledger."""
        return the(ledger, self.case)

    def target_key(self, ledger: Ledger, action: Any) -> str:
        """Return the key that the target will see."""
        return ledger.engine.target_key(action.name, self.case, 1)

    def ended(self, receipt: Receipt) -> bool:
        """Tell whether nothing more happens by itself."""
        if receipt.waiting_on is WaitingOn.REVIEW or settled(receipt):
            return True
        if receipt.state is State.NOT_DONE:
            return True
        return receipt.state is State.ACCEPTED and not self.adapter.looks

    def to_the_end(self, ledger: Ledger, operation: Receipt) -> Receipt:
        """Recover as a worker does until nothing more happens by itself."""
        return recover(ledger, operation, self.ended, "ended")

    def creations(self, *more: str) -> int:
        """Count what this cell's operation made, in the target's storage, by its case or ``more``
        marks."""
        return self.adapter.creations(self.case, *more) - self.others

    def wait_for_creation(self, *more: str) -> None:
        """Wait until the storage holds one."""
        until = time.monotonic() + WITHIN
        while not self.creations(*more) and time.monotonic() < until:
            time.sleep(0.05)
        self.checks.that(self.creations(*more), "the target never held it")


def make_control(adapter: Adapter) -> None:
    """Give the system the object by which a look-up shows that it finds what is there."""
    adapter.put(CONTROL, "control")

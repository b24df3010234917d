"""Pins: the first value under a key wins, and everybody who comes later gets that one.

So a flow in any tool can generate a text, have it approved, and go on with the same text however
often it is run. A pin is an operation like any other, of the built-in action `ascertain.pin`.
"""

from __future__ import annotations

from typing import Any

from ascertain.core.keys import KeyTemplate

from .action import Declaration
from .aio import AsyncAction
from .declare import REPEATABLE, Declaring
from .forms import bounds_of
from .ledger import Ledger
from .receipt import Receipt

ACTION = "ascertain.pin"
BYTES = 256 * 1024  # of a value as JSON, with its key
TEMPLATE = "{key}"
BOUNDS = bounds_of({"timeout": "30s"})


class Pins:
    """The pins of a namespace."""

    def __init__(self, ledger: Ledger) -> None:
        """Register the action."""
        declaration = Declaration(
            name=ACTION,
            key=TEMPLATE,
            owners={"": "nobody"},
            contract=REPEATABLE,
            bounds=BOUNDS,
            repeatable=True,
            max_input=BYTES,
            kind="step",
        )
        self._ledger = ledger
        self._act = Declaring(ledger.engine, AsyncAction).register(declaration, _pin)

    async def pin(self, key: str, value: Any, *, run: str | None = None) -> Receipt:
        """Pin a value and return the operation, whose result is what was pinned first; durable.

        Raises InputRefused for a value that is too large, KeyRefused for a key.
        """
        action = self._act if run is None else self._act.using(run=run)
        done: Receipt = await action.submit_input({"key": key, "value": value})
        return done

    def find(self, key: str) -> Receipt | None:
        """Return the operation of a pin, if there is one; reads the store."""
        rendered = KeyTemplate(TEMPLATE).render({"key": key})
        found = self._ledger.find(action=ACTION, key=rendered)
        return next((one for one in found if one.key == rendered), None)


def _pin(key: str, value: Any) -> Any:  # noqa: ARG001 - the key is the operation's
    return value

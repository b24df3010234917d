"""The namespaces of one store that a process serves, each with a ledger and its actions."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from ascertain.core.errors import UnknownAction, UnknownNamespace
from ascertain.core.figures import OWN
from ascertain.runtime.aio import AsyncLedger
from ascertain.runtime.clock import Clock
from ascertain.runtime.costs import Costs
from ascertain.runtime.figures import Figures
from ascertain.runtime.ledger import Ledger
from ascertain.runtime.pins import Pins
from ascertain.runtime.runs import Runs
from ascertain.runtime.searching import Searching
from ascertain.runtime.tallies import Doors
from ascertain.runtime.watches import Watches
from ascertain.store.base import Store

from .declaring import declare, watches_of


class Space:
    """One namespace: the same engine for coroutines and for threads.

    `ledger` is for threads, and does not know the actions; `tasks` is for the loop.
    """

    def __init__(self, ledger: Ledger) -> None:
        """Wrap a ledger."""
        self.ledger, self.tasks = ledger, AsyncLedger(ledger)
        self.engine, self.store = ledger.engine, ledger.store
        self.namespace = ledger.engine.namespace
        self.runs, self.pins = Runs(self.engine), Pins(ledger)
        self.searching = Searching(ledger)
        self.watches = Watches(self.engine, ())

    def action(self, name: str) -> Any:
        """Return an action for the loop; raises UnknownAction if it is not declared here. Our own
        are nobody's to submit: a callback or a notice speaks in our name."""
        found = None if name.startswith(OWN) else self.tasks.actions.get(name)
        if found is None:
            declared = [n for n in self.tasks.actions if not n.startswith(OWN)]
            raise UnknownAction(
                f"no action {name!r} in namespace {self.namespace!r}: declare it in ascertain.toml"
                f" (there are {', '.join(sorted(declared)) or 'none'})",
            )
        return found


class Spaces:
    """All namespaces that are served, each with the actions whose targets belong to it."""

    def __init__(
        self, store: Store, understood: Any, names: Sequence[str], *, wait: float = 10.0
    ) -> None:
        """Declare every namespace's actions; raises ActionInvalid."""
        self.store, self.understood = store, understood
        self._spaces: dict[str, Space] = {}
        clock = Clock()
        self.doors = Doors(store, f"{os.uname().nodename}:{os.getpid()}:{clock.token():x}")
        self.figures = Figures(store, names, clock, self.doors)
        told = understood.telling
        self.costs = Costs(store, clock, rate=told.rate, currency=told.currency)
        for name in names:
            space = Space(Ledger(store, namespace=name, wait=wait))
            declare(understood, space.tasks)
            space.watches = watches_of(understood, space.engine)
            for definition in space.engine.actions.values():
                definition.warns = False  # of keys: the answers say it
            space.engine.doors = self.doors
            self._spaces[name] = space

    @property
    def names(self) -> tuple[str, ...]:
        """The namespaces, in the order of the configuration."""
        return tuple(self._spaces)

    def flush(self) -> int:
        """Write what this process has counted at its door; return 0: nothing is left then."""
        commit = self.doors.flush()
        if commit is not None:
            commit.result()
        return 0

    def target_of(self, action: str) -> str:
        """Return the target of an action, or nothing for code of one's own."""
        declared = self.understood.actions.get(action)
        return "" if declared is None else str(declared.target)

    def __iter__(self) -> Any:
        """Iterate over the spaces."""
        return iter(self._spaces.values())

    def __getitem__(self, namespace: str) -> Space:
        """Return a namespace; raises UnknownNamespace if it is not served here."""
        found = self._spaces.get(namespace)
        if found is None:
            raise UnknownNamespace(
                f"namespace {namespace!r} is not served here: add it to namespaces in [server]"
            )
        return found

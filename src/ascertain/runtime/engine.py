"""The shared half of both ledgers, bound to one namespace of one store.

The drivers (`ledger` for threads, `aio` for asyncio) only carry out what the generators of
`beginning`, `attempts` and `driving` ask for; here is what all of these need, and the short way
for whoever may wait: each verb carried out at once.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from msgspec.structs import replace

from ascertain.core import keys
from ascertain.core.contract import Terms
from ascertain.core.costs import Price
from ascertain.core.draft import Case
from ascertain.core.errors import UnknownAction, UnknownOperation
from ascertain.core.model import ActFinding, Change, Snapshot
from ascertain.core.reconcile import Do, LookReport, Step, World, gated, next_step
from ascertain.store.base import Filter, Store

from . import attempts, beginning
from .action import Definition, Intent
from .asks import Storing, at_once
from .clock import Clock
from .gates import Gates
from .lives import Lives
from .tallies import Doors
from .ticket import Options, Ticket

ACTIONS = (Do.EXECUTE, Do.REPLAY, Do.REDO, Do.FORCE, Do.LOOK_UP)
ENDLESS = 1e9  # seconds
T = TypeVar("T")


class Engine:
    """One namespace of one store, with the actions that are registered here."""

    def __init__(
        self, store: Store, namespace: str, clock: Clock, worker: str = "", wait: float = 10.0
    ) -> None:
        """Open the ledger's view of a store; makes the HMAC secret at the store's creation.

        `wait`: seconds that a call waits for an outcome unless it says otherwise.
        """
        self.store, self.namespace, self.clock, self.wait = store, namespace, clock, wait
        self.worker = worker or f"{os.uname().nodename}:{os.getpid()}"
        self.actions: dict[str, Definition] = {}
        self.lives = Lives(store, clock)
        self.gates = Gates(store, namespace, clock)
        self.alarms_at: int | None = None  # when alarms were last looked for, local clock
        self.alarms: Sequence[Any] = ()
        self.controls: set[tuple[str, str]] = set()
        self.prices: Mapping[str, Price] = {}  # of an attempt, by action
        self.times: Mapping[str, Any] = {}  # alarms.Times, by action
        self.backlog = 24 * 3600 * 1_000_000  # µs after which an unknown outcome is an alarm
        self.doors: Doors | None = None  # counts repeats that were answered from the ledger
        self.hooks: Mapping[str, Any] = {}  # runtime.hooks.Hook, of a configuration
        self.pages: dict[str, str] = {}  # of own code's due work: up to where a sweep has looked

    # --- small things ---

    def world(self, worker: str = "") -> World:
        """Return the time, chance and what the store's clock did, for one decision."""
        world = self.lives.world(worker or self.worker)
        shut = self.gates.shut
        return world if shut is None else replace(world, gates=shut)

    def until(self, wait: float | None) -> int:
        """Return until when a caller waits, on the local clock; `wait` in seconds, may be endless.

        Ask before anything is claimed: what is no number raises ValueError here.
        """
        seconds = float(self.wait if wait is None else wait)
        if math.isnan(seconds):
            raise ValueError("wait is NaN: say how many seconds to wait")
        return self.clock.boottime() + int(max(-ENDLESS, min(seconds, ENDLESS)) * 1e6)

    def definition(self, name: str) -> Definition:
        """Return a registered action; raises UnknownAction."""
        found = self.actions.get(name)
        if found is None:
            others = sorted(n for n in self.actions if not n.startswith("ascertain."))
            raise UnknownAction(
                f"action {name!r} is not registered here: import the module that declares it,"
                f" or declare it in ascertain.toml (known: {', '.join(others) or 'none'})"
            )
        return found

    def snapshot(self, ident: str) -> Snapshot:
        """Return an operation by id, or raise UnknownOperation."""
        found = self.store.snapshots([ident]).get(ident)
        if found is None or found.operation.namespace != self.namespace:
            raise UnknownOperation(
                f"no operation {ident} in namespace {self.namespace!r}: look for it by its key",
                operation=ident,
            )
        return found

    def find(self, what: Filter, after: str, limit: int) -> list[Snapshot]:
        """Find operations as `Store.find` does; a key also as people write it."""
        if what.key is None:
            return self.store.find(what, after, limit)
        found = [
            snapshot
            for form in keys.forms(what.key)
            for snapshot in self.store.find(replace(what, key=form), after, limit)
        ]
        return sorted(found, key=lambda s: s.operation.id, reverse=what.newest)[:limit]

    def case(self, snapshot: Snapshot, terms: Terms | None = None) -> Case:
        """Read everything that a decision about an operation needs."""
        return self.cases([snapshot], terms)[0]

    def cases(self, snapshots: Sequence[Snapshot], terms: Terms | None = None) -> list[Case]:
        """Read everything that decisions about operations need; `terms` are those of all."""
        beside = self.store.beside([s.operation.id for s in snapshots])
        return [
            Case(
                operation=s.operation,
                status=s.status,
                terms=terms or self.definition(s.operation.action).terms,
                attempts=(own := beside[s.operation.id]).attempts,
                reviews=own.reviews,
                successor=own.successor.status if own.successor else None,
            )
            for s in snapshots
        ]

    def again(self, case: Case) -> Case:
        """Read an operation again."""
        return self.case(self.snapshot(case.operation.id), case.terms)

    def target_key(self, action: str, key: str, epoch: int) -> str:
        """Return the target key of an epoch, 26 characters."""
        return keys.target_key(self.lives.secret, self.namespace, action, key, epoch)

    def step(self, case: Case, world: World) -> Step:
        """Return the next step of an operation now, without back-off, as far as its target's
        gate lets it."""
        step = next_step(case.status, case.terms, case.attempts, world)
        return gated(step, case.status, case.terms, world)

    # --- carried out at once; durable when it returns ---

    def now(self, steps: Storing[T]) -> T:
        """Run a step of the ledger in this thread."""
        return at_once(self.store, steps)

    def write(self, case: Case, decide: Callable[[Case], Change]) -> Case:
        """Do `attempts.writing` at once."""
        return self.now(attempts.writing(self, case, decide))

    def begin(
        self, d: Definition, intent: Intent, options: Options, *, execute: bool
    ) -> beginning.Begun:
        """Do `beginning.beginning` at once."""
        return self.now(beginning.beginning(self, d, intent, options, execute=execute))

    def claim(self, case: Case, do: Do, given: dict[str, Any] | None = None) -> Ticket | Case:
        """Do `attempts.claiming` at once."""
        return self.now(attempts.claiming(self, case, do, given))

    def finish(self, ticket: Ticket, finding: ActFinding) -> Case:
        """Do `attempts.finishing` at once."""
        return self.now(attempts.finishing(self, ticket, finding))

    def looked(self, ticket: Ticket, report: LookReport) -> Case:
        """Do `attempts.finding_out` at once."""
        return self.now(attempts.finding_out(self, ticket, report))

    def release(self, ticket: Ticket) -> Case:
        """Do `attempts.releasing` at once."""
        return self.now(attempts.releasing(self, ticket))

    def extend(self, ticket: Ticket, by: int) -> None:
        """Do `attempts.extending` at once."""
        self.now(attempts.extending(self, ticket, by))

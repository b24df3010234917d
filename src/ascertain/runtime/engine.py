"""What both drivers share: claim → call → settle, over one store, without waiting or calling.

The drivers (`ledger` for threads, `aio` for asyncio) only carry out what `begin`, `claim` and
`finish` say. Every write is a change that `core` decided on what was read; if something newer
is in the store, it is read again and decided again, so no caller can act on an old picture.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Sequence
from typing import Any

import msgspec
from msgspec.structs import replace

from ascertain.core import claims, keys, settle
from ascertain.core.contract import Terms
from ascertain.core.draft import Case
from ascertain.core.errors import (
    Conflict,
    InputMismatch,
    LeaseLost,
    Refused,
    StoreError,
    UnknownAction,
    UnknownOperation,
)
from ascertain.core.machine import is_settled
from ascertain.core.model import (
    ActFinding,
    Approval,
    Attempt,
    Change,
    Operation,
    Request,
    Snapshot,
    State,
    Status,
)
from ascertain.core.reconcile import Do, LookReport, Step, World, next_step
from ascertain.store.base import Filter, Store

from . import freezing, versions
from .action import Definition, Intent
from .clock import Clock
from .lives import Lives
from .storable import storable

TRIES = 50  # how often a decision is made again on newer facts before it gives up
ACTIONS = (Do.EXECUTE, Do.REPLAY, Do.REDO, Do.FORCE, Do.LOOK_UP)


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """What a caller may say beside the input; see `Action.using`."""

    run: str | None = None
    event: str | None = None
    title: str = ""
    supersedes: str | None = None  # operation id
    compensates: str | None = None
    repeats: str | None = None
    reason: str = ""
    override: str = ""  # who takes the risk of not waiting for the version before (law 10)
    source: str = ""
    due_at: int | None = None
    key: str | None = None  # instead of the template: repeat, compensate


class Ticket(msgspec.Struct, kw_only=True):
    """A claimed attempt: what may be done now, and until when.

    `deadline` is on the local clock that counts suspend, from before the claim was queued.
    """

    case: Case
    attempt: Attempt
    definition: Definition
    input: dict[str, Any] | None
    request: Request | None
    deadline: int


class Engine:
    """The shared half of both ledgers, bound to one namespace of one store."""

    def __init__(
        self, store: Store, namespace: str, clock: Clock, worker: str = "", wait: float = 10.0
    ) -> None:
        """Open the ledger's view of a store; makes the HMAC secret at the store's creation.

        `wait`: seconds that a call waits for an outcome unless it says otherwise.
        """
        self.store, self.namespace, self.clock, self.wait = store, namespace, clock, wait
        self.worker = worker or f"{socket.gethostname()}:{os.getpid()}"
        self.actions: dict[str, Definition] = {}
        self.lives = Lives(store, clock)
        self.alarms_at: int | None = None  # when alarms were last looked for, local clock
        self.alarms: Sequence[Any] = ()
        self._controls: set[tuple[str, str]] = set()

    # --- small things ---

    def world(self) -> World:
        """Return the time, chance and what the store's clock did, for one decision."""
        return self.lives.world(self.worker)

    def definition(self, name: str) -> Definition:
        """Return a registered action; raises UnknownAction."""
        found = self.actions.get(name)
        if found is None:
            raise UnknownAction(
                f"action {name!r} is not registered here: import the module that declares it"
                f" (known: {', '.join(sorted(self.actions)) or 'none'})"
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

    def case(self, snapshot: Snapshot, terms: Terms | None = None) -> Case:
        """Read everything that a decision about an operation needs."""
        ident = snapshot.operation.id
        if terms is None:
            terms = self.definition(snapshot.operation.action).terms
        newer = self.successor(ident)
        return Case(
            operation=snapshot.operation,
            status=snapshot.status,
            terms=terms,
            attempts=self.store.attempts(ident),
            reviews=self.store.reviews(snapshot.operation.namespace, ident),
            successor=newer.status if newer else None,
        )

    def target_key(self, action: str, key: str, epoch: int) -> str:
        """Return the target key of an epoch, 26 characters."""
        return keys.target_key(self.lives.secret, self.namespace, action, key, epoch)

    # --- writing ---

    def write(self, case: Case, decide: Callable[[Case], Change]) -> Case:
        """Decide and write; on newer facts decide again. Returns the case as it is then.

        Durable when it returns. Raises what `decide` raises, or StoreError.
        """
        for _ in range(TRIES):
            change = decide(case)
            [written] = self.store.write([change])
            if written.applied:
                if change.control is not None:  # only what is written is known to be kept
                    self._controls.add((change.control.action, change.control.scope))
                return replace(case, status=change.status)
            if written.taken_by is not None:
                raise _Taken(written.taken_by, change)
            if written.current is None:
                raise UnknownOperation(operation=case.operation.id)
            case = self.case(written.current, case.terms)
        raise StoreError(
            f"operation {case.operation.key}: too many writers at once; nothing was written here"
        )

    # --- beginning ---

    def begin(
        self, d: Definition, intent: Intent, options: Options, *, execute: bool
    ) -> tuple[Ticket | Case, bool]:
        """Record the intent, and where it is new and free take the lease in the same commit
        (laws 1, 2). Returns a ticket to act on, or the case as it stands; and whether the
        operation existed before.

        Raises InputMismatch where the key exists with another input (law 9).
        """
        local = self.clock.boottime()
        older = self._by_older_keys(d, intent) if options.key is None else None
        if older is not None:
            return self._existing(d, intent, older), True
        if options.supersedes is not None:
            self.snapshot(options.supersedes)  # what is unknown here would be waited for for ever
        world = self.world()
        change, case = self._new(d, intent, options, world)
        ticket = None
        free = case.status.due_at is not None and case.status.due_at <= world.now
        if execute and free and case.status.state is State.PENDING and not options.supersedes:
            ticket = self._claim_new(d, change, intent, world=world, local=local)
            change = ticket[0]
        [written] = self.store.write([change])
        if written.applied:
            return (ticket[1] if ticket else case), False
        if written.current is None:
            raise _has_successor(intent, options)
        return self._existing(d, intent, written.current), True

    def _existing(self, d: Definition, intent: Intent, found: Snapshot) -> Case:
        self._same(d, intent, found)
        if is_settled(found.status):  # nothing will be decided: a repeat costs one read
            return Case(operation=found.operation, status=found.status, terms=d.terms)
        return self.case(found, d.terms)

    def _by_older_keys(self, d: Definition, intent: Intent) -> Snapshot | None:
        """Find the operation under a key that an earlier template made of the same input."""
        for template in d.declared.keys_from:
            key = keys.KeyTemplate(template).render(d.whole(intent.input))
            found = self.store.by_keys(self.namespace, [(d.name, key)])[0]
            if found is not None:
                return found
        return None

    def enlist(
        self, d: Definition, intent: Intent, options: Options, connection: Any
    ) -> tuple[Case, bool]:
        """Record the intent in the caller's own open transaction, without acting. Returns the
        case, and whether the operation existed before; raises InputMismatch like `begin`."""
        older = self._by_older_keys(d, intent)
        if older is not None:
            return self._existing(d, intent, older), True
        change, case = self._new(d, intent, options, self.world())
        [written] = self.store.join(connection, [change])
        if written.applied:
            return case, False
        if written.current is None:
            raise _has_successor(intent, options)
        return self._existing(d, intent, written.current), True

    def _new(
        self, d: Definition, intent: Intent, options: Options, world: World
    ) -> tuple[Change, Case]:
        key = options.key or intent.key
        operation = Operation(
            id=keys.new_id(world.now, self.clock.id_bits()),
            namespace=self.namespace,
            action=d.name,
            key=key,
            fingerprint=intent.fingerprint,
            input=intent.stored,
            content_hash=intent.content_hash,
            contract=d.terms.contract.id,
            scope=d.terms.scope,
            title=options.title or intent.title,
            run=options.run,
            event=options.event,
            supersedes=options.supersedes,
            compensates=options.compensates,
            repeats=options.repeats,
            why=options.reason,
            source=options.source,
            created_at=world.now,
        )
        status = Status(
            operation=operation.id,
            namespace=self.namespace,
            action=d.name,
            state=State.PENDING,
            due_at=options.due_at,
            target_key=self.target_key(d.name, key, 1),
        )
        terms = replace(d.terms, approval=freezing.roles(d.terms, operation))
        case = Case(operation=operation, status=status, terms=terms)
        gap = self.lives.gap_for_new(world.now)
        change = claims.submit(case, world, self.clock.token(), gap_from=gap)
        if terms.approval:
            frozen = freezing.freeze(d, intent.input, operation, change.status)
            digest = freezing.approval_digest(operation, d.terms, frozen)
            asked = tuple(
                Approval(
                    id=f"{operation.id}-{role}",
                    operation=operation.id,
                    namespace=self.namespace,
                    role=role,
                    digest=digest,
                    asked_at=world.now,
                )
                for role in terms.approval
            )
            change = replace(change, approvals=asked, request=frozen)
        lost = (change.attempt,) if change.attempt else ()
        return change, replace(case, status=change.status, attempts=lost)

    def _claim_new(
        self, d: Definition, change: Change, intent: Intent, *, world: World, local: int
    ) -> tuple[Change, Ticket]:
        assert change.operation is not None
        case = Case(operation=change.operation, status=change.status, terms=d.terms)
        claimed = claims.claim(
            case, Do.EXECUTE, world, token=self.clock.token(), stamp=self.clock.token()
        )
        frozen = freezing.freeze(d, intent.input, case.operation, claimed.status)
        assert claimed.attempt is not None
        whole = replace(
            change, status=claimed.status, attempt=claimed.attempt, request=frozen
        )  # fmt: skip
        ticket = Ticket(
            case=replace(case, status=claimed.status, attempts=(claimed.attempt,)),
            attempt=claimed.attempt,
            definition=d,
            input=intent.input,
            request=freezing.request_of(frozen),
            deadline=local + d.terms.bounds.lease,
        )
        return whole, ticket

    def _same(self, d: Definition, intent: Intent, found: Snapshot) -> None:
        """Refuse the same key with another input, naming what differs (law 9)."""
        operation = found.operation
        reuse = d.declared.on_changed == "reuse"
        if operation.fingerprint == intent.fingerprint:
            return
        old = msgspec.json.decode(operation.input) if operation.input else None
        new = msgspec.json.decode(intent.stored) if intent.stored else intent.input
        differ = keys.differing(old, new) if old is not None else ["input"]
        if reuse:
            differ = [n for n in differ if n not in d.declared.content]
        raise InputMismatch(
            f"action {d.name}, key {operation.key!r}: exists with another input"
            f" ({', '.join(differ)} differ). The same key means the same effect: for a real"
            " change submit a new version with .using(supersedes=…, reason=…)",
            operation=operation.id,
            fields=differ,
        )

    # --- claiming later attempts ---

    def step(self, case: Case, world: World) -> Step:
        """Return the next step of an operation now, without back-off."""
        return next_step(case.status, case.terms, case.attempts, world)

    def claim(self, case: Case, do: Do, given: dict[str, Any] | None = None) -> Ticket | Case:
        """Take the lease for a step; returns the newer case where somebody was first."""
        local = self.clock.boottime()
        world = self.world()
        d = self.definition(case.operation.action)
        values = None
        if do is not Do.LOOK_UP:
            values = d.restore_input(case.operation.input, given)
            held = versions.held_by_older(self, case, world)
            if held is not None:
                return held
        change = claims.claim(
            case,
            do,
            world,
            token=self.clock.token(),
            stamp=self.clock.token(),
            next_key=lambda epoch: self.target_key(d.name, case.operation.key, epoch),
        )
        frozen = None
        if do is not Do.LOOK_UP and values is not None:
            frozen, change = freezing.frozen_for(self.store, d, values, case, change)
        if do is Do.EXECUTE and case.operation.supersedes and not case.status.attempts:
            change = replace(change, also=versions.closing_older(self, case, world))
        attempt = change.attempt
        assert attempt is not None
        [written] = self.store.write([change])
        if not written.applied:
            if written.current is None:
                raise UnknownOperation(operation=case.operation.id)
            return self.case(written.current, case.terms)
        return Ticket(
            case=replace(case, status=change.status, attempts=(*case.attempts, attempt)),
            attempt=attempt,
            definition=d,
            input=values,
            request=freezing.request_of(frozen),
            deadline=local + d.terms.bounds.lease,
        )

    # --- ending ---

    def finish(self, ticket: Ticket, finding: ActFinding) -> Case:
        """Settle an effect attempt by its finding; durable when it returns. Never loses it:
        without the lease it is kept as a late report (law 8)."""
        case, kept = ticket.case, storable(finding)
        if ticket.definition.sends_itself and ticket.attempt.hard:
            case = replace(case, terms=ticket.definition.terms)
        token = self.clock.token

        def decide(c: Case) -> Change:
            change = settle.report(c, ticket.attempt, kept, self.world(), token())
            return self._control_once(change)

        try:
            return self.write(case, decide)
        except _Taken as taken:
            return self._foreign(ticket, taken)

    def looked(self, ticket: Ticket, report: LookReport) -> Case:
        """Settle a look-up by its finding; durable when it returns."""
        token = self.clock.token
        try:
            return self.write(
                ticket.case,
                lambda c: self._control_once(
                    settle.looked(c, ticket.attempt, report, self.world(), token())
                ),
            )
        except _Taken as taken:
            return self._foreign(ticket, taken)

    def release(self, ticket: Ticket) -> Case:
        """Give back a claim whose action never started (law 2)."""
        return self.write(
            ticket.case,
            lambda c: (
                claims.release(c, self.world(), self.clock.token())
                if c.status.token == ticket.attempt.token
                else _raise(Conflict(operation=c.operation.id))
            ),
        )

    def extend(self, ticket: Ticket, by: int) -> None:
        """Lengthen a lease; committed before the new deadline applies. Raises LeaseLost."""
        local = self.clock.boottime()

        def decide(c: Case) -> Change:
            if c.status.token != ticket.attempt.token:
                raise LeaseLost(
                    f"operation {c.operation.key}: this attempt lost its lease; send nothing more",
                    operation=c.operation.id,
                )
            return claims.extend(c, self.world(), self.clock.token(), by)

        ticket.case = self.write(ticket.case, decide)
        ticket.deadline = max(ticket.deadline, local + by)

    def expire(self, case: Case) -> Case:
        """End a lease that ran out (law 3)."""

        def decide(c: Case) -> Change:
            now = self.world()
            if c.status.token is None or (c.status.due_at or 0) > now.now:
                raise Conflict(operation=c.operation.id)
            return claims.expire(c, now, self.clock.token())

        return self.write(case, decide)

    def advance(self, case: Case, step: Step) -> Case:
        """Write a step that needs no attempt; returns the newer case on a conflict."""
        change = claims.advance(case, step, self.world(), self.clock.token())
        [written] = self.store.write([change])
        if written.applied:
            return replace(case, status=change.status)
        if written.current is None:
            raise UnknownOperation(operation=case.operation.id)
        return self.case(written.current, case.terms)

    def _control_once(self, change: Change) -> Change:
        known = change.control
        if known is not None and (known.action, known.scope) in self._controls:
            return replace(change, control=None)
        return change

    def _foreign(self, ticket: Ticket, taken: _Taken) -> Case:
        ref = taken.change.references[0].reference if taken.change.references else ""
        current = self.case(self.snapshot(ticket.case.operation.id), ticket.case.terms)
        return self.write(
            current,
            lambda c: settle.foreign(
                c,
                ticket.attempt,
                self.world(),
                self.clock.token(),
                ref=ref,
                other=taken.other,
            ),
        )

    def successor(self, ident: str) -> Snapshot | None:
        """Return the operation that supersedes this one, if any."""
        found = self.store.find(Filter(namespace=self.namespace, supersedes=ident), limit=1)
        return found[0] if found else None


def _has_successor(intent: Intent, options: Options) -> Refused:
    return Refused(
        f"key {intent.key!r}: the operation that it supersedes has a successor already",
        operation=options.supersedes,
    )


class _Taken(Exception):
    """An effect reference already belongs to another operation."""

    def __init__(self, other: str, change: Change) -> None:
        self.other, self.change = other, change
        super().__init__(other)


def _raise(error: Exception) -> Any:
    raise error

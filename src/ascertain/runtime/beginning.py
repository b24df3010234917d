"""How an operation begins: the intent, and where it is new and free the lease (laws 1, 2)."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec.structs import replace

from ascertain.core import claims, keys
from ascertain.core.draft import Case
from ascertain.core.errors import InputMismatch, Refused
from ascertain.core.machine import is_settled
from ascertain.core.model import Approval, Change, Operation, Snapshot, State, Status
from ascertain.core.reconcile import Do, World

from . import freezing, spool
from .action import Definition, Intent
from .asks import Read, Storing, Write
from .attempts import may_act
from .receipt import Receipt, receipt
from .ticket import Options, Ticket

if TYPE_CHECKING:
    from .engine import Engine

Begun = tuple[Ticket | Case, bool]  # what to go on with, and whether it existed before


def beginning(
    engine: Engine, d: Definition, intent: Intent, options: Options, *, execute: bool,
    client: str = "",
) -> Storing[Begun]:  # fmt: skip
    """Record the intent, and where it is new and free take the lease in the same commit
    (laws 1, 2). Returns a ticket to act on, or the case as it stands; and whether the
    operation existed before. `client` is who acts by own code outside.

    Raises InputMismatch where the key exists with another input (law 9).
    """
    local = engine.clock.boottime()
    if d.declared.keys_from and options.key is None:
        older = yield Read(partial(by_older_keys, engine, d, intent))
        if older is not None:
            return (yield from _repeated(engine, d, intent, older)), True
    if options.supersedes is not None:  # what is unknown here would be waited for for ever
        yield Read(partial(engine.snapshot, options.supersedes))
    if engine.lives.stale:
        yield Read(engine.lives.refresh)
    if engine.gates.stale:
        yield Read(engine.gates.refresh)
    execute = execute and may_act(d, client) and d.name not in (engine.gates.shut or ())

    def decide() -> tuple[Change, Ticket | None, Case]:
        world = engine.world(client)
        change, case = new(engine, d, intent, options, world)
        free = case.status.due_at is not None and case.status.due_at <= world.now
        if execute and free and case.status.state is State.PENDING and not options.supersedes:
            return *claim_new(engine, d, change, intent, world=world, local=local), case
        return change, None, case

    # The user's pure `prepare` may take its time: not on an event loop.
    change, ticket, case = decide() if d.declared.prepare is None else (yield Read(decide))
    written = yield Write(change)
    if written.applied:
        return ticket or case, False
    if written.current is None:
        raise has_successor(intent, options)
    return (yield from _repeated(engine, d, intent, written.current)), True


def enlist(
    engine: Engine, d: Definition, intent: Intent, options: Options, connection: Any
) -> tuple[Case, bool]:
    """Record the intent in the caller's own open transaction, without acting. Returns the
    case, and whether the operation existed before; raises InputMismatch like `beginning`."""
    older = by_older_keys(engine, d, intent)
    if older is not None:
        return engine.now(_existing(engine, d, intent, older)), True
    if engine.lives.stale:
        engine.lives.refresh()
    change, case = new(engine, d, intent, options, engine.world())
    [written] = engine.store.join(connection, [change])
    if written.applied:
        return case, False
    if written.current is None:
        raise has_successor(intent, options)
    return engine.now(_existing(engine, d, intent, written.current)), True


def by_older_keys(engine: Engine, d: Definition, intent: Intent) -> Snapshot | None:
    """Find the operation under a key that an earlier template made of the same input."""
    for template in d.declared.keys_from:
        values = d.whole(intent.input)
        if d.takes_key and intent.given_key is not None:
            values[keys.GIVEN] = intent.given_key
        key = keys.KeyTemplate(template).render(values)
        found = engine.store.by_keys(engine.namespace, [(d.name, key)])[0]
        if found is not None:
            return found
    return None


def new(
    engine: Engine, d: Definition, intent: Intent, options: Options, world: World
) -> tuple[Change, Case]:
    """Return the change that records an intent, and the operation as it is after it."""
    key = options.key or intent.key
    operation = Operation(
        id=keys.new_id(world.now, engine.clock.id_bits()),
        namespace=engine.namespace,
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
        namespace=engine.namespace,
        action=d.name,
        state=State.PENDING,
        due_at=options.due_at,
        target_key=engine.target_key(d.name, key, 1),
    )
    roles = freezing.roles(d.terms, operation)
    terms = d.terms if roles == d.terms.approval else replace(d.terms, approval=roles)
    case = Case(operation=operation, status=status, terms=terms)
    gap = engine.lives.gap_for_new(world.now)
    change = claims.submit(case, world, engine.clock.token(), gap_from=gap)
    lines = spool.named(operation, intent.input)
    if options.beside is not None:
        lines += options.beside(operation.id)
    if lines:
        change = replace(change, lines=(*change.lines, *lines))
    if terms.approval:
        change = _asking(d, intent, case, change)
    lost = (change.attempt,) if change.attempt else ()
    return change, replace(case, status=change.status, attempts=lost)


def _asking(d: Definition, intent: Intent, case: Case, change: Change) -> Change:
    """Freeze what would be sent, and ask each role for its consent to it (law 11)."""
    operation = case.operation
    frozen = freezing.freeze(d, intent.input, operation, change.status)
    digest = freezing.approval_digest(operation, d.terms, frozen)
    asked = tuple(
        Approval(
            id=f"{operation.id}-{role}",
            operation=operation.id,
            namespace=operation.namespace,
            role=role,
            digest=digest,
            asked_at=operation.created_at,
        )
        for role in case.terms.approval
    )
    return replace(change, approvals=asked, request=frozen)


def claim_new(
    engine: Engine, d: Definition, change: Change, intent: Intent, *, world: World, local: int
) -> tuple[Change, Ticket]:
    """Return an intent's change with its first claim in it, and the ticket to act on."""
    assert change.operation is not None
    case = Case(operation=change.operation, status=change.status, terms=d.terms)
    claimed = claims.claim(
        case, Do.EXECUTE, world, token=engine.clock.token(), stamp=engine.clock.token()
    )
    frozen = freezing.freeze(d, intent.input, case.operation, claimed.status)
    assert claimed.attempt is not None
    whole = replace(change, status=claimed.status, attempt=claimed.attempt, request=frozen)
    ticket = Ticket(
        case=replace(case, status=claimed.status, attempts=(claimed.attempt,)),
        attempt=claimed.attempt,
        definition=d,
        input=intent.input,
        request=freezing.request_of(frozen),
        deadline=local + d.terms.bounds.lease,
    )
    return whole, ticket


def _repeated(engine: Engine, d: Definition, intent: Intent, found: Snapshot) -> Storing[Case]:
    """Answer from the ledger instead of doing it again, and count that."""
    case = yield from _existing(engine, d, intent, found)
    if engine.doors is not None:
        engine.doors.repeated(engine.namespace, d.name)
    return case


def _existing(engine: Engine, d: Definition, intent: Intent, found: Snapshot) -> Storing[Case]:
    same(d, intent, found)
    if is_settled(found.status):  # nothing will be decided: a repeat costs one read
        return Case(operation=found.operation, status=found.status, terms=d.terms)
    case: Case = yield Read(partial(engine.case, found, d.terms))
    return case


def known(engine: Engine, d: Definition, intent: Intent) -> Receipt | None:
    """Return the operation of an intent as it stands, or None while there is none; raises
    InputMismatch where it is one of another input (law 9). Reads the store."""
    [found] = engine.store.by_keys(engine.namespace, [(d.name, intent.key)])
    if found is None:
        return None
    same(d, intent, found)
    return replace(receipt(engine.case(found, d.terms), engine.world()), warnings=intent.warnings)


def same(d: Definition, intent: Intent, found: Snapshot) -> None:
    """Refuse the same key with another input, naming what differs (law 9)."""
    operation = found.operation
    if operation.fingerprint == intent.fingerprint:
        return
    old = msgspec.json.decode(operation.input) if operation.input else None
    made = msgspec.json.decode(intent.stored) if intent.stored else intent.input
    differ = keys.differing(old, made) if old is not None else ["input"]
    if d.declared.on_changed == "reuse":
        differ = [n for n in differ if n not in d.declared.content]
    raise InputMismatch(
        f"action {d.name}, key {operation.key!r}: exists with another input"
        f" ({', '.join(differ)} differ). The same key means the same effect: for a real"
        " change submit a new version that supersedes this one, and says the reason",
        operation=operation.id,
        fields=differ,
    )


def has_successor(intent: Intent, options: Options) -> Refused:
    """Return the error of a second successor of one operation (law 10)."""
    return Refused(
        f"key {intent.key!r}: the operation that it supersedes has a successor already",
        operation=options.supersedes,
    )

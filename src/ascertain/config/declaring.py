"""From what a configuration says to registered actions, on a real ledger or on none."""

from __future__ import annotations

import re
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import msgspec
from msgspec.structs import replace

from ascertain.core.errors import AscertainError
from ascertain.runtime import notices, own_code
from ascertain.runtime.action import Definition
from ascertain.runtime.declare import BoundAction, Declaring
from ascertain.runtime.engine import Engine
from ascertain.runtime.templates import register, register_gateway
from ascertain.runtime.watches import Watches
from ascertain.runtime.watches import register as register_callbacks
from ascertain.targets.describing import Input

from .guards import breaker_of
from .reading import Declared, Understood

NEEDED = {"owner", "key", "scope"}  # of every action
OF_CONTRACTS = {
    "lag", "late", "keeps", "unseen", "deterministic", "repeatable", "reversible", "settle",
    "trust_assumed_absence",
}  # fmt: skip


def declare(understood: Understood, ledger: Any) -> Any:
    """Register the actions whose targets belong to a ledger's namespace, and return it; raises
    ActionInvalid."""
    for declared in understood.actions.values():
        of = understood.targets[declared.target].namespaces
        if not of or ledger.engine.namespace in of:
            _register(understood, declared, ledger)
            breaker = breaker_of(understood.targets[declared.target])
            ledger.engine.gates.watch(declared.name, declared.target, breaker)
    if understood.server.callback_hosts:
        register_callbacks(ledger, watches_of(understood, ledger.engine))
    told = understood.telling
    engine = ledger.engine
    engine.prices, engine.times, engine.backlog = told.prices, told.times, told.backlog
    engine.hooks = understood.hooks
    if told.channels:
        notices.register(ledger, told.channels, now=engine.store.now)
    return ledger


def declare_all(understood: Understood, ledger: Any) -> None:
    """Register every action, whosever its target is: for what concerns a whole store."""
    for declared in understood.actions.values():
        _register(understood, declared, ledger)


def watches_of(understood: Understood, engine: Engine) -> Watches:
    """Return who may be called back about the operations of a namespace."""
    server = understood.server
    return Watches(engine, server.callback_hosts, server.public_url)


def dry_run(
    understood: Understood, declared: Declared, *, bare: bool, vague: bool
) -> Iterator[str]:
    """Say what registering an action would raise; nothing is kept. An option that is wrong is
    left out then, and the rest tried again. `bare`: without its request; `vague`: without what
    depends on its contract."""
    options = {n: v for n, v in declared.options.items() if not (vague and n in OF_CONTRACTS)}
    if (bare or vague) and not declared.remote:
        taken = declared.description
        options |= {n: taken[n] for n in ("key", "title") if n in taken}
        given = {"inputs": msgspec.convert(taken.get("inputs", {}), dict[str, Input])}
        declared = replace(declared, description=given | {"lookup": False}, remote=True)
    while True:
        try:
            _register(understood, replace(declared, options=options), _nowhere())
        except AscertainError as error:
            why = re.sub(rf"^action {re.escape(declared.name)}:? ", "", str(error))
            if not ((bare or vague) and why.startswith("inputs.")):  # said with the request
                yield why
            named = [w for w in re.findall(r"\w+", why) if w in options.keys() - NEEDED]
            if not named:
                return
            del options[named[0]]
        else:
            return


def definitions(understood: Understood) -> dict[str, Definition]:
    """Return the actions as they would be registered, to look at."""
    nowhere = _nowhere()
    for declared in understood.actions.values():
        _register(understood, declared, nowhere)
    found: dict[str, Definition] = nowhere.engine.actions
    return found


def _register(understood: Understood, declared: Declared, ledger: Any) -> None:
    options = dict(declared.options)
    if declared.pattern:
        _register_gateway(understood, declared, ledger, options)
        return
    if declared.remote:
        own = declared.description
        own_code.register(
            ledger,
            declared.name,
            owner=options.pop("owner"),
            contract=declared.contract,
            inputs=own["inputs"],
            look=own["lookup"],
            **options,
        )
        return
    register(
        ledger,
        declared.name,
        declared.description,
        owner=options.pop("owner"),
        contract=declared.contract,
        credentials=understood.credentials.get(declared.target),
        **options,
    )


def _register_gateway(
    understood: Understood, declared: Declared, ledger: Any, options: dict[str, Any]
) -> None:
    from ascertain.targets.gateway import Gateway

    target = understood.targets[declared.target]
    gateway = Gateway(
        declared.name,
        declared.description,
        declared.contract,
        pattern=declared.pattern,
        stamp=declared.stamp,
        private=target.private,
        own=target.pass_credentials,
        credentials=understood.credentials[declared.target],
    )
    register_gateway(ledger, declared.name, gateway, owner=options.pop("owner"), **options)


def _nowhere() -> Any:
    """Return what takes registrations and keeps no store."""
    engine = SimpleNamespace(actions={}, namespace="", store=SimpleNamespace(meta=lambda *_: None))
    return SimpleNamespace(
        engine=engine,
        action=Declaring(engine, BoundAction).action,  # type: ignore[arg-type]
    )

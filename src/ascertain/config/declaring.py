"""From what a configuration says to registered actions, on a real ledger or on none."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from ascertain.core.errors import AscertainError
from ascertain.runtime import notices, remote
from ascertain.runtime.action import Definition
from ascertain.runtime.declare import BoundAction, Declaring
from ascertain.runtime.engine import Engine
from ascertain.runtime.templates import register, register_gateway
from ascertain.runtime.watches import Watches
from ascertain.runtime.watches import register as register_callbacks

from .guards import breaker_of
from .reading import Declared, Understood


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


def dry_run(understood: Understood) -> dict[str, Exception]:
    """Return what registering would raise, by the action's name; nothing is kept."""
    wrong: dict[str, Exception] = {}
    nowhere = _nowhere()
    for name, declared in understood.actions.items():
        try:
            _register(understood, declared, nowhere)
        except AscertainError as error:
            wrong[name] = error
    return wrong


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
        remote.register(
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
        credentials=understood.credentials[declared.target],
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

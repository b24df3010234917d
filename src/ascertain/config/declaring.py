"""From what a configuration says to registered actions, on a real ledger or on none."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from ascertain.core.errors import AscertainError
from ascertain.runtime.action import Definition
from ascertain.runtime.declare import BoundAction, Declaring
from ascertain.runtime.templates import register

from .reading import Declared, Understood


def declare(understood: Understood, ledger: Any) -> Any:
    """Register the actions whose targets belong to a ledger's namespace, and return it; raises
    ActionInvalid."""
    for declared in understood.actions.values():
        of = understood.targets[declared.target].namespaces
        if not of or ledger.engine.namespace in of:
            _register(understood, declared, ledger)
    return ledger


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
    register(
        ledger,
        declared.name,
        declared.description,
        owner=options.pop("owner"),
        contract=declared.contract,
        credentials=understood.credentials[declared.target],
        **options,
    )


def _nowhere() -> Any:
    """Return what takes registrations and keeps no store."""
    engine = SimpleNamespace(actions={}, namespace="", store=SimpleNamespace(meta=lambda *_: None))
    return SimpleNamespace(
        engine=engine,
        action=Declaring(engine, BoundAction).action,  # type: ignore[arg-type]
    )

"""Actions that own code carries out, outside: how they are registered. What it does over the
network is in `remote`."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from keyword import iskeyword
from typing import Any

from ascertain.core.contract import Contract
from ascertain.core.errors import ActionInvalid, InputRefused

from .action import Definition, Look

TYPES = {"text": str, "integer": int, "number": float, "boolean": bool}


def register(
    ledger: Any, name: str, *, owner: Any, contract: Contract, inputs: Mapping[str, Any],
    look: bool = False, **options: Any,
) -> Any:  # fmt: skip
    """Register an action that own code carries out, and return it as `ledger.action` does.

    `inputs`: by name, each with `required`, `default`, `type` and `fits`; `look`: the code can
    look up by the target key. Raises ActionInvalid naming the action and the fix.
    """
    for field in inputs:
        if not field.isidentifier() or iskeyword(field) or field == "call":
            raise ActionInvalid(f"action {name}: inputs.{field} is no possible name of an input")

    def act(*_: Any, **__: Any) -> Any:
        raise AssertionError(f"action {name} is carried out by own code, never here")

    call = inspect.Parameter("call", inspect.Parameter.POSITIONAL_OR_KEYWORD)
    takes = [
        inspect.Parameter(
            field, inspect.Parameter.KEYWORD_ONLY,
            default=inspect.Parameter.empty if one.required else one.default,
            annotation=TYPES.get(one.type, Any),
        )
        for field, one in inputs.items()
    ]  # fmt: skip
    act.__signature__ = inspect.Signature([call, *takes])  # type: ignore[attr-defined]
    made = ledger.action(name, owner=owner, contract=contract, sends="own", **options)(act)
    definition: Definition = made.definition
    definition.remote, definition.check_input = True, _checks(name, inputs)
    if look:
        definition.set_look(Look(function=act), None, None)
    return made


def _checks(name: str, inputs: Mapping[str, Any]) -> Callable[[Mapping[str, Any]], None]:
    def check(given: Mapping[str, Any]) -> None:
        wrong = [
            f"input {n} is {type(v).__name__}, not {inputs[n].type}"
            for n, v in given.items()
            if v is not None and not inputs[n].fits(v)
        ]
        wrong += [
            f"missing input {n}"
            for n, one in inputs.items()
            if one.required and (given.get(n) is None or str(given[n]).strip() == "")
        ]
        if wrong:
            raise InputRefused(f"action {name}: {'; '.join(wrong)}")

    return check

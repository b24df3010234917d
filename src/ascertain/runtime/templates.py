"""Registers HTTP actions that are described as data: `targets.template` with a ledger."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

from ascertain.contracts import catalogue
from ascertain.core.contract import Contract
from ascertain.core.errors import ActionInvalid, UsageError

_TYPES = {"text": str, "integer": int, "number": float, "boolean": bool}


def register(
    ledger: Any,
    name: str,
    description: Mapping[str, Any],
    *,
    owner: str | Mapping[str, str],
    contract: str | Contract | None = None,
    credentials: Any = None,
    **options: Any,
) -> Any:
    """Register a described HTTP action and return it, as `ledger.action` does.

    `options` are those of `ledger.action`; `scope` is the description's base unless given.
    `credentials`: those of a target that several actions share, `targets.credentials`.
    Raises ActionInvalid naming the action and the field.
    """
    try:
        from ascertain.targets.template import Template
    except ImportError as error:
        raise UsageError(
            f"action {name} is sent over HTTP, which needs the extra: pip install 'ascertain[http]'"
        ) from error
    named = description.get("contract") if contract is None else contract
    if named is not None and not isinstance(named, str | Contract):
        raise ActionInvalid(f"action {name}: contract must be the id of a contract")
    resolved = catalogue.resolve(named)
    template = Template(name, description, resolved, credentials=credentials)
    described = template.described

    def act(call: Any, **given: Any) -> Any:
        return template.perform(call, **given)

    call = inspect.Parameter("call", inspect.Parameter.POSITIONAL_OR_KEYWORD)
    inputs = [
        inspect.Parameter(
            field,
            inspect.Parameter.KEYWORD_ONLY,
            default=inspect.Parameter.empty if given.required else given.default,
            annotation=_TYPES.get(given.type, Any),
        )
        for field, given in described.inputs.items()
    ]
    act.__signature__ = inspect.Signature([call, *inputs])  # type: ignore[attr-defined]
    options = {"scope": described.base, "title": described.title, "sends": "call", **options}
    action = ledger.action(
        name,
        key=described.key,
        owner=owner,
        contract=resolved,
        prepare=template.prepare,
        **options,
    )(act)
    action.definition.check_input = template.check
    search = described.lookup
    if search is not None:
        action.lookup(lag=search.lag, late=search.late, control=search.control)(template.look_up)
    return action


class CallersKey:
    """The key that a caller of the gateway gives, as it is."""

    def __call__(self, *, key: str, **_: Any) -> str:
        """Return it."""
        return key

    def __str__(self) -> str:
        """Return where it comes from."""
        return "Ascertain-Key"


def register_gateway(
    ledger: Any,
    name: str,
    gateway: Any,
    *,
    owner: str | Mapping[str, str],
    on_changed: str = "refuse",
    **options: Any,
) -> Any:
    """Register what callers send through the gateway as an action: its input is their request,
    its key is theirs. `gateway`: `targets.gateway.Gateway`; `on_changed`: what happens to another
    body under the same key. Raises ActionInvalid naming the action and the field."""
    from ascertain.targets.gateway import INPUTS, PINNED

    def act(call: Any, **given: Any) -> Any:
        return gateway.perform(call, **given)

    inputs = [
        inspect.Parameter(
            field, inspect.Parameter.KEYWORD_ONLY, annotation=Any,
            default=said.get("default") if said.get("required") is False
            else inspect.Parameter.empty,
        )
        for field, said in INPUTS.items()
    ]  # fmt: skip
    call = inspect.Parameter("call", inspect.Parameter.POSITIONAL_OR_KEYWORD)
    act.__signature__ = inspect.Signature([call, *inputs])  # type: ignore[attr-defined]
    described = gateway.described
    # What is sent under a key is what came first; whether another body is told or let be is
    # said by its hash alone.
    content = [*PINNED, *(["body_sha256"] if on_changed == "reuse" else [])]
    action = ledger.action(
        name, key=CallersKey(), owner=owner, contract=gateway.contract, prepare=gateway.prepare,
        content=content, on_changed="reuse", title=described.title, sends="call",
        callers_credentials=gateway.own, **{"scope": described.base, **options},
    )(act)  # fmt: skip
    action.definition.check_input = gateway.check
    search = described.lookup
    if search is not None:
        action.lookup(lag=search.lag, late=search.late, control=search.control)(gateway.look_up)
    return action

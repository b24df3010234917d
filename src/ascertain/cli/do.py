"""`ascertain do`: one action, from the shell. It repeats nothing by itself."""

from __future__ import annotations

import inspect
import math
from typing import Any

import click
import msgspec

from ascertain import Ledger, Receipt, State
from ascertain.runtime.action import Definition
from ascertain.runtime.ledger import WAIT, Action
from ascertain.runtime.ticket import Options

from .base import FINE, REFUSED, UNRESOLVED, Cmd, Settings, Told, option
from .op import tell
from .opening import as_data, opened
from .out import emit, short

_KINDS = {  # how a parameter is annotated: in what words its value is asked for
    int: "do.int", "int": "do.int", float: "do.float", "float": "do.float", bool: "do.bool",
    "bool": "do.bool",
}  # fmt: skip


@click.command("do", cls=Cmd, key="do")
@click.argument("action")
@click.argument("inputs", nargs=-1, metavar="[INPUT]...")
@option("--wait", type=click.FloatRange(0, 3600), default=WAIT, metavar="SECONDS")
@option("--key", "given_key", metavar="KEY", key="given_key")
@click.pass_obj
def do(
    settings: Settings, /, action: str, inputs: tuple[str, ...], wait: float, given_key: str | None
) -> int:
    """Submit one operation and say where it stands."""
    with opened(settings, app=True) as ledger:
        definition = _named(ledger, action)
        given = _given(settings, definition, inputs)
        options = Options(given_key=given_key)
        receipt = Action(ledger.engine, definition, options).submit(wait=wait, **given)
        if settings.json:
            emit({"operation": as_data(ledger, receipt)})
        else:
            tell(settings, receipt)
            if receipt.reused:
                click.echo(settings.say("do.reused"), err=True)
    return _code(receipt)


def _named(ledger: Ledger, name: str) -> Definition:
    found = ledger.engine.actions.get(name)
    if found is None or found.declared.kind != "action":
        names = [n for n, d in ledger.engine.actions.items() if d.declared.kind == "action"]
        raise Told("do.no_action", code="unknown_action", name=short(name), names=_list(names))
    return found


def _given(settings: Settings, d: Definition, inputs: tuple[str, ...]) -> dict[str, Any]:
    takes = dict(inspect.signature(d.function).parameters)
    takes.pop("call", None)
    about: dict[str, Any] = {"action": d.name, "names": _list(list(takes))}
    given: dict[str, Any] = {}
    for text in inputs:
        name, equals, value = text.partition("=")
        as_json, name = name.endswith(":"), name.removesuffix(":")
        if not equals or name not in takes or name in given:
            raise Told("do.bad_input", given=short(text, 60), **about)
        kind = "do.json" if as_json else _KINDS.get(takes[name].annotation, "")
        try:
            given[name] = _value(value, kind)
        except ValueError as error:
            shown, what = short(value, 60), settings.say(kind)
            raise Told("do.no_value", name=name, given=shown, kind=what, **about) from error
    return given


def _value(text: str, kind: str) -> Any:
    match kind:
        case "do.json":
            return msgspec.json.decode(text)
        case "do.int":
            return int(text)
        case "do.float":
            number = float(text)
            if not math.isfinite(number):
                raise ValueError(text)
            return int(text) if text.lstrip("+-").isdecimal() else number
        case "do.bool":
            return {"true": True, "false": False}[text] if text in ("true", "false") else int("")
    return text


def _list(names: list[str]) -> str:
    return short(", ".join(names) or "-", 400)


def _code(r: Receipt) -> int:
    if r.state in (State.DONE, State.ACCEPTED):
        return FINE
    return REFUSED if r.state is State.NOT_DONE and not r.unresolved else UNRESOLVED

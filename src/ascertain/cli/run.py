"""`ascertain run`: whether all of a batch or a flow is done (law 20)."""

from __future__ import annotations

from typing import Any

import click
import msgspec

from ascertain.runtime.flow import Standing, standing

from .base import FINE, UNRESOLVED, Cmd, Grp, Settings
from .op import run_id
from .opening import opened
from .out import clean, emit, table


@click.group("run", cls=Grp, key="run")
def run() -> None:
    """Runs."""


@run.command("show", cls=Cmd, key="run.show")
@click.argument("name")
@click.pass_obj
def show(settings: Settings, /, name: str) -> int:
    """Show where a run stands, member by member."""
    with opened(settings) as ledger:
        ident = run_id(ledger, name)
        found = standing(ledger.engine, next(r for r in ledger.runs() if r.id == ident))
    if settings.json:
        data: dict[str, Any] = msgspec.to_builtins(found)
        emit(data | {"green": found.green})
    else:
        _print(settings, found)
    return FINE if found.green else UNRESOLVED


def _print(settings: Settings, found: Standing) -> None:
    say = settings.say
    words = say(f"standing.{found.standing}")
    click.echo(clean(say("run.is", name=found.name, standing=words)))
    if found.members:
        heads = [say(f"col.{n}") for n in ("action", "key", "state", "ref", "id")]
        rows = [
            (m.action, m.key, say(f"standing.{m.standing}"), m.ref or "", m.operation or "")
            for m in found.members
        ]
        table(heads, rows)

"""`ascertain pause` and `ascertain resume`: whether a target is acted on."""

from __future__ import annotations

from collections.abc import Sequence

import click
import msgspec

from ascertain import Ledger, from_config, read_config
from ascertain.runtime.audit import Who
from ascertain.runtime.pausing import Pausing

from .base import FINE, Cmd, Settings, Told, option
from .opening import application, config_file, the_store
from .out import clean, emit, short


@click.command("pause", cls=Cmd, key="pause")
@click.argument("target")
@option("--why", default="", key="pause_why", metavar="TEXT")
@option("--by", required=True, key="pause_by", metavar="NAME")
@click.pass_obj
def pause(settings: Settings, /, target: str, why: str, by: str) -> int:
    """Let nothing new be sent to a target."""
    return _set(settings, target, Who(actor=by, via="cli"), why, paused=True)


@click.command("resume", cls=Cmd, key="resume")
@click.argument("target")
@option("--why", default="", key="pause_why", metavar="TEXT")
@option("--by", required=True, key="pause_by", metavar="NAME")
@click.pass_obj
def resume(settings: Settings, /, target: str, why: str, by: str) -> int:
    """Let a target be acted on again."""
    return _set(settings, target, Who(actor=by, via="cli"), why, paused=False)


def _set(settings: Settings, target: str, who: Who, why: str, *, paused: bool) -> int:
    """Pause or resume a target in the namespace that is named, else in all that may use it."""
    file = None if application(settings) else config_file(settings)
    if file is None:
        raise Told("gate.config")
    found = read_config(file)
    served = found.server.namespaces or (found.namespace,)
    named: Sequence[str] = (settings.namespace,) if settings.namespace else served
    with Ledger(the_store(settings), namespace=named[0]) as first:
        ledgers = [first, *(Ledger(first.store, namespace=n) for n in named[1:])]
        views = [Pausing(from_config(file, ledger=one).engine) for one in ledgers]
        able = [view for view in views if target in view.targets]
        if not able:
            names = ", ".join(dict.fromkeys(name for view in views for name in view.targets)) or "-"
            raise Told("gate.no_target", code="refused", target=short(target), names=short(names))
        gates = [(view.pause if paused else view.resume)(target, who, why) for view in able]
    if settings.json:
        emit([msgspec.to_builtins(gate) for gate in gates])
        return FINE
    for gate in gates:
        said = "gate.paused" if gate.state == "paused" else "gate.open"
        click.echo(clean(settings.say(said, target=target, namespace=gate.namespace)))
    return FINE

"""`ascertain namespace`: all that a client has, out or gone."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import click

from ascertain.runtime.erasing import Open, unresolved
from ascertain.runtime.erasing import erase as erase_all

from .base import FINE, UNRESOLVED, Cmd, Grp, Settings, Told, option
from .opening import the_store
from .out import clean, emit
from .store import rows_as_json, to_file
from .user import me


@click.group("namespace", cls=Grp, key="namespace")
def namespace() -> None:
    """A client's data."""


@namespace.command("export", cls=Cmd, key="namespace.export")
@click.argument("name")
@click.argument("file")
@option("--force", is_flag=True)
@click.pass_obj
def export(settings: Settings, /, name: str, file: str, force: bool) -> int:
    """Write all that a namespace has."""
    target = Path(file)
    if target.exists() and not force:
        raise Told("store.exists", code="refused", file=file)
    with closing(the_store(settings)) as store:
        count = to_file(rows_as_json(store, name, with_secret=False), target, settings)
    if settings.json:
        emit({"namespace": name, "file": str(target), "rows": count})
    else:
        click.echo(settings.say("store.exported", file=file, count=count))
    return FINE


@namespace.command("erase", cls=Cmd, key="namespace.erase")
@click.argument("name")
@option("--confirm", default=None, metavar="NAME", key="confirm_name")
@click.pass_obj
def erase(settings: Settings, /, name: str, confirm: str | None) -> int:
    """Erase what a namespace has."""
    with closing(the_store(settings)) as store:
        found = unresolved(store, name)
        if found:
            return _refused(settings, name, found)
        if confirm is None:
            confirm = click.prompt(settings.say("namespace.ask", namespace=name), err=True)
        if confirm != name:
            raise Told("aborted", code="aborted")
        count = erase_all(store, name, who=me())
    if settings.json:
        emit({"namespace": name, "erased": count})
    else:
        click.echo(settings.say("namespace.erased", namespace=name, count=count))
    return FINE


def _refused(settings: Settings, name: str, found: list[Open]) -> int:
    """Name what is not resolved; nothing was erased."""
    if settings.json:
        emit({"namespace": name, "unresolved": found})
    else:
        click.echo(settings.say("namespace.open", namespace=name), err=True)
        for one in found:
            click.echo(clean(f"  {one.kind} {one.id} {one.name}"), err=True)
    return UNRESOLVED

"""`ascertain hook test`: what a map would make of an event, before a sender is told our address."""

from __future__ import annotations

from typing import IO, Any

import click
import msgspec

from ascertain import open_store, read_config
from ascertain.config import checked

from .base import FINE, REFUSED, Cmd, Grp, Settings, Told, option
from .opening import config_file, the_store
from .out import clean, emit, short

MOST = 16 * 1024 * 1024  # bytes of a file
EVENTS = 100  # of one file


@click.group("hook", cls=Grp, key="hook")
def hook() -> None:
    """Senders of events."""


@hook.command("test", cls=Cmd, key="hook.test")
@click.argument("name")
@click.argument("file", type=click.File("rb"), default="-")
@option("--id", "ident", key="hook_id", default="", metavar="TEXT")
@option("--topic", key="hook_topic", default="", metavar="TEXT")
@click.pass_obj
def test(settings: Settings, /, name: str, file: IO[bytes], ident: str, topic: str) -> int:
    """Show what events would lead to; nothing is recorded."""
    from ascertain.config.hooks import intake_of
    from ascertain.config.spaces import Spaces
    from ascertain.runtime import tryout

    path = config_file(settings)
    if path is None:
        raise Told("hook.config")
    understood = checked(read_config(path))
    if name not in understood.hooks:
        names = ", ".join(understood.hooks) or "-"
        raise Told("hook.none", name=short(name), names=short(names, 400))
    pasted = _pasted(file, ident, topic)
    try:
        store = the_store(settings)
    except Told as error:
        if error.text != "no_store":
            raise
        store = open_store(":memory:")  # before the first start nothing exists yet
    try:
        of = intake_of(understood, Spaces(store, understood, (understood.hooks[name].namespace,)))
        found = tryout.mapping(of, understood.hooks[name], pasted)
    finally:
        store.close()
    shared = tryout.shared(found)
    if settings.json:
        told = [{"action": a, "key": k, "events": events} for (a, k), events in shared.items()]
        emit({"items": [msgspec.to_builtins(one) for one in found], "shared": told})
    else:
        for one in found:
            _tell(settings, one)
        for (action, key), events in shared.items():
            said = settings.say("hook.shared", action=action, key=key, events=", ".join(events))
            click.echo(clean(said))
    wrong = any(one.wrong or any(plan.wrong for plan in one.plans) for one in found)
    return REFUSED if wrong else FINE


def _pasted(file: IO[bytes], ident: str, topic: str) -> list[Any]:
    """Return the events of a file: one body, or a list of {"body", "headers", "id", "topic"}."""
    from ascertain.runtime.tryout import Pasted

    raw = file.read(MOST + 1)
    try:
        if len(raw) > MOST:
            raise ValueError(f"more than {MOST} bytes")  # noqa: TRY301
        data = msgspec.json.decode(raw)
        if not isinstance(data, list):
            return [Pasted(body=data, id=ident, topic=topic)]
        many = msgspec.convert(data, list[Pasted])
        if not 1 <= len(many) <= EVENTS:
            raise ValueError(f"{len(many)} events, at most {EVENTS}")  # noqa: TRY301
    except (ValueError, msgspec.MsgspecError, RecursionError) as error:
        raise Told("hook.file", why=short(" ".join(str(error).split()), 200)) from error
    return many


def _tell(settings: Settings, one: Any) -> None:
    say, name = settings.say, one.id or "-"
    if one.wrong:
        click.echo(clean(say("hook.wrong", event=name, why=one.wrong)))
    if one.ignored:
        click.echo(clean(say("hook.ignored", event=name, why=one.ignored)))
    for plan in one.plans:
        if plan.wrong:
            click.echo(clean(say("hook.wrong", event=name, why=plan.wrong)))
            continue
        code = "hook.exists" if plan.exists else "hook.new" if plan.key else "hook.flow"
        facts = {"operation": plan.exists or "", "state": plan.state}
        click.echo(clean(say(code, event=name, action=plan.action, key=plan.key, **facts)))

"""`ascertain config`: what `ascertain.toml` says, or what is wrong with it."""

from __future__ import annotations

import os
from typing import Any

import click
import msgspec

from ascertain.config import read_config
from ascertain.core.contract import always_review, protection
from ascertain.runtime.action import Definition
from ascertain.runtime.receipt import assumptions

from .base import FINE, USAGE, Cmd, Grp, Settings
from .opening import shown_address
from .out import clean, emit, table


@click.group("config", cls=Grp, key="config")
def config() -> None:
    """The configuration."""


@config.command("check", cls=Cmd, key="config.check")
@click.argument("file", required=False)
@click.pass_obj
def check(settings: Settings, /, file: str | None) -> int:
    """Say what was understood, or what is wrong on which line."""
    from ascertain.config.declaring import definitions

    found = read_config(file or settings.config)
    known = {} if found.problems else definitions(found)
    unset = {n: c.unset() for n, c in found.credentials.items()}
    if settings.json:
        emit({
            "file": found.file,
            "store": _store(settings, found),
            "namespace": found.namespace,
            "actions": [_data(d, found.actions[n].target) for n, d in known.items()],
            "hooks": [_hook(hook) for hook in found.hooks.values()],
            "unset": {n: what for n, what in unset.items() if what},
            "problems": msgspec.to_builtins(found.problems),
        })  # fmt: skip
    elif found.problems:
        for problem in found.problems:
            click.echo(clean(problem))
        click.echo(settings.say("config.wrong", count=len(found.problems)), err=True)
    else:
        _tell(settings, found, known)
        for name, what in unset.items():
            if what:
                click.echo(
                    clean(settings.say("config.unset", target=name, what="; ".join(what))),
                    err=True,
                )
    return USAGE if found.problems else FINE


def _data(d: Definition, target: str) -> dict[str, Any]:
    terms = d.terms
    return {
        "name": d.name,
        "target": target,
        "scope": terms.scope,
        "contract": terms.contract.id,
        "revision": terms.contract.revision,
        "protection": protection(terms, in_window=True).value,
        "key": d.declared.key,
        "owners": terms.owners,
        "approval": terms.approval,
        "look_up": terms.can_look_up,
        "always_review": always_review(terms),
        "assumptions": assumptions(terms),
    }


def _hook(hook: Any) -> dict[str, Any]:
    received = hook.kind != "token"  # else handed in at /v1/events
    return {
        "name": hook.name,
        "kind": hook.kind,
        "namespace": hook.namespace,
        "path": f"/hooks/{hook.name}" if received else "/v1/events",
        "asks": [*dict.fromkeys(rule.action for rule in hook.rules)],
        "unset": hook.unset(),
    }


def _store(settings: Settings, found: Any) -> str:
    """Name the store that commands would open here: what is named comes before the file."""
    named = settings.store or os.environ.get("ASCERTAIN_STORE")
    return shown_address(named or found.store_url)


def _tell(settings: Settings, found: Any, known: dict[str, Definition]) -> None:
    say = settings.say
    count = len(known)
    click.echo(clean(say(
        "config.fine", file=found.file, count=count, plural="" if count == 1 else "s",
        store=_store(settings, found), namespace=found.namespace,
    )))  # fmt: skip
    if known:
        _actions(settings, found, known)
    if found.hooks:
        _hooks(settings, [_hook(hook) for hook in found.hooks.values()])


def _hooks(settings: Settings, hooks: list[dict[str, Any]]) -> None:
    say = settings.say
    heads = ("col.hook", "col.hook_kind", "col.hook_path", "col.hook_space", "col.hook_asks")
    click.echo()
    table(
        [say(n) for n in heads],
        [
            (h["name"], h["kind"], h["path"], h["namespace"],
             ", ".join(h["asks"]) or say("config.asks_nothing"))
            for h in hooks
        ],
    )  # fmt: skip
    for h in hooks:
        if h["unset"]:
            said = say("config.hook_unset", hook=h["name"], what=h["unset"])
            click.echo(clean(said), err=True)


def _actions(settings: Settings, found: Any, known: dict[str, Definition]) -> None:
    say = settings.say
    heads = (
        "col.action", "col.target", "col.contract", "col.class", "col.look_up", "col.key",
        "col.owner", "col.assumes",
    )  # fmt: skip
    table(
        [say(n) for n in heads],
        [_row(settings, d, found.actions[n]) for n, d in known.items()],
    )
    for name, d in known.items():
        if always_review(d.terms):
            click.echo(clean(say("config.always_review", action=name)))


def _row(settings: Settings, d: Definition, declared: Any) -> tuple[str, ...]:
    say, terms = settings.say, d.terms
    look = say("config.no_look_up", owner=terms.owner("unknown"))
    if terms.can_look_up:
        look = say("config.look_up")
    elif "read_back" in declared.description:
        look = say("config.read_back")
    return (
        d.name,
        declared.target,
        terms.contract.id,
        say(f"class.{protection(terms, in_window=True).name.lower()}"),
        look,
        str(d.declared.key),
        terms.owner(""),
        ", ".join(assumptions(terms)) or say("show.no_assumptions"),
    )

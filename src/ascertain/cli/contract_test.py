"""`ascertain contract test`: a contract tried in a sandbox, claim by claim."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import click
import msgspec

from .base import FINE, REFUSED, UNRESOLVED, Cmd, Settings, Told, option
from .contract import contract
from .contract_test_texts import said, span, tell
from .out import clean, emit

if TYPE_CHECKING:
    from ascertain.selftest import Findings, Plan, Verdict

__all__ = ["contract", "test"]


@contract.command("test", cls=Cmd, key="contract.test")
@click.argument("action")
@option("--input", "inputs", multiple=True, metavar="NAME=VALUE", key="trial_input")
@option("--changed", multiple=True, metavar="NAME=VALUE", key="trial_changed")
@option("--undo", metavar="ACTION", key="trial_undo")
@option("--sandbox", is_flag=True)
@option("--wait-window", is_flag=True)
@option("--yes", is_flag=True, key="trial_yes")
@click.pass_obj
def test(
    settings: Settings,
    /,
    action: str,
    inputs: tuple[str, ...],
    changed: tuple[str, ...],
    undo: str | None,
    **flags: bool,
) -> int:
    """Say what will be created, create it, and judge each claim."""
    from ascertain import selftest

    from .do import _given, _named
    from .opening import opened

    with opened(settings, app=True) as ledger:
        definition = _named(ledger, action)
        given = _given(settings, definition, inputs)
        other = _given(settings, definition, changed)
        remover = _named(ledger, undo) if undo else None
        window = flags["wait_window"]
        made = selftest.plan(definition, given, changed=other, undo=remover, wait_window=window)
        _show_plan(settings, made)
        _agreed(settings, made, sandbox=flags["sandbox"], yes=flags["yes"])
        found = selftest.run(
            ledger, action, given, sandbox=True, yes=True, changed=other, undo=undo,
            wait_window=window, on=lambda name: _doing(settings, name),
        )  # fmt: skip
    if settings.json:
        emit(_data(settings, found))
    else:
        _show(settings, found)
    if found.failed:
        return REFUSED
    return FINE if found.holds else UNRESOLVED


def _agreed(settings: Settings, made: Plan, *, sandbox: bool, yes: bool) -> None:
    """Raise unless a person agreed to the plan."""
    if not sandbox:
        raise Told("trial.no_sandbox", code="refused")
    if yes:
        return
    if made.needs_yes:
        raise Told("trial.needs_yes", code="refused")
    if not sys.stdin.isatty():
        raise Told("trial.not_asked", code="refused")
    if not click.confirm(settings.say("ask"), err=True):
        raise click.exceptions.Abort


def _doing(settings: Settings, name: str) -> None:
    what = tell(f"probe.{name}", settings.lang)
    click.echo(tell("doing", settings.lang, what=what), err=True)


def _show_plan(settings: Settings, made: Plan) -> None:
    """Say what will happen, on standard error, so that a report stands alone."""
    lang = settings.lang
    scope = made.scope or tell("no_scope", lang)
    lines = [
        tell("plan", lang, action=made.action, scope=scope, contract=made.contract,
             protection=_class(settings, made.protection))
    ]  # fmt: skip
    for probe in made.probes:
        what = tell(f"probe.{probe.name}", lang)
        code = "plan.probe" if probe.most else "plan.looks"
        lines.append("  " + tell(code, lang, what=what, most=probe.most))
    for left in made.left:
        what, why = tell(f"probe.{left.name}", lang), tell(f"why.{left.why}", lang)
        lines.append("  " + tell("plan.left", lang, what=what, why=why))
    longest = span(made.longest)
    lines.append(tell("plan.total", lang, creates=made.creates, most=made.most, longest=longest))
    lines.append(
        tell("plan.undo", lang, undo=made.undo) if made.undo else tell("plan.by_hand", lang)
    )
    for line in lines:
        click.echo(clean(line), err=True)


def _show(settings: Settings, found: Findings) -> None:
    lang = settings.lang
    for verdict in found.verdicts:
        head = f"{verdict.claim} = {verdict.value}" if verdict.value else verdict.claim
        result = tell(f"result.{verdict.result}", lang)
        why = _why(settings, verdict)
        click.echo(clean(tell("line", lang, result=result, head=head, why=why)))
    for code, facts in found.notes:
        click.echo(clean(said(f"note.{code}", lang, facts)))
    click.echo(_whole(settings, found))
    for name, (now, later) in (("class", found.protection), ("class.without", found.without)):
        if name == "class" or found.failed:
            now, later = _class(settings, now), _class(settings, later)  # noqa: PLW2901
            click.echo(tell(name, lang, now=now, later=later))
    click.echo(tell("made", lang, count=_count(found, removed=False), removed=_count(found)))
    if found.left:
        click.echo(tell("left", lang))
    for thing in found.left:
        refs = ", ".join(thing.refs) or tell(
            "left.no_ref" if thing.certain else "left.perhaps", lang
        )
        shown = tell("left.one", lang, key=thing.key, refs=refs, target_key=thing.target_key)
        click.echo(clean(f"  {shown}"))
    click.echo(_stamp(settings, found))


def _count(found: Findings, *, removed: bool = True) -> int:
    return sum(max(len(t.refs), 1) for t in found.things if t.removed or not removed)


def _why(settings: Settings, verdict: Verdict) -> str:
    return said(f"why.{verdict.why}", settings.lang, verdict.facts)


def _whole(settings: Settings, found: Findings) -> str:
    lang = settings.lang
    if found.failed:
        return tell("all.fails", lang, failed=", ".join(found.failed))
    if found.stopped:
        return tell("all.stopped", lang, what=tell(f"probe.{found.stopped}", lang))
    if not found.held:
        return tell("all.nothing", lang)
    held = len(found.held)
    return tell("all.holds", lang, held=held, untested=len(found.verdicts) - held)


def _stamp(settings: Settings, found: Findings) -> str:
    if not found.stamped:
        return tell("not_stamped", settings.lang)
    on, plan = found.verified, found.plan
    scope = plan.scope or tell("no_scope", settings.lang)
    return clean(tell("stamped", settings.lang, on=on, scope=scope, revision=plan.revision))


def _class(settings: Settings, kind: str) -> str:
    from ascertain.core.contract import Class

    return settings.say(f"class.{Class(kind).name.lower()}")


def _data(settings: Settings, found: Findings) -> dict[str, Any]:
    """Return the report for `--json`; durations and times are µs."""
    pairs = {"protection": found.protection, "without": found.without}
    return {
        "action": found.plan.action,
        "scope": found.plan.scope,
        "contract": found.plan.contract,
        "revision": found.plan.revision,
        "at": found.at,
        "holds": found.holds,
        "stopped": found.stopped or None,
        "verified": found.verified or None,
        "control": found.control,
        "plan": {"creates": found.plan.creates, "most": found.plan.most},
        "verdicts": [{**msgspec.to_builtins(v), "says": _why(settings, v)} for v in found.verdicts],
        "notes": [
            {"code": code, "facts": facts, "says": said(f"note.{code}", settings.lang, facts)}
            for code, facts in found.notes
        ],
        "objects": msgspec.to_builtins(found.things),
        "class": {n: {"now": now, "later": later} for n, (now, later) in pairs.items()},
    }

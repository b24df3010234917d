"""`ascertain op`: operations, what is known about them and how it is known."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import click

from ascertain import Ledger, Receipt, State
from ascertain.core import consequences, people, words
from ascertain.core.contract import Class
from ascertain.core.draft import Case
from ascertain.core.model import Operation, Status, WaitingOn
from ascertain.runtime.audit import Who
from ascertain.runtime.desk import Entry

from .base import FINE, UNRESOLVED, Cmd, Grp, Settings, Told, option
from .opening import as_data, known, opened, the_operation
from .out import emit, facts, how, relative, short, table, when

NOTABLE = ("ref", "refs", "reason", "why")  # of an entry's data, shown beside its sentence


@click.group("op", cls=Grp, key="op")
def op() -> None:
    """Operations."""


@op.command("list", cls=Cmd, key="op.list")
@option("--state", "states", multiple=True, type=click.Choice([s.value for s in State]))
@option("--action", metavar="NAME")
@option("--key", metavar="KEY", key="op_key")
@option("--run", metavar="NAME", key="in_run")
@option("--text", metavar="TEXT")
@option("--unsettled", is_flag=True)
@option("--after", default="", metavar="ID")
@option("--limit", type=click.IntRange(1, 1000), default=50)
@click.pass_obj
def list_(settings: Settings, /, states: tuple[str, ...], run: str | None, **more: Any) -> int:
    """List operations, oldest first."""
    more["unsettled"] = more["unsettled"] or None
    with opened(settings) as ledger:
        found = ledger.find(
            states=states or None, run=None if run is None else run_id(ledger, run), **more
        )
        last = found[-1].id if len(found) == more["limit"] else None
        if settings.json:
            emit({"operations": [as_data(ledger, r) for r in found], "next": last})
            return FINE
    if not found:
        click.echo(settings.say("op.none"))
        return FINE
    say = settings.say
    heads = [say(f"col.{n}") for n in ("id", "action", "key", "state", "ref", "next")]
    table(heads, [_row(r, settings.lang) for r in found])
    if last:
        click.echo(say("op.more", id=last))
    return FINE


def _row(r: Receipt, lang: str) -> tuple[str, ...]:
    return (r.id, r.action, r.key, state_in_words(r, lang), r.ref or "", r.next_step[lang])


def state_in_words(r: Receipt, lang: str) -> str:
    """Return the state in words; `left` never looks like proof."""
    status = Status(
        operation=r.id, namespace=r.namespace, action=r.action, state=r.state, reason=r.reason
    )
    return words.state(status, lang)


def run_id(ledger: Ledger, named: str) -> str:
    """Return the id of a run by its name or id; raises UsageError naming those there are."""
    runs = ledger.runs()
    for run in runs:
        if named in (run.name, run.id):
            return run.id
    names = ", ".join(dict.fromkeys(r.name for r in runs[:50])) or "-"
    raise Told("no_run", name=named, names=short(names))


# --- one operation -------------------------------------------------------------------------


@op.command("show", cls=Cmd, key="op.show")
@click.argument("operation")
@click.pass_obj
def show(settings: Settings, /, operation: str) -> int:
    """Show what is known about an operation, and how."""
    with opened(settings) as ledger:
        receipt = the_operation(ledger, operation)
        case, entries = ledger.case_of(receipt.id), ledger.history(receipt.id)
        refs = ledger.references(receipt.id)
        if settings.json:
            emit(_data(ledger, receipt, case, entries, refs))
            return FINE
        _about(settings, ledger, receipt, case, refs)
        _attempts(settings, case)
        _timeline(settings, entries)
    return FINE


def _data(
    ledger: Ledger, receipt: Receipt, case: Case, entries: list[Entry], refs: list[str]
) -> dict[str, Any]:
    """Return everything about an operation. Tokens and the stamp are text: as numbers of 63
    bits many readers of JSON would round them."""
    return {
        "operation": as_data(ledger, receipt) | {"stamp": str(case.status.stamp)},
        "references": refs,
        "attempts": [
            {
                "token": str(a.token),
                "kind": a.kind,
                "outcome": a.outcome,
                "epoch": a.epoch,
                "started_at": a.started_at,
                "ended_at": a.ended_at,
                "deadline": a.deadline,
                "worker": a.worker,
            }
            for a in case.attempts
        ],
        "evidence": [
            {
                "at": e.at,
                "kind": e.kind,
                "shows": e.shows,
                "attempt": None if e.attempt is None else str(e.attempt),
                "by": e.by,
                "says": e.says,
                "data": e.data,
            }
            for e in entries
        ],
        "reviews": [{"id": r.id, "road": r.road, "owner": r.owner} for r in case.reviews],
        "decisions": [a.value for a in people.allowed(case)],
    }


def _about(settings: Settings, ledger: Ledger, r: Receipt, case: Case, refs: list[str]) -> None:
    say, lang = settings.say, settings.lang
    here, kind = known(ledger, r.action), Class(r.protection).name.lower()
    spelt = {
        "sends_by_call": say("assume.sends_by_call"),
        "nobody_deletes": say("assume.nobody_deletes"),
        "callers_credentials": say("assume.callers_credentials"),
    }
    assumed = ", ".join(spelt.get(a, a) for a in r.assumptions) or say("show.no_assumptions")
    due = ""
    if r.due_at is not None:
        due = f"{when(r.due_at)} ({relative(r.due_at, ledger.store.now(), lang)})"
    facts(settings, [
        (say("col.id"), r.id),
        (say("col.action"), r.action),
        (say("col.key"), r.key),
        (say("show.title"), r.title),
        (say("col.state"), state_in_words(r, lang)),
        (say("col.next"), r.next_step[lang]),
        (say("show.due"), due),
        (say("col.owner"), r.owner),
        (say("show.class"), say(f"class.{kind}") if here else say("show.not_here")),
        (say("show.assumptions"), assumed if here else ""),
        (say("show.references"), ", ".join(refs)),
        (say("show.confirmed"), _confirmed(settings, r)),
        (say("show.namespace"), r.namespace),
        (say("show.run"), r.run),
        (say("show.target_key"), r.target_key),
        (say("show.stamp"), case.status.stamp),
    ])  # fmt: skip
    if case.reviews:
        answers = "|".join(a.value for a in people.allowed(case))
        click.echo(say("review.how", id=r.id, answers=answers))


def _confirmed(settings: Settings, r: Receipt) -> str:
    if r.confirmed_at is None:
        return ""
    return f"{when(r.confirmed_at)} {how(settings, r.confirmed_by)}".strip()


def _attempts(settings: Settings, case: Case) -> None:
    if not case.attempts:
        return
    say = settings.say
    click.echo("\n" + say("show.attempts"))
    heads = [say(f"col.{n}") for n in ("kind", "started", "deadline", "outcome", "worker")]
    rows = [
        (
            say(f"kind.{a.kind}"),
            when(a.started_at),
            when(a.deadline),
            say(f"outcome.{a.outcome or 'open'}"),
            a.worker,
        )
        for a in case.attempts
    ]
    table(heads, rows)


def _timeline(settings: Settings, entries: list[Entry]) -> None:
    if not entries:
        return
    click.echo("\n" + settings.say("show.evidence"))
    for e in entries:
        notable = [f"{n}={short(e.data[n], 120)}" for n in NOTABLE if e.data.get(n)]
        by = settings.say("show.by", name=e.by) if e.by else ""
        click.echo(clean_join(when(e.at), e.says[settings.lang], by, *notable))


def clean_join(*parts: str) -> str:
    """Join what there is by two blanks."""
    return short("  ".join(p for p in parts if p), 600)


@op.command("confirm", cls=Cmd, key="op.confirm")
@click.argument("operation")
@click.pass_obj
def confirm(settings: Settings, /, operation: str) -> int:
    """Ask the target again what happened."""
    with opened(settings, app=True) as ledger:
        receipt = ledger.confirm(the_operation(ledger, operation))
        if settings.json:
            emit({"operation": as_data(ledger, receipt)})
        else:
            tell(settings, receipt)
    return UNRESOLVED if receipt.unresolved else FINE


@op.command("renew", cls=Cmd, key="op.renew")
@click.argument("operations", metavar="[OPERATION]...", nargs=-1)
@option("--action", metavar="NAME", key="renew_action")
@option("--by", required=True, metavar="NAME", key="renew_by")
@click.pass_obj
def renew(settings: Settings, /, operations: tuple[str, ...], action: str | None, by: str) -> int:
    """Say that an authorization was renewed: what waits for it goes on."""
    if not operations and action is None:
        raise Told("op.renew_what")
    with opened(settings, app=True) as ledger:
        idents = [the_operation(ledger, named).id for named in operations]
        for operation, why in _not_renewable(ledger, idents):
            raise Told(
                "op.not_renewed", code="refused", action=operation.action, key=operation.key,
                why=consequences.of_bulk(why)[settings.lang], operation=operation.id,
            )  # fmt: skip
        idents += [] if action is None else _waiting(ledger, action)
        who = Who(actor=by, via="cli")
        renewed = [ledger.renew(ident, by=by, who=who) for ident in dict.fromkeys(idents)]
        if settings.json:
            emit({"operations": [as_data(ledger, receipt) for receipt in renewed]})
            return FINE
    for receipt in renewed:
        tell(settings, receipt)
    if not renewed:
        click.echo(settings.say("op.none"))
    return FINE


def _not_renewable(ledger: Ledger, idents: Iterable[str]) -> Iterator[tuple[Operation, str]]:
    """Give those that wait for no authorization, each with the code of why."""
    for ident in idents:
        case = ledger.case_of(ident)
        if why := people.bulk_refusal(case, "renew"):
            yield case.operation, why


def _waiting(ledger: Ledger, action: str) -> list[str]:
    """Return the ids of an action's operations that go on with a renewed authorization."""
    ledger.engine.definition(action)  # an unknown one is said
    found: list[str] = []
    after = ""
    while page := ledger.find(action=action, waiting_on=WaitingOn.AUTHORIZATION, after=after):
        found += [receipt.id for receipt in page]
        after = page[-1].id
    others = {operation.id for operation, _ in _not_renewable(ledger, found)}
    return [ident for ident in found if ident not in others]


def tell(settings: Settings, r: Receipt) -> None:
    """Say in one line where an operation stands now."""
    lang = settings.lang
    ref = settings.say("work.ref", ref=r.ref) if r.ref else ""
    said = settings.say(
        "op.now",
        action=r.action,
        key=r.key,
        state=state_in_words(r, lang),
        ref=ref,
        next=r.next_step[lang],
    )
    click.echo(short(said, 600))

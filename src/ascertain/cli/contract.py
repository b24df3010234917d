"""`ascertain contract`: what targets guarantee, how well that is known, and what follows."""

from __future__ import annotations

from collections import Counter
from typing import Any

import click

from ascertain.contracts import catalogue
from ascertain.core import levels, words
from ascertain.core.advice import Advice, Better, Moment, Offer, advise, classes, needs
from ascertain.core.contract import Class, Contract, duration
from ascertain.core.nearest import near

from .base import FINE, Cmd, Grp, Settings, Told, option
from .contract_texts import tell
from .out import emit, facts, short, table


@click.group("contract", cls=Grp, key="contract")
def contract() -> None:
    """Contracts."""


@contract.command("list", cls=Cmd, key="contract.list")
@click.pass_obj
def list_(settings: Settings, /) -> int:
    """List the shipped contracts."""
    found = [catalogue.shipped()[ident] for ident in sorted(catalogue.shipped())]
    if settings.json:
        emit({"contracts": [_summary(c) for c in found]})
        return FINE
    names = ("contract", "status", "class", "after", "needs", "known")
    heads = [tell(f"label.{n}", settings.lang) for n in names]
    table(heads, [_row(settings, c) for c in found])
    return FINE


def _row(settings: Settings, c: Contract) -> tuple[str, ...]:
    known = _levels(c)
    counted = f"{known['vendor']}/{known['second']}/{known['memory']}"
    if _only(c):
        return (c.id, c.status, tell("label.only", settings.lang), "", "", counted)
    counts = levels.accepted(c)
    now, after = (_class(settings, k) for k in classes(counts))
    return (c.id, c.status, now, after, ", ".join(needs(counts)), counted)


def _only(c: Contract) -> bool:
    return c.inbound is not None and c.inbound.only


def _class(settings: Settings, kind: Class) -> str:
    return settings.say(f"class.{kind.name.lower()}")


def _levels(c: Contract) -> Counter[str]:
    return Counter(levels.level(c, path) for path in levels.stated(c))


def _pair(c: Contract) -> dict[str, str]:
    now, after = classes(c)
    return {"now": now.value, "after": after.value}


def _summary(c: Contract) -> dict[str, Any]:
    """Return what `list --json` says of one; `class` is null where it describes no effect."""
    counts, weak, only = levels.accepted(c), levels.acceptable(c), _only(c)
    known = _levels(c)
    return {
        "id": c.id,
        "title": c.title,
        "status": c.status,
        "date": c.date,
        "sources": c.sources,
        "protocol": c.protocol,
        "class": None if only else _pair(counts),
        "class_if_accepted": None if only else _pair(levels.accepted(c, weak)),
        "needs": [] if only else needs(counts),
        "claims": {name: known[name] for name in ("vendor", "second", "memory")},
    }


# --- one contract --------------------------------------------------------------------------


def _found(ident: str) -> Contract:
    shipped = catalogue.shipped()
    if ident not in shipped:
        names = ", ".join(near(ident, shipped)) or "-"
        raise Told("contract.none", code="contract_invalid", name=short(ident), names=names)
    return shipped[ident]


@contract.command("show", cls=Cmd, key="contract.show")
@click.argument("ident", metavar="ID")
@click.pass_obj
def show(settings: Settings, /, ident: str) -> int:
    """Show every claim of a contract."""
    found = _found(ident)
    claims = _claims(found)
    if settings.json:
        emit({**_summary(found), "note": found.note, "assume": found.assume, "claims": claims})
        return FINE
    lang = settings.lang
    _head(settings, found)
    facts(settings, [(tell("label.note", lang), " ".join(found.note.split()))])
    click.echo()
    heads = [tell(f"label.{n}", lang) for n in ("claim", "value", "level", "counts")]
    rows = [
        (
            c["claim"],
            _value(c["value"]),
            tell(f"level.{c['level']}", lang),
            tell("label.yes" if c["counts"] else "label.no", lang),
        )
        for c in claims
    ]
    table(heads, rows)
    _sources(settings, found)
    return FINE


def _claims(c: Contract) -> list[dict[str, Any]]:
    return [
        {
            "claim": path,
            "value": value,
            "level": (known := levels.level(c, path)),
            "counts": known == "vendor" or path in levels.RESTRICTIONS,
        }
        for path, value in levels.stated(c).items()
    ]


def _value(value: Any) -> str:
    return ", ".join(value) if isinstance(value, tuple) else str(value)


def _head(settings: Settings, c: Contract) -> None:
    lang = settings.lang
    facts(settings, [
        (tell("label.contract", lang), c.id),
        (tell("label.title", lang), c.title),
        (tell("label.status", lang), tell(f"status.{c.status}", lang)),
        (tell("label.date", lang), c.date),
    ])  # fmt: skip


def _sources(settings: Settings, c: Contract) -> None:
    if c.sources:
        click.echo("\n" + tell("label.sources", settings.lang))
        for source in c.sources:
            click.echo(f"  {source}")


# --- what follows --------------------------------------------------------------------------


@contract.command("explain", cls=Cmd, key="contract.explain")
@click.argument("ident", metavar="ID")
@option("--after", metavar="DURATION", key="moment")
@option("--accept", multiple=True, metavar="CLAIM", key="accept")
@option("--lag", metavar="DURATION", key="lag")
@option("--late", metavar="DURATION", key="late")
@option("--keeps", metavar="DURATION", key="keeps")
@click.pass_obj
def explain(
    settings: Settings, /, ident: str, after: str | None, accept: tuple[str, ...], **declared: Any
) -> int:
    """Say what a contract permits, why, and what would be better."""
    found = _found(ident)
    catalogue.resolve(ident)  # refuses one that describes no effect
    given = {n: v for n, v in declared.items() if v is not None}
    moment = None if after is None else duration(after, "--after")
    made = advise(found, accept=accept, after=moment, **given)
    if settings.json:
        emit(_data(settings, found, made))
    else:
        _explain(settings, found, made)
    return FINE


def _explain(settings: Settings, c: Contract, a: Advice) -> None:
    lang = settings.lang
    _head(settings, c)
    click.echo()
    facts(settings, [(tell("label.now", lang), _said(settings, a, a.now))])
    if a.later is not None:
        label = tell("label.later", lang, span=words.duration(a.later.at))
        facts(settings, [(label, _said(settings, a, a.later))])
    assumed = ", ".join(a.terms.assumed)
    facts(settings, [
        (tell("label.needs", lang), ", ".join(a.needs)),
        (tell("label.accepted", lang), assumed),
        ("sdk", c.sdk),
    ])  # fmt: skip
    if a.better:
        click.echo("\n" + tell("label.better", lang))
        for better in a.better:
            click.echo(f"  {_better(settings, better)}")
    if a.offers:
        click.echo("\n" + tell("label.offers", lang, id=c.id))
        heads = [tell(f"label.{n}", lang) for n in ("claim", "value", "level", "then", "after")]
        table(heads, [_offer_row(settings, o) for o in a.offers])
        if a.all_accepted is not None:
            now, after = (
                _class(settings, a.all_accepted.now),
                _class(settings, a.all_accepted.after),
            )
            then = now if now == after else f"{now} → {after}"
            facts(settings, [(tell("label.all", lang), then)])
    _sources(settings, c)


def _said(settings: Settings, a: Advice, m: Moment) -> str:
    """Say a moment in plain sentences: the class, what is permitted, and why."""
    lang = settings.lang
    keeps = "" if a.terms.keeps is None else words.duration(a.terms.keeps)
    parts = [
        tell("said.class", lang, protection=_class(settings, m.protection)),
        tell(f"permit.{m.permitted}", lang),
        tell(f"why.{m.why}", lang, keeps=keeps),
    ]
    if m.absence:
        parts.append(tell(f"absence.{m.absence}", lang))
    return ("" if lang == "zh" else " ").join(parts)


def _better(settings: Settings, b: Better) -> str:
    lang = settings.lang
    said = tell(f"better.{b.code}", lang, value=b.value)
    if b.protection is None:
        return said
    permitted = tell(f"permit.{b.permitted}", lang)
    kind = _class(settings, b.protection)
    return said + tell("better.then", lang, protection=kind, permitted=permitted)


def _offer_row(settings: Settings, o: Offer) -> tuple[str, ...]:
    known = tell(f"level.{o.level}", settings.lang)
    return (o.path, _value(o.value), known, _class(settings, o.now), _class(settings, o.after))


def _data(settings: Settings, c: Contract, a: Advice) -> dict[str, Any]:
    def moment(m: Moment | None) -> dict[str, Any] | None:
        if m is None:
            return None
        says = {"permitted": m.permitted, "why": m.why, "absence": m.absence}
        kind = m.protection.value
        return {"after": m.at, "class": kind, **says, "says": _said(settings, a, m)}

    def offer(o: Offer) -> dict[str, Any]:
        classes = {"now": o.now.value, "after": o.after.value}
        return {"claim": o.path, "value": o.value, "level": o.level, "class": classes}

    return {
        "id": c.id,
        "status": c.status,
        "now": moment(a.now),
        "later": moment(a.later),
        "needs": a.needs,
        "assumed": a.terms.assumed,
        "better": [
            {
                "code": b.code,
                "value": b.value,
                "class": None if b.protection is None else b.protection.value,
                "permitted": b.permitted,
                "says": _better(settings, b),
            }
            for b in a.better
        ],
        "offers": [offer(o) for o in a.offers],
        "all_accepted": None if a.all_accepted is None else offer(a.all_accepted)["class"],
        "sources": c.sources,
        "date": c.date,
    }

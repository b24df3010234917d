"""`ascertain approval`: consent to exactly what would be sent (law 11)."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterator
from typing import Any

import click
import msgspec

from ascertain import Ledger, WaitingOn
from ascertain.runtime.audit import Who
from ascertain.runtime.desk import Asked

from .base import FINE, Cmd, Grp, Settings, Told, option
from .op import tell
from .opening import as_data, opened, the_operation
from .out import ask, clean, emit, facts, span

PAGE = 500


@click.group("approval", cls=Grp, key="approval")
def approval() -> None:
    """Approvals."""


@approval.command("list", cls=Cmd, key="approval.list")
@click.pass_obj
def list_(settings: Settings, /) -> int:
    """List what waits for consent, each with exactly what would be sent."""
    with opened(settings) as ledger:
        found = list(_waiting(ledger))
        now = ledger.store.now()
    if settings.json:
        emit({"approvals": [msgspec.to_builtins(a) | {"body": _body(a)} for a in found]})
        return FINE
    if not found:
        click.echo(settings.say("approval.none"))
    for number, asked in enumerate(found):
        if number:
            click.echo()
        show(settings, asked, now)
    return FINE


def _waiting(ledger: Ledger) -> Iterator[Asked]:
    after = ""
    while page := ledger.find(waiting_on=WaitingOn.APPROVAL.value, after=after, limit=PAGE):
        for receipt in page:
            yield from (a for a in ledger.asked(receipt) if a.state == "asked")
        after = page[-1].id


def show(settings: Settings, asked: Asked, now: int) -> None:
    """Print what would be sent, to the last byte that can be printed."""
    say = settings.say
    facts(settings, [
        (say("col.id"), asked.operation),
        (say("col.action"), asked.action),
        (say("col.key"), asked.key),
        (say("show.title"), asked.title),
        (say("approval.role"), asked.role),
        (say("col.age"), span(now - asked.asked_at, settings.lang)),
        (say("approval.digest"), asked.digest),
    ])  # fmt: skip
    request = asked.request
    if request is None:
        click.echo(say("approval.input"))
        click.echo(_lines(msgspec.json.format(msgspec.json.encode(asked.input)).decode()))
        return
    click.echo(say("approval.request"))
    click.echo(clean(f"{request['method']} {request['url']}"))
    for name, value in request["headers"]:
        click.echo(clean(f"{name}: {value}"))
    raw = base64.b64decode(request["body"])
    body = _body(asked)
    if body is None:
        digest = hashlib.sha256(raw).hexdigest()
        click.echo(say("approval.binary", size=len(raw), digest=digest))
    elif body:
        click.echo("\n" + _lines(body))


def _lines(text: str) -> str:
    return "\n".join(clean(line) for line in text.split("\n"))


def _body(asked: Asked) -> str | None:
    """Return the body as text, or None where it is none."""
    if asked.request is None:
        return None
    try:
        return base64.b64decode(asked.request["body"]).decode()
    except UnicodeDecodeError:
        return None


@approval.command("approve", cls=Cmd, key="approval.approve")
@click.argument("operation")
@option("--by", required=True, metavar="NAME")
@option("--role", metavar="ROLE")
@option("--digest", metavar="DIGEST")
@option("--note", default="", metavar="TEXT")
@option("--yes", is_flag=True)
@click.pass_obj
def approve(settings: Settings, /, operation: str, **given: Any) -> int:
    """Consent to exactly what is shown."""
    return _consent(settings, operation, "approve", **given)


@approval.command("reject", cls=Cmd, key="approval.reject")
@click.argument("operation")
@option("--by", required=True, metavar="NAME")
@option("--role", metavar="ROLE")
@option("--note", default="", metavar="TEXT")
@option("--yes", is_flag=True)
@click.pass_obj
def reject(settings: Settings, /, operation: str, **given: Any) -> int:
    """Refuse consent: the operation is stopped."""
    return _consent(settings, operation, "reject", **given)


def _consent(
    settings: Settings, operation: str, verb: str, *, yes: bool, role: str | None, **given: Any
) -> int:
    with opened(settings) as ledger:
        receipt = the_operation(ledger, operation)
        asked = _asked(ledger, receipt.id, receipt.key, role)
        if not settings.json:
            show(settings, asked, ledger.store.now())
        sentence = settings.say(f"approval.will_{verb}", by=given["by"], role=asked.role)
        if not ask(settings, clean(sentence), yes=yes):
            raise Told("aborted", code="aborted")
        if verb == "approve":
            given["digest"] = given["digest"] or asked.digest  # what this person was shown
        given["who"] = Who(actor=given["by"], via="cli")
        receipt = getattr(ledger, verb)(receipt.id, role=asked.role, **given)
        if settings.json:
            emit({"operation": as_data(ledger, receipt)})
        else:
            tell(settings, receipt)
    return FINE


def _asked(ledger: Ledger, ident: str, key: str, role: str | None) -> Asked:
    """Return the one consent that is asked for now, in this role."""
    waiting = [a for a in ledger.asked(ident) if a.state == "asked" and role in (None, a.role)]
    if len(waiting) != 1:
        roles = ", ".join(a.role for a in waiting) or "-"
        raise Told("approval.which", code="refused", key=key, roles=roles, operation=ident)
    return waiting[0]

"""`ascertain token`: what machines sign in with. No scope approves or decides."""

from __future__ import annotations

import click

from ascertain.core import rights
from ascertain.core.books import ApiToken
from ascertain.core.model import SECOND
from ascertain.runtime.accounts import Accounts
from ascertain.runtime.tokens import usable

from .base import FINE, Cmd, Grp, Settings, Told, option
from .out import emit, short, table, when
from .user import accounts_of, me, the_namespace

PAGE = 500
DAY = 24 * 3600 * SECOND  # µs
SCOPES = "ops:read ops:write"  # of a token that is made without saying which


@click.group("token", cls=Grp, key="token")
def token() -> None:
    """Tokens of machines."""


@token.command("new", cls=Cmd, key="token.new")
@click.argument("name")
@option("--scopes", default=SCOPES, metavar="SCOPES")
@option("--days", type=click.IntRange(1, 3660), metavar="DAYS")
@click.pass_obj
def new(settings: Settings, /, name: str, scopes: str, days: int | None) -> int:
    """Make a token."""
    namespace, given = the_namespace(settings), scopes.split()
    if not given or not set(given) <= set(rights.SCOPES):
        wrong = [one for one in given if one not in rights.SCOPES]
        named = ", ".join(rights.SCOPES)
        raise Told("token.scopes", scopes=named, given=short(", ".join(wrong) or "-"))
    with accounts_of(settings) as accounts:
        ends_at = None if days is None else accounts.store.now() + days * DAY
        made = accounts.tokens.new(namespace, name, scopes, who=me(), ends_at=ends_at)
    if settings.json:
        emit({"id": made.token.id, "namespace": namespace, "name": made.token.name,
              "scopes": made.token.scopes.split(), "ends_at": made.token.ends_at,
              "secret": made.secret})  # fmt: skip
    else:
        text = settings.say("token.made", id=made.token.id, namespace=namespace, secret=made.secret)
        click.echo(text)
    return FINE


@token.command("list", cls=Cmd, key="token.list")
@click.pass_obj
def list_(settings: Settings, /) -> int:
    """List tokens."""
    namespace = the_namespace(settings)
    with accounts_of(settings) as accounts:
        found, now = _all(accounts, namespace), accounts.store.now()
    say = settings.say
    if settings.json:
        emit({"tokens": [
            {"id": t.id, "name": t.name, "scopes": t.scopes.split(), "made_by": t.made_by,
             "made_at": t.made_at, "used_at": t.used_at, "ends_at": t.ends_at,
             "standing": _standing(t, now).partition(".")[2]}
            for t in found
        ]})  # fmt: skip
    elif not found:
        click.echo(say("token.none", namespace=namespace))
    else:
        names = ("col.name", "col.scopes", "col.made_by", "col.used", "col.ends", "col.state")
        heads = ["id", *(say(name) for name in names)]
        table(heads, [
            (t.id, t.name, t.scopes, t.made_by, when(t.used_at), when(t.ends_at),
             say(_standing(t, now)))
            for t in found
        ])  # fmt: skip
    return FINE


def _standing(one: ApiToken, now: int) -> str:
    if usable(one, now):
        return "standing.fine"
    if one.revoked_at is not None:
        return "standing.revoked"
    return "standing.held" if one.held_at is not None else "standing.over"


@token.command("revoke", cls=Cmd, key="token.revoke")
@click.argument("ident", metavar="ID")
@click.pass_obj
def revoke(settings: Settings, /, ident: str) -> int:
    """Revoke a token."""
    namespace = the_namespace(settings)
    with accounts_of(settings) as accounts:
        if not accounts.tokens.revoke(namespace, ident, who=me()):
            raise Told("token.unknown", id=ident, namespace=namespace)
    if settings.json:
        emit({"revoked": ident})
    else:
        click.echo(settings.say("token.revoked", id=ident))
    return FINE


@token.command("confirm", cls=Cmd, key="token.confirm")
@click.argument("ident", metavar="ID", required=False)
@option("--all", "everything", is_flag=True, key="confirm_all")
@click.pass_obj
def confirm(settings: Settings, /, ident: str | None, everything: bool) -> int:
    """Let tokens be used again after a restore."""
    if (ident is None) is not everything:
        raise Told("token.name_one")
    namespace = the_namespace(settings)
    with accounts_of(settings) as accounts:
        if ident is not None:
            if accounts.tokens.get(namespace, ident) is None:
                raise Told("token.unknown", id=ident, namespace=namespace)
            held = [ident]
        else:
            held = [t.id for t in _all(accounts, namespace) if t.held_at is not None]
        for one in held:
            accounts.tokens.confirm(namespace, one, who=me())
    if settings.json:
        emit({"confirmed": held})
    else:
        click.echo(settings.say("user.confirmed", count=len(held)))
    return FINE


def _all(accounts: Accounts, namespace: str) -> list[ApiToken]:
    found, after = [], ""
    while page := accounts.tokens.list(namespace, after, PAGE):
        found += page
        after = page[-1].id
    return found

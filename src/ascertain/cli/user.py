"""`ascertain user`: the people who sign in. Whoever runs it holds the store, and so may all."""

from __future__ import annotations

import getpass
import sys
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from typing import Any

import click

from ascertain import read_config
from ascertain.core.books import Account, Member
from ascertain.core.rights import EVERYWHERE, FLAGS, ROLES
from ascertain.runtime.accounts import Accounts
from ascertain.runtime.audit import Who
from ascertain.runtime.people import told

from .base import FINE, Cmd, Grp, Settings, Told, option
from .opening import config_file, the_store
from .out import emit, table

PAGE = 500


@click.group("user", cls=Grp, key="user")
def user() -> None:
    """People who sign in."""


@contextmanager
def accounts_of(settings: Settings) -> Iterator[Accounts]:
    """Open the store's accounts."""
    with closing(the_store(settings)) as store:
        yield Accounts(store)


def me() -> Who:
    """Return who runs the command line, for the audit."""
    try:
        name = getpass.getuser()
    except (OSError, KeyError):
        name = "unknown"
    return Who(actor=f"cli:{name}", via="cli")


def the_namespace(settings: Settings) -> str:
    """Return the namespace that is named, or that of the configuration."""
    if settings.namespace:
        return settings.namespace
    file = config_file(settings)
    return read_config(file).namespace if file else "default"


def address_of_link(settings: Settings, secret: str) -> str:
    """Return where a one-time link is opened, as far as the configuration says."""
    file = config_file(settings)
    server = read_config(file).server if file else None
    base = (server.public_url or f"http://{server.listen}") if server else ""
    return f"{base.rstrip('/')}/link/{secret}"


def the_person(accounts: Accounts, login: str) -> Account:
    """Return a person by his login, or say that there is none."""
    found = accounts.people.by_login(login)
    if found is None:
        raise Told("user.unknown", login=login)
    return found


def membership(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options of a membership to a command."""
    for name in reversed(FLAGS):
        command = option(f"--{name}", is_flag=True)(command)
    command = option("--everywhere", is_flag=True)(command)
    role = option("--role", type=click.Choice(list(ROLES)), required=True, key="user_role")
    return role(command)


def _member(settings: Settings, account: str, given: dict[str, Any]) -> Member:
    return Member(
        account=account,
        namespace=EVERYWHERE if given["everywhere"] else the_namespace(settings),
        role=given["role"],
        **{name: int(given[name]) for name in FLAGS},
    )


@user.command("add", cls=Cmd, key="user.add")
@click.argument("login")
@option("--name", default="", metavar="TEXT", key="user_name")
@membership
@click.pass_obj
def add(settings: Settings, /, login: str, name: str, **given: Any) -> int:
    """Add a person."""
    with accounts_of(settings) as accounts:
        member = _member(settings, "", given)
        account = accounts.people.add(login, name, [member], who=me(), granter=None)
        made = accounts.links.sign_in(account, who=me())
    link = address_of_link(settings, made.secret)
    if settings.json:
        emit({"id": account.id, "login": account.login, "link": link})
    else:
        click.echo(settings.say("user.made", login=account.login, link=link))
    return FINE


@user.command("link", cls=Cmd, key="user.link")
@click.argument("login")
@click.pass_obj
def link(settings: Settings, /, login: str) -> int:
    """Give a person a new link."""
    with accounts_of(settings) as accounts:
        account = the_person(accounts, login)
        made = accounts.links.sign_in(account, who=me())
    address = address_of_link(settings, made.secret)
    if settings.json:
        emit({"login": account.login, "link": address})
    else:
        click.echo(settings.say("user.made", login=account.login, link=address))
    return FINE


@user.command("list", cls=Cmd, key="user.list")
@click.pass_obj
def list_(settings: Settings, /) -> int:
    """List all people."""
    with accounts_of(settings) as accounts:
        found, after = [], ""
        while page := accounts.people.list(None, after, PAGE):
            found += page
            after = page[-1].account.id
    if settings.json:
        emit({"people": [
            {"id": p.account.id, "login": p.account.login, "name": p.account.name,
             "standing": _standing(p.account).partition(".")[2],
             "memberships": {m.namespace: told(m) for m in p.members}}
            for p in found
        ]})  # fmt: skip
    elif not found:
        click.echo(settings.say("user.none"))
    else:
        say = settings.say
        heads = [say(key) for key in ("col.login", "col.name", "col.may", "col.state")]
        table(heads, [
            (p.account.login, p.account.name,
             ", ".join(f"{m.namespace}: {told(m)}" for m in p.members),
             say(_standing(p.account)))
            for p in found
        ])  # fmt: skip
    return FINE


def _standing(account: Account) -> str:
    if account.disabled_at is not None:
        return "standing.disabled"
    if account.held_at is not None:
        return "standing.held"
    return "standing.fine" if account.password else "standing.no_password"


@user.command("passwd", cls=Cmd, key="user.passwd")
@click.argument("login")
@option("--stdin", is_flag=True)
@click.pass_obj
def passwd(settings: Settings, /, login: str, stdin: bool) -> int:
    """Set a password."""
    with accounts_of(settings) as accounts:
        account = the_person(accounts, login)
        if stdin:
            password = sys.stdin.readline().rstrip("\r\n")
        else:
            password = click.prompt(
                settings.say("user.ask"), hide_input=True,
                confirmation_prompt=settings.say("user.again"), err=True,
            )  # fmt: skip
        accounts.people.set_password(account, password, who=me())
    return _said(settings, "user.password", account)


@user.command("grant", cls=Cmd, key="user.grant")
@click.argument("login")
@membership
@click.pass_obj
def grant(settings: Settings, /, login: str, **given: Any) -> int:
    """Give or change a membership."""
    with accounts_of(settings) as accounts:
        account = the_person(accounts, login)
        member = _member(settings, account.id, given)
        accounts.people.grant(account, member, who=me(), granter=None)
    return _said(settings, "user.set", account, may=told(member), namespace=member.namespace)


@user.command("remove", cls=Cmd, key="user.remove")
@click.argument("login")
@option("--everywhere", is_flag=True)
@click.pass_obj
def remove(settings: Settings, /, login: str, everywhere: bool) -> int:
    """Take a membership away."""
    namespace = EVERYWHERE if everywhere else the_namespace(settings)
    with accounts_of(settings) as accounts:
        account = the_person(accounts, login)
        if not accounts.people.end(account, namespace, who=me(), granter=None):
            raise Told("user.not_there", login=account.login, namespace=namespace)
    return _said(settings, "user.gone", account, namespace=namespace)


@user.command("disable", cls=Cmd, key="user.disable")
@click.argument("login")
@option("--why", default="", metavar="TEXT", key="user_why")
@click.pass_obj
def disable(settings: Settings, /, login: str, why: str) -> int:
    """Keep a person out."""
    with accounts_of(settings) as accounts:
        account = the_person(accounts, login)
        accounts.people.disable(account, who=me(), granter=None, why=why)
    return _said(settings, "user.disabled", account)


@user.command("enable", cls=Cmd, key="user.enable")
@click.argument("login")
@click.pass_obj
def enable(settings: Settings, /, login: str) -> int:
    """Let a person in again."""
    with accounts_of(settings) as accounts:
        account = the_person(accounts, login)
        accounts.people.enable(account, who=me(), granter=None)
    return _said(settings, "user.enabled", account)


@user.command("confirm", cls=Cmd, key="user.confirm")
@click.argument("login", required=False)
@option("--all", "everybody", is_flag=True, key="confirm_all")
@click.pass_obj
def confirm(settings: Settings, /, login: str | None, everybody: bool) -> int:
    """Let people in again after a restore."""
    if (login is None) is not everybody:
        raise Told("user.name_one")
    with accounts_of(settings) as accounts:
        if login is not None:
            held = [the_person(accounts, login)]
        else:
            held, after = [], ""
            while page := accounts.people.list(None, after, PAGE):
                held += [p.account for p in page if p.account.held_at is not None]
                after = page[-1].account.id
        for account in held:
            accounts.people.confirm(account, who=me(), granter=None)
    if settings.json:
        emit({"confirmed": [account.login for account in held]})
    else:
        click.echo(settings.say("user.confirmed", count=len(held)))
    return FINE


def _said(settings: Settings, text: str, account: Account, **more: str) -> int:
    if settings.json:
        emit({"login": account.login, **more})
    else:
        click.echo(settings.say(text, login=account.login, **more))
    return FINE

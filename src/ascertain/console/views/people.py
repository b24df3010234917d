"""People and tokens of a namespace, and one's own settings. Nobody gives a right he lacks."""

from __future__ import annotations

from typing import Annotated, Any
from zoneinfo import available_timezones

from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from ascertain.console.forms import Form, back, form
from ascertain.console.person import Person, Signed, own_page
from ascertain.core.books import Member
from ascertain.core.errors import AscertainError, UsageError
from ascertain.core.logins import PASSWORD_LEAST
from ascertain.core.model import SECOND
from ascertain.core.rights import EVERYWHERE, ROLES, SCOPES, Right, rights_in
from ascertain.runtime.loop import hop
from ascertain.server.problems import ProblemError
from ascertain.server.serving import Serving

router = APIRouter(include_in_schema=False)
LISTED = 200  # people, and tokens, of one page
DAY = 24 * 3600 * SECOND  # µs
DAYS = {"": None, "30": 30, "90": 90, "365": 365}
Text = Annotated[str, Query(max_length=40)]


@router.get("/people")
async def people(request: Request, me: Signed, told: Text = "") -> Response:
    """Show who, and which machines, may do something in the namespace."""
    return await _show(request, me, told=told)


@router.post("/people")
async def change(request: Request, me: Signed) -> Response:
    """Do what a form says: add or change a person, make or revoke a token."""
    given = await form(request)
    if not me.has(Right.ADMIN):
        raise ProblemError("forbidden", f"{me.caller.actor} may not administer this namespace")
    serving: Serving = request.app.state.serving
    try:
        secret = await hop(_changed, serving, me, given)
    except AscertainError as error:
        return await _show(request, me, wrong=error, given=given)
    serving.tokens.forget()
    if secret:  # shown this once, so not by a redirect
        return await _show(request, me, told=given["do"], secret=secret)
    return back("/people", given["do"])


def _changed(serving: Serving, me: Person, given: Form) -> str:
    """Carry out a form; returns a secret or a link to be shown once, or nothing."""
    accounts, who, granter = serving.accounts, me.caller.who, me.caller.members
    match given["do"]:
        case "add":
            account = accounts.people.add(
                given["login"], given["name"], [_member(me, given)], who=who, granter=granter
            )
            return serving.link_to(accounts.links.sign_in(account, who=who).secret)
        case "token":
            days = DAYS.get(given["days"])
            ends_at = None if days is None else serving.store.now() + days * DAY
            return accounts.tokens.new(
                me.namespace, given["name"], " ".join(given.all("scope")), who=who,
                ends_at=ends_at, granter=granter,
            ).secret  # fmt: skip
        case "revoke":
            accounts.tokens.revoke(me.namespace, given["id"], who=who)
        case _:
            return _person(serving, me, given)
    return ""


def _person(serving: Serving, me: Person, given: Form) -> str:
    accounts, who, granter = serving.accounts, me.caller.who, me.caller.members
    account = accounts.people.by_id(given["id"])
    members = accounts.people.members(account.id) if account else []
    if account is None or not any(m.namespace in (me.namespace, EVERYWHERE) for m in members):
        raise UsageError("there is no such person in this namespace")
    match given["do"]:
        case "grant":
            accounts.people.grant(account, _member(me, given), who=who, granter=granter)
        case "disable":
            accounts.people.disable(account, who=who, granter=granter, why=given["why"])
        case "enable":
            accounts.people.enable(account, who=who, granter=granter)
        case "new_link":
            if not accounts.people.may_administer(account, granter):
                raise UsageError(f"{account.login} belongs to more than you administer")
            return serving.link_to(accounts.links.sign_in(account, who=who).secret)
        case other:
            raise ProblemError("body_invalid", f"there is nothing called {other!r} to do here")
    return ""


def _member(me: Person, given: Form) -> Member:
    return Member(
        account="", namespace=me.namespace, role=given["role"],
        decides=int(bool(given["decides"])), approves=int(bool(given["approves"])),
        overrides=int(bool(given["overrides"])),
    )  # fmt: skip


async def _show(
    request: Request, me: Person, *, told: str = "", secret: str = "",
    wrong: AscertainError | None = None, given: Form | None = None,
) -> Response:  # fmt: skip
    serving: Serving = request.app.state.serving
    if not me.has(Right.ADMIN):
        raise ProblemError("forbidden", f"{me.caller.actor} may not administer this namespace")

    def read() -> dict[str, Any]:
        found = serving.accounts.people.list(me.namespace, "", LISTED)
        rights = {p.account.id: rights_in(p.members, me.namespace) for p in found}
        tokens = serving.accounts.tokens.list(me.namespace, "", LISTED)
        return {"people": found, "rights": rights, "tokens": tokens}

    found = await hop(read)
    return own_page(
        request, me, "people.html", told_code=told, secret=secret, wrong=wrong,
        given=given or Form({}), roles=list(ROLES), scopes=list(SCOPES), days=list(DAYS), **found,
    )  # fmt: skip


# --- one's own -----------------------------------------------------------------------------


@router.get("/settings")
async def settings(request: Request, me: Signed, told: Text = "") -> Response:
    """Show one's own language, time zone, password and browsers."""
    return await _settings(request, me, told=told)


@router.post("/settings")
async def set_own(request: Request, me: Signed) -> Response:
    """Change one's own settings."""
    serving: Serving = request.app.state.serving
    given, caller = await form(request), me.caller
    accounts, signing = serving.accounts, serving.signing
    account = await hop(accounts.people.by_id, caller.account)
    assert account is not None, "who is signed in has an account"
    try:
        match given["do"]:
            case "password":
                signing.guessing.begin(caller.address, caller.actor)
                checked = await signing.hashing.run(
                    accounts.people.check, caller.actor, given.text("was")
                )
                if checked is None:
                    return await _settings(request, me, wrong_password=True)
                signing.guessing.right(caller.address, caller.actor)
                await signing.hashing.run(
                    accounts.people.set_password, account, given.text("new"), who=caller.who,
                    but=caller.session,
                )  # fmt: skip
            case "others":
                await hop(accounts.sessions.end_all, account.id, who=caller.who, but=caller.session)
            case _:
                await hop(
                    accounts.people.edit, account, name=given["name"] or account.name,
                    lang=given["lang"], zone=given["zone"], who=caller.who,
                )  # fmt: skip
    except AscertainError as error:
        return await _settings(request, me, wrong=error)
    return back("/settings", given["do"] or "edit")


async def _settings(
    request: Request, me: Person, *, told: str = "", wrong: AscertainError | None = None,
    wrong_password: bool = False,
) -> Response:  # fmt: skip
    serving: Serving = request.app.state.serving
    account = await hop(serving.accounts.people.by_id, me.caller.account)
    browsers = await hop(serving.accounts.sessions.list, me.caller.account)
    return own_page(
        request, me, "settings.html", account=account, browsers=browsers, told_code=told,
        wrong=wrong, wrong_password=wrong_password, least=PASSWORD_LEAST, zones=_zones(),
    )  # fmt: skip


def _zones() -> list[str]:
    return sorted(z for z in available_timezones() if "/" in z and not z.startswith("Etc/"))

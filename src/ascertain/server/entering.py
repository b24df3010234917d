"""How people come in: by password, by a one-time link; shared by the API and the pages."""

from __future__ import annotations

from fastapi import Request

from ascertain.core.books import Account, Link
from ascertain.core.logins import folded_login
from ascertain.runtime.audit import Who
from ascertain.runtime.links import ID
from ascertain.runtime.loop import hop
from ascertain.runtime.sessions import Opened
from ascertain.runtime.telemetry import telemetry

from .access import address_of
from .problems import ProblemError
from .serving import Serving
from .signing import cookie


async def sign_in(request: Request, login: str, password: str) -> Opened:
    """Return a new session for a password, in place of the one that the browser had.

    Ends the request with 401 for a wrong password, an unknown login and a disabled person alike,
    with 429 after too many wrong tries.
    """
    serving: Serving = request.app.state.serving
    signing = serving.signing
    signing.at_home(request)
    address, folded = address_of(request), folded_login(login)
    signing.guessing.begin(address, folded)
    people = serving.accounts.people
    account = await signing.hashing.run(people.check, login, password)
    if account is None:
        telemetry.tell("sign_in.refused", address=address)  # no login: some type passwords there
        raise ProblemError(
            "unauthenticated", "login or password is wrong", headers={"WWW-Authenticate": "Bearer"}
        )
    signing.guessing.right(address, folded)
    who = Who(actor=account.login, via="password", address=address)
    agent = request.headers.get("user-agent", "")
    await hop(_end_before, serving, cookie(request, serving.site.cookie), who)
    return await hop(serving.accounts.sessions.open, account, who, agent)


def _end_before(serving: Serving, secret: str, who: Who) -> None:
    """End the session that this browser had, whoever's it was."""
    before = serving.accounts.sessions.of(secret) if secret else None
    if before is not None:
        serving.accounts.sessions.end(before.account, before.hash, who=who)


async def link_of(request: Request, secret: str) -> tuple[Link, Account | None]:
    """Return a link and the person that it is of; ends the request where it is not good."""
    serving: Serving = request.app.state.serving
    address = address_of(request)
    serving.signing.guessing.begin(address)
    link = await hop(serving.accounts.links.of, secret)
    account = None
    if link is not None and link.purpose == "sign_in":
        account = await hop(serving.accounts.people.by_id, link.subject)
        if account is None or account.disabled_at is not None or account.held_at is not None:
            link = None
    if link is None:
        raise ProblemError(
            "unknown",
            "this link was used already, is over, or a newer one took its place: ask for a new one",
        )
    serving.signing.guessing.right(address)
    return link, account


async def redeem(
    request: Request, link: Link, account: Account | None, *, login: str, name: str, password: str
) -> Opened:
    """Use a link up and return the session that it opens: the first user's, with login and
    password, or that of a person with a new password."""
    serving: Serving = request.app.state.serving
    signing, links = serving.signing, serving.accounts.links
    signing.at_home(request)
    who = Who(actor="link", via=f"link:{link.hash[:ID]}", address=address_of(request))
    agent = request.headers.get("user-agent", "")
    if account is None:
        return await signing.hashing.run(
            links.redeem_first, link, login, name, password, who=who, agent=agent
        )
    return await signing.hashing.run(
        links.redeem_sign_in, link, account, password, who=who, agent=agent
    )

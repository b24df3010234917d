"""Signing in and out, who calls, one's own browsers, and one-time links."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

import msgspec
from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from ascertain.core.rights import rights_in
from ascertain.runtime.loop import hop
from ascertain.runtime.sessions import ID
from ascertain.server import entering, shown
from ascertain.server.access import Anybody, Caller
from ascertain.server.messages import answer, documented, read_body
from ascertain.server.problems import ProblemError
from ascertain.server.serving import Serving
from ascertain.server.signing import cookie, csrf_of

router = APIRouter(prefix="/v1", tags=["people"])
SMALL = 16 * 1024  # bytes of a body here


class SignIn(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A login, however it is spelled, and its password."""

    login: Annotated[str, msgspec.Meta(max_length=512)]
    password: Annotated[str, msgspec.Meta(max_length=4096)]


class Me(msgspec.Struct, frozen=True, kw_only=True):
    """Who calls and what he may do. `csrf` goes into the header `Ascertain-CSRF` of every unsafe
    request of this session; machines have none."""

    actor: str
    person: bool
    namespace: str
    role: str
    rights: list[str]
    namespaces: list[str]
    everywhere: bool
    csrf: str


class SignedInNow(msgspec.Struct, frozen=True):
    """What a browser that has just signed in needs: its cookie came beside this."""

    csrf: str


class Browser(msgspec.Struct, frozen=True, kw_only=True):
    """One signed-in browser of a person."""

    id: str
    opened_at: datetime | None
    seen_at: datetime | None
    ends_at: datetime | None
    address: str
    agent: str
    current: bool


class Browsers(msgspec.Struct, frozen=True):
    """The browsers of a person, the one used last first; 20 at most."""

    items: list[Browser]


class Redeem(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a link asks for: the first user's login and password, or a new password."""

    login: Annotated[str, msgspec.Meta(max_length=512)] = ""
    name: Annotated[str, msgspec.Meta(max_length=512)] = ""
    password: Annotated[str, msgspec.Meta(max_length=4096)] = ""


class LinkSeen(msgspec.Struct, frozen=True, kw_only=True):
    """What a link is for: `first_user`, `sign_in` (of `login`) or `guest` (for `to`)."""

    purpose: str
    ends_at: datetime | None
    login: str = ""
    to: str = ""


class LinkRedeemed(msgspec.Struct, frozen=True, kw_only=True):
    """What a link opened; the cookie came beside this."""

    purpose: str
    csrf: str


@router.post("/session", **documented(SignedInNow, body=SignIn, anybody=True))
async def sign_in(request: Request) -> Response:
    """Sign a person in: the answer sets a cookie, and says the token of its unsafe requests.

    401 for a wrong password, an unknown login and a disabled person alike. 429 after too many
    wrong tries from one address or for one login.
    """
    serving: Serving = request.app.state.serving
    serving.signing.at_home(request)  # before the body is read
    asked = await read_body(request, SignIn, SMALL)
    opened = await entering.sign_in(request, asked.login, asked.password)
    made = answer(SignedInNow(csrf=csrf_of(opened.secret)))
    return serving.signing.signed_in(made, opened.secret)


@router.delete("/session", **documented(status=204))
async def sign_out(request: Request, caller: Anybody) -> Response:
    """Sign this browser out; its session is gone at once, everywhere."""
    serving: Serving = request.app.state.serving
    _person(caller)
    await hop(serving.accounts.sessions.end, caller.account, caller.session, who=caller.who)
    made = Response(status_code=204)
    serving.site.take(made, serving.site.cookie)
    return made


@router.get("/me", **documented(Me))
async def me(request: Request, caller: Anybody) -> Response:
    """Tell who calls, in which namespace, and what he may do there."""
    serving: Serving = request.app.state.serving
    mine = [n for n in serving.spaces.names if rights_in(caller.members, n)]
    secret = cookie(request, serving.site.cookie) if caller.session else ""
    return answer(Me(
        actor=caller.actor, person=caller.person, namespace=caller.namespace, role=caller.role,
        rights=sorted(caller.rights), namespaces=mine or [caller.namespace],
        everywhere=bool(caller.everywhere), csrf=csrf_of(secret) if secret else "",
    ))  # fmt: skip


@router.get("/sessions", **documented(Browsers, problems=(404,)))
async def sessions(
    request: Request, caller: Anybody, person: Annotated[str, Query(max_length=64)] = ""
) -> Response:
    """List one's own browsers, or with `person` those of somebody whom one administers."""
    serving: Serving = request.app.state.serving
    account = await hop(_whose, serving, caller, person)
    found = await hop(serving.accounts.sessions.list, account)
    return answer(Browsers([
        Browser(
            id=s.hash[:ID], opened_at=shown.time(s.opened_at), seen_at=shown.time(s.seen_at),
            ends_at=shown.time(s.ends_at), address=s.address, agent=s.agent,
            current=s.hash == caller.session,
        )
        for s in found
    ]))  # fmt: skip


@router.delete("/sessions", **documented(status=204, problems=(404,)))
async def end_sessions(
    request: Request, caller: Anybody, person: Annotated[str, Query(max_length=64)] = ""
) -> Response:
    """Sign every other browser of one's own out, or with `person` all of somebody whom one
    administers."""
    serving: Serving = request.app.state.serving
    account = await hop(_whose, serving, caller, person)
    await hop(serving.accounts.sessions.end_all, account, who=caller.who, but=caller.session)
    return Response(status_code=204)


@router.delete("/sessions/{session}", **documented(status=204, problems=(404,)))
async def end_session(
    session: str,
    request: Request,
    caller: Anybody,
    person: Annotated[str, Query(max_length=64)] = "",
) -> Response:
    """Sign one browser out."""
    serving: Serving = request.app.state.serving
    account = await hop(_whose, serving, caller, person)
    if not await hop(serving.accounts.sessions.end, account, session, who=caller.who):
        raise ProblemError("unknown", "there is no such session: see GET /v1/sessions")
    return Response(status_code=204)


def _whose(serving: Serving, caller: Caller, person: str) -> str:
    """Return whose browsers are meant, or end the request."""
    _person(caller)
    if not person or person == caller.account:
        return caller.account
    people = serving.accounts.people
    account = people.by_id(person)
    if account is None or not people.may_administer(account, caller.members):
        raise ProblemError("unknown", "there is no such person among those whom you administer")
    return account.id


def _person(caller: Caller) -> None:
    if not caller.account:
        raise ProblemError("forbidden", "this is for people who have signed in")


# --- links ---------------------------------------------------------------------------------


@router.get("/links/{secret}", **documented(LinkSeen, problems=(404,), anybody=True))
async def look_at_link(secret: str, request: Request) -> Response:
    """Tell what a link is for; it stays as good as it was."""
    link, account = await entering.link_of(request, secret)
    return answer(LinkSeen(
        purpose=link.purpose, ends_at=shown.time(link.ends_at), to=link.who,
        login=account.login if account else "",
    ))  # fmt: skip


@router.post(
    "/links/{secret}",
    **documented(LinkRedeemed, body=Redeem, problems=(404, 409), anybody=True),
)
async def redeem_link(secret: str, request: Request) -> Response:
    """Use a link: the first user chooses login and password, a person a new password; both are
    signed in then, and the link is used up. A guest's link opens its one request."""
    serving: Serving = request.app.state.serving
    serving.signing.at_home(request)  # before the body is read
    asked = await read_body(request, Redeem, SMALL)
    link, account = await entering.link_of(request, secret)
    if link.purpose == "guest":
        made = answer(LinkRedeemed(purpose="guest", csrf=csrf_of(secret)))
        lasts = max(1, (link.ends_at - serving.store.now()) // 1_000_000)
        serving.site.give(made, serving.site.guest_cookie, secret, lasts)
        return made
    opened = await entering.redeem(
        request, link, account, login=asked.login, name=asked.name, password=asked.password
    )
    made = answer(LinkRedeemed(purpose=link.purpose, csrf=csrf_of(opened.secret)))
    return serving.signing.signed_in(made, opened.secret)

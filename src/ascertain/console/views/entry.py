"""The way in: signing in and out, one-time links, a guest's one request, and the first page."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from starlette.responses import RedirectResponse, Response

from ascertain.console.alarms import alarms_of
from ascertain.console.forms import Form, back, form, inside
from ascertain.console.glyphs import pill
from ascertain.console.pages import page, reader
from ascertain.console.person import Signed, own_page
from ascertain.core.books import Account, Link
from ascertain.core.errors import AscertainError
from ascertain.core.logins import PASSWORD_LEAST
from ascertain.runtime.loop import hop
from ascertain.server import entering
from ascertain.server.access import address_of
from ascertain.server.problems import ProblemError
from ascertain.server.routes import guest
from ascertain.server.serving import Serving

from .reviews import settled_alone

router = APIRouter(include_in_schema=False)
WAITING = 10  # operations that need a person, on the first page
To = Annotated[str, Query(max_length=2000)]


@router.get("/")
async def home(request: Request, me: Signed) -> Response:
    """Show what needs a person, and the way to a first operation."""
    serving: Serving = request.app.state.serving
    ledger = serving.space(me.namespace).ledger

    def read() -> dict[str, Any]:
        waiting = ledger.find(unsettled=True, waiting_on="review", limit=WAITING)
        rows = [(receipt, *pill(receipt, me.reader.lang)) for receipt in waiting]
        alarms, overdue = alarms_of(request.app, serving, me)
        settled = 0 if rows else settled_alone(serving, me.namespace)
        fresh = not rows and not ledger.find(limit=1)
        return {
            "fresh": fresh, "waiting": rows, "settled": settled, "alarms": alarms,
            "overdue": overdue,
        }  # fmt: skip

    found = await hop(read)
    return own_page(request, me, "home.html", **found)


# --- signing in and out --------------------------------------------------------------------


@router.get("/sign-in")
async def sign_in_page(request: Request, to: To = "/") -> Response:
    """Ask for login and password."""
    return page(request, "sign_in.html", to=inside(to), wrong="")


@router.post("/sign-in")
async def sign_in(request: Request) -> Response:
    """Sign a person in, and show the page that he came for."""
    serving: Serving = request.app.state.serving
    given = await form(request)
    try:
        opened = await entering.sign_in(request, given["login"], given.text("password"))
    except ProblemError as error:
        if error.code not in ("unauthenticated", "too_many"):
            raise
        return page(request, "sign_in.html", 401, to=inside(given["to"]), wrong=error.code)
    return serving.signing.signed_in(
        RedirectResponse(inside(given["to"]), status_code=303), opened.secret
    )


@router.post("/sign-out")
async def sign_out(request: Request, me: Signed) -> Response:
    """Sign this browser out; its session is gone at once, everywhere."""
    serving: Serving = request.app.state.serving
    caller = me.caller
    await hop(serving.accounts.sessions.end, caller.account, caller.session, who=caller.who)
    made = RedirectResponse("/sign-in", status_code=303)
    serving.site.take(made, serving.site.cookie)
    return made


# --- links ---------------------------------------------------------------------------------


@router.get("/link/{secret}")
async def link_page(secret: str, request: Request) -> Response:
    """Show what a link is for; looking at it does not use it up."""
    link, account = await entering.link_of(request, secret)
    return await _link_page(request, link, account, Form({}))


@router.post("/link/{secret}")
async def use_link(secret: str, request: Request) -> Response:
    """Use a link: choose a password and be signed in, or answer the one request."""
    serving: Serving = request.app.state.serving
    given = await form(request)
    link, account = await entering.link_of(request, secret)
    try:
        if link.purpose == "guest":
            serving.signing.at_home(request)
            await hop(
                guest.answered, serving, link, given["digest"], given["note"],
                consent=given["answer"] == "approve", address=address_of(request),
            )  # fmt: skip
            return await _link_page(request, link, account, given)
        opened = await entering.redeem(
            request, link, account, login=given["login"], name=given["name"],
            password=given.text("password"),
        )  # fmt: skip
    except AscertainError as error:
        return await _link_page(request, link, account, given, wrong=error, status=409)
    return serving.signing.signed_in(back("/"), opened.secret)


async def _link_page(
    request: Request, link: Link, account: Account | None, given: Form, *,
    wrong: AscertainError | None = None,
    status: int = 200,
) -> Response:  # fmt: skip
    serving: Serving = request.app.state.serving
    who = reader(request)
    if link.purpose == "guest":
        asked = await hop(guest.asked_of, serving, link)
        shown = guest.frozen(asked.request)
        return page(
            request, "guest.html", status, reader=who, asked=asked, shown=shown, link=link,
            open=asked.state == "asked", wrong=wrong, given=given,
        )  # fmt: skip
    return page(
        request, "link.html", status, reader=who, first=account is None, account=account,
        until=who.time(link.ends_at, serving.store.now()), least=PASSWORD_LEAST, wrong=wrong,
        given=given,
    )  # fmt: skip

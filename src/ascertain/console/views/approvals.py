"""Approvals: exactly what would be sent, what changed since the last version, and four answers."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from ascertain.console.forms import Form, back, form
from ascertain.console.person import Person, Signed, own_page
from ascertain.core.consequences import of_approval
from ascertain.core.errors import AscertainError, Refused
from ascertain.core.model import SECOND
from ascertain.core.rights import Right
from ascertain.runtime.approving import Approving, Ask
from ascertain.runtime.loop import hop
from ascertain.server.problems import ProblemError
from ascertain.server.routes.approvals import answers_himself
from ascertain.server.serving import Serving

router = APIRouter(include_in_schema=False)
LISTED = 50  # asks of one page
DAY = 24 * 3600 * SECOND  # µs
DAYS = ("1", "3", "7")  # that a guest's link may be good for
Text = Annotated[str, Query(max_length=200)]


@router.get("/approvals")
async def asks(request: Request, me: Signed, after: Text = "", told: Text = "") -> Response:
    """Show what waits for consent, the oldest first."""
    return await _show(request, me, "", after=after, told=told)


@router.get("/approvals/{ask}")
async def one(ask: str, request: Request, me: Signed, told: Text = "") -> Response:
    """Show one request exactly as it would be sent."""
    return await _show(request, me, ask, told=told)


@router.post("/approvals/{ask}")
async def answered(ask: str, request: Request, me: Signed) -> Response:
    """Approve, reject, send back, or make a new version; then show the page again."""
    given = await form(request)
    if not me.has(Right.APPROVE):
        raise ProblemError("forbidden", f"{me.caller.actor} may not approve here")
    approving = _approving(request, me)
    found = await hop(approving.ask, ask)
    if found is None:
        raise ProblemError("unknown", f"there is no approval {ask} in this namespace")
    answers_himself(request.app.state.serving, me.caller, found.role)
    try:
        if given["do"] == "guest":  # shown this once, so not by a redirect
            link = await hop(_guest, request.app.state.serving, found, given, me)
            return await _show(request, me, ask, link=link)
        await hop(_done, approving, found, given, me)
    except AscertainError as error:
        return await _show(request, me, ask, wrong=error, given=given)
    return back(f"/approvals/{ask}", given["do"])


def _done(approving: Approving, ask: Ask, given: Form, me: Person) -> None:
    """Carry out an answer; it names the digest that was shown."""
    about: dict[str, Any] = {
        "by": me.caller.actor, "role": ask.role, "digest": given["digest"], "note": given["note"],
        "who": me.caller.who,
    }  # fmt: skip
    desk = approving.desk
    match given["do"]:
        case "approve":
            desk.approve(ask.operation, **about)
        case "reject":
            desk.reject(ask.operation, **about)
        case "respond":
            desk.respond(ask.operation, **about)
        case "edit":
            fields = {n: given.text(f"field:{n}") for n in given.all("fields")}
            approving.edit(ask, fields, who=me.caller.who, why=given["note"])
        case other:
            raise ProblemError("body_invalid", f"there is no answer {other!r} to an approval")


def _guest(serving: Serving, ask: Ask, given: Form, me: Person) -> str:
    """Return a link by which one person without an account answers exactly this request."""
    if ask.state != "asked":
        raise Refused("this is decided already", operation=ask.operation)
    days = int(given["days"]) if given["days"] in DAYS else 1
    made = serving.accounts.links.guest(
        me.namespace, ask.operation, ask.digest, role=ask.role, to=given["to"],
        who=me.caller.who, lasts=days * DAY,
    )  # fmt: skip
    return serving.link_to(made.secret)


async def _show(
    request: Request, me: Person, ask: str, *, after: str = "", told: str = "", link: str = "",
    wrong: AscertainError | None = None, given: Form | None = None,
) -> Response:  # fmt: skip
    approving = _approving(request, me)
    serving: Serving = request.app.state.serving

    def read() -> dict[str, Any]:
        found = approving.find(after=after, limit=LISTED)
        one = approving.ask(ask) if ask else (found[0] if found else None)
        if ask and one is None:
            raise ProblemError("unknown", f"there is no approval {ask} in this namespace")
        full = approving.full(one) if one else None
        guests = serving.accounts.links.list(me.namespace, one.operation) if one else []
        texts = {}
        if full is not None and isinstance(full.input, dict):
            texts = {n: v for n, v in full.input.items() if isinstance(v, str)}
        return {"asks": found, "full": full, "texts": texts, "guests": guests}

    found = await hop(read)
    says = {one.answer: one.says[me.reader.lang] for one in of_approval()}
    shown = found["full"].input if found["full"] else None
    plain = msgspec.json.format(msgspec.json.encode(shown), indent=2).decode()
    return own_page(
        request, me, "approvals.html", told_code=told, wrong=wrong, given=given or Form({}),
        view="detail" if ask else "list", says=says, plain=plain, link=link, days=DAYS, **found,
    )  # fmt: skip


def _approving(request: Request, me: Person) -> Approving:
    serving: Serving = request.app.state.serving
    return Approving(serving.space(me.namespace).ledger)

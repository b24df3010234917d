"""A guest's one request: somebody without an account sees exactly what would be sent, and answers.

The link is bound to one operation, one role and one digest. It is stale as soon as the request
changes, and used up by the answer.
"""

from __future__ import annotations

import base64
import binascii
from datetime import datetime
from typing import Annotated, Any

import msgspec
from fastapi import APIRouter, Request
from starlette.responses import Response

from ascertain.core.books import Link
from ascertain.core.errors import ApprovalStale, Refused
from ascertain.core.model import SECOND
from ascertain.core.people import SECOND_PERSON
from ascertain.runtime.desk import Asked
from ascertain.runtime.links import GUEST_FOR, ID
from ascertain.runtime.loop import hop
from ascertain.server import shown
from ascertain.server.access import Approver, Caller, Guest
from ascertain.server.finding import known_id
from ascertain.server.messages import answer, documented, read_body
from ascertain.server.problems import ProblemError
from ascertain.server.routes.approvals import answers_himself
from ascertain.server.serving import Serving
from ascertain.server.signing import cookie, csrf_of, guest_of

router = APIRouter(prefix="/v1", tags=["approvals"])
SMALL = 64 * 1024  # bytes of a body here
HOUR = 3600 * SECOND  # µs


class NewGuestLink(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """To whom a link is given, for which role (if several are asked), and for how long."""

    to: str
    role: str = ""
    hours: Annotated[int, msgspec.Meta(ge=1, le=720)] = GUEST_FOR // HOUR


class GuestLink(msgspec.Struct, frozen=True, kw_only=True):
    """A link that was given out, without its secret."""

    id: str
    to: str
    role: str
    made_by: str
    made_at: datetime | None
    ends_at: datetime | None
    used_at: datetime | None


class GuestLinks(msgspec.Struct, frozen=True):
    """The links to one operation, newest first; 100 at most."""

    items: list[GuestLink]


class GuestLinkMade(msgspec.Struct, frozen=True, kw_only=True):
    """A new link; its address is shown this once."""

    link: str
    given: GuestLink


class FrozenShown(msgspec.Struct, frozen=True, kw_only=True):
    """A request exactly as it would be sent, without credentials. `text` is its body where that
    is text, else `base64`; `target_keys` are the places that carry our key."""

    method: str
    url: str
    headers: list[tuple[str, str]]
    target_keys: list[str]
    text: str | None = None
    base64: str | None = None


class GuestView(msgspec.Struct, frozen=True, kw_only=True):
    """What a guest is asked: the frozen request, or where none is frozen the input. `csrf` goes
    into the header `Ascertain-CSRF` of the answer where the link came as a cookie."""

    to: str
    role: str
    title: str
    action: str
    digest: str
    state: str
    asked_at: datetime | None
    ends_at: datetime | None
    request: FrozenShown | None
    input: Any
    csrf: str


class GuestAnswer(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A guest's answer to the request of this digest, which he saw."""

    digest: str
    note: Annotated[str, msgspec.Meta(max_length=2000)] = ""


class GuestAnswered(msgspec.Struct, frozen=True):
    """What the guest's answer was: approved or rejected."""

    state: str


@router.post(
    "/operations/{operation}/guest-link",
    **documented(GuestLinkMade, status=201, body=NewGuestLink, problems=(404, 409)),
)
async def give_link(operation: str, request: Request, caller: Approver) -> Response:
    """Give one person, who has no account, a link to approve or reject exactly this request. Only
    who may answer it himself can do that."""
    serving: Serving = request.app.state.serving
    asked = await read_body(request, NewGuestLink, SMALL)

    def give() -> GuestLinkMade:
        ledger = serving.space(caller.namespace).ledger
        open_now = [a for a in _consents(ledger.asked(known_id(operation))) if a.state == "asked"]
        mine = [a for a in open_now if asked.role in ("", a.role)]
        if len(mine) != 1:
            roles = ", ".join(a.role for a in open_now) or "none"
            raise Refused(f"name the role that is asked now: {roles}", operation=operation)
        # Else whoever approves anything could answer in every role, through a guest of his own.
        answers_himself(serving, caller, mine[0].role)
        made = serving.accounts.links.guest(
            caller.namespace, mine[0].operation, mine[0].digest, role=mine[0].role, to=asked.to,
            who=caller.who, lasts=asked.hours * HOUR,
        )  # fmt: skip
        return GuestLinkMade(link=serving.link_to(made.secret), given=_given(made.link))

    return answer(await hop(give), 201)


@router.get("/operations/{operation}/guest-links", **documented(GuestLinks, problems=(404,)))
async def links(operation: str, request: Request, caller: Approver) -> Response:
    """List the links that were given out for an operation."""
    serving: Serving = request.app.state.serving
    ident = (await hop(serving.space(caller.namespace).ledger.get, known_id(operation))).id
    found = await hop(serving.accounts.links.list, caller.namespace, ident)
    return answer(GuestLinks([_given(link) for link in found]))


@router.delete(
    "/operations/{operation}/guest-links/{link}", **documented(status=204, problems=(404,))
)
async def take_link_back(operation: str, link: str, request: Request, caller: Approver) -> Response:
    """Take a link back that was not used."""
    serving: Serving = request.app.state.serving
    kept = serving.accounts.links
    for one in await hop(kept.list, caller.namespace, known_id(operation)):
        if one.hash[:ID] == link:
            await hop(kept.end, one, who=caller.who)
            return Response(status_code=204)
    raise ProblemError("unknown", "there is no such link to this operation")


@router.get("/guest", **documented(GuestView, problems=(409,)))
async def see(request: Request, caller: Guest) -> Response:
    """Show a guest exactly what he is asked to approve."""
    serving: Serving = request.app.state.serving
    link: Link = request.state.guest_link
    assert caller.only == link.subject
    asked = await hop(asked_of, serving, link)
    secret = cookie(request, serving.site.guest_cookie)
    return answer(GuestView(
        to=link.who, role=link.role, title=asked.title, action=asked.action, digest=asked.digest,
        state=asked.state, asked_at=shown.time(asked.asked_at), ends_at=shown.time(link.ends_at),
        request=frozen(asked.request), input=asked.input if asked.request is None else None,
        csrf=csrf_of(secret) if secret else "",
    ))  # fmt: skip


@router.post("/guest/approve", **documented(GuestAnswered, body=GuestAnswer, problems=(409,)))
async def approve(request: Request, caller: Guest) -> Response:
    """Approve exactly the request that was shown; the link is used up."""
    return await _answered(request, caller, consent=True)


@router.post("/guest/reject", **documented(GuestAnswered, body=GuestAnswer, problems=(409,)))
async def reject(request: Request, caller: Guest) -> Response:
    """Reject the request that was shown: nothing is sent, and the link is used up."""
    return await _answered(request, caller, consent=False)


async def _answered(request: Request, caller: Caller, *, consent: bool) -> Response:
    serving: Serving = request.app.state.serving
    given = await read_body(request, GuestAnswer, SMALL)
    link: Link = request.state.guest_link
    await hop(
        answered, serving, link, given.digest, given.note, consent=consent, address=caller.address
    )
    return answer(GuestAnswered("approved" if consent else "rejected"))


def answered(
    serving: Serving, link: Link, digest: str, note: str, *, consent: bool, address: str = ""
) -> None:
    """Approve or reject the request of a link, which was shown under this digest; durable.

    Raises ApprovalStale where it is not what would be sent now, Refused where it was answered.
    """
    if digest != link.digest:
        raise ApprovalStale("this is not the request of your link: look at it again")
    asked = asked_of(serving, link)
    if asked.state != "asked":
        raise Refused("this request was answered already", operation=link.subject)
    who = guest_of(link, address)
    ledger = serving.space(link.namespace).ledger
    verb = ledger.approve if consent else ledger.reject
    verb(link.subject, by=who.actor, role=link.role, digest=digest, note=note, who=who)
    # Not needed to keep it one-time: the approval itself is. It makes the link say so.
    serving.accounts.links.use(link, who)


def asked_of(serving: Serving, link: Link) -> Asked:
    """Return what a link asks; raises ApprovalStale where that is not what would be sent now."""
    found = _consents(serving.space(link.namespace).ledger.asked(link.subject))
    mine = [a for a in found if a.role == link.role]
    if mine and mine[-1].digest == link.digest:
        return mine[-1]
    raise ApprovalStale(
        "the request changed after this link was given: ask for a new link",
        operation=link.subject,
    )


def _consents(asked: list[Asked]) -> list[Asked]:
    """Leave out the two words that a risky decision needs: they are no approvals."""
    return [a for a in asked if a.role != SECOND_PERSON]


def frozen(request: dict[str, Any] | None) -> FrozenShown | None:
    """Return a frozen request as people read it, every byte of it."""
    if request is None:
        return None
    raw = str(request.get("body", ""))
    try:
        text: str | None = base64.b64decode(raw, validate=True).decode("utf-8")
    except (binascii.Error, UnicodeDecodeError):
        text = None
    return FrozenShown(
        method=request["method"], url=request["url"],
        headers=[(n, v) for n, v in request.get("headers", [])],
        target_keys=list(request.get("key_forms", [])), text=text,
        base64=raw if text is None else None,
    )  # fmt: skip


def _given(link: Link) -> GuestLink:
    return GuestLink(
        id=link.hash[:ID], to=link.who, role=link.role, made_by=link.made_by,
        made_at=shown.time(link.made_at), ends_at=shown.time(link.ends_at),
        used_at=shown.time(link.used_at),
    )  # fmt: skip

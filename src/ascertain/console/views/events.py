"""What came in from outside: the event, how it arrived, what it led to or why it was ignored."""

from __future__ import annotations

import contextlib
from typing import Annotated, Any
from urllib.parse import quote

import msgspec
from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from ascertain.console.detail import events_of
from ascertain.console.forms import back
from ascertain.console.person import Signed, own_page
from ascertain.core.rights import Right
from ascertain.runtime import tryout
from ascertain.runtime.intake import EventLine, Made
from ascertain.runtime.loop import hop
from ascertain.server.problems import ProblemError
from ascertain.server.serving import Serving

router = APIRouter(include_in_schema=False)
LISTED = 50  # events of one page
SHOWN = 4000  # characters of a body that are shown
NEVER = 2**62
# Of an event's state: the glyph of its row.
GLYPHS = {
    "received": "auto", "processed": "done", "ignored": "not", "stale": "not", "failed": "fix",
    "shown": "look",
}  # fmt: skip
Text = Annotated[str, Query(max_length=255)]


@router.get("/events")
async def events(
    request: Request,
    me: Signed,
    *,
    source: Text = "",
    state: Text = "",
    since: Annotated[str, Query(max_length=16)] = "",
    before: Annotated[str, Query(max_length=600)] = "",
) -> Response:
    """List the events, the newest first; those that are counted are all but test entries'."""
    serving: Serving = request.app.state.serving
    at, _, rest = before.partition(".")
    place = min(int(at), NEVER) if at.isdecimal() else NEVER
    name, _, ident = rest.partition("/")

    def read() -> list[tuple[EventLine, list[Made]]]:
        found = serving.store.ask(
            EventLine, "events_listed", namespace=me.namespace, source=source or None,
            state=state or None, topic=None, subject=None,
            since=me.reader.day(since) or 0, before_at=place,
            before_source=name, before_id=ident, limit=LISTED,
        )  # fmt: skip
        return [(one, msgspec.json.decode(one.operations, type=list[Made])) for one in found]

    found = await hop(read)
    last = found[-1][0] if len(found) == LISTED else None
    more = f"{last.received_at}.{last.source}/{last.id}" if last else ""
    address = str(request.base_url).rstrip("/")
    return own_page(
        request, me, "events.html", events=found, glyphs=GLYPHS, source=source,
        state=state, since=since, more=more, url=serving.public_url or address,
    )  # fmt: skip


@router.get("/event/{source}/{event:path}")
async def event(
    source: str, event: str, request: Request, me: Signed, *, told: Text = "", tried: Text = ""
) -> Response:
    """Show one event with its deliveries; with `tried` also what it would lead to now. Nothing is
    done by it."""
    serving: Serving = request.app.state.serving
    intake = serving.intake

    def read() -> dict[str, Any] | None:
        found = intake.event(me.namespace, source, event)
        if found is None:
            return None
        deliveries = intake.deliveries(found)
        return {
            "event": found,
            "deliveries": deliveries,
            "subscriptions": len({d.subscription for d in deliveries if d.subscription}),
            "made": msgspec.json.decode(found.operations, type=list[Made]),
            "body": _body(found.body),
            "tried": tryout.evaluation(intake, found) if tried else None,
        }

    found = await hop(read)
    if found is None:
        return await by_id(f"{source}/{event}", request, me)
    return own_page(request, me, "event.html", glyphs=GLYPHS, told_code=told, **found)


@router.get("/event/{event:path}")
async def by_id(event: str, request: Request, me: Signed) -> Response:
    """Go to the event of an id; where several senders have one, list them."""
    serving: Serving = request.app.state.serving
    found = await hop(events_of, serving, me.namespace, event)
    if not found:
        raise ProblemError("unknown", f"there is no event {event!r} here")
    if len(found) > 1:
        return own_page(request, me, "event_which.html", found=found, glyphs=GLYPHS)
    return back(_place(found[0].source, found[0].id))


@router.post("/event/{source}/{event:path}")
async def again(source: str, event: str, request: Request, me: Signed) -> Response:
    """Let an event that could not be processed be tried again; nothing is made twice by it."""
    serving: Serving = request.app.state.serving
    if not me.has(Right.OPERATE):
        raise ProblemError("forbidden", f"{me.caller.actor} may not do this here")
    did = await hop(serving.intake.again, me.namespace, source, event, me.caller.who)
    return back(_place(source, event), "again" if did else "")


def _place(source: str, event: str) -> str:
    return f"/event/{quote(source, safe='')}/{quote(event, safe='')}"


def _body(text: str) -> str:
    """Return a body as it is read best, shortened."""
    with contextlib.suppress(msgspec.DecodeError):  # no JSON: as it came
        text = msgspec.json.format(text, indent=2)
    return text if len(text) <= SHOWN else text[:SHOWN] + "…"

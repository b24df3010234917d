"""The audit: who did what, when and why. Nothing of it changes."""

from __future__ import annotations

from typing import Annotated
from urllib.parse import urlencode

from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from ascertain.console.did import DID, told
from ascertain.console.person import Signed, own_page
from ascertain.core.rights import Right
from ascertain.runtime.audit import FIRST_MOMENT, LAST_MOMENT, Wanted
from ascertain.runtime.loop import hop
from ascertain.server.problems import ProblemError
from ascertain.server.serving import Serving

router = APIRouter(include_in_schema=False)
LISTED = 100  # lines of one page
Text = Annotated[str, Query(max_length=200)]
Day = Annotated[str, Query(max_length=10)]


@router.get("/audit")
async def audit(
    request: Request, me: Signed, *, actor: Text = "", did: Text = "", subject: Text = "",
    since: Day = "", until: Day = "", after: Text = "",
) -> Response:  # fmt: skip
    """List what was done, the newest first."""
    serving: Serving = request.app.state.serving
    if not me.has(Right.ADMIN):
        raise ProblemError("forbidden", f"{me.caller.actor} may not read the audit here")
    begin, end = me.reader.day(since), me.reader.day(until, end=True)
    wanted = Wanted(
        actor=actor or None, did=did or None, subject=subject or None,
        since=FIRST_MOMENT if begin is None else begin, until=LAST_MOMENT if end is None else end,
    )  # fmt: skip
    words = {"actor": actor, "did": did, "subject": subject}
    days = {"since": since if begin is not None else "", "until": until if end is not None else ""}
    times = {"since": begin, "until": end}
    named = {n: me.reader.iso(at) for n, at in times.items() if at is not None}
    file = _address("/v1/audit.csv", **words, **named, namespace=me.namespace)
    log = serving.accounts.log
    found = await hop(log.find, me.namespace, wanted, before=after, limit=LISTED + 1)
    more = found[LISTED - 1].id if len(found) > LISTED else ""
    return own_page(
        request, me, "audit.html", lines=found[:LISTED], did=DID, file=file,
        said=lambda did, text: told(did, text, me.reader),
        given={**words, **days},
        more=_address("/audit", **words, **days, after=more) if more else "",
    )  # fmt: skip


def _address(path: str, **given: str) -> str:
    return f"{path}?{urlencode({name: value for name, value in given.items() if value})}"

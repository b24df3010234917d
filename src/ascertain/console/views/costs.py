"""The lines of cost that a figure is made of, and the assets that passed acceptance."""

from __future__ import annotations

from typing import Annotated, Any
from urllib.parse import urlencode

import msgspec
from fastapi import APIRouter, Depends, Query, Request
from starlette.responses import Response

from ascertain.console.person import Signed, own_page
from ascertain.core import costs as rules
from ascertain.runtime.audit import LAST_MOMENT
from ascertain.runtime.costs import cursor
from ascertain.runtime.loop import hop
from ascertain.server.serving import Serving

router = APIRouter(include_in_schema=False)
LISTED = 100  # lines of one page
Text = Annotated[str, Query(max_length=20)]


class Paid(msgspec.Struct, frozen=True):
    """Which lines are listed, as it stands in the address; `assets`: not lines, but assets."""

    since: str = ""
    until: str = ""
    cause: str = ""
    kind: str = ""
    only: str = ""
    assets: str = ""

    def but(self, **new: str) -> str:
        """Return the address of the list with other values."""
        chosen = {n: v for n, v in {**msgspec.structs.asdict(self), **new}.items() if v}
        return "/costs" + (f"?{urlencode(chosen)}" if chosen else "")


def _asked(
    *, since: Text = "", until: Text = "", cause: Text = "", kind: Text = "", only: Text = "",
    assets: Text = "",
) -> Paid:  # fmt: skip
    return Paid(since, until, cause, kind, only, assets)


@router.get("/costs")
async def costs(
    request: Request,
    me: Signed,
    asked: Annotated[Paid, Depends(_asked)],
    after: Annotated[str, Query(max_length=rules.TEXT * 2)] = "",
) -> Response:
    """List lines of cost in the order of time, or the accepted assets in that of their keys."""
    serving: Serving = request.app.state.serving
    read = serving.spaces.costs
    since, until = me.reader.day(asked.since), me.reader.day(asked.until, end=True)
    begin, end = since or 0, LAST_MOMENT if until is None else until
    found: list[Any]
    if asked.assets:
        found = await hop(
            read.assets, me.namespace, begin, end, after=after, state="accepted", limit=LISTED + 1
        )
    else:
        found = await hop(
            read.lines, me.namespace, begin, end, after=after, kind=asked.kind, cause=asked.cause,
            only=asked.only, limit=LISTED + 1,
        )  # fmt: skip
    last = found[LISTED - 1] if len(found) > LISTED else None
    more = "" if last is None else last.key if asked.assets else cursor(last)
    named = {"from": since, "to": until}
    span = {n: me.reader.iso(at) for n, at in named.items() if at is not None}
    file = f"/v1/costs.csv?{urlencode({**span, 'namespace': me.namespace})}"
    return own_page(
        request, me, "costs.html", asked=asked, rows=found[:LISTED], more=more, file=file
    )

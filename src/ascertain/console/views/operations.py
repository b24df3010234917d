"""The operations: plain-text search, filters in the address, page by page, the newest first."""

from __future__ import annotations

from typing import Annotated, Any
from urllib.parse import parse_qsl, urlencode

import msgspec
from fastapi import APIRouter, Depends, Query, Request
from msgspec.structs import asdict
from starlette.responses import Response

from ascertain.console import saved
from ascertain.console.forms import form, remembered
from ascertain.console.glyphs import PILLS, pill
from ascertain.console.person import Person, Signed, own_page
from ascertain.console.reader import Reader
from ascertain.core.model import State
from ascertain.core.words import LANGUAGES
from ascertain.runtime.loop import hop
from ascertain.runtime.searching import Searching, Wanted
from ascertain.server.serving import Serving

router = APIRouter(include_in_schema=False)
LISTED = 50  # operations of one page
# Of a state: the glyph of its chip.
STATES = {
    State.UNKNOWN: "unk", State.RUNNING: "auto", State.PENDING: "wait", State.ACCEPTED: "acc",
    State.DONE: "done", State.NOT_DONE: "not",
}  # fmt: skip
KNOWN = {state.value for state in State}
Text = Annotated[str, Query(max_length=200)]
Day = Annotated[str, Query(max_length=10)]


class Filters(msgspec.Struct, frozen=True):
    """What is looked for, as it stands in the address; days are of the reader's zone."""

    q: str = ""
    state: str = ""
    action: str = ""
    run: str = ""
    person: str = ""
    since: str = ""
    until: str = ""

    @property
    def given(self) -> dict[str, str]:
        """The filters that are set."""
        return {name: value for name, value in asdict(self).items() if value}

    def wanted(self, reader: Reader) -> Wanted:
        """Return what the ledger is asked for."""
        return Wanted(
            q=self.q.strip() or None, action=self.action or None, run=self.run or None,
            person=self.person or None, states=(State(self.state),) if self.state else None,
            since=reader.day(self.since), until=reader.day(self.until, end=True),
        )  # fmt: skip

    def but(self, **new: str) -> str:
        """Return the address of the list with other values."""
        chosen = {name: value for name, value in {**self.given, **new}.items() if value}
        return "/operations" + (f"?{urlencode(chosen)}" if chosen else "")

    def file(self, me: Person) -> str:
        """Return the address of the same list as a file."""
        chosen = {**self.given, "namespace": me.namespace}
        for name, at in (("since", me.reader.day(self.since)),
                         ("until", me.reader.day(self.until, end=True))):  # fmt: skip
            if at is not None:
                chosen[name] = me.reader.iso(at)
        return f"/v1/operations.csv?{urlencode(chosen)}"


def _filters(
    *, q: Text = "", state: Text = "", action: Text = "", run: Text = "", person: Text = "",
    since: Day = "", until: Day = "",
) -> Filters:  # fmt: skip
    state = state if state in KNOWN else ""
    return Filters(q, state, action, run, person, since, until)


Asked = Annotated[Filters, Depends(_filters)]


@router.get("/operations")
async def operations(
    request: Request, me: Signed, asked: Asked, after: Annotated[str, Query(max_length=64)] = ""
) -> Response:
    """List operations; every filter stands in the address, so that a list is a link."""
    serving: Serving = request.app.state.serving
    space = serving.space(me.namespace)
    wanted = asked.wanted(me.reader)

    def read() -> dict[str, Any]:
        searching = Searching(space.ledger)
        found = searching.page(wanted, after or None, LISTED)
        rows = [(receipt, *pill(receipt, me.reader.lang)) for receipt in found.receipts]
        return {"found": found, "rows": rows, "total": searching.total(wanted)}

    read_ = await hop(read)
    index = LANGUAGES.index(me.reader.lang)
    chips = [(s.value, glyph, PILLS[glyph][index]) for s, glyph in STATES.items()]
    return own_page(
        request, me, "operations.html", asked=asked, given=asdict(asked), chips=chips,
        actions=sorted(space.tasks.actions), file=asked.file(me),
        views=saved.views_of(request.cookies, me.caller.account), **read_,
    )  # fmt: skip


@router.post("/operations/views")
async def keep_view(request: Request, me: Signed) -> Response:
    """Keep the filters of the list under a name, or forget them."""
    given = await form(request)
    account = me.caller.account
    views = saved.views_of(request.cookies, account)
    named = dict(parse_qsl(given["query"]))
    filters = Filters(**{n: v for n, v in named.items() if n in Filters.__struct_fields__})
    if given["do"] == "forget":
        views = saved.without_view(views, given["name"])
    else:
        views = saved.with_view(views, given["name"], filters.given)
    return remembered(request, filters.but(), **{saved.cookie_of(account): saved.kept(views)})

"""The operations: plain-text search, filters in the address, page by page, the newest first."""

from __future__ import annotations

from collections.abc import Collection
from typing import Annotated, Any, cast, get_args
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
from ascertain.core.advice_words import tell
from ascertain.core.contract import Class
from ascertain.core.model import State
from ascertain.core.words import LANGUAGES
from ascertain.runtime.loop import hop
from ascertain.runtime.searching import How, Searching, Wanted
from ascertain.server.serving import Serving

router = APIRouter(include_in_schema=False)
LISTED = 50  # operations of one page
# Of a state: the glyph of its chip.
STATES = {
    State.UNKNOWN: "unk", State.RUNNING: "auto", State.PENDING: "wait", State.ACCEPTED: "acc",
    State.DONE: "done", State.NOT_DONE: "not",
}  # fmt: skip
KNOWN = {state.value for state in State}
HOW = get_args(How)
Text = Annotated[str, Query(max_length=200)]
Day = Annotated[str, Query(max_length=16)]


class Filters(msgspec.Struct, frozen=True):
    """What is looked for, as it stands in the address; days are of the reader's zone. Several
    states, or ways in which it became known, have commas between them."""

    q: str = ""
    state: str = ""
    action: str = ""
    run: str = ""
    person: str = ""
    target: str = ""
    protection: str = ""
    found_by: str = ""
    reviewed: str = ""
    since: str = ""
    until: str = ""

    @property
    def states(self) -> tuple[str, ...]:
        """The states of which one is wanted."""
        return tuple(self.state.split(",")) if self.state else ()

    @property
    def ways(self) -> tuple[str, ...]:
        """The ways in which it became known, of which one is wanted."""
        return tuple(self.found_by.split(",")) if self.found_by else ()

    @property
    def own(self) -> bool:
        """Whether our own notices are among it: where something leads to them by name."""
        return bool(self.q or self.action or self.run or self.person)

    @property
    def given(self) -> dict[str, str]:
        """The filters that are set."""
        return {name: value for name, value in asdict(self).items() if value}

    def wanted(self, reader: Reader) -> Wanted:
        """Return what the ledger is asked for."""
        return Wanted(
            q=self.q.strip() or None, action=self.action or None, run=self.run or None,
            person=self.person or None, target=self.target or None,
            protection=self.protection or None, reviewed=self.reviewed or None,
            states=tuple(State(one) for one in self.states) or None,
            found_by=cast("tuple[How, ...]", self.ways) or None, own=self.own,
            since=reader.day(self.since), until=reader.day(self.until, end=True),
        )  # fmt: skip

    def but(self, **new: str) -> str:
        """Return the address of the list with other values."""
        chosen = {name: value for name, value in {**self.given, **new}.items() if value}
        return "/operations" + (f"?{urlencode(chosen)}" if chosen else "")

    def file(self, me: Person) -> str:
        """Return the address of the same list as a file."""
        chosen: dict[str, Any] = {**self.given, "namespace": me.namespace}
        chosen |= {"state": self.states, "found_by": self.ways}
        if not self.own:
            chosen["own"] = "false"
        for name, at in (("since", me.reader.day(self.since)),
                         ("until", me.reader.day(self.until, end=True))):  # fmt: skip
            if at is not None:
                chosen[name] = me.reader.iso(at)
        return f"/v1/operations.csv?{urlencode(chosen, doseq=True)}"


def filters(
    *, q: Text = "", state: Text = "", action: Text = "", run: Text = "", person: Text = "",
    target: Text = "", protection: Text = "", found_by: Text = "", reviewed: Text = "",
    since: Day = "", until: Day = "",
) -> Filters:  # fmt: skip
    """Return the filters of an address: what is not known there restricts nothing."""
    return Filters(
        q=q, state=_among(state, KNOWN), action=action, run=run, person=person, target=target,
        protection=protection, found_by=_among(found_by, HOW), since=since, until=until,
        reviewed=_among(reviewed, ("any", "unknown", "duplicate", "accepted")),
    )  # fmt: skip


def filters_in(query: str) -> Filters:
    """Return the filters that the query of an address has."""
    named = {n: v[:200] for n, v in parse_qsl(query) if n in Filters.__struct_fields__}
    return filters(**named)


def _among(text: str, known: Collection[str]) -> str:
    return ",".join(one for one in dict.fromkeys(text.split(",")) if one in known)


def classes(lang: str) -> dict[str, str]:
    """Return the protection classes in words."""
    return {one.value: tell(f"class.{one.name.lower()}", lang) for one in Class}


Asked = Annotated[Filters, Depends(filters)]


@router.get("/operations")
async def operations(
    request: Request, me: Signed, asked: Asked, after: Annotated[str, Query(max_length=64)] = ""
) -> Response:
    """List operations; every filter stands in the address, so that a list is a link."""
    serving: Serving = request.app.state.serving
    space = serving.space(me.namespace)
    wanted = asked.wanted(me.reader)

    def read() -> dict[str, Any]:
        found, total = Searching(space.ledger).counted(wanted, after or None, LISTED)
        rows = [(receipt, *pill(receipt, me.reader.lang)) for receipt in found.receipts]
        return {"found": found, "rows": rows, "total": total}

    read_ = await hop(read)
    index = LANGUAGES.index(me.reader.lang)
    chips = [(s.value, glyph, PILLS[glyph][index]) for s, glyph in STATES.items()]
    return own_page(
        request, me, "operations.html", asked=asked, given=asdict(asked), chips=chips,
        actions=sorted(space.tasks.actions), file=asked.file(me), classes=classes(me.reader.lang),
        views=saved.views_of(request.cookies, me.caller.account), **read_,
    )  # fmt: skip


@router.post("/operations/views")
async def keep_view(request: Request, me: Signed) -> Response:
    """Keep the filters of the list under a name, or forget them."""
    given = await form(request)
    account = me.caller.account
    views = saved.views_of(request.cookies, account)
    asked = filters_in(given["query"])
    if given["do"] == "forget":
        views = saved.without_view(views, given["name"])
    else:
        views = saved.with_view(views, given["name"], asked.given)
    return remembered(request, asked.but(), **{saved.cookie_of(account): saved.kept(views)})

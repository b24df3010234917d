"""Bulk actions: what is meant, then a plan, then its progress and what came of each.

Nothing that is unknown is ever sent again in bulk.
"""

from __future__ import annotations

import time
from datetime import timedelta
from typing import Annotated
from urllib.parse import parse_qsl

import msgspec
from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from ascertain.console.forms import Form, back, form, inside
from ascertain.console.glyphs import pill
from ascertain.console.person import Person, Signed, own_page
from ascertain.console.views.operations import filters_in
from ascertain.console.views.reviews import Asking
from ascertain.core.books import Bulk
from ascertain.core.errors import AscertainError
from ascertain.core.people import BULK
from ascertain.core.rights import Right
from ascertain.runtime.bulk import MOST, Bulks, Wish, plan_of, progress_of
from ascertain.runtime.loop import hop
from ascertain.runtime.receipt import Receipt
from ascertain.runtime.reviewing import Group, Reviewing
from ascertain.runtime.searching import Searching
from ascertain.server import desk_shown
from ascertain.server.problems import ProblemError
from ascertain.server.routes.bulk import may
from ascertain.server.serving import Serving

router = APIRouter(include_in_schema=False)
LISTED = 50  # bulk actions of one page, and results of one page
PREVIEW = 20  # operations that a plan names
GATHER_WITHIN = 5.0  # seconds; what was not found by then is not part of it
AGAIN = "2"  # seconds until a running one is shown anew
SNOOZES = {"1h": timedelta(hours=1), "1d": timedelta(days=1), "3d": timedelta(days=3)}
REASONED = ("hand_over", "leave")
BY_DECIDERS = ("take", "hand_over", "leave", "snooze")
# Of an outcome: its glyph; none is green, since the effect itself may still be unknown.
OUTCOMES = {"done": "yes", "refused": "not", "changed": "look", "stumbled": "fix"}
Text = Annotated[str, Query(max_length=200)]


class Meant(msgspec.Struct, frozen=True):
    """Which operations are meant; `more`: there are further ones that are not part of it."""

    ids: list[str]
    more: bool = False


@router.get("/bulk")
async def listed(request: Request, me: Signed, after: Text = "") -> Response:
    """List bulk actions, newest first."""
    found = await hop(_bulks(request, me).find, after, LISTED + 1)
    rows = [desk_shown.bulk(one, limit=0) for one in found[:LISTED]]
    more = rows[-1].id if len(found) > LISTED else ""
    return own_page(request, me, "bulk_list.html", rows=rows, more=more)


@router.post("/bulk")
async def begin(request: Request, me: Signed) -> Response:
    """Ask what is to be done with what was ticked, or with all that match; then plan it."""
    given = await form(request)
    if not me.has(Right.OPERATE, Right.DECIDE):
        raise ProblemError("forbidden", f"{me.caller.actor} may not do this here")
    if given["do"] not in BULK:
        return await _choose(request, me, given)
    may(me.caller, given["do"])
    if given["do"] in REASONED and not given["why"]:
        return await _choose(request, me, given, lacks="why")
    bulks = _bulks(request, me)
    try:
        meant, made = await hop(_planned, request, me, given, bulks)
    except AscertainError as error:
        return await _choose(request, me, given, error)
    return back(f"/bulk/{made.id}", "part" if meant.more else "")


@router.get("/bulk/{bulk}")
async def one(
    bulk: str, request: Request, me: Signed, told: Text = "",
    after: Annotated[int, Query(ge=0, le=MOST)] = 0,
) -> Response:  # fmt: skip
    """Show a plan, how far it is, and what came of each."""
    return await _show(request, me, bulk, told=told, after=after)


@router.post("/bulk/{bulk}")
async def act(bulk: str, request: Request, me: Signed) -> Response:
    """Have a plan carried out, or stop it before its next item."""
    given = await form(request)
    found = await _found(request, me, bulk)
    if not me.has(Right.OPERATE, Right.DECIDE):
        raise ProblemError("forbidden", f"{me.caller.actor} may not do this here")
    may(me.caller, found.did)
    bulks = _bulks(request, me)
    try:
        await hop(bulks.start if given["do"] == "run" else bulks.cancel, found, me.caller.who)
    except AscertainError as error:
        return await _show(request, me, bulk, wrong=error)
    return back(f"/bulk/{bulk}")


# --- what is meant -------------------------------------------------------------------------


def _planned(request: Request, me: Person, given: Form, bulks: Bulks) -> tuple[Meant, Bulk]:
    meant = _meant(request, me, given)
    until = None
    if given["do"] == "snooze" and given["for"] in SNOOZES:
        until = bulks.store.now() + SNOOZES[given["for"]] // timedelta(microseconds=1)
    wish = Wish(
        did=given["do"], ids=meant.ids, why=given["why"], to=given["to"], until=until,
        who=me.caller.who,
    )  # fmt: skip
    return meant, bulks.plan(wish)


def _meant(request: Request, me: Person, given: Form) -> Meant:
    """Return what was ticked, or everything that the list shows, found as the list finds it."""
    if given["which"] != "all":
        return Meant(list(dict.fromkeys(given.all("ids")))[:MOST])
    serving: Serving = request.app.state.serving
    ledger = serving.space(me.namespace).ledger
    path, _, query = given["list"].partition("?")
    fields = {n: v[:200] for n, v in parse_qsl(query)}
    if path == "/review":
        chosen = {n: v for n, v in fields.items() if n in Asking.__struct_fields__ and v}
        found = Reviewing(ledger, serving.manners).find(me.caller.actor, limit=MOST, **chosen)
        open_ = [i.review.operation for i in found.items if i.group is not Group.SETTLED]
        return Meant(list(dict.fromkeys(open_)), found.next is not None or found.capped)
    wanted = filters_in(query).wanted(me.reader)
    ids: list[str] = []
    until = time.monotonic() + GATHER_WITHIN
    for page in Searching(ledger).all(wanted, MOST + 1):
        ids += [receipt.id for receipt in page]
        if time.monotonic() > until:
            return Meant(ids[:MOST], more=True)
    return Meant(ids[:MOST], len(ids) > MOST)


async def _choose(
    request: Request, me: Person, given: Form, wrong: AscertainError | None = None, *,
    lacks: str = "",
) -> Response:  # fmt: skip
    meant = await hop(_meant, request, me, given)
    ticked = [] if given["which"] == "all" else meant.ids
    dids = [did for did in BULK if did not in BY_DECIDERS or me.has(Right.DECIDE)]
    return own_page(
        request, me, "bulk_new.html", given=given, meant=meant, ticked=ticked, dids=dids,
        came_from=inside(given["list"] or "/operations"), wrong=wrong, snoozes=list(SNOOZES),
        lacks=lacks,
    )  # fmt: skip


# --- one bulk action -----------------------------------------------------------------------


async def _show(
    request: Request, me: Person, bulk: str, *, told: str = "", after: int = 0,
    wrong: AscertainError | None = None,
) -> Response:  # fmt: skip
    found = await _found(request, me, bulk)
    serving: Serving = request.app.state.serving
    ledger = serving.space(me.namespace).ledger
    shown = desk_shown.bulk(found, after, LISTED)
    results = progress_of(found).results[after : after + LISTED]
    first = [ident for ident, _ in plan_of(found).items[:PREVIEW]]

    def read() -> dict[str, Receipt]:
        wanted = {*first, *(r.operation for r in results)}
        for one in shown.refused:
            wanted |= set(one.examples)
        snapshots = ledger.store.snapshots(sorted(wanted))
        own = [s for s in snapshots.values() if s.operation.namespace == me.namespace]
        return {receipt.id: receipt for receipt in ledger.shown(own)}

    receipts = await hop(read)
    made = own_page(
        request, me, "bulk.html", bulk=shown, made_at=found.made_at, first=first, results=results,
        receipts=receipts, told_code=told, wrong=wrong, after=after, outcomes=OUTCOMES,
        mine=found.by == me.caller.actor, pill=pill, most=MOST,
    )  # fmt: skip
    if found.state == "running":
        made.headers["Refresh"] = AGAIN  # without JavaScript too; it ends with the last item
    return made


async def _found(request: Request, me: Person, ident: str) -> Bulk:
    found = None if "\x00" in ident else await hop(_bulks(request, me).get, ident)
    if found is None:
        raise ProblemError("unknown", f"there is no bulk action {ident} in this namespace")
    return found


def _bulks(request: Request, me: Person) -> Bulks:
    serving: Serving = request.app.state.serving
    return Bulks(serving.space(me.namespace).ledger)

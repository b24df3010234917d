"""Bulk actions: plan first, then run, with progress, cancel, and what came of each item.

Nothing that is unknown is ever sent again in bulk.
"""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal

import msgspec
from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from ascertain.core.books import Bulk
from ascertain.core.model import State, WaitingOn
from ascertain.runtime.bulk import MOST, Bulks, Wish
from ascertain.runtime.loop import hop
from ascertain.server import desk_shown, shown
from ascertain.server.access import Caller, Reader, Right, needs
from ascertain.server.messages import answer, documented, read_body
from ascertain.server.problems import ProblemError
from ascertain.server.serving import Serving

router = APIRouter(prefix="/v1/bulk", tags=["bulk"])
Operator = Annotated[Caller, needs(Right.OPERATE, Right.DECIDE)]
MANY_BYTES = 256 * 1024
Did = Literal["look_up", "confirm", "take", "hand_over", "leave", "renew", "snooze"]
PLAIN = r"^[^\x00]*$"  # PostgreSQL keeps no NUL
Id = Annotated[str, msgspec.Meta(max_length=64, pattern=PLAIN)]
Name = Annotated[str, msgspec.Meta(max_length=200, pattern=PLAIN)]


class BulkFilter(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which operations: all that match every field given. `text`: plain, in key and title."""

    action: Name | None = None
    key: Name | None = None
    run: Name | None = None
    event: Name | None = None
    ref: Name | None = None
    states: list[State] | None = None
    waiting_on: WaitingOn | None = None
    text: Name | None = None
    unsettled: bool | None = None


class BulkPlan(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What to do to which operations: `ids`, or all that match the `filter`.

    `to` with hand_over, `until` with snooze; hand_over and leave need a reason (`why`).
    """

    action: Did
    ids: Annotated[list[Id], msgspec.Meta(max_length=MOST)] | None = None
    filter: BulkFilter | None = None
    why: Annotated[str, msgspec.Meta(max_length=2000, pattern=PLAIN)] = ""
    to: Name = ""
    until: Annotated[datetime, msgspec.Meta(tz=True)] | None = None


def _bulks(request: Request, caller: Caller) -> Bulks:
    serving: Serving = request.app.state.serving
    return Bulks(serving.space(caller.namespace).ledger)


async def _bulk(request: Request, caller: Caller, ident: str) -> tuple[Bulks, Bulk]:
    bulks = _bulks(request, caller)
    found = None if "\x00" in ident else await hop(bulks.get, ident)
    if found is None:
        raise ProblemError("unknown", f"there is no bulk action {ident} in this namespace")
    return bulks, found


def may(caller: Caller, did: str) -> None:
    """End the request where this caller may not do this: a look-up only looks; everything else is
    a person's."""
    if did == "look_up":
        return
    if not caller.person:
        raise ProblemError("forbidden", f"{caller.actor} is no person: no token may {did}")
    if did != "renew" and Right.DECIDE not in caller.rights:
        raise ProblemError(
            "forbidden", f"{caller.actor} may not {did}: it needs the right {Right.DECIDE}"
        )


@router.post("", **documented(desk_shown.BulkShown, status=201, body=BulkPlan, problems=(404,)))
async def plan(request: Request, caller: Operator) -> Response:
    """Plan a bulk action: how many would do what, which are refused and why. Nothing is done yet;
    run it within 15 minutes."""
    given = await read_body(request, BulkPlan, MANY_BYTES)
    did = "look_up" if given.action == "confirm" else given.action
    may(caller, did)
    wish = Wish(
        did=did,
        ids=given.ids,
        what=None if given.filter is None else _filter(given.filter),
        why=given.why,
        to=given.to,
        until=shown.stamp(given.until),
        who=caller.who,
    )
    made = await hop(_bulks(request, caller).plan, wish)
    return answer(desk_shown.bulk(made), 201)


def _filter(given: BulkFilter) -> dict[str, Any]:
    return {n: v for n, v in msgspec.structs.asdict(given).items() if v is not None}


@router.get("", **documented(desk_shown.BulkPage))
async def find(
    request: Request,
    caller: Reader,
    after: Annotated[str, Query(max_length=64, pattern=PLAIN)] = "",
    limit: Annotated[int, Query(ge=1, le=100)] = 25,
) -> Response:
    """List bulk actions, newest first."""
    found = await hop(_bulks(request, caller).find, after, limit + 1)
    page = found[:limit]
    more = page[-1].id if len(found) > limit else None
    return answer(desk_shown.BulkPage([desk_shown.bulk(b, limit=0) for b in page], more))


@router.get("/{bulk}", **documented(desk_shown.BulkShown, problems=(404,)))
async def get(
    bulk: str,
    request: Request,
    caller: Reader,
    after: Annotated[int, Query(ge=0, le=MOST)] = 0,
) -> Response:
    """Return a bulk action with its progress, and what came of each item from `after` on."""
    _, found = await _bulk(request, caller, bulk)
    return answer(desk_shown.bulk(found, after))


@router.post(
    "/{bulk}/run", **documented(desk_shown.BulkShown, status=202, problems=(404, 409))
)  # fmt: skip
async def run(bulk: str, request: Request, caller: Operator) -> Response:
    """Have a plan carried out in the background; only who planned it, within 15 minutes."""
    bulks, found = await _bulk(request, caller, bulk)
    may(caller, found.did)
    if found.by != caller.actor:
        raise ProblemError("forbidden", f"{found.by} planned this: plan one of your own")
    return answer(desk_shown.bulk(await hop(bulks.start, found, caller.who)), 202)


@router.post("/{bulk}/cancel", **documented(desk_shown.BulkShown, problems=(404, 409)))
async def cancel(bulk: str, request: Request, caller: Operator) -> Response:
    """Stop a bulk action before its next item; what was done stays done."""
    bulks, found = await _bulk(request, caller, bulk)
    may(caller, found.did)
    return answer(desk_shown.bulk(await hop(bulks.cancel, found, caller.who)))

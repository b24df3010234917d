"""Costs: enter what was paid, accept or reject assets, and what an accepted asset cost."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Sequence
from datetime import datetime
from decimal import Decimal
from typing import Annotated, Literal

import msgspec
from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from ascertain.core import costs as rules
from ascertain.core.books import Asset, Cost
from ascertain.core.model import SECOND
from ascertain.runtime.costs import PAGE, By, cursor
from ascertain.runtime.loop import hop
from ascertain.server import shown
from ascertain.server.access import Caller, Reader, Right, needs
from ascertain.server.csv import MEDIA, csv_answer
from ascertain.server.messages import answer, documented, read_body
from ascertain.server.periods import Asked, Span
from ascertain.server.problems import ProblemError
from ascertain.server.serving import Serving

router = APIRouter(prefix="/v1", tags=["costs"])
Payer = Annotated[Caller, needs(Right.COST)]
Cursor = Annotated[str, Query(max_length=400, pattern=r"^([0-9]{1,18}-[^\x00]{1,370})?$")]
Limit = Annotated[int, Query(ge=1, le=PAGE)]
PAGES = 1000  # of a file at most
CSV_HEAD = (
    "id", "at", "kind", "cause", "amount", "currency", "minutes", "payer", "operation", "asset",
    "evidence", "doubtful",
)  # fmt: skip
PLAIN = r"^[^\x00]*$"  # PostgreSQL keeps no NUL
Text = Annotated[str, msgspec.Meta(max_length=rules.TEXT, pattern=PLAIN)]


class CostPrice(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A decimal amount as text, negative for a credit, and its currency (ISO 4217)."""

    amount: Annotated[str, msgspec.Meta(pattern=f"^{rules.AMOUNT.pattern}$")]
    currency: Annotated[str, msgspec.Meta(pattern=f"^{rules.CURRENCY.pattern}$")]


class EnterLine(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One line of cost. `key` names it for good: entered again it is there once. With `price`, or
    with `minutes` of people, which are priced by the rate; without both its price is not known."""

    key: Annotated[str, msgspec.Meta(min_length=1, max_length=rules.TEXT, pattern=PLAIN)]
    kind: Literal["normal", "repeat", "recovery", "clean_up"]
    cause: Literal["call", "generation", "storage", "platform", "orchestration", "people"]
    price: CostPrice | None = None
    minutes: Annotated[str, msgspec.Meta(pattern=f"^({rules.MINUTES.pattern})?$")] = ""
    payer: Text = ""
    operation: Annotated[str, msgspec.Meta(max_length=26)] = ""
    asset: Text = ""
    evidence: Text = ""
    at: Annotated[datetime, msgspec.Meta(tz=True)] | None = None


class EnterLines(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Up to a thousand lines; all of them are entered, or none."""

    lines: Annotated[list[EnterLine], msgspec.Meta(min_length=1, max_length=PAGE)]


class CostLine(msgspec.Struct, frozen=True, kw_only=True):
    """A line of cost. `amount` is a decimal text, empty where no price is known; `doubtful`:
    whether it was incurred rests on an outcome that is not known."""

    id: str
    at: datetime | None
    kind: str
    cause: str
    amount: str
    currency: str
    minutes: str
    payer: str
    operation: str
    asset: str
    evidence: str
    doubtful: bool
    reused: bool = False


class CostLines(msgspec.Struct, frozen=True):
    """A page of lines, in the order of time."""

    items: list[CostLine]
    next: str | None = None


class CostReport(msgspec.Struct, frozen=True, kw_only=True):
    """Cost per accepted asset: of all of the time, and of each group that was asked for."""

    since: datetime | None = msgspec.field(name="from")
    until: datetime | None = msgspec.field(name="to")
    formula: dict[str, str]
    rate: str
    rate_currency: str
    unknowns: int  # operations whose outcome is not known now: what they cost may change
    total: rules.Report
    groups: list[rules.Report]


class Judge(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Why an asset is accepted or rejected."""

    note: Annotated[str, msgspec.Meta(max_length=1000)] = ""


class AssetShown(msgspec.Struct, frozen=True, kw_only=True):
    """Whether an asset passed acceptance."""

    key: str
    state: str
    by: str
    at: datetime | None
    note: str


class Assets(msgspec.Struct, frozen=True):
    """A page of assets, in the order of their keys."""

    items: list[AssetShown]
    next: str | None


FORMULA = {
    "en": "(platform + orchestration + generation, storage and call cost actually incurred"
    " + minutes of people × rate) ÷ distinct assets that passed acceptance",
    "zh": "（平台 + 编排 + 实际发生的生成、存储与调用费用 + 人工时间 × 单价）÷ 验收通过的资产数",
}


@router.post("/costs", **documented(CostLines, body=EnterLines, problems=(409,)))
async def enter(request: Request, caller: Payer) -> Response:
    """Enter lines of cost, durably; a line whose key is there already is answered as it is, and
    with another content it is refused."""
    serving: Serving = request.app.state.serving
    asked = await read_body(request, EnterLines)
    entered = await hop(
        serving.spaces.costs.enter,
        caller.namespace,
        [(line.key, _cost(line, caller)) for line in asked.lines],
    )
    return answer(CostLines([_shown(line, reused=reused) for line, reused in entered]))


@router.get("/costs", **documented(CostLines))
async def lines(
    request: Request,
    caller: Reader,
    span: Asked,
    *,
    kind: Literal["", "normal", "repeat", "recovery", "clean_up"] = "",
    cause: Annotated[str, Query(max_length=20)] = "",
    operation: Annotated[str, Query(max_length=26)] = "",
    after: Cursor = "",
    limit: Limit = 100,
) -> Response:
    """List the lines of a time, or all of one operation."""
    serving: Serving = request.app.state.serving
    costs = serving.spaces.costs
    if operation:
        found = await hop(costs.of_operation, caller.namespace, operation)
        return answer(CostLines([_shown(line) for line in found]))
    found = await hop(
        costs.lines, caller.namespace, span.since, span.until, after=after, kind=kind,
        cause=cause, limit=limit + 1,
    )  # fmt: skip
    more = cursor(found[limit - 1]) if len(found) > limit else None
    return answer(CostLines([_shown(line) for line in found[:limit]], more))


FILE = documented()
FILE["responses"][200] = {"description": "the file", "content": {MEDIA: {}}}


@router.get("/costs.csv", **FILE)
async def lines_file(request: Request, caller: Reader, span: Asked) -> Response:
    """Return the lines of a time as a file, a million at most: no cell is a formula."""
    costs = request.app.state.serving.spaces.costs

    async def pages() -> AsyncIterator[Iterable[Sequence[object]]]:
        after = ""
        for _ in range(PAGES):
            found = await hop(costs.lines, caller.namespace, span.since, span.until, after=after)
            yield [_row(line) for line in found]
            if len(found) < PAGE:
                return
            after = cursor(found[-1])

    return csv_answer(CSV_HEAD, pages(), "costs.csv")


@router.get("/costs/report", **documented(CostReport))
async def report(
    request: Request,
    caller: Reader,
    span: Asked,
    *,
    by: Literal["", "action", "asset", "payer", "kind", "cause", "day"] = "",
) -> Response:
    """Return what an accepted asset cost: the formula, its parts, and what is not in it.

    Currencies are never added to one another; with no accepted asset there is no figure.
    """
    serving: Serving = request.app.state.serving
    return answer(await hop(_report, serving, caller.namespace, span, by))


def _report(serving: Serving, namespace: str, span: Span, by: By) -> CostReport:
    costs = serving.spaces.costs
    total, *groups = costs.report(namespace, span.since, span.until, by)
    unknown = serving.spaces.figures.open_now(namespace)
    return CostReport(
        since=shown.time(span.since),
        until=shown.time(span.until),
        formula=FORMULA,
        rate=costs.rate,
        rate_currency=costs.currency,
        unknowns=sum(one.count for one in unknown if one.state in ("unknown", "running")),
        total=total,
        groups=groups,
    )


# --- assets ---


@router.get("/assets", **documented(Assets))
async def assets(
    request: Request,
    caller: Reader,
    span: Asked,
    *,
    state: Literal["", "accepted", "rejected"] = "",
    after: Annotated[str, Query(max_length=rules.TEXT)] = "",
    limit: Limit = 100,
) -> Response:
    """List the assets that were accepted or rejected in a time."""
    costs = request.app.state.serving.spaces.costs
    found = await hop(
        costs.assets, caller.namespace, span.since, span.until, after=after, state=state,
        limit=limit + 1,
    )  # fmt: skip
    more = found[limit - 1].key if len(found) > limit else None
    return answer(Assets([_asset(one) for one in found[:limit]], more))


@router.post("/assets/{key:path}/accept", **documented(AssetShown, body=Judge))
async def accept(key: str, request: Request, caller: Payer) -> Response:
    """Accept an asset: it passed. Again it changes nothing; it is in the audit."""
    return await _judged(request, caller, key, "accepted")


@router.post("/assets/{key:path}/reject", **documented(AssetShown, body=Judge))
async def reject(key: str, request: Request, caller: Payer) -> Response:
    """Reject an asset: it did not pass. Again it changes nothing; it is in the audit."""
    return await _judged(request, caller, key, "rejected")


@router.get("/assets/{key:path}", **documented(AssetShown, problems=(404,)))
async def asset(key: str, request: Request, caller: Reader) -> Response:
    """Return whether an asset passed."""
    found = await hop(request.app.state.serving.spaces.costs.asset, caller.namespace, key)
    if found is None:
        raise ProblemError("unknown", f"nobody has accepted or rejected {key!r}")
    return answer(_asset(found))


async def _judged(request: Request, caller: Caller, key: str, state: str) -> Response:
    serving: Serving = request.app.state.serving
    asked = await read_body(request, Judge)
    made = await hop(
        serving.spaces.costs.decide, caller.namespace, key, state, caller.who, asked.note
    )
    return answer(_asset(made))


def _cost(line: EnterLine, caller: Caller) -> Cost:
    price = line.price or CostPrice(amount="", currency="")
    return Cost(
        id="",
        namespace=caller.namespace,
        at=int(line.at.timestamp() * SECOND) if line.at else 0,
        kind=line.kind,
        cause=line.cause,
        amount=price.amount,
        currency=price.currency,
        payer=line.payer,
        operation=line.operation,
        asset=line.asset,
        minutes=line.minutes,
        evidence=line.evidence or f"entered by {caller.actor}"[: rules.TEXT],
    )


def _shown(line: Cost, *, reused: bool = False) -> CostLine:
    return CostLine(
        id=line.id, at=shown.time(line.at), kind=line.kind, cause=line.cause, amount=line.amount,
        currency=line.currency, minutes=line.minutes, payer=line.payer, operation=line.operation,
        asset=line.asset, evidence=line.evidence, doubtful=bool(line.doubt), reused=reused,
    )  # fmt: skip


def _row(line: Cost) -> tuple[object, ...]:
    at = shown.time(line.at)
    return (
        line.id, at.isoformat() if at else "", line.kind, line.cause,
        Decimal(line.amount) if line.amount else "", line.currency, line.minutes, line.payer,
        line.operation, line.asset, line.evidence, bool(line.doubt),
    )  # fmt: skip


def _asset(one: Asset) -> AssetShown:
    return AssetShown(key=one.key, state=one.state, by=one.by, at=shown.time(one.at), note=one.note)

"""Operations: submit one or many, see where they stand and why, find them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from functools import partial
from typing import Annotated, Any

import msgspec
from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from ascertain.config.spaces import Space
from ascertain.runtime.loop import hop
from ascertain.runtime.searching import Found
from ascertain.runtime.searching import Total as Counted
from ascertain.server import shown
from ascertain.server.access import Reader, Writer
from ascertain.server.csv import csv_answer
from ascertain.server.direct import DirectRoute
from ascertain.server.finding import COLUMNS, MOST, Looked, Operations, Total, known_id, row
from ascertain.server.given_key import HEADERS, key_of
from ascertain.server.messages import answer, decode, documented, read_body
from ascertain.server.problems import ProblemError, problem_answer
from ascertain.server.serving import Serving
from ascertain.server.submitting import (
    GRACE,
    SOON,
    Submit,
    Told,
    Wait,
    performed,
    resolved,
    submit,
    told,
    tried,
)

PATH = "/v1/operations"
router = APIRouter(tags=["operations"])
direct = APIRouter(prefix=PATH, route_class=DirectRoute)
CSV_ROWS = 1_000_000
BATCH_BYTES = 16 * 1024 * 1024
CONCURRENCY = 32  # operations of a batch at once, unless it says otherwise


class Batch(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Up to 1,000 operations, each a `Submit` as it would be sent alone.

    `wait`: how long the whole answer may take; what is not begun by then is not recorded, and
    answered with the problem `not_begun`. `concurrency`: how many are under way at once.
    """

    items: Annotated[list[msgspec.Raw], msgspec.Meta(min_length=1, max_length=MOST)]
    wait: Wait | None = None
    concurrency: Annotated[int, msgspec.Meta(ge=1, le=64)] = CONCURRENCY


class Batched(msgspec.Struct, frozen=True):
    """What came of each operation of a batch, in its order."""

    items: list[Told]


@direct.post(
    "",
    **documented(
        shown.Operation, body=Submit, also={202: shown.Operation}, problems=(404, 405, 409, 424),
        headers=HEADERS,
    ),
)  # fmt: skip
async def submit_one(request: Request, caller: Writer) -> Response:
    """Do it once, and answer where it stands.

    200: done, or accepted where the action's contract knows that; `reused` if it had been asked
    for before. 202: not resolved, and `on_unresolved` is `accept`. 400: no key, though the action
    asks for one. 409: not resolved: still under way, unknown, or waiting for a person; the problem
    says who is next. 422: another input under the same key, or a refused one. 424: not done.
    The answer comes within `wait`; the operation goes on without the client.
    """
    serving: Serving = request.app.state.serving
    asked = await read_body(request, Submit)
    space = serving.space(caller.namespace)
    return response(await submit(serving, space, asked, key_of(request, asked.key)))


def response(found: Told) -> Response:
    """Return the HTTP answer of what came of one."""
    if found.problem is not None:
        return problem_answer(found.problem)
    return answer(found.operation, found.status)


@direct.post("/batch", **documented(Batched, body=Batch))
async def submit_batch(request: Request, caller: Writer) -> Response:
    """Submit up to 1,000, each with an answer of its own, in order; a bad one stops no neighbour.

    The answer is 200 wherever the body could be read: look at each item's `status`, which is what
    it would have been answered alone.
    """
    serving: Serving = request.app.state.serving
    asked = await read_body(request, Batch, BATCH_BYTES)
    space = serving.space(caller.namespace)
    wait = serving.table.wait if asked.wait is None else asked.wait
    serving.in_flight.admit()
    many = _Many(serving, space, asked, wait)
    _ = await serving.in_flight.within(many.run(), wait + GRACE)
    many.over = True
    return answer(Batched([many.told[n] or many.missing(n) for n in range(len(asked.items))]))


class _Many:
    """One batch on its way: so many at once, each answered in its place."""

    def __init__(self, serving: Serving, space: Space, asked: Batch, wait: float) -> None:
        self.serving, self.space, self.asked = serving, space, asked
        self.told: list[Told | None] = [None] * len(asked.items)
        self.begun: list[bool] = [False] * len(asked.items)
        self.over = False
        self._until = asyncio.get_running_loop().time() + wait

    async def run(self) -> None:
        numbers = iter(range(len(self.asked.items)))
        many = min(self.asked.concurrency, len(self.asked.items))
        async with asyncio.TaskGroup() as group:
            for _ in range(many):
                group.create_task(self._one_after_the_other(numbers))

    async def _one_after_the_other(self, numbers: Any) -> None:
        for number in numbers:
            if self.over:
                return
            self.begun[number] = True
            self.told[number] = await tried(partial(self._one, number), self.serving)

    async def _one(self, number: int) -> Told:
        asked = decode(self.asked.items[number], Submit)
        left = max(self._until - asyncio.get_running_loop().time(), 0)
        wait = left if asked.wait is None else min(asked.wait, left)
        asked, key = resolved(self.serving, self.space, asked, asked.key)
        receipt = await performed(self.space, asked, key, wait)
        accept = asked.on_unresolved == "accept"
        return await told(self.serving, self.space, receipt, accept=accept)

    def missing(self, number: int) -> Told:
        """Tell what is not answered yet: it is under way, or was not begun."""
        from ascertain.server.problems import problem_of

        code = "in_progress" if self.begun[number] else "not_begun"
        said = {
            "in_progress": "it is still under way: ask again with the same key",
            "not_begun": "the time was over before it was begun: send it again",
        }[code]
        problem = problem_of(ProblemError(code, f"item {number + 1}: {said}", retry_after=SOON))
        return Told(problem.status, problem=problem)


router.include_router(direct)


@router.get(PATH, **documented(Operations))
async def find(
    request: Request,
    caller: Reader,
    looked: Looked,
    *,
    limit: Annotated[int, Query(ge=1, le=MOST)] = 100,
    after: Annotated[str | None, Query(max_length=64)] = None,
    total: bool = False,
) -> Response:
    """Find operations, the newest first unless `oldest_first`.

    `q` looks for an id, key, effect reference, event or run among all there are, then for plain
    text in keys and titles: first among everything unsettled, then in the history, as far as
    `searched_to` says; `next` goes on from there. `person`: who is next, or has to do with its
    review or approval. `target` and `protection` are those of its action as it is declared here,
    `-` is none. `found_by`: done, and found out so. `reviewed`: a person was asked, on whatever
    road or on this one. `own=false` leaves our own notices out. Without `since`, and without a
    word that an index leads to, a list of what may be settled goes back 90 days. `total=true`
    counts, up to 10,000.
    """
    serving: Serving = request.app.state.serving
    searching = serving.space(caller.namespace).searching

    def read() -> tuple[Found, Counted | None]:
        if total:
            return searching.counted(looked, after, limit)
        return searching.page(looked, after, limit), None

    found, counted = await hop(read)
    return answer(
        Operations(
            items=[shown.operation(one, serving.link(one.id)) for one in found.receipts],
            next=found.next,
            searched_to=shown.time(found.searched_to),
            since=shown.time(found.since),
            total=None if counted is None else Total(counted.total, counted.capped),
        )
    )


@router.get(PATH + ".csv", **documented(media="text/csv"))
async def export(request: Request, caller: Reader, looked: Looked) -> Response:
    """Return what a list finds as a CSV file: UTF-8 with its mark, cells that are no formulas, and
    neither inputs nor results. It is sent as it is read, at most 1,000,000 lines."""
    serving: Serving = request.app.state.serving
    searching = serving.space(caller.namespace).searching

    async def pages() -> AsyncIterator[list[list[object]]]:
        found = searching.all(looked, CSV_ROWS)
        while (page := await hop(next, found, None)) is not None:
            if page:  # an empty part would end the answer
                yield [row(one, serving.link(one.id)) for one in page]

    return csv_answer(COLUMNS, pages(), "operations.csv")


@router.get(PATH + "/{operation}", **documented(shown.Operation, problems=(404,)))
async def get(operation: str, request: Request, caller: Reader) -> Response:
    """Return an operation as it stands."""
    serving: Serving = request.app.state.serving
    receipt = await hop(serving.space(caller.namespace).ledger.get, known_id(operation))
    return answer(shown.operation(receipt, serving.link(receipt.id)))


@router.get(PATH + "/{operation}/history", **documented(shown.History, problems=(404,)))
async def history(operation: str, request: Request, caller: Reader) -> Response:
    """Return the evidence of an operation, oldest first: everything that was ever known of it."""
    serving: Serving = request.app.state.serving
    found = await hop(serving.space(caller.namespace).ledger.history, known_id(operation))
    return answer(shown.History([shown.entry(one) for one in found]))


@router.get(PATH + "/{operation}/references", **documented(shown.References, problems=(404,)))
async def references(operation: str, request: Request, caller: Reader) -> Response:
    """Return every effect reference of an operation: the target's own ids of what was made."""
    serving: Serving = request.app.state.serving
    found = await hop(serving.space(caller.namespace).ledger.references, known_id(operation))
    return answer(shown.References(found))

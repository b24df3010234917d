"""Reviews: what only a person can decide now, who looks into it, and the decision.

A decision names what its person saw (`seen`); if anything newer is known it is a 409 `conflict`
that says who decided what, and when. No token may decide.
"""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal

import msgspec
from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from ascertain.core.model import SECOND, Review
from ascertain.core.people import Answer
from ascertain.runtime.loop import hop
from ascertain.runtime.receipt import Receipt
from ascertain.runtime.reviewing import Reviewing, Whole
from ascertain.server import desk_shown, shown
from ascertain.server.access import Caller, Decider, Reader, Right, needs
from ascertain.server.messages import answer, documented, read_body
from ascertain.server.problems import ProblemError
from ascertain.server.serving import Serving

router = APIRouter(prefix="/v1", tags=["reviews"])
Confirmer = Annotated[Caller, needs(Right.OPERATE, Right.DECIDE)]
Group = Literal["yours", "unclaimed", "others", "snoozed", "settled"]
PLAIN = r"^[^\x00]*$"  # PostgreSQL keeps no NUL
Why = Annotated[str, msgspec.Meta(max_length=4000, pattern=PLAIN)]
Said = Annotated[str, msgspec.Meta(min_length=1, max_length=4000, pattern=PLAIN)]
Name = Annotated[str, msgspec.Meta(max_length=200, pattern=PLAIN)]
Text = Annotated[str | None, Query(max_length=200)]


class Take(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Taking a review on; a word why is kept in the audit."""

    why: Why = ""


class HandOver(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """To whom, by his login; to nobody ("") gives it back to its owner, not taken."""

    to: Name
    why: Why = ""


class Snooze(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Until when, within 30 days; null brings it back now."""

    until: Annotated[datetime, msgspec.Meta(tz=True)] | None
    why: Why = ""


class LeaveNote(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What the next one should know."""

    text: Said


class Decide(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What happened, on what ground, and what was seen: the `stamp` of the review.

    `ref`: with `there`, the reference of what is there. `accept_risk`: one more attempt without
    proof, a right of its own. `correct`: although the review is closed, by a decision before.
    """

    answer: Answer
    why: Said
    seen: Annotated[str, msgspec.Meta(pattern=r"^\d{1,19}$")]
    ref: Annotated[str, msgspec.Meta(max_length=500, pattern=PLAIN)] | None = None
    accept_risk: bool = False
    correct: bool = False


class Decided(msgspec.Struct, frozen=True, kw_only=True):
    """The operation after a decision; `waits_for_second`: it was the first of two people's word,
    and nothing is done before the second one says the same."""

    operation: shown.Operation
    waits_for_second: bool


class DeskShown(msgspec.Struct, frozen=True, kw_only=True):
    """What a title shows: how many reviews are yours, how many others nobody has taken, those put
    off, all that are open, asks for approval, operations whose outcome is unknown, and for how many
    seconds the oldest of each waits."""

    yours: int
    unclaimed: int
    snoozed: int
    reviews: int
    approvals: int
    unknown: int
    oldest_review: float | None
    oldest_approval: float | None
    oldest_unknown: float | None


def _reviewing(request: Request, caller: Caller) -> Reviewing:
    serving: Serving = request.app.state.serving
    return Reviewing(serving.space(caller.namespace).ledger, serving.manners)


async def _review(request: Request, caller: Caller, ident: str) -> tuple[Reviewing, Review]:
    reviewing = _reviewing(request, caller)
    found = None if "\x00" in ident else await hop(reviewing.review, ident)
    if found is None:
        raise ProblemError("unknown", f"there is no review {ident} in this namespace")
    return reviewing, found


async def _person(request: Request, caller: Caller, ident: str) -> tuple[Reviewing, Review]:
    """Return a review for a person's verb."""
    if not caller.person:
        raise ProblemError("forbidden", f"{caller.actor} is no person: no token may decide")
    return await _review(request, caller, ident)


def _shown(request: Request, caller: Caller, whole: Whole, now: int) -> desk_shown.ReviewShown:
    serving: Serving = request.app.state.serving
    rights = frozenset(right.value for right in caller.rights if caller.person)
    return desk_shown.review(whole, serving.link(whole.case.operation.id), rights, now)


async def _now_shown(
    request: Request, caller: Caller, reviewing: Reviewing, review: Review
) -> Response:
    whole = await hop(reviewing.whole, review, caller.actor)
    return answer(_shown(request, caller, whole, reviewing.store.now()))


@router.get("/desk", **documented(DeskShown))
async def desk(request: Request, caller: Reader) -> Response:
    """Return the counts that a title shows."""
    reviewing = _reviewing(request, caller)
    reviews, asks, unknown = await hop(reviewing.counts, caller.actor)
    now = reviewing.store.now()

    def age(at: int | None) -> float | None:
        return None if at is None else (now - at) / SECOND

    return answer(
        DeskShown(
            yours=reviews.yours,
            unclaimed=reviews.unclaimed,
            snoozed=reviews.snoozed,
            reviews=reviews.reviews,
            approvals=asks.count,
            unknown=unknown.count,
            oldest_review=age(reviews.oldest),
            oldest_approval=age(asks.oldest),
            oldest_unknown=age(unknown.oldest),
        )
    )


@router.get("/reviews", **documented(desk_shown.ReviewPage))
async def find(
    request: Request,
    caller: Reader,
    *,
    group: Annotated[Group | None, Query()] = None,
    owner: Text = None,
    action: Text = None,
    after: Annotated[str, Query(max_length=400)] = "",
    limit: Annotated[int, Query(ge=1, le=100)] = 25,
) -> Response:
    """List reviews, each with its evidence, candidates, and what each decision would do."""
    reviewing = _reviewing(request, caller)
    me = caller.actor

    def read() -> desk_shown.ReviewPage:
        page = reviewing.find(
            me, group=group, owner=owner, action=action, after=after, limit=limit
        )  # fmt: skip
        now = reviewing.store.now()
        return desk_shown.ReviewPage(
            items=[
                _shown(request, caller, reviewing.whole(i.review, me), now) for i in page.items
            ],
            counts=page.counts,
            total=page.total,
            capped=page.capped,
            next=page.next,
        )  # fmt: skip

    return answer(await hop(read))


@router.get("/reviews/{review}", **documented(desk_shown.ReviewShown, problems=(404,)))
async def get(review: str, request: Request, caller: Reader) -> Response:
    """Return a review, open or closed."""
    reviewing, found = await _review(request, caller, review)
    return await _now_shown(request, caller, reviewing, found)


@router.post(
    "/reviews/{review}/take",
    **documented(desk_shown.ReviewShown, body=Take, problems=(404, 409)),
)
async def take(review: str, request: Request, caller: Decider) -> Response:
    """Take a review on; 409 if somebody else has it."""
    reviewing, found = await _person(request, caller, review)
    given = await read_body(request, Take)
    after = await hop(reviewing.take, found, who=caller.who, why=given.why)
    return await _now_shown(request, caller, reviewing, after)


@router.post(
    "/reviews/{review}/hand-over",
    **documented(desk_shown.ReviewShown, body=HandOver, problems=(404, 409)),
)
async def hand_over(review: str, request: Request, caller: Decider) -> Response:
    """Give a review to somebody else, or back to its owner."""
    reviewing, found = await _person(request, caller, review)
    given = await read_body(request, HandOver)
    after = await hop(reviewing.hand_over, found, given.to, who=caller.who, why=given.why)
    return await _now_shown(request, caller, reviewing, after)


@router.post(
    "/reviews/{review}/snooze",
    **documented(desk_shown.ReviewShown, body=Snooze, problems=(404, 409)),
)
async def snooze(review: str, request: Request, caller: Decider) -> Response:
    """Put a review off; the operation's own times go on."""
    reviewing, found = await _person(request, caller, review)
    given = await read_body(request, Snooze)
    until = shown.stamp(given.until)
    after = await hop(reviewing.snooze, found, until, who=caller.who, why=given.why)
    return await _now_shown(request, caller, reviewing, after)


@router.post(
    "/reviews/{review}/note",
    **documented(desk_shown.ReviewShown, body=LeaveNote, problems=(404, 409)),
)
async def note(review: str, request: Request, caller: Decider) -> Response:
    """Keep a note beside the evidence; it proves nothing."""
    reviewing, found = await _person(request, caller, review)
    given = await read_body(request, LeaveNote)
    after = await hop(reviewing.note, found, given.text, who=caller.who)
    return await _now_shown(request, caller, reviewing, after)


@router.post(
    "/reviews/{review}/decide",
    **documented(Decided, body=Decide, problems=(404, 409)),
)
async def decide(review: str, request: Request, caller: Decider) -> Response:
    """Decide what happened. 409 `conflict`: something newer is known, and `newer` says what."""
    reviewing, found = await _person(request, caller, review)
    given = await read_body(request, Decide)
    if given.accept_risk and Right.OVERRIDE not in caller.rights:
        raise ProblemError(
            "forbidden",
            f"{caller.actor} may not act without proof: it needs the right {Right.OVERRIDE}",
        )
    receipt = await hop(
        reviewing.decide, found, given.answer,
        who=caller.who, why=given.why, seen=int(given.seen), ref=given.ref,
        accept_risk=given.accept_risk, correct=given.correct,
    )  # fmt: skip
    case = await hop(reviewing.desk.case_of, receipt.id)
    waits = case.status.said == "waits_second"
    return answer(Decided(operation=_operation(request, receipt), waits_for_second=waits))


@router.post(
    "/reviews/{review}/confirm", **documented(shown.Operation, problems=(404, 409))
)  # fmt: skip
async def confirm(
    review: str,
    request: Request,
    caller: Confirmer,
    wait: Annotated[float, Query(ge=0, le=60)] = 10.0,
) -> Response:
    """Ask the target again what happened; nothing is sent again by this."""
    serving: Serving = request.app.state.serving
    reviewing, found = await _review(request, caller, review)
    receipt = await serving.space(caller.namespace).tasks.confirm(found.operation, wait=wait)
    await hop(
        reviewing.desk.log.note, caller.who, caller.namespace, "operation.confirm",
        subject=found.operation, after=receipt.state.value,
    )  # fmt: skip
    return answer(_operation(request, receipt))


def _operation(request: Request, receipt: Receipt) -> shown.Operation:
    serving: Serving = request.app.state.serving
    return shown.operation(receipt, serving.link(receipt.id))

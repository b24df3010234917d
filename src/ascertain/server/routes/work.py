"""Own code in any language: claim, extend, report, release. See docs/own-code.md."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal

import msgspec
from fastapi import APIRouter, Path, Request
from starlette.responses import Response

from ascertain.core.model import (
    Absent,
    Accepted,
    ActFinding,
    Done,
    Kind,
    LookFinding,
    NotDone,
    NotDoneKind,
    Several,
    Unknown,
)
from ascertain.runtime.remote import LONGEST_WAIT, MOST, Client, Granted, RemoteWork, seconds_left
from ascertain.runtime.ticket import Options
from ascertain.server import shown
from ascertain.server.access import Caller, Worker
from ascertain.server.messages import answer, documented, read_body
from ascertain.server.problems import ProblemError
from ascertain.server.serving import Serving
from ascertain.server.submitting import PLAIN, Name, Text

router = APIRouter(prefix="/v1/work", tags=["own code"])
EXTEND = 24 * 3600.0  # seconds; the action's own bounds are narrower
SOON = 0.1  # seconds: the shortest wait that a client is told
LOOKS = 64  # target keys of one look-up
Number = Annotated[int, msgspec.Meta(ge=-(2**53), le=2**53)]  # that every JSON reader keeps
Reference = Annotated[str, msgspec.Meta(max_length=500)] | Number
Token = Annotated[int, Path(ge=1, lt=2**63)]
ClaimName = Annotated[str, msgspec.Meta(min_length=16, max_length=100, pattern=PLAIN)]


class WorkClaim(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The one operation that own code wants to work on.

    With its `input`, and it is recorded if it is new (`key` where the key template holds {key});
    or with the `key` of one that is there. `wait`: seconds after which at the latest a permit
    `wait` is answered; it comes as soon as it is worth to claim again. `worker` is shown beside
    the attempt. `claim`: a name of your choice for this claim, made at random for each one: where
    its answer was lost, the same claim again gets the same permit while its lease lasts.
    """

    action: Name
    input: dict[str, Any] | None = None
    key: Annotated[str, msgspec.Meta(max_length=512)] | None = None
    run: Name | None = None
    event: Name | None = None
    title: Text = ""
    wait: Annotated[float, msgspec.Meta(ge=0, le=LONGEST_WAIT)] = 0.0
    worker: Annotated[str, msgspec.Meta(max_length=100, pattern=PLAIN)] = ""
    claim: ClaimName | None = None


class WorkDue(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Due work of these actions, the oldest first; `limit`: no more than can start now. `claim`:
    as for one operation: the same claim again gets the permits that it got before."""

    actions: Annotated[list[Name], msgspec.Meta(min_length=1, max_length=100)]
    limit: Annotated[int, msgspec.Meta(ge=1, le=MOST)] = 1
    worker: Annotated[str, msgspec.Meta(max_length=100, pattern=PLAIN)] = ""
    claim: ClaimName | None = None


class KeyToFind(msgspec.Struct, frozen=True):
    """A target key that a look-up asks for: of an `epoch`; the `control` of an object that is
    known to exist; or one that was `invented`, which must not be found."""

    target_key: str
    role: str
    epoch: int | None = None


class Permit(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What may be done about an operation now.

    `execute`, `replay` and `look_up` give an `attempt`, the token and fence of one try. Seconds
    count from before the claim was sent: after `deadline_in` nothing may begin to be sent, and
    within `lease_in` the finding must be reported, or the lease extended.
    """

    permit: Literal["execute", "replay", "look_up", "reuse", "wait"]
    operation: shown.Operation
    attempt: str | None = None
    target_key: str | None = None
    epoch: int | None = None
    key: str | None = None
    input: dict[str, Any] | None = None
    deadline_in: float | None = None
    lease_in: float | None = None
    lease_until: datetime | None = None
    target_keys: list[KeyToFind] | None = None
    retry_after: float | None = None
    next_step: dict[str, str] | None = None


class Permits(msgspec.Struct, frozen=True):
    """The due work that was claimed; none where nothing is due."""

    items: list[Permit]


class WorkExtend(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How long the lease shall last from now, in seconds."""

    operation: Name
    by: Annotated[float, msgspec.Meta(gt=0, le=EXTEND)]


class WorkExtended(msgspec.Struct, frozen=True):
    """The lease as it is now; seconds as in the permit, from before the request was sent."""

    deadline_in: float
    lease_in: float
    lease_until: datetime


class FoundOut(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What an attempt established, or what a look-up found for one target key.

    `done`, `accepted` with the target's own `ref`; `not_done` with a `kind`: only with proof
    that this attempt had no effect; `unknown` for everything else, also for every error that
    nobody classified. A look-up: `done`, `accepted`, `absent` (`complete`: the answer was read in
    full), `several` with `refs`, `unknown`. `stored`: by the contract this answer is the stored
    outcome of the target key. `retry_after` in seconds.
    """

    finding: Literal["done", "accepted", "not_done", "unknown", "absent", "several"]
    ref: Reference | None = None
    result: Any = None
    kind: NotDoneKind | None = None
    reason: Annotated[str, msgspec.Meta(max_length=2000)] = ""
    retry_after: Annotated[float, msgspec.Meta(ge=0, le=31 * 86400)] | None = None
    stored: bool = False
    complete: bool = True
    refs: Annotated[list[Reference], msgspec.Meta(max_length=100)] = []
    evidence: dict[str, Any] = {}


class KeyFound(FoundOut, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a look-up found for one target key."""

    target_key: Annotated[str, msgspec.Meta(min_length=1, max_length=64)]


class WorkFinding(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What came of an attempt: `result` of one that acted, `look_up` of one that looked, with a
    finding for each of its target keys. `report` names this report, so that sending it again
    changes nothing. `costs`: what it cost, as lines."""

    operation: Name
    report: Name
    result: FoundOut | None = None
    look_up: Annotated[list[KeyFound], msgspec.Meta(max_length=LOOKS)] | None = None
    costs: Annotated[list[dict[str, Any]], msgspec.Meta(max_length=100)] = []


class WorkRelease(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Of which operation a claim is given back."""

    operation: Name


@router.post("/claim", **documented(Permit, body=WorkClaim, problems=(404, 409, 424)))
async def claim(request: Request, caller: Worker) -> Response:
    """Record an intent unless it is there, and take what may be done about it now.

    The intent and the lease are durable. Where a person has to act first it is a problem: 409
    approval_missing or in_review, 424 not done. Where the answer does not arrive, claim again by
    the same `claim`: that gets the same permit, and any other has to wait until its lease is over.
    """
    serving: Serving = request.app.state.serving
    asked = await read_body(request, WorkClaim)
    work = _work(serving, caller)
    client = Client.of(caller.actor, asked.worker, asked.claim)
    work.definition(asked.action)  # an unknown one is said before what is wrong with the rest
    if asked.input is None:
        if asked.key is None:
            raise ProblemError("body_invalid", "give the input, or the key of an operation")
        one = await work.claim_known(asked.action, asked.key, client=client, wait=asked.wait)
        return answer(_permit(serving, work, one))
    space = serving.space(caller.namespace)
    run = await space.runs.named(asked.run) if asked.run else None
    options = Options(run=run, event=asked.event, title=asked.title, given_key=asked.key)
    one = await work.claim(
        asked.action, asked.input, asked.key, client=client, options=options, wait=asked.wait
    )
    return answer(_permit(serving, work, one))


@router.post("/due", **documented(Permits, body=WorkDue, problems=(404, 409)))
async def due(request: Request, caller: Worker) -> Response:
    """Take due work: permits to execute, to replay and to look up, as many as can start now.
    None where nothing is due."""
    serving: Serving = request.app.state.serving
    asked = await read_body(request, WorkDue)
    work = _work(serving, caller)
    client = Client.of(caller.actor, asked.worker, asked.claim)
    taken = await work.claim_due(asked.actions, asked.limit, client=client)
    return answer(Permits([_permit(serving, work, one) for one in taken]))


@router.post("/{attempt}/extend", **documented(WorkExtended, body=WorkExtend, problems=(404, 409)))
async def extend(attempt: Token, request: Request, caller: Worker) -> Response:
    """Lengthen a lease: durable before it applies. 409 lease_lost: send nothing more, and report
    what happened. 409 refused: longer than the action's bounds allow."""
    asked = await read_body(request, WorkExtend)
    work = _work(request.app.state.serving, caller)
    ticket = await work.extend(asked.operation, attempt, asked.by)
    left = (ticket.deadline - work.engine.clock.boottime()) / 1e6
    until = shown.time(ticket.case.status.due_at)
    assert until is not None
    return answer(WorkExtended(max(left, 0.0), max(left, 0.0), until))


@router.post(
    "/{attempt}/finding", **documented(shown.Operation, body=WorkFinding, problems=(404, 409))
)
async def finding(attempt: Token, request: Request, caller: Worker) -> Response:
    """Report what came of an attempt, with or without its lease: a late truth is kept. Durable
    when it is answered; sending the same report again changes nothing."""
    serving: Serving = request.app.state.serving
    asked = await read_body(request, WorkFinding)
    work = _work(serving, caller)
    await work.check(asked.operation, attempt)  # said before what is wrong with the rest
    if (asked.result is None) is (asked.look_up is None):
        raise ProblemError("body_invalid", "give the result of an attempt, or its look_up")
    if asked.result is not None:
        receipt = await work.report(
            asked.operation, attempt, _acted(asked.result), report=asked.report, costs=asked.costs
        )
    else:
        found = {one.target_key: _looked(one) for one in asked.look_up or ()}
        receipt = await work.looked(asked.operation, attempt, found)
    return answer(shown.operation(receipt, serving.link(receipt.id)))


@router.post(
    "/{attempt}/release", **documented(shown.Operation, body=WorkRelease, problems=(404, 409))
)
async def release(attempt: Token, request: Request, caller: Worker) -> Response:
    """Give back a claim whose action never started: proven not sent."""
    serving: Serving = request.app.state.serving
    asked = await read_body(request, WorkRelease)
    receipt = await _work(serving, caller).release(asked.operation, attempt)
    return answer(shown.operation(receipt, serving.link(receipt.id)))


def _work(serving: Serving, caller: Caller) -> RemoteWork:
    return RemoteWork(serving.space(caller.namespace).engine)


def _permit(serving: Serving, work: RemoteWork, one: Granted) -> Permit:
    """Return a permit as the API shows it."""
    receipt, ticket = one.receipt, one.ticket
    seen = shown.operation(receipt, serving.link(receipt.id))
    if ticket is None:
        if one.permit == "reuse":
            return Permit(permit="reuse", operation=seen)
        due = receipt.due_at or 0
        wait = max((due - work.engine.store.now()) / 1e6, SOON)
        return Permit(
            permit="wait", operation=seen, retry_after=round(wait, 3), next_step=receipt.next_step
        )
    sends, lease = seconds_left(work.engine, ticket)
    look = ticket.attempt.kind is Kind.LOOK_UP
    return Permit(
        permit=one.permit,
        operation=seen,
        attempt=str(ticket.attempt.token),
        target_key=ticket.case.status.target_key,
        epoch=ticket.attempt.epoch,
        key=receipt.key,
        input=None if look else ticket.definition.whole(ticket.input or {}),
        deadline_in=sends,
        lease_in=lease,
        lease_until=shown.time(ticket.case.status.due_at),
        target_keys=_keys(one) if look else None,
    )


def _keys(one: Granted) -> list[KeyToFind]:
    assert one.keys is not None
    found = [KeyToFind(key, "epoch", epoch) for epoch, key in one.keys.targets]
    if one.keys.control is not None:
        found.append(KeyToFind(one.keys.control, "control"))
    return [*found, KeyToFind(one.keys.invented, "invented")]


def _acted(given: FoundOut) -> ActFinding:
    """Return the finding of an attempt that acted, or end the request with what is wrong."""
    match given.finding:
        case "done":
            return Done(ref=given.ref, result=given.result, evidence=given.evidence)
        case "accepted":
            return Accepted(ref=given.ref, result=given.result, evidence=given.evidence)
        case "not_done":
            if given.kind is None:
                raise ProblemError("body_invalid", "not_done needs a kind", fields=["kind"])
            return NotDone(
                given.kind, given.reason, given.retry_after, given.stored, given.evidence
            )
        case "unknown":
            return Unknown(given.reason, given.retry_after, given.evidence)
    raise ProblemError("body_invalid", f"{given.finding} is for look-ups; this attempt acted")


def _looked(given: KeyFound) -> LookFinding:
    """Return the finding of a look-up, or end the request with what is wrong."""
    match given.finding:
        case "absent":
            return Absent(complete=given.complete, evidence=given.evidence)
        case "several":
            return Several(refs=given.refs, evidence=given.evidence)
        case "not_done":
            raise ProblemError("body_invalid", "a look-up cannot find not_done: say absent")
    found = _acted(given)
    assert not isinstance(found, NotDone)
    return found

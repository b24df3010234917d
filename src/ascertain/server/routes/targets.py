"""Targets: which there are, whether they are paused or out of reach, and what waits for them."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

import msgspec
from fastapi import APIRouter, Path, Request
from starlette.responses import Response

from ascertain.core.books import Gate
from ascertain.runtime.loop import hop
from ascertain.runtime.pausing import MOST, Pausing, TargetState
from ascertain.server import shown
from ascertain.server.access import Caller, Operator, Reader
from ascertain.server.messages import answer, documented, read_body
from ascertain.server.problems import ProblemError
from ascertain.server.serving import Serving
from ascertain.server.submitting import PLAIN

router = APIRouter(prefix="/v1/targets", tags=["targets"])
Named = Annotated[str, Path(min_length=1, max_length=200)]


class TargetAction(msgspec.Struct, frozen=True, kw_only=True):
    """An action of a target, its contract, and the day on which a self-test found the contract
    to hold, or nothing."""

    name: str
    contract: str
    verified: str
    waiting: int
    by_client: bool


class Target(msgspec.Struct, frozen=True, kw_only=True):
    """A target. `state`: open, paused (by a person), closed (it does not answer), trying.
    `waiting`: operations that wait for it."""

    name: str
    state: str
    since: datetime | None
    until: datetime | None
    by: str
    why: str
    failures: int
    waiting: int
    capped: bool
    actions: list[TargetAction]


class Targets(msgspec.Struct, frozen=True):
    """All targets of a namespace."""

    items: list[Target]
    next: str | None = None


class WhyPaused(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Why, for whoever meets an operation that waits."""

    why: Annotated[str, msgspec.Meta(max_length=500, pattern=PLAIN)] = ""


@router.get("", **documented(Targets))
async def targets(request: Request, caller: Reader) -> Response:
    """Return every target of the namespace with the state of its gate."""
    pausing = _pausing(request, caller)
    found = await hop(pausing.states)
    return answer(Targets([_shown(one) for one in found]))


@router.post("/{name}/pause", **documented(Target, body=WhyPaused, problems=(404, 409)))
async def pause(name: Named, request: Request, caller: Operator) -> Response:
    """Let nothing new be sent to a target until it is resumed. Operations wait, nothing is lost;
    what has begun goes on, and look-ups are still made. Durable; every process heeds it within a
    second."""
    return await _set(name, request, caller, paused=True)


@router.post("/{name}/resume", **documented(Target, body=WhyPaused, problems=(404, 409)))
async def resume(name: Named, request: Request, caller: Operator) -> Response:
    """Let a target be acted on again; what waited for it is due at once."""
    return await _set(name, request, caller, paused=False)


async def _set(name: str, request: Request, caller: Caller, *, paused: bool) -> Response:
    asked = await read_body(request, WhyPaused)
    pausing = _pausing(request, caller)
    if name not in pausing.targets:
        raise ProblemError("unknown", f"no target {name!r} is declared in this namespace")
    do = pausing.pause if paused else pausing.resume
    await hop(do, name, caller.who, asked.why)
    return answer(_shown(await hop(pausing.state, name)))


def _pausing(request: Request, caller: Caller) -> Pausing:
    serving: Serving = request.app.state.serving
    return Pausing(serving.space(caller.namespace).engine)


def _shown(one: TargetState) -> Target:
    gate: Gate = one.gate
    return Target(
        name=gate.target,
        state=gate.state,
        since=shown.time(gate.since or None),
        until=shown.time(gate.until),
        by=gate.by,
        why=gate.why,
        failures=gate.failures,
        waiting=min(sum(a.waiting for a in one.actions), MOST),
        capped=any(a.waiting >= MOST for a in one.actions),
        actions=[
            TargetAction(
                name=a.name, contract=a.contract, verified=a.verified, waiting=a.waiting,
                by_client=a.by_client,
            )
            for a in one.actions
        ],
    )  # fmt: skip

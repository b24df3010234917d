"""Runs: a group of operations with the keys that it expects, and which of them are missing."""

from __future__ import annotations

import re
from datetime import datetime
from typing import Annotated, Any

import msgspec
from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from ascertain.config.spaces import Space
from ascertain.core import keys
from ascertain.core.model import Expected, Run
from ascertain.runtime.flow import Standing, standing
from ascertain.runtime.loop import hop
from ascertain.server import shown
from ascertain.server.access import Reader, Writer
from ascertain.server.messages import answer, documented, read_body
from ascertain.server.problems import ProblemError
from ascertain.server.serving import Serving
from ascertain.server.submitting import Moment, Name

router = APIRouter(prefix="/v1/runs", tags=["runs"])
WHOLE = f"{{{keys.GIVEN}}}"  # a template that is the key which the caller gives
MOST = 10_000  # keys that one request adds
BODY_BYTES = 16 * 1024 * 1024
_CURSOR = re.compile(r"(\d{1,18})\.([0-9a-v]{26})")


class ExpectedKey(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A key that a run expects: as it is, or as an input gives it (with `key`, where the action's
    template holds {key})."""

    action: Name
    key: Annotated[str, msgspec.Meta(min_length=1, max_length=512)] | None = None
    input: dict[str, Any] | None = None


class OpenRun(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A run to be opened, or opened again by its name: `expects` adds keys, and after `due` an
    absent one is missing."""

    name: Name
    expects: Annotated[list[ExpectedKey], msgspec.Meta(max_length=MOST)] = []
    due: Moment | None = None


class RunShown(msgspec.Struct, frozen=True, kw_only=True):
    """A run."""

    id: str
    name: str
    opened_at: datetime | None
    due_at: datetime | None


class RunMember(msgspec.Struct, frozen=True, kw_only=True):
    """One key of a run and where it stands: done, accepted, waiting, running, unknown, not_done or
    missing, which is to say that there is no operation."""

    action: str
    key: str
    standing: str
    operation: str | None
    ref: str | None
    link: str | None


class RunStanding(msgspec.Struct, frozen=True, kw_only=True):
    """Where a run stands: `standing` is that of the member that is worst off, `green` only if every
    key that it expects is done. `counts` are of all members, `items` those of this page."""

    run: RunShown
    standing: str
    green: bool
    counts: dict[str, int]
    items: list[RunMember]
    next: str | None


class RunList(msgspec.Struct, frozen=True):
    """A page of runs, the newest first."""

    items: list[RunShown]
    next: str | None


@router.post("", **documented(RunStanding, body=OpenRun, problems=(404,)))
async def open_run(request: Request, caller: Writer) -> Response:
    """Open a run by its name, or open it again, and add keys that it expects; durable.

    Operations belong to it that name it as `run` when they are submitted.
    """
    serving: Serving = request.app.state.serving
    space = serving.space(caller.namespace)
    asked = await read_body(request, OpenRun, BODY_BYTES)
    expects = [_expected(space, one) for one in asked.expects]
    run = await space.runs.open(asked.name, expects, shown.stamp(asked.due))
    found = await hop(standing, space.engine, run)
    return answer(_standing(serving, run, found, 0, MOST))


def _expected(space: Space, asked: ExpectedKey) -> Expected:
    definition = space.engine.definition(asked.action)
    if asked.input is not None:
        values = definition.bind(asked.input)
        key = definition.key(values, space.store.now(), asked.key)
    elif asked.key is None:
        raise ProblemError("key_missing", f"{asked.action}: give its key, or the input of it")
    elif definition.takes_key and definition.declared.key == WHOLE:
        key = definition.key({}, space.store.now(), asked.key)
    elif definition.takes_key:
        raise ProblemError(
            "body_invalid",
            f"{asked.action}: its key holds more than {{key}}: give the input too",
            fields=["expects"],
        )
    else:
        keys.check_key(asked.key, personal=True)  # what can be no key is never missing
        key = asked.key
    return Expected(run="", namespace=space.namespace, action=asked.action, key=key)


@router.get("", **documented(RunList))
async def list_runs(
    request: Request,
    caller: Reader,
    name: Annotated[str | None, Query(max_length=200)] = None,
    limit: Annotated[int, Query(ge=1, le=1000)] = 100,
    after: Annotated[str | None, Query(max_length=64)] = None,
) -> Response:
    """Return runs, the newest first; those of one `name` where it is given."""
    serving: Serving = request.app.state.serving
    place = None
    if after is not None:
        read = _CURSOR.fullmatch(after)
        if read is None:
            raise ProblemError("usage", f"{after!r} is no cursor of this list: pass `next`")
        place = (int(read[1]), read[2])
    page = await hop(serving.space(caller.namespace).runs.page, _plain(name), place, limit)
    following = None if page.after is None else f"{page.after[0]}.{page.after[1]}"
    return answer(RunList([_shown(run) for run in page.runs], following))


@router.get("/{run:path}", **documented(RunStanding, problems=(404,)))
async def get_run(
    run: str,
    request: Request,
    caller: Reader,
    limit: Annotated[int, Query(ge=1, le=MOST)] = 1000,
    after: Annotated[int, Query(ge=0, le=10**9)] = 0,
) -> Response:
    """Return where a run stands, by its id or its name: every key that it expects and every
    operation in it, the missing ones too."""
    serving: Serving = request.app.state.serving
    space = serving.space(caller.namespace)
    found = await hop(space.runs.find, _plain(run) or "")
    if found is None:
        raise ProblemError("unknown", f"there is no run {run!r} in namespace {space.namespace!r}")
    stands = await hop(standing, space.engine, found)
    return answer(_standing(serving, found, stands, after, limit))


def _plain(text: str | None) -> str | None:
    return None if text is None else text.replace("\x00", "")  # which PostgreSQL cannot compare


def _shown(run: Run) -> RunShown:
    opened, due = shown.time(run.opened_at), shown.time(run.due_at)
    return RunShown(id=run.id, name=run.name, opened_at=opened, due_at=due)


def _standing(serving: Serving, run: Run, found: Standing, after: int, limit: int) -> RunStanding:
    counts: dict[str, int] = {}
    for one in found.members:
        counts[one.standing] = counts.get(one.standing, 0) + 1
    page = found.members[after : after + limit]
    more = after + limit < len(found.members)
    return RunStanding(
        run=_shown(run),
        standing=found.standing,
        green=found.green,
        counts=counts,
        items=[
            RunMember(
                action=one.action, key=one.key, standing=one.standing, operation=one.operation,
                ref=one.ref, link=serving.link(one.operation) if one.operation else None,
            )
            for one in page
        ],
        next=str(after + limit) if more else None,
    )  # fmt: skip

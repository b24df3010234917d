"""The audit: who did what, when, why, and what was before and after. Nothing of it changes."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Sequence
from datetime import datetime
from typing import Annotated

import msgspec
from fastapi import APIRouter, Depends, Query, Request
from starlette.responses import Response

from ascertain.core.books import Audit
from ascertain.core.model import SECOND
from ascertain.runtime.audit import FIRST_MOMENT, LAST_MOMENT, Wanted
from ascertain.runtime.loop import hop
from ascertain.server import shown
from ascertain.server.access import Admin, Caller, Right
from ascertain.server.csv import MEDIA, csv_answer
from ascertain.server.messages import answer, documented
from ascertain.server.problems import ProblemError
from ascertain.server.serving import Serving

router = APIRouter(prefix="/v1", tags=["audit"])
PAGE = 1000  # lines read at once for a file
PAGES = 1000  # of a file at most
HEAD = (
    "id", "at", "namespace", "actor", "role", "via", "did", "subject", "reason", "before", "after",
    "address",
)  # fmt: skip


class AuditLine(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that somebody did."""

    id: str
    at: datetime | None
    namespace: str
    actor: str
    role: str
    via: str
    did: str
    subject: str
    reason: str
    before: str
    after: str
    address: str


class AuditPage(msgspec.Struct, frozen=True):
    """A page of the audit, newest first."""

    items: list[AuditLine]
    next: str | None


def _wanted(
    actor: Annotated[str | None, Query(max_length=200)] = None,
    did: Annotated[str | None, Query(max_length=100)] = None,
    subject: Annotated[str | None, Query(max_length=200)] = None,
    since: datetime | None = None,
    until: datetime | None = None,
) -> Wanted:
    return Wanted(
        actor=actor, did=did, subject=subject, since=_moment(since, FIRST_MOMENT),
        until=_moment(until, LAST_MOMENT),
    )  # fmt: skip


def _moment(given: datetime | None, default: int) -> int:
    if given is None:
        return default
    if given.tzinfo is None:
        raise ProblemError("usage", "a time needs its zone, e.g. 2026-11-29T14:30:00Z")
    return int(given.timestamp() * SECOND)


Asked = Annotated[Wanted, Depends(_wanted)]


@router.get("/audit", **documented(AuditPage))
async def audit(
    request: Request,
    caller: Admin,
    wanted: Asked,
    *,
    after: Annotated[str, Query(max_length=64)] = "",
    limit: Annotated[int, Query(ge=1, le=1000)] = 100,
    everywhere: bool = False,
) -> Response:
    """List what was done in this namespace, newest first; with `everywhere` in all of them, and
    what concerns people as such, for those who administer every namespace."""
    serving: Serving = request.app.state.serving
    namespace = _namespace(caller, everywhere=everywhere)
    found = await hop(serving.accounts.log.find, namespace, wanted, before=after, limit=limit + 1)
    more = found[limit - 1].id if len(found) > limit else None
    return answer(AuditPage([_line(one) for one in found[:limit]], more))


FILE = documented()
FILE["responses"][200] = {"description": "the file", "content": {MEDIA: {}}}


@router.get("/audit.csv", **FILE)
async def audit_file(
    request: Request, caller: Admin, wanted: Asked, *, everywhere: bool = False
) -> Response:
    """Return the same as a file, a million lines at most: no cell is a formula."""
    serving: Serving = request.app.state.serving
    namespace = _namespace(caller, everywhere=everywhere)

    async def pages() -> AsyncIterator[Iterable[Sequence[object]]]:
        before = ""
        for _ in range(PAGES):
            found = await hop(
                serving.accounts.log.find, namespace, wanted, before=before, limit=PAGE
            )
            yield [_row(one) for one in found]
            if len(found) < PAGE:
                return
            before = found[-1].id

    return csv_answer(HEAD, pages(), "audit.csv")


def _namespace(caller: Caller, *, everywhere: bool) -> str | None:
    if everywhere and Right.ADMIN not in caller.everywhere:
        raise ProblemError("forbidden", "this is for those who administer every namespace")
    return None if everywhere else caller.namespace


def _line(one: Audit) -> AuditLine:
    return AuditLine(
        id=one.id, at=shown.time(one.at), namespace=one.namespace, actor=one.actor, role=one.role,
        via=one.via, did=one.did, subject=one.subject, reason=one.reason, before=one.before,
        after=one.after, address=one.address,
    )  # fmt: skip


def _row(one: Audit) -> tuple[object, ...]:
    line = _line(one)
    at = line.at.isoformat() if line.at else ""
    return tuple(at if name == "at" else getattr(line, name) for name in HEAD)

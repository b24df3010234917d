"""Approvals: what is asked, exactly what would be sent, and a person's answer (law 11).

No token may answer. In which roles a person may is said by `[approvers]`; a role that is not named
there may be answered by everybody who approves.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from ascertain.core.errors import ApprovalStale, UsageError
from ascertain.runtime.approving import Approving, Ask
from ascertain.runtime.loop import hop
from ascertain.runtime.receipt import Receipt
from ascertain.server import desk_shown, shown
from ascertain.server.access import Approver, Caller, Right, needs
from ascertain.server.messages import answer, documented, read_body
from ascertain.server.problems import ProblemError
from ascertain.server.serving import Serving

router = APIRouter(prefix="/v1/approvals", tags=["approvals"])
Looker = Annotated[Caller, needs(Right.READ, Right.APPROVE)]
State = Literal["asked", "approved", "rejected", "responded", "withdrawn"]
LONGEST = 4000  # characters of a note
PLAIN = r"^[^\x00]*$"  # PostgreSQL keeps no NUL
Note = Annotated[str, msgspec.Meta(max_length=4000, pattern=PLAIN)]
Said = Annotated[str, msgspec.Meta(min_length=1, max_length=4000, pattern=PLAIN)]
Text = Annotated[str | None, Query(max_length=200, pattern=PLAIN)]


class Approve(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Consent to exactly what was shown, named by its digest."""

    digest: Note
    note: Note = ""


class Reject(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Refusal for good, with the reason."""

    reason: Said
    digest: Note | None = None


class Respond(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Back to the author, with what he should change."""

    note: Said
    digest: Note | None = None


class Edit(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A new version: fields of the input that replace those asked for, and why."""

    input: dict[str, Any]
    why: Said
    title: Annotated[str, msgspec.Meta(max_length=200, pattern=PLAIN)] = ""


class NewVersion(msgspec.Struct, frozen=True, kw_only=True):
    """The new version, which supersedes the old one, and the approvals that it waits for."""

    operation: shown.Operation
    approvals: list[str]


class ActionRequest(msgspec.Struct, frozen=True):
    """What would be done, with which input."""

    action: str
    args: dict[str, Any]


class InboxConfig(msgspec.Struct, frozen=True, kw_only=True):
    """Which answers are possible."""

    allow_ignore: bool
    allow_respond: bool
    allow_edit: bool
    allow_accept: bool


class InboxItem(msgspec.Struct, frozen=True, kw_only=True):
    """An approval in the shape of Agent Inbox."""

    action_request: ActionRequest
    config: InboxConfig
    description: str


class InboxAnswer(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An answer in the shape of Agent Inbox: accept approves this pinned request, edit makes a new
    version, response sends it back to its author, ignore closes it without acting."""

    type: Literal["accept", "edit", "response", "ignore"]
    args: Any = None


def _approving(request: Request, caller: Caller) -> Approving:
    serving: Serving = request.app.state.serving
    return Approving(serving.space(caller.namespace).ledger)


async def _ask(request: Request, caller: Caller, ident: str) -> tuple[Approving, Ask]:
    approving = _approving(request, caller)
    found = None if "\x00" in ident else await hop(approving.ask, ident)
    if found is None:
        raise ProblemError("unknown", f"there is no approval {ident} in this namespace")
    return approving, found


def may_answer(serving: Serving, caller: Caller, role: str) -> bool:
    """Tell whether a caller may answer in a role: a person who approves, and who is named where
    the configuration names anybody for this role."""
    named = serving.understood.approvers.get(role)
    may = caller.person and Right.APPROVE in caller.rights
    return may and (named is None or caller.actor in named)


async def _mine(request: Request, caller: Caller, ident: str) -> tuple[Approving, Ask]:
    """Return an ask that this person may answer; else the request ends with 403 or 404."""
    approving, ask = await _ask(request, caller, ident)
    answers_himself(request.app.state.serving, caller, ask.role)
    return approving, ask


def answers_himself(serving: Serving, caller: Caller, role: str) -> None:
    """End the request where a caller may not answer in a role."""
    if not may_answer(serving, caller, role):
        raise ProblemError(
            "forbidden",
            f"{caller.actor} may not answer as {role}: [approvers] names who may, and no token"
            " ever does",
        )


def _operation(request: Request, receipt: Receipt) -> Response:
    serving: Serving = request.app.state.serving
    return answer(shown.operation(receipt, serving.link(receipt.id)))


@router.get("", **documented(desk_shown.ApprovalPage))
async def find(
    request: Request,
    caller: Looker,
    *,
    state: State = "asked",
    role: Text = None,
    operation: Text = None,
    after: Annotated[str, Query(max_length=400, pattern=PLAIN)] = "",
    limit: Annotated[int, Query(ge=1, le=1000)] = 100,
) -> Response:
    """List approvals: by default those that are waited for now, oldest operation first."""
    serving: Serving = request.app.state.serving
    found = await hop(
        _approving(request, caller).find,
        state=state, role=role, operation=operation, after=after, limit=limit + 1,
    )  # fmt: skip
    page = found[:limit]
    return answer(
        desk_shown.ApprovalPage(
            [desk_shown.approval(a, serving.link(a.operation)) for a in page],
            page[-1].id if len(found) > limit else None,
        )
    )


@router.get("/{approval}", **documented(desk_shown.ApprovalShown, problems=(404,)))
async def get(approval: str, request: Request, caller: Looker) -> Response:
    """Return an approval with exactly what was frozen, and what changed since the last version
    that was approved."""
    serving: Serving = request.app.state.serving
    approving, ask = await _ask(request, caller, approval)
    full = await hop(approving.full, ask)
    yours = may_answer(serving, caller, ask.role)
    return answer(desk_shown.approval_whole(full, serving.link(ask.operation), yours=yours))


@router.post(
    "/{approval}/approve",
    **documented(shown.Operation, body=Approve, problems=(404, 409)),
)
async def approve(approval: str, request: Request, caller: Approver) -> Response:
    """Consent to exactly what was shown. 409 `approval_stale`: it is something else now."""
    approving, ask = await _mine(request, caller, approval)
    given = await read_body(request, Approve)
    return _operation(request, await _approved(approving, ask, caller, given))


async def _approved(approving: Approving, ask: Ask, caller: Caller, given: Approve) -> Receipt:
    if given.digest != ask.digest:
        raise ApprovalStale(
            f"operation {ask.key}: this approval is of another request than the one that you"
            " saw; look at it again",
            operation=ask.operation,
        )
    return await hop(
        approving.desk.approve, ask.operation,
        by=caller.actor, role=ask.role, digest=given.digest, note=given.note, who=caller.who,
    )  # fmt: skip


@router.post(
    "/{approval}/reject",
    **documented(shown.Operation, body=Reject, problems=(404, 409)),
)
async def reject(approval: str, request: Request, caller: Approver) -> Response:
    """Refuse for good: the operation is stopped, and nothing was sent."""
    approving, ask = await _mine(request, caller, approval)
    given = await read_body(request, Reject)
    return _operation(request, await _rejected(approving, ask, caller, given))


async def _rejected(approving: Approving, ask: Ask, caller: Caller, given: Reject) -> Receipt:
    return await hop(
        approving.desk.reject, ask.operation,
        by=caller.actor, role=ask.role, digest=given.digest or ask.digest, note=given.reason,
        who=caller.who,
    )  # fmt: skip


@router.post(
    "/{approval}/respond",
    **documented(shown.Operation, body=Respond, problems=(404, 409)),
)
async def respond(approval: str, request: Request, caller: Approver) -> Response:
    """Send it back to its author with a note: nothing was sent, a new version is waited for."""
    approving, ask = await _mine(request, caller, approval)
    given = await read_body(request, Respond)
    return _operation(request, await _responded(approving, ask, caller, given))


async def _responded(approving: Approving, ask: Ask, caller: Caller, given: Respond) -> Receipt:
    return await hop(
        approving.desk.respond, ask.operation,
        by=caller.actor, role=ask.role, digest=given.digest or ask.digest, note=given.note,
        who=caller.who,
    )  # fmt: skip


@router.post(
    "/{approval}/edit",
    **documented(NewVersion, status=201, body=Edit, problems=(404, 409)),
)
async def edit(approval: str, request: Request, caller: Approver) -> Response:
    """Make a new version with another input. It needs an approval of its own; the version that was
    asked for is never sent."""
    approving, ask = await _mine(request, caller, approval)
    given = await read_body(request, Edit)
    return answer(await _edited(request, approving, ask, caller, given), 201)


async def _edited(
    request: Request, approving: Approving, ask: Ask, caller: Caller, given: Edit
) -> NewVersion:
    serving: Serving = request.app.state.serving
    receipt = await hop(
        approving.edit, ask, given.input, who=caller.who, why=given.why, title=given.title
    )
    asks = await hop(approving.find, operation=receipt.id)
    return NewVersion(
        operation=shown.operation(receipt, serving.link(receipt.id)),
        approvals=[a.id for a in asks],
    )


# --- the shape of Agent Inbox ---


@router.get("/{approval}/inbox", **documented(InboxItem, problems=(404,)))
async def inbox(approval: str, request: Request, caller: Looker) -> Response:
    """Return an approval in the shape of Agent Inbox."""
    approving, ask = await _ask(request, caller, approval)
    full = await hop(approving.full, ask)
    waits = ask.state == "asked" and may_answer(request.app.state.serving, caller, ask.role)
    known = full.input if isinstance(full.input, dict) else {}
    sent = full.request
    where = f"\n\n`{sent.method} {sent.url}`" if sent else ""
    return answer(
        InboxItem(
            action_request=ActionRequest(ask.action, known),
            config=InboxConfig(
                allow_ignore=waits,
                allow_respond=waits,
                allow_edit=waits and bool(known),
                allow_accept=waits and full.exact,
            ),
            description=f"{ask.title}: to be approved as {ask.role}{where}",
        )
    )


@router.post(
    "/{approval}/inbox",
    **documented(NewVersion, body=InboxAnswer, problems=(404, 409)),
)
async def inbox_answer(approval: str, request: Request, caller: Approver) -> Response:
    """Answer an approval in the shape of Agent Inbox; the approval's id stands for the request
    that it pins. Returns the operation, of `edit` the new version."""
    approving, ask = await _mine(request, caller, approval)
    given = await read_body(request, InboxAnswer)
    note = given.args.replace("\x00", "")[:LONGEST] if isinstance(given.args, str) else ""
    match given.type:
        case "accept":
            receipt = await _approved(approving, ask, caller, Approve(digest=ask.digest))
        case "ignore":
            reason = note or "closed without acting"
            receipt = await _rejected(approving, ask, caller, Reject(reason=reason))
        case "response":
            if not note:
                raise UsageError("response: say in args what its author should change")
            receipt = await _responded(approving, ask, caller, Respond(note=note))
        case "edit":
            changed = given.args if isinstance(given.args, dict) else {}
            args = changed.get("args", changed)
            if not isinstance(args, dict) or not args:
                raise UsageError('edit: give the new input, {"action": …, "args": {…}}')
            why = "edited in the inbox"
            new = await _edited(request, approving, ask, caller, Edit(input=args, why=why))
            return answer(new)
    serving: Serving = request.app.state.serving
    made = shown.operation(receipt, serving.link(receipt.id))
    return answer(NewVersion(operation=made, approvals=[]))

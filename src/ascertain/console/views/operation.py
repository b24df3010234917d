"""One operation: what is known about it, what happens next, and how it is known."""

from __future__ import annotations

import re
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from starlette.responses import RedirectResponse, Response

from ascertain.console.detail import detail_of
from ascertain.console.forms import Form, back, form, remembered
from ascertain.console.glyphs import pill
from ascertain.console.person import Person, Signed, own_page
from ascertain.core.errors import AscertainError, UnknownOperation, UsageError
from ascertain.core.model import State
from ascertain.core.rights import Right
from ascertain.runtime.loop import hop
from ascertain.runtime.searching import Searching, Wanted
from ascertain.server.problems import ProblemError
from ascertain.server.serving import Serving

router = APIRouter(include_in_schema=False)
ID = re.compile(r"[0-9a-v]{26}")
ASKED_FOR = 10.0  # seconds that a page waits for the target's answer
REPEATABLE = (State.DONE, State.ACCEPTED)  # what may deliberately be done a second time
RIGHTS = {
    "confirm": (Right.OPERATE, Right.DECIDE),
    "renew": (Right.OPERATE,),
    "repeat": (Right.WRITE,),
}


@router.get("/op/{operation:path}")
async def operation(
    operation: str, request: Request, me: Signed, told: Annotated[str, Query(max_length=20)] = ""
) -> Response:
    """Show an operation by its id, or by its key."""
    if not ID.fullmatch(operation):
        return await _by_key(request, me, operation)
    try:
        return await _show(request, me, operation, told=told)
    except UnknownOperation:
        elsewhere = await hop(_namespace_of, request, me, operation)
        if not elsewhere:
            raise
        return remembered(request, f"/op/{operation}", namespace=elsewhere)


@router.post("/op/{operation}")
async def act(operation: str, request: Request, me: Signed) -> Response:
    """Ask the target again, go on with a renewed authorization, or ask for a second effect."""
    given = await form(request)
    do = given["do"]
    if do not in RIGHTS:
        raise ProblemError("body_invalid", f"there is nothing called {do!r} to do here")
    if not me.has(*RIGHTS[do]):
        raise ProblemError("forbidden", f"{me.caller.actor} may not do this here")
    try:
        to = await _done(request, me, operation, given)
    except UnknownOperation:
        raise
    except AscertainError as error:
        return await _show(request, me, operation, wrong=error, given=given)
    return back(f"/op/{to}", do)


async def _done(request: Request, me: Person, operation: str, given: Form) -> str:
    """Carry out a form; returns which operation is shown then."""
    serving: Serving = request.app.state.serving
    space, who, do = serving.space(me.namespace), me.caller.who, given["do"]
    receipt = await hop(space.ledger.get, operation)
    if do == "renew":
        await hop(lambda: space.ledger.renew(receipt.id, by=who.actor, who=who))
        return receipt.id
    if do == "confirm":
        receipt = await space.tasks.confirm(receipt.id, wait=ASKED_FOR)
        after, why = receipt.state.value, ""
    else:
        why = given["why"]
        if not why:
            raise UsageError("say why it is done a second time")
        receipt = await space.action(receipt.action).repeat(of=receipt.id, reason=why)
        after = f"operation {receipt.id}"
    log = serving.accounts.log
    await hop(
        log.note, who, me.namespace, f"operation.{do}", subject=operation, reason=why, after=after
    )  # fmt: skip
    return receipt.id


async def _show(
    request: Request, me: Person, operation: str, *, told: str = "",
    wrong: AscertainError | None = None, given: Form | None = None,
) -> Response:  # fmt: skip
    serving: Serving = request.app.state.serving
    ledger = serving.space(me.namespace).ledger

    def read() -> dict[str, Any]:
        receipt = ledger.get(operation)
        return {
            "op": receipt,
            "about": detail_of(serving, me, operation),
            "reviews": ledger.reviews(operation),
            "may_repeat": receipt.state in REPEATABLE and receipt.action in ledger.engine.actions,
        }

    found = await hop(read)
    return own_page(
        request, me, "operation.html", pill=pill, view="detail", told_code=told, wrong=wrong,
        given=given or Form({}), **found,
    )  # fmt: skip


async def _by_key(request: Request, me: Person, key: str) -> Response:
    """Go to the operation of a key; where several actions have one, list them."""
    serving: Serving = request.app.state.serving
    searching = Searching(serving.space(me.namespace).ledger)
    found = (await hop(lambda: searching.page(Wanted(key=key), limit=2))).receipts
    if not found:
        raise UnknownOperation(f"no operation has the key {key!r} in this namespace")
    if len(found) > 1:
        return back("/operations", q=key)
    return RedirectResponse(f"/op/{found[0].id}", status_code=303)


def _namespace_of(request: Request, me: Person, operation: str) -> str:
    """Return in which other namespace of this person an operation is, or nothing: a link that was
    sent to him leads there."""
    serving: Serving = request.app.state.serving
    found = serving.store.snapshots([operation]).get(operation)
    namespace = found.operation.namespace if found is not None else ""
    return namespace if namespace in me.namespaces and namespace != me.namespace else ""

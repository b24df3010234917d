"""Operations: submit one, see where it stands."""

from __future__ import annotations

from typing import Any

import msgspec
from fastapi import APIRouter, Request
from starlette.responses import Response

from ascertain.runtime.loop import hop
from ascertain.runtime.receipt import error_of
from ascertain.server import shown
from ascertain.server.access import Reader, Writer
from ascertain.server.messages import answer, documented, read_body
from ascertain.server.serving import Serving

router = APIRouter(prefix="/v1/operations", tags=["operations"])


class Submit(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What is to be done once."""

    action: str
    input: dict[str, Any] = {}


@router.post("", **documented(shown.Operation, body=Submit, problems=(404, 409, 424)))
async def submit(request: Request, caller: Writer) -> Response:
    """Do it once, and answer where it stands; an outcome that is not known is a problem."""
    serving: Serving = request.app.state.serving
    asked = await read_body(request, Submit)
    action = serving.space(caller.namespace).action(asked.action)
    receipt = await action.submit(**asked.input)
    error = error_of(receipt)
    if error is not None:
        raise error
    return answer(shown.operation(receipt, serving.link(receipt.id)))


@router.get("/{operation}", **documented(shown.Operation, problems=(404,)))
async def get(operation: str, request: Request, caller: Reader) -> Response:
    """Return an operation as it stands."""
    serving: Serving = request.app.state.serving
    receipt = await hop(serving.space(caller.namespace).ledger.get, operation)
    return answer(shown.operation(receipt, serving.link(receipt.id)))

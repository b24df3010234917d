"""The gateway: a caller changes the base of his address and adds a key."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Request
from starlette.responses import Response

from ascertain.server import shown
from ascertain.server.access import Writer
from ascertain.server.messages import documented
from ascertain.server.serving import Serving

router = APIRouter(prefix="/gateway", tags=["gateway"])
METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")
MORE = ("PROPFIND", "PROPPATCH", "REPORT", "SEARCH", "QUERY", "MKCOL", "MKCALENDAR")
HEADERS = (
    "Ascertain-Key", "Ascertain-Run", "Ascertain-Event", "Ascertain-Title", "Ascertain-Wait",
    "Ascertain-On-Unresolved", "Ascertain-Token",
)  # fmt: skip


async def gateway(
    target: str,  # noqa: ARG001 - both are read as they came, undecoded
    path: str,  # noqa: ARG001
    request: Request,
    caller: Writer,
) -> Response:
    """Pass a request to a declared target, once for one `Ascertain-Key`.

    The answer is the target's own; `Ascertain-State` says how it stands, `Ascertain-Reused`
    whether it was done before. What is not resolved is a problem (409), or with
    `Ascertain-On-Unresolved: accept` the operation (202). What is declared as read is passed on
    without a key. The token goes in `Authorization`, or in `Ascertain-Token` where the target is
    to get the caller's own.
    """
    serving: Serving = request.app.state.serving
    return await serving.gateway.pass_on(request, caller)


def _described() -> dict[str, Any]:
    found = documented(
        shown.Operation, problems=(404, 405, 408, 409, 424, 500, 502, 504),
        also={202: shown.Operation}, headers=HEADERS,
    )  # fmt: skip
    # Of any status the body may be the target's own, so none is described.
    words = {200: "the target's own answer, or the operation", 202: "the operation"}
    found["responses"] = {
        status: {"description": words.get(status, "a problem, or the target's own answer")}
        for status in found["responses"]
    }
    found["responses"]["default"] = {"description": "the target's own answer"}
    return found


for method in METHODS:
    router.add_api_route(
        "/{target}/{path:path}", gateway, methods=[method],
        operation_id=f"gateway_{method.lower()}", **_described(),
    )  # fmt: skip
router.add_api_route(
    "/{target}/{path:path}", gateway, methods=list(MORE), include_in_schema=False, **_described()
)

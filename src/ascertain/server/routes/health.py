"""Whether the server lives, and whether it can do its work."""

from __future__ import annotations

from typing import Annotated

import msgspec
from fastapi import APIRouter, Request
from starlette.responses import Response

from ascertain.runtime.loop import hop
from ascertain.server.messages import answer, documented
from ascertain.server.problems import ProblemError
from ascertain.server.serving import Serving

router = APIRouter(tags=["health"])


class Health(msgspec.Struct, frozen=True):
    """Whether all is well."""

    ok: Annotated[bool, msgspec.Meta(description="always true: else it is a problem")]


@router.get("/healthz", **documented(Health, anybody=True))
async def healthz() -> Response:
    """Tell that the process answers."""
    return answer(Health(ok=True))


@router.get("/readyz", **documented(Health, anybody=True))
async def readyz(request: Request) -> Response:
    """Tell that the store answers, and that this server is not being stopped."""
    serving: Serving = request.app.state.serving
    if serving.stopping:
        raise ProblemError("stopping", "this server is being stopped: ask another one")
    await hop(serving.store.meta, "schema")
    return answer(Health(ok=True))

"""Metrics for Prometheus."""

from __future__ import annotations

from ipaddress import ip_address

from fastapi import APIRouter, Request
from starlette.responses import Response

from ascertain.runtime.loop import hop
from ascertain.server.access import Right, known
from ascertain.server.messages import documented
from ascertain.server.meters import MEDIA
from ascertain.server.problems import ProblemError
from ascertain.server.serving import Serving

router = APIRouter(tags=["metrics"])
TEXT = documented(anybody=True)
TEXT["responses"][200] = {"description": "Prometheus' text format", "content": {MEDIA: {}}}


@router.get("/metrics", **TEXT)
async def metrics(request: Request) -> Response:
    """Return the metrics of this process and of the store, of every namespace that is served:
    for a token with metrics:read, or with `metrics_open` for whoever asks on this machine."""
    serving: Serving = request.app.state.serving
    if not (serving.table.metrics_open and _loopback(request)):
        caller = await known(request)
        if Right.METRICS not in caller.rights:
            raise ProblemError("forbidden", f"{caller.actor} needs the right metrics")
    return Response(await hop(serving.meters.text), media_type=MEDIA)


def _loopback(request: Request) -> bool:
    """Tell whether the request comes from this machine, and through no proxy of it."""
    if request.client is None or "x-forwarded-for" in request.headers:
        return False
    try:
        return ip_address(request.client.host).is_loopback
    except ValueError:
        return False

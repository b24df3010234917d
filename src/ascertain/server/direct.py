"""Routes that many requests per second take: described like the others, called without detours."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any

from fastapi import Request
from fastapi.routing import APIRoute
from starlette.responses import Response


class DirectRoute(APIRoute):
    """Calls `handler(request=…, caller=…)` itself.

    FastAPI solves the parameters of a request anew each time, which costs a submit a quarter of
    its time (0.165, measured by bench/server.py). For handlers that take a request and a caller,
    and read everything else from the body.
    """

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Return what answers a request of this route."""
        of = self.dependant
        [known] = of.dependencies
        assert known.name == "caller", self.path
        assert of.request_param_name == "request", self.path
        assert not [*of.path_params, *of.query_params, *of.header_params, *of.body_params]
        caller_of: Any = known.call
        endpoint: Any = of.call

        async def handle(request: Request) -> Response:
            response: Response = await endpoint(request=request, caller=await caller_of(request))
            return response

        return handle

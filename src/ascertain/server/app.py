"""The application: every route, what goes wrong as problems, and the OpenAPI document."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import msgspec
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.openapi.utils import get_openapi
from starlette.exceptions import HTTPException
from starlette.responses import Response

import ascertain
from ascertain.core.errors import AscertainError

from .messages import SHAPES
from .problems import ProblemError, problem_answer, problem_of
from .routes import (
    approvals,
    audit,
    bulk,
    contracts,
    costs,
    events,
    figures,
    gateway,
    guest,
    health,
    hooks,
    metrics,
    operations,
    people,
    pins,
    reviews,
    runs,
    session,
    stream,
    targets,
    tokens,
    work,
)
from .serving import Serving
from .submitting import why

ROUTES = (  # looked through in this order: what is asked for most comes first
    operations,
    runs,
    pins,
    contracts,
    health,
    gateway,
    hooks,
    events,
    session,
    people,
    tokens,
    guest,
    audit,
    work,
    targets,
    approvals,
    reviews,
    bulk,
    stream,
    costs,
    figures,
    metrics,
)
CODES = {404: "unknown", 405: "method_not_allowed", 413: "too_large", 401: "unauthenticated"}


def build(serving: Serving) -> FastAPI:
    """Return the application of a server."""

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        async with serving:
            yield

    app = FastAPI(
        title="Ascertain",
        version=ascertain.__version__,
        summary="Know what happened before you try again.",
        lifespan=lifespan,
        docs_url=None,
        redoc_url=None,
        openapi_url="/v1/openapi.json",
        # Its own spans would tell paths and queries, links' secrets in them; ours tell the route.
        telemetry={"tracing": False, "metrics": False, "logs": False},
    )
    app.state.serving = serving
    for routes in ROUTES:
        app.include_router(routes.router)
    app.add_exception_handler(AscertainError, _told)
    app.add_exception_handler(ProblemError, _told)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(HTTPException, _http)
    app.add_exception_handler(Exception, _broken)
    app.openapi = lambda: describe(app)  # type: ignore[method-assign]
    return app


async def _told(request: Request, error: Exception) -> Response:
    assert isinstance(error, AscertainError | ProblemError)
    serving: Serving = request.app.state.serving
    operation = error.facts.get("operation") if isinstance(error, AscertainError) else None
    link = serving.link(operation) if operation else None
    headers = error.headers if isinstance(error, ProblemError) else None
    return problem_answer(problem_of(error, link, await why(serving, error)), headers)


async def _invalid(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    wrong = [".".join(str(part) for part in one["loc"][1:]) for one in error.errors()]
    detail = f"the request is not as described: {', '.join(wrong)}"
    return await _told(request, ProblemError("body_invalid", detail, fields=wrong))


async def _broken(request: Request, error: Exception) -> Response:
    """Answer a mistake of ours, which is logged further out; its own words may hold inputs."""
    return await _told(request, ProblemError("broken", f"the server met {type(error).__name__}"))


async def _http(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    code = CODES.get(error.status_code, "usage")
    told = ProblemError(code, f"{request.method} {request.url.path}: {error.detail}")
    told.headers = dict(error.headers or {})
    return await _told(request, told)


def describe(app: FastAPI) -> dict[str, Any]:
    """Return the OpenAPI document; made once."""
    if app.openapi_schema is None:
        made = get_openapi(
            title=app.title, version=app.version, summary=app.summary, routes=app.routes
        )
        template = "#/components/schemas/{name}"
        shapes = sorted(SHAPES, key=lambda shape: shape.__name__)
        _, components = msgspec.json.schema_components(shapes, ref_template=template)
        assert set(components) >= {shape.__name__ for shape in shapes}, "two have one name"
        made.setdefault("components", {})["schemas"] = components
        made["components"]["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
        made["security"] = [{"token": []}]
        app.openapi_schema = _ours(made)
    return app.openapi_schema


def _ours(value: Any) -> Any:
    """Refer to our problems where FastAPI refers to its own."""
    if isinstance(value, dict):
        if value.get("$ref") == "#/components/schemas/HTTPValidationError":
            return {"$ref": "#/components/schemas/Problem"}
        return {name: _ours(one) for name, one in value.items()}
    return [_ours(one) for one in value] if isinstance(value, list) else value

"""Adds the pages to a server's application, and says errors as pages where a person reads them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from urllib.parse import quote

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import RedirectResponse, Response

from ascertain.core.errors import AscertainError
from ascertain.server.problems import ProblemError

from . import pages
from .person import SignInNeededError
from .views import (
    approvals,
    audit,
    bulk,
    costs,
    dashboard,
    entry,
    events,
    operation,
    operations,
    people,
    reviews,
    runs,
    start,
    targets,
)

ROUTES = (
    pages, entry, reviews, approvals, operations, operation, runs, events, dashboard, targets,
    audit, people, bulk, start, costs,
)  # fmt: skip
MACHINES = ("/v1/", "/gateway/", "/hooks/", "/metrics", "/healthz", "/readyz")  # read no pages
Handler = Callable[[Request, Any], Any]


def attach(app: FastAPI) -> None:
    """Add the pages to an application."""
    for routes in ROUTES:
        app.include_router(routes.router)
    app.add_exception_handler(SignInNeededError, _sign_in)
    for error in (AscertainError, ProblemError, RequestValidationError, HTTPException):
        told: Handler = app.exception_handlers[error]
        app.add_exception_handler(error, _for_people(told))


def _for_people(told: Handler) -> Handler:
    """Say on a page what would be a problem in JSON, outside the machines' addresses."""

    async def handler(request: Request, error: Exception) -> Response:
        answer: Response = await told(request, error)
        if request.url.path.startswith(MACHINES):
            return answer
        return pages.problem_page(request, answer)

    return handler


async def _sign_in(request: Request, _: Exception) -> Response:
    """Ask who it is, and come back to this page then."""
    to = request.url.path + (f"?{request.url.query}" if request.url.query else "")
    where = "/sign-in" if request.method != "GET" else f"/sign-in?to={quote(to, safe='')}"
    return RedirectResponse(where, status_code=303)

"""Who calls, in which namespace, and what he may do there. No machine may decide or approve."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from enum import StrEnum
from typing import Annotated, Any

import msgspec
from fastapi import Depends, Request
from fastapi.security.utils import get_authorization_scheme_param

from ascertain.core.books import ApiToken
from ascertain.runtime.loop import hop

from .problems import ProblemError

REMEMBERED = 2.0  # seconds that a token found good is not looked up again
MOST = 10_000  # tokens remembered at once


class Right(StrEnum):
    """One thing that may be done."""

    READ = "read"  # see operations, reviews, events, contracts, figures
    WRITE = "write"  # submit operations, open runs, the gateway
    EVENT = "event"  # hand in events
    WORK = "work"  # claim, extend and report as own code
    COST = "cost"  # enter costs, accept or reject assets
    OPERATE = "operate"  # pause, resume, confirm, bulk look-ups
    DECIDE = "decide"  # decide reviews
    APPROVE = "approve"  # approve and reject
    OVERRIDE = "override"  # act without proof, as a recorded risk
    ADMIN = "admin"  # people, tokens, exports
    METRICS = "metrics"  # /metrics


# Of API tokens. None leads to DECIDE, APPROVE, OVERRIDE or ADMIN: law 11, and SEMANTICS, People.
SCOPES: dict[str, frozenset[Right]] = {
    "ops:read": frozenset({Right.READ}),
    "ops:write": frozenset({Right.READ, Right.WRITE}),
    "events:write": frozenset({Right.EVENT}),
    "work": frozenset({Right.READ, Right.WORK}),
    "costs:write": frozenset({Right.COST}),
    "operate": frozenset({Right.READ, Right.OPERATE}),
    "metrics:read": frozenset({Right.METRICS}),
}


class Caller(msgspec.Struct, frozen=True, kw_only=True):
    """Who makes a request, and what he may do in the namespace that it is about."""

    actor: str  # for evidence and the audit: a person's login, or token:ID NAME
    via: str  # session:…, token:ID, link:…
    namespace: str
    rights: frozenset[Right]
    role: str = ""
    account: str = ""  # id, of a person only
    address: str = ""
    only: str = ""  # the one operation that a guest's link is about

    @property
    def person(self) -> bool:
        """Whether a person calls: nobody else decides or approves."""
        return bool(self.account) or bool(self.only)


Door = Callable[[Request], Awaitable[Caller | None]]


def needs(*rights: Right) -> Any:
    """Return the dependency that lets in who has one of these rights, as `caller: Caller`."""

    async def caller(request: Request) -> Caller:
        found = await known(request)
        if not found.rights & set(rights):
            raise ProblemError(
                "forbidden",
                f"{found.actor} may not do this in namespace {found.namespace!r}: it needs the"
                f" right {' or '.join(rights)}",
            )
        return found

    return Depends(caller)


Reader = Annotated[Caller, needs(Right.READ)]
Writer = Annotated[Caller, needs(Right.WRITE)]


async def known(request: Request) -> Caller:
    """Return who calls; ends the request with 401 where no door knows him."""
    for door in request.app.state.serving.doors:
        found: Caller | None = await door(request)
        if found is not None:
            return found
    raise ProblemError(
        "unauthenticated",
        "send a token: Authorization: Bearer asc_… (made with `ascertain token new`)",
        headers={"WWW-Authenticate": "Bearer"},
    )


class TokenDoor:
    """Lets in who sends an API token."""

    def __init__(self, accounts: Any) -> None:
        """Look tokens up among these accounts."""
        self._accounts = accounts
        self._good: dict[str, tuple[float, ApiToken]] = {}

    async def __call__(self, request: Request) -> Caller | None:
        """Return the caller of a bearer token; a wrong one ends the request."""
        scheme, secret = get_authorization_scheme_param(request.headers.get("authorization"))
        if scheme.lower() != "bearer" or not secret:
            return None
        token = await self._token(secret)
        if token is None:
            raise ProblemError(
                "unauthenticated",
                "this token is not known, revoked or over: make a new one with `ascertain token"
                " new`",
                headers={"WWW-Authenticate": 'Bearer error="invalid_token"'},
            )
        rights = frozenset[Right]().union(*(SCOPES.get(s, ()) for s in token.scopes.split()))
        return Caller(
            actor=f"token:{token.id} {token.name}",
            via=f"token:{token.id}",
            namespace=token.namespace,
            rights=rights,
            address=request.client.host if request.client else "",
        )

    async def _token(self, secret: str) -> ApiToken | None:
        now = time.monotonic()
        found = self._good.get(secret)
        if found is not None and now - found[0] < REMEMBERED:
            return found[1]
        token: ApiToken | None = await hop(self._accounts.token_of, secret)
        if len(self._good) >= MOST:
            self._good.clear()
        if token is None:
            self._good.pop(secret, None)
        else:
            self._good[secret] = (now, token)
        return token

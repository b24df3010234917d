"""Who calls, in which namespace, and what he may do there. No machine may decide or approve."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from typing import Annotated, Any

import msgspec
from fastapi import Depends, Request
from fastapi.security.utils import get_authorization_scheme_param

from ascertain.core.books import ApiToken, Member
from ascertain.core.rights import (
    EVERYWHERE,
    PEOPLE_ONLY,
    SCOPES,
    Right,
    rights_in,
    rights_of_scopes,
)
from ascertain.runtime.audit import Who
from ascertain.runtime.hashing import hash_of
from ascertain.runtime.loop import hop
from ascertain.runtime.telemetry import bind

from .problems import ProblemError

__all__ = [
    "PEOPLE_ONLY",
    "SCOPES",
    "Caller",
    "Door",
    "Reader",
    "Right",
    "TokenDoor",
    "Writer",
    "needs",
]
REMEMBERED = 2.0  # seconds that a token found good is not looked up again
OPERATIONS = "/v1/operations/"
GATEWAY = "/gateway/"  # what is asked there is for the target to understand
MOST = 10_000  # tokens remembered at once


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
    members: tuple[Member, ...] = ()  # all memberships, of a person only
    session: str = ""  # hash of the session, of a person only

    @property
    def person(self) -> bool:
        """Whether a person calls: nobody else decides or approves."""
        return bool(self.account) or bool(self.only)

    @property
    def who(self) -> Who:
        """Who acts, as the audit keeps it."""
        return Who(actor=self.actor, role=self.role, via=self.via, address=self.address)

    @property
    def everywhere(self) -> frozenset[Right]:
        """What a person may do in every namespace."""
        return rights_in(self.members, EVERYWHERE)


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

    caller.rights = frozenset(rights)  # type: ignore[attr-defined]  # for tests that list routes
    return Depends(caller)


Reader = Annotated[Caller, needs(Right.READ)]
Writer = Annotated[Caller, needs(Right.WRITE)]
Worker = Annotated[Caller, needs(Right.WORK)]
Operator = Annotated[Caller, needs(Right.OPERATE)]
Approver = Annotated[Caller, needs(Right.APPROVE)]
Decider = Annotated[Caller, needs(Right.DECIDE)]
Admin = Annotated[Caller, needs(Right.ADMIN)]
Guest = Annotated[Caller, needs(Right.GUEST)]


async def known(request: Request) -> Caller:
    """Return who calls; ends the request with 401 where no door knows him, and where its address
    holds a NUL: PostgreSQL cannot be asked for one, so nothing is called so."""
    path, query = request.scope["path"], request.scope["query_string"]
    if "\x00" in path and not path.startswith(OPERATIONS):  # they have an error of their own
        raise ProblemError("unknown", "the path holds a NUL character, which no name has")
    if b"%00" in query and not path.startswith(GATEWAY):
        said = "the query holds a NUL character, which nothing here has"
        raise ProblemError("body_invalid", said)
    for door in request.app.state.serving.doors:
        found: Caller | None = await door(request)
        if found is not None:
            bind(namespace=found.namespace, actor=found.actor)  # told with all that follows
            return found
    raise ProblemError(
        "unauthenticated",
        "send a token: Authorization: Bearer asc_… (made with `ascertain token new`)",
        headers={"WWW-Authenticate": "Bearer"},
    )


known.rights = frozenset()  # type: ignore[attr-defined]  # as of `needs`: none is asked for
Anybody = Annotated[Caller, Depends(known)]


async def still(request: Request, caller: Caller, right: Right) -> bool:
    """Tell whether who has begun a long answer may still have it: he is asked for again."""
    try:
        now = await known(request)
    except ProblemError:
        return False
    same = (now.actor, now.namespace) == (caller.actor, caller.namespace)
    return same and right in now.rights


class TokenDoor:
    """Lets in who sends an API token."""

    def __init__(self, accounts: Any) -> None:
        """Look tokens up among these accounts."""
        self._accounts = accounts
        self._good: dict[str, tuple[float, ApiToken]] = {}

    async def __call__(self, request: Request) -> Caller | None:
        """Return the caller of a bearer token; a wrong one ends the request."""
        scheme, secret = get_authorization_scheme_param(request.headers.get("authorization"))
        # Where Authorization is meant for a target of the gateway.
        if own := request.headers.get("ascertain-token", "").strip():
            scheme, secret = "bearer", own
        if scheme.lower() != "bearer" or not secret:
            return None
        token = await self._token(hash_of(secret), secret)
        if token is None:
            raise ProblemError(
                "unauthenticated",
                "this token is not known, revoked, over, or held since the store was restored:"
                " see `ascertain token list`",
                headers={"WWW-Authenticate": 'Bearer error="invalid_token"'},
            )
        return Caller(
            actor=f"token:{token.id} {token.name}",
            via=f"token:{token.id}",
            namespace=token.namespace,
            rights=rights_of_scopes(token.scopes),
            address=address_of(request),
        )

    def forget(self) -> None:
        """Look every token up again, because one was revoked here."""
        self._good.clear()

    async def _token(self, kept: str, secret: str) -> ApiToken | None:
        now = time.monotonic()
        found = self._good.get(kept)
        if found is not None and now - found[0] < REMEMBERED:
            return found[1]
        token: ApiToken | None = await hop(self._accounts.token_of, secret)
        if len(self._good) >= MOST:
            self._good.clear()
        if token is None:
            self._good.pop(kept, None)
        else:
            self._good[kept] = (now, token)
            self._accounts.tokens.used(token)
        return token


def address_of(request: Request) -> str:
    """Return from where a request comes, as the connection says; no header is believed."""
    return request.client.host if request.client else ""

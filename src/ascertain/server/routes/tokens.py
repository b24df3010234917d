"""API tokens of machines. Their secrets are shown once; no scope approves or decides."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

import msgspec
from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from ascertain.core.books import ApiToken
from ascertain.core.model import SECOND
from ascertain.runtime.loop import hop
from ascertain.server import shown
from ascertain.server.access import Admin
from ascertain.server.messages import answer, documented, read_body
from ascertain.server.problems import ProblemError
from ascertain.server.serving import Serving

router = APIRouter(prefix="/v1/tokens", tags=["tokens"])
SMALL = 16 * 1024  # bytes of a body here
DAY = 24 * 3600 * SECOND  # µs


class TokenShown(msgspec.Struct, frozen=True, kw_only=True):
    """A token, without its secret. `used_at` is kept once a minute; `held`: since a restore,
    until somebody confirms it."""

    id: str
    name: str
    scopes: list[str]
    made_by: str
    made_at: datetime | None
    ends_at: datetime | None
    used_at: datetime | None
    revoked_at: datetime | None
    held: bool


class TokensShown(msgspec.Struct, frozen=True):
    """A page of tokens."""

    items: list[TokenShown]
    next: str | None


class NewToken(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A token to be made for the namespace of the request; without `days` it does not end."""

    name: str
    scopes: list[str]
    days: Annotated[int, msgspec.Meta(ge=1, le=3660)] | None = None


class TokenMade(msgspec.Struct, frozen=True):
    """A token and its secret, which is shown this once."""

    token: TokenShown
    secret: str


@router.get("", **documented(TokensShown))
async def list_tokens(
    request: Request,
    caller: Admin,
    after: Annotated[str, Query(max_length=64)] = "",
    limit: Annotated[int, Query(ge=1, le=1000)] = 100,
) -> Response:
    """List the tokens of this namespace, those that are over included."""
    serving: Serving = request.app.state.serving
    tokens = serving.accounts.tokens
    found = await hop(tokens.list, caller.namespace, after, limit + 1)
    more = found[limit - 1].id if len(found) > limit else None
    return answer(TokensShown([token_shown(t) for t in found[:limit]], more))


@router.post("", **documented(TokenMade, status=201, body=NewToken))
async def new_token(request: Request, caller: Admin) -> Response:
    """Make a token for a machine; it acts in this namespace only."""
    serving: Serving = request.app.state.serving
    asked = await read_body(request, NewToken, SMALL)
    ends_at = None if asked.days is None else serving.store.now() + asked.days * DAY
    made = await hop(
        serving.accounts.tokens.new, caller.namespace, asked.name, " ".join(asked.scopes),
        who=caller.who, ends_at=ends_at, granter=caller.members,
    )  # fmt: skip
    return answer(TokenMade(token_shown(made.token), made.secret), 201)


@router.delete("/{token}", **documented(status=204, problems=(404,)))
async def revoke_token(token: str, request: Request, caller: Admin) -> Response:
    """Revoke a token for good: here at once, at other servers within two seconds."""
    serving: Serving = request.app.state.serving
    there = await hop(serving.accounts.tokens.revoke, caller.namespace, token, who=caller.who)
    serving.tokens.forget()
    if not there:
        raise _unknown()
    return Response(status_code=204)


@router.post("/{token}/confirm", **documented(TokenShown, problems=(404,)))
async def confirm_token(token: str, request: Request, caller: Admin) -> Response:
    """Let a token be used again that is held since a restore."""
    serving: Serving = request.app.state.serving
    tokens = serving.accounts.tokens
    await hop(tokens.confirm, caller.namespace, token, who=caller.who)
    found = await hop(tokens.get, caller.namespace, token)
    if found is None:
        raise _unknown()
    return answer(token_shown(found))


def token_shown(token: ApiToken) -> TokenShown:
    """Return a token as the API shows it."""
    return TokenShown(
        id=token.id, name=token.name, scopes=token.scopes.split(), made_by=token.made_by,
        made_at=shown.time(token.made_at), ends_at=shown.time(token.ends_at),
        used_at=shown.time(token.used_at), revoked_at=shown.time(token.revoked_at),
        held=token.held_at is not None,
    )  # fmt: skip


def _unknown() -> ProblemError:
    return ProblemError("unknown", "there is no such token in this namespace")

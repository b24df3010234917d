"""Who may ask: API tokens. Only hashes of secrets are kept; each is shown once.

Every verb is durable when it returns.
"""

from __future__ import annotations

import hashlib
import secrets

import msgspec

from ascertain.core.books import ApiToken
from ascertain.core.keys import new_id
from ascertain.store.base import Posting, Store

from .clock import Clock

PREFIX = "asc"  # of a token: a scanner for leaked secrets knows it by this
SECRET_BYTES = 32


class Made(msgspec.Struct, frozen=True):
    """A new token, and its secret, which is shown this once."""

    token: ApiToken
    secret: str


def hash_of(secret: str) -> str:
    """Return what is kept of a secret: it is random and long, so SHA-256 suffices."""
    return hashlib.sha256(secret.encode()).hexdigest()


class Accounts:
    """The people and machines that may use a store."""

    def __init__(self, store: Store, clock: Clock | None = None) -> None:
        """Work on a store."""
        self.store, self.clock = store, clock or Clock()

    def new_token(
        self, namespace: str, name: str, scopes: str, *, by: str, ends_at: int | None = None
    ) -> Made:
        """Make an API token for a namespace; `ends_at` in µs since 1970."""
        now = self.store.now()
        ident = new_id(now, self.clock.token())[-10:]
        secret = f"{PREFIX}_{ident}_{secrets.token_urlsafe(SECRET_BYTES)}"
        token = ApiToken(
            id=ident,
            namespace=namespace,
            name=name,
            hash=hash_of(secret),
            scopes=scopes,
            made_by=by,
            made_at=now,
            ends_at=ends_at,
        )
        self.store.post([Posting((("api_token_add", token),))])
        return Made(token, secret)

    def token_of(self, secret: str) -> ApiToken | None:
        """Return the token of a secret if it may be used now."""
        found = self.store.ask(ApiToken, "api_token_of", hash=hash_of(secret))
        now = self.store.now()
        for token in found:
            if token.revoked_at is None and (token.ends_at is None or token.ends_at > now):
                return token
        return None

"""API tokens of machines: `asc_id_secret`, of which the hash is kept. Verbs are durable."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence

import msgspec

from ascertain.core.books import ApiToken, Member
from ascertain.core.errors import NotAllowed, StoreError, UsageError
from ascertain.core.keys import new_id
from ascertain.core.model import SECOND
from ascertain.core.rights import SCOPES, may_scope
from ascertain.store.base import Posting, Store

from .audit import AuditLog, Who
from .clock import Clock
from .hashing import hash_of, new_secret

PREFIX = "asc"  # of a token: a scanner for leaked secrets knows it by this
ID = 10  # characters
NAME_LENGTH = 100  # characters
USED_EVERY = 60 * SECOND  # how coarsely it is kept when a token was last used


class Made(msgspec.Struct, frozen=True):
    """A new token, and its secret, which is shown this once."""

    token: ApiToken
    secret: str


class Tokens:
    """The machines that may use a store."""

    def __init__(self, store: Store, log: AuditLog, clock: Clock) -> None:
        """Work on a store."""
        self._store, self._log, self._clock = store, log, clock

    def new(
        self, namespace: str, name: str, scopes: str, *, who: Who, ends_at: int | None = None,
        granter: Sequence[Member] | None = None,
    ) -> Made:  # fmt: skip
        """Make a token for a namespace; `ends_at` in µs since 1970, `granter` as for people.

        Raises UsageError for a scope that there is not, no name, or an end that is over, and
        NotAllowed for scopes that the granter may not give.
        """
        wanted = list(dict.fromkeys(scopes.split()))
        unknown = sorted(set(wanted) - set(SCOPES))
        if unknown or not wanted:
            raise UsageError(
                f"a token needs scopes, of {', '.join(SCOPES)}; not {', '.join(unknown) or 'none'}"
            )
        if granter is not None and not may_scope(granter, namespace, scopes):
            raise NotAllowed(
                f"in namespace {namespace!r} you may not make a token with {scopes}: what shows all"
                " namespaces takes the administration of all of them"
            )
        if not name.strip() or len(name) > NAME_LENGTH or not name.isprintable():
            raise UsageError(f"a token needs a name of 1 to {NAME_LENGTH} printable characters")
        now = self._store.now()
        if ends_at is not None and ends_at <= now:
            raise UsageError("the end of a token lies in the future")
        ident = new_id(now, self._clock.id_bits())[-ID:]
        secret = f"{PREFIX}_{ident}_{new_secret()}"
        token = ApiToken(
            id=ident, namespace=namespace, name=name.strip(), hash=hash_of(secret),
            scopes=" ".join(wanted), made_by=who.actor, made_at=now, ends_at=ends_at,
        )  # fmt: skip
        line = self._log.line(
            who, namespace, "token.new", subject=f"token:{ident}", after=f"{name}: {token.scopes}"
        )
        self._store.post([Posting((("api_token_add", token), line))])
        return Made(token, secret)

    def of(self, secret: str) -> ApiToken | None:
        """Return the token of a secret if it may be used now."""
        now = self._store.now()
        for token in self._store.ask(ApiToken, "api_token_of", hash=hash_of(secret)):
            if usable(token, now):
                return token
        return None

    def used(self, token: ApiToken) -> None:
        """Keep that a token was used, at most once a minute and without waiting: this may be
        lost, a request never waits for it."""
        now = self._store.now()
        if token.used_at is not None and now - token.used_at < USED_EVERY:
            return
        values = {"id": token.id, "used_at": now, "before": now - USED_EVERY}
        with contextlib.suppress(StoreError):
            self._store.put(Posting((("api_token_used", values),), lazy=True))

    def list(self, namespace: str, after: str = "", limit: int = 100) -> list[ApiToken]:
        """Return the tokens of a namespace, those that are over included."""
        return self._store.ask(
            ApiToken, "api_tokens", namespace=namespace, after=after, limit=limit
        )

    def get(self, namespace: str, ident: str) -> ApiToken | None:
        """Return one token of a namespace."""
        found = self._store.ask(ApiToken, "api_token_by_id", id=ident, namespace=namespace)
        return found[0] if found else None

    def revoke(self, namespace: str, ident: str, *, who: Who) -> bool:
        """End a token for good; returns whether there is such a token in the namespace."""
        return self._change(namespace, ident, who, "revoke", revoked_at=self._store.now())

    def confirm(self, namespace: str, ident: str, *, who: Who) -> bool:
        """Let a token be used again that is held since a restore, because somebody knows that it
        was not revoked in what was lost; returns whether there is such a token."""
        return self._change(namespace, ident, who, "confirm")

    def _change(self, namespace: str, ident: str, who: Who, verb: str, **more: int) -> bool:
        token = self.get(namespace, ident)
        if token is None:
            return False
        line = self._log.line(
            who, namespace, f"token.{verb}", subject=f"token:{ident}", before=token.name
        )
        values = {"id": ident, "namespace": namespace, **more}
        self._store.post([Posting(((f"api_token_{verb}", values), line), must=(0,))])
        return True


def usable(token: ApiToken, now: int) -> bool:
    """Tell whether a token may be used at a time in µs."""
    over = token.ends_at is not None and token.ends_at <= now
    return token.revoked_at is None and token.held_at is None and not over

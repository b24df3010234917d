"""Who may ask: people with their sessions and links, machines with their tokens.

Only hashes of secrets are kept; each is shown once. Every verb is durable when it returns.
"""

from __future__ import annotations

from ascertain.core.books import ApiToken
from ascertain.core.rights import EVERYWHERE
from ascertain.store.base import Posting, Store

from .audit import AuditLog, Who
from .clock import Clock
from .hashing import Passwords, hash_of
from .links import Links
from .people import People
from .sessions import Sessions
from .tokens import PREFIX, Made, Tokens

__all__ = ["PREFIX", "Accounts", "Made", "hash_of", "hold_everybody"]


class Accounts:
    """The people and machines that may use a store."""

    def __init__(
        self, store: Store, clock: Clock | None = None, passwords: Passwords | None = None
    ) -> None:
        """Work on a store."""
        self.store, self.clock = store, clock or Clock()
        self.log = AuditLog(store, self.clock)
        self.people = People(store, self.log, self.clock, passwords or Passwords())
        self.tokens = Tokens(store, self.log, self.clock)
        self.sessions = Sessions(store, self.log)
        self.links = Links(store, self.log, self.clock, self.people, self.sessions)

    def any_account(self) -> bool:
        """Tell whether there is anybody who could sign in."""
        return self.people.any()

    def new_token(
        self, namespace: str, name: str, scopes: str, *, by: str, ends_at: int | None = None
    ) -> Made:
        """Make an API token for a namespace; `ends_at` in µs since 1970."""
        return self.tokens.new(namespace, name, scopes, who=Who(actor=by), ends_at=ends_at)

    def token_of(self, secret: str) -> ApiToken | None:
        """Return the token of a secret if it may be used now."""
        return self.tokens.of(secret)


def hold_everybody(store: Store, note: str = "") -> None:
    """End all sessions and unused links, and hold all people and tokens until somebody confirms
    them: who was disabled, revoked or signed out in what was lost is not known (law 21).

    Durable when it returns; done again, it holds again what was confirmed meanwhile.
    """
    now = store.now()
    line = AuditLog(store).line(
        Who(actor="store restored", via="cli"), EVERYWHERE, "people.held", reason=note
    )
    store.post([
        Posting((
            ("restored_sessions", {"at": now}),
            ("restored_links", {"at": now}),
            ("restored_tokens", {"held_at": now}),
            ("restored_accounts", {"held_at": now}),
            line,
        )),
    ])  # fmt: skip

"""What a self-test has verified of an action's contract: when, in which scope, which claims.

Kept in the store's meta table, by namespace and action: it speaks for the target that this
ledger's operations go to, every process and machine on the store sees it, it is as durable as they
are, and neither the shipped contracts nor a user's file is written. It is void when what it was
about has changed: the contract's revision, the scope, or a time that was assumed.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import msgspec

from ascertain.core.contract import Terms
from ascertain.core.model import SECOND


class Verified(msgspec.Struct, frozen=True, kw_only=True):
    """A stamp: what was tried and held; `untested` was not tried, so it is not verified."""

    at: int  # µs since 1970 UTC
    contract: str
    revision: str
    scope: str
    lag: int | None
    keeps: int | None
    claims: tuple[str, ...]
    untested: tuple[str, ...] = ()

    @property
    def on(self) -> str:
        """The day, as `2026-11-29` (UTC)."""
        return datetime.fromtimestamp(self.at / SECOND, tz=UTC).date().isoformat()


def stamp(
    terms: Terms, at: int, claims: tuple[str, ...], untested: tuple[str, ...] = ()
) -> Verified:
    """Return a stamp on an action as it is declared now."""
    return Verified(
        at=at,
        contract=terms.contract.id,
        revision=terms.contract.revision,
        scope=terms.scope,
        lag=terms.lag,
        keeps=terms.keeps,
        claims=claims,
        untested=untested,
    )


def counts(found: Verified | None, terms: Terms) -> bool:
    """Tell whether a stamp is about an action as it is declared now, or void."""
    return found is not None and found == stamp(terms, found.at, found.claims, found.untested)


def write(store: Any, namespace: str, action: str, found: Verified | None) -> None:
    """Keep a stamp in place of the one before, or none; durable when it returns."""
    store.meta(_name(namespace, action), msgspec.json.encode(found).decode())


def read(store: Any, namespace: str, action: str) -> Verified | None:
    """Return the stamp of an action, void or not; None where there is none."""
    kept = store.meta(_name(namespace, action))
    return None if kept is None else msgspec.json.decode(kept, type=Verified | None)


def failed(store: Any, namespace: str, action: str) -> bool:
    """Tell whether the last self-test of an action found that its contract does not hold."""
    kept: str | None = store.meta(_name(namespace, action))
    return kept == "null"


def _name(namespace: str, action: str) -> str:
    return f"verified:{namespace}/{action}"

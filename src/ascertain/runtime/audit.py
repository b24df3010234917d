"""Who did what, when, why: the audit, written with what it is about where that is possible."""

from __future__ import annotations

import msgspec

from ascertain.core.books import Audit
from ascertain.core.keys import new_id
from ascertain.store.base import PAGE, Posting, Store

from .clock import Clock

LAST = "~"  # sorts after every id
FIRST_MOMENT, LAST_MOMENT = 0, 2**62  # µs


class Who(msgspec.Struct, frozen=True, kw_only=True):
    """Who acts, as the audit keeps it: the actor, in which role, by which session or token."""

    actor: str
    role: str = ""
    via: str = ""
    address: str = ""


class Wanted(msgspec.Struct, frozen=True, kw_only=True):
    """Which lines of the audit are wanted; what is None does not restrict. Times in µs."""

    actor: str | None = None
    did: str | None = None
    subject: str | None = None
    since: int = FIRST_MOMENT
    until: int = LAST_MOMENT


class AuditLog:
    """Appends to the audit of a store, and reads it."""

    def __init__(self, store: Store, clock: Clock | None = None) -> None:
        """Work on a store."""
        self.store, self.clock = store, clock or Clock()

    def line(
        self, who: Who, namespace: str, did: str, *, subject: str = "", reason: str = "",
        before: str = "", after: str = "",
    ) -> tuple[str, Audit]:  # fmt: skip
        """Return a line to be written in the same transaction as what it is about."""
        now = self.store.now()
        return "audit_add", Audit(
            id=new_id(now, self.clock.token()), namespace=namespace, at=now, actor=who.actor,
            did=did, role=who.role, via=who.via, subject=subject, reason=reason, before=before,
            after=after, address=who.address,
        )  # fmt: skip

    def note(self, who: Who, namespace: str, did: str, **more: str) -> None:
        """Append a line by itself; durable when it returns."""
        self.store.post([Posting((self.line(who, namespace, did, **more),))])

    def find(
        self, namespace: str | None, wanted: Wanted, *, before: str = "", limit: int = 100
    ) -> list[Audit]:
        """Return lines of one namespace, or with None of all, newest first, older than the one
        of the id `before`; at most 1,000."""
        values = msgspec.structs.asdict(wanted)
        values |= {"before": before or LAST, "limit": min(limit, PAGE + 1)}
        if namespace is None:
            return self.store.ask(Audit, "audit_all", **values)
        return self.store.ask(Audit, "audit_of", namespace=namespace, **values)

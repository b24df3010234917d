"""The verbs of people and of reading: no code of an action runs here.

Shared by both ledgers. Every verb that writes is durable when it returns.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from ascertain.core import claims, words
from ascertain.core.model import Reason, Review, Snapshot
from ascertain.store.base import Filter
from ascertain.targets.classify.redact import redacted

from .alarms import Alarm, alarms
from .deciding import Deciding, ident_of
from .receipt import Receipt

PERSONS = ("approval", "decision")  # evidence of what a person has answered
REASON = 300  # characters of a reason that is told


class Entry(msgspec.Struct, frozen=True, kw_only=True):
    """One entry of an operation's history: when, what was seen, by whom, and what it shows."""

    at: int
    kind: str
    shows: str
    attempt: int | None
    by: str
    says: dict[str, str]
    data: dict[str, Any]


class Asked(msgspec.Struct, frozen=True, kw_only=True):
    """A consent that is asked for, with exactly what would be sent or done."""

    operation: str
    action: str
    key: str
    title: str
    role: str
    digest: str
    state: str
    asked_at: int
    by: str
    request: dict[str, Any] | None
    input: Any


class Desk(Deciding):
    """Reading, approving and deciding over one namespace."""

    # --- reading ---

    def get(self, operation: str | Receipt) -> Receipt:
        """Return the receipt of an operation by id; raises UnknownOperation."""
        return self._receipt(self.engine.snapshot(ident_of(operation)))

    def find(self, *, limit: int = 100, after: str = "", **what: Any) -> list[Receipt]:
        """Find operations by action, key, run, event, ref, states, waiting_on, text.

        A key is found as it is stored, and as people write it: `#1001` is stored as `%231001`.
        Ordered by time; `after` is the id of the last one of the page before.
        """
        asked = Filter(namespace=self.engine.namespace, **what)
        return self.shown(self.engine.find(asked, after, limit))

    def shown(self, found: Iterable[Snapshot]) -> list[Receipt]:
        """Return the receipts of operations that were read."""
        return [self._receipt(snapshot) for snapshot in found]

    def history(self, operation: str | Receipt) -> list[Entry]:
        """Return the evidence of an operation in order, each entry with its sentence."""
        ident = self.engine.snapshot(ident_of(operation)).operation.id
        return [
            Entry(
                at=e.at,
                kind=e.kind,
                shows=e.shows,
                attempt=e.attempt,
                by=e.by,
                says={lang: _sentence(e.kind, e.said, lang) for lang in words.LANGUAGES},
                data=msgspec.json.decode(e.data),
            )
            for e in self.engine.store.evidence(ident)
        ]

    def why(self, operation: str | Receipt) -> str:
        """Return the reason that the last attempt of an operation gave, in short; nothing where
        it gave none, or a person has answered since."""
        ident = self.engine.snapshot(ident_of(operation)).operation.id
        for e in reversed(self.engine.store.evidence(ident)):
            if e.kind in PERSONS:
                break
            if e.attempt is not None:
                reason = msgspec.json.decode(e.data).get("reason", "")
                return " ".join(redacted(str(reason)).split())[:REASON]
        return ""

    def references(self, operation: str | Receipt) -> list[str]:
        """Return every effect reference of an operation; several where it was duplicated."""
        ident = self.engine.snapshot(ident_of(operation)).operation.id  # of this namespace only
        found = self.engine.store.references(ident)
        return [r.reference for r in found]

    def reviews(self, operation: str | Receipt | None = None) -> list[Review]:
        """Return what waits for a person's decision, oldest first."""
        ident = None if operation is None else ident_of(operation)
        return self.engine.store.reviews(self.engine.namespace, ident)

    def counts(self) -> dict[str, int]:
        """Count what is not settled, by state, and the open reviews."""
        return self.engine.store.counts(self.engine.namespace)

    def alarms(self) -> list[Alarm]:
        """Return what is missing, and whom an approval or a review waits for too long."""
        return alarms(self.engine)

    def asked(self, operation: str | Receipt) -> list[Asked]:
        """Return the consents asked for an operation, with exactly what was frozen."""
        snapshot = self.engine.snapshot(ident_of(operation))
        frozen = self.engine.store.requests(snapshot.operation.id)
        known = msgspec.json.decode(frozen[-1].request) if frozen else None
        shown = None if known is None else {"headers": [], "body": "", "key_forms": [], **known}
        stored = snapshot.operation.input
        return [
            Asked(
                operation=a.operation,
                action=snapshot.operation.action,
                key=snapshot.operation.key,
                title=snapshot.operation.title,
                role=a.role,
                digest=a.digest,
                state=a.state,
                asked_at=a.asked_at,
                by=a.by,
                request=shown,
                input=msgspec.json.decode(stored) if stored else None,
            )
            for a in self.engine.store.approvals(snapshot.operation.id)
        ]

    # --- the store's lives ---

    def restored(self, gap_from: int, note: str = "") -> int:
        """Start a new life of the store after a restore; returns how many became unknown.

        Of every namespace. `gap_from` in µs since 1970: writes after it may have been lost
        (law 21). Every open operation may have been acted on since; keys first seen from now on
        for a week too.
        """
        from .accounts import hold_everybody  # people and hashing, for this alone

        engine = self.engine
        hold_everybody(engine.store, note)  # first: whoever was shut out meanwhile stays out
        engine.lives.begin(gap_from, note)
        everything = (Filter(unsettled=True), Filter(states=["not_done"], unsettled=False))
        return sum(self._all_unknown(what, gap_from) for what in everything)

    def _all_unknown(self, what: Filter, gap_from: int) -> int:
        engine, count, after = self.engine, 0, ""
        while page := engine.store.find(what, after, 500):
            for snapshot in page:
                if snapshot.status.reason is not Reason.SUPERSEDED:
                    engine.write(
                        engine.case(snapshot, self.terms_of(snapshot)),
                        lambda c: claims.restored(
                            c, engine.world(), engine.clock.token(), gap_from
                        ),
                    )
                    count += 1
            after = page[-1].operation.id
        return count

    def prune(self, older_than: float, limit: int = 10_000) -> int:
        """Turn settled operations untouched for that many seconds into tombstones (law 19).

        Key, fingerprint, state and references stay. Returns how many.
        """
        before = self.engine.store.now() - int(older_than * 1_000_000)
        return self.engine.store.prune(before, limit)


def _sentence(kind: str, said: str, lang: str) -> str:
    for code in (said, kind):
        if code in words.SENTENCES:
            return words.say(code, lang)
    return said or kind

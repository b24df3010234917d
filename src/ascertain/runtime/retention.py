"""The retention job: details of what is over end after their time (law 19).

Key, fingerprint, state and effect reference stay for good, and so does an event's id: the same key
never acts twice, however old it is. Nothing unresolved is ever touched.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from ascertain.store.base import Posting, Store

from .chores import Chore

AT_ONCE = 500  # rows of one kind in one turn, so that nobody waits long for the write lock
EVERY = 3600.0  # seconds between two looks once nothing more is due


class Keeps(msgspec.Struct, frozen=True, kw_only=True):
    """How long details are kept, in µs; None: for good."""

    settled: int | None
    events: int | None
    audit: int | None


class Retention:
    """Ends what is over in all of a store; `namespaces` are those whose events are looked at."""

    def __init__(self, store: Store, keeps: Keeps, namespaces: Sequence[str]) -> None:
        """Do nothing yet."""
        self.store, self.keeps, self.namespaces = store, keeps, namespaces

    def chore(self) -> Chore:
        """Return it as work that comes again."""
        return Chore(name="retention", every=EVERY, run=self.run)

    def run(self) -> int:
        """Do one bounded share of what is due; durable when it returns. Returns how much."""
        now, done = self.store.now(), 0
        if self.keeps.settled is not None:
            before = now - self.keeps.settled
            done += self.store.prune(before, AT_ONCE)
            done += self._end(before, "retention_watches", "retention_bulks")
        if self.keeps.events is not None:
            before = now - self.keeps.events
            for namespace in self.namespaces:
                # Deliveries first: they are found by their event.
                names = ("retention_deliveries", "retention_events")
                done += self._end(before, *names, namespace=namespace)
        if self.keeps.audit is not None:
            done += self._end(now - self.keeps.audit, "retention_audit")
        return done

    def _end(self, before: int, *names: str, **more: str) -> int:
        values = {"before": before, "limit": AT_ONCE, **more}
        [posted] = self.store.post([Posting(tuple((name, values) for name in names))])
        return sum(posted.rows)

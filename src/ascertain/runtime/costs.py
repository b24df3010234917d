"""Entering what was paid, accepting assets, and what an accepted asset cost.

Every verb that writes is durable when it returns; an asset's decision is written together with its
line of the audit.
"""

from __future__ import annotations

from typing import Literal

from ascertain.core import costs
from ascertain.core.books import Asset, Cost
from ascertain.core.costs import Report, Sum
from ascertain.core.errors import Conflict, UsageError
from ascertain.core.keys import new_id
from ascertain.core.model import Record
from ascertain.store.base import Posting, Store

from .audit import AuditLog, Who
from .clock import Clock

By = Literal["", "action", "asset", "payer", "kind", "cause", "day"]
SUMS = 100_000  # different amounts of one report
PAGE = 1000
TRIES = 10
TABLES = {"": "cost_sums", "action": "cost_sums_by_action", "asset": "cost_sums_by_asset"}
AT = 19  # digits of a time within a cursor


class TooMany(UsageError):
    """The time holds more different amounts than one report sums: take a shorter one."""


class _Count(Record, frozen=True):
    text: str
    count: int


class Costs:
    """The lines of cost and the assets of a store."""

    def __init__(
        self, store: Store, clock: Clock | None = None, *, rate: str = "", currency: str = ""
    ) -> None:
        """`rate`: of an hour of people, in `currency`; empty where none is declared."""
        self.store, self.clock = store, clock or Clock()
        self.rate, self.currency = rate, currency
        self._audit = AuditLog(store, self.clock)

    # --- lines ---

    def enter(self, namespace: str, lines: list[tuple[str, Cost]]) -> list[tuple[Cost, bool]]:
        """Enter lines, each under a key of its own; return each with whether it was there before.

        Raises UsageError for what cannot be meant, and Conflict where a key exists with another
        line; nothing is entered then.
        """
        made = [self._line(namespace, key, line) for key, line in lines]
        if len({line.id for line in made}) < len(made):
            raise Conflict("two lines have one key: give each line a key of its own")
        for _ in range(TRIES):
            known = [self._known(line) for line in made]
            new = [line for line, old in zip(made, known, strict=True) if old is None]
            posting = Posting(
                tuple((costs.ADD, line) for line in new),
                must=tuple(range(len(new))),  # another may enter one of the keys at this moment
            )
            if not new or self.store.post([posting])[0].applied:
                return [(k or m, k is not None) for m, k in zip(made, known, strict=True)]
        raise Conflict("others enter lines under the same keys at this moment: ask again")

    def lines(
        self, namespace: str, since: int, until: int, *, after: str = "", kind: str = "",
        cause: str = "", only: str = "", limit: int = PAGE,
    ) -> list[Cost]:  # fmt: skip
        """Return the lines of a time in order; `after` is the `cursor` of the last one. `only`:
        unpriced or doubtful ones, or those that are in the sum of a currency."""
        at, _, ident = after.partition("-")
        return self.store.ask(
            Cost, "costs", namespace=namespace, since=since, until=until, kind=kind, cause=cause,
            after_at=int(at) if at.isdecimal() and len(at) <= AT else since - 1, after_id=ident,
            limit=limit, only=only, rate=self.rate, rate_currency=self.currency,
        )  # fmt: skip

    def of_operation(self, namespace: str, operation: str) -> list[Cost]:
        """Return what one operation cost, line by line."""
        return self.store.ask(
            Cost, "costs_of", namespace=namespace, operation=operation, limit=PAGE
        )

    def report(self, namespace: str, since: int, until: int, by: By = "") -> list[Report]:
        """Return cost per accepted asset of a time, with its parts: of all of it first, then of
        each group. Assets are counted in the whole, and in groups by asset."""
        asked = {"namespace": namespace, "since": since, "until": until, "limit": SUMS + 1}
        sums = self.store.ask(Sum, TABLES[""], **asked)
        if by:
            more = {} if by in TABLES else {"by": by}
            grouped = self.store.ask(Sum, TABLES.get(by, "cost_sums_by"), **asked, **more)
        else:
            grouped = []
        if max(len(sums), len(grouped)) > SUMS:
            raise TooMany(f"this time has more than {SUMS} different amounts: take a shorter one")
        accepted = {"namespace": namespace, "since": since, "until": until}
        [count] = self.store.ask(_Count, "assets_accepted", **accepted)
        groups: dict[str, list[Sum]] = {}
        for one in grouped:
            groups.setdefault(one.group, []).append(one)
        passed = self._accepted(namespace, since, until) if by == "asset" else set()
        return [
            costs.report(sums, count.count, self.rate, self.currency),
            *(
                costs.report(found, int(name in passed), self.rate, self.currency, group=name)
                for name, found in groups.items()
            ),
        ]

    def _accepted(self, namespace: str, since: int, until: int) -> set[str]:
        found: set[str] = set()
        after = ""
        while page := self.assets(namespace, since, until, after=after, state="accepted"):
            found |= {asset.key for asset in page}
            after = page[-1].key
        return found

    def _line(self, namespace: str, key: str, line: Cost) -> Cost:
        wrong = list(costs.wrong_with(line))
        if wrong:
            raise UsageError(f"line {key!r}: {'; '.join(wrong)}")
        now = self.store.now()
        return Cost(
            id=f"{namespace}/{key}", namespace=namespace, at=line.at or now, kind=line.kind,
            cause=line.cause, amount=line.amount, currency=line.currency, payer=line.payer,
            operation=line.operation, asset=line.asset, minutes=line.minutes,
            evidence=line.evidence,
        )  # fmt: skip

    def _known(self, line: Cost) -> Cost | None:
        """Return the line of this key; raises Conflict where it says something else."""
        found = self.store.ask(Cost, "cost_of", id=line.id, namespace=line.namespace)
        if not found:
            return None
        old = found[0]
        names = [n for n in Cost.__struct_fields__ if n != "at"]
        differ = [n for n in names if getattr(old, n) != getattr(line, n)]
        if differ:
            raise Conflict(
                f"line {line.id!r} exists with another content ({', '.join(differ)} differ): enter"
                " a correction under a key of its own",
                fields=differ,
            )
        return old

    # --- assets ---

    def decide(self, namespace: str, key: str, state: str, who: Who, note: str = "") -> Asset:
        """Accept or reject an asset; the same decision again changes nothing."""
        if not key.strip() or len(key) > costs.TEXT or len(note) > costs.TEXT * 10:
            raise UsageError(f"the asset's key must have 1 to {costs.TEXT} characters")
        before = self.asset(namespace, key)
        if before is not None and before.state == state:
            return before
        made = Asset(
            namespace=namespace, key=key, state=state, by=who.actor, at=self.store.now(), note=note
        )
        line = self._audit.line(
            who, namespace, f"asset.{state}", subject=key, reason=note,
            before=before.state if before else "", after=state,
        )  # fmt: skip
        self.store.post([Posting((("asset_write", made), line), must=(0,))])
        return self.asset(namespace, key) or made

    def asset(self, namespace: str, key: str) -> Asset | None:
        """Return what was decided about an asset."""
        found = self.store.ask(Asset, "asset_of", namespace=namespace, key=key)
        return found[0] if found else None

    def assets(
        self, namespace: str, since: int, until: int, *, after: str = "", state: str = "",
        limit: int = PAGE,
    ) -> list[Asset]:  # fmt: skip
        """Return the assets that were decided in a time, in the order of their keys."""
        return self.store.ask(
            Asset, "assets", namespace=namespace, since=since, until=until, after=after,
            state=state, limit=limit,
        )  # fmt: skip

    def new_key(self) -> str:
        """Return a key for a line that a person enters in a form."""
        return new_id(self.store.now(), self.clock.id_bits())


def cursor(line: Cost) -> str:
    """Return from where the next page of lines begins."""
    return f"{line.at}-{line.id}"

"""The acceptance report of a run: what was done, what was not, what is unknown, who decided."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from ascertain.config.spaces import Space
from ascertain.core.model import Approval, Review, Run
from ascertain.runtime.flow import Member, standing
from ascertain.runtime.receipt import Receipt

MOST = 1000  # keys that are listed
# The parts of a report and the standings in each: what is not known is in a part of its own.
PARTS = {
    "done": ("done", "accepted"),
    "unknown": ("unknown", "running"),
    "not_done": ("not_done", "waiting"),
    "missing": ("missing",),
}
FOUND = ("look_up", "late_report")  # found done although nobody knew


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """One key of a run: where it stands, and which people said something about it."""

    member: Member
    receipt: Receipt | None
    reviews: list[Review]
    approvals: list[Approval]


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """A run as a client is given it. `counts` are of all keys, all else is of those listed."""

    run: Run
    standing: str
    counts: dict[str, int]
    parts: dict[str, list[Row]]
    figures: dict[str, int]
    keys: int
    capped: bool


def report_of(space: Space, run: Run) -> Report:
    """Return the report of a run; reads the store."""
    stands = standing(space.engine, run)
    counts: dict[str, int] = {}
    for one in stands.members:
        counts[one.standing] = counts.get(one.standing, 0) + 1
    rows = _rows(space, stands.members[:MOST])
    parts = {
        name: [row for row in rows if row.member.standing in within]
        for name, within in PARTS.items()
    }
    return Report(
        run=run, standing=stands.standing, counts=counts, parts=parts, figures=_figures(rows),
        keys=len(stands.members), capped=len(stands.members) > MOST,
    )  # fmt: skip


def _rows(space: Space, members: Sequence[Member]) -> list[Row]:
    store = space.store
    known = store.snapshots([one.operation for one in members if one.operation])
    receipts = {one.id: one for one in space.ledger.shown(known.values())}
    return [
        Row(
            member=one,
            receipt=receipts.get(one.operation or ""),
            reviews=store.reviews(None, one.operation, closed=True) if one.operation else [],
            approvals=[a for a in store.approvals(one.operation or "") if a.by],
        )
        for one in members
    ]


def _figures(rows: Sequence[Row]) -> dict[str, int]:
    receipts = [row.receipt for row in rows if row.receipt is not None]
    return {
        "operations": len(receipts),
        "attempts": sum(one.attempts for one in receipts),
        "look_ups": sum(one.lookups for one in receipts),
        "prevented": sum(one.done and one.confirmed_by in FOUND for one in receipts),
        "duplicates": sum(any(r.road == "duplicate" for r in row.reviews) for row in rows),
        "people": sum(bool(row.reviews) for row in rows),
    }

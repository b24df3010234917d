"""Lines of cost in the commit of the finding that they are about: neither without the other."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from ascertain.core import costs
from ascertain.core.draft import Case, own_attempt
from ascertain.core.model import Change, Finding, Kind

if TYPE_CHECKING:
    from .engine import Engine
    from .ticket import Ticket


def charged(engine: Engine, ticket: Ticket, finding: Finding, change: Change) -> Change:
    """Return the change that ends an attempt, with what the attempt cost. It waits for the disk
    then, since no look-up finds out again what something cost."""
    price = engine.prices.get(ticket.definition.name)
    if price is None and "costs" not in finding.evidence:
        return change
    lines = costs.lines(
        ticket.case.operation,
        ticket.attempt,
        finding,
        number=ticket.case.status.attempts,
        now=change.status.updated_at,
        price=price,
    )
    return replace(change, lines=(*change.lines, *lines), lazy=False) if lines else change


def silent(engine: Engine, case: Case, change: Change) -> Change:
    """Return the change that ends an attempt which never reported, with a line that says so."""
    price = engine.prices.get(case.operation.action)
    own = own_attempt(case)
    if price is None or own.kind is Kind.LOOK_UP:
        return change
    number, now = case.status.attempts, change.status.updated_at
    line = costs.expired(case.operation, own, number, now, price)
    return replace(change, lines=(*change.lines, line))

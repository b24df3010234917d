"""Whether a target may be acted on now: paused by a person, or closed by its circuit breaker.

A pause stops what has an effect; looking is still allowed. A closed breaker stops both, since the
target does not answer; after a while one operation tries it. Pure.
"""

from __future__ import annotations

import msgspec

from .books import Gate
from .model import SECOND, Accepted, Done, Finding, NotDone, NotDoneKind, Unknown

OPEN, PAUSED, CLOSED, TRYING = "open", "paused", "closed", "trying"
HELD_FOR = 300 * SECOND  # until what a pause holds is looked at again by itself
SAID = {PAUSED: "gate_paused", CLOSED: "gate_closed", TRYING: "gate_closed"}
CODES = frozenset(SAID.values())


class Breaker(msgspec.Struct, frozen=True, kw_only=True):
    """When a target counts as out of reach: so many failures in a row, within so many µs; and
    after how many µs it is tried again."""

    failures: int = 5
    within: int = 60 * SECOND
    retry_after: int = 30 * SECOND


def held_until(gate: Gate | None, now: int, *, looks: bool) -> int | None:
    """Return until when a gate holds a step, or None where it may be taken; `looks`: it only
    asks the target."""
    if gate is None or gate.state == OPEN or (gate.state == PAUSED and looks):
        return None
    if gate.state == PAUSED:
        return now + HELD_FOR
    return None if may_try(gate, now) else gate.until


def may_try(gate: Gate | None, now: int) -> bool:
    """Tell whether a closed gate's time is over, so that one operation may try the target; the
    same where who tried it never said what came of it."""
    return gate is not None and gate.state in (CLOSED, TRYING) and (gate.until or 0) <= now


def reached(finding: Finding) -> bool | None:
    """Tell whether an attempt reached its target: False where it was not ready or gave no
    answer, None where the finding does not say.

    An answer with a status below 500 is one, however little it proves about the effect.
    """
    if isinstance(finding, NotDone):
        return finding.kind is not NotDoneKind.TRANSIENT
    if isinstance(finding, Unknown):
        status = finding.evidence.get("status")
        return isinstance(status, int) and status < 500  # noqa: PLR2004 - HTTP
    return True if isinstance(finding, Done | Accepted) else None

"""How a look-up goes: every epoch, then the controls that make an absence worth something.

Written as a generator that yields target keys and is sent findings, so that the sync and the
async driver share it. It only looks (law 14): whatever goes wrong is Unknown.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable
from typing import TYPE_CHECKING, Any

import msgspec

from ascertain.core import keys
from ascertain.core.model import Absent, Accepted, Control, Done, Finding, Several, Unknown
from ascertain.core.reconcile import LookReport, epochs, quiet_end

from .storable import storable

if TYPE_CHECKING:
    from .engine import Engine
    from .ticket import Ticket

Looking = Generator[str, Finding, LookReport]


def looking(targets: Iterable[tuple[int, str]], control: str | None, invented: str) -> Looking:
    """Look up each epoch's key; then, unless something was found in full, the controls.

    `control` is the key of an object known to exist, `invented` one that cannot exist: a
    look-up that finds it ignores the key, so neither its hits nor its misses mean anything.
    """
    found: dict[int, Finding] = {}
    for epoch, key in targets:
        found[epoch] = yield key
    whole = _join(found.values())
    hit = yield invented
    strange = not isinstance(hit, Absent | Unknown)
    if isinstance(hit, Unknown):  # whether it heeds the key at all is not known now: ask again
        whole = Unknown(reason="the look-up of a key that was never sent was not answered")
    elif isinstance(hit, Absent) and isinstance(whole, Absent) and not hit.complete:
        whole = Absent(complete=False, evidence=whole.evidence)
    if strange:
        reason = "the look-up also finds a key that was never sent: it ignores the key"
        whole = Unknown(reason=reason)
    seen = "none"
    if control is not None and isinstance(whole, Absent):
        hit = yield control
        seen = "found" if isinstance(hit, Done | Accepted | Several) else "missing"
    return LookReport(finding=whole, epochs=frozenset(found), control=seen, invented_found=strange)


def _join(findings: Iterable[Finding]) -> Finding:
    """Join what the epochs gave: one effect, several, none, or not known."""
    findings = list(findings)
    refs: list[str | int] = []
    for finding in findings:
        if isinstance(finding, Several):
            refs.extend(finding.refs)
        elif isinstance(finding, Done) and finding.ref not in refs:
            refs.append(finding.ref if finding.ref is not None else "")
    if len(refs) > 1 or any(isinstance(f, Several) for f in findings):
        return Several(refs=refs, evidence=_first(findings, Several, Done))
    for kind in (Done, Accepted, Unknown):
        for finding in findings:
            if isinstance(finding, kind):
                return finding
    complete = all(getattr(f, "complete", False) for f in findings)
    return Absent(complete=complete, evidence=_first(findings, Absent))


def _first(findings: list[Finding], *kinds: type) -> dict[str, Any]:
    return next((f.evidence for f in findings if isinstance(f, kinds)), {})


def finding_of_look(value: Any, name: str) -> Finding:
    """Return what a look-up function gave, or Unknown naming what it should have returned."""
    if isinstance(value, Done | Accepted | Absent | Several | Unknown):
        return storable(value)
    return Unknown(
        reason=f"the look-up of {name} returned {type(value).__name__}; return ascertain.Done,"
        " Accepted, Absent, Several or Unknown"
    )


def invented_key(secret: bytes, token: int) -> str:
    """Return a target key that was never sent."""
    return keys.target_key(secret, "invented", "", str(token), 0)  # an epoch never used


def control_key(declared: str | None, known: Control | None, own: str) -> str | None:
    """Return the key of the positive control; the operation's own key is none."""
    if declared is not None:
        return declared
    return known.target_key if known is not None and known.operation != own else None


class LookedFor(msgspec.Struct, frozen=True):
    """The target keys that a look-up asks for: of every epoch, its positive control, if it needs
    one, and a key that was never sent."""

    targets: list[tuple[int, str]]
    control: str | None
    invented: str


def start_looking(engine: Engine, ticket: Ticket) -> Looking:
    """Begin a look-up."""
    asked = looked_for(engine, ticket)
    return looking(asked.targets, asked.control, asked.invented)


def looked_for(engine: Engine, ticket: Ticket) -> LookedFor:
    """Return which keys are looked up, and by which controls (law 5)."""
    status, operation = ticket.case.status, ticket.case.operation
    world = engine.world()
    keyed = [
        (e, status.target_key if e == status.epoch and status.target_key else engine.target_key(
            operation.action, operation.key, e))
        for e in epochs(status, world)
    ]  # fmt: skip
    quiet = quiet_end(status, ticket.case.terms, world)
    control = None
    if quiet is not None and ticket.attempt.started_at > quiet:
        known = engine.store.control(operation.namespace, operation.action, operation.scope)
        look = ticket.definition.look
        control = control_key(look.control if look else None, known, operation.id)
    invented = invented_key(engine.lives.secret, ticket.attempt.token)
    return LookedFor(keyed, control, invented)

"""Targets of every protection class: what they promise, and what the action declares."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from ascertain.core.contract import (
    Contract,
    KeyRule,
    LateRule,
    LookupRule,
    OkRule,
    RefusedRule,
    RepeatRule,
)

SECOND = 1_000_000
LATE, LAG = 20, 30  # seconds, as stated
DAY = 24 * 3600
CONTROL = "control0000000000000000000"  # the target key of an object that is known to exist
REFUSED = RefusedRule(
    invalid="422", unauthorized="401", throttled="429", transient="503", rejected="403"
)
REQUEST = KeyRule(at="header:Idempotency-Key", kind="request")
RESOURCE = KeyRule(at="body:id", kind="resource")
FIELD = KeyRule(at="body:id", kind="content")


@dataclass(frozen=True)
class KindOfTarget:
    """One kind of operation at one target; times in seconds."""

    name: str  # the protection class, or a variant of it
    protects: str = "nothing"  # nothing, remembers, unique, repeatable
    at_once: bool = False  # overlapping requests make one effect
    keeps: int = DAY
    looks: bool = False
    lag: int = 0
    late: int | None = LATE  # None: nobody says
    assumed: bool = False  # the lateness is the operator's assumption
    undo: bool = True
    accepts: bool = False  # it only takes over; done is confirmed later
    overwrites: bool = False
    blind: bool = False  # the look-up does not see drafts
    own: bool = False  # the code sends by itself, without a known deadline
    control: bool = True
    alone: bool = True  # recoverable without a person
    risky: bool = False
    declares: dict[str, Any] = field(default_factory=dict)

    @property
    def cls(self) -> str:
        return self.name.split("/")[0]

    def contract(self) -> Contract:
        parts: dict[str, Any] = {
            "refused": REFUSED,
            "ok": OkRule(when="200|201|202", accepted=self.accepts),
        }
        late = f"{self.late}s" if self.late is not None and not self.assumed else None
        parts["late"] = LateRule(max=late)
        answer = {"remembers": "replay", "unique": "exists"}.get(self.protects, "again")
        if self.protects in ("remembers", "unique"):
            keeps = f"{self.keeps}s" if self.protects == "remembers" else "forever"
            parts["key"] = REQUEST if self.protects == "remembers" else RESOURCE
            parts["repeat"] = RepeatRule(
                answer="overwrite" if self.overwrites else answer,
                keeps=keeps, atomic=self.at_once or None, exists="409 body:code=exists",
                busy="409 body:code=busy", mismatch="409 body:code=mismatch",
                stored="body:stored=true" if self.protects == "remembers" else "",
            )  # fmt: skip
        elif self.looks:
            parts["key"] = FIELD
        if self.looks:
            blind = ("drafts",) if self.blind else ()
            parts["lookup"] = LookupRule(by="id", lag=f"{self.lag}s", blind=blind)
        if self.protects == "repeatable":
            parts["harm"] = "none"
        undo = "DELETE /things/{ref}" if self.undo else "none"
        ident = f"sim.{self.name.translate(str.maketrans(' /,-', '____'))}"
        return Contract(id=ident, undo=undo, **parts)


KINDS = (
    KindOfTarget("repeatable", protects="repeatable"),
    KindOfTarget("idempotent", protects="remembers", at_once=True),
    KindOfTarget("idempotent/not atomic", protects="remembers"),
    KindOfTarget("idempotent/looks", protects="remembers", at_once=True, looks=True, keeps=300),
    KindOfTarget("idempotent/short", protects="remembers", at_once=True, keeps=90, alone=False),
    KindOfTarget("idempotent/shorter than late", protects="remembers", keeps=15, alone=False),
    KindOfTarget("identified", protects="unique", at_once=True),
    KindOfTarget("identified/no lateness", protects="unique", at_once=True, late=None),
    KindOfTarget("identified, not race-free", protects="unique", looks=True, lag=5),
    # A late truth beside another attempt has to be looked for, and nobody can: a person (law 8).
    KindOfTarget("identified, not race-free/no look-up", protects="unique", alone=False),
    KindOfTarget("identified, not race-free/overwrites", protects="unique", overwrites=True,
                 at_once=True, looks=True),
    KindOfTarget("searchable", looks=True),
    KindOfTarget("searchable/accepts", looks=True, accepts=True),
    KindOfTarget("searchable/assumed", looks=True, assumed=True),
    KindOfTarget("searchable/irreversible", looks=True, assumed=True, undo=False, alone=False,
                 risky=True),
    KindOfTarget("searchable/blind", looks=True, blind=True, alone=False),
    KindOfTarget("searchable/first control", looks=True, control=False, alone=False),
    KindOfTarget("searchable/own", looks=True, own=True, alone=False),
    KindOfTarget("lagging", looks=True, lag=LAG),
    KindOfTarget("lagging/late unknown", looks=True, lag=LAG, late=None, alone=False),
    KindOfTarget("opaque", late=None, alone=False),
    KindOfTarget("opaque/irreversible", late=None, alone=False, undo=False, risky=True),
)  # fmt: skip
BY_NAME = {kind.name: kind for kind in KINDS}

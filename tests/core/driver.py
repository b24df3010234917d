"""A ledger in a dict, so that scenarios over the core read like sentences.

It applies changes as a store does: guarded by the stamp, attempts ended once, deadlines moved
only forwards. After every change it checks what must hold whatever happens.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msgspec.structs import replace

from ascertain.core import claims, people, reconcile, settle
from ascertain.core.contract import Contract, Terms, terms
from ascertain.core.draft import Case
from ascertain.core.machine import is_settled
from ascertain.core.model import (
    SECOND,
    Approval,
    Attempt,
    Change,
    Control,
    Evidence,
    Kind,
    Operation,
    Outcome,
    Reference,
    Review,
    State,
    Status,
)
from ascertain.core.reconcile import Do, LookReport, Step, World

LEASE = 60
SILENT = (Outcome.EXPIRED, Outcome.UNKNOWN)


def contract(ident: str = "shop.order", **parts: Any) -> Contract:
    """A contract with an undo, so that an assumed absence may count."""
    return Contract(id=ident, **{"undo": "DELETE /orders/{ref}", **parts})


def declared(c: Contract | None = None, **more: Any) -> Terms:
    """The terms of an action on a contract, with an owner."""
    given: dict[str, Any] = {"owners": {"": "anna"}, "scope": "acme"}
    return terms(c or contract(), **{**given, **more})


class Ledger:
    """One operation, its attempts, reviews and evidence; time stands still unless told."""

    def __init__(self, made: Terms | None = None, *, key: str = "order-1", now: int = 1000) -> None:
        self.terms = made or declared()
        self.now = now * SECOND
        self.stamps = 0
        self.stepped_at: int | None = None
        self.restored_once = False
        self.attempts: dict[int, Attempt] = {}
        self.reviews: dict[str, Review] = {}
        self.evidence: list[Evidence] = []
        self.references: list[Reference] = []
        self.approvals: dict[str, Approval] = {}
        self.control: Control | None = None
        self.others: list[Change] = []
        self.operation = Operation(
            id=f"op-{key}",
            namespace="acme",
            action="shop.order",
            key=key,
            fingerprint="f",
            input="{}",
        )
        self.status = Status(
            operation=self.operation.id,
            namespace="acme",
            action="shop.order",
            state=State.PENDING,
            target_key="key-1",
        )
        self.successor: Status | None = None

    @property
    def world(self) -> World:
        return World(now=self.now, stepped_at=self.stepped_at, restored=self.restored_once)

    @property
    def case(self) -> Case:
        return Case(
            operation=self.operation,
            status=self.status,
            terms=self.terms,
            attempts=tuple(self.attempts.values()),
            reviews=tuple(r for r in self.reviews.values() if r.closed_at is None),
            successor=self.successor,
        )

    @property
    def open_reviews(self) -> list[str]:
        return sorted(r.road for r in self.reviews.values() if r.closed_at is None)

    @property
    def refs(self) -> list[str]:
        return list(dict.fromkeys(r.reference for r in self.references))

    @property
    def step(self) -> Step:
        return reconcile.next_step(
            self.status, self.terms, tuple(self.attempts.values()), self.world
        )

    def stamp(self) -> int:
        self.stamps += 1
        return self.stamps

    def apply(self, change: Change) -> Change:
        assert (change.guard or 0) == self.status.stamp, "decided on an old picture"
        if change.lazy:
            self.check_lazy(change)
        self.status = change.status
        if change.attempt is not None:
            assert change.attempt.token not in self.attempts
            self.attempts[change.attempt.token] = change.attempt
        if change.extends is not None:
            token, deadline = change.extends
            known = self.attempts.get(token)
            if known and known.outcome is None and known.deadline < deadline:
                self.attempts[token] = replace(known, deadline=deadline)
        for token, outcome in change.ends:
            known = self.attempts.get(token)
            if known is None:  # of an attempt that a restore forgot
                continue
            if known.outcome is None or (known.outcome in SILENT and outcome not in SILENT):
                self.attempts[token] = replace(known, outcome=outcome, ended_at=self.now)
        self.evidence += change.evidence
        self.references += change.references
        self.reviews.update({r.id: r for r in change.reviews})
        self.approvals.update({a.id: a for a in change.approvals})
        self.control = self.control or change.control
        self.others += change.also
        self.check()
        return change

    def check_lazy(self, change: Change) -> None:
        """Losing it in a power cut costs a look-up: an own attempt says that it happened."""
        before, after = self.status, change.status
        assert self.terms.lazy, "lazy, and nobody asked for it"
        assert self.terms.can_look_up, "lazy, and nobody could find it again"
        assert before.state is State.RUNNING, "lazy, and not the end of an effect attempt"
        assert [token for token, _ in change.ends] == [before.token], "lazy, and a late report"
        assert after.state in (State.DONE, State.ACCEPTED), "lazy, and a repeat may rest on it"
        beside = (change.attempt, change.reviews, change.approvals, change.request, change.also)
        assert not any(beside), "lazy, and a person or another operation waits for it"

    def check(self) -> None:
        """Hold what must hold in every state."""
        s = self.status
        holder = self.attempts.get(s.token) if s.token is not None else None
        if s.state is State.UNKNOWN:
            assert s.due_at is not None or self.open_reviews, "unknown, and nobody is next"
        if s.token is not None:
            assert holder is not None
            assert holder.kind is s.kind
            assert s.due_at is not None, "a lease without an end"
        effect = holder is not None and holder.kind is not Kind.LOOK_UP
        assert (s.state is State.RUNNING) == effect, "running means an effect attempt has the lease"
        assert s.state is not State.DONE or s.confirmed_at is not None
        if s.due_at is None and s.token is None and not is_settled(s):
            assert s.waiting_on in ("approval", "review", "input", "authorization"), s.waiting_on
        if s.token is None and is_settled(s):
            assert s.due_at is None, "settled, and still due"

    # --- what may be done, in words ---

    def submit(self, **more: Any) -> Ledger:
        self.apply(claims.submit(self.case, self.world, self.stamp(), **more))
        return self

    def claim(self, do: Do) -> Attempt:
        change = claims.claim(
            self.case,
            do,
            self.world,
            token=1000 + self.stamp(),
            stamp=self.stamp(),
            next_key=lambda epoch: f"key-{epoch}",
        )
        self.apply(change)
        assert change.attempt is not None
        return change.attempt

    def execute(self) -> Attempt:
        return self.claim(Do.EXECUTE)

    def report(self, attempt: Attempt, finding: Any) -> Ledger:
        self.apply(settle.report(self.case, attempt, finding, self.world, self.stamp()))
        return self

    def look(self, finding: Any, **more: Any) -> Ledger:
        """Look up now; by default in full, over every epoch, with a positive control."""
        return self.looked(self.claim(Do.LOOK_UP), finding, **more)

    def looked(self, look: Attempt, finding: Any, **more: Any) -> Ledger:
        whole = frozenset(reconcile.epochs(self.status, self.world))
        given = LookReport(finding=finding, **{"epochs": whole, "control": "found", **more})
        self.apply(settle.looked(self.case, look, given, self.world, self.stamp()))
        return self

    def expire(self) -> Ledger:
        self.apply(claims.expire(self.case, self.world, self.stamp()))
        return self

    def release(self) -> Ledger:
        self.apply(claims.release(self.case, self.world, self.stamp()))
        return self

    def extend(self, seconds: int) -> Ledger:
        self.apply(claims.extend(self.case, self.world, self.stamp(), seconds * SECOND))
        return self

    def restore(self, gap_from: int) -> Ledger:
        self.restored_once = True
        self.apply(claims.restored(self.case, self.world, self.stamp(), gap_from * SECOND))
        return self

    def event(self, finding: Any, report: str = "event-1") -> Ledger:
        decide: Callable[..., Change] = settle.outside
        self.apply(decide(self.case, finding, self.world, self.stamp(), by="event", report=report))
        return self

    def decide(self, answer: str, **more: Any) -> Ledger:
        given = {"by": "bob", **more}
        self.apply(
            people.decide(self.case, people.Answer(answer), self.world, self.stamp(), **given)
        )
        return self

    def advance(self) -> Ledger:
        self.apply(claims.advance(self.case, self.step, self.world, self.stamp()))
        return self

    def wait(self, seconds: float) -> Ledger:
        self.now += round(seconds * SECOND)
        return self

    def lost(self, attempt: Attempt) -> Ledger:
        """The lease runs out without a report."""
        self.now = max(self.now, attempt.deadline + 1)
        return self.expire()

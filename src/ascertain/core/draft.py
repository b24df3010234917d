"""A change in the making: what every decision function shares."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
from msgspec.structs import replace

from . import gates, policy
from .contract import Terms
from .machine import Input, move
from .model import (
    Accepted,
    Attempt,
    Change,
    Done,
    Evidence,
    Finding,
    Kind,
    Operation,
    Outcome,
    Reference,
    Review,
    State,
    Status,
    WaitingOn,
)
from .reconcile import Do, Step, World, next_step


class Case(msgspec.Struct, frozen=True, kw_only=True):
    """An operation as it was read, with what a decision about it needs.

    `attempts` and `reviews` (open ones) may be left out where the operation has only the one
    attempt that its holder knows; `successor` is the operation that supersedes it.
    """

    operation: Operation
    status: Status
    terms: Terms
    attempts: Sequence[Attempt] = ()
    reviews: Sequence[Review] = ()
    successor: Status | None = None


def after(case: Case, change: Change) -> Case:
    """Return a case as it is once a change of it is written, as a store would read it again."""
    attempts = [_closed(_extended(a, change), change) for a in case.attempts]
    if change.attempt is not None:
        attempts.append(change.attempt)
    reviews = case.reviews
    if change.reviews:
        by_id = {r.id: r for r in (*case.reviews, *change.reviews)}
        reviews = [r for r in by_id.values() if r.closed_at is None]
    return replace(case, status=change.status, attempts=attempts, reviews=reviews)


def _extended(attempt: Attempt, change: Change) -> Attempt:
    token, deadline = change.extends or (None, 0)
    forwards = attempt.outcome is None and attempt.deadline < deadline
    return replace(attempt, deadline=deadline) if attempt.token == token and forwards else attempt


def _closed(attempt: Attempt, change: Change) -> Attempt:
    for token, outcome in change.ends:
        late = attempt.outcome in SILENT and outcome not in SILENT  # law 8
        if attempt.token == token and (attempt.outcome is None or late):
            attempt = replace(attempt, outcome=outcome, ended_at=change.status.updated_at)
    return attempt


SILENT = (Outcome.EXPIRED, Outcome.UNKNOWN)
NOTHING_SENT = (Outcome.NOT_DONE, Outcome.RELEASED)


class Draft:
    """A change in the making: the status after it, and what is written beside it."""

    def __init__(self, case: Case, world: World, stamp: int) -> None:
        """Start from what was read; nothing is written."""
        self.case, self.world, self.stamp = case, world, stamp
        self.status = case.status
        self.ends: list[tuple[int, Outcome]] = []
        self.evidence: list[Evidence] = []
        self.references: list[Reference] = []
        self.reviews: list[Review] = []
        self.more: dict[str, Any] = {}

    def move(self, given: Input, **fields: Any) -> None:
        """Apply one row of the table, then the fields that go with it."""
        token = self.status.token
        back = next((a.taken_from for a in self.case.attempts if a.token == token), None)
        after = move(self.status, given, back=back)
        if self.status.kind is Kind.LOOK_UP and after.state is not self.status.state:
            after = replace(after, token=None, kind=None)  # what it looks for is known meanwhile
        self.status = replace(after, **fields)

    def set(self, **fields: Any) -> None:
        """Set fields of the status that the table does not own."""
        self.status = replace(self.status, **fields)

    def note(self, kind: str, *, shows: str = "", **more: Any) -> None:
        """Append one entry of evidence."""
        seq = self.status.entries + 1
        data = more.pop("data", None) or {}
        self.set(entries=seq)
        entry = Evidence(
            operation=self.case.operation.id,
            seq=seq,
            id=more.pop("id", "") or f"{self.case.operation.id}-{seq}",
            at=self.world.now,
            kind=kind,
            shows=shows,
            by=more.pop("by", "") or self.world.worker,
            data=msgspec.json.encode(data).decode(),
            **more,
        )
        self.evidence.append(entry)

    def open_review(self, road: str, said: str) -> None:
        """Open a review of this road, unless one is open."""
        if any(r.road == road for r in (*self.case.reviews, *self.reviews)):
            return
        operation = self.case.operation
        self.reviews.append(
            Review(
                id=f"{operation.id}-{road}-{self.status.entries}",
                operation=operation.id,
                namespace=operation.namespace,
                road=road,
                owner=self.case.terms.owner(road),
                opened_at=self.world.now,
                said=said,
            )
        )

    def close_reviews(self, decision: str, by: str = "") -> None:
        """Close the open reviews whose question is answered; a duplicate's stays open."""
        for review in self.case.reviews:
            if review.road != "duplicate" or decision == "duplicate_settled":
                closed = replace(
                    review, closed_at=self.world.now, closed_by=by or "evidence", decision=decision
                )
                self.reviews.append(closed)

    def proceed(self, step: Step) -> None:
        """Make the next step due, or hand it to a person."""
        if step.do is Do.REVIEW:
            self.move(Input.REVIEW, due_at=None, said=step.said)
            road = "accepted" if self.status.state is State.ACCEPTED else "unknown"
            self.set(owner=self.case.terms.owner(road))
            self.open_review(road, step.said)
        elif step.do is Do.GIVE_UP:
            self.move(Input.GAVE_UP, due_at=None, said=step.said)
            self.set(owner=self.case.terms.owner("input"))
        elif step.do is Do.CLOSE:
            self.set(verify=False, due_at=None, said=step.said)
            if len([a for a in effects(self.case) if a.outcome not in NOTHING_SENT]) > 1:
                self.open_review("duplicate", step.said)  # nobody has looked (laws 8, 15)
        elif step.do is Do.NOTHING:
            self.set(due_at=None)
        else:
            self.set(due_at=step.at, said=step.said)
            self._wait_for_target(held=step.said in gates.CODES)

    def _wait_for_target(self, *, held: bool) -> None:
        """Say that it is the target's gate that holds it, or no longer."""
        waits = {WaitingOn.CLOCK: WaitingOn.TARGET} if held else {WaitingOn.TARGET: WaitingOn.CLOCK}
        if self.status.state in (State.PENDING, State.UNKNOWN):
            now = self.status.waiting_on
            self.set(waiting_on=waits.get(now, now))

    def change(self) -> Change:
        """Return the change, guarded by the stamp of what was read."""
        before = self.case.status
        status = replace(self.status, stamp=self.stamp, updated_at=self.world.now)
        return Change(
            status=status,
            guard=before.stamp or None,
            ends=tuple(self.ends),
            evidence=tuple(self.evidence),
            references=tuple(self.references),
            reviews=tuple(self.reviews),
            **self.more,
        )


def costs_a_look_up(draft: Draft, finding: Finding) -> bool:
    """Tell whether all that is lost with this settlement of an effect attempt is found again by
    the look-up of a claim whose lease ran out: what happened, and nothing that a person sees,
    another operation waits for, or a repeat rests on."""
    terms, after = draft.case.terms, draft.status
    return (
        terms.lazy
        and terms.can_look_up
        and isinstance(finding, Done | Accepted)
        and after.state in (State.DONE, State.ACCEPTED)
        and not draft.reviews
        and "also" not in draft.more
    )


def own_attempt(case: Case) -> Attempt:
    """Return the attempt that holds the lease."""
    return next(a for a in case.attempts if a.token == case.status.token)


def effects(case: Case) -> list[Attempt]:
    """Return the attempts that may have had an effect."""
    return [a for a in case.attempts if a.kind is not Kind.LOOK_UP]


def ended(case: Case, attempt: Attempt, outcome: Outcome) -> list[Attempt]:
    """Return the attempts as they are once this one has ended so."""
    return [replace(a, outcome=outcome) if a.token == attempt.token else a for a in case.attempts]


def recompute_deadline(draft: Draft, attempt: Attempt, *, ends: int | None) -> None:
    """Set the latest deadline anew: this attempt sends nothing after `ends`, or never did."""
    others = [a.deadline for a in effects(draft.case) if a.token != attempt.token]
    if ends is not None:
        ends = min(ends, attempt.deadline)
        draft.more["extends"] = (attempt.token, ends)
        others.append(ends)
    draft.set(last_deadline=max(others, default=None))


def step_after(draft: Draft, attempts: Sequence[Attempt], wait: float | None) -> Step:
    """Return the next step of the draft's status, with back-off or the wait asked for."""
    status, terms, world = draft.status, draft.case.terms, draft.world
    delay = policy.asked_for(wait)
    if delay is None:
        tries = status.attempts + status.lookups - 1
        delay = policy.backoff(tries, terms.bounds, world.jitter) if tries > 0 else 0
    return next_step(status, terms, attempts, world, delay)


def go_on(draft: Draft, attempts: Sequence[Attempt], wait: float | None = None) -> None:
    """Make the next step due, or hand it to a person."""
    draft.proceed(step_after(draft, attempts, wait))


def shown(finding: Finding) -> dict[str, Any]:
    """Return a finding as the parts of an entry of evidence."""
    data = dict(finding.evidence)
    for name in ("ref", "refs", "reason", "kind", "retry_after", "complete"):
        value = getattr(finding, name, None)
        if value not in (None, "", [], True):
            data[name] = value
    shows = finding.__struct_config__.tag
    return {"shows": str(shows), "said": str(shows), "data": data}


def as_json(value: Any) -> str | None:
    """Return a result as it is stored."""
    return None if value is None else msgspec.json.encode(value).decode()

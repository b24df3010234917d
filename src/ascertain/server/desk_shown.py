"""How approvals, reviews and bulk actions are shown by the API."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import msgspec

from ascertain.core import words
from ascertain.core.books import Bulk
from ascertain.core.candidates import Candidate
from ascertain.core.consequences import of_approval, of_bulk, said
from ascertain.core.model import SECOND, Evidence
from ascertain.runtime.approving import Ask, Frozen, Full
from ascertain.runtime.bulk import OUTCOMES, plan_of, progress_of, wish_of
from ascertain.runtime.reviewing import Whole, link_of

from . import shown

SUMMARY = 5  # entries of evidence beside a review; all of them are the operation's history
RESULTS = 1000  # of a bulk action on one page

# --- approvals ---


class Approval(msgspec.Struct, frozen=True, kw_only=True):
    """A consent that is or was asked for, in one role, to one exact request."""

    id: str
    operation: str
    action: str
    key: str
    title: str
    role: str
    state: str
    digest: str
    asked_at: datetime | None
    decided_at: datetime | None
    by: str
    note: str
    link: str


class ApprovalPage(msgspec.Struct, frozen=True):
    """Approvals, oldest operation first."""

    items: list[Approval]
    next: str | None


class FrozenBody(msgspec.Struct, frozen=True, kw_only=True):
    """A body: its text where it is text (`cut`: it goes on), its size in bytes and its hash.
    `kind`: empty, json, text, binary, large."""

    kind: str
    size: int
    sha256: str
    text: str | None
    cut: bool


class FrozenRequest(msgspec.Struct, frozen=True, kw_only=True):
    """Exactly what would be sent; credentials, Date and trace headers lie outside."""

    method: str
    url: str
    headers: list[tuple[str, str]]
    body: FrozenBody


class DiffToken(msgspec.Struct, frozen=True):
    """A run of words: `same`, `ins` (new) or `del` (gone)."""

    kind: str
    text: str


class DiffField(msgspec.Struct, frozen=True):
    """What changed in one field, word by word."""

    field: str
    tokens: list[DiffToken]


class PossibleAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """One answer that is possible now, and what will happen then. `needs_ref`: the reference of
    what is there; `needs_risk`: the right to act without proof, and `accept_risk`; `needs_second`:
    a second person. `yours`: whether you may give it."""

    answer: str
    says: dict[str, str]
    needs_ref: bool
    needs_risk: bool
    needs_second: bool
    yours: bool


class ApprovalOfRole(msgspec.Struct, frozen=True, kw_only=True):
    """What another role answered to the same request."""

    id: str
    role: str
    state: str
    by: str


class ApprovalShown(msgspec.Struct, frozen=True, kw_only=True):
    """An approval with exactly what was frozen: the request, or the input where none is.

    `exact` is false where what is shown is not what the consent would bind any more. `changes` are
    against `approved`, the version that this role approved last.
    """

    approval: Approval
    exact: bool
    request: FrozenRequest | None
    input: Any
    others: list[ApprovalOfRole]
    why: str
    supersedes: str | None
    approved: str | None
    changes: list[DiffField]
    answers: list[PossibleAnswer]
    stamp: str


def approval(ask: Ask, link: str) -> Approval:
    """Return an ask as the API shows it."""
    return Approval(
        id=ask.id,
        operation=ask.operation,
        action=ask.action,
        key=ask.key,
        title=ask.title,
        role=ask.role,
        state=ask.state,
        digest=ask.digest,
        asked_at=shown.time(ask.asked_at),
        decided_at=shown.time(ask.decided_at),
        by=ask.by,
        note=ask.note,
        link=link,
    )


def approval_whole(full: Full, link: str, *, yours: bool) -> ApprovalShown:
    """Return all about an ask as the API shows it."""
    ask = full.ask
    waits = ask.state == "asked"
    return ApprovalShown(
        approval=approval(ask, link),
        exact=full.exact,
        request=None if full.request is None else _request(full.request),
        input=full.input,
        others=[
            ApprovalOfRole(id=a.id, role=a.role, state=a.state, by=a.by)
            for a in full.asks
            if a.id != ask.id
        ],
        why=full.why,
        supersedes=full.supersedes,
        approved=full.approved,
        changes=[
            DiffField(f.field, [DiffToken(t.kind, t.text) for t in f.tokens]) for f in full.changes
        ],
        answers=[
            PossibleAnswer(
                answer=c.answer, says=c.says, needs_ref=False, needs_risk=False,
                needs_second=False, yours=yours,
            )
            for c in (of_approval() if waits else ())
        ],
        stamp=str(full.stamp),
    )  # fmt: skip


def _request(frozen: Frozen) -> FrozenRequest:
    body = frozen.body
    return FrozenRequest(
        method=frozen.method,
        url=frozen.url,
        headers=frozen.headers,
        body=FrozenBody(
            kind=body.kind, size=body.size, sha256=body.sha256, text=body.text, cut=body.cut
        ),
    )


# --- reviews ---


class EvidenceInShort(msgspec.Struct, frozen=True, kw_only=True):
    """One entry of evidence in short."""

    at: datetime | None
    kind: str
    shows: str
    by: str
    says: dict[str, str]


class FactShown(msgspec.Struct, frozen=True, kw_only=True):
    """What was sent beside what was found; `match` null where the evidence shows neither."""

    name: str
    sent: str
    found: str | None
    match: bool | None


class CandidateShown(msgspec.Struct, frozen=True, kw_only=True):
    """Something at the target that may be this effect: `matched` of `compared` facts are equal.
    `then`: what happens if it is said to be it."""

    ref: str
    link: str
    seen_at: datetime | None
    source: str
    matched: int
    compared: int
    says: dict[str, str]
    facts: list[FactShown]
    then: dict[str, str]


class ReviewShown(msgspec.Struct, frozen=True, kw_only=True):
    """A question that only a person can decide, with what he needs for it.

    `group`: yours, unclaimed, others, snoozed, settled. `until`: by when to decide (`until_why`:
    protection, respond, decide), `seconds_left` below zero where it is past. `stamp` is what a
    decision names as seen. `first_word`: who has given the first of two people's word.
    """

    id: str
    operation: str
    action: str
    key: str
    title: str
    run: str | None
    state: str
    road: str
    group: str
    owner: str
    taken_by: str
    opened_at: datetime | None
    age: float
    snoozed_until: datetime | None
    until: datetime | None
    until_why: str
    seconds_left: float | None
    says: dict[str, str]
    attempts: int
    lookups: int
    evidence: list[EvidenceInShort]
    candidates: list[CandidateShown]
    decisions: list[PossibleAnswer]
    first_word: str
    closed_at: datetime | None
    closed_by: str
    decision: str
    stamp: str
    link: str


class ReviewPage(msgspec.Struct, frozen=True, kw_only=True):
    """Reviews: yours, those that nobody has taken, others', put off, just settled; in each group
    the least time left first. `counts` are by group; `capped`: there are more than were sorted."""

    items: list[ReviewShown]
    counts: dict[str, int]
    total: int
    capped: bool
    next: str | None


def review(whole: Whole, link: str, rights: frozenset[str], now: int) -> ReviewShown:
    """Return a review as the API shows it to somebody with these rights."""
    item, status = whole.item, whole.case.status
    r, operation = item.review, whole.case.operation
    return ReviewShown(
        id=r.id,
        operation=operation.id,
        action=operation.action,
        key=operation.key,
        title=operation.title,
        run=operation.run,
        state=status.state,
        road=r.road,
        group=item.group,
        owner=r.owner,
        taken_by=r.taken_by,
        opened_at=shown.time(r.opened_at),
        age=(now - r.opened_at) / SECOND,
        snoozed_until=shown.time(r.snoozed_until),
        until=shown.time(item.until),
        until_why=item.until_why,
        seconds_left=None if item.until is None else (item.until - now) / SECOND,
        says=sentence(r.said),
        attempts=status.attempts,
        lookups=status.lookups,
        evidence=[_seen(e) for e in whole.evidence[-SUMMARY:]],
        candidates=[_candidate(c, whole.open) for c in whole.candidates],
        decisions=_decisions(whole, rights),
        first_word=whole.first_word,
        closed_at=shown.time(r.closed_at),
        closed_by=r.closed_by,
        decision=r.decision,
        stamp=str(status.stamp),
        link=link,
    )


def _decisions(whole: Whole, rights: frozenset[str]) -> list[PossibleAnswer]:
    return [
        PossibleAnswer(
            answer=c.answer, says=c.says, needs_ref=c.needs_ref, needs_risk=c.needs_risk,
            needs_second=c.needs_second,
            yours="decide" in rights and (not c.needs_risk or "override" in rights),
        )
        for c in whole.decisions
    ]  # fmt: skip


def sentence(code: str) -> dict[str, str]:
    """Return the sentence of a code in both languages, or the code where it has none."""
    known = code in words.SENTENCES
    return {lang: words.say(code, lang) if known else code for lang in words.LANGUAGES}


def _seen(entry: Evidence) -> EvidenceInShort:
    return EvidenceInShort(
        at=shown.time(entry.at),
        kind=entry.kind,
        shows=entry.shows,
        by=entry.by,
        says=sentence(entry.said or entry.kind),
    )


def _candidate(c: Candidate, template: str) -> CandidateShown:
    compared = said("match", n=str(c.matched), m=str(c.compared))
    return CandidateShown(
        ref=c.ref,
        link=link_of(template, c.ref),
        seen_at=shown.time(c.at),
        source=c.source,
        matched=c.matched,
        compared=c.compared,
        says=compared if c.compared else said("match_none"),
        facts=[FactShown(name=f.name, sent=f.sent, found=f.found, match=f.match) for f in c.facts],
        then=said("there", ref=c.ref),
    )


# --- bulk ---


class BulkRefused(msgspec.Struct, frozen=True, kw_only=True):
    """How many are not part of it, and why, with a few of them."""

    code: str
    count: int
    says: dict[str, str]
    examples: list[str]


class BulkResult(msgspec.Struct, frozen=True, kw_only=True):
    """What came of one item: done, refused, changed (since the plan) or stumbled, and why."""

    operation: str
    outcome: str
    why: str


class BulkShown(msgspec.Struct, frozen=True, kw_only=True):
    """A bulk action. `state`: planned (nothing is done yet), running, done, cancelled.

    `would`: to how many it would be done; `person`: of those refused, how many only a person can
    settle; `capped`: more match than are part of it. `results` are those from `after` on.
    """

    id: str
    action: str
    state: str
    by: str
    made_at: datetime | None
    why: str
    says: dict[str, str]
    looked: int
    would: int
    refused: list[BulkRefused]
    person: int
    capped: bool
    done: int
    counts: dict[str, int]
    results: list[BulkResult]
    next: int | None


class BulkPage(msgspec.Struct, frozen=True):
    """Bulk actions, newest first, without their results."""

    items: list[BulkShown]
    next: str | None


def bulk(found: Bulk, after: int = 0, limit: int = RESULTS) -> BulkShown:
    """Return a bulk action as the API shows it, with some of its results."""
    plan, progress, wish = plan_of(found), progress_of(found), wish_of(found)
    results = progress.results[after : after + limit]
    counts = {o: sum(r.outcome == o for r in progress.results) for o in OUTCOMES}
    more = limit and after + len(results) < len(progress.results)
    return BulkShown(
        id=found.id,
        action=found.did,
        state=found.state,
        by=found.by,
        made_at=shown.time(found.made_at),
        why=wish.why,
        says=of_bulk(found.did),
        looked=plan.looked,
        would=len(plan.items),
        refused=[
            BulkRefused(
                code=code, count=n, says=of_bulk(code), examples=plan.examples.get(code, [])
            )
            for code, n in sorted(plan.refused.items())
        ],
        person=plan.person,
        capped=plan.capped,
        done=progress.at,
        counts=counts,
        results=[BulkResult(operation=r.operation, outcome=r.outcome, why=r.why) for r in results],
        next=after + len(results) if more else None,
    )

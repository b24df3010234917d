"""Reviews over one namespace: what waits for whom, with the evidence, and a person's verbs.

Every verb that writes is durable when it returns, with its line of the audit in the same commit.
What is decided by it stands in `core.people`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from urllib.parse import quote

import msgspec
from msgspec.structs import replace

from ascertain.core import people
from ascertain.core.candidates import Candidate, Seen, candidates
from ascertain.core.consequences import Consequence, consequences
from ascertain.core.draft import Case
from ascertain.core.errors import UsageError
from ascertain.core.model import Change, Evidence, Record, Review, State, Status
from ascertain.core.people import Answer
from ascertain.core.reconcile import World, protected_until
from ascertain.store.base import PAGE

from .approving import decoded
from .audit import Who
from .deciding import Deciding, first_words
from .receipt import Receipt, receipt

LATELY = 24 * 3600 * 1_000_000  # µs since which a closed review is "just settled"
SETTLED = 100  # of those that are listed
LONGEST_NOTE = 4000  # characters
NEVER = 2**62


class Group(StrEnum):
    """With whom a review is, seen by one person; in the order in which they are listed."""

    YOURS = "yours"
    UNCLAIMED = "unclaimed"
    OTHERS = "others"
    SNOOZED = "snoozed"
    SETTLED = "settled"


ORDER = {group: place for place, group in enumerate(Group)}


class Manner(msgspec.Struct, frozen=True):
    """What a target's declaration says about its reviews: where a person sees a reference, and how
    soon (µs) one is to be taken and decided."""

    open: str = ""
    respond_within: int | None = None
    decide_within: int | None = None


class Item(msgspec.Struct, frozen=True, kw_only=True):
    """One review as it is listed. `until`: by when to decide, and why (protection, respond,
    decide); what is protected now may have to be done without protection after that."""

    review: Review
    action: str
    group: Group
    until: int | None = None
    until_why: str = ""


class Page(msgspec.Struct, frozen=True, kw_only=True):
    """A page of reviews, least time left first within each group. `counts` are of all open ones;
    `capped`: there are more than were sorted."""

    items: list[Item]
    counts: dict[str, int]
    total: int
    capped: bool
    next: str | None


class Whole(msgspec.Struct, frozen=True, kw_only=True):
    """One review with what a person needs to decide."""

    item: Item
    case: Case
    receipt: Receipt
    evidence: Sequence[Evidence]
    candidates: list[Candidate]
    decisions: list[Consequence]
    first_word: str  # by whom, of two people
    open: str  # template of a link into the target


class Timed(Review, frozen=True, kw_only=True):
    """An open review, with what says how much time is left."""

    action: str
    first_claim_at: int | None
    last_deadline: int | None


class DeskCounts(Record, frozen=True, kw_only=True):
    """Open reviews by whom they wait for."""

    reviews: int
    yours: int
    unclaimed: int
    snoozed: int
    oldest: int | None


class Waiting(Record, frozen=True, kw_only=True):
    """How many of something wait, and since when."""

    count: int
    oldest: int | None


class Reviewing:
    """The reviews of one namespace."""

    def __init__(self, desk: Deciding, manners: Mapping[str, Manner] | None = None) -> None:
        """Work on a ledger; `manners` by action."""
        self.desk, self.engine, self.manners = desk, desk.engine, manners or {}
        self.store, self.namespace = self.engine.store, self.engine.namespace

    # --- reading ---

    def find(
        self, me: str, *, group: str | None = None, owner: str | None = None,
        action: str | None = None, after: str = "", limit: int = 50,
    ) -> Page:  # fmt: skip
        """List the open reviews, and those just settled; at most PAGE open ones are sorted."""
        world = self.engine.world()
        opened = self.store.ask(
            Timed, "reviews_open_timed", namespace=self.namespace, limit=PAGE
        )  # fmt: skip
        items = [self._timed(one, me, world) for one in opened]
        settled = self._settled(me, world)
        counts = {g.value: 0 for g in Group}
        for item in (*items, *settled):
            counts[item.group] += 1
        wanted = [
            item
            for item in (*items, *settled)
            if group in (None, item.group)
            and owner in (None, item.review.owner, item.review.taken_by)
            and action in (None, item.action)
        ]
        placed = sorted((_place(item), item.review.id, item) for item in wanted)
        shown = [(f"{place}{ident}", item) for place, ident, item in placed]
        left = [(cursor, item) for cursor, item in shown if cursor > after]
        page = left[:limit]
        return Page(
            items=[item for _, item in page],
            counts=counts,
            total=len(wanted),
            capped=len(opened) >= PAGE,
            next=page[-1][0] if len(left) > limit else None,
        )

    def _settled(self, me: str, world: World) -> list[Item]:
        closed = self.store.ask(
            Review,
            "reviews_settled",
            namespace=self.namespace,
            since=world.now - LATELY,
            limit=SETTLED,
        )
        snapshots = self.store.snapshots(list(dict.fromkeys(r.operation for r in closed)))
        return [
            Item(review=r, action=snapshots[r.operation].operation.action, group=Group.SETTLED)
            for r in closed
            if r.operation in snapshots
        ]

    def _timed(self, review: Timed, me: str, world: World) -> Item:
        status = Status(
            operation=review.operation,
            namespace=review.namespace,
            action=review.action,
            state=State.UNKNOWN,
            first_claim_at=review.first_claim_at,
            last_deadline=review.last_deadline,
        )
        return self._item(review, status, me, world)

    def _item(self, review: Review, status: Status, me: str, world: World) -> Item:
        group = group_of(review, me, world.now)
        until, why = (None, "") if group is Group.SETTLED else self._until(review, status, world)
        return Item(
            review=review, action=status.action, group=group, until=until, until_why=why
        )  # fmt: skip

    def _until(self, review: Review, status: Status, world: World) -> tuple[int | None, str]:
        manner = self.manners.get(status.action, Manner())
        definition = self.engine.actions.get(status.action)
        times: list[tuple[int | None, str]] = []
        if definition is not None:
            times.append((protected_until(status, definition.terms, world), "protection"))
        if manner.respond_within is not None and not review.taken_by:
            times.append((review.opened_at + manner.respond_within, "respond"))
        if manner.decide_within is not None:
            times.append((review.opened_at + manner.decide_within, "decide"))
        known = [(at, why) for at, why in times if at is not None]
        return min(known, default=(None, ""))

    def review(self, ident: str) -> Review | None:
        """Return a review by its id, open or closed, or None."""
        found = self.store.ask(Review, "review_here", id=ident, namespace=self.namespace)
        return found[0] if found else None

    def whole(self, review: Review, me: str) -> Whole:
        """Return all about a review: evidence, candidates, and what each decision would do."""
        world = self.engine.world()
        case = self.desk.case_of(review.operation)
        operation, status = case.operation, case.status
        evidence = self.store.evidence(operation.id)
        words = first_words(self.store.approvals(operation.id), status)
        first = next((a.by for a in words if a.by != me), "")
        manner = self.manners.get(operation.action, Manner())
        seen = [Seen(e.at, e.kind, msgspec.json.decode(e.data)) for e in evidence]
        refs = [(r.reference, r.at) for r in self.store.references(operation.id)]
        return Whole(
            item=self._item(review, status, me, world),
            case=case,
            receipt=receipt(case, world),
            evidence=evidence,
            candidates=candidates(decoded(operation.input), seen, refs),
            decisions=[] if review.closed_at is not None else consequences(case, world, first),
            first_word=first,
            open=manner.open,
        )

    def counts(self, me: str) -> tuple[DeskCounts, Waiting, Waiting]:
        """Return what a title shows: open reviews, asks for approval, unknown operations."""
        here = {"namespace": self.namespace}
        now = self.store.now()
        reviews = self.store.ask(DeskCounts, "desk_reviews", me=me, now=now, **here)
        asks = self.store.ask(Waiting, "desk_approvals", **here)
        unknown = self.store.ask(Waiting, "counts_oldest_unknown", **here)
        return reviews[0], asks[0], unknown[0]

    # --- who looks into it ---

    def take(self, review: Review, *, who: Who, why: str = "") -> Review:
        """Take a review on; raises Conflict if somebody else has it, or it is closed."""
        return self._change(
            review, who, "review.take", why,
            lambda c: people.take(c, review.id, *self._now(), by=who.actor),
        )  # fmt: skip

    def hand_over(self, review: Review, to: str, *, who: Who, why: str = "") -> Review:
        """Give a review to a person; to nobody ("") gives it back to its owner, not taken."""
        return self._change(
            review, who, "review.hand_over", why,
            lambda c: people.hand_over(
                c, review.id, *self._now(), by=who.actor, to=to.strip(), why=why),
        )  # fmt: skip

    def snooze(self, review: Review, until: int | None, *, who: Who, why: str = "") -> Review:
        """Put a review off until a time in µs, or with None bring it back."""
        return self._change(
            review, who, "review.snooze", why,
            lambda c: people.snooze(
                c, review.id, *self._now(), by=who.actor, until=until, why=why),
        )  # fmt: skip

    def note(self, review: Review, text: str, *, who: Who) -> Review:
        """Keep a note beside the evidence, also of a closed review; it proves nothing."""
        if not text.strip() or len(text) > LONGEST_NOTE:
            raise UsageError(f"write a note of 1 to {LONGEST_NOTE} characters")
        return self._change(
            review, who, "review.note", text,
            lambda c: people.leave_note(c, *self._now(), by=who.actor, text=text),
        )  # fmt: skip

    def _now(self) -> tuple[World, int]:
        return self.engine.world(), self.engine.clock.token()

    def _change(
        self, review: Review, who: Who, did: str, why: str, make: Callable[[Case], Change | None]
    ) -> Review:
        """Write a change of a review; decided again where something newer came between."""
        after = [review]

        def decide(case: Case) -> Change:
            change = make(case)
            if change is None:
                raise _NothingToDoError
            before = next((r for r in case.reviews if r.id == review.id), review)
            after[0] = next((r for r in change.reviews if r.id == review.id), before)
            line = self.desk.log.line(
                who, self.namespace, did, subject=case.operation.id, reason=why,
                before=held_by(before), after=held_by(after[0]),
            )  # fmt: skip
            return replace(change, lines=(line,))

        case = self.desk.case_of(review.operation)
        if review.closed_at is not None and did != "review.note":
            raise self.desk.conflict(case)
        try:
            self.engine.write(case, decide)
        except _NothingToDoError:
            return self.review(review.id) or review
        return after[0]

    # --- deciding ---

    def decide(
        self, review: Review, answer: str | Answer, *, who: Who, why: str, seen: int,
        ref: str | None = None, accept_risk: bool = False, correct: bool = False,
    ) -> Receipt:  # fmt: skip
        """Decide what happened, on what was seen; see `Desk.decide`.

        A closed review is a Conflict that says who decided what, unless this is to `correct` it.
        """
        if not why.strip():
            raise UsageError("say on what ground: why='…'")
        if review.closed_at is not None and not correct:
            raise self.desk.conflict(self.desk.case_of(review.operation))
        return self.desk.decide(
            review.operation, answer, by=who.actor, ref=ref, why=why, accept_risk=accept_risk,
            seen=seen, who=who,
        )  # fmt: skip


class _NothingToDoError(Exception):
    """It is so already."""


def group_of(review: Review, me: str, now: int) -> Group:
    """Return with whom a review is, seen by one person."""
    if review.closed_at is not None:
        return Group.SETTLED
    if review.snoozed_until is not None and review.snoozed_until > now:
        return Group.SNOOZED
    if review.taken_by:
        return Group.YOURS if review.taken_by == me else Group.OTHERS
    return Group.YOURS if review.owner == me else Group.UNCLAIMED


def held_by(review: Review) -> str:
    """Return with whom a review is, for a line of the audit."""
    who = f"taken by {review.taken_by}" if review.taken_by else "not taken"
    return who if review.snoozed_until is None else f"{who}, put off until {review.snoozed_until}"


def link_of(template: str, ref: str) -> str:
    """Return the address of a reference in its target, or "" where none is declared."""
    return template.replace("{ref}", quote(ref, safe="")) if template and ref else ""


def _place(item: Item) -> str:
    """Return where a review stands in a list, as text that sorts so: a cursor names it."""
    order = ORDER[item.group]
    closed = item.review.closed_at
    at = NEVER - closed if closed is not None else item.until
    return f"{order}-{NEVER if at is None else max(at, 0):019d}-{item.review.opened_at:016d}-"

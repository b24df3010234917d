"""Bulk actions: planned first, then carried out in the background, in pages, with progress.

A plan says how many would do what, and which are refused and why; nothing is done by it. Only who
planned it runs it, soon. Each item is judged again when its turn comes, by the rules of
`core.people`; nothing is ever sent again in bulk. Safe in several processes; killed in the middle,
it goes on after its lease, and what was done is not done twice.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec
from msgspec.structs import replace

from ascertain.core import people
from ascertain.core.books import Bulk
from ascertain.core.draft import Case
from ascertain.core.errors import AscertainError, Conflict, Refused, StoreError, UsageError
from ascertain.core.keys import new_id
from ascertain.core.model import Review, WaitingOn
from ascertain.store.base import Filter, Posting

from .audit import LAST, Who
from .deciding import Deciding
from .ledger import Ledger
from .reviewing import Reviewing

MOST = 2000  # operations of one bulk action; the rest needs another
READ = 200  # operations read at once
PLAN_WITHIN = 5.0  # seconds; what was not looked at by then is not part of the plan
FRESH = 15 * 60 * 1_000_000  # µs in which a plan may be run
HOLD = 60_000_000  # µs that one worker has for a page
PAGE = 25  # items of a page
PAGE_WITHIN = 10.0  # seconds
DUE = 20  # bulk actions that are looked at for one to carry on
OUTCOMES = ("done", "refused", "changed", "stumbled")


class Wish(msgspec.Struct, frozen=True, kw_only=True):
    """What is to be done, to which operations: `ids`, or all that match `what`; by whom."""

    did: str
    ids: list[str] | None = None
    what: dict[str, Any] | None = None  # fields of Filter
    why: str = ""
    to: str = ""  # hand_over
    until: int | None = None  # snooze, µs
    who: Who


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """What would be done: each operation with the stamp that was seen; and which are refused."""

    items: list[tuple[str, int]] = []
    refused: dict[str, int] = {}  # how many, by the code of why
    examples: dict[str, list[str]] = {}  # a few of each
    person: int = 0  # of the refused, how many only a person can settle
    looked: int = 0
    capped: bool = False


class Result(msgspec.Struct, frozen=True, array_like=True):
    """What came of one item: done, refused, changed or stumbled, and the code or text of why."""

    operation: str
    outcome: str
    why: str = ""


class Progress(msgspec.Struct, frozen=True, kw_only=True):
    """How far a bulk action is: the place of the next item, and what came of those before."""

    at: int = 0
    results: list[Result] = []


def wish_of(bulk: Bulk) -> Wish:
    """Return what a stored bulk action wishes."""
    return msgspec.json.decode(bulk.what, type=Wish)


def plan_of(bulk: Bulk) -> Plan:
    """Return the plan of a stored bulk action."""
    return msgspec.json.decode(bulk.plan, type=Plan)


def progress_of(bulk: Bulk) -> Progress:
    """Return how far a stored bulk action is."""
    return msgspec.json.decode(bulk.progress, type=Progress)


class Bulks:
    """The bulk actions of one namespace."""

    def __init__(self, desk: Deciding) -> None:
        """Work on a ledger."""
        self.desk, self.engine, self.store = desk, desk.engine, desk.engine.store
        self.namespace = self.engine.namespace

    def plan(self, wish: Wish) -> Bulk:
        """Store what would be done, without doing any of it; durable when it returns."""
        _check(wish)
        plan = self._planned(wish)
        now = self.store.now()
        bulk = Bulk(
            id=new_id(now, self.engine.clock.id_bits()),
            namespace=self.namespace,
            made_at=now,
            by=wish.who.actor,
            did=wish.did,
            state="planned",
            what=msgspec.json.encode(wish).decode(),
            plan=msgspec.json.encode(plan).decode(),
            progress=msgspec.json.encode(Progress()).decode(),
        )
        line = self.desk.log.line(
            wish.who, self.namespace, "bulk.plan", subject=bulk.id, reason=wish.why,
            after=f"{wish.did}: {len(plan.items)} of {plan.looked}",
        )  # fmt: skip
        self.store.post([Posting((("bulk_add", bulk), line), must=(0,))])
        return bulk

    def get(self, ident: str) -> Bulk | None:
        """Return a bulk action by its id, or None."""
        found = self.store.ask(Bulk, "bulk_here", id=ident, namespace=self.namespace)
        return found[0] if found else None

    def find(self, before: str, limit: int) -> list[Bulk]:
        """List bulk actions, newest first, made before the one of that id ("": from the newest)."""
        return self.store.ask(
            Bulk, "bulk_page", namespace=self.namespace, before=before or LAST, limit=limit
        )

    def start(self, bulk: Bulk, who: Who) -> Bulk:
        """Have a plan carried out; raises Refused where it is not his, too old, or begun."""
        if bulk.by != who.actor:
            raise Refused(f"bulk action {bulk.id} was planned by {bulk.by}: plan one of your own")
        now = self.store.now()
        values = {"id": bulk.id, "namespace": self.namespace, "now": now, "oldest": now - FRESH}
        line = self.desk.log.line(
            who, self.namespace, "bulk.run", subject=bulk.id, reason=wish_of(bulk).why,
            before=bulk.state, after="running",
        )  # fmt: skip
        [posted] = self.store.post([Posting((("bulk_start", values), line), must=(0,))])
        after = self.get(bulk.id) or bulk
        if not posted.applied:
            old = bulk.state == "planned" and after.state == "planned"
            why = "its plan is older than 15 minutes: plan it again" if old else after.state
            raise Refused(f"bulk action {bulk.id} cannot be run: {why}")
        return after

    def cancel(self, bulk: Bulk, who: Who) -> Bulk:
        """Stop a bulk action before its next item; what was done stays done."""
        values = {"id": bulk.id, "namespace": self.namespace}
        line = self.desk.log.line(
            who, self.namespace, "bulk.cancel", subject=bulk.id, before=bulk.state,
            after="cancelled",
        )  # fmt: skip
        [posted] = self.store.post([Posting((("bulk_cancel", values), line), must=(0,))])
        after = self.get(bulk.id) or bulk
        if not posted.applied and after.state != "cancelled":
            raise Refused(f"bulk action {bulk.id} is {after.state}: there is nothing to stop")
        return after

    def _planned(self, wish: Wish) -> Plan:
        items: list[tuple[str, int]] = []
        refused: Counter[str] = Counter()
        examples: dict[str, list[str]] = {}
        person = looked = 0
        capped = False
        until = time.monotonic() + PLAN_WITHIN
        for ident, case in self._cases(wish):
            looked += 1
            why = "not_here" if case is None else people.bulk_refusal(case, wish.did)
            if case is not None and not why:
                items.append((ident, case.status.stamp))
            else:
                refused[why] += 1
                examples.setdefault(why, [])[5:] = []
                examples[why].append(ident)
                person += case is not None and case.status.waiting_on is WaitingOn.REVIEW
            if len(items) >= MOST or looked >= 10 * MOST or time.monotonic() > until:
                capped = True
                break
        return Plan(
            items=items, refused=dict(refused), examples={w: e[:5] for w, e in examples.items()},
            person=person, looked=looked, capped=capped,
        )  # fmt: skip

    def _cases(self, wish: Wish) -> Iterator[tuple[str, Case | None]]:
        """Go through the operations that are meant, some at a time."""
        if wish.ids is not None:
            ids = list(dict.fromkeys(wish.ids))
            for start in range(0, len(ids), READ):
                yield from self._read(ids[start : start + READ])
            return
        what, after = Filter(namespace=self.namespace, **(wish.what or {})), ""
        while page := self.engine.find(what, after, READ):
            yield from self._read([s.operation.id for s in page])
            after = page[-1].operation.id

    def _read(self, ids: Sequence[str]) -> Iterator[tuple[str, Case | None]]:
        found = self.store.snapshots(ids)
        for ident in ids:
            snapshot = found.get(ident)
            if snapshot is None or snapshot.operation.namespace != self.namespace:
                yield ident, None
            else:
                yield ident, self.engine.case(snapshot, self.desk.terms_of(snapshot))


def _check(wish: Wish) -> None:
    if wish.did not in people.BULK:
        raise UsageError(f"{wish.did!r} is never done in bulk: there are {', '.join(people.BULK)}")
    if (wish.ids is None) == (wish.what is None):
        raise UsageError("name the operations by ids, or by a filter: one of both")
    if wish.ids is not None and len(wish.ids) > MOST:
        raise UsageError(f"at most {MOST} operations at once")
    if wish.did in ("leave", "hand_over") and not wish.why.strip():
        raise UsageError(f"{wish.did}: give the reason, why='…'")
    if wish.did == "snooze" and wish.until is None:
        raise UsageError("snooze: say until when")


class BulkRunner:
    """Carries bulk actions of several namespaces on, a page at a time; `run` is a chore's."""

    def __init__(self, ledgers: Mapping[str, Ledger]) -> None:
        """Work on ledgers by namespace, on one store."""
        self._ledgers = ledgers

    def run(self) -> int:
        """Do a page of what is due; returns how many items it did."""
        for ledger in self._ledgers.values():
            store = ledger.store
            now = store.now()
            for bulk in store.ask(Bulk, "bulk_due", now=now, limit=DUE):
                own = self._ledgers.get(bulk.namespace)
                if own is None:
                    continue
                values = {"id": bulk.id, "was": bulk.due_at, "until": now + HOLD}
                [taken] = store.post([Posting((("bulk_take", values),), must=(0,))])
                if taken.applied:
                    return _Page(own, replace(bulk, due_at=now + HOLD)).run()
            return 0  # they share the store
        return 0


class _Page:
    """One page of one bulk action."""

    def __init__(self, ledger: Ledger, bulk: Bulk) -> None:
        self.ledger, self.bulk, self.store = ledger, bulk, ledger.store
        self.bulks, self.reviewing = Bulks(ledger), Reviewing(ledger)
        wish = wish_of(bulk)
        self.wish = wish
        self.who = replace(wish.who, via=f"bulk:{bulk.id} {wish.who.via}")
        self.why = f"{wish.why} (bulk {bulk.id})".strip()

    def run(self) -> int:
        """Do items until the page or its time is over, then write down how far it is."""
        items, before = plan_of(self.bulk).items, progress_of(self.bulk)
        results: list[Result] = []
        until = time.monotonic() + PAGE_WITHIN
        for ident, stamp in items[before.at : before.at + PAGE]:
            now = self.bulks.get(self.bulk.id)
            if now is None or now.state != "running" or time.monotonic() > until:
                break
            results.append(self._one(ident, stamp))
        at = before.at + len(results)
        self._write(Progress(at=at, results=[*before.results, *results]), over=at >= len(items))
        return max(len(results), 1)

    def _write(self, progress: Progress, *, over: bool) -> None:
        values = {
            "id": self.bulk.id, "held": self.bulk.due_at,
            "progress": msgspec.json.encode(progress).decode(),
            "state": "done" if over else "running", "due_at": None if over else self.store.now(),
        }  # fmt: skip
        lines: tuple[Any, ...] = (("bulk_progress", values),)
        if over:
            count = Counter(r.outcome for r in progress.results)
            told = ", ".join(f"{o} {count[o]}" for o in OUTCOMES if count[o])
            line = self.ledger.log.line(
                self.who, self.bulk.namespace, "bulk.end", subject=self.bulk.id, after=told
            )
            lines += (line,)
        # Where another worker has it by now, it does these items again: they are done once.
        self.store.post([Posting(lines, must=(0,))])

    def _one(self, ident: str, stamp: int) -> Result:
        """Do one item; what goes wrong with it stops no neighbour."""
        try:
            case = self.ledger.case_of(ident)
            why = people.bulk_refusal(case, self.wish.did)
            if why:
                done = self._was_done(case)
                return Result(ident, "done") if done else Result(ident, "refused", why)
            self._do(case, stamp)
        except StoreError:
            raise  # nothing can be done now; it goes on after the lease
        except Conflict as error:
            if self._was_done(self.ledger.case_of(ident)):
                return Result(ident, "done")
            return Result(ident, "changed", str(error)[:300])
        except AscertainError as error:
            return Result(ident, "stumbled", str(error)[:300])
        return Result(ident, "done")

    def _do(self, case: Case, stamp: int) -> None:
        ident, wish, who = case.operation.id, self.wish, self.who
        match wish.did:
            case "look_up":
                self.ledger.confirm(ident, wait=0)
                self.ledger.log.note(
                    who, self.bulk.namespace, "operation.confirm", subject=ident, reason=self.why
                )
            case "leave":
                self.ledger.decide(
                    ident, "leave", by=who.actor, why=self.why, seen=stamp, who=who
                )  # fmt: skip
            case "renew":
                self.ledger.renew(ident, by=who.actor, who=who)
            case _:
                for review in case.reviews:
                    self._review(review)

    def _review(self, review: Review) -> None:
        wish, who = self.wish, self.who
        match wish.did:
            case "take":
                self.reviewing.take(review, who=who, why=self.why)
            case "hand_over" if review.taken_by != wish.to or not wish.to:
                self.reviewing.hand_over(review, wish.to, who=who, why=self.why)
            case "snooze" if review.snoozed_until != wish.until:
                self.reviewing.snooze(review, wish.until, who=who, why=self.why)

    def _was_done(self, case: Case) -> bool:
        """Tell whether a page that was killed had done this already."""
        mark = f"(bulk {self.bulk.id})"
        said = self.store.evidence(case.operation.id)
        return any(e.by == self.who.actor and mark in e.data for e in said)

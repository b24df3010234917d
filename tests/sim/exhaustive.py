"""All interleavings of two workers over one operation, and the start of a successor, up to a
depth, of the real decision code; equal states are gone through once."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import msgspec

from ascertain.core import people
from ascertain.core.contract import Bounds, KeyRule, LateRule, LookupRule, RepeatRule, Terms
from ascertain.core.errors import Refused
from ascertain.core.machine import PROVEN
from ascertain.core.model import (
    SECOND,
    Absent,
    Attempt,
    Done,
    Kind,
    NotDone,
    NotDoneKind,
    Several,
    State,
    Unknown,
)
from ascertain.core.reconcile import Do, quiet_end
from core.driver import Ledger, contract, declared

LATE, LAG, KEEPS = 20, 30, 150
BOUNDS = Bounds(
    lease=10 * SECOND, attempts=3, lookups=3, first_delay=40 * SECOND, longest_delay=40 * SECOND,
    total=10_000 * SECOND, extensions=1,
)  # fmt: skip
ACTIONS = (Do.EXECUTE, Do.REPLAY, Do.REDO, Do.FORCE)
REQUEST = KeyRule(at="header:Idempotency-Key", kind="request")
RESOURCE = KeyRule(at="body:id", kind="resource")


@dataclass(frozen=True)
class Model:
    name: str
    protects: str = "nothing"
    at_once: bool = False
    looks: bool = False
    lag: int = 0
    late: int | None = LATE

    def terms(self) -> Terms:
        parts: dict[str, Any] = {}
        if self.late is not None:
            parts["late"] = LateRule(max=f"{self.late}s")
        if self.protects in ("remembers", "unique"):
            keeps = f"{KEEPS}s" if self.protects == "remembers" else "forever"
            answer = "replay" if self.protects == "remembers" else "exists"
            parts["key"] = REQUEST if self.protects == "remembers" else RESOURCE
            parts["repeat"] = RepeatRule(answer=answer, keeps=keeps, atomic=self.at_once or None)
        if self.looks:
            parts["lookup"] = LookupRule(by="id", lag=f"{self.lag}s")
        if self.protects == "repeatable":
            parts["harm"] = "none"
        made = contract("sim.all", **parts)
        return declared(made, bounds=BOUNDS, same_bytes=True, can_look_up=self.looks)


MODELS = (
    Model("repeatable", protects="repeatable"),
    Model("idempotent", protects="remembers", at_once=True),
    Model("idempotent, not atomic", protects="remembers"),
    Model("identified", protects="unique", at_once=True),
    Model("identified, not race-free", protects="unique", looks=True),
    Model("searchable", looks=True),
    Model("lagging", looks=True, lag=LAG),
    Model("opaque", late=None),
)


@dataclass(frozen=True)
class OnItsWay:
    token: int
    key: str
    latest: int
    state: str = "way"  # way, work, landed, absorbed, lost, refused


@dataclass
class Place:
    """One state of everything."""

    model: Model
    book: Ledger
    hands: tuple[tuple[Attempt, str] | None, ...] = (None, None)  # what each worker holds
    wires: tuple[OnItsWay, ...] = ()
    effects: tuple[tuple[int, str, str], ...] = ()  # when, key, reference
    followed: int | None = None  # when a successor was started
    path: tuple[str, ...] = field(default=(), compare=False)

    def fork(self, what: str) -> Place:
        book = copy.copy(self.book)
        for name in ("attempts", "reviews", "approvals"):
            setattr(book, name, dict(getattr(book, name)))
        book.references = list(book.references)
        book.evidence, book.others = [], []
        return replace(self, book=book, path=(*self.path, what))

    def identity(self) -> Any:
        order = {token: place for place, token in enumerate(self.book.attempts)}
        s = self.book.status
        status = msgspec.structs.replace(
            s, stamp=0, entries=0, updated_at=0, said="", token=order.get(s.token)
        )
        hands = [h and (order.get(h[0].token), h[1]) for h in self.hands]
        return (
            msgspec.structs.astuple(status),
            tuple((a.kind, a.deadline, a.outcome, a.epoch) for a in self.book.attempts.values()),
            tuple(self.book.open_reviews), tuple(sorted(hands, key=str)),
            tuple((order[w.token], w.key, w.latest, w.state) for w in self.wires),
            self.effects, self.followed, self.book.now,
        )  # fmt: skip

    # --- what may happen next ---

    def following(self) -> Iterator[Place]:
        yield from self._begin()
        for worker, hand in enumerate(self.hands):
            if hand is not None:
                yield from self._work(worker, *hand)
        for place in range(len(self.wires)):
            yield from self._travel(place)
        yield from self._pass_time()
        if self.followed is None:
            yield from self._follow()

    def _begin(self) -> Iterator[Place]:
        book, free = self.book, next((i for i, h in enumerate(self.hands) if h is None), None)
        due = book.status.due_at
        if due is None or due > book.now:
            return
        if book.status.token is not None:
            after = self.fork("the lease is over")
            after.book.expire()
            yield after
            return
        step = book.step
        if step.at > book.now or step.do not in (*ACTIONS, Do.LOOK_UP):
            if step.do is not Do.NOTHING:
                after = self.fork(f"advance {step.do}")
                after.book.advance()
                yield after
        elif free is not None:
            after = self.fork(f"worker {free} claims {step.do}")
            attempt = after.book.claim(step.do)
            after.hands = _put(after.hands, free, (attempt, "claimed"))
            yield after

    def _work(self, worker: int, attempt: Attempt, phase: str) -> Iterator[Place]:
        gone = self.fork(f"worker {worker} crashes")
        gone.hands = _put(gone.hands, worker, None)
        yield gone
        if attempt.kind is Kind.LOOK_UP:
            yield self._tells(worker, attempt, self._seen())
            yield self._tells(worker, attempt, Unknown("503"))
        elif phase == "claimed":
            if self.book.now < attempt.deadline:
                sent = self.fork(f"worker {worker} sends")
                late = 10**12 if self.model.late is None else self.model.late * SECOND
                key = self.book.status.target_key
                wire = OnItsWay(attempt.token, key, attempt.deadline + late)
                sent.wires = (*sent.wires, wire)
                sent.hands = _put(sent.hands, worker, (attempt, "sent"))
                yield sent
            yield self._tells(worker, attempt, NotDone(NotDoneKind.TRANSIENT, "not sent"))
        else:
            wire = next(w for w in self.wires if w.token == attempt.token)
            late = 10**12 if self.model.late is None else self.model.late * SECOND
            if wire.state == "lost" or wire.latest <= self.book.now + late:
                yield self._tells(worker, attempt, Unknown("timeout"))
            if wire.state in ("landed", "absorbed"):
                ref = next((r for _, k, r in reversed(self.effects) if k == wire.key), None)
                yield self._tells(worker, attempt, Done(ref) if ref else Unknown("busy"))
            if wire.state == "refused":
                yield self._tells(worker, attempt, NotDone(NotDoneKind.THROTTLED, "429"))

    def _seen(self) -> Any:
        behind = self.model.lag * SECOND
        refs = [r for at, _, r in self.effects if at + behind <= self.book.now]
        return Several(refs) if len(refs) > 1 else Done(refs[0]) if refs else Absent()

    def _tells(self, worker: int, attempt: Attempt, finding: Any) -> Place:
        after = self.fork(f"worker {worker} reports {type(finding).__name__}")
        after.hands = _put(after.hands, worker, None)
        if attempt.kind is Kind.LOOK_UP:
            after.book.looked(attempt, finding)
        else:
            after.book.report(attempt, finding)
        return after

    def _travel(self, place: int) -> Iterator[Place]:
        wire = self.wires[place]
        if wire.state == "way":
            for fate in ("lost", "refused"):
                after = self.fork(f"the request is {fate}")
                after.wires = _put(after.wires, place, replace(wire, state=fate))
                yield after
            after = self.fork("the request arrives")
            known = self._known(wire) or (self.model.at_once and self._working(wire))
            state = "absorbed" if known else "work"
            after.wires = _put(after.wires, place, replace(wire, state=state))
            yield after
        elif wire.state == "work":
            after = self.fork("it takes effect")
            after.wires = _put(after.wires, place, replace(wire, state="landed"))
            ref = f"ref-{len(self.effects) + 1}"
            after.effects = (*self.effects, (self.book.now, wire.key, ref))
            yield after

    def _known(self, wire: OnItsWay) -> bool:
        if self.model.protects not in ("remembers", "unique"):
            return False
        first = [at for at, key, _ in self.effects if key == wire.key]
        keeps = KEEPS * SECOND if self.model.protects == "remembers" else 10**15
        return bool(first) and self.book.now < first[0] + keeps

    def _working(self, wire: OnItsWay) -> bool:
        return any(w.key == wire.key and w.state == "work" for w in self.wires)

    def _pass_time(self) -> Iterator[Place]:
        now, status = self.book.now, self.book.status
        moments = [status.due_at, quiet_end(status, self.book.terms, self.book.world)]
        moments += [w.latest for w in self.wires if w.state in ("way", "work")]
        coming = [m + (m != status.due_at) for m in moments if m is not None and m >= now]
        coming = [m for m in coming if m > now]
        if not coming:
            return
        to = min(coming)
        if any(w.latest < to for w in self.wires if w.state in ("way", "work")):
            return  # what is on its way must land first, by the assumption
        after = self.fork(f"time passes to {to / SECOND - 1000:.0f}")
        after.book.now = to
        yield after

    def _follow(self) -> Iterator[Place]:
        book = self.book
        if people.blocks(book.case, book.world, overwrites=False):
            return
        after = self.fork("a successor starts")
        after.followed = book.now
        if book.status.state in (State.PENDING, State.NOT_DONE):
            try:
                change = people.supersede(
                    after.book.case, book.world, after.book.stamp(), successor="op-2"
                )  # fmt: skip
            except Refused:
                return
            after.book.apply(change)
        yield after

    # --- what must hold ---

    def wrong(self) -> str:
        status, model = self.book.status, self.model
        if len(self.effects) > 1 and model.protects != "repeatable":
            return "duplicated"
        claims = status.state is State.PENDING or status.reason in PROVEN
        if claims and self.effects and model.protects != "repeatable":
            return "wrong_failed"
        if status.state is State.DONE and not self.effects:
            return "wrong_done"
        late = self.followed is not None and any(at > self.followed for at, _, _ in self.effects)
        if late and model.protects != "repeatable" and self.book.status.state is not State.DONE:
            return "law 10"
        return ""


def _put(values: tuple[Any, ...], place: int, value: Any) -> tuple[Any, ...]:
    return (*values[:place], value, *values[place + 1 :])


def explore(model: Model, depth: int, most: int) -> tuple[int, list[tuple[str, tuple[str, ...]]]]:
    """Go through every state up to a depth, breadth first; returns how many, and what is wrong."""
    start = Place(model, Ledger(model.terms()).submit())
    seen, frontier, found = {start.identity()}, [start], []
    for _ in range(depth):
        coming = []
        for place in frontier:
            for after in place.following():
                identity = after.identity()
                if identity in seen:
                    continue
                seen.add(identity)
                what = after.wrong()
                if what:
                    found.append((what, after.path))
                else:
                    coming.append(after)
                if len(seen) >= most:
                    return len(seen), found
        frontier = coming
    return len(seen), found


def everything(depth: int = 12, most: int = 40_000) -> dict[str, tuple[int, list[Any]]]:
    return {model.name: explore(model, depth, most) for model in MODELS}

"""Judges from the outside: what happened at the targets, what was asked for, what was said.

It imports nothing from the package, and knows its own laws: which sends had a ground is worked
out here from what the targets promise and from what was told, never asked of the ledger.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field

NEVER = 2**62
OPEN = ("running", "unknown", "accepted")
PROVEN = ("invalid", "unauthorized", "rejected", "gave_up", "superseded")
PEOPLE = ("review", "approval", "input", "authorization")


@dataclass
class Promise:
    """What a target promises about repetition and look-up; times in µs."""

    protects: str = "nothing"  # nothing, remembers, unique, repeatable
    at_once: bool = False  # overlapping requests make one effect
    keeps: int = NEVER
    late: int | None = None
    lag: int | None = None
    margin: int = 0  # clocks may differ by that much
    attempts: int = NEVER


@dataclass
class Send:
    """One effect request as it left a worker; `at` is when it was decided that it may."""

    at: int
    token: int
    name: str  # the business name of the operation: action and key
    key: str  # the target key
    text: str  # the request, the places of the target key left out
    latest: int  # by the assumptions it has landed by then, or never will
    durable: bool = True  # its attempt was in the store
    in_time: bool = True  # the deadline was checked, and lay ahead
    lands: int | None = None  # when it took effect
    refused: int | None = None  # when the ledger was told by its sender that it did nothing


@dataclass
class Effect:
    at: int
    ref: str
    name: str
    key: str
    send: Send | None


@dataclass
class Look:
    """A look-up that was answered, every page of every key, with nothing found."""

    began: int
    ended: int
    name: str


@dataclass
class Said:
    """What the ledger said about an operation, durably."""

    at: int
    name: str
    state: str
    reason: str
    waiting_on: str
    due: bool
    token: int | None
    kind: str
    review: bool  # a review of it is open
    took: str = ""  # this write took a lease of that kind
    leases_end: int = 0  # when, on the real clock, the lease ends


@dataclass
class Final:
    """What the ledger says of an operation at the end."""

    name: str
    state: str
    reason: str
    waiting_on: str
    due: bool
    ref: str | None
    refs: list[str]
    reviews: list[str]  # roads of reviews that are or were open
    settled: bool
    said: str = ""
    older: str = ""
    undoes: str = ""


@dataclass
class Story:
    """Everything that an outsider saw."""

    promises: dict[str, Promise] = field(default_factory=dict)  # by name
    submitted: dict[str, int] = field(default_factory=dict)  # acknowledged, when
    sends: list[Send] = field(default_factory=list)
    effects: list[Effect] = field(default_factory=list)
    looks: list[Look] = field(default_factory=list)
    said: list[Said] = field(default_factory=list)
    told: list[tuple[int, str, str]] = field(default_factory=list)  # when, name, reference
    final: dict[str, Final] = field(default_factory=dict)
    approved: dict[str, list[tuple[int, str]]] = field(default_factory=dict)  # when, text
    people: list[tuple[int, str, str]] = field(default_factory=list)  # when, name, answer
    broken: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))  # by name
    merged: list[str] = field(default_factory=list)  # another input under a key was taken
    alone: bool = False  # it has to end without a person
    endless: bool = False
    restores: list[int] = field(default_factory=list)
    refused: dict[str, int] = field(default_factory=dict)  # when it was last told why not


@dataclass(frozen=True)
class Verdict:
    what: str  # duplicated, lost, wrong_done, … or "law 5"
    name: str
    more: str = ""


def judge(story: Story) -> list[Verdict]:
    """Return everything that is wrong, and what is excused as `found_after_broken_assumption`."""
    found: list[Verdict] = []
    for check in CHECKS:
        found += check(story)
    return list(dict.fromkeys(found))


def _by_name(story: Story, rows: str) -> dict[str, list]:
    found = defaultdict(list)
    for row in getattr(story, rows):
        found[row.name].append(row)
    return found


# --- effects ---


def _duplicates(story: Story) -> Iterator[Verdict]:
    for name, effects in _by_name(story, "effects").items():
        refs = list(dict.fromkeys(e.ref for e in effects))
        if len(refs) < 2 or story.promises[name].protects == "repeatable":
            continue
        if not story.broken[name]:
            yield Verdict("duplicated", name, " ".join(refs))
        elif _shown(story, name, refs):
            yield Verdict("found_after_broken_assumption", name, " ".join(refs))
        else:
            yield Verdict("hidden_duplicate", name, " ".join(refs))


def _shown(story: Story, name: str, refs: list[str]) -> bool:
    """Tell whether every reference that somebody told the ledger is kept, beside a review."""
    final = story.final.get(name)
    after = max(story.restores, default=-1)
    told = {ref for at, n, ref in story.told if n == name and at > after and ref in refs}
    if len(told) < 2:
        return True  # no evidence came
    return final is not None and told <= set(final.refs) and bool(final.reviews)


def _wrong(story: Story) -> Iterator[Verdict]:
    effects = _by_name(story, "effects")
    for name, final in story.final.items():
        happened = effects.get(name, [])
        refs = {e.ref for e in happened}
        excused = bool(story.broken[name])
        if final.state == "done" and final.ref not in refs and not excused:
            yield Verdict("wrong_done", name, f"{final.ref} of {sorted(refs)}")
        stopped = final.state == "not_done" and final.reason in PROVEN
        if stopped and happened and not excused:
            yield Verdict("wrong_failed", name, f"not_done/{final.reason}")
        elif stopped and happened and not _shown_late(story, final):
            yield Verdict("hidden_effect", name, final.reason)


def _shown_late(story: Story, final: Final) -> bool:
    after = max(story.restores, default=-1)
    told = [1 for at, n, _ in story.told if n == final.name and at > after]
    return not told or bool(final.reviews)


def _kept(story: Story) -> Iterator[Verdict]:
    """What the ledger was told of an effect that is there stays with its operation (law 8)."""
    there = {(e.name, e.ref) for e in story.effects}
    after = max(story.restores, default=-1)
    for at, name, ref in story.told:
        final = story.final.get(name)
        if at > after and (name, ref) in there and final is not None and ref not in final.refs:
            yield Verdict("law 8", name, f"{ref} was told and is not kept")


def _said_not_done(story: Story) -> Iterator[Verdict]:
    """It was called not executed while it had happened, or when it still did later."""
    effects = _by_name(story, "effects")
    for row in story.said:
        if story.broken[row.name] or row.name not in effects:
            continue
        claims = row.state == "pending" or (row.state == "not_done" and row.reason in PROVEN)
        if claims and any(e.at <= row.at for e in effects[row.name]):
            yield Verdict("wrong_failed", row.name, f"{row.state} at {row.at}")


def _unfinished(story: Story) -> Iterator[Verdict]:
    if story.endless:
        yield Verdict("stuck", "", "it does not come to an end")
    for name in story.submitted:
        final = story.final.get(name)
        if final is None and -1 < max(story.restores, default=-1) <= story.refused.get(name, -1):
            continue  # lost with the store, and whoever asked for it again was told why not
        if final is None:
            yield Verdict("lost", name, "the ledger knows nothing of it")
            continue
        asked = final.waiting_on in PEOPLE and (
            final.waiting_on != "review" or bool(final.reviews)
        )  # fmt: skip
        if final.said == "waits_override":  # a person left the version before
            asked = True
        if not final.settled and not asked:
            what = "lost" if final.state == "pending" and not final.due else "stuck"
            yield Verdict(what, name, f"{final.state}, waits on {final.waiting_on or 'nobody'}")
        if not story.alone:
            continue
        closed = final.state == "done" or final.reason == "superseded"
        if not closed or final.reviews:
            more = f"{final.state}/{final.reason}, waits on {final.waiting_on}, {final.reviews}"
            yield Verdict("needed_person", name, more)


# --- sends ---


def _blind(story: Story) -> Iterator[Verdict]:
    """A repeat without a ground, whether or not it did harm (laws 4, 5, 6, 7, 21)."""
    for name, sends in _by_name(story, "sends").items():
        promise = story.promises[name]
        if promise.protects == "repeatable":
            continue
        rows = sorted(sends, key=lambda s: s.at)
        for place, send in enumerate(rows):
            for before in rows[:place]:
                if before.token != send.token and not _grounded(story, promise, before, send):
                    more = f"sent at {before.at}, and again at {send.at}"
                    yield Verdict("blind_resend", name, more)


def _grounded(story: Story, promise: Promise, before: Send, send: Send) -> bool:
    if before.refused is not None and before.refused <= send.at:
        return True
    if before.key == send.key and _protected(story, promise, before, send):
        return True
    if story.restores and _protected_key(story, promise, send):
        return True  # whatever was forgotten went under another key, after this one was dead
    seen = before.latest + (promise.lag or 0)
    if before.latest < NEVER and any(
        n.name == send.name and n.began > seen and n.ended <= send.at for n in story.looks
    ):
        return True
    decided = [at for at, n, answer in story.people if n == send.name and answer == "not_there"]
    return any(before.at <= at <= send.at for at in decided)


def _protected(story: Story, promise: Promise, before: Send, send: Send) -> bool:
    if promise.protects == "nothing":
        return False
    if promise.protects == "remembers":
        first = min(s.at for s in story.sends if s.name == send.name and s.key == send.key)
        if send.latest >= first + promise.keeps:
            return False
    return promise.at_once or send.at > before.latest


def _protected_key(story: Story, promise: Promise, send: Send) -> bool:
    earlier = [
        s for s in story.sends if s.name == send.name and s.key == send.key and s is not send
    ]
    return any(s.at < send.at and _protected(story, promise, s, send) for s in earlier)


def _laws(story: Story) -> Iterator[Verdict]:
    sends = _by_name(story, "sends")
    for name, rows in sends.items():
        tokens = [s.token for s in rows]
        for send in rows:
            if not send.durable:
                yield Verdict("law 1", name, "sent before its attempt was in the store")
            if not send.in_time:
                yield Verdict("law 5", name, f"sent past its deadline at {send.at}")
        if len(tokens) != len(set(tokens)):
            yield Verdict("law 17", name, "two effect requests in one attempt")
        texts = {s.text for s in rows}
        if len(texts) > 1:
            yield Verdict("law 11", name, "a replay was not the same request")
        for send in rows if name in story.approved else ():
            if not any(at <= send.at and text == send.text for at, text in story.approved[name]):
                yield Verdict("sent_not_approved", name, send.text)
        people = len([1 for _, n, _ in story.people if n == name])
        if len(rows) > story.promises[name].attempts + people and not story.restores:
            yield Verdict("law 15", name, f"{len(rows)} requests")
    for name in story.merged:
        yield Verdict("law 9", name, "another input under the same key was taken")


def _what_was_said(story: Story) -> Iterator[Verdict]:
    last: dict[str, Said] = {}
    restores = sorted(story.restores)
    for row in story.said:
        before = last.get(row.name)
        last[row.name] = row
        if row.state == "unknown" and not row.due and not row.review:
            yield Verdict("law 4", row.name, f"unknown at {row.at}, and nobody is next")
        if row.took and before is not None and not _between(restores, before.at, row.at):
            if before.token is not None and before.token != row.token:
                yield Verdict("law 2", row.name, f"two leases at {row.at}")
            if row.took == "look_up" and before.state != row.state:
                yield Verdict("law 14", row.name, f"a look-up changed {before.state}")
            if row.took == "execute" and before.state == "unknown":
                decided = [a for at, n, a in story.people if n == row.name]
                if story.promises[row.name].protects != "repeatable" and not decided:
                    yield Verdict("law 4", row.name, f"executed while unknown at {row.at}")


def _between(moments: list[int], start: int, end: int) -> bool:
    return any(start <= moment <= end for moment in moments)


def _versions(story: Story) -> Iterator[Verdict]:
    """A successor, or what undoes, must not be sent while the one before may still act."""
    for name, final in story.final.items():
        older = final.older or final.undoes
        first = next((s.at for s in story.sends if s.name == name), None)
        if not older or first is None or story.broken[older]:
            continue
        if story.promises[older].protects == "repeatable":
            continue
        law = "law 10" if final.older else "law 18"
        if story.restores:
            continue
        said = [row for row in story.said if row.name == older and row.at <= first]
        if final.older and said and said[-1].state in OPEN:
            yield Verdict(law, name, f"sent while {older} was {said[-1].state}")
        if any(e.name == older and e.at > first for e in story.effects):
            yield Verdict(law, name, f"{older} took effect after it")


CHECKS = (
    _duplicates,
    _wrong,
    _kept,
    _said_not_done,
    _unfinished,
    _blind,
    _laws,
    _what_was_said,
    _versions,
)

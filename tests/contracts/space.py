"""All terms that the shipped contracts can lead to, and the situations they are asked about."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from functools import cache
from typing import Any

from msgspec.structs import replace

from ascertain.contracts import catalogue
from ascertain.core.contract import Bounds, Contract, Terms, terms
from ascertain.core.errors import ContractInvalid
from ascertain.core.levels import acceptable, accepted
from ascertain.core.model import Attempt, Kind, Outcome
from contracts.forbidden import DAY, Facts, Now, Sent

SECOND = 1_000_000
START = 1_000 * DAY  # the first claim
BOUNDS = Bounds(total=60 * DAY)  # longer than any shipped window that ends, so that those do
LEASE_END = START + BOUNDS.lease

# What an action may declare beside the contract. 13 h is too long for a window of 12 h or less.
DECLARED = {
    "late": (None, "30s", "13h"),
    "lag": (None, "2m"),  # some contracts state none at all: 0s
    "keeps": (None, "24h"),
    "can_look_up": (False, True),
    "same_bytes": (False, True),
    "hard": (False, True),
    "may_repeat": (False, True),
    "trust_assumed_absence": (False, True),
    "unseen": (False, True),  # whether what the look-up is blind to is accepted
}


def outbound() -> list[Contract]:
    """The shipped contracts that describe an effect."""
    found = catalogue.shipped().values()
    return [c for c in found if c.inbound is None or not c.inbound.only]


def all_terms() -> Iterator[Terms]:
    """The product: each contract as it counts, and with everything accepted, and all that an
    action may declare."""
    for contract in outbound():
        for names in ((), acceptable(contract)):
            counts = accepted(contract, names)
            for chosen in itertools.product(*DECLARED.values()):
                given: dict[str, Any] = dict(zip(DECLARED, chosen, strict=True))
                if given["keeps"] and counts.repeat.keeps:
                    continue  # a stated window may only be shortened: it changes no decision
                blind = counts.lookup.blind if counts.lookup else ()
                given["unseen"] = blind if given["unseen"] else ()
                try:
                    yield terms(counts, **given, bounds=BOUNDS, owners={"": "anna"}, scope="acme")
                except ContractInvalid:  # a window for a contract that has none
                    continue


def facts(t: Terms) -> Facts:
    """The terms as plain values; nothing is asked of the code that is judged."""
    c = t.contract
    weak = {*c.memory, *c.second}
    named = bool({"repeat.answer", "repeat", "key", "key.kind"} & set(c.memory))
    return Facts(
        kind=c.key.kind,
        answer="again" if named else c.repeat.answer,
        at_once=bool(c.repeat.atomic) and not {"repeat.atomic", "repeat"} & weak,
        keeps=t.keeps,
        lag=t.lag,
        late=t.late,
        looks=t.can_look_up,
        same_bytes=t.same_bytes,
        bounded=t.hard,
        harmless=c.harm == "none" or (c.harm == "cost_only" and t.may_repeat),
        blind=bool(c.lookup and set(c.lookup.blind) - set(t.unseen)),
        undoable=c.undo != "none" or c.harm != "outside",
        guessed=bool({"lag", "late"} & set(t.assumed)),
        trusted=t.trust_assumed_absence,
        sending=t.bounds.lease,
        longest=t.bounds.lease * (1 + t.bounds.extensions),
        total=t.bounds.total,
        attempts=t.bounds.attempts,
        lookups=t.bounds.lookups,
        skew=t.bounds.skew,
    )


def stepping(f: Facts) -> tuple[Any, ...]:
    """All that the next step may depend on; two terms alike in it need asking once."""
    return (
        f.kind, f.answer, f.at_once, f.keeps, f.lag, f.late, f.looks, f.same_bytes, f.harmless,
        f.bounded,
    )  # fmt: skip


def searching(f: Facts) -> tuple[Any, ...]:
    """All that the worth of an absence may depend on."""
    return (f.lag, f.late, f.blind, f.undoable, f.guessed, f.trusted)


@cache
def distinct() -> tuple[int, tuple[tuple[Facts, Terms], ...], tuple[tuple[Facts, Terms], ...]]:
    """How many terms there are, and one of each kind for the step and for the absence."""
    steps: dict[tuple[Any, ...], tuple[Facts, Terms]] = {}
    looks: dict[tuple[Any, ...], tuple[Facts, Terms]] = {}
    count = 0
    for t in all_terms():
        count += 1
        f = facts(t)
        steps.setdefault(stepping(f), (f, t))
        if f.looks:
            looks.setdefault(searching(f), (f, t))
    return count, tuple(steps.values()), tuple(looks.values())


# --- situations ----------------------------------------------------------------------------

HISTORIES: dict[str, list[Sent]] = {
    "one lost": [Sent()],
    "two lost": [Sent(outcome="unknown"), Sent()],
    "a refused one before": [Sent(outcome="not_done"), Sent()],
    "sent elsewhere": [Sent(here=False)],
    "refused elsewhere before": [Sent(outcome="not_done", here=False), Sent()],
    "code of its own": [Sent(bounded=False)],
    "refused code of its own before": [Sent(outcome="not_done", bounded=False), Sent()],
    "an older key elsewhere": [Sent(here=False), Sent(epoch=2)],
    "an older key": [Sent(outcome="unknown"), Sent(epoch=2)],
    "taken over before": [Sent(outcome="accepted"), Sent()],
}


@cache
def attempts(name: str, looked: int | None = None) -> tuple[Attempt, ...]:
    """A history as the attempts of the ledger."""
    made = [
        Attempt(
            token=n, operation="o", kind=Kind.EXECUTE, epoch=a.epoch, started_at=START,
            deadline=LEASE_END, hard=a.bounded, scope="acme" if a.here else "other",
            outcome=Outcome(a.outcome), ended_at=LEASE_END,
        )
        for n, a in enumerate(HISTORIES[name], 1)
    ]  # fmt: skip
    if looked is not None:
        made.append(
            Attempt(
                token=99, operation="o", kind=Kind.LOOK_UP, epoch=1, started_at=looked,
                deadline=looked + SECOND, scope="acme", outcome=Outcome.LOOKED, ended_at=looked + 1,
            )
        )  # fmt: skip
    return tuple(made)


def moments(f: Facts) -> list[int]:
    """The times at which something changes, and just before and after."""
    found = {LEASE_END + 1, START + f.total - 1, START + f.total}
    settled, end = f.settled(LEASE_END, None), f.forgets(START)
    if settled is not None:
        found |= {settled, settled + 1, settled + 3}
    if end is not None and end < START + f.total:
        found |= {end - 1, end}
        if f.late is not None:
            last = end - f.late - f.sending
            found |= {last - 1, last}
    return sorted(m for m in found if LEASE_END < m <= START + f.total)


def situations(f: Facts, t: Terms) -> Iterator[tuple[Now, str, int]]:
    """Every situation of an unknown operation: facts, its history, and the back-off."""
    for number, (now, name) in enumerate(itertools.product(moments(f), HISTORIES)):
        sent, epoch = HISTORIES[name], max(a.epoch for a in HISTORIES[name])
        settled = f.settled(LEASE_END, None)
        looks = [None, LEASE_END + 1 if now > LEASE_END + 1 else None]
        looks.append(now - 1 if settled is not None and now - 1 > settled else None)
        bare = {"now": now, "first": START, "last": LEASE_END, "started": START, "sent": sent}
        for stepped in (None, START - 1, now - 1):
            for looked in dict.fromkeys(looks):
                for most_looks, most_tries in ((False, False), (True, False), (False, True)):
                    lookups = t.bounds.lookups if most_looks else int(looked is not None)
                    tries = t.bounds.attempts if most_tries else len(sent)
                    made = Now(
                        **bare, epoch=epoch, stepped=stepped, looked=looked, attempts=tries,
                        lookups=lookups,
                    )  # fmt: skip
                    yield made, name, 30 * SECOND * (number % 2)
        for waiting, forced in (("review", False), ("approval", False), ("clock", True)):
            made = Now(**bare, epoch=epoch, waiting=waiting, forced=forced)
            yield made, name, 0


def without_texts(t: Terms) -> Terms:
    """The same terms without anything that only a reader reads: it must decide the same."""
    bare = replace(t.contract, id="a.b", title="", note="", sources=(), sdk="", date="")
    return replace(t, contract=bare)

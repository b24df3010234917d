"""What a contract permits after an unknown outcome, why, and what would make it better. Pure.

Nothing here has rules of its own: a situation is made up, and the rule of `reconcile` is asked.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import msgspec
from msgspec.structs import replace

from .contract import (
    Bounds,
    Class,
    Contract,
    KeyRule,
    RepeatRule,
    Terms,
    identity,
    protection,
    race_free,
    remembered,
    repeatable,
    terms,
    window_end,
)
from .levels import RESTRICTIONS, Level, acceptable, accepted, doubts_success, level, stated
from .model import FOREVER, SECOND, Absent, Attempt, Kind, Outcome, State, Status
from .reconcile import Do, LookReport, World, absence_counts, next_step, protection_now, quiet_end

GUESS = "60s"  # stands for any lateness, lag or window that somebody declares
_START = 400 * 86400 * SECOND  # the first attempt's claim; any time after zero
_BOUNDS = Bounds(total=FOREVER // 4, lookups=1000)  # the contract speaks, not the action's bounds


class Moment(msgspec.Struct, frozen=True, kw_only=True):
    """What is permitted so long (µs) after the first attempt, as codes of advice_words:
    `permitted`, then `why`, and `absence`: why not finding it proves nothing."""

    at: int
    protection: Class
    permitted: str
    why: str
    absence: str = ""


class Better(msgspec.Struct, frozen=True, kw_only=True):
    """What would permit more, as a code, with the class and what is permitted then."""

    code: str
    value: str = ""
    protection: Class | None = None
    permitted: str = ""


class Offer(msgspec.Struct, frozen=True, kw_only=True):
    """A claim that counts only if the operator accepts it, and the classes then."""

    path: str
    value: Any
    level: Level
    now: Class
    after: Class


class Advice(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that `contract explain` says about one operation."""

    terms: Terms
    now: Moment
    later: Moment | None
    needs: tuple[str, ...]
    better: tuple[Better, ...]
    offers: tuple[Offer, ...]
    all_accepted: Offer | None


def terms_of(c: Contract, **declared: Any) -> Terms:
    """Return the terms of an action that does all that the contract makes possible: it freezes
    its request, and has the look-up that is documented."""
    can = c.lookup is not None and bool(c.lookup.call)
    known: dict[str, Any] = {"bounds": _BOUNDS, "can_look_up": can, "same_bytes": True}
    return terms(c, **{**known, "owners": {"": "the owner"}, **declared})


def classes(c: Contract) -> tuple[Class, Class]:
    """Return the class inside the window, what it needs being declared, and after it."""
    t = terms_of(c)
    end = window_end(t, 0)
    return protection(t, in_window=end is not None), protection(t, in_window=end == FOREVER)


def needs(c: Contract) -> tuple[str, ...]:
    """Name what an action must declare because the contract does not state it: `late`, `lag`."""
    t = terms_of(c)
    overlaps = identity(t) and not race_free(t)
    if protection(t, in_window=window_end(t, 0) == FOREVER) is Class.IDENTIFIED:
        return ()
    missing = []
    if t.late is None and not repeatable(t) and (t.can_look_up or remembered(t) or overlaps):
        missing.append("late")
    if t.lag is None and t.can_look_up and not repeatable(t):
        missing.append("lag")
    return tuple(missing)


def advise(
    contract: Contract, *, accept: Iterable[str] = (), after: int | None = None, **declared: Any
) -> Advice:
    """Say what a contract permits once the first attempt's outcome is unknown, and `after` so
    many µs; without it, once the window is over.

    `declared` is what the action declares: `lag`, `late`, `keeps`, `trust_assumed_absence` ….
    Raises ContractInvalid for a name that cannot be accepted.
    """
    counts = accepted(contract, accept)
    t = terms_of(counts, **declared)
    moment = after
    if moment is None:
        end = window_end(t, 0)
        moment = None if end in (None, FOREVER) else end
    whole = acceptable(contract)
    return Advice(
        terms=t,
        now=_moment(t, t.bounds.lease + SECOND),
        later=None if moment is None else _moment(t, max(moment, t.bounds.lease + SECOND)),
        needs=needs(counts),
        better=tuple(_better(counts, declared)),
        offers=tuple(_offers(contract, counts)),
        all_accepted=_offer(contract, whole, "") if whole else None,
    )


def moments(t: Terms) -> tuple[Moment, Moment | None]:
    """Return what an action's terms permit right after a lost answer, and once the window is over,
    if there is one."""
    end, least = window_end(t, 0), t.bounds.lease + SECOND
    later = None if end in (None, FOREVER) else max(end or 0, least)
    return _moment(t, least), None if later is None else _moment(t, later)


# --- one moment ----------------------------------------------------------------------------


def _lost(t: Terms) -> tuple[Status, Attempt]:
    """Make up an operation whose only attempt never reported."""
    end = _START + t.bounds.lease
    attempt = Attempt(
        token=1, operation="o", kind=Kind.EXECUTE, epoch=1, started_at=_START, deadline=end,
        scope=t.scope, outcome=Outcome.EXPIRED,
    )  # fmt: skip
    status = Status(
        operation="o", namespace="n", action="a", state=State.UNKNOWN, attempts=1, target_key="k",
        first_claim_at=_START, last_deadline=end, started_at=_START,
    )  # fmt: skip
    return status, attempt


def _moment(t: Terms, at: int) -> Moment:
    status, attempt = _lost(t)
    world = World(now=_START + at)
    step = next_step(status, t, [attempt], world)
    kind, absence = protection_now(status, t, world), ""
    match step.do:
        case Do.REDO:
            permitted = "redo"
        case Do.REPLAY:
            permitted = step.said
        case Do.LOOK_UP:
            permitted, absence = _after_looking(t, status, attempt, world)
        case _:
            permitted = "person"
    return Moment(
        at=at, protection=kind, permitted=permitted, why=_why(t, kind, at), absence=absence
    )


def _after_looking(t: Terms, status: Status, attempt: Attempt, world: World) -> tuple[str, str]:
    """Say what follows a look-up that found nothing, and why that proves nothing, if so."""
    quiet = quiet_end(status, t, world) or world.now
    later = World(now=max(quiet, world.now) + 3)
    look = Attempt(
        token=2, operation="o", kind=Kind.LOOK_UP, epoch=1, started_at=later.now - 1,
        deadline=later.now, scope=t.scope, outcome=Outcome.LOOKED,
    )  # fmt: skip
    looked = replace(status, lookups=1)
    if next_step(looked, t, [attempt, look], later).do is Do.REPLAY:
        return "look_then_replay", ""
    report = LookReport(finding=Absent(), epochs=frozenset({1, 2}), control="found")
    why = absence_counts(report, look, looked, t, [attempt], world=later)
    return ("look_only", why) if why else ("look_then_send", "")


def _why(t: Terms, kind: Class, at: int) -> str:
    """Return why the class is what it is, as a code."""
    c = t.contract
    match kind:
        case Class.REPEATABLE:
            return "repeatable" if c.harm == "none" else "cost_only"
        case Class.IDENTIFIED:
            return "identity"
        case Class.NOT_RACE_FREE if c.repeat.answer == "overwrite":
            return "overwrites"
        case Class.NOT_RACE_FREE:
            return "races"
        case Class.IDEMPOTENT:
            return "remembers" if race_free(t) else "remembers_races"
    once = c.repeat.answer != "again"
    if once and c.key.kind == "content":
        return "content"
    if once and c.key.kind != "none":
        end = window_end(t, 0)
        if end is None:
            return "keeps_unknown"
        return "late_unknown" if t.late is None and at < end else "window_over"
    return "no_key" if c.key.kind == "none" else "again"


# --- what would be better ------------------------------------------------------------------


def _better(c: Contract, declared: dict[str, Any]) -> Iterator[Better]:
    t = terms_of(c, **declared)
    if c.protocol == "http" and doubts_success(c):
        yield Better(code="ok_when")
    yield from _by_declaring(c, t, _at_once(c, declared), declared)
    if c.harm == "cost_only" and not t.may_repeat:
        yield _with(Better(code="may_repeat"), _at_once(c, {**declared, "may_repeat": True}))
    if c.key.kind in ("none", "content") and c.harm == "outside":
        unique = replace(
            c,
            key=KeyRule(at="body:op_key", kind="resource"),
            repeat=RepeatRule(answer="exists", keeps="forever", atomic=True),
        )
        yield _with(Better(code="unique_field", value="op_key"), _at_once(unique, declared))
    if identity(t) and not race_free(t) and c.repeat.answer != "overwrite":
        proven = replace(c, repeat=replace(c.repeat, atomic=True))
        yield _with(Better(code="prove_atomic", value="repeat.atomic"), _at_once(proven, declared))
    if not t.can_look_up and not repeatable(t):
        yield Better(code="look_up")
    if c.late.fence:
        yield Better(code="fence", value=c.late.fence)
    if c.inbound is not None and c.inbound.event_id:
        yield Better(code="events", value=c.inbound.event_id)


def _by_declaring(c: Contract, t: Terms, now: Moment, declared: dict[str, Any]) -> Iterator[Better]:
    """Find what an action could declare, and see whether it permits more."""
    missing = {name: GUESS for name in needs(c) if declared.get(name) is None}
    given = {**declared, **missing}
    steps = [Better(code="declare", value=", ".join(sorted(missing)))] if missing else []
    made = _at_once(c, given)
    if made.absence == "blind" and c.lookup is not None:
        steps.append(Better(code="unseen", value=", ".join(c.lookup.blind)))
        given["unseen"] = c.lookup.blind
        made = _at_once(c, given)
    if made.absence == "assumed_irreversible":
        steps.append(Better(code="trust"))
        made = _at_once(c, {**given, "trust_assumed_absence": True})
    if steps and (made.permitted, made.protection) != (now.permitted, now.protection):
        yield from steps[:-1]
        yield _with(steps[-1], made)
    if t.keeps is None and c.repeat.answer != "again" and c.key.kind != "content":
        more = {"late": GUESS, **declared, **missing, "keeps": "24h"}
        yield _with(Better(code="keeps"), _at_once(c, more))


def _at_once(c: Contract, declared: dict[str, Any]) -> Moment:
    t = terms_of(c, **declared)
    return _moment(t, t.bounds.lease + SECOND)


def _with(better: Better, then: Moment) -> Better:
    return replace(better, protection=then.protection, permitted=then.permitted)


def _offers(contract: Contract, counts: Contract) -> Iterator[Offer]:
    for path in acceptable(contract):
        if path not in counts.accepted and path not in RESTRICTIONS:
            yield _offer(contract, (*counts.accepted, path), path)


def _offer(contract: Contract, names: tuple[str, ...], path: str) -> Offer:
    now, after = classes(accepted(contract, names))
    return Offer(
        path=path,
        value=stated(contract).get(path),
        level=level(contract, path) if path else "memory",
        now=now,
        after=after,
    )

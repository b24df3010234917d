"""What to do next about an operation, and whether an absence proves anything.

This is the rule of the project. It reads: an unknown outcome is repeated only where the
contract protects the repeat (law 6), or where an absence was earned (law 5); everything else
is looked up, waited for, or handed to a person, within bounds (laws 4, 15).
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum

import msgspec

from . import gates, policy
from .books import Gate
from .contract import Class, Terms, identity, protection, race_free, window_end
from .model import FOREVER, Absent, Attempt, Finding, Kind, Outcome, State, Status, WaitingOn

KEPT_LOOKS = 2  # look-ups that are kept for after the quiet period


class Do(StrEnum):
    """The next step."""

    NOTHING = "nothing"  # a person or an event is next
    WAIT = "wait"
    EXECUTE = "execute"
    REPLAY = "replay"
    REDO = "redo"
    FORCE = "force"
    LOOK_UP = "look_up"
    REVIEW = "review"
    GIVE_UP = "give_up"
    CLOSE = "close"  # done, and no second effect can be looked for any more


class Step(msgspec.Struct, frozen=True):
    """What to do, not before `at` (µs, store clock), and the code of the sentence that says
    why (core.words)."""

    do: Do
    at: int
    said: str


class World(msgspec.Struct, frozen=True, kw_only=True):
    """What a decision knows besides the operation.

    The time, a random share for jitter, when the store's clock last stepped, if it did (the
    later of what it showed before and after), whether the store was ever restored, so that an
    epoch may have been used that it does not know (law 21), and which targets wait.
    """

    now: int
    jitter: float = 0.5
    stepped_at: int | None = None
    restored: bool = False
    worker: str = ""
    gates: dict[str, Gate] | None = None  # by action, of targets that are not open


class LookReport(msgspec.Struct, frozen=True, kw_only=True):
    """What a look-up attempt did: its finding over all epochs, and its controls (law 5)."""

    finding: Finding
    epochs: frozenset[int] = frozenset()
    control: str = "none"  # found, missing, none
    invented_found: bool = False


def quiet_end(status: Status, terms: Terms, world: World) -> int | None:
    """Return when an absence begins to prove something (law 5); None where it never does.

    After a step of the store's clock no quiet period ends within the longest deadline plus one
    quiet period of it: an attempt may have begun just before, on the other time.
    """
    if terms.quiet is None or status.last_deadline is None:
        return None
    end = status.last_deadline + terms.quiet
    if world.stepped_at is not None:
        end = max(end, world.stepped_at + terms.bounds.longest + terms.quiet)
    return end


def replay_protected(status: Status, terms: Terms, world: World, begins: int) -> bool:
    """Tell whether a replay beginning then lands while the target remembers our key (law 6).

    The latest deadline of every attempt of this epoch, the replay's own included, plus the
    lateness must lie strictly before the window's end.
    """
    end = window_end(terms, status.first_claim_at or 0)
    if end is None:
        return False
    if end == FOREVER:
        return True
    if terms.late is None or status.first_claim_at is None:
        return False
    if world.stepped_at is not None and status.first_claim_at <= world.stepped_at:
        return False  # the window opened on another time: closed
    latest = max(status.last_deadline or 0, begins + terms.sending)
    return latest + terms.late < end


def _last_replay(status: Status, terms: Terms) -> int:
    """Return the last moment at which a replay would still be protected."""
    end = window_end(terms, status.first_claim_at or 0)
    if end is None or end == FOREVER:
        return FOREVER
    return end - (terms.late or 0) - terms.sending - 1


def protected_until(status: Status, terms: Terms, world: World) -> int | None:
    """Return the last moment at which a replay is still protected, where one is now and the
    protection ends: what is decided later may have to be done without it."""
    if not replay_protected(status, terms, world, world.now):
        return None
    last = _last_replay(status, terms)
    return None if last == FOREVER else last


def protection_now(status: Status, terms: Terms, world: World) -> Class:
    """Return the protection class of an operation at this moment."""
    return protection(terms, in_window=replay_protected(status, terms, world, world.now))


def next_step(
    status: Status, terms: Terms, attempts: Sequence[Attempt], world: World, delay: int = 0
) -> Step:
    """Return the next step; `delay` µs of back-off apply to whatever is not tied to a time."""
    if status.token is not None:
        return Step(Do.WAIT, status.due_at or world.now, status.said)
    soon = world.now + delay
    match status.state:
        case State.PENDING:
            if status.waiting_on not in (WaitingOn.CLOCK, WaitingOn.TARGET):
                return Step(Do.NOTHING, world.now, status.said)
            spent = status.attempts and policy.exhausted(status, terms.bounds, world.now)
            if spent and not status.forced_by:
                return Step(Do.GIVE_UP, world.now, "gave_up")
            return Step(Do.EXECUTE, max(soon, status.due_at or 0), "due")
        case State.UNKNOWN:
            return _unknown(status, terms, attempts, world, soon)
        case State.ACCEPTED:
            return _accepted(status, terms, world, soon)
        case State.DONE if status.verify:
            return _verify(status, terms, world, soon)
        case _:
            return Step(Do.NOTHING, world.now, status.said)


def gated(step: Step, status: Status, terms: Terms, world: World) -> Step:
    """Hold a step that is to be taken now and that the target's gate does not let through: it
    waits, but never past the last moment at which a replay is protected, so that what is
    possible then comes in time (law 6)."""
    if not world.gates or step.do not in _AT_TARGET:
        return step
    gate, looks = world.gates.get(status.action), step.do is Do.LOOK_UP
    until = gates.held_until(gate, world.now, looks=looks)
    if gate is None or until is None or step.at >= until:
        return step
    last = _last_replay(status, terms)
    if status.state is State.UNKNOWN and world.now <= last < until:
        until = last if world.now < last else last + 1
    return Step(Do.WAIT, until, gates.SAID[gate.state])


_AT_TARGET = (Do.EXECUTE, Do.REPLAY, Do.REDO, Do.FORCE, Do.LOOK_UP)


def _unknown(
    status: Status, terms: Terms, attempts: Sequence[Attempt], world: World, soon: int
) -> Step:
    if status.waiting_on is WaitingOn.REVIEW:
        return Step(Do.NOTHING, world.now, status.said)
    if status.forced_by:
        return Step(Do.FORCE, world.now, "forced")
    if policy.overdue(status, terms.bounds, world.now):
        return Step(Do.REVIEW, world.now, "review_overdue")
    # What nobody has approved is looked up after a restore, never sent (laws 11, 21).
    approved = status.waiting_on is not WaitingOn.APPROVAL
    if approved and not policy.exhausted(status, terms.bounds, world.now):
        repeat = _repeat(status, terms, attempts, world, soon)
        if repeat is not None:
            return repeat
    return _search(status, terms, world, soon)


def _repeat(
    status: Status, terms: Terms, attempts: Sequence[Attempt], world: World, soon: int
) -> Step | None:
    """Return a repeat that is protected, now or once the quiet period is over (law 6)."""
    kind = protection_now(status, terms, world)
    if kind is Class.REPEATABLE:
        return Step(Do.REDO, soon, "redo")
    if not _same_scope(status, terms, attempts):
        return None
    last = _last_replay(status, terms)
    bounded = terms.hard and deadlines_known(attempts)
    at_once = kind is Class.IDENTIFIED or (kind is Class.IDEMPOTENT and race_free(terms))
    if at_once and (bounded or last == FOREVER):
        said = "replay_identity" if kind is Class.IDENTIFIED else "replay_key"
        return Step(Do.REPLAY, min(soon, last), said)
    if at_once or not bounded or kind not in (Class.IDEMPOTENT, Class.NOT_RACE_FREE):
        return None
    return _quiet_repeat(status, terms, attempts, world, soon)


def _quiet_repeat(
    status: Status, terms: Terms, attempts: Sequence[Attempt], world: World, soon: int
) -> Step | None:
    """Return a replay for after the quiet period, where overlapping requests may both land."""
    settled, last = _lateness_end(status, terms, world), _last_replay(status, terms)
    if settled is None or max(settled + 1, world.now) > last:
        return None
    at = min(max(soon, settled + 1), last)
    looks = terms.can_look_up and status.lookups < terms.bounds.lookups
    if not identity(terms):
        # Until then finding it is quicker than waiting.
        return None if looks and soon <= settled else Step(Do.REPLAY, at, "replay_key_quiet")
    if looks and not (world.now > settled and _looked_since(attempts, settled)):
        return None
    return Step(Do.REPLAY, at, "replay_identity_quiet")


def _lateness_end(status: Status, terms: Terms, world: World) -> int | None:
    """Return when no earlier request can still be on its way; a replay needs no index lag."""
    if terms.late is None or status.last_deadline is None:
        return None
    lag = terms.lag or 0
    end = status.last_deadline + terms.late + lag
    if world.stepped_at is not None:
        end = max(end, world.stepped_at + terms.bounds.longest + terms.late + lag)
    return end


def _same_scope(status: Status, terms: Terms, attempts: Sequence[Attempt]) -> bool:
    """Tell whether every attempt of this epoch went to the same account and base URL: a key
    means nothing elsewhere (law 6)."""
    return all(
        a.scope == terms.scope
        for a in attempts
        if a.kind is not Kind.LOOK_UP and a.epoch == status.epoch
    )


def _looked_since(attempts: Sequence[Attempt], moment: int) -> bool:
    return any(
        a.kind is Kind.LOOK_UP and a.outcome is Outcome.LOOKED and a.started_at > moment
        for a in attempts
    )


def _search(status: Status, terms: Terms, world: World, soon: int) -> Step:
    """Look up, or ask a person: nothing may be repeated now."""
    if not terms.can_look_up:
        return Step(Do.REVIEW, world.now, "review_opaque")
    left = terms.bounds.lookups - status.lookups
    if left <= 0:
        return Step(Do.REVIEW, world.now, "review_lookups")
    quiet = quiet_end(status, terms, world)
    at = soon
    if quiet is not None and world.now <= quiet and (soon > quiet or left <= KEPT_LOOKS):
        at = quiet + 1  # the first look-up whose absence proves something
    if replay_protected(status, terms, world, world.now):
        last = _last_replay(status, terms)
        at = min(at, last) if quiet is None or last > quiet else at
    return Step(Do.LOOK_UP, at, "look_up_quiet" if quiet and at > quiet else "look_up")


def _accepted(status: Status, terms: Terms, world: World, soon: int) -> Step:
    """Follow what the target took over; absence proves nothing here (law 14)."""
    if status.waiting_on is WaitingOn.REVIEW:
        return Step(Do.NOTHING, world.now, status.said)
    over = status.updated_at + terms.bounds.accepted
    if status.confirmed_at is not None:
        over = status.confirmed_at + terms.bounds.accepted
    if world.now >= over:
        return Step(Do.REVIEW, world.now, "review_accepted")
    if terms.can_look_up and status.lookups < terms.bounds.lookups:
        return Step(Do.LOOK_UP, min(soon, over), "look_up_accepted")
    return Step(Do.WAIT, over, "accepted")


def _verify(status: Status, terms: Terms, world: World, soon: int) -> Step:
    """Look once for a second effect, a quiet period after the last deadline (law 8)."""
    quiet = quiet_end(status, terms, world)
    exhausted = status.lookups >= terms.bounds.lookups + 3
    if quiet is None or not terms.can_look_up or exhausted:
        return Step(Do.CLOSE, world.now, "verify_impossible")
    return Step(Do.LOOK_UP, max(soon, quiet + 1), "verify")


def absence_counts(
    report: LookReport,
    look: Attempt,
    status: Status,
    terms: Terms,
    attempts: Sequence[Attempt],
    *,
    world: World,
) -> str:
    """Return why an absence proves nothing, as a code; empty if it is earned (law 5)."""
    effects = [a for a in attempts if a.kind is not Kind.LOOK_UP]
    quiet = quiet_end(status, terms, world)
    if report.invented_found:
        return "invented_found"
    if not isinstance(report.finding, Absent):
        return "look_up_failed"
    if any(a.outcome in (Outcome.DONE, Outcome.ACCEPTED) for a in effects):
        return "accepted_before"
    if any(a.scope != terms.scope and a.outcome not in _ENDED_PROVEN for a in effects):
        return "other_scope"
    if quiet is None:
        return "quiet_unknown"
    if not deadlines_known(attempts):
        return "deadline_unknown"
    if look.started_at <= quiet:
        return "quiet_period"
    if not report.finding.complete:
        return "incomplete"
    if not set(epochs(status, world)) <= report.epochs:
        return "epochs"
    if report.control != "found":
        return "no_control"
    blind = set(terms.contract.lookup.blind if terms.contract.lookup else ())
    if blind - set(terms.unseen):
        return "blind"
    assumed = _ABSENCE_RESTS_ON & set(terms.assumed)
    if assumed and not terms.reversible and not terms.trust_assumed_absence:
        return "assumed_irreversible"
    return ""


_ENDED_PROVEN = (Outcome.NOT_DONE, Outcome.RELEASED)
_ABSENCE_RESTS_ON = frozenset({"lag", "late", "sends_within"})

# An absence that fails for one of these will never be earned by looking again.
FINAL = frozenset({
    "accepted_before", "assumed_irreversible", "blind", "deadline_unknown", "invented_found",
    "other_scope",
})  # fmt: skip


def deadlines_known(attempts: Sequence[Attempt]) -> bool:
    """Tell whether every attempt that may have sent had a deadline for its sending (law 5)."""
    return all(a.hard or a.outcome in _ENDED_PROVEN for a in attempts if a.kind is not Kind.LOOK_UP)


def epochs(status: Status, world: World) -> range:
    """Return every epoch under which an effect may exist; a look-up searches them all."""
    return range(1, status.epoch + 1 + world.restored)


def others_may_have_sent(attempts: Sequence[Attempt], token: int) -> bool:
    """Tell whether an attempt other than this one may have had an effect (law 7)."""
    return any(
        a.kind is not Kind.LOOK_UP and a.token != token and a.outcome not in _ENDED_PROVEN
        for a in attempts
    )


def new_epoch_needed(status: Status, terms: Terms, world: World, *, dead: bool) -> bool:
    """Tell whether the next execute, after proof, needs a new target key (law 12): the old one
    is dead, or its window is over. An identity keeps its key for ever."""
    if identity(terms) or terms.contract.key.kind != "request":
        return False
    end = window_end(terms, status.first_claim_at or 0)
    if dead or end is None:
        return dead  # a window that nobody states is not known to be over
    if terms.late is None:
        return world.now >= end
    return not replay_protected(status, terms, world, world.now)

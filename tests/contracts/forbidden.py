"""What must never happen, as small predicates with the number of the law. Written from
docs/semantics.md alone: nothing of what it judges is imported."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

FOREVER = 2**62
DAY = 86_400_000_000


@dataclass(slots=True)
class Facts:
    """What is declared, as plain values; durations in µs, None where nobody says."""

    kind: str  # of the key
    answer: str  # to a repeat
    at_once: bool  # two at once make one, by the vendor's word
    keeps: int | None
    lag: int | None
    late: int | None
    looks: bool
    same_bytes: bool
    bounded: bool  # what an attempt sends by, its deadline, is kept or declared
    harmless: bool  # a repeat is no harm, or one that the policy allows
    blind: bool  # the look-up cannot see everything, and nobody waived it
    undoable: bool
    guessed: bool  # lag or late is an assumption
    trusted: bool  # the operator opted in to such an absence
    sending: int
    longest: int
    total: int
    attempts: int
    lookups: int
    skew: int

    @property
    def carried(self) -> bool:
        """What is made carries our identity."""
        return self.kind in ("resource", "condition") and self.answer != "again"

    @property
    def keyed(self) -> bool:
        """A repeat under our key is known to the target, at least for a while."""
        return self.carried or (self.kind == "request" and self.answer != "again")

    @property
    def overlaps(self) -> bool:
        """Two requests at once may both have their effect."""
        return not self.at_once or (self.carried and self.answer == "overwrite")

    def forgets(self, first: int) -> int | None:
        """When the target may forget a key that was first used then."""
        if self.keeps is None or self.keeps >= FOREVER:
            return self.keeps
        return first + min(self.keeps * 9 // 10, self.keeps - self.skew)

    def settled(self, last: int, stepped: int | None) -> int | None:
        """When a request can no longer arrive, or be invisible as far as that is known."""
        if self.late is None:
            return None
        after = self.late + (self.lag or 0)
        return max(last, 0 if stepped is None else stepped + self.longest) + after

    def quiet(self, last: int, stepped: int | None) -> int | None:
        """When an absence begins to count."""
        return None if self.lag is None else self.settled(last, stepped)


@dataclass(slots=True)
class Sent:
    """One effect attempt, as plain values."""

    epoch: int = 1
    outcome: str = "expired"
    here: bool = True  # to the account and address that count now
    bounded: bool = True  # by a deadline that is kept or declared

    @property
    def proven(self) -> bool:
        return self.outcome in ("not_done", "released")


@dataclass(slots=True)
class Now:
    """One situation, as plain values."""

    now: int
    first: int
    last: int
    started: int
    sent: list[Sent]
    epoch: int = 1
    stepped: int | None = None
    looked: int | None = None  # when the latest look-up that ended began
    state: str = "unknown"
    waiting: str = "clock"
    forced: bool = False
    held: bool = False
    attempts: int = 1
    lookups: int = 0


Predicate = Callable[[Facts, Now, str, int], bool]
RULES: list[tuple[str, str, tuple[str, ...], Predicate]] = []
SENDS = ("execute", "replay", "redo", "force")


def never(law: str, *when: str) -> Callable[[Predicate], Predicate]:
    """Register what must not be, for these steps."""

    def register(rule: Predicate) -> Predicate:
        RULES.append((law, rule.__name__, when, rule))
        return rule

    return register


# Each returns True where the step is forbidden: facts, situation, when the step is due.


@never("2", *SENDS, "look_up", "review")
def a_second_actor(f: Facts, s: Now, do: str, at: int) -> bool:
    return s.held


@never("4", "execute")
def an_unknown_executed_blindly(f: Facts, s: Now, do: str, at: int) -> bool:
    return s.state != "pending"


@never("4", "redo")
def an_unknown_done_again_though_others_see_it(f: Facts, s: Now, do: str, at: int) -> bool:
    return s.state != "unknown" or not f.harmless


@never("4", "force")
def a_risk_that_nobody_took(f: Facts, s: Now, do: str, at: int) -> bool:
    return s.state != "unknown" or not s.forced


@never("4", "nothing", "wait")
def an_unknown_that_nobody_looks_after(f: Facts, s: Now, do: str, at: int) -> bool:
    return s.state == "unknown" and not s.held and s.waiting != "review"


@never("4", "execute", "replay", "redo")
def something_that_only_a_person_may_decide(f: Facts, s: Now, do: str, at: int) -> bool:
    return s.waiting == "review"


@never("4", *SENDS, "look_up")
def a_step_for_what_nothing_is_known_of(f: Facts, s: Now, do: str, at: int) -> bool:
    """Without key, look-up or leave to repeat only a person is next."""
    opaque = not f.keyed and not f.looks and not f.harmless
    return opaque and s.state == "unknown" and not s.forced


@never("6", "replay")
def a_replay_that_no_key_protects(f: Facts, s: Now, do: str, at: int) -> bool:
    return s.state != "unknown" or not f.keyed


@never("6", "replay")
def a_replay_of_other_bytes(f: Facts, s: Now, do: str, at: int) -> bool:
    return not f.same_bytes


@never("6", "replay")
def a_replay_elsewhere(f: Facts, s: Now, do: str, at: int) -> bool:
    return any(not a.here for a in s.sent if a.epoch == s.epoch)


@never("6", "replay")
def a_replay_that_lands_after_the_key_is_forgotten(f: Facts, s: Now, do: str, at: int) -> bool:
    end = f.forgets(s.first)
    if end is None:
        return True
    if end >= FOREVER:
        return False
    return f.late is None or max(s.last, at + f.sending) + f.late >= end


@never("6", "replay")
def a_replay_in_a_window_of_another_time(f: Facts, s: Now, do: str, at: int) -> bool:
    finite = f.keeps is not None and f.keeps < FOREVER
    return finite and s.stepped is not None and s.first <= s.stepped


@never("6", "replay")
def a_replay_beside_one_that_may_still_arrive(f: Facts, s: Now, do: str, at: int) -> bool:
    if not f.overlaps:
        return False
    settled = f.settled(s.last, s.stepped)
    return settled is None or at <= settled


@never("5 6", "replay")
def a_replay_beside_code_that_may_still_send(f: Facts, s: Now, do: str, at: int) -> bool:
    lasting = not f.overlaps and f.keeps is not None and f.keeps >= FOREVER
    return not lasting and (not f.bounded or any(not a.bounded and not a.proven for a in s.sent))


@never("6", "replay")
def an_identity_replayed_without_looking_first(f: Facts, s: Now, do: str, at: int) -> bool:
    if not (f.overlaps and f.carried and f.looks) or s.lookups >= f.lookups:
        return False
    settled = f.settled(s.last, s.stepped)
    return settled is None or s.looked is None or s.looked <= settled


@never("11", "execute", "replay", "redo")
def something_that_nobody_approved(f: Facts, s: Now, do: str, at: int) -> bool:
    return s.waiting == "approval"


@never("14", *SENDS)
def what_was_taken_over_sent_again(f: Facts, s: Now, do: str, at: int) -> bool:
    return s.state in ("accepted", "done", "not_done")


@never("15", "replay", "redo")
def more_attempts_than_allowed(f: Facts, s: Now, do: str, at: int) -> bool:
    return s.attempts >= f.attempts


@never("15", "replay", "redo", "look_up")
def an_unknown_beyond_its_time(f: Facts, s: Now, do: str, at: int) -> bool:
    return s.state == "unknown" and s.now - s.started >= f.total


@never("15", "look_up")
def more_look_ups_than_allowed(f: Facts, s: Now, do: str, at: int) -> bool:
    more = 3 if s.state == "done" else 0
    return s.lookups >= f.lookups + more


@never("14", "look_up")
def a_look_up_that_does_not_exist(f: Facts, s: Now, do: str, at: int) -> bool:
    return not f.looks


BY_STEP = {
    do: [(law, name, rule) for law, name, when, rule in RULES if do in when]
    for do in {step for _, _, when, _ in RULES for step in when} | {"give_up", "close"}
}


def broken(f: Facts, s: Now, do: str, at: int) -> str:
    """Name the first law that this step breaks, or nothing."""
    for law, name, rule in BY_STEP[do]:
        if rule(f, s, do, at):
            return f"law {law}: {name}"
    return ""


# --- law 5: what an absence has to have ----------------------------------------------------


@dataclass(slots=True)
class Looked:
    """What a look-up reported, as plain values."""

    found_nothing: bool = True
    complete: bool = True
    began: int = 0
    control: str = "found"
    finds_anything: bool = False
    epochs: frozenset[int] = frozenset({1})
    restored: bool = False


def unearned(f: Facts, s: Now, look: Looked) -> str:
    """Name what an absence lacks, or nothing where it proves that it is not there."""
    quiet = f.quiet(s.last, s.stepped)
    sent = range(1, s.epoch + 1 + look.restored)
    lacks: list[tuple[bool, str]] = [
        (not look.found_nothing, "it did not say that there is nothing"),
        (not look.complete, "a page was not read"),
        (look.finds_anything, "it also finds what was never sent"),
        (look.control != "found", "it did not find the known object"),
        (not look.epochs >= set(sent), "a key that was sent was not looked for"),
        (quiet is None, "nobody knows when it would be visible"),
        (quiet is not None and look.began <= quiet, "a request may still arrive"),
        (any(not a.bounded and not a.proven for a in s.sent), "code may still be sending"),
        (any(a.outcome in ("done", "accepted") for a in s.sent), "it was taken over before"),
        (any(not a.here and not a.proven for a in s.sent), "it may be in another account"),
        (f.blind, "it may be where the look-up cannot see"),
        (f.guessed and not f.undoable and not f.trusted, "a guess, and no way back"),
    ]
    return next((why for lacking, why in lacks if lacking), "")


# --- laws 7 and 12 -------------------------------------------------------------------------


def others_open(sent: list[Sent], own: int, *, stored: bool, at_risk: bool) -> bool:
    """Law 7: an attempt beside this one may have had its effect, and the refusal is no stored
    outcome of its key (a person's risk speaks for nobody else)."""
    mine = sent[own].epoch
    spoken = stored and not at_risk
    return any(
        not a.proven and not (spoken and a.epoch == mine) for n, a in enumerate(sent) if n != own
    )


def wrong_epoch(f: Facts, s: Now, *, dead: bool, fresh: bool) -> str:
    """Law 12: a new key only where the old one is dead or forgotten, and then always."""
    if f.carried or f.kind != "request":
        return "an identity changed its key" if fresh else ""
    end = f.forgets(s.first)
    over = end is not None and s.now >= end and end < FOREVER
    if (dead or over) and not fresh:
        return "a dead or forgotten key is used again"
    if fresh and not dead and (end is None or end >= FOREVER):
        return "a new key though nothing says that the old one is forgotten"
    return ""

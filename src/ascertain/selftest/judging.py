"""From what was seen to a verdict on each claim of a contract. Pure: no clock, nothing is sent.

A claim *holds* if it was tried and nothing spoke against it, *fails* if something did, and is
*untested* otherwise: a claim not tested is not verified. `why` is the code of the sentence.
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec
from msgspec.structs import replace

from ascertain.core import words
from ascertain.core.contract import RepeatRule, Terms, protection, window_end
from ascertain.core.levels import stated
from ascertain.core.model import FOREVER

from .planning import ANSWERS_ONCE, AT_ONCE, Plan
from .sending import Send

Result = Literal["holds", "fails", "untested"]
WORKED = ("done", "accepted")
# Descriptions and policies: nothing to try.
_DESCRIBES = frozenset({
    "key.at", "key.kind", "key.max", "key.form", "ok.accepted", "harm", "sdk", "lookup.call",
})  # fmt: skip
_GONE = frozenset({"deleted", "trash", "trashed", "archived", "recycle_bin", "bin"})


class Watch(msgspec.Struct, frozen=True, kw_only=True):
    """How an object appeared in the look-up; times in µs after the answer that made it."""

    found: bool
    lag: int = 0  # when the first look-up that found it began
    missed: int | None = None  # when the last one that did not find it began
    waited: int = 0
    error: str = ""  # why the last look-up was not answered


class Seen(msgspec.Struct, kw_only=True):
    """Everything that a run saw."""

    sends: list[Send] = []
    watches: list[Watch] = []
    unknown: str = ""  # of a key never sent: absent, partial, found, unanswered
    unknown_reason: str = ""
    counts: dict[str, int | None] = {}  # objects that the look-up shows after a probe
    found: dict[str, list[str]] = {}  # target key: references that the look-up gave
    content: str = ""  # after changed content: old, new, or not known
    removals: list[tuple[str, bool, str]] = []  # reference, whether it is gone, why not
    stopped: str = ""  # the probe before which it was stopped

    def of(self, probe: str) -> list[Send]:
        """Return the requests of a probe."""
        return [s for s in self.sends if s.probe == probe]

    @property
    def first(self) -> Send | None:
        """The first request of all."""
        return next(iter(self.of("known")), None)

    @property
    def control(self) -> bool:
        """Whether the look-up found an object known to exist, and no key that was never sent:
        before that no absence counts (law 5)."""
        return (
            self.unknown in ("absent", "partial") and bool(self.watches) and self.watches[0].found
        )

    def objects(self, probe: str, *also: str) -> int | None:
        """Return how many objects there are for one key, by the look-up where it can be trusted
        and by the references of all answers; None where neither says."""
        told = {s.ref for p in (probe, *also) for s in self.of(p) if s.kind in WORKED and s.ref}
        shown = self.counts.get(probe) if self.control else None
        known = [n for n in (len(told) or None, shown) if n]
        return max(known) if known else None


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """What came of one claim, and the code of the sentence that says why."""

    claim: str
    value: str
    result: Result
    why: str
    facts: dict[str, Any] = {}


class Thing(msgspec.Struct, frozen=True, kw_only=True):
    """An object that a run made, or may have made."""

    probe: str
    key: str
    target_key: str
    refs: tuple[str, ...] = ()
    removed: bool = False
    certain: bool = True  # False: it may exist


class Findings(msgspec.Struct, frozen=True, kw_only=True):
    """The report of a run; `protection` is the class as claimed, `without` without what fails,
    each now and once the window is over."""

    plan: Plan
    at: int
    verdicts: tuple[Verdict, ...]
    notes: tuple[tuple[str, dict[str, Any]], ...]
    things: tuple[Thing, ...]
    protection: tuple[str, str]
    without: tuple[str, str]
    control: bool
    stopped: str = ""
    verified: str = ""  # the day of the stamp, if it was stamped

    @property
    def stamped(self) -> bool:
        """Whether the contract is kept as verified in this scope."""
        return bool(self.verified)

    @property
    def failed(self) -> tuple[str, ...]:
        """The claims that do not hold."""
        return tuple(v.claim for v in self.verdicts if v.result == "fails")

    @property
    def held(self) -> tuple[str, ...]:
        """The claims that were tried and hold."""
        return tuple(v.claim for v in self.verdicts if v.result == "holds")

    @property
    def left(self) -> tuple[Thing, ...]:
        """What must be removed by hand."""
        return tuple(t for t in self.things if not t.removed)

    @property
    def holds(self) -> bool:
        """Whether the contract holds as far as it was tried: nothing failed, the run came to its
        end, and what it can look up was found."""
        return not self.failed and not self.stopped and bool(self.held)


class _Judge:
    def __init__(self, plan: Plan, terms: Terms, seen: Seen) -> None:
        self.plan, self.terms, self.seen = plan, terms, seen
        self.contract, self.rule = terms.contract, terms.contract.repeat
        self.once = self.rule.answer in ANSWERS_ONCE
        self.made: list[Verdict] = []
        self.values = stated(self.contract)

    def say(self, claim: str, result: Result, why: str, /, **facts: Any) -> None:
        value = self.values.get(claim, "")
        if claim == "lookup.lag":
            value = words.duration(self.terms.lag or 0)
        shown = ", ".join(value) if isinstance(value, tuple) else str(value)
        facts = {n: v for n, v in facts.items() if v is not None}
        made = Verdict(claim=claim, value=shown, result=result, why=why, facts=facts)
        self.made.append(made)

    def untried(self, claim: str, probe: str) -> bool:
        """Say so where the probe of a claim was not made."""
        ran = self.seen.of(probe)
        if ran:
            return False
        why = self.plan.why_not(probe)
        if why == "stopped" and not self.seen.stopped:
            why = "answer_first"  # what comes before it failed
        self.say(claim, "untested", why)
        return True

    def run(self) -> tuple[Verdict, ...]:
        first = self.seen.first
        self.success(first)
        if self.terms.can_look_up:
            self.looks(first)
        self.answer(first)
        if self.rule.exists and self.rule.answer == "exists":
            self.exists()
        if self.rule.mismatch:
            self.mismatch()
        if self.rule.atomic:
            self.atomic()
        if self.terms.keeps is not None and self.once:
            self.keeps()
        if self.contract.undo != "none":
            self.undo()
        done = {v.claim for v in self.made} | _DESCRIBES
        for claim in self.values:
            if claim not in done:
                self.say(claim, "untested", "late" if claim == "late.max" else "not_provoked")
        return tuple(self.made)

    # --- each claim ---

    def slow(self, *probes: str) -> bool:
        """Whether the requests of these probes may not all have come within the window."""
        sends, keeps = [s for p in probes for s in self.seen.of(p)], self.terms.keeps
        if keeps is None or not sends:
            return False
        return max(s.ended for s in sends) - min(s.began for s in sends) >= keeps

    @property
    def overwritten(self) -> bool:
        """Whether changed content replaced the old although nothing says so."""
        said = self.rule.answer == "overwrite" or self.rule.mismatch
        return self.seen.content == "new" and not said

    def success(self, first: Send | None) -> None:
        if first is None:
            self.say("ok.when", "untested", "stopped")
        elif first.kind in WORKED:
            self.say("ok.when", "holds", "ok_success")
        elif first.kind == "unknown" and self.seen.control:
            self.say("ok.when", "fails", "ok_missed", reason=first.reason)
        else:
            self.say("ok.when", "untested", f"first_{first.kind}", reason=first.reason)

    def looks(self, first: Send | None) -> None:
        unknown, reason = self.seen.unknown, self.seen.unknown_reason
        watch = self.seen.watches[0] if self.seen.watches else None
        if unknown == "found":
            self.say("lookup", "untested", "look_finds_all")
            self.say("lookup.by", "fails", "by_finds_all")
        elif watch is None or first is None:
            for claim in ("lookup", "lookup.by"):
                self.say(claim, "untested", "no_first")
        else:
            self.found(watch)
            if unknown == "unanswered":
                self.say("lookup.by", "untested", "by_unanswered", reason=reason)
            elif not watch.found:
                self.say("lookup.by", "untested", "no_control")
            elif unknown == "partial":
                self.say("lookup.by", "untested", "by_partial")
            else:
                self.say("lookup.by", "holds", "by_heeds")
        if self.terms.lag is not None:
            self.lag()
        blind = set(self.contract.lookup.blind if self.contract.lookup else ())
        if blind:
            gone = bool(self.seen.removals) and all(ok for _, ok, _ in self.seen.removals)
            tried = gone and self.seen.control and blind & _GONE
            why = "blind_deleted" if tried else "blind_untried"
            self.say("lookup.blind", "holds" if tried else "untested", why)

    def found(self, watch: Watch) -> None:
        if watch.found:
            self.say("lookup", "holds", "look_found", lag=watch.lag)
        elif watch.error:
            self.say("lookup", "fails", "look_unanswered", reason=watch.error)
        elif watch.waited >= (self.terms.lag or 0):
            self.say("lookup", "fails", "look_never_found", waited=watch.waited)
        else:
            self.say("lookup", "untested", "look_within_lag", waited=watch.waited)

    def lag(self) -> None:
        lag, watches = self.terms.lag or 0, self.seen.watches
        if not self.seen.control:
            self.say("lookup.lag", "untested", "look_first")
            return
        late = [w for w in watches if w.missed is not None and (not lag or w.missed > lag)]
        lags = sorted(w.lag for w in watches if w.found)
        if late:
            most = max(w.lag if w.found else w.waited for w in late)
            self.say("lookup.lag", "fails", "lag_longer", claimed=lag, most=most)
        elif any(not w.found for w in watches):
            self.say("lookup.lag", "untested", "look_within_lag", waited=watches[-1].waited)
        else:
            middle = lags[len(lags) // 2]
            self.say("lookup.lag", "holds", "lag_within",
                     times=len(lags), median=middle, most=lags[-1])  # fmt: skip

    def answer(self, first: Send | None) -> None:
        claim = "repeat.answer"
        if first is None or first.kind not in WORKED:
            self.say(claim, "untested", "no_first")
            return
        if self.untried(claim, "again"):
            return
        second, count = self.seen.of("again")[0], self.seen.objects("again", "known")
        changed = self.seen.objects("changed", "known", "again")
        if count is None:
            self.say(claim, "untested", "uncountable")
        elif not self.once:
            self.say(claim, "holds", "again_second" if count > 1 else "again_once")
        elif count > 1 and self.slow("known", "again"):
            self.say(claim, "untested", "too_slow")
        elif count > 1:
            self.say(claim, "fails", "answer_second", count=count)
        elif second.said == "busy":
            self.say(claim, "untested", "second_busy")
        elif self.rule.answer == "exists" and second.success:
            self.say(claim, "fails", "answer_success")
        elif self.rule.answer != "exists" and second.kind not in WORKED:
            self.say(claim, "fails", "answer_otherwise", reason=second.reason)
        elif (changed or 0) > 1 and not self.rule.mismatch and not self.slow("known", "changed"):
            self.say(claim, "fails", "answer_changed_second", count=changed)
        elif self.overwritten:
            self.say(claim, "fails", "answer_overwrote")
        else:
            self.say(claim, "holds", "answer_one")

    def exists(self) -> None:
        if self.untried("repeat.exists", "again"):
            return
        second = self.seen.of("again")[0]
        if second.success:
            self.say("repeat.exists", "untested", "answer_first")
        elif second.said == "exists":
            self.say("repeat.exists", "holds", "exists_said")
        elif second.kind in WORKED:
            self.say("repeat.exists", "untested", "exists_by_code")
        else:
            self.say("repeat.exists", "fails", "exists_other", reason=second.reason)

    def mismatch(self) -> None:
        if self.untried("repeat.mismatch", "changed"):
            return
        sent = self.seen.of("changed")[0]
        count = self.seen.objects("changed", "known", "again")
        own = self.contract.protocol != "http" or not sent.reason.startswith("HTTP")
        if sent.said == "mismatch" or (sent.kind == "not_done" and own):
            self.say("repeat.mismatch", "holds", "mismatch_refused")
        elif self.slow("known", "changed"):
            self.say("repeat.mismatch", "untested", "too_slow")
        elif (count or 0) > 1:
            self.say("repeat.mismatch", "fails", "mismatch_second", count=count)
        elif sent.kind in WORKED:
            why = {"old": "mismatch_absorbed", "new": "mismatch_overwrote"}
            self.say("repeat.mismatch", "fails", why.get(self.seen.content, "mismatch_taken"))
        elif sent.reason.startswith("HTTP"):
            self.say("repeat.mismatch", "fails", "mismatch_other", reason=sent.reason)
        else:
            self.say("repeat.mismatch", "untested", "second_unknown", reason=sent.reason)

    def atomic(self) -> None:
        if self.untried("repeat.atomic", "at_once"):
            return
        count = self.seen.objects("at_once")
        if count is None:
            self.say("repeat.atomic", "untested", "uncountable")
        elif count > 1 and self.slow("at_once"):
            self.say("repeat.atomic", "untested", "too_slow")
        else:
            result: Result = "holds" if count == 1 else "fails"
            why = "atomic_one" if count == 1 else "atomic_several"
            self.say("repeat.atomic", result, why, count=count, sent=AT_ONCE)

    def keeps(self) -> None:
        if self.untried("repeat.keeps", "window"):
            return
        sends, keeps = self.seen.of("window"), self.terms.keeps or 0
        count = self.seen.objects("window")
        if len(sends) == 1 or count is None:
            why = "stopped" if self.seen.stopped else "uncountable"
            self.say("repeat.keeps", "untested", why)
        elif count > 1 and self.slow("window"):
            self.say("repeat.keeps", "untested", "too_slow")
        elif count > 1:
            age = sends[1].began - sends[0].ended
            self.say("repeat.keeps", "fails", "keeps_forgot", keeps=keeps, age=age)
        else:
            age = sends[1].began - sends[0].ended
            self.say("repeat.keeps", "holds", "keeps_remembered", keeps=keeps, age=age)

    def undo(self) -> None:
        wrong = next((why for _, gone, why in self.seen.removals if not gone), "")
        if not self.plan.undo:
            self.say("undo", "untested", "no_undo")
        elif not self.seen.removals:
            self.say("undo", "untested", "nothing_to_undo")
        elif wrong:
            self.say("undo", "fails", "undo_failed", reason=wrong)
        else:
            self.say("undo", "holds", "undone" if self.seen.control else "undo_answered")


def judge(plan: Plan, terms: Terms, seen: Seen) -> tuple[Verdict, ...]:
    """Return a verdict on each claim of the contract, as far as there is something to try."""
    return _Judge(plan, terms, seen).run()


def repeats_once(plan: Plan, terms: Terms, seen: Seen) -> bool:
    """Tell whether what was seen so far lets the same key make one object only; else nothing
    more is sent under a key that the target ignores."""
    known = next(v for v in judge(plan, terms, seen) if v.claim == "repeat.answer")
    return terms.contract.repeat.answer in ANSWERS_ONCE and known.result != "fails"


def noted(plan: Plan, terms: Terms, seen: Seen) -> tuple[tuple[str, dict[str, Any]], ...]:
    """Return what else was seen, as codes with their facts: no claim, but worth knowing."""
    notes: list[tuple[str, dict[str, Any]]] = []
    lags = sorted(w.lag for w in seen.watches if w.found)
    if lags and terms.lag is None and seen.control:
        notes.append(("lag_measured", {"median": lags[len(lags) // 2], "most": lags[-1]}))
    if any(sent.kind in WORKED for sent in seen.of("changed")):
        code = {"old": "content_old", "new": "content_new"}.get(seen.content, "content_unclear")
        notes.append((code, {"name": plan.changes}))
    if seen.of("after_window"):
        count, before = seen.objects("after_window", "window"), seen.objects("window")
        forgotten = count is not None and before is not None and count > before
        notes.append(("forgotten" if forgotten else "kept_longer", {}))
    if seen.removals and seen.control and all(ok for _, ok, _ in seen.removals):
        notes.append(("deleted_unseen", {}))
    if terms.can_look_up and not seen.control:
        notes.append(("no_control", {}))
    return tuple(notes)


def without(terms: Terms, failed: tuple[str, ...]) -> Terms:
    """Return the terms as they are without the claims that fail."""
    c = terms.contract
    if {"repeat.answer", "repeat.exists"} & set(failed):
        c, terms = replace(c, repeat=RepeatRule()), replace(terms, keeps=None)
    if "repeat.atomic" in failed:
        c = replace(c, repeat=replace(c.repeat, atomic=None))
    if "repeat.keeps" in failed:
        terms = replace(terms, keeps=None)
    if "undo" in failed:
        c = replace(c, undo="none")
    if "lookup.lag" in failed:
        terms = replace(terms, lag=None)
    if {"lookup", "lookup.by"} & set(failed):
        terms = replace(terms, can_look_up=False)
    return replace(terms, contract=c)


def classes(terms: Terms) -> tuple[str, str]:
    """Return the protection class now, and once the window is over."""
    end = window_end(terms, 0)
    now, later = (protection(terms, in_window=w) for w in (end is not None, end == FOREVER))
    return now.value, later.value

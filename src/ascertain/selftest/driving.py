"""Carries out a plan: sends, looks, waits, cleans up; the judging is elsewhere."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from msgspec.structs import replace

from ascertain.core import keys
from ascertain.core.errors import Refused
from ascertain.core.model import Absent, Done, LookFinding, Several, Unknown
from ascertain.runtime import verified
from ascertain.runtime.action import Definition
from ascertain.runtime.engine import Engine

from .judging import (
    WORKED,
    Findings,
    Seen,
    Thing,
    Watch,
    classes,
    judge,
    noted,
    repeats_once,
    without,
)
from .planning import ANSWERS_ONCE, AT_ONCE, LAGS, Plan, changed_content, filled, patience, plan
from .sending import Send, Sender, refs_of

FIRST_GAP, LONGEST_GAP = 50_000, 2_000_000  # µs between look-ups for an object that is to appear
UNANSWERED = 3  # look-ups in a row without an answer, after which it is not asked again
MARGIN = 500_000  # µs after a window's end
_WORST = ("absent", "partial", "unanswered", "found")
Progress = Callable[[str], None]


def run(
    ledger: Any,
    action: str,
    given: dict[str, Any] | None = None,
    *,
    sandbox: bool,
    yes: bool = False,
    changed: dict[str, Any] | None = None,
    undo: str | None = None,
    wait_window: bool = False,
    on: Progress | None = None,
) -> Findings:
    """Try an action's contract at its target, clean up, and return what was found.

    `ledger` is a `Ledger`; nothing of it is used but its declarations, its secret and its meta
    table, where the stamp is durable when this returns. `sandbox` is your word that the target
    is one; `yes` that a person agreed to effects that cannot be undone. `undo` names an action
    whose input is `ref`. `on` is told each probe as it begins. Ctrl-C stops it: it cleans up
    and returns. Raises Refused before anything is sent.
    """
    engine: Engine = ledger.engine
    d, other = engine.definition(action), engine.definition(undo) if undo else None
    if d.remote:
        raise Refused(
            f"action {d.name}: own code carries it out, which is not run here; test it with"
            " ascertain.testing.client_suite"
        )
    made = plan(d, given, changed=changed, undo=other, wait_window=wait_window)
    if not sandbox:
        raise Refused(
            f"action {d.name}: a self-test sends the same thing several times on purpose; say that"
            " its target is a sandbox (--sandbox, sandbox=True)"
        )
    if made.needs_yes and not yes:
        raise Refused(
            f"action {d.name}: what it does cannot be undone, is marked risky or needs an approval:"
            " a person must say --yes (yes=True) after reading the plan"
        )
    trial = _Trial(engine, d, made, other)
    trial.given = dict(given or {})
    trial.changed = changed or changed_content(d, trial.given)
    trial.tell = on or trial.tell
    seen = trial.go()
    return _report(engine, d, trial, seen)


def _report(engine: Engine, d: Definition, trial: _Trial, seen: Seen) -> Findings:
    verdicts = judge(trial.plan, d.terms, seen)
    found = Findings(
        plan=trial.plan,
        at=engine.store.now(),
        verdicts=verdicts,
        notes=noted(trial.plan, d.terms, seen),
        things=trial.things(),
        protection=classes(d.terms),
        without=("", ""),
        control=seen.control,
        stopped=seen.stopped,
    )
    found = replace(found, without=classes(without(d.terms, found.failed)))
    if found.holds and (seen.control or not d.terms.can_look_up):
        untested = tuple(v.claim for v in verdicts if v.result == "untested")
        _keep(engine, d, verified.stamp(d.terms, found.at, found.held, untested))
        return replace(found, verified=d.terms.verified)
    if found.failed:
        _keep(engine, d, None)
    return found


def _keep(engine: Engine, d: Definition, stamp: verified.Verified | None) -> None:
    verified.write(engine.store, engine.namespace, d.name, stamp)
    d.stamped(stamp)


class _Trial:
    """One run: what was begun, what was seen, what is left."""

    given: dict[str, Any]
    changed: dict[str, Any]

    def __init__(self, engine: Engine, d: Definition, made: Plan, undo: Definition | None) -> None:
        self.engine, self.d, self.plan, self.undoing = engine, d, made, undo
        self.clock, self.seen = engine.clock, Seen()
        run_id = keys.target_key(engine.lives.secret, "", "selftest", str(self.clock.token()), 0)
        self.sender = Sender(engine, d, run_id[:8])
        self.begun: dict[str, str] = {}  # key: the probe that used it first
        self.gone: set[str] = set()
        self.at = ""
        self.tell: Progress = lambda _: None

    def go(self) -> Seen:
        """Do all of it; Ctrl-C ends the probes, a second one the cleaning up."""
        try:
            self.probes()
        except KeyboardInterrupt:
            self.seen.stopped = self.at
        try:
            self.clean()
        except KeyboardInterrupt:
            self.seen.stopped = self.seen.stopped or self.at
        return self.seen

    def begin(self, probe: str) -> bool:
        """Tell whether a probe is planned, and say that it begins."""
        if not self.plan.has(probe):
            return False
        self.at = probe
        self.tell(probe)
        return True

    def probes(self) -> None:
        if self.begin("unknown"):
            self.never_sent("unknown")
        self.begin("known")
        first = self.send("known", "1")
        # At once, since a window may be over before a lagging look-up shows anything.
        once = self.d.terms.contract.repeat.answer in ANSWERS_ONCE and first.kind in WORKED
        if once and self.begin("again"):
            self.send("again", "1")
        if self.plan.has("unknown"):
            self.seen.watches.append(self.watch(first))
            self.never_sent("unknown-2")  # once more, now that there is something to find
        if first.kind not in WORKED:
            return
        if self.seen.control and self.begin("lag"):
            for number in range(2, LAGS + 1):
                self.seen.watches.append(self.watch(self.send("lag", str(number))))
        if not once and self.begin("again"):
            self.send("again", "1")
        self.count("again", "1")
        if not repeats_once(self.plan, self.d.terms, self.seen):
            return  # the target ignores the key: more of the same shows nothing
        if self.begin("changed"):
            self.other_content()
        if self.begin("at_once"):
            self.at_once()
        if self.begin("window"):
            self.window()

    # --- sending ---

    def send(self, probe: str, name: str, *, changed: bool = False) -> Send:
        key = self.sender.key(name)
        self.begun.setdefault(key, probe)  # before it is sent: it may exist from now on
        given = filled(self.given, key)
        sent = self.sender.send(probe, key, {**given, **self.changed} if changed else given)
        self.seen.sends.append(sent)
        return sent

    def other_content(self) -> None:
        before = self.content("1")
        self.send("changed", "1", changed=True)
        self.count("changed", "1")
        after = self.content("1")
        if before is not None and after is not None:
            self.seen.content = "old" if before == after else "new"

    def at_once(self) -> None:
        barrier = threading.Barrier(AT_ONCE)

        def one(_: int) -> None:
            barrier.wait(timeout=30)
            self.send("at_once", "at-once")

        with ThreadPoolExecutor(AT_ONCE) as pool:
            list(pool.map(one, range(AT_ONCE)))
        self.count("at_once", "at-once")

    def window(self) -> None:
        keeps = self.d.terms.keeps or 0
        first = self.send("window", "window")
        if first.kind not in WORKED:
            return
        self.until(first.began + keeps * 9 // 10)  # up to here the ledger relies on it (law 6)
        self.send("window", "window")
        self.count("window", "window")
        if (self.seen.objects("window") or 0) > 1:
            return
        self.until(self.clock.boottime() + keeps * 11 // 10 + MARGIN)
        self.send("after_window", "window")
        self.count("after_window", "window")

    def until(self, moment: int) -> None:
        self.clock.sleep(max(moment - self.clock.boottime(), 0))

    # --- looking ---

    def never_sent(self, name: str) -> None:
        found = self.sender.look(self.sender.target_key(self.sender.key(name)))
        match found:
            case Absent():
                kind = "absent" if found.complete else "partial"
            case Unknown():
                kind = "unanswered"
                self.seen.unknown_reason = found.reason[:200]
            case _:
                kind = "found"
        self.seen.unknown = max(self.seen.unknown or kind, kind, key=_WORST.index)

    def watch(self, sent: Send) -> Watch:
        """Look for an object until it appears, or long enough."""
        gap, missed, unanswered = FIRST_GAP, None, 0
        while True:
            began = self.clock.boottime()
            found, waited = self.look(sent.key), began - sent.ended
            if not isinstance(found, Absent | Unknown):
                lag = 0 if missed is None else waited
                return Watch(found=True, lag=lag, missed=missed, waited=waited)
            if isinstance(found, Unknown):
                unanswered += 1
            else:
                missed, unanswered = waited, 0
            if waited >= patience(self.d.terms) or unanswered >= UNANSWERED:
                error = found.reason[:200] if isinstance(found, Unknown) else ""
                return Watch(found=False, missed=missed, waited=waited, error=error)
            self.clock.sleep(gap)
            gap = min(gap * 3 // 2, LONGEST_GAP)

    def look(self, key: str) -> LookFinding:
        target_key = self.sender.target_key(key)
        found = self.sender.look(target_key)
        known = self.seen.found.setdefault(target_key, [])
        known.extend(ref for ref in refs_of(found) if ref not in known)
        return found

    def settle(self) -> None:
        """Wait until what was made by now shows, as long as it took so far and half as much."""
        most = max((w.lag for w in self.seen.watches), default=0)
        self.clock.sleep(min(most * 3 // 2, patience(self.d.terms)))

    def count(self, probe: str, name: str) -> None:
        """Count the objects of one key by the look-up, where that can be trusted."""
        if not self.seen.control:
            return
        self.settle()
        found = self.look(self.sender.key(name))
        self.seen.counts[probe] = _number(found)

    def content(self, name: str) -> Any:
        if not self.seen.control:
            return None
        self.settle()
        found = self.look(self.sender.key(name))
        return found.result if isinstance(found, Done) else None

    # --- cleaning up ---

    def clean(self) -> None:
        if self.undoing is None:
            return
        self.at = "removed"
        self.tell("removed")
        for key in list(self.begun):
            if self.seen.control:
                self.look(key)  # what no answer named
            self.remove(key)

    def remove(self, key: str) -> None:
        """Remove what is known of one key; whether it is gone is for the look-up to say, where
        that can be trusted, else for the answer."""
        assert self.undoing is not None
        refs = self.refs(key)
        sent = {ref: self.sender.undo(self.undoing, key, ref) for ref in refs}
        worked = {ref: s.kind in WORKED for ref, s in sent.items()}
        if refs and self.seen.control:
            worked = dict.fromkeys(refs, self.vanished(key, patient=any(worked.values())))
        for ref, gone in worked.items():
            if gone:
                self.gone.add(f"{key}/{ref}")
            why = "" if gone else sent[ref].reason or "the look-up still finds it"
            self.seen.removals.append((ref, gone, why))

    def vanished(self, key: str, *, patient: bool) -> bool:
        """Tell whether the look-up stops finding a key within the time that is waited for it."""
        gap, until = FIRST_GAP, self.clock.boottime() + patience(self.d.terms)
        while True:
            if isinstance(self.look(key), Absent):
                return True
            if not patient or self.clock.boottime() >= until:
                return False
            self.clock.sleep(gap)
            gap = min(gap * 3 // 2, LONGEST_GAP)

    def refs(self, key: str) -> list[str]:
        """Return every reference that is known of a key."""
        told = [s.ref for s in self.seen.sends if s.key == key and s.ref and s.kind in WORKED]
        shown = self.seen.found.get(self.sender.target_key(key), []) if self.seen.control else []
        return list(dict.fromkeys([*told, *shown]))

    def things(self) -> tuple[Thing, ...]:
        """Return everything that was made, or may have been."""
        made = []
        for key, probe in self.begun.items():
            sends, refs = [s for s in self.seen.sends if s.key == key], self.refs(key)
            if sends and not refs and all(s.kind == "not_done" for s in sends):
                continue  # proven: nothing was made
            made.append(Thing(
                probe=probe,
                key=key,
                target_key=self.sender.target_key(key),
                refs=tuple(refs),
                removed=bool(refs) and self.gone >= {f"{key}/{r}" for r in refs},
                certain=bool(refs) or any(s.kind in WORKED for s in sends),
            ))  # fmt: skip
        return tuple(made)


def _number(found: LookFinding) -> int | None:
    if isinstance(found, Several):
        return len(found.refs)
    if isinstance(found, Unknown):
        return None
    return 0 if isinstance(found, Absent) else 1

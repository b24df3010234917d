"""The rule is asked about every shipped contract in every situation, and must never answer with
anything that `forbidden` lists. The figures are printed: pytest -rP tests/contracts."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import pytest
from msgspec.structs import replace

from ascertain.core import claims, contract, policy, reconcile, settle
from ascertain.core.contract import Terms
from ascertain.core.draft import Case
from ascertain.core.model import (
    Absent,
    Done,
    Finding,
    Kind,
    NotDone,
    NotDoneKind,
    Operation,
    Outcome,
    Several,
    State,
    Status,
    Unknown,
    WaitingOn,
)
from ascertain.core.reconcile import Do, LookReport, World
from contracts.forbidden import Facts, Looked, Now, broken, others_open, unearned, wrong_epoch
from contracts.space import (
    HISTORIES,
    LEASE_END,
    SECOND,
    START,
    attempts,
    distinct,
    moments,
    outbound,
    situations,
    without_texts,
)

SHARDS = 4
LEAST = 2_384_640  # situations: what the prototype of the rule was asked about


@dataclass
class Tally:
    """What was asked, what was answered, and what was wrong with it."""

    asked: int = 0
    answers: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)

    def judge(self, why: str, *about: Any) -> None:
        if why and len(self.wrong) < 20:
            self.wrong.append(f"{why}: {about}")


def shard(part: int | None, what: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(w for n, w in enumerate(what) if part is None or n // 7 % SHARDS == part)


# --- what follows an unknown outcome -------------------------------------------------------


def status_of(s: Now) -> Status:
    return Status(
        operation="o", namespace="n", action="a", state=State(s.state),
        waiting_on=WaitingOn(s.waiting), attempts=s.attempts, lookups=s.lookups, epoch=s.epoch,
        target_key="k", first_claim_at=s.first, last_deadline=s.last, started_at=s.started,
        forced_by="ben" if s.forced else "", said="unknown", token=1 if s.held else None,
        kind=Kind.EXECUTE if s.held else None, updated_at=s.last,
    )  # fmt: skip


def ask(f: Facts, t: Terms, s: Now, name: str, delay: int) -> tuple[str, str]:
    """Ask the rule for the next step; return it, and the law that it breaks."""
    world = World(now=s.now, stepped_at=s.stepped)
    step = reconcile.next_step(status_of(s), t, attempts(name, s.looked), world, delay)
    return step.do.value, broken(f, s, step.do.value, step.at)


def steps(part: int | None, *, stop: bool = False) -> Tally:
    """Ask about every situation of a share of the terms; `stop` at the first breach."""
    tally = Tally()
    for f, t in shard(part, distinct()[1]):
        for s, name, delay in situations(f, t):
            do, why = ask(f, t, s, name, delay)
            tally.asked += 1
            tally.answers[do] += 1
            if why:
                tally.judge(why, f, s, name, do)
                if stop:
                    return tally
    return tally


@pytest.mark.timeout(120)  # a million situations; ten seconds on an idle core
@pytest.mark.parametrize("part", range(SHARDS))
def test_nothing_forbidden_follows_an_unknown_outcome(part: int) -> None:
    tally = steps(part)
    count, kinds, _ = distinct()
    print(
        f"{len(outbound())} contracts, {count} terms, {len(kinds)} distinct;"
        f" share {part + 1} of {SHARDS}: {tally.asked} situations, {dict(tally.answers)}"
    )
    assert tally.wrong == []
    assert {"replay", "look_up", "review", "redo", "force", "nothing"} <= set(tally.answers)


def test_there_are_as_many_situations_as_it_says() -> None:
    _, kinds, looks = distinct()
    asked = sum(len(moments(f)) for f, _ in kinds) * len(HISTORIES)
    assert asked * 12 + len(looks) * ABSENCES > LEAST


def test_what_only_a_reader_reads_decides_nothing() -> None:
    """Terms that differ in texts alone are asked about once: this samples whether they may be."""
    for f, t in distinct()[1][::7]:
        for s, name, delay in itertools.islice(situations(f, t), 0, None, 41):
            assert ask(f, t, s, name, delay) == ask(f, without_texts(t), s, name, delay)


OTHERS: list[dict[str, Any]] = [
    {"state": state, "waiting": waiting, "held": held, "lookups": lookups}
    for state in ("pending", "accepted", "done", "not_done")
    for waiting in ("clock", "review", "approval", "input", "authorization", "target", "")
    for held in (False, True)
    for lookups in (0, 12, 15)
]


@pytest.mark.parametrize("verify", [False, True])
def test_nothing_forbidden_follows_any_other_state(verify: bool) -> None:
    tally = Tally()
    for (f, t), other in itertools.product(distinct()[1][::8], OTHERS):
        s = Now(now=LEASE_END + 1, first=START, last=LEASE_END, started=START,
                sent=HISTORIES["one lost"], **other)  # fmt: skip
        status = replace(status_of(s), verify=verify)
        step = reconcile.next_step(status, t, attempts("one lost"), World(now=s.now))
        tally.answers[step.do.value] += 1
        tally.judge(broken(f, s, step.do.value, step.at), f, s, step)
    assert tally.wrong == []
    print(f"{tally.answers.total()} situations, {dict(tally.answers)}")


# --- what an absence proves ----------------------------------------------------------------

REPORTS: list[tuple[Finding, Looked]] = [
    (finding, Looked(
        found_nothing=isinstance(finding, Absent), complete=getattr(finding, "complete", True),
        control=control, finds_anything=anything, restored=restored,
    ))
    for finding in (Absent(), Absent(complete=False), Unknown("403"))
    for control in ("found", "missing", "none")
    for anything in (False, True)
    for restored in (False, True)
]  # fmt: skip
STEPS = (None, START - 1, LEASE_END)
EPOCHS = (frozenset({1}), frozenset({1, 2}), frozenset({1, 2, 3}))
BEGAN = 5
ABSENCES = len(REPORTS) * len(STEPS) * len(EPOCHS) * BEGAN * len(HISTORIES)


def began(f: Facts, stepped: int | None) -> list[int]:
    quiet = f.quiet(LEASE_END, None) or LEASE_END
    later = f.quiet(LEASE_END, stepped) or LEASE_END
    return [LEASE_END + 1, quiet, quiet + 1, later, later + 1]


def absences(part: int | None) -> Iterator[tuple[Facts, Terms, Now, Looked, str, LookReport]]:
    """Every look-up that found nothing, in every situation."""
    for f, t in shard(part, distinct()[2]):
        for name, stepped in itertools.product(HISTORIES, STEPS):
            s = Now(
                now=0, first=START, last=LEASE_END, started=START, sent=HISTORIES[name],
                epoch=max(a.epoch for a in HISTORIES[name]), stepped=stepped,
            )  # fmt: skip
            for begun, epochs in itertools.product(began(f, stepped), EPOCHS):
                s.now = begun + SECOND
                for finding, look in REPORTS:
                    look.began, look.epochs = begun, epochs
                    report = LookReport(
                        finding=finding, epochs=epochs, control=look.control,
                        invented_found=look.finds_anything,
                    )  # fmt: skip
                    yield f, t, s, look, name, report


def weigh(part: int | None, *, stop: bool = False) -> Tally:
    """Ask what every absence proves; `stop` at the first that counts and should not."""
    tally = Tally()
    for f, t, s, look, name, report in absences(part):
        made = looking(look.began)
        world = World(now=s.now, stepped_at=s.stepped, restored=look.restored)
        why = reconcile.absence_counts(
            report, made, status_now(s.epoch), t, attempts(name), world=world
        )
        lacks = unearned(f, s, look)
        tally.asked += 1
        tally.answers["earned" if not why else "not earned"] += 1
        if bool(why) != bool(lacks):
            tally.judge(f"law 5: {lacks or 'refused: ' + why}", f, s, look, name)
            if stop:
                return tally
    return tally


@cache
def looking(began_at: int) -> Any:
    [*_, look] = attempts("one lost", began_at)
    return look


@cache
def status_now(epoch: int) -> Status:
    return status_of(Now(now=0, first=START, last=LEASE_END, started=START, sent=[], epoch=epoch))


@pytest.mark.timeout(120)  # half a million look-ups
@pytest.mark.parametrize("part", range(SHARDS))
def test_an_absence_counts_only_if_it_was_earned_and_always_then(part: int) -> None:
    tally = weigh(part)
    print(f"share {part + 1} of {SHARDS}: {tally.asked} look-ups, {dict(tally.answers)}")
    assert tally.wrong == []
    assert set(tally.answers) == {"earned", "not earned"}


# --- what a report changes -----------------------------------------------------------------

OPERATION = Operation(
    id="o", namespace="n", action="a", key="k", fingerprint="f", input="{}"
)  # fmt: skip


def settled_looks() -> Tally:
    """Settle look-ups of every kind: several, foreign, denied, found, not there."""
    tally = Tally()
    kinds: list[Finding] = [Absent(), Done(ref="r"), Several(refs=["r", "s"]), Unknown("404")]
    for (f, t), name in itertools.product(distinct()[2], ("one lost", "an older key elsewhere")):
        quiet = f.quiet(LEASE_END, None) or LEASE_END
        for finding, control, anything, begun in itertools.product(
            kinds, ("found", "none"), (False, True), (LEASE_END + 1, quiet + 1)
        ):
            sent = HISTORIES[name]
            s = Now(now=begun + 1, first=START, last=LEASE_END, started=START, sent=sent,
                    epoch=max(a.epoch for a in sent))  # fmt: skip
            look = replace(looking(begun), outcome=None, ended_at=None)
            status = replace(status_of(s), token=look.token, kind=Kind.LOOK_UP)
            case = Case(operation=OPERATION, status=status, terms=t,
                        attempts=(*attempts(name), look))  # fmt: skip
            report = LookReport(finding=finding, epochs=frozenset({1, 2}), control=control,
                                invented_found=anything)  # fmt: skip
            after = settle.looked(case, look, report, World(now=s.now), 5).status
            seen = Looked(isinstance(finding, Absent), complete=True, began=begun, control=control,
                          finds_anything=anything, epochs=frozenset({1, 2}))  # fmt: skip
            tally.asked += 1
            tally.answers[after.state.value] += 1
            tally.judge(_looked_wrongly(f, s, seen, finding, after), f, s, finding, after)
            apart = settle.foreign(case, look, World(now=s.now), 5, ref="r", other="p").status
            if (apart.state, apart.waiting_on) != (State.UNKNOWN, WaitingOn.REVIEW):
                tally.judge("law 6: a foreign object is no proof", f, s, apart)
    return tally


def _looked_wrongly(f: Facts, s: Now, seen: Looked, finding: Finding, after: Status) -> str:
    lacks = unearned(f, s, seen)
    if after.state is State.PENDING and lacks:
        return f"law 5: sent again although {lacks}"
    if after.state is State.DONE and (not isinstance(finding, Done) or seen.finds_anything):
        return "law 5: done by a look-up that did not find it"
    if isinstance(finding, Several) and not seen.finds_anything:
        person = after.waiting_on is WaitingOn.REVIEW and after.state is State.UNKNOWN
        return "" if person else "several: never pick one"
    if isinstance(finding, Unknown) and after.state is not State.UNKNOWN:
        return "law 14: a denied look-up changed what is known"
    return ""


def test_a_look_up_moves_nothing_that_it_does_not_prove() -> None:
    tally = settled_looks()
    print(f"{tally.asked} settled look-ups, {dict(tally.answers)}")
    assert tally.wrong == []
    assert {"done", "pending", "unknown"} <= set(tally.answers)


def refusals() -> Tally:
    """Settle refusals of every kind beside every history."""
    tally = Tally()
    for (_, t), name, kind in itertools.product(distinct()[1][::61], HISTORIES, NotDoneKind):
        for stored, at_risk in itertools.product((False, True), repeat=2):
            made, own = list(attempts(name)), len(HISTORIES[name]) - 1
            made[own] = replace(made[own], outcome=None, ended_at=None, without_proof=at_risk)
            s = Now(now=LEASE_END, first=START, last=LEASE_END, started=START,
                    sent=HISTORIES[name], epoch=made[own].epoch)  # fmt: skip
            status = replace(status_of(s), state=State.RUNNING, token=made[own].token,
                             kind=made[own].kind)  # fmt: skip
            case = Case(operation=OPERATION, status=status, terms=t, attempts=tuple(made))
            finding = NotDone(kind, stored=stored)
            after = settle.report(case, made[own], finding, World(now=s.now), 5).status
            open_ = others_open(s.sent, own, stored=stored, at_risk=at_risk)
            tally.asked += 1
            tally.answers[after.state.value] += 1
            if open_ != (after.state is State.UNKNOWN):
                tally.judge("law 7: a refusal spoke for another attempt", name, finding, after)
            lost = settle.report(case, made[own], Unknown("?"), World(now=s.now), 5).status
            if lost.state is not State.UNKNOWN:
                tally.judge("law 13: what nobody classified is unknown", name, lost)
    return tally


def test_a_refusal_speaks_for_its_own_attempt_alone() -> None:
    tally = refusals()
    print(f"{tally.asked} settled refusals, {dict(tally.answers)}")
    assert tally.wrong == []
    assert {"pending", "not_done", "unknown"} <= set(tally.answers)


def new_keys() -> Tally:
    """Claim, after proof, at every moment: a new key only for one that is dead or forgotten."""
    tally = Tally()
    for f, t in distinct()[1]:
        for now, dead in itertools.product(moments(f), (False, True)):
            s = Now(now=now, first=START, last=LEASE_END, started=START, state="pending",
                    sent=HISTORIES["a refused one before"])  # fmt: skip
            status = replace(status_of(s), target_key="" if dead else "k", due_at=now)
            made = [replace(a, outcome=Outcome.NOT_DONE) for a in attempts("two lost")]
            case = Case(operation=OPERATION, status=status, terms=t, attempts=made)
            after = claims.claim(
                case, Do.EXECUTE, World(now=now), token=9, stamp=5, next_key=lambda e: f"k{e}"
            ).status  # fmt: skip
            fresh = after.epoch > 1
            tally.asked += 1
            tally.answers["new key" if fresh else "same key"] += 1
            tally.judge(wrong_epoch(f, s, dead=dead, fresh=fresh), f, s, dead, after)
            if not after.target_key:
                tally.judge("law 12: sent without its key", f, s, after)
    return tally


def test_a_new_key_only_after_proof_for_one_that_is_dead_or_forgotten() -> None:
    tally = new_keys()
    print(f"{tally.asked} claims, {dict(tally.answers)}")
    assert tally.wrong == []
    assert set(tally.answers) == {"new key", "same key"}


# --- each guard is switched off once -------------------------------------------------------

Patch = pytest.MonkeyPatch


def says(place: Any, name: str, answer: Any) -> Callable[[Patch], None]:
    return lambda patch: patch.setattr(place, name, lambda *_, **__: answer)


def no_window(patch: Patch) -> None:
    patch.setattr(reconcile, "window_end", lambda *_: contract.FOREVER)


def no_own_deadline(patch: Patch) -> None:
    def lenient(status: Any, terms: Any, world: Any, begins: int) -> bool:
        end = contract.window_end(terms, status.first_claim_at or 0)
        return bool(end is not None and begins < end)

    patch.setattr(reconcile, "replay_protected", lenient)


def any_bytes(patch: Patch) -> None:
    real = contract.protection

    def lenient(t: Terms, *, in_window: bool) -> Any:
        return real(replace(t, same_bytes=True), in_window=in_window)

    patch.setattr(reconcile, "protection", lenient)


def always_race_free(patch: Patch) -> None:
    for place in (contract, reconcile):
        patch.setattr(place, "race_free", lambda *_: True)


def no_lateness(patch: Patch) -> None:
    patch.setattr(reconcile, "_lateness_end", lambda *given: given[-1].now - 1)


def executes_the_unknown(patch: Patch) -> None:
    real = reconcile._search

    def blind(*given: Any) -> Any:
        return replace(real(*given), do=Do.EXECUTE)

    patch.setattr(reconcile, "_search", blind)


def believes(**facts: Any) -> Callable[[Patch], None]:
    def mutant(patch: Patch) -> None:
        real = reconcile.absence_counts

        def lenient(report: Any, *rest: Any, **more: Any) -> str:
            return real(replace(report, **facts), *rest, **more)

        patch.setattr(reconcile, "absence_counts", lenient)

    return mutant


def no_quiet_period(patch: Patch) -> None:
    real = reconcile.quiet_end

    def lenient(status: Any, *rest: Any) -> Any:
        return None if real(status, *rest) is None else status.last_deadline

    patch.setattr(reconcile, "quiet_end", lenient)


STEP_MUTANTS: list[tuple[Callable[[Patch], None], str]] = [
    (executes_the_unknown, "law 4: an_unknown_executed_blindly"),
    (says(reconcile, "protection_now", contract.Class.REPEATABLE),
     "law 4: an_unknown_done_again_though_others_see_it"),
    (no_window, "law 6: a_replay_that_lands_after_the_key_is_forgotten"),
    (no_own_deadline, "law 6: a_replay_that_lands_after_the_key_is_forgotten"),
    (any_bytes, "law 6: a_replay_of_other_bytes"),
    (says(reconcile, "_same_scope", answer=True), "law 6: a_replay_elsewhere"),
    (always_race_free, "law 6: a_replay_beside_one_that_may_still_arrive"),
    (no_lateness, "law 6: a_replay_beside_one_that_may_still_arrive"),
    (says(reconcile, "deadlines_known", answer=True),
     "law 5 6: a_replay_beside_code_that_may_still_send"),
    (says(reconcile, "_looked_since", answer=True),
     "law 6: an_identity_replayed_without_looking_first"),
    (says(policy, "exhausted", answer=False), "law 15: more_attempts_than_allowed"),
    (says(policy, "overdue", answer=False), "law 15: an_unknown_beyond_its_time"),
]  # fmt: skip
ABSENCE_MUTANTS: list[tuple[Callable[[Patch], None], str]] = [
    (no_quiet_period, "law 5: a request may still arrive"),
    (believes(control="found"), "law 5: it did not find the known object"),
    (believes(invented_found=False), "law 5: it also finds what was never sent"),
    (believes(epochs=frozenset(range(9))), "law 5: a key that was sent was not looked for"),
    (says(reconcile, "deadlines_known", answer=True), "law 5: code may still be sending"),
]


@pytest.mark.timeout(60)  # until the first breach
@pytest.mark.parametrize(("mutant", "law"), STEP_MUTANTS, ids=range(1, len(STEP_MUTANTS) + 1))
def test_a_step_by_a_guard_that_is_off_is_seen(mutant: Any, law: str) -> None:
    with pytest.MonkeyPatch.context() as patch:
        mutant(patch)
        [first, *_] = steps(None, stop=True).wrong
    assert first.startswith(law)


@pytest.mark.timeout(60)
@pytest.mark.parametrize(("mutant", "lack"), ABSENCE_MUTANTS, ids=range(1, 6))
def test_an_absence_by_a_guard_that_is_off_is_seen(mutant: Any, lack: str) -> None:
    with pytest.MonkeyPatch.context() as patch:
        mutant(patch)
        [first, *_] = weigh(None, stop=True).wrong
    assert first.startswith(lack)


@pytest.mark.parametrize(
    ("place", "name", "answer", "found"),
    [
        (settle, "others_may_have_sent", False, refusals),
        (claims, "new_epoch_needed", False, new_keys),
        (claims, "new_epoch_needed", True, new_keys),
        (settle, "absence_counts", "", settled_looks),
    ],
    ids=range(4),
)
def test_a_change_by_a_guard_that_is_off_is_seen(
    place: Any, name: str, answer: Any, found: Callable[[], Tally]
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        says(place, name, answer)(patch)
        assert found().wrong

"""The simulator's bounded share: a sample of seeds is clean, and it would see what goes wrong."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ascertain.core import settle
from ascertain.core.machine import Input
from ascertain.core.model import State
from ascertain.runtime import beginning, freezing, versions
from mutants.test_runtime_mutants import leads, no_own_deadline, no_quiet_period, says, verdicts
from sim import auditor
from sim.adversary import Adversary
from sim.auditor import Effect, Final, Look, Promise, Said, Send, Story, judge
from sim.exhaustive import MODELS, Model, explore
from sim.kinds import KINDS
from sim.shrink import shortest
from sim.sim import PLANS, setting, simulate

SHARE, PARTS = 600, 4  # schedules in `make test`, and tests that they are spread over
ROOT = Path(__file__).parents[2]


# --- the sample ---


@pytest.mark.timeout(120)
@pytest.mark.parametrize("part", range(PARTS))
def test_a_sample_of_schedules_is_clean(part: int) -> None:
    wrong = {}
    for seed in range(part, SHARE, PARTS):
        out = simulate(seed)
        if out.wrong:
            wrong[seed] = out.wrong
    assert not wrong, f"python -m tests.sim --seed {min(wrong)}"


@pytest.mark.timeout(60)
@pytest.mark.parametrize("model", MODELS, ids=lambda m: m.name)
def test_every_interleaving_up_to_a_depth_is_clean(model: Model) -> None:
    states, wrong = explore(model, 10, 20_000)
    assert states > 300
    assert not wrong


def test_the_same_seed_tells_the_same_story() -> None:
    for seed in (3, 44, 101):
        first, second = simulate(seed, trace=True), simulate(seed, trace=True)
        assert first.trace == second.trace
        again = simulate(seed, first.plan, trace=True, given=first.setting)
        assert again.plan == first.plan


def test_a_seed_tells_the_same_story_in_every_process() -> None:
    command = [sys.executable, "-m", "tests.sim", "--seed", "44", "--whole"]
    told = [
        subprocess.run(
            command, cwd=ROOT, env={"PYTHONHASHSEED": seed, "PATH": ""}, check=False,
            capture_output=True, text=True,
        ).stdout
        for seed in ("1", "2")
    ]  # fmt: skip
    assert told[0] == told[1]
    assert "said shop.order" in told[0]


def test_half_of_the_seeds_have_to_end_without_a_person() -> None:
    even, odd = [setting(n) for n in range(0, 1000, 2)], [setting(n) for n in range(1, 1000, 2)]
    assert {s.kind.name for s in even} == {k.name for k in KINDS if k.alone}
    assert {s.kind.name for s in odd} == {k.name for k in KINDS}
    assert {s.scenario for s in even} == {s.scenario for s in odd} == set(PLANS)
    assert not any(s.breaks for s in even)


@pytest.mark.parametrize(("scenario", "name"), [
    ("versions", "shop.order/o0v2"), ("undo", "shop.undo/undo-o0"),
    ("repeat", "shop.order/o0#repeat-1"),
])  # fmt: skip
def test_what_follows_an_operation_is_really_asked_for(scenario: str, name: str) -> None:
    seeds = [n for n in range(400) if setting(n).scenario == scenario][:8]
    told = [simulate(seed).story.final for seed in seeds]
    assert any(name in final and final[name].state == "done" for final in told)


# --- it sees what goes wrong ---

Mutant = Callable[[pytest.MonkeyPatch], None]
SEEN: list[tuple[str, Mutant, str, dict[str, Any]]] = [
    ("lease", leads(Input.EXPIRED, State.RUNNING, State.PENDING), "duplicated",
     {"kind": "searchable"}),
    ("quiet period", no_quiet_period, "duplicated", {"kind": "searchable"}),
    ("window", no_own_deadline, "blind_resend", {"kind": "idempotent/short", "often": "checked"}),
    ("fingerprint", says(beginning, "same", None), "law 9",
     {"kind": "identified", "scenario": "other input", "callers": 2}),
    ("older version", says(versions, "_blocks", ""), "law 10",
     {"kind": "searchable", "scenario": "versions"}),
    ("approval", says(freezing, "check_approval", None), "sent_not_approved",
     {"kind": "opaque", "scenario": "approval", "often": "restore"}),
]  # fmt: skip


@pytest.mark.timeout(90)
@pytest.mark.parametrize(("mutant", "verdict", "where"), [s[1:] for s in SEEN],
                         ids=[s[0] for s in SEEN])  # fmt: skip
def test_it_sees_a_guard_that_is_off(
    mutant: Mutant, verdict: str, where: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    mutant(monkeypatch)
    assert any(verdict in verdicts(seed, where) for seed in range(1, 240, 2))


@pytest.mark.timeout(60)
@pytest.mark.parametrize(("mutant", "verdict"), [
    (leads(Input.EXPIRED, State.RUNNING, State.PENDING), "wrong_failed"),
    (says(settle, "others_may_have_sent", False), "wrong_failed"),
    (says(settle, "absence_counts", ""), "wrong_failed"),
], ids=["lease", "speaks for itself", "absence"])  # fmt: skip
def test_the_exhaustive_part_sees_a_guard_that_is_off(
    mutant: Mutant, verdict: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    mutant(monkeypatch)
    found = [explore(model, 10, 20_000)[1] for model in MODELS]
    assert verdict in {what for wrong in found for what, _ in wrong}


def test_a_failing_schedule_is_shortened(monkeypatch: pytest.MonkeyPatch) -> None:
    leads(Input.EXPIRED, State.RUNNING, State.PENDING)(monkeypatch)
    bad = next(o for seed in range(200) if len((o := simulate(seed)).plan) > 3 and o.wrong)
    short = shortest(bad)
    assert 1 <= len(short.plan) < len(bad.plan)
    assert {v.what for v in short.wrong} & {v.what for v in bad.wrong}
    assert short.trace


def test_the_adversary_repeats_itself_and_leaves_out() -> None:
    def play(adversary: Adversary) -> list[Any]:
        return [adversary.ask(f"at {n % 3}", 0.5, lambda r: (r.random(),)) for n in range(40)]

    first = Adversary(7, 5)
    done = play(first)
    assert len(first.did) == 5
    assert play(Adversary(7, 5, dict(first.did))) == done
    assert not any(play(Adversary(7, 5, {})))


# --- the auditor ---

S, ORDER = 1_000_000, "shop.order/1"


def story(promise: Promise | None = None, **more: Any) -> Story:
    told = Story(promises={ORDER: promise or Promise(late=20 * S, lag=0)}, submitted={ORDER: 0})
    told.final[ORDER] = final()
    for name, value in more.items():
        setattr(told, name, value)
    return told


def final(**more: Any) -> Final:
    given = {"name": ORDER, "state": "done", "reason": "", "waiting_on": "", "due": False,
             "ref": "a", "refs": ["a"], "reviews": [], "settled": True}  # fmt: skip
    return Final(**{**given, **more})


def send(at: int = 1, token: int = 1, **more: Any) -> Send:
    given = {"name": ORDER, "key": "k", "text": "t", "latest": at * S + 30 * S}
    return Send(at=at * S, token=token, **{**given, **more})


def effect(at: int = 2, ref: str = "a") -> Effect:
    return Effect(at * S, ref, ORDER, "k", None)


def said(at: int = 3, state: str = "unknown", **more: Any) -> Said:
    given = {"reason": "", "waiting_on": "clock", "due": True, "token": None, "kind": "",
             "review": False}  # fmt: skip
    return Said(at=at * S, name=ORDER, state=state, **{**given, **more})


def finds(told: Story) -> set[str]:
    return {v.what for v in judge(told)}


GOOD = {"sends": [send()], "effects": [effect()]}
UNIQUE = Promise(protects="unique", at_once=True, late=20 * S, lag=0)
CASES: list[tuple[str, Story, set[str]]] = [
    ("fine", story(**GOOD), set()),
    ("duplicated", story(effects=[effect(), effect(ref="b")]), {"duplicated"}),
    ("repeatable", story(Promise("repeatable"), effects=[effect(), effect(ref="b")]), set()),
    ("excused", story(effects=[effect(), effect(ref="b")], broken={ORDER: {"late"}}),
     {"found_after_broken_assumption"}),
    ("hidden", story(effects=[effect(), effect(ref="b")], broken={ORDER: {"late"}},
                     told=[(1, ORDER, "a"), (2, ORDER, "b")]), {"hidden_duplicate", "law 8"}),
    ("shown", story(effects=[effect(), effect(ref="b")], broken={ORDER: {"late"}},
                    told=[(1, ORDER, "a"), (2, ORDER, "b")],
                    final={ORDER: final(refs=["a", "b"], reviews=["duplicate"])}),
     {"found_after_broken_assumption"}),
    ("wrong done", story(), {"wrong_done"}),
    ("wrong failed", story(effects=[effect()], final={
        ORDER: final(state="not_done", reason="rejected")}), {"wrong_failed"}),
    ("said pending", story(**GOOD, said=[said(state="pending")]), {"wrong_failed"}),
    ("lost", story(final={}), {"lost"}),
    ("lost with the store, refused before", story(
        final={}, restores=[5 * S], refused={ORDER: 4 * S}), {"lost"}),
    ("lost with the store, refused since", story(
        final={}, restores=[5 * S], refused={ORDER: 6 * S}), set()),
    ("forgotten", story(final={ORDER: final(state="pending", settled=False)}), {"lost"}),
    ("stuck", story(final={ORDER: final(state="unknown", settled=False)}), {"stuck"}),
    ("told", story(final={ORDER: final(state="unknown", settled=False, waiting_on="review",
                                       reviews=["unknown"])}), set()),
    ("endless", story(**GOOD, endless=True), {"stuck"}),
    ("person", story(**GOOD, alone=True, final={ORDER: final(reviews=["unknown"])}),
     {"needed_person"}),
    ("blind", story(effects=[effect()], sends=[send(), send(40, 2)]), {"blind_resend"}),
    ("refused", story(effects=[effect()], sends=[send(refused=5 * S), send(40, 2)]), set()),
    ("looked", story(effects=[effect(41)], sends=[send(), send(40, 2)],
                     looks=[Look(32 * S, 33 * S, ORDER)]), set()),
    ("looked early", story(effects=[effect(41)], sends=[send(), send(40, 2)],
                           looks=[Look(30 * S, 33 * S, ORDER)]), {"blind_resend"}),
    ("unique", story(UNIQUE, effects=[effect()], sends=[send(), send(4, 2)]), set()),
    ("unique, overlapping", story(Promise("unique", late=20 * S, lag=0), effects=[effect()],
                                  sends=[send(), send(4, 2)]), {"blind_resend"}),
    ("other key", story(UNIQUE, effects=[effect()], sends=[send(), send(4, 2, key="k2")]),
     {"blind_resend"}),
    ("window", story(Promise("remembers", at_once=True, keeps=60 * S), effects=[effect()],
                     sends=[send(), send(40, 2)]), {"blind_resend"}),
    ("law 1", story(effects=[effect()], sends=[send(durable=False)]), {"law 1"}),
    ("law 2", story(**GOOD, said=[said(token=1), said(4, token=2, took="look_up")]), {"law 2"}),
    ("law 4", story(**GOOD, said=[said(due=False)]), {"law 4"}),
    ("law 5", story(effects=[effect()], sends=[send(in_time=False)]), {"law 5"}),
    ("law 9", story(**GOOD, merged=[ORDER]), {"law 9"}),
    ("law 11", story(UNIQUE, effects=[effect()], sends=[send(), send(4, 2, text="u")]),
     {"law 11"}),
    ("law 14", story(**GOOD, said=[said(), said(4, "accepted", took="look_up")]), {"law 14"}),
    ("law 15", story(Promise("unique", at_once=True, attempts=1), effects=[effect()],
                     sends=[send(), send(4, 2)]), {"law 15"}),
    ("law 17", story(effects=[effect()], sends=[send(), send(4)]), {"law 17"}),
    ("not approved", story(**GOOD, approved={ORDER: [(0, "other")]}), {"sent_not_approved"}),
    ("approved", story(**GOOD, approved={ORDER: [(0, "t")]}), set()),
]  # fmt: skip


@pytest.mark.parametrize(("told", "verdict"), [c[1:] for c in CASES], ids=[c[0] for c in CASES])
def test_the_auditor_says(told: Story, verdict: set[str]) -> None:
    if not isinstance(told.broken, dict) or ORDER not in told.broken:
        told.broken = {ORDER: set()}
    assert finds(told) == verdict


def test_a_successor_sent_while_the_older_is_open_breaks_law_10() -> None:
    newer = "shop.order/2"
    told = story(**GOOD, said=[said(state="running", token=1)])
    told.promises[newer] = told.promises[ORDER]
    told.sends.append(send(5, 9, name=newer))
    told.effects.append(Effect(6 * S, "b", newer, "k", None))
    told.final[newer] = final(name=newer, ref="b", refs=["b"], older=ORDER)
    assert finds(told) == {"law 10"}


def test_the_auditor_imports_nothing_of_what_it_judges() -> None:
    tree = ast.parse(Path(auditor.__file__).read_text())
    names = {a.name for n in ast.walk(tree) if isinstance(n, ast.Import) for a in n.names}
    names |= {n.module for n in ast.walk(tree) if isinstance(n, ast.ImportFrom)}
    assert names <= {"__future__", "collections", "collections.abc", "dataclasses"}

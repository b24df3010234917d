"""Each guard of the runtime is switched off once; the simulator's auditor, or a scenario over the
real ledger, must say by name what goes wrong."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from msgspec.structs import replace as but

from ascertain import Done, Ledger, Request, SendRefused, State
from ascertain.core import machine, people, policy, reconcile, settle
from ascertain.core.machine import Input
from ascertain.core.model import Absent, NotDone, NotDoneKind, Unknown, WaitingOn
from ascertain.core.reconcile import Do, LookReport
from ascertain.runtime import (
    attempts,
    beginning,
    desk,
    engine,
    freezing,
    lives,
    looking,
    perform,
    versions,
)
from ascertain.runtime.asks import Write
from ascertain.store.base import Written
from ascertain.store.sqlite import SqliteStore
from ascertain.targets import base, http
from ascertain.targets.wire import Wire
from ascertain.testing import FakeClock
from core.scenarios import idempotent, lost
from sim import acting, world
from sim.kinds import BY_NAME, CONTROL
from sim.sim import PLANS, Setting, setting, simulate

Patch = pytest.MonkeyPatch
Mutant = Callable[[Patch], None]
MOST = 320  # schedules that the simulator may need to see a mutant


def says(place: Any, name: str, answer: Any) -> Mutant:
    """The guard answers the same whatever it is asked."""
    return lambda patch: patch.setattr(place, name, lambda *_, **__: answer)


# --- guards that the simulator watches -----------------------------------------------------


def sent_before_it_is_recorded(patch: Patch) -> None:
    real = attempts.claiming

    def forgetful(*given: Any) -> Iterator[Any]:
        steps, answer = real(*given), None
        while True:
            try:
                asked = steps.send(answer)
            except StopIteration as end:
                return end.value
            answer = Written(applied=True) if isinstance(asked, Write) else (yield asked)

    patch.setattr(attempts, "claiming", forgetful)


def every_error_counts_as_not_sent(patch: Patch) -> None:
    patch.setattr(perform, "finding_of_error", lambda *_: NotDone(NotDoneKind.TRANSIENT))


def leads(given: Input, start: State, to: State) -> Mutant:
    def mutant(patch: Patch) -> None:
        cell = but(machine.TABLE[start, given], to=to, waiting_on=WaitingOn.CLOCK)
        patch.setitem(machine.TABLE, (start, given), cell)

    return mutant


def no_quiet_period(patch: Patch) -> None:
    for place in (reconcile, settle, looking, people):
        patch.setattr(place, "quiet_end", lambda status, *_: status.last_deadline)


def told(**facts: Any) -> Mutant:
    def mutant(patch: Patch) -> None:
        real = reconcile.absence_counts

        def lenient(report: Any, *rest: Any, **more: Any) -> str:
            return real(but(report, **facts), *rest, **more)

        patch.setattr(settle, "absence_counts", lenient)

    return mutant


def every_page_counts_as_read(patch: Patch) -> None:
    real = looking._join
    patch.setattr(looking, "_join", lambda given: real([
        Absent() if isinstance(f, Absent) else f for f in given]))  # fmt: skip


def an_invented_key_is_not_asked_for(patch: Patch) -> None:
    def lenient(targets: Any, control: Any, invented: str) -> Iterator[Any]:
        found = {}
        for epoch, key in targets:
            found[epoch] = yield key
        whole, seen = looking._join(found.values()), "none"
        yield invented
        if control is not None and isinstance(whole, Absent):
            seen = "missing" if isinstance((yield control), Absent | Unknown) else "found"
        return LookReport(finding=whole, epochs=frozenset(found), control=seen)

    patch.setattr(looking, "looking", lenient)


def a_failed_control_of_an_invented_key_passes(patch: Patch) -> None:
    real = looking.looking

    def lenient(*given: Any) -> Iterator[Any]:
        steps, answer, invented = real(*given), None, given[2]
        while True:
            try:
                key = steps.send(answer)
            except StopIteration as end:
                return end.value
            answer = yield key
            if key == invented and isinstance(answer, Unknown):
                answer = Absent()

    patch.setattr(looking, "looking", lenient)


def no_own_deadline(patch: Patch) -> None:
    def lenient(status: Any, terms: Any, world: Any, begins: int) -> bool:
        end = reconcile.window_end(terms, status.first_claim_at or 0)
        return bool(end is not None and begins < end)

    patch.setattr(reconcile, "replay_protected", lenient)


def bytes_made_anew(patch: Patch) -> None:
    """An impure `prepare`; the frozen request is forgotten."""
    impure(patch)
    patch.setattr(freezing, "frozen_for", lambda _, d, values, case, change: (
        freezing.freeze(d, values, case.operation, change.status), change))  # fmt: skip


def impure(patch: Patch) -> None:
    count, real = itertools.count(), acting.prepare

    def prepare(ident: Any, *, order: str, text: str = "") -> Request:
        return real(ident, order=order, text=f"{text}{next(count)}")

    patch.setattr(acting, "prepare", prepare)


def exists_counts_unread(patch: Patch) -> None:
    patch.setattr(perform, "finding_of_read_back", lambda *_: Done(ref="whatever exists"))


def no_guard_in_the_store(patch: Patch) -> None:
    real = world.Front.write

    def write(self: Any, changes: Any) -> Any:
        found = self.world.real.snapshots([c.status.operation for c in changes])
        current = {ident: s.status.stamp for ident, s in found.items()}
        return real(self, [
            but(c, guard=current.get(c.status.operation, c.guard)) if c.guard and c.attempt else c
            for c in changes
        ])  # fmt: skip

    patch.setattr(world.Front, "write", write)


def no_clock_steps(patch: Patch) -> None:
    patch.setattr(lives, "STEP_MARGIN", 10**15)


def no_closing_of_the_older(patch: Patch) -> None:
    patch.setattr(versions, "closing_older", lambda *_: ())


def no_bound(patch: Patch) -> None:
    narrow(patch)
    patch.setattr(policy, "exhausted", lambda *_: False)


def narrow(patch: Patch) -> None:
    patch.setattr("sim.sim.ATTEMPTS", 3)
    patch.setitem(acting.BOUNDS, "attempts", 3)


def no_gate_for_undoing(patch: Patch) -> None:
    patch.setattr("sim.sim.check_undo", lambda *_: None)
    patch.setattr(versions, "_undone", lambda *_: "")


def asks_nobody_again(patch: Patch) -> None:
    patch.setattr(freezing, "ask_again", lambda *_: None)


SIM: list[tuple[str, Mutant, str, dict[str, Any]]] = [
    ("intent durable", sent_before_it_is_recorded, "law 1", {"kind": "searchable"}),
    ("unclassified", every_error_counts_as_not_sent, "wrong_failed", {"kind": "searchable"}),
    ("lease", leads(Input.EXPIRED, State.RUNNING, State.PENDING), "wrong_failed",
     {"kind": "searchable"}),
    ("unknown", leads(Input.UNKNOWN, State.RUNNING, State.PENDING), "wrong_failed",
     {"kind": "lagging"}),
    ("look-up keeps the state", leads(Input.NOT_EARNED, State.UNKNOWN, State.PENDING),
     "wrong_failed", {"kind": "lagging"}),
    ("quiet period", no_quiet_period, "blind_resend", {"kind": "searchable"}),
    ("positive control", told(control="found"), "blind_resend",
     {"kind": "searchable", "often": "look", "budget": 20}),
    ("page limit", every_page_counts_as_read, "blind_resend",
     {"kind": "searchable", "often": "look", "budget": 30}),
    ("invented key", an_invented_key_is_not_asked_for, "wrong_done",
     {"kind": "searchable", "finds_anything": True, "orders": 2}),
    ("invented key not answered", a_failed_control_of_an_invented_key_passes, "wrong_done",
     {"kind": "searchable", "finds_anything": True, "orders": 3, "often": "look", "budget": 30}),
    ("window margin", no_own_deadline, "blind_resend",
     {"kind": "idempotent/short", "often": "checked"}),
    ("byte identity", bytes_made_anew, "law 11", {"kind": "idempotent"}),
    ("read back", exists_counts_unread, "wrong_done", {"kind": "identified"}),
    ("fingerprint", says(beginning, "same", None), "law 9",
     {"kind": "identified", "scenario": "other input", "callers": 2}),
    ("supersedes gate", says(versions, "_blocks", ""), "law 10",
     {"kind": "searchable", "scenario": "versions"}),
    ("store's guard", no_guard_in_the_store, "law 2",
     {"kind": "searchable", "workers": 3, "often": "before", "budget": 20}),
    ("clock step", no_clock_steps, "blind_resend",
     {"kind": "searchable", "often": "step"}),
    ("approval", says(freezing, "check_approval", None), "sent_not_approved",
     {"kind": "opaque", "scenario": "approval", "often": "restore"}),
    ("asks again", asks_nobody_again, "stuck",
     {"kind": "opaque", "scenario": "approval", "often": "restore"}),
    ("incarnation, open", says(desk.Desk, "_all_unknown", 0), "blind_resend",
     {"kind": "searchable", "often": "restore"}),
    ("incarnation, new keys", says(lives.Lives, "gap_for_new", None), "blind_resend",
     {"kind": "searchable", "often": "restore"}),
    ("speaks only for itself", says(settle, "others_may_have_sent", False), "wrong_failed",
     {"kind": "identified"}),
    ("late truth", says(settle, "_late", None), "law 8",
     {"kind": "opaque", "often": "answered", "person": "absent"}),
    ("deadline", says(Wire, "left", 1.0), "law 5",
     {"kind": "searchable", "often": "claimed"}),
    ("undo gate", no_gate_for_undoing, "law 18",
     {"kind": "lagging", "scenario": "undo"}),
    ("bounds", no_bound, "law 15", {"kind": "identified", "often": "send"}),
]  # fmt: skip
HARMLESS: dict[str, Mutant] = {
    "byte identity": impure,
    "bounds": narrow,
}  # what a mutant needs, the guard being on


def like(seed: int, **wanted: Any) -> Setting:
    """The setting of a seed, in a corner where the guard matters."""
    kind = BY_NAME[wanted.pop("kind")]
    given = setting(seed)
    person = "right" if given.person == "wrong" else given.person
    return Setting(**{
        **given.__dict__, "kind": kind, "scenario": "plain", "breaks": "", "budget": 8,
        "finds_anything": False, "person": person, **wanted,
    })  # fmt: skip


@pytest.mark.timeout(90)
@pytest.mark.parametrize(("name", "mutant", "verdict", "where"), SIM, ids=[s[0] for s in SIM])
def test_a_guard_that_is_off_is_seen_by_the_auditor(
    name: str, mutant: Mutant, verdict: str, where: dict[str, Any]
) -> None:
    alone = {"needed_person"}
    seeds = range(0, 2 * MOST, 2) if verdict in alone else range(1, 2 * MOST, 2)
    for seed in seeds:
        with pytest.MonkeyPatch.context() as patch:
            mutant(patch)
            if verdict not in verdicts(seed, where):
                continue
        with pytest.MonkeyPatch.context() as patch:
            HARMLESS.get(name, lambda _: None)(patch)
            assert not simulate(seed, given=like(seed, **where)).wrong, f"seed {seed}"
        return
    raise AssertionError(f"{name}: nobody saw it in {MOST} schedules")


def verdicts(seed: int, where: dict[str, Any]) -> set[str]:
    return {v.what for v in simulate(seed, given=like(seed, **where)).wrong}


# --- guards within one call: scenarios over the real ledger and client ----------------------


def shop(**more: Any) -> tuple[Ledger, FakeClock]:
    clock = FakeClock()
    store = SqliteStore(":memory:", clock=clock.wall)
    return Ledger(store, clock=clock, wait=0), clock


def client(frozen: Request | None = None) -> http.EffectHttp:
    return http.EffectHttp(deadline=10, clock=lambda: 0, request=frozen)


def a_second_effect_request_is_refused() -> list[str]:
    one, request = client(), Request(method="POST", url="https://shop.example/orders")
    one._admit(request)
    try:
        one._admit(request)
    except SendRefused:
        return []
    return ["two effect requests in one attempt"]


def only_the_frozen_request_is_sent() -> list[str]:
    request = Request(method="POST", url="https://shop.example/orders", body=b"1")
    try:
        client(request)._admit(but(request, body=b"2"))
    except SendRefused:
        return []
    return ["what is sent is not what was frozen"]


def a_cancelled_attempt_is_unknown() -> list[str]:
    ledger, _ = shop()

    @ledger.action("shop.order", key="{order}", owner="anna", sends="own")
    def order(call: Any, *, order: str) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        order.submit(order="1")
    [found] = ledger.find()
    return [] if found.state is State.UNKNOWN else ["a cancelled attempt counts as not executed"]


def a_risk_on_a_risky_target_needs_two() -> list[str]:
    ledger, _ = shop()

    @ledger.action("shop.order", key="{order}", owner="anna", sends="own", risky=True)
    def order(call: Any, *, order: str) -> None:
        raise TimeoutError

    found = order.submit(order="1")
    ledger.decide(found, "not_there", by="anna", accept_risk=True, why="urgent")
    ledger.recover()
    return [] if ledger.get(found).attempts == 1 else ["one person took the risk alone"]


def an_unknown_action_result_is_unknown() -> list[str]:
    ledger, _ = shop()

    @ledger.action("shop.order", key="{order}", owner="anna", sends="own")
    def order(call: Any, *, order: str) -> str:
        return "fine"

    found = order.submit(order="1")
    return [] if found.state is State.UNKNOWN else ["a result that says nothing counts as done"]


def the_operation_is_not_its_own_control() -> list[str]:
    own = type("Known", (), {"operation": "op", "target_key": CONTROL})()
    return [] if looking.control_key(None, own, "op") is None else ["it is its own control"]


def finds_no_proof_in_a_lost_lease() -> list[str]:
    ledger, clock = shop()

    @ledger.action("shop.order", key="{order}", owner="anna", sends="own", timeout=10)
    def order(call: Any, *, order: str) -> Done:
        clock.advance(11)
        other = Ledger(ledger.store, clock=clock, wait=0)
        other.engine.actions = ledger.engine.actions
        other.recover()
        try:
            call.extend(60)
        except Exception:
            return Done(ref="17")
        return Done(ref="extended")

    found = order.submit(order="1")
    return [] if found.ref == "17" else ["a lost lease is extended"]


def a_stored_failure_speaks_for_its_key_for_good() -> list[str]:
    book = lost(idempotent())
    book.report(book.claim(Do.REPLAY), NotDone(NotDoneKind.TRANSIENT, stored=True))
    book.now = book.status.due_at or 0
    book.report(book.execute(), NotDone(NotDoneKind.THROTTLED, "429"))
    good = book.status.state is State.PENDING
    return [] if good else ["what a stored failure proved is forgotten"]


def extends_what_is_lost(patch: Patch) -> None:
    patch.setattr(engine.Engine, "extend", lambda *_: None)


def interrupts_count_as_refused(patch: Patch) -> None:
    every_error_counts_as_not_sent(patch)


def anything_is_done(patch: Patch) -> None:
    patch.setattr(perform, "finding_of", lambda *_: Done(ref="x"))


def own_control(patch: Patch) -> None:
    patch.setattr(looking, "control_key", lambda *given: given[1].target_key)


SCENARIOS: list[tuple[Mutant, Callable[[], list[str]], str]] = [
    (says(settle, "_end_all_of_key", None), a_stored_failure_speaks_for_its_key_for_good,
     "what a stored failure proved is forgotten"),
    (says(base.SendTrace, "admit", True), a_second_effect_request_is_refused,
     "two effect requests in one attempt"),
    (says(http, "same_bytes", True), only_the_frozen_request_is_sent,
     "what is sent is not what was frozen"),
    (interrupts_count_as_refused, a_cancelled_attempt_is_unknown,
     "a cancelled attempt counts as not executed"),
    (says(desk.Desk, "_second_person", (None, ())), a_risk_on_a_risky_target_needs_two,
     "one person took the risk alone"),
    (anything_is_done, an_unknown_action_result_is_unknown,
     "a result that says nothing counts as done"),
    (own_control, the_operation_is_not_its_own_control, "it is its own control"),
    (extends_what_is_lost, finds_no_proof_in_a_lost_lease, "a lost lease is extended"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("mutant", "scenario", "verdict"), SCENARIOS, ids=[s[1].__name__ for s in SCENARIOS]
)
def test_a_guard_that_is_off_is_seen(
    mutant: Mutant, scenario: Callable[[], list[str]], verdict: str
) -> None:
    assert scenario() == []
    with pytest.MonkeyPatch.context() as patch:
        mutant(patch)
        assert scenario() == [verdict]


def test_the_corners_are_those_of_the_simulator() -> None:
    assert {where.get("scenario", "plain") for *_, where in SIM} <= set(PLANS)

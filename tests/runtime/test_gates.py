"""Targets that are paused or out of reach: operations wait, visibly, and nothing is lost."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

import ascertain
from ascertain import Refused, State, StoreUnavailable, TargetHeld, WaitingOn
from ascertain.core import gates as rule
from ascertain.core.books import Audit, Gate, Watch
from ascertain.core.gates import Breaker
from ascertain.core.model import SECOND, Accepted, Done, NotDone, NotDoneKind, Unknown
from ascertain.runtime.audit import AuditLog, Who
from ascertain.runtime.pausing import Count
from ascertain.runtime.recovery import Due
from ascertain.store.base import Posting
from shop import Shop, register

BREAKER = Breaker(failures=3, within=60 * SECOND, retry_after=30 * SECOND)
MakeShop = Callable[..., Shop]


def guard(ledger: Any, breaker: Breaker | None = BREAKER) -> Any:
    ledger.engine.gates.watch("shop.order", "shop", breaker)
    return ledger.engine.gates


def audited(shop: Shop, did: str, why: str = "") -> Callable[[str, str], tuple[str, Audit]]:
    log = AuditLog(shop.ledger.store, shop.clock)

    def line(before: str, after: str) -> tuple[str, Audit]:
        return log.line(Who(actor="anna"), "default", did, subject="shop", reason=why,
                        before=before, after=after)  # fmt: skip

    return line


def pause(shop: Shop, why: str = "maintenance") -> Gate:
    gates = shop.ledger.engine.gates
    return gates.pause("shop", by="anna", why=why, audited=audited(shop, "target.pause", why))


def resume(shop: Shop) -> Gate:
    gates = shop.ledger.engine.gates
    return gates.resume("shop", by="ben", why="", audited=audited(shop, "target.resume"))


# --- a person pauses ---


def test_what_is_paused_waits_and_says_who_paused_it_and_why(shop: Shop) -> None:
    guard(shop.ledger)
    pause(shop)
    held = shop.order.submit(order=1)
    assert (held.state, held.waiting_on, held.attempts) == (State.PENDING, WaitingOn.TARGET, 0)
    assert held.due_at is not None
    assert held.next_step["en"].endswith("Paused by anna: maintenance.")
    assert held.next_step["zh"].endswith("由 anna 暂停：maintenance。")
    with pytest.raises(TargetHeld, match="paused"):
        shop.order(order=1)
    shop.ledger.recover()
    assert shop.effects(held) == 0
    assert shop.get(held).next_step == held.next_step


def test_resumed_it_goes_on_at_once_in_every_process(shop: Shop) -> None:
    guard(shop.ledger)
    pause(shop)
    held = [shop.order.submit(order=n) for n in range(3)]
    resume(shop)
    other = shop.another()
    register(other, shop.target)
    guard(other)
    assert other.recover().worked == 3
    assert [shop.get(h).state for h in held] == [State.DONE] * 3
    assert [shop.effects(h) for h in held] == [1] * 3


def test_another_process_heeds_a_pause_within_a_second(shop: Shop) -> None:
    guard(shop.ledger)
    other = shop.another()
    order = register(other, shop.target)
    guard(other)
    assert order.submit(order=1).done
    pause(shop)
    shop.clock.advance(1)
    assert order.submit(order=2).waiting_on is WaitingOn.TARGET


def test_a_pause_stops_a_replay_but_not_a_look_up(make_shop: MakeShop) -> None:
    for kind, found in (("searchable", State.DONE), ("identified", State.UNKNOWN)):
        shop = make_shop(kind)
        guard(shop.ledger, None)
        lost = shop.die(sent=True)
        pause(shop)
        shop.clock.advance(11)
        shop.ledger.recover()
        after = shop.get(lost)
        assert after.state is found
        assert (after.waiting_on is WaitingOn.TARGET) is (found is State.UNKNOWN)
        resume(shop)
        shop.ledger.recover()
        assert shop.get(lost).done
        assert shop.effects(lost) == 1


def test_a_paused_replay_does_not_outlast_its_window(make_shop: MakeShop) -> None:
    """Nobody may replay after the window; then a person decides, as always (law 6)."""
    shop = make_shop("idempotent", keeps="10m")
    guard(shop.ledger, None)
    lost = shop.die(sent=False)
    pause(shop)
    shop.settle(most=3600)
    after = shop.get(lost)
    assert (after.state, after.waiting_on) == (State.UNKNOWN, WaitingOn.REVIEW)
    first = shop.ledger.store.attempts(lost.id)[0].started_at
    closed = shop.ledger.store.reviews("default", lost.id)[0].opened_at
    assert closed - first < 10 * 60 * SECOND  # known as soon as nothing is protected any more
    assert len(shop.ledger.store.attempts(lost.id)) == 1


def test_pausing_and_resuming_is_audited_and_an_unknown_target_refused(shop: Shop) -> None:
    guard(shop.ledger)
    pause(shop)
    resume(shop)
    assert resume(shop).state == "open"  # nothing to do, nothing said
    rows = [row for table, row in shop.ledger.store.rows() if table == "audit"]
    assert [(r["did"], r["before"], r["after"]) for r in rows] == [
        ("target.pause", "open", "paused"), ("target.resume", "paused", "open"),
    ]  # fmt: skip
    with pytest.raises(Refused, match="there are shop"):
        shop.ledger.engine.gates.pause("other", by="anna", why="", audited=audited(shop, "x"))


def test_a_pause_belongs_to_one_namespace(shop: Shop) -> None:
    guard(shop.ledger)
    pause(shop)
    other = shop.another("client-b")
    order = register(other, shop.target)
    guard(other)
    assert order.submit(order=1).done


# --- the circuit breaker ---


def down(shop: Shop, count: int) -> list[Any]:
    """So many operations meet a target that is not there."""
    lost = []
    shop.target.looks_fail = "error"
    for n in range(count):
        shop.target.script("hang")
        lost.append(shop.order.submit(order=f"d{n}", wait=0))
    return lost


def test_after_failures_in_a_row_nothing_is_sent_and_one_tries(shop: Shop) -> None:
    gates = guard(shop.ledger)
    down(shop, 3)
    assert gates.of("shop").state == "closed"
    held = [shop.order.submit(order=n, wait=0) for n in range(3)]
    assert {h.waiting_on for h in held} == {WaitingOn.TARGET}
    asked = shop.target.requests() + shop.target.looks()
    shop.ledger.recover()
    assert shop.target.requests() + shop.target.looks() == asked
    shop.target.script("hang")
    shop.clock.advance(31)
    shop.ledger.recover()  # one tries, and fails: closed again, the others were not touched
    assert shop.target.requests() + shop.target.looks() == asked + 2  # its key, and an invented one
    assert gates.of("shop").state == "closed"
    shop.target.looks_fail = ""
    shop.clock.advance(31)
    shop.settle()
    assert gates.of("shop").state == "open"
    assert all(r.done for r in shop.ledger.find(action="shop.order"))


def test_of_two_processes_one_tries(shop: Shop) -> None:
    gates = guard(shop.ledger)
    down(shop, 3)
    other = guard(shop.another())
    other.refresh()
    shop.clock.advance(31)
    now = shop.ledger.store.now()
    first, second = gates.to_try("shop.order", now), other.to_try("shop.order", now)
    assert first == second is not None
    assert gates.take_trial(first, now + SECOND) is not None
    assert other.take_trial(second, now + SECOND) is None
    assert other.to_try("shop.order", now) is None
    assert other.to_try("shop.order", now + SECOND) is not None  # it never said what came of it


def test_an_answer_in_between_begins_the_count_anew(shop: Shop) -> None:
    gates = guard(shop.ledger)
    guard(shop.ledger, Breaker(failures=5))
    down(shop, 2)  # each is looked up at once, so that is four
    assert shop.order.submit(order="fine").done
    down(shop, 2)
    assert gates.of("shop").state == "open"


def test_failures_far_apart_close_nothing(shop: Shop) -> None:
    gates = guard(shop.ledger)
    for n in range(6):
        shop.target.script("hang")
        shop.order.submit(order=n, wait=0)
        shop.clock.advance(40)
    assert gates.of("shop").state == "open"


def test_a_trial_that_was_never_started_is_given_back(shop: Shop) -> None:
    gates = guard(shop.ledger)
    down(shop, 3)
    shop.clock.advance(31)
    trial = gates.take_trial(gates.to_try("shop.order", shop.ledger.store.now()), 10**17)
    gates.try_with(trial, 7)
    gates.heard("shop.order", 7, None)()
    assert gates.to_try("shop.order", shop.ledger.store.now()) is not None


def test_a_gate_that_cannot_be_written_hides_no_outcome(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What happened is known and recorded; the gate is told again by the next one."""
    gates = guard(shop.ledger, Breaker(failures=1))
    down(shop, 1)
    assert gates.of("shop").state == "closed"
    shop.target.looks_fail = ""
    shop.clock.advance(61)
    with monkeypatch.context() as patch:
        patch.setattr(gates, "_reopen", _broken)
        assert shop.order.submit(order="fine").done
    assert gates.of("shop").state == "trying"
    shop.clock.advance(61)
    assert shop.order.submit(order="next").done
    assert gates.of("shop").state == "open"


def _broken(*_: Any) -> None:
    raise StoreUnavailable("the disk is full")


def test_the_asynchronous_ledger_heeds_the_gate(shop: Shop) -> None:
    guard(shop.ledger)
    pause(shop)
    aio = shop.aio()
    order = register(aio, shop.target)
    guard(aio)
    held = asyncio.run(order.submit(order=1))
    assert held.waiting_on is WaitingOn.TARGET
    resume(shop)
    asyncio.run(aio.recover())
    assert shop.get(held).done


def test_nothing_is_asked_of_the_store_for_a_single_operation(shop: Shop) -> None:
    guard(shop.ledger)
    store, asked = shop.ledger.store, []
    real = store.ask

    def ask(*given: Any, **values: Any) -> Any:
        asked.append(given[1])
        return real(*given, **values)

    store.ask = ask
    for n in range(50):
        assert shop.order.submit(order=n).done
    assert asked.count("gates_of") <= 1


def test_on_postgresql_too(make_shop: MakeShop, postgres_database: str) -> None:
    """Its statements are its own: pausing, holding, one who tries, and resuming."""
    shop = make_shop(url=postgres_database)
    gates = guard(shop.ledger)
    pause(shop)
    held = shop.order.submit(order=1)
    assert held.waiting_on is WaitingOn.TARGET
    [count] = shop.ledger.store.ask(
        Count, "gate_waiting", namespace="default", action="shop.order", most=10
    )
    assert count.count == 1
    resume(shop)
    shop.ledger.recover()
    assert shop.get(held).done
    down(shop, 3)
    shop.clock.advance(31)
    gate, now = gates.to_try("shop.order", shop.ledger.store.now()), shop.ledger.store.now()
    assert gates.take_trial(gate, now + SECOND) is not None
    assert gates.take_trial(gate, now + SECOND) is None
    store, at = shop.ledger.store, {"namespace": "default", "action": "shop.order"}
    for name, more in (("work_due", {}), ("work_after", {"after": ""})):
        assert store.ask(Due, name, **at, now=now + 10**9, most=10, **more)
    store.post(
        [
            Posting(
                (
                    (
                        "watch_add",
                        Watch(
                            operation=held.id,
                            namespace="default",
                            url="https://x.test",
                            asked_at=1,
                            due_at=1,
                        ),
                    ),
                )
            )
        ]
    )
    assert [w.operation for w in store.ask(Watch, "watch_ready", namespace="default", most=5)] == [
        held.id
    ]  # fmt: skip
    store.post([Posting((("watch_told", {"operation": held.id, "url": "https://x.test"}),))])
    assert store.ask(Watch, "watch_ready", namespace="default", most=5) == []


# --- the rule ---


@pytest.mark.parametrize(
    ("finding", "says"),
    [
        (Done(ref="1"), True), (Accepted(), True),
        (NotDone(NotDoneKind.TRANSIENT), False), (NotDone(NotDoneKind.THROTTLED), True),
        (NotDone(NotDoneKind.INVALID), True), (Unknown("no answer"), False),
        (Unknown(evidence={"status": 503}), False), (Unknown(evidence={"status": 409}), True),
        (ascertain.Absent(), None), (ascertain.Several(refs=["1", "2"]), None),
    ],
)  # fmt: skip
def test_what_an_attempt_says_about_its_target(finding: Any, says: bool | None) -> None:
    assert rule.reached(finding) is says


@pytest.mark.parametrize(
    ("state", "until", "effect", "look"),
    [
        ("open", None, None, None), ("paused", None, 10 + rule.HELD_FOR, None),
        ("closed", 20, 20, 20), ("closed", 10, None, None),
        ("trying", 20, 20, 20), ("trying", 9, None, None),
    ],
)  # fmt: skip
def test_until_when_a_gate_holds(
    state: str, until: int | None, effect: int | None, look: int | None
) -> None:
    gate = Gate(namespace="n", target="t", state=state, since=1, until=until)
    assert rule.held_until(gate, 10, looks=False) == effect
    assert rule.held_until(gate, 10, looks=True) == look

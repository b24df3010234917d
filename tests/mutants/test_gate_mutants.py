"""Each guard of targets that wait, and of own code, is switched off once; a scenario over the real
ledger must say what goes wrong."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from ascertain import Contract, Done, Ledger, State
from ascertain.core import gates as rule
from ascertain.core import reconcile
from ascertain.core.books import Audit
from ascertain.core.contract import KeyRule, LateRule, RepeatRule
from ascertain.core.gates import Breaker
from ascertain.core.model import FOREVER, SECOND
from ascertain.runtime import attempts, beginning, driving, own_code
from ascertain.runtime.gates import Gates, Trial
from ascertain.store.sqlite import SqliteStore
from ascertain.testing import FakeClock

Patch = pytest.MonkeyPatch
CONTRACT = Contract(
    id="shop.order",
    key=KeyRule(at="header:Idempotency-Key", kind="request"),
    repeat=RepeatRule(answer="replay", atomic=True, keeps="10m"),
    late=LateRule(max="1s"),
)


class House:
    """A ledger with one action whose target is guarded; `sent` is what reached it."""

    def __init__(self) -> None:
        self.clock = FakeClock()
        store = SqliteStore(":memory:", clock=self.clock.wall)
        self.ledger, self.sent = Ledger(store, clock=self.clock, wait=0), []
        self.fails = False
        self.order = self.ledger.action(
            "shop.order", key="{order}", owner="anna", sends_within=5, timeout=5, contract=CONTRACT,
            deterministic=True,
        )(self.act)  # fmt: skip
        self.gates.watch("shop.order", "shop", Breaker(failures=1, retry_after=30 * SECOND))

    @property
    def gates(self) -> Gates:
        return self.ledger.engine.gates

    def act(self, call: Any, *, order: str) -> Done:
        self.sent.append(order)
        if self.fails:
            raise TimeoutError
        return Done(ref=order)

    def pause(self) -> None:
        self.gates.pause("shop", by="anna", why="", audited=_line)


def _line(before: str, after: str) -> tuple[str, Audit]:
    return "audit_add", Audit(id=f"{before}-{after}", namespace="", at=1, actor="", did="")


def nothing_is_sent_to_a_paused_target() -> list[str]:
    house = House()
    house.pause()
    house.order.submit(order="1")
    house.ledger.recover()
    return ["sent to a paused target"] if house.sent else []


def a_pause_does_not_outlast_the_window() -> list[str]:
    house = House()
    given = house.order.definition.intent({"order": "1"}, house.clock.wall())
    engine, options = house.ledger.engine, house.order.options
    engine.begin(house.order.definition, given, options, execute=True)
    house.pause()
    for _ in range(20):
        house.ledger.recover()
        [found] = house.ledger.find()
        if found.due_at is None:
            break
        house.clock.sleep(max(found.due_at - house.clock.wall(), 0) + 1)
    opened = house.ledger.reviews()[0].opened_at
    first = house.ledger.store.attempts(found.id)[0].started_at
    late = opened - first > 9 * 60 * SECOND  # 0.9 of what the target keeps
    return ["a person learns of it after the window"] if late else []


def one_operation_tries_a_closed_target() -> list[str]:
    house = House()
    house.fails = True
    house.order.submit(order="0")
    gate = house.gates.of("shop")
    house.clock.advance(31)
    now = house.ledger.store.now()
    first = house.gates.take_trial(gate, now + SECOND)
    second = house.gates.take_trial(gate, now + SECOND)
    return ["two try a closed target"] if first and second else []


def a_closed_target_is_left_alone() -> list[str]:
    house = House()
    house.fails = True
    house.order.submit(order="0")
    house.order.submit(order="1")
    return ["sent to a target that does not answer"] if "1" in house.sent else []


def own_code_is_never_run_here() -> list[str]:
    house = House()
    one = SimpleNamespace(required=True, default=None, type="any", fits=lambda _: True)
    own = own_code.register(house.ledger, "own", owner="anna", contract=CONTRACT, key="{order}",
                          inputs={"order": one}, timeout=5)  # fmt: skip
    own.enqueue(order="1")
    house.ledger.recover()
    own.submit(order="2")
    states = {r.state for r in house.ledger.find(action="own")}
    return [] if states == {State.PENDING} else ["the server claimed what own code carries out"]


def says(place: Any, name: str, answer: Any) -> Callable[[Patch], None]:
    return lambda patch: patch.setattr(place, name, lambda *_, **__: answer)


def anybody_may_act(patch: Patch) -> None:
    for place in (attempts, beginning, driving):
        patch.setattr(place, "may_act", lambda *_: True)


def everybody_tries(patch: Patch) -> None:
    patch.setattr(Gates, "take_trial", lambda _, gate, __: Trial(gate))


def nothing_fails(patch: Patch) -> None:
    patch.setattr(rule, "reached", lambda _: True)


SCENARIOS: list[tuple[Callable[[Patch], None], Callable[[], list[str]], str]] = [
    (says(rule, "held_until", None), nothing_is_sent_to_a_paused_target,
     "sent to a paused target"),
    (says(reconcile, "_last_replay", FOREVER), a_pause_does_not_outlast_the_window,
     "a person learns of it after the window"),
    (everybody_tries, one_operation_tries_a_closed_target, "two try a closed target"),
    (nothing_fails, a_closed_target_is_left_alone, "sent to a target that does not answer"),
    (anybody_may_act, own_code_is_never_run_here,
     "the server claimed what own code carries out"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("mutant", "scenario", "verdict"), SCENARIOS, ids=[s[1].__name__ for s in SCENARIOS]
)
def test_a_guard_that_is_off_is_seen(
    mutant: Callable[[Patch], None], scenario: Callable[[], list[str]], verdict: str
) -> None:
    assert scenario() == []
    with pytest.MonkeyPatch.context() as patch:
        mutant(patch)
        assert scenario() == [verdict]

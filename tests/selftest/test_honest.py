"""A target that is as its contract says: every claim that can be tried holds, nothing is left."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from ascertain import Ledger, selftest
from ascertain.core.contract import Class
from ascertain.runtime import verified
from selftest.sandbox import INPUT, Trial
from shop import Shop

CLASSES = [
    pytest.param("idempotent", {}, Class.IDEMPOTENT, id="idempotent"),
    pytest.param("identified", {}, Class.IDENTIFIED, id="identified"),
    pytest.param("searchable", {}, Class.SEARCHABLE, id="searchable"),
    pytest.param("lagging", {"lag": 20}, Class.LAGGING, id="lagging"),
    pytest.param("opaque", {"looks": False}, Class.OPAQUE, id="opaque"),
]


def run(made: Trial, **more: Any) -> selftest.Findings:
    given = {"sandbox": True, "undo": "box.remove", **more}
    return selftest.run(made.ledger, "box.order", INPUT, **given)


def result(found: selftest.Findings) -> dict[str, str]:
    return {v.claim: v.result for v in found.verdicts}


@pytest.mark.parametrize(("kind", "more", "protection"), CLASSES)
def test_every_class_holds_and_nothing_is_left(trial, kind, more, protection) -> None:
    made = trial(kind, **more)
    found = run(made)
    assert found.holds
    assert found.stamped
    assert found.protection == found.without
    assert found.protection[0] == protection
    assert made.box.made <= found.plan.most
    assert made.box.effects() == []
    assert found.left == ()
    assert all(thing.refs for thing in found.things)
    once = kind in ("idempotent", "identified")
    assert ("repeat.atomic" in found.held) is once
    assert "repeat.answer" in found.held
    if more.get("looks", True):
        assert {"lookup", "lookup.by", "lookup.lag", "lookup.blind", "undo"} <= set(found.held)


@pytest.mark.parametrize(("kind", "more", "protection"), CLASSES)
def test_the_plan_says_how_many_objects_and_sends_nothing(trial, kind, more, protection) -> None:
    made = trial(kind, **more)
    plan = selftest.plan(made.ledger.engine.actions["box.order"], INPUT)
    assert made.box.requests() == made.box.looks() == 0
    assert plan.protection == protection
    found = run(made, undo=None)  # nothing removes them, so they can be counted
    assert len(made.box.effects()) == plan.creates <= plan.most
    assert sum(len(t.refs) for t in found.left) == plan.creates
    assert {ref for t in found.left for ref in t.refs} == {r for _, _, r in made.box.effects()}
    assert all(t.key.startswith("selftest-") for t in found.left)


def test_the_classes_of_the_other_tests_hold_too(make_shop: Any) -> None:
    """Those of tests/shop.py: 'identified' there has no look-up, and is judged by references."""
    for kind in ("identified", "idempotent", "searchable", "lagging", "opaque"):
        shop: Shop = make_shop(kind)
        found = selftest.run(shop.ledger, "shop.order", {"order": "T"}, sandbox=True)
        assert found.holds, kind
        assert shop.target.requests() <= found.plan.most


def test_a_window_is_waited_for_and_forgotten_after_it(trial) -> None:
    made = trial("idempotent")
    begun = made.clock.wall()
    found = run(made)
    assert result(found)["repeat.keeps"] == "holds"
    assert ("forgotten", {}) in found.notes
    assert made.clock.wall() - begun > 40e6
    long = trial("idempotent", keeps="2h", real_keeps=7200)
    assert result(run(long))["repeat.keeps"] == "untested"
    waited = run(long, wait_window=True)
    assert result(waited)["repeat.keeps"] == "holds"


def test_the_lag_is_measured(trial) -> None:
    made = trial("lagging", lag=20, real_lag=7)
    [lag] = [v for v in run(made).verdicts if v.claim == "lookup.lag"]
    assert lag.result == "holds"
    assert lag.facts["times"] == 3
    assert 7e6 <= lag.facts["median"] <= lag.facts["most"] <= 9.1e6


def test_which_content_stands_is_seen(trial) -> None:
    assert ("content_old", {"name": "note"}) in run(trial("idempotent")).notes
    refused = run(trial("idempotent", mismatch="refused"))
    assert result(refused)["repeat.mismatch"] == "holds"


def test_what_was_not_tried_is_not_verified(trial) -> None:
    found = run(trial("identified"), undo=None)
    made = {v.claim: (v.result, v.why) for v in found.verdicts}
    assert made["repeat.keeps"] == ("untested", "forever")
    assert made["undo"] == ("untested", "no_undo")
    assert not {"repeat.keeps", "undo"} & set(found.held)


def test_a_stamp_is_void_when_what_it_was_about_changes(trial) -> None:
    made = trial("idempotent")
    store = made.ledger.store
    order = made.ledger.actions["box.order"]
    assert order(order="A-1").verified == ""
    found = run(made)
    stamp = verified.read(store, "default", "box.order")
    assert stamp is not None
    assert (stamp.on, stamp.scope) == ("2023-11-14", "sandbox")
    assert stamp.claims == found.held
    assert "late.max" not in stamp.claims
    assert order(order="A-1").verified == "2023-11-14"  # receipts say so, in this process
    revised = replace(made.contract, note="another revision")
    changes = ({}, {"scope": "production"}, {"keeps": "30s"}, {"contract": revised})
    for more in changes:
        other = Ledger(store, clock=made.clock)  # and in the next
        receipt = made.declare(other, **more)(order="A-1")
        assert receipt.verified == ("" if more else "2023-11-14"), more
    made.box.lie = "ignores"
    assert not run(made).stamped
    assert verified.read(store, "default", "box.order") is None  # taken back
    assert order(order="A-1").verified == ""


def test_slow_answers_are_no_verdict(trial) -> None:
    """What came after the window's end by itself says nothing about the window."""
    made = trial("idempotent", keeps="1s", real_keeps=1)
    send = made.box.send

    def slowly(key: str, body: str = "") -> Any:
        made.clock.advance(2)
        return send(key, body)

    made.box.send = slowly
    found = run(made)
    assert found.failed == ()
    assert [v.why for v in found.verdicts if v.claim == "repeat.answer"] == ["too_slow"]


def test_no_absence_counts_without_a_positive_control(trial) -> None:
    """The self-test leaves no control behind: what it made is removed, and a removed control
    would never be found. So an absence goes on proving nothing until a real success is found."""
    made = trial("searchable", unseen=("deleted",))
    assert run(made).stamped
    order = made.ledger.actions["box.order"]
    assert made.ledger.store.control("default", "box.order", "sandbox") is None
    made.box.script("gone")
    lost = order.submit(wait=0, order="A-1")
    for _ in range(3):
        made.clock.advance(60)
        made.ledger.recover()
    seen = made.ledger.get(lost.id)
    assert (seen.state, made.box.effects()) == ("unknown", [])  # never executed again
    assert any("known object" in e.says["en"] for e in made.ledger.history(lost.id))
    assert order(order="A-2").done  # now there is a control, and the next absence counts
    assert made.ledger.confirm(lost.id).done
    assert len(made.box.effects()) == 2


def test_no_operation_can_have_a_key_of_the_self_test(trial) -> None:
    made = trial("idempotent")
    found = run(made)
    engine = made.ledger.engine
    theirs = {engine.target_key("box.order", t.key, 1) for t in found.things}
    assert not theirs & {t.target_key for t in found.things}
    assert made.ledger.find(limit=10) == []  # nothing of it is an operation


def test_asynchronous_code_is_tried_too(trial) -> None:
    made = trial("idempotent")

    @made.ledger.action("box.later", key="{order}", owner="anna", contract=made.contract,
                        sends_within=10, timeout=10, deterministic=True)  # fmt: skip
    async def later(call: Any, *, order: str, note: str = "") -> Any:
        return made.box.send(call.target_key, f"{order}:{note}")

    @later.lookup(late=1)
    async def find(call: Any) -> Any:
        return made.box.look(call.target_key)

    given = {"sandbox": True, "undo": "box.remove"}
    assert selftest.run(made.ledger, "box.later", INPUT, **given).stamped


def test_a_key_made_of_the_input_needs_another_input_for_each_object(trial) -> None:
    made = trial("identified")
    natural = replace(made.contract, key=replace(made.contract.key, form="natural"))
    made.ledger.engine.actions.clear()
    made.declare(made.ledger, contract=natural)
    d = made.ledger.engine.actions["box.order"]
    alone = {left.name: left.why for left in selftest.plan(d, INPUT).left}
    assert alone["at_once"] == alone["lag"] == "one_key"
    assert alone["window"] == "forever"
    many = selftest.plan(d, {**INPUT, "order": "T-{n}"})
    assert many.has("at_once")
    assert many.has("lag")

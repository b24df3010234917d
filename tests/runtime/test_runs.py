"""Runs, batches, bulk actions and flows: green only when everything expected is done."""

from __future__ import annotations

from typing import Any

import pytest

from ascertain import Done, NotDone, NotDoneKind, State, Unknown
from shop import CONTROL, Shop, declared, register


def test_a_run_is_green_when_every_expected_key_is_done(shop: Shop) -> None:
    expects = [shop.order.expected(order=n) for n in range(3)]
    with shop.ledger.run("autumn", expects=expects) as run:
        assert run.standing().standing == "missing"
        for n in range(3):
            assert not run.standing().green
            shop.order.submit(order=n)
    standing = run.standing()
    assert standing.green
    assert [m.standing for m in standing.members] == ["done"] * 3
    assert all(m.ref for m in standing.members)


@pytest.mark.parametrize(
    ("fate", "standing"),
    [
        pytest.param("gone", "unknown", id="unknown"),
        pytest.param("refuse:invalid", "not_done", id="not done"),
        pytest.param("refuse:transient", "waiting", id="waiting"),
    ],
)
def test_one_bad_member_names_the_run(shop: Shop, fate: str, standing: str) -> None:
    with shop.ledger.run("autumn") as run:
        shop.order.submit(order=1)
        shop.target.script(fate)
        shop.order.submit(order=2, wait=0)
    assert run.standing().standing == standing
    assert not run.standing().green


def test_an_absent_key_is_missing_and_raises_an_alarm_when_its_time_is_over(shop: Shop) -> None:
    expects = [shop.order.expected(order=n) for n in (1, 2)]
    with shop.ledger.run("autumn", expects=expects, due=60) as run:
        shop.order.submit(order=1)
    assert run.standing().standing == "missing"
    assert shop.ledger.alarms() == []
    shop.clock.advance(61)
    [alarm] = shop.ledger.recover().alarms
    assert (alarm.kind, alarm.key) == ("missing", "2")
    shop.order.submit(order=2)
    assert shop.ledger.alarms() == []
    assert run.standing().green


def test_a_superseded_member_counts_as_its_successor(shop: Shop) -> None:
    page = register(shop.ledger, shop.target, name="shop.page", key="{order}/v{note}")
    with shop.ledger.run("autumn", expects=[page.expected(order=1, note="1")]) as run:
        shop.target.script("refuse:invalid")
        old = page.submit(order=1, note="1")
        assert run.standing().standing == "not_done"
        page.using(supersedes=old, reason="corrected").submit(order=1, note="2")
    assert run.standing().green


def test_a_run_of_the_same_name_is_reopened(shop: Shop) -> None:
    with shop.ledger.run("autumn", expects=[shop.order.expected(order=1)]) as first:
        shop.order.submit(order=1)
    with shop.ledger.run("autumn", expects=[shop.order.expected(order=2)]) as second:
        shop.order.submit(order=1)
        shop.order.submit(order=2)
    assert second.run.id == first.run.id
    assert [m.key for m in second.standing().members] == ["1", "2"]
    assert len(shop.ledger.runs()) == 1
    assert len(shop.target.effects()) == 2 + 1  # and the control


def test_a_batch_gives_each_its_own_receipt(shop: Shop) -> None:
    """A is done, B's answer is lost, C is not executed: the second run completes them."""
    inputs = [{"order": n} for n in "ABC"]
    shop.target.script("ok", "gone", "refuse:transient")
    first = shop.order.batch(inputs, wait=0, concurrency=1)
    assert [r.state for r in first] == [State.DONE, State.UNKNOWN, State.PENDING]
    shop.settle()
    second = shop.order.batch(inputs, concurrency=1)
    assert second[0].ref == first[0].ref
    assert all(r.done and r.reused for r in second)
    assert [shop.effects(r) for r in second] == [1, 1, 1]


def test_a_wrong_input_in_a_batch_stops_it_before_anything(shop: Shop) -> None:
    with pytest.raises(Exception, match="missing input"):
        shop.order.batch([{"order": 1}, {"note": "no key"}])
    assert shop.ledger.find() == []


def bulk(shop: Shop, answers: Any) -> Any:
    @shop.ledger.action("shop.bulk", batch=True, **declared("searchable"))
    def rows(call, items):
        made = [shop.target.send(i.target_key, str(i.input["order"])) for i in items]
        return answers(made, items)

    rows.lookup(control=CONTROL)(lambda call: shop.target.look(call.target_key))
    return rows


def test_a_bulk_action_reports_each_item(shop: Shop) -> None:
    def answers(made, items):
        made[1] = Unknown("row 1: no answer")
        made[2] = NotDone(NotDoneKind.INVALID, "row 2 is bad")
        return made

    rows = bulk(shop, answers)
    done = rows.batch([{"order": n} for n in range(4)], wait=0)
    assert [r.state for r in done] == [State.DONE, State.DONE, State.NOT_DONE, State.DONE]
    assert done[1].confirmed_by == "look_up"
    again = rows.batch([{"order": n} for n in range(5)], wait=0)
    assert [r.reused for r in again] == [True] * 4 + [False]
    assert len(shop.target.effects()) == 5 + 1


@pytest.mark.parametrize("answer", [None, [], "ok", [Done(ref="1")]])
def test_a_bulk_answer_that_fits_nothing_is_unknown_for_all(shop: Shop, answer: Any) -> None:
    def answers(made, items):
        return answer

    rows = bulk(shop, answers)
    done = rows.batch([{"order": n} for n in range(2)], wait=0)
    assert all(r.state in (State.UNKNOWN, State.DONE) for r in done)
    shop.settle()
    assert [shop.get(r).done for r in done] == [True, True]
    assert [shop.effects(r) for r in done] == [1, 1]


def test_a_bulk_call_that_raises_is_unknown_for_all_and_found(shop: Shop) -> None:
    def fails(made, items):
        raise ConnectionResetError

    done = bulk(shop, fails).batch([{"order": n} for n in range(3)], wait=0)
    shop.settle()
    assert [shop.effects(r) for r in done] == [1, 1, 1]
    assert all(shop.get(r).done for r in done)


def test_a_flow_is_run_again_until_complete_and_does_only_what_is_missing(shop: Shop) -> None:
    runs, texts = [], []

    @shop.ledger.step("shop.write", key="{order}")
    def write(*, order):
        texts.append(order)
        return f"text {len(texts)}"

    @shop.ledger.flow("shop.launch", key="{order}")
    def launch(*, order):
        runs.append(order)
        text = write(order=order).result
        draft = shop.order(order=f"draft-{order}", note=text, wait=0)
        mail = shop.order(order=f"mail-{order}", wait=0)
        return [draft.ref, mail.ref]

    shop.target.script("hang", "gone")
    waits = launch.submit(order=7, wait=0)
    assert waits.state is State.PENDING
    shop.settle()
    end = shop.get(waits)
    assert end.done
    assert len(end.result) == 2
    assert len(runs) >= 2
    assert texts == [7]
    assert len(shop.target.effects()) == 2 + 1


def test_a_flow_that_meets_a_person_goes_on_after_the_decision(shop: Shop) -> None:
    mail = register(shop.ledger, shop.target, "opaque", name="shop.mail")

    @shop.ledger.flow("shop.launch", key="{order}")
    def launch(*, order):
        first = shop.order(order=order, wait=0)
        second = mail(order=order, wait=0)
        return [first.ref, second.ref]

    shop.target.script("ok", "hang")
    waits = launch.submit(order=7, wait=0)
    shop.settle(most=600)
    assert shop.get(waits).state is State.PENDING
    [review] = shop.ledger.reviews()
    shop.ledger.decide(review.operation, "there", by="anna", ref="mail-1")
    shop.settle(most=600)
    assert shop.get(waits).done
    assert len(shop.target.effects()) == 2 + 1


def test_due_operations_start_when_they_are_due(shop: Shop) -> None:
    later = shop.clock.wall() / 1e6 + 3600
    waits = shop.order.using(due=later).submit(order=1, wait=0)
    assert waits.state is State.PENDING
    shop.ledger.recover()
    assert shop.effects(waits) == 0
    shop.settle()
    assert shop.effects(waits) == 1
    assert shop.clock.wall() / 1e6 >= later

"""Whole runs repeated, approvals resumed, contents regenerated, events again, undoing."""

from __future__ import annotations

from typing import Any

import pytest

import ascertain
from ascertain import ApprovalMissing, InputMismatch, Request, State, WaitingOn
from shop import Shop, declared, register

# --- the whole scope is retried -------------------------------------------------------------------


def test_br_019_a_turn_of_three_tool_calls_is_resumed(shop: Shop) -> None:
    calls = ["mail", "database", "notification"]

    def turn() -> list[Any]:
        return [shop.order(order=f"turn-7/{name}", wait=0) for name in calls]

    shop.target.script("ok", "ok", "refuse:transient")
    with pytest.raises(ascertain.TemporarilyRefused):
        turn()
    shop.settle()
    done = turn()
    assert all(r.reused for r in done)
    assert [shop.effects(r) for r in done] == [1, 1, 1]


def test_br_022_the_model_fails_after_the_tool(shop: Shop) -> None:
    receipts = []

    def run(model_works: bool) -> None:
        receipts.append(shop.order(order="payment-3"))
        if not model_works:
            raise RuntimeError("500 of the next model call")

    for works in (False, False, True):
        try:
            run(works)
        except RuntimeError:
            continue
    assert [r.reused for r in receipts] == [False, True, True]
    assert shop.effects(receipts[0]) == 1


def test_br_046_one_bad_message_of_ten(shop: Shop) -> None:
    # given a batch of ten, item 7 fails; the batch comes twice more
    inputs = [{"order": n} for n in range(10)]
    shop.target.script(*["ok"] * 7, "refuse:transient", "ok", "ok", "refuse:transient")
    done = []
    for _ in range(3):
        done = shop.order.batch(inputs, concurrency=1, wait=0)
        shop.clock.advance(20)
    assert [shop.effects(r) for r in done] == [1] * 10
    assert [r.attempts for r in done] == [3 if n == 7 else 1 for n in range(10)]


def test_br_094_a_batch_of_a_hundred_fails_part_way(shop: Shop) -> None:
    inputs = [{"order": n} for n in range(100)]
    for given in inputs[:60]:
        shop.order.submit(**given)
    rows = shop.order.batch(inputs, concurrency=1)
    assert sum(r.reused for r in rows) == 60
    assert all(r.done for r in rows)
    assert len(shop.target.effects()) == 100 + 1  # and the control


def test_br_096_a_loop_until_all_are_imported(shop: Shop) -> None:
    inputs = [{"order": f"doc-{n}"} for n in range(20)]
    shop.target.script(*["ok"] * 9, "drop", "ok", "gone")
    for _ in range(10):
        rows = shop.order.batch(inputs, concurrency=1, wait=0)
        if all(r.done for r in rows):
            break
        shop.settle()
    assert all(r.done for r in rows)
    assert [shop.effects(r) for r in rows] == [1] * 20


# --- resumed after an approval or a wait ----------------------------------------------------------


def gate(shop: Shop, name: str = "cms.publish", **more: Any) -> Any:
    return register(shop.ledger, shop.target, name=name, approval=True, **more)


def test_br_011_the_chain_starts_anew_at_the_wait(shop: Shop) -> None:
    publish = gate(shop)

    def chain() -> Any:
        draft = shop.order(order="draft-1")
        return draft, publish(order=f"publish-{draft.ref}")

    with pytest.raises(ApprovalMissing) as caught:
        chain()
    shop.ledger.approve(caught.value.operation, by="lea")
    draft, published = chain()
    assert draft.reused
    assert shop.effects(draft) == 1
    assert shop.effects(published) == 1


def test_br_015_three_review_rounds(shop: Shop) -> None:
    # given a node that creates a record, then asks for a review
    page = register(shop.ledger, shop.target, name="cms.page", key="{order}/v{note}", approval=True)

    def node(version: int, old: Any) -> tuple[Any, Any]:
        record = shop.order(order="record-1")
        using = page.using(supersedes=old, reason="review") if old else page
        return record, using.submit(order="page", note=str(version), wait=0)

    # when there are two rejections and one approval
    record, first = node(1, None)
    shop.ledger.reject(first, by="lea")
    _, second = node(2, first)
    shop.ledger.reject(second, by="lea")
    _, third = node(3, second)
    shop.ledger.approve(third, by="lea")
    shop.settle()
    # then one record, three answers, one page
    assert shop.effects(record) == 1
    assert [shop.ledger.asked(r)[0].state for r in (first, second, third)] == [
        "rejected",
        "rejected",
        "approved",
    ]
    assert [shop.effects(r) for r in (first, second, third)] == [0, 0, 1]


def test_br_017_two_approvals_of_one_operation(shop: Shop) -> None:
    publish = register(
        shop.ledger, shop.target, name="cms.publish", approval=["legal", "marketing"]
    )
    waits = publish.submit(order=1)
    shop.ledger.approve(waits, by="lea", role="legal")
    shop.settle()
    assert shop.effects(waits) == 0
    assert [a.state for a in shop.ledger.asked(waits)].count("asked") == 1
    assert shop.get(waits).waiting_on is WaitingOn.APPROVAL
    shop.ledger.approve(waits, by="max", role="marketing")
    shop.settle()
    assert shop.effects(waits) == 1


def test_br_029_approving_starts_a_new_run_from_the_beginning(shop: Shop) -> None:
    archive = gate(shop, "archive")

    def run(name: str) -> tuple[Any, Any]:
        with shop.ledger.run(name):
            delivery = shop.order.submit(order="delivery-1")
            return delivery, archive.submit(order="delivery-1", wait=0)

    delivery, waits = run("run-1")
    shop.ledger.approve(waits, by="lea")
    delivery_again, archived = run("run-2")
    shop.settle()
    assert delivery_again.reused
    assert shop.effects(delivery) == 1
    assert shop.effects(archived) == 1


# --- what was approved is what is sent ------------------------------------------------------------


def prepared(shop: Shop, **more: Any) -> Any:
    def prepare(call, *, order, text):
        return Request(method="POST", url="http://cms", body=text.encode())

    @shop.ledger.action(
        "cms.text", **declared("searchable", approval=True, prepare=prepare, **more)
    )
    def send_text(call, *, order, text):
        return shop.target.send(call.target_key, call.request.body.decode())

    send_text.lookup(control="control")(lambda call: shop.target.look(call.target_key))
    return send_text


def test_br_021_other_arguments_on_resume(shop: Shop) -> None:
    action = prepared(shop)
    waits = action.submit(order=1, text="A")
    shop.ledger.approve(waits, by="lea")
    with pytest.raises(InputMismatch, match="text"):
        action.submit(order=1, text="B")
    shop.settle()
    assert [body for _, body, _ in shop.target.effects(waits.target_key)] == ["A"]


def test_br_028_the_stored_call_is_executed_and_the_model_not_asked(shop: Shop) -> None:
    asked = []

    @shop.ledger.step("model.write", key="{order}")
    def model(*, order):
        asked.append(order)
        return f"text {len(asked)}"

    action = prepared(shop)
    waits = action.submit(order=1, text=model(order=1).result)
    shop.ledger.approve(waits, by="lea")
    action.submit(order=1, text=model(order=1).result)
    shop.settle()
    assert asked == [1]
    assert [body for _, body, _ in shop.target.effects(waits.target_key)] == ["text 1"]


def test_br_102_a_regenerated_text_is_a_new_version(shop: Shop) -> None:
    action = prepared(shop, key="{order}")
    v1 = action.submit(order="page/v1", text="first")
    shop.ledger.approve(v1, by="lea")
    shop.target.script("gone")
    shop.ledger.recover()
    # when regeneration makes another text while v1 is open
    v2 = action.using(supersedes=v1, reason="regenerated").submit(
        order="page/v2", text="second", wait=0
    )
    shop.settle()
    # then the retry of v1 sent v1, and v2 waits for its own approval
    assert [body for _, body, _ in shop.target.effects(v1.target_key)] == ["first"]
    assert shop.get(v2).waiting_on is WaitingOn.APPROVAL
    assert shop.effects(v2) == 0


# --- the same thing again -------------------------------------------------------------------------


def test_br_004_two_executions_of_one_event(shop: Shop) -> None:
    # given two executions with other ids that carry the same event
    one = shop.order.using(event="evt-1", source="execution-1").submit(order="order-5")
    two = shop.order.using(event="evt-1", source="execution-2").submit(order="order-5")
    assert (one.id, one.ref) == (two.id, two.ref)
    assert shop.target.requests(one.target_key) == 1
    assert [r.id for r in shop.ledger.find(event="evt-1")] == [one.id]


def test_br_012_an_instant_trigger_fires_twice(shop: Shop) -> None:
    first, second = (shop.order.submit(order="order-6") for _ in range(2))
    assert second.reused
    assert second.ref == first.ref
    assert shop.effects(first) == 1


def test_br_039_a_task_of_the_far_future_is_delivered_hourly(shop: Shop) -> None:
    due = shop.clock.wall() / 1e6 + 6 * 3600
    for _ in range(6):
        waits = shop.order.using(due=due).enqueue(order=1)
        shop.ledger.recover()
        shop.clock.advance(3599)
    assert shop.effects(waits) == 0
    for _ in range(20):
        shop.order.using(due=due).enqueue(order=1)
    shop.settle()
    assert shop.effects(waits) == 1
    assert shop.clock.wall() / 1e6 >= due


def test_br_081_two_topics_of_one_order(shop: Shop) -> None:
    created = shop.order.using(event="order.created/9").submit(order="order-9")
    updated = shop.order.using(event="order.updated/9").submit(order="order-9")
    assert updated.reused
    assert shop.effects(created) == 1


def test_br_075_a_failing_handler_is_run_again(shop: Shop) -> None:
    # given the first delivery's handler raises before the effect
    fails = [True]

    @shop.ledger.flow("handle", key="{event}")
    def handle(*, event):
        if fails:
            raise RuntimeError(f"bad day {fails.pop()}")
        return shop.order(order=event).ref

    first = handle.submit(event="evt-3", wait=0)
    assert first.state is State.PENDING
    # when the same event is delivered again
    handle.submit(event="evt-3", wait=0)
    shop.settle()
    # then the handler ran again, and is done only after the effect
    assert shop.get(first).done
    assert len(shop.target.effects()) == 1 + 1


# --- undoing --------------------------------------------------------------------------------------


def test_br_105_a_failed_undo_is_open_by_name(shop: Shop) -> None:
    steps = [shop.order.submit(order=n) for n in range(3)]
    undo = register(shop.ledger, shop.target, name="undo", key="undo-{order}")
    with shop.ledger.run("compensate") as run:
        for n, step in enumerate(steps):
            shop.target.script("refuse:rejected" if n == 1 else "ok")
            undo.using(compensates=step, reason="cancelled").submit(order=n)
    standing = run.standing()
    assert standing.standing == "not_done"
    assert [m.key for m in standing.members if m.standing != "done"] == ["undo-1"]
    undone = [shop.effects(r) for r in shop.ledger.find(action="undo")]
    assert undone == [1, 0, 1]


def test_br_106_undoing_keeps_its_order(shop: Shop) -> None:
    steps = [shop.order.submit(order=n) for n in (1, 2)]
    undo = register(shop.ledger, shop.target, name="undo", key="undo-{order}")
    shop.target.script("refuse:transient", "refuse:transient")

    @shop.ledger.flow("compensate", key="{case}")
    def compensate(*, case):
        for n in (2, 1):
            undo.using(compensates=steps[n - 1], reason="cancelled")(order=n, wait=0)

    done = compensate.submit(case="saga-1", wait=0)
    shop.settle()
    assert shop.get(done).done
    bodies = [body for _, body, _ in shop.target.effects()]
    assert bodies[-2:] == ["2:", "1:"]
    assert bodies.count("2:") == 1 + 1  # the order itself, and its undoing

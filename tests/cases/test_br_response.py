"""The answer is lost, late, misread or no proof; keys that change; bounds that are reached."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

import ascertain
from ascertain import Absent, Accepted, Done, InReview, Request, State, Unknown, WaitingOn
from cases.web import Web, serving
from shop import CONTROL, Shop, declared, send


@pytest.fixture
def web() -> Iterator[Web]:
    with serving() as made:
        yield made


def posting(shop: Shop, web: Web, kind: str = "idempotent") -> Any:
    """An action that posts through `call.http`, with its key in a header."""

    @shop.ledger.action(
        "web.post", **declared(kind, sends_within=None, deterministic=False,
        prepare=lambda call, *, order, note="": Request(
            method="POST", url=web.url, headers=(("Idempotency-Key", call.target_key),),
            body=f"{order}:{note}".encode(),
        ))
    )  # fmt: skip
    def post(call, *, order, note=""):
        return Done(ref=call.http.send(call.request).json()["id"])

    return post


# --- the answer is lost ---------------------------------------------------------------------------


def test_br_023_a_mail_with_an_idempotency_header(make_shop: Callable[..., Shop]) -> None:
    # given a target that knows the header, accepts and drops the connection
    shop = make_shop("idempotent")
    # when there are three attempts
    mail = shop.lose("mail-1", "drop")
    shop.settle()
    # then one mail; every attempt carried the same key; the second got the first's answer
    assert shop.effects(mail) == 1
    assert shop.get(mail).confirmed_by == "replay"
    assert shop.target.requests() == shop.target.requests(mail.target_key) == 2


def test_br_025_a_job_that_is_accepted_and_runs_on(shop: Shop) -> None:
    # given a target that takes the job over at once and completes it after five minutes
    state = {"finished": False}

    @shop.ledger.action("cloud.cluster", **declared("searchable"))
    def create(call, *, order):
        shop.target.send(call.target_key)
        return Accepted(ref="job-1")

    def look(call):
        if not shop.target.effects(call.target_key):
            return Absent()
        return Done(ref="job-1") if state["finished"] else Accepted(ref="job-1")

    create.lookup(control=CONTROL)(look)
    # when the agent repeats the call under the same business name
    first, again = create(order="analytics", wait=0), create(order="analytics", wait=0)
    # then one job, "accepted", with its id; a later look gives done
    assert (first.state, again.state) == (State.ACCEPTED, State.ACCEPTED)
    assert again.reused
    assert again.id == first.id
    state["finished"] = True
    shop.settle()
    assert shop.get(first).done
    assert shop.effects(first) == 1


def test_br_063_three_clicks_after_a_slow_charge(shop: Shop) -> None:
    clicks = [shop.lose("cart-7", "hang")]
    for _ in range(2):
        shop.clock.advance(100)
        clicks.append(shop.order.submit(order="cart-7", wait=0))
    shop.settle()
    assert shop.effects(clicks[0]) == 1
    assert len({c.id for c in clicks}) == 1
    assert len(shop.ledger.references(clicks[0])) == 1


def test_br_086_publishing_on_a_poor_network(shop: Shop) -> None:
    posts = [shop.lose("post-1", "drop") for _ in range(5)]
    shop.settle()
    end = shop.get(posts[0])
    assert end.done
    assert end.ref == shop.target.effects(end.target_key)[0][2]
    assert shop.effects(end) == 1


def test_br_088_the_marker_tells_posts_apart_not_the_title(shop: Shop) -> None:
    # given identical creates, then a legitimate second post with the same title
    first = [shop.lose("launch/1", "hang", note="Launch day") for _ in range(3)]
    second = shop.order.submit(order="launch/2", note="Launch day")
    shop.settle()
    # then one effect for each key
    assert shop.effects(first[0]) == 1
    assert shop.effects(second) == 1
    assert second.id != first[0].id


def test_br_089_rows_are_appended_only_where_they_are_missing(shop: Shop) -> None:
    # given an append-only target; rows carry our marker; the append saved, its answer lost
    @shop.ledger.action("sheet.append", batch=True, **declared("searchable"))
    def append(call, items):
        for item in items[:6]:
            shop.target.send(item.target_key)
        raise ConnectionResetError

    append.lookup(control=CONTROL)(lambda call: shop.target.look(call.target_key))
    rows = append.batch([{"order": n} for n in range(10)], wait=0)
    # when it is recovered with code that works
    fixed = shop.another()

    @fixed.action("sheet.append", batch=True, **declared("searchable"))
    def again(call, items):
        return [shop.target.send(i.target_key) for i in items]

    again.lookup(control=CONTROL)(lambda call: shop.target.look(call.target_key))
    shop.settle(fixed)
    # then there are ten rows
    assert [shop.effects(r) for r in rows] == [1] * 10


# --- hidden retries, keys that change -------------------------------------------------------------


def test_br_090_no_layer_below_repeats_a_create(shop: Shop, web: Web) -> None:
    web.fates = ["reset"]
    lost = posting(shop, web, "searchable").submit(order=1, wait=0)
    assert lost.state is State.UNKNOWN
    assert len(web.posts) == 1
    assert len(web.saved) == 1


def test_br_092_a_reset_on_a_connection_sends_nothing_again(shop: Shop, web: Web) -> None:
    web.fates = ["ok", "reset"]
    post = posting(shop, web, "opaque")
    assert post.submit(order=1).done
    lost = post.submit(order=2)
    assert lost.state is State.UNKNOWN
    assert len(web.posts) == 2


def test_br_059_the_target_sees_exactly_our_key(make_shop: Callable[..., Shop], web: Web) -> None:
    shop = make_shop("idempotent")
    web.fates = ["reset", "reset", "ok"]
    lost = posting(shop, web).submit(order=1, wait=0)
    shop.settle()
    assert shop.get(lost).done
    assert {key for key, _ in web.posts} == {lost.target_key}
    assert len(web.posts) == 3
    assert len(web.saved) == 1


def test_br_060_the_body_is_the_same_byte_for_byte(
    make_shop: Callable[..., Shop], web: Web
) -> None:
    # given the answer is lost, and the retry would add an attempt id to the body
    shop = make_shop("idempotent")
    web.fates = ["reset"]
    post = posting(shop, web)
    lost = post.submit(order=1, note="10 EUR", wait=0)
    with pytest.raises(ascertain.InputMismatch):
        post.submit(order=1, note="10 EUR, attempt 2")
    shop.settle()
    # then the same bytes went out under the same key, and the result is known
    assert len(web.posts) == 2
    assert len(set(web.posts)) == 1
    assert shop.get(lost).ref == "id-1"


def test_br_058_a_cancelled_request_and_a_new_one(shop: Shop) -> None:
    # given attempt 1 was cancelled by its caller, but had been sent
    def cancelled(call, *, order):
        shop.target.send(call.target_key)
        raise KeyboardInterrupt

    action = shop.ledger.action("crm.account", **declared("searchable"))(cancelled)
    action.lookup(control=CONTROL)(lambda call: shop.target.look(call.target_key))
    with pytest.raises(KeyboardInterrupt):
        action.submit(order="account-1")
    [first] = shop.ledger.find(key="account-1")
    # when a new business request for the same account comes
    assert first.state is State.UNKNOWN
    second = shop.order.submit(order="account-1/change-1")
    shop.settle()
    # then one row for each business key
    assert shop.effects(first) == 1
    assert shop.effects(second) == 1


def test_br_065_the_key_survives_a_local_failure(shop: Shop) -> None:
    # given the provider saved; the answer is lost; the caller's own row is rolled back
    lost = shop.lose("refund-of-order-7", "drop")
    # when the retry knows nothing but the order
    again = shop.order.submit(order="refund-of-order-7")
    shop.settle()
    assert again.target_key == lost.target_key
    assert shop.effects(lost) == 1


def test_br_067_a_failure_after_the_charge(shop: Shop) -> None:
    def checkout() -> str:
        charge = shop.order(order="cart-9")
        if not charge.reused:
            raise RuntimeError("500: a plugin failed after the charge")
        return charge.ref

    with pytest.raises(RuntimeError):
        checkout()
    assert checkout() == shop.ledger.find(key="cart-9")[0].ref
    assert len(shop.target.effects()) == 1 + 1  # and the control


# --- not found is no proof ------------------------------------------------------------------------


def test_br_031_a_search_that_lags(make_shop: Callable[..., Shop]) -> None:
    # given a search 30 s behind, attempt 1 saved, the answer lost
    shop = make_shop("lagging", lag=30)
    lost = shop.lose(1, "hang")
    # when it is looked up after 2 s and nothing is found
    shop.clock.advance(2)
    shop.ledger.recover()
    assert shop.get(lost).state is State.UNKNOWN
    shop.settle()
    # then it was not sent again; it was looked up again, and found
    assert shop.target.requests(lost.target_key) == 1
    assert shop.get(lost).confirmed_by == "look_up"


def test_br_035_a_failing_look_up_is_not_absence(shop: Shop) -> None:
    lost = shop.lose(1, "hang")
    assert lost.done  # with a look-up that works it is found at once
    shop.target.looks_fail = "error"
    other = shop.lose(2, "gone")
    shop.settle()
    end = shop.get(other)
    assert (end.state, end.waiting_on) == (State.UNKNOWN, WaitingOn.REVIEW)
    assert shop.target.requests(other.target_key) == 1
    assert end.lookups == 12


# --- success misread ------------------------------------------------------------------------------


def test_br_001_five_submits_of_what_worked(shop: Shop) -> None:
    receipts = [shop.order.submit(order=1) for _ in range(5)]
    assert [r.reused for r in receipts] == [False, True, True, True, True]
    assert len({r.ref for r in receipts}) == 1
    assert shop.target.requests(receipts[0].target_key) == 1


def test_br_003_a_client_that_never_stops(make_shop: Callable[..., Shop]) -> None:
    # given a target that always times out, and a client that submits for ever
    shop = make_shop("idempotent")
    shop.target.script(*["gone"] * 50)
    for _ in range(1000):
        last = shop.order.submit(order=1, wait=0)
        shop.clock.advance(5)
    # then the target was reached as often as allowed, and a person is asked
    assert shop.target.requests(last.target_key) == 5
    assert last.waiting_on is WaitingOn.REVIEW
    assert last.attempts == 5
    with pytest.raises(InReview):
        shop.order(order=1)


def test_br_008_the_second_attempt_worked_and_the_operator_presses_retry(shop: Shop) -> None:
    shop.target.script("refuse:transient")
    first = shop.order.submit(order=1, wait=0)
    assert first.state is State.PENDING
    shop.settle()
    pressed = shop.order.submit(order=1)
    assert pressed.reused
    assert pressed.attempts == 2
    assert shop.effects(first) == 1


def test_br_043_our_own_work_afterwards_fails(shop: Shop) -> None:
    done_after = []

    def job() -> None:
        receipt = shop.order(order="mail-1")
        if len(done_after) < 4:
            done_after.append(receipt.ref)
            raise RuntimeError("post-processing")
        done_after.append(receipt.ref)

    for _ in range(4):
        with pytest.raises(RuntimeError):
            job()
    job()
    assert len(done_after) == 5
    assert len(set(done_after)) == 1
    assert len(shop.target.effects()) == 1 + 1


def test_br_054_only_the_polling_is_throttled(shop: Shop) -> None:
    # given the create worked, and status polling is throttled for ten minutes
    until = shop.clock.wall() + 600_000_000

    @shop.ledger.action("spark.job", **declared("searchable"))
    def run(call, *, order):
        shop.target.send(call.target_key)
        return Accepted(ref="run-1")

    @run.lookup(control=CONTROL)
    def poll(call):
        if shop.clock.wall() < until:
            return Unknown("429", retry_after=120)
        return shop.target.look(call.target_key)

    started = run.submit(order=1, wait=0)
    shop.settle()
    end = shop.get(started)
    assert end.done
    assert end.attempts == 1
    assert shop.effects(started) == 1
    assert shop.reviews() == []


def test_br_030_the_read_back_is_throttled(shop: Shop) -> None:
    # given an operation of create and read-back, whose read-back answers 429
    @shop.ledger.action("issue.create", **declared("searchable"))
    def create(call, *, order):
        send(shop.target, call)
        raise RuntimeError("429 on the read-back")

    create.lookup(control=CONTROL)(lambda call: shop.target.look(call.target_key))
    done = create.submit(order=1)
    # then the create happened once, and the id is known
    assert done.done
    assert done.ref
    assert shop.target.requests(done.target_key) == 1


# --- time, stored answers -------------------------------------------------------------------------


def test_br_014_re_runs_beyond_the_window(make_shop: Callable[..., Shop]) -> None:
    # given a target that keeps keys for 24 h; attempt 1 saved, the answer lost
    shop = make_shop("idempotent", keeps="24h", target_keeps=24 * 3600, attempts=50)
    lost = shop.lose(1, "hang")
    assert shop.get(lost).done  # replayed at once, within the window
    dead = shop.die(2, sent=True)
    # when a re-run comes after 40 h
    shop.clock.advance(40 * 3600)
    again = shop.order.submit(order=2)
    shop.settle()
    # then nothing reached the target after the window; a person decides
    assert shop.target.requests(dead.target_key) == 1
    assert shop.get(again).waiting_on is WaitingOn.REVIEW


def test_br_066_a_sweeper_proves_nothing_by_time(make_shop: Callable[..., Shop]) -> None:
    # given an operation unknown for 25 h; the target did save
    shop = make_shop("searchable")
    shop.target.looks_fail = "error"
    lost = shop.lose("refund-1", "hang")
    shop.clock.advance(25 * 3600)
    # when the sweeper runs, and an operator asks the target again
    shop.settle()
    assert shop.get(lost).waiting_on is WaitingOn.REVIEW
    shop.target.looks_fail = ""
    found = shop.ledger.confirm(lost)
    # then it is found, not repeated
    assert found.done
    assert shop.reviews() == []
    assert shop.effects(lost) == 1


def test_br_052_a_stored_failure_needs_a_new_key(make_shop: Callable[..., Shop]) -> None:
    # given the target stored a definite failure under the key, without an effect
    shop = make_shop("idempotent")
    first = shop.lose(1, "stored:transient")
    # when it is tried again
    shop.settle()
    end = shop.get(first)
    # then under a new key, and only after the failure was proof
    assert end.done
    assert end.target_key != first.target_key or not first.target_key
    assert len([k for k, _, _ in shop.target.effects() if k != CONTROL]) == 1


def test_br_071_a_used_key_is_no_proof_of_success(make_shop: Callable[..., Shop]) -> None:
    # given the target answers "key used" without a result
    shop = make_shop("idempotent")
    shop.target.script("hang", *["busy"] * 20)
    lost = shop.order.submit(order=1, wait=0)
    shop.settle()
    end = shop.get(lost)
    # then it stays unknown, and a person decides
    assert end.state in (State.UNKNOWN, State.DONE)
    assert shop.effects(lost) <= 1


def test_br_068_the_targets_own_event_is_evidence(shop: Shop) -> None:
    # given the call timed out, and the success event arrives before or after the recovery
    for before in (True, False):
        order = f"order-{before}"
        shop.target.looks_fail = "error" if before else ""
        lost = shop.lose(order, "hang")
        ref = shop.target.effects(lost.target_key)[0][2]
        if not before:
            shop.settle()
        shop.ledger.report(lost, Done(ref=ref), by="webhook", report=f"event-{before}")
        shop.settle()
        end = shop.get(lost)
        assert end.done
        assert end.ref == ref
        assert shop.effects(lost) == 1
        assert shop.reviews() == []

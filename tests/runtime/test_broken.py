"""What an adversary broke once: one bad operation, odd findings, late starts."""

from __future__ import annotations

import asyncio
import functools
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import ascertain
from ascertain import (
    Absent,
    Done,
    InputMismatch,
    NotDone,
    NotDoneKind,
    Request,
    Several,
    State,
    StoreUnavailable,
    Unknown,
    UnknownOperation,
)
from ascertain.core import settle
from ascertain.runtime import aio
from ascertain.runtime.attempts import ending
from ascertain.runtime.beginning import beginning
from shop import Shop, contract, register


def in_a_loop(test: Callable[..., Any]) -> Callable[..., None]:
    """Run an async test in a loop of its own."""

    @functools.wraps(test)
    def run(**given: Any) -> None:
        asyncio.run(test(**given))

    return run


def act(shop: Shop, name: str, function: Any, ledger: Any = None, **more: Any) -> Any:
    given = {"key": "{order}", "owner": "anna", "scope": name, **more}
    return (ledger or shop.ledger).action(name, **given)(function)


def states(ledger: Any, action: str) -> dict[str, State]:
    return {r.key: r.state for r in ledger.find(action=action)}


# --- one bad operation and its neighbours -------------------------------------------------------


def test_a_prepare_that_raises_stops_no_neighbour_in_recovery(shop: Shop) -> None:
    def prepare(prepared, *, order):
        raise KeyError("no such price")

    act(shop, "bad", lambda call, *, order: Done(), prepare=prepare).enqueue(order=1)
    good = shop.order.enqueue(order=2)
    report = shop.ledger.recover()
    assert any("no such price" in error for error in report.errors)
    assert shop.get(good).state is State.DONE


def cannot_be_settled(patch: pytest.MonkeyPatch, bad: str) -> None:
    """One operation whose finding cannot be made a change."""
    real = settle.report

    def report(case: Any, *rest: Any) -> Any:
        if case.operation.id == bad:
            raise TypeError("not to be written")
        return real(case, *rest)

    patch.setattr(settle, "report", report)


def test_a_write_that_fails_for_one_operation_stops_no_neighbour(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    bad, good = shop.order.enqueue(order=1), shop.order.enqueue(order=2)
    cannot_be_settled(monkeypatch, bad.id)
    report = shop.ledger.recover()
    assert any("not to be written" in error for error in report.errors)
    assert shop.get(good).state is State.DONE


@in_a_loop
async def test_the_same_on_an_async_ledger(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    ledger = shop.aio()

    async def code(call, *, order):
        return Done(ref=f"r{order}")

    action = act(shop, "a", code, ledger)
    bad, good = await action.enqueue(order=1), await action.enqueue(order=2)
    cannot_be_settled(monkeypatch, bad.id)
    report = await ledger.recover()
    assert any("not to be written" in error for error in report.errors)
    assert (await ledger.get(good)).state is State.DONE


def test_a_worker_survives_what_its_actions_raise(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[Any] = []
    monkeypatch.setattr(threading, "excepthook", seen.append)
    with ascertain.open(f"sqlite:///{tmp_path}/ledger.db") as ledger:

        @ledger.action("bad", key="{order}", owner="anna")
        def bad(call, *, order):
            raise SystemExit(3)

        @ledger.action("good", key="{order}", owner="anna")
        def good(call, *, order):
            return Done(ref="1")

        worker = ledger.start_worker(every=0.02)
        first = bad.enqueue(order=1)
        _until(lambda: ledger.get(first).state is State.UNKNOWN)
        second = good.enqueue(order=1)
        _until(lambda: ledger.get(second).done)
        assert worker.is_alive()
        assert seen[0].exc_type is SystemExit


def _until(holds: Callable[[], bool], seconds: float = 10) -> None:
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.02)


def test_a_mismatch_in_a_batch_stops_no_neighbour(shop: Shop) -> None:
    shop.order.submit(order=1, note="a")
    inputs = [{"order": 1, "note": "b"}, *({"order": n} for n in range(2, 8))]
    with pytest.raises(InputMismatch):
        shop.order.batch(inputs, concurrency=1)
    assert set(states(shop.ledger, "shop.order").values()) == {State.DONE}
    assert len(shop.ledger.find()) == 7


def test_a_mismatch_in_a_bulk_batch_leaves_no_claim_behind(shop: Shop) -> None:
    def code(call, items):
        return [Done(ref=f"r{item.key}") for item in items]

    bulk = act(shop, "bulk", code, batch=True)
    bulk.batch([{"order": 5, "note": "a"}])
    with pytest.raises(InputMismatch):
        bulk.batch([{"order": 1}, {"order": 5, "note": "b"}, {"order": 3}])
    assert states(shop.ledger, "bulk") == dict.fromkeys("135", State.DONE)


@in_a_loop
async def test_a_mismatch_in_an_async_batch_cancels_no_neighbour(shop: Shop) -> None:
    async def code(call, *, order, note=""):
        await asyncio.sleep(0.05)
        return Done(ref=f"r{order}")

    action = act(shop, "a", code, shop.aio())
    await action.submit(order=1, note="a")
    with pytest.raises(InputMismatch):
        await action.batch([{"order": 2}, {"order": 1, "note": "b"}, {"order": 3}])
    assert states(shop.ledger, "a") == dict.fromkeys("123", State.DONE)


# --- odd findings -------------------------------------------------------------------------------


def _cycle() -> dict[str, Any]:
    cycle: dict[str, Any] = {}
    cycle["self"] = cycle
    return cycle


any_done: Any = Done  # what Python lets them be called with
any_not_done: Any = NotDone
any_unknown: Any = Unknown
any_none: Any = None
any_list: Any = [1]

ODD: list[tuple[str, Callable[[], Any], State]] = [
    ("evidence is an object", lambda: any_done(ref="1", evidence={"o": object()}), State.DONE),
    ("evidence is none", lambda: any_done(ref="1", evidence=None), State.DONE),
    ("evidence is a list", lambda: any_done(ref="1", evidence=[1]), State.DONE),
    ("evidence is endless", lambda: any_done(ref="1", evidence=_cycle()), State.DONE),
    ("evidence is no text", lambda: any_done(ref="1", evidence={"x": "\ud800"}), State.DONE),
    ("evidence is huge", lambda: any_done(ref="1", evidence={"x": "y" * 10**7}), State.DONE),
    ("result is endless", lambda: any_done(ref="1", result=_cycle()), State.DONE),
    ("ref is no text", lambda: any_done(ref="a\ud800\0"), State.DONE),
    ("ref is an object", lambda: any_done(ref=Path("/x")), State.DONE),
    ("ref is huge", lambda: any_done(ref="x" * 10**6), State.DONE),
    ("kind is text", lambda: any_not_done("transient"), State.PENDING),
    ("kind is none", lambda: any_not_done(None), State.UNKNOWN),
    ("kind is no kind", lambda: any_not_done("bogus"), State.UNKNOWN),
    ("wait is text", lambda: any_not_done("throttled", "", "5"), State.PENDING),
    ("wait is a date", lambda: any_unknown("x", "Wed, 21 Oct"), State.UNKNOWN),
    ("reason is an error", lambda: any_unknown(ValueError("x")), State.UNKNOWN),
    ("reason is no text", lambda: any_not_done(NotDoneKind.REJECTED, "\ud800"), State.NOT_DONE),
]


@pytest.mark.parametrize(("made", "state"), [o[1:] for o in ODD], ids=[o[0] for o in ODD])
def test_no_truth_is_lost_to_a_wrong_type(
    shop: Shop, made: Callable[[], Any], state: State
) -> None:
    """Laws 3, 8: what the code found out is kept, whatever it put beside it."""
    r = act(shop, "odd", lambda call, *, order: made()).submit(order=1, wait=0)
    assert r.state is state
    assert (r.ref is not None) is (state is State.DONE)
    assert len(r.ref or "") < 600
    shop.ledger.history(r)


@pytest.mark.parametrize(
    "made",
    [
        pytest.param(lambda: Several(refs=any_none), id="no refs"),
        pytest.param(lambda: Unknown(evidence={"o": object()}), id="an object"),
        pytest.param(lambda: Absent(evidence=any_list), id="a list"),
        pytest.param(lambda: any_unknown("x", "soon"), id="a wait in words"),
    ],
)
def test_an_odd_look_up_is_kept_too(shop: Shop, made: Callable[[], Any]) -> None:
    action = act(shop, "odd", lambda call, *, order: Unknown("x"), contract=contract("searchable"))
    action.lookup()(lambda call: made())
    r = action.submit(order=1, wait=0)
    for _ in range(3):
        shop.clock.advance(60)
        assert not shop.ledger.recover().errors
    assert shop.get(r).lookups
    assert shop.get(r).state is State.UNKNOWN


# --- sending that nobody declared ---------------------------------------------------------------


def prepared(p, *, order):
    return Request(method="POST", url="https://shop.test/", body=b"x")


@pytest.mark.parametrize("more", [{"sends": "own"}, {}], ids=["declared", "not declared"])
def test_a_prepared_request_sent_by_other_means_proves_nothing(
    shop: Shop, more: dict[str, Any]
) -> None:
    """Law 13: an exception proves "never sent" only where every byte goes through call.http."""
    sent = []

    def code(call, *, order):
        sent.append(call.request)
        raise TimeoutError("no answer")

    r = act(shop, "own", code, prepare=prepared, **more).submit(order=1, wait=0)
    for _ in range(4):
        shop.clock.advance(1000)
        shop.ledger.recover()
    assert shop.get(r).state is State.UNKNOWN
    assert len(sent) == 1


def test_the_library_http_client_is_not_call_http(shop: Shop) -> None:
    """Law 5: what sends elsewhere has no deadline that we could keep."""
    names: dict[str, Any] = {}
    exec(
        "import http.client\ndef code(call, *, order):\n    http.client.HTTPConnection('x')\n"
        "def ours(call, *, order):\n    return (lambda: call.http.post('https://x.test/'))()\n",
        names,
    )
    assert not act(shop, "theirs", names["code"]).definition.terms.hard
    assert act(shop, "ours", names["ours"]).definition.terms.hard


@in_a_loop
async def test_code_that_waited_too_long_for_a_thread_is_not_begun(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Law 5: sends_within counts from the claim, so what begins after it might land unseen."""
    ledger, began = shop.aio(), []

    def code(call, *, order):
        began.append(order)
        return Done(ref=f"r{order}")

    action = act(shop, "late", code, ledger, sends_within=5, timeout=5)

    def slow(*args: Any, **more: Any) -> Any:
        started = yield from beginning(*args, **more)
        shop.clock.advance(6)
        return started

    monkeypatch.setattr(aio, "beginning", slow)
    r = await action.submit(order=1, wait=0)
    assert not began or r.state is State.DONE
    attempts = ledger.engine.store.attempts(r.id)
    assert attempts[0].outcome == "released"
    assert all(shop.clock.wall() <= a.deadline for a in attempts[1:])


def test_the_same_in_a_thread(shop: Shop) -> None:
    began = []

    def code(call, *, order):
        began.append(order)
        return Done()

    action = act(shop, "late", code, sends_within=5, timeout=60)
    given = action.definition.intent({"order": 1}, shop.clock.wall())
    engine = shop.ledger.engine
    ticket, _ = engine.begin(action.definition, given, action.options, execute=True)
    shop.clock.advance(6)
    assert shop.ledger.driver.act(ticket) is None
    case = engine.now(ending(engine, ticket, None))
    assert case.status.state is State.PENDING
    assert not began
    ticket = engine.claim(case, "execute", given.input)
    shop.clock.advance(100)  # the lease too is over, and another worker has seen it
    shop.ledger.recover()
    assert shop.ledger.driver.act(ticket) is None
    case = engine.now(ending(engine, ticket, None))
    assert case.status.state is State.PENDING
    assert not began


# --- versions, repeats, namespaces --------------------------------------------------------------


def test_two_who_repeat_at_once_get_two_operations(shop: Shop) -> None:
    """Law 16: two deliberate operations are never merged."""
    first = shop.order.submit(order=1)
    store = shop.ledger.engine.store
    real, both = store.by_keys, threading.Barrier(2)

    def together(namespace, pairs):
        found = real(namespace, pairs)
        if pairs[0][1].endswith("#repeat-1"):
            both.wait(10)
        return found

    store.by_keys = together
    made: list[str] = []

    def repeat(why: str) -> None:
        made.append(shop.order.repeat(of=first, reason=why).id)

    threads = [threading.Thread(target=repeat, args=(why,)) for why in ("damaged", "a gift")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(made)) == 2


def test_superseding_what_is_unknown_here_is_refused_at_once(shop: Shop) -> None:
    other = shop.another(namespace="other")
    theirs = register(other, shop.target).submit(order=1)
    for ident in ("nonsense", theirs.id):
        with pytest.raises(UnknownOperation):
            shop.order.using(supersedes=ident, reason="x").enqueue(order=2)
    assert shop.ledger.find() == []


def test_references_do_not_cross_namespaces(shop: Shop) -> None:
    first = shop.order.submit(order=1)
    with pytest.raises(UnknownOperation):
        shop.another(namespace="other").references(first.id)


def test_a_control_that_was_not_written_is_kept_by_the_next_success(shop: Shop) -> None:
    def code(call, *, order):
        return Done(ref=f"c{order}")

    action = act(shop, "c", code, contract=contract("searchable"))
    action.lookup()(lambda call: Absent())
    store = shop.ledger.engine.store
    real = store.write

    def failing(changes):
        if changes[0].control is not None:
            store.write = real
            raise StoreUnavailable("the disk is full")
        return real(changes)

    store.write = failing
    with pytest.raises(StoreUnavailable):
        action.submit(order=1)
    second = action.submit(order=2)
    control = store.control("default", "c", "c")
    assert control is not None
    assert control.operation == second.id


# --- what was approved is what is sent ----------------------------------------------------------


@pytest.mark.parametrize("given", [{}, {"amount": 100}], ids=["left out", "given"])
def test_a_default_is_pinned_with_the_input(shop: Shop, given: dict[str, Any]) -> None:
    """Law 11: a later default changes nothing of what was asked and approved."""
    sent = []

    def old(call, *, order, amount=100):
        return Done()

    def new(call, *, order, amount=200):
        sent.append(amount)
        return Done(ref="1")

    r = act(shop, "pay", old, approval=True).submit(order=1, wait=0, **given)
    assert shop.ledger.asked(r)[0].input == {"order": 1, "amount": 100}
    shop.ledger.approve(r, by="bob")
    after = shop.another()
    act(shop, "pay", new, after, approval=True)
    after.recover()
    assert sent == [100]


def test_a_default_that_prepare_does_not_take_is_not_given_to_it(shop: Shop) -> None:
    def code(call, *, order, note="", client=object()):  # noqa: B008 - the case is about it
        return Done(ref="1")

    action = act(shop, "own", code, prepare=prepared, sends="own")
    r = action.enqueue(order=1)
    assert not shop.ledger.recover().errors
    assert shop.get(r).done

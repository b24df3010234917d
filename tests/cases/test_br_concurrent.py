"""Two at once, a lease that ends while the work goes on, callers that die."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from ascertain import Absent, InProgress, InputMismatch, State
from shop import CONTROL, Shop, declared, register


def slow_order(shop: Shop, ledger: Any = None, **more: Any) -> tuple[Any, Any, Any]:
    """An action that waits within, so that others can come meanwhile."""
    entered, leave = threading.Event(), threading.Event()

    @(ledger or shop.ledger).action("shop.slow", **declared("searchable", **more))
    def slow(call, *, order):
        entered.set()
        leave.wait(10)
        return shop.target.send(call.target_key)

    slow.lookup(control=CONTROL)(lambda call: shop.target.look(call.target_key))
    return slow, entered, leave


# --- concurrent ---------------------------------------------------------------------------------


def test_br_007_two_versions_of_a_workflow_run_the_same_slot(shop: Shop) -> None:
    # given two workflow versions run the same scheduled slot
    # when both submit the same key with different payloads
    first = shop.order.submit(order="daily-report-2026-11-29", note="old layout")
    with pytest.raises(InputMismatch, match="note differ"):
        shop.order.submit(order="daily-report-2026-11-29", note="new layout")
    # then one effect; the second is refused by name
    assert shop.effects(first) == 1


def test_br_027_two_parallel_runs_reach_the_write(shop: Shop) -> None:
    # given two parallel runs, when both claim at the same moment
    barrier = threading.Barrier(2)

    def run(_: int) -> Any:
        barrier.wait()
        return shop.order.submit(order=1)

    with ThreadPoolExecutor(2) as pool:
        done = list(pool.map(run, range(2)))
    # then one effect, and both have the result
    assert len({r.ref for r in done}) == 1
    assert shop.target.requests(done[0].target_key) == 1


def test_br_049_a_second_call_waits_for_the_first_result(shop: Shop) -> None:
    # given a first call that runs
    slow, entered, leave = slow_order(shop, lease=1000)
    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(slow, order=1)
        entered.wait(10)
        # when a second call waits (virtual time runs, so it looks often)
        second = pool.submit(slow, order=1, wait=600)
        leave.set()
        # then it returns the first result, no error
        assert second.result(10).ref == first.result(10).ref
    assert len(shop.target.effects()) == 1 + 1  # and the control


def test_br_055_an_in_process_retry_and_a_queue_worker(shop: Shop) -> None:
    # given a retry in the process and a worker that both own the operation
    other = shop.another()
    register(other, shop.target)
    shop.target.script("refuse:transient")
    waits = shop.order.submit(order=1, wait=0)
    shop.clock.advance(2)
    # when both start at once
    with ThreadPoolExecutor(2) as pool:
        jobs = [pool.submit(other.recover), pool.submit(shop.order.submit, order=1)]
        assert all(j.result(10) for j in jobs)
    # then exactly one claim won
    shop.settle()
    assert shop.effects(waits) == 1
    assert shop.target.requests(waits.target_key) == 2


def test_br_057_a_poller_lists_an_operation_twice(shop: Shop) -> None:
    # given a due operation that was read twice before its state changed
    from ascertain.core.reconcile import Do
    from ascertain.runtime.ticket import Ticket

    waits = shop.order.enqueue(order=1)
    case = shop.ledger.case_of(waits.id)
    # when both iterations try to start it
    tickets = [shop.ledger.engine.claim(case, Do.EXECUTE, {"order": 1}) for _ in range(2)]
    # then one of them has the lease, the other sees that somebody has
    assert [isinstance(t, Ticket) for t in tickets] == [True, False]
    assert shop.get(waits).attempts == 1


def test_br_097_workers_on_postgres_claim_nothing_twice(
    make_shop: Callable[..., Shop], postgres_database: str
) -> None:
    # given 4 workers and 200 waiting operations on PostgreSQL (races/test_threads.py: 5 rounds)
    shop = make_shop(url=postgres_database)
    for n in range(200):
        shop.order.enqueue(order=n)
    workers = [shop.another() for _ in range(4)]
    for worker in workers:
        register(worker, shop.target)
    # when all claim
    with ThreadPoolExecutor(4) as pool:
        worked = [r.worked for r in pool.map(lambda w: w.recover(), workers)]
    # then one effect each, none claimed twice
    assert sum(worked) == 200
    assert len(shop.target.effects()) == 200 + 1
    assert shop.ledger.find(unsettled=True) == []


def test_br_099_two_instances_boot_together(shop: Shop) -> None:
    # given two instances, the second comes right after the first has finished
    other = shop.another()
    catch_up = register(other, shop.target)
    # when both run the catch-up of the same period
    first = shop.order.submit(order="catch-up-2026-W48")
    second = catch_up.submit(order="catch-up-2026-W48")
    # then one effect
    assert second.reused
    assert shop.effects(first) == 1


# --- the lease ends while the work goes on --------------------------------------------------------


def late_holder(shop: Shop, meanwhile: Callable[[Shop], Any]) -> tuple[Any, list[Any]]:
    """A caller whose lease ends while the target works; something happens before its answer."""
    seen: list[Any] = []

    @shop.ledger.action("shop.late", **declared("searchable", late=60))
    def late(call, *, order):
        done = shop.target.send(call.target_key)
        shop.clock.advance(12)  # the lease is 10
        seen.append(meanwhile(shop))
        return done

    late.lookup(control=CONTROL)(lambda call: Absent() if not shop.target.looks_fail else
                                 shop.target.look(call.target_key))  # fmt: skip
    return late, seen


def test_br_010_a_lost_lease_is_no_failure(shop: Shop) -> None:
    # given the lease is lost, and the holder reports success a moment later
    def supervise(s: Shop) -> Any:
        s.ledger.recover()
        return s.ledger.find(key="1")[0]

    shop.target.looks_fail = "error"
    late, seen = late_holder(shop, supervise)
    done = late.submit(order=1)
    # then nobody ever said "failed"
    assert seen[0].state is State.UNKNOWN
    assert done.done
    assert {e.shows for e in shop.ledger.history(done)} <= {"unknown", "done", ""}


def test_br_037_three_workers_poll_a_call_that_outlives_its_lease(shop: Shop) -> None:
    # given a lease of 10 s and a call of 12 s
    def poll(s: Shop) -> Any:
        return [s.another().recover() for _ in range(3)] and s.ledger.recover()

    shop.target.looks_fail = "error"
    late, _ = late_holder(shop, poll)
    done = late.submit(order=1)
    # then the target was reached once
    shop.settle()
    assert shop.target.requests(done.target_key) == 1
    assert shop.effects(done) == 1
    assert shop.get(done).done


def test_br_040_a_late_report_is_evidence(shop: Shop) -> None:
    # given the worker lost its lease during the call, which then succeeded
    shop.target.looks_fail = "error"
    late, _ = late_holder(shop, lambda s: s.ledger.recover())
    done = late.submit(order=1)
    # then the late result is accepted, with its reference, and nobody called again
    assert done.ref is not None
    assert done.confirmed_by == "late_report"
    assert shop.target.requests(done.target_key) == 1


def test_br_047_an_expired_record_is_not_executed_again(make_shop: Callable[..., Shop]) -> None:
    # given the holder timed out; the target may have saved; no look-up is possible
    shop = make_shop("opaque")
    dead = shop.die(1, sent=True)
    shop.clock.advance(3600)
    # when the same key arrives after the expiry
    again = shop.order.submit(order=1)
    # then it is not executed again: a person decides
    assert again.waiting_on == "review"
    assert shop.effects(dead) == 1
    assert shop.target.requests(dead.target_key) == 1


# --- callers that die ---------------------------------------------------------------------------


def test_br_042_a_call_that_ends_with_the_process_is_one_operation(shop: Shop) -> None:
    # given the process is told to stop during a call
    def stopped(call, *, order):
        shop.target.send(call.target_key)
        raise SystemExit(143)

    action = shop.ledger.action("shop.stop", **declared("searchable"))(stopped)
    action.lookup(control=CONTROL)(lambda call: shop.target.look(call.target_key))
    with pytest.raises(SystemExit):
        action.submit(order=1)
    # when both the shutdown's and the retry's road queue it again
    action.enqueue(order=1)
    action.enqueue(order=1)
    shop.settle()
    # then one operation, one effect
    [only] = shop.ledger.find(action="shop.stop")
    assert only.done
    assert shop.effects(only) == 1


def test_br_050_another_machine_finds_what_a_killed_one_submitted(shop: Shop) -> None:
    # given the worker was killed after the target accepted, before the id was stored
    dead = shop.die(1, sent=True)
    shop.clock.advance(11)
    # when another machine retries
    other = shop.another(worker="another machine")
    retry = register(other, shop.target)
    again = retry.submit(order=1)
    # then it is attached to the first run by its key
    assert again.confirmed_by == "look_up"
    assert again.ref == shop.target.effects(dead.target_key)[0][2]
    assert shop.effects(dead) == 1


def test_br_045_a_worker_killed_before_the_call_loses_nothing(shop: Shop) -> None:
    dead = shop.die(1, sent=False)
    shop.settle()
    assert shop.get(dead).done
    assert shop.effects(dead) == 1


def test_br_100_killed_between_the_mark_and_the_send(make_shop: Callable[..., Shop]) -> None:
    for kind in ("searchable", "identified", "idempotent"):
        shop = make_shop(kind)
        dead = shop.die(1, sent=False)
        shop.settle()
        assert shop.effects(dead) == 1, kind


def test_br_073_a_crashed_holder_does_not_block_for_ever(shop: Shop) -> None:
    # given the holder crashed, the lease is over, the target shows nothing
    dead = shop.die(1, sent=False)
    with pytest.raises(InProgress):
        shop.order(order=1, wait=0)
    shop.clock.advance(11)
    # when the caller tries again and waits
    done = shop.order.submit(order=1, wait=60)
    # then it is executed once
    assert done.done
    assert shop.effects(dead) == 1


def test_br_074_no_claim_is_stuck(shop: Shop) -> None:
    for n in range(5):
        shop.die(n, sent=False)
    shop.settle()
    assert shop.ledger.find(states=["running"]) == []
    assert len(shop.target.effects()) == 5 + 1


def test_br_036_two_agents_and_a_search_that_lags(make_shop: Callable[..., Shop]) -> None:
    # given two agents with the same finding, a search that lags 10 s, no key at the target
    shop = make_shop("lagging", lag=10)
    first = shop.order.submit(order="flaky-login-test")
    shop.clock.advance(3)
    second = register(shop.another(), shop.target, "lagging", lag=10).submit(
        order="flaky-login-test"
    )
    # then one effect, by our own claim, not by the search
    assert second.reused
    assert shop.effects(first) == 1
    assert shop.target.looks() == 0


def test_br_033_a_cached_list_on_two_page_loads(make_shop: Callable[..., Shop]) -> None:
    # given a look-up cached for 60 s, and two page loads 5 s apart, the first answer lost
    shop = make_shop("lagging", lag=60)
    first = shop.lose(1, "hang")
    shop.clock.advance(5)
    shop.order.submit(order=1, wait=0)
    shop.settle()
    assert shop.effects(first) == 1
    assert shop.get(first).done

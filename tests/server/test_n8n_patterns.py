"""What n8n really sends when something goes wrong, replayed against the API: one effect per item.

Measured with n8n 2.41.1: a node sends all its items at once; Retry On Fail and a manual retry
send the whole node again, done or not, and a manual retry under a new execution id; a time-out
closes the connection; nothing guards against two retries at once.
"""

from __future__ import annotations

import itertools
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx2
import pytest

from server.house import Home
from server.target import Shop
from server.test_operations import soon

ITEMS = ("A", "B", "C")
ONCE = Counter(ITEMS)
ids = itertools.count(16)


class Node:
    """A stock HTTP Request node: every item at once, a time-out, and no idea what happened."""

    def __init__(self, home: Home, timeout: float = 300, **more: Any) -> None:
        self.home, self.timeout, self.more = home, timeout, more

    def run(self, names: tuple[str, ...] = ITEMS, action: str = "order") -> dict[str, int]:
        """One execution: the status of each item, 0 where no answer came in time."""
        execution = str(next(ids))  # new on every run and on every retry by hand
        with ThreadPoolExecutor(len(names)) as pool:
            sent = [pool.submit(self._one, name, action, execution) for name in names]
        return dict(zip(names, (one.result() for one in sent), strict=True))

    def _one(self, name: str, action: str, execution: str) -> int:
        asked = {"action": action, "input": {"name": name}, "event": execution, **self.more}
        try:
            answer = self.home.client.post("/v1/operations", json=asked, timeout=self.timeout)
        except httpx2.TimeoutException:
            return 0
        return answer.status_code

    def retried(self, tries: int, **more: Any) -> dict[str, int]:
        """Retry On Fail: the whole node again while any item fails."""
        for _ in range(tries):
            found = self.run(**more)
            if set(found.values()) == {200}:
                break
        return found


def all_done(home: Home) -> bool:
    found = home.client.get("/v1/operations").json()["items"]
    return {one["state"] for one in found} == {"done"}


def test_e1_retry_after_a_lost_answer_and_a_refusal(home: Home, target: Shop) -> None:
    target.fates["B"], target.fates["C"] = ["slow:1.5"], ["refuse"]
    first = Node(home, timeout=0.7, wait=0).run()
    assert (first["A"], first["B"], first["C"]) == (200, 409, 409)
    assert set(Node(home, wait=10).run().values()) == {200}
    assert target.made() == ONCE


def test_e1_the_node_times_out_before_the_answer(home: Home, target: Shop) -> None:
    target.fates["B"] = ["slow:1.5"]
    assert Node(home, timeout=0.5).run()["B"] == 0
    assert set(Node(home, wait=10).run().values()) == {200}
    assert target.made() == ONCE
    assert len(target.effects()) == 3


def test_e1b_the_same_failed_execution_retried_after_a_success(home: Home, target: Shop) -> None:
    target.fates["B"], target.fates["C"] = ["drop"], ["refuse"]
    for _ in range(3):
        Node(home, wait=10).run()
    assert target.made() == ONCE


def test_e1c_two_retries_at_once(home: Home, target: Shop) -> None:
    target.fates["C"] = ["refuse"]
    Node(home, wait=0).run()
    with ThreadPoolExecutor(2) as pool:
        both = [pool.submit(Node(home, wait=10).run) for _ in range(2)]
    assert all(set(one.result().values()) == {200} for one in both)
    assert target.made() == ONCE
    assert len(target.effects()) == 4  # C once more, and nothing else


@pytest.mark.parametrize("wait", [0, 10])
def test_e3_retry_on_fail_while_one_is_lost_each_time(
    home: Home, target: Shop, wait: float
) -> None:
    target.fates["B"] = ["drop"] * 3
    Node(home, timeout=12, wait=wait).retried(3)
    assert target.made() == ONCE


def test_e3b_retry_on_fail_after_one_refusal(home: Home, target: Shop) -> None:
    target.fates["B"] = ["refuse"]
    assert set(Node(home, wait=10).retried(3).values()) == {200}
    assert target.made() == ONCE
    assert len(target.effects()) == 4


def test_e4d_the_first_items_error_sends_everything_again(home: Home, target: Shop) -> None:
    target.fates["A"] = ["refuse"]
    node = Node(home, wait=0)
    assert node.run()["A"] == 409
    assert set(Node(home, wait=10).run().values()) == {200}
    assert target.made() == ONCE


def test_e6_a_webhook_delivered_twice_at_once(home: Home, target: Shop) -> None:
    target.fates["A"] = ["slow:0.3"]
    with ThreadPoolExecutor(2) as pool:
        both = [pool.submit(Node(home, wait=10).run) for _ in range(2)]
    assert all(set(one.result().values()) == {200} for one in both)
    assert target.made() == ONCE
    assert len(target.effects()) == 3


def test_e7_a_sub_workflow_runs_again_from_its_beginning(home: Home, target: Shop) -> None:
    second = ("A2", "B2", "C2")
    target.fates["B2"] = ["drop"]
    Node(home, wait=0).run()
    Node(home, wait=0).run(second, "searched")
    for names, action in ((ITEMS, "order"), (second, "searched")):
        assert set(Node(home, wait=12).run(names, action).values()) == {200}
    assert target.made() == ONCE + Counter(second)


def test_e8_parallel_deliveries_and_retries_of_everything(home: Home, target: Shop) -> None:
    target.fates["B"], target.fates["C"] = ["drop"], ["refuse"] * 3
    with ThreadPoolExecutor(3) as pool:
        several = [pool.submit(Node(home, wait=10).run) for _ in range(3)]
    assert all(set(one.result().values()) == {200} for one in several)
    assert target.made() == ONCE


def test_e12_n8n_dies_while_an_answer_is_under_way(home: Home, target: Shop) -> None:
    target.fates["B"] = ["slow:1"]
    Node(home, timeout=0.3).run()  # its sockets close; nobody reads the answers
    soon(lambda: all_done(home))
    assert set(Node(home, wait=10).run().values()) == {200}
    assert target.made() == ONCE
    assert len(target.effects()) == 3


def test_e16_a_retry_that_carries_an_unpublished_draft_sends_nothing(
    home: Home, target: Shop
) -> None:
    Node(home).run()
    asked = {"action": "order", "input": {"name": "A", "note": "edited"}}
    answer = home.client.post("/v1/operations", json=asked)
    assert (answer.status_code, answer.json()["code"]) == (422, "input_mismatch")
    assert target.made() == ONCE


def test_a_batch_item_of_everything_again(home: Home, target: Shop) -> None:
    """The node sends one batch for all items; it is retried as a whole."""
    target.fates["B"], target.fates["C"] = ["drop"], ["refuse"]
    asked = {"items": [{"action": "order", "input": {"name": name}} for name in ITEMS], "wait": 10}
    for _ in range(3):
        answer = home.client.post("/v1/operations/batch", json=asked)
        assert [one["status"] for one in answer.json()["items"]] == [200] * 3
    assert target.made() == ONCE


# --- n8n ends green, and an item is missing ---


def opened(home: Home) -> None:
    expects = [{"action": "order", "input": {"name": name}} for name in ITEMS]
    answer = home.client.post("/v1/runs", json={"name": "shop/2026-11", "expects": expects})
    assert answer.status_code == 200, answer.text


def stands(home: Home) -> tuple[str, dict[str, str]]:
    found = home.client.get("/v1/runs/shop/2026-11").json()
    assert found["green"] is (found["standing"] == "done")
    return found["standing"], {one["key"]: one["standing"] for one in found["items"]}


def test_e4b_continue_on_error_leaves_one_out_and_it_is_shown_missing(
    home: Home, target: Shop
) -> None:
    """The item's request is refused before anything is recorded, and the node goes on."""
    opened(home)
    node = Node(home, run="shop/2026-11")
    bad = {"action": "order", "input": {"name": None}, "run": "shop/2026-11"}
    assert home.client.post("/v1/operations", json=bad).status_code == 422
    assert set(node.run(("A", "C")).values()) == {200}
    assert stands(home) == ("missing", {"A": "done", "B": "missing", "C": "done"})


def test_e4b_one_that_the_target_refused_is_not_green_either(home: Home, target: Shop) -> None:
    opened(home)
    target.fates["B"] = ["refuse"]
    Node(home, run="shop/2026-11", wait=0).run()
    expected = ("waiting", {"A": "done", "B": "waiting", "C": "done"})
    soon(lambda: stands(home) == expected)  # nobody waited for the answers


def test_e14a_remove_duplicates_drops_the_retry_and_it_is_shown_missing(
    home: Home, target: Shop
) -> None:
    """The first delivery fails at the second item; the sender delivers again, and the node that
    removes duplicates lets nothing through: both executions end as a success or unseen."""
    opened(home)
    assert set(Node(home, run="shop/2026-11").run(("A", "C")).values()) == {200}
    redelivered: tuple[str, ...] = ()  # "seen in previous executions"
    for _ in redelivered:
        raise AssertionError("nothing is sent")
    standing, members = stands(home)
    assert (standing, members["B"]) == ("missing", "missing")
    assert set(Node(home, run="shop/2026-11").run(("B",)).values()) == {200}
    assert stands(home) == ("done", dict.fromkeys(ITEMS, "done"))

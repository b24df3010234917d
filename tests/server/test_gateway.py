"""The gateway as a stock HTTP node sees it: the same request, once for one key."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx2
import pytest

from server.gateways import CONFIG
from server.house import Home, house
from server.target import Shop

NAMES = ("A", "B", "C")
REFUSED = ["refuse"] * 6  # with the back-off, for between 1.5 and 3.2 seconds


@pytest.fixture
def home(tmp_path: Path, target: Shop, monkeypatch: pytest.MonkeyPatch) -> Iterator[Home]:
    monkeypatch.setenv("SHOP_TOKEN", "shop-secret-0123456789")
    with house(tmp_path, CONFIG.format(target=target.url)) as running:
        yield running


def order(home: Home, name: str, key: str | None = None, **headers: str) -> httpx2.Response:
    """What n8n's HTTP Request node sends for one item."""
    return home.client.post(
        "/gateway/shop/orders",
        content=json.dumps({"name": name}, separators=(",", ":")),
        headers={
            "Accept": "application/json,text/html,*/*;q=0.7", "User-Agent": "n8n",
            "Content-Type": "application/json", "Ascertain-Key": key or f"order/{name}", **headers,
        },
    )  # fmt: skip


def all_at_once(home: Home, names: Any = NAMES, **headers: str) -> dict[str, httpx2.Response]:
    """All items of a node leave within milliseconds."""
    with ThreadPoolExecutor(8) as pool:
        return dict(zip(names, pool.map(lambda n: order(home, n, **headers), names), strict=True))


def test_the_answer_is_the_targets_own_and_the_second_one_equals_it(
    home: Home, target: Shop
) -> None:
    first, again = order(home, "A"), order(home, "A")
    assert (first.status_code, first.json()["name"]) == (201, "A")
    assert (again.status_code, again.content) == (201, first.content)
    assert again.headers["content-type"] == first.headers["content-type"] == "application/json"
    for answer, reused in ((first, "false"), (again, "true")):
        assert answer.headers["ascertain-state"] == "done"
        assert answer.headers["ascertain-reused"] == reused
        assert answer.headers["ascertain-ref"] == "1"
        assert answer.headers["cache-control"] == "no-store"
    assert first.headers["ascertain-operation"] == again.headers["ascertain-operation"]
    assert target.made() == {"A": 1}
    assert [a["headers"]["Authorization"] for a in target.effects()] == [
        "Bearer shop-secret-0123456789"
    ]


# --- what n8n really sends (one HTTP Request node over three items) ---


def test_e1_lost_and_refused_then_two_retries_at_once(home: Home, target: Shop) -> None:
    target.fates["B"], target.fates["C"] = ["slow:4"], list(REFUSED)
    first = all_at_once(home, **{"Ascertain-Wait": "2", "Ascertain-Run": "16"})
    assert first["A"].status_code == 201
    assert first["B"].status_code == 409, "an error, so that the node stops"
    assert first["B"].headers["ascertain-state"] == first["B"].json()["state"] == "running"
    assert first["B"].json()["next_step"]["zh"]
    # The target's own refusal, proven before processing: the flow sees it, the ledger goes on.
    assert (first["C"].status_code, first["C"].json()) == (500, {"error": "refuse"})
    assert first["C"].headers["ascertain-state"] == "pending"
    with ThreadPoolExecutor(2) as pool:  # E1b, E1c: no guard in n8n, other execution ids
        tries = pool.map(lambda run: all_at_once(home, **{"Ascertain-Run": run}), ("17", "18"))
    for answers in tries:
        assert {n: a.status_code for n, a in answers.items()} == dict.fromkeys(NAMES, 201)
    assert target.made() == {"A": 1, "B": 1, "C": 1}
    sent = Counter(json.loads(a["body"])["name"] for a in target.effects())
    assert (sent["A"], sent["B"]) == (1, 1)


def test_e3_retry_on_fail_repeats_the_whole_node(home: Home, target: Shop) -> None:
    target.fates["B"] = ["drop"]
    for _ in range(3):
        last = all_at_once(home)
    assert {a.status_code for a in last.values()} == {201}
    assert {a.headers["ascertain-reused"] for a in last.values()} == {"true"}
    assert target.made() == {"A": 1, "B": 1, "C": 1}


@pytest.mark.parametrize("name", ["Ascertain-Key", "Idempotency-Key"])
def test_two_keys_in_one_request_are_refused(home: Home, target: Shop, name: str) -> None:
    """The first one was taken; whoever stands between may read the last one."""
    sent = [(name, "a"), (name, "b"), ("Content-Type", "application/json")]
    answer = home.client.post("/gateway/shop/orders", content=b'{"name":"A"}', headers=sent)
    assert (answer.status_code, answer.json()["code"]) == (400, "key_refused")
    assert target.asked == []


@pytest.mark.parametrize("name", ["A", "B"])
def test_e4_what_continue_would_lose_is_pending_and_done_by_recovery(
    home: Home, target: Shop, name: str
) -> None:
    target.fates[name] = list(REFUSED)
    answers = all_at_once(home, **{"Ascertain-Wait": "1"})
    ident = answers[name].headers["ascertain-operation"]
    ledger = home.serving.space("default").ledger
    assert ledger.get(ident).state == "pending", "not missing, and not failed"
    until = time.monotonic() + 15
    while not ledger.get(ident).done and time.monotonic() < until:
        ledger.recover()  # what a worker does, without the flow
    assert target.made() == {"A": 1, "B": 1, "C": 1}
    assert order(home, name).headers["ascertain-reused"] == "true"


def test_e5_batches_of_one_after_another(home: Home, target: Shop) -> None:
    target.fates["B"] = ["drop"]
    assert [order(home, name).status_code for name in NAMES] == [201, 201, 201]
    assert target.made() == {"A": 1, "B": 1, "C": 1}


def test_e6_one_event_delivered_four_times_at_once(home: Home, target: Shop) -> None:
    target.fates["A"] = ["slow:0.3"]
    with ThreadPoolExecutor(4) as pool:
        deliveries = list(pool.map(
            lambda n: all_at_once(home, **{"Ascertain-Event": "evt-1", "Ascertain-Run": f"1{n}"}),
            range(4),
        ))  # fmt: skip
    for answers in deliveries:
        assert {a.status_code for a in answers.values()} == {201}
    assert len(target.effects()) == 3
    assert target.made() == {"A": 1, "B": 1, "C": 1}
    found = home.serving.space("default").ledger.find(event="evt-1", limit=10)
    assert sorted(r.key for r in found) == ["order/A", "order/B", "order/C"]


def test_e8_refused_three_times_then_two_retries_in_parallel(home: Home, target: Shop) -> None:
    target.fates["C"] = ["refuse"] * 3
    for _ in range(2):
        all_at_once(home, **{"Ascertain-Wait": "0"})
    with ThreadPoolExecutor(2) as pool:
        last = list(pool.map(lambda _: all_at_once(home), range(2)))
    assert {a.status_code for answers in last for a in answers.values()} == {201}
    assert target.made() == {"A": 1, "B": 1, "C": 1}


def test_e12_the_caller_is_gone_before_the_answer(home: Home, target: Shop) -> None:
    target.fates["B"] = ["slow:0.4"]
    with pytest.raises(httpx2.ReadTimeout), httpx2.Client(trust_env=False, timeout=0.2) as killed:
        killed.post(
            f"{home.url}/gateway/shop/orders",
            content=b'{"name":"B"}',
            headers={
                "Authorization": f"Bearer {home.secret}", "Ascertain-Key": "order/B",
                "Content-Type": "application/json",
                "Accept": "application/json,text/html,*/*;q=0.7", "User-Agent": "n8n",
            },
        )  # fmt: skip
    answer = order(home, "B", **{"Ascertain-Run": "after the crash"})
    assert (answer.status_code, answer.headers["ascertain-reused"]) == (201, "true")
    assert target.made() == {"B": 1}
    assert len(target.effects()) == 1


def test_e16_a_retry_with_other_content_is_a_conflict_and_sends_nothing(
    home: Home, target: Shop
) -> None:
    order(home, "A")
    edited = order(home, "A-EDITED", "order/A")
    assert edited.status_code == 422
    assert (edited.json()["code"], edited.json()["fields"]) == ("input_mismatch", ["body_sha256"])
    assert target.made() == {"A": 1}


@pytest.mark.parametrize(("accept", "status"), [("error", 409), ("accept", 202)])
def test_e17_unresolved_is_an_error_unless_the_flow_branches(
    home: Home, target: Shop, accept: str, status: int
) -> None:
    target.fates["B"] = ["hang"]
    answer = home.client.post(
        "/gateway/shop/searched/orders", json={"name": "B"},
        headers={
            "Ascertain-Key": "order/B", "Ascertain-Wait": "0.5", "Ascertain-On-Unresolved": accept,
        },
    )  # fmt: skip
    assert (answer.status_code, answer.headers["ascertain-state"]) == (status, "unknown")
    assert answer.json()["state"] == "unknown"
    assert answer.json()["user_message"]["zh"]
    assert answer.headers["ascertain-next"]


def test_what_is_found_by_a_look_up_is_done_with_its_reference(home: Home, target: Shop) -> None:
    target.fates["B"] = ["drop"]
    for _ in range(2):
        answer = home.client.post(
            "/gateway/shop/searched/orders", json={"name": "B"},
            headers={"Ascertain-Key": "order/B", "Ascertain-Wait": "10"},
        )  # fmt: skip
        assert (answer.status_code, answer.headers["ascertain-answer"]) == (200, "none")
        assert (answer.json()["state"], answer.json()["ref"]) == ("done", "1")
    assert target.made() == {"B": 1}


def test_an_expected_item_that_never_came_is_missing(home: Home, target: Shop) -> None:
    order(home, "A", **{"Ascertain-Run": "nightly"})
    space = home.serving.space("default")
    shop = space.tasks.actions["shop.order"]
    expected = [shop.expected(key=f"order/{n}", method="POST", path="/orders") for n in ("A", "B")]
    view = space.ledger.run("nightly", expects=expected)
    standing = view.standing()
    assert {m.key: m.standing for m in standing.members} == {
        "order/A": "done", "order/B": "missing",
    }  # fmt: skip
    assert not standing.green


# --- keys, titles, what is refused ---


def test_without_a_key_nothing_is_sent(home: Home, target: Shop) -> None:
    answer = home.client.post("/gateway/shop/orders", json={"name": "A"})
    assert (answer.status_code, answer.json()["code"]) == (400, "key_missing")
    assert target.asked == []


@pytest.mark.parametrize(
    ("key", "run"),
    [("c1d7b2a4-6a3f-4f63-9c1e-0c5a4c9e2f11", ""), ("exec-16fa34/A", ""), ("16/A", "16")],
)
def test_a_key_that_changes_on_every_retry_is_warned_of(home: Home, key: str, run: str) -> None:
    answer = order(home, "A", key, **({"Ascertain-Run": run} if run else {}))
    assert answer.status_code == 201
    assert "changes on every retry" in answer.headers["ascertain-warning"] or (
        "random UUID" in answer.headers["ascertain-warning"]
    )
    assert "ascertain-warning" not in order(home, "B").headers


def test_keys_titles_and_runs_may_be_chinese(home: Home, target: Shop) -> None:
    encode = {n: v.encode() for n, v in {
        "Ascertain-Key": "订单/台灯", "Ascertain-Title": "台灯的订单", "Ascertain-Run": "夜间批次",
    }.items()}  # fmt: skip
    answer = home.client.post("/gateway/shop/orders", json={"name": "A"}, headers=encode)
    assert answer.status_code == 201
    receipt = home.serving.space("default").ledger.get(answer.headers["ascertain-operation"])
    assert (receipt.key, receipt.title) == ("订单/台灯", "台灯的订单")


@pytest.mark.parametrize(
    ("fate", "status", "state"), [("bad", 422, "not_done"), ("busy", 429, "pending")]
)
def test_a_proven_refusal_is_the_targets_own_answer(
    home: Home, target: Shop, fate: str, status: int, state: str
) -> None:
    target.fates["A"] = [fate] * 6
    answer = order(home, "A", **{"Ascertain-Wait": "1"})
    assert (answer.status_code, answer.json()) == (status, {"error": fate})
    assert answer.headers["ascertain-state"] == state
    assert target.made() == {}


@pytest.mark.parametrize(
    ("name", "value"),
    [("Ascertain-Wait", "soon"), ("Ascertain-Wait", "301"), ("Ascertain-Wait", "nan"),
     ("Ascertain-On-Unresolved", "maybe"), ("Ascertain-Title", "x" * 201)],
)  # fmt: skip
def test_what_cannot_be_meant_is_refused(home: Home, target: Shop, name: str, value: str) -> None:
    assert order(home, "A", **{name: value}).status_code == 422
    assert target.asked == []


def test_reads_are_passed_on_and_never_kept(home: Home, target: Shop) -> None:
    for _ in range(2):
        answer = home.client.get("/gateway/shop/orders?key=x")
        assert (answer.status_code, answer.json()) == (200, {"orders": []})
        assert answer.headers["cache-control"] == "no-store"
    assert [a["path"] for a in target.asked] == ["/orders?key=x"] * 2
    assert home.serving.space("default").ledger.find(limit=10) == []


def test_what_is_not_declared_is_not_reached(home: Home, target: Shop) -> None:
    head = {"Ascertain-Key": "x"}
    assert home.client.post("/gateway/shop/refunds", json={}, headers=head).status_code == 405
    assert home.client.delete("/gateway/shop/orders", headers=head).status_code == 405
    assert home.client.get("/gateway/nowhere/orders").status_code == 404
    assert home.client.post("/gateway/walled/other", headers=head).status_code == 405
    assert target.asked == []


def test_only_a_token_with_the_right_comes_through(home: Home, target: Shop) -> None:
    reader = home.as_token(home.token("ops:read"))
    head = {"Ascertain-Key": "x"}
    assert reader.post("/gateway/shop/orders", json={}, headers=head).status_code == 403
    nobody = home.as_token(None)
    assert nobody.post("/gateway/shop/orders", json={}, headers=head).status_code == 401
    assert nobody.get("/gateway/shop/orders").status_code == 401
    own = {**head, "Ascertain-Token": home.secret}
    assert nobody.post("/gateway/shop/orders", json={"name": "A"}, headers=own).status_code == 201
    wrong = {**head, "Ascertain-Token": "asc_wrong", "Authorization": f"Bearer {home.secret}"}
    assert nobody.post("/gateway/shop/orders", json={}, headers=wrong).status_code == 401
    assert target.made() == {"A": 1}


def test_a_target_of_another_namespace_is_not_there(tmp_path: Path, target: Shop) -> None:
    text = CONFIG.format(target=target.url).replace(
        "wait = 5.0", 'wait = 5.0\nnamespaces = ["default", "lamp"]'
    )
    text = text.replace("[targets.shop]", '[targets.shop]\nnamespaces = ["lamp"]')
    with house(tmp_path, text) as home:
        head = {"Ascertain-Key": "x"}
        answer = home.client.post("/gateway/shop/orders", json={}, headers=head)
        assert (answer.status_code, answer.json()["code"]) == (404, "unknown")
    assert target.asked == []

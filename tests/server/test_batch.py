"""Many operations in one request: each answered for itself, in order."""

from __future__ import annotations

import time
from collections import Counter
from typing import Any

from server.house import Home
from server.target import Shop
from server.test_operations import find, soon


def items(*names: str, action: str = "order") -> list[dict[str, Any]]:
    return [{"action": action, "input": {"name": name}} for name in names]


def batch(home: Home, asked: list[Any], **more: Any) -> list[dict[str, Any]]:
    answer = home.client.post("/v1/operations/batch", json={"items": asked, **more})
    assert answer.status_code == 200, answer.text
    found: list[dict[str, Any]] = answer.json()["items"]
    assert len(found) == len(asked)
    return found


def test_each_is_answered_in_its_place(home: Home, target: Shop) -> None:
    target.fates["B"], target.fates["C"] = ["bad"], ["drop"] * 50
    told = batch(home, items("A", "B", "C", "D"), wait=0.5)
    assert [one["status"] for one in told] == [200, 422, 409, 200]
    assert [one["operation"]["key"] for one in told if "operation" in one] == ["A", "D"]
    assert told[1]["problem"]["code"] == "input_rejected"
    assert told[2]["problem"]["code"] in ("outcome_unknown", "in_review")
    assert told[2]["problem"]["user_message"]["zh"]
    assert told[2]["problem"]["link"]
    assert target.made() == Counter(A=1, C=1, D=1)


def test_a_bad_one_fails_no_neighbour(home: Home, target: Shop) -> None:
    bad: list[Any] = [
        {"action": "nothing", "input": {}},
        {"action": "order", "input": {"nome": "X"}},
        {"action": "order", "input": {"name": "X"}, "what": 1},
        {"action": "order"},
        {"input": {}},
        17, None, [], "x",
        {"action": "order", "input": {"name": "X"}, "key": "Y"},
        {"action": "order", "input": {"name": "X"}, "wait": -1},
    ]  # fmt: skip
    asked = [one for pair in zip(items(*map(str, range(len(bad)))), bad, strict=True)
             for one in pair]  # fmt: skip
    told = batch(home, asked)
    assert [one["status"] for one in told[::2]] == [200] * len(bad)
    assert [one["status"] for one in told[1::2]] == [404] + [422] * (len(bad) - 1)
    assert all(one["problem"]["type"].startswith("urn:") for one in told[1::2])
    assert "X" not in target.made()


def test_the_same_key_many_times_in_one_batch_is_one(home: Home, target: Shop) -> None:
    told = batch(home, items(*["A"] * 40), concurrency=16)
    assert {one["status"] for one in told} == {200}
    assert len({one["operation"]["id"] for one in told}) == 1
    assert sum(not one["operation"]["reused"] for one in told) == 1
    assert target.made() == Counter(A=1)
    assert len(target.effects()) == 1


def test_the_whole_batch_again_sends_nothing(home: Home, target: Shop) -> None:
    names = [f"n{n}" for n in range(60)]
    batch(home, items(*names), wait=15)
    again = batch(home, items(*names), wait=15)
    assert all(one["operation"]["reused"] for one in again)
    assert target.made() == Counter(names)
    assert len(target.effects()) == 60


def test_what_is_not_begun_in_time_is_not_recorded(home: Home, target: Shop) -> None:
    for name in "ABCD":
        target.fates[name] = ["slow:1"]
    start = time.monotonic()
    told = batch(home, items(*"ABCD"), wait=0.2, concurrency=1)
    assert time.monotonic() - start < 5
    assert [one["problem"]["code"] for one in told] == ["in_progress"] + ["not_begun"] * 3
    assert [one["status"] for one in told] == [409, 503, 503, 503]
    soon(lambda: find(home, key="A", state="done"))
    assert len(find(home)) == 1
    assert target.made() == Counter(A=1)


def test_a_batch_has_bounds(home: Home) -> None:
    def status(body: Any) -> int:
        return home.client.post("/v1/operations/batch", json=body).status_code

    assert status({"items": []}) == 422
    assert status({"items": items("A") * 1001}) == 422
    assert status({"items": items("A"), "concurrency": 65}) == 422
    assert status({"items": items("A"), "wait": 301}) == 422
    assert status({"items": items("A"), "what": 1}) == 422
    assert status([]) == 422
    big = home.client.post("/v1/operations/batch", content=b"[" * (17 * 1024 * 1024))
    assert big.status_code == 413
    assert find(home) == []


def test_options_of_each(home: Home, target: Shop) -> None:
    target.fates["B"] = ["drop"] * 50
    asked = items("A", "B")
    asked[0] |= {"run": "autumn", "title": "Lampe", "key": "A"}
    asked[1] |= {"on_unresolved": "accept", "wait": 0}
    told = batch(home, asked)
    assert [one["status"] for one in told] == [200, 202]
    assert told[0]["operation"]["title"] == "Lampe"
    assert home.client.get("/v1/runs/autumn").json()["counts"] == {"done": 1}

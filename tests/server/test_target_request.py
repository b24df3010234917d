"""A request to a declared target, submitted through the API: the same as through the gateway."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from server.gateways import CONFIG
from server.house import Home, house
from server.target import Shop


@pytest.fixture
def gate(tmp_path: Path, target: Shop, monkeypatch: Any) -> Iterator[Home]:
    monkeypatch.setenv("SHOP_TOKEN", "shop-secret")
    with house(tmp_path, CONFIG.format(target=target.url)) as home:
        yield home


def asked(**more: Any) -> dict[str, Any]:
    request = {"path": "/orders", "json": {"name": "A"}} | more.pop("request", {})
    return {"target": "shop", "request": request, "key": "order-17", "wait": 3} | more


def test_it_is_done_once_whichever_way_it_is_asked_for(gate: Home, target: Shop) -> None:
    first = gate.client.post("/v1/operations", json=asked())
    again = gate.client.post("/v1/operations", json=asked())
    assert (first.status_code, again.status_code) == (200, 200), first.text
    assert (first.json()["key"], first.json()["action"]) == ("order-17", "shop.order")
    assert again.json()["reused"]
    through = gate.client.post(
        "/gateway/shop/orders", content=b'{"name":"A"}',
        headers={"Ascertain-Key": "order-17", "Content-Type": "application/json"},
    )  # fmt: skip
    assert through.headers["ascertain-reused"] == "true"
    assert target.made() == {"A": 1}


def test_a_lost_answer_is_found_out(gate: Home, target: Shop) -> None:
    target.fates["A"] = ["drop"]
    answer = gate.client.post("/v1/operations", json=asked())
    assert answer.json()["state"] == "done"
    assert target.made() == {"A": 1}


def test_in_a_batch_each_has_its_own(gate: Home, target: Shop) -> None:
    items = [asked(key=n, request={"json": {"name": n}}) for n in "ABC"]
    items.append(asked(key="D", request={"path": "/nowhere"}))
    told = gate.client.post("/v1/operations/batch", json={"items": items}).json()["items"]
    assert [one["status"] for one in told] == [200, 200, 200, 405]
    assert target.made() == {"A": 1, "B": 1, "C": 1}


@pytest.mark.parametrize(
    ("given", "status", "code"),
    [
        ({"key": None}, 400, "key_missing"),
        ({"target": "nobody"}, 404, "unknown"),
        ({"target": None}, 422, "body_invalid"),
        ({"action": "shop.order"}, 422, "body_invalid"),
        ({"request": None}, 422, "body_invalid"),
        ({"request": {"path": "/nowhere"}}, 405, "method_not_allowed"),
        ({"request": {"path": "/orders", "method": "GET"}}, 400, "usage"),
        ({"request": {"path": "//evil.example/orders"}}, 400, "path_refused"),
        ({"request": {"path": "/../orders"}}, 400, "path_refused"),
        ({"request": {"path": "http://evil.example/"}}, 422, "body_invalid"),
    ],
)
def test_only_what_is_declared_goes_anywhere(
    gate: Home, target: Shop, given: dict[str, Any], status: int, code: str
) -> None:
    sent = {n: v for n, v in (asked() | given).items() if v is not None}
    answer = gate.client.post("/v1/operations", json=sent)
    assert (answer.status_code, answer.json()["code"]) == (status, code), answer.text
    assert target.effects() == []


def test_its_headers_are_sorted_as_through_the_gateway(gate: Home, target: Shop) -> None:
    headers = {"Authorization": "Bearer mine", "Host": "evil.example", "X-Kept": "yes"}
    gate.client.post("/v1/operations", json=asked(request={"headers": headers}))
    [sent] = target.effects()
    assert sent["headers"]["Authorization"] == "Bearer shop-secret"
    assert sent["headers"]["Host"] == target.url.removeprefix("http://")

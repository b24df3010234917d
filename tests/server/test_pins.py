"""Pins: the first value under a key wins, and every later caller gets that one."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from server.house import SHOP, Home, house
from server.target import Shop


def pin(home: Home, key: str, value: Any) -> Any:
    return home.client.post("/v1/pins", json={"key": key, "value": value})


def test_the_first_value_wins(home: Home) -> None:
    first, second = pin(home, "lamp/de/v3", "Eine Lampe."), pin(home, "lamp/de/v3", "Andere Lampe.")
    assert [one.status_code for one in (first, second)] == [200, 200]
    assert [one.json()["value"] for one in (first, second)] == ["Eine Lampe."] * 2
    assert [one.json()["reused"] for one in (first, second)] == [False, True]
    found = home.client.get("/v1/pins/lamp/de/v3").json()
    assert (found["key"], found["value"]) == ("lamp/de/v3", "Eine Lampe.")
    assert found["operation"] == first.json()["operation"]


def test_many_at_once_get_the_same(home: Home) -> None:
    gate = threading.Barrier(16)

    def one(number: int) -> Any:
        gate.wait()
        return pin(home, "k", f"text {number}").json()

    with ThreadPoolExecutor(16) as pool:
        found = list(pool.map(one, range(16)))
    assert len({one["value"] for one in found}) == 1
    assert sum(not one["reused"] for one in found) == 1


@pytest.mark.parametrize("value", ["文字", 0, False, "", [], {"a": [1, None]}, 1.5])
def test_any_json_but_null_is_pinned_as_it_is(home: Home, value: Any) -> None:
    assert pin(home, "k", value).json()["value"] == value
    assert home.client.get("/v1/pins/k").json()["value"] == value
    assert pin(home, "k2", None).status_code == 422


def test_it_outlives_the_server_and_is_an_operation_with_evidence(
    tmp_path: Path, target: Shop
) -> None:
    config = SHOP.format(target=target.url)
    with house(tmp_path, config) as home:
        ident = pin(home, "k", "first").json()["operation"]
    with house(tmp_path, config) as home:
        assert pin(home, "k", "second").json()["value"] == "first"
        operation = home.client.get(f"/v1/operations/{ident}").json()
        assert (operation["action"], operation["state"]) == ("ascertain.pin", "done")
        history = home.client.get(f"/v1/operations/{ident}/history").json()["items"]
        assert [one["shows"] for one in history] == ["done"]


def test_the_key_may_stand_in_a_header(home: Home) -> None:
    answer = home.client.post("/v1/pins", json={"value": 1}, headers={"Ascertain-Key": '"k"'})
    assert answer.json()["key"] == "k"
    answer = home.client.post("/v1/pins", json={"value": 1})
    assert (answer.status_code, answer.json()["code"]) == (400, "key_missing")


def test_no_pin_stands_for_the_one_whose_key_looks_like_it_is_stored(home: Home) -> None:
    assert pin(home, "%23", "older").status_code == 200
    assert pin(home, "#", "mine").status_code == 200
    assert home.client.get("/v1/pins/%23").json()["value"] == "mine"
    assert home.client.get("/v1/pins/%2523").json()["value"] == "older"


def test_a_value_has_a_bound(home: Home) -> None:
    assert pin(home, "k", "x" * 250_000).status_code == 200
    answer = pin(home, "k2", "x" * 270_000)
    assert (answer.status_code, answer.json()["code"]) == (422, "input_refused")
    assert pin(home, "k3", "x" * 2_000_000).status_code == 413
    assert home.as_token(home.secret).get("/v1/pins/k2").status_code == 404


def test_a_pin_of_another_namespace_is_not_there(tmp_path: Path, target: Shop) -> None:
    config = '[server]\nnamespaces = ["default", "other"]\n' + SHOP.format(target=target.url)
    with house(tmp_path, config) as home:
        pin(home, "k", "ours")
        other = home.as_token(home.token(namespace="other"))
        assert other.get("/v1/pins/k").status_code == 404
        own = other.post("/v1/pins", json={"key": "k", "value": "theirs"}).json()
        assert (own["value"], own["reused"]) == ("theirs", False)


def test_what_retention_removed_is_not_handed_out_as_nothing(home: Home) -> None:
    ident = pin(home, "k", "text").json()["operation"]
    home.serving.store.prune(home.serving.store.now() + 10**9, 10)
    for answer in (home.client.get("/v1/pins/k"), pin(home, "k", "other")):
        assert (answer.status_code, answer.json()["code"]) == (409, "refused")
        assert answer.json()["operation"] == ident


def test_who_only_reads_pins_nothing(home: Home) -> None:
    reader = home.as_token(home.token("ops:read"))
    assert reader.post("/v1/pins", json={"key": "k", "value": 1}).status_code == 403
    assert reader.get("/v1/pins/k").status_code == 404

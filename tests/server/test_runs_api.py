"""Runs over HTTP: opened by name, with keys that are expected, and which of them are missing."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from server.house import SHOP, Home, house
from server.target import Shop
from server.test_idempotency_key import KEYED
from server.test_operations import submit

EXPECTS = [{"action": "order", "key": "A"}, {"action": "order", "input": {"name": "B"}}]


def opened(home: Home, name: str = "autumn", **more: Any) -> dict[str, Any]:
    answer = home.client.post("/v1/runs", json={"name": name, **more})
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


def test_what_is_expected_is_missing_until_it_is_done(home: Home) -> None:
    run = opened(home, expects=EXPECTS, due="2026-12-01T08:00:00Z")
    assert (run["standing"], run["green"], run["counts"]) == ("missing", False, {"missing": 2})
    assert run["run"]["due_at"] == "2026-12-01T08:00:00Z"
    submit(home, "A", run="autumn")
    submit(home, "C", run=run["run"]["id"])  # by id too, and nobody expected it
    again = home.client.get("/v1/runs/autumn").json()
    standing = {one["key"]: one["standing"] for one in again["items"]}
    assert standing == {"A": "done", "B": "missing", "C": "done"}
    assert [one["link"] is None for one in again["items"]] == [False, True, False]
    submit(home, "B", run="autumn")
    assert home.client.get(f"/v1/runs/{run['run']['id']}").json()["green"] is True


def test_opening_again_adds_keys_and_keeps_what_is_there(home: Home) -> None:
    first = opened(home, expects=EXPECTS, due="2026-12-01T08:00:00Z")
    second = opened(home, expects=[{"action": "searched", "key": "A"}])
    assert second["run"] == first["run"]
    assert second["counts"] == {"missing": 3}
    later = opened(home, due="2026-12-02T08:00:00Z")
    assert later["run"]["due_at"] == "2026-12-02T08:00:00Z"


def test_who_first_names_a_run_opens_it(home: Home) -> None:
    def one(number: int) -> int:
        return int(submit(home, f"n{number}", run="shop/lamp").status_code)

    with ThreadPoolExecutor(8) as pool:
        assert set(pool.map(one, range(8))) == {200}
    [run] = home.client.get("/v1/runs").json()["items"]
    assert run["name"] == "shop/lamp"
    found = home.client.get("/v1/runs/shop/lamp").json()
    assert (found["counts"], found["green"]) == ({"done": 8}, True)


def test_members_come_in_pages_and_counts_are_of_all(home: Home) -> None:
    opened(home, expects=[{"action": "order", "key": f"k{n:03}"} for n in range(25)])
    names, after = [], 0
    while True:
        page = home.client.get("/v1/runs/autumn", params={"limit": 10, "after": after}).json()
        assert page["counts"] == {"missing": 25}
        names += [one["key"] for one in page["items"]]
        if page["next"] is None:
            break
        after = page["next"]
    assert names == [f"k{n:03}" for n in range(25)]


def test_runs_are_listed_newest_first_in_pages(home: Home) -> None:
    for number in range(7):
        opened(home, f"run{number}")
    names: list[str] = []
    after: dict[str, str] = {}
    while True:
        page = home.client.get("/v1/runs", params={"limit": 3, **after}).json()
        names += [one["name"] for one in page["items"]]
        if page["next"] is None:
            break
        after = {"after": page["next"]}
    assert names == [f"run{number}" for number in reversed(range(7))]
    [one] = home.client.get("/v1/runs", params={"name": "run3"}).json()["items"]
    assert one["name"] == "run3"
    assert home.client.get("/v1/runs", params={"after": "x"}).status_code == 400


def test_keys_that_callers_give_are_expected_as_they_will_be(tmp_path: Path, target: Shop) -> None:
    with house(tmp_path, KEYED.format(target=target.url)) as home:
        expects = [
            {"action": "keyed", "key": "order/7"},
            {"action": "both", "key": "7", "input": {"shop": "x", "name": "A"}},
        ]
        run = opened(home, expects=expects)
        assert [one["key"] for one in run["items"]] == ["x/7", "order%2F7"]
        asked = {"action": "keyed", "input": {"name": "A"}, "key": "order/7", "run": "autumn"}
        assert home.client.post("/v1/operations", json=asked).status_code == 200
        assert home.client.get("/v1/runs/autumn").json()["counts"] == {"missing": 1, "done": 1}
        wrong = [{"action": "both", "key": "7"}]
        answer = home.client.post("/v1/runs", json={"name": "x", "expects": wrong})
        assert (answer.status_code, answer.json()["code"]) == (422, "body_invalid")


@pytest.mark.parametrize(
    ("expects", "code"),
    [
        ([{"action": "nothing", "key": "A"}], "unknown_action"),
        ([{"action": "order"}], "key_missing"),
        ([{"action": "order", "input": {"nome": "A"}}], "input_refused"),
        ([{"action": "order", "input": {"name": "A"}, "key": "B"}], "key_mismatch"),
        ([{"action": "order", "key": "A", "what": 1}], "body_invalid"),
    ],
)
def test_what_cannot_be_expected_is_refused_and_opens_nothing(
    home: Home, expects: Any, code: str
) -> None:
    answer = home.client.post("/v1/runs", json={"name": "x", "expects": expects})
    assert answer.json()["code"] == code
    assert home.client.get("/v1/runs").json()["items"] == []


def test_a_run_of_another_namespace_is_not_there(tmp_path: Path, target: Shop) -> None:
    config = '[server]\nnamespaces = ["default", "other"]\n' + SHOP.format(target=target.url)
    with house(tmp_path, config) as home:
        ident = opened(home, expects=EXPECTS)["run"]["id"]
        other = home.as_token(home.token(namespace="other"))
        assert other.get(f"/v1/runs/{ident}").status_code == 404
        assert other.get("/v1/runs/autumn").status_code == 404
        assert other.get("/v1/runs").json()["items"] == []
        own = other.post("/v1/runs", json={"name": "autumn"}).json()
        assert own["run"]["id"] != ident
        assert own["counts"] == {}


def test_who_only_reads_opens_no_run(home: Home) -> None:
    reader = home.as_token(home.token("ops:read"))
    assert reader.post("/v1/runs", json={"name": "x"}).status_code == 403
    assert reader.get("/v1/runs").status_code == 200
    assert reader.get("/v1/runs/nothing").json()["code"] == "unknown"

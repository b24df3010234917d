"""Keys that callers give: {key} in a template, the headers, and what is warned of."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import ascertain
from ascertain.runtime.templates import register
from server.house import SHOP, Home, house
from server.target import Shop
from server.test_operations import find

KEYED = (
    SHOP
    + """
[actions.keyed]
target = "shop"
contract = "shop.order"
key = "{{key}}"
owner = "anna"
inputs = {{ name = {{ type = "text" }} }}
request = {{ url = "/orders", json = {{ name = "{{name}}" }} }}
ref = "id"

[actions.both]
target = "shop"
contract = "shop.order"
key = "{{shop}}/{{key}}"
owner = "anna"
inputs = {{ shop = {{ type = "text" }}, name = {{ type = "text" }} }}
request = {{ url = "/orders", json = {{ name = "{{name}}" }} }}
ref = "id"
"""
)


@pytest.fixture
def home(tmp_path: Path, target: Shop) -> Iterator[Home]:
    with house(tmp_path, KEYED.format(target=target.url)) as running:
        yield running


def keyed(home: Home, key: str | None = None, name: str = "A", **headers: str) -> Any:
    asked = {"action": "keyed", "input": {"name": name}} | ({"key": key} if key else {})
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return home.client.post("/v1/operations", json=asked, headers=named)


# --- where a key may stand ---


@pytest.mark.parametrize("header", ["Idempotency-Key", "Ascertain-Key", "idempotency-key"])
@pytest.mark.parametrize(
    ("value", "key"),
    [
        ('"order-7"', "order-7"),
        ("order-7", "order-7"),
        ('"order-7"; version=1', "order-7"),
        (r'"a \"b\" \\ c"', r'a "b" \ c'),
        ('%"%e7%81%af-7"', "灯-7"),
        ('%"%E7%81%AF-7"', "灯-7"),  # as encodeURIComponent writes it
        ("灯-7", "灯-7"),
        ("order/7", "order/7"),
    ],
)
def test_the_headers_give_the_key(home: Home, header: str, value: str, key: str) -> None:
    asked = {"action": "keyed", "input": {"name": "A"}}
    sent = [(header.encode(), value.encode())]
    answer = home.client.post("/v1/operations", json=asked, headers=sent)
    assert answer.status_code == 200, answer.text
    again = keyed(home, key)
    assert (again.status_code, again.json()["reused"]) == (200, True)
    assert again.json()["id"] == answer.json()["id"]
    assert [one["id"] for one in find(home, key=key)] == [answer.json()["id"]]


@pytest.mark.parametrize("value", ['"order', '"or"der"', '%"%zz"', "\xff"])
def test_a_header_that_cannot_be_read_is_400(home: Home, value: str) -> None:
    sent = [(b"Idempotency-Key", value.encode("latin-1"))]
    asked = {"action": "keyed", "input": {"name": "A"}}
    answer = home.client.post("/v1/operations", json=asked, headers=sent)
    assert (answer.status_code, answer.json()["code"]) == (400, "key_refused")


def test_two_headers_are_one_too_many(home: Home) -> None:
    asked = {"action": "keyed", "input": {"name": "A"}}
    sent = [("Idempotency-Key", '"a"'), ("Idempotency-Key", '"a"')]
    answer = home.client.post("/v1/operations", json=asked, headers=sent)
    assert (answer.status_code, answer.json()["code"]) == (400, "key_refused")


def test_two_different_keys_are_422_and_equal_ones_are_one(home: Home, target: Shop) -> None:
    answer = keyed(home, "a-1", Idempotency_Key='"a-2"')
    assert (answer.status_code, answer.json()["code"]) == (422, "key_mismatch")
    assert "a-1" in answer.json()["detail"]
    assert "a-2" in answer.json()["detail"]
    assert keyed(home, "a-1", Idempotency_Key='"a-1"', Ascertain_Key="a-1").status_code == 200
    assert target.made() == Counter(A=1)


# --- what the draft asks for: 400 without, 422 with other content, 409 while running ---


def test_without_a_key_it_is_400(home: Home, target: Shop) -> None:
    answer = keyed(home)
    assert (answer.status_code, answer.json()["code"]) == (400, "key_missing")
    assert keyed(home, Ascertain_Key='""').status_code == 400  # empty: no key either
    assert target.made() == Counter()


def test_other_content_under_the_same_key_is_422(home: Home, target: Shop) -> None:
    assert keyed(home, "k-1").status_code == 200
    answer = keyed(home, "k-1", "B")
    assert (answer.status_code, answer.json()["code"]) == (422, "input_mismatch")
    assert answer.json()["fields"] == ["name"]
    assert target.made() == Counter(A=1)


def test_while_the_first_is_under_way_it_is_409(home: Home, target: Shop) -> None:
    target.fates["A"] = ["slow:2"]
    asked = {"action": "keyed", "input": {"name": "A"}, "key": "k-1", "wait": 0.1}
    answers = [home.client.post("/v1/operations", json=asked) for _ in range(2)]
    assert [(a.status_code, a.json()["code"]) for a in answers] == [(409, "in_progress")] * 2
    done = home.client.post("/v1/operations", json=asked | {"wait": 8})
    assert (done.status_code, done.json()["reused"]) == (200, True)
    assert len(target.effects()) == 1


# --- templates ---


def test_a_key_is_a_part_of_a_template_and_cannot_reach_into_another(home: Home) -> None:
    def both(shop: str, key: str) -> Any:
        asked = {"action": "both", "input": {"shop": shop, "name": "A"}, "key": key}
        return home.client.post("/v1/operations", json=asked).json()

    assert both("x", "7")["key"] == "x/7"
    assert both("a", "b/c")["key"] == "a/b%2Fc"
    assert both("a/b", "c")["key"] == "a%2Fb/c"


def test_a_key_that_is_not_the_one_of_the_input_is_422(home: Home, target: Shop) -> None:
    asked = {"action": "order", "input": {"name": "A"}, "key": "B"}
    answer = home.client.post("/v1/operations", json=asked)
    assert (answer.status_code, answer.json()["code"]) == (422, "key_mismatch")
    assert "'A'" in answer.json()["detail"]
    assert "'B'" in answer.json()["detail"]
    assert target.made() == Counter()
    assert home.client.post("/v1/operations", json=asked | {"key": "A"}).status_code == 200


@pytest.mark.parametrize("key", [" a", "a" * 513, "anna@example.com"])
def test_keys_are_checked_as_all_keys_are(home: Home, target: Shop, key: str) -> None:
    answer = keyed(home, key)
    assert answer.status_code in (400, 422)
    assert target.made() == Counter()


def test_an_input_called_key_is_an_input(tmp_path: Path) -> None:
    with ascertain.open(tmp_path / "a.db") as ledger:

        @ledger.action("own", key="{key}", owner="anna", repeatable=True)
        def own(call: Any, key: str) -> ascertain.Done:
            return ascertain.Done(ref=f"made {key}")

        assert own(key="7").key == "7"
        with pytest.raises(ascertain.KeyMismatch, match=r"'8'.*'7'"):
            own.using(key="8")(key="7")


def test_python_callers_give_a_key_too(tmp_path: Path) -> None:
    with ascertain.open(tmp_path / "a.db") as ledger:

        @ledger.action("given", key="{shop}/{key}", owner="anna", repeatable=True)
        def given(call: Any, shop: str) -> ascertain.Done:
            return ascertain.Done(ref=f"made {call.key}")

        with pytest.raises(ascertain.KeyMissing, match="given"):
            given(shop="x")
        first = given.using(key="7")(shop="x")
        assert (first.key, first.ref) == ("x/7", "made x/7")
        assert given.using(key="7")(shop="x").reused
        assert given.using(key="8").expected(shop="x").key == "x/8"
        repeated = given.repeat(of=first, reason="the customer wants two")
        assert repeated.key == "x/7#repeat-1"


def test_a_template_that_made_keys_before_still_finds_them(tmp_path: Path) -> None:
    file = tmp_path / "a.db"
    with ascertain.open(file) as ledger:
        old = ledger.action("given", key="{key}", owner="anna", repeatable=True)(_made)
        first = old.using(key="7")(shop="x")
    with ascertain.open(file) as ledger:
        new = ledger.action(
            "given", key="{shop}/{key}", keys_from=["{key}"], owner="anna", repeatable=True
        )(_made)
        again = new.using(key="7")(shop="x")
        assert (again.id, again.reused) == (first.id, True)


def _made(call: Any, shop: str) -> ascertain.Done:
    return ascertain.Done(ref=f"{shop} {call.key}")


def test_a_template_may_not_name_what_is_neither_an_input_nor_the_key(tmp_path: Path) -> None:
    with ascertain.open(tmp_path / "a.db") as ledger:
        with pytest.raises(ascertain.ActionInvalid, match="names keys"):
            ledger.action("given", key="{keys}", owner="anna")(_made)
        description = {"base": "http://x.example", "key": "{key}", "request": {"url": "/"}}
        assert register(ledger, "plain", description, owner="anna").definition.takes_key


# --- warnings ---


@pytest.mark.parametrize(
    ("key", "code"),
    [
        ("7d4a2f0e-1c3b-4f5a-9d6e-0a1b2c3d4e5f", "uuid"),
        ("run-1a2b3c4d", "run_id"),
        ("execution_0123456789ab", "run_id"),
        ("2026-11-30T08:00:00", "clock"),
    ],
)
def test_a_key_that_changes_on_every_retry_is_warned_of(home: Home, key: str, code: str) -> None:
    for _ in range(2):  # each time, not only the first
        [warning] = keyed(home, key).json()["warnings"]
        assert warning["code"] == code
        assert "every retry" in warning["en"]
        assert "防重" in warning["zh"]


def test_a_key_that_is_its_run_is_warned_of(home: Home) -> None:
    asked = {"action": "keyed", "input": {"name": "A"}, "key": "17", "run": "17"}
    answer = home.client.post("/v1/operations", json=asked).json()
    assert [one["code"] for one in answer["warnings"]] == ["run_id"]


def test_a_problem_warns_too(home: Home, target: Shop) -> None:
    target.fates["A"] = ["bad"]
    answer = keyed(home, "7d4a2f0e-1c3b-4f5a-9d6e-0a1b2c3d4e5f")
    assert answer.status_code == 422
    assert [one["code"] for one in answer.json()["warnings"]] == ["uuid"]


def test_a_good_key_is_not_warned_of(home: Home) -> None:
    assert keyed(home, "order-1001").json()["warnings"] == []

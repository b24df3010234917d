"""What may be done here and on what ground, as the API tells it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ascertain.contracts import catalogue
from server.house import SHOP, Home, house
from server.target import Shop
from server.test_idempotency_key import KEYED


def named(home: Home) -> dict[str, Any]:
    return {one["name"]: one for one in home.client.get("/v1/actions").json()["items"]}


def test_actions_say_what_they_take_and_how_they_are_protected(home: Home) -> None:
    order, searched = (named(home)[name] for name in ("order", "searched"))
    assert (order["target"], order["contract"], order["key"]) == ("shop", "shop.order", "{name}")
    assert order["inputs"] == [
        {"name": "name", "type": "text", "required": True, "default": None},
        {"name": "note", "type": "any", "required": False, "default": ""},
    ]
    assert (order["protection"], searched["protection"]) == ("idempotent", "searchable")
    assert order["protection_says"] == {"en": "idempotent", "zh": "窗口内防重"}
    assert order["owners"] == {"": "anna"}
    assert (order["takes_key"], order["approval"]) == (False, [])


def test_an_action_says_that_it_takes_a_key(tmp_path: Path, target: Shop) -> None:
    with house(tmp_path, KEYED.format(target=target.url)) as home:
        assert [named(home)[name]["takes_key"] for name in ("keyed", "both")] == [True, True]


def test_contracts_are_the_shipped_and_those_declared_here(home: Home) -> None:
    found = {one["id"]: one for one in home.client.get("/v1/contracts").json()["items"]}
    assert set(catalogue.shipped()) < set(found)
    assert {i for i, one in found.items() if one["declared_here"]} >= {
        "shop.order", "shop.searched"}  # fmt: skip
    assert found["shop.order"]["now"] == "idempotent"


def test_every_contract_is_explained_in_both_languages(home: Home) -> None:
    for ident in sorted(catalogue.shipped()):
        answer = home.client.get(f"/v1/contracts/{ident}")
        assert answer.status_code == 200, ident
        found = answer.json()
        assert found["contract"]["id"] == ident
        assert found["claims"]
        for moment in filter(None, (found["now"], found["later"])):
            assert moment["says"].keys() == {"en", "zh"}
            assert "{" not in moment["says"]["en"] + moment["says"]["zh"]


def test_a_contract_says_what_is_permitted_and_why(home: Home) -> None:
    found = home.client.get("/v1/contracts/shop.order").json()
    assert found["now"]["protection"] == "idempotent"
    assert found["now"]["permitted"] == "replay_key"
    assert "for 1d" in found["now"]["says"]["en"]
    assert "1d" in found["now"]["says"]["zh"]
    claims = {one["claim"]: one for one in found["claims"]}
    assert claims["repeat.atomic"] == {
        "claim": "repeat.atomic", "value": True, "level": "vendor", "counts": True}  # fmt: skip


@pytest.mark.parametrize("ident", ["nothing", "a.b", "%00"])
def test_a_contract_that_is_not_there_is_404(home: Home, ident: str) -> None:
    answer = home.client.get(f"/v1/contracts/{ident}")
    assert (answer.status_code, answer.json()["code"]) == (404, "unknown")


def test_actions_of_another_namespace_are_not_shown(tmp_path: Path, target: Shop) -> None:
    config = '[server]\nnamespaces = ["default", "other"]\n' + SHOP.format(target=target.url)
    config = config.replace("[targets.shop]", '[targets.shop]\nnamespaces = ["default"]')
    with house(tmp_path, config) as home:
        other = home.as_token(home.token(namespace="other"))
        names = [one["name"] for one in other.get("/v1/actions").json()["items"]]
        assert "order" not in names
        assert other.get("/v1/contracts/shop.order").status_code == 404

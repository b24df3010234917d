"""One request through everything: the server, the ledger, the store, a target."""

from __future__ import annotations

import pytest

from server.house import Home
from server.target import Shop


@pytest.mark.parametrize("action", ["order", "searched"])
def test_an_operation_is_done_once(home: Home, target: Shop, action: str) -> None:
    asked = {"action": action, "input": {"name": "A"}}
    first, again = (home.client.post("/v1/operations", json=asked) for _ in range(2))
    assert (first.status_code, again.status_code) == (200, 200)
    assert (first.json()["state"], first.json()["reused"]) == ("done", False)
    assert (again.json()["ref"], again.json()["reused"]) == (first.json()["ref"], True)
    assert target.made() == {"A": 1}


def test_nobody_comes_in_without_a_token(home: Home) -> None:
    answer = home.as_token(None).post("/v1/operations", json={})
    assert answer.status_code == 401
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.json()["type"] == "urn:ascertain:problem:unauthenticated"


def test_the_api_describes_itself(home: Home) -> None:
    document = home.client.get("/v1/openapi.json").json()
    assert document["paths"]["/v1/operations"]["post"]["requestBody"]["content"][
        "application/json"]["schema"] == {"$ref": "#/components/schemas/Submit"}  # fmt: skip
    assert "Operation" in document["components"]["schemas"]

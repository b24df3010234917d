"""Targets over the API: paused and resumed by people and tools, and what waits is seen."""

from __future__ import annotations

import pytest

from server.house import Home
from server.target import Shop


def test_a_paused_target_is_seen_and_its_operations_wait(home: Home, target: Shop) -> None:
    answer = home.client.post("/v1/targets/shop/pause", json={"why": "stocktaking"})
    assert (answer.status_code, answer.json()["state"]) == (200, "paused")
    asked = {"action": "order", "input": {"name": "A"}}
    told = home.client.post("/v1/operations", json=asked)
    assert (told.status_code, told.json()["code"]) == (409, "paused")
    assert "stocktaking" in told.json()["next_step"]["en"]
    assert "stocktaking" in told.json()["next_step"]["zh"]
    assert told.json()["state"] == "pending"
    assert target.made() == {}
    [seen] = home.client.get("/v1/targets").json()["items"]
    assert (seen["name"], seen["waiting"], seen["why"]) == ("shop", 1, "stocktaking")
    assert {a["name"]: a["waiting"] for a in seen["actions"]} == {"order": 1, "searched": 0}

    answer = home.client.post("/v1/targets/shop/resume", json={})
    assert answer.json()["state"] == "open"
    told = home.client.post("/v1/operations", json=asked)
    assert (told.status_code, told.json()["state"]) == (200, "done")
    assert target.made() == {"A": 1}


def test_who_paused_it_is_in_the_audit(home: Home) -> None:
    home.client.post("/v1/targets/shop/pause", json={"why": "x"})
    [line] = [r for t, r in home.serving.store.rows() if t == "audit" and "target" in r["did"]]
    assert (line["did"], line["subject"], line["reason"]) == ("target.pause", "shop", "x")
    assert line["actor"].startswith("token:")


@pytest.mark.parametrize("verb", ["pause", "resume"])
def test_an_unknown_target_and_a_missing_right(home: Home, verb: str) -> None:
    assert home.client.post(f"/v1/targets/nowhere/{verb}", json={}).status_code == 404
    reader = home.as_token(home.token("ops:read ops:write work"))
    assert reader.post(f"/v1/targets/shop/{verb}", json={}).status_code == 403

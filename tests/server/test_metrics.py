"""What Prometheus is told: the counts apart, bounded labels, and only to whom it may be told."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from ascertain.server.routes import metrics as route
from server.house import SHOP, Home, house
from server.target import Shop


def scraped(home: Home, **more: str) -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
    answer = home.client.get("/metrics", **more)
    assert answer.status_code == 200, answer.text
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(answer.text)
        for sample in family.samples
    }


def submit(home: Home, name: str) -> None:
    given = {"action": "order", "input": {"name": name}, "wait": 5}
    home.client.post("/v1/operations", json=given)


LABELS = (("action", "order"), ("namespace", "default"), ("target", "shop"))


def test_the_counts_stand_apart(home: Home, target: Shop) -> None:
    target.fates["B"] = ["busy"]
    for name in ("A", "A", "B"):
        submit(home, name)
    found = scraped(home)
    assert found["ascertain_operations", LABELS] == 2
    assert found["ascertain_attempts", LABELS] == 3
    assert found["ascertain_done", LABELS] == 2
    assert found["ascertain_folded", LABELS] == 1
    gate = (("namespace", "default"), ("state", "open"), ("target", "shop"))
    assert found["ascertain_gate", gate] == 1
    assert found["ascertain_store_read_seconds", ()] > 0


def test_what_is_open_has_a_state_and_an_age(home: Home, target: Shop) -> None:
    target.fates["A"] = ["hang"]
    given = {"action": "searched", "input": {"name": "A"}, "wait": 0}
    home.client.post("/v1/operations", json=given)
    found = scraped(home)
    unknown = (("namespace", "default"), ("state", "unknown"))
    assert found["ascertain_open", unknown] == 1
    assert found["ascertain_oldest_seconds", unknown] >= 0


def test_requests_are_named_by_their_route_and_never_by_what_fills_it(home: Home) -> None:
    for number in range(30):
        home.client.get(f"/v1/operations/{number:026d}")
        home.client.get(f"/nowhere/{number}")
    home.client.request("BREW", "/v1/operations")
    routes = {
        dict(labels)["route"]
        for name, labels in scraped(home)
        if name == "ascertain_request_seconds_count"
    }
    assert routes <= {"/v1/operations/{operation}", "/v1/operations", "other", "/metrics"}
    methods = {
        dict(labels)["method"]
        for name, labels in scraped(home)
        if name == "ascertain_request_seconds_count"
    }
    assert "BREW" not in methods


def test_it_takes_a_right(home: Home) -> None:
    assert home.as_token(None).get("/metrics").status_code == 401
    assert home.as_token(home.token("ops:read")).get("/metrics").status_code == 403
    assert home.as_token(home.token("metrics:read")).get("/metrics").status_code == 200


def test_it_may_be_open_on_this_machine_and_through_no_proxy(
    tmp_path: Path, target: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = SHOP.format(target=target.url) + "\n[server]\nmetrics_open = true\n"
    with house(tmp_path, config) as home:
        nobody = home.as_token(None)
        assert nobody.get("/metrics").status_code == 200
        assert nobody.get("/v1/figures").status_code == 401
        proxied = {"x-forwarded-for": "203.0.113.9"}
        assert nobody.get("/metrics", headers=proxied).status_code == 401
        monkeypatch.setattr(route, "_loopback", lambda _: False)
        assert nobody.get("/metrics").status_code == 401


def test_a_scrape_is_quick_and_two_processes_do_not_meet(tmp_path: Path, target: Shop) -> None:
    config = SHOP.format(target=target.url)
    (tmp_path / "b").mkdir()
    with house(tmp_path, config) as home, house(tmp_path / "b", config) as other:
        submit(home, "A")
        began = time.monotonic()
        found = scraped(home)
        assert time.monotonic() - began < 5
        assert found["ascertain_done", LABELS] == 1
        assert ("ascertain_done", LABELS) not in scraped(other)

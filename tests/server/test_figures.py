"""Figures and alarms over HTTP: each number by itself, in one namespace, and right at once."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from ascertain.config.chores import chores
from ascertain.core.books import Event
from ascertain.core.model import SECOND, Expected, Run
from ascertain.store.base import Posting
from ascertain.store.postgres import PostgresStore
from server.house import SHOP, Home, house
from server.target import Shop


def figures(home: Home, client: Any = None, **asked: Any) -> dict[str, Any]:
    answer = (client or home.client).get("/v1/figures", params=asked)
    assert answer.status_code == 200, answer.text
    return answer.json()


def submit(home: Home, action: str, name: str, **more: Any) -> Any:
    given = {"action": action, "input": {"name": name}, "wait": 5, **more}
    return home.client.post("/v1/operations", json=given)


def test_each_number_stands_apart(home: Home, target: Shop) -> None:
    for name in ("A", "A", "A", "B"):
        assert submit(home, "order", name).status_code == 200
    target.fates["C"] = ["busy"]
    submit(home, "order", "C")
    target.fates["D"] = ["bad"]
    submit(home, "order", "D")
    total = figures(home)["total"]
    assert (total["operations"], total["attempts"], total["confirmed"]) == (4, 5, 3)
    assert (total["stopped"], total["unresolved"], total["recovered"]["again"]) == (1, 0, 1)
    assert (total["repeats_answered"], total["duplicates_prevented"]) == (2, 2)
    assert target.made() == {"A": 1, "B": 1, "C": 1}


def test_an_outcome_that_is_not_known_has_an_age_and_a_later_truth_a_way(
    home: Home, target: Shop
) -> None:
    target.fates["A"] = ["hang"]  # cut off, and nothing saved: an absence has to be earned
    target.fates["B"] = ["drop"]  # saved, then cut off: found at once
    submit(home, "searched", "C")  # the positive control
    submit(home, "searched", "B")
    submit(home, "searched", "A", wait=0)
    shown = figures(home)
    assert (shown["total"]["unresolved"], shown["now"]["unresolved"]) == (1, 1)
    assert shown["now"]["oldest_unresolved_seconds"] >= 0
    ledger = home.serving.space("default").ledger
    until = time.monotonic() + 10
    while not ledger.find(key="A")[0].done and time.monotonic() < until:
        ledger.recover()
    read = home.serving.spaces.figures
    read._live.clear()  # as five seconds do
    read._remembered.clear()
    shown = figures(home)
    assert (shown["total"]["unresolved"], shown["now"]["unresolved"]) == (0, 0)
    recovered = shown["total"]["recovered"]
    assert (recovered["look_up"], recovered["again"], shown["total"]["found_done"]) == (1, 1, 1)
    assert target.made() == {"A": 1, "B": 1, "C": 1}


def test_by_action_target_run_hour_and_day(home: Home) -> None:
    run = home.client.post("/v1/runs", json={"name": "autumn"}).json()["run"]["id"]
    submit(home, "order", "A", run=run)
    submit(home, "searched", "B")
    assert {i["name"]: i["confirmed"] for i in figures(home)["items"]} == {
        "order": 1,
        "searched": 1,
    }
    assert {i["name"]: i["confirmed"] for i in figures(home, by="target")["items"]} == {"shop": 2}
    [autumn] = figures(home, by="run")["items"]
    assert (autumn["name"], autumn["label"], autumn["confirmed"], autumn["missing"]) == (
        run, "autumn", 1, 0,
    )  # fmt: skip
    for by in ("hour", "day"):
        found = figures(home, by=by)["items"]
        assert sum(i["confirmed"] for i in found) == 2
        assert all(i["name"].endswith("Z") for i in found)
    shares = {c["protection"]: c["share"] for c in figures(home)["by_protection"]}
    assert shares == {"idempotent": 0.0, "searchable": 0.0}


def test_nothing_crosses_a_namespace(tmp_path: Path, target: Shop) -> None:
    config = SHOP.format(target=target.url) + '\n[server]\nnamespaces = ["default", "other"]\n'
    with house(tmp_path, config) as home:
        submit(home, "order", "A")
        submit(home, "order", "A")
        now = home.serving.store.now()
        event = Event(namespace="default", source="shop", id="e1", received_at=now)
        late = Run(id="r1", namespace="default", name="r", opened_at=now, due_at=now)
        home.serving.store.post([Posting((("event_add", event),))])
        wanted = [Expected(run="r1", namespace="default", action="order", key="Z")]
        home.serving.store.open_run(late, wanted)
        other = home.as_token(home.token(namespace="other"))
        shown = figures(home, other)
        assert {v for v in shown["total"].values() if isinstance(v, int)} == {0}
        assert set(shown["now"].values()) <= {0, None}
        assert other.get("/v1/alarms").json() == {"items": []}
        own = figures(home)
        assert (own["total"]["events"], own["now"]["missing"]) == (1, 1)


def test_what_is_missing_is_an_alarm_in_both_languages(home: Home) -> None:
    now = home.serving.store.now()
    late = Run(id="r1", namespace="default", name="autumn", opened_at=now, due_at=now - SECOND)
    wanted = [Expected(run="r1", namespace="default", action="order", key="lamp/de")]
    home.serving.store.open_run(late, wanted)
    failed = Event(
        namespace="default", source="shop", id="e9", received_at=now, state="failed", why="x"
    )
    home.serving.store.post([Posting((("event_add", failed),))])
    found = {a["kind"]: a for a in home.client.get("/v1/alarms").json()["items"]}
    assert found.keys() == {"missing", "event"}
    assert found["missing"]["says"] == {
        "en": "order lamp/de was expected in run autumn and was never submitted.",
        "zh": "“lamp/de”（order）：批次 autumn 应有此项，但从未提交。",
    }
    assert (found["missing"]["target"], found["event"]["severity"]) == ("shop", "urgent")


def test_a_self_test_that_failed_is_an_alarm(home: Home) -> None:
    from ascertain.runtime import verified

    store = home.serving.store
    verified.write(store, "default", "order", None)
    assert [a["kind"] for a in home.client.get("/v1/alarms").json()["items"]] == ["self_test"]


@pytest.mark.parametrize("asked", [{"by": "colour"}, {"from": "x"}])
def test_what_cannot_be_asked_is_a_clear_refusal(home: Home, asked: dict[str, str]) -> None:
    answer = home.client.get("/v1/figures", params=asked)
    assert (answer.status_code, answer.json()["code"]) == (422, "body_invalid")


def test_a_time_is_widened_to_hours_and_of_many_hours_the_newest_are_shown(home: Home) -> None:
    submit(home, "order", "A")
    shown = figures(home, by="hour", **{"from": "2020-01-01"})
    assert shown["total"]["confirmed"] == 1
    assert shown["from"] > "2026"
    past = figures(home, **{"from": "2020-01-01T10:20:00Z", "to": "2020-01-01T10:30:00Z"})
    assert (past["from"], past["to"]) == ("2020-01-01T10:00:00Z", "2020-01-01T11:00:00Z")
    assert past["total"]["operations"] == 0


def test_the_chores_of_a_configuration_roll_up(home: Home) -> None:
    submit(home, "order", "A")
    names = {c.name: c for c in chores(home.serving.understood, home.serving.spaces)}
    assert names["figures"].run() == 1  # it begins
    assert names["figures"].run() == 0
    assert names["doors"].run() == 0
    assert figures(home)["total"]["confirmed"] == 1


def test_on_postgresql(tmp_path: Path, target: Shop, postgres_database: str) -> None:
    store = PostgresStore(postgres_database)
    with house(tmp_path, SHOP.format(target=target.url), store=store) as home:
        for name in ("A", "A"):
            submit(home, "order", name)
        for by in ("action", "target", "run", "hour", "day"):
            total = figures(home, by=by)["total"]
            assert (total["confirmed"], total["repeats_answered"]) == (1, 1)
        for chore in chores(home.serving.understood, home.serving.spaces):
            if chore.name in ("figures", "doors"):
                chore.run()
        for by in ("", "action", "asset", "payer", "kind", "cause", "day"):
            assert home.client.get("/v1/costs/report", params={"by": by}).status_code == 200
        assert home.client.get("/v1/alarms").json() == {"items": []}
        assert home.client.get("/metrics").status_code == 200
        line = {"key": "k", "kind": "normal", "cause": "platform",
                "price": {"amount": "1.5", "currency": "EUR"}}  # fmt: skip
        for reused in (False, True):
            [entered] = home.client.post("/v1/costs", json={"lines": [line]}).json()["items"]
            assert entered["reused"] is reused
        home.client.post("/v1/assets/A/accept", json={})
        home.client.post("/v1/assets/A/accept", json={})
        assert [a["state"] for a in home.client.get("/v1/assets").json()["items"]] == ["accepted"]
        total = home.client.get("/v1/costs/report").json()["total"]
        assert total["money"] == [{"currency": "EUR", "total": "1.5", "per_asset": "1.5"}]
        assert len(home.client.get("/v1/costs").json()["items"]) == 1

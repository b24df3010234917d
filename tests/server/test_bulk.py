"""Bulk actions over the API: planned first, run by whoever planned, never sending again."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from ascertain import open_store
from ascertain.runtime import bulk as runtime_bulk
from ascertain.runtime.bulk import BulkRunner
from server.desk import DESK, Desk
from server.house import house
from server.target import Shop

NAMES = "ABCDE"


@pytest.fixture(params=["sqlite", "postgres"])
def desk(request: Any, tmp_path: Path, target: Shop) -> Iterator[Desk]:
    config = DESK.format(target=target.url) + '\n[server]\nnamespaces = ["default", "other"]\n'
    store = None
    if request.param == "postgres":
        store = open_store(request.getfixturevalue("postgres_database"))
    with house(tmp_path, config, store=store) as home:
        yield Desk(home)


def runner(desk: Desk) -> BulkRunner:
    return BulkRunner({space.namespace: space.ledger for space in desk.serving.spaces})


def lose(
    desk: Desk, target: Shop, names: Iterable[str] = NAMES, action: str = "blind"
) -> list[str]:
    found = []
    for name in names:
        target.fates[name] = ["drop"]
        found.append(desk.submit(action, name=name))
    desk.ledger.recover()
    return found


def plan(desk: Desk, who: str = "anna", **body: Any) -> dict[str, Any]:
    answer = desk.as_(who).post("/v1/bulk", json=body)
    assert answer.status_code == 201, answer.text
    made: dict[str, Any] = answer.json()
    return made


def run(desk: Desk, made: dict[str, Any], who: str = "anna") -> dict[str, Any]:
    started = desk.as_(who).post(f"/v1/bulk/{made['id']}/run")
    assert started.status_code == 202, started.text
    worker = runner(desk)
    while worker.run():
        pass
    found: dict[str, Any] = desk.as_(who).get(f"/v1/bulk/{made['id']}").json()
    return found


def test_a_plan_says_what_would_be_done_and_does_nothing(desk: Desk, target: Shop) -> None:
    lost = lose(desk, target)
    ready = desk.submit("order", name="Z")
    made = plan(desk, action="leave", why="cancelled", ids=[*lost, ready, "nowhere"])
    assert (made["state"], made["would"], made["looked"], made["done"]) == ("planned", 5, 7, 0)
    refused = {r["code"]: (r["count"], r["examples"]) for r in made["refused"]}
    assert refused == {"nothing_to_leave": (1, [ready]), "not_here": (1, ["nowhere"])}
    assert all(r["says"]["en"] and r["says"]["zh"] for r in made["refused"])
    assert "nothing is sent" in made["says"]["en"]
    assert runner(desk).run() == 0
    assert {desk.ledger.get(i).state for i in lost} == {"unknown"}


def test_it_is_run_with_progress_and_what_came_of_each(desk: Desk, target: Shop) -> None:
    lost = lose(desk, target)
    made = plan(desk, action="leave", why="cancelled", filter={"action": "blind"})
    desk.ledger.decide(lost[0], "there", by="ben", ref="1")  # after the plan
    ended = run(desk, made)
    assert (ended["state"], ended["done"]) == ("done", 5)
    assert ended["counts"] == {"done": 4, "refused": 1, "changed": 0, "stumbled": 0}
    results = {r["operation"]: r["outcome"] for r in ended["results"]}
    assert results == {i: "refused" if i == lost[0] else "done" for i in lost}
    assert [desk.ledger.get(i).reason for i in lost[1:]] == ["left"] * 4
    assert target.made() == dict.fromkeys(NAMES, 1)
    lines = [row for row in desk.lines("review.decide") if row["actor"] == "anna"]
    assert len(lines) == 4
    assert all(row["via"].startswith(f"bulk:{made['id']} session:test") for row in lines)
    assert [row["subject"] for row in desk.lines("bulk.run")] == [made["id"]]
    assert [row["after"] for row in desk.lines("bulk.end")] == ["done 4, refused 1"]


def test_what_changed_since_the_plan_is_not_left(desk: Desk, target: Shop) -> None:
    lost = lose(desk, target, "AB")
    made = plan(desk, action="leave", why="cancelled", ids=lost)
    desk.ledger.decide(lost[0], "cannot_tell", by="ben", why="it is being looked into")
    ended = run(desk, made)
    assert [r["outcome"] for r in ended["results"]] == ["changed", "done"]
    assert desk.ledger.get(lost[0]).state == "unknown"


def test_sending_again_is_no_bulk_action(desk: Desk, target: Shop) -> None:
    lost = lose(desk, target, "A")
    for did in ("not_there", "send", "decide", "approve", "replay"):
        answer = desk.as_("anna").post("/v1/bulk", json={"action": did, "ids": lost})
        assert answer.status_code == 422
    with pytest.raises(Exception, match="never done in bulk"):
        runtime_bulk.Bulks(desk.ledger).plan(
            runtime_bulk.Wish(did="not_there", ids=lost, who=runtime_bulk.Who(actor="anna"))
        )


def test_looking_up_asks_the_target_and_sends_nothing(desk: Desk, target: Shop) -> None:
    key = desk.ledger.engine.target_key("searched", "A", 1)
    target.orders.append({"id": 77, "key": key, "name": "A"})
    target.remembers = False
    [several] = lose(desk, target, "A", "searched")
    lost = lose(desk, target, "B")
    target.orders[:] = [o for o in target.orders if o["id"] != 77]
    sent = len(target.effects())
    machine = desk.home.client.post("/v1/bulk", json={"action": "look_up", "ids": [several, *lost]})
    made = machine.json()  # a machine may have the target asked
    assert (machine.status_code, made["would"], made["person"]) == (201, 1, 1)
    assert made["refused"][0]["code"] == "no_look_up"
    assert desk.home.client.post(f"/v1/bulk/{made['id']}/run").status_code == 202
    while runner(desk).run():
        pass
    assert desk.ledger.get(several).state == "done"
    assert len(target.effects()) == sent
    for did in ("take", "leave", "renew"):
        body = {"action": did, "ids": lost, "why": "x"}
        assert desk.home.client.post("/v1/bulk", json=body).status_code == 403


def test_taking_handing_over_and_putting_off(desk: Desk, target: Shop) -> None:
    lost = lose(desk, target, "ABC")
    run(desk, plan(desk, action="take", ids=lost))
    reviews = desk.as_("anna").get("/v1/reviews").json()
    assert [i["taken_by"] for i in reviews["items"]] == ["anna"] * 3
    until = (datetime.now(UTC) + timedelta(hours=1)).isoformat()
    run(desk, plan(desk, action="snooze", ids=lost[:1], until=until))
    run(desk, plan(desk, action="hand_over", ids=lost[1:], to="ben", why="holidays"))
    groups = {i["operation"]: i["group"] for i in
              desk.as_("ben").get("/v1/reviews").json()["items"]}  # fmt: skip
    assert groups == {lost[0]: "snoozed", lost[1]: "yours", lost[2]: "yours"}
    for body in ({"action": "hand_over", "ids": lost, "to": "ben"},
                 {"action": "snooze", "ids": lost}, {"action": "take"},
                 {"action": "take", "ids": lost, "filter": {}}):  # fmt: skip
        assert desk.as_("anna").post("/v1/bulk", json=body).status_code == 400


def test_a_renewed_authorization_lets_many_go_on(desk: Desk, target: Shop) -> None:
    from ascertain import NotDone
    from ascertain.core.model import NotDoneKind

    engine = desk.ledger.engine
    refused = []
    for name in "AB":
        ident = desk.submit("publish", name=name, body="x")
        desk.ledger.approve(ident, by="eva")
        ticket = engine.claim(desk.ledger.case_of(ident), engine.step(
            desk.ledger.case_of(ident), engine.world()).do)  # fmt: skip
        engine.finish(ticket, NotDone(NotDoneKind.UNAUTHORIZED, "401"))
        refused.append(ident)
    assert {desk.ledger.get(i).waiting_on for i in refused} == {"authorization"}
    ended = run(desk, plan(desk, action="renew", filter={"waiting_on": "authorization"}))
    assert ended["counts"]["done"] == 2
    desk.ledger.recover()
    assert target.made() == {"A": 1, "B": 1}


def test_a_filter_finds_a_key_as_people_write_it_and_as_it_is_stored(
    desk: Desk, target: Shop
) -> None:
    lose(desk, target, ["#1001"])
    for written in ("#1001", "%231001"):
        assert plan(desk, action="take", filter={"key": written})["would"] == 1


def test_only_who_planned_it_runs_it_and_only_soon(
    desk: Desk, target: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    lost = lose(desk, target, "AB")
    made = plan(desk, action="leave", why="x", ids=lost)
    assert desk.as_("ben").post(f"/v1/bulk/{made['id']}/run").status_code == 403
    monkeypatch.setattr(runtime_bulk, "FRESH", -1)
    late = desk.as_("anna").post(f"/v1/bulk/{made['id']}/run")
    assert (late.status_code, late.json()["code"]) == (409, "refused")
    assert "plan it again" in late.json()["detail"]
    monkeypatch.undo()
    run(desk, made)
    again = desk.as_("anna").post(f"/v1/bulk/{made['id']}/run")
    assert again.status_code == 409
    assert len(desk.lines("bulk.run")) == 1


def test_it_is_cancelled_before_its_next_item(
    desk: Desk, target: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    lost = lose(desk, target)
    made = plan(desk, action="leave", why="x", ids=lost)
    anna = desk.as_("anna")
    anna.post(f"/v1/bulk/{made['id']}/run")
    monkeypatch.setattr(runtime_bulk, "PAGE", 2)
    assert runner(desk).run() == 2
    stopped = anna.post(f"/v1/bulk/{made['id']}/cancel").json()
    assert (stopped["state"], stopped["done"]) == ("cancelled", 2)
    assert runner(desk).run() == 0
    assert [desk.ledger.get(i).state for i in lost] == ["not_done"] * 2 + ["unknown"] * 3
    assert anna.post(f"/v1/bulk/{made['id']}/run").status_code == 409


def test_cancelled_in_the_middle_of_a_page_it_keeps_what_was_done(
    desk: Desk, target: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    lost = lose(desk, target)
    made = plan(desk, action="leave", why="x", ids=lost)
    anna = desk.as_("anna")
    anna.post(f"/v1/bulk/{made['id']}/run")
    real = runtime_bulk._Page._one

    def one(page: Any, ident: str, stamp: int) -> Any:
        done = real(page, ident, stamp)
        if ident == lost[1]:
            assert anna.post(f"/v1/bulk/{made['id']}/cancel").status_code == 200
        return done

    monkeypatch.setattr(runtime_bulk._Page, "_one", one)
    runner(desk).run()
    ended = anna.get(f"/v1/bulk/{made['id']}").json()
    assert (ended["state"], ended["done"]) == ("cancelled", 2)
    assert [r["outcome"] for r in ended["results"]] == ["done"] * 2


def test_killed_in_the_middle_it_goes_on_and_does_nothing_twice(
    desk: Desk, target: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    lost = lose(desk, target)
    made = plan(desk, action="leave", why="x", ids=lost)
    desk.as_("anna").post(f"/v1/bulk/{made['id']}/run")
    monkeypatch.setattr(runtime_bulk, "HOLD", -1)  # who takes over need not wait for the lease
    with monkeypatch.context() as patch:
        real = runtime_bulk._Page._one

        def dying(page: Any, ident: str, stamp: int) -> Any:
            if ident == lost[3]:
                raise KeyboardInterrupt
            return real(page, ident, stamp)

        patch.setattr(runtime_bulk._Page, "_one", dying)
        with pytest.raises(KeyboardInterrupt):
            runner(desk).run()
    assert desk.as_("anna").get(f"/v1/bulk/{made['id']}").json()["done"] == 0
    while runner(desk).run():
        pass
    ended = desk.as_("anna").get(f"/v1/bulk/{made['id']}").json()
    assert (ended["state"], ended["counts"]["done"]) == ("done", 5)
    assert len(desk.lines("review.decide")) == 5


def test_lists_pages_and_other_namespaces(desk: Desk, target: Shop) -> None:
    lost = lose(desk, target, "AB")
    made = [plan(desk, action="take", ids=lost) for _ in range(3)]
    anna = desk.as_("anna")
    first = anna.get("/v1/bulk", params={"limit": 2}).json()
    rest = anna.get("/v1/bulk", params={"after": first["next"]}).json()
    seen = [b["id"] for b in first["items"] + rest["items"]]
    assert (seen, rest["next"]) == ([b["id"] for b in reversed(made)], None)
    ended = run(desk, made[0])
    tail = anna.get(f"/v1/bulk/{made[0]['id']}", params={"after": 1}).json()
    assert tail["results"] == ended["results"][1:]
    other = desk.as_("anna", space="other")
    assert other.get("/v1/bulk").json()["items"] == []
    for verb in ("run", "cancel"):
        assert other.post(f"/v1/bulk/{made[1]['id']}/{verb}").status_code == 404
    elsewhere = other.post("/v1/bulk", json={"action": "take", "ids": lost}).json()
    assert (elsewhere["would"], elsewhere["refused"][0]["code"]) == (0, "not_here")

"""Reviews over the API (SEMANTICS, People): who is next, on what evidence, and the decision."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from threading import Barrier, Thread
from typing import Any

import pytest

from ascertain import open_store
from server.desk import DESK, Desk
from server.house import house
from server.target import Shop


@pytest.fixture(params=["sqlite", "postgres"])
def desk(request: Any, tmp_path: Path, target: Shop) -> Iterator[Desk]:
    config = DESK.format(target=target.url) + '\n[server]\nnamespaces = ["default", "other"]\n'
    store = None
    if request.param == "postgres":
        store = open_store(request.getfixturevalue("postgres_database"))
    with house(tmp_path, config, store=store) as home:
        yield Desk(home)


def lost(desk: Desk, target: Shop, action: str = "blind", name: str = "A", **more: Any) -> str:
    """An operation of which nobody knows whether it happened, in review."""
    target.fates[name] = ["drop"]
    ident = desk.submit(action, name=name, **more)
    desk.ledger.recover()
    assert desk.ledger.get(ident).waiting_on == "review"
    return ident


def reviews(desk: Desk, who: str = "anna", **query: Any) -> list[dict[str, Any]]:
    found = desk.as_(who).get("/v1/reviews", params=query)
    assert found.status_code == 200, found.text
    items: list[dict[str, Any]] = found.json()["items"]
    return items


def decide(desk: Desk, who: str, item: dict[str, Any], **body: Any) -> Any:
    given = {"why": "I looked", "seen": item["stamp"], **body}
    rights = given.pop("rights", None)
    return desk.as_(who, rights).post(f"/v1/reviews/{item['id']}/decide", json=given)


def test_a_review_says_what_is_asked_and_what_each_answer_does(desk: Desk, target: Shop) -> None:
    lost(desk, target, city="Kassel")
    [item] = reviews(desk)
    assert (item["group"], item["owner"], item["taken_by"]) == ("yours", "anna", "")
    assert "a person decides" in item["says"]["en"]
    assert "由人决定" in item["says"]["zh"]
    assert item["candidates"] == []
    assert item["until_why"] == "respond"  # sooner than the day that a decision may take
    assert 3500 < item["seconds_left"] <= 3600
    does = {d["answer"]: d for d in item["decisions"]}
    assert list(does) == ["there", "not_there", "cannot_tell", "leave"]
    assert (does["there"]["needs_ref"], does["not_there"]["needs_risk"]) == (True, True)
    assert "without proof" in does["not_there"]["says"]["en"]
    assert "无证据" in does["not_there"]["says"]["zh"]
    assert all(d["yours"] for d in item["decisions"])
    seen = reviews(desk, "ben")[0]
    assert (seen["group"], item["age"] >= 0) == ("unclaimed", True)
    viewer = desk.as_("vera", "read").get(f"/v1/reviews/{item['id']}").json()
    assert not any(d["yours"] for d in viewer["decisions"])


def test_a_decision_is_carried_out_and_audited(desk: Desk, target: Shop) -> None:
    ident = lost(desk, target)
    [item] = reviews(desk)
    done = decide(desk, "anna", item, answer="there", ref="1", why="order 1 is in the shop")
    assert (done.status_code, done.json()["operation"]["state"]) == (200, "done"), done.text
    assert (desk.ledger.get(ident).ref, reviews(desk)[0]["group"]) == ("1", "settled")
    [line] = desk.lines("review.decide")
    assert (line["actor"], line["reason"]) == ("anna", "order 1 is in the shop")
    assert (line["via"], line["address"], line["role"]) == ("session:test", "192.0.2.7", "operator")
    assert line["before"].startswith("unknown")
    assert line["after"].startswith("there: done 1")
    assert target.made() == {"A": 1}


def test_only_a_person_with_the_right_decides(desk: Desk, target: Shop) -> None:
    lost(desk, target)
    [item] = reviews(desk)
    later = (datetime.now(UTC) + timedelta(hours=1)).isoformat()
    bodies = {
        "decide": {"answer": "leave", "why": "x", "seen": item["stamp"]}, "take": {},
        "hand-over": {"to": "ben"}, "snooze": {"until": later}, "note": {"text": "x"},
    }  # fmt: skip
    for verb, body in bodies.items():
        path = f"/v1/reviews/{item['id']}/{verb}"
        assert desk.home.client.post(path, json=body).status_code == 403  # a token, all scopes
        assert desk.as_("anna", "read approve operate").post(path, json=body).status_code == 403
    assert reviews(desk)[0]["stamp"] == item["stamp"]


def test_acting_without_proof_needs_its_own_right_and_a_word(desk: Desk, target: Shop) -> None:
    lost(desk, target)
    [item] = reviews(desk)
    mild = decide(desk, "anna", item, answer="not_there")
    assert (mild.status_code, mild.json()["code"]) == (409, "refused")
    without = decide(
        desk, "anna", item, answer="not_there", accept_risk=True, rights="read decide"
    )  # fmt: skip
    assert without.status_code == 403
    empty = decide(desk, "anna", item, answer="not_there", accept_risk=True, why="")
    assert empty.status_code == 422
    done = decide(desk, "anna", item, answer="not_there", accept_risk=True)
    assert done.json()["operation"]["waiting_on"] == "clock"
    desk.ledger.recover()
    assert target.made() == {"A": 2}  # what it had been warned of


def test_a_risky_target_needs_two_people(desk: Desk, target: Shop) -> None:
    lost(desk, target, "risky")
    [item] = reviews(desk)
    assert next(d for d in item["decisions"] if d["answer"] == "not_there")["needs_second"]
    risk = {"answer": "not_there", "accept_risk": True}
    first = decide(desk, "anna", item, **risk)
    assert (first.status_code, first.json()["waits_for_second"]) == (200, True), first.text
    [item] = reviews(desk)
    assert item["first_word"] == ""  # of anybody but herself
    again = decide(desk, "anna", item, **risk).json()
    assert again["waits_for_second"]
    desk.ledger.recover()
    assert target.made() == {"A": 1}
    [seen] = reviews(desk, "ben")
    assert seen["first_word"] == "anna"
    does = next(d for d in seen["decisions"] if d["answer"] == "not_there")
    assert not does["needs_second"]
    assert "anna" in does["says"]["en"]
    second = decide(desk, "ben", seen, **risk).json()
    assert not second["waits_for_second"]
    desk.ledger.recover()
    assert target.made() == {"A": 2}
    assert [row["actor"] for row in desk.lines("review.first_word")] == ["anna", "anna"]
    assert [row["actor"] for row in desk.lines("review.decide")] == ["ben"]


def test_a_word_about_an_attempt_before_counts_no_more(desk: Desk, target: Shop) -> None:
    target.fates["A"] = ["drop"] * 3
    desk.submit("risky", name="A")
    desk.ledger.recover()
    risk = {"answer": "not_there", "accept_risk": True}
    for who in ("anna", "ben"):
        decide(desk, who, reviews(desk)[0], **risk)
    desk.ledger.recover()
    assert target.made() == {"A": 2}
    open_now = [i for i in reviews(desk) if i["group"] != "settled"]
    assert len(open_now) == 1
    first = decide(desk, "ben", open_now[0], **risk).json()
    assert first["waits_for_second"]


def test_what_is_newer_than_what_was_seen_is_a_conflict(desk: Desk, target: Shop) -> None:
    lost(desk, target)
    [item] = reviews(desk)
    decide(desk, "ben", item, answer="leave", why="cancelled")
    late = decide(desk, "anna", item, answer="there", ref="1")
    assert (late.status_code, late.json()["code"]) == (409, "conflict")
    newer = late.json()["newer"]
    assert (newer["by"], newer["said"], newer["state"]) == ("ben", "leave", "not_done/left")
    assert newer["says"]["zh"]
    assert datetime.fromisoformat(newer["at"]) <= datetime.now(UTC)
    assert "ben" in late.json()["detail"]
    [closed] = reviews(desk, group="settled")
    assert (closed["closed_by"], closed["decision"]) == ("ben", "leave")
    fixed = decide(desk, "anna", closed, answer="there", ref="1", correct=True)
    assert fixed.json()["operation"]["state"] == "done"


def test_of_two_who_decide_at_once_one_acts_and_one_sees_who_did(desk: Desk, target: Shop) -> None:
    lost(desk, target)
    [item] = reviews(desk)
    start, told = Barrier(2), {}

    def one(name: str, **body: Any) -> None:
        start.wait()
        told[name] = decide(desk, name, item, **body)

    threads = [
        Thread(target=one, args=("anna",), kwargs={"answer": "there", "ref": "1"}),
        Thread(target=one, args=("ben",), kwargs={"answer": "leave"}),
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(a.status_code for a in told.values()) == [200, 409]
    loser, winner = sorted(told, key=lambda n: -told[n].status_code)
    newer = told[loser].json()["newer"]
    assert (newer["by"], newer["kind" if "kind" in newer else "by"]) == (winner, winner)
    assert len(desk.lines("review.decide")) == 1


def test_taking_handing_over_putting_off_and_noting(desk: Desk, target: Shop) -> None:
    ident = lost(desk, target)
    [item] = reviews(desk)
    anna, ben, path = desk.as_("anna"), desk.as_("ben"), f"/v1/reviews/{item['id']}"
    assert ben.post(f"{path}/take", json={}).json()["taken_by"] == "ben"
    assert ben.post(f"{path}/take", json={}).status_code == 200  # it is his: nothing changes
    taken = anna.post(f"{path}/take", json={})
    assert (taken.status_code, "ben has taken" in taken.json()["detail"]) == (409, True)
    assert [i["group"] for i in reviews(desk)] == ["others"]
    handed = ben.post(f"{path}/hand-over", json={"to": "anna", "why": "you know it"}).json()
    assert (handed["taken_by"], handed["group"]) == ("anna", "others")
    assert reviews(desk)[0]["group"] == "yours"
    until = datetime.now(UTC) + timedelta(hours=2)
    snoozed = anna.post(f"{path}/snooze", json={"until": until.isoformat()}).json()
    assert (snoozed["group"], snoozed["snoozed_until"][:16]) == ("snoozed", until.isoformat()[:16])
    far = (datetime.now(UTC) + timedelta(days=60)).isoformat()
    assert anna.post(f"{path}/snooze", json={"until": far}).json()["code"] == "refused"
    assert anna.post(f"{path}/snooze", json={"until": None}).json()["group"] == "yours"
    noted = anna.post(f"{path}/note", json={"text": "the shop is asked"}).json()
    assert noted["evidence"][-1]["says"]["en"] == "A person left a note."
    assert anna.post(f"{path}/hand-over", json={"to": ""}).json()["taken_by"] == ""
    assert desk.ledger.get(ident).state == "unknown"  # nothing of it says what happened
    for did, count in {"take": 1, "hand_over": 2, "snooze": 2, "note": 1}.items():
        assert len(desk.lines(f"review.{did}")) == count, did
    [line] = desk.lines("review.take")
    assert (line["before"], line["after"]) == ("not taken", "taken by ben")


def test_groups_time_left_and_pages(desk: Desk, target: Shop) -> None:
    for name in "ABC":
        lost(desk, target, name=name)
    first, second, third = reviews(desk)
    desk.as_("anna").post(f"/v1/reviews/{first['id']}/take", json={})
    desk.as_("ben").post(f"/v1/reviews/{second['id']}/take", json={})
    decide(desk, "anna", third, answer="leave")
    found = desk.as_("anna").get("/v1/reviews").json()
    assert [i["group"] for i in found["items"]] == ["yours", "others", "settled"]
    assert found["counts"] == {
        "yours": 1, "unclaimed": 0, "others": 1, "snoozed": 0, "settled": 1,
    }  # fmt: skip
    assert (found["total"], found["capped"]) == (3, False)
    seen, after = [], ""
    while after is not None:
        page = desk.as_("anna").get("/v1/reviews", params={"limit": 1, "after": after}).json()
        seen += [i["id"] for i in page["items"]]
        after = page["next"]
    assert seen == [i["id"] for i in found["items"]]
    assert [i["key"] for i in reviews(desk, group="others")] == [second["key"]]
    assert reviews(desk, action="risky") == []


def test_a_title_is_counted(desk: Desk, target: Shop) -> None:
    lost(desk, target)
    lost(desk, target, name="B")
    desk.submit("publish", name="P", body="x")
    desk.as_("ben").post(f"/v1/reviews/{reviews(desk)[0]['id']}/take", json={})
    shown = desk.as_("anna").get("/v1/desk").json()
    counts = {n: shown[n] for n in ("yours", "unclaimed", "reviews", "approvals", "unknown")}
    assert counts == {"yours": 1, "unclaimed": 0, "reviews": 2, "approvals": 1, "unknown": 2}
    assert desk.as_("cleo").get("/v1/desk").json()["unclaimed"] == 1
    assert all(shown[f"oldest_{n}"] >= 0 for n in ("review", "approval", "unknown"))
    empty = desk.as_("anna", space="other").get("/v1/desk").json()
    assert (empty["reviews"], empty["unknown"], empty["oldest_review"]) == (0, 0, None)


def test_what_the_target_showed_stands_beside_what_was_sent(desk: Desk, target: Shop) -> None:
    key = desk.ledger.engine.target_key("searched", "A", 1)
    target.orders.append({"id": 7, "key": key, "name": "B"})  # of another name, under our key
    target.remembers = False
    target.fates["A"] = ["drop"]
    ident = desk.submit("searched", name="A")
    assert desk.ledger.get(ident).waiting_on == "review"
    [item] = [i for i in reviews(desk, "ben") if i["group"] == "yours"]
    assert "more than one" in item["says"]["en"]
    shown = {c["ref"]: c for c in item["candidates"]}
    assert list(shown) == ["2", "7"]  # the better match first
    assert (shown["2"]["matched"], shown["2"]["compared"]) == (1, 1)
    assert (shown["7"]["matched"], shown["7"]["compared"]) == (0, 1)
    assert shown["2"]["says"] == {
        "en": "1 of 1 facts match.", "zh": "1 项信息中有 1 项一致。",
    }  # fmt: skip
    assert shown["7"]["facts"] == [{"name": "name", "sent": "A", "found": "B", "match": False}]
    assert shown["7"]["link"] == "https://shop.example/orders/7"
    assert "recorded as done with 2;" in shown["2"]["then"]["en"]


def test_the_target_is_asked_again(desk: Desk, target: Shop) -> None:
    ident = lost(desk, target)
    [item] = reviews(desk)
    blind = desk.as_("anna").post(f"/v1/reviews/{item['id']}/confirm")
    assert (blind.status_code, blind.json()["code"]) == (409, "refused")
    key = desk.ledger.engine.target_key("searched", "S", 1)
    target.orders.append({"id": 7, "key": key, "name": "S"})
    target.remembers = False
    target.fates["S"] = ["drop"]
    asked = desk.submit("searched", name="S")  # two are found: a person decides
    target.orders[:] = [o for o in target.orders if o["id"] != 7]
    [own] = [i for i in reviews(desk, "ben") if i["operation"] == asked]
    done = desk.as_("ben").post(f"/v1/reviews/{own['id']}/confirm", params={"wait": 0})
    assert (done.status_code, done.json()["state"]) == (200, "done"), done.text
    assert target.made()["S"] == 1
    [line] = desk.lines("operation.confirm")
    assert (line["actor"], line["subject"]) == ("ben", asked)
    assert ident != asked


def test_nothing_of_another_namespace_is_there(desk: Desk, target: Shop) -> None:
    lost(desk, target)
    [item] = reviews(desk)
    other = desk.as_("anna", space="other")
    assert other.get("/v1/reviews").json()["items"] == []
    path = f"/v1/reviews/{item['id']}"
    assert other.get(path).status_code == 404
    bodies = {
        "decide": {"answer": "leave", "why": "x", "seen": item["stamp"]}, "take": {},
        "hand-over": {"to": "ben"}, "snooze": {"until": None}, "note": {"text": "x"},
        "confirm": {},
    }  # fmt: skip
    for verb, body in bodies.items():
        assert other.post(f"{path}/{verb}", json=body).status_code == 404, verb
    assert reviews(desk)[0]["stamp"] == item["stamp"]


def test_no_character_of_a_request_is_too_much_for_the_store(desk: Desk, target: Shop) -> None:
    lost(desk, target)
    [item] = reviews(desk)
    anna = desk.as_("anna")
    for path in ("reviews/%00", "approvals/%00", "bulk/%00", "approvals/%F0%9F"):
        assert anna.get(f"/v1/{path}").status_code in (404, 422), path
    for query in (
        "approvals?role=%00",
        "approvals?after=%00",
        "bulk?after=%00",
        "reviews?owner=%00",
    ):
        assert anna.get(f"/v1/{query}").status_code == 422, query
    assert anna.get("/v1/reviews?after=9-9").status_code == 200
    for body in ({"text": "\x00"}, {"text": ""}, {"text": 1}, {}):
        assert anna.post(f"/v1/reviews/{item['id']}/note", json=body).status_code == 422
    odd = {"action": "take", "ids": ["\x00"]}
    assert anna.post("/v1/bulk", json=odd).status_code == 422
    huge = {"answer": "leave", "why": "x", "seen": "9" * 19}
    assert anna.post(f"/v1/reviews/{item['id']}/decide", json=huge).status_code == 409

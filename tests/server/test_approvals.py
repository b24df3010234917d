"""Approvals over the API (law 11): what is shown is what is bound, and no token answers."""

from __future__ import annotations

from collections.abc import Iterator
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


def asked(desk: Desk, who: str = "eva", **query: Any) -> list[dict[str, Any]]:
    found = desk.as_(who).get("/v1/approvals", params=query)
    assert found.status_code == 200, found.text
    items: list[dict[str, Any]] = found.json()["items"]
    return items


def test_what_is_frozen_is_shown_and_sent(desk: Desk, target: Shop) -> None:
    desk.submit("publish", name="A", body="hello")
    [item] = asked(desk)
    assert (item["role"], item["state"], item["key"]) == ("editor", "asked", "A")
    eva = desk.as_("eva")
    whole = eva.get(f"/v1/approvals/{item['id']}").json()
    assert whole["exact"]
    assert whole["request"]["method"] == "POST"
    assert whole["request"]["url"] == f"{target.url}/orders"
    assert whole["request"]["body"]["kind"] == "json"
    assert whole["request"]["body"]["text"] == '{"name":"A","body":"hello"}'
    assert whole["input"] == {"name": "A", "body": "hello"}
    assert {a["answer"] for a in whole["answers"]} == {"approve", "reject", "respond", "edit"}
    assert target.effects() == []
    path = f"/v1/approvals/{item['id']}/approve"
    done = eva.post(path, json={"digest": item["digest"], "note": "fine"})
    assert (done.status_code, done.json()["waiting_on"]) == (200, "clock")
    desk.ledger.recover()
    [sent] = target.effects()
    assert sent["body"].decode() == whole["request"]["body"]["text"]
    [line] = desk.lines("approval.approve")
    assert (line["actor"], line["role"], line["via"]) == ("eva", "editor", "session:test")
    assert (line["reason"], line["address"]) == ("fine", "192.0.2.7")
    assert "approval" in line["before"] != line["after"]
    assert asked(desk) == []
    [known] = asked(desk, state="approved")
    assert (known["by"], known["note"]) == ("eva", "fine")


def test_a_digest_that_was_not_shown_is_stale(desk: Desk, target: Shop) -> None:
    desk.submit("publish", name="A", body="hello")
    [item] = asked(desk)
    answer = desk.as_("eva").post(f"/v1/approvals/{item['id']}/approve", json={"digest": "x"})
    assert (answer.status_code, answer.json()["code"]) == (409, "approval_stale")
    desk.ledger.recover()
    assert target.effects() == []
    assert desk.lines("approval.approve") == []


def test_no_token_and_nobody_without_the_right_answers(desk: Desk) -> None:
    desk.submit("contract", name="A")
    items = asked(desk)
    assert [i["role"] for i in items] == ["editor", "legal"]
    for verb, body in {
        "approve": {"digest": items[0]["digest"]}, "reject": {"reason": "no"},
        "respond": {"note": "no"}, "edit": {"input": {"name": "B"}, "why": "x"},
        "inbox": {"type": "accept"},
    }.items():  # fmt: skip
        path = f"/v1/approvals/{items[0]['id']}/{verb}"
        assert desk.home.client.post(path, json=body).status_code == 403  # a token, all scopes
        assert desk.as_("eva", "read decide").post(path, json=body).status_code == 403
    assert desk.home.client.get(f"/v1/approvals/{items[0]['id']}").status_code == 200
    # The role `legal` names who may answer in it.
    path = f"/v1/approvals/{items[1]['id']}/approve"
    body = {"digest": items[1]["digest"]}
    assert desk.as_("eva").post(path, json=body).status_code == 403
    assert desk.as_("lea").post(path, json=body).status_code == 200
    assert [i["role"] for i in asked(desk)] == ["editor"]


def test_a_machine_that_has_the_right_by_mistake_answers_nothing(desk: Desk) -> None:
    from ascertain.server.access import Caller, Right

    async def door(request: Any) -> Caller | None:
        if "x-machine" not in request.headers:
            return None
        return Caller(actor="token:1 robot", via="token:1", namespace="default",
                      rights=frozenset(Right))  # fmt: skip

    desk.serving.doors.insert(0, door)
    desk.submit("publish", name="A", body="hello")
    [item] = asked(desk)
    robot = desk.home.as_token(None)
    robot.headers["X-Machine"] = "1"
    for verb, body in {"approve": {"digest": item["digest"]}, "inbox": {"type": "accept"}}.items():
        assert robot.post(f"/v1/approvals/{item['id']}/{verb}", json=body).status_code == 403


def test_a_refusal_stops_it_and_asks_nobody_else(desk: Desk, target: Shop) -> None:
    desk.submit("contract", name="A")
    items = asked(desk)
    body = {"reason": "wrong price"}
    done = desk.as_("eva").post(f"/v1/approvals/{items[0]['id']}/reject", json=body).json()
    assert (done["state"], done["reason"]) == ("not_done", "rejected")
    assert asked(desk) == []
    assert [a["role"] for a in asked(desk, state="withdrawn")] == ["legal"]
    late = {"digest": items[1]["digest"]}
    answer = desk.as_("lea").post(f"/v1/approvals/{items[1]['id']}/approve", json=late)
    assert (answer.status_code, answer.json()["code"]) == (409, "refused")
    assert "eva" in answer.json()["detail"] or "rejected" in answer.json()["detail"]
    desk.ledger.recover()
    assert target.effects() == []


def test_it_goes_back_to_its_author_with_a_note(desk: Desk, target: Shop) -> None:
    ident = desk.submit("publish", name="A", body="helo")
    [item] = asked(desk)
    eva = desk.as_("eva")
    path = f"/v1/approvals/{item['id']}/respond"
    assert eva.post(path, json={"note": ""}).status_code == 422
    done = eva.post(path, json={"note": "hello has two l"}).json()
    assert (done["state"], done["waiting_on"], done["owner"]) == ("not_done", "input", "otto")
    assert "sent back" in done["next_step"]["en"]
    assert "退回" in done["next_step"]["zh"]
    history = desk.home.client.get(f"/v1/operations/{ident}/history").json()["items"]
    assert (history[-1]["by"], history[-1]["data"]["why"]) == ("eva", "hello has two l")
    assert [row["reason"] for row in desk.lines("approval.respond")] == ["hello has two l"]
    desk.ledger.recover()
    assert (target.effects(), asked(desk)) == ([], [])


def test_an_edit_is_a_new_version_with_an_approval_of_its_own(desk: Desk, target: Shop) -> None:
    old = desk.submit("publish", name="A", body="hello world")
    [item] = asked(desk)
    eva = desk.as_("eva")
    path = f"/v1/approvals/{item['id']}/edit"
    same = eva.post(path, json={"input": {"body": "hello world"}, "why": "x"})
    assert (same.status_code, same.json()["code"]) == (409, "refused")
    wrong = eva.post(path, json={"input": {"colour": "red"}, "why": "x"})
    assert (wrong.status_code, wrong.json()["code"]) == (422, "input_refused")
    made = eva.post(path, json={"input": {"body": "hello moon"}, "why": "it is night"})
    assert made.status_code == 201, made.text
    new = made.json()
    assert (new["operation"]["key"], new["operation"]["waiting_on"]) == ("A#v2", "approval")
    assert desk.ledger.get(old).state == "not_done"
    again = eva.post(path, json={"input": {"body": "hello sun"}, "why": "x"})
    assert again.status_code == 409  # one successor per operation (law 10)
    [waits] = asked(desk)
    assert ([waits["id"]], waits["operation"]) == (new["approvals"], new["operation"]["id"])
    stale = eva.post(f"/v1/approvals/{item['id']}/approve", json={"digest": item["digest"]})
    assert stale.status_code == 409
    desk.ledger.recover()
    assert target.effects() == []
    eva.post(f"/v1/approvals/{waits['id']}/approve", json={"digest": waits["digest"]})
    desk.ledger.recover()
    assert [e["body"] for e in target.effects()] == [b'{"name":"A","body":"hello moon"}']
    assert desk.ledger.get(old).reason == "superseded"
    assert [row["reason"] for row in desk.lines("approval.edit")] == ["it is night"]


def test_what_changed_since_the_last_approved_version_is_shown_by_word(desk: Desk) -> None:
    eva = desk.as_("eva")
    desk.submit("publish", name="A", body="hello big world")
    [first] = asked(desk)
    assert eva.get(f"/v1/approvals/{first['id']}").json()["changes"] == []
    eva.post(f"/v1/approvals/{first['id']}/approve", json={"digest": first["digest"]})
    from ascertain.runtime.ledger import Action
    from ascertain.runtime.ticket import Options

    engine = desk.ledger.engine
    options = Options(supersedes=first["operation"], reason="new brief", key="A2")
    Action(engine, engine.actions["publish"], options).enqueue(name="A", body="hello small world")
    [second] = asked(desk)
    shown = eva.get(f"/v1/approvals/{second['id']}").json()
    assert (shown["approved"], shown["why"]) == (first["operation"], "new brief")
    [field] = shown["changes"]
    assert [(t["kind"], t["text"]) for t in field["tokens"]] == [
        ("same", "hello "), ("del", "big "), ("ins", "small "), ("same", "world"),
    ]  # fmt: skip


def test_the_shape_of_agent_inbox(desk: Desk, target: Shop) -> None:
    eva = desk.as_("eva")
    for name in "ABCD":
        desk.submit("publish", name=name, body="x")
    items = {i["key"]: i for i in asked(desk)}
    shown = eva.get(f"/v1/approvals/{items['A']['id']}/inbox").json()
    assert shown["action_request"] == {"action": "publish", "args": {"name": "A", "body": "x"}}
    assert set(shown["config"]) == {"allow_ignore", "allow_respond", "allow_edit", "allow_accept"}
    assert all(shown["config"].values())
    assert "POST" in shown["description"]
    nobody = desk.home.client.get(f"/v1/approvals/{items['A']['id']}/inbox").json()
    assert not any(nobody["config"].values())
    answers = {
        "A": {"type": "accept", "args": None}, "B": {"type": "ignore"},
        "C": {"type": "response", "args": "shorter"},
        "D": {"type": "edit", "args": {"action": "publish", "args": {"body": "y"}}},
    }  # fmt: skip
    for key, given in answers.items():
        answer = eva.post(f"/v1/approvals/{items[key]['id']}/inbox", json=given)
        assert answer.status_code == 200, answer.text
    desk.ledger.recover()
    assert target.made() == {"A": 1}
    assert [i["key"] for i in asked(desk)] == ["D#v2"]
    empty = eva.post(f"/v1/approvals/{asked(desk)[0]['id']}/inbox", json={"type": "response"})
    assert empty.status_code == 400


def test_of_two_who_answer_at_once_one_is_told_who_was_first(desk: Desk, target: Shop) -> None:
    desk.submit("publish", name="A", body="x")
    [item] = asked(desk)
    start, told = Barrier(2), {}

    def answer(name: str, verb: str, body: dict[str, Any]) -> None:
        client = desk.as_(name)
        start.wait()
        told[name] = client.post(f"/v1/approvals/{item['id']}/{verb}", json=body)

    threads = [
        Thread(target=answer, args=("eva", "approve", {"digest": item["digest"]})),
        Thread(target=answer, args=("ben", "reject", {"reason": "no"})),
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(a.status_code for a in told.values()) == [200, 409]
    loser, winner = sorted(told, key=lambda n: -told[n].status_code)
    assert winner in told[loser].json()["detail"]
    desk.ledger.recover()
    assert target.made() == ({"A": 1} if winner == "eva" else {})


def test_pages_roles_and_other_namespaces(desk: Desk) -> None:
    for name in "ABCDE":
        desk.submit("contract", name=name)
    eva = desk.as_("eva")
    seen, after = [], ""
    for _ in range(4):
        page = eva.get("/v1/approvals", params={"role": "editor", "limit": 2, "after": after})
        seen += [(i["id"], i["key"]) for i in page.json()["items"]]
        after = page.json()["next"]
        if after is None:
            break
    # By their operations' ids, which are in order of the millisecond.
    assert seen == sorted(seen)
    assert sorted(key for _, key in seen) == list("ABCDE")
    one = asked(desk, role="legal")[0]
    assert len(asked(desk, operation=one["operation"])) == 2
    other = desk.as_("eva", space="other")
    assert other.get("/v1/approvals").json() == {"items": [], "next": None}
    for verb in ("", "/inbox"):
        assert other.get(f"/v1/approvals/{one['id']}{verb}").status_code == 404
    body = {"digest": one["digest"]}
    assert other.post(f"/v1/approvals/{one['id']}/approve", json=body).status_code == 404
    assert eva.get("/v1/approvals", params={"state": "maybe"}).status_code == 422

"""Many at once: a plan first, then its progress, without JavaScript; and never "send again"."""

from __future__ import annotations

import re
from typing import Any

import pytest

from ascertain.config.working import Workers
from console.conftest import Browser, Office
from server.processes import until
from server.target import Shop

Made = dict[str, dict[str, Any]]


@pytest.fixture
def made(office: Office, target: Shop) -> Made:
    """Two operations in review, one that can be looked up, one done."""
    target.fates.update({"lamp": ["drop"], "vase": ["drop"]})
    found = {name: office.submit("draft", name=name) for name in ("lamp", "vase")}
    found["desk"] = office.submit("searched", name="desk")
    found["order"] = office.submit("order", name="order")
    return found


def work(office: Office) -> None:
    workers = Workers(office.serving.understood, office.serving.spaces)
    workers.once()
    assert workers.stop(5)


def ticked(anna: Browser, path: str, *ids: str, **fields: Any) -> str:
    """Tick rows of a list and go on to what is to be done."""
    page = anna.get(path)
    for ident in ids:
        assert f'name="ids" value="{ident}"' in page
    address = anna.field("list").replace("&amp;", "&")
    return anna.send("/bulk", which="ticked", list=address, ids=list(ids), **fields)


PLAN = {
    "en": ("With 1 operations:", "Ask the target of each again"),
    "zh": ("对 1 项业务操作：", "逐项再次查询目标系统"),
}


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_a_plan_says_what_is_done_and_what_is_not_before_anything_is(
    office: Office, made: Made, target: Shop, lang: str
) -> None:
    plan, asked = PLAN[lang]
    anna = office.person("anna", lang=lang)
    ids = [made[name]["id"] for name in ("lamp", "desk")]
    assert asked in ticked(anna, "/operations", *ids)
    before = target.made()
    page = ticked(anna, "/operations", *ids, do="look_up")
    assert plan in page
    assert "progress" not in page
    [told] = re.findall(r'<td class="num">(\d+)</td><td>[^<]+</td>', page)
    assert told == "1"  # lamp has no look-up: a person decides
    assert "lamp" in page
    here = anna.client.get("/v1/bulk", params={"namespace": "default"}).json()["items"][0]
    assert (here["state"], here["would"], here["done"]) == ("planned", 1, 0)
    page = anna.send(f"/bulk/{here['id']}", do="run")
    assert "<progress" in page
    assert anna.client.get(f"/bulk/{here['id']}").headers["refresh"] == "2"
    work(office)
    page = anna.get(f"/bulk/{here['id']}")
    assert "refresh" not in anna.client.get(f"/bulk/{here['id']}").headers
    assert f'<a href="/op/{made["desk"]["id"]}">' in page
    assert target.made() == before  # nothing was sent by it
    assert f"/bulk/{here['id']}" in anna.get("/bulk")


def test_reviews_are_taken_over_from_the_queue(office: Office, made: Made) -> None:
    anna = office.person("anna")
    ids = [made[name]["id"] for name in ("lamp", "vase")]
    ticked(anna, "/review", *ids, do="take")
    bulk = anna.client.get("/v1/bulk").json()["items"][0]
    anna.send(f"/bulk/{bulk['id']}", do="run")
    work(office)
    page = anna.get(f"/bulk/{bulk['id']}")
    assert page.count("carried out</span>") == 2
    reviews = anna.client.get("/v1/reviews").json()["items"]
    assert {r["taken_by"] for r in reviews} == {"anna"}


def test_everything_that_matches_is_what_the_list_shows(office: Office, made: Made) -> None:
    anna = office.person("anna")
    anna.get("/operations?q=lamp&state=unknown")
    address = anna.field("list").replace("&amp;", "&")
    page = anna.send("/bulk", which="all", list=address)
    assert "1 operations are meant." in page
    anna.send("/bulk", which="all", list=address, do="take")
    assert anna.client.get("/v1/bulk").json()["items"][0]["would"] == 1
    page = anna.send("/bulk", which="all", list="/review", do="take")
    assert anna.client.get("/v1/bulk").json()["items"][0]["would"] == 2
    assert "With 2 operations:" in page
    assert "Nothing is ticked" in anna.send("/bulk", which="all", list="/operations?q=nowhere")
    assert "Nothing is ticked" in anna.send("/bulk", which="ticked", list="/operations")


def test_sending_again_is_never_offered(office: Office, made: Made) -> None:
    anna = office.person("anna")
    page = ticked(anna, "/review", made["lamp"]["id"])
    offered = re.findall(r'name="do" id="d-\w+" value="(\w+)"', page)
    assert offered == ["look_up", "take", "hand_over", "leave", "renew", "snooze"]
    for do in ("not_there", "retry", "execute"):  # by hand either: it is asked again
        assert "What is to be done with each" in ticked(anna, "/review", made["lamp"]["id"], do=do)
    assert anna.client.get("/v1/bulk").json()["items"] == []


def test_a_reason_is_asked_for_where_one_is_needed(office: Office, made: Made) -> None:
    anna, ident = office.person("anna"), made["lamp"]["id"]
    assert "Give a reason" in ticked(anna, "/review", ident, do="leave")
    page = ticked(anna, "/review", ident, do="leave", why="the campaign is over")
    assert "the campaign is over" in page
    page = ticked(anna, "/review", ident, do="hand_over", to="ben", why="holiday")
    assert "With 1 operations:" in page
    assert "With 1 operations:" in ticked(anna, "/review", ident, do="snooze", **{"for": "1d"})
    assert 'role="alert"' in ticked(anna, "/review", ident, do="snooze", **{"for": "later"})


def test_a_plan_can_be_dropped_and_is_its_planners_alone(office: Office, made: Made) -> None:
    anna, ben = office.person("anna"), office.person("ben")
    ticked(anna, "/review", made["lamp"]["id"], do="take")
    bulk = anna.client.get("/v1/bulk").json()["items"][0]["id"]
    page = ben.get(f"/bulk/{bulk}")
    assert 'value="run"' not in page
    page = ben.send(f"/bulk/{bulk}", do="run")
    assert "was planned by anna" in page
    anna.get(f"/bulk/{bulk}")
    page = anna.send(f"/bulk/{bulk}", do="cancel")
    assert "stopped" in page
    assert 'role="alert"' in anna.send(f"/bulk/{bulk}", do="run")
    work(office)
    assert [r["taken_by"] for r in anna.client.get("/v1/reviews").json()["items"]] == ["", ""]


def test_who_may_only_look_ticks_nothing(office: Office, made: Made) -> None:
    eve = office.person("eve", role="viewer", decides=0, approves=0)
    for path in ("/operations", "/review"):
        page = eve.get(path)
        assert 'name="ids"' not in page
        assert 'id="many"' not in page
    fields = {"which": "ticked", "list": "/operations", "ids": made["lamp"]["id"]}
    eve.send("/bulk", 403, do="look_up", **fields)
    oscar = office.person("oscar", role="operator", decides=0, approves=0)
    page = ticked(oscar, "/operations", made["lamp"]["id"])
    assert 'value="look_up"' in page
    assert 'value="take"' not in page
    oscar.get("/operations")
    oscar.send("/bulk", 403, do="leave", why="x", **fields)
    anna = office.person("anna")
    assert anna.client.get("/v1/bulk").json()["items"] == []


def test_another_namespaces_are_not_there(office: Office, made: Made) -> None:
    anna = office.person("anna")
    ticked(anna, "/review", made["lamp"]["id"], do="take")
    bulk = anna.client.get("/v1/bulk").json()["items"][0]["id"]
    olga = office.person("olga", namespace="other")
    olga.get(f"/bulk/{bulk}", 404)
    olga.get("/operations")
    page = olga.send(
        "/bulk", which="ticked", list="/operations", ids=made["lamp"]["id"], do="look_up"
    )
    assert "There is nothing that this could be done with." in page
    assert "lamp" not in page.replace(made["lamp"]["id"], "")


def test_a_hostile_name_stays_text(office: Office) -> None:
    anna = office.person("anna")
    bad = office.submit("searched", name="<script>alert(1)</script>")
    page = ticked(anna, "/operations", bad["id"], do="look_up", why="<img src=x onerror=y>")
    assert "<script>alert" not in page
    assert "<img" not in page
    assert until(lambda: "&lt;img" in page)
    page = anna.send("/bulk", which="ticked", list='//evil.example/"><script>')
    assert "evil.example" not in page

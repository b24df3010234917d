"""The pages as a browser without JavaScript sees them: everything works by links and forms."""

from __future__ import annotations

import re

import pytest

from ascertain.runtime.audit import Who
from console.conftest import PASSWORD, Browser, Office
from server.target import Shop

PAGES = ("/", "/review", "/approvals", "/operations", "/runs", "/events", "/targets", "/audit",
         "/people", "/settings")  # fmt: skip


@pytest.fixture
def anna(office: Office) -> Browser:
    return office.person("anna", overrides=1)


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_every_page_is_shown_in_both_languages(office: Office, lang: str) -> None:
    browser = office.person("anna", lang=lang)
    for path in PAGES:
        page = browser.get(path)
        assert f'<html lang="{"zh-CN" if lang == "zh" else "en"}"' in page
        assert "Traceback" not in page


def _with_password(office: Office) -> None:
    office.person("anna")
    people = office.serving.accounts.people
    people.set_password(people.by_login("anna"), PASSWORD, who=Who(actor="test"))


def test_nobody_sees_a_page_who_has_not_signed_in(office: Office) -> None:
    browser = office.browser()
    for path in PAGES:
        browser.get(path)
        assert 'name="password"' in browser.page
    _with_password(office)
    browser.get("/sign-in?to=/operations")
    browser.send("/sign-in", 401, login="anna", password="wrong", to="/operations")
    browser.send("/sign-in", login="anna", password=PASSWORD, to="/operations")
    assert browser.client.cookies
    assert "Operations" in browser.page
    browser.send("/sign-out")
    browser.get("/review")
    assert 'name="password"' in browser.page


def test_the_first_person_comes_in_by_a_link_that_works_once(office: Office) -> None:
    browser = office.browser()
    link = "/link/" + office.serving.first_link().rpartition("/")[2]
    browser.get(link)
    browser.send(link, login="anna", name="Anna", password=PASSWORD)
    assert "Know what happened before you try again" in browser.page
    browser.get(link, 404)
    assert "There is nothing here" in browser.page


@pytest.mark.parametrize("to", ["//evil.example", "https://evil.example", "/\\evil.example"])
def test_no_address_leads_elsewhere(office: Office, to: str) -> None:
    browser = office.browser()
    _with_password(office)
    browser.client.follow_redirects = False
    for path in (f"/prefer?lang=zh&to={to}", "/sign-in"):
        given = {"login": "anna", "password": PASSWORD, "to": to}
        answer = browser.client.get(path) if "?" in path else browser.client.post(path, data=given)
        assert (answer.status_code, answer.headers["location"]) == (303, "/")


def test_a_review_is_decided_by_its_form(office: Office, anna: Browser, target: Shop) -> None:
    target.fates["lamp"] = ["drop"]
    made = office.submit("draft", name="lamp")
    assert made["state"] == "unknown"
    anna.get("/review")
    assert "Create the draft lamp" in anna.page
    assert "Is “Create the draft lamp” in shop?" in anna.page
    review = re.search(r'action="(/review/[^"]+)"', anna.page)[1]
    anna.send(review, do="take")
    assert "You look into it now." in anna.page
    anna.send(
        review, do="there", seen=anna.field("seen"), other_ref="1", why="I saw it in the shop"
    )
    assert "It is recorded as done." in anna.page
    assert office.client.get(f"/v1/operations/{made['id']}").json()["state"] == "done"
    assert "I saw it in the shop" in anna.get(f"/op/{made['id']}")
    assert "review.decide" in anna.get("/audit") or "operation.decide" in anna.page


def test_a_chinese_reader_is_told_in_chinese_what_went_wrong(office: Office, target: Shop) -> None:
    li = office.person("li", lang="zh")
    target.fates["lamp"] = ["drop"]
    office.submit("draft", name="lamp")
    review = re.search(r'action="(/review/[^"]+)"', li.get("/review"))[1]
    li.send(review, do="there", seen=li.field("seen"), why="已看到")  # which one is not said
    said = re.search(r'role="alert">.*?<span>([^<]*)', li.page)
    assert said is not None
    assert said[1] == "操作“lamp”：请填写已存在对象的引用，以便确认它是由此操作产生的。"
    assert "此空间中没有批次“spring”。" in li.get("/runs/spring", 404)


def test_who_decides_second_sees_who_was_first(office: Office, anna: Browser, target: Shop) -> None:
    ben = office.person("ben")
    target.fates["lamp"] = ["drop"]
    made = office.submit("draft", name="lamp")
    review = re.search(r'action="(/review/[^"]+)"', anna.get("/review"))[1]
    ben.get(review)
    seen = ben.field("seen")
    anna.send(review, do="there", seen=anna.field("seen"), other_ref="1", why="seen")
    ben.send(review, do="leave", seen=seen, why="I cannot find it")
    assert "Somebody was faster" in ben.page
    assert "anna" in ben.page
    assert office.client.get(f"/v1/operations/{made['id']}").json()["state"] == "done"


def test_a_reference_of_another_operation_is_refused(
    office: Office, anna: Browser, target: Shop
) -> None:
    other = office.submit("draft", name="vase")
    target.fates["lamp"] = ["drop"]
    made = office.submit("draft", name="lamp")
    review = re.search(r'action="(/review/[^"]+)"', anna.get("/review"))[1]
    anna.send(review, do="there", seen=anna.field("seen"), other_ref=other["ref"], why="seen")
    assert f"already belongs to operation {other['id']}" in anna.page
    assert "Somebody was faster" not in anna.page
    assert office.client.get(f"/v1/operations/{made['id']}").json()["state"] == "unknown"


def test_acting_without_proof_needs_its_own_right(office: Office, target: Shop) -> None:
    ben = office.person("ben")
    target.fates["lamp"] = ["hang"]
    office.submit("draft", name="lamp")
    review = re.search(r'action="(/review/[^"]+)"', ben.get("/review"))[1]
    ben.send(
        review, 403, do="not_there", seen=ben.field("seen"), accept_risk="1", why="it is not there"
    )
    assert target.made() == {}


def test_an_approval_is_of_exactly_what_is_shown(
    office: Office, anna: Browser, target: Shop
) -> None:
    made = office.submit("publish", name="lamp", body="A warm lamp.\nFor cold evenings.", version=1)
    assert made["waiting_on"] == "approval"
    anna.get("/approvals")
    assert "A warm lamp.\\nFor cold evenings." in anna.page.replace("&#34;", '"')
    ask = re.search(r'action="(/approvals/[^"]+)"', anna.page)[1]
    anna.send(ask, do="approve", digest="0" * 64, note="")
    assert target.made() == {}
    anna.send(ask, do="approve", digest=anna.field("digest"), note="fine")
    assert "You approved exactly this." in anna.page
    answer = office.client.post(
        "/v1/operations",
        json={"action": "publish",
              "input": {"name": "lamp", "body": "A warm lamp.\nFor cold evenings.", "version": 1}},
    )  # fmt: skip
    assert answer.json()["state"] == "done"
    assert target.made() == {"lamp": 1}


def test_a_changed_text_is_a_new_version_that_is_asked_again(
    office: Office, anna: Browser, target: Shop
) -> None:
    office.submit("publish", name="lamp", body="A warm lamp.", version=1)
    ask = re.search(r'action="(/approvals/[^"]+)"', anna.get("/approvals"))[1]
    fields = {"fields": ["name", "body"], "field:name": "lamp", "field:body": "A cold lamp."}
    anna.send(ask, do="edit", digest=anna.field("digest"), note="wrong word", **fields)
    assert "A new version was made" in anna.page
    anna.get("/approvals")
    assert "A cold lamp." in anna.page
    assert target.made() == {}


HOSTILE = "<script>alert(1)</script>\"'><img src=x onerror=alert(1)>{{7*7}}"


def test_nothing_that_came_from_outside_is_read_as_html(
    office: Office, anna: Browser, target: Shop
) -> None:
    target.fates[HOSTILE] = ["drop"]
    made = office.submit("draft", name=HOSTILE, run=HOSTILE)
    office.submit("publish", name=HOSTILE, body=HOSTILE, version=1)
    for path in (*PAGES, f"/op/{made['id']}", "/operations?q=" + HOSTILE, "/runs"):
        page = anna.get(path)
        assert "<script>alert" not in page
        assert "<img src=x" not in page
        assert "49" not in re.findall(r"&gt;(\d+)", page)


def test_a_person_of_another_namespace_sees_nothing_of_this_one(office: Office) -> None:
    made = office.submit("order", name="SecretOrder")
    eve = office.person("eve", namespace="other")
    for path in (f"/op/{made['id']}", "/operations", "/review"):
        answer = eve.client.get(path)
        assert answer.status_code in (200, 404)
        assert "SecretOrder" not in answer.text


def test_a_token_is_made_shown_once_and_revoked(office: Office, anna: Browser) -> None:
    anna.get("/people")
    anna.send("/people", do="token", name="n8n", scope="ops:write", days="30")
    secret = re.search(r"asc_[\w-]+", anna.page)[0]
    assert office.as_token(secret).get("/v1/operations").status_code == 200
    anna.get("/people")
    assert secret not in anna.page
    ident = secret.split("_")[1]
    anna.send("/people", do="revoke", id=ident)
    assert office.as_token(secret).get("/v1/operations").status_code == 401


def test_a_form_of_another_page_changes_nothing(office: Office, anna: Browser) -> None:
    anna.get("/people")
    given = {"do": "token", "name": "x", "scope": "ops:write", "csrf": anna.field("csrf")}
    foreign = {"Sec-Fetch-Site": "cross-site"}
    assert anna.client.post("/people", data=given, headers=foreign).status_code == 403
    given["csrf"] = "no"
    assert anna.client.post("/people", data=given).status_code == 403


def test_a_paused_target_says_who_paused_it(office: Office, anna: Browser) -> None:
    anna.get("/targets")
    anna.send("/targets/shop", do="pause", why="moving house")
    assert "Paused by anna" in anna.page
    assert "moving house" in anna.page
    anna.send("/targets/shop", do="resume")
    assert "may be acted on" in anna.page

"""What people do, in a real browser."""

from __future__ import annotations

from typing import Any

import pytest

from console.conftest import PASSWORD, Office
from server.target import Shop

pytestmark = pytest.mark.timeout(120)  # a browser starts in seconds on a busy machine
PAGES = (
    ("/", "/approvals", "/operations", "/runs", "/events", "/dashboard", "/targets",
     "/operations?q=lamp&state=done", "/review?group=others"),
    ("/review", "/contracts/shop.order", "/audit", "/people", "/settings", "/runs/autumn-eu",
     "/op/{op}", "/sign-in", "/nowhere"),
    ("/runs/autumn-eu?report=1", "/costs", "/costs?assets=1", "/runs?missing=1",
     "/events?state=counted&since=2026-11-30T08:00",
     "/operations?target=shop&state=unknown,running&found_by=person&since=2026-11-30T08:00"),
)  # fmt: skip
LONG = "x" * 150  # a name without a place to break
WORDS = {
    "en": {"there": "Use this reference and close", "done": "It is recorded as done.",
           "approve": "Approve exactly this", "approved": "You approved exactly this.",
           "faster": "Somebody was faster", "over": "It was handed over.",
           "again": "Make one more attempt", "again_told": "One more attempt is made"},
    "zh": {"there": "采用此编号并结案", "done": "已记为完成。", "approve": "批准此内容",
           "approved": "您已批准此内容。", "faster": "已有人先作决定", "over": "已转交。",
           "again": "再尝试一次", "again_told": "将再尝试一次"},
}  # fmt: skip


def _things(office: Office, target: Shop) -> None:
    """One of everything that a page can show."""
    target.fates.update({"lamp/B": ["drop"], "lamp/D": ["hang"], LONG: ["drop"]})
    office.submit("draft", name=LONG)
    expects = [{"action": "draft", "key": f"lamp%2F{n}"} for n in "ABCDE"]
    office.client.post("/v1/runs", json={"name": "autumn-eu", "expects": expects})
    for name in "ABCD":
        office.submit("draft", name=f"lamp/{name}", run="autumn-eu")
    office.submit("publish", name="lamp", body="A warm lamp for cold evenings.", version=1)
    office.submit("order", name="A")


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_a_person_comes_in_by_the_link_and_decides(
    seats: Any, office: Office, target: Shop, lang: str
) -> None:
    _things(office, target)
    words, seat = WORDS[lang], seats(lang=lang)
    page = seat.page
    seat.goto("/link/" + office.serving.first_link().rpartition("/")[2])
    page.fill("[name=login]", "anna")
    page.fill("[name=name]", "Anna")
    page.fill("[name=password]", PASSWORD)
    page.click("button.pri")
    page.wait_for_url(office.url + "/")
    page.click(".nav a[href='/review']")
    page.click(".row >> text=lamp/B")
    assert page.locator(".then-there.will").is_hidden()
    page.check("#a-there")
    assert page.locator(".then-there.will").is_visible()
    page.fill("[name=other_ref]", "3")
    page.fill("[name=why]", "I saw it in the shop")
    page.click(f"button:has-text('{words['there']}'):visible")
    page.wait_for_selector(f".fine:has-text('{words['done']}')")
    seat.goto("/runs/autumn-eu")
    assert page.locator(".cells .unk").count() == 1  # D alone: B has turned green
    assert page.locator(".cells .q").count() == 1  # E: nobody has asked for it
    assert page.locator("pre.frozen").inner_text().split() == ["lamp%2FE"]


def test_a_whole_decision_by_keyboard_alone(seats: Any, office: Office, target: Shop) -> None:
    target.fates["lamp"] = ["drop"]
    made = office.submit("draft", name="lamp")
    seat = seats("anna")
    page, keys = seat.page, seat.page.keyboard
    seat.goto("/operations")
    keys.press("g")
    keys.press("r")
    page.wait_for_url("**/review")
    keys.press("j")
    keys.press("Enter")
    page.wait_for_url("**/review/*")
    keys.press("a")
    page.wait_for_selector(".fine")
    keys.press("1")
    assert page.is_checked("#a-there")
    page.keyboard.press("Tab")
    while not page.evaluate("document.activeElement.name === 'other_ref'"):
        keys.press("Tab")
    keys.type("1")
    while not page.evaluate("document.activeElement.name === 'why'"):
        keys.press("Tab")
    keys.type("seen j k 1")  # letters are text here, no commands
    keys.press("Control+Enter")
    page.wait_for_selector(".fine:has-text('It is recorded as done.')")
    assert office.client.get(f"/v1/operations/{made['id']}").json()["state"] == "done"


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_a_version_is_approved_and_a_changed_text_is_refused(
    seats: Any, office: Office, target: Shop, lang: str
) -> None:
    office.submit("publish", name="lamp", body="A warm lamp.", version=3)
    seat = seats("anna", lang=lang)
    seat.goto("/approvals")
    seat.page.check("#a-approve")
    seat.page.click(f"button:has-text('{WORDS[lang]['approve']}'):visible")
    seat.page.wait_for_selector(f".fine:has-text('{WORDS[lang]['approved']}')")
    asked = {"action": "publish", "input": {"name": "lamp", "body": "A cold lamp.", "version": 3}}
    answer = office.client.post("/v1/operations", json=asked)
    assert (answer.status_code, answer.json()["code"]) == (422, "input_mismatch")
    asked["input"]["body"] = "A warm lamp."
    assert office.client.post("/v1/operations", json=asked).json()["state"] == "done"
    assert target.made() == {"lamp": 1}


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_of_two_who_decide_at_once_the_second_sees_the_first(
    seats: Any, office: Office, target: Shop, lang: str
) -> None:
    target.fates["lamp"] = ["drop"]
    made = office.submit("draft", name="lamp")
    anna, ben = seats("anna", lang=lang), seats("ben", lang=lang)
    for seat in (anna, ben):
        seat.goto("/review")
        seat.page.check("#a-there")
        seat.page.fill("[name=why]", "seen")
    anna.page.fill("[name=other_ref]", "1")
    ben.page.fill("[name=other_ref]", "77")
    button = f"button:has-text('{WORDS[lang]['there']}'):visible"
    anna.page.click(button)
    anna.page.wait_for_selector(f".fine:has-text('{WORDS[lang]['done']}')")
    ben.page.click(button)
    ben.page.wait_for_selector(f".wrong:has-text('{WORDS[lang]['faster']}')")
    assert "anna" in ben.page.inner_text(".wrong")
    assert office.client.get(f"/v1/operations/{made['id']}").json()["ref"] == "1"


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_a_review_is_handed_over(seats: Any, office: Office, target: Shop, lang: str) -> None:
    target.fates["lamp"] = ["drop"]
    office.submit("draft", name="lamp")
    office.person("ben")
    seat = seats("anna", lang=lang)
    seat.goto("/review")
    seat.page.click(".others summary >> nth=0")
    seat.page.fill(".others [name=to]", "ben")
    seat.page.click(".others button[value=hand_over]:visible")
    seat.page.wait_for_selector(f".fine:has-text('{WORDS[lang]['over']}')")
    assert "ben" in seat.page.inner_text(".detail .facts")


def test_news_is_told_and_nothing_moves(seats: Any, office: Office, target: Shop) -> None:
    target.fates["lamp"] = ["drop"]
    target.fates["vase"] = ["drop"]
    office.submit("draft", name="lamp")
    seat = seats("anna")
    seat.goto("/review")
    before = seat.page.inner_text(".list")
    office.submit("draft", name="vase")
    seat.page.wait_for_selector(".news:visible", timeout=15_000)
    assert seat.page.inner_text(".list") == before
    seat.page.click(".news")
    seat.page.wait_for_selector(".row >> text=vase")


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_nothing_of_the_list_hangs_over_what_is_beside_it(
    seats: Any, office: Office, target: Shop, lang: str
) -> None:
    _things(office, target)
    for size in ("desk", "laptop"):
        seat = seats(f"anna-{size}", lang=lang, size=size)
        for path in ("/review", "/approvals"):
            seat.goto(path)
            over = """[...document.querySelectorAll(".list *")].filter(one =>
              one.getBoundingClientRect().right > one.closest(".list").getBoundingClientRect().right
              && !one.closest(".vh, .t")).map(one => one.outerHTML.slice(0, 100))"""
            assert seat.page.evaluate(over) == []


def test_a_glyph_makes_room_only_for_a_box_to_tick(
    seats: Any, office: Office, target: Shop
) -> None:
    _things(office, target)
    page = seats("anna").page
    for path, hidden in (("/runs", False), ("/operations", True)):
        page.goto(office.url + path)
        page.hover(".row >> nth=0")
        assert page.locator(".row .g >> nth=0").is_hidden() == hidden


@pytest.mark.parametrize("streams", ["missing", "refused"])
def test_without_a_stream_the_list_is_asked_for(
    seats: Any, office: Office, target: Shop, streams: str
) -> None:
    seat = seats("anna")
    page = seat.page
    if streams == "missing":
        page.add_init_script("delete window.EventSource")
    page.route("**/v1/stream*", lambda route: route.fulfill(status=503))
    page.clock.install()
    seat.goto("/review")
    target.fates["vase"] = ["drop"]
    office.submit("draft", name="vase")
    before = page.inner_text(".list")
    for _ in range(20):  # the stream is refused at some moment after the page is there
        page.clock.run_for(15_000)
        if page.locator(".news").is_visible():
            break
    page.wait_for_selector(".news:visible:has-text('1')")
    assert page.inner_text(".list") == before
    page.clock.run_for(60_000)
    assert page.inner_text(".news b") == "1"  # told once
    seat.wrong = [w for w in seat.wrong if "503" not in w]


def test_a_printed_page_holds_the_evidence_and_no_buttons(
    seats: Any, office: Office, target: Shop
) -> None:
    _things(office, target)
    seat = seats("anna", color_scheme="dark")
    page = seat.page
    op = office.client.get("/v1/operations?q=lamp%2FB").json()["items"][0]["id"]
    for path in ("/review", f"/op/{op}", "/operations", "/dashboard", "/runs/autumn-eu?report=1"):
        seat.goto(path)
        page.set_viewport_size({"width": 794, "height": 1123})  # A4
        page.emulate_media(media="print")
        for what in (".rail", ".btn", ".copy", ".ask", ".prefs"):
            assert page.locator(f"{what}:visible").count() == 0, (path, what)
        assert page.locator("h2:visible, .row:visible").count() > 0
        assert page.evaluate("document.documentElement.scrollWidth") <= 794
        ink = page.evaluate("getComputedStyle(document.querySelector('main')).color")
        assert ink == "rgb(27, 26, 23)"  # paper is white, whatever the screen was
        if path in ("/review", f"/op/{op}"):
            assert page.locator(".ev:visible").count() > 1
        page.emulate_media(media="screen")


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_the_second_person_sees_the_first_ones_word(
    seats: Any, office: Office, target: Shop, lang: str
) -> None:
    words, name = WORDS[lang], "rent"
    target.fates[name] = ["hang"]
    office.submit("pay", name=name)
    for login in ("anna", "ben"):
        seat = seats(login, lang=lang, rights={"overrides": 1})
        page = seat.page
        seat.goto("/review")
        assert page.locator(".second").count() == (login == "ben")
        page.check("#a-not_there")
        page.check(".then-not_there [name=accept_risk]")
        page.fill("[name=why]", "not in the list of payments")
        if login == "ben":
            assert "anna" in page.inner_text(".second")
            assert "anna" in page.inner_text(".then-not_there.will")
            assert target.made() == {}
        page.click(f"button:has-text('{words['again']}'):visible")
        page.wait_for_selector(f".fine:has-text('{words['again_told']}')")
    office.serving.space("default").ledger.recover()
    assert target.made() == {name: 1}


@pytest.mark.parametrize("pages", PAGES, ids=["lists", "details", "numbers"])
@pytest.mark.parametrize("lang", ["en", "zh"])
def test_every_page_is_accessible_and_fits(
    seats: Any, office: Office, target: Shop, lang: str, pages: tuple[str, ...]
) -> None:
    _things(office, target)
    seat, wrong = seats("anna", lang=lang), []
    op = office.client.get("/v1/operations?q=lamp").json()["items"][0]["id"]
    for page in pages:
        path = page.format(op=op)
        seat.goto(path)
        wrong += seat.faults(path)
    seat.wrong = [w for w in seat.wrong if "404" not in w]  # /nowhere is meant
    assert wrong == []

"""Many at once, and the first-run page, in a real browser: by keys, and for everybody's eyes."""

from __future__ import annotations

from typing import Any

import pytest

from ascertain.config.working import Workers
from console.conftest import Office
from server.target import Shop

pytestmark = pytest.mark.timeout(120)  # a browser starts in seconds on a busy machine
WORDS = {
    "en": {"ticked": "With the ticked ones", "plan": "Show the plan", "done": "carried out 2"},
    "zh": {"ticked": "对勾选的各项", "plan": "显示计划", "done": "已处理 2"},
}


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_ticked_by_keys_planned_and_carried_out(
    seats: Any, office: Office, target: Shop, lang: str
) -> None:
    target.fates.update({"lamp": ["drop"], "vase": ["drop"]})
    for name in ("lamp", "vase"):
        office.submit("draft", name=name)
    seat, words = seats("anna", lang=lang), WORDS[lang]
    page = seat.page
    seat.goto("/review")
    for key in "jxkx":  # the first one is shown beside the list: J goes to the next
        page.keyboard.press(key)
    assert page.locator(".pick:checked").count() == 2
    page.keyboard.press("x")
    assert page.locator(".pick:checked").count() == 1  # and off again
    page.keyboard.press("x")
    page.click(f"button:has-text('{words['ticked']}')")
    page.check("#d-take")
    page.click(f"button:has-text('{words['plan']}')")
    page.wait_for_url("**/bulk/*")
    page.click("button[value=run]")
    page.wait_for_selector("progress")
    workers = Workers(office.serving.understood, office.serving.spaces)
    workers.once()
    assert workers.stop(5)
    page.wait_for_selector(f"text={words['done']}", timeout=10_000)  # without a hand on it
    seat.goto("/review")
    assert page.locator(".row .who .av:not(.none)").count() == 2


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_every_page_of_it_is_accessible_and_fits(
    seats: Any, office: Office, target: Shop, lang: str
) -> None:
    target.fates["lamp"] = ["drop"]
    office.submit("draft", name="lamp")
    for name in ("A", "B"):
        office.submit("searched", name=name)
    seat, wrong = seats("anna", lang=lang), []
    for path in ("/", "/start", "/bulk", "/review", "/operations"):
        seat.goto(path)
        wrong += seat.faults(path)
    seat.page.click("button[value=all]")
    wrong += seat.faults("what is to be done")
    seat.page.check("#d-look_up")
    seat.page.click(".acts .pri")
    seat.page.wait_for_url("**/bulk/*")
    wrong += seat.faults("a plan")
    seat.page.click("button[value=run]")
    seat.page.wait_for_selector("progress")
    workers = Workers(office.serving.understood, office.serving.spaces)
    workers.once()
    workers.stop(5)
    seat.page.reload()
    wrong += seat.faults("what came of it")
    assert wrong == []

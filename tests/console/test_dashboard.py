"""The dashboard: every number leads to the list of what it counts."""

from __future__ import annotations

import csv
import io
import re
from html import unescape
from typing import Any

import pytest

from ascertain.core.books import Event
from ascertain.store.base import Posting
from console.conftest import Browser, Office
from server.target import Shop

ROW = re.compile(r'<li class="row|<tbody>.*?</tbody>', re.DOTALL)
LINK = re.compile(r'<a href="([^"]+)"[^>]*>(?:<span class="l">[^<]*</span><b>)?([^<]*)')


def rows(browser: Browser, path: str) -> int:
    """How many a list shows, on all its pages."""
    number = 0
    while True:
        page = browser.get(path)
        number += page.count('<li class="row">')
        for body in re.findall(r"<tbody>(.*?)</tbody>", page, re.DOTALL):
            number += 0 if 'class="empty"' in body else body.count("<tr>")
        more = re.search(r'<p class="more">[^<]*<a class="btn sm" href="([^"]+)"', page)
        if more is None:
            return number
        path = unescape(more[1])


def linked(page: str, start: str, end: str) -> list[tuple[str, str]]:
    """The links of a part of a page: where to, and the number that they show."""
    part = page.partition(start)[2].partition(end)[0]
    assert part, start
    return [(unescape(href), text) for href, text in LINK.findall(part)]


def tile(page: str, words: str) -> tuple[str, int]:
    found = re.search(rf'<a href="([^"]+)"[^>]*><span class="l">{words}</span><b>(\d+)</b>', page)
    assert found, words
    return unescape(found[1]), int(found[2])


@pytest.fixture
def busy(office: Office, target: Shop) -> Office:
    """A house in which something of everything happened."""
    client = office.client
    target.fates |= {
        "found": ["drop"], "again": ["drop"], "lost": ["drop"], "told": ["drop"], "bad": ["bad"],
    }  # fmt: skip
    for action, name in (
        ("order", "A"), ("order", "A"), ("order", "again"), ("searched", "found"),
        ("draft", "lost"), ("draft", "told"), ("draft", "B"), ("publish", "waits"),
    ):  # fmt: skip
        more = {"body": "x", "version": 1} if action == "publish" else {}
        office.submit(action, name=name, run="autumn", **more)
    client.post("/v1/operations", json={"action": "order", "input": {"name": "bad"}})
    anna = office.person("decider")
    page = anna.get("/review")
    review = next(
        one for one in re.findall(r'href="(/review/[^"?]+)', page) if "told" in anna.get(one)
    )
    anna.get(review)
    anna.send(review, do="there", seen=anna.field("seen"), other_ref="77", why="seen")
    now = office.serving.store.now()
    for number, state in enumerate(("processed", "failed", "shown")):  # the last one is a test's
        event = Event(
            namespace="default", source="shop", id=f"e{number}", received_at=now, state=state
        )
        office.serving.store.post([Posting((("event_add", event),))])
    due = {"name": "late", "due": "2020-01-01T00:00:00Z"}
    client.post("/v1/runs", json={**due, "expects": [{"action": "draft", "key": "gone"}]})
    lines: list[dict[str, Any]] = [
        {"key": str(n), "kind": "normal", "cause": "call", "price": {"amount": "2", "currency": c}}
        for n, c in enumerate(("EUR", "EUR", "USD"))
    ]
    lines += [{"key": "x", "kind": "recovery", "cause": "people", "minutes": "5"}]
    assert client.post("/v1/costs", json={"lines": lines}).status_code == 200
    assert client.post("/v1/assets/A/accept", json={}).status_code == 200
    return office


def test_every_number_leads_to_what_it_counts(busy: Office) -> None:
    anna = busy.person("anna")
    page = anna.get("/dashboard?period=24h&by=action")
    for words in ("Events", "Operations", "Confirmed effects", "Unresolved now", "Missing"):
        href, number = tile(page, words)
        assert rows(anna, href) == number, (words, href)
    assert tile(page, "Operations")[1] == 8
    assert tile(page, "Events")[1] == 2
    assert tile(page, "Missing")[1] == tile(page, "Unresolved now")[1] == 1
    for start, end in (
        ("The same as a table", "</table>"),
        (">Duplicates<", "</dl>"),
        (">Recovered by itself<", "</dl>"),
    ):
        numbers = linked(page, start, end)
        assert numbers
        for href, text in numbers:
            if "#by" not in href:
                assert rows(anna, href) == int(text), href
    recovered = dict(re.findall(r"<dt>([^<]+)</dt><dd><a[^>]*>(\d+)", page))
    assert recovered["by looking"] == recovered["protected repeat"] == "1"
    assert recovered["by a person"] == recovered["prevented by the ledger"] == "1"
    assert anna.get("/operations?found_by=person").count('<li class="row">') == 1


@pytest.mark.parametrize("by", ["action", "target", "run"])
def test_every_number_of_a_group_leads_to_what_it_counts(busy: Office, by: str) -> None:
    anna = busy.person("anna")
    page = anna.get(f"/dashboard?period=24h&by={by}")
    table = page.partition('id="by"')[2].partition("<tbody>")[2].partition("</tbody>")[0]
    found = 0
    for line in re.findall(r"<tr>(.*?)</tr>", table, re.DOTALL):
        cells = re.findall(r'<td class="num">(?:<a href="([^"]+)">)?(\d+)', line)
        counted = [cells[0], *cells[2:7]]  # without attempts, and what is only counted
        for href, text in counted:
            assert bool(href) == (text != "0"), line
            if href and not href.startswith("/runs/"):
                assert rows(anna, unescape(href)) == int(text), href
                found += 1
        if cells[1] == ("", "0"):
            continue
        attempts = unescape(cells[1][0])
        file = re.search(r'href="(/v1/operations\.csv[^"]*)"', anna.get(attempts))
        assert file is not None
        text = anna.client.get(unescape(file[1])).text.lstrip("\ufeff")
        assert sum(int(one["attempts"]) for one in csv.DictReader(io.StringIO(text))) == int(
            cells[1][1]
        )
    assert found > 2


def test_a_filter_by_target_is_shown_and_taken_away(busy: Office) -> None:
    anna = busy.person("anna", lang="zh")
    page = anna.get("/operations?target=shop&state=unknown,running&found_by=look_up,person")
    assert '<a class="chip" href="/operations?state=unknown%2Crunning&amp;found_by=' in page
    assert "目标系统：<b>shop</b>" in page
    assert "查询目标系统、人工判断" in page
    assert page.count('aria-current="true"><span class="g-') == 2
    assert '<input type="hidden" name="target" value="shop">' in page
    assert anna.get("/operations?target=none").count('<li class="row">') == 0


def test_costs_are_listed_line_by_line(busy: Office) -> None:
    anna = busy.person("anna")
    page = anna.get("/dashboard?period=24h")
    card = page.partition("Cost per accepted asset</h2>")[2].partition("</section>")[0]
    hrefs = {text: unescape(href) for href, text in LINK.findall(card)}
    assert rows(anna, hrefs["Cost that was incurred"]) == 4
    assert rows(anna, hrefs["assets that passed acceptance: 1."]) == 1
    assert rows(anna, hrefs["1 lines have no price and are not in it."]) == 1
    assert rows(anna, hrefs["4 EUR"]) == 2
    assert rows(anna, hrefs["2 USD"]) == 1
    for href, lines in re.findall(r'<td class="num"><a href="([^"]+)">(\d+)</a>', card):
        assert rows(anna, unescape(href)) == int(lines)
    assert "people" in anna.get("/costs?only=unpriced")
    file = re.search(r'href="(/v1/costs\.csv[^"]*)"', anna.page)
    assert file is not None
    assert anna.client.get(unescape(file[1])).status_code == 200


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_a_run_has_a_report_that_a_client_can_be_given(busy: Office, lang: str) -> None:
    anna = busy.person("anna", lang=lang)
    expects = [{"action": "draft", "key": "gone"}]
    answer = busy.client.post("/v1/runs", json={"name": "autumn", "expects": expects})
    run = answer.json()["run"]["id"]
    assert f"/runs/{run}?report=1" in anna.get(f"/runs/{run}")
    page = anna.get(f"/runs/{run}?report=1")
    parts = re.findall(r'<h2>([^<]+) <span class="num">(\d+)</span>', page)
    heads = {
        "en": ("What was done", "What is not known yet", "What was not done",
               "What nobody has asked for"),
        "zh": ("已完成的", "结果尚不明的", "未完成的", "从未提交的"),
    }[lang]  # fmt: skip
    assert parts == list(zip(heads, ("5", "1", "1", "1"), strict=True))
    figures = dict(re.findall(r"<dt>([^<]+)</dt><dd>(\d+)</dd>", page))
    words = {
        "en": ("Operations", "Duplicates prevented", "Duplicates found", "Needed a person"),
        "zh": ("业务操作", "已避免的重复", "发现的重复", "需要人工"),
    }[lang]
    assert [figures[one] for one in words] == ["7", "1", "0", "2"]
    assert {"en": "decider: it is there", "zh": "decider：已存在"}[lang] in page
    assert {"en": "looking", "zh": "查询目标系统"}[lang] in page
    assert "77" in page
    assert {"en": "has to decide", "zh": "待其判断"}[lang] in page
    for name in ("lost", "found"):  # an unknown one is in no other part
        assert page.count(f"{name}</small>") == 1

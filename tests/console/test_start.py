"""The first-run page: what can be copied works, and a test event is shown and never acted on."""

from __future__ import annotations

import html
import json
import re
import shlex
from pathlib import Path

import pytest

from ascertain.console.app import attach
from console.conftest import Browser, Office
from server.house import house
from server.target import Shop

ROOT = Path(__file__).parents[2]
HOOK = """
[[contract]]
id = "shop.plain"
ok = {{ when = "201" }}

[targets.shop]
base = "{target}"

[actions.order]
target = "shop"
contract = "shop.plain"
key = "{{name}}"
owner = "anna"
request = {{ url = "/orders", json = {{ name = "{{name}}" }} }}
ref = "id"
[actions.order.inputs]
name = {{ type = "text" }}
count = {{ type = "integer" }}
note = {{ required = false }}

[hooks.shop]
kind = "hmac"
secrets = [{{ env = "SHOP_SECRET_FOR_THIS_TEST" }}]
event_id = "header:X-Event"
signature = {{ header = "X-Signature" }}

[[hooks.shop.map]]
action = "order"
input = {{ name = "body.order", count = "`1`" }}
"""


def lines(page: str) -> list[list[str]]:
    """The curl lines that the page offers, as a shell reads them."""
    found = re.findall(r"<pre[^>]*>(curl .*?)</pre>", page, re.DOTALL)
    return [shlex.split(html.unescape(one).replace("\\\n", "")) for one in found]


def sent(office: Office, line: list[str]) -> dict[str, object]:
    """Send what a line would send."""
    assert line[0] == "curl"
    assert line[1].startswith(office.url)
    body = json.loads(line[line.index("-d") + 1])
    answer = office.client.post(line[1].removeprefix(office.url), json=body)
    assert answer.status_code == 200, answer.text
    told: dict[str, object] = answer.json()
    return told


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_the_lines_that_can_be_copied_work(office: Office, target: Shop, lang: str) -> None:
    anna = office.person("anna", lang=lang)
    assert 'href="/start"' in anna.get("/")
    practice, own = lines(anna.get("/start"))
    assert sent(office, practice)["reused"] is False
    practice[-1] = practice[-1].replace("first", "second")
    again = sent(office, practice)
    assert (again["reused"], again["value"]) == (True, "the first text")
    assert target.made() == {}  # practice is here only
    assert sent(office, own)["state"] == "done"
    assert sent(office, own)["reused"] is True
    assert sum(target.made().values()) == 1


def test_the_workflow_for_n8n_has_this_address(office: Office) -> None:
    anna = office.person("anna")
    anna.get("/start")
    answer = anna.client.get("/start/n8n.json")
    assert answer.headers["content-disposition"] == 'attachment; filename="ascertain-n8n.json"'
    assert answer.json()["nodes"]
    assert f"{office.url}/gateway/" in answer.text
    assert "127.0.0.1:8321" not in answer.text
    shipped = ROOT / "src" / "ascertain" / "console" / "n8n" / "gateway.json"
    assert shipped.read_text("utf-8") == (ROOT / "docs" / "n8n" / "gateway.json").read_text("utf-8")
    nobody = Browser(office)
    assert "password" in nobody.get("/start/n8n.json")
    nobody.client.close()


def test_a_test_event_is_shown_and_never_acted_on(tmp_path: Path, target: Shop) -> None:
    with house(tmp_path, HOOK.format(target=target.url), pages=attach) as home:
        home.__class__ = Office
        assert isinstance(home, Office)
        home.browsers = []
        anna = home.person("anna")
        page = anna.get("/start")
        assert f"{home.url}/hooks/shop" in page
        assert lines(page)[1][-1] == '{"action":"order","input":{"name":"name-1","count":1}}'
        page = anna.send("/start", hook="shop", topic="paid", body='{"order": "1001"}')
        assert "shop.test" in page
        assert "1001" in page
        assert "console, anna" in page
        assert home.client.get("/v1/operations").json()["items"] == []
        assert target.made() == {}
        anna.get("/start")
        assert "This is no event" in anna.send("/start", hook="shop", body="{no json")
        anna.send("/start", 404, hook="nowhere", body="{}")
        eve = home.person("eve", role="viewer", decides=0, approves=0)
        eve.get("/start")
        eve.send("/start", 403, hook="shop", body="{}")
        for browser in home.browsers:
            browser.client.close()

"""The examples of docs/webhooks.md run as they are printed, in both languages."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from ascertain.core.intake import KINDS
from server import signing
from server.hooked import effects, send, settled, worked
from server.house import house
from server.processes import process, until
from server.target import Shop

DOCS = Path(__file__).parents[2] / "docs"
PAGES = pytest.mark.parametrize("page", ["webhooks.md", "zh/webhooks.md"])


def blocks(page: str, language: str) -> list[str]:
    text = (DOCS / page).read_text("utf-8")
    return re.findall(rf"```{language}\n(.*?)```", text, re.DOTALL)


@pytest.mark.timeout(60)
@PAGES
def test_the_page_does_what_it_says(
    page: str, tmp_path: Path, target: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("SHOPIFY_SECRET", "GITHUB_SECRET"):
        monkeypatch.setenv(name, signing.SECRET)
    for name in ("ERP_URL", "N8N_URL"):
        monkeypatch.setenv(name, target.url)
    with house(tmp_path, "\n".join(blocks(page, "toml"))) as home:
        [code, app], [said] = blocks(page, "python"), blocks(page, "json")
        (tmp_path / "send.py").write_text(code, "utf-8")
        ran = subprocess.run(
            [sys.executable, "send.py"], cwd=tmp_path, capture_output=True, text=True, timeout=20,
            env=os.environ | {"ASCERTAIN_URL": home.url}, check=False,
        )  # fmt: skip
        assert ran.stdout == said, ran.stderr
        found = settled(home, "shop", "evt-1")
        assert (found["deliveries"], len(found["operations"])) == (2, 1)

        told = [asked(home.client, text) for text in re.split(r"^(?=POST)", blocks(page, "http")[0],
                flags=re.MULTILINE) if text]  # fmt: skip
        assert [i["plans"][0]["key"] for i in told[0]["items"]] == ["%231", "%231"]
        assert told[0]["shared"] == [{"action": "erp.order", "key": "%231", "events": ["a", "b"]}]
        assert told[1]["plans"][0]["exists"] == found["operations"][0]["operation"]

        push = {"ref": "refs/heads/main", "after": "c0ffee", "repository": {"full_name": "a/b"},
                "commits": [{"id": "c1"}, {"id": "c2"}]}  # fmt: skip
        data = json.dumps(push).encode()
        send(home, "/hooks/site", data, signing.github(data, "g1"))
        assert len(settled(home, "site", "push/a/b/c0ffee")["operations"]) == 2

        given = {"source": "orders", "id": "x1", "topic": "made", "data": {"number": 7}}
        assert home.client.post("/v1/events", json=given).status_code == 200
        assert settled(home, "orders", "x1")["state"] == "processed"
        worked(home)
        assert {o["path"] for o in target.effects()} == {"/orders", "/webhook/orders"}
        assert len(effects(target)) == 1 + 2 + 1

        (tmp_path / "app.py").write_text(app, "utf-8")
        given = {"source": "shipping", "id": "s1", "data": {"number": 7, "lines": ["a", "b"]}}
        assert home.client.post("/v1/events", json=given).status_code == 200
        command = re.findall(r"^ascertain (work .*)$", "".join(blocks(page, "sh")), re.MULTILINE)
        where = {"ASCERTAIN_STORE": str(tmp_path / "ascertain.db")}
        with process(tmp_path, *command[0].split(), env=where) as work:
            until(lambda: len(effects(target)) == 1 + 2 + 1 + 2, within=30)
            work.send()
            assert work.ended() in (0, 3)


def asked(client: Any, text: str) -> Any:
    """Send a request as the page prints it."""
    line, _, body = text.partition("\n")
    method, path = line.split(" ")
    answer = client.request(method, path, content=body.strip() or None,
                            headers={"Content-Type": "application/json"})  # fmt: skip
    assert answer.status_code == 200, answer.text
    return answer.json()


@PAGES
def test_every_kind_has_its_row(page: str) -> None:
    text = (DOCS / page).read_text("utf-8")
    rows = set(re.findall(r"^\| `(\w+)`", text, re.MULTILINE))
    assert rows - {"kind"} == set(KINDS) - {"none", "token"}
    assert "`token`" in text


@pytest.mark.parametrize("language", ["toml", "python", "json", "http"])
def test_both_languages_show_the_same_code(language: str) -> None:
    assert blocks("webhooks.md", language) == blocks("zh/webhooks.md", language) != []

"""docs/n8n.md does as it says: its configuration, its commands, and the workflow's HTTP nodes as
n8n sends them: all items at once, again, and by a retry under a new execution id."""

from __future__ import annotations

import json
import os
import re
import shlex
import string
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx2
import pytest

from postgres import free_port
from server.house import Home, house
from server.processes import get_ready, process
from server.target import Shop, shop

DOCS = Path(__file__).parents[2] / "docs"
PRACTICE = "http://127.0.0.1:9000"
PAGES = ("n8n.md", "zh/n8n.md")
WORKFLOW = json.loads((DOCS / "n8n/gateway.json").read_text("utf-8"))
NAMES = ("A", "灯具 “二”", "C")


def blocks(page: str, kind: str) -> list[str]:
    return re.findall(rf"```{kind}\n(.*?)```", (DOCS / page).read_text("utf-8"), re.DOTALL)


def bare(text: str) -> str:
    return re.sub(r" +#.*", "", text)


@pytest.fixture
def target() -> Iterator[Shop]:
    with shop() as running:
        yield running


@pytest.fixture(params=PAGES)
def home(
    request: pytest.FixtureRequest, tmp_path: Path, target: Shop, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Home]:
    monkeypatch.setenv("SHOP_TOKEN", "shop-secret-0123456789")
    [config] = blocks(request.param, "toml")
    assert PRACTICE in config
    with house(tmp_path, config.replace(PRACTICE, target.url)) as running:
        yield running


def requests(page: str) -> list[str]:
    return [block for block in blocks(page, "sh") if block.startswith("curl")]


def curl(url: str, token: str, command: str) -> httpx2.Response:
    """What curl sends for a command."""
    known = {"ASCERTAIN": url, "TOKEN": token}
    whole = string.Template(command).substitute(known).replace("\\\n", " ")
    words = iter(shlex.split(whole))
    assert next(words) == "curl"
    headers, url, data = {}, "", None
    for word in words:
        if word == "-H":
            name, _, value = next(words).partition(": ")
            headers[name] = value
        elif word == "-d":
            data = next(words)
        elif word != "-i":
            url = word
    with httpx2.Client(timeout=30) as client:
        return client.request("POST" if data else "GET", url, content=data, headers=headers)


def test_both_languages_have_the_same_configuration_and_commands() -> None:
    for kind in ("toml", "sh", "text"):
        one, other = ([bare(b) for b in blocks(page, kind)] for page in PAGES)
        assert one == other != []


@pytest.mark.timeout(120)
def test_from_nothing_to_a_first_order_by_the_page_alone(tmp_path: Path) -> None:
    install, start, prepare = (b for b in blocks(PAGES[0], "sh") if not b.startswith("curl"))
    known = ["python3 -m venv", ". ~/ascertain-env", "pip install '.[server]'"]
    *before, practice = install.splitlines()
    assert [line.startswith(k) for line, k in zip(before, known, strict=True)] == [True] * 3
    port = free_port()
    [config] = blocks(PAGES[0], "toml")
    (tmp_path / "ascertain.toml").write_text(config.replace("9000", str(port)), "utf-8")
    activate, secret, up = start.splitlines()
    again, token, ready = prepare.splitlines()
    assert activate == again == before[1]
    script = DOCS.parent / practice.removeprefix("python ")
    [(name, value)] = re.findall(r"export (\w+)=(\w+)", secret)
    with (
        (tmp_path / "shop.log").open("w") as log,
        subprocess.Popen([sys.executable, script, str(port)], stdout=log, stderr=log) as seller,
        process(
            tmp_path, *shlex.split(up)[1:], "--port", "0", "--json", env={name: value}
        ) as server,
    ):
        try:
            server.listening()
            get_ready(server.url)
            made = subprocess.run(
                [sys.executable, "-m", "ascertain.cli.main", *shlex.split(token)[1:]],
                cwd=tmp_path, env={**os.environ, "ASCERTAIN_CONFIG": "ascertain.toml"}, text=True,
                capture_output=True, timeout=30, check=True,
            )  # fmt: skip
            [given] = re.findall(r"asc_[\w-]+", made.stdout)
            assert "TOKEN=asc_" in ready
            answers_as_said(server.url, given)
        finally:
            seller.terminate()
    assert (tmp_path / "shop.log").read_text().count("and lost the answer") == 1


def answers_as_said(url: str, token: str) -> None:
    said = [block.splitlines() for block in blocks(PAGES[0], "text")]
    commands = requests(PAGES[0])
    assert len(commands) == len(said) == 3
    for command, (line, *headers) in zip(commands, said, strict=True):
        answer = curl(url, token, command)
        assert line == f"HTTP/1.1 {answer.status_code} {answer.reason_phrase}".replace(
            "Unprocessable Content", "Unprocessable Entity"
        )
        for header in headers:
            name, _, value = header.partition(": ")
            assert answer.headers[name] == value
    assert curl(url, token, commands[0]).headers["ascertain-reused"] == "true"


def test_the_commands_answer_as_they_say(home: Home, target: Shop) -> None:
    answers_as_said(home.url, home.secret)
    assert target.made() == {"order 1001": 1}


def test_what_is_answered_without_the_target_is_what_the_page_says(
    tmp_path: Path, target: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SHOP_TOKEN", "shop-secret-0123456789")
    [config] = blocks(PAGES[0], "toml")
    config = re.sub(r"^private.*$", "", config, flags=re.MULTILINE)
    table = re.findall(r"^\| [45]\d\d.*", text(), re.MULTILINE)
    rows = {row: set(re.findall(r"\d{3}", row)) for row in table}
    with house(tmp_path, config.replace(PRACTICE, target.url)) as home:
        key = {"Ascertain-Key": "order/1", "Ascertain-Wait": "5"}
        waits = home.client.post("/gateway/shop/orders", json={"name": "A"}, headers=key)
        assert (waits.status_code, waits.headers["ascertain-state"]) == (409, "pending")
        assert "private = true" in waits.json()["detail"]
        assert any("409" in codes and "`pending`" in row for row, codes in rows.items())
        refused = {
            home.client.request(*what, json={}, headers=more).status_code
            for what, more in {
                ("POST", "/gateway/shop/orders"): {},
                ("POST", "/gateway/shop/else"): key,
                ("DELETE", "/gateway/shop/orders"): key,
            }.items()
        }
        assert refused == {400, 405}  # 404 where no method is declared for the path either
        assert {"400", "404", "405"} in rows.values()
    assert target.asked == []


def test_a_key_in_chinese_is_written_as_the_page_says(home: Home) -> None:
    [form, other] = (
        re.findall(r'`(%"[^`]*encodeURIComponent[^`]*)`', (DOCS / page).read_text("utf-8"))[0]
        for page in PAGES
    )
    assert form == other
    written = form.replace(
        "{{ encodeURIComponent($json.name) }}", quote("灯具 “一”", safe="!'()*~")
    )
    answer = home.client.post(
        "/gateway/shop/orders", json={"name": "A"}, headers={"Ascertain-Key": written}
    )
    assert answer.status_code == 201
    found = home.client.get(f"/v1/operations/{answer.headers['ascertain-operation']}").json()
    assert found["key"] == "order/灯具 “一”"


def text() -> str:
    return (DOCS / PAGES[0]).read_text("utf-8")


# --- the workflow ---


def evaluated(text: str, item: dict[str, Any], execution: str) -> str:
    """What n8n makes of a field: an expression begins with =."""
    if not text.startswith("="):
        return text

    def value(match: re.Match[str]) -> str:
        name = match[1].strip()
        if name == "$execution.id":
            return execution
        encoded = re.fullmatch(r"encodeURIComponent\((.*)\)", name)
        text = str(item[(encoded[1] if encoded else name).removeprefix("$json.")])
        return quote(text, safe="!'()*~") if encoded else text

    return re.sub(r"\{\{(.*?)\}\}", value, text[1:])


def send(home: Home, node: dict[str, Any], item: dict[str, Any], execution: str) -> httpx2.Response:
    """One item through a stock HTTP Request node."""
    given = node["parameters"]
    assert (given["authentication"], given["genericAuthType"]) == (
        "genericCredentialType", "httpHeaderAuth",
    )  # fmt: skip
    fields = given.get("headerParameters", {}).get("parameters", [])
    headers = {f["name"]: evaluated(f["value"], item, execution) for f in fields}
    headers |= {"Accept": "application/json,text/html,*/*;q=0.7", "User-Agent": "n8n"}
    body = None
    if given.get("sendBody"):
        assert given["specifyBody"] == "keypair"
        pairs = given["bodyParameters"]["parameters"]
        body = json.dumps({p["name"]: evaluated(p["value"], item, execution) for p in pairs})
        headers["Content-Type"] = "application/json"
    url = given["url"].replace("http://127.0.0.1:8321", home.url)
    return home.client.request(given["method"], url, content=body, headers=headers)


def test_the_workflow_makes_one_effect_per_item(home: Home, target: Shop) -> None:
    nodes = {node["name"]: node for node in WORKFLOW["nodes"]}
    create, read = nodes["Create the order once"], nodes["Read the orders"]
    target.fates[NAMES[1]], target.fates["C"] = ["drop"], ["refuse"]
    for execution in ("16", "16", "17"):  # Retry On Fail keeps the id, a manual retry does not
        with ThreadPoolExecutor(3) as pool:
            items = [{"name": name} for name in NAMES]
            sent = list(pool.map(partial(send, home, create, execution=execution), items))
        assert [a.status_code for a in sent] == [201, 201, 201]
        assert [a.json()["name"] for a in sent] == list(NAMES)
    assert {a.headers["ascertain-reused"] for a in sent} == {"true"}
    assert target.made() == dict.fromkeys(NAMES, 1)
    assert send(home, read, {}, "17").status_code == 200


def test_the_workflow_can_be_imported() -> None:
    names = [node["name"] for node in WORKFLOW["nodes"]]
    linked = [
        step["node"]
        for outputs in WORKFLOW["connections"].values()
        for steps in outputs["main"]
        for step in steps
    ]
    assert len(set(names)) == len(names)
    assert {*linked, *WORKFLOW["connections"]} == set(names)
    fields = {"id", "name", "type", "typeVersion", "position", "parameters"}
    assert all(fields <= set(node) for node in WORKFLOW["nodes"])

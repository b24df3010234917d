"""Every example of the documents is run by a test; those of the short pages are run here."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
from pathlib import Path
from string import Template

import httpx2
import pytest

from ascertain.config import checked, read_config
from server.house import SHOP, Home, house
from server.target import shop

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
HERE = "tests/docs/test_examples.py"
RUN_BY = {
    "README.md": "tests/docs/test_claims.py",
    "docs/api.md": HERE,
    "docs/callbacks.md": "tests/server/test_callbacks.py",
    "docs/contracts.md": "tests/contracts/test_docs.py",
    "docs/costs.md": HERE,
    "docs/howto.md": "tests/docs/test_howto.py",
    "docs/howto/contract-test.md": "tests/selftest/test_docs.py",
    "docs/howto/rest-target.md": "tests/acceptance/test_described.py",
    "docs/howto/sdks.md": "tests/targets/test_sdk_docs.py",
    "docs/n8n.md": "tests/docs/test_n8n.py",
    "docs/notices.md": HERE,
    "docs/own-code.md": "tests/server/test_own_code_page.py",
    "docs/several-machines.md": "tests/docs/test_several_machines.py",
    "docs/webhooks.md": "tests/server/test_webhooks_page.py",
}
EXAMPLE = re.compile(r"^```(sh|python|toml|json|http|ini|sql)\n(.*?)^```", re.MULTILINE | re.DOTALL)


PUBLISH = """
[actions."cms.publish"]
target = "wordpress"
key = "{post}"
owner = "anna"
inputs = { post = {} }
request = { url = "/publish/{post}" }
"""


def blocks(page: str, language: str) -> list[str]:
    text = (ROOT / page).read_text("utf-8")
    return [code for kind, code in EXAMPLE.findall(text) if kind == language]


def test_every_page_with_an_example_has_a_test_that_reads_it() -> None:
    pages = {
        str(page.relative_to(ROOT))
        for page in [*ROOT.glob("*.md"), *DOCS.glob("*.md"), *DOCS.glob("howto/*.md")]
        if EXAMPLE.search(page.read_text("utf-8")) and not page.name.endswith(".zh.md")
    }
    assert pages == set(RUN_BY)
    silent = [p for p, test in RUN_BY.items() if Path(p).name not in (ROOT / test).read_text()]
    assert silent == []


def bare(page: str) -> list[str]:
    """The examples of a page, without what is said beside them."""
    text = (ROOT / page).read_text("utf-8")
    return [re.sub(r" *# .*", "", code) for _, code in EXAMPLE.findall(text)]


@pytest.mark.parametrize("page", sorted(set(RUN_BY) - {"README.md"}))
def test_both_languages_show_the_same_examples(page: str) -> None:
    assert bare(page) == bare(page.replace("docs/", "docs/zh/"))


# --- the short pages ---


def curl(home: Home, command: str) -> httpx2.Response:
    """Send what curl would send."""
    text = Template(command.replace("\\\n", " ")).safe_substitute(
        ASCERTAIN=home.url, TOKEN=home.secret
    )
    words = shlex.split(text.replace("http://127.0.0.1:8321", home.url))
    assert words[0] == "curl"
    [url] = [word for word in words if word.startswith("http")]
    headers = dict(words[n + 1].split(": ") for n, word in enumerate(words) if word == "-H")
    return httpx2.post(url, headers=headers, content=words[words.index("-d") + 1], timeout=30)


@pytest.fixture
def home(tmp_path: Path):
    with shop() as target, house(tmp_path, SHOP.format(target=target.url)) as running:
        yield running


def test_the_request_of_the_api_page_is_done_once(home: Home) -> None:
    [command] = blocks("docs/api.md", "sh")
    first, again = (curl(home, command).json() for _ in range(2))
    assert (first["state"], again["id"], again["reused"]) == ("done", first["id"], True)


def test_the_costs_of_the_page_are_entered_once(home: Home) -> None:
    [command] = blocks("docs/costs.md", "sh")
    entered = json.loads(shlex.split(command)[-1])["lines"]
    for _ in range(2):
        assert curl(home, command).status_code == 200
    told = home.client.get("/v1/costs/report?from=2020-01-01&by=cause").json()
    assert {group["group"] for group in told["groups"]} == {line["cause"] for line in entered}
    assert [(m["total"], m["currency"]) for m in told["total"]["money"]] == [("20", "EUR")]
    assert told["total"]["unpriced_minutes"] == "12"


def test_the_channels_of_the_page_are_understood(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    [config] = blocks("docs/notices.md", "toml")
    for name in re.findall(r'env = "(\w+)"', config):
        monkeypatch.setenv(name, "https://ops.example/hook")
    (tmp_path / "ascertain.toml").write_text(config + PUBLISH, "utf-8")
    understood = checked(read_config(tmp_path / "ascertain.toml"))
    assert set(understood.telling.channels) == {"ops", "team", "feishu"}


def test_what_the_page_about_contracts_explains_is_explained() -> None:
    [line] = blocks("docs/contracts.md", "sh")
    command = [sys.executable, "-m", "ascertain.cli.main", *shlex.split(line)[1:]]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=30, check=True)
    assert re.search(r"^Now: ", ran.stdout, re.MULTILINE)
    assert re.search(r"^25h after the first attempt: ", ran.stdout, re.MULTILINE)

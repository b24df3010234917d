"""The page about own code: its configuration is read and its requests are answered."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from server.house import Home, house

DOCS = Path(__file__).parents[2] / "docs"
PAGES = pytest.mark.parametrize("page", ["own-code.md", "zh/own-code.md"])
REQUEST = re.compile(r"`POST (/v1/work/[^`]+)`\n```json\n(.*?)```", re.DOTALL)


def text(page: str) -> str:
    return (DOCS / page).read_text("utf-8")


@pytest.fixture
def serve(tmp_path: Path) -> Any:
    def serve(page: str) -> Iterator[Home]:
        [config] = re.findall(r"```toml\n(.*?)```", text(page), re.DOTALL)
        bounds = 'attempts = 1\nfirst_delay = "50ms"\n'
        return house(tmp_path, config + bounds)  # type: ignore[return-value]

    return serve


def filled(body: str, **known: str) -> Any:
    for name, value in known.items():
        body = body.replace(f"{{{name}}}", value)
    return json.loads(body)


@PAGES
def test_every_request_of_the_page_is_answered(page: str, serve: Any) -> None:
    requests = dict(REQUEST.findall(text(page)))
    assert list(requests) == [
        "/v1/work/claim", "/v1/work/due", "/v1/work/{attempt}/extend",
        "/v1/work/{attempt}/finding", "/v1/work/{attempt}/release",
    ]  # fmt: skip
    with serve(page) as home:

        def ask(path: str, **known: str) -> Any:
            body = filled(requests[path], **known)
            answer = home.client.post(path.format(**known), json=body)
            assert answer.status_code == 200, answer.text
            return answer.json()

        permit = ask("/v1/work/claim")
        known = {"attempt": permit["attempt"], "operation": permit["operation"]["id"]}
        assert ask("/v1/work/due") == {"items": []}
        assert ask("/v1/work/{attempt}/extend", **known)["lease_in"] > 29
        assert ask("/v1/work/{attempt}/release", **known)["state"] == "pending"
        known["attempt"] = ask("/v1/work/claim")["attempt"]
        assert ask("/v1/work/{attempt}/finding", **known)["ref"] == "4711"


@PAGES
def test_the_look_up_of_the_page_settles_an_operation(page: str, serve: Any) -> None:
    body = text(page).split("```json\n")[-1].partition("```")[0]
    with serve(page) as home:

        def ask(path: str, asked: dict[str, Any]) -> Any:
            return home.client.post(f"/v1/work/{path}", json=asked).json()

        # Its replay is protected, so a look-up is asked for once that is used up.
        permit = ask("claim", {"action": "order", "input": {"name": "A-1"}})
        operation = permit["operation"]["id"]
        while permit["permit"] != "look_up":
            if permit["permit"] != "wait":
                said = {"report": permit["attempt"], "result": {"finding": "unknown"}}
                ask(f"{permit['attempt']}/finding", {"operation": operation, **said})
            permit = ask("claim", {"action": "order", "key": "A-1", "wait": 5})
        keys = {k["role"]: k["target_key"] for k in permit["target_keys"]}
        told = ask(f"{permit['attempt']}/finding", filled(
            body, operation=operation, target_key=keys["epoch"], invented=keys["invented"]
        ))  # fmt: skip
        assert (told["state"], told["ref"], told["confirmed_by"]) == ("done", "4711", "look_up")


def test_both_pages_show_the_same() -> None:
    def bare(page: str) -> list[str]:
        found = re.findall(r"```(?:toml|json|sh|python)\n(.*?)```", text(page), re.DOTALL)
        return [re.sub(r" +# .*", "", block) for block in found]

    assert bare("own-code.md") == bare("zh/own-code.md") != []


def test_the_example_of_a_suite_is_python() -> None:
    [code] = re.findall(r"```python\n(.*?)```", text("own-code.md"), re.DOTALL)
    compile(code, "own-code.md", "exec")

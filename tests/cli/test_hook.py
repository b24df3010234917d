"""`ascertain hook test`: what a map would make of events."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from ascertain.cli.main import ascertain
from server.hooked import HOOKS
from server.house import SHOP


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    text = SHOP.format(target="http://127.0.0.1:1") + HOOKS
    (tmp_path / "ascertain.toml").write_text(text, "utf-8")
    return tmp_path


def run(*arguments: str, given: Any = None) -> Result:
    text = given if isinstance(given, str) else json.dumps(given)
    return CliRunner().invoke(ascertain, ["--lang", "en", *arguments], input=text)


def paid(ident: str, **body: Any) -> dict[str, Any]:
    return {"id": ident, "topic": "orders/paid", "body": body}


def test_one_event_and_several(folder: Path) -> None:
    told = run("hook", "test", "shop", "--id", "e1", "--topic", "orders/paid", given={"name": "A"})
    assert (told.exit_code, told.output) == (0, "e1: order under the key A, which is new.\n")
    many = [paid("e1", name="A"), paid("e2", name="A"), {"id": "e3", "topic": "x", "body": {}}]
    (folder / "events.json").write_text(json.dumps(many), "utf-8")
    told = run("hook", "test", "shop", "events.json")
    assert told.exit_code == 0
    assert "One operation of several events: order, key A: e1, e2." in told.output
    assert "e3: ignored: no map" in told.output
    data = json.loads(run("--json", "hook", "test", "shop", "events.json").output)
    assert data["shared"] == [{"action": "order", "key": "A", "events": ["e1", "e2"]}]
    assert [len(i["plans"]) for i in data["items"]] == [1, 1, 0]


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_a_flow_is_shown_without_its_code(folder: Path, lang: str) -> None:
    file = folder / "ascertain.toml"
    file.write_text(file.read_text("utf-8").replace('action = "order"', 'flow = "ship"'), "utf-8")
    told = run("hook", "test", "shop", "--lang", lang, given=[paid("e1", name="A")])
    said = {"en": "the flow ship; its code", "zh": "流程 ship"}[lang]
    assert (told.exit_code, said in told.output) == (0, True), told.output


def test_what_cannot_be_mapped_is_refused(folder: Path) -> None:
    told = run("hook", "test", "shop", given=[paid("e1")])
    assert (told.exit_code, "cannot be mapped" in told.output) == (4, True)


@pytest.mark.parametrize("given", ["{", "[]", '[{"x": 1}]'])
def test_what_is_no_event(folder: Path, given: str) -> None:
    told = run("hook", "test", "shop", given=given)
    assert told.exit_code == 2
    assert "no event" in told.output


def test_a_hook_that_nobody_declared(folder: Path) -> None:
    told = run("hook", "test", "shp", given={})
    assert told.exit_code == 2
    assert "there are shop" in told.output

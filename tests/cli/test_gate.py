"""`ascertain pause` and `resume`: in every namespace that may use the target."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ascertain import from_config
from targets.api import api

FILE = """
[store]
url = "own.db"

[server]
namespaces = ["acme", "globex", "initech"]

[targets.crm]
base = "{base}"
namespaces = ["acme", "globex"]

[actions."crm.task"]
target = "crm"
key = "{{name}}"
owner = "anna"
inputs.name.type = "text"
request = {{ url = "/tasks", json = {{ name = "{{name}}" }} }}
"""


@pytest.fixture
def config(cli: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    with api() as server:
        monkeypatch.delenv("ASCERTAIN_STORE")
        file = Path(cli.folder) / "ascertain.toml"
        file.write_text(FILE.format(base=server.url))
        from_config(file).close()  # makes the store
        yield file


def test_a_target_is_paused_and_resumed_where_it_may_be_used(cli: Any, config: Path) -> None:
    said = cli("pause", "crm", "--by", "anna", "--why", "moving")
    assert said.exit_code == 0, said.output
    assert said.output.splitlines() == [
        "crm is paused in namespace acme: nothing new is sent to it.",
        "crm is paused in namespace globex: nothing new is sent to it.",
    ]
    asked = cli("do", "crm.task", "name=A", "--namespace", "acme")
    assert asked.exit_code == 3
    assert "Paused by anna: moving." in asked.output
    said = cli("resume", "crm", "--by", "ben", "--namespace", "acme", "--lang", "zh")
    assert said.output == "空间 acme：目标系统 crm 已恢复。\n"
    assert cli("do", "crm.task", "name=B", "--namespace", "globex").exit_code == 3


def test_what_is_no_target_is_refused(cli: Any, config: Path) -> None:
    said = cli("pause", "nowhere", "--by", "anna")
    assert said.exit_code == 4
    assert "there are: crm" in said.output
    config.unlink()
    assert cli("pause", "crm", "--by", "anna").exit_code == 2

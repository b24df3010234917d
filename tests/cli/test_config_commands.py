"""Everything from the shell, without a line of Python: check, do, work, decide."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ascertain import from_config
from targets.api import api

FILE = """
[store]
url = "own.db"
namespace = "lamp"

[targets.crm]
base = {{ env = "CRM_URL" }}
auth.bearer = {{ env = "CRM_TOKEN" }}

[[contract]]
id = "crm.task"
ok = {{ when = "201" }}
undo = "DELETE"
refused = {{ unauthorized = "401" }}
lookup = {{ by = "key", lag = "0s" }}

[actions."crm.task"]
target = "crm"
contract = "crm.task"
key = "{{name}}"
owner = "anna"
inputs.name.type = "text"
inputs.count = {{ type = "integer", required = false }}
inputs.rate = {{ type = "number", required = false }}
inputs.urgent = {{ type = "boolean", required = false }}
inputs.lines = {{ required = false }}
ref = "id"
lookup = {{ url = "/tasks?key={{target_key}}", by = "key", ref = "id" }}
late = "{late}"
timeout = "2s"
first_delay = "50ms"
{more}
[actions."crm.task".request]
url = "/tasks"
[actions."crm.task".request.json]
name = "{{name}}"
count = "{{count}}"
rate = "{{rate}}"
urgent = "{{urgent}}"
lines = "{{lines}}"
key = "{{target_key}}"
"""

HOOK = """
[hooks.shop]
kind = "shopify"
secrets = [{ env = "SHOP_SECRET" }]
[[hooks.shop.map]]
action = "crm.task"
input = { name = "body.name" }
[[hooks.shop.map]]
flow = "sync"
"""


@pytest.fixture
def crm(cli: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    with api() as server:
        for name in ("ASCERTAIN_STORE", "ASCERTAIN_CONFIG"):
            monkeypatch.delenv(name, raising=False)
            cli.env.pop(name, None)
        monkeypatch.setenv("CRM_URL", server.url)
        monkeypatch.setenv("CRM_TOKEN", "t0ken")
        write(cli.folder)
        yield server


def write(folder: Path, late: str = "100ms", more: str = "", name: str = "ascertain.toml") -> None:
    (folder / name).write_text(FILE.format(late=late, more=more), "utf-8")


def test_check_says_what_was_understood(cli, crm, monkeypatch) -> None:
    done = cli("config", "check")
    assert done.exit_code == 0, done.output
    for text in ("1 action.", "own.db", "namespace lamp", "crm.task", "{name}", "late=0.1s"):
        assert text in done.output
    told = cli.json("config", "check")
    [action] = told["actions"]
    assert (action["protection"], action["look_up"]) == ("searchable", True)
    assert (told["problems"], told["unset"]) == ([], {})
    monkeypatch.delenv("CRM_TOKEN")
    assert "CRM_TOKEN is not set" in cli("config", "check").stderr
    assert "CRM_TOKEN" in cli("config", "check", "--lang", "zh").stderr
    assert not (cli.folder / "own.db").exists()


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_check_says_each_problem_on_its_line(cli, crm, lang) -> None:
    write(cli.folder, more='aproval = true\nlag = "soon"')
    done = cli("config", "check", "--lang", lang)
    assert done.exit_code == 2
    line, after = done.stdout.splitlines()
    assert line.startswith("ascertain.toml:32: actions.crm.task.aproval: unknown key; did you mean")
    assert after.startswith("ascertain.toml:33: actions.crm.task.lag: lag is 'soon': write it like")
    assert done.stderr.count("\n") == 1
    problem, _ = cli.json("config", "check", code=2)["problems"]
    assert (problem["line"], problem["where"]) == (32, "actions.crm.task.aproval")


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_check_lists_hooks_and_what_they_cannot_verify(cli, crm, monkeypatch, lang) -> None:
    with (cli.folder / "ascertain.toml").open("a", encoding="utf-8") as file:
        file.write(HOOK)
    monkeypatch.setenv("SHOP_SECRET", "s")
    done = cli("config", "check", "--lang", lang)
    assert (done.exit_code, done.stderr) == (0, "")
    [row] = [line.split() for line in done.stdout.splitlines() if "shopify" in line]
    assert row == ["shop", "shopify", "/hooks/shop", "lamp", "crm.task,", "sync"]
    monkeypatch.delenv("SHOP_SECRET")
    said = cli("config", "check", "--lang", lang).stderr
    assert {"en": "takes nothing now", "zh": "无法接收"}[lang] in said
    assert "SHOP_SECRET is not set" in said
    [hook] = cli.json("config", "check")["hooks"]
    assert (hook["path"], hook["asks"]) == ("/hooks/shop", ["crm.task", "sync"])


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_an_unknown_contract_is_said_with_the_nearest_few(cli, crm, lang) -> None:
    said = cli("contract", "show", "stripe.v1.pst", "--lang", lang).stderr
    assert "stripe.v1.post, stripe.v2.post" in said
    assert len(said) < 600
    text = (cli.folder / "ascertain.toml").read_text("utf-8")
    text = text.replace('contract = "crm.task"', 'contract = "stripe.v1.pst"')
    (cli.folder / "ascertain.toml").write_text(text, "utf-8")
    [problem] = cli.json("config", "check", code=2)["problems"]
    assert (problem["where"], len(problem["why"]) < 400) == ("actions.crm.task.contract", True)


def test_do_works_once_and_says_where_it_stands(cli, crm) -> None:
    missing = cli("do", "crm.task", "name=a")
    assert missing.exit_code == 2
    assert "store migrate" in missing.stderr
    assert cli("store", "migrate").exit_code == 0
    assert (cli.folder / "own.db").exists()
    done = cli("do", "crm.task", "name=a=b", "count=3", "rate=1.50", "urgent=true", "lines:=[1]")
    assert done.exit_code == 0, done.output
    assert "n1" in done.stdout
    again = cli("do", "crm.task", "name=a=b", "count=3", "rate=1.50", "urgent=true", "lines:=[1]")
    assert (again.exit_code, "nothing was sent again" in again.stderr) == (0, True)
    other = cli("do", "crm.task", "name=a=b", "--key", "another")
    assert (other.exit_code, "a=b" in other.stderr) == (2, True)
    [asked] = crm.effects()
    body = json.loads(asked["body"])
    del body["key"]
    assert body == {"name": "a=b", "count": 3, "rate": 1.5, "urgent": True, "lines": [1]}
    [listed] = cli.json("op", "list")["operations"]
    assert (listed["namespace"], listed["protection"]) == ("lamp", "searchable")


@pytest.mark.parametrize(
    ("args", "says"),
    [
        (["nothing", "name=a"], "There are: crm.task"), (["crm.task"], "missing input name"),
        (["crm.task", "name"], "write name=text"), (["crm.task", "nme=a"], "takes name, count"),
        (["crm.task", "name=a", "name=b"], "write name=text"), (["crm.task", "name="], "missing"),
        (["crm.task", "name=a", "count=x"], "count: x is not a whole"),
        (["crm.task", "name=a", "rate=inf"], "rate: inf is not a number"),
        (["crm.task", "name=a", "urgent=yes"], "urgent: yes is not true or false"),
        (["crm.task", "name=a", "lines:=[1"], "lines: [1 is not JSON"),
    ],
    ids=range(10),
)  # fmt: skip
def test_a_wrong_call_is_one_line_and_records_nothing(cli, crm, args, says) -> None:
    cli("store", "migrate")
    done = cli("do", *args)
    assert (done.exit_code, done.stderr.count("\n"), says in done.stderr) == (2, 1, True), (
        done.output
    )
    assert cli("do", *args, "--lang", "zh").exit_code == 2
    assert cli.json("op", "list")["operations"] == []
    assert crm.asked == []


def test_exit_codes_say_what_is_known(cli, crm, monkeypatch) -> None:
    cli("store", "migrate")
    monkeypatch.delenv("CRM_TOKEN")
    stopped = cli("do", "crm.task", "name=no-token")
    assert (stopped.exit_code, crm.asked) == (4, [])
    monkeypatch.setenv("CRM_TOKEN", "t0ken")
    crm.lose = 1
    write(cli.folder, late="1h")
    lost = cli("do", "crm.task", "name=lost", "--wait", "0")
    assert (lost.exit_code, len(crm.effects())) == (0, 1)  # it is found: that needs no lateness
    crm.guarded = True
    stopped = cli("do", "crm.task", "name=refused")
    assert (stopped.exit_code, len(crm.made)) == (4, 1)
    write(cli.folder, more="approval = true")
    waiting = cli("do", "crm.task", "name=asked")
    assert (waiting.exit_code, len(crm.effects())) == (3, 2)
    assert cli("approval", "approve", "asked", "--by", "chef", "--yes").exit_code == 0


def test_a_worker_recovers_what_a_configuration_describes(cli, crm) -> None:
    cli("store", "migrate")
    with from_config(cli.folder / "ascertain.toml") as ledger:
        ledger.actions["crm.task"].enqueue(name="later")
    crm.lose = 1
    codes = []
    while 0 not in codes and len(codes) < 10:  # each a process of its own; 3: still unknown
        codes.append(cli.process("work", "--once").returncode)
    assert set(codes) <= {0, 3}
    assert len(crm.effects()) == 1
    assert cli("op", "confirm", "later").exit_code == 0


def test_which_file_counts(cli, crm, monkeypatch) -> None:
    write(cli.folder, name="other.toml")
    (cli.folder / "other.toml").write_text(
        (cli.folder / "other.toml").read_text().replace("own.db", "other.db")
    )
    assert "other.db" in cli("store", "migrate", "--config", "other.toml").output
    monkeypatch.setenv("ASCERTAIN_CONFIG", "other.toml")
    assert "other.db" in cli("store", "check").output
    assert "own.db" not in cli("config", "check").output
    monkeypatch.setenv("ASCERTAIN_STORE", str(cli.folder / "third.db"))
    assert "third.db" in cli("store", "migrate").output
    assert "fourth.db" in cli("store", "migrate", "--store", "fourth.db").output
    both = cli("op", "list", "--app", "cliapp:ledger", "--config", "other.toml")
    assert both.exit_code == 2
    assert "not both" in both.stderr
    none = cli("op", "list", "--config", "nowhere.toml")
    assert "nowhere.toml" in none.stderr
    monkeypatch.setenv("ASCERTAIN_APP", "cliapp:ledger")
    monkeypatch.setenv("ASCERTAIN_STORE", str(cli.store))
    assert cli("do", "shop.order", "order=7").exit_code == 0  # an application comes first
    assert cli.effects()


def test_people_can_look_and_decide_though_the_configuration_is_wrong(cli, crm) -> None:
    cli("store", "migrate")
    assert cli("do", "crm.task", "name=a").exit_code == 0
    write(cli.folder, more="aproval = true")
    listed = cli("op", "list")
    assert (listed.exit_code, "1 to correct" in listed.stderr) == (0, True)
    assert "crm.task" in listed.stdout
    refused = cli("do", "crm.task", "name=b")
    assert (refused.exit_code, refused.stderr.count("\n")) == (2, 1)
    assert "ascertain.toml:32" in refused.stderr
    assert cli("work", "--once").exit_code == 2

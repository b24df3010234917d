"""Exit codes, errors, languages and what is loaded: what holds for every command."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner

from ascertain import AscertainError
from ascertain.cli import base, error_texts, texts
from ascertain.cli.main import COMMANDS, ascertain
from ascertain.core import error_words, errors, words
from ascertain.core.contract import Class
from ascertain.core.model import Kind, Outcome, State
from ascertain.core.people import Answer

CLI = Path(base.__file__).parent
ENUMS = {
    "kind": {k.value for k in Kind},
    "outcome": {o.value for o in Outcome} | {"open"},
    "how": {"answer", "look_up", "replay", "person", "event", "accepted",
            "late_report"},
    "class": {c.name.lower() for c in Class},
    "road": {"unknown", "duplicate", "accepted"},
    "standing": {s.value for s in State} - {"pending"} | {"waiting", "missing"},
    "looks": {"run_id", "uuid", "clock"},
    "bad": {"missing", "empty", "kind", "characters"},
    "alarm": {"missing", "review", "approval", "held", "stumbled", "overdue"},
    "col": {"id", "action", "key", "state", "ref", "next", "owner", "age", "why", "question",
            "kind", "started", "deadline", "outcome", "worker"},
    "span": {"day", "hour", "minute", "second", "moment", "ahead", "ago"},
    "decide": {a.value for a in Answer} | {"risk", "risk_first", "risk_second"},
}  # fmt: skip


def commands(group: click.Group = ascertain, *path: str) -> list[tuple[str, click.Command]]:
    ctx = click.Context(group, info_name="ascertain")
    found: list[tuple[str, click.Command]] = [(".".join(path) or "ascertain", group)]
    for name in group.list_commands(ctx):
        command = group.get_command(ctx, name)
        assert command is not None
        if isinstance(command, click.Group):
            found += commands(command, *path, name)
        else:
            found.append((".".join([*path, name]), command))
    return found


def needed() -> set[str]:
    """Every key that the code asks for."""
    code = "".join(f.read_text() for f in CLI.glob("*.py") if "texts" not in f.name)
    literal = set(re.findall(r'"([a-z_0-9]+(?:\.[a-z_0-9]+)*)"', code)) & set(texts.TEXTS)
    enums = {f"{family}.{name}" for family, names in ENUMS.items() for name in names}
    helps = {f"help.{name}" for name, _ in commands()} | {f"help.{name}" for name in COMMANDS}
    options = {p.key for _, c in commands() for p in c.params if isinstance(p, base.Opt)}
    told = {f"error.{c.code}" for c in vars(errors).values()
            if isinstance(c, type) and issubclass(c, AscertainError)}  # fmt: skip
    verbs = {"approval.will_approve", "approval.will_reject"}
    demo = {"opt.once", "opt.keep", "opt.wordpress"}  # whether or not the demo is installed
    return literal | enums | helps | options | told | verbs | demo


def test_every_text_is_used_and_none_is_missing() -> None:
    assert set(texts.TEXTS) - needed() == set()
    assert needed() - set(texts.TEXTS) == set()


def test_every_text_exists_in_both_languages_with_the_same_values() -> None:
    for key, (english, chinese) in texts.TEXTS.items():
        values = [set(re.findall(r"{(\w+)}", text)) - {"plural"} for text in (english, chinese)]
        if key not in ("error.detail", "opt.template"):
            assert values[0] == values[1], key
            assert english, key
        assert chinese, key
        assert not re.search("[\u4e00-\u9fff]", english), key


def test_every_option_has_a_help_in_the_catalogue() -> None:
    for name, command in commands():
        for param in command.params:
            assert isinstance(param, base.Opt | click.Argument), (name, param.name)


@pytest.mark.parametrize("lang", words.LANGUAGES)
def test_help_is_in_the_readers_language_wherever_he_says_it(lang) -> None:
    head = {"en": "Usage:", "zh": "用法："}[lang]
    for name, _ in commands():
        path = [] if name == "ascertain" else name.split(".")
        for args in ([*path, "--help", "--lang", lang], ["--lang", lang, *path, "--help"]):
            done = CliRunner().invoke(ascertain, args)
            assert done.exit_code == 0, (name, done.output)
            assert done.output.startswith(head), name


@pytest.mark.parametrize(
    ("env", "lang"),
    [
        ({"LANG": "zh_CN.UTF-8"}, "zh"),
        ({"LANG": "zh_CN.UTF-8", "LC_ALL": "C.UTF-8"}, "en"),
        ({"LC_ALL": "zh_TW.UTF-8", "LANG": "de_DE.UTF-8"}, "zh"),
        ({"LANG": "de_DE.UTF-8"}, "en"),
        ({}, "en"),
    ],
)
def test_the_language_is_the_environments(monkeypatch, env, lang) -> None:
    for name in ("LC_ALL", "LC_MESSAGES", "LANG"):
        monkeypatch.delenv(name, raising=False)
    for name, value in env.items():
        monkeypatch.setenv(name, value)
    assert base.language() == lang
    assert base.language(["op", "--lang=zh"]) == "zh"


@pytest.mark.parametrize("lang", words.LANGUAGES)
@pytest.mark.parametrize(
    "args",
    [
        ["nonsense"],
        ["op", "nonsense"],
        ["op", "list", "--nonsense"],
        ["op", "show"],
        ["op", "list", "--state", "nonsense"],
        ["op", "list", "--limit", "0"],
        ["--lang", "fr", "op", "list"],
        ["review", "decide", "x", "leave"],
        ["op", "show", "nonsense"],
    ],
)
def test_wrong_usage_is_one_line_and_2(cli, args, lang) -> None:
    cli("store", "migrate")
    done = cli(*args, "--lang", lang)
    assert (done.exit_code, done.stderr.count("\n")) == (2, 1), done.output
    assert bool(re.search("[\u4e00-\u9fff]", done.stderr)) is (lang == "zh")
    told = json.loads(cli(*args, "--json").stdout)["error"]
    assert set(told) == {"code", "message", "operation"}


def test_every_error_has_an_exit_code_and_a_chinese_sentence() -> None:
    kinds = [c for c in vars(errors).values()
             if isinstance(c, type) and issubclass(c, AscertainError)]  # fmt: skip
    for kind in kinds:
        assert base.exit_code(kind.code) in (2, 3, 4)
        said = base.in_words(kind("operation lamp: look again"), "zh")
        assert "lamp" in said
        assert said != base.in_words(kind("operation lamp: look again"), "en")


def test_a_bug_in_the_application_is_one_line_without_a_traceback(cli, monkeypatch) -> None:
    (cli.folder / "broken.py").write_text("1 / 0\n")
    done = cli("work", "--app", "broken:ledger")
    assert (done.exit_code, done.stderr.count("\n")) == (2, 1)
    assert "ZeroDivisionError" in done.stderr
    monkeypatch.setattr("ascertain.cli.op.opened", lambda *_, **__: 1 / 0)
    bug = cli("op", "list")
    assert (bug.exit_code, bug.stderr.count("\n")) == (1, 1)
    assert "ZeroDivisionError" in bug.stderr


def test_the_version_is_printed() -> None:
    assert CliRunner().invoke(ascertain, ["--version"]).output.startswith("ascertain 0.")


def test_a_password_in_an_address_is_never_shown(cli) -> None:
    from ascertain.cli.opening import shown_address

    shown = shown_address("postgresql://me:hush@db.example/ledger?password=hush")
    assert shown == "postgresql://me@db.example/ledger"


def test_a_reader_who_has_seen_enough_is_no_error(cli) -> None:
    app = cli.app()
    for order in range(200):
        app.order.enqueue(order=order)
    command = " ".join(cli.command("op", "list", "--limit", "200", "--json")) + " | head -c 1"
    done = subprocess.run(
        ["/bin/sh", "-c", command], env=cli.environment(), capture_output=True, text=True,
        check=False, timeout=15,
    )  # fmt: skip
    assert done.stderr == ""


def test_importing_the_command_line_loads_nothing_heavy() -> None:
    heavy = {"rich", "psycopg", "httpx2", "fastapi", "apsw", "ascertain.acceptance"}
    code = f"import sys, ascertain.cli.main; print(*sorted({heavy} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout.split() == []


# --- errors ---


def test_what_a_browser_shows_names_no_command_and_no_option() -> None:
    """The Chinese sentence of an error is the title of a problem too; the command line adds what
    to type next."""
    for code, (_, chinese) in (error_words.ERRORS | error_words.REQUESTS).items():
        assert not re.search(r"`|--\w", chinese), code
    for code, following in error_texts.NEXT.items():
        assert texts.TEXTS[f"error.{code}"][1].endswith(following)


@pytest.mark.parametrize(
    ("args", "english", "chinese"),
    [
        (["op", "show", "nothing"], "No operation nothing is in namespace default",
         "空间 default 中没有业务操作 nothing"),
        (["contract", "show", "stripe.v1.pst"], "Like it: stripe.v1.post",
         "没有内置的保护约定 stripe.v1.pst。相近的：stripe.v1.post"),
        (["token", "new", "x", "--scopes", "ops:red"], "not ops:red", "不能是 ops:red"),
        (["key", "check", "/nothing/here"], "there is no such file or folder",
         "文件或文件夹不存在"),
        (["user", "add", "anna"], "Choose from: viewer, operator, admin. See",
         "可选的是 viewer, operator, admin。 参见"),
        (["op", "lst"], "Did you mean 'list'? See", "没有命令 lst。是否指 list？"),
        (["op", "list", "--limit", "x"], "is not a valid integer range. See", "应为数字，1–1000。"),
        (["op", "list", "--state", "x"], "'done', 'not_done'. See", "可选的是 pending"),
    ],
)  # fmt: skip
def test_a_mistake_is_said_in_the_readers_language_alone(
    cli: Any, args: list[str], english: str, chinese: str
) -> None:
    cli("store", "migrate")
    for lang, said in (("en", english), ("zh", chinese)):
        done = cli(*args, "--lang", lang)
        told = " ".join(done.stderr.split())
        assert (done.exit_code, said.replace("　", " ") in told) == (2, True), told
        if lang == "zh":
            assert not re.search(r"\b(is|no|not|the|of)\b", told), told

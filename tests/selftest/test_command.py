"""`ascertain contract test`, as a newcomer uses it: what it says before, and what it found."""

from __future__ import annotations

import json
import os
import pty
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from ascertain.cli import contract_test_texts as texts
from ascertain.cli.main import ascertain
from ascertain.core import words
from selftest.desk import Desk

TRY = ["contract", "test", "desk.ticket", "--input", "order=T-1", "--input", "text=hello"]
SURE = ["--sandbox", "--yes", "--undo", "desk.remove"]
pytestmark = pytest.mark.timeout(60)


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Desk]:
    for name in ("ASCERTAIN_APP", "ASCERTAIN_STORE", "ASCERTAIN_CONFIG"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("LC_ALL", "C.UTF-8")
    monkeypatch.chdir(tmp_path)
    with Desk() as server:
        (tmp_path / "ascertain.toml").write_text(server.toml, "utf-8")
        assert call("store", "migrate").exit_code == 0
        yield server


def call(*args: str) -> Result:
    return CliRunner().invoke(ascertain, [*args])


def test_it_says_what_it_will_create_and_sends_nothing_unasked(desk: Desk) -> None:
    for more, code in (([], "--sandbox"), (["--sandbox"], "--yes")):
        done = call(*TRY, *more)
        assert done.exit_code == 4
        assert "the same key 8 times at once: 8 object(s) at most" in done.stderr
        assert "It makes 6 objects if the contract holds, 16 at most" in done.stderr
        assert "they are listed for you" in done.stderr
        assert code in done.stderr
        assert done.stdout == ""
    assert desk.made == 0


def test_it_holds_is_stamped_and_cleaned_up(desk: Desk) -> None:
    done = call(*TRY, *SURE)
    assert done.exit_code == 0, done.output
    assert "holds: repeat.answer = replay: the same key made one object only" in done.stdout
    assert "holds: repeat.mismatch = 422: changed content was refused" in done.stdout
    assert "holds: repeat.atomic = True: 8 at once made one object" in done.stdout
    assert "holds: undo" in done.stdout
    assert "not tested: late.max = 100ms" in done.stdout
    assert "After the window the same key makes another object." in done.stdout
    assert "Made: 6 object(s), removed 6." in done.stdout
    assert "Verified on 20" in done.stdout
    assert desk.made == 6
    assert desk.tickets == {}
    assert "… create once and look it up" in done.stderr


def test_a_header_that_a_proxy_strips_is_found_out(desk: Desk) -> None:
    desk.stripped = True
    done = call(*TRY, *SURE)
    assert done.exit_code == 4
    assert "DOES NOT HOLD: repeat.answer = replay: the same key made 2 objects" in done.stdout
    assert "Not stamped as verified." in done.stdout
    assert desk.tickets == {}


def test_without_an_undo_everything_is_listed(desk: Desk) -> None:
    done = call(*TRY, "--sandbox", "--yes")
    assert done.exit_code == 0, done.output
    for ident, ticket in desk.tickets.items():
        assert ident in done.stdout
        assert ticket["op"] in done.stdout


def test_as_data(desk: Desk) -> None:
    done = call(*TRY, *SURE, "--json")
    told = json.loads(done.stdout)
    assert (told["holds"], told["control"]) == (True, True)
    assert told["verified"].startswith("20")
    assert told["plan"] == {"creates": 6, "most": 16}
    assert {o["removed"] for o in told["objects"]} == {True}
    assert all(v["says"] for v in told["verdicts"])
    assert told["class"]["protection"] == told["class"]["without"]


def test_in_chinese(desk: Desk) -> None:
    done = call(*TRY, *SURE, "--lang", "zh")
    assert done.exit_code == 0, done.output
    assert "成立：repeat.atomic" in done.stdout
    assert "检验计划" in done.stderr


def test_what_is_wrong_is_said_before_anything_is_sent(desk: Desk) -> None:
    for args in (
        ["contract", "test", "desk.nobody", *SURE],
        ["contract", "test", "desk.ticket", "--input", "colour=red", *SURE],
        ["contract", "test", "desk.ticket", *SURE],
        [*TRY, "--sandbox", "--yes", "--undo", "desk.nobody"],
    ):
        assert call(*args).exit_code == 2, args
    assert desk.made == 0


def test_ctrl_c_stops_it_and_it_cleans_up(desk: Desk, tmp_path: Path) -> None:
    config = tmp_path / "ascertain.toml"  # a window that is still open when the signal comes
    config.write_text(config.read_text().replace('keeps = "2s"', 'keeps = "20s"'))
    desk.window = 20.0
    command = [sys.executable, "-m", "ascertain.cli.main", *TRY, *SURE, "--json"]
    with subprocess.Popen(
        command, cwd=tmp_path, env=dict(os.environ), text=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        # Whoever runs the tests in the background may have it ignored, and that is inherited.
        preexec_fn=partial(signal.signal, signal.SIGINT, signal.SIG_DFL),  # noqa: PLW1509
    ) as process:  # fmt: skip
        assert process.stderr is not None
        assert process.stdout is not None
        for line in process.stderr:
            if "window" in line and line.startswith("…"):
                break
        process.send_signal(signal.SIGINT)
        told = json.loads(process.stdout.read())
    assert process.returncode == 3
    assert (told["stopped"], told["verified"]) == ("window", None)
    assert desk.made >= 4
    assert desk.tickets == {}


@pytest.mark.parametrize(("typed", "code"), [("n", 4), ("y", 0)])
def test_on_a_terminal_it_asks(desk: Desk, tmp_path: Path, typed: str, code: int) -> None:
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "ascertain.cli.main", *TRY, *SURE]
    command.remove("--yes")
    with subprocess.Popen(
        command, cwd=tmp_path, env=dict(os.environ), text=True, stdin=theirs,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    ) as process:  # fmt: skip
        os.write(ours, f"{typed}\n".encode())
        _, told = process.communicate(timeout=30)
    os.close(ours)
    os.close(theirs)
    assert process.returncode == code, told
    assert told.index("It makes 6 objects") < told.index("Go on?")
    assert desk.made == (0 if code else 6)


def test_every_sentence_is_there_in_both_languages() -> None:
    """Every code that the self-test can say has a text, with the same values in both."""
    folder = Path(__file__).parents[2] / "src" / "ascertain" / "selftest"
    code = "".join(f.read_text() for f in folder.glob("*.py"))
    named = set(re.findall(r'"([a-z_0-9]+)"', code))
    for key, (english, chinese) in texts._TEXTS.items():
        values = [set(re.findall(r"{(\w+)}", t)) for t in (english, chinese)]
        assert values[0] == values[1], key
        family, _, name = key.partition(".")
        if family in ("why", "note"):
            known = name.removeprefix("first_").removeprefix("content_")
            assert name in named or known in named, f"{key} is never said"
    for why in set(re.findall(r'"(?:holds|fails|untested)", "([a-z_]+)"', code)) - {"fails"}:
        assert f"why.{why}" in texts._TEXTS
    assert len(words.LANGUAGES) == 2

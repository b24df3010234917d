"""`ascertain up`, `serve` and `work` as processes: their start, their stop, who may reach them."""

from __future__ import annotations

import re
import shlex
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import httpx2
import psutil
import pytest

from ascertain import open_store, read_config
from ascertain.cli import starter
from server.house import SHOP
from server.processes import SRC, client, process, until
from server.target import Shop

START_WITHIN = 3.0  # seconds of a processor
IDLE = 120 * 1024 * 1024
SLOW = SHOP.replace('first_delay = "100ms"', 'first_delay = "100ms"\ntimeout = "8s"', 1)


def written(folder: Path, target: Shop, config: str = SHOP, more: str = "") -> None:
    text = config.format(target=target.url) + more
    (folder / "ascertain.toml").write_text(text, "utf-8")


# --- the first start -----------------------------------------------------------------------


@pytest.mark.timeout(60)
@pytest.mark.parametrize("lang", ["en", "zh"])
def test_the_first_start_writes_what_is_needed_and_answers(tmp_path: Path, lang: str) -> None:
    with process(tmp_path, "up", "--port", "0", "--json", "--lang", lang) as up:
        told = up.listening()
        assert httpx2.get(f"{up.url}/readyz", trust_env=False).status_code == 200
        spent = psutil.Process(up.popen.pid).cpu_times()
        assert spent.user + spent.system < START_WITHIN  # a loaded machine takes longer by the wall
        assert set(told) == {"event", "url", "first_link"}
        assert (tmp_path / "ascertain.toml").read_text("utf-8") == starter.TEXT[lang]
        page = httpx2.get(f"{up.url}/v1/openapi.json", trust_env=False)
        assert page.status_code == 200
        assert up.rss() < IDLE
        up.send()
        assert up.ended() == 0
    assert (tmp_path / "ascertain.db").exists()


@pytest.mark.timeout(60)
@pytest.mark.parametrize("lang", ["en", "zh"])
def test_the_first_start_says_how_a_token_is_made(tmp_path: Path, target: Shop, lang: str) -> None:
    written(tmp_path, target)
    (tmp_path / "ascertain.toml").rename(tmp_path / "my shop.toml")
    asked = ("--config", "my shop.toml", "--lang", lang)
    with process(tmp_path, "up", "--port", "0", *asked) as up:
        assert up.popen.stdout is not None
        _, _, line = [up.popen.stdout.readline() for _ in range(3)]
        assert {"en": "need a token", "zh": "使用令牌"}[lang] in line
        command = line[line.index("ascertain token new") :]
        with process(tmp_path, *shlex.split(command)[1:]) as made:
            assert (made.ended(), "asc_" in made.out) == (0, True)
        up.send()
        assert up.ended() == 0


@pytest.mark.timeout(60)
def test_a_second_start_keeps_the_file_and_goes_on(tmp_path: Path, target: Shop) -> None:
    written(tmp_path, target)
    before = (tmp_path / "ascertain.toml").read_text()
    for number in range(2):
        with process(tmp_path, "up", "--port", "0", "--json") as up:
            up.listening()
            with client(tmp_path, up.url) as ours:
                answer = ours.post(
                    "/v1/operations", json={"action": "order", "input": {"name": "A"}}
                )
                assert (answer.status_code, answer.json()["reused"]) == (200, number == 1)
            up.send(signal.SIGINT)
            assert up.ended() == 0
    assert (tmp_path / "ascertain.toml").read_text() == before
    assert target.made() == {"A": 1}


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_the_examples_in_the_written_file_are_valid(tmp_path: Path, lang: str) -> None:
    file = tmp_path / "ascertain.toml"
    assert starter.write(file, lang)
    assert not starter.write(file, lang)
    assert read_config(file).problems == []
    file.write_text(re.sub(r"^#(?! )", "", file.read_text("utf-8"), flags=re.MULTILINE), "utf-8")
    understood = read_config(file)
    assert understood.problems == []
    assert list(understood.actions) == ["cms.create_draft"]


# --- who may reach it ----------------------------------------------------------------------


@pytest.mark.timeout(60)
def test_nobody_from_outside_reaches_it_before_there_is_an_account(tmp_path: Path) -> None:
    with process(tmp_path, "up", "--host", "0.0.0.0", "--port", "0", "--json") as refused:
        assert refused.ended() == 4
        assert "nobody has an account yet" in refused.log()
    with process(tmp_path, "up", "--host", "0.0.0.0", "--port", "0", "--json", "--insecure") as up:
        up.listening()
        up.send()
        assert up.ended() == 0


@pytest.mark.timeout(60)
def test_an_address_that_is_taken_is_said_before_anything_is_opened(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        with process(tmp_path, "up", "--port", str(taken.getsockname()[1])) as up:
            assert up.ended() == 4
            assert "cannot be listened on" in up.log()
    assert not (tmp_path / "ascertain.db").exists()


@pytest.mark.timeout(60)
def test_a_server_makes_no_store_and_no_configuration(tmp_path: Path, target: Shop) -> None:
    with process(tmp_path, "serve", "--port", "0") as bare:
        assert bare.ended() == 2
        assert "ascertain up" in bare.log()
    written(tmp_path, target)
    with process(tmp_path, "serve", "--port", "0") as storeless:
        assert storeless.ended() == 2
        assert "There is no store" in storeless.log()


@pytest.mark.timeout(60)
def test_a_start_says_whose_credential_is_missing(tmp_path: Path, target: Shop) -> None:
    auth = 'auth = {{ bearer = {{ env = "NOT_GIVEN" }} }}'
    config = SHOP.replace("[targets.shop]", f"[targets.shop]\n{auth}", 1)
    written(tmp_path, target, config)
    with process(tmp_path, "up", "--port", "0") as up:
        until(lambda: "NOT_GIVEN is not set" in up.log())
        up.send()
        assert up.ended() == 0


# --- apart: servers and workers ------------------------------------------------------------


@pytest.mark.timeout(60)
def test_a_worker_finds_out_what_a_server_could_not(tmp_path: Path, target: Shop) -> None:
    written(tmp_path, target)
    open_store(str(tmp_path / "ascertain.db")).close()
    target.fates["A"] = ["hang"]
    with process(tmp_path, "serve", "--port", "0", "--json") as serve:
        serve.listening()
        with client(tmp_path, serve.url) as ours:
            asked = {"action": "searched", "input": {"name": "first"}}
            assert ours.post("/v1/operations", json=asked).status_code == 200  # the control
            asked = {"action": "searched", "input": {"name": "A"}}
            answer = ours.post("/v1/operations", json={**asked, "wait": 0})
            assert answer.status_code in (409, 202)
            with process(tmp_path, "work", "--every", "0.05") as work:
                ident = answer.json()["operation"]
                done = until(lambda: ours.get(f"/v1/operations/{ident}").json())
                until(lambda: ours.get(f"/v1/operations/{ident}").json()["state"] == "done")
                work.send()
                assert work.ended() == 0
                assert "A: it was outcome unknown, now it is done" in " ".join(work.out.split())
            assert done["key"] == "A"
        serve.send()
        assert serve.ended() == 0
    assert target.made() == {"first": 1, "A": 1}
    assert [e["event"] for e in work.events() if e["event"] == "recovered"] == ["recovered"]


# --- the stop ------------------------------------------------------------------------------


def in_background(ask: object) -> tuple[threading.Thread, list[httpx2.Response]]:
    answers: list[httpx2.Response] = []
    thread = threading.Thread(target=lambda: answers.append(ask()))  # type: ignore[operator]
    thread.start()
    return thread, answers


@pytest.mark.timeout(60)
@pytest.mark.parametrize("command", ["up", "serve"])
def test_what_is_in_flight_is_finished(tmp_path: Path, target: Shop, command: str) -> None:
    written(tmp_path, target, SLOW)
    open_store(str(tmp_path / "ascertain.db")).close()
    target.fates["A"] = ["slow:1.5"]
    with process(tmp_path, command, "--port", "0", "--json") as running:
        running.listening()
        with client(tmp_path, running.url) as ours:
            asked = {"action": "order", "input": {"name": "A"}}
            thread, answers = in_background(lambda: ours.post("/v1/operations", json=asked))
            until(target.effects)
            running.send()
            until(lambda: get(running.url, "/readyz") == 503)
            assert get(running.url, "/healthz") == 200
            late = httpx2.post(f"{running.url}/v1/operations", json=asked, trust_env=False)
            assert (late.status_code, late.json()["code"]) == (503, "stopping")
            assert late.headers["retry-after"] == "1"
            thread.join()
        assert running.ended() == 0
    assert (answers[0].status_code, answers[0].json()["state"]) == (200, "done")
    assert target.made() == {"A": 1}


@pytest.mark.timeout(60)
def test_what_takes_too_long_is_unknown_and_found_out_later(tmp_path: Path, target: Shop) -> None:
    """Law 3: never lost, and never executed again blindly."""
    written(tmp_path, target, SLOW, "\n[server]\nstop_within = 0.5\n")
    target.fates["A"] = ["slow:6"]
    with process(tmp_path, "up", "--port", "0", "--json") as up:
        up.listening()
        with client(tmp_path, up.url) as ours:
            asked = {"action": "order", "input": {"name": "A"}}
            thread, answers = in_background(lambda: ours.post("/v1/operations", json=asked))
            until(target.effects)
            began = time.monotonic()
            up.send()
            thread.join()
        assert up.ended() == 0
        assert time.monotonic() - began < 5
    assert answers[0].status_code in (409, 503)
    assert "requests.cut" in [e["event"] for e in up.events()]
    assert states(tmp_path) == {"A": "unknown"}
    with process(tmp_path, "up", "--port", "0", "--json") as up:
        until(lambda: states(tmp_path) == {"A": "done"})
        up.send()
        assert up.ended() == 0
    assert target.made() == {"A": 1}


@pytest.mark.timeout(60)
def test_a_worker_out_of_time_leaves_an_unknown_outcome(tmp_path: Path, target: Shop) -> None:
    written(tmp_path, target, SLOW, "\n[server]\nstop_within = 0.3\n")
    target.script = ["busy"]
    target.fates["A"] = ["busy", "slow:6"]
    with process(tmp_path, "up", "--port", "0", "--json") as up:
        up.listening()
        with client(tmp_path, up.url) as ours:
            asked = {"action": "order", "input": {"name": "A"}, "wait": 0}
            ours.post("/v1/operations", json=asked)
        until(lambda: len(target.effects()) == 2)  # the second one is the worker's
        up.send()
        assert up.ended() == 0
    assert states(tmp_path) == {"A": "unknown"}
    assert target.made() == {"A": 1}


@pytest.mark.timeout(60)
def test_a_second_signal_ends_at_once(tmp_path: Path, target: Shop) -> None:
    written(tmp_path, target, SLOW)
    target.fates["A"] = ["slow:6"]
    with process(tmp_path, "up", "--port", "0", "--json") as up:
        up.listening()
        with client(tmp_path, up.url) as ours:
            asked = {"action": "order", "input": {"name": "A"}}
            thread, _ = in_background(lambda: gone(ours, asked))
            until(target.effects)
            up.send(signal.SIGINT)
            until(lambda: get(up.url, "/readyz") == 503)
            began = time.monotonic()
            up.send(signal.SIGINT)
            assert up.ended() == 128 + signal.SIGINT
            assert time.monotonic() - began < 4
            thread.join()
    assert states(tmp_path) == {"A": "running"}  # its lease ends it: then it is unknown


def gone(ours: httpx2.Client, asked: object) -> None:
    with pytest.raises(httpx2.HTTPError):
        ours.post("/v1/operations", json=asked)


def get(url: str, path: str) -> int:
    try:
        return httpx2.get(url + path, trust_env=False).status_code
    except httpx2.HTTPError:
        return 0


def states(folder: Path) -> dict[str, str]:
    from ascertain import Ledger

    with Ledger(open_store(str(folder / "ascertain.db"))) as ledger:
        return {receipt.key: receipt.state.value for receipt in ledger.find()}


@pytest.mark.timeout(60)
def test_an_open_stream_holds_up_no_stop_and_ends_cleanly(tmp_path: Path) -> None:
    with process(tmp_path, "up", "--port", "0", "--json") as up:
        up.listening()
        with client(tmp_path, up.url) as ours, ours.stream("GET", "/v1/stream") as stream:
            parts = stream.iter_bytes()
            assert b"event: hello" in next(parts)
            began = time.monotonic()
            up.send()
            assert b"".join(parts).count(b"event: hello") == 0  # it ends, and not by an error
        assert up.ended() == 0
        assert time.monotonic() - began < 5
    assert not {"requests.cut", "request.broken"} & {e["event"] for e in up.events()}


@pytest.mark.parametrize("word", ["up", "serve"])
def test_without_the_extra_it_says_so_first_and_writes_nothing(tmp_path: Path, word: str) -> None:
    code = (
        "import sys; sys.modules.update(uvicorn=None, httpx2=None);"
        f"sys.argv = ['ascertain', {word!r}]; from ascertain.cli.main import main; main()"
    )
    if word == "serve":
        (tmp_path / "ascertain.toml").write_text(
            SHOP.format(target="https://shop.example"), "utf-8"
        )
    before = sorted(tmp_path.iterdir())
    ran = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False,
        env={"LC_ALL": "C.UTF-8", "PYTHONPATH": str(SRC)}, timeout=20,
    )  # fmt: skip
    assert ran.returncode == 2
    assert "ascertain[server]" in ran.stderr
    assert sorted(tmp_path.iterdir()) == before

"""A worker by itself tells how it stands: `ascertain work --listen`."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest

from ascertain import open_store, read_config
from ascertain.config.spaces import Spaces
from ascertain.runtime.accounts import Accounts
from ascertain.server.standing import Standing
from server.house import SHOP
from server.processes import client, process, until
from server.target import Shop

OPEN = "\n[server]\nmetrics_open = true\n"


def written(folder: Path, target: Shop, more: str = "") -> None:
    text = SHOP.format(target=target.url) + more
    (folder / "ascertain.toml").write_text(text, "utf-8")
    open_store(str(folder / "ascertain.db")).close()


@contextmanager
def standing(folder: Path, *, is_open: bool = False) -> Iterator[tuple[Standing, httpx2.Client]]:
    """One in this process."""
    store = open_store(str(folder / "ascertain.db"))
    spaces = Spaces(store, read_config(folder / "ascertain.toml"), ("default",))
    made = Standing("127.0.0.1", 0, store, spaces, is_open=is_open)
    made.begin()
    try:
        url = "http://{}:{}".format(*made.server_address[:2])
        with httpx2.Client(base_url=url, trust_env=False) as asking:
            yield made, asking
    finally:
        made.end()
        store.close()


def asked(asking: httpx2.Client, path: str, **headers: str) -> tuple[int, Any]:
    answer = asking.get(path, headers=headers)
    text = answer.text
    return answer.status_code, json.loads(text) if text.startswith("{") else text


@pytest.mark.timeout(60)
@pytest.mark.parametrize("lang", ["en", "zh"])
def test_a_worker_tells_how_it_stands(tmp_path: Path, target: Shop, lang: str) -> None:
    written(tmp_path, target, OPEN)
    command = ("work", "--every", "0.05", "--listen", "0", "--lang", lang)
    with process(tmp_path, *command) as work:
        assert work.popen.stdout is not None
        line = work.popen.stdout.readline()
        assert {"en": "Answers at 127.0.0.1:", "zh": "状态地址 127.0.0.1:"}[lang] in line
        port = "".join(c if c.isdigit() else " " for c in line.partition("127.0.0.1:")[2]).split()[
            0
        ]
        with httpx2.Client(base_url=f"http://127.0.0.1:{port}", trust_env=False) as asking:
            assert asked(asking, "/healthz") == (200, {"ok": True})
            assert asked(asking, "/readyz") == (200, {"ok": True})

            def swept() -> bool:
                status, text = asked(asking, "/metrics")
                assert status == 200
                assert "ascertain_store_read_seconds" in text
                return "ascertain_sweep_seconds_count" in text

            until(swept)
        work.send(signal.SIGTERM)
        assert work.ended() == 0


def test_metrics_ask_for_a_token_as_those_of_the_server_do(tmp_path: Path, target: Shop) -> None:
    written(tmp_path, target)
    with standing(tmp_path) as (made, asking):
        tokens = Accounts(made.store)
        right, wrong = (
            tokens.new_token("default", scopes, scopes, by="test").secret
            for scopes in ("metrics:read", "ops:read")
        )
        assert asked(asking, "/metrics")[0] == 401
        assert asked(asking, "/metrics", Authorization="Bearer asc_x_y")[0] == 401
        assert asked(asking, "/metrics", Authorization=f"Basic {right}")[0] == 401
        assert asked(asking, "/metrics", Authorization=f"Bearer {wrong}")[0] == 403
        assert asked(asking, "/metrics", Authorization=f"Bearer {right}")[0] == 200
        assert asked(asking, "/v1/operations")[0] == 404


def test_open_metrics_are_for_this_machine_and_through_no_proxy(
    tmp_path: Path, target: Shop
) -> None:
    written(tmp_path, target)
    with standing(tmp_path, is_open=True) as (_, asking):
        assert asked(asking, "/metrics")[0] == 200
        assert asked(asking, "/metrics", **{"X-Forwarded-For": "10.0.0.1"})[0] == 401


def test_it_is_not_ready_while_it_stops_or_its_store_does_not_answer(
    tmp_path: Path, target: Shop
) -> None:
    written(tmp_path, target)
    with standing(tmp_path) as (made, asking):
        made.stopping = True
        assert asked(asking, "/readyz") == (503, {"ok": False})
        made.stopping = False
        made.store.close()
        assert asked(asking, "/readyz") == (503, {"ok": False})
        assert asked(asking, "/healthz") == (200, {"ok": True})


def test_a_silent_client_holds_up_nobody_for_long(tmp_path: Path, target: Shop) -> None:
    written(tmp_path, target)
    with standing(tmp_path) as (made, asking), socket.socket() as silent:
        silent.connect(made.server_address[:2])
        assert asking.get("/healthz", timeout=15).status_code == 200


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_where_it_cannot_listen_it_does_not_begin(tmp_path: Path, target: Shop, lang: str) -> None:
    written(tmp_path, target)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        for listen, code in ((str(taken.getsockname()[1]), 4), ("nowhere", 2)):
            with process(tmp_path, "work", "--listen", listen, "--lang", lang) as work:
                assert work.ended() == code
                assert listen in work.log()


def test_without_it_a_worker_loads_no_server(tmp_path: Path, target: Shop) -> None:
    written(tmp_path, target)
    with client(tmp_path, "http://127.0.0.1:1"):
        pass
    code = (
        "import sys; from ascertain.cli.main import ascertain\n"
        "try: ascertain.main(['work', '--once'])\n"
        "except SystemExit: print('fastapi' in sys.modules, 'http.server' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines()[-1] == "False False"

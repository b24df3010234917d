"""A flow that waits is told when its operation has settled, itself by an operation."""

from __future__ import annotations

import json
import re
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from ascertain.core.books import Watch
from ascertain.core.errors import StoreUnavailable, UsageError
from ascertain.runtime.ledger import Driver
from ascertain.runtime.recovery import sweeping
from ascertain.runtime.watches import GONE, Watches
from server.house import SHOP, Home, house
from server.own import OWN
from server.target import Shop

DOCS = Path(__file__).parents[2] / "docs"
SERVER = '[server]\ncallback_hosts = ["127.0.0.1:{port}"]\n'


class Flow(ThreadingHTTPServer):
    """What waits for a callback; answers with a script of statuses, `drop` cuts after it came."""

    daemon_threads = True

    def __init__(self, port: int = 0) -> None:
        super().__init__(("127.0.0.1", port), _Handler)
        self.script: list[int | str] = []
        self.told: list[tuple[str, dict[str, Any]]] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/webhook-waiting/1?signature=s3cr3t"


class _Handler(BaseHTTPRequestHandler):
    server: Flow

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.told.append((self.headers["Idempotency-Key"], body))
        fate = self.server.script.pop(0) if self.server.script else 200
        if fate == "drop":
            self.close_connection = True
            self.connection.shutdown(socket.SHUT_RDWR)
            return
        self.send_response(int(fate))
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: Any) -> None:
        """Say nothing."""


@contextmanager
def waiting(port: int = 0) -> Iterator[Flow]:
    with Flow(port) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()


@pytest.fixture
def flow() -> Iterator[Flow]:
    with waiting() as server:
        yield server


@pytest.fixture
def home(tmp_path: Path, target: Shop, flow: Flow) -> Iterator[Home]:
    config = SERVER.format(port=flow.server_port)
    own = OWN.format(target=target.url, lease="30s").replace("[targets.shop]", "[targets.other]")
    own = own.replace('target = "shop"', 'target = "other"')
    with house(tmp_path, config + SHOP.format(target=target.url) + own) as running:
        yield running


def submit(home: Home, url: str, name: str = "A", action: str = "order") -> dict[str, Any]:
    answer = home.client.post("/v1/operations", json={
        "action": action, "input": {"name": name}, "callback": url, "wait": 0,
        "on_unresolved": "accept",
    })  # fmt: skip
    assert answer.status_code in (200, 202), answer.text
    found: dict[str, Any] = answer.json()
    return found


def work(home: Home) -> None:
    """What a worker does once: its chores, then what is due."""
    space = home.serving.space("default")
    space.watches.tell()
    report = Driver(space.engine).drive(sweeping(space.engine, 100))
    assert report.errors == []


def callbacks(home: Home) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = home.client.get(
        "/v1/operations", params={"action": "ascertain.callback"}
    ).json()["items"]
    return found


def until_told(home: Home, within: float = 10) -> dict[str, Any]:
    end = time.monotonic() + within
    while time.monotonic() < end:
        work(home)
        found = callbacks(home)
        if found and found[0]["state"] in ("done", "not_done"):
            return found[0]
        time.sleep(0.05)
    raise AssertionError(callbacks(home))


def test_every_flow_that_waits_for_the_same_operation_is_told(home: Home, flow: Flow) -> None:
    """A flow that is retried comes under the same key with an address of its own to resume."""
    made = submit(home, flow.url, action="own")
    assert submit(home, f"{flow.url}2", action="own")["id"] == made["id"]
    submit(home, f"{flow.url}2", action="own")
    answer = home.client.post("/v1/work/claim", json={"action": "own", "key": "A"}).json()
    home.client.post(f"/v1/work/{answer['attempt']}/finding", json={
        "operation": made["id"], "report": "r", "result": {"finding": "done", "ref": "7"},
    })  # fmt: skip
    for _ in range(3):
        work(home)
    assert len(flow.told) == len({key for key, _ in flow.told}) == 2
    assert {told["id"] for _, told in flow.told} == {made["id"]}


def test_a_waiting_flow_is_told_once_what_the_api_shows(home: Home, flow: Flow) -> None:
    made = submit(home, flow.url, action="own")
    work(home)
    assert flow.told == []
    answer = home.client.post("/v1/work/claim", json={"action": "own", "key": "A"}).json()
    home.client.post(f"/v1/work/{answer['attempt']}/finding", json={
        "operation": made["id"], "report": "r", "result": {"finding": "done", "ref": "7"},
    })  # fmt: skip
    for _ in range(3):
        work(home)
    [(key, told)] = flow.told
    assert len(key) == 26
    shown = home.client.get(f"/v1/operations/{made['id']}").json()
    same = {n: v for n, v in shown.items() if n not in ("reused", "warnings")}
    assert told == {"operation_id": made["id"], **same}
    assert (told["state"], told["ref"]) == ("done", "7")
    assert told["user_message"]["zh"] == "已完成。"
    [call] = callbacks(home)
    assert (call["state"], call["result"]) == ("done", {"resumed": True})


@pytest.mark.parametrize(("status", "resumed"), [(404, False), (409, False), (410, False)])
def test_where_nobody_waits_any_more_there_is_nothing_to_do(
    home: Home, flow: Flow, status: int, resumed: bool
) -> None:
    flow.script = [status]
    submit(home, flow.url)
    work(home)
    done = until_told(home)
    assert (done["state"], done["result"]) == ("done", {"resumed": resumed, "status": status})
    assert len(flow.told) == 1


def test_a_lost_answer_is_asked_again_and_finds_that_it_was_told(home: Home, flow: Flow) -> None:
    flow.script = ["drop", 409]
    submit(home, flow.url)
    done = until_told(home)
    assert (done["state"], done["attempts"]) == ("done", 2)
    assert len({key for key, _ in flow.told}) == 1
    assert flow.told[0][1] == flow.told[1][1]


def test_a_flow_that_is_down_for_a_while_is_told_later(tmp_path: Path, target: Shop) -> None:
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        port = held.getsockname()[1]
    config = SERVER.format(port=port) + SHOP.format(target=target.url)
    with house(tmp_path, config) as home:
        submit(home, f"http://127.0.0.1:{port}/resume")
        work(home)
        work(home)
        assert callbacks(home)[0]["state"] == "pending"  # it was never reached
        with waiting(port) as flow:
            assert until_told(home)["state"] == "done"
            assert len(flow.told) == 1


def test_a_refusal_is_seen_by_people_and_not_repeated(home: Home, flow: Flow) -> None:
    flow.script = [403]
    submit(home, flow.url)
    work(home)
    done = until_told(home)
    assert (done["state"], done["reason"]) == ("not_done", "rejected")
    assert len(flow.told) == 1


def test_a_crash_between_the_steps_tells_it_once(
    home: Home, flow: Flow, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Killed after the callback was recorded and before the watch was closed."""
    submit(home, flow.url)
    store, space = home.serving.store, home.serving.space("default")
    with monkeypatch.context() as patch:
        patch.setattr(store, "post", lambda _: (_ for _ in ()).throw(StoreUnavailable("killed")))
        with pytest.raises(StoreUnavailable):
            space.watches.tell()
    assert len(store.ask(Watch, "watch_ready", namespace="default", most=10)) == 1
    work(home)  # from the beginning
    work(home)
    assert len(flow.told) == len(callbacks(home)) == 1
    assert store.ask(Watch, "watch_ready", namespace="default", most=10) == []


def test_a_second_address_stands_beside_the_first(home: Home, flow: Flow) -> None:
    for _ in range(2):
        submit(home, flow.url, action="own")
        submit(home, flow.url + "&other=1", action="own")
    rows = [r["url"] for t, r in home.serving.store.rows() if t == "watch"]
    assert rows == [flow.url, flow.url + "&other=1"]


@pytest.mark.parametrize(
    "url",
    [
        "http://127.0.0.1:1/x", "http://169.254.169.254/latest", "https://evil.test/",
        "http://user:pw@{host}/x", "ftp://{host}/x", "http://{host}\\@evil.test/", "//{host}/x",
        "http://{host}.evil.test/x", "http://evil.test:80@{host}/", "http://{host}/\n", "x" * 3000,
        "http://[::1/x", "http://{host}:99999/x",
    ],
)  # fmt: skip
def test_only_declared_hosts_are_called(home: Home, flow: Flow, url: str) -> None:
    asked = url.format(host=f"127.0.0.1:{flow.server_port}") if "{host}" in url else url
    answer = home.client.post("/v1/operations", json={
        "action": "order", "input": {"name": "A"}, "callback": asked,
    })  # fmt: skip
    assert answer.status_code in (400, 422), answer.text
    assert "s3cr3t" not in answer.text
    assert home.client.get("/v1/operations").json()["items"] == []


@pytest.mark.parametrize(
    ("hosts", "url", "fine"),
    [
        (["n8n.acme.example"], "https://n8n.acme.example/webhook-waiting/1", True),
        (["n8n.acme.example"], "https://N8N.acme.example:443/x", True),
        (["n8n.acme.example"], "http://n8n.acme.example/x", False),
        (["n8n.acme.example"], "https://n8n.acme.example:8443/x", False),
        (["http://n8n.internal:5678"], "http://n8n.internal:5678/x", True),
        (["http://n8n.internal:5678"], "https://n8n.internal:5678/x", False),
        (["localhost:5678"], "http://localhost:5678/x", True),
        (["[::1]:5678"], "http://[::1]:5678/x", True),
    ],
)  # fmt: skip
def test_a_host_is_declared_with_its_port(hosts: list[str], url: str, fine: bool) -> None:
    watches = Watches(None, hosts)  # type: ignore[arg-type]
    if fine:
        watches.check(url)
        return
    with pytest.raises(UsageError, match="callback_hosts"):
        watches.check(url)


def test_a_callback_whose_host_is_no_longer_declared_is_not_sent(home: Home, flow: Flow) -> None:
    submit(home, flow.url)
    home.serving.space("default").watches.tell()
    definition = home.serving.space("default").engine.definition("ascertain.callback")
    [cell] = [c for c in definition.function.__closure__ if isinstance(c.cell_contents, Watches)]
    cell.cell_contents = Watches(home.serving.space("default").engine, ())
    report = Driver(home.serving.space("default").engine).drive(
        sweeping(home.serving.space("default").engine, 10)
    )
    assert report.errors == []
    [call] = callbacks(home)
    assert (call["state"], call["reason"]) == ("not_done", "invalid")
    assert flow.told == []


@pytest.mark.parametrize("page", ["callbacks.md", "zh/callbacks.md"])
def test_the_page_about_callbacks_is_true(tmp_path: Path, target: Shop, page: str) -> None:
    text = (DOCS / page).read_text("utf-8")
    config, body = (re.findall(rf"```{kind}\n(.*?)```", text, re.DOTALL)[0]
                    for kind in ("toml", "json"))  # fmt: skip
    assert [int(code) for code in re.findall(r"\d{3}", text.split("| 2xx")[1])[:3]] == list(GONE)
    with house(tmp_path, config + SHOP.format(target=target.url)) as home:
        asked = json.loads(body)
        asked["callback"] = asked["callback"].replace("…", "abc")
        assert home.client.post("/v1/operations", json=asked).status_code in (200, 202)
        [row] = [r for t, r in home.serving.store.rows() if t == "watch"]
        assert row["url"] == asked["callback"]

"""Real systems described in TOML alone: what goes wrong on the way, and one effect afterwards.

The help desk's description is the one of docs/howto/rest-target.md.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import ascertain
from ascertain import State
from ascertain.acceptance.faults import HttpFaultProxy
from ascertain.acceptance.systems import Radicale, Roundup, System

HERE = Path(__file__).parent
PAGE = HERE.parents[1] / "docs" / "howto" / "rest-target.md"
pytestmark = pytest.mark.timeout(60)


class Described:
    """A system behind a proxy that counts, in a folder with its `ascertain.toml`."""

    def __init__(self, folder: Path, system: System, proxy: HttpFaultProxy) -> None:
        self.folder, self.system, self.proxy = folder, system, proxy
        self.env: dict[str, str] = {}
        self.action = self.verb = ""
        self.order = f"A{uuid.uuid4().hex[:8]}"

    @property
    def inputs(self) -> dict[str, Any]:
        return {}

    def ledger(self) -> Any:
        return ascertain.from_config(self.folder / "ascertain.toml")

    def command(self, *args: str) -> list[str]:
        return [sys.executable, "-m", "ascertain.cli.main", *args]

    def start(self, *args: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            self.command(*args), cwd=self.folder, env=self.environ(), text=True,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip

    def run(self, *args: str) -> str:
        with self.start(*args) as process:
            out, err = process.communicate(timeout=30)
        assert process.returncode == 0, out + err
        return out

    def environ(self) -> dict[str, str]:
        gone = ("ASCERTAIN_STORE", "ASCERTAIN_APP", "ASCERTAIN_CONFIG")
        plain = {n: v for n, v in os.environ.items() if n not in gone}
        return plain | self.env | {"LC_ALL": "C.UTF-8", "PYTHONWARNINGS": "error"}

    def shell(self) -> list[str]:
        return ["do", self.action, *(f"{n}={v}" for n, v in self.inputs.items())]

    def sent(self) -> int:
        """How many effect requests the system may have seen."""
        return sum(e.method == self.verb and e.forwarded for e in self.proxy.log)


class Desk(Described):
    @property
    def inputs(self) -> dict[str, Any]:
        return {"order": self.order, "purpose": "call"}


class Tasks(Described):
    @property
    def inputs(self) -> dict[str, Any]:
        return {"case": self.order, "text": "Call; Lamp, Ltd"}


def as_its_own(proxy: HttpFaultProxy, roundup: Roundup) -> None:
    """Have the proxy give the origin that Roundup insists on, as one in front of it would."""
    plain: Any = proxy._server.RequestHandlerClass

    class AsItsOwn(plain):  # type: ignore[misc]
        def _ask_target(self, body: bytes) -> Any:
            del self.headers["Origin"]
            self.headers["Origin"] = roundup.url
            return super()._ask_target(body)

    proxy._server.RequestHandlerClass = AsItsOwn


@pytest.fixture
def desk(tmp_path: Path, roundup: Roundup, monkeypatch: pytest.MonkeyPatch) -> Iterator[Desk]:
    with HttpFaultProxy(roundup.port, set_host=True) as proxy:
        as_its_own(proxy, roundup)
        made = Desk(tmp_path, roundup, proxy)
        made.action, made.verb = "desk.ticket", "POST"
        made.env = {"DESK_URL": proxy.url, "DESK_PASSWORD": roundup.password}
        [toml] = re.findall(r"```toml\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)
        assert len(toml.splitlines()) < 30
        (tmp_path / "ascertain.toml").write_text(toml, "utf-8")
        yield from ready(made, monkeypatch)


@pytest.fixture
def tasks(tmp_path: Path, radicale: Radicale, monkeypatch: pytest.MonkeyPatch) -> Iterator[Tasks]:
    with HttpFaultProxy(radicale.port) as proxy:
        made = Tasks(tmp_path, radicale, proxy)
        made.action, made.verb = "crm.task", "PUT"
        made.env = {"CALDAV_URL": proxy.url}
        (tmp_path / "secrets").mkdir()
        (tmp_path / "secrets" / "crm").write_text(f"{radicale.password}\n")
        (tmp_path / "ascertain.toml").write_bytes((HERE / "caldav.toml").read_bytes())
        yield from ready(made, monkeypatch)


def ready(made: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    monkeypatch.delenv("ASCERTAIN_STORE", raising=False)
    for name, value in made.env.items():
        monkeypatch.setenv(name, value)
    yield made


@pytest.fixture(params=["desk", "tasks"])
def described(request: pytest.FixtureRequest) -> Described:
    found: Described = request.getfixturevalue(request.param)
    return found


def one_effect(described: Described, receipt: Any, sent: int) -> None:
    assert receipt.state is State.DONE
    marker = receipt.target_key
    [effect] = described.system.effects(marker)
    assert described.system.creations(marker) == 1
    assert receipt.ref == effect.id
    assert described.sent() == sent


def test_done_and_a_duplicate_sends_nothing(described: Described) -> None:
    with described.ledger() as ledger:
        action = ledger.actions[described.action]
        receipt = action(**described.inputs)
        one_effect(described, receipt, 1)
        again = action(**described.inputs)
    assert (again.id, again.reused) == (receipt.id, True)
    one_effect(described, again, 1)


def test_a_lost_answer_is_found_out(described: Described) -> None:
    described.proxy.drop_response(described.verb)
    with described.ledger() as ledger:
        receipt = ledger.actions[described.action](**described.inputs)
    replayed = described.action == "crm.task"  # its identity is protected: the same once more
    assert receipt.confirmed_by == ("replay" if replayed else "look_up")
    one_effect(described, receipt, 2 if replayed else 1)


def test_a_lost_request_is_sent_once(described: Described) -> None:
    with described.ledger() as ledger:
        action = ledger.actions[described.action]
        other = dict(described.inputs)
        other.update({"purpose": "visit"} if "purpose" in other else {"case": "known"})
        known = action.submit(**other)  # what a look-up must find before an absence counts
        assert known.state is State.DONE
        before = described.sent()
        described.proxy.drop_request(described.verb)
        receipt = action.submit(wait=15, **described.inputs)
    one_effect(described, receipt, before + 1)


def test_killed_after_the_effect_and_recovered_by_a_worker(described: Described) -> None:
    """The whole way from the shell, without a line of Python."""
    described.run("config", "check")
    described.run("store", "migrate")
    held = described.proxy.hold(30, described.verb)
    with described.start(*described.shell()) as process:
        assert held.landed.wait(20), "the effect happened"
        process.send_signal(signal.SIGKILL)
    held.release()
    # Only looked at: whoever asked for it again would recover it himself, once its lease is over.
    [left] = json.loads(described.run("op", "list", "--json"))["operations"]
    assert (left["action"], left["state"]) == (described.action, "running")
    assert described.order in left["key"]
    with described.start("work", "--every", "0.1", "--json") as worker:
        assert worker.stdout is not None
        events = map(json.loads, worker.stdout)
        recovered = next(e for e in events if e["event"] == "recovered")
        worker.send_signal(signal.SIGTERM)
        left = [e for e in events if e["event"] != "summary"]
    assert (worker.returncode, left) == (0, [])
    assert recovered["after"] == "done"
    with described.ledger() as ledger:
        found = ledger.get(recovered["operation"])
    one_effect(described, found, 2 if described.action == "crm.task" else 1)
    described.run(*described.shell())  # again, from the shell: nothing is sent
    one_effect(described, found, 2 if described.action == "crm.task" else 1)

"""The clients of the documentation pass the conformance suite of clients."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from ascertain.testing.client_bench import CONFIG, Bench, SuiteTarget, serving
from ascertain.testing.client_suite import ClientSuite
from server.house import house

CLIENTS = Path(__file__).parents[2] / "docs" / "clients"
NODE = shutil.which("node")
OLDEST = 18


def node_is_new_enough() -> bool:
    if NODE is None:
        return False
    said = subprocess.run([NODE, "--version"], capture_output=True, text=True, check=True)
    return int(said.stdout.lstrip("v").partition(".")[0]) >= OLDEST


class _Suite(ClientSuite):
    command: tuple[str, ...]

    @pytest.fixture
    def bench(self, tmp_path: Path) -> Iterator[Bench]:
        target = SuiteTarget()
        with (
            serving(target),
            house(tmp_path, CONFIG.format(target=target.url)) as home,
            Bench(self.command, home.url, home.secret, target).open() as bench,
        ):
            yield bench


@pytest.mark.timeout(60)
class TestPython(_Suite):
    command = (sys.executable, "-I", str(CLIENTS / "worker.py"))


@pytest.mark.timeout(60)
@pytest.mark.skipif(not node_is_new_enough(), reason=f"Node {OLDEST} or newer is not installed")
class TestNode(_Suite):
    command = (NODE or "node", str(CLIENTS / "worker.mjs"))


@pytest.mark.timeout(60)
@pytest.mark.parametrize("verb", ["claim", "due"])
def test_a_client_whose_claims_have_no_name_waits_for_the_lease(tmp_path: Path, verb: str) -> None:
    """As it is without: the attempt whose permit was lost is unknown, and another one acts."""
    bare = tmp_path / "bare.py"
    text = (CLIENTS / "worker.py").read_text("utf-8")
    bare.write_text(text.replace(', "claim": uuid.uuid4().hex}', "}"))
    target = SuiteTarget()
    with (
        serving(target),
        house(tmp_path, CONFIG.format(target=target.url)) as home,
        Bench((sys.executable, "-I", str(bare)), home.url, home.secret, target).open() as bench,
    ):
        ClientSuite().test_a_permit_that_never_arrived_is_acted_on_once(bench, verb)
        assert "claim" not in bench.proxy.said(verb)[0]


# --- clients that break a law are seen ---

BAD = [
    ("an error counts as not done", 'return {"finding": "unknown", "reason": type(error).__name__}',
     'return {"finding": "not_done", "kind": "transient"}',
     "test_a_lost_answer_is_looked_up_and_not_sent_again"),
    ("a success that nobody understands counts", 'json.loads(data)["id"]', "None",
     "test_an_answer_that_nobody_understands_is_unknown"),
    ("the deadline is not kept", "if clock() >= lease.deadline:", "if False:",
     "test_after_its_deadline_it_sends_nothing"),
    ("a key of its own", '"Idempotency-Key": permit["target_key"]',
     '"Idempotency-Key": uuid.uuid4().hex',
     "test_a_lost_answer_is_unknown_and_replayed_as_it_was"),
    ("other bytes", 'json.dumps({"name": name,', 'json.dumps({"name": name, "at": clock(),',
     "test_a_lost_answer_is_unknown_and_replayed_as_it_was"),
    ("the first of several is picked", "if len(refs) > 1:", "if False:",
     "test_several_are_reported_and_none_is_picked"),
    ("a report of another name each time", 'return ask_until_answered(f"/v1/work/{permit',
     'return renamed(f"/v1/work/{permit',
     "test_a_report_whose_answer_is_lost_is_sent_again_unchanged"),
    ("two claims of one name", '"claim": uuid.uuid4().hex}', '"claim": "the same name ever"}',
     "test_a_permit_that_never_arrived_is_acted_on_once"),
    ("the lease is not extended", "self._thread.start()", "pass",
     "test_it_extends_its_lease_while_it_waits"),
]  # fmt: skip
RENAMED = """
def renamed(path, body):
    while True:
        try:
            return ask(path, {**body, "report": uuid.uuid4().hex})
        except (OSError, http.client.HTTPException, ValueError):
            time.sleep(AGAIN)


"""


@pytest.mark.timeout(60)
@pytest.mark.parametrize(("old", "new", "test"), [b[1:] for b in BAD],
                         ids=[b[0] for b in BAD])  # fmt: skip
def test_a_client_that_breaks_a_law_is_seen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, old: str, new: str, test: str
) -> None:
    text = (CLIENTS / "worker.py").read_text("utf-8")
    assert text.count(old) >= 1
    bad = tmp_path / "bad.py"
    bad.write_text(text.replace(old, new).replace("class Lease:", RENAMED + "class Lease:"))
    monkeypatch.setattr("ascertain.testing.client_bench.WITHIN", 5.0)
    target = SuiteTarget()
    asked = {"verb": "due"} if "never_arrived" in test else {}
    with (
        serving(target),
        house(tmp_path, CONFIG.format(target=target.url)) as home,
        Bench((sys.executable, "-I", str(bad)), home.url, home.secret, target).open() as bench,
        pytest.raises((AssertionError, subprocess.TimeoutExpired)),
    ):
        getattr(ClientSuite(), test)(bench, **asked)

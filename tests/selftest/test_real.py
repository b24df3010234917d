"""Two real systems tried by the self-test: Radicale, described in TOML, and NATS JetStream."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import ascertain
from ascertain import selftest
from ascertain.acceptance import actions
from ascertain.acceptance.systems import Nats, Radicale

CALDAV = Path(__file__).parents[1] / "acceptance" / "caldav.toml"
REMOVE = """
[[contract]]
id = "caldav.task.delete"
ok = { when = "200|204" }
undo = "none"

[actions."crm.remove"]
target = "crm"
contract = "caldav.task.delete"
key = "{ref}"
owner = "anna"
inputs = { ref = {} }
timeout = "2s"
request = { method = "DELETE", url = "/crm/tasks/{ref}.ics" }
"""
pytestmark = pytest.mark.timeout(60)


@pytest.fixture
def radicale(tmp_path: Path) -> Iterator[Radicale]:
    with Radicale(tmp_path / "radicale") as system:
        yield system


@pytest.fixture
def tasks(radicale: Radicale, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.delenv("ASCERTAIN_STORE", raising=False)
    monkeypatch.setenv("CALDAV_URL", radicale.url)
    (tmp_path / "secrets").mkdir()
    (tmp_path / "secrets" / "crm").write_text(f"{radicale.password}\n")
    (tmp_path / "ascertain.toml").write_text(CALDAV.read_text("utf-8") + REMOVE, "utf-8")
    return tmp_path / "ascertain.toml"


def test_a_caldav_server_holds_what_its_contract_says(tasks: Path, radicale: Radicale) -> None:
    with ascertain.from_config(tasks) as ledger:
        given = {"case": "T-1", "text": "Call"}
        found = selftest.run(ledger, "crm.task", given, sandbox=True, undo="crm.remove")
    assert found.failed == ()
    assert found.stamped
    tried = {"repeat.answer", "repeat.exists", "repeat.atomic", "lookup", "lookup.by", "undo"}
    assert tried <= set(found.held)
    assert found.protection == found.without == ("identified", "identified")
    assert len(found.things) == found.plan.creates == 4
    for thing in found.things:
        assert radicale.creations(thing.target_key) == 1
        assert radicale.effects(thing.target_key) == []
    assert found.left == ()


def test_without_its_condition_a_caldav_server_overwrites(tasks: Path, radicale: Radicale) -> None:
    """The request that is described leaves the header out: the contract does not hold."""
    tasks.write_text(tasks.read_text("utf-8").replace('If-None-Match = "*", ', ""), "utf-8")
    with ascertain.from_config(tasks) as ledger:
        given = {"case": "T-1", "text": "Call"}
        found = selftest.run(ledger, "crm.task", given, sandbox=True, undo="crm.remove")
    assert found.failed == ("repeat.exists",)  # the second is answered 2xx, not 412
    assert (found.protection[0], found.without[0]) == ("identified", "searchable")
    assert not [t for t in found.things if radicale.effects(t.target_key)]


def test_without_permission_the_look_up_is_named(tasks: Path) -> None:
    """Writing fails, too, with these credentials: nothing is claimed of what was not tried."""
    (tasks.parent / "secrets" / "crm").write_text("wrong\n")
    with ascertain.from_config(tasks) as ledger:
        given = {"case": "T-1", "text": "Call"}
        found = selftest.run(ledger, "crm.task", given, sandbox=True, undo="crm.remove")
    assert found.held == ()
    assert not found.stamped
    assert found.things == ()  # 401 is listed as before processing: nothing was made


def test_nats_forgets_after_its_window_and_not_before(tmp_path: Path) -> None:
    with (
        Nats(tmp_path / "nats") as nats,
        ascertain.open(tmp_path / "ledger.db") as ledger,
    ):
        place: dict[str, Any] = {
            "port": nats.port, "user": nats.user, "password": nats.password,
            "stream": nats.stream, "window": nats.window,
        }  # fmt: skip
        actions.declare(ledger, actions.Knobs(places={"message": place}))
        given = {"case": "T-1", "text": "Paid"}
        with pytest.raises(ascertain.Refused, match="--yes"):  # a message cannot be taken back
            selftest.run(ledger, "events.publish", given, sandbox=True)
        found = selftest.run(ledger, "events.publish", given, sandbox=True, yes=True)
        assert found.failed == ()
        assert {"repeat.answer", "repeat.atomic", "repeat.keeps", "lookup"} <= set(found.held)
        assert ("forgotten", {}) in found.notes
        assert found.stamped
        for thing in found.left:
            effects = nats.effects(thing.target_key)
            assert {e.id for e in effects} == set(thing.refs)
            assert len(effects) == (2 if thing.probe == "window" else 1)
        assert sum(len(t.refs) for t in found.left) == found.plan.creates

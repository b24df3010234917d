"""`flow` in `[[hooks.NAME.map]]`: from a signed delivery to the effects of a flow, whose code is an
application's and not the server's."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from ascertain import Ledger, StoreUnavailable, from_config
from ascertain.runtime.recovery import taking_in
from server.hooked import body, effects, event, hooked, send, settled
from server.house import Home
from server.processes import process, until
from server.signing import SECRET, b64, mac, shopify
from server.target import Shop

CONFIG = """
[hooks.shop]
kind = "shopify"
secrets = [{ env = "SECRET" }]
[[hooks.shop.map]]
when = "topic == 'orders/paid'"
flow = "ship"
input = { number = "body.number", lines = "body.lines" }
"""
APP = '''
import ascertain

ledger = ascertain.from_config("ascertain.toml")


@ledger.flow("ship", key="{number}", longest_delay="100ms")
def ship(*, number, lines):
    """Order every line, and say how many there are."""
    order = ledger.actions["order"]
    return [order(name=f"{number}-{line}", wait=0).ref for line in lines]
'''


@pytest.fixture
def home(tmp_path: Path, target: Shop, monkeypatch: pytest.MonkeyPatch) -> Iterator[Home]:
    with hooked(tmp_path, target, monkeypatch, CONFIG) as running:
        yield running


def paid(home: Home, ident: str, **fields: Any) -> None:
    data = body(**fields)
    headers = shopify(data, ident, topic="orders/paid")
    assert send(home, "/hooks/shop", data, headers).status_code == 200


@contextmanager
def application(folder: Path, *, delay: str = "100ms") -> Iterator[Ledger]:
    """The flow's code on a ledger of its own, as an application opens it."""
    with from_config(folder / "ascertain.toml", store=folder / "ascertain.db") as ledger:

        @ledger.flow("ship", key="{number}", longest_delay=delay)
        def ship(*, number, lines):
            return [ledger.actions["order"](name=f"{number}-{n}", wait=0).ref for n in lines]

        yield ledger


def taken(home: Home, ledger: Ledger, ident: str) -> Any:
    """An event once the application has taken it up; the server, which cannot, puts it off."""
    until(lambda: (taking_in(ledger.engine), event(home, "shop", ident)["state"] != "received")[1])
    return event(home, "shop", ident)


@pytest.mark.timeout(60)
def test_a_signed_delivery_is_played_to_its_effects(
    home: Home, tmp_path: Path, target: Shop
) -> None:
    (tmp_path / "app.py").write_text(APP, "utf-8")
    target.fates["7-b"] = ["drop"]  # its answer is lost: the flow runs again, and does what is left
    paid(home, "e1", number=7, lines=["a", "b"])
    where = {"ASCERTAIN_STORE": str(tmp_path / "ascertain.db"), "PYTHONSAFEPATH": ""}
    with process(tmp_path, "work", "--app", "app:ledger", "--every", "0.05", env=where) as work:
        made = until(lambda: event(home, "shop", "e1")["operations"], within=30)
        assert [(m["action"], m["key"]) for m in made] == [("ship", "7")]

        def ship() -> Any:
            return home.client.get(f"/v1/operations/{made[0]['operation']}").json()

        until(lambda: ship()["state"] == "done", within=30)
        paid(home, "e1", number=7, lines=["a", "b"])  # the same event, delivered again
        paid(home, "e2", number=7, lines=["a", "b"])  # another event about the same order
        again = until(lambda: event(home, "shop", "e2")["operations"], within=30)
        assert (again[0]["operation"], again[0]["shared"]) == (made[0]["operation"], True)
        work.send()
        assert work.ended() in (0, 3)
    assert effects(target) == {"7-a": 1, "7-b": 1}
    assert len(ship()["result"]) == len({*ship()["result"]}) == 2


def test_without_its_code_an_event_waits_and_says_for_what(home: Home, tmp_path: Path) -> None:
    paid(home, "e1", number=7, lines=[])
    waits = until(lambda: (found := event(home, "shop", "e1"))["why"] and found)
    assert (waits["state"], waits["operations"]) == ("received", [])
    assert "the flow 'ship' is code" in waits["why"]
    with application(tmp_path) as ledger:
        assert taken(home, ledger, "e1")["state"] == "processed"
        assert ledger.recover().worked


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        pytest.param({"lines": []}, "number", id="what its key is made of is missing"),
        pytest.param({"number": 7}, "lines", id="an input is missing"),
        pytest.param({"number": 7.5, "lines": []}, "number", id="it cannot be a key"),
    ],
)
def test_what_a_flow_cannot_take_fails_with_the_reason(
    home: Home, tmp_path: Path, target: Shop, fields: dict[str, Any], says: str
) -> None:
    paid(home, "e1", **fields)
    with application(tmp_path) as ledger:
        found = taken(home, ledger, "e1")
        ledger.recover()
        assert ledger.find() == []
    assert (found["state"], says in found["why"]) == ("failed", True), found
    assert effects(target) == {}


def test_the_same_key_with_another_input_fails_and_changes_nothing(
    home: Home, tmp_path: Path, target: Shop
) -> None:
    paid(home, "e1", number=7, lines=["a"])
    with application(tmp_path) as ledger:
        taken(home, ledger, "e1")
        paid(home, "e2", number=7, lines=["b"])
        found = taken(home, ledger, "e2")
        ledger.recover()
    assert (found["state"], "lines" in found["why"]) == ("failed", True)  # law 9
    assert effects(target) == {"7-a": 1}


def test_what_is_for_no_map_is_ignored_by_the_server_itself(home: Home) -> None:
    data = body(number=7, lines=[])
    headers = shopify(data, "e1", topic="orders/create")
    assert send(home, "/hooks/shop", data, headers).status_code == 200
    assert settled(home, "shop", "e1")["state"] == "ignored"


def test_a_worker_thread_of_an_application_takes_events_up(
    home: Home, tmp_path: Path, target: Shop
) -> None:
    paid(home, "e1", number=7, lines=["a"])
    with application(tmp_path) as ledger:
        ledger.start_worker(every=0.05)
        until(lambda: effects(target) == {"7-a": 1})
        assert event(home, "shop", "e1")["state"] == "processed"


def test_a_store_that_fails_ends_no_worker_of_an_application(
    home: Home, tmp_path: Path, target: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    paid(home, "e1", number=7, lines=["a"])

    def down(*_: Any, **__: Any) -> Any:
        raise StoreUnavailable("the database is being restarted")

    with application(tmp_path) as ledger:
        with monkeypatch.context() as broken:
            broken.setattr(ledger.store, "ask", down)
            assert taking_in(ledger.engine) == 0
            assert "restarted" in " ".join(ledger.sweep().errors), "which the worker tells"
        assert taken(home, ledger, "e1")["state"] == "processed"


def test_a_shopify_flow_action_waits_for_the_code_of_a_flow(
    tmp_path: Path, target: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server, which has it not, said that it failed, and nobody took it up."""
    mapped = CONFIG.replace("orders/paid", "flow.action").replace("body.", "body.properties.")
    data = body(action_run_id="run-1", properties={"number": 7, "lines": ["a"]}, handle="x")
    headers = {"X-Shopify-Hmac-Sha256": b64(mac(SECRET, data))}

    def asked() -> Any:
        answer = send(home, "/hooks/shop/flow-action", data, headers)
        assert answer.status_code == (200 if answer.json()["done"] else 202), answer.text
        return answer.json()

    with hooked(tmp_path, target, monkeypatch, mapped) as home, application(tmp_path) as ledger:
        assert not asked()["done"]
        assert "the flow 'ship' is code" in event(home, "shop", "run-1")["why"]
        assert taken(home, ledger, "run-1")["state"] == "processed"
        [operation] = asked()["operations"]
        until(lambda: (ledger.recover(), asked()["done"])[1])
        assert ledger.get(operation).state == "done"
    assert effects(target) == {"7-a": 1}


def test_a_shopify_flow_action_that_its_flow_cannot_take_says_so(
    tmp_path: Path, target: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    mapped = CONFIG.replace("orders/paid", "flow.action").replace("body.", "body.properties.")
    data = body(action_run_id="run-1", properties={"lines": []}, handle="x")
    headers = {"X-Shopify-Hmac-Sha256": b64(mac(SECRET, data))}
    with hooked(tmp_path, target, monkeypatch, mapped) as home, application(tmp_path) as ledger:
        assert send(home, "/hooks/shop/flow-action", data, headers).status_code == 202
        assert taken(home, ledger, "run-1")["state"] == "failed"
        answer = send(home, "/hooks/shop/flow-action", data, headers)
    assert (answer.status_code, "number" in answer.json()["detail"]) == (422, True), answer.text


def test_of_several_applications_one_takes_an_event_up(
    home: Home, tmp_path: Path, target: Shop
) -> None:
    paid(home, "e1", number=7, lines=["a", "b"])
    with application(tmp_path) as one, application(tmp_path) as two:
        threads = [threading.Thread(target=taken, args=(home, led, "e1")) for led in (one, two)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        one.recover()
        two.recover()
    assert effects(target) == {"7-a": 1, "7-b": 1}


def test_a_map_with_a_flow_is_tried_without_its_code(home: Home) -> None:
    pasted = {"id": "e1", "topic": "orders/paid", "body": {"number": 7, "lines": []}}
    answer = home.client.post("/v1/hooks/shop/test-mapping", json={"events": [pasted]})
    [found] = answer.json()["items"]
    [plan] = found["operations"] if "operations" in found else found["plans"]
    assert (plan["action"], plan["input"], plan["wrong"]) == (
        "ship", {"number": 7, "lines": []}, "",
    ), json.dumps(found)  # fmt: skip

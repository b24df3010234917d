"""Webhooks over HTTP: every kind of sender, one event, its deliveries, one effect."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from server import signing
from server.hooked import HOOKS, OTHERS, body, effects, event, hooked, send, settled, worked
from server.house import Home
from server.target import Shop

PAID = body(id=820982911946154508, name="#1001", total_price="19.00")


@pytest.fixture
def shop(tmp_path: Path, target: Shop, monkeypatch: pytest.MonkeyPatch) -> Iterator[Home]:
    with hooked(tmp_path, target, monkeypatch) as home:
        yield home


@pytest.fixture
def all_kinds(tmp_path: Path, target: Shop, monkeypatch: pytest.MonkeyPatch) -> Iterator[Home]:
    with hooked(tmp_path, target, monkeypatch, OTHERS) as home:
        yield home


# --- one event, from its delivery to its effect ---------------------------------------------------


def test_an_event_leads_to_its_operation_once(shop: Home, target: Shop) -> None:
    first = send(shop, "/hooks/shop", PAID, signing.shopify(PAID, "e1", "d1"))
    again = send(shop, "/hooks/shop", PAID, signing.shopify(PAID, "e1", "d1"))
    other = send(shop, "/hooks/shop", PAID, signing.shopify(PAID, "e1", "d2"))
    assert [a.status_code for a in (first, again, other)] == [200, 200, 200]
    assert [a.json()["new"] for a in (first, again, other)] == [True, False, False]
    found = settled(shop, "shop", "e1")
    worked(shop)
    assert effects(target) == {"#1001": 1}
    assert found["state"] == "processed"
    assert found["signature"] == "shopify, secret 1"
    assert (found["deliveries"], found["arrivals"]) == (2, 3)
    assert [(d["id"], d["arrivals"]) for d in found["arrived"]] == [("d1", 2), ("d2", 1)]
    [made] = found["operations"]
    operation = shop.client.get(f"/v1/operations/{made['operation']}").json()
    assert (operation["key"], operation["state"]) == (made["key"], "done")
    assert found["headers"]["x-shopify-shop-domain"] == "acme.myshopify.com"
    assert not [n for n in found["headers"] if "hmac" in n]
    assert json.loads(found["body"]) == json.loads(PAID)


def test_two_events_may_mean_one_operation(shop: Home, target: Shop) -> None:
    for ident in ("e1", "e2"):
        send(shop, "/hooks/shop", PAID, signing.shopify(PAID, ident))
        settled(shop, "shop", ident)
    worked(shop)
    [first], [second] = (event(shop, "shop", i)["operations"] for i in ("e1", "e2"))
    assert first["operation"] == second["operation"]
    assert (first["shared"], second["shared"]) == (False, True)
    assert effects(target) == {"#1001": 1}


def test_what_no_map_is_for_is_ignored_and_says_why(shop: Home, target: Shop) -> None:
    send(shop, "/hooks/shop", PAID, signing.shopify(PAID, "e1", topic="orders/create"))
    found = settled(shop, "shop", "e1")
    assert found["state"] == "ignored"
    assert "orders/create" in found["why"]
    worked(shop)
    assert effects(target) == {}


def test_what_cannot_be_mapped_fails_visibly_and_can_be_processed_again(
    shop: Home, target: Shop
) -> None:
    odd = body(id=1, name=None)
    send(shop, "/hooks/shop", odd, signing.shopify(odd, "e1"))
    found = settled(shop, "shop", "e1")
    assert (found["state"], found["operations"]) == ("failed", [])
    assert "name" in found["why"]
    alarms = shop.serving.space("default").ledger.alarms()
    assert [(a.kind, a.action, a.key) for a in alarms] == [("event", "shop", "e1")]
    again = shop.client.post("/v1/events/shop/e1/process")
    assert again.status_code == 200
    assert settled(shop, "shop", "e1")["state"] == "failed"  # the map is the same
    assert shop.client.post("/v1/events/shop/e2/process").status_code == 404


# --- signatures -----------------------------------------------------------------------------------


def test_a_wrong_signature_is_401_and_leaves_only_a_count(shop: Home) -> None:
    wrong = signing.shopify(PAID, "e1", secret="another")
    answer = send(shop, "/hooks/shop", PAID, wrong)
    assert answer.status_code == 401
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.json()["code"] == "signature_wrong"
    assert send(shop, "/hooks/shop", PAID, {}).status_code == 401
    assert shop.client.get("/v1/events").json() == {"items": [], "next": None}
    [hook] = shop.client.get("/v1/hooks").json()["items"]
    assert hook["counts"] == {"signature_wrong": 2}


def test_an_old_secret_still_verifies_while_it_is_declared(shop: Home) -> None:
    answer = send(shop, "/hooks/shop", PAID, signing.shopify(PAID, "e1", secret="the-old-one"))
    assert answer.status_code == 200
    assert event(shop, "shop", "e1")["signature"] == "shopify, secret 2"


def test_a_secret_is_exchanged_without_a_restart(
    tmp_path: Path, target: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "secret"
    file.write_text("first\n", "utf-8")
    config = HOOKS.replace('{ env = "SECRET" }, { env = "OLD_SECRET" }', '{ file = "secret" }')
    monkeypatch.setattr("ascertain.runtime.hooks.READ_AGAIN_WRONG", 0.0)
    with hooked(tmp_path, target, monkeypatch, config) as home:
        signed = [signing.shopify(PAID, f"e-{s}", secret=s) for s in ("first", "second")]
        assert send(home, "/hooks/shop", PAID, signed[0]).status_code == 200
        assert send(home, "/hooks/shop", PAID, signed[1]).status_code == 401
        file.write_text("second\n", "utf-8")
        assert send(home, "/hooks/shop", PAID, signed[1]).status_code == 200
        assert send(home, "/hooks/shop", PAID, signed[0]).status_code == 401


def test_without_any_secret_nothing_is_taken(shop: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SECRET")
    monkeypatch.delenv("OLD_SECRET")
    answer = send(shop, "/hooks/shop", PAID, signing.shopify(PAID, "e1"))
    assert (answer.status_code, answer.json()["code"]) == (503, "secret_missing")
    assert "SECRET is not set" in answer.json()["detail"]


@pytest.mark.parametrize(
    ("path", "signed"),
    [
        ("standard", lambda b, at: signing.standard(b, "m1", at=at)),
        ("stripe", lambda b, at: signing.stripe(b, at=at)),
        ("chat", lambda b, at: signing.slack(b, at=at)),
        ("lark", lambda b, at: signing.feishu(b, at=at)),
        ("cms", lambda b, at: signing.contentful(b, "i1", "/hooks/cms", at=at)),
        ("own", lambda b, at: {"X-Sign": signing.mac(signing.SECRET, at, ".", b).hex(),
                               "X-Time": at}),
    ],
)  # fmt: skip
def test_an_old_delivery_sent_again_is_refused(all_kinds: Home, path: str, signed: Any) -> None:
    data = body(id="evt_1", event_id="E1", number="n1")
    answer = send(all_kinds, f"/hooks/{path}", data, signed(data, signing.now(-400)))
    assert (answer.status_code, answer.json()["code"]) == (401, "signature_old")
    assert (
        send(all_kinds, f"/hooks/{path}", data, signed(data, signing.now(400))).status_code == 401
    )
    assert all_kinds.client.get("/v1/events").json()["items"] == []


# --- each kind: its event id, its delivery id, its subscription -----------------------------------

CHAT = body(type="event_callback", event_id="Ev1", api_app_id="A1",
            event={"type": "app_mention", "text": "hello"})  # fmt: skip
LARK = {"schema": "2.0", "header": {"event_id": "f1", "event_type": "im.message", "app_id": "cli",
        "token": signing.SECRET}, "event": {"text": "hello"}}  # fmt: skip
WOO = body(id=12, date_modified_gmt="2026-11-30T10:00:00")
PUSH = body(after="c0ffee", repository={"full_name": "acme/site"})
ENTRY = body(sys={"id": "entry-1"})
SEALED = signing.sealed(LARK)
KINDS: dict[str, Any] = {
    "standard": (body(type="order.paid", name="A"), lambda b: signing.standard(b, "m1"),
                 "m1", "m1", "order.paid", 0, "A"),
    "stripe": (body(id="evt_1", type="charge.succeeded", data={"object": {"id": "ch_1"}}),
               signing.stripe, "evt_1", "evt_1", "charge.succeeded", 0, "ch_1"),
    "woo": (WOO, lambda b: signing.woocommerce(b, "w1", subscription="7"),
            "order.updated/12/2026-11-30T10:00:00", "w1", "order.updated", 1, "order-12"),
    "code": (PUSH, lambda b: signing.github(b, "g1", hook="5"), "push/acme/site/c0ffee", "g1/5",
             "push", 1, "c0ffee"),
    "chat": (CHAT, lambda b: signing.slack(b, retry=2), "Ev1", "Ev1/2", "app_mention", 1, "hello"),
    "lark": (SEALED, signing.feishu, "f1", "f1", "im.message", 1, "hello"),
    "larkplain": (json.dumps(LARK).encode(), lambda _: {}, "f1", "f1", "im.message", 1, "hello"),
    "cms": (ENTRY, lambda b: signing.contentful(b, "i1", "/hooks/cms"), "i1", "i1",
            "ContentManagement.Entry.publish", 0, "entry-1"),
    "own": (body(number="n1"), lambda b: {
        "X-Time": signing.now(), "X-Sign": signing.mac(signing.SECRET, signing.now(), ".", b).hex(),
    }, "n1", "n1", "", 0, "n1"),
}  # fmt: skip


@pytest.mark.parametrize("name", KINDS)
def test_a_delivery_of_each_kind(all_kinds: Home, target: Shop, name: str) -> None:
    data, signed, ident, delivery, topic, subscriptions, made = KINDS[name]
    for new in (True, False):
        answer = send(all_kinds, f"/hooks/{name}", data, signed(data))
        assert answer.status_code == 200, answer.text
        assert answer.json() == {"event": ident, "received": True, "new": new}
    found = settled(all_kinds, name, ident)
    assert found["state"] == "processed", found["why"]
    assert (found["topic"], found["subscriptions"]) == (topic, subscriptions)
    assert [(d["id"], d["arrivals"]) for d in found["arrived"]] == [(delivery, 2)]
    worked(all_kinds)
    assert effects(target) == {made: 1}


def test_an_unsigned_hook_needs_the_secret_of_its_query(all_kinds: Home, target: Shop) -> None:
    data = body(number="n1")
    assert send(all_kinds, "/hooks/bare", data, {}).status_code == 401
    assert send(all_kinds, "/hooks/bare?secret=wrong", data, {}).status_code == 401
    assert send(all_kinds, f"/hooks/bare?secret={signing.SECRET}", data, {}).status_code == 200
    assert settled(all_kinds, "bare", "n1")["state"] == "processed"


def test_slack_asks_whether_we_are_there(all_kinds: Home) -> None:
    data = body(type="url_verification", challenge="3eZbrw1a")
    assert send(all_kinds, "/hooks/chat", data, {}).status_code == 401
    answer = send(all_kinds, "/hooks/chat", data, signing.slack(data))
    assert (answer.status_code, answer.json()) == (200, {"challenge": "3eZbrw1a"})
    assert all_kinds.client.get("/v1/events").json()["items"] == []


def test_feishu_asks_whether_we_are_there(all_kinds: Home) -> None:
    asked = {"type": "url_verification", "challenge": "ajls384", "token": signing.SECRET}
    for path, data in (("lark", signing.sealed(asked)), ("larkplain", json.dumps(asked).encode())):
        answer = send(all_kinds, f"/hooks/{path}", data, {})
        assert (answer.status_code, answer.json()) == (200, {"challenge": "ajls384"}), path
    other = {**asked, "token": "another"}
    for path, data in (
        ("lark", signing.sealed(asked, secret="another")),
        ("lark", json.dumps(asked).encode()),  # a plain one must be signed
        ("larkplain", json.dumps(other).encode()),
    ):
        assert send(all_kinds, f"/hooks/{path}", data, {}).status_code == 401, path


def test_woocommerce_pings_without_a_signature(all_kinds: Home) -> None:
    form = {"Content-Type": "application/x-www-form-urlencoded"}
    assert send(all_kinds, "/hooks/woo", b"webhook_id=7", form).status_code == 200
    assert send(all_kinds, "/hooks/woo", b"webhook_id=7&id=1", form).status_code == 401
    assert all_kinds.client.get("/v1/events").json()["items"] == []


def test_a_form_with_json_in_its_payload(all_kinds: Home) -> None:
    from urllib.parse import urlencode

    data = urlencode({"payload": PUSH.decode()}).encode()
    headers = signing.github(data, "g1") | {"Content-Type": "application/x-www-form-urlencoded"}
    assert send(all_kinds, "/hooks/code", data, headers).status_code == 200
    assert settled(all_kinds, "code", "push/acme/site/c0ffee")["state"] == "processed"


# --- the test entry, and events that are handed in ------------------------------------------------


def test_the_test_entry_shows_and_never_acts(shop: Home, target: Shop) -> None:
    answer = send(shop, "/hooks/shop/test", PAID, signing.shopify(PAID, "e1"))
    assert answer.status_code == 200
    assert send(shop, "/hooks/shop/test", PAID, {}).status_code == 401
    found = event(shop, "shop.test", "e1")
    assert (found["state"], found["operations"]) == ("shown", [])
    told = shop.client.post("/v1/events/shop.test/e1/evaluate").json()
    assert [(p["action"], p["key"], p["exists"]) for p in told["plans"]] == [
        ("order", "%231001", None)
    ]
    given = {"source": "shop.test", "id": "e2", "topic": "orders/paid", "data": {"name": "B"}}
    assert shop.client.post("/v1/events", json=given).status_code == 200
    assert event(shop, "shop.test", "e2")["state"] == "shown"
    assert shop.serving.intake.process() == 0
    worked(shop)
    assert effects(target) == {}
    # the same event at the production entry is another event there
    assert send(shop, "/hooks/shop", PAID, signing.shopify(PAID, "e1")).json()["new"]
    assert settled(shop, "shop", "e1")["state"] == "processed"


def test_a_hook_without_a_test_entry_has_none(all_kinds: Home) -> None:
    assert send(all_kinds, "/hooks/stripe/test", b"{}", signing.stripe(b"{}")).status_code == 404
    assert send(all_kinds, "/hooks/nobody", b"{}", {}).status_code == 404
    assert all_kinds.as_token(None).get("/hooks/stripe").status_code == 405


def test_an_event_is_handed_in_with_a_token(all_kinds: Home, target: Shop) -> None:
    given = {"source": "inside", "id": "x1", "topic": "made", "data": {"name": "A"}}
    writer = all_kinds.as_token(all_kinds.token("events:write"))
    first, again = (writer.post("/v1/events", json=given) for _ in range(2))
    assert (first.json()["new"], again.json()["new"]) == (True, False)
    assert settled(all_kinds, "inside", "x1")["state"] == "processed"
    worked(all_kinds)
    assert effects(target) == {"A": 1}
    reader = all_kinds.as_token(all_kinds.token("ops:read"))
    assert reader.post("/v1/events", json=given).status_code == 403
    for source in ("no", "inside.test"):
        assert writer.post("/v1/events", json={**given, "source": source}).status_code == 404
    assert writer.post("/v1/events", json={**given, "id": ""}).status_code == 422
    assert send(all_kinds, "/hooks/inside", b"{}", {}).status_code == 401


# --- Shopify Flow ---------------------------------------------------------------------------------

FLOW = """
[hooks.flow]
kind = "shopify"
secrets = [{ env = "SECRET" }]
[[hooks.flow.map]]
when = "topic == 'flow.action'"
action = "order"
input = { name = "id", note = "body.properties.note" }
"""
RUN = body(action_run_id="run-1", handle="place-order", properties={"note": "red"})


def flow(home: Home, data: bytes = RUN, secret: str = signing.SECRET) -> Any:
    headers = {"X-Shopify-Hmac-Sha256": signing.b64(signing.mac(secret, data))}
    return send(home, "/hooks/flow/flow-action", data, headers)


def test_a_flow_action_is_done_before_it_is_answered(
    tmp_path: Path, target: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    with hooked(tmp_path, target, monkeypatch, FLOW) as home:
        first, again = flow(home), flow(home)
        assert [a.status_code for a in (first, again)] == [200, 200], first.text
        assert first.json() == again.json()
        assert first.json()["done"]
        found = event(home, "flow", "run-1")
        assert (found["state"], found["arrivals"]) == ("processed", 2)
        assert flow(home, secret="another").status_code == 401
        assert effects(target) == {"run-1": 1}
        assert send(home, "/hooks/flow/flow-action", b"{}", {}).status_code == 401


def test_a_flow_action_that_is_not_settled_is_asked_again(
    tmp_path: Path, target: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ascertain.server.routes.hooks.FLOW_WITHIN", 1.2)
    target.script += ["busy"] * 50
    with hooked(tmp_path, target, monkeypatch, FLOW) as home:
        first = flow(home)
        assert (first.status_code, first.json()["done"]) == (202, False)
        target.script.clear()
        until = 50
        while (answer := flow(home)).status_code == 202:
            until -= 1
            assert until, "it never settled"
        assert answer.json()["done"]
        assert effects(target) == {"run-1": 1}


def test_a_flow_action_that_cannot_be_done_says_so(
    tmp_path: Path, target: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    with hooked(tmp_path, target, monkeypatch, FLOW) as home:
        target.script += ["bad"]
        assert flow(home).status_code == 422
        odd = body(action_run_id="run-2", properties={"note": {"a": 1}}, handle="x")
        assert flow(home, odd).status_code in (200, 422)
        nothing = body(handle="x")
        assert flow(home, nothing).status_code == 422


def test_the_api_describes_the_hooks(shop: Home) -> None:
    document = shop.client.get("/v1/openapi.json").json()
    assert document["paths"]["/hooks/{name}"]["post"]["security"] == []
    assert set(document["paths"]) >= {
        "/hooks/{name}/test", "/hooks/{name}/flow-action", "/v1/events", "/v1/hooks",
        "/v1/events/{source}/{ident}", "/v1/hooks/{name}/test-mapping",
    }  # fmt: skip


def test_no_secret_is_in_the_store(shop: Home, tmp_path: Path) -> None:
    send(shop, "/hooks/shop", PAID, signing.shopify(PAID, "e1"))
    settled(shop, "shop", "e1")
    kept = json.dumps([row for _, row in shop.serving.store.rows()], default=str)
    assert signing.SECRET not in kept
    assert signing.shopify(PAID, "e1")["X-Shopify-Hmac-Sha256"] not in kept
    assert os.environ["SECRET"] == signing.SECRET

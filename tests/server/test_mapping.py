"""From an event to its operations: what expressions give, what is refused, and that trying acts
never. Several processes may work on the same events."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from ascertain import open_store
from ascertain.config import checked, read_config
from ascertain.config.hooks import intake_of
from ascertain.config.spaces import Spaces
from ascertain.core.errors import UsageError
from ascertain.core.intake import NotAnEvent, ident, ordinal
from ascertain.runtime.mapping import (
    MOST_OPERATIONS,
    Evaluated,
    Expression,
    MappingFailed,
    Places,
    Plan,
    Rule,
    evaluate,
)
from server import signing
from server.hooked import ENVIRON, body, effects, hooked, send, settled, worked
from server.house import SHOP, Home
from server.target import Shop

ROOT: dict[str, Any] = {
    "id": "e1", "source": "shop", "topic": "orders/paid", "subject": "", "ordinal": None,
    "headers": {"x-shop": "acme"},
    "body": {"name": "#1", "items": [{"sku": "a", "n": 1}, {"sku": "b", "n": 0}], "vip": False},
}  # fmt: skip


def plans(*rules: Rule) -> tuple[Plan, ...]:
    return evaluate(rules, ROOT).plans


# --- expressions ----------------------------------------------------------------------------------


def test_a_table_of_expressions_and_constants() -> None:
    given = {"name": "body.name", "shop": 'headers."x-shop"', "none": "body.missing", "n": 3}
    assert plans(Rule("order", given)) == (Plan("order", {"name": "#1", "shop": "acme", "n": 3}),)


def test_one_event_may_ask_for_several_operations() -> None:
    whole = Rule("order", "body.items[].{sku: sku, of: 'x'}")
    assert [p.input for p in plans(whole)] == [{"sku": "a", "of": "x"}, {"sku": "b", "of": "x"}]
    each = Rule("order", {"sku": "item.sku", "of": "body.name"}, each="body.items[?n > `0`]")
    assert plans(each) == (Plan("order", {"sku": "a", "of": "#1"}),)
    both = evaluate([each, Rule("mail", {"to": "body.name"})], ROOT)
    assert [p.action for p in both.plans] == ["order", "mail"]


def test_a_key_of_its_own() -> None:
    rule = Rule("order", {"name": "body.name"}, key="join('/', [source, input.name])")
    assert plans(rule)[0].key == "shop/#1"
    with pytest.raises(MappingFailed, match="is no text"):
        plans(Rule("order", {}, key="body.vip"))


@pytest.mark.parametrize("when", ["body.vip", "body.missing", "body.items[?n > `9`]", "''", "`{}`"])
def test_what_is_not_for_it_is_ignored_and_says_why(when: str) -> None:
    found = evaluate([Rule("order", {}, when=when)], ROOT)
    assert (found.plans, "orders/paid" in found.ignored) == ((), True)
    assert evaluate([Rule("order", {}, each="body.missing")], ROOT).ignored
    assert isinstance(evaluate([], ROOT), Evaluated)


@pytest.mark.parametrize(
    ("rule", "says"),
    [
        (Rule("order", "body.name"), "must be an object"),
        (Rule("order", {}, each="body.name"), "no list"),
        (Rule("order", {"n": "sum(body.name)"}), "cannot be evaluated"),
        (Rule("order", {"n": "nobody(body)"}), "cannot be evaluated"),
    ],
)
def test_what_cannot_be_mapped_fails(rule: Rule, says: str) -> None:
    with pytest.raises(MappingFailed, match=says):
        plans(rule)


def test_an_event_asks_for_so_many_operations_at_most() -> None:
    many = ROOT | {"body": list(range(MOST_OPERATIONS + 1))}
    for rule in (Rule("order", {"n": "item"}, each="body"), Rule("order", "body[].{n: @}")):
        with pytest.raises(MappingFailed, match="at most"):
            evaluate([rule], many)


@pytest.mark.parametrize("text", ["body.", "[", "a" * 3000, "(" * 1500])
def test_what_is_no_expression_is_refused_at_once(text: str) -> None:
    with pytest.raises(UsageError):
        Expression(text)


def test_places() -> None:
    data = {"id": 7, "at": "x"}
    headers = {"x-topic": "t"}
    assert Places("header:X-Topic")(headers, data, "d1") == "t"
    assert Places(["header:X-Topic", "body:id", "body:no"])(headers, data, "d1") == "t/7/"
    assert Places("sha256")(headers, data, "d1") == "d1"
    assert Places(["header:no", "body:no"])(headers, data, "d1") is None
    for wrong in ("topic", "header:", "body:[", "query:x"):
        with pytest.raises(UsageError):
            Places(wrong)


@pytest.mark.parametrize(
    ("value", "number"),
    [(7, 7), ("5", 5), ("-5", -5), ("1970-01-01T00:00:01Z", 1_000_000),
     ("1970-01-01T01:00:01+01:00", 1_000_000), ("1970-01-01T00:00:01", 1_000_000)],
)  # fmt: skip
def test_ordinals(value: Any, number: int) -> None:
    assert ordinal(value) == number


@pytest.mark.parametrize("value", [None, True, 1.5, "new", [], 2**63, "9" * 30])
def test_what_is_no_ordinal(value: Any) -> None:
    with pytest.raises(NotAnEvent):
        ordinal(value)


@pytest.mark.parametrize("value", [None, "", True, {}, [1], "a\x00b", "x" * 256, "a\nb"])
def test_what_is_no_id(value: Any) -> None:
    with pytest.raises(NotAnEvent):
        ident(value, "event id")


# --- trying a map ---------------------------------------------------------------------------------

CONFIG = """
[hooks.shop]
kind = "shopify"
secrets = [{ env = "SECRET" }]
[[hooks.shop.map]]
when = "topic == 'orders/paid'"
action = "order"
input = { name = "body.name", note = "body.note" }

[hooks.keyed]
kind = "token"
[[hooks.keyed.map]]
action = "keyed"
input = { name = "body.name" }
key = "join('-', ['order', to_string(body.number)])"

[actions.keyed]
target = "shop"
contract = "shop.order"
key = "{key}"
owner = "anna"
inputs = { name = { type = "text" } }
request.url = "/orders"
request.json = { name = "{name}" }
request.headers = { Idempotency-Key = "{target_key}" }
ref = "id"

[actions.to_flow]
target = "shop"
key = "{source}/{id}"
owner = "anna"
inputs = { source = {}, id = {}, topic = {}, body = {} }
request = { url = "/orders", json = { name = "{id}", topic = "{topic}", event = "{body}" } }
ref = "id"

[hooks.passing]
kind = "token"
[[hooks.passing.map]]
forward = "to_flow"
"""


@pytest.fixture
def home(tmp_path: Path, target: Shop, monkeypatch: pytest.MonkeyPatch) -> Iterator[Home]:
    with hooked(tmp_path, target, monkeypatch, CONFIG) as running:
        yield running


def pasted(ident: str, topic: str = "orders/paid", **fields: Any) -> dict[str, Any]:
    headers = {"X-Shopify-Event-Id": ident, "X-Shopify-Topic": topic}
    return {"headers": headers, "body": fields}


def test_a_map_is_tried_and_nothing_happens(home: Home, target: Shop) -> None:
    paid = body(name="A")
    send(home, "/hooks/shop", paid, signing.shopify(paid, "e0"))
    [made] = settled(home, "shop", "e0")["operations"]
    events = [
        pasted("e1", name="A"), pasted("e2", name="A"), pasted("e3", name="B"),
        pasted("e4", "orders/create", name="C"), pasted("e5"),
        {"body": {"name": "D"}}, {"body": {"name": "D"}, "id": "e6", "topic": "orders/paid"},
    ]  # fmt: skip
    answer = home.client.post("/v1/hooks/shop/test-mapping", json={"events": events})
    assert answer.status_code == 200, answer.text
    items = answer.json()["items"]
    assert [[p["key"] for p in i["plans"]] for i in items] == [
        ["A"], ["A"], ["B"], [], [""], [], ["D"],
    ]  # fmt: skip
    assert items[0]["plans"][0]["exists"] == made["operation"]
    assert (items[2]["plans"][0]["exists"], items[2]["plans"][0]["input"]) == (None, {"name": "B"})
    assert "orders/create" in items[3]["ignored"]
    assert "name" in items[4]["plans"][0]["wrong"]
    assert "event id" in items[5]["wrong"]
    assert answer.json()["shared"] == [{"action": "order", "key": "A", "events": ["e1", "e2"]}]
    assert len(home.client.get("/v1/events").json()["items"]) == 1
    worked(home)
    assert effects(target) == {"A": 1}


def test_evaluating_again_shows_what_exists_and_never_acts(home: Home, target: Shop) -> None:
    paid = body(name="A")
    send(home, "/hooks/shop", paid, signing.shopify(paid, "e1"))
    [made] = settled(home, "shop", "e1")["operations"]
    worked(home)
    for _ in range(2):
        told = home.client.post("/v1/events/shop/e1/evaluate").json()
        assert [(p["exists"], p["state"]) for p in told["plans"]] == [(made["operation"], "done")]
    assert effects(target) == {"A": 1}
    assert home.client.post("/v1/events/shop/no/evaluate").status_code == 404


def handed_in(home: Home, source: str, ident: str, **data: Any) -> Any:
    given = {"source": source, "id": ident, "topic": "made", "data": data}
    assert home.client.post("/v1/events", json=given).status_code == 200
    return settled(home, source, ident)


def test_the_map_gives_the_key_where_the_action_takes_the_caller_s(
    home: Home, target: Shop
) -> None:
    first = handed_in(home, "keyed", "x1", name="A", number=7)
    second = handed_in(home, "keyed", "x2", name="A", number=7)
    assert [m["key"] for m in first["operations"]] == ["order-7"]
    assert second["operations"][0]["shared"]
    other = handed_in(home, "keyed", "x3", name="B", number=7)  # law 9
    assert other["state"] == "failed"
    assert "name" in other["why"]
    worked(home)
    assert effects(target) == {"A": 1}


def test_a_forward_is_an_operation_under_the_event_s_id(home: Home, target: Shop) -> None:
    found = handed_in(home, "passing", "evt/1", number=7)
    assert [m["key"] for m in found["operations"]] == ["passing/evt%2F1"]
    worked(home)
    [asked] = target.effects()
    assert b'"event":{"number":7}' in asked["body"].replace(b" ", b"")
    assert effects(target) == {"evt/1": 1}


# --- several processes ----------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_several_work_on_the_same_events(
    kind: str, tmp_path: Path, target: Shop, request: pytest.FixtureRequest,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    for name, value in ENVIRON.items():
        monkeypatch.setenv(name, value)
    url = str(tmp_path / "a.db") if kind == "sqlite" else request.getfixturevalue(
        "postgres_database")  # fmt: skip
    file = tmp_path / "ascertain.toml"
    file.write_text(SHOP.format(target=target.url) + CONFIG, "utf-8")
    understood = checked(read_config(file))
    stores = [open_store(url) for _ in range(3)]
    workers = [intake_of(understood, Spaces(store, understood, ("default",))) for store in stores]
    hook = workers[0].hooks["keyed"]
    for number in range(120):
        data = {"name": f"n{number % 40}", "number": number % 40}
        arrived = hook.handed_in(f"x{number}", "made", str(data).replace("'", '"'), data)
        workers[0].store.post([workers[0].posting(hook, arrived)])

    def work(worker: Any) -> int:
        did = 0
        while now := worker.process(7):
            did += now
        return did

    with ThreadPoolExecutor(3) as pool:
        assert sum(pool.map(work, workers)) == 120
    operations = [row for table, row in stores[0].rows() if table == "operation"]
    events = [row for table, row in stores[0].rows() if table == "event"]
    assert len(operations) == 40
    assert {e["state"] for e in events} == {"processed"}
    for store in stores:
        store.close()


def test_older_news_that_come_in_together_are_decided_by_one_statement(
    tmp_path: Path, target: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    aware = 'subject = "body:name"\nordinal = "body:v"\n[[hooks.keyed.map]]'
    config = CONFIG.replace("[[hooks.keyed.map]]", aware)
    with hooked(tmp_path, target, monkeypatch, config) as home:
        states = {}
        for version in (3, 1, 2, 3, 4):
            ident = f"x{len(states)}"
            given = handed_in(home, "keyed", ident, name="A", v=version, number=len(states))
            states[ident] = given["state"]
    assert list(states.values()) == ["processed", "stale", "stale", "processed", "processed"]

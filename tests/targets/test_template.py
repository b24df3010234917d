"""An HTTP action described as data: what it sends, what it finds, and what it refuses."""

from __future__ import annotations

import json
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

from ascertain import State, open_store
from ascertain.core import keys
from ascertain.core.contract import Contract, load
from ascertain.core.errors import ActionInvalid, InputRefused
from ascertain.core.model import Absent, Done, NotDone, Request, Several, Unknown
from ascertain.runtime.ledger import Ledger
from ascertain.runtime.templates import register
from ascertain.targets.http import Answered
from ascertain.targets.template import Template
from targets.serving import Server, answer, client, read_request

KEY = "0123456789abcdefghijklmnop"
CONTRACT = {
    "id": "shop.order", "ok": {"when": "201"}, "undo": "DELETE",
    "key": {"at": "body:meta.op", "kind": "resource"},
    "repeat": {"answer": "exists", "keeps": "forever", "exists": "409", "atomic": True},
    "lookup": {"by": "op", "lag": "0s"}, "late": {"max": "1s"},
    "refused": {"invalid": "400", "unauthorized": "401"},
}  # fmt: skip
ORDER = {
    "key": "{order}", "base": "http://127.0.0.1:1/api",
    "inputs": {"order": {}, "amount": {}, "lines": {"required": False},
               "lang": {"required": False, "default": "de"}},
    "request": {
        "url": "/{lang}/orders?for={order}", "headers": {"X-Order": "no {order}"},
        "json": {"title": "Order {order}", "amount": "{amount}", "lines": "{lines}",
                 "n": [1, None]},
    },
    "ref": "id", "result": "links",
    "lookup": {"url": "/orders?op={target_key}", "items": "data", "by": "meta.op", "ref": "id",
               "absent": "404", "more": "body:next"},
    "read_back": {"url": "/orders/{order}", "ref": "id", "same": {"title": "Order {order}",
                                                                 "amount": "{amount}"}},
}  # fmt: skip


class Call:
    def __init__(self, effect: bool = True, request: Request | None = None) -> None:
        self.target_key, self.request = KEY, request
        self.http = client(within=2, effect=effect, contract=load(CONTRACT), request=request)


def changed(**parts: Any) -> dict[str, Any]:
    made: dict[str, Any] = deepcopy(ORDER)
    for path, value in parts.items():
        *tables, name = path.split("__")
        table = made
        for step in tables:
            table = table[step]
        if value is None:
            del table[name]
        else:
            table[name] = value
    return made


def template(server: Server | None = None, contract: Any = None, **parts: Any) -> Template:
    if server is not None:
        parts["base"] = server.url.replace("/orders", "/api")
    environ = {"SHOP_TOKEN": "t0p-secret", "SHOP_USER": "me", "SHOP_PASSWORD": "hunter2"}
    return Template("shop.order", changed(**parts), load(contract or CONTRACT), environ=environ)


def test_what_is_sent() -> None:
    made = template().prepare(Call(), order="a/b ü", amount=12)
    assert made.url == "http://127.0.0.1:1/api/de/orders?for=a%2Fb%20%C3%BC"
    assert made.headers == (("X-Order", "no a/b ü"), ("Content-Type", "application/json"))
    assert json.loads(made.body) == {
        "title": "Order a/b ü", "amount": 12, "n": [1, None], "meta": {"op": KEY},
    }  # fmt: skip
    assert template().prepare(Call(), order="a/b ü", amount=12) == made


@pytest.mark.parametrize("amount", [12, 1.5, True, False, "12", [1], {"a": 1}], ids=repr)
def test_a_placeholder_that_is_the_whole_value_keeps_its_type(amount: Any) -> None:
    made = template().prepare(Call(), order=1, amount=amount, lines=[{"n": amount}])
    assert json.loads(made.body)["amount"] == amount
    assert json.loads(made.body)["lines"] == [{"n": amount}]


@pytest.mark.parametrize(
    ("at", "url", "where"),
    [
        ("header:Idempotency-Key", "/orders", lambda r: dict(r.headers)["Idempotency-Key"]),
        ("query:op", "/orders?x=1", lambda r: r.url.partition("&op=")[2]),
        ("query:op", "/orders", lambda r: r.url.partition("?op=")[2]),
        ("path:name", "/orders/{target_key}", lambda r: r.url.rpartition("/")[2]),
        ("body:op", "/orders", lambda r: json.loads(r.body)["op"]),
    ],
    ids=range(5),
)
@pytest.mark.parametrize("form", ["any", "uuid"])
def test_the_key_goes_where_the_contract_says(at: str, url: str, where: Any, form: str) -> None:
    contract = {**CONTRACT, "key": {"at": at, "kind": "resource", "form": form}}
    made = template(contract=contract, request__url=url).prepare(Call(), order=1, amount=1)
    assert where(made) == keys.format_key(KEY, form)


@pytest.mark.parametrize(
    "given", [{"order": 1}, {"amount": 1}, {"order": "", "amount": 1}, {"order": None, "amount": 1}]
)
def test_a_missing_input_is_not_done_before_anything_is_sent(given: dict[str, Any]) -> None:
    call = Call()
    found = template().perform(call, **given)
    assert isinstance(found, NotDone)
    assert found.kind == "invalid"
    assert "missing input" in found.reason
    assert call.http.trace.sent_nothing
    with pytest.raises(InputRefused, match="missing input"):
        template().prepare(call, **given)


@pytest.mark.parametrize("order", ["..", ".", ["a"], {"a": 1}, "a\r\nX: y"])
def test_an_input_that_would_change_the_request_is_refused(order: Any) -> None:
    call = Call()
    found = template().perform(call, order=order, amount=1)
    assert isinstance(found, NotDone)
    assert call.http.trace.requests == 0


@pytest.mark.parametrize(
    ("said", "ref"),
    [
        (answer("201 Created", b'{"id": 5, "links": {"self": "/5"}}'), 5),
        (answer("201 Created", b'{"other": 5}'), None), (answer("201 Created", b"<html>"), None),
        (answer("201 Created", b'[{"id": 1}, {"id": 2}]'), None),
    ],
)  # fmt: skip
def test_done_is_only_what_says_which_object_it_made(said: bytes, ref: int | None) -> None:
    with Server(said) as server:
        found = template(server).perform(Call(), order=1, amount=2)
    if ref is None:
        assert isinstance(found, Unknown)
    else:
        assert found == Done(ref=5, result={"self": "/5"}, evidence=found.evidence)


def test_credentials_are_sent_beside_and_a_missing_one_stops_it() -> None:
    said = answer("201 Created", b'{"id": 5}')
    with Server(said) as server:
        made = template(server, auth={
            "headers": {"X-Api-Key": {"env": "SHOP_TOKEN", "before": "k "}},
            "basic": {"user": "me", "password": {"env": "SHOP_PASSWORD"}}})  # fmt: skip
        request = made.prepare(Call(), order=1, amount=2)
        assert isinstance(made.perform(Call(request=request), order=1, amount=2), Done)
        assert b"X-Api-Key: k t0p-secret" in server.requests[0]
        assert b"Authorization: Basic bWU6aHVudGVyMg==" in server.requests[0]
        assert "secret" not in repr(request)
        unset = template(server, auth={"bearer": {"env": "NOBODY_SET_IT"}})
        found = unset.perform(Call(), order=1, amount=2)
    assert isinstance(found, NotDone)
    assert found.kind == "unauthorized"
    assert "NOBODY_SET_IT" in found.reason
    assert len(server.requests) == 1


# --- looking up ---


def row(ref: Any, op: str = KEY) -> dict[str, Any]:
    return {"id": ref, "meta": {"op": op}}


@pytest.mark.parametrize(
    ("status", "body", "expected"),
    [
        ("200 OK", {"data": [row(5)]}, Done(ref=5)),
        ("200 OK", {"data": [row(5), row(6, KEY + "x")]}, Done(ref=5)),
        ("200 OK", {"data": [row(5), row(5)]}, Done(ref=5)),
        ("200 OK", {"data": [row(5), row(6)]}, Several(refs=[5, 6])),
        ("200 OK", {"data": []}, Absent()),
        ("200 OK", {"data": [], "next": None}, Absent()),
        ("200 OK", {"data": [row(6, KEY + "x")], "next": "/2"}, Absent(complete=False)),
        ("404 Not Found", {}, Absent()),
        ("200 OK", {"rows": []}, Unknown()), ("200 OK", "nothing", Unknown()),
        ("200 OK", {"data": [row(None)]}, Unknown()),
        ("403 Forbidden", {}, Unknown()), ("500 Oops", {"data": []}, Unknown()),
        ("302 Found", {}, Unknown()),
    ],
    ids=range(14),
)  # fmt: skip
def test_a_look_up(status: str, body: Any, expected: Any) -> None:
    with Server(answer(status, json.dumps(body).encode())) as server:
        found = template(server).look_up(Call(effect=False))  # type: ignore[arg-type]
    assert type(found) is type(expected)
    for field in ("ref", "refs", "complete"):
        assert getattr(found, field, None) == getattr(expected, field, None)
    assert server.requests[0].startswith(f"GET /api/orders?op={KEY} HTTP".encode())


def test_an_address_of_ours_with_a_foreign_object_is_unknown() -> None:
    with Server(answer("200 OK", json.dumps(row(5, "foreign")).encode())) as server:
        made = template(server, lookup__items="")
        assert isinstance(made.look_up(Call(effect=False)), Unknown)  # type: ignore[arg-type]


# --- reading back a natural id (law 6) ---


@pytest.mark.parametrize(
    ("body", "ours"),
    [
        ({"id": 7, "title": "Order 1", "amount": 2}, True),
        ({"id": 7, "title": "Order 1", "amount": "2"}, True),
        ({"id": 7, "title": "Order 1", "amount": 3}, False), ({"id": 7}, False), ([], False),
        ([{"id": 7, "title": "Order 1", "amount": 2}] * 2, False), ("busy", False),
    ],
    ids=range(7),
)  # fmt: skip
def test_what_exists_already_is_compared_with_our_input(body: Any, ours: bool) -> None:
    back = answer("200 OK", json.dumps(body).encode())
    with Server(answer("409 Conflict"), back) as server:
        found = template(server).perform(Call(), order=1, amount=2)
    assert isinstance(found, Done if ours else Unknown)
    assert getattr(found, "ref", None) == (7 if ours else None)
    assert len(server.requests) == 2


def test_without_a_read_back_the_ledger_looks_up() -> None:
    with Server(answer("409 Conflict")) as server, pytest.raises(Answered) as caught:
        template(server, read_back=None).perform(Call(), order=1, amount=2)
    assert caught.value.exists


# --- descriptions that cannot be meant ---


@pytest.mark.parametrize(
    ("parts", "problem"),
    [
        ({"request__url": "orders"}, "request.url"), ({"request__url": "//evil/"}, "request.url"),
        ({"base": "http://{order}/"}, "base"), ({"base": "shop"}, "base"),
        ({"base": "http://a:b@h"}, "base must hold neither"),
        ({"request__json": {"a": "{nobody}"}}, "request.json names {nobody}"),
        ({"request__json": {"a": "x {lines}"}}, "needs {lines}"),
        ({"request__url": "/{lines}"}, "needs {lines}"),
        ({"request__url": "/{order!r}"}, "only a name"), ({"request__url": "/{order"}, "brace"),
        ({"request__headers": {"Authorization": "x"}}, "is a credential"),
        ({"lookup__url": "/orders?op={order}"}, "lookup.url names {order}"),
        ({"lookup__by": ""}, "lookup.by"), ({"lookup__found": "sometimes"}, "matcher"),
        ({"lookup__ref": ""}, "lookup.ref"), ({"read_back__same": {}}, "read_back.same"),
        ({"inputs__target_key": {}}, "inputs.target_key"),
        ({"inputs__order": {"default": 1}}, "required = false"),
        ({"request__body": 1}, "unknown field `body`"), ({"request": 5}, "request"),
        ({"request__json": [1]}, "must be an object"),
    ],
    ids=range(21),
)  # fmt: skip
def test_an_impossible_description_names_its_field(parts: dict[str, Any], problem: str) -> None:
    with pytest.raises(ActionInvalid) as caught:
        template(**parts)
    assert problem in str(caught.value)
    assert "shop.order" in str(caught.value)


@pytest.mark.parametrize(
    ("key", "problem"),
    [
        ({"at": "path:name", "kind": "resource"}, "request.url must hold {target_key}"),
        ({"at": "graphql:key", "kind": "request"}, "request must hold {target_key}"),
        ({"at": "header:K", "kind": "request", "form": "[0-9a-z]", "max": 20}, "26 characters"),
    ],
)
def test_a_description_keeps_to_its_contract(key: dict[str, Any], problem: str) -> None:
    with pytest.raises(ActionInvalid, match=problem.replace("{", "\\{")):
        template(contract={**CONTRACT, "key": key})


# --- with a ledger ---


def test_a_described_action_of_a_ledger(tmp_path: Path) -> None:
    """It "exists", and cannot be found: the protected replay sends the same bytes once more."""
    said = answer("201 Created", b'{"id": 5}')
    with Server(answer("409 Conflict"), answer("500 Oops"), said) as server:
        made = changed(base=server.url.replace("/orders", "/api"), read_back=None)
        contract: Contract = load(CONTRACT)
        with Ledger(open_store(f"sqlite:///{tmp_path}/a.db")) as ledger:
            order = register(ledger, "shop.order", made, owner="anna", contract=contract)
            receipt = order.submit(order=2, amount=1)
            assert receipt.state == State.DONE
            with pytest.raises(InputRefused, match="missing input amount"):
                order.submit(order=3)
    assert json.loads(server.requests[0].partition(b"\r\n\r\n")[2])["meta"] == {
        "op": receipt.target_key
    }
    assert server.requests[1].startswith(b"GET /api/orders?op=" + receipt.target_key.encode())
    assert server.requests[2] == server.requests[0]


def test_what_exists_and_carries_our_key_is_ours(tmp_path: Path) -> None:
    def found(conn: Any) -> None:
        key = read_request(conn).partition(b"op=")[2].split()[0].decode()
        conn.sendall(answer("200 OK", json.dumps({"data": [row(9, key)]}).encode()))

    with Server(answer("409 Conflict"), found) as server:
        made = changed(base=server.url.replace("/orders", "/api"), read_back=None)
        with Ledger(open_store(f"sqlite:///{tmp_path}/a.db")) as ledger:
            order = register(ledger, "shop.order", made, owner="anna", contract=load(CONTRACT))
            assert order(order=2, amount=1).ref == "9"
    assert server.connections == 2


def test_two_of_a_kind(tmp_path: Path) -> None:
    with Server(answer("201 Created", b'{"id": 5}')) as server:
        made = changed(base=server.url.replace("/orders", "/api"))
        with Ledger(open_store(f"sqlite:///{tmp_path}/a.db")) as ledger:
            order = register(ledger, "shop.order", made, owner="anna", contract=load(CONTRACT))
            first = order(order=1, amount=2)
            again = order(order=1, amount=2)
    assert (first.ref, first.id) == ("5", again.id)
    assert len(server.requests) == 1

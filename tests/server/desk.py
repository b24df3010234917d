"""People before a test server, without passwords: a door of the test's own lets them in."""

from __future__ import annotations

from typing import Any

import httpx2
from fastapi import Request

from ascertain.server.access import Caller, Right
from server.house import Home

ALL = frozenset({Right.READ, Right.DECIDE, Right.APPROVE, Right.OVERRIDE, Right.OPERATE})
# The actions of these tests: one that only a person can settle, a risky one, some that are asked
# for before they are sent, and one that can be looked up.
DESK = """
[approvers]
legal = ["lea"]

[[contract]]
id = "shop.order"
ok = {{ when = "201" }}
key = {{ at = "header:Idempotency-Key", kind = "request" }}
repeat = {{ answer = "replay", keeps = "24h", failed = "rerun", atomic = true }}
late = {{ max = "2s" }}
refused = {{ invalid = "422", throttled = "429", transient = "500", unauthorized = "401" }}

[[contract]]
id = "shop.searched"
ok = {{ when = "201" }}
key = {{ at = "body:key", kind = "content" }}
lookup = {{ call = "GET /orders?key={{key}}", by = "key", lag = "0s" }}
late = {{ max = "1s" }}
refused = {{ invalid = "422", throttled = "429", transient = "500" }}

[targets.shop]
base = "{target}"
open = "https://shop.example/orders/{{ref}}"
respond_within = "1h"

[actions.order]
target = "shop"
contract = "shop.order"
key = "{{name}}"
owner = "anna"
inputs = {{ name = {{ type = "text" }} }}
request.url = "/orders"
request.json = {{ name = "{{name}}" }}
request.headers = {{ Idempotency-Key = "{{target_key}}" }}
ref = "id"
first_delay = "100ms"

[actions.blind]
target = "shop"
key = "{{name}}"
owner = "anna"
inputs = {{ name = {{ type = "text" }}, city = {{ required = false, default = "" }} }}
request = {{ url = "/orders", json = {{ name = "{{name}}", city = "{{city}}" }} }}
ref = "id"
timeout = "1s"

[actions.risky]
target = "shop"
key = "{{name}}"
owner = "anna"
risky = true
inputs = {{ name = {{ type = "text" }} }}
request = {{ url = "/orders", json = {{ name = "{{name}}" }} }}
ref = "id"
timeout = "1s"

[actions.publish]
target = "shop"
contract = "shop.order"
key = "{{name}}"
owner = {{ default = "anna", input = "otto" }}
approval = "editor"
inputs = {{ name = {{ type = "text" }}, body = {{ type = "text" }} }}
request.url = "/orders"
request.json = {{ name = "{{name}}", body = "{{body}}" }}
request.headers = {{ Idempotency-Key = "{{target_key}}" }}
ref = "id"

[actions.contract]
target = "shop"
contract = "shop.order"
key = "{{name}}"
owner = "anna"
approval = ["editor", "legal"]
inputs = {{ name = {{ type = "text" }} }}
request.url = "/orders"
request.json = {{ name = "{{name}}" }}
request.headers = {{ Idempotency-Key = "{{target_key}}" }}
ref = "id"

[actions.searched]
target = "shop"
contract = "shop.searched"
key = "{{name}}"
owner = "ben"
inputs = {{ name = {{ type = "text" }} }}
request = {{ url = "/orders", json = {{ name = "{{name}}", key = "{{target_key}}" }} }}
lookup = {{ url = "/orders?key={{target_key}}", items = "orders", ref = "id", by = "key" }}
ref = "id"
timeout = "1s"
reversible = true
first_delay = "100ms"
"""


class People:
    """Lets in whoever names himself in the header `X-Person`, with the rights of `X-Rights`."""

    async def __call__(self, request: Request) -> Caller | None:
        name = request.headers.get("x-person")
        if name is None:
            return None
        given = request.headers.get("x-rights")
        rights = ALL if given is None else frozenset(Right(r) for r in given.split())
        return Caller(
            actor=name, via="session:test", namespace=request.headers.get("x-space", "default"),
            rights=rights, role="operator", account=f"id-{name}", address="192.0.2.7",
        )  # fmt: skip


class Desk:
    """A home whose people can be asked: `desk.as_("anna").post(…)`."""

    def __init__(self, home: Home) -> None:
        self.home, self.serving = home, home.serving
        self.url = ""  # of its store, where a test opens it again
        home.serving.doors.insert(0, People())
        self.ledger = home.serving.space("default").ledger

    def as_(self, name: str, rights: str | None = None, space: str | None = None) -> httpx2.Client:
        """A client of a person."""
        client = self.home.as_token(None)
        client.headers["X-Person"] = name
        if rights is not None:
            client.headers["X-Rights"] = rights
        if space is not None:
            client.headers["X-Space"] = space
        return client

    def submit(self, action: str, **given: Any) -> str:
        """Submit without waiting for an outcome; returns the operation's id."""
        bound = self.serving.space("default").engine.actions[action]
        from ascertain.runtime.ledger import Action
        from ascertain.runtime.ticket import Options

        return Action(self.ledger.engine, bound, Options()).submit(wait=0, **given).id

    def lines(self, did: str) -> list[Any]:
        """The lines of the audit of one kind, oldest first."""
        return [row for table, row in self.serving.store.rows()
                if table == "audit" and row["did"] == did]  # fmt: skip

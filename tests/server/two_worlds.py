"""Two clients on one server: all that `acme` has, by the names that routes give their parameters,
and one request for every route."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

import httpx2

from ascertain.core.rights import SCOPES
from server.house import Home
from server.listing import Listed
from server.own import OWN
from server.persons import ALL, TEST, account, browser
from server.target import Shop

OURS, THEIRS = "acme", "beta"
EURO = {"amount": "1", "currency": "EUR"}
# Stands in everything of acme's that its routes show, and in no key, so that no answer may hold
# it by saying again what was asked.
MARK = "Zirkon"
CONFIG = (
    OWN
    + """
[server]
namespaces = ["acme", "beta"]

[hooks.shop]
kind = "token"
namespace = "acme"
[[hooks.shop.map]]
action = "own"
input = {{ name = "body.name" }}

[actions.order]
target = "shop"
contract = "shop.own"
key = "{{name}}"
owner = "anna"
inputs = {{ name = {{ type = "text" }}, note = {{ required = false, default = "" }} }}
request.url = "/orders"
request.json = {{ name = "{{name}}", note = "{{note}}" }}
request.headers = {{ Idempotency-Key = "{{target_key}}" }}
ref = "id"

[actions.blind]
target = "shop"
key = "{{name}}"
owner = "anna"
inputs = {{ name = {{ type = "text" }}, note = {{ required = false, default = "" }} }}
request = {{ url = "/orders", json = {{ name = "{{name}}", note = "{{note}}" }} }}
ref = "id"
timeout = "1s"

[actions.asked]
target = "shop"
contract = "shop.own"
key = "{{name}}"
owner = "anna"
approval = "editor"
inputs = {{ name = {{ type = "text" }}, note = {{ required = false, default = "" }} }}
request.url = "/orders"
request.json = {{ name = "{{name}}", note = "{{note}}" }}
request.headers = {{ Idempotency-Key = "{{target_key}}" }}
ref = "id"
"""
)


class World:
    """A server with everything that acme has; `ids` by the names of routes' parameters."""

    def __init__(self, home: Home, shop: Shop) -> None:
        self.home, self.shop = home, shop
        scopes = " ".join(s for s in SCOPES if s != "metrics:read")  # of all at once, for root
        self.machine = home.as_token(home.token(scopes, OURS))
        self.stranger_machine = home.as_token(home.token(scopes, THEIRS))
        account(home, "root", namespace="*", **ALL)
        self.anna = account(home, "anna", namespace=OURS, **ALL)
        account(home, "otto", namespace=THEIRS, **ALL)
        self.person, self.stranger = browser(home, "anna"), browser(home, "otto")
        people = home.serving.accounts.people
        found = people.by_id(self.anna.id)
        assert found is not None
        people.edit(found, name=f"{MARK} anna", lang="", zone="", who=TEST)
        self.ids: dict[str, str] = {}
        self.fill()

    def fill(self) -> None:
        """Make one of everything."""
        self.shop.fates["blind-1"] = ["drop"]
        run = self.made(self.machine, "/v1/runs", {"name": "r-1"})["run"]
        note = {"note": MARK}
        done = self.submit("order", "order-1", run=run["name"], **note)
        unknown = self.submit("blind", "blind-1", **note)
        asked = self.submit("asked", "asked-1", **note)
        self.machine.post("/v1/pins", json={"key": "pin-1", "value": MARK})
        event = {"source": "shop", "id": "event-1", "data": {"name": "own-1", "note": MARK}}
        self.made(self.machine, "/v1/events", event)
        line = {"key": "c", "kind": "normal", "cause": "call", "price": EURO,
                "operation": done, "asset": "asset-1", "evidence": MARK, "payer": MARK}  # fmt: skip
        self.made(self.machine, "/v1/costs", {"lines": [line]})
        self.made(self.machine, "/v1/assets/asset-1/accept", {"note": MARK})
        reviews = self.person.get("/v1/reviews").json()["items"]
        approvals = self.person.get("/v1/approvals").json()["items"]
        bulk = {"action": "look_up", "ids": [unknown], "why": MARK}
        plan = self.made(self.person, "/v1/bulk", bulk)
        claimed = self.made(self.machine, "/v1/work/claim",
                            {"action": "own", "input": {"name": "w-1", **note}})  # fmt: skip
        token = self.made(self.person, "/v1/tokens", {"name": MARK, "scopes": ["ops:read"]})
        link = self.made(self.person, f"/v1/operations/{asked}/guest-link", {"to": MARK})
        sessions = self.person.get("/v1/sessions").json()["items"]
        self.ids = {
            "operation": done, "run": run["id"], "key": "pin-1", "contract": "shop.own",
            "target": "shop", "path": "orders", "name": "shop", "source": "shop",
            "ident": "event-1", "event": "event-1",
            "session": sessions[0]["id"], "person": self.anna.id,
            "token": token["token"]["id"], "link": link["given"]["id"],
            "secret": link["link"].rpartition("/")[2], "attempt": claimed["attempt"],
            "ask": approvals[0]["id"],
            "review": reviews[0]["id"], "approval": approvals[0]["id"], "bulk": plan["id"],
        }  # fmt: skip
        self.asked, self.unknown, self.claimed = asked, unknown, claimed["operation"]["id"]
        self.approval, self.review = approvals[0], reviews[0]

    def submit(self, action: str, name: str, run: str | None = None, **more: str) -> str:
        """The id of an operation, whatever came of it."""
        sent = {"action": action, "input": {"name": name, **more}, "run": run, "title": MARK,
                "on_unresolved": "accept", "wait": 5}  # fmt: skip
        answer = self.machine.post("/v1/operations", json=sent)
        assert answer.status_code in (200, 202), answer.text
        return str(answer.json()["id"])

    def made(self, client: httpx2.Client, path: str, body: Any) -> Any:
        answer = client.post(path, json=body)
        assert answer.status_code < 300, (path, answer.text)
        return answer.json()

    # --- one request for every route ---

    def url(self, route: Listed) -> str | None:
        """The route's path with acme's ids; None where a parameter has none here."""
        path = route.path
        if route.path.startswith("/v1/assets/"):
            path = path.replace("{key:path}", "asset-1")
        for name in route.params:
            if name not in self.ids:
                return None
            for form in (f"{{{name}}}", f"{{{name}:path}}"):
                path = path.replace(form, quote(self.ids[name], safe=""))
        return path

    def body(self, route: Listed) -> Any:
        """A body that means something of acme's; None where the route takes none. A route that
        takes one and has none here fails the test."""
        bodies = self.bodies()
        if route.name in bodies:
            return bodies[route.name]
        extra = getattr(route.route, "openapi_extra", None) or {}
        assert "requestBody" not in extra, f"say in two_worlds.py what to send to {route.name}"
        return None

    def bodies(self) -> dict[str, Any]:
        order = {"action": "order", "input": {"name": "theirs"}, "reason": "x",
                 "supersedes": self.ids["operation"], "run": self.ids["run"]}  # fmt: skip
        digest = self.approval.get("digest", "")
        work = {"operation": self.claimed}
        later = "2030-01-01T00:00:00Z"
        return {
            "POST /v1/operations": order,
            "POST /v1/operations/batch": {"items": [order]},
            "POST /v1/runs": {"name": "r-1", "expects": [{"action": "order", "key": "order-1"}]},
            "POST /v1/pins": {"key": "pin-1", "value": "theirs"},
            "POST /v1/events": {"source": "shop", "id": "event-1", "data": {"name": "z"}},
            "POST /v1/hooks/{name}/test-mapping": {"events": [{"body": {"name": "z"}}]},
            "POST /v1/session": {"login": "anna", "password": "wrong"},
            "POST /v1/links/{secret}": {},
            "POST /v1/people": {"login": "anna", "membership": {"role": "viewer"}},
            "PATCH /v1/people/{person}": {"disabled": True, "new_link": True, "name": "x"},
            "POST /v1/me/password": {"was": "wrong", "new": "wrong wrong wrong"},
            "POST /v1/tokens": {"name": "theirs", "scopes": ["ops:read"]},
            "POST /v1/operations/{operation}/guest-link": {"to": "eve"},
            "POST /v1/guest/approve": {"digest": digest},
            "POST /v1/guest/reject": {"digest": digest},
            "POST /v1/work/claim": {"action": "own", "input": {"name": "theirs"}},
            "POST /v1/work/due": {"actions": ["own"], "limit": 5},
            "POST /v1/work/{attempt}/extend": work | {"by": 5},
            "POST /v1/work/{attempt}/finding": work | {
                "report": "r", "result": {"finding": "done", "ref": "x"},
            },
            "POST /v1/work/{attempt}/release": work,
            "POST /v1/targets/{name}/pause": {"why": "x"},
            "POST /v1/targets/{name}/resume": {"why": "x"},
            "POST /v1/approvals/{approval}/approve": {"digest": digest},
            "POST /v1/approvals/{approval}/reject": {"reason": "x", "digest": digest},
            "POST /v1/approvals/{approval}/respond": {"note": "x", "digest": digest},
            "POST /v1/approvals/{approval}/edit": {"input": {"name": "asked-1"}, "why": "x"},
            "POST /v1/approvals/{approval}/inbox": {"type": "accept", "args": {"digest": digest}},
            "POST /v1/reviews/{review}/take": {"why": "x"},
            "POST /v1/reviews/{review}/hand-over": {"to": "eve", "why": "x"},
            "POST /v1/reviews/{review}/snooze": {"until": later, "why": "x"},
            "POST /v1/reviews/{review}/note": {"text": "x"},
            "POST /v1/reviews/{review}/decide": {
                "answer": "leave", "why": "x", "seen": str(self.review.get("seen", "1")),
            },
            "POST /v1/bulk": {"action": "leave", "ids": [self.unknown, self.asked], "why": "x"},
            "POST /v1/costs": {"lines": [
                {"key": "c", "kind": "normal", "cause": "call", "price": EURO,
                 "operation": self.ids["operation"]},
            ]},
            "POST /v1/assets/{key:path}/accept": {"note": "x"},
            "POST /v1/assets/{key:path}/reject": {"note": "x"},
            **{f"{method} /gateway/{{target}}/{{path:path}}": {"name": "theirs"}
               for method in ("POST", "PUT", "PATCH", "DELETE")},
        }  # fmt: skip

    def ask(self, client: httpx2.Client, route: Listed, **more: Any) -> httpx2.Response | None:
        """Send a route's request; None where it needs an id that acme has none of. Of a stream
        only what comes at once is read."""
        url, body = self.url(route), self.body(route)
        if url is None:
            return None
        sent: dict[str, Any] = {} if body is None else {"json": body}
        with client.stream(route.method, url, **sent, **more) as answer:
            if answer.headers.get("content-type", "").startswith("text/event-stream"):
                answer._content = next(answer.iter_raw(), b"")
            else:
                answer.read()
            return answer

    def kept(self) -> list[tuple[str, Any]]:
        """Everything in the store that is acme's, but when something was last seen."""
        ours: set[str] = set()
        found = []
        for table, row in self.home.serving.store.rows():
            if table == "operation" and row["namespace"] == OURS:
                ours.add(row["id"])
            mine = row["namespace"] == OURS if "namespace" in row else row.get("operation") in ours
            mine = mine or self.anna.id in (row.get("account"), row.get("id"))
            if mine:
                found.append((table, {n: v for n, v in row.items() if n not in TIMES}))
        return found


TIMES = ("seen_at", "used_at")

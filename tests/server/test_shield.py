"""What every answer tells a browser, and a server that only reads."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ascertain.server.app import build
from ascertain.server.shield import CSP, HEADERS, Shield
from server.house import SHOP, Home, house
from server.listing import listed
from server.persons import account, person, sign_in
from server.target import Shop


@pytest.fixture
def reading(tmp_path: Path, target: Shop) -> Iterator[Home]:
    more = '\n[server]\nread_only = true\npublic_url = "https://a.example"\n'
    with house(tmp_path, SHOP.format(target=target.url) + more) as running:
        yield running


@pytest.mark.parametrize(
    ("method", "path"),
    [("GET", "/healthz"), ("GET", "/v1/me"), ("GET", "/nothing"), ("GET", "/v1/openapi.json"),
     ("PUT", "/v1/operations"), ("POST", "/v1/operations"), ("GET", "/v1/operations/x"),
     ("OPTIONS", "/v1/me"), ("GET", "/gateway/shop/x"), ("POST", "/hooks/x")],
)  # fmt: skip
def test_every_answer_has_its_armour(home: Home, method: str, path: str) -> None:
    answer = home.as_token(None).request(method, path)
    for name, value in HEADERS.items():
        assert answer.headers.get_list(name.decode()) == [value.decode()] or path[:8] == "/gateway"
    assert "no-store" in answer.headers["cache-control"]
    assert "frame-ancestors 'none'" in answer.headers["content-security-policy"]
    assert "access-control-allow-origin" not in answer.headers
    assert "strict-transport-security" not in answer.headers


def test_the_policy_is_the_strict_one() -> None:
    assert CSP == (
        "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self' data:;"
        " connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    )
    assert "unsafe" not in CSP


def test_over_https_browsers_are_told_to_stay_there(reading: Home) -> None:
    answer = reading.as_token(None).get("/healthz")
    assert answer.headers["strict-transport-security"] == "max-age=31536000"


def through(headers: list[tuple[bytes, bytes]], path: str) -> list[tuple[bytes, bytes]]:
    """What becomes of an answer's headers."""
    seen: list[Any] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": headers})

    async def send(message: Any) -> None:
        seen.append(message)

    shield = Shield(app, read_only=lambda: False, https=False)
    scope = {"type": "http", "path": path, "method": "GET"}
    asyncio.run(shield(scope, None, send))  # type: ignore[arg-type]
    return list(seen[0]["headers"])


def test_a_targets_answer_cannot_act_on_our_origin() -> None:
    """It is shown under our address: its pages run nothing, and it sets none of our cookies."""
    foreign = [
        (b"Set-Cookie", b"ascertain=evil; Path=/"), (b"set-cookie", b" __Host-ascertain=evil"),
        (b"set-cookie", b"ascertain-guest=evil"), (b"set-cookie", b"theirs=1"),
        (b"Content-Security-Policy", b"default-src *"), (b"X-Frame-Options", b"ALLOWALL"),
        (b"Access-Control-Allow-Origin", b"*"), (b"Clear-Site-Data", b'"cookies"'),
        (b"Cache-Control", b"public, max-age=99"), (b"Service-Worker-Allowed", b"/"),
        (b"content-type", b"text/html"),
    ]  # fmt: skip
    found = through(foreign, "/gateway/shop/page")
    assert [v for n, v in found if n.lower() == b"set-cookie"] == [b"theirs=1"]
    policies = [v for n, v in found if n.lower() == b"content-security-policy"]
    assert policies == [b"default-src 'none'; sandbox; frame-ancestors 'none'"]
    assert [v for n, v in found if n.lower() == b"cache-control"] == [b"no-store"]
    names = [n.lower() for n, _ in found]
    assert b"access-control-allow-origin" not in names
    assert b"clear-site-data" not in names
    assert names.count(b"x-frame-options") == 1
    assert (b"content-type", b"text/html") in found


def test_a_route_may_say_something_else_where_that_is_meant() -> None:
    own = through([(b"cache-control", b"max-age=60")], "/static/x.css")
    assert [v for n, v in own if n == b"cache-control"] == [b"max-age=60"]


# --- read only --------------------------------------------------------------------------------


def test_a_server_that_only_reads_takes_nothing(reading: Home, target: Shop) -> None:
    account(reading, "anna")
    before = len(list(reading.serving.store.rows()))
    for route in listed(build(reading.serving)):
        path = "".join("x" if c == "{" else c for c in route.path)
        path = path.replace("}", "").replace(":path", "")
        if path in ("/v1/session", "/v1/stream") or not path.startswith(
            ("/v1", "/gateway", "/hooks")
        ):
            continue
        answer = reading.client.request(route.method, path, json={})
        if path.startswith("/hooks") and route.method != "GET":
            # Not acknowledged: the sender keeps it and sends it again.
            assert (answer.status_code, answer.json()["code"]) == (503, "read_only"), route.name
            assert int(answer.headers["retry-after"]) > 0
        elif path.startswith("/gateway") or route.method not in ("GET", "HEAD", "OPTIONS"):
            assert answer.status_code == 403, route.name
            if route.method != "HEAD":
                assert answer.json()["code"] == "read_only", route.name
        else:
            assert answer.status_code != 503, route.name
    assert len(list(reading.serving.store.rows())) == before
    assert target.asked == []


def test_people_can_still_sign_in_and_look(reading: Home) -> None:
    account(reading, "anna", "viewer")
    assert sign_in(reading, "anna", Origin="https://a.example").status_code == 200


def test_it_can_be_turned_on_while_it_runs(home: Home) -> None:
    asked = {"action": "order", "input": {"name": "A"}}
    home.serving.read_only = True
    assert home.client.post("/v1/operations", json=asked).json()["code"] == "read_only"
    home.serving.read_only = False
    assert home.client.post("/v1/operations", json=asked).status_code == 200
    assert person(home, "anna").get("/v1/operations").status_code == 200

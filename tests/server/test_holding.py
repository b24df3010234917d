"""What all requests hold together is bounded: their bodies, and what they began."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from typing import Any

import httpx2
import pytest

from ascertain.server import holding, inflight
from server.house import Home
from server.processes import until
from server.target import Shop

LONG = "x" * 60_000


@pytest.fixture
def slow(target: Shop, monkeypatch: pytest.MonkeyPatch) -> Iterator[threading.Event]:
    """The target answers once this is set."""
    go, handler = threading.Event(), target.RequestHandlerClass
    meet: Any = handler._meet

    def waits(self: Any, fate: str, key: str, name: str) -> None:
        assert go.wait(15)
        meet(self, fate, key, name)

    monkeypatch.setattr(handler, "_meet", waits)
    yield go
    go.set()


def order(home: Home, name: str, **more: Any) -> httpx2.Response:
    asked = {"action": "order", "input": {"name": name, "note": LONG}, **more}
    return home.client.post("/v1/operations", json=asked)


def refused(answer: httpx2.Response) -> bool:
    return (answer.status_code, answer.json().get("code")) == (503, "overloaded")


def test_bodies_are_held_until_what_they_began_has_ended(
    home: Home, slow: threading.Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each was bounded and their number while they were answered; what they began went on behind
    the answers, without end."""
    monkeypatch.setattr(holding, "HELD", 100_000)
    assert order(home, "A", wait=0).status_code == 409
    second = order(home, "B", wait=0)
    assert refused(second)
    assert second.headers["retry-after"] == "1"
    assert home.client.get("/v1/operations", params={"key": "B"}).json()["items"] == []
    slow.set()
    until(lambda: not len(home.serving.in_flight))
    assert order(home, "B").status_code == 200
    assert order(home, "A").json()["reused"] is True


def test_bodies_that_arrive_slowly_are_held_too(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(holding, "HELD", 100_000)
    arrived: list[int] = []
    take = holding.Hold.take
    monkeypatch.setattr(
        holding.Hold, "take", lambda hold, size: (take(hold, size), arrived.append(size))
    )
    host, port = home.url.removeprefix("http://").split(":")
    head = (
        f"POST /v1/operations HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {home.secret}\r\n"
        "Content-Type: application/json\r\nContent-Length: 90000\r\n\r\n"
    )
    with socket.create_connection((host, int(port)), timeout=10) as slowly:
        slowly.sendall(head.encode() + b" " * 80_000)
        until(lambda: sum(arrived) == 80_000)  # else it is the slow one that is refused
        assert refused(order(home, "A"))
    until(lambda: order(home, "A").status_code == 200)  # it let go with its connection


@pytest.mark.parametrize("path", ["/v1/operations", "/v1/operations/batch", "/v1/pins"])
def test_so_much_is_under_way_at_once(
    home: Home, slow: threading.Event, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    assert order(home, "A", wait=0).status_code == 409
    monkeypatch.setattr(inflight, "MOST", 1)
    one = {"action": "order", "input": {"name": "B"}}
    bodies: dict[str, Any] = {
        "/v1/operations": one, "/v1/operations/batch": {"items": [one]},
        "/v1/pins": {"key": "p", "value": 1},
    }  # fmt: skip
    assert refused(home.client.post(path, json=bodies[path]))
    slow.set()
    until(lambda: not len(home.serving.in_flight))
    assert home.client.post(path, json=bodies[path]).status_code == 200

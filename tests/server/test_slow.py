"""Malformed, oversized, slow and half-closed requests: each ends its own connection, others are
served meanwhile, and memory stays flat."""

from __future__ import annotations

import contextlib
import json
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from ascertain.server import protocol
from ascertain.server.protocol import HEAD_BYTES, PIPELINED, Bounded
from server.house import Home
from server.processes import client, process
from server.test_up import written

MANY = 600  # slow connections at a time
MEGABYTES = 40  # that they may cost: each some kilobytes of buffers
SHORT = 1.0  # seconds instead of ten


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """The bounds of time, made short."""
    monkeypatch.setattr(protocol, "HEAD_WITHIN", SHORT)
    monkeypatch.setattr(protocol, "BODY_GRACE", SHORT)


@contextlib.contextmanager
def connected(home: Home) -> Iterator[socket.socket]:
    host, _, port = home.url.removeprefix("http://").rpartition(":")
    with socket.create_connection((host, int(port)), timeout=15) as made:
        yield made


def said(connection: socket.socket) -> tuple[int, dict[str, str], bytes]:
    """The answer, read until the server closes or its length has come."""
    data = b""
    with contextlib.suppress(ConnectionResetError):
        while part := connection.recv(65536):
            data += part
            head, _, body = data.partition(b"\r\n\r\n")
            for line in head.lower().split(b"\r\n"):
                name, _, value = line.partition(b":")
                if name == b"content-length" and len(body) >= int(value):
                    return _parsed(head, body)
    head, _, body = data.partition(b"\r\n\r\n")
    return _parsed(head, body) if head else (0, {}, b"")


def _parsed(head: bytes, body: bytes) -> tuple[int, dict[str, str], bytes]:
    first, *lines = head.decode("latin-1").split("\r\n")
    headers = {n.lower(): v.strip() for n, _, v in (line.partition(":") for line in lines)}
    return int(first.split()[1]), headers, body


def request(home: Home, body: bytes, *more: str, length: int | None = None) -> bytes:
    lines = [
        "POST /v1/operations HTTP/1.1", "Host: x", f"Authorization: Bearer {home.secret}",
        "Content-Type: application/json",
        f"Content-Length: {len(body) if length is None else length}", *more,
    ]  # fmt: skip
    return ("\r\n".join(lines) + "\r\n\r\n").encode() + body


BODY = b'{"action": "order", "input": {"name": "A"}}'
MALFORMED = {
    "no http": b"hello there\r\n\r\n",
    "no path": b"GET HTTP/1.1\r\n\r\n",
    "a version that there is not": b"GET / HTTP/9.9\r\nHost: x\r\n\r\n",
    "a blank in a name": b"GET / HTTP/1.1\r\nA b: c\r\n\r\n",
    "two lengths": b"POST / HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nx",
    "a length and chunks": (
        b"POST / HTTP/1.1\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"
    ),
    "a bad chunk": b"POST /v1/operations HTTP/1.1\r\nHost: x\r\n"
    b"Transfer-Encoding: chunked\r\n\r\nzz\r\n",
    "a path that is no text": b"GET /\xff\xfe HTTP/1.1\r\nHost: x\r\n\r\n",
    "a tunnel": b"CONNECT example.com:443 HTTP/1.1\r\nHost: x\r\n\r\n",
    "tls": bytes.fromhex("16030100c8010000c40303") + bytes(180),
}


@pytest.mark.parametrize("data", [pytest.param(d, id=n) for n, d in MALFORMED.items()])
def test_what_is_no_request_is_a_400_and_harms_nobody(home: Home, data: bytes) -> None:
    with connected(home) as one:
        one.sendall(data)
        status, headers, body = said(one)
        assert 400 <= status < 500
        if headers.get("connection") == "close" and status == 400:
            assert json.loads(body)["type"].startswith("urn:ascertain:problem:")
    assert home.client.get("/healthz").status_code == 200


def test_a_head_has_a_bound(home: Home) -> None:
    for head in (
        b"GET /" + b"a" * HEAD_BYTES + b" HTTP/1.1\r\nHost: x\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: x\r\nA: " + b"a" * HEAD_BYTES + b"\r\n\r\n",
        b"GET / HTTP/1.1\r\n" + b"A: b\r\n" * (HEAD_BYTES // 5) + b"\r\n",
        b"GET / HTTP/1.1\r\nHost: x\r\nA: " + b"a" * (HEAD_BYTES * 2),  # it never ends
    ):
        with connected(home) as one:
            with contextlib.suppress(OSError):
                one.sendall(head)
            status, headers, body = said(one)
            assert (status, json.loads(body)["code"]) == (431, "too_large")
            assert headers["connection"] == "close"


def test_a_head_that_comes_too_slowly_is_a_408(home: Home, quick: None) -> None:
    with connected(home) as one:
        one.sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\n")
        began = time.monotonic()
        status, _, body = said(one)
        assert (status, json.loads(body)["code"]) == (408, "too_slow")
        assert time.monotonic() - began < SHORT * 6


def test_a_connection_that_says_nothing_ends(home: Home, quick: None) -> None:
    with connected(home) as silent, connected(home) as blank:
        blank.sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
        assert said(blank)[0] == 200
        until = time.monotonic() + SHORT * 3
        with contextlib.suppress(OSError):
            while time.monotonic() < until:  # blank lines begin no request, and hold nothing open
                blank.sendall(b"\r\n")
                time.sleep(0.1)
        assert said(blank)[0] in (0, 408)
        assert said(silent)[0] == 0


def test_a_body_that_comes_too_slowly_is_a_408(home: Home, quick: None) -> None:
    with connected(home) as one:
        one.sendall(request(home, BODY[:4], length=len(BODY)))
        until = time.monotonic() + SHORT * 6
        with contextlib.suppress(OSError):
            while time.monotonic() < until:
                one.sendall(b" ")
                time.sleep(0.3)
        status, _, body = said(one)
        assert (status, json.loads(body)["code"]) == (408, "too_slow")


def test_a_body_that_comes_fast_enough_has_its_time(home: Home, quick: None) -> None:
    size = 400_000  # bytes, in 20 parts: three seconds and a half
    body = BODY + b" " * (size - len(BODY))
    with connected(home) as one:
        head = request(home, b"", length=len(body))
        one.sendall(head)
        for at in range(0, len(body), size // 20):
            one.sendall(body[at : at + size // 20])
            time.sleep(0.15)
        assert said(one)[0] == 200


def test_the_rest_of_a_body_that_was_refused_is_no_head(home: Home) -> None:
    rest = bytes(4 * HEAD_BYTES)
    with connected(home) as one:
        one.sendall(request(home, b"", length=64 << 20))
        assert said(one)[0] == 413
        for _ in range(4):
            one.sendall(rest)
            time.sleep(0.05)
        one.settimeout(0.5)
        with pytest.raises(TimeoutError):  # neither a second answer nor an end
            one.recv(1)


def test_who_sends_no_more_still_gets_his_answer(home: Home) -> None:
    with connected(home) as whole, connected(home) as half:
        whole.sendall(request(home, BODY))
        whole.shutdown(socket.SHUT_WR)
        status, headers, body = said(whole)
        assert (status, json.loads(body)["state"]) == (200, "done")
        half.sendall(request(home, BODY[:10], length=len(BODY)))
        half.shutdown(socket.SHUT_WR)
        status, _, body = said(half)
        assert (status, json.loads(body)["code"]) == (400, "body_malformed")
    assert headers["connection"] == "close"


def test_requests_in_advance_have_a_bound(home: Home) -> None:
    one_request = b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"
    with connected(home) as few:
        few.sendall(one_request * PIPELINED)
        data = b""
        while data.count(b"HTTP/1.1 200") < PIPELINED:
            data += few.recv(65536)
    with connected(home) as many:
        many.sendall(one_request * 2000)
        data = b""
        with contextlib.suppress(OSError):
            while part := many.recv(65536):
                data += part
        assert data.count(b"HTTP/1.1 200") < 200
    assert home.client.get("/healthz").status_code == 200


def test_the_one_that_says_nothing_for_longest_makes_room(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert home.client.get("/healthz").status_code == 200
    monkeypatch.setattr(Bounded, "most", 8)
    with contextlib.ExitStack() as stack:
        silent = [stack.enter_context(connected(home)) for _ in range(20)]
        assert home.as_token(home.secret).get("/readyz").status_code == 200
        assert said(silent[0])[0] == 0  # it was cut


@pytest.mark.timeout(90)
def test_many_slow_connections_stop_nobody_and_memory_stays_flat(
    tmp_path: Path, target: object
) -> None:
    written(tmp_path, target)  # type: ignore[arg-type]
    with process(tmp_path, "up", "--port", "0", "--json") as up, contextlib.ExitStack() as stack:
        up.listening()
        host, _, port = up.url.removeprefix("http://").rpartition(":")
        with client(tmp_path, up.url) as ours:

            def works(name: str) -> float:
                began = time.monotonic()
                asked = {"action": "order", "input": {"name": name}}
                assert ours.post("/v1/operations", json=asked).status_code == 200
                return time.monotonic() - began

            works("before")
            before = up.rss()
            slow = [
                stack.enter_context(socket.create_connection((host, int(port))))
                for _ in range(MANY)
            ]
            for number, one in enumerate(slow):
                kind = number % 3
                if kind:
                    one.sendall(b"POST /v1/operations HTTP/1.1\r\nHost: x\r\n")
                if kind == 2:
                    one.sendall(b"Content-Length: 2000000\r\n\r\n" + b" " * 30_000)
            spent = [works(f"meanwhile {number}") for number in range(20)]
            assert sorted(spent)[10] < 1.0
            assert (up.rss() - before) / 1e6 < MEGABYTES
            assert len(psutil.Process(up.popen.pid).net_connections()) > MANY // 2
            alive = time.monotonic() + protocol.HEAD_WITHIN * 4
            while len(psutil.Process(up.popen.pid).net_connections()) > 20:
                assert time.monotonic() < alive, "slow connections are never ended"
                time.sleep(0.2)
        up.send()
        assert up.ended() == 0

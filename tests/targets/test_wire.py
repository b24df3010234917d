"""The wire: sent by the deadline in one write or not at all, and cut for good (law 5)."""

from __future__ import annotations

import socket
import threading
import time
from typing import Any

import httpcore2
import pytest

from ascertain.targets import wire
from ascertain.targets.http import EffectHttp
from ascertain.targets.wire import DeadlinePassed
from targets.serving import (
    CREATED,
    Hand,
    Server,
    answer,
    client,
    read_request,
    refused,
    shop,
    trusting,
)

MIB = 1024 * 1024
TLS = pytest.mark.parametrize("tls", [False, True], ids=["plain", "tls"])


def context(tls: bool) -> dict[str, Any]:
    return {"ssl_context": trusting()} if tls else {}


def slow_names(monkeypatch: pytest.MonkeyPatch, gate: threading.Event) -> None:
    """Let the resolver take its time, as it does when no name server answers."""
    real = socket.getaddrinfo

    def slow(*args: Any, **more: Any) -> Any:
        if not more.get("flags"):
            gate.wait(3)
        return real(*args, **more)

    monkeypatch.setattr(socket, "getaddrinfo", slow)


@pytest.fixture
def sends(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, int]]:
    """Every send on a non-blocking socket: bytes taken, and TCP_USER_TIMEOUT at that time."""
    seen: list[tuple[int, int]] = []
    original = socket.socket.send

    def send(self: socket.socket, data: Any, *flags: int) -> int:
        taken = original(self, data, *flags)
        if self.gettimeout() == 0 and self.family != socket.AF_UNIX:
            option = socket.TCP_USER_TIMEOUT
            seen.append((taken, self.getsockopt(socket.IPPROTO_TCP, option)))
        return taken

    monkeypatch.setattr(socket.socket, "send", send)
    return seen


@TLS
def test_a_request_leaves_in_one_write(tls: bool, sends: list[tuple[int, int]]) -> None:
    with Server(CREATED, tls=tls) as server:
        client(**context(tls)).post(server.url, content=b"x" * 50_000)
    assert len([taken for taken, _ in sends if taken > 1000]) == 1
    assert server.requests[0].endswith(b"x" * 50_000)


def test_the_kernel_is_told_when_to_give_up(sends: list[tuple[int, int]]) -> None:
    with Server(CREATED) as server:
        client(within=3).post(server.url, json={})
    assert 2000 < sends[-1][1] <= 3000


@TLS
def test_the_deadline_is_checked_before_each_send(
    tls: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock, sent = Hand(), []
    original = wire.Wire._send_some

    def send(self: wire.Wire, data: Any, **more: Any) -> int:
        taken = original(self, data, **more)
        if more["effect"]:
            sent.append(taken)
            clock.at = 2_000_000  # a suspend, seen by this clock alone
        return taken

    monkeypatch.setattr(wire.Wire, "_send_some", send)
    with Server("waits", tls=tls, buffer=4096) as server:
        http = EffectHttp(deadline=1_000_000, clock=clock, **context(tls))
        with pytest.raises(DeadlinePassed):
            http.post(server.url, content=b"x" * 8 * MIB)
        assert len(sent) == 1
        assert http.trace.started
        assert not http.trace.whole


@TLS
def test_a_cut_withholds_what_the_kernel_still_holds(tls: bool) -> None:
    with Server("waits", tls=tls, buffer=4096) as server:
        http = client(within=0.25, **context(tls))
        with pytest.raises(Exception, match=r"deadline|answer"):
            http.post(server.url, content=b"x" * 300_000)
        server.go.set()
    received = server.requests[0] if server.requests else b""
    assert tls or b"<end>" not in received  # Python's TLS takes a reset for an end
    assert len(received) < 300_000


def test_a_plain_close_would_deliver_it() -> None:
    """What the test above would see without SO_LINGER 0."""
    with Server("waits") as server:
        with socket.create_connection(("127.0.0.1", server.port)) as sock:
            sock.sendall(b"x" * 300_000)
        assert server.came.wait(2)
        server.go.set()
    assert server.requests[0] == b"x" * 300_000 + b"<end>"


@pytest.mark.parametrize("where", ["name", "connect", "tls", "answer"])
def test_closing_wakes_whoever_waits(where: str, monkeypatch: pytest.MonkeyPatch) -> None:
    gate = threading.Event()
    if where == "name":
        slow_names(monkeypatch, gate)
    quiet = socket.socket()
    quiet.bind(("127.0.0.1", 0))
    quiet.listen(0)
    full = [socket.socket() for _ in range(3)]
    port = quiet.getsockname()[1]
    if where == "connect":
        for sock in full:  # a full backlog: connecting neither succeeds nor fails
            sock.setblocking(False)
            sock.connect_ex(("127.0.0.1", port))
    http = client(within=30, **context(where == "tls"))
    ended: list[Any] = []

    def send() -> None:
        scheme = "https" if where == "tls" else "http"
        host = "localhost" if where == "name" else "127.0.0.1"
        try:
            http.post(f"{scheme}://{host}:{port}/", json={})
        except Exception as error:
            ended.append(error)

    thread = threading.Thread(target=send)
    thread.start()
    time.sleep(0.15)
    before = time.monotonic()
    http.close()
    thread.join(3)
    took = time.monotonic() - before
    gate.set()
    for sock in (*full, quiet):
        sock.close()
    assert ended
    assert took < 2.5
    assert http.trace.sent_nothing is (where != "answer")


def test_no_send_begins_after_close() -> None:
    with Server(CREATED) as server:
        http = client()
        http.close()
        with pytest.raises(DeadlinePassed, match="ended"):
            http.post(server.url, json={})
    assert server.connections == 0
    assert http.trace.sent_nothing


def test_an_extended_deadline_is_waited_for() -> None:
    clock, ends = Hand(), [100_000]

    def slow(conn: socket.socket) -> None:
        read_request(conn)
        ends[0], clock.at = 10_000_000, 200_000
        time.sleep(0.1)
        conn.sendall(CREATED)

    with Server(slow) as server:
        http = EffectHttp(deadline=lambda: ends[0], clock=clock)
        assert http.post(server.url, json={}).status == 201


@pytest.mark.parametrize("where", ["name", "tls", "answer"])
def test_every_wait_ends_at_the_deadline(where: str, monkeypatch: pytest.MonkeyPatch) -> None:
    gate = threading.Event()
    if where == "name":
        slow_names(monkeypatch, gate)
    with Server("silent") as server:
        url = server.url.replace("http:", "https:") if where == "tls" else server.url
        before = time.monotonic()
        http = client(within=0.2, **context(where == "tls"))
        expected = httpcore2.ReadTimeout if where == "answer" else httpcore2.ConnectTimeout
        with pytest.raises(expected):
            http.post(url, json={})
        gate.set()
    assert time.monotonic() - before < 5
    assert http.trace.sent_nothing is (where != "answer")


def test_the_next_address_is_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    with refused() as port, Server(CREATED) as server:
        found = [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", p))
                 for p in (port, server.port)]  # fmt: skip
        monkeypatch.setattr(wire.Wire, "_resolve", lambda *_: found)
        assert client().post("http://shop.example/", json={}).status == 201


def test_one_silent_address_does_not_use_up_the_time(monkeypatch: pytest.MonkeyPatch) -> None:
    with Server(CREATED) as server, socket.socket() as quiet:
        quiet.bind(("127.0.0.1", 0))
        quiet.listen(0)
        full = [socket.socket() for _ in range(3)]
        for sock in full:
            sock.setblocking(False)
            sock.connect_ex(quiet.getsockname())
        found = [(socket.AF_INET, socket.SOCK_STREAM, 6, "", a)
                 for a in (quiet.getsockname(), ("127.0.0.1", server.port))]  # fmt: skip
        monkeypatch.setattr(wire.Wire, "_resolve", lambda *_: found)
        assert client(within=0.5).post("http://shop.example/", json={}).status == 201
        for sock in full:
            sock.close()


@TLS
@pytest.mark.parametrize("closes", [True, False])
def test_an_early_answer_is_heard(tls: bool, closes: bool) -> None:
    """The server refuses a body that it does not read (413): that is its answer."""

    def early(conn: socket.socket) -> None:
        conn.recv(4096)
        conn.sendall(answer("413 Content Too Large"))
        if not closes:
            server.go.wait(2)

    with Server(early, tls=tls, buffer=4096) as server:
        http = client(**context(tls), contract=shop())
        got = http.post(server.url, content=b"x" * 20 * MIB, check=False)
    assert got.status == 413
    assert not http.trace.whole
    assert http.trace.finding.kind == "invalid"


def test_a_connection_that_closes_while_it_is_written_to_is_no_answer() -> None:
    def half(conn: socket.socket) -> None:
        conn.recv(4096)
        conn.shutdown(socket.SHUT_WR)
        server.go.wait(2)

    with Server(half, buffer=4096) as server:
        http = client()
        with pytest.raises(httpcore2.NetworkError):
            http.post(server.url, content=b"x" * 20 * MIB)
    assert http.trace.started
    assert http.trace.finding is None


def test_a_flood_of_preliminary_answers_is_bounded() -> None:
    def flood(conn: socket.socket) -> None:
        read_request(conn)
        while True:
            conn.sendall(b"HTTP/1.1 102 Processing\r\n\r\n" * 1000)

    with Server(flood) as server, pytest.raises(httpcore2.RemoteProtocolError, match="more than"):
        client(within=30).post(server.url, json={})


def test_an_unknown_certificate_stops_before_anything_is_sent() -> None:
    with Server(CREATED, tls=True) as server:
        http = client()
        with pytest.raises(httpcore2.ConnectError, match="certificate"):
            http.post(server.url, json={})
    assert http.trace.sent_nothing
    assert server.requests == []


def test_an_answer_that_tls_cuts_is_none() -> None:
    def cuts(conn: Any) -> None:
        read_request(conn)
        conn.sendall(b"HTTP/1.1 201 Created\r\n\r\n{}")  # its end is the connection's
        socket.socket.shutdown(conn, socket.SHUT_RDWR)  # and TLS does not say goodbye

    with Server(cuts, tls=True) as server:
        http = client(**context(True))
        with pytest.raises(httpcore2.ReadError):
            http.post(server.url, json={})
    assert http.trace.finding is None


@pytest.mark.parametrize("tls", [False, True])
def test_ipv6(tls: bool) -> None:
    try:
        made = Server(CREATED, tls=tls, family=socket.AF_INET6)
    except OSError:
        pytest.skip("no IPv6 on loopback")
    with made as server:
        url = server.url.replace("localhost", "[::1]")
        assert client(**context(tls)).post(url, json={}).status == 201
    assert f"Host: [::1]:{server.port}".encode() in server.requests[0]

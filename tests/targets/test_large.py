"""A large body on the wire: by the deadline, whole or not at all, and only where it is frozen."""

from __future__ import annotations

import hashlib
import socket
import threading
from collections.abc import Iterator

import pytest

from ascertain import SendRefused
from ascertain.core.errors import InputRefused
from ascertain.core.model import Large, Request
from ascertain.runtime.freezing import request_digest
from ascertain.targets.addresses import AddressRefused, refused
from ascertain.targets.freezing import check, same_bytes, summary
from ascertain.targets.http import EffectHttp
from ascertain.targets.wire import DeadlinePassed

PART = b"x" * 1_000_000
LARGE = Large(sha256=hashlib.sha256(PART * 20).hexdigest(), size=20_000_000)


def made(url: str, large: Large = LARGE) -> Request:
    return Request(method="POST", url=url, large=large)


@pytest.fixture
def sink() -> Iterator[tuple[str, list[int]]]:
    """Takes what comes and counts it; answers nobody."""
    got = [0]
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def take() -> None:
            try:
                sock, _ = listening.accept()
            except OSError:
                return
            with sock:
                try:
                    while piece := sock.recv(65536):
                        got[0] += len(piece)
                except OSError:
                    return

        thread = threading.Thread(target=take, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{listening.getsockname()[1]}/", got
        listening.shutdown(socket.SHUT_RDWR)
        thread.join(5)


def test_a_deadline_that_passes_half_way_ends_the_sending(sink: tuple[str, list[int]]) -> None:
    url, got = sink
    now = [0]

    def bodies(_: Large) -> Iterator[bytes]:
        for number in range(20):
            now[0] += 10 if number == 10 else 0
            yield PART

    http = EffectHttp(deadline=5, clock=lambda: now[0], bodies=bodies)
    with pytest.raises(DeadlinePassed):
        http.send(made(url))
    assert http.trace.started
    assert not http.trace.whole
    assert got[0] < 11_000_000


def test_a_body_that_is_not_there_sends_nothing(sink: tuple[str, list[int]]) -> None:
    url, got = sink

    def bodies(_: Large) -> Iterator[bytes]:
        raise InputRefused("it is not kept")
        yield b""

    http = EffectHttp(deadline=5, clock=lambda: 0, bodies=bodies)
    with pytest.raises(InputRefused):
        http.send(made(url))
    with pytest.raises(SendRefused):
        EffectHttp(deadline=5, clock=lambda: 0).send(made(url))
    assert http.trace.sent_nothing
    assert got == [0]


def test_a_refused_address_is_never_connected_to(sink: tuple[str, list[int]]) -> None:
    url, got = sink
    for address in (url, url.replace("127.0.0.1", "localhost")):
        http = EffectHttp(deadline=5_000_000, clock=lambda: 0)
        http.guard = refused
        with pytest.raises(AddressRefused):
            http.send(Request(method="POST", url=address, body=b"1"))
        assert http.trace.sent_nothing
    assert got == [0]


def test_the_content_is_what_is_frozen() -> None:
    one, other = made("http://x/"), made("http://x/", Large(sha256="0" * 64, size=LARGE.size))
    assert not same_bytes(one, other)
    assert request_digest(one) != request_digest(other)
    assert request_digest(one) != request_digest(Request(method="POST", url="http://x/"))
    assert summary(one)["body_sha256"] == LARGE.sha256
    assert summary(one)["body_bytes"] == LARGE.size
    with pytest.raises(InputRefused):
        check(Request(method="POST", url="http://x/", body=b"1", large=LARGE))

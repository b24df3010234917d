"""What a hook must bear: malformed, oversized, slow, half-closed, wrongly signed, compressed and
deeply nested deliveries are clear 4xx, record nothing, and take no memory."""

from __future__ import annotations

import gzip
import random
import resource
import socket
import time
from collections.abc import Iterator
from typing import Any

import pytest

from server import signing
from server.hooked import OTHERS, body, hooked, send
from server.house import Home
from server.target import shop

MEGABYTE = 1024 * 1024


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Home]:
    """One for all: none of them may leave anything behind."""
    with pytest.MonkeyPatch.context() as patch, shop() as target:
        patch.setattr("ascertain.server.receiving.BODY_WITHIN", 0.5)
        with hooked(tmp_path_factory.mktemp("hostile"), target, patch, OTHERS) as running:
            yield running


@pytest.fixture
def home(server: Home) -> Iterator[Home]:
    yield server
    assert server.client.get("/v1/events").json()["items"] == []
    assert server.client.get("/healthz").status_code == 200
    assert server.serving.receiving._held == 0


def raw(home: Home, *pieces: bytes, close: bool = False, wait: float = 5.0) -> bytes:
    """Say something on a bare socket and return what comes back."""
    host, port = home.url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), wait) as line:
        heard = b""
        try:
            for piece in pieces:
                line.sendall(piece)
            if close:
                line.shutdown(socket.SHUT_WR)
            while part := line.recv(65536):
                heard += part
                if b"\r\n\r\n" in heard and heard.endswith(b"}"):
                    break
        except OSError:
            pass
        return heard


def head(*headers: str, path: str = "/hooks/stripe") -> bytes:
    lines = [f"POST {path} HTTP/1.1", "Host: localhost", "Connection: close", *headers, "", ""]
    return "\r\n".join(lines).encode()


def test_a_body_that_is_too_large_is_not_read(home: Home) -> None:
    data = b'{"id": "' + b"x" * 2 * MEGABYTE + b'"}'
    answer = send(home, "/hooks/stripe", data, signing.stripe(data))
    assert (answer.status_code, answer.json()["code"]) == (413, "too_large")
    assert b" 413 " in raw(home, head(f"Content-Length: {10**12}"))
    small = body(number="x" * 6000)  # its own bound is 5,000 bytes
    assert send(home, "/hooks/own", small, {}).status_code == 413


def test_a_body_without_a_length_is_bounded_too(home: Home) -> None:
    chunk = b"10000\r\n" + b"x" * 0x10000 + b"\r\n"
    heard = raw(home, head("Transfer-Encoding: chunked"), *[chunk] * 20)
    assert b" 413 " in heard or heard == b""  # the line may be closed while we still send


def test_a_compressed_body_is_not_unpacked(home: Home) -> None:
    bomb = gzip.compress(b"0" * 50 * MEGABYTE)
    for encoding in ("gzip", "br", "deflate", "gzip, identity"):
        answer = send(
            home, "/hooks/stripe", bomb, signing.stripe(bomb), **{"Content-Encoding": encoding}
        )
        assert (answer.status_code, answer.json()["code"]) == (415, "unsupported_media")


@pytest.mark.parametrize(
    "data",
    [
        b"", b"{", b"[" * 100_000, b'{"a":' * 50_000 + b"1" + b"}" * 50_000, b"\xff\xfe", b"null",
        b'{"id": 1e999}', b'"\\ud800"', b'{"id": "evt"} x', b"\x00",
    ],
    ids=["nothing", "open", "deep", "deep objects", "no UTF-8", "null", "infinite", "surrogate",
         "more", "NUL"],
)  # fmt: skip
def test_a_signed_body_that_is_no_event_is_refused(home: Home, data: bytes) -> None:
    answer = send(home, "/hooks/stripe", data, signing.stripe(data))
    assert answer.status_code in (400, 422), answer.text
    assert answer.json()["code"] in ("body_malformed", "body_invalid")


@pytest.mark.parametrize(
    "ident", [None, "", True, {"a": 1}, ["x"], "a\x00b", "x" * 300, "line\nbreak"], ids=repr
)
def test_an_id_that_is_none_is_refused(home: Home, ident: Any) -> None:
    data = body(id=ident)
    answer = send(home, "/hooks/stripe", data, signing.stripe(data))
    assert (answer.status_code, answer.json()["code"]) == (422, "body_invalid")


def test_a_form_with_a_nul_is_refused(home: Home) -> None:
    data = b"id=a\x00b"
    form = {"Content-Type": "application/x-www-form-urlencoded"}
    assert send(home, "/hooks/stripe", data, {**signing.stripe(data), **form}).status_code == 400


def test_a_slow_body_is_not_waited_for(home: Home) -> None:
    began = time.monotonic()
    heard = raw(home, head("Content-Length: 100"), b"{")
    assert b" 408 " in heard
    assert time.monotonic() - began < 3


def test_a_half_closed_line_is_a_clear_end(home: Home) -> None:
    heard = raw(home, head("Content-Length: 100"), b"{", close=True)
    assert heard == b"" or b" 400 " in heard


@pytest.mark.parametrize(
    "said",
    [
        b"POST\r\n\r\n", b"\x16\x03\x01\x02\x00\x01\x00", b"POST /hooks/stripe HTTP/9\r\n\r\n",
        head("Content-Length: -1"), head("Content-Length: 1", "Content-Length: 2"),
        head("Transfer-Encoding: chunked") + b"zz\r\n", b"A" * 200_000,
    ],
    ids=["no path", "TLS", "version", "negative", "two lengths", "chunk", "endless"],
)  # fmt: skip
def test_what_is_no_http_ends_the_line(home: Home, said: bytes) -> None:
    heard = raw(home, said, close=True)
    assert heard == b"" or heard.split(b" ", 2)[1].startswith(b"4"), heard


def test_endless_headers_are_refused(home: Home) -> None:
    many = [f"X-{n}: {'x' * 200}" for n in range(2000)]
    heard = raw(home, head(*many, "Content-Length: 2") + b"{}")
    assert heard == b"" or b" 4" in heard[:20]


def test_noise_in_the_path_finds_nothing(home: Home) -> None:
    for path in ("/hooks/..%2fv1", "/hooks/%00", "/hooks/stripe%2ftest", "/hooks/", "/hooks"):
        answer = home.as_token(None).post(path, content=b"{}")
        assert answer.status_code in (404, 405, 307), path


def test_random_headers_never_break_it(home: Home) -> None:
    chance = random.Random(1)
    names = ["Stripe-Signature", "X-Slack-Signature", "X-Slack-Request-Timestamp",
             "X-Lark-Signature", "webhook-signature", "webhook-timestamp", "webhook-id",
             "x-contentful-signature", "x-contentful-signed-headers", "x-contentful-timestamp",
             "X-Hub-Signature-256", "X-WC-Webhook-Signature", "Content-Type"]  # fmt: skip
    for number in range(150):
        path = chance.choice(["standard", "stripe", "woo", "code", "chat", "lark", "cms", "own"])
        given = {
            name: "".join(chance.choice("v01=,; t.aZ9+/é-") for _ in range(chance.randrange(40)))
            for name in chance.sample(names, 5)
        }
        lines = [f"{n}: {v.strip()}" for n, v in given.items()]
        said = head(*lines, "Content-Length: 2", path=f"/hooks/{path}") + b"{}"
        heard = raw(home, said)
        assert b" 4" in heard[:14], (number, path, given, heard)


def test_memory_stays_flat(home: Home) -> None:
    def round_() -> None:
        big = b'{"id": "' + b"x" * (MEGABYTE - 20) + b'"}'
        for _ in range(40):
            assert send(home, "/hooks/stripe", big, {}).status_code == 401
        for _ in range(10):
            raw(home, head("Content-Length: 900000"), b"x" * 500_000, close=True)

    for _ in range(2):
        round_()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    round_()
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 20 * 1024  # KiB

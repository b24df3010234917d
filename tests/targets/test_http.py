"""`call.http`: one effect request, exactly as frozen, and no credential is kept (laws 11, 17)."""

from __future__ import annotations

import asyncio
import io
import threading
import time
from typing import Any

import httpcore2
import pytest
from msgspec.structs import replace

from ascertain.core.contract import load
from ascertain.core.errors import ContractInvalid, InputRefused, SendRefused
from ascertain.core.model import Accepted, Done, NotDone, Request, Unknown
from ascertain.targets.freezing import BODY_BYTES, freeze
from ascertain.targets.http import Answered, AsyncEffectHttp
from targets.serving import CREATED, Server, answer, both, client, read_request, shop


@pytest.fixture(params=[False, True], ids=["sync", "async"])
def twin(request: pytest.FixtureRequest) -> bool:
    return bool(request.param)


def test_a_success_is_what_the_contract_calls_one(twin: bool) -> None:
    with Server(CREATED) as server:
        http = both(client(contract=shop()), twin)
        assert http.post(server.url, json={"b": 1, "a": "ü"}).json() == {"id": 5}
    assert isinstance(http.trace.finding, Done)
    assert http.trace.whole
    assert http.trace.answered
    head, _, body = server.requests[0].partition(b"\r\n\r\n")
    assert body == b'{"b":1,"a":"\xc3\xbc"}'  # the order of the fields is kept
    assert head.startswith(b"POST /orders HTTP/1.1\r\n")
    assert b"Content-Length: 16" in head
    assert b"Connection: close" in head


def test_what_the_contract_takes_for_taken_over_is_accepted(twin: bool) -> None:
    with Server(answer("202 Accepted")) as server:
        http = both(client(contract=shop(ok={"when": "202", "accepted": True})), twin)
        http.post(server.url, json={})
    assert isinstance(http.trace.finding, Accepted)


@pytest.mark.parametrize(
    ("status", "finding"),
    [
        ("400 Bad Request", "invalid"), ("401 Unauthorized", "unauthorized"),
        ("500 Internal Server Error", ""), ("200 OK", ""), ("409 Conflict", ""),
        ("301 Moved", ""), ("307 Temporary Redirect", ""),
    ],
)  # fmt: skip
def test_any_other_answer_ends_the_attempt_with_what_it_proves(
    twin: bool, status: str, finding: str
) -> None:
    with Server(answer(status, b"{}", Location="/elsewhere")) as server:
        http = both(client(contract=shop()), twin)
        with pytest.raises(Answered) as caught:
            http.post(server.url, json={})
    found = caught.value.finding
    assert isinstance(found, NotDone if finding else Unknown)
    assert getattr(found, "kind", "") == finding
    assert len(server.requests) == 1  # no redirect was followed
    assert http.trace.finding == found


def test_without_check_the_code_judges_itself(twin: bool) -> None:
    with Server(answer("409 Conflict")) as server:
        assert both(client(contract=shop()), twin).post(server.url, check=False).status == 409


def test_a_second_effect_request_is_refused_and_the_first_finding_stays(twin: bool) -> None:
    with Server(answer("400 Bad Request")) as server:
        http = both(client(contract=shop()), twin)
        http.post(server.url, json={}, check=False)
        with pytest.raises(SendRefused, match="second effect request"):
            http.put(server.url, json={})
        assert http.get(server.url).status == 400  # looking is free
    assert len(server.requests) == 2
    assert isinstance(http.trace.finding, NotDone)
    assert http.trace.requests == 1


def test_a_get_that_acts_counts_as_one(twin: bool) -> None:
    with Server(CREATED) as server:
        http = both(client(contract=shop()), twin)
        http.get(server.url, effect=True)
        assert http.trace.started
        with pytest.raises(SendRefused, match="second"):
            http.post(server.url)


def test_a_search_by_post_does_not_if_that_is_promised(twin: bool) -> None:
    with Server(CREATED) as server:
        http = both(client(contract=shop()), twin)
        http.post(server.url, json={"find": 1}, effect=False)
        assert http.trace.sent_nothing
        http.post(server.url, json={})
        assert not http.trace.sent_nothing


def test_a_look_up_sends_as_often_as_it_likes(twin: bool) -> None:
    with Server(answer("404 Not Found")) as server:
        http = both(client(effect=False, contract=shop()), twin)
        assert [http.post(server.url).status, http.get(server.url).status] == [404, 404]
    assert http.trace.sent_nothing


def test_two_threads_have_one_effect_request_between_them() -> None:
    with Server(CREATED) as server:
        http, ended = client(contract=shop()), []

        def send() -> None:
            try:
                ended.append(http.post(server.url, json={}).status)
            except SendRefused:
                ended.append(0)

        threads = [threading.Thread(target=send) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(5)
    assert sorted(ended) == [0] * 7 + [201]
    assert len(server.requests) == 1


def test_looking_meanwhile_does_not_hide_that_it_was_sent() -> None:
    """A GET on another connection of the same attempt leaves the effect's trace alone."""
    with Server("silent") as server, Server(CREATED) as other:
        http = client(within=0.3, contract=shop())

        def look() -> None:
            for _ in range(5):
                http.get(other.url)

        thread = threading.Thread(target=look)
        thread.start()
        with pytest.raises(httpcore2.ReadTimeout):
            http.post(server.url, json={})
        thread.join(5)
    assert not http.trace.sent_nothing


# --- what was frozen is what is sent ---


def frozen(url: str) -> Request:
    made = freeze("POST", url, json={"op": "k" * 26}, headers={"X-Op": "k" * 26})
    return replace(made, key_forms=("k" * 26,))


def test_the_frozen_request_is_sent_byte_for_byte(twin: bool) -> None:
    with Server(CREATED) as server:
        request = frozen(server.url)
        http = both(client(contract=shop(), request=request), twin)
        http.send(request, headers={"Authorization": "Bearer t0p-secret"})
    assert server.requests[0].endswith(b"\r\n\r\n" + request.body)
    assert b"Authorization: Bearer t0p-secret" in server.requests[0]


def test_the_same_request_made_anew_is_the_frozen_one(twin: bool) -> None:
    with Server(CREATED) as server:
        http = both(client(contract=shop(), request=frozen(server.url)), twin)
        http.post(server.url, json={"op": "k" * 26}, headers={"X-Op": "k" * 26})
    assert len(server.requests) == 1


@pytest.mark.parametrize("change", ["url", "body", "headers", "method", "beside"])
def test_anything_else_is_refused(twin: bool, change: str) -> None:
    with Server(CREATED) as server:
        request = frozen(server.url)
        http = both(client(contract=shop(), request=request), twin)
        other = {
            "url": replace(request, url=request.url + "?x=1"),
            "body": replace(request, body=request.body + b" "),
            "headers": replace(request, headers=(*request.headers, ("X-More", "1"))),
            "method": replace(request, method="PUT"),
        }.get(change, request)
        beside = {"X-More": "1"} if change == "beside" else {}
        with pytest.raises(SendRefused, match=r"frozen|not part of the request"):
            http.send(other, headers=beside)
    assert server.connections == 0
    assert http.trace.sent_nothing


def test_a_frozen_get_is_an_effect(twin: bool) -> None:
    with Server(CREATED) as server:
        request = freeze("GET", server.url)
        http = both(client(contract=shop(), request=request), twin)
        http.send(request)
    assert http.trace.requests == 1


def test_a_multipart_body_is_frozen_with_its_boundary() -> None:
    def made(content: bytes) -> Request:
        files = {"file": ("ü.txt", io.BytesIO(content), "text/plain")}
        return freeze("POST", "http://shop.example/", files=files, data={"title": "T"})

    first = made(b"one")
    assert made(b"one") == first
    assert made(b"two") != first
    boundary = dict(first.headers)["Content-Type"].partition("boundary=")[2]
    assert first.body.count(boundary.encode()) == 3
    assert b"one" in first.body


def test_forms_and_parameters_are_frozen() -> None:
    made = freeze("post", "http://shop.example/a b#part", data={"x": "1 2"}, params={"q": "ü"})
    assert made.url == "http://shop.example/a%20b?q=%C3%BC"
    assert made.method == "POST"
    assert made.body == b"x=1+2"
    assert dict(made.headers)["Content-Type"] == "application/x-www-form-urlencoded"


# --- what is never sent ---


@pytest.mark.parametrize(
    ("given", "error"),
    [
        ({"headers": {"X-A": "1\r\nX-B: 2"}}, InputRefused),
        ({"headers": {"X-A\r\nX-B": "1"}}, InputRefused),
        ({"headers": {"X A": "1"}}, InputRefused),
        ({"headers": {"X-A": "1\0"}}, InputRefused),
        ({"headers": {"Transfer-Encoding": "chunked"}}, SendRefused),
        ({"headers": {"Connection": "keep-alive"}}, SendRefused),
        ({"headers": {"Expect": "100-continue"}}, SendRefused),
        ({"headers": {"X-A": "1", "x-a": "2"}}, InputRefused),
        ({"json": {"price": float("nan")}}, InputRefused),
        ({"json": {"at": object()}}, InputRefused),
        ({"content": b"x" * (BODY_BYTES + 1)}, InputRefused),
        ({"url": "http://h\r\nX: y/"}, InputRefused), ({"url": "/orders"}, InputRefused),
        ({"url": "ftp://shop.example/"}, InputRefused), ({"method": "PO ST"}, InputRefused),
        ({"url": "http://me:hunter2@shop.example/"}, SendRefused),
        ({"auth": ("a:b", "c")}, SendRefused),
    ],
    ids=range(17),
)  # fmt: skip
def test_what_would_not_arrive_as_meant_is_refused_before(
    given: dict[str, Any], error: type[Exception]
) -> None:
    http = client(contract=shop())
    call = {"method": "POST", "url": "http://127.0.0.1:1/", **given}
    with pytest.raises(error) as caught:
        http.request(**call)
    assert "hunter2" not in str(caught.value)
    assert http.trace.requests == 0
    assert http.trace.sent_nothing


@pytest.mark.parametrize(
    "request_",
    [
        Request(method="POST", url="http://h/", headers=(("Authorization", "Bearer x"),)),
        Request(method="POST", url="http://a:b@h/"),
        Request(method="POST", url="http://h/", headers=(("X", "a\nb"),)),
        Request(method="POST", url="http://h/", headers=(("Content-Length", "3"),)),
        Request(method="POST /x", url="http://h/"),
    ],
)
def test_a_request_made_by_hand_is_checked_too(request_: Request) -> None:
    http = client(contract=shop(), request=request_)
    with pytest.raises((SendRefused, InputRefused)):
        http.send(request_)
    assert http.trace.requests == 0


@pytest.mark.parametrize(
    "name",
    ["authorization", "Cookie", "X-Api-Key", "X-Shopify-Access-Token", "PRIVATE-TOKEN", "X-Auth-Y"],
)
def test_credentials_cannot_be_frozen(name: str) -> None:
    with pytest.raises(SendRefused, match="must not be frozen"):
        freeze("POST", "http://h/", headers={name: "x"})


@pytest.mark.parametrize("name", ["Idempotency-Key", "X-Idempotency-Token", "If-None-Match"])
def test_a_key_is_no_credential(name: str) -> None:
    assert freeze("POST", "http://h/", headers={name: "x"}).headers == ((name, "x"),)


def test_a_contract_of_another_protocol_judges_nothing_here(twin: bool) -> None:
    smtp = load({"id": "mail.send", "protocol": "smtp", "ok": {"when": "250 or so"}})
    http = both(client(contract=smtp), twin)
    with pytest.raises(SendRefused, match="is about smtp"):
        http.post("http://127.0.0.1:1/")


def test_a_contract_that_nobody_can_read_is_refused_before_anything_is_sent() -> None:
    with pytest.raises(ContractInvalid, match="matcher"):
        client(contract=replace(shop(), ok=replace(shop().ok, when="ack")))


# --- answers ---


def test_a_preliminary_answer_is_not_the_answer(twin: bool) -> None:
    early = b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n"
    with Server(early + CREATED) as server:
        assert both(client(contract=shop()), twin).post(server.url, json={}).status == 201


def test_a_chunked_answer_is_read_in_full(twin: bool) -> None:
    chunked = b"HTTP/1.1 201 Created\r\nTransfer-Encoding: chunked\r\n\r\n"
    chunked += b'5\r\n{"id"\r\n3;x=y\r\n:5}\r\n0\r\nX-Trailer: 1\r\n\r\n'
    with Server(chunked) as server:
        got = both(client(contract=shop()), twin).post(server.url, json={})
    assert got.json() == {"id": 5}


def test_another_protocol_is_no_answer(twin: bool) -> None:
    with Server(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n") as server:
        http = both(client(within=0.3, contract=shop()), twin)
        with pytest.raises(Exception, match=r".*") as caught:
            http.post(server.url, json={})
    assert not isinstance(http.trace.finding, Done | NotDone), caught.value


def test_an_answer_that_breaks_off_is_none(twin: bool) -> None:
    with Server(b"HTTP/1.1 201 Created\r\nContent-Length: 80\r\n\r\n{}") as server:
        http = both(client(contract=shop()), twin)
        with pytest.raises(httpcore2.RemoteProtocolError):
            http.post(server.url, json={})
    assert http.trace.finding is None
    assert not http.trace.answered


def test_head_has_no_body(twin: bool) -> None:
    with Server(b"HTTP/1.1 200 OK\r\nContent-Length: 999\r\n\r\n") as server:
        got = both(client(contract=shop()), twin).head(server.url)
    assert got.status == 200
    assert got.content == b""


def test_headers_beyond_ascii_go_both_ways(twin: bool) -> None:
    said = (
        "HTTP/1.1 201 Created\r\nX-Name: Zoë\r\nX-Two: a\r\nx-two: b\r\nContent-Length: 0\r\n\r\n"
    )
    with Server(said.encode("latin-1")) as server:
        got = both(client(contract=shop()), twin).post(server.url, headers={"X-Name": "查实"})
    assert got.headers["x-name"] == "Zoë"
    assert got.headers["x-two"] == "a, b"
    assert "X-Name: 查实".encode() in server.requests[0]


@pytest.mark.parametrize("framing", ["length", "chunked", "close"])
def test_an_answer_beyond_the_bound_proves_nothing(twin: bool, framing: str) -> None:
    def large(conn: Any) -> None:
        server.requests.append(read_request(conn))
        head = {"length": "Content-Length: 3000000\r\n", "close": ""}.get(framing)
        head = "Transfer-Encoding: chunked\r\n" if head is None else head
        conn.sendall(f"HTTP/1.1 201 Created\r\n{head}\r\n".encode())
        for _ in range(50):
            part = b"x" * 65536
            conn.sendall(b"10000\r\n" + part + b"\r\n" if framing == "chunked" else part)

    with Server(large) as server:
        http = both(client(contract=shop()), twin)
        with pytest.raises(Exception, match=r"201|larger|more than"):
            http.post(server.url, json={})
    assert not isinstance(http.trace.finding, Done)


def test_no_credential_is_kept_as_evidence(twin: bool) -> None:
    body = b'{"you_sent":"Bearer t0p-secret","access_token":"abcdef","pw":"hunter2"}' + b"x" * 5000
    said = answer("500 Oops", body, Location="https://me:hunter2@h/?token=abcdef")
    with Server(said) as server:
        http = both(client(contract=shop()), twin)
        with pytest.raises(Answered) as caught:
            http.post(server.url, headers={"X-Api-Key": "t0p-secret"}, auth=("me", "hunter2"))
    kept = str(caught.value.finding.evidence)
    assert not any(secret in kept for secret in ("t0p-secret", "hunter2", "abcdef"))
    assert len(caught.value.finding.evidence["excerpt"]) <= 300
    assert "hunter2" not in repr(caught.value)


# --- the twin ---


def test_a_cancelled_caller_cuts_the_connection_and_knows_what_was_sent() -> None:
    async def main(url: str) -> tuple[Any, float]:
        http = AsyncEffectHttp(client(within=30, contract=shop()))
        task = asyncio.create_task(http.post(url, json={}))
        while not http.trace.whole:
            await asyncio.sleep(0.01)
        before = time.monotonic()
        task.cancel()
        await asyncio.sleep(0)
        task.cancel()  # and again
        with pytest.raises(asyncio.CancelledError):
            await task
        return http.trace, time.monotonic() - before

    with Server("silent") as server:
        trace, took = asyncio.run(main(server.url))
    assert took < 10
    assert trace.started
    assert trace.finding is None


def test_many_at_once() -> None:
    async def main(url: str) -> list[int]:
        made = [AsyncEffectHttp(client(contract=shop())) for _ in range(30)]
        return [a.status for a in await asyncio.gather(*(h.post(url, json={}) for h in made))]

    with Server(CREATED) as server:
        assert asyncio.run(main(server.url)) == [201] * 30

"""Nobody leaves what is declared; credentials stand nowhere; what came in is what is sent."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from server.gateways import MIRROR, Mirror, mirror
from server.house import Home, house
from server.processes import until

PASSWORD, TOKEN = "pass-word-0123456789", "query-token-0123456789"
THEIRS = "their-own-credential-0123456789"


@pytest.fixture
def target() -> Iterator[Mirror]:
    with mirror() as running:
        yield running


@pytest.fixture
def home(tmp_path: Path, target: Mirror, monkeypatch: pytest.MonkeyPatch) -> Iterator[Home]:
    monkeypatch.setenv("MIRROR_PASSWORD", PASSWORD)
    monkeypatch.setenv("MIRROR_TOKEN", TOKEN)
    text = MIRROR.format(target=target.url, port=target.server_port)
    with house(tmp_path, text) as running:
        yield running


def raw(home: Home, line: bytes, headers: bytes = b"", body: bytes = b"") -> bytes:
    """What the server answers to a request that no client library would write."""
    host, port = home.url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=10) as sock:
        head = line + b" HTTP/1.1\r\nHost: x\r\nConnection: close\r\nAuthorization: Bearer "
        head += home.secret.encode() + b"\r\n" + headers
        sock.sendall(head + b"Content-Length: %d\r\n\r\n" % len(body) + body)
        found = b""
        while piece := sock.recv(65536):
            found += piece
    return found


def status(answer: bytes) -> int:
    return int(answer.split(b" ", 2)[1])


def post(home: Home, path: str = "/files/a", body: bytes = b"x", **headers: str) -> httpx2.Response:
    head = {"Ascertain-Key": "k", "Content-Type": "text/plain"}
    return home.client.post(f"/gateway/mirror{path}", content=body, headers=head | headers)


# --- never another host, never another path ---


@pytest.mark.parametrize(
    "path",
    [b"/gateway/mirror//evil.example/x", b"/gateway/mirror/../../v1/operations",
     b"/gateway/mirror/files/../x", b"/gateway/mirror/files/%2e%2e/x", b"/gateway/mirror/a%2fb",
     b"/gateway/mirror/files/%252e%252e/x", b"/gateway/mirror/\\evil.example/x",
     b"/gateway/mirror/%5C%5Cevil.example", b"/gateway/mirror/files/..;/x",
     b"/gateway/mirror/x%00y", b"/gateway/mirror/x%0d%0aHost:%20evil", b"/gateway//mirror/files",
     b"/gateway/evil.example/files", b"/gateway/http:%2f%2fevil.example/x",
     b"/gateway/mirror@evil.example/files", b"/gateway/..%2fmirror/files",
     b"/gateway/mirror/files?_method=DELETE", b"http://evil.example/files",
     b"//evil.example/gateway/mirror/files", b"/gateway/mirror/fi les"],
)  # fmt: skip
def test_a_path_that_leads_elsewhere_is_never_followed(
    home: Home, target: Mirror, path: bytes
) -> None:
    for method in (b"GET ", b"POST "):
        assert 400 <= status(raw(home, method + path, b"Ascertain-Key: k\r\n")) < 500
    assert (target.asked, target.connections) == ([], 0)


@pytest.mark.parametrize("path", ["@evil.example/x", "http:x", "evil.example:80"])
def test_what_looks_like_a_host_is_a_path_of_the_target(
    home: Home, target: Mirror, path: str
) -> None:
    assert status(raw(home, b"GET /gateway/mirror/" + path.encode())) == 200
    assert target.asked[0]["path"] == f"/base/{path}?token={TOKEN}"
    assert dict(target.asked[0]["headers"])["Host"] == f"127.0.0.1:{target.server_port}"


def test_an_absolute_address_goes_to_the_declared_target_or_nowhere(
    home: Home, target: Mirror
) -> None:
    answer = raw(home, b"GET http://evil.example/gateway/mirror/x")
    assert status(answer) in (200, 400, 404)
    assert {dict(a["headers"])["Host"] for a in target.asked} <= {f"127.0.0.1:{target.server_port}"}


@pytest.mark.parametrize("where", ["http://127.0.0.1:9/", "/base/other", "//evil.example/"])
def test_a_redirect_is_not_followed(home: Home, target: Mirror, where: str) -> None:
    target.answers = [(307, {"Location": where}, b"")] * 20
    answer = home.client.get("/gateway/mirror/x")
    assert (answer.status_code, answer.headers["location"]) == (307, where)
    effect = post(home, **{"Ascertain-Wait": "1"})
    assert effect.status_code == 409
    operation = effect.headers["ascertain-operation"]
    until(lambda: home.serving.space("default").ledger.get(operation).state == "unknown")
    assert {a["path"].partition("?")[0] for a in target.asked} == {"/base/x", "/base/files/a"}


def test_a_name_that_leads_inside_is_refused_unless_it_is_declared(
    home: Home, target: Mirror
) -> None:
    read = home.client.get("/gateway/walled/x")
    assert (read.status_code, read.json()["code"]) == (502, "target_unreachable")
    head = {"Ascertain-Key": "k", "Ascertain-Wait": "0.5"}
    effect = home.client.post("/gateway/walled/files", content=b"x", headers=head)
    assert effect.headers["ascertain-state"] == "pending", "proven: nothing was sent"
    space = home.serving.space("default")
    [*_, finding] = space.ledger.history(effect.headers["ascertain-operation"])
    assert "private = true" in str(finding.data)
    assert target.connections == 0


def test_headers_that_tell_a_target_other_things_do_not_arrive(home: Home, target: Mirror) -> None:
    given = {
        "Host": "evil.example", "X-Forwarded-For": "127.0.0.1", "X-Forwarded-Host": "evil.example",
        "Forwarded": "host=evil", "X-Http-Method-Override": "DELETE", "X-Original-Url": "/admin",
        "Proxy-Authorization": "Basic eA==", "Cookie": "a=b", "X-Api-Key": THEIRS,
        "Connection": "X-Hop", "X-Hop": "1", "X-Mine": "kept", "Ascertain-Title": "t",
        "Accept-Language": "zh", "X-Api-Version": "6",
    }  # fmt: skip
    for answer in (post(home, **given), home.client.get("/gateway/mirror/x", headers=given)):
        assert answer.status_code == 200
    for asked in target.asked:
        names = {n.lower(): v for n, v in asked["headers"]}
        ours = {"content-length", "content-type", "idempotency-key"}
        assert set(names) - ours == {
            "host", "user-agent", "accept", "accept-encoding", "authorization", "connection",
            "x-mine", "accept-language", "x-api-version",
        }  # fmt: skip
        assert names["host"] == f"127.0.0.1:{target.server_port}"
        assert (names["x-mine"], names["x-api-version"]) == ("kept", "7")
        assert names["connection"] == "close"


def test_one_request_is_never_read_as_two(home: Home, target: Mirror) -> None:
    two = b"POST /gateway/mirror/files/a"
    smuggled = b"0\r\n\r\nPOST /base/files/evil HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n"
    for headers in (b"Transfer-Encoding: chunked\r\n", b"Transfer-Encoding: xchunked\r\n",
                    b"Content-Length: 0\r\n"):  # fmt: skip
        raw(home, two, headers + b"Ascertain-Key: smuggled\r\n", smuggled)
    assert [a["path"] for a in target.asked if "evil" in a["path"]] == []
    assert len(target.asked) <= 1


# --- credentials ---


def everything(home: Home) -> str:
    """The whole store as text, as an export shows it."""
    return json.dumps(list(home.serving.store.rows()), default=repr)


def test_credentials_stand_nowhere_and_are_not_told(
    home: Home, target: Mirror, capfd: pytest.CaptureFixture[str]
) -> None:
    first, again = post(home), post(home)
    read = home.client.get("/gateway/mirror/x")
    assert dict(target.asked[0]["headers"])["Authorization"].startswith("Basic ")
    assert TOKEN in target.asked[0]["path"]
    target.answers = [(422, {}, f"no: {PASSWORD} {TOKEN}".encode())]
    refusal = post(home, "/files/b", **{"Ascertain-Key": "k2"})
    said = [first, again, read, refusal]
    told = "".join(a.text + str(dict(a.headers)) for a in said) + everything(home)
    told += "".join(capfd.readouterr())
    assert "[redacted]" in first.text
    assert first.content == again.content
    basic = dict(target.asked[0]["headers"])["Authorization"].removeprefix("Basic ")
    for secret in (PASSWORD, TOKEN, basic, home.secret):
        assert secret not in told


def test_a_callers_own_credentials_pass_and_are_never_kept(home: Home, target: Mirror) -> None:
    nobody = home.as_token(None)
    head = {
        "Ascertain-Key": "k", "Ascertain-Token": home.secret, "Authorization": f"Bearer {THEIRS}",
        "X-Api-Key": THEIRS,
    }  # fmt: skip
    answer = nobody.post("/gateway/theirs/files", content=b"x", headers=head)
    assert answer.status_code == 200
    names = {n.lower(): v for n, v in target.asked[0]["headers"]}
    assert (names["authorization"], names["x-api-key"]) == (f"Bearer {THEIRS}", THEIRS)
    assert "ascertain-token" not in names
    assert THEIRS not in everything(home) + answer.text
    receipt = home.serving.space("default").ledger.get(answer.headers["ascertain-operation"])
    assert "callers_credentials" in receipt.assumptions
    read = nobody.get("/gateway/theirs/x", headers=head)
    assert f"Bearer {THEIRS}" in [v for _, v in target.asked[1]["headers"]]
    assert THEIRS not in read.text


def test_recovery_without_the_callers_credentials_sends_nothing_and_asks_a_person(
    home: Home, target: Mirror
) -> None:
    target.answers = [(500, {}, b"?")]
    head = {
        "Ascertain-Key": "k", "Ascertain-Token": home.secret, "Authorization": f"Bearer {THEIRS}",
    }  # fmt: skip
    answer = home.as_token(None).post("/gateway/theirs/files", content=b"x", headers=head)
    assert (answer.status_code, answer.json()["code"]) == (409, "in_review")
    ledger = home.serving.space("default").ledger
    ledger.recover()
    [review] = ledger.reviews()
    assert (review.operation, review.owner) == (answer.headers["ascertain-operation"], "ben")
    assert target.connections == 1


# --- what came in is what is sent ---


BODIES = [b"", b"{}", b'{"a": 1.10,\t"b":"\\u00e9"}\n', "价格 €".encode(), b"\x00\xff\x1b", b"\r\n"]


@pytest.mark.parametrize("body", BODIES)
def test_a_small_body_is_frozen_and_sent_byte_for_byte(
    home: Home, target: Mirror, body: bytes
) -> None:
    path = "/files/a%20b/@c;d=1?x=%5B1%5D&y[z]=2&"
    answer = raw(
        home, b"POST /gateway/mirror" + path.encode(),
        b"Ascertain-Key: k\r\nContent-Type: text/plain; charset=utf-8\r\nX-Odd:  a,  b \r\n", body,
    )  # fmt: skip
    assert status(answer) == 200
    [asked] = target.asked
    assert asked["path"].partition("&token=")[0].rstrip("&") == f"/base{path}".rstrip("&")
    assert asked["body"] == body
    names = {n.lower(): v for n, v in asked["headers"]}
    assert (names["x-odd"], names["content-type"]) == ("a,  b", "text/plain; charset=utf-8")
    ident = home.serving.space("default").ledger.find(key="k", limit=1)[0].id
    [frozen] = home.serving.store.requests(ident)
    kept = json.loads(frozen.request)
    assert kept["url"] == f"{target.url}/base{path}"
    assert names["idempotency-key"] == home.serving.space("default").ledger.get(ident).target_key


def test_our_key_stands_where_the_contract_says(home: Home, target: Mirror) -> None:
    def sent(method: str, path: str, **more: Any) -> dict[str, Any]:
        head = {"Ascertain-Key": path, **more.pop("headers", {})}
        answer = home.client.request(method, f"/gateway/mirror{path}", headers=head, **more)
        assert answer.status_code == 200, answer.text
        ident = answer.headers["ascertain-operation"]
        key = home.serving.space("default").ledger.get(ident).target_key
        return {**target.asked[-1], "key": key}

    one = sent("POST", "/query?a=1", content=b"x")
    assert one["path"] == f"/base/query?a=1&key={one['key']}&token={TOKEN}"
    one = sent("PUT", "/things/_", content=b"x")
    assert one["path"].startswith(f"/base/things/{one['key']}?")
    one = sent("POST", "/top", json={"a": 1})
    assert one["body"] == f'{{"op":"{one["key"]}","a":1}}'.encode()
    one = sent("POST", "/body", json={"meta": {"x": 1}})
    assert json.loads(one["body"]) == {"meta": {"x": 1, "op": one["key"]}}
    form = {"Content-Type": "application/x-www-form-urlencoded"}
    one = sent("POST", "/top?form", content=b"a=1&b=%20", headers=form)
    assert one["body"] == f"a=1&b=%20&op={one['key']}".encode()


@pytest.mark.parametrize(
    ("path", "body", "media"),
    [("/query?key=mine", b"x", "text/plain"), ("/top", b'{"op": "mine"}', "application/json"),
     ("/top", b"[1]", "application/json"), ("/top", b"<a/>", "text/xml"),
     ("/top", b"op=mine", "application/x-www-form-urlencoded"), ("/top", b"", "text/plain"),
     ("/top", b'{"a":"' + b"x" * 300_000 + b'"}', "application/json")],
)  # fmt: skip
def test_what_has_no_place_for_our_key_is_refused_before_anything_is_sent(
    home: Home, target: Mirror, path: str, body: bytes, media: str
) -> None:
    answer = post(home, path, body, **{"Content-Type": media})
    assert (answer.status_code, answer.json()["code"]) == (422, "input_refused")
    assert target.connections == 0


def test_an_answer_too_large_to_be_kept_is_given_once_and_then_said_to_be_left_out(
    home: Home, target: Mirror
) -> None:
    target.answers = [(201, {"Content-Type": "text/plain"}, b"y" * 500_000)]
    first, again = post(home), post(home)
    assert (first.status_code, len(first.content)) == (201, 500_000)
    assert (again.status_code, again.headers["ascertain-answer"]) == (201, "left_out")
    assert again.json()["state"] == "done"
    assert len(target.asked) == 1


def test_an_answer_cannot_pose_as_ours(home: Home, target: Mirror) -> None:
    target.answers = [(200, {"Ascertain-State": "unknown", "Set-Cookie": "a=b",
                             "Content-Type": "text/html"}, b"<script>")]  # fmt: skip
    answer = post(home)
    assert answer.headers["ascertain-state"] == "done"
    assert "set-cookie" not in answer.headers
    assert "sandbox" in answer.headers.get("content-security-policy", "sandbox")


def test_the_trace_of_the_caller_goes_on_to_the_target(home: Home, target: Mirror) -> None:
    parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    assert post(home, traceparent=parent).status_code == 200
    assert "0af7651916cd43dd8448eb211c80319c" in dict(target.asked[0]["headers"])["traceparent"]
    assert post(home, traceparent=parent.replace("b7", "c8")).headers["ascertain-reused"] == "true"


def test_where_the_contract_has_no_place_our_key_is_stamped_and_found(
    home: Home, target: Mirror
) -> None:
    target.answers = [(504, {}, b"?")]
    body = b'{"title":"A","meta":{"x":1}}'
    head = {"Ascertain-Key": "k", "Content-Type": "application/json", "Ascertain-Wait": "0.5"}
    first = home.client.post("/gateway/mirror/stamped", content=body, headers=head)
    assert (first.status_code, first.json()["state"]) == (409, "unknown")
    ledger = home.serving.space("default").ledger
    key = ledger.get(first.headers["ascertain-operation"]).target_key
    assert json.loads(target.asked[0]["body"]) == {"title": "A", "meta": {"x": 1, "_op": key}}
    found = json.dumps({"items": [{"id": 7, "meta": {"_op": key}}]}).encode()
    target.answers = [(200, {}, found)] * 5
    again = home.client.post(
        "/gateway/mirror/stamped", content=body, headers={**head, "Ascertain-Wait": "10"}
    )
    assert (again.status_code, again.headers["ascertain-ref"]) == (200, "7")
    assert [a["method"] for a in target.asked if a["path"].startswith("/base/stamped")] == ["POST"]


def test_the_first_text_is_what_is_approved_and_sent(home: Home, target: Mirror) -> None:
    def ask(text: str) -> httpx2.Response:
        return home.client.post(
            "/gateway/mirror/written", content=text, headers={"Ascertain-Key": "k"}
        )

    first = ask("the first text")
    assert (first.status_code, first.json()["code"]) == (409, "approval_missing")
    assert target.connections == 0
    ledger = home.serving.space("default").ledger
    ident = first.headers["ascertain-operation"]
    assert ledger.get(ident).title == "POST /written of k"
    ledger.approve(ident, role="chef", by="mia")
    last = ask("another text, written anew")
    assert (last.status_code, last.headers["ascertain-state"]) == (200, "done")
    assert [a["body"] for a in target.asked] == [b"the first text"]


def test_another_version_of_the_caller_asks_for_the_same(home: Home, target: Mirror) -> None:
    first = post(home, **{"Accept": "application/json", "User-Agent": "n8n"})
    again = post(home, **{"Accept": "*/*", "User-Agent": "curl/8"})
    assert (again.status_code, again.headers["ascertain-reused"]) == (200, "true")
    assert again.content == first.content
    [asked] = target.asked
    assert dict(asked["headers"])["accept"] == "application/json"
    other = post(home, **{"Content-Type": "application/xml"})
    assert (other.status_code, other.json()["fields"]) == (422, ["headers"])

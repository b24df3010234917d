"""Addresses that nobody may reach through us, and paths and headers that do not pass."""

from __future__ import annotations

import pytest

from ascertain.core.errors import ActionInvalid, InputRefused
from ascertain.targets.addresses import refused
from ascertain.targets.passage import Pattern, address, headers_of, path_of, query_of, told_of

BASE = "https://shop.example/api"


@pytest.mark.parametrize(
    "inside",
    ["127.0.0.1", "127.9.9.9", "10.0.0.1", "172.16.5.4", "192.168.1.1", "169.254.169.254",
     "100.64.0.1", "0.0.0.0", "255.255.255.255", "224.0.0.1", "192.0.2.1", "198.18.0.1",
     "240.0.0.1", "::", "::1", "fe80::1", "fe80::1%eth0", "fc00::1", "fd00:ec2::254", "ff02::1",
     "::ffff:127.0.0.1", "::ffff:169.254.169.254", "::127.0.0.1", "64:ff9b::7f00:1",
     "64:ff9b::a9fe:a9fe", "2002:7f00:1::", "2001:db8::1", "2001:0:7f00:1::", "localhost",
     "0x7f.1", "2130706433", ""],
)  # fmt: skip
def test_an_address_inside_is_refused(inside: str) -> None:
    assert refused(inside)


@pytest.mark.parametrize(
    "public", ["93.184.216.34", "1.1.1.1", "2606:4700:4700::1111", "::ffff:1.1.1.1",
               "64:ff9b::101:101", "172.32.0.1", "100.128.0.1"],
)  # fmt: skip
def test_a_public_address_is_not(public: str) -> None:
    assert refused(public) == ""


@pytest.mark.parametrize(
    "path",
    ["//evil.example/x", "/a//b", "/../x", "/a/..", "/a/../b", "/./a", "/a/%2e%2e/b", "/a/.%2E/b",
     "/a/%252e%252e/b", "/a%2fb", "/a%2Fb", "/a%252Fb", "/a%5cb", "/a\\b", "/\\evil.example",
     "/a/..;/b", "/..;x/b", "/a%00b", "/a%0d%0aHost:%20evil", "/a%7f", "/a b", "/a%zz", "/a%2",
     "/a#b", "/a?b", "/ä", "/a%25252525b", "/a/.%20/b", "a", "", "/" + "x" * 9000, "/a\r\nb",
     "/a\x00", "/{x}", "/a|b", "/<a>", '/"a"', "/a^b", "/a`b"],
)  # fmt: skip
def test_a_path_that_could_lead_elsewhere_is_refused(path: str) -> None:
    with pytest.raises(InputRefused):
        path_of(path.encode())


@pytest.mark.parametrize(
    "path",
    ["/", "/orders", "/orders/", "/a/b.c", "/a/..b", "/a/...", "/@user", "/evil.example@x/y",
     "/http:evil", "/a;v=1/b", "/caf%C3%A9", "/a%20b", "/a+b", "/a%40b", "/~x", "/a%3Fb"],
)  # fmt: skip
def test_any_other_path_arrives_as_it_was_sent_and_at_home(path: str) -> None:
    assert address(BASE, path_of(path.encode()), "") == f"{BASE}{path}"


@pytest.mark.parametrize("query", ["", "a=1", "filter[x]=y&a=%5B", "a=b/c?d", "q=@x:1", "a|b=c"])
def test_a_query_arrives_as_it_was_sent(query: str) -> None:
    assert query_of(query.encode()) == query


@pytest.mark.parametrize(
    "query", ["_method=DELETE", "a=1&_method=PUT", "%5Fmethod=PUT", "a=1;_Method=x", "a=b c",
              "a=%q", "a=1#x", "a=\r\n", "ä=1", "x" * 20_000],
)  # fmt: skip
def test_a_query_that_names_another_method_or_cannot_be_sent_is_refused(query: str) -> None:
    with pytest.raises(InputRefused):
        query_of(query.encode())


def test_patterns() -> None:
    one = Pattern("POST /wp/v2/posts/{id}")
    assert one.matches("POST", "/wp/v2/posts/7")
    assert one.matches("POST", "/wp/v2/p%6Fsts/7")
    for other in ("/wp/v2/posts", "/wp/v2/posts/", "/wp/v2/posts/7/x", "/WP/v2/posts/7"):
        assert not one.matches("POST", other)
    assert not one.matches("DELETE", "/wp/v2/posts/7")
    deep = Pattern("GET /a/**")
    assert all(deep.matches(m, p) for m in ("GET", "HEAD") for p in ("/a", "/a/", "/a/b/c"))
    assert not deep.matches("GET", "/b")
    assert Pattern("PUT /entries/{target_key}").with_key("/entries/_", "k") == "/entries/k"
    for wrong in ("/a", "post /a", "POST a", "POST /a*", "POST /**/a", "POST /x{a}"):
        with pytest.raises(ActionInvalid):
            Pattern(wrong)


def test_headers_that_do_not_pass() -> None:
    given = {
        "host": "evil", "connection": "close, X-Secret-Hop", "x-secret-hop": "1", "te": "trailers",
        "transfer-encoding": "chunked", "content-length": "5", "expect": "100-continue",
        "keep-alive": "1", "upgrade": "h2c", "trailer": "x", "proxy-authorization": "Basic x",
        "proxy-connection": "x", "proxy-anything": "x", "x-forwarded-for": "127.0.0.1",
        "x-forwarded-host": "evil", "forwarded": "for=1", "x-real-ip": "1", "via": "1",
        "cookie": "a=b", "authorization": "Basic abc", "x-api-key": "secret", "x-auth-token": "x",
        "ascertain-key": "k", "ascertain-token": "asc_1", "ascertain-anything": "x",
        "x-http-method-override": "DELETE", "x-original-url": "/admin", "x-rewrite-url": "/admin",
        "user-agent": "n8n", "idempotency-key": "random", "x-request-id": "1", "date": "now",
        "accept-encoding": "gzip", "baggage": "x=1", "x-host": "evil", "x-build": "7",
    }  # fmt: skip
    kept = {"accept": "application/json", "content-type": "application/json", "notion-version": "1"}
    pairs = [(n.encode(), v.encode()) for n, v in {**given, **kept}.items()]
    passing = headers_of(pairs, ["X-Build"])
    assert dict(passing.frozen) == kept
    assert passing.credentials == {}
    own = headers_of(pairs, ["X-Build"], own=True)
    assert own.credentials == {
        "cookie": "a=b", "authorization": "Basic abc", "x-api-key": "secret", "x-auth-token": "x",
    }  # fmt: skip
    assert own.frozen == passing.frozen


def test_our_own_token_never_passes() -> None:
    pairs = [(b"authorization", b"Bearer asc_secret"), (b"x-api-key", b"theirs")]
    assert headers_of(pairs, own=True).credentials == {"x-api-key": "theirs"}


def test_the_trace_goes_beside_and_only_if_it_is_one() -> None:
    parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    pairs = [(b"traceparent", parent.encode()), (b"tracestate", b"a=b")]
    assert headers_of(pairs).trace == {"traceparent": parent, "tracestate": "a=b"}
    assert headers_of(pairs).frozen == ()
    assert headers_of([(b"traceparent", b"evil\r\nX: y")]).trace == {}


@pytest.mark.parametrize(
    "pairs",
    [[(b"content-type", b"a/b"), (b"content-type", b"c/d")], [(b"x", b"a\x00b")],
     [(b"x", b"\xff\xfe")], [(b"x", b"a" * 9000)], [(b"x%d" % n, b"a" * 8000) for n in range(6)]],
)  # fmt: skip
def test_headers_that_can_be_read_in_two_ways_or_are_too_large_are_refused(
    pairs: list[tuple[bytes, bytes]],
) -> None:
    with pytest.raises(InputRefused):
        headers_of(pairs)


def test_what_of_an_answer_is_told() -> None:
    told = told_of({
        "content-type": "a/b", "location": "/x", "set-cookie": "a=b", "server": "x",
        "transfer-encoding": "chunked", "connection": "close", "x-total": "3",
        "x-auth-token": "secret", "ascertain-state": "done", "access-control-allow-origin": "*",
    })  # fmt: skip
    assert told == {"content-type": "a/b", "location": "/x", "x-total": "3"}

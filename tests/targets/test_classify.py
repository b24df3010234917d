"""Every listed exception, made for real: which prove "never sent", and when (law 13)."""

from __future__ import annotations

import asyncio
import errno
import smtplib
import socket
import ssl
import urllib.request
from collections.abc import Callable
from typing import Any

import aiohttp
import httpx
import httpx2
import pytest
import requests
import urllib3
from requests.adapters import HTTPAdapter

from ascertain.core.model import NotDone, NotDoneKind, Unknown
from ascertain.targets.base import SendTrace
from ascertain.targets.classify import classify, describe
from targets.serving import CREATED, Server, answer, refused, reset, trusting

NOWHERE = "http://nowhere.invalid/"  # RFC 2606: never a name


def raised(work: Callable[[], Any]) -> BaseException:
    with pytest.raises(BaseException) as caught:
        work()
    return caught.value


def proves(work: Callable[[], Any]) -> str:
    """What one request proves if it is declared to be the only one; "" for nothing."""
    error = raised(work)
    assert isinstance(classify(error, None), Unknown), "proof without single_request"
    found = classify(error, None, single_request=True)
    return found.kind.value if isinstance(found, NotDone) else ""


# --- one request by each client: (url, timeouts) → what it raises ---


def by_httpx(library: Any) -> Callable[..., Any]:
    def send(url: str, method: str = "POST", **more: Any) -> Any:
        timeout = library.Timeout(0.25)
        with library.Client(timeout=timeout, trust_env=False, **more) as client:
            return client.request(method, url, content=b"x")

    return send


def by_async_httpx(library: Any) -> Callable[..., Any]:
    def send(url: str, method: str = "POST", **more: Any) -> Any:
        async def main() -> Any:
            timeout = library.Timeout(0.25)
            async with library.AsyncClient(timeout=timeout, trust_env=False, **more) as client:
                return await client.request(method, url, content=b"x")

        return asyncio.run(main())

    return send


def by_requests(url: str, method: str = "POST", retries: Any = 0, **more: Any) -> Any:
    with requests.Session() as session:
        session.trust_env = False
        session.mount("http://", HTTPAdapter(max_retries=retries))
        return session.request(method, url, data=b"x", timeout=0.25, **more)


def by_urllib3(url: str, method: str = "POST", retries: Any = False, **more: Any) -> Any:
    with urllib3.PoolManager(timeout=0.25) as pool:
        return pool.request(method, url, body=b"x", retries=retries, **more)


def by_aiohttp(url: str, method: str = "POST", **more: Any) -> Any:
    async def main() -> Any:
        timeout = aiohttp.ClientTimeout(sock_connect=0.25, sock_read=0.25)
        async with (
            aiohttp.ClientSession(timeout=timeout) as session,
            session.request(method, url, data=b"x", **more) as got,
        ):
            return await got.read()

    return asyncio.run(main())


def by_urllib(url: str, method: str = "POST", **more: Any) -> Any:
    request = urllib.request.Request(url, b"x", method=method)
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(request, timeout=0.25) as got:
        return got.read()


CLIENTS: dict[str, Callable[..., Any]] = {
    "httpx": by_httpx(httpx), "httpx2": by_httpx(httpx2),
    "async httpx": by_async_httpx(httpx), "async httpx2": by_async_httpx(httpx2),
    "requests": by_requests, "urllib3": by_urllib3, "aiohttp": by_aiohttp, "urllib": by_urllib,
}  # fmt: skip
EACH = pytest.mark.parametrize("client", CLIENTS)


@EACH
def test_a_refused_port_is_proof(client: str) -> None:
    with refused() as port:
        assert proves(lambda: CLIENTS[client](f"http://127.0.0.1:{port}/")) == "transient"


@EACH
def test_several_refused_addresses_are_proof(client: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Clients that try addresses side by side raise groups, or a text about several."""
    real = socket.getaddrinfo

    def both(host: Any, port: Any, *args: Any, **more: Any) -> Any:
        found = real("127.0.0.1", port, type=socket.SOCK_STREAM)
        return [*real("::1", port, type=socket.SOCK_STREAM), *found]

    monkeypatch.setattr(socket, "getaddrinfo", both)
    with refused() as port:
        assert proves(lambda: CLIENTS[client](f"http://shop.example:{port}/")) == "transient"


@EACH
def test_a_name_that_nobody_knows_is_proof(client: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown(*_: Any, **__: Any) -> Any:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", unknown)
    assert proves(lambda: CLIENTS[client](NOWHERE)) == "transient"


@EACH
def test_a_certificate_that_is_not_trusted_is_proof(client: str) -> None:
    with Server(CREATED, tls=True) as server:
        assert proves(lambda: CLIENTS[client](server.url)) == "transient"
    assert server.requests == []


@EACH
def test_no_tls_at_all_is_proof(client: str) -> None:
    def babble(conn: socket.socket) -> None:
        conn.recv(100)
        conn.sendall(b"SSH-2.0-nothing of the kind\r\n" * 3)

    with Server(babble) as server:
        url = server.url.replace("http:", "https:")
        assert proves(lambda: CLIENTS[client](url)) in ("transient", "")


@EACH
@pytest.mark.parametrize("fate", [Server.silent, Server.resets, Server.hangs_up])
def test_a_lost_answer_proves_nothing(client: str, fate: Any) -> None:
    with Server(lambda conn: fate(server, conn)) as server:
        assert proves(lambda: CLIENTS[client](server.url)) == ""
    assert len(server.requests) == 1


@EACH
def test_an_answer_that_is_none_proves_nothing(client: str) -> None:
    with Server(b"nothing of the kind\r\n\r\n") as server:
        assert proves(lambda: CLIENTS[client](server.url)) == ""


@EACH
def test_a_body_that_breaks_off_proves_nothing(client: str) -> None:
    with Server(b"HTTP/1.1 201 Created\r\nContent-Length: 99\r\n\r\n{") as server:
        assert proves(lambda: CLIENTS[client](server.url)) == ""


@EACH
def test_a_redirect_to_where_nobody_listens_proves_nothing(client: str) -> None:
    """The first request was answered, and may have had its effect, as POST then GET has."""
    follow = {"follow_redirects": True} if "httpx" in client else {}
    follow |= {"retries": None} if client == "urllib3" else {}
    with refused() as port:
        where = f"http://127.0.0.1:{port}/"
        for status in ("302 Found", "303 See Other", "307 Temporary Redirect"):
            if client == "urllib" and status.startswith("307"):
                continue  # urllib does not follow it for a POST: HTTPError
            with Server(answer(status, Location=where)) as server:
                assert proves(lambda: CLIENTS[client](server.url, **follow)) == ""
            assert len(server.requests) == 1


@pytest.mark.parametrize("client", ["requests", "urllib3"])
@pytest.mark.parametrize("tries", [1, 3])
def test_a_retry_hides_what_came_before(client: str, tries: int) -> None:
    """The first try is read, then nobody listens any more: MaxRetryError tells of the last."""

    def once(conn: socket.socket) -> None:
        server.stop()
        server.resets(conn)

    server = Server(once)
    retries = urllib3.Retry(total=tries, allowed_methods=None, backoff_factor=0)
    with server:
        assert proves(lambda: CLIENTS[client](server.url, retries=retries)) == ""
    assert len(server.requests) == 1


@pytest.mark.parametrize("client", ["requests", "urllib3"])
def test_with_retries_even_a_refused_port_proves_nothing(client: str) -> None:
    retries = urllib3.Retry(total=2, backoff_factor=0)
    with refused() as port:
        url = f"http://127.0.0.1:{port}/"
        assert proves(lambda: CLIENTS[client](url, retries=retries)) == ""


@pytest.mark.parametrize("method", ["PUT", "POST", "DELETE"])
def test_a_kept_connection_that_broke_proves_nothing(method: str) -> None:
    """aiohttp sends PUT and DELETE again by itself, here to where nobody listens any more."""

    def once(conn: socket.socket) -> None:
        data = conn.recv(65536)
        conn.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
        server.stop()
        server.requests.append(data + conn.recv(65536))
        reset(conn)

    async def main(url: str) -> None:
        async with aiohttp.ClientSession() as session:
            async with session.get(url) as got:
                await got.read()
            async with session.request(method, url, data=b"x"):
                pass

    with Server(once) as server:
        assert proves(lambda: asyncio.run(main(server.url))) == ""
    assert method.encode() in server.requests[0]


@pytest.mark.parametrize("client", ["httpx", "requests", "urllib3"])
def test_a_kept_connection_that_broke_proves_nothing_elsewhere(client: str) -> None:
    def once(conn: socket.socket) -> None:
        data = conn.recv(65536)
        conn.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
        server.requests.append(data + conn.recv(65536))
        reset(conn)

    def twice(url: str) -> None:
        if client == "httpx":
            with httpx.Client() as kept:
                kept.get(url)
                kept.post(url, content=b"x")
        elif client == "requests":
            with requests.Session() as session:
                session.get(url)
                session.post(url, data=b"x")
        else:
            with urllib3.PoolManager() as pool:
                pool.request("GET", url)
                pool.request("POST", url, body=b"x", retries=False)

    with Server(once) as server:
        assert proves(lambda: twice(server.url)) == ""


# --- waiting for a connection, writing, wrong addresses ---


@pytest.mark.parametrize("library", [httpx, httpx2])
def test_waiting_for_a_free_connection_is_proof(library: Any) -> None:
    def full(url: str) -> None:
        limits = library.Limits(max_connections=1)
        timeout = library.Timeout(5, pool=0.1)
        with (
            library.Client(limits=limits, timeout=timeout, trust_env=False) as client,
            client.stream("GET", url),
        ):
            client.post(url, content=b"x")

    def slow(conn: socket.socket) -> None:
        conn.recv(65536)
        conn.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n")
        server.go.wait(0.3)

    with Server(slow) as server:
        assert proves(lambda: full(server.url)) == "transient"


def test_waiting_for_a_free_connection_of_urllib3_is_proof() -> None:
    def full(port: int) -> None:
        pool = urllib3.HTTPConnectionPool("127.0.0.1", port, maxsize=1, block=True)
        with pool.request("GET", "/", preload_content=False, retries=False):
            pool.urlopen("POST", "/", body=b"x", pool_timeout=0.1, retries=False)

    with Server(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n") as server:
        assert proves(lambda: full(server.port)) == "transient"


@pytest.mark.parametrize("client", ["httpx", "httpx2", "requests", "urllib3"])
def test_a_body_that_is_not_taken_proves_nothing(client: str) -> None:
    body = b"x" * 20_000_000
    sends: dict[str, Callable[[str], Any]] = {
        "httpx": lambda u: httpx.post(u, content=body, timeout=0.2),
        "httpx2": lambda u: httpx2.post(u, content=body, timeout=0.2),
        "requests": lambda u: requests.post(u, data=body, timeout=0.2),
        "urllib3": lambda u: urllib3.request("POST", u, body=body, timeout=0.2, retries=False),
    }
    with Server(lambda _: server.go.wait(2), buffer=4096) as server:
        assert proves(lambda: sends[client](server.url)) == ""


@pytest.mark.parametrize(
    ("client", "url"),
    [
        ("httpx", "shop/orders"), ("httpx2", "ftp://shop.example/"), ("requests", "shop/orders"),
        ("requests", "ftp://shop.example/"), ("requests", "http://"), ("aiohttp", "shop/orders"),
        ("aiohttp", "ftp://shop.example/"), ("urllib3", "ftp://shop.example/"),
    ],
)  # fmt: skip
def test_an_address_that_is_none_is_invalid(client: str, url: str) -> None:
    assert proves(lambda: CLIENTS[client](url)) == "invalid"


# --- the system's own errors ---


def test_plain_sockets_and_asyncio() -> None:
    async def opened(port: int, **more: Any) -> None:
        await asyncio.open_connection("127.0.0.1", port, **more)

    with refused() as port:
        assert proves(lambda: socket.create_connection(("127.0.0.1", port))) == "transient"
        assert proves(lambda: asyncio.run(opened(port))) == "transient"
    with Server(CREATED, tls=True) as server:
        untrusting = ssl.create_default_context()

        def shake() -> None:
            with socket.create_connection(("127.0.0.1", server.port)) as sock:
                untrusting.wrap_socket(sock, server_hostname="localhost")

        assert proves(shake) == "transient"


@pytest.mark.parametrize(
    "number",
    [errno.ECONNREFUSED, errno.EHOSTUNREACH, errno.ENETUNREACH, errno.ECONNRESET, errno.EPIPE,
     errno.ETIMEDOUT],
)  # fmt: skip
def test_an_errno_alone_proves_nothing(number: int) -> None:
    """Linux reports them for an open connection too, after something was sent."""

    def reads() -> None:
        raise OSError(number, "seen on an open connection")

    assert proves(reads) == ""


@pytest.mark.parametrize(
    "error",
    [ValueError("x"), KeyError("id"), KeyboardInterrupt(), asyncio.CancelledError(),
     TimeoutError("timed out"), RuntimeError(), SystemExit(1), MemoryError(),
     ExceptionGroup("two", [ValueError(), ConnectionResetError()])],
)  # fmt: skip
def test_what_nobody_listed_proves_nothing(error: BaseException) -> None:
    def work() -> None:
        raise error

    assert proves(work) == ""


def test_a_lost_answer_before_it_takes_the_proof_away() -> None:
    def falls_back() -> None:
        with Server("resets") as server:
            try:
                httpx.post(server.url, content=b"x", trust_env=False)
            except httpx.ReadError:
                with refused() as port:
                    httpx.post(f"http://127.0.0.1:{port}/", content=b"x", trust_env=False)

    assert proves(falls_back) == ""


def test_an_exception_without_its_traceback_proves_nothing() -> None:
    with refused() as port:
        error = raised(lambda: by_requests(f"http://127.0.0.1:{port}/")).with_traceback(None)
    assert isinstance(classify(error, None, single_request=True), Unknown)


# --- the wire's own record, and what is kept ---


def test_the_wire_knows_better_than_any_exception() -> None:
    trace = SendTrace()
    assert isinstance(classify(ValueError(), trace), Unknown)
    trace.admit()
    assert isinstance(classify(ValueError(), trace), NotDone)
    trace.start()
    with refused() as port:
        error = raised(lambda: by_requests(f"http://127.0.0.1:{port}/"))
    assert isinstance(classify(error, trace, single_request=True), Unknown)


def test_what_is_kept_of_an_exception_is_bounded_and_without_credentials() -> None:
    error = raised(lambda: by_requests("http://me:hunter2@nowhere.invalid/?api_key=abcdef&q=1"))
    text = describe(error)
    assert "abcdef" not in text
    assert "hunter2" not in text
    assert len(describe(ValueError("x" * 10_000))) <= 300

    class Broken(Exception):
        def __str__(self) -> str:
            raise RuntimeError

    assert describe(Broken()) == "Broken"


# --- smtplib, against a server that says what the test wants ---


class Mail:
    """An SMTP server that answers each command as scripted; DATA's end is `.`."""

    def __init__(self, **replies: str) -> None:
        self.replies = replies

    def __call__(self, conn: socket.socket) -> None:
        file = conn.makefile("rb")
        conn.sendall(f"{self.replies.get('hello', '220 here')}\r\n".encode())
        while line := file.readline():
            word = line.split()[0].decode().lower()
            reply = "221 bye" if word == "quit" else self.replies.get(word, "250 fine")
            if word == "data" and word not in self.replies:
                conn.sendall(b"354 go on\r\n")
                while file.readline() not in (b".\r\n", b""):
                    pass
                reply = self.replies.get("end", "250 taken")
            if reply == "drop":
                return reset(conn)
            conn.sendall(f"{reply}\r\n".encode())
        return None


def mails(*to: str, **replies: str) -> Any:
    with (
        Server(Mail(**replies)) as server,
        smtplib.SMTP("127.0.0.1", server.port, timeout=1) as client,
    ):
        return client.sendmail("ops@example.com", to or ("a@example.com",), b"Subject: x\r\n\r\nx")


@pytest.mark.parametrize(
    ("replies", "kind"),
    [
        ({"hello": "554 go away"}, "rejected"), ({"hello": "421 busy"}, "transient"),
        ({"mail": "550 no"}, "rejected"), ({"mail": "451 later"}, "transient"),
        ({"mail": "530 log in first"}, "unauthorized"),
        ({"rcpt": "550 unknown"}, "rejected"), ({"rcpt": "421 closing"}, "transient"),
        ({"data": "451 later"}, "transient"), ({"end": "554 spam"}, "rejected"),
        ({"end": "452 full"}, "transient"), ({"end": "250 taken"}, None),
        ({"end": "drop"}, ""), ({"data": "drop"}, ""), ({"end": "251 odd"}, ""),
        ({"end": "nonsense"}, ""), ({"mail": "drop"}, "transient"), ({"rcpt": "drop"}, "transient"),
    ],
    ids=str,
)  # fmt: skip
def test_a_refused_mail(replies: dict[str, str], kind: str | None) -> None:
    if kind is None:
        assert mails(**replies) == {}
        return
    assert proves(lambda: mails(**replies)) == kind


def test_recipients_that_were_refused_beside_others_are_returned_not_raised() -> None:
    """Documented in classify/smtp_.py: the action has to look at what `sendmail` returns."""
    script = Mail()
    told = iter(["250 fine", "550 unknown"])

    class Second(Mail):
        def __call__(self, conn: socket.socket) -> None:
            self.replies = _Next(told)
            script.replies = self.replies
            script(conn)

    with Server(Second()) as server, smtplib.SMTP("127.0.0.1", server.port, timeout=1) as client:
        got = client.sendmail("ops@example.com", ["a@example.com", "b@example.com"], b"x")
    assert got == {"b@example.com": (550, b"unknown")}


class _Next(dict[str, str]):
    def __init__(self, told: Any) -> None:
        super().__init__()
        self._told = told

    def get(self, word: str, default: Any = None) -> Any:
        return next(self._told) if word == "rcpt" else default


def test_smtp_without_a_server() -> None:
    with refused() as port:
        assert proves(lambda: smtplib.SMTP("127.0.0.1", port)) == "transient"
    assert classify(smtplib.SMTPServerDisconnected("x"), None, single_request=True)
    assert trusting()
    assert (
        proves(lambda: (_ for _ in ()).throw(smtplib.SMTPNotSupportedError("SMTPUTF8")))
        == NotDoneKind.INVALID
    )

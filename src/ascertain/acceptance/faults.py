"""Fault proxies on loopback: lose an answer, lose a request, commit late, answer instead.

They stand between a caller and a real target and do to the network what production does. A rule
is one-shot: it catches the first request that fits, then is gone, unless it is standing. A proxy
runs in threads of the process that made it, so a caller that is to be killed belongs in another
process.
"""

from __future__ import annotations

import contextlib
import http.client
import http.server
import socket
import socketserver
import threading
import time
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from ._fault_rules import LOOPBACK, Exchange, FaultProxy, Rule, reset
from ._tcp_faults import TcpFaultProxy

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Exchange", "HttpFaultProxy", "Rule", "TcpFaultProxy"]

MAX_BODY = 64 * 1024 * 1024
UPSTREAM_SECONDS = 60.0
# RFC 9110, 7.6.1; the length is written anew, since a chunked body is joined.
HOP_BY_HOP = frozenset(
    {
        "connection",
        "content-length",
        "expect",
        "keep-alive",
        "proxy-authenticate",
        "proxy-authorization",
        "proxy-connection",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
    }
)


class HttpFaultProxy(FaultProxy):
    """An HTTP/1.1 reverse proxy with one-shot faults.

    Requests pass with method, path, headers and body unchanged, hop-by-hop headers excepted; with
    ``set_host=True`` the Host becomes the target's own (Roundup insists). One connection to the
    target per request, no retries. Bodies up to 64 MiB.
    """

    def __init__(
        self, upstream_port: int, *, upstream_host: str = LOOPBACK, set_host: bool = False
    ) -> None:
        super().__init__(upstream_port, upstream_host)
        self.set_host = set_host
        proxy = self

        class BoundHandler(_Handler):
            owner = proxy

        self._server = _Server((LOOPBACK, 0), BoundHandler)
        self._server.owner = self
        self.port = int(self._server.server_address[1])
        self._acceptor = threading.Thread(
            target=self._server.serve_forever, args=(0.05,), daemon=True, name="fault-proxy"
        )
        self._acceptor.start()

    @property
    def url(self) -> str:
        """Base address that callers use instead of the target's."""
        return f"http://{self.host}:{self.port}"

    def let_pass(self, method: str | None = None, path: str = "") -> Rule:
        """Let one fitting request through unharmed, before the rules armed after this one."""
        return self.book.arm(Rule("pass", method, path))

    def drop_response(self, method: str | None = None, path: str = "") -> Rule:
        """Forward, read the target's whole answer, then reset the client."""
        return self.book.arm(Rule("drop_response", method, path))

    def drop_request(self, method: str | None = None, path: str = "") -> Rule:
        """Read the request, reset the client, never forward."""
        return self.book.arm(Rule("drop_request", method, path))

    def commit_late(self, seconds: float, method: str | None = None, path: str = "") -> Rule:
        """Read the request and forward it ``seconds`` later, whether or not the client lives."""
        return self.book.arm(Rule("commit_late", method, path, seconds))

    def hold(self, seconds: float, method: str | None = None, path: str = "") -> Rule:
        """Forward at once and answer ``seconds`` later (or after the rule's ``release()``)."""
        return self.book.arm(Rule("hold", method, path, seconds))

    def answer(
        self,
        status: int,
        body: bytes = b"",
        headers: Iterable[tuple[str, str]] = (),
        *,
        method: str | None = None,
        path: str = "",
        standing: bool = False,
    ) -> Rule:
        """Answer with this instead of forwarding, once or as long as the proxy stands."""
        rule = Rule("answer", method, path, 0.0, status, body, tuple(headers), standing)
        return self.book.arm(rule)

    def stop(self) -> None:
        """Close all connections; a request held back until now is never forwarded."""
        self._server.shutdown()
        self._server.server_close()
        self.book.end()
        self._acceptor.join()


class _Server(socketserver.TCPServer):
    """Accepts connections; the proxy's own threads serve them, so that stop() can wait."""

    request_queue_size = 64
    allow_reuse_address = True
    owner: HttpFaultProxy

    def process_request(self, request: Any, client_address: Any) -> None:
        def work() -> None:
            try:
                with contextlib.suppress(OSError):
                    self.finish_request(request, client_address)
            finally:
                self.owner.book.drop(request)
                self.shutdown_request(request)

        self.owner.book.hold(request)
        self.owner.book.run(work)


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    owner: HttpFaultProxy

    def __getattr__(self, name: str) -> Callable[[], None]:
        if name.startswith("do_"):  # any method, MKCALENDAR and REPORT included
            return self._serve
        raise AttributeError(name)

    def log_message(self, *_: object) -> None:
        """Say nothing on stderr; the proxy has its own log."""

    def _serve(self) -> None:
        began, number = time.time(), self.owner.book.arrive()
        if "close" in _connection_words(self.headers.items()):
            self.close_connection = True
        body = self._read_body()
        rule = self.owner.book.match(self.command, self.path) if body is not None else None
        action = rule.action if rule else "pass"

        def note(outcome: str, *, forwarded: bool, status: int | None = None) -> None:
            row = (number, self.command, self.path, action, outcome, forwarded, status, began)
            self.owner.book.note(Exchange(*row, time.time()), rule)

        if body is None:
            note("incomplete", forwarded=False)
        elif rule is not None and action == "drop_request":
            note("request_dropped", forwarded=False)
            self._reset()
        elif rule is not None and action == "answer":
            note("answered_instead", forwarded=False)
            reason = http.client.responses.get(rule.status, "")
            self._reply(rule.status, reason, rule.headers, rule.body)
        elif rule is not None and action == "commit_late" and not self.owner.book.pause(rule):
            note("abandoned", forwarded=False)
            self._reset()
        else:
            self._forward(rule, body, note)

    def _forward(self, rule: Rule | None, body: bytes, note: Callable[..., None]) -> None:
        action = rule.action if rule else "pass"
        try:
            status, reason, headers, content = self._ask_target(body)
        except (OSError, http.client.HTTPException) as error:
            note("target_failed", forwarded=True)  # how far it got is not known
            self._reply(502, "Bad Gateway", (), f"fault proxy: {error!r}".encode())
            return
        if rule is not None:
            rule.landed.set()
        if rule is not None and action == "hold" and not self.owner.book.pause(rule):
            note("abandoned", forwarded=True, status=status)
            self._reset()
            return
        if action == "drop_response":
            note("answer_dropped", forwarded=True, status=status)
            self._reset()
            return
        outcome = "committed_late" if action == "commit_late" else "answered"
        note(outcome, forwarded=True, status=status)
        self._reply(status, reason, headers, content)

    def _ask_target(self, body: bytes) -> tuple[int, str, list[tuple[str, str]], bytes]:
        owner = self.owner
        target = http.client.HTTPConnection(
            owner.upstream_host, owner.upstream_port, timeout=UPSTREAM_SECONDS
        )
        with contextlib.closing(target):
            target.putrequest(self.command, self.path, skip_host=True, skip_accept_encoding=True)
            for name, value in _end_to_end(self.headers.items()):
                if name.lower() == "host" and owner.set_host:
                    target.putheader("Host", f"{owner.upstream_host}:{owner.upstream_port}")
                else:
                    target.putheader(name, value)
            has_body = "content-length" in self.headers or "transfer-encoding" in self.headers
            if has_body:
                target.putheader("Content-Length", str(len(body)))
            target.endheaders(body or None)
            answer = target.getresponse()
            content = answer.read()
            headers = _end_to_end(answer.getheaders())
            if self.command == "HEAD" and (length := answer.getheader("Content-Length")):
                headers.append(("Content-Length", length))
            return answer.status, answer.reason, headers, content

    def _read_body(self) -> bytes | None:
        """Read the whole request body; None (and the connection closed) if it never came."""
        try:
            if "chunked" in self.headers.get("Transfer-Encoding", "").lower():
                return self._read_chunks()
            size = int(self.headers.get("Content-Length") or 0)
            body = self.rfile.read(size) if size <= MAX_BODY else b""
            if len(body) == size:
                return body
        except (OSError, ValueError):
            pass
        self.close_connection = True
        return None

    def _read_chunks(self) -> bytes:
        body = bytearray()
        while size := int(self.rfile.readline(100).split(b";")[0], 16):
            if len(body) + size > MAX_BODY:
                raise ValueError(size)
            body += self.rfile.read(size)
            self.rfile.readline(3)
        while self.rfile.readline(65536) not in (b"\r\n", b"\n", b""):
            pass  # trailers
        return bytes(body)

    def _reply(
        self, status: int, reason: str, headers: Iterable[tuple[str, str]], body: bytes
    ) -> None:
        try:
            self.send_response_only(status, reason)
            for name, value in headers:
                self.send_header(name, value)
            bodiless = status in (204, 304) or self.command == "HEAD"
            if not bodiless:
                self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            if not bodiless:
                self.wfile.write(body)
        except OSError:  # the client has gone
            self.close_connection = True

    def _reset(self) -> None:
        self.close_connection = True
        connection: socket.socket = self.connection
        self.owner.book.drop(connection)
        reset(connection)


def _connection_words(headers: Iterable[tuple[str, str]]) -> set[str]:
    values = (value for name, value in headers if name.lower() == "connection")
    return {word.strip().lower() for value in values for word in value.split(",")}


def _end_to_end(headers: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    pairs = list(headers)
    left_out = HOP_BY_HOP | _connection_words(pairs)
    return [(name, value) for name, value in pairs if name.lower() not in left_out]

"""Scripted servers on loopback that count connections, requests and bytes."""

from __future__ import annotations

import contextlib
import socket
import ssl
import struct
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Self

from ascertain.core.contract import Contract, load
from ascertain.targets.http import AsyncEffectHttp, EffectHttp

PEM = Path(__file__).parent / "tls.pem"  # of no use but here: localhost, until 2126
CREATED = b"HTTP/1.1 201 Created\r\nContent-Length: 8\r\n\r\n" + b'{"id":5}'
SHOP = {
    "id": "shop.order", "ok": {"when": "201"},
    "refused": {"invalid": "400|413", "unauthorized": "401|403", "throttled": "429",
                "transient": "503 header:Retry-After"},
}  # fmt: skip


def shop(**parts: Any) -> Contract:
    return load({**SHOP, **parts})


def now() -> int:
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME) // 1000


class Hand:
    """A clock that a test moves by hand, in µs."""

    def __init__(self) -> None:
        self.at = 0

    def __call__(self) -> int:
        return self.at


def client(within: float = 5, effect: bool = True, **more: Any) -> EffectHttp:
    end = now() + int(within * 1e6)
    return EffectHttp(deadline=lambda: end, clock=now, effect=effect, **more)


def both(made: EffectHttp, twin: bool) -> Any:
    """The client, or its twin behind the same blocking face."""
    return _Blocking(AsyncEffectHttp(made)) if twin else made


class _Blocking:
    def __init__(self, inner: AsyncEffectHttp) -> None:
        self._inner = inner

    @property
    def trace(self) -> Any:
        return self._inner.trace

    def close(self) -> None:
        self._inner.close()

    def __getattr__(self, name: str) -> Callable[..., Any]:
        import asyncio

        async def call(*args: Any, **more: Any) -> Any:
            return await getattr(self._inner, name)(*args, **more)

        return lambda *args, **more: asyncio.run(call(*args, **more))


def answer(status: str, body: bytes = b"", **headers: str) -> bytes:
    head = [f"HTTP/1.1 {status}", f"Content-Length: {len(body)}"]
    head += [f"{n.replace('_', '-')}: {v}" for n, v in headers.items()]
    return "\r\n".join(head).encode() + b"\r\n\r\n" + body


def read_request(conn: socket.socket) -> bytes:
    """Read one whole request; what is there if the other side ends."""
    data = b""
    while b"\r\n\r\n" not in data:
        part = conn.recv(65536)
        if not part:
            return data
        data += part
    head, _, body = data.partition(b"\r\n\r\n")
    if b"100-continue" in head:  # botocore asks, and waits a second for it
        conn.sendall(b"HTTP/1.1 100 Continue\r\n\r\n")
    length = next(
        (int(line.split(b":")[1]) for line in head.split(b"\r\n")
         if line.lower().startswith(b"content-length:")), 0,
    )  # fmt: skip
    while len(body) < length:
        part = conn.recv(65536)
        if not part:
            break
        body += part
    return head + b"\r\n\r\n" + body


def reset(conn: socket.socket) -> None:
    """End a connection so that the other side sees a reset."""
    conn.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    conn.close()


class Server:
    """Plays its script, one entry per connection; the last entry again and again.

    An entry is bytes to answer a whole request with, a function of the connection, or the name
    of a script below.
    """

    def __init__(self, *script: Any, tls: bool = False, family: int = socket.AF_INET,
                 buffer: int | None = None) -> None:  # fmt: skip
        self.script, self.tls = list(script), tls
        self.requests: list[bytes] = []
        self.connections = 0
        self.go = threading.Event()  # for scripts that wait for the test
        self.came = threading.Event()  # a connection was made
        self._sock = socket.socket(family)
        if buffer:
            self._sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer)
        self._sock.bind(("::1" if family == socket.AF_INET6 else "127.0.0.1", 0))
        self._sock.listen(50)
        self.port = self._sock.getsockname()[1]
        self._threads: list[threading.Thread] = []
        self._thread = threading.Thread(target=self._accept, daemon=True)

    @property
    def url(self) -> str:
        return f"{'https' if self.tls else 'http'}://localhost:{self.port}/orders"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def stop(self) -> None:
        """Listen no more: who connects from now on is refused."""
        with contextlib.suppress(OSError):
            self._sock.shutdown(socket.SHUT_RDWR)
        self._sock.close()

    def __exit__(self, *_: object) -> None:
        self.go.set()
        self.stop()
        self._thread.join(2)
        for thread in self._threads:
            thread.join(2)

    def _accept(self) -> None:
        while True:
            try:
                conn, _ = self._sock.accept()
            except OSError:
                return
            entry = self.script[min(self.connections, len(self.script) - 1)]
            self.connections += 1
            self.came.set()
            thread = threading.Thread(target=self._serve, args=(conn, entry), daemon=True)
            self._threads.append(thread)
            thread.start()

    def _serve(self, conn: socket.socket, entry: Any) -> None:
        conn.settimeout(5)
        with contextlib.suppress(OSError, ssl.SSLError):
            if self.tls:
                conn = server_context().wrap_socket(conn, server_side=True)
            if isinstance(entry, str):
                entry = getattr(self, entry)
            if callable(entry):
                entry(conn)
            else:
                self.requests.append(read_request(conn))
                conn.sendall(entry)
        with contextlib.suppress(OSError):
            conn.close()

    # --- scripts ---

    def silent(self, conn: socket.socket) -> None:
        """Read the request and never answer."""
        self.requests.append(read_request(conn))
        self.go.wait(5)

    def resets(self, conn: socket.socket) -> None:
        """Read the request and reset the connection."""
        self.requests.append(read_request(conn))
        reset(conn)

    def hangs_up(self, conn: socket.socket) -> None:
        """Read the request and close without an answer."""
        self.requests.append(read_request(conn))

    def waits(self, conn: socket.socket) -> None:
        """Read nothing until told, and then all there is."""
        self.go.wait(5)
        data = b""
        try:
            while part := conn.recv(65536):
                data += part
            data += b"<end>"
        finally:
            self.requests.append(data)


def server_context() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(PEM)
    return context


def trusting() -> ssl.SSLContext:
    return ssl.create_default_context(cafile=str(PEM))


@contextlib.contextmanager
def refused() -> Iterator[int]:
    """A port at which nobody listens."""
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        yield sock.getsockname()[1]

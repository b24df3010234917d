"""An outside system on loopback that counts what it is asked and made, with scripted faults.

Fates of the next effect requests, in order, or by the name in the body (`fates["B"]`): `ok`,
`drop` (saved, then the connection is cut), `refuse` (500, nothing saved), `slow:S` (saved, the
answer comes S seconds later), `busy` (429, nothing saved), `bad` (422), `hang` (never saved, cut).
"""

from __future__ import annotations

import contextlib
import json
import socket
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit


class Shop(ThreadingHTTPServer):
    """POST /orders makes one, remembering `Idempotency-Key` if it comes; GET /orders?key=K finds
    them; anything else under /echo answers with what it was sent."""

    daemon_threads = True
    request_queue_size = 256

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.lock = threading.Lock()
        self.orders: list[dict[str, Any]] = []  # what was made, in order
        self.asked: list[dict[str, Any]] = []  # every request: method, path, headers, size
        self.script: list[str] = []
        self.fates: dict[str, list[str]] = defaultdict(list)
        self.remembers = True

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"

    def made(self) -> Counter[str]:
        """How many were made, by name: one each is what everybody wants."""
        return Counter(order["name"] for order in self.orders)

    def effects(self) -> list[dict[str, Any]]:
        return [one for one in self.asked if one["method"] == "POST"]


@contextlib.contextmanager
def shop() -> Iterator[Shop]:
    with Shop() as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()


class _Handler(BaseHTTPRequestHandler):
    server: Shop
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        self._noted(b"")
        if self.path.startswith("/echo"):
            return self._say(200, {"path": self.path, "headers": dict(self.headers)})
        wanted = parse_qs(urlsplit(self.path).query).get("key", [""])[0]
        with self.server.lock:
            found = [o for o in self.server.orders if o["key"] == wanted]
        return self._say(200, {"orders": found})

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self._noted(body)
        if self.path.startswith("/echo"):
            self._say(200, {"path": self.path, "headers": dict(self.headers), "size": len(body)})
            return
        try:
            given = json.loads(body)
        except ValueError:
            given = {}
        key = self.headers.get("Idempotency-Key") or str(given.get("key", ""))
        name = str(given.get("name") or given.get("number") or key)
        with self.server.lock:
            own = self.server.fates[name]
            fate = own.pop(0) if own else self.server.script.pop(0) if self.server.script else "ok"
        self._meet(fate, key, name)

    do_PUT = do_PATCH = do_DELETE = do_POST  # noqa: N815 - as the base class names them

    def _meet(self, fate: str, key: str, name: str) -> None:
        word, _, more = fate.partition(":")
        if word in ("refuse", "busy", "bad"):
            status = {"refuse": 500, "busy": 429, "bad": 422}[word]
            return self._say(status, {"error": word})
        if word == "hang":
            return self._cut()
        order = self._save(key, name)
        if word == "drop":
            return self._cut()
        time.sleep(float(more) if word == "slow" else 0)
        return self._say(201, order)

    def _save(self, key: str, name: str) -> dict[str, Any]:
        with self.server.lock:
            if key and self.server.remembers:
                for order in self.server.orders:
                    if order["key"] == key:
                        return order
            order = {"id": len(self.server.orders) + 1, "key": key, "name": name}
            self.server.orders.append(order)
            return order

    def _noted(self, body: bytes) -> None:
        asked = {"method": self.command, "path": self.path, "headers": dict(self.headers),
                 "size": len(body), "body": body[:65536]}  # fmt: skip
        with self.server.lock:
            self.server.asked.append(asked)

    def _say(self, status: int, value: Any) -> None:
        data = json.dumps(value).encode()
        with contextlib.suppress(OSError):
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

    def _cut(self) -> None:
        self.close_connection = True
        with contextlib.suppress(OSError):
            self.connection.shutdown(socket.SHUT_RDWR)

    def log_message(self, *_: Any) -> None:
        """Say nothing."""

"""A web service that counts: it saves what is posted, and answers as scripted."""

from __future__ import annotations

import json
import socket
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class Web(ThreadingHTTPServer):
    """`fates` of the next posts: ok, reset (saved, then the connection is reset), 409, 429."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.fates: list[str] = []
        self.posts: list[tuple[str, bytes]] = []  # (key, body) of every request that arrived
        self.saved: dict[str, str] = {}
        self.url = f"http://127.0.0.1:{self.server_port}"

    def handle_error(self, *_: Any) -> None:
        """Connections that the other side gave up are no news here."""


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Web

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        key = self.headers.get("Idempotency-Key", "")
        self.server.posts.append((key, body))
        fate = self.server.fates.pop(0) if self.server.fates else "ok"
        if fate in ("ok", "reset"):
            self.server.saved.setdefault(key, f"id-{len(self.server.saved) + 1}")
        if fate == "reset":
            linger = struct.pack("ii", 1, 0)
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
            self.close_connection = True
            self.connection.close()
            return
        self.answer(200 if fate == "ok" else int(fate), {"id": self.server.saved.get(key)})

    def do_GET(self) -> None:
        ref = self.server.saved.get(self.path.removeprefix("/"))
        self.answer(200 if ref else 404, {"id": ref})

    def answer(self, status: int, data: Any) -> None:
        text = json.dumps(data).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, *_: Any) -> None:
        """Silent."""


@contextmanager
def serving() -> Iterator[Web]:
    with Web() as web:
        thread = threading.Thread(target=web.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield web
        finally:
            web.shutdown()
            thread.join()

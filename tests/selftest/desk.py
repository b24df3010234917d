"""A help desk over HTTP with Idempotency-Key, described in TOML; `stripped` loses the header."""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self
from urllib.parse import parse_qs, urlsplit

TOML = """
[targets.desk]
base = "{base}"

[[contract]]
id = "desk.ticket"
ok = {{ when = "201" }}
key = {{ at = "header:Idempotency-Key", kind = "request" }}
repeat = {{ answer = "replay", keeps = "2s", atomic = true, mismatch = "422" }}
lookup = {{ by = "op", lag = "0s" }}
late = {{ max = "100ms" }}
refused = {{ unauthorized = "401" }}
undo = "DELETE /tickets/{{id}}"

[[contract]]
id = "desk.remove"
ok = {{ when = "204" }}

[actions."desk.ticket"]
target = "desk"
contract = "desk.ticket"
key = "{{order}}"
owner = "anna"
inputs = {{ order = {{}}, text = {{}} }}
timeout = "2s"
ref = "id"
request = {{ url = "/tickets", json = {{ text = "{{text}} {{order}}", op = "{{target_key}}" }} }}

[actions."desk.ticket".lookup]
url = "/tickets?op={{target_key}}"
by = "op"
ref = "id"
items = "found"

[actions."desk.remove"]
target = "desk"
contract = "desk.remove"
key = "{{ref}}"
owner = "anna"
inputs = {{ ref = {{}} }}
timeout = "2s"
request = {{ method = "DELETE", url = "/tickets/{{ref}}" }}
"""


class Desk(ThreadingHTTPServer):
    """The server; `tickets` by id."""

    daemon_threads = True
    request_queue_size = 64  # or the kernel has some of eight at once wait for a second
    stripped = False
    window = 2.0  # seconds that it remembers a key

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.tickets: dict[str, dict[str, Any]] = {}
        self.kept: dict[str, tuple[float, str, bytes]] = {}
        self.made = 0
        self.lock = threading.Lock()

    @property
    def toml(self) -> str:
        return TOML.format(base=f"http://127.0.0.1:{self.server_address[1]}")

    def __enter__(self) -> Self:
        threading.Thread(target=self.serve_forever, args=(0.01,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.shutdown()
        self.server_close()


class _Handler(BaseHTTPRequestHandler):
    server: Desk

    def do_POST(self) -> None:
        import time

        body = self.rfile.read(int(self.headers["Content-Length"]))
        key, now = self.headers["Idempotency-Key"], time.monotonic()
        with self.server.lock:
            since, ident, before = self.server.kept.get(key, (-99.0, "", b""))
            if now - since < self.server.window and not self.server.stripped:
                return self._answer(201 if body == before else 422, {"id": ident})
            self.server.made += 1
            ident = f"t-{self.server.made}"
            self.server.tickets[ident] = {"id": ident, **json.loads(body)}
            self.server.kept[key] = (now, ident, body)
        return self._answer(201, {"id": ident})

    def do_GET(self) -> None:
        [op] = parse_qs(urlsplit(self.path).query)["op"]
        self._answer(200, {"found": [t for t in self.server.tickets.values() if t["op"] == op]})

    def do_DELETE(self) -> None:
        self.server.tickets.pop(self.path.rpartition("/")[2])
        self._answer(204, None)

    def _answer(self, status: int, data: Any) -> None:
        content = b"" if data is None else json.dumps(data).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: object) -> None:
        pass

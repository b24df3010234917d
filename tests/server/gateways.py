"""Configurations with a gateway: before the shop of target.py, and before a mirror."""

from __future__ import annotations

import contextlib
import hashlib
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

CONFIG = """
[server]
wait = 5.0

[[contract]]
id = "shop.order"
ok = {{ when = "201" }}
key = {{ at = "header:Idempotency-Key", kind = "request" }}
repeat = {{ answer = "replay", keeps = "24h", failed = "rerun", atomic = true }}
late = {{ max = "1s" }}
refused = {{ invalid = "422", throttled = "429", transient = "500" }}

[[contract]]
id = "shop.searched"
ok = {{ when = "201" }}
key = {{ at = "body:key", kind = "content" }}
lookup = {{ call = "GET /orders?key={{key}}", by = "key", lag = "0s" }}
late = {{ max = "1s" }}
refused = {{ invalid = "422", throttled = "429", transient = "500" }}

[[contract]]
id = "shop.echo"
ok = {{ when = "200" }}
refused = {{ invalid = "422" }}

[targets.shop]
base = "{target}"
private = true
auth.bearer = {{ env = "SHOP_TOKEN" }}

[[targets.shop.gateway]]
match = "POST /orders"
contract = "shop.order"
action = "shop.order"
owner = "anna"
ref = "id"
first_delay = "100ms"
timeout = "10s"
attempts = 12

[[targets.shop.gateway]]
match = "POST /searched/orders"
contract = "shop.searched"
owner = "anna"
ref = "id"
lookup = {{ url = "/orders?key={{target_key}}", items = "orders", ref = "id", by = "key" }}
timeout = "1s"
reversible = true
first_delay = "100ms"

[[targets.shop.gateway]]
match = "POST /echo/**"
contract = "shop.echo"
owner = "anna"
drop_headers = ["X-Build"]

[[targets.shop.gateway]]
match = "GET /**"
read = true

[targets.walled]
base = "{target}"

[[targets.walled.gateway]]
match = "POST /orders"
contract = "shop.order"
owner = "anna"
ref = "id"
first_delay = "200ms"

[[targets.walled.gateway]]
match = "GET /**"
read = true
"""

MIRROR = """
[[contract]]
id = "mirror.put"
ok = {{ when = "200|201" }}
key = {{ at = "header:Idempotency-Key", kind = "request" }}
repeat = {{ answer = "replay", keeps = "24h", failed = "rerun", atomic = true }}
late = {{ max = "1s" }}
refused = {{ invalid = "413|422" }}

[[contract]]
id = "mirror.query"
key = {{ at = "query:key", kind = "request" }}

[[contract]]
id = "mirror.path"
key = {{ at = "path:name", kind = "resource" }}

[[contract]]
id = "mirror.body"
key = {{ at = "body:meta.op", kind = "resource" }}

[[contract]]
id = "mirror.top"
key = {{ at = "body:op", kind = "resource" }}

[[contract]]
id = "mirror.plain"
ok = {{ when = "201" }}
lookup = {{ call = "GET /found", by = "meta._op", lag = "0s" }}

[targets.mirror]
base = "{target}/base"
private = true
headers = {{ X-Api-Version = "7" }}
auth.basic = {{ user = "shop", password = {{ env = "MIRROR_PASSWORD" }} }}
auth.query = {{ token = {{ env = "MIRROR_TOKEN" }} }}

[[targets.mirror.gateway]]
match = "POST /files/**"
contract = "mirror.put"
action = "files"
owner = "anna"
timeout = "30s"
max_body = 134217728

[[targets.mirror.gateway]]
match = "POST /small"
contract = "mirror.put"
owner = "anna"
max_body = 1000

[[targets.mirror.gateway]]
match = "POST /query"
contract = "mirror.query"
owner = "anna"

[[targets.mirror.gateway]]
match = "PUT /things/{{target_key}}"
contract = "mirror.path"
owner = "anna"

[[targets.mirror.gateway]]
match = "POST /body"
contract = "mirror.body"
owner = "anna"

[[targets.mirror.gateway]]
match = "POST /top"
contract = "mirror.top"
owner = "anna"

[[targets.mirror.gateway]]
match = "POST /stamped"
contract = "mirror.plain"
stamp = "body:meta._op"
owner = "anna"
ref = "id"
lookup = {{ url = "/found?op={{target_key}}", items = "items", by = "meta._op", ref = "id" }}
reversible = true
timeout = "1s"
first_delay = "100ms"
late = "0s"

[[targets.mirror.gateway]]
match = "POST /written"
contract = "mirror.put"
owner = "anna"
on_changed = "reuse"
title = "{{method}} {{path}} of {{key}}"
approval = "chef"

[[targets.mirror.gateway]]
match = "GET /**"
read = true

[targets.theirs]
base = "{target}/base"
private = true
pass_credentials = true

[[targets.theirs.gateway]]
match = "POST /files"
contract = "mirror.put"
action = "theirs"
owner = "ben"

[[targets.theirs.gateway]]
match = "GET /**"
read = true

[targets.walled]
base = "http://localhost:{port}/base"

[[targets.walled.gateway]]
match = "POST /files"
contract = "mirror.put"
action = "walled"
owner = "anna"
first_delay = "200ms"

[[targets.walled.gateway]]
match = "GET /**"
read = true
"""


class Mirror(ThreadingHTTPServer):
    """Keeps each request as it arrived, the body by its hash; answers what `answers` says next:
    status, headers, body. Then 200 with what it was sent, if that is small."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Mirrored)
        self.lock = threading.Lock()
        self.asked: list[dict[str, Any]] = []
        self.connections = 0
        self.answers: list[tuple[int, dict[str, str], bytes]] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"

    def get_request(self) -> Any:
        self.connections += 1
        return super().get_request()


class _Mirrored(BaseHTTPRequestHandler):
    server: Mirror
    protocol_version = "HTTP/1.1"

    def handle_any(self) -> None:
        left, digest, body = int(self.headers.get("Content-Length", 0)), hashlib.sha256(), b""
        size = left
        while left:
            piece = self.rfile.read(min(left, 65536))
            if not piece:
                return  # cut off: it is not counted
            digest.update(piece)
            left -= len(piece)
            body = (body + piece)[:100_000]
        asked = {
            "method": self.command, "path": self.path, "headers": self.headers.items(),
            "size": size, "sha256": digest.hexdigest(), "body": body,
        }  # fmt: skip
        with self.server.lock:
            self.server.asked.append(asked)
            echo = json.dumps({"headers": dict(self.headers.items()), "path": self.path}).encode()
            plain = (200, {"Content-Type": "application/json"}, echo)
            status, headers, said = self.server.answers.pop(0) if self.server.answers else plain
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(said)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(said)

    do_GET = do_HEAD = do_POST = do_PUT = do_DELETE = handle_any  # noqa: N815

    def log_message(self, *_: Any) -> None:
        """Say nothing."""


@contextlib.contextmanager
def mirror() -> Iterator[Mirror]:
    with Mirror() as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()

"""What a worker without a server answers: `/healthz`, `/readyz` and `/metrics`.

Of the standard library, one request at a time and each with a short time: a worker that is asked
by nobody loads no more than this, and one that is needs no server of the API.
"""

from __future__ import annotations

import socket
import threading
from collections.abc import Sized
from http.server import BaseHTTPRequestHandler, HTTPServer
from ipaddress import ip_address
from typing import Any

from ascertain.core.errors import StoreError
from ascertain.core.rights import Right, rights_of_scopes
from ascertain.runtime.accounts import Accounts
from ascertain.runtime.telemetry import telemetry
from ascertain.store.base import Store
from ascertain.targets.classify import describe

from .meters import MEDIA, Meters

WITHIN = 2.0  # seconds that a client may be silent
JSON = "application/json"


class Standing(HTTPServer):
    """Listens from the start; `begin` answers in a thread, `end` ends that."""

    def __init__(self, host: str, port: int, store: Store, spaces: Any, *, is_open: bool) -> None:
        """Take the address; raises OSError. `is_open`: who asks on this machine needs no token
        for the metrics."""
        self.address_family = socket.AF_INET6 if ":" in host else socket.AF_INET
        super().__init__((host, port), _Answer)
        self.store, self.spaces, self.is_open = store, spaces, is_open
        self.in_flight: Sized = ()  # operations of requests: there are none
        self.stopping = False
        self.accounts, self.meters = Accounts(store), Meters(self)
        self._thread = threading.Thread(target=self.serve_forever, name="standing", daemon=True)

    def begin(self) -> None:
        """Answer from now on."""
        self._thread.start()

    def end(self) -> None:
        """Answer no more; does not wait for a client that is slow."""
        threading.Thread(target=self.shutdown, daemon=True).start()
        self._thread.join(WITHIN)
        self.server_close()
        self.meters.close()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing of a client that went away."""

    def may_read(self, handler: BaseHTTPRequestHandler) -> int:
        """Return 200 for who may read the metrics, else the status that says why not."""
        scheme, _, secret = handler.headers.get("Authorization", "").partition(" ")
        if not secret:
            near = ip_address(handler.client_address[0]).is_loopback
            proxied = "X-Forwarded-For" in handler.headers
            return 200 if self.is_open and near and not proxied else 401
        token = self.accounts.tokens.of(secret.strip()) if scheme.lower() == "bearer" else None
        if token is None:
            return 401
        return 200 if Right.METRICS in rights_of_scopes(token.scopes) else 403


class _Answer(BaseHTTPRequestHandler):
    server: Standing
    timeout = WITHIN

    def do_GET(self) -> None:
        """Answer what is known here."""
        try:
            status, media, body = self._found(self.path.partition("?")[0])
        except StoreError as error:
            telemetry.tell("standing.error", error=describe(error))
            status, media, body = 503, JSON, b'{"ok":false}'
        self.send_response(status)
        self.send_header("Content-Type", media)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    do_HEAD = do_GET  # noqa: N815 - as the base class names it

    def _found(self, path: str) -> tuple[int, str, bytes]:
        server = self.server
        if path == "/healthz":
            return 200, JSON, b'{"ok":true}'
        if path == "/readyz":
            server.store.meta("schema")
            return (503, JSON, b'{"ok":false}') if server.stopping else (200, JSON, b'{"ok":true}')
        if path != "/metrics":
            return 404, JSON, b'{"ok":false}'
        status = server.may_read(self)
        if status == 200:
            return status, MEDIA, server.meters.text()
        return status, JSON, b'{"ok":false}'

    def log_message(self, *_: Any) -> None:
        """Say nothing of each request."""

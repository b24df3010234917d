"""Where people are told, on loopback: an HTTP receiver, a Feishu simulator, a mail server."""

from __future__ import annotations

import contextlib
import json
import ssl
import threading
from collections.abc import Iterator
from email import message_from_bytes, policy
from email.message import EmailMessage
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from postgres import free_port


class Receiver(ThreadingHTTPServer):
    """Takes what is posted. `script` are the answers to come: a status, "cut" (read, then cut off),
    or a JSON answer as a text; then 200 with `says`."""

    daemon_threads = True

    def __init__(self, says: str = "{}") -> None:
        super().__init__(("127.0.0.1", 0), _Post)
        self.says, self.script = says, list[Any]()
        self.got: list[tuple[dict[str, str], bytes]] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/hook/secret-of-the-bot"

    def bodies(self) -> list[dict[str, Any]]:
        return [json.loads(body) for _, body in self.got]


class _Post(BaseHTTPRequestHandler):
    server: Receiver

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        headers = {name.lower(): value for name, value in self.headers.items()}
        self.server.got.append((headers, body))
        answer = self.server.script.pop(0) if self.server.script else self.server.says
        if answer == "cut":
            self.close_connection = True
            return
        status = answer if isinstance(answer, int) else 200
        data = answer.encode() if isinstance(answer, str) else b"{}"
        self.send_response(status)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: Any) -> None:
        """Say nothing."""


@contextlib.contextmanager
def receiver(says: str = "{}") -> Iterator[Receiver]:
    with Receiver(says) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()


class Mailbox:
    """What a mail server took; `refuse` are its answers to the next DATA."""

    def __init__(self) -> None:
        self.mails: list[EmailMessage] = []
        self.refuse: list[str] = []
        self.port = 0

    async def handle_DATA(self, _server: Any, _session: Any, envelope: Any) -> str:  # noqa: N802
        if self.refuse:
            return self.refuse.pop(0)
        self.mails.append(message_from_bytes(envelope.content, policy=policy.default))
        return "250 taken"


@contextlib.contextmanager
def mailbox(tls: ssl.SSLContext | None = None, **more: Any) -> Iterator[Mailbox]:
    """A real SMTP server; with `tls` it wants STARTTLS."""
    from aiosmtpd.controller import Controller

    box = Mailbox()
    given = {"tls_context": tls, "require_starttls": True} if tls is not None else {}
    box.port = free_port()
    controller = Controller(box, hostname="127.0.0.1", port=box.port, **given, **more)
    controller.start()
    try:
        yield box
    finally:
        controller.stop()

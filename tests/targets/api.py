"""A small REST server on loopback with access tokens, that counts everything it is asked."""

from __future__ import annotations

import json
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit


class Api(ThreadingHTTPServer):
    """Creates what is posted; `asked` has every request, `made` every object."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.asked: list[dict[str, Any]] = []
        self.made: list[Any] = []
        self.lose = 0  # answers to effect requests that are not sent
        self.tokens: list[dict[str, Any]] = []  # requests for a token, as forms
        self.good: set[str] = set()  # tokens that are let in; empty: nobody is asked for one
        self.guarded = False
        self.life: Any = 3600
        self.rotates = False
        self.refresh = "r0"
        self.token_answer: tuple[int, Any] | None = None  # in place of a token
        self.gate: threading.Event | None = None  # a token request waits for it

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"

    def effects(self) -> list[dict[str, Any]]:
        return [a for a in self.asked if a["method"] in ("POST", "PUT") and a["path"] != "/token"]


@contextmanager
def api() -> Any:
    with Api() as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()


class _Handler(BaseHTTPRequestHandler):
    server: Api

    def do_GET(self) -> None:
        self._serve()

    def do_POST(self) -> None:
        self._serve()

    def do_PUT(self) -> None:
        self._serve()

    def _serve(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0)).decode()
        url = urlsplit(self.path)
        query = {n: v[0] for n, v in parse_qs(url.query).items()}
        asked = {"method": self.command, "path": url.path, "query": query, "raw": self.path,
                 "headers": dict(self.headers.items()), "body": body}  # fmt: skip
        self.server.asked.append(asked)
        if url.path == "/token":
            self._token(body)
        elif self.server.guarded and self._bearer() not in self.server.good:
            self._answer(401, {"error": f"{self._bearer()} is not let in"})
        elif self.command == "GET":
            self._answer(200, [m for m in self.server.made if m["key"] == query.get("key")])
        else:
            self._effect(asked)

    def _effect(self, asked: dict[str, Any]) -> None:
        try:
            content = json.loads(asked["body"] or "{}")
        except ValueError:
            content = {}
        made = {**content, "id": f"n{len(self.server.made) + 1}"}
        self.server.made.append(made)
        if self.server.lose:
            self.server.lose -= 1
            self.close_connection = True
            return
        self._answer(201, made)

    def _bearer(self) -> str:
        return self.headers.get("Authorization", "").removeprefix("Bearer ")

    def _token(self, body: str) -> None:
        server = self.server
        form = {n: v[0] for n, v in parse_qs(body).items()}
        form["authorization"] = self.headers.get("Authorization", "")
        server.tokens.append(form)
        if server.gate is not None:
            server.gate.wait(5)
        if server.token_answer is not None:
            self._answer(*server.token_answer)
            return
        if form["grant_type"] == "refresh_token" and form.get("refresh_token") != server.refresh:
            self._answer(400, {"error": "invalid_grant", "error_description": "s3cret words"})
            return
        token = f"access-{len(server.tokens)}"
        server.good.add(token)
        answer: dict[str, Any] = {"access_token": token, "token_type": "Bearer"}
        if server.life is not None:
            answer["expires_in"] = server.life
        if server.rotates:
            server.refresh = f"r{len(server.tokens)}"
            answer["refresh_token"] = server.refresh
        self._answer(200, answer)

    def _answer(self, status: int, data: Any) -> None:
        content = data if isinstance(data, bytes) else json.dumps(data).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: object) -> None:
        pass

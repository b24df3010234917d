"""One question to a local web server, for readiness and for what an auditor reads."""

from __future__ import annotations

import contextlib
import http.client
import json
from collections.abc import Mapping
from typing import Any

from .base import LOOPBACK, PROBE_SECONDS

READ_SECONDS = 20.0


def answers(port: int, path: str, headers: Mapping[str, str] | None = None) -> bool:
    """Tell whether a path is answered with 200; raises nothing."""
    try:
        return ask(port, "GET", path, headers=headers, within=PROBE_SECONDS)[0] == 200
    except (OSError, http.client.HTTPException):
        return False


def ask(
    port: int,
    method: str,
    path: str,
    body: bytes | None = None,
    *,
    headers: Mapping[str, str] | None = None,
    within: float = READ_SECONDS,
) -> tuple[int, bytes]:
    """Send one request to a server of this machine and return status and body."""
    connection = http.client.HTTPConnection(LOOPBACK, port, timeout=within)
    with contextlib.closing(connection):
        connection.request(method, path, body, dict(headers or {}))
        answer = connection.getresponse()
        return answer.status, answer.read()


def ask_json(
    port: int,
    method: str,
    path: str,
    body: Any = None,
    *,
    headers: Mapping[str, str] | None = None,
) -> tuple[int, Any]:
    """Likewise with JSON in both directions."""
    sent = None if body is None else json.dumps(body).encode()
    kind = {"Content-Type": "application/json"} if sent else {}
    status, said = ask(port, method, path, sent, headers={**kind, **(headers or {})})
    try:
        return status, json.loads(said or b"null")
    except ValueError:
        return status, said.decode("utf-8", "replace")

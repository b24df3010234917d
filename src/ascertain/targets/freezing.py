"""A request as the bytes that will be sent (law 11): what a `prepare` returns."""

from __future__ import annotations

import hashlib
import json as jsonlib
from collections.abc import Iterable, Mapping
from typing import Any

import httpx2

from ascertain.core.errors import InputRefused, SendRefused
from ascertain.core.model import Request

from .answer import is_credential

_OURS = frozenset({"connection", "expect", "keep-alive", "te", "transfer-encoding", "upgrade"})
_STAND_IN = "ascertain-boundary-not-yet-known"


def freeze(
    method: str,
    url: str,
    *,
    json: Any = None,
    content: bytes | str | None = None,
    data: Mapping[str, Any] | None = None,
    files: Any = None,
    headers: Mapping[str, str] | None = None,
    params: Mapping[str, Any] | None = None,
    key_forms: tuple[str, ...] = (),
) -> Request:
    """Return a request as the bytes that will be sent; the same arguments give the same bytes.

    JSON keeps the order of its fields. A multipart boundary is made from the parts. `key_forms`
    names the texts in which the target key occurs; the runtime finds its own. Raises
    SendRefused for credentials in headers or URL, which lie outside what is frozen, and
    InputRefused for what JSON cannot carry.
    """
    given = _checked_headers(headers or {})
    if json is not None:
        content = _json(json)
        if not any(n.lower() == "content-type" for n in given):
            given["Content-Type"] = "application/json"
    try:
        made = _encoded(method, url, content, data, files, given, params)
    except (httpx2.InvalidURL, UnicodeError, TypeError) as error:
        raise InputRefused(f"{method} {url!r} cannot be sent: {error}") from error
    if made.url.scheme not in ("http", "https") or not made.url.host:
        raise InputRefused(f"{method} {url!r} cannot be sent: write the whole address, https://…")
    if made.url.userinfo:
        raise SendRefused(
            "a password in the address must not be frozen with the request: pass it when"
            " sending, auth=(user, password)"
        )
    kept = [(n, v) for n, v in given.items() if n.lower() not in ("content-length", "content-type")]
    if "content-type" in made.headers:
        kept.append(("Content-Type", made.headers["content-type"]))
    return Request(
        method=method.upper(),
        url=str(made.url.copy_with(fragment=None)),
        headers=tuple(kept),
        body=made.content,
        key_forms=key_forms,
    )


def _checked_headers(headers: Mapping[str, str]) -> dict[str, str]:
    secret = [n for n in headers if is_credential(n)]
    if secret:
        raise SendRefused(
            f"{', '.join(secret)} must not be frozen with the request: pass it when sending,"
            " call.http.send(request, headers=…) or auth=(user, password)"
        )
    for name, value in headers.items():
        if name.lower() in _OURS:
            raise SendRefused(f"header {name} is the client's own: leave it out")
        if not name.isascii() or any(c in "\r\n\0" for c in name + value):
            raise InputRefused(f"header {name!r} has characters that no header can carry")
    return dict(headers)


def _json(value: Any) -> bytes:
    try:
        text = jsonlib.dumps(value, allow_nan=False, ensure_ascii=False, separators=(",", ":"))
        return text.encode("utf-8")
    except (TypeError, ValueError, RecursionError) as error:
        raise InputRefused(f"json= cannot be sent as JSON: {error}") from error


def _encoded(
    method: str, url: str, content: Any, data: Any, files: Any, headers: Any, params: Any
) -> httpx2.Request:
    if not files:
        made = httpx2.Request(
            method, url, content=content, data=data, headers=headers, params=params
        )
        made.read()
        return made
    loaded = [(name, _loaded(part)) for name, part in _pairs(files)]

    def with_boundary(boundary: str) -> httpx2.Request:
        # httpx2 takes its boundary from a Content-Type that is given (2.16.2), else from chance.
        kind = {"Content-Type": f"multipart/form-data; boundary={boundary}"}
        rest = {n: v for n, v in headers.items() if n.lower() != "content-type"}
        request = httpx2.Request(
            method, url, data=data, files=loaded, headers={**rest, **kind}, params=params
        )
        request.read()
        return request

    digest = hashlib.sha256(with_boundary(_STAND_IN).content).hexdigest()
    return with_boundary(digest[:32])


def _pairs(files: Any) -> Iterable[tuple[str, Any]]:
    return files.items() if isinstance(files, Mapping) else files


def _loaded(part: Any) -> Any:
    """Read a file part once, as it is encoded twice: `(name, bytes, …)`, bytes or a file."""
    if isinstance(part, tuple):
        name, body, *more = part
        return (name, _bytes(body), *more)
    name = str(getattr(part, "name", "upload")).replace("\\", "/").rpartition("/")[2]
    return (name, _bytes(part))


def _bytes(body: Any) -> bytes:
    read = body.read() if hasattr(body, "read") else body
    return read.encode("utf-8") if isinstance(read, str) else bytes(read)

"""A request as the bytes that will be sent (law 11): what a `prepare` returns."""

from __future__ import annotations

import hashlib
import json as jsonlib
import re
from collections.abc import Iterable, Mapping
from typing import Any

import httpx2

from ascertain.core.errors import InputRefused, SendRefused
from ascertain.core.model import Request

from .classify.redact import is_secret

BODY_BYTES = 25 * 1024 * 1024  # of a request; more goes by reference, or in parts of its own
_TOKEN = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
_CONTROL = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")
# The wire writes these: given as well, they let one request be read as two (RFC 9112 section 11).
_OURS = frozenset({
    "connection", "content-length", "expect", "keep-alive", "proxy-connection", "te", "trailer",
    "transfer-encoding", "upgrade",
})  # fmt: skip
# What may be sent beside a frozen request, with credentials (law 11).
_BESIDE = frozenset({"date", "traceparent", "tracestate", "baggage", "b3"})
_STAND_IN = hashlib.sha256(b"boundary").hexdigest()[:32]


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
    given = {n: v for n, v in (headers or {}).items() if n.lower() != "content-length"}
    if json is not None:
        content = _json(json)
        if not any(n.lower() == "content-type" for n in given):
            given["Content-Type"] = "application/json"
    parts = {"content": content, "data": data, "params": params}
    try:
        made = _encoded(method, url, given, parts, files)
    except (httpx2.InvalidURL, UnicodeError, TypeError) as error:
        raise InputRefused(f"{method} {_shown(url)} cannot be sent: {error}") from error
    kept = [(n, v) for n, v in given.items() if n.lower() != "content-type"]
    if "content-type" in made.headers:
        kept.append(("Content-Type", made.headers["content-type"]))
    address = made.url if made.url.userinfo else made.url.copy_with(fragment=None)
    whole = Request(
        method=method.upper(),
        url=str(address),
        headers=tuple(kept),
        body=made.content,
        key_forms=key_forms,
    )
    check(whole)
    return whole


def _shown(url: str) -> str:
    """Return an address without what may be secret in it."""
    return repr(re.sub(r"(?<=://)[^/?#]*@", "", url).partition("?")[0])


def check(request: Request) -> None:
    """Refuse what must not be frozen or sent: credentials, a second request hidden in the
    head, a body beyond the bound. Raises SendRefused or InputRefused, showing no credential."""
    shown = _shown(request.url)
    if not _TOKEN.fullmatch(request.method):
        raise InputRefused(f"method {request.method!r} is none that HTTP knows")
    try:
        url = httpx2.URL(request.url)
    except httpx2.InvalidURL as error:
        raise InputRefused(f"{request.method} {shown} cannot be sent: {error}") from error
    if url.userinfo:
        raise SendRefused(
            f"the password in {shown} must not be frozen with the request: pass it when"
            " sending, auth=(user, password)"
        )
    if url.scheme not in ("http", "https") or not url.host:
        raise InputRefused(
            f"{request.method} {shown} cannot be sent: write the whole address, https://…"
        )
    secret = [n for n, _ in request.headers if is_secret(n)]
    if secret:
        raise SendRefused(
            f"{', '.join(secret)} must not be frozen with the request: pass it when sending,"
            " call.http.send(request, headers=…) or auth=(user, password)"
        )
    check_headers(request.headers)
    if request.large is not None and request.body:
        raise InputRefused("a request has one body, not a large one beside another")
    if len(request.body) > BODY_BYTES:
        raise InputRefused(
            f"the body has {len(request.body)} bytes, the bound is {BODY_BYTES}: upload it in an"
            " operation of its own, and pass a reference"
        )


def check_headers(headers: Iterable[tuple[str, str]]) -> None:
    """Refuse headers that the wire writes itself, that stand there twice, or whose characters
    could end their line."""
    seen: set[str] = set()
    for name, value in headers:
        lower = name.lower()
        if not _TOKEN.fullmatch(name):
            raise InputRefused(f"header {name!r} is no name of a header")
        if lower in _OURS:
            raise SendRefused(f"header {name} is written by the wire itself: leave it out")
        if lower in seen:
            raise InputRefused(f"header {name} is given twice")
        if _CONTROL.search(value) or value != value.strip(" \t"):
            raise InputRefused(f"header {name} has characters that no header can carry")
        seen.add(lower)


def check_beside(headers: Mapping[str, str]) -> None:
    """Refuse what is passed beside a request though it is no credential: it would be sent
    without having been approved (law 11)."""
    other = [n for n in headers if not is_secret(n) and n.lower() not in _BESIDE]
    if other:
        raise SendRefused(
            f"{', '.join(other)} is not part of the request: put it into what prepare returns;"
            " only credentials go beside it"
        )


def same_bytes(one: Request, other: Request) -> bool:
    """Tell whether two requests are the same on the wire."""
    return (one.method, one.url, one.headers, one.body, one.large) == (
        other.method, other.url, other.headers, other.body, other.large,
    )  # fmt: skip


def _json(value: Any) -> bytes:
    try:
        text = jsonlib.dumps(value, allow_nan=False, ensure_ascii=False, separators=(",", ":"))
        return text.encode("utf-8")
    except (TypeError, ValueError, RecursionError) as error:
        raise InputRefused(f"json= cannot be sent as JSON: {error}") from error


def _encoded(
    method: str, url: str, headers: dict[str, str], parts: dict[str, Any], files: Any
) -> httpx2.Request:
    # Of the headers only this one bears on the body, and httpx2 takes ASCII alone (2.16.2).
    kind = {n: v for n, v in headers.items() if n.lower() == "content-type"}
    if not files:
        made = httpx2.Request(method, url, headers=kind, **parts)
        made.read()
        return made
    loaded = [(name, _loaded(part)) for name, part in _pairs(files)]

    def with_boundary(boundary: str) -> httpx2.Request:
        # httpx2 takes its boundary from a Content-Type that is given (2.16.2), else from chance.
        kind = {"Content-Type": f"multipart/form-data; boundary={boundary}"}
        request = httpx2.Request(method, url, headers=kind, files=loaded, **parts)
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


def summary(request: Request) -> dict[str, Any]:
    """Return what is recorded of a request that was not frozen before: which bytes they were."""
    body, large = request.body, request.large
    return {
        "method": request.method,
        "url": _shown(request.url),
        "body_bytes": len(body) if large is None else large.size,
        "body_sha256": hashlib.sha256(body).hexdigest() if large is None else large.sha256,
    }

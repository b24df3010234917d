"""Bodies in and out: bounded, strict JSON by msgspec, and described in the OpenAPI document."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, TypeVar

import msgspec
from fastapi import Request
from starlette.requests import ClientDisconnect
from starlette.responses import Response

from .holding import taken
from .problems import MEDIA, Problem, ProblemError

T = TypeVar("T")
BODY_BYTES = 2 * 1024 * 1024  # of a request's body, unless a route says otherwise
DEPTH = 100  # levels of JSON
JSON = "application/json"
_TEXT = re.compile(rb'"(?:[^"\\]|\\.)*"', re.DOTALL)
_OTHER = re.compile(rb"[^\[\]{}]+")
SHAPES: set[type[msgspec.Struct]] = {Problem}  # of the OpenAPI document, by their names
# Any route may answer these, before it is asked.
COMMON = (400, 401, 403, 413, 415, 422, 429, 503)


async def read_bytes(request: Request, limit: int = BODY_BYTES) -> bytes:
    """Return a request's body; refuses what is larger than `limit` bytes or compressed.

    A compressed body is never unpacked: a small one can stand for gigabytes.
    """
    if request.headers.get("content-encoding", "identity").lower() != "identity":
        raise ProblemError("unsupported_media", "a compressed body is not read: send it as it is")
    declared = request.headers.get("content-length", "0")
    if declared.isdecimal() and int(declared) > limit:
        raise _too_large(limit)
    parts: list[bytes] = []
    size = 0
    try:
        async for part in request.stream():
            size += len(part)
            if size > limit:
                raise _too_large(limit)
            parts.append(taken(part))
    except ClientDisconnect as error:
        raise ProblemError("body_malformed", "the connection ended before the body did") from error
    return b"".join(parts)


async def read_body(request: Request, shape: type[T], limit: int = BODY_BYTES) -> T:
    """Return a JSON body as a record; unknown fields, wrong types and deep nesting are refused."""
    media = request.headers.get("content-type", JSON).partition(";")[0].strip().lower()
    if media != JSON and not media.endswith("+json"):
        raise ProblemError("unsupported_media", f"send {JSON}, not {media}")
    data = await read_bytes(request, limit)
    return decode(data, shape)


def decode(data: bytes | msgspec.Raw, shape: type[T]) -> T:
    """Return JSON as a record, or end the request with what is wrong with it."""
    data = bytes(data)
    if _nested(data):
        raise ProblemError("body_malformed", f"the body is nested more than {DEPTH} levels deep")
    try:
        return msgspec.json.decode(data, type=shape)
    except msgspec.ValidationError as error:
        said = f"the body is not as described: {error}"
        if shape in SHAPES:
            said += f" ({shape.__name__} in /v1/openapi.json)"
        raise ProblemError("body_invalid", said) from error
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ProblemError("body_malformed", f"the body is no JSON: {error}") from error


def _nested(data: bytes) -> bool:
    """Tell whether JSON is nested deeper than DEPTH: what walks through it later is recursive."""
    if data.count(b"[") + data.count(b"{") <= DEPTH:
        return False
    left = _OTHER.sub(b"", _TEXT.sub(b"", data))
    for _ in range(DEPTH):
        if not left:
            return False
        left = left.replace(b"[]", b"").replace(b"{}", b"")
    return bool(left)


def answer(value: Any, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    """Return a value as JSON."""
    return Response(
        msgspec.json.encode(value), status_code=status, media_type=JSON, headers=headers
    )


def documented(
    shape: Any = None,
    *,
    status: int = 200,
    body: Any = None,
    problems: Sequence[int] = (),
    also: dict[int, Any] | None = None,
    headers: Sequence[str] = (),
    anybody: bool = False,
    media: str = "",
) -> dict[str, Any]:
    """Return what a route decorator needs to describe a route.

    `shape` is what it answers with `status` (None: no body), `body` what it takes, `also` other
    answers by status, `problems` those that are not COMMON, `headers` request headers it reads;
    `anybody`: it asks for no token; `media`: it answers with that, not with JSON.
    """
    responses: dict[int | str, dict[str, Any]] = {}
    for code, one in {status: shape, **(also or {})}.items():
        responses[code] = {"description": "the answer"}
        if one is not None:
            responses[code]["content"] = {JSON: {"schema": _ref(one)}}
    if media:
        events = media == "text/event-stream"  # its schema would be that of each event
        responses[status]["content"] = {media: {} if events else {"schema": {"type": "string"}}}
    for code in (*COMMON, *problems):
        responses.setdefault(code, {
            "description": "a problem", "content": {MEDIA: {"schema": _ref(Problem)}},
        })  # fmt: skip
    extra: dict[str, Any] = {}
    if body is not None:
        extra["requestBody"] = {"required": True, "content": {JSON: {"schema": _ref(body)}}}
    if anybody:
        extra["security"] = []
    if headers:
        extra["parameters"] = [
            {"name": name, "in": "header", "required": False, "schema": {"type": "string"}}
            for name in headers
        ]
    return {"responses": responses, "response_model": None, "openapi_extra": extra}


def _ref(shape: type[msgspec.Struct]) -> dict[str, Any]:
    SHAPES.add(shape)
    return {"$ref": f"#/components/schemas/{shape.__name__}"}


def _too_large(limit: int) -> ProblemError:
    return ProblemError("too_large", f"the body is larger than {limit} bytes")

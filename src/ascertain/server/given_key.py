"""The key that a caller gives: in a header, or in the body.

`Idempotency-Key` is a structured string in quotes (draft-ietf-httpapi-idempotency-key-header-07,
2025-10-15; RFC 9651 section 3.3.3); most senders write it bare, which is taken as it stands.
`Ascertain-Key` is read in the same way, so that a caller may use either.
"""

from __future__ import annotations

import re
from urllib.parse import unquote_to_bytes

from starlette.requests import Request

from .problems import ProblemError

HEADERS = ("Ascertain-Key", "Idempotency-Key")
_STRING = re.compile(r'"((?:[\x20\x21\x23-\x5b\x5d-\x7e]|\\["\\])*)"(?:\s*;.*)?')
# Upper case too, which RFC 9651 does not have: so encodeURIComponent writes it.
_DISPLAY = re.compile(r'%"((?:[\x20\x21\x23\x24\x26-\x7e]|%[0-9a-fA-F]{2})*)"(?:\s*;.*)?')
_ESCAPED = re.compile(r'\\(["\\])')


def key_of(request: Request, key: str | None = None) -> str | None:
    """Return the key that a request's headers give, or `key`, that of its body; None for none.

    Ends the request where a header cannot be read (400), or two of them differ (422).
    """
    found = {} if key is None else {"key": key}
    for name in HEADERS:
        given = one(request, name)
        if given is not None:
            found[name] = given
    if len(set(found.values())) > 1:
        told = ", ".join(f"{name} {value!r}" for name, value in found.items())
        raise ProblemError("key_mismatch", f"two different keys are given: {told}; send one")
    return next(iter(found.values()), None)


def one(request: Request, name: str) -> str | None:
    """Return the key that a header gives; ends the request where it stands there twice, since
    nobody knows which one others have read."""
    given = request.headers.getlist(name)
    if len(given) > 1:
        raise ProblemError("key_refused", f"{name} stands there {len(given)} times: send one")
    return read(name, given[0]) if given else None


def read(name: str, value: str) -> str:
    """Return the key that a header's value means: a structured string, one of RFC 9651's display
    strings, or the bare text (UTF-8)."""
    value = value.strip()
    if value.startswith(('"', '%"')):
        string, display = _STRING.fullmatch(value), _DISPLAY.fullmatch(value)
        if string is not None:
            return _ESCAPED.sub(r"\1", string[1])
        if display is not None:
            return _text(name, unquote_to_bytes(display[1]))
        raise ProblemError("key_refused", f"{name} begins a quoted text and is none: {value!r}")
    return _text(name, value.encode("latin-1"))


def _text(name: str, data: bytes) -> str:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise ProblemError("key_refused", f"{name} is no UTF-8: send ASCII or UTF-8") from error

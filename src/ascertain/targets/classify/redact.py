"""What is kept of answers and errors holds no credentials (evidence outlives them).

Evidence is written once and never changed (law 8), so it is cleaned before: what we sent as a
credential, user and password in addresses, and values whose name says that they are secret.
"""

from __future__ import annotations

import json
import re
from base64 import b64decode
from collections.abc import Iterable
from contextlib import suppress
from functools import lru_cache
from html import escape
from urllib.parse import quote, quote_plus

MARK = "[redacted]"
SHORTEST = 4  # a credential shorter than this is no secret, and would blank half a text

_USER = re.compile(r"(?<=://)[^/?#\s\"'<>]*@")
_FIELD = re.compile(
    r"""((?:["']|\b)[\w.-]*(?:token|secret|passw(?:or)?d|pwd|(?:api|access|private)[_-]?key"""
    r"""|credentials?|signature|authorization|cookie|session_?id)["']?\s*[:=]\s*)"""
    r"""("[^"]*(?:"|$)|'[^']*(?:'|$)|[^\s,;&"'<>}]+)""",
    re.IGNORECASE,
)
_SCHEME = re.compile(r"\b(Bearer|Basic)\s+[\w.~+/=-]{6,}", re.IGNORECASE)
_SECRET_HEADER = re.compile(
    r"(authori[sz]ation|cookie2?|token|secret|passw(or)?d|signature|credentials?|session-?id"
    r"|(api|access|auth|private|subscription)-?key)$|^x-auth(-|$)",
    re.IGNORECASE,
)


def redacted(text: str, hide: Iterable[str] = ()) -> str:
    """Return a text without what looks like credentials, and without what `hide` names."""
    forms = {form for secret in hide if len(secret) >= SHORTEST for form in _forms(secret)}
    for form in sorted(forms, key=len, reverse=True):
        text = text.replace(form, MARK)
    text = _SCHEME.sub(MARK, _USER.sub(f"{MARK}@", text))
    return _FIELD.sub(rf"\g<1>{MARK}", text)


@lru_cache(maxsize=64)
def _forms(secret: str) -> frozenset[str]:
    """Return what a target makes of a credential that it says again: in an address, in JSON, in
    HTML, and of HTTP Basic the pair within, with its password."""
    plain = {secret}
    scheme, _, value = secret.partition(" ")
    if scheme.lower() in ("basic", "bearer") and len(value) >= SHORTEST:
        plain.add(value)
    if scheme.lower() == "basic":
        with suppress(ValueError):
            pair = b64decode(value, validate=True).decode("utf-8")
            plain |= {part for part in (pair, pair.partition(":")[2]) if len(part) >= SHORTEST}
    found = set(plain)
    for text in plain:
        for quoted in (quote(text, safe=""), quote(text), quote_plus(text)):
            found |= {quoted, re.sub("%[0-9A-F]{2}", lambda m: m[0].lower(), quoted)}
        found |= {json.dumps(text)[1:-1], json.dumps(text, ensure_ascii=False)[1:-1]}
        found |= {escape(text), escape(text, quote=False)}
    return frozenset(found)


def is_secret(header: str) -> bool:
    """Tell whether a header carries a credential, going by its name (law 11).

    What says that it is for idempotency is none: it is part of what is frozen.
    """
    return "idempot" not in header.lower() and bool(_SECRET_HEADER.search(header))

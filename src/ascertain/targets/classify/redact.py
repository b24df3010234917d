"""What is kept of answers and errors holds no credentials (evidence outlives them).

Evidence is written once and never changed (law 8), so it is cleaned before: what we sent as a
credential, user and password in addresses, and values whose name says that they are secret.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

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
    for secret in sorted(hide, key=len, reverse=True):
        if len(secret) >= SHORTEST:
            text = text.replace(secret, MARK)
    text = _SCHEME.sub(MARK, _USER.sub(f"{MARK}@", text))
    return _FIELD.sub(rf"\g<1>{MARK}", text)


def is_secret(header: str) -> bool:
    """Tell whether a header carries a credential, going by its name (law 11).

    What says that it is for idempotency is none: it is part of what is frozen.
    """
    return "idempot" not in header.lower() and bool(_SECRET_HEADER.search(header))

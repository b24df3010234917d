"""What is kept of answers and errors holds no credentials (evidence outlives them).

Evidence is written once and never changed (law 8), so it is cleaned before: what we sent as a
credential, user and password in addresses, and values whose name says that they are secret.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

MARK = "…"
SHORTEST = 4  # a credential shorter than this is no secret, and would blank half a text

_NAMES = (
    r"[\w-]*(?:passw(?:or)?d|secret|token|api[_-]?key|access[_-]?key|private[_-]?key|signature"
    r"|credential|session)[\w-]*|pwd|sig"
)
_USER = re.compile(r"(?<=://)[^/?#\s\"'<>]*@")
_PARAMETER = re.compile(rf"([?&;](?:{_NAMES})=)[^&#;\s\"'<>]+", re.IGNORECASE)
_FIELD = re.compile(rf"([\"'](?:{_NAMES})[\"']\s*:\s*[\"'])[^\"']+", re.IGNORECASE)
_SCHEME = re.compile(r"\b(Basic|Bearer)\s+[A-Za-z0-9+/=._~-]{8,}")
_SECRET_HEADER = re.compile(
    r"authorization$|cookie2?$|(?:^|[-_])(?:token|secret|password|api-?key|auth-?key|access-?key"
    r"|credentials?|signature|session(?:-?id)?)$",
    re.IGNORECASE,
)


def redacted(text: str, hide: Iterable[str] = ()) -> str:
    """Return a text without what looks like credentials, and without what `hide` names."""
    for secret in sorted(hide, key=len, reverse=True):
        if len(secret) >= SHORTEST:
            text = text.replace(secret, MARK)
    text = _USER.sub(f"{MARK}@", text)
    text = _PARAMETER.sub(rf"\1{MARK}", text)
    text = _FIELD.sub(rf"\1{MARK}", text)
    return _SCHEME.sub(rf"\1 {MARK}", text)


def is_secret(header: str) -> bool:
    """Tell whether a header of this name carries a credential; `Idempotency-Token` does not."""
    return bool(_SECRET_HEADER.search(header)) and "idempot" not in header.lower()

"""aiohttp.

Source of aiohttp 3.14.5, read 2026-11-29. It follows redirects by itself, and sends a PUT,
DELETE or another idempotent method once more where a kept connection broke.
"""

from __future__ import annotations

from .chain import frames, place
from .proof import Says

# All raised while a connection is made. Not ServerTimeoutError (also while reading), nor
# ClientHttpProxyError (the answer of a proxy).
_NEVER = frozenset({
    "ClientConnectorError", "ClientConnectorDNSError", "ClientConnectorSSLError",
    "ClientConnectorCertificateError", "ClientProxyConnectionError", "UnixClientConnectorError",
    "ConnectionTimeoutError",
})  # fmt: skip
_INVALID = frozenset({"InvalidURL", "InvalidUrlClientError", "NonHttpUrlClientError"})
_SENT_ONCE = frozenset({"POST", "PATCH"})  # methods that are never sent again


def says(error: BaseException) -> Says | None:
    """Return what an error of aiohttp proves; None where it is none."""
    package, name = place(error)
    if package != "aiohttp":
        return None
    if name not in _NEVER | _INVALID or _follows(error):
        return Says.MAYBE
    return Says.INVALID if name in _INVALID else Says.NEVER_SENT


def _follows(error: BaseException) -> bool:
    """Tell whether the failed request may have followed another of the same call."""
    for module, function, frame in frames(error):
        if module == "aiohttp.client" and function == "_request":
            known = frame.f_locals
            again = known.get("retry_persistent_connection") is False
            if known.get("history") or (again and known.get("method") not in _SENT_ONCE):
                return True
    return False

"""requests and urllib3.

Sources of requests 2.34.2 and urllib3 2.8.0, read 2026-11-29. requests follows redirects by
itself; urllib3 retries three times by itself, after a read error where the method is
idempotent (PUT, DELETE …), and its MaxRetryError shows only the last try.
"""

from __future__ import annotations

from .chain import frames, place
from .proof import Read, Says

FAMILY = frozenset({"requests", "urllib3"})
_NEVER = frozenset({
    ("urllib3", "NewConnectionError"), ("urllib3", "NameResolutionError"),
    ("urllib3", "ConnectTimeoutError"), ("urllib3", "EmptyPoolError"),
    ("urllib3", "ClosedPoolError"), ("requests", "ConnectTimeout"),
})  # fmt: skip
_INVALID = frozenset({
    ("urllib3", "LocationParseError"), ("urllib3", "URLSchemeUnknown"),
    ("requests", "InvalidURL"), ("requests", "MissingSchema"), ("requests", "InvalidSchema"),
    ("requests", "InvalidHeader"), ("requests", "InvalidJSONError"),
})  # fmt: skip
# requests.ConnectionError wraps NewConnectionError (never sent) as well as ProtocolError (a
# reset, a lost answer). urllib3's ProxyError is no wrapper: its tunnel may have been answered.
_WRAPPERS = frozenset({
    ("requests", "ConnectionError"), ("requests", "SSLError"),
    ("urllib3", "MaxRetryError"), ("urllib3", "SSLError"),
})  # fmt: skip
_OPENS = frozenset({"urllib3.connectionpool", "urllib3.poolmanager"})
# Functions of requests that send a second request: redirects, and digest authentication.
_AGAIN = frozenset({"resolve_redirects", "dispatch_hook", "handle_401", "handle_redirect"})


def says(error: BaseException) -> Says | None:
    """Return what an error of these clients proves; None where it is none."""
    where = place(error)
    if where[0] not in FAMILY:
        return None
    if where not in _NEVER | _INVALID | _WRAPPERS or _follows(error):
        return Says.MAYBE
    if where in _WRAPPERS:
        return Says.LOOK_INSIDE
    return Says.INVALID if where in _INVALID else Says.NEVER_SENT


def read(error: BaseException) -> Read | None:
    """Return the answer that `raise_for_status` told of, if it followed no other: neither
    redirects nor tries of urllib3 are in its history."""
    answer = getattr(error, "response", None)
    if place(error) != ("requests", "HTTPError") or answer is None or answer.history:
        return None
    tries = getattr(answer.raw, "retries", None)
    if tries is None or tries.history:
        return None
    return answer.status_code, dict(answer.headers), answer.content


def _follows(error: BaseException) -> bool:
    """Tell whether the failed try followed another: urllib3's pool calls `urlopen` anew for a
    retry, its pool manager for a redirect. A frame that raises again stands there twice."""
    tries: set[tuple[str, int]] = set()
    for module, function, frame in frames(error):
        if module in _OPENS and function == "urlopen":
            tries.add((module, id(frame)))
        if module.partition(".")[0] == "requests" and function in _AGAIN:
            return True
    modules = [module for module, _ in tries]
    # A MaxRetryError that lost its traceback (copied between processes) hides its tries.
    hidden = place(error) == ("urllib3", "MaxRetryError") and not tries
    return hidden or len(modules) != len(set(modules))

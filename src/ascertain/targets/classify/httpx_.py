"""httpx and httpx2, and httpcore and httpcore2 below them.

Sources of httpx2/httpcore2 2.16.2, httpx 0.28.1 and httpcore 1.0.9, read 2026-11-29. Retries
of their transports repeat only the opening of a connection.
"""

from __future__ import annotations

from .chain import frames, place
from .proof import Read, Says

FAMILY = frozenset({"httpx", "httpx2", "httpcore", "httpcore2"})
# ConnectError and ConnectTimeout cover name, connection and TLS handshake, also to a proxy and
# through its tunnel; PoolTimeout is the wait for a free connection. Not ProxyError (the answer
# of a tunnel), nor LocalProtocolError (h11 raises it between two writes, too).
_NEVER = frozenset({"ConnectError", "ConnectTimeout", "PoolTimeout"})
_INVALID = frozenset({"InvalidURL", "UnsupportedProtocol"})


def says(error: BaseException) -> Says | None:
    """Return what an error of these clients proves; None where it is none."""
    package, name = place(error)
    if package not in FAMILY:
        return None
    if name not in _NEVER | _INVALID or _follows(error):
        return Says.MAYBE
    return Says.INVALID if name in _INVALID else Says.NEVER_SENT


def read(error: BaseException) -> Read | None:
    """Return the answer that `raise_for_status` told of, if it followed no other."""
    package, name = place(error)
    answer = getattr(error, "response", None)
    if package not in FAMILY or name != "HTTPStatusError" or answer is None or answer.history:
        return None
    return answer.status_code, dict(answer.headers), answer.content


def _follows(error: BaseException) -> bool:
    """Tell whether the failed request followed another: a redirect, a step of authentication.
    The client's loops keep the answers so far in `history`."""
    return any(
        module.partition(".")[0] in FAMILY and bool(frame.f_locals.get("history"))
        for module, _, frame in frames(error)
    )

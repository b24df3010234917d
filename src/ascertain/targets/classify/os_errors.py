"""The operating system's, resolver's and TLS errors, and urllib's, which wraps them.

CPython 3.11 sources and Linux tcp(7), read 2026-11-29.
"""

from __future__ import annotations

from .chain import frames, names, place
from .proof import Says

# Functions that only open a connection: what comes out of them precedes every request byte.
_OPENING = frozenset({
    ("socket", "create_connection"), ("socket", "getaddrinfo"), ("ssl", "do_handshake"),
    ("asyncio.base_events", "create_connection"), ("asyncio.base_events", "_connect_sock"),
    ("asyncio.selector_events", "sock_connect"), ("asyncio.selector_events", "_sock_connect"),
    ("asyncio.selector_events", "_sock_connect_cb"),
})  # fmt: skip


def says(error: BaseException) -> Says | None:
    """Return what an error of the system proves; None where it is none.

    By its type alone only a name that was not found. Everything else only if it was raised
    while a connection was opened: Linux reports EHOSTUNREACH, ENETUNREACH and ECONNREFUSED for
    an open connection too, where a router said so before what was sent timed out
    (net/ipv4/tcp_timer.c, tcp_write_err), and a certificate may be asked for again in TLS 1.2.
    """
    if place(error) == ("urllib", "URLError"):
        # urllib follows redirects by itself: the request that failed may be a second one.
        again = any("redirect" in f or f.startswith("http_error_") for _, f, _ in frames(error))
        return Says.MAYBE if again else Says.LOOK_INSIDE
    if "gaierror" in names(error, "socket"):
        return Says.NEVER_SENT
    if not isinstance(error, OSError):
        return None
    opening = any((module, function) in _OPENING for module, function, _ in frames(error))
    return Says.NEVER_SENT if opening else Says.MAYBE

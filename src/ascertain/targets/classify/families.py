"""Exception types under which no byte of a request can have left, by client library.

Read from the libraries' own sources on 2026-11-29: httpcore2/httpx2 2.16.2, httpx 0.28.1,
requests 2.32, urllib3 2.5, aiohttp 3.13, CPython 3.11.
"""

from __future__ import annotations

import errno
import socket
import ssl

# By module and name, since the libraries are not imported. Each is raised before a request is
# written: while a name is looked up, a connection is opened or TLS is agreed.
_NEVER = frozenset({
    ("httpcore", "ConnectError"), ("httpcore", "ConnectTimeout"), ("httpcore", "PoolTimeout"),
    ("httpcore", "UnsupportedProtocol"), ("httpcore", "LocalProtocolError"),
    ("httpcore2", "ConnectError"), ("httpcore2", "ConnectTimeout"), ("httpcore2", "PoolTimeout"),
    ("httpcore2", "UnsupportedProtocol"),
    ("httpx", "ConnectError"), ("httpx", "ConnectTimeout"), ("httpx", "PoolTimeout"),
    ("httpx", "UnsupportedProtocol"), ("httpx", "InvalidURL"),
    ("httpx2", "ConnectError"), ("httpx2", "ConnectTimeout"), ("httpx2", "PoolTimeout"),
    ("httpx2", "UnsupportedProtocol"), ("httpx2", "InvalidURL"),
    ("urllib3", "NewConnectionError"), ("urllib3", "NameResolutionError"),
    ("urllib3", "ConnectTimeoutError"), ("urllib3", "LocationParseError"),
    ("requests", "ConnectTimeout"), ("requests", "InvalidURL"), ("requests", "MissingSchema"),
    ("requests", "InvalidSchema"),
    ("aiohttp", "ClientConnectorError"), ("aiohttp", "ClientConnectorDNSError"),
    ("aiohttp", "ClientConnectorSSLError"), ("aiohttp", "ClientConnectorCertificateError"),
    ("aiohttp", "ConnectionTimeoutError"), ("aiohttp", "InvalidURL"),
})  # fmt: skip
# Wrappers that say nothing themselves: what they carry decides. urllib3's MaxRetryError may
# stand for several tries, of which only the last one's reason is kept: see `_retried`.
_WRAPPERS = frozenset({
    ("requests", "ConnectionError"), ("requests", "SSLError"), ("urllib3", "MaxRetryError"),
    ("urllib3", "SSLError"),
})  # fmt: skip
_ERRNOS = frozenset({errno.ECONNREFUSED, errno.ENETUNREACH, errno.EHOSTUNREACH, errno.ENOENT})


def never_sent(error: BaseException) -> bool:
    """Tell whether an exception's type proves that no byte of its request left.

    Says nothing about other requests of the same attempt: the caller must know that there
    was only one.
    """
    place = _place(error)
    if place in _NEVER:
        return True
    if place in _WRAPPERS:
        return not _retried(error) and _carried(error)
    if isinstance(error, socket.gaierror | ssl.SSLCertVerificationError):
        return True
    if isinstance(error, ConnectionRefusedError):
        return True
    return isinstance(error, OSError) and type(error) is OSError and error.errno in _ERRNOS


def _place(error: BaseException) -> tuple[str, str]:
    kind = type(error)
    return kind.__module__.split(".")[0], kind.__name__


def _carried(error: BaseException) -> bool:
    inner = getattr(error, "reason", None)
    if not isinstance(inner, BaseException):
        inner = next((a for a in error.args if isinstance(a, BaseException)), None)
    return isinstance(inner, BaseException) and never_sent(inner)


def _retried(error: BaseException) -> bool:
    """Tell whether urllib3 was told to retry: an earlier try may have been sent then, and the
    exception shows only the last one. Its history hangs on the pool's retries, not on the
    exception, so any retry but a redirect's makes it worthless here."""
    pool = getattr(error, "pool", None)
    retries = getattr(pool, "retries", None)
    total = getattr(retries, "total", 0)
    return isinstance(total, int) and not isinstance(total, bool) and total > 0

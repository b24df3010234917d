"""httplib2 without its second request. Only imported where httplib2 is there.

httplib2 0.32.1 (`Http._conn_request`, read 2026-11-29) sends any request again where the
connection was closed without an answer, without a setting against it. But the class of a
connection may be chosen per request, and ours sends one request in its life.
"""

from __future__ import annotations

import sys
from typing import Any

import google_auth_httplib2
import httplib2


class _Once:
    """A connection for one request."""

    begun = False

    def connect(self) -> None:
        """Connect; once a request has begun, raise again what httplib2 has just caught."""
        if self.begun:
            raise sys.exception() or httplib2.HttpLib2Error("not sent again")
        super().connect()  # type: ignore[misc]

    def request(self, *args: Any, **more: Any) -> Any:
        """Send, the first time only."""
        if self.begun:
            raise httplib2.HttpLib2Error("not sent again")
        self.begun = True
        return super().request(*args, **more)  # type: ignore[misc]


class _Http(_Once, httplib2.HTTPConnectionWithTimeout):  # type: ignore[misc]
    """Without TLS."""


class _Https(_Once, httplib2.HTTPSConnectionWithTimeout):  # type: ignore[misc]
    """With TLS."""


class OnceHttp(httplib2.Http):  # type: ignore[misc]
    """A client that sends each request once, each over a connection of its own."""

    sends_once = True  # asked for by classify.google_

    def __init__(self, **more: Any) -> None:
        """Take what httplib2.Http takes."""
        super().__init__(**more)
        self.follow_redirects = False

    def request(self, uri: str, *rest: Any, **more: Any) -> Any:
        """Send one request; raises what httplib2 raises."""
        for kept in self.connections.values():  # a connection is not used again
            kept.close()
        self.connections.clear()
        kind = _Https if uri.lower().startswith("https:") else _Http
        return super().request(uri, *rest, **{**more, "connection_type": kind})


def authorized(credentials: Any, http: OnceHttp) -> Any:
    """Return a client that sends with credentials, and not again after a 401."""
    made = google_auth_httplib2.AuthorizedHttp(credentials, http=http, refresh_status_codes=())
    made.sends_once = True
    return made

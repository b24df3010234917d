"""What every target has in common: two verbs, and the record of what an attempt sent."""

from __future__ import annotations

import threading
from typing import Any, Protocol

from ascertain.core.model import ActFinding, LookFinding, Request

# Safe by RFC 9110 section 9.2.1, and by RFC 4918 (PROPFIND), RFC 3253 (REPORT), RFC 5323
# (SEARCH), RFC 10008 (QUERY).
SAFE = frozenset({"GET", "HEAD", "OPTIONS", "TRACE", "PROPFIND", "REPORT", "SEARCH", "QUERY"})


class TargetCall(Protocol):
    """What a target needs of an attempt: our identity there, and the way to send."""

    @property
    def target_key(self) -> str:
        """Our identity as the target sees it."""

    @property
    def http(self) -> Any:
        """The client of the attempt: `targets.http.EffectHttp`."""

    @property
    def request(self) -> Request | None:
        """The frozen request, where there is one."""


class Target(Protocol):
    """An outside system for one kind of operation."""

    def perform(self, call: TargetCall, **values: Any) -> ActFinding:
        """Act once and return what is established; never retries."""

    def look_up(self, call: TargetCall) -> LookFinding:
        """Return what is there under `call.target_key`; changes nothing."""


class SendTrace:
    """What is known about the sending of one attempt's effect request. Thread-safe.

    It only ever moves forward: admitted, started, whole, answered.
    """

    def __init__(self) -> None:
        """Nothing has been sent."""
        self.requests = 0  # effect requests that were admitted: at most one
        self.whole = False  # every byte was handed to the socket
        self.answered = False  # the answer was read in full
        self.finding: Any = None  # what the effect request's answer amounted to
        self.sent: dict[str, Any] = {}  # which bytes: method, URL, size and SHA-256 of the body
        self._started = False
        self._lock = threading.Lock()

    @property
    def started(self) -> bool:
        """Whether a write of an effect request was begun: bytes may have left."""
        return self._started

    @property
    def sent_nothing(self) -> bool:
        """Whether no byte of an effect request has left so far; for good once the
        client is closed."""
        return not self._started

    def admit(self) -> bool:
        """Let the one effect request of an attempt through; False for a second (law 17)."""
        with self._lock:
            self.requests += 1
            if self.requests > 1:
                self.requests = 1
                return False
            return True

    def start(self) -> None:
        """Note that bytes may leave from now on."""
        self._started = True

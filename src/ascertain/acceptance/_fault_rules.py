"""What the fault proxies share: one-shot rules, the log of exchanges, the reset."""

from __future__ import annotations

import contextlib
import os
import socket
import struct
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Self

LOOPBACK = "127.0.0.1"
STOP_SECONDS = 5.0  # how long stop() waits for a handler that is still at work


@dataclass(frozen=True, slots=True)
class Exchange:
    """One request as the proxy saw it.

    ``number`` counts arrivals from 1. ``action`` is the rule that caught it, or ``pass``.
    ``forwarded`` says whether the target may have seen it; ``status`` is the target's own answer
    (HTTP status, SMTP code) where there was one. ``outcome`` says what the client got:
    ``answered``, ``answered_instead``, ``answer_dropped``, ``request_dropped``, ``forwarded`` (the
    answer was not followed), ``committed_late``, ``incomplete`` (the client left before the end of
    its request), ``target_failed`` (no answer came), ``abandoned`` (the proxy was stopped first).
    Times are seconds since 1970.
    """

    number: int
    method: str
    path: str
    action: str
    outcome: str
    forwarded: bool
    status: int | None
    began_at: float
    ended_at: float


@dataclass(eq=False, slots=True)
class Rule:
    """A fault that waits for one request, or for every one that fits while it is ``standing``;
    its events tell other threads how far it has got."""

    action: str
    method: str | None = None
    path: str = ""
    seconds: float = 0.0
    status: int = 0
    body: bytes = b""
    headers: Sequence[tuple[str, str]] = ()
    standing: bool = False
    seen: threading.Event = field(default_factory=threading.Event)
    """Set when the rule has met its request (HTTP: the request has been read in full)."""
    landed: threading.Event = field(default_factory=threading.Event)
    """Set when the target has answered: what it was to do is done."""
    finished: threading.Event = field(default_factory=threading.Event)
    """Set when the exchange is in the log."""
    released: threading.Event = field(default_factory=threading.Event)
    """Set by ``release()``."""

    def release(self) -> None:
        """End the waiting of ``hold`` or ``commit_late`` now."""
        self.released.set()

    def fits(self, method: str, path: str) -> bool:
        """Say whether this rule is meant for a request."""
        return self.method in (None, method) and self.path in path


class Book:
    """What a proxy's threads share: rules, log, and what has to be ended. Thread-safe."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.rules: list[Rule] = []
        self.exchanges: list[Exchange] = []
        self.arrivals = 0
        self.sockets: set[socket.socket] = set()
        self.threads: set[threading.Thread] = set()
        self.stopping = threading.Event()

    def arm(self, rule: Rule) -> Rule:
        """Put a rule behind those already armed."""
        with self.lock:
            self.rules.append(rule)
        return rule

    def match(self, method: str, path: str) -> Rule | None:
        """Take the first rule that fits a request."""
        with self.lock:
            for rule in self.rules:
                if rule.fits(method, path):
                    if not rule.standing:
                        self.rules.remove(rule)
                    rule.seen.set()
                    return rule
        return None

    def arrive(self) -> int:
        """Number a request."""
        with self.lock:
            self.arrivals += 1
            return self.arrivals

    def note(self, exchange: Exchange, rule: Rule | None) -> None:
        """Log an exchange; to be called before its client can see the outcome."""
        with self.lock:
            self.exchanges.append(exchange)
        if rule is not None:
            rule.finished.set()

    def pause(self, rule: Rule) -> bool:
        """Wait the rule's seconds out; False if the proxy was stopped meanwhile."""
        until = time.monotonic() + rule.seconds
        while not self.stopping.is_set() and (left := until - time.monotonic()) > 0:
            if rule.released.wait(min(left, 0.05)):
                break
        return not self.stopping.is_set()

    def hold(self, sock: socket.socket) -> None:
        """Have a connection ended by ``end()``."""
        with self.lock:
            self.sockets.add(sock)

    def drop(self, sock: socket.socket) -> None:
        """Forget a connection, before it is closed."""
        with self.lock:
            self.sockets.discard(sock)

    def run(self, work: Callable[[], None]) -> None:
        """Do a connection's work in a thread that ``end()`` waits for."""

        def body() -> None:
            try:
                work()
            finally:
                with self.lock:
                    self.threads.discard(threading.current_thread())

        thread = threading.Thread(target=body, daemon=True, name="fault-proxy")
        with self.lock:
            self.threads.add(thread)
        thread.start()

    def end(self) -> None:
        """End all connections and wait for their threads, for at most ``STOP_SECONDS``."""
        self.stopping.set()
        with self.lock:
            sockets, threads = list(self.sockets), list(self.threads)
        for sock in sockets:
            with contextlib.suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)
        until = time.monotonic() + STOP_SECONDS
        for thread in threads:
            thread.join(max(0.0, until - time.monotonic()))


class FaultProxy(ABC):
    """What both proxies offer. Rules are used in the order in which they were armed."""

    def __init__(self, upstream_port: int, upstream_host: str) -> None:
        self.upstream_port = upstream_port
        self.upstream_host = upstream_host
        self.host = LOOPBACK
        self.port = 0
        self.book = Book()

    @property
    def log(self) -> tuple[Exchange, ...]:
        """All ended exchanges, oldest first; one is in it before its client can see the outcome."""
        with self.book.lock:
            return tuple(self.book.exchanges)

    @property
    def armed(self) -> tuple[Rule, ...]:
        """Rules that no request has met yet."""
        with self.book.lock:
            return tuple(self.book.rules)

    def disarm(self) -> None:
        """Forget all rules that no request has met yet."""
        with self.book.lock:
            self.book.rules.clear()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    @abstractmethod
    def stop(self) -> None:
        """Close all connections; a request held back until now is never forwarded."""


def reset(sock: socket.socket) -> None:
    """Close a connection so that the peer gets a reset, not an orderly end.

    The descriptor is detached and closed directly: ``close()`` would wait for the files made from
    the socket, and http.server's own clean-up would send a FIN first.
    """
    with contextlib.suppress(OSError):
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    handle = sock.detach()
    if handle >= 0:
        os.close(handle)

"""The wire under `call.http`: it sends a request in one write, by the deadline or not at all.

Built on the public `network_backend` of httpcore2's pools (2.16.2, seen 2026-11-29). The
deadline runs on a clock that counts suspend and is checked before each write to the socket
(law 5); only a pause between that check and the write, and the transit, are beyond it, and
those are what a contract's `late.max` is for.
"""

from __future__ import annotations

import socket
import ssl
import struct
from collections.abc import Callable, Iterable
from typing import Any

import httpcore2

from ascertain.core.errors import SendRefused

TCP_USER_TIMEOUT = getattr(socket, "TCP_USER_TIMEOUT", None)  # Linux only
_LINGER_NONE = struct.pack("ii", 1, 0)


class DeadlinePassed(SendRefused):
    """The attempt's deadline passed; the connection was cut and nothing more is sent."""

    code = "deadline_passed"


class Trace:
    """What is known about the sending of one attempt's effect request."""

    def __init__(self) -> None:
        """Nothing has been sent."""
        self.requests = 0  # effect requests that were begun
        self.started = False  # a write of an effect request was begun: bytes may have left
        self.whole = False  # the request was handed to the socket in full
        self.answered = False  # the answer was read in full
        self.finding: Any = None  # what the first effect request's answer amounted to

    @property
    def sent_nothing(self) -> bool:
        """Whether it is certain that no byte of an effect request left."""
        return not self.started


class Stream(httpcore2.NetworkStream):
    """A connection that keeps what is written until the answer is asked for, and then sends
    it in one write."""

    def __init__(self, wire: Wire, sock: socket.socket) -> None:
        """Wrap a connected socket."""
        self._wire, self._sock = wire, sock
        self._pending: list[bytes] = []

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        """Keep bytes for the one write."""
        self._pending.append(buffer)

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        """Send what is kept, then read; both within what is left of the deadline."""
        if self._pending:
            self._flush()
        try:
            self._sock.settimeout(self._wire.seconds_left())
            return self._sock.recv(max_bytes)
        except TimeoutError as error:
            self.abort()
            raise httpcore2.ReadTimeout("no answer before the deadline") from error
        except OSError as error:
            raise httpcore2.ReadError(str(error)) from error

    def _flush(self) -> None:
        data = memoryview(b"".join(self._pending))
        self._pending.clear()
        try:
            while data:
                left = self._wire.before_write(self)
                self._sock.settimeout(left)
                if TCP_USER_TIMEOUT is not None:
                    self._sock.setsockopt(
                        socket.IPPROTO_TCP, TCP_USER_TIMEOUT, max(int(left * 1000), 1)
                    )
                data = data[self._sock.send(data) :]
            self._wire.written()
        except TimeoutError as error:
            self.abort()
            raise httpcore2.WriteTimeout("not written before the deadline") from error
        except OSError as error:
            # Not WriteError: httpcore2 swallows that and reads on, hoping for an early answer.
            self.abort()
            raise httpcore2.NetworkError(str(error)) from error

    def abort(self) -> None:
        """Cut the connection so that buffered bytes are not delivered: a plain close would
        still deliver them."""
        try:
            raw = self._sock
            raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _LINGER_NONE)
            if isinstance(raw, ssl.SSLSocket):
                fd = raw.detach()
                socket.close(fd)
            else:
                raw.close()
        except OSError:
            pass

    def close(self) -> None:
        """Let go of the connection; by then the answer was read, or nothing may follow."""
        if self._wire.read_in_full:
            self._sock.close()
        else:
            self.abort()

    def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,
    ) -> Stream:
        """Speak TLS from here; the handshake carries nothing of the request."""
        try:
            self._sock.settimeout(self._wire.seconds_left())
            wrapped = ssl_context.wrap_socket(self._sock, server_hostname=server_hostname)
        except TimeoutError as error:
            self.abort()
            raise httpcore2.ConnectTimeout("no TLS connection before the deadline") from error
        except OSError as error:  # ssl.SSLError is one
            self.abort()
            raise httpcore2.ConnectError(str(error)) from error
        following = Stream(self._wire, wrapped)
        self._wire.replace(self, following)
        return following

    def get_extra_info(self, info: str) -> Any:
        """Tell what httpcore2 asks of a stream."""
        if info == "ssl_object" and isinstance(self._sock, ssl.SSLSocket):
            return self._sock
        if info == "socket":
            return self._sock
        return None


class Wire(httpcore2.NetworkBackend):
    """Connects, and checks the deadline before each write of an attempt."""

    def __init__(self, deadline: Callable[[], int], clock: Callable[[], int]) -> None:
        """Both in µs on one local clock that counts suspend."""
        self._deadline, self._clock = deadline, clock
        self.trace = Trace()
        self.effect = False  # whether what is being written is an effect request
        self.read_in_full = False  # the last answer was: a plain close holds nothing back
        self._streams: list[Stream] = []
        self._closed = False

    def seconds_left(self) -> float:
        """Return what is left of the deadline; raises DeadlinePassed if nothing is."""
        left = (self._deadline() - self._clock()) / 1e6
        if left <= 0 or self._closed:
            self.abort()
            what = "this attempt has ended" if self._closed else "its deadline has passed"
            raise DeadlinePassed(f"{what}: the connection was cut and nothing more is sent")
        return left

    def before_write(self, stream: Stream) -> float:
        """Check the deadline, the last thing before a write; note that bytes may leave now."""
        left = self.seconds_left()
        if self.effect:
            self.trace.started = True
        return left

    def written(self) -> None:
        """Note that a request was handed over in full."""
        if self.effect:
            self.trace.whole = True

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> Stream:
        """Connect within what is left of the deadline."""
        try:
            sock = socket.create_connection((host, port), timeout=self.seconds_left())
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        except TimeoutError as error:
            raise httpcore2.ConnectTimeout(f"no connection to {host}:{port}") from error
        except OSError as error:
            raise httpcore2.ConnectError(f"{host}:{port}: {error}") from error
        stream = Stream(self, sock)
        self._streams.append(stream)
        return stream

    def replace(self, old: Stream, new: Stream) -> None:
        """Put a TLS stream in its plain one's place."""
        self._streams = [new if s is old else s for s in self._streams]

    def abort(self) -> None:
        """Cut every connection; buffered bytes are not delivered."""
        for stream in self._streams:
            stream.abort()

    def close(self) -> None:
        """End the attempt's sending for good."""
        self._closed = True
        self.abort()

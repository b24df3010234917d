"""The wire under `call.http`: a request leaves in one write, by the deadline or not at all.

Built on the public `network_backend` of httpcore2's pools (2.16.2, read 2026-11-29). Sockets
are non-blocking and TLS runs over memory buffers, so that every send to a socket stands in one
place, right after the deadline's check (law 5). Only a pause between that check and the send,
and the transit, are beyond it: those are what a contract's `late.max` is for.
"""

from __future__ import annotations

import errno
import selectors
import socket
import ssl
import struct
import threading
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Any, Self

import httpcore2

from ascertain.core.errors import SendRefused

from .addresses import AddressRefused
from .base import SendTrace

ANSWER_BYTES = 1024 * 1024  # of an answer's body that are read; more makes it unusable
FRAMING_BYTES = 256 * 1024  # of an answer's heads and framing beside its body
ADDRESSES = 8  # of one name that are tried, each for its share of the time
TCP_USER_TIMEOUT = getattr(socket, "TCP_USER_TIMEOUT", None)  # Linux only
CHUNK = 64 * 1024  # bytes read at once
STREAM_BYTES = 512 * 1024  # of a large body that are written at once, and of any that are kept
# Seconds of one wait: waits run on a clock that stands still in suspend, so the deadline's own
# clock is asked again after each.
_STEP = 1.0
_LINGER_NONE = struct.pack("ii", 1, 0)
_CONNECTING = (0, errno.EINPROGRESS, errno.EWOULDBLOCK)
_Selector = getattr(selectors, "PollSelector", selectors.SelectSelector)


class DeadlinePassed(SendRefused):
    """The attempt's deadline passed; the connection was cut and nothing more is sent."""

    code = "deadline_passed"


class Wire(httpcore2.NetworkBackend):
    """The connection of one request and its answer. `cut` may come from any thread.

    `trace` is given for an effect request. `guard` says why an address may not be connected
    to, `most` is how many bytes an answer's body may have; `streams`: the request is so large
    that it leaves in several writes, each by the deadline.
    """

    def __init__(
        self,
        deadline: Callable[[], int],
        clock: Callable[[], int],
        trace: SendTrace | None = None,
        *,
        guard: Callable[[str], str] | None = None,
        most: int = ANSWER_BYTES,
        streams: bool = False,
    ) -> None:
        """`deadline` and `clock` in µs on one local clock that counts suspend."""
        self._deadline, self._clock, self._trace = deadline, clock, trace
        self._guard, self._most, self.streams = guard, most, streams
        self._sock: socket.socket | None = None
        self._cut = False
        self._received = 0
        self._lock = threading.RLock()  # held over check and send, so a cut falls before or after
        self._wakes, self._waker = socket.socketpair()
        self._wakes.settimeout(0)

    def __enter__(self) -> Self:
        """Return the wire; leave it by `release`, or it is cut."""
        return self

    def __exit__(self, *_: object) -> None:
        """Cut what was not released, and close."""
        self.cut()
        self._wakes.close()
        self._waker.close()

    def release(self) -> None:
        """Close the connection in peace: the answer was read in full."""
        with self._lock:
            if self._sock is not None and not self._cut:
                self._cut = True
                self._sock.close()

    def cut(self) -> None:
        """Cut the connection for good; buffered bytes are not delivered.

        A plain close would still deliver them: with SO_LINGER 0 the kernel drops its buffer and
        sends RST (Linux 6, tested on loopback 2026-11-29).
        """
        with self._lock:
            self._cut = True
            if self._sock is not None:
                with suppress(OSError):
                    self._sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _LINGER_NONE)
                self._sock.close()
        with suppress(OSError):
            self._waker.send(b"x")

    def left(self) -> float:
        """Return the seconds that are left; cuts and raises DeadlinePassed if none are."""
        left = (self._deadline() - self._clock()) / 1e6
        if self._cut or left <= 0:
            ended = self._cut and left > 0
            self.cut()
            what = "this attempt has ended" if ended else "its deadline has passed"
            raise DeadlinePassed(f"{what}: the connection was cut and nothing more is sent")
        return left

    def wait(self, event: int, within: float | None = None) -> int:
        """Wait until the socket is ready and return for what; raises TimeoutError if it is not
        `within` seconds, DeadlinePassed if the wire is cut or its time is over.

        The deadline is asked for again after each step: it may have been extended.
        """
        until = None if within is None else self._clock() + int(within * 1e6)
        with _Selector() as selector:
            with self._lock:
                self.left()
                assert self._sock is not None
                selector.register(self._sock, event)
            selector.register(self._wakes, selectors.EVENT_READ)
            while True:
                rest = self.left()
                if until is not None:
                    rest = min(rest, (until - self._clock()) / 1e6)
                    if rest <= 0:
                        raise TimeoutError("it took too long")
                ready = selector.select(min(rest, _STEP))
                self.left()
                for key, events in ready:
                    if key.fileobj is self._sock:
                        return events

    def send(
        self,
        data: bytes,
        *,
        effect: bool,
        meanwhile: Callable[[bytes], bool] | None = None,
        last: bool = True,
    ) -> None:
        """Hand bytes to the socket, in one write where its buffer takes them.

        `meanwhile` gets what the other side says before all is written; if it returns True the
        answer has begun, and the rest is not sent. `last`: nothing of the request follows.
        """
        effect = effect and self._trace is not None
        rest = memoryview(data)
        while rest:
            with self._lock:
                rest = rest[self._send_some(rest, effect=effect) :]
            if rest and self._heard(meanwhile):
                return
        if effect and last and self._trace is not None:
            self._trace.whole = True

    def _heard(self, meanwhile: Callable[[bytes], bool] | None) -> bool:
        """Wait until more can be written; True if the other side answers first, e.g. 413."""
        if meanwhile is None:
            self.wait(selectors.EVENT_WRITE)
            return False
        ready = self.wait(selectors.EVENT_WRITE | selectors.EVENT_READ)
        return bool(ready & selectors.EVENT_READ) and self.overhear(meanwhile)

    def overhear(self, meanwhile: Callable[[bytes], bool]) -> bool:
        """Pass on what has come, if anything has; raises OSError at its end."""
        with self._lock:
            self.left()
            assert self._sock is not None
            try:
                said = self._sock.recv(CHUNK)
            except BlockingIOError:
                return False
        if not said:
            raise ConnectionResetError("closed by the other side while the request was written")
        self._count(said)
        return meanwhile(said)

    def _count(self, said: bytes) -> None:
        self._received += len(said)
        if self._received > self._most + FRAMING_BYTES:
            raise httpcore2.RemoteProtocolError(f"the answer has more than {self._most} bytes")

    def _send_some(self, data: memoryview, *, effect: bool) -> int:
        left = self.left()
        assert self._sock is not None
        if TCP_USER_TIMEOUT is not None:
            # What the kernel still holds unacknowledged at the deadline is dropped, not resent.
            most = max(int(left * 1000), 1)
            with suppress(OSError):
                self._sock.setsockopt(socket.IPPROTO_TCP, TCP_USER_TIMEOUT, min(most, 2**31 - 1))
        self.left()  # the last thing before the write
        if effect and self._trace is not None:
            self._trace.start()
        try:
            return self._sock.send(data)
        except BlockingIOError:
            return 0

    def receive(self, most: int) -> bytes:
        """Return the next bytes; empty where the other side has closed."""
        while True:
            with self._lock:
                self.left()
                assert self._sock is not None
                with suppress(BlockingIOError):
                    said = self._sock.recv(most)
                    self._count(said)
                    return said
            self.wait(selectors.EVENT_READ)

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> Stream:
        """Connect to the first address that answers, within what is left of the deadline."""
        last: OSError = OSError("no address")
        try:
            found = self._allowed(host, self._resolve(host, port)[:ADDRESSES])
            for number, (family, kind, proto, _, address) in enumerate(found):
                share = self.left() / (len(found) - number)
                try:
                    self._connect(socket.socket(family, kind, proto), address, share)
                except OSError as error:
                    last = error
                else:
                    return Stream(self)
        except DeadlinePassed as error:
            raise httpcore2.ConnectTimeout(f"no connection to {host}:{port}: {error}") from error
        except OSError as error:
            last = error
        if isinstance(last, TimeoutError):
            raise httpcore2.ConnectTimeout(f"no connection to {host}:{port}") from last
        raise httpcore2.ConnectError(f"{host}:{port}: {last}") from last

    def _allowed(self, host: str, found: list[Any]) -> list[Any]:
        """Refuse a name of which any address may not be connected to: what is looked at here is
        what is connected to, so no second look-up can lead elsewhere."""
        for *_, address in found if self._guard is not None else ():
            if why := self._guard(str(address[0])):  # type: ignore[misc]
                raise AddressRefused(
                    f"{host} leads to a refused address: {why}. Nothing was sent; if this target"
                    " is inside your network, say private = true for it"
                )
        return found

    def _connect(self, sock: socket.socket, address: Any, within: float) -> None:
        with self._lock:
            if self._sock is not None:
                self._sock.close()
            self._sock = sock
            self.left()
            sock.settimeout(0)  # never waits by itself
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            code = sock.connect_ex(address)
        if code not in _CONNECTING:
            raise OSError(code, errno.errorcode.get(code, "error"))
        self.wait(selectors.EVENT_WRITE, within)
        if failed := sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR):
            raise OSError(failed, errno.errorcode.get(failed, "error"))

    def _resolve(self, host: str, port: int) -> list[Any]:
        """Look a name up in a thread: the resolver knows no deadline (glibc 2.36: 5 s a try)."""
        with suppress(OSError, UnicodeError):
            numeric = socket.AI_NUMERICHOST
            return socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=numeric)
        found: list[Any] = []
        failed: list[Exception] = []

        def look() -> None:
            try:
                found.extend(socket.getaddrinfo(host, port, type=socket.SOCK_STREAM))
            except (OSError, UnicodeError) as error:
                failed.append(error)

        thread = threading.Thread(target=look, name="ascertain-resolve", daemon=True)
        thread.start()
        while thread.is_alive():
            thread.join(min(self.left(), _STEP / 10))
        if failed:
            raise OSError(str(failed[0])) from failed[0]
        return found


class Stream(httpcore2.NetworkStream):
    """A connection that keeps what is written until the answer is asked for, and then sends
    it in one write; of a large request, whenever there is enough of it."""

    def __init__(self, wire: Wire) -> None:
        """Speak over a connected wire."""
        self._wire = wire
        self._pending: list[bytes] = []
        self._early = b""  # of an answer that began before the request was written in full

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        """Keep bytes for the one write."""
        if self._wire.streams and sum(map(len, self._pending)) >= STREAM_BYTES:
            self._flush(last=False)
        if not self._early:  # else it has answered already, e.g. 413: the rest is not sent
            self._pending.append(buffer)

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        """Send what is kept, then read; both within what is left of the deadline."""
        if self._pending:
            self._flush(last=True)
        if self._early:
            early, self._early = self._early, b""
            return early
        try:
            return self._receive(max_bytes)
        except DeadlinePassed as error:
            raise httpcore2.ReadTimeout("no answer before the deadline") from error
        except OSError as error:
            raise httpcore2.ReadError(str(error)) from error

    def _flush(self, *, last: bool) -> None:
        data = b"".join(self._pending)
        self._pending.clear()
        try:
            encoded = self._encoded(data)
            self._wire.send(encoded, effect=True, meanwhile=self._hear, last=last)
        except OSError as error:
            with suppress(OSError, DeadlinePassed):
                if self._wire.overhear(self._hear):
                    return  # it answered before it closed the connection
            # Not WriteError: httpcore2 swallows that and reads on, hoping for an early answer.
            self._wire.cut()
            raise httpcore2.NetworkError(str(error)) from error

    def _hear(self, said: bytes) -> bool:
        self._early = said
        return True

    def _encoded(self, data: bytes) -> bytes:
        return data

    def _receive(self, most: int) -> bytes:
        return self._wire.receive(most)

    def close(self) -> None:
        """Do nothing: the wire is released or cut by whoever made it."""

    def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,
    ) -> Stream:
        """Speak TLS from here; the handshake carries nothing of the request."""
        try:
            return TlsStream(self._wire, ssl_context, server_hostname)
        except DeadlinePassed as error:
            raise httpcore2.ConnectTimeout("no TLS connection before the deadline") from error
        except (OSError, ValueError) as error:  # ssl.SSLError; ValueError: no name for TLS
            raise httpcore2.ConnectError(str(error)) from error

    def get_extra_info(self, info: str) -> Any:
        """Tell what httpcore2 asks of a stream."""
        return None


class TlsStream(Stream):
    """The same with TLS, over memory buffers: the wire still does every send to the socket."""

    def __init__(self, wire: Wire, context: ssl.SSLContext, host: str | None) -> None:
        """Agree on TLS; raises OSError (ssl.SSLError) where that fails."""
        super().__init__(wire)
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._incoming, self._outgoing, server_hostname=host)
        self._exchange(self._tls.do_handshake)

    def _encoded(self, data: bytes) -> bytes:
        rest = memoryview(data)
        while rest:
            rest = rest[self._tls.write(rest) :]
        return self._outgoing.read()

    def _hear(self, said: bytes) -> bool:
        """Tell an answer from what TLS itself says, e.g. a ticket after the handshake."""
        self._incoming.write(said)
        with suppress(ssl.SSLWantReadError):
            self._early = self._tls.read(CHUNK)
        return bool(self._early)

    def _receive(self, most: int) -> bytes:
        try:
            got: bytes = self._exchange(lambda: self._tls.read(most))
        except ssl.SSLZeroReturnError:
            return b""  # closed by the other side, and said so
        return got

    def _exchange(self, step: Callable[[], Any]) -> Any:
        """Do one step of TLS; none of its bytes belong to the request."""
        while True:
            try:
                result = step()
            except ssl.SSLWantReadError:
                self._tell()
            except ssl.SSLError:
                with suppress(OSError, DeadlinePassed):
                    self._tell()  # the alert
                raise
            else:
                self._tell()
                return result
            got = self._wire.receive(CHUNK)
            if got:
                self._incoming.write(got)
            else:
                self._incoming.write_eof()

    def _tell(self) -> None:
        if self._outgoing.pending:
            self._wire.send(self._outgoing.read(), effect=False)

    def get_extra_info(self, info: str) -> Any:
        """Tell what httpcore2 asks of a stream."""
        return self._tls if info == "ssl_object" else None

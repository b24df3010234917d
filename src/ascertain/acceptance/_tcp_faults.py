"""A TCP proxy that understands as much of SMTP, NATS and PostgreSQL as losing one answer takes."""

from __future__ import annotations

import contextlib
import re
import select
import socket
import threading
import time
from collections.abc import Callable, Iterator

from ._fault_rules import LOOPBACK, Exchange, FaultProxy, Rule, reset

Look = Callable[[bytes], bytes]
CHUNK = 65536
POLL_MILLISECONDS = 100
SEND_SECONDS = 30.0
ANSWER_SECONDS = 5.0  # how long a muted connection waits for the answer that is to be lost


class TcpFaultProxy(FaultProxy):
    """A TCP proxy in front of an SMTP, a NATS or a PostgreSQL server, with one-shot faults.

    What counts as a request: a message up to its final dot (``DATA``), a publish (``PUB``), the
    ``COMMIT`` of a transaction (``SQL``; the client must ask for neither TLS nor GSS). Bytes pass
    unchanged in both directions. A rule catches the first fitting request on any connection;
    afterwards that connection is reset, unless the request was only late.
    """

    def __init__(self, upstream_port: int, *, upstream_host: str = LOOPBACK) -> None:
        super().__init__(upstream_port, upstream_host)
        self._listener = socket.create_server((LOOPBACK, 0), backlog=64)
        self.port = int(self._listener.getsockname()[1])
        self._acceptor = threading.Thread(target=self._accept, daemon=True, name="fault-proxy")
        self._acceptor.start()

    def drop_after_data(self) -> Rule:
        """SMTP: forward a whole message, swallow the reply to its final dot, reset the client."""
        return self.book.arm(Rule("drop_after_data", "DATA"))

    def drop_publish_ack(self, subject: str = "") -> Rule:
        """NATS: forward a publish, swallow its acknowledgement, reset the client.

        ``subject`` is a part of the subject; without it the first publish counts that is not a
        request to the server itself (``$…``).
        """
        return self.book.arm(Rule("drop_publish_ack", "PUB", subject))

    def drop_response(self, method: str, path: str = "") -> Rule:
        """Forward, swallow the answer, reset the client."""
        return self.book.arm(Rule("drop_response", method, path))

    def hold(self, seconds: float, method: str, path: str = "") -> Rule:
        """The same, but reset the client ``seconds`` later (or after the rule's ``release()``)."""
        return self.book.arm(Rule("hold", method, path, seconds))

    def drop_request(self, method: str, path: str = "") -> Rule:
        """Keep the end of the request back and reset both sides."""
        return self.book.arm(Rule("drop_request", method, path))

    def commit_late(self, seconds: float, method: str, path: str = "") -> Rule:
        """Forward the end of the request ``seconds`` later, whether or not the client lives."""
        return self.book.arm(Rule("commit_late", method, path, seconds))

    def stop(self) -> None:
        """Close the listener and all connections."""
        self.book.stopping.set()
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)  # wakes accept()
        self._acceptor.join()
        self._listener.close()
        self.book.end()

    def _accept(self) -> None:
        while not self.book.stopping.is_set():
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            try:
                server = socket.create_connection(
                    (self.upstream_host, self.upstream_port), timeout=ANSWER_SECONDS
                )
            except OSError:
                reset(client)
                continue
            _Link(self, client, server).run()


class _Link:
    """One client's connection and the one to the server made for it."""

    def __init__(self, proxy: TcpFaultProxy, client: socket.socket, server: socket.socket) -> None:
        self.proxy, self.client, self.server = proxy, client, server
        self.reader: _SmtpReader | _NatsReader | _SqlReader | None = None
        self.muted: Rule | None = None
        self.number, self.path, self.began_at = 0, "", 0.0  # of the muted request
        self.deadline = 0.0
        self.swallowed = bytearray()
        self.resetting = False
        self.ends = 0

    def run(self) -> None:
        for sock in (self.client, self.server):
            sock.settimeout(SEND_SECONDS)
            self.proxy.book.hold(sock)
        self.proxy.book.run(lambda: self._pump(self.client, self.server, self._from_client))
        self.proxy.book.run(lambda: self._pump(self.server, self.client, self._from_server))

    def _pump(self, source: socket.socket, sink: socket.socket, look: Look) -> None:
        """Copy one direction until it ends; ``look`` sees the bytes before they are passed on."""
        poll = select.poll()
        poll.register(source, select.POLLIN)
        try:
            while not self.proxy.book.stopping.is_set() and not self.resetting:
                chunk = source.recv(CHUNK) if poll.poll(POLL_MILLISECONDS) else None
                if chunk == b"":
                    break
                if passed := look(chunk or b""):
                    sink.sendall(passed)
        except OSError:
            pass
        finally:
            self._end(sink)

    def _end(self, sink: socket.socket) -> None:
        """Pass the end of one direction on; the second pump to end closes both sockets.

        Only then, since closing a socket on which the other pump waits would let it read from
        whatever gets the same descriptor next.
        """
        if not self.resetting:
            with contextlib.suppress(OSError):
                sink.shutdown(socket.SHUT_WR)
        with self.proxy.book.lock:
            self.ends += 1
            if self.ends == 1:
                return
        if self.muted is not None and not self.muted.finished.is_set():
            self._note_muted("abandoned", None)
        for sock in (self.client, self.server):
            self.proxy.book.drop(sock)
        if self.resetting:
            reset(self.client)
        self.client.close()
        self.server.close()

    def _from_client(self, chunk: bytes) -> bytes:
        if self.reader is None and chunk:
            # NATS clients begin with CONNECT, SMTP clients with EHLO, HELO or the like, those of
            # PostgreSQL with a length, whose first byte is zero.
            if chunk[:8].upper() == b"CONNECT ":
                self.reader = _NatsReader()
            else:
                self.reader = _SqlReader() if chunk[0] == 0 else _SmtpReader()
        if self.reader is None or self.muted is not None:
            return chunk
        for path in list(self.reader.requests(chunk)):
            number, now = self.proxy.book.arrive(), time.time()
            rule = self.proxy.book.match(self.reader.method, path) if self.muted is None else None
            if rule is None:
                row = (number, self.reader.method, path, "pass", "forwarded", True, None, now)
                self.proxy.book.note(Exchange(*row, now), None)
                continue
            self.number, self.path, self.began_at = number, path, now
            if rule.action in ("drop_request", "commit_late"):
                return self._kept_back(rule, chunk)
            self.deadline = time.monotonic() + ANSWER_SECONDS
            # Set before the bytes go on, so that a quick answer cannot slip through.
            self.muted = rule
        return chunk

    def _kept_back(self, rule: Rule, chunk: bytes) -> bytes:
        """Pass the end of a request on late, or never."""
        late = rule.action == "commit_late" and self.proxy.book.pause(rule)
        outcome = "committed_late" if late else "request_dropped"
        row = (self.number, str(rule.method), self.path, rule.action, outcome, late, None)
        self.proxy.book.note(Exchange(*row, self.began_at, time.time()), rule)
        if late:
            return chunk
        self.resetting = True
        return b""

    def _from_server(self, chunk: bytes) -> bytes:
        if isinstance(self.reader, _SmtpReader):
            self.reader.replies(chunk)
        rule = self.muted
        if rule is None or self.reader is None:
            return chunk
        self.swallowed += chunk
        hit = self.reader.answer.search(self.swallowed)
        if hit is not None:
            rule.landed.set()
            code = int(hit[1]) if hit.re.groups else None
            self._note_muted("answer_dropped", code)
        elif time.monotonic() > self.deadline:
            self._note_muted("target_failed", None)
        else:
            return b""
        if rule.action == "hold":
            self.proxy.book.pause(rule)
        self.resetting = True
        with contextlib.suppress(OSError):
            self.client.shutdown(socket.SHUT_RD)  # wakes the other pump, tells the client nothing
        return b""

    def _note_muted(self, outcome: str, status: int | None) -> None:
        rule = self.muted
        assert rule is not None
        row = (self.number, str(rule.method), self.path, rule.action, outcome, True, status)
        self.proxy.book.note(Exchange(*row, self.began_at, time.time()), rule)


class _SmtpReader:
    """Finds the final dot of each message in what an SMTP client sends."""

    method = "DATA"
    answer = re.compile(rb"^(\d{3})(?: [^\r\n]*)?\r?\n", re.MULTILINE)

    def __init__(self) -> None:
        self.lines = bytearray()
        self.asked = self.in_data = False

    def requests(self, chunk: bytes) -> Iterator[str]:
        self.lines += chunk
        while (end := self.lines.find(b"\n")) >= 0:
            line = bytes(self.lines[: end + 1]).strip()
            del self.lines[: end + 1]
            if self.in_data:
                if line == b".":
                    self.asked = self.in_data = False
                    yield ""
            elif line.upper() == b"DATA":
                self.asked = True

    def replies(self, chunk: bytes) -> None:
        if self.asked and chunk:  # the client waits for this reply before it goes on
            self.in_data = chunk.startswith(b"354")
            self.asked = False


class _NatsReader:
    """Finds the publishes in what a NATS client sends; its requests to the server are not seen."""

    method = "PUB"
    # JetStream acknowledges with JSON that has a sequence number or an error; without a stream the
    # server answers with a 503 header (docs.nats.io, JetStream wire API, 2026-11-29).
    answer = re.compile(rb'"(?:seq|error)"\s*:|NATS/1\.0 503')

    def __init__(self) -> None:
        self.buffer = bytearray()
        self.skip = 0

    def requests(self, chunk: bytes) -> Iterator[str]:
        self.buffer += chunk
        while True:
            skipped = min(self.skip, len(self.buffer))
            del self.buffer[:skipped]
            self.skip -= skipped
            end = self.buffer.find(b"\r\n")
            if self.skip or end < 0:
                return
            words = bytes(self.buffer[:end]).split()
            del self.buffer[: end + 2]
            if words and words[0].upper() in (b"PUB", b"HPUB"):
                self.skip = int(words[-1]) + 2
                subject = words[1].decode("utf-8", "replace")
                if not subject.startswith("$"):
                    yield subject


class _SqlReader:
    """Finds the COMMIT of each transaction in what a PostgreSQL client sends."""

    method = "SQL"
    # CommandComplete with its length and tag (PostgreSQL 18, 54.7 Message Formats, 2026-11-29).
    answer = re.compile(rb"C\x00\x00\x00\x0bCOMMIT\x00")

    def __init__(self) -> None:
        self.buffer = bytearray()
        self.started = False

    def requests(self, chunk: bytes) -> Iterator[str]:
        self.buffer += chunk
        while len(self.buffer) >= 5:
            head = 1 if self.started else 0  # the first message has no type
            size = head + int.from_bytes(self.buffer[head : head + 4], "big")
            if len(self.buffer) < size:
                return
            said = bytes(self.buffer[head + 4 : size])
            del self.buffer[:size]
            if self.started and said.rstrip(b"\0").strip(b"\0").upper() == b"COMMIT":
                yield "COMMIT"
            self.started = True

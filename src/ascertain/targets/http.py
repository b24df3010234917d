"""`call.http`: one effect request per attempt, frozen, by the deadline, never again by itself.

Laws 5, 11, 13, 17. No redirects, no retries, no reused connection, no proxy from the
environment: each of them can send a request twice, or somewhere else, below the ledger.
"""

from __future__ import annotations

import base64
import ssl
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import lru_cache
from itertools import chain
from typing import Any
from urllib.parse import quote

import httpcore2
import httpx2

from ascertain.core import contract as contracts
from ascertain.core import matcher
from ascertain.core.contract import NO_CONTRACT, Contract
from ascertain.core.errors import SendRefused
from ascertain.core.model import ActFinding, Large, Request, Unknown

from .answer import HttpAnswer, evidence_of
from .base import SAFE, SendTrace
from .classify.answers import exists, finding_of, success_of
from .classify.redact import is_secret
from .freezing import check as check_request
from .freezing import check_beside, check_headers, freeze, same_bytes, summary
from .http_async import AsyncEffectHttp
from .wire import ANSWER_BYTES, DeadlinePassed, Wire

AGENT = "ascertain"


class Answered(Exception):
    """The target answered, and by the contract it is not a success; carries the finding.

    `exists`: by the contract the answer says that our identity exists already, which is to be
    read back before it counts (law 6).
    """

    def __init__(self, answer: HttpAnswer, finding: ActFinding, *, exists: bool = False) -> None:
        """Keep the answer and what it amounts to."""
        self.answer, self.finding, self.exists = answer, finding, exists
        super().__init__(f"HTTP {answer.status}")


class AnswerTooLarge(Answered):
    """The answer is larger than can be read; that it came is kept, what it says is unknown."""


class EffectHttp:
    """The client of one attempt. Not for use after the attempt has ended.

    With a frozen `request` only that may be sent. For a look-up (`effect=False`) any number of
    requests may be sent, each by the deadline. Safe to use from several threads.
    """

    def __init__(
        self,
        *,
        deadline: Callable[[], int] | int,
        clock: Callable[[], int],
        contract: Contract = NO_CONTRACT,
        request: Request | None = None,
        effect: bool = True,
        outside: Mapping[str, str] | None = None,
        ssl_context: ssl.SSLContext | None = None,
        bodies: Callable[[Large], Iterator[bytes]] | None = None,
        most: int = ANSWER_BYTES,
    ) -> None:
        """`deadline` and `clock` in µs on one local clock that counts suspend; `outside` are
        trace headers, which lie outside what was frozen (law 11). `bodies` gives large bodies
        part by part, `most` is how many bytes of an answer's body are read.

        Raises ContractInvalid for a contract whose matchers nobody can read.
        """
        if contract.protocol == "http":
            for text in contracts.matchers(contract).values():
                matcher.parse(text)
        self._deadline = deadline if callable(deadline) else lambda: deadline
        self._clock, self._contract, self._frozen, self._effect = clock, contract, request, effect
        self._outside = dict(outside or {})
        self._ssl, self._bodies, self._most = ssl_context, bodies, most
        self.guard: Callable[[str], str] | None = None  # which addresses are refused, and why
        self._trace = SendTrace()
        self._lock = threading.Lock()
        self._wires: set[Wire] = set()
        self._closed = False

    @property
    def trace(self) -> SendTrace:
        """What is known about the sending of this attempt's effect request."""
        return self._trace

    def now(self) -> int:
        """Return the time in µs on the clock of the deadline, which counts suspend."""
        return self._clock()

    def request(
        self,
        method: str,
        url: str,
        *,
        headers: Mapping[str, str] | None = None,
        auth: tuple[str, str] | None = None,
        query: Mapping[str, str] | None = None,
        check: bool = True,
        effect: bool | None = None,
        **body: Any,
    ) -> HttpAnswer:
        """Send a request and return the answer; see `send`.

        `body` as for `freeze`: json, content, data, files, params. Credentials among the
        headers are sent, and kept out of what is recorded.
        """
        given = dict(headers or {})
        secret = {n: given.pop(n) for n in list(given) if is_secret(n)}
        made = freeze(method, url, headers=given, **body)
        return self.send(made, headers=secret, auth=auth, query=query, check=check, effect=effect)

    def send(
        self,
        request: Request,
        *,
        headers: Mapping[str, str] | None = None,
        auth: tuple[str, str] | None = None,
        query: Mapping[str, str] | None = None,
        check: bool = True,
        effect: bool | None = None,
    ) -> HttpAnswer:
        """Send exactly these bytes; `headers`, `auth` and `query` are credentials beside them.

        An effect request is the frozen one, or one whose method is not safe. `effect` says
        otherwise: True for a GET that acts, False as a promise that a request changes nothing
        that matters (a token, a search). With `check`, an answer that by the contract is no
        success raises Answered with what it proves. Raises SendRefused for a second effect
        request, DeadlinePassed, and httpcore2's errors where no answer came.
        """
        beside = _beside(request, headers or {}, auth)
        secret = [v for n, v in beside.items() if is_secret(n)]
        secrets = (*secret, *(v.split(" ", 1)[-1] for v in secret), *(auth or ())[1:])
        pairs = _secret_query(request, query or {})
        secrets = (*secrets, *(query or {}).values(), *(v for _, v in pairs))
        acts = self._effect and self._acts(request, effect=effect)
        if acts:
            self._admit(request)
        trace = self._trace if acts else None
        answer, whole = self._exchange(request, beside, secrets, trace, pairs)
        if not whole:
            reason = f"HTTP {answer.status}: the answer is larger than {self._most} bytes"
            large = AnswerTooLarge(answer, Unknown(reason, evidence=answer.evidence()))
            self._trace.finding = large.finding if acts else self._trace.finding
            raise large
        return self._judged(answer, check=check) if acts else answer

    def _acts(self, request: Request, *, effect: bool | None) -> bool:
        if self._frozen is not None and same_bytes(request, self._frozen):
            return True
        return request.method not in SAFE if effect is None else effect

    def _admit(self, request: Request) -> None:
        """Let one effect request through, and only the one that was frozen (laws 11, 17)."""
        if self._contract.protocol != "http":
            raise SendRefused(
                f"contract {self._contract.id} is about {self._contract.protocol}: call.http"
                " cannot judge an answer by it; name a contract about HTTP"
            )
        if self._frozen is not None and not same_bytes(request, self._frozen):
            raise SendRefused(
                "this is not the request that was frozen: send call.request, and change it"
                " only as a new version"
            )
        if not self._trace.admit():
            raise SendRefused(
                "a second effect request in one attempt: make it an operation of its own"
            )
        self._trace.sent = summary(request)

    def _judged(self, answer: HttpAnswer, *, check: bool) -> HttpAnswer:
        self._trace.answered = True
        found = finding_of(answer, self._contract)
        self._trace.finding = found or success_of(answer, self._contract)
        if check and found is not None:
            raise Answered(answer, found, exists=exists(answer, self._contract))
        return answer

    def _exchange(
        self,
        request: Request,
        beside: Mapping[str, str],
        secrets: tuple[str, ...],
        trace: SendTrace | None,
        pairs: list[tuple[str, str]],
    ) -> tuple[HttpAnswer, bool]:
        """Return the answer, and whether it was read in full."""
        url, began = httpx2.URL(request.url), self._clock()
        path = url.raw_path
        if pairs:
            path += b"&" if b"?" in path else b"?"
            path += "&".join(f"{n}={v}" for n, v in pairs).encode("ascii")
        target = httpcore2.URL(scheme=url.raw_scheme, host=url.raw_host, port=url.port, target=path)
        taken = {n.lower() for n, _ in (*request.headers, *beside.items())}
        told = {n: v for n, v in self._outside.items() if n.lower() not in taken}
        head = [(n.encode(), v.encode("utf-8")) for n, v in head_of(request, {**told, **beside})]
        body = self._large(request.large) if request.large is not None else request.body
        large = request.large is not None
        wire = Wire(
            self._deadline, self._clock, trace,
            guard=self.guard, most=self._most, streams=large,
        )  # fmt: skip
        with wire, self._registered(wire):
            context = self._ssl or (_trusted() if url.scheme == "https" else None)
            pool = httpcore2.ConnectionPool(
                network_backend=wire, ssl_context=context, max_keepalive_connections=0, retries=0
            )
            with (
                pool,
                pool.stream(request.method, target, headers=head, content=body) as response,
            ):
                content, whole = _read(response, self._most)
                if whole:
                    wire.release()
        headers = _joined(response.headers)
        reason = bytes(response.extensions.get("reason_phrase", b"")).decode("latin-1")
        answer = HttpAnswer(
            status=response.status,
            headers=headers,
            content=content,
            url=request.url,
            elapsed=self._clock() - began,
            reason=reason,
            seen=evidence_of(response.status, reason, headers, content, secrets),
        )
        return answer, whole

    def _large(self, large: Large) -> Iterator[bytes]:
        """Return a large body; that it is there is known before anything is connected."""
        if self._bodies is None:
            raise SendRefused("a large body can only be sent where it is kept")
        parts = self._bodies(large)
        first = next(parts, b"")
        return chain([first], parts)

    @contextmanager
    def _registered(self, wire: Wire) -> Iterator[None]:
        """Keep a wire where `close` finds it, for as long as it is in use."""
        with self._lock:
            if self._closed:
                raise DeadlinePassed("this attempt has ended: nothing is sent any more")
            self._wires.add(wire)
        try:
            yield
        finally:
            with self._lock:
                self._wires.discard(wire)

    def get(self, url: str, **more: Any) -> HttpAnswer:
        """Send GET; see `request`."""
        return self.request("GET", url, **more)

    def head(self, url: str, **more: Any) -> HttpAnswer:
        """Send HEAD; see `request`."""
        return self.request("HEAD", url, **more)

    def options(self, url: str, **more: Any) -> HttpAnswer:
        """Send OPTIONS; see `request`."""
        return self.request("OPTIONS", url, **more)

    def post(self, url: str, **more: Any) -> HttpAnswer:
        """Send POST; see `request`."""
        return self.request("POST", url, **more)

    def put(self, url: str, **more: Any) -> HttpAnswer:
        """Send PUT; see `request`."""
        return self.request("PUT", url, **more)

    def patch(self, url: str, **more: Any) -> HttpAnswer:
        """Send PATCH; see `request`."""
        return self.request("PATCH", url, **more)

    def delete(self, url: str, **more: Any) -> HttpAnswer:
        """Send DELETE; see `request`."""
        return self.request("DELETE", url, **more)

    def close(self) -> None:
        """End this attempt's sending: connections are cut, and no send begins after this."""
        with self._lock:
            self._closed = True
            wires = list(self._wires)
        for wire in wires:
            wire.cut()


@lru_cache(maxsize=1)
def _trusted() -> ssl.SSLContext:
    """Read the system's certificates once: it takes 20 ms."""
    return httpcore2.default_ssl_context()


def _beside(
    request: Request, headers: Mapping[str, str], auth: tuple[str, str] | None
) -> dict[str, str]:
    """Return what is sent beside a request, all of it checked before anything is sent."""
    check_request(request)
    check_beside(headers)
    beside = dict(headers)
    if auth is not None:
        if ":" in auth[0]:
            raise SendRefused("a user name with a colon cannot be sent (RFC 7617 section 2)")
        token = base64.b64encode(f"{auth[0]}:{auth[1]}".encode()).decode()
        beside["Authorization"] = f"Basic {token}"
    check_headers((*request.headers, *beside.items()))
    return beside


def _secret_query(request: Request, query: Mapping[str, str]) -> list[tuple[str, str]]:
    """Return credentials as they stand in an address; one may not change what was approved."""
    known = httpx2.URL(request.url).params if query else {}
    taken = [n for n in query if n in known]
    if taken:
        raise SendRefused(f"the address has {', '.join(taken)} already: a credential may not")
    return [(quote(n, safe=""), quote(v, safe="")) for n, v in query.items()]


def head_of(request: Request, beside: Mapping[str, str]) -> list[tuple[str, str]]:
    """Return the whole head in its order on the wire; a header that was frozen stays as it is."""
    host = httpx2.URL(request.url).netloc.decode("ascii")
    own = {n.lower() for n, _ in request.headers}
    # Identity: what is read is what was sent, and its size is what it says.
    plain = [
        ("Host", host),
        ("User-Agent", AGENT),
        ("Accept", "*/*"),
        ("Accept-Encoding", "identity"),
    ]
    head = [(n, v) for n, v in plain if n.lower() not in own]
    size = len(request.body) if request.large is None else request.large.size
    if size or request.method not in SAFE:
        head.append(("Content-Length", str(size)))
    return [*head, *request.headers, *beside.items(), ("Connection", "close")]


def _read(response: httpcore2.Response, most: int) -> tuple[bytes, bool]:
    content = bytearray()
    for part in response.iter_stream():
        content += part
        if len(content) > most:
            return bytes(content[:most]), False
    return bytes(content), True


def _joined(headers: list[tuple[bytes, bytes]]) -> dict[str, str]:
    found: dict[str, str] = {}
    for raw, value in headers:
        name, text = raw.decode("latin-1").lower(), value.decode("latin-1")
        found[name] = f"{found[name]}, {text}" if name in found else text
    return found


__all__ = [
    "Answered",
    "AsyncEffectHttp",
    "EffectHttp",
    "HttpAnswer",
    "finding_of",
    "freeze",
]

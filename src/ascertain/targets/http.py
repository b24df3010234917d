"""`call.http`: one effect request per attempt, frozen, by the deadline, never again by itself.

Laws 5, 11, 13, 17. No redirects, no retries, no reused connection, no proxy from the
environment: each of them can send a request twice, or somewhere else, below the ledger.
"""

from __future__ import annotations

import asyncio
import base64
import threading
from collections.abc import Callable, Mapping
from typing import Any

import httpcore2
import httpx2
import msgspec

from ascertain.core import matcher
from ascertain.core.contract import NO_CONTRACT, Contract
from ascertain.core.errors import SendRefused
from ascertain.core.model import Accepted, ActFinding, Done, NotDone, NotDoneKind, Request, Unknown

from .wire import Trace, Wire

ANSWER_BYTES = 1024 * 1024  # of an answer's body that are read; more makes it unusable
EXCERPT = 300  # characters of an answer that are kept as evidence
SAFE = frozenset({"GET", "HEAD", "OPTIONS"})
KEPT_HEADERS = ("content-type", "location", "etag", "retry-after", "date", "x-request-id")
SECRET_HEADERS = frozenset({"authorization", "cookie", "proxy-authorization", "x-api-key"})
AGENT = ("User-Agent", "ascertain")


class Answered(Exception):
    """The target answered, and by the contract it is not a success; carries the finding.

    `exists`: by the contract the answer says that our identity exists already, which is to be
    read back before it counts (law 6).
    """

    def __init__(self, answer: HttpAnswer, finding: ActFinding, *, exists: bool = False) -> None:
        """Keep the answer and what it amounts to."""
        self.answer, self.finding, self.exists = answer, finding, exists
        super().__init__(f"HTTP {answer.status}")


class HttpAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """An answer, read in full. `headers` has lower-case names."""

    status: int
    headers: dict[str, str]
    content: bytes
    url: str

    @property
    def text(self) -> str:
        """The body as UTF-8 text, wrong bytes replaced."""
        return self.content.decode("utf-8", "replace")

    def json(self) -> Any:
        """The body as JSON; raises ValueError if it is none."""
        return msgspec.json.decode(self.content)

    def body(self) -> Any:
        """The body as JSON, or its text where it is none."""
        try:
            return self.json()
        except ValueError:
            return self.text

    def evidence(self) -> dict[str, Any]:
        """What of it is kept: status, selected headers, a bounded excerpt; no credentials."""
        kept = {n: self.headers[n] for n in KEPT_HEADERS if n in self.headers}
        return {"status": self.status, "headers": kept, "excerpt": self.text[:EXCERPT]}


def finding_of(answer: HttpAnswer, contract: Contract) -> ActFinding | None:
    """Return what an answer amounts to by the contract; None where it is a success.

    Total: what is not listed is Unknown (law 13). Without a contract 2xx is a success and
    everything else Unknown, since nobody said that it is given before processing.
    """
    body, seen = answer.body(), answer.evidence()

    def says(text: str) -> bool:
        return matcher.matches(matcher.parse(text), answer.status, answer.headers, body)

    refused = contract.refused
    for kind, text in (
        (NotDoneKind.UNAUTHORIZED, refused.unauthorized),
        (NotDoneKind.THROTTLED, refused.throttled),
        (NotDoneKind.TRANSIENT, refused.transient),
        (NotDoneKind.INVALID, refused.invalid),
        (NotDoneKind.REJECTED, refused.rejected),
    ):
        if says(text):
            return NotDone(
                kind,
                f"HTTP {answer.status}",
                retry_after=retry_after(answer),
                evidence=seen,
            )
    success = says(contract.ok.when) if contract is not NO_CONTRACT else answer.status // 100 == 2
    if success:
        return None
    if says(contract.repeat.busy):
        return Unknown("the target is still working on it", retry_after(answer), evidence=seen)
    if says(contract.repeat.mismatch):
        return Unknown("the target knows our key with another content", evidence=seen)
    return Unknown(f"HTTP {answer.status}", retry_after(answer), evidence=seen)


def retry_after(answer: HttpAnswer) -> float | None:
    """Return the seconds of a Retry-After header; a date or nonsense is None."""
    try:
        return float(answer.headers.get("retry-after", ""))
    except ValueError:
        return None


def freeze(
    method: str,
    url: str,
    *,
    json: Any = None,
    content: bytes | str | None = None,
    data: Mapping[str, Any] | None = None,
    files: Any = None,
    headers: Mapping[str, str] | None = None,
    params: Mapping[str, Any] | None = None,
) -> Request:
    """Return a request as the bytes that will be sent (law 11); what `prepare` returns.

    JSON keeps the order of its fields; the boundary of a multipart body is part of it.
    Raises SendRefused for credentials in its headers: those lie outside what is frozen.
    """
    given = dict(headers or {})
    secret = [n for n in given if n.lower() in SECRET_HEADERS]
    if secret:
        raise SendRefused(
            f"{', '.join(secret)} must not be frozen with the request: pass it when sending,"
            " call.http.send(request, headers=…) or auth=(user, password)"
        )
    if json is not None:
        content = msgspec.json.encode(json)
        given.setdefault("Content-Type", "application/json")
    made = httpx2.Request(
        method, url, content=content, data=data, files=files, headers=given, params=params
    )
    made.read()
    names = ("content-type",)
    kept = [(n, v) for n, v in given.items() if n.lower() != "content-length"]
    present = {n.lower() for n, _ in kept}
    kept += [(n.title(), made.headers[n]) for n in names if n in made.headers and n not in present]
    return Request(method=method.upper(), url=str(made.url), headers=tuple(kept), body=made.content)


class EffectHttp:
    """The client of one attempt. Not for use after the attempt has ended.

    With a frozen `request` only that may be sent. For a look-up (`effect=False`) any number of
    requests may be sent, each by the deadline.
    """

    def __init__(
        self,
        *,
        deadline: Callable[[], int],
        clock: Callable[[], int],
        contract: Contract = NO_CONTRACT,
        request: Request | None = None,
        effect: bool = True,
        ssl_context: Any = None,
    ) -> None:
        """`deadline` and `clock` in µs on one local clock that counts suspend."""
        self._wire = Wire(deadline, clock)
        self._contract, self._frozen, self._effect = contract, request, effect
        self._ssl = ssl_context
        self._lock = threading.Lock()

    @property
    def trace(self) -> Trace:
        """What is known about the sending of this attempt's effect request."""
        return self._wire.trace

    def request(
        self,
        method: str,
        url: str,
        *,
        headers: Mapping[str, str] | None = None,
        auth: tuple[str, str] | None = None,
        check: bool = True,
        **body: Any,
    ) -> HttpAnswer:
        """Send a request and return the answer.

        `body` as for `freeze`: json, content, data, files, params. With `check`, an answer that
        by the contract is no success ends the attempt with what it proves. Raises SendRefused
        for a second effect request, and httpcore2's errors where no answer came.
        """
        given = dict(headers or {})
        secret = {n: given.pop(n) for n in list(given) if n.lower() in SECRET_HEADERS}
        made = freeze(method, url, headers=given, **body)
        return self.send(made, headers=secret, auth=auth, check=check)

    def send(
        self,
        request: Request,
        *,
        headers: Mapping[str, str] | None = None,
        auth: tuple[str, str] | None = None,
        check: bool = True,
    ) -> HttpAnswer:
        """Send exactly these bytes; `headers` and `auth` are credentials beside them."""
        effect = self._effect and request.method not in SAFE
        if effect:
            self._admit(request)
        answer = self._exchange(request, dict(headers or {}), auth, effect)
        if not effect:
            return answer
        self.trace.answered = True
        found = finding_of(answer, self._contract)
        exists = self._says_exists(answer)
        kind = Accepted if self._contract.ok.accepted else Done
        self.trace.finding = found or kind(evidence=answer.evidence())
        if check and found is not None:
            raise Answered(answer, found, exists=exists)
        return answer

    def _says_exists(self, answer: HttpAnswer) -> bool:
        parsed = matcher.parse(self._contract.repeat.exists)
        return matcher.matches(parsed, answer.status, answer.headers, answer.body())

    def _admit(self, request: Request) -> None:
        """Let one effect request through, and only the one that was frozen (laws 11, 17)."""
        with self._lock:
            if self._frozen is not None and request != self._frozen:
                raise SendRefused(
                    "this is not the request that was frozen: send call.request, and change it"
                    " only as a new version"
                )
            if self.trace.requests:
                raise SendRefused(
                    "a second effect request in one attempt: make it an operation of its own"
                )
            self.trace.requests += 1

    def _exchange(
        self,
        request: Request,
        secret: dict[str, str],
        auth: tuple[str, str] | None,
        effect: bool,
    ) -> HttpAnswer:
        if auth is not None:
            token = base64.b64encode(f"{auth[0]}:{auth[1]}".encode()).decode()
            secret["Authorization"] = f"Basic {token}"
        url = httpx2.URL(request.url)
        host = url.netloc.decode("ascii")
        head = [("Host", host), AGENT, ("Accept", "*/*"), ("Accept-Encoding", "identity")]
        own = {n.lower() for n, _ in request.headers}
        head = [(n, v) for n, v in head if n.lower() not in own]
        if request.body or request.method not in SAFE:
            head.append(("Content-Length", str(len(request.body))))
        head += [*request.headers, *secret.items(), ("Connection", "close")]
        self._wire.effect, self._wire.read_in_full = effect, False
        with httpcore2.ConnectionPool(
            network_backend=self._wire,
            ssl_context=self._ssl,
            max_keepalive_connections=0,
            retries=0,
        ) as pool:
            with pool.stream(
                request.method,
                httpcore2.URL(
                    scheme=url.raw_scheme,
                    host=url.raw_host,
                    port=url.port,
                    target=url.raw_path,
                ),
                headers=[(n.encode(), v.encode("utf-8")) for n, v in head],
                content=request.body,
            ) as response:
                content = self._read(response)
                self._wire.read_in_full = True
                headers = {
                    n.decode("latin-1").lower(): v.decode("latin-1") for n, v in response.headers
                }
                return HttpAnswer(
                    status=response.status, headers=headers, content=content, url=request.url
                )

    @staticmethod
    def _read(response: httpcore2.Response) -> bytes:
        content = b""
        for part in response.iter_stream():
            content += part
            if len(content) > ANSWER_BYTES:
                raise httpcore2.RemoteProtocolError(
                    f"the answer is larger than {ANSWER_BYTES} bytes"
                )
        return content

    def get(self, url: str, **more: Any) -> HttpAnswer:
        """Send GET; see `request`."""
        return self.request("GET", url, **more)

    def head(self, url: str, **more: Any) -> HttpAnswer:
        """Send HEAD; see `request`."""
        return self.request("HEAD", url, **more)

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
        """End this attempt's sending: connections are cut, nothing more is sent."""
        self._wire.close()


class AsyncEffectHttp:
    """`EffectHttp` for coroutines: the same client in a thread, awaited.

    A cancelled caller cuts the connection first and then waits for the thread, so that what
    was sent is known when the attempt is settled.
    """

    def __init__(self, inner: EffectHttp) -> None:
        """Wrap the client of the attempt."""
        self._inner = inner

    @property
    def trace(self) -> Trace:
        """What is known about the sending of this attempt's effect request."""
        return self._inner.trace

    def close(self) -> None:
        """End this attempt's sending."""
        self._inner.close()

    async def send(self, request: Request, **more: Any) -> HttpAnswer:
        """Send exactly these bytes; see `EffectHttp.send`."""
        return await self._away(self._inner.send, request, **more)

    async def request(self, method: str, url: str, **more: Any) -> HttpAnswer:
        """Send a request and return the answer; see `EffectHttp.request`."""
        return await self._away(self._inner.request, method, url, **more)

    async def get(self, url: str, **more: Any) -> HttpAnswer:
        """Send GET."""
        return await self.request("GET", url, **more)

    async def head(self, url: str, **more: Any) -> HttpAnswer:
        """Send HEAD."""
        return await self.request("HEAD", url, **more)

    async def post(self, url: str, **more: Any) -> HttpAnswer:
        """Send POST."""
        return await self.request("POST", url, **more)

    async def put(self, url: str, **more: Any) -> HttpAnswer:
        """Send PUT."""
        return await self.request("PUT", url, **more)

    async def patch(self, url: str, **more: Any) -> HttpAnswer:
        """Send PATCH."""
        return await self.request("PATCH", url, **more)

    async def delete(self, url: str, **more: Any) -> HttpAnswer:
        """Send DELETE."""
        return await self.request("DELETE", url, **more)

    async def _away(
        self, function: Callable[..., HttpAnswer], *args: Any, **more: Any
    ) -> HttpAnswer:
        loop = asyncio.get_running_loop()
        done: asyncio.Future[HttpAnswer] = loop.create_future()

        def work() -> None:
            try:
                answer = function(*args, **more)
            except BaseException as error:  # noqa: BLE001 - handed to the awaiting caller
                loop.call_soon_threadsafe(_settle, done, None, error)
            else:
                loop.call_soon_threadsafe(_settle, done, answer, None)

        thread = threading.Thread(target=work, name="ascertain-http", daemon=True)
        thread.start()
        try:
            return await asyncio.shield(done)
        except asyncio.CancelledError:
            self._inner.close()
            while not done.done():
                try:
                    await asyncio.shield(done)
                except asyncio.CancelledError:
                    continue
                except Exception:  # noqa: BLE001 - the cancellation goes on
                    break
            if not done.cancelled():
                done.exception()
            raise


def _settle(
    done: asyncio.Future[HttpAnswer], answer: HttpAnswer | None, error: BaseException | None
) -> None:
    if done.done():
        return
    if error is not None:
        done.set_exception(error)
    elif answer is not None:
        done.set_result(answer)


__all__ = [
    "Answered",
    "AsyncEffectHttp",
    "EffectHttp",
    "HttpAnswer",
    "finding_of",
    "freeze",
]

"""What callers send through us to a declared target: an effect becomes an operation, a read is
passed on. The caller's request is whole and durable before the first byte of it is sent."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, unquote

import httpcore2
import msgspec
from msgspec.structs import replace
from starlette.requests import ClientDisconnect
from starlette.requests import Request as Asked
from starlette.responses import Response

from ascertain.config.passages import Passage
from ascertain.config.spaces import Space
from ascertain.core.error_words import KEY_WARNINGS
from ascertain.core.errors import InputRefused, SendRefused
from ascertain.core.model import SECOND, Request, State
from ascertain.runtime.beginning import known
from ascertain.runtime.loop import away, hop
from ascertain.runtime.receipt import Receipt, error_of
from ascertain.runtime.spool import Spool
from ascertain.runtime.telemetry import telemetry
from ascertain.targets.addresses import AddressRefused, refused
from ascertain.targets.credentials import Beside, NoCredential
from ascertain.targets.gateway import (
    INLINE_BYTES,
    Digest,
    Hand,
    Told,
    digest_of,
    in_hand,
    inline,
    secrets_of,
    split_headers,
    told,
    told_again,
)
from ascertain.targets.http import AnswerTooLarge, EffectHttp
from ascertain.targets.passage import Passing, address, headers_of, path_of, query_of
from ascertain.targets.wire import DeadlinePassed

from . import shown
from .access import Caller
from .given_key import HEADERS as KEYS
from .given_key import one as one_key
from .given_key import read as read_key
from .holding import taken
from .messages import answer as as_json
from .problems import ProblemError, problem_answer, problem_of
from .serving import Serving
from .submitting import GRACE, WAIT, TargetRequest, ask_again, why

READ_WITHIN = 60 * SECOND  # µs that a target has to answer what is only read
READS = 16  # under way at once
READ_BYTES = 8 * 1024 * 1024  # of its answer
WORDS = 200  # characters of a run, an event, a title
_FORBIDDEN = re.compile(r"[\x00-\x1f\x7f]")
_BOTH = "!#$%&'()*+,/:;=?@[]~\"<>|^`{} -._"  # what a header shows as it is


@dataclass
class Wanted:
    """What a caller says beside his request."""

    key: str
    wait: float
    accept: bool
    run: str | None
    event: str | None
    title: str


@dataclass
class Sent:
    """A caller's request on its declared way: path and query byte for byte as they came."""

    asked: Asked
    passage: Passage
    path: str
    query: str
    passing: Passing


class Uploads:
    """How long a body may take: between two pieces, and in all. In seconds."""

    def __init__(self, idle: float = 30.0, total: float = 900.0) -> None:
        """The bounds."""
        self.idle, self.total = idle, total


class Gateway:
    """The way to the declared targets."""

    def __init__(self, serving: Serving) -> None:
        """Take what the configuration declares."""
        self.serving = serving
        self.uploads = Uploads()
        # Of their own: a slow read holds up no effect.
        self._readers = ThreadPoolExecutor(READS, thread_name_prefix="ascertain-read")
        serving.endings.append(lambda: self._readers.shutdown(wait=False, cancel_futures=True))
        self._targets = serving.understood.targets
        self._passages: dict[str, list[Passage]] = {}
        for one in serving.understood.passages:
            self._passages.setdefault(one.target, []).append(one)

    async def pass_on(self, asked: Asked, caller: Caller) -> Response:
        """Pass a request to its target, and answer with what the target said."""
        if caller.person:
            raise ProblemError("forbidden", "the gateway is for programs: use a token")
        name, path, query = self._address(asked, caller)
        passage = self._passage(name, asked.method, path)
        try:
            passing = headers_of(
                asked.headers.raw, passage.drop_headers, own=self._targets[name].pass_credentials
            )
        except InputRefused as error:
            raise ProblemError("body_invalid", str(error)) from error
        space = self.serving.space(caller.namespace)
        sent = Sent(asked, passage, path, query, passing)
        if not passage.action:
            return await self._read(sent, space)
        return await self._act(sent, space, _wanted(asked, self.serving.table.wait))

    def input_of(
        self, namespace: str, target: str, asked: TargetRequest, key: str
    ) -> tuple[str, dict[str, Any]]:
        """Return the action and the input of a request that is submitted through the API: what it
        would be through the gateway, where only the declared may go."""
        self._declared(target, namespace)
        try:
            path, query = path_of(asked.path.encode()), query_of(asked.query.encode())
            headers = dict(asked.headers)
            body = (asked.text or "").encode()
            if asked.json is not msgspec.UNSET:
                if asked.text is not None:  # one of them would go nowhere, and nobody would know
                    raise ProblemError("body_invalid", "give one body: json or text")
                body = msgspec.json.encode(asked.json)
                headers.setdefault("content-type", "application/json")
            raw = [(n.encode(), v.encode()) for n, v in headers.items()]
            passage = self._passage(target, asked.method, path)
            parts = split_headers(headers_of(raw, passage.drop_headers).frozen)
        except InputRefused as error:
            raise ProblemError("path_refused", f"{error}; nothing was sent") from error
        if not passage.action:
            raise ProblemError("usage", f"{asked.method} {path} only reads: use the gateway")
        if len(body) > passage.max_body:
            raise ProblemError("too_large", f"the body is larger than {passage.max_body} bytes")
        given = {"key": key, "method": asked.method, "path": path, "query": query, **parts}
        if body:
            named = digest_of([body], parts["boundary"])
            given |= {"body": inline(body), "body_sha256": named}
        return passage.action, given

    # --- where to ---

    def _declared(self, name: str, namespace: str) -> None:
        target = self._targets.get(name)
        of = target.namespaces if target is not None else ()
        if name not in self._passages or (of and namespace not in of):
            raise ProblemError(
                "unknown",
                f"no target {name!r} is declared for the gateway here: what may pass stands under"
                " [[targets.NAME.gateway]] in ascertain.toml",
            )

    def _address(self, asked: Asked, caller: Caller) -> tuple[str, str, str]:
        """Return the target, the path and the query, byte for byte as they were sent."""
        raw: bytes = asked.scope.get("raw_path") or quote(asked.url.path).encode()
        parts = raw.split(b"/", 3)
        name = unquote(parts[2].decode("latin-1")) if len(parts) > 2 else ""
        self._declared(name, caller.namespace)
        try:
            path = path_of(b"/" + (parts[3] if len(parts) > 3 else b""))
            query = query_of(asked.scope.get("query_string", b""))
        except InputRefused as error:
            raise ProblemError("path_refused", f"{error}; nothing was sent") from error
        return name, path, query

    def _passage(self, target: str, method: str, path: str) -> Passage:
        passages = self._passages[target]
        for one in passages:
            if one.pattern.matches(method, path):
                return one
        allowed = sorted({p.pattern.method for p in passages if p.pattern.reaches(path)} - {"*"})
        if allowed:
            raise ProblemError(
                "method_not_allowed", f"{method} {path} is not declared for target {target!r}",
                headers={"Allow": ", ".join(allowed)},
            )  # fmt: skip
        raise ProblemError(
            "unknown",
            f"{method} {path} is not declared for target {target!r}: add it under"
            f" [[targets.{target}.gateway]]",
        )

    # --- reads ---

    async def _read(self, sent: Sent, space: Space) -> Response:
        """Pass on what changes nothing; no operation, and nothing is kept."""
        target, method = self._targets[sent.passage.target], sent.asked.method
        body = b""
        async for piece in self._pieces(sent.asked, INLINE_BYTES):
            body += taken(piece)
        given = {n.lower() for n in target.headers}
        own = {n: v.replace("{{", "{").replace("}}", "}") for n, v in target.headers.items()}
        headers = {n: v for n, v in sent.passing.frozen if n not in given} | own
        try:
            url = address(target.base, sent.path, sent.query)
        except InputRefused as error:
            raise ProblemError("path_refused", f"{error}; nothing was sent") from error
        made = Request(method=method, url=url, headers=tuple(headers.items()), body=body)
        said = await away(self._readers, lambda: self._ask(space, sent.passage, made, sent.passing))
        return _response(said, {"Ascertain-State": "read", "Cache-Control": "no-store"})

    def _ask(self, space: Space, passage: Passage, made: Request, passing: Passing) -> Told:
        target = self._targets[passage.target]
        credentials = self.serving.understood.credentials[passage.target]
        clock = space.engine.clock
        http = EffectHttp(
            deadline=clock.boottime() + READ_WITHIN, clock=clock.boottime, effect=False,
            outside=telemetry.headers() or passing.trace, most=READ_BYTES,
        )  # fmt: skip
        if not target.private:
            http.guard = refused
        try:
            for _ in range(2):  # the second time with a new access token
                beside = credentials.ready(http)
                if target.pass_credentials:
                    beside = Beside(headers=dict(passing.credentials))
                answer = http.send(made, headers=beside.headers, **beside.arguments())
                if answer.status != 401 or not credentials.refused(beside):
                    break
            else:
                credentials.refused(beside)
        except NoCredential as error:
            raise ProblemError("no_credentials", f"target {passage.target}: {error}") from error
        except AddressRefused as error:
            raise ProblemError("target_unreachable", str(error)) from error
        except AnswerTooLarge as error:
            raise ProblemError(
                "target_unreachable", f"the target's answer has more than {READ_BYTES} bytes"
            ) from error
        except DeadlinePassed as error:
            raise ProblemError("target_slow", f"target {passage.target} did not answer") from error
        except (SendRefused, InputRefused) as error:
            raise ProblemError("body_invalid", f"{error}; nothing was sent") from error
        except (httpcore2.TimeoutException, httpcore2.NetworkError) as error:
            slow = isinstance(error, httpcore2.TimeoutException)
            code = "target_slow" if slow else "target_unreachable"
            raise ProblemError(code, f"target {passage.target}: {type(error).__name__}") from error
        except httpcore2.ProtocolError as error:
            raise ProblemError(
                "target_unreachable", f"target {passage.target} gave no answer that can be read"
            ) from error
        finally:
            http.close()
        credentials.worked(beside)
        return told(answer, secrets_of(beside))

    # --- effects ---

    async def _act(self, sent: Sent, space: Space, wanted: Wanted) -> Response:
        """Make an operation of a request, and answer with what came of it."""
        passage, passing = sent.passage, sent.passing
        parts = split_headers(passing.frozen)
        given: dict[str, Any] = {
            "key": wanted.key, "method": sent.asked.method, "path": sent.path,
            "query": sent.query, **parts,
        }  # fmt: skip
        given |= await self._body(sent, space, wanted.key, parts["boundary"])
        hand = Hand(passage.action, wanted.key)
        hand.trace = {} if telemetry.tracer is not None else passing.trace
        hand.credentials = passing.credentials
        in_hand.set(hand)
        own = self._targets[passage.target].pass_credentials
        work = _submitted(space, passage.action, given, wanted, own=own)
        self.serving.in_flight.admit()
        task = await self.serving.in_flight.within(work, wanted.wait + GRACE)
        receipt = task.result() if task.done() else await hop(_so_far, space, passage, given)
        if receipt is None:
            raise ProblemError(
                "in_progress", "it is still being begun; ask again with the same key",
                retry_after=1.0,
            )  # fmt: skip
        return await self._answer(space, receipt, hand if task.done() else None, wanted)

    async def _body(self, sent: Sent, space: Space, key: str, boundary: str) -> dict[str, Any]:
        """Take the body in: a small one whole, a large one into the spool as it comes."""
        asked, passage = sent.asked, sent.passage
        digest, first, size = Digest(boundary), bytearray(), 0

        async def counted() -> AsyncIterator[bytes]:
            nonlocal size
            async for piece in self._pieces(asked, passage.max_body):
                size += len(piece)
                digest.update(piece)
                yield piece

        source = counted()
        async for piece in source:
            first += taken(piece)
            if len(first) > INLINE_BYTES:
                break
        else:
            body = bytes(first)
            return {"body": inline(body), "body_sha256": digest.hexdigest()} if body else {}

        async def all_of_it() -> AsyncIterator[bytes]:
            yield bytes(first)
            first.clear()
            async for piece in source:
                yield piece

        spool = Spool(space.store, space.namespace, space.engine.clock)
        large = await spool.keep(all_of_it(), action=passage.action, key=key)
        named = digest.hexdigest()
        return {"body": {"sha256": large.sha256, "size": large.size}, "body_sha256": named}

    async def _pieces(self, asked: Asked, most: int) -> AsyncIterator[bytes]:
        """Read a body within its bounds; nothing of it is kept here."""
        declared = asked.headers.get("content-length", "0")
        if declared.isdecimal() and int(declared) > most:
            raise ProblemError("too_large", f"the body is larger than {most} bytes")
        stream, size = asked.stream().__aiter__(), 0
        try:
            async with asyncio.timeout(self.uploads.total):
                while True:
                    async with asyncio.timeout(self.uploads.idle):
                        piece = await anext(stream, None)
                    if piece is None:
                        return
                    size += len(piece)
                    if size > most:
                        raise ProblemError("too_large", f"the body is larger than {most} bytes")
                    if piece:
                        yield piece
        except TimeoutError as error:
            raise ProblemError("too_slow", "the body did not arrive in time; nothing was sent",
                               headers={"Connection": "close"}) from error  # fmt: skip
        except ClientDisconnect as error:
            raise ProblemError(
                "body_malformed", "the connection ended before the body did; nothing was sent"
            ) from error

    # --- answers ---

    async def _answer(
        self, space: Space, receipt: Receipt, hand: Hand | None, wanted: Wanted
    ) -> Response:
        """Return the target's own answer where there is one that says how it stands."""
        link, error = self.serving.link(receipt.id), error_of(receipt)
        headers = _headers(receipt, link, wanted)
        if error is None:
            said = told_again(receipt.result)
            now = hand.answer if hand is not None else None
            if (said is None or said.body is None) and now is not None and now.status < 400:
                said = now
            if said is not None and said.body is not None:
                return _response(said, headers)
            headers["Ascertain-Answer"] = "none" if said is None else "left_out"
            status = 200 if said is None else said.status
            return as_json(shown.operation(receipt, link), status, headers)
        refusal = hand.answer if hand is not None else None
        proven = receipt.state in (State.NOT_DONE, State.PENDING) and not receipt.unresolved
        if proven and refusal is not None and refusal.status >= 400:
            return _response(refusal, headers)
        if wanted.accept and (receipt.state is not State.NOT_DONE or receipt.unresolved):
            return as_json(shown.operation(receipt, link), 202, headers)
        problem = problem_of(error, link, await why(self.serving, error))
        if problem.status == 409:
            problem = replace(problem, retry_after=ask_again(receipt, space.store.now()))
        return problem_answer(problem, headers)


async def _submitted(
    space: Space, action: str, given: dict[str, Any], wanted: Wanted, *, own: bool
) -> Receipt:
    """Submit a request. `own`: with its caller's credentials, which are nowhere else."""
    run = await space.runs.named(wanted.run) if wanted.run else None
    bound = space.action(action).using(run=run, event=wanted.event, title=wanted.title)
    bound.options = replace(bound.options, only_here=own)
    receipt: Receipt = await bound.submit(wait=wanted.wait, **given)
    return receipt


def _so_far(space: Space, passage: Passage, given: dict[str, Any]) -> Receipt | None:
    """Read where a request's operation stands; raises InputMismatch where it is of another one,
    since they may not have been compared yet."""
    engine = space.engine
    definition = engine.definition(passage.action)
    return known(engine, definition, definition.intent(given, space.store.now()))


def _wanted(asked: Asked, usual: float) -> Wanted:
    """Read what the Ascertain headers say; ends the request where they cannot be meant."""
    key = next((k for n in KEYS if (k := one_key(asked, n)) is not None), None)
    if not key:
        raise ProblemError(
            "key_missing",
            "send Ascertain-Key: a text made from business data (an order, a product and its"
            " version), the same on every retry; nothing was sent",
        )
    wait = asked.headers.get("ascertain-wait", "")
    unresolved = asked.headers.get("ascertain-on-unresolved", "error").strip().lower()
    if unresolved not in ("error", "accept"):
        raise ProblemError("body_invalid", "Ascertain-On-Unresolved is error or accept")
    return Wanted(
        key=key, wait=_seconds(wait) if wait else usual, accept=unresolved == "accept",
        run=_words(asked, "Ascertain-Run") or None, event=_words(asked, "Ascertain-Event") or None,
        title=_words(asked, "Ascertain-Title"),
    )  # fmt: skip


def _seconds(text: str) -> float:
    try:
        found = float(text)
    except ValueError:
        found = -1.0
    if not 0 <= found <= WAIT:
        raise ProblemError("body_invalid", f"Ascertain-Wait is a number of seconds up to {WAIT:g}")
    return found


def _words(asked: Asked, name: str) -> str:
    value = asked.headers.get(name, "")
    text = read_key(name, value) if value else ""
    if len(text) > WORDS or _FORBIDDEN.search(text):
        raise ProblemError("body_invalid", f"{name} is longer than {WORDS} plain characters")
    return text


def _headers(receipt: Receipt, link: str, wanted: Wanted) -> dict[str, str]:
    codes = list(receipt.warnings)
    if wanted.run and wanted.run in re.split(r"[^\w]+", wanted.key) and "run_id" not in codes:
        codes.append("run_id")
    found = {
        "Ascertain-State": str(receipt.state),
        "Ascertain-Operation": receipt.id,
        "Ascertain-Reused": "true" if receipt.reused else "false",
        "Ascertain-Next": receipt.next_step["en"],
        "Ascertain-Link": link,
        "Cache-Control": "no-store",
    }
    if receipt.ref is not None:
        found["Ascertain-Ref"] = str(receipt.ref)
    if codes:
        found["Ascertain-Warning"] = " ".join(KEY_WARNINGS[code][0] for code in codes)
    return {name: _plain(value) for name, value in found.items()}


def _plain(text: str) -> str:
    """Return a text as a header can carry it: other characters as in addresses (RFC 3986)."""
    return quote(text, safe=_BOTH)[:2000]


def _response(said: Told, headers: dict[str, str]) -> Response:
    """Return a target's answer with ours beside it; its headers never replace ours."""
    own = {n.lower() for n in headers}
    theirs = {n: v for n, v in said.headers.items() if n not in own}
    bodiless = said.status < 200 or said.status in (204, 304)
    return Response(
        None if bodiless else said.body, status_code=said.status,
        headers={**{n: _latin(v) for n, v in theirs.items()}, **headers},
    )  # fmt: skip


def _latin(value: str) -> str:
    return value.encode("latin-1", "replace").decode("latin-1")

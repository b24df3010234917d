"""A caller's own request as an operation: what came in is frozen, with our key where the contract
says, and what the target answered is kept for whoever asks again."""

from __future__ import annotations

import base64
import binascii
import hashlib
import re
from collections.abc import Iterable, Mapping
from contextvars import ContextVar
from typing import Any
from urllib.parse import quote, unquote_to_bytes

import msgspec

from ascertain.core import keys
from ascertain.core.contract import Contract
from ascertain.core.errors import ActionInvalid, InputRefused
from ascertain.core.model import Accepted, ActFinding, Done, Large, NotDone, NotDoneKind, Request

from . import placeholders as slots
from .addresses import AddressRefused, refused
from .answer import HttpAnswer
from .base import TargetCall
from .classify.redact import MARK, SHORTEST, is_secret
from .credentials import Beside, Credentials, NoCredential
from .freezing import check as check_request
from .http import Answered, AnswerTooLarge
from .passage import (
    Pattern,
    address,
    credential_in,
    headers_of,
    overriding,
    path_of,
    query_of,
    told_of,
)
from .template import Template

INLINE_BYTES = 256 * 1024  # of a body that stands in the operation's input; more is spooled
KEPT_BYTES = 240 * 1024  # of JSON that an answer is kept in, below what a result may have
FORM = "application/x-www-form-urlencoded"
_BOUNDARY = re.compile(r'(;\s*boundary=)("[^"]{1,200}"|[^\s;"]{1,200})', re.IGNORECASE)
_PLAIN = re.compile(r"[^\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff]*")
# What a request is made of, as the input of its operation; see `described_as`.
INPUTS: dict[str, dict[str, Any]] = {
    "key": {"type": "text"},
    "method": {"type": "text"},
    "path": {"type": "text"},
    "query": {"type": "text", "required": False, "default": ""},
    "headers": {"required": False, "default": []},
    "body_sha256": {"type": "text", "required": False, "default": ""},
    "body": {"required": False},
    "boundary": {"type": "text", "required": False, "default": ""},
    "accept": {"type": "text", "required": False, "default": ""},
}
# Of these the first one counts. A multipart boundary changes with every try, and what a client
# accepts with its version: neither says what is asked for.
PINNED = ("body", "boundary", "accept")


class Told(msgspec.Struct, frozen=True):
    """An answer as a caller gets it; `body` is None where it was too large to be kept."""

    status: int
    headers: dict[str, str]
    body: bytes | None


class Hand:
    """What one request holds beside what is frozen, for as long as its caller waits: trace
    headers, his own credentials, and then the target's answer. Never stored."""

    def __init__(self, action: str, key: str) -> None:
        """For one operation only."""
        self.action, self.key = action, key
        self.trace: dict[str, str] = {}
        self.credentials: dict[str, str] = {}
        self.answer: Told | None = None


in_hand: ContextVar[Hand | None] = ContextVar("ascertain_gateway", default=None)


class Gateway(Template):
    """The action of one declared pattern; a template whose request is the caller's."""

    def __init__(
        self, name: str, description: Mapping[str, Any], contract: Contract, *, pattern: str,
        private: bool = False, own: bool = False, stamp: str = "", credentials: Credentials,
    ) -> None:  # fmt: skip
        """Check that the contract's key can be placed in any request of this kind; raises
        ActionInvalid. `private`: it may stand in our network; `own`: callers bring credentials;
        `stamp`: where our key goes if the contract has no place of its own for it."""
        self.pattern, self.private, self.own = Pattern(pattern), private, own
        self.at = stamp or contract.key.at
        if why := unplaceable(contract, self.pattern, stamp):
            raise ActionInvalid(f"action {name}: {why}")
        if own and description.get("lookup") is not None:
            raise ActionInvalid(
                f"action {name}: lookup is of no use with pass_credentials: recovery has none"
            )
        super().__init__(
            name, described_as(description, contract, stamp), contract, credentials=credentials
        )

    def check(self, given: Mapping[str, Any]) -> None:
        """Refuse a request that does not pass, whoever made it; raises InputRefused."""
        super().check(given)
        path, method = str(given["path"]), str(given["method"])
        path_of(path.encode())
        query_of(str(given.get("query", "")).encode())
        if not self.pattern.matches(method, path):
            raise InputRefused(f"{method} {path} is not {self.pattern.text}")
        self._check_query(str(given.get("query", "")))
        pairs = given.get("headers", [])
        if not _is_pairs(pairs):
            raise InputRefused("headers is no list of names and values, each a pair of texts")
        passing = headers_of((n.encode(), v.encode()) for n, v in pairs)
        manners = headers_of([(b"accept", str(given.get("accept", "")).encode())])
        told = [v for _, v in manners.frozen]
        if [list(p) for p in passing.frozen] != [list(p) for p in pairs] or (
            given.get("accept", "") not in ("", *told)
        ):
            raise InputRefused("headers: not all of them may pass to a target")
        self._check_body(given)

    def _check_query(self, query: str) -> None:
        """Refuse a credential where it would be kept: with the input, and as what was frozen."""
        if name := credential_in(query):
            fix = "send it in a header" if self.own else "declare it as auth.query of the target"
            raise InputRefused(f"the query has a credential ({name}), which would be kept: {fix}")

    def _check_body(self, given: Mapping[str, Any]) -> None:
        body = given.get("body")
        data, large = content_of(body)
        media = next((v for n, v in given.get("headers", []) if n == "content-type"), "")
        if media.partition(";")[0].strip().lower() == FORM and overriding(data):
            raise InputRefused("the form would name another method (_method)")
        named = large.sha256 if large is not None else "" if body is None else digest_of(
            [data], str(given.get("boundary", "")))  # fmt: skip
        multipart = large is not None and given.get("boundary")
        if given.get("body_sha256", "") != named and not multipart:
            raise InputRefused("body_sha256 is not the hash of the body")
        if large is not None and self.at.startswith("body:"):
            raise InputRefused(
                f"contract {self.contract.id}: the key stands in the body, and this one is larger"
                f" than {INLINE_BYTES} bytes"
            )

    def prepare(self, prepared: Any, **given: Any) -> Request:
        """Return what came in, byte for byte, with our key in its place. Pure."""
        values = self._values(prepared.target_key, given)
        where, _, place = self.at.partition(":")
        key = values["target_key"]
        path, query = values["path"], values["query"]
        accept = [["accept", values["accept"]]] if values["accept"] else []
        headers = self._headers_with([*accept, *values["headers"]], values["boundary"])
        data, large = content_of(values.get("body"))
        if where == "header":
            headers = {n: v for n, v in headers.items() if n.lower() != place.lower()}
            headers[place] = key
        elif where == "query":
            query = _in_query(query, place, key)
        elif where == "path":
            path = self.pattern.with_key(path, key)
        elif where == "body":
            data = _in_body(data, headers.get("content-type", ""), place, key)
        made = Request(
            method=values["method"],
            url=address(self.described.base, path, query),
            headers=tuple(headers.items()),
            body=data,
            large=large,
        )
        check_request(made)
        return made

    def _headers_with(self, frozen: Iterable[Iterable[str]], boundary: str) -> dict[str, str]:
        """Return the caller's headers, and the target's own in their place."""
        ours = {n: slots.text(t, {}) for n, t in self.described.headers.items()}
        taken = {n.lower() for n in ours}
        theirs = {str(n): str(v) for n, v in frozen if n not in taken}
        if boundary and "content-type" in theirs:
            theirs["content-type"] += boundary
        return {**theirs, **ours}

    def perform(self, call: TargetCall, **given: Any) -> ActFinding:
        """Send it once and return what is established, with the target's answer as result."""
        hand = in_hand.get()
        if hand is not None and (hand.action, hand.key) != (self.name, given.get("key")):
            hand = None
        if not self.private:
            call.http.guard = refused
        try:
            self.check(given)
            request = call.request or self.prepare(call, **given)
        except InputRefused as error:
            return NotDone(NotDoneKind.INVALID, f"{error}; nothing was sent")
        try:
            beside = self._beside(call, hand)
        except NoCredential as error:
            reason = f"action {self.name}: {error.reason}; nothing was sent"
            return NotDone(error.kind, reason, retry_after=error.retry_after)
        except AddressRefused as error:  # of the server that gives out access tokens
            return NotDone(NotDoneKind.TRANSIENT, str(error))
        secrets = secrets_of(beside)
        trace = hand.trace if hand is not None else {}
        try:
            answer = call.http.send(
                request, headers={**trace, **beside.headers}, **beside.arguments()
            )
        except AnswerTooLarge:
            raise
        except AddressRefused as error:
            return NotDone(NotDoneKind.TRANSIENT, str(error))
        except Answered as error:
            if hand is not None:
                hand.answer = told(error.answer, secrets)
            return self._not_let_in(error, beside)
        self._credentials.worked(beside)
        said = told(answer, secrets)
        if hand is not None:
            hand.answer = said
        found = self._success(answer, self._values(call.target_key, given))
        if isinstance(found, Done | Accepted):
            return msgspec.structs.replace(found, result=kept(said))
        return found

    def _beside(self, call: TargetCall, hand: Hand | None) -> Beside:
        if not self.own:
            return self._credentials.ready(call.http)
        if hand is None:
            raise NoCredential("its caller's credentials are not here", NotDoneKind.TRANSIENT)
        return Beside(headers=dict(hand.credentials))


def _is_pairs(given: Any) -> bool:
    return isinstance(given, list | tuple) and all(
        isinstance(pair, list | tuple) and len(pair) == len(("name", "value"))
        and all(isinstance(text, str) for text in pair)
        for pair in given
    )  # fmt: skip


def described_as(
    description: Mapping[str, Any], contract: Contract, stamp: str = ""
) -> dict[str, Any]:
    """Return a description of an action whose input is a request, for `describing.problems`."""
    request: dict[str, Any] = {
        "url": "/{target_key}" if contract.key.at.startswith("path:") else "/"
    }
    if stamp:
        request["json"] = {"stamp": "{target_key}"}  # it stands for any place in the request
    return {**description, "key": "{key}", "inputs": INPUTS, "request": request}


def unplaceable(contract: Contract, pattern: Pattern, stamp: str = "") -> str:
    """Say why the contract's key cannot be put into a request that somebody else makes; empty
    where it can."""
    rule = contract.key
    if stamp and rule.at != "none":
        return f"stamp is {stamp!r}, and the contract has its key at {rule.at}: leave stamp out"
    where, _, place = (stamp or rule.at).partition(":")
    if stamp and (where not in ("header", "query", "body") or not place):
        return f"stamp is {stamp!r}: write it like 'body:meta.op_key', 'header:X-Op', 'query:op'"
    if rule.form == "issued" or (rule.form == "natural" and rule.kind != "content"):
        return (
            f"contract {contract.id} knows the target's own key ({rule.form}), which is made of"
            " the input: describe it under [actions] instead"
        )
    if where not in ("header", "query", "path", "body", "none"):
        return f"contract {contract.id} has its key at {rule.at}: describe it under [actions]"
    if where == "header" and is_secret(place):
        return f"contract {contract.id} has its key at {where}:{place}, which is a credential"
    named = "target_key" in pattern.parameters
    if (where == "path") != named:
        return (
            f"match must hold {{target_key}}, where our key stands in the path: the contract's key"
            f" is at {rule.at}" if where == "path" else
            f"match holds {{target_key}}, and the contract's key is at {rule.at}"
        )  # fmt: skip
    return ""


# --- bodies ---


def split_headers(headers: Iterable[tuple[str, str]]) -> dict[str, Any]:
    """Return headers as inputs: what is asked for apart from what is pinned, a multipart boundary
    and what the client accepts."""
    found, cut, accept = [], "", ""
    for name, value in headers:
        if name == "accept":
            accept = value
            continue
        if name == "content-type" and value.lower().startswith("multipart/"):
            match = _BOUNDARY.search(value)
            # Only at the end, so that it can be put back as it was.
            if match is not None and match.end() == len(value):
                cut = match[0]
        found.append([name, value.removesuffix(cut) if name == "content-type" else value])
    return {"headers": found, "boundary": cut, "accept": accept}


class Digest:
    """SHA-256 of a body in which a multipart boundary counts for nothing: it is made by chance,
    so two tries of one upload differ in it alone."""

    def __init__(self, boundary: str = "") -> None:
        """`boundary` is the parameter as it stands in Content-Type; empty: none."""
        self._mark = boundary.partition("=")[2].strip('"').encode()
        self._hash, self._rest = hashlib.sha256(), b""

    def update(self, data: bytes) -> None:
        """Take the next bytes."""
        if not self._mark:
            self._hash.update(data)
            return
        rest = (self._rest + data).split(self._mark)
        for part in rest[:-1]:
            self._hash.update(part + b"\x00boundary\x00")
        last = rest[-1]
        done = max(len(last) - len(self._mark) + 1, 0)  # the rest may begin another mark
        self._hash.update(last[:done])
        self._rest = last[done:]

    def hexdigest(self) -> str:
        """Return the hash of everything; nothing may follow."""
        self._hash.update(self._rest)
        self._rest = b""
        return self._hash.hexdigest()


def digest_of(parts: Iterable[bytes], boundary: str = "") -> str:
    """Return the `Digest` of a whole body."""
    made = Digest(boundary)
    for part in parts:
        made.update(part)
    return made.hexdigest()


def inline(data: bytes) -> dict[str, str]:
    """Return a small body as JSON: its text where that is plain, else base64."""
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        text = "\x00"
    if _PLAIN.fullmatch(text):
        return {"text": text}
    return {"base64": base64.b64encode(data).decode()}


def content_of(body: Any) -> tuple[bytes, Large | None]:
    """Return a body from the input of its operation; raises InputRefused."""
    if body is None:
        return b"", None
    try:
        if "text" in body and set(body) == {"text"}:
            return str(body["text"]).encode(), None
        if set(body) == {"base64"}:
            return base64.b64decode(body["base64"], validate=True), None
        return b"", msgspec.convert(body, Large)
    except (TypeError, ValueError, binascii.Error, msgspec.ValidationError) as error:
        raise InputRefused('body is neither {"text"}, {"base64"} nor {"sha256", "size"}') from error


def _in_query(query: str, place: str, key: str) -> str:
    names = {unquote_to_bytes(p.partition("=")[0]).decode("latin-1") for p in query.split("&")}
    if place in names:
        raise InputRefused(f"the query has {place} already, where our key must stand")
    return f"{query}{'&' if query else ''}{quote(place, safe='')}={quote(key, safe='')}"


def _in_body(data: bytes, media: str, place: str, key: str) -> bytes:
    """Put our key into a JSON object or a form; of a place at the top nothing else changes."""
    kind = media.partition(";")[0].strip().lower()
    if kind == FORM:
        return _in_query(data.decode("latin-1"), place, key).encode("latin-1")
    try:
        found = msgspec.json.decode(data) if "json" in kind else None
    except (msgspec.DecodeError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise InputRefused(
            f"the contract's key stands in the body at {place}, and this body is no JSON object"
            " and no form"
        )
    if slots.at(found, place) is not None:
        raise InputRefused(f"the body has something at {place}, where our key must stand")
    if "." in place or place.startswith("/") or place in found:
        return msgspec.json.encode(slots.stamped(found, place, key))
    head = data.index(b"{") + 1
    comma = b"," if found else b""
    return data[:head] + f'"{place}":"{key}"'.encode() + comma + data[head:]


# --- answers ---


def secrets_of(beside: Beside) -> tuple[str, ...]:
    """Return what must not be told of what was sent: credentials, in every form."""
    values = [*beside.headers.values(), *beside.query.values(), beside.token]
    values += [v.partition(" ")[2] for v in beside.headers.values()]
    for value in beside.auth or ():
        values.append(value)
    if beside.auth is not None:
        values.append(base64.b64encode(":".join(beside.auth).encode()).decode())
    found = {v.strip() for v in values}
    more = {quote(v, safe="") for v in found}
    return tuple(sorted((v for v in found | more if len(v) >= SHORTEST), key=len, reverse=True))


def told(answer: HttpAnswer, secrets: Iterable[str]) -> Told:
    """Return an answer as its caller gets it: what we sent as a credential is not in it, should
    the target have echoed it."""
    body, headers = answer.content, told_of(answer.headers)
    for secret in secrets:
        body = body.replace(secret.encode(), MARK.encode())
        headers = {n: v.replace(secret, MARK) for n, v in headers.items()}
    return Told(answer.status, headers, body)


def kept(said: Told) -> dict[str, Any]:
    """Return an answer as it is kept with its operation; a body that is too large is left out."""
    data = said.body or b""
    head = {"status": said.status, "headers": said.headers, "size": len(data)}
    made = {**head, "body": inline(data)}
    try:
        keys.canonical(made, what="answer", limit=KEPT_BYTES)
    except InputRefused:
        return {**head, "body": None}
    return made


def told_again(result: Any) -> Told | None:
    """Return an answer that was kept; None where a result is none."""
    if not (isinstance(result, dict) and {"status", "headers", "size", "body"} <= set(result)):
        return None
    body = result["body"]
    data = None if body is None else content_of(body)[0]
    return Told(int(result["status"]), dict(result["headers"]), data)

"""What of a caller's request may pass through to a target: its path, its query, its headers.

Pure. A path is refused where two readers could understand it differently: only then nobody can
leave the paths that were declared.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from urllib.parse import unquote_to_bytes

import httpx2
import msgspec

from ascertain.core.errors import ActionInvalid, InputRefused

from .classify.redact import is_secret

PATH = 8 * 1024  # characters of a path
QUERY = 16 * 1024  # characters of a query
HEADER = 8 * 1024  # characters of one header's value
HEADERS = 32 * 1024  # characters of all headers that pass
PATTERN = re.compile(r"([A-Z]+|\*) (/\S*)")
PARAMETER = re.compile(r"\{(\w+)\}")
_DECODED = 3  # times that a path may be decoded by those who read it
_PATH = re.compile(rb"/[A-Za-z0-9\-._~!$&'()*+,;=:@%/]*")  # RFC 3986 section 3.3
# RFC 3986 section 3.4, and what browsers and no-code tools send as it is.
_QUERY = re.compile(rb"[A-Za-z0-9\-._~!$&'()*+,;=:@%/?\[\]|]*")
_PERCENT = re.compile(rb"%(?![0-9A-Fa-f]{2})")
# Frameworks let these take the place of the method or the path: then another operation is done
# than the one that was declared (Rails, Symfony, WordPress; read 2026-11-29).
_OVERRIDES = frozenset({
    "x-http-method-override", "x-http-method", "x-method-override", "x-original-url",
    "x-rewrite-url", "x-original-uri", "x-original-method",
})  # fmt: skip
_OVERRIDING = frozenset({"_method", "_httpmethod", "x-http-method-override"})
# About the connection (RFC 9110 section 7.6.1), or about who came before us: ours to write.
_HOP = frozenset({
    "host", "connection", "keep-alive", "te", "trailer", "transfer-encoding", "upgrade",
    "content-length", "expect", "forwarded", "via", "max-forwards", "x-real-ip", "true-client-ip",
    "x-client-ip", "x-cluster-client-ip", "cf-connecting-ip", "fastly-client-ip", "http2-settings",
    "accept-encoding", "x-host",
})  # fmt: skip
_HOPS = ("proxy-", "x-forwarded-", "ascertain-", "cf-", "x-envoy-", "sec-")
# They change from one try to the next, and say nothing about what is asked for: were they frozen,
# the same request would count as another (law 9).
_NOISE = frozenset({
    "user-agent", "date", "cache-control", "pragma", "origin", "referer", "dnt", "priority",
    "x-request-id", "x-correlation-id", "request-id", "x-amzn-trace-id", "x-cloud-trace-context",
    "traceparent", "tracestate", "baggage", "b3", "sentry-trace", "newrelic", "x-datadog-trace-id",
    "x-datadog-parent-id", "x-datadog-sampling-priority", "uber-trace-id", "idempotency-key",
    "upgrade-insecure-requests",
})  # fmt: skip
_NOISES = ("x-b3-", "x-ot-")
# WooCommerce takes these in the query, and n8n offers to send them there.
_CONSUMER = re.compile(r"consumer-?key", re.IGNORECASE)
_PAGES = re.compile(r"(page|next|continuation|cursor|sync)-?token$", re.IGNORECASE)
_CONTROL = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")
_TRACE = re.compile(r"[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}")  # W3C, level 1
# Of an answer, what the caller is told beside its body.
_TOLD = frozenset({
    "content-type", "content-language", "content-disposition", "content-encoding", "location",
    "etag", "last-modified", "link", "retry-after", "allow",
})  # fmt: skip
_UNTOLD = ("x-powered-by", "x-frame-options", "x-content-type-options", "x-xss-protection")


class Passing(msgspec.Struct, frozen=True):
    """The headers of one request, sorted: what is frozen, what goes beside it, and what was
    dropped."""

    frozen: tuple[tuple[str, str], ...]
    trace: dict[str, str]
    credentials: dict[str, str]


def path_of(raw: bytes) -> str:
    """Return a path, which begins with /, as it was sent; raises InputRefused where it could
    leave the declared ones: dot segments, empty segments, encoded separators, however often
    encoded."""
    if len(raw) > PATH:
        raise InputRefused(f"the path has more than {PATH} characters")
    if not _PATH.fullmatch(raw) or _PERCENT.search(raw):
        raise InputRefused("the path has characters that no path holds: encode them (RFC 3986)")
    seen = raw
    for _ in range(_DECODED):
        _check_segments(seen)
        decoded = unquote_to_bytes(seen)
        if decoded == seen:
            return raw.decode("ascii")
        if decoded.count(b"/") != seen.count(b"/"):
            raise InputRefused("the path has an encoded slash, which some take for a real one")
        seen = decoded
    raise InputRefused(f"the path is encoded more than {_DECODED - 1} times")


def _check_segments(path: bytes) -> None:
    if b"\\" in path or any(byte < 0x20 or byte == 0x7F for byte in path):
        raise InputRefused("the path has a backslash or a control character")
    segments = path.split(b"/")[1:]
    if b"" in segments[:-1]:
        raise InputRefused("the path has an empty segment (//)")
    # Some servers cut off what follows a semicolon first: /..;/ is /../ to them.
    if any(segment.partition(b";")[0].strip() in (b".", b"..") for segment in segments):
        raise InputRefused("the path has a segment that leads upwards (. or ..)")


def query_of(raw: bytes) -> str:
    """Return a query as it was sent; raises InputRefused for one that would name another method,
    or holds what no query may."""
    if len(raw) > QUERY:
        raise InputRefused(f"the query has more than {QUERY} characters")
    if not _QUERY.fullmatch(raw) or _PERCENT.search(raw):
        raise InputRefused("the query has characters that no query holds: encode them (RFC 3986)")
    if overriding(raw):
        raise InputRefused("the query would name another method (_method)")
    return raw.decode("ascii")


def overriding(raw: bytes) -> bool:
    """Tell whether a field of a query, or of a form, would name another method."""
    return any(name.lower() in _OVERRIDING for name in names_of(raw))


def names_of(raw: bytes) -> Iterator[str]:
    """Give the names of the fields of a query or a form, as their readers decode them."""
    for part in re.split(rb"[&;]", raw):
        name = part.partition(b"=")[0].replace(b"+", b" ")
        yield unquote_to_bytes(name).strip().decode("latin-1")


def credential_in(query: str) -> str:
    """Return the name of a query's first field that carries a credential, going by its name, or
    nothing. What says where a list goes on is none."""
    for name in names_of(query.encode()):
        plain = name.replace("_", "-")
        if (is_secret(plain) or _CONSUMER.fullmatch(plain)) and not _PAGES.search(plain):
            return name
    return ""


def address(base: str, path: str, query: str) -> str:
    """Return the whole address, byte for byte behind the base; raises InputRefused where the
    client would write it in another way, or it would lead to another host."""
    root = base.rstrip("/")
    made = f"{root}{path}" + (f"?{query}" if query else "")
    try:
        url, home = httpx2.URL(made), httpx2.URL(root)
    except httpx2.InvalidURL as error:
        raise InputRefused(f"the path cannot be sent: {error}") from error
    same = (url.scheme, url.host, url.port, url.userinfo) == (
        home.scheme, home.host, home.port, home.userinfo,
    )  # fmt: skip
    sent = (home.raw_path.rstrip(b"/") + made[len(root) :].encode("ascii")) == url.raw_path
    if not (same and sent):
        raise InputRefused("the path would not arrive as it was sent: encode it (RFC 3986)")
    return made


class Pattern:
    """A declared method and path, like `POST /orders/{order}/**`: a parameter is one segment,
    and `**` at the end is everything below."""

    def __init__(self, text: str) -> None:
        """Read it; raises ActionInvalid."""
        found = PATTERN.fullmatch(text)
        if found is None:
            raise ActionInvalid(f"match is {text!r}: write method and path, like 'POST /orders'")
        self.text, self.method, self.path = text, found[1], found[2]
        self.segments = self.path.split("/")[1:]
        self.deep = self.segments[-1] == "**"
        if self.deep:
            self.segments = self.segments[:-1]
        for segment in self.segments:
            if "*" in segment or ("{" in segment and not PARAMETER.fullmatch(segment)):
                raise ActionInvalid(
                    f"match is {text!r}: a parameter is a whole segment, {{name}}, and ** stands"
                    " only at the end"
                )
        self.parameters = tuple(m[1] for s in self.segments if (m := PARAMETER.fullmatch(s)))

    def matches(self, method: str, path: str) -> bool:
        """Tell whether a request is meant."""
        return self._of_method(method) and self.reaches(path)

    def _of_method(self, method: str) -> bool:
        return self.method in ("*", method) or (self.method == "GET" and method == "HEAD")

    def reaches(self, path: str) -> bool:
        """Tell whether a path is meant, whatever the method."""
        given = [unquote_to_bytes(s).decode("utf-8", "replace") for s in path.split("/")[1:]]
        if self.deep and len(given) < len(self.segments):
            return False
        if not self.deep and len(given) != len(self.segments):
            return False
        return all(
            bool(value) if PARAMETER.fullmatch(segment) else value == segment
            for segment, value in zip(self.segments, given, strict=False)
        )

    def with_key(self, path: str, key: str) -> str:
        """Return a path with our key where `{target_key}` stands in the pattern."""
        given = path.split("/")[1:]
        for place, segment in enumerate(self.segments):
            if segment == "{target_key}":
                given[place] = key
        return "/" + "/".join(given)


def headers_of(
    given: Iterable[tuple[bytes, bytes]], drop: Iterable[str] = (), *, own: bool = False
) -> Passing:
    """Sort the headers of a request. `own`: the caller's credentials go beside it, else they are
    dropped; ours, an Ascertain token, never pass. Raises InputRefused for what is too large or
    can be read in two ways."""
    pairs = [(n.decode("latin-1").lower(), v) for n, v in given]
    hops = [_text(n, v).split(",") for n, v in pairs if n == "connection"]
    named = {name.strip().lower() for names in hops for name in names}
    never = _HOP | _OVERRIDES | named | {n.lower() for n in drop}
    frozen: dict[str, str] = {}
    trace: dict[str, str] = {}
    credentials: dict[str, str] = {}
    for name, raw in pairs:
        if name in ("traceparent", "tracestate"):
            trace[name] = raw.decode("latin-1")
        if name in never or name.startswith(_HOPS):
            continue
        kept = frozen
        if is_secret(name):
            if not own or _ours(name, raw):
                continue
            kept = credentials
        elif name in _NOISE or name.startswith(_NOISES):
            continue
        if name in kept and name in ("content-type", "content-encoding", "authorization"):
            raise InputRefused(f"header {name} is given twice")
        glue = "; " if name == "cookie" else ", "
        kept[name] = f"{kept[name]}{glue}{_text(name, raw)}" if name in kept else _text(name, raw)
    if sum(len(n) + len(v) for n, v in (*frozen.items(), *credentials.items())) > HEADERS:
        raise InputRefused(f"the headers have more than {HEADERS} characters")
    if not _TRACE.fullmatch(trace.get("traceparent", "")):
        trace = {}
    return Passing(tuple(sorted(frozen.items())), _short(trace), credentials)


def _ours(name: str, raw: bytes) -> bool:
    return name == "authorization" and raw.strip().lower().startswith(b"bearer asc_")


def _text(name: str, raw: bytes) -> str:
    if len(raw) > HEADER:
        raise InputRefused(f"header {name} has more than {HEADER} characters")
    try:
        text = raw.decode("utf-8").strip(" \t")
    except UnicodeDecodeError as error:
        raise InputRefused(f"header {name} is no UTF-8") from error
    if _CONTROL.search(text):
        raise InputRefused(f"header {name} has a control character")
    return text


def _short(trace: dict[str, str]) -> dict[str, str]:
    most = 512  # characters of tracestate, as W3C recommends to carry
    fine = {n: v for n, v in trace.items() if len(v) <= most and v.isascii() and v.isprintable()}
    return {n: v.strip() for n, v in fine.items()}


def told_of(headers: dict[str, str]) -> dict[str, str]:
    """Return what of an answer's headers its caller is told."""
    return dict(_told(headers))


def _told(headers: dict[str, str]) -> Iterator[tuple[str, str]]:
    left = HEADERS // 4
    for name, value in headers.items():
        if name in _UNTOLD or is_secret(name) or not (name in _TOLD or name.startswith("x-")):
            continue
        left -= len(name) + len(value)
        if left >= 0 and value.isprintable():
            yield name, value

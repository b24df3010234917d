"""An answer as an action's code gets it, and what of it may be kept as evidence."""

from __future__ import annotations

import contextlib
import json
import math
import re
from collections.abc import Iterable
from email.utils import parsedate_to_datetime
from typing import Any

import msgspec

from ascertain.core import matcher

from .classify.redact import redacted

EXCERPT = 300  # characters of an answer that are kept as evidence
LONGEST_WAIT = 30 * 86400.0  # seconds: a longer Retry-After is kept as this
# Letters beyond ASCII; an escaped backslash is taken whole, and stays.
ESCAPED = re.compile(r"\\\\|(?:\\u(?!00[0-7])[0-9a-fA-F]{4})+")
# Beside the plain ones: the target's own ids of a request, and marks of a replayed answer.
KEPT_HEADERS = (
    "content-type", "location", "etag", "date", "retry-after", "request-id", "x-request-id",
    "x-correlation-id", "x-amzn-requestid", "x-github-request-id", "cf-ray",
    "idempotent-replayed", "idempotency-replayed", "x-idempotency-lookup",
)  # fmt: skip


class HttpAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """An answer, read in full. `headers` has lower-case names, and several of one name are
    joined by commas; `elapsed` is in µs."""

    status: int
    headers: dict[str, str]
    content: bytes
    url: str
    elapsed: int = 0
    reason: str = ""  # the words of the status line
    seen: dict[str, Any] = {}  # evidence, made while the credentials were known

    @property
    def text(self) -> str:
        """The body as UTF-8 text, wrong bytes replaced."""
        return self.content.decode("utf-8", "replace")

    def json(self) -> Any:
        """The body as JSON; raises ValueError if it is none."""
        try:
            return msgspec.json.decode(self.content)
        except RecursionError as error:
            raise ValueError("the answer is nested too deeply") from error

    def body(self) -> Any:
        """The body as JSON, or its text where it is none."""
        try:
            return self.json()
        except ValueError:
            return self.text

    def evidence(self) -> dict[str, Any]:
        """What of it is kept: status line, selected headers, a bounded excerpt; no credentials."""
        return self.seen or evidence_of(self.status, self.reason, self.headers, self.content)


def readable(text: str) -> str:
    """Return JSON with its letters written out where they stood as numbers: a person reads
    them, and six times as many fit into what is kept."""
    return ESCAPED.sub(_written_out, text) if "\\u" in text else text


def _written_out(found: re.Match[str]) -> str:
    with contextlib.suppress(UnicodeEncodeError):  # half a pair
        letters: str = json.loads(f'"{found[0]}"')
        return letters if found[0] != "\\\\" and letters.encode() else found[0]
    return found[0]


def evidence_of(
    status: int,
    reason: str,
    headers: dict[str, str],
    content: bytes,
    secrets: Iterable[str] = (),
) -> dict[str, Any]:
    """Return what is kept of an answer; `secrets` are the credentials that were sent."""
    secrets = tuple(secrets)
    kept = {
        n: redacted(headers[n][: 8 * EXCERPT], secrets)[:EXCERPT]
        for n in KEPT_HEADERS
        if n in headers
    }
    # More than the excerpt is redacted, so that no secret is cut in two at its end.
    text = redacted(readable(content[: 8 * EXCERPT].decode("utf-8", "replace")), secrets)
    line = redacted(f"{status} {reason[:EXCERPT]}".strip(), secrets)
    return {"status": status, "line": line, "headers": kept, "excerpt": text[:EXCERPT]}


def retry_after(answer: HttpAnswer, wait: str = "") -> float | None:
    """Return how many seconds the answer asks to wait; None for nonsense.

    It stands where the contract says (`wait`, like `body:retry_in`), else in Retry-After: a
    number, or a date relative to the answer's own Date (RFC 9110 section 10.2.3), so that the
    two clocks need not agree.
    """
    where, _, name = wait.partition(":")
    if where == "body":
        found = matcher.places(answer.body(), name)
        text = matcher.text_of(found[0]) if found else ""
    else:
        text = answer.headers.get((name or "retry-after").lower(), "").strip()
    try:
        seconds = float(text)
    except ValueError:
        seconds = _until(text, answer.headers.get("date", ""))
    if not math.isfinite(seconds) or seconds < 0:
        return None
    return min(seconds, LONGEST_WAIT)


def _until(then: str, now: str) -> float:
    try:
        span = parsedate_to_datetime(then) - parsedate_to_datetime(now)
    except (TypeError, ValueError, IndexError):
        return math.nan
    return max(span.total_seconds(), 0.0)

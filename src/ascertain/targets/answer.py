"""An answer as an action's code gets it, and what of it may be kept as evidence."""

from __future__ import annotations

import re
from collections.abc import Iterable
from email.utils import parsedate_to_datetime
from typing import Any

import msgspec

EXCERPT = 300  # characters of an answer that are kept as evidence
LONGEST_WAIT = 30 * 86400  # seconds: a longer Retry-After is kept as this
# Beside the plain ones: the target's own ids of a request, and marks of a replayed answer.
KEPT_HEADERS = (
    "content-type", "location", "etag", "date", "retry-after", "request-id", "x-request-id",
    "x-correlation-id", "x-amzn-requestid", "x-github-request-id", "cf-ray",
    "idempotent-replayed", "idempotency-replayed", "x-idempotency-lookup",
)  # fmt: skip
GONE = "[redacted]"

_CREDENTIAL = re.compile(
    r"(authori[sz]ation|cookie|token|secret|passw(or)?d|signature|credential"
    r"|(api|access|auth|private|subscription)-?key)$|^x-auth(-|$)",
    re.IGNORECASE,
)
_FIELD = re.compile(
    r"""(["']?[\w.-]*(?:token|secret|passw(?:or)?d|api_?key|authorization|cookie)["']?\s*[:=]\s*)"""
    r"""("[^"]*(?:"|$)|'[^']*(?:'|$)|[^\s,;&"'}]+)""",
    re.IGNORECASE,
)
_SCHEME = re.compile(r"\b(Bearer|Basic)\s+[\w.~+/=-]+", re.IGNORECASE)
_SHORTEST = 4  # characters of a credential that is looked for in answers


def is_credential(name: str) -> bool:
    """Tell whether a header carries a credential, going by its name (law 11).

    `Idempotency-Key` and its like are none: they are part of what is frozen.
    """
    return "idempot" not in name.lower() and bool(_CREDENTIAL.search(name))


def redact(text: str, secrets: Iterable[str] = ()) -> str:
    """Return a text without these secrets and without what looks like one."""
    for secret in secrets:
        if len(secret) >= _SHORTEST:
            text = text.replace(secret, GONE)
    return _SCHEME.sub(GONE, _FIELD.sub(rf"\g<1>{GONE}", text))


class HttpAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """An answer, read in full. `headers` has lower-case names, `elapsed` is in µs."""

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
        return msgspec.json.decode(self.content)

    def body(self) -> Any:
        """The body as JSON, or its text where it is none."""
        try:
            return self.json()
        except (ValueError, RecursionError):
            return self.text

    def evidence(self) -> dict[str, Any]:
        """What of it is kept: status line, selected headers, a bounded excerpt; no credentials."""
        return self.seen or evidence_of(self.status, self.reason, self.headers, self.content)


def evidence_of(
    status: int,
    reason: str,
    headers: dict[str, str],
    content: bytes,
    secrets: Iterable[str] = (),
) -> dict[str, Any]:
    """Return what is kept of an answer; `secrets` are the credentials that were sent."""
    secrets = tuple(secrets)
    kept = {n: redact(headers[n][:EXCERPT], secrets) for n in KEPT_HEADERS if n in headers}
    # More than the excerpt is redacted, so that no secret is cut in two at its end.
    text = redact(content[: 8 * EXCERPT].decode("utf-8", "replace"), secrets)
    line = f"{status} {reason}".strip()
    return {"status": status, "line": line, "headers": kept, "excerpt": text[:EXCERPT]}


def retry_after(headers: dict[str, str]) -> float | None:
    """Return the seconds of a Retry-After header; None for nonsense.

    A date is taken relative to the answer's own Date (RFC 9110 section 10.2.3), so that the
    two clocks need not agree; without one it is None.
    """
    value = headers.get("retry-after", "").strip()
    if re.fullmatch(r"\d{1,12}(\.\d+)?", value):
        return min(float(value), LONGEST_WAIT)
    try:
        span = parsedate_to_datetime(value) - parsedate_to_datetime(headers.get("date", ""))
    except (TypeError, ValueError, IndexError):
        return None
    return min(max(span.total_seconds(), 0.0), LONGEST_WAIT)

"""A finding as it can be kept, whatever code put into it: total, so that no truth is lost to a
wrong type on its way into the store (laws 3, 8)."""

from __future__ import annotations

import hashlib
import math
from typing import Any, overload

from msgspec.structs import replace

from ascertain.core import keys
from ascertain.core.errors import InputRefused
from ascertain.core.model import Accepted, ActFinding, Done, Finding, NotDone, NotDoneKind, Several
from ascertain.core.model import Unknown as NotKnown
from ascertain.targets.classify import describe

RESULT_BYTES = 256 * 1024  # of JSON that is kept of a result
EVIDENCE_BYTES = 256 * 1024  # of JSON that is kept of one finding's evidence
REFERENCE = 500  # characters of an effect reference; a longer one is cut and named by its hash
DEPTH = 30  # of evidence; below it stands what was there
REASON = 500


@overload
def storable(finding: Done | Accepted | NotDone) -> Done | Accepted | NotDone | NotKnown: ...
@overload
def storable(finding: ActFinding) -> ActFinding: ...
@overload
def storable(finding: Finding) -> Finding: ...
def storable(finding: Finding) -> Finding:
    """Return the same finding with nothing in it that a store cannot keep."""
    finding = replace(finding, evidence=_evidence(finding.evidence))
    match finding:
        case Done() | Accepted():
            return _with_result(replace(finding, ref=_reference(finding.ref)))
        case NotDone() if _kind(finding.kind) is None:
            kinds = ", ".join(kind.value for kind in NotDoneKind)
            said = f"NotDone was returned with a kind that is none: use one of {kinds}"
            return NotKnown(reason=said, evidence=finding.evidence)
        case NotDone():
            return replace(
                finding,
                kind=NotDoneKind(finding.kind),
                reason=_reason(finding.reason),
                retry_after=_seconds(finding.retry_after),
                stored=finding.stored is True,
            )
        case NotKnown():
            wait = _seconds(finding.retry_after)
            return replace(finding, reason=_reason(finding.reason), retry_after=wait)
        case Several():
            given: Any = finding.refs
            many = given if isinstance(given, list | tuple | set) else []
            return replace(finding, refs=[r for r in map(_reference, many) if r is not None])
        case _:
            return replace(finding, complete=finding.complete is True)


def _with_result(finding: Done | Accepted) -> Finding:
    try:
        keys.canonical(finding.result, what="result", limit=RESULT_BYTES)
    except (InputRefused, RecursionError) as error:
        # It happened; that its result cannot be kept must not make it look otherwise.
        why = str(error) if isinstance(error, InputRefused) else "its result is nested too deeply"
        return replace(finding, result=None, evidence={**finding.evidence, "result": why})
    return finding


def _kind(kind: Any) -> NotDoneKind | None:
    try:
        return NotDoneKind(kind)
    except ValueError:
        return None


def _reference(ref: Any) -> str | int | None:
    if ref is None or type(ref) is int:
        return ref
    text = _text(ref if isinstance(ref, str) else str(ref))
    if len(text) <= REFERENCE:
        return text
    return f"{text[:REFERENCE]}…{hashlib.sha256(text.encode()).hexdigest()[:16]}"


def _reason(reason: Any) -> str:
    if isinstance(reason, BaseException):
        reason = describe(reason)
    return _text(reason if isinstance(reason, str) else _named(reason))[:REASON]


def _seconds(wait: Any) -> float | None:
    """Return a number of seconds, also from text as a Retry-After header gives it."""
    if isinstance(wait, bool) or not isinstance(wait, int | float | str):
        return None
    try:
        seconds = float(wait)
    except (ValueError, OverflowError):
        return None
    return seconds if math.isfinite(seconds) else None


def _evidence(given: Any) -> dict[str, Any]:
    if given == {}:
        return {}
    left = [EVIDENCE_BYTES]
    plain = _plain(given if isinstance(given, dict) else {"given": given}, 0, left)
    cut = {"cut": f"longer than {EVIDENCE_BYTES} bytes"} if left[0] < 0 else {}
    return {} if given is None else {**plain, **cut}


def _plain(value: Any, depth: int, left: list[int]) -> Any:
    """Return plain JSON of a value; what is none, too deep or beyond the bound only by name."""
    left[0] -= 8
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int | float):
        return value if abs(value) <= keys.SAFE_INTEGER else str(value)[:REASON]
    if isinstance(value, str):
        text = _text(value)
        left[0] -= len(text)
        return text if left[0] >= 0 else "…"
    if depth >= DEPTH or left[0] < 0 or not isinstance(value, dict | list | tuple):
        return _named(value)
    if isinstance(value, dict):
        found: dict[str, Any] = {}
        for name, item in value.items():
            if left[0] < 0:
                break
            text = _text(name if isinstance(name, str) else str(name))[:REASON]
            left[0] -= len(text)
            found[text] = _plain(item, depth + 1, left)
        return found
    return [_plain(item, depth + 1, left) for item in value if left[0] >= 0]


def _named(value: Any) -> str:
    return f"<{type(value).__name__}>"  # what it holds is not known: perhaps a credential


def _text(text: str) -> str:
    """Replace what one of the databases cannot keep: lone surrogates, NUL."""
    if text.isascii() and text.isprintable():
        return text
    return text.encode("utf-8", "replace").decode().replace("\x00", "\ufffd")

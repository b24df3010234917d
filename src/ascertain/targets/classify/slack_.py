"""slack_sdk.

Source of slack_sdk 3.48.0, read 2026-11-29. By default it sends once more where a connection
was lost, also after the request was read; it raises the errors of urllib and aiohttp as they
are. urllib follows 301, 302 and 303 by a GET, unseen.
"""

from __future__ import annotations

from typing import Any

import msgspec

from .chain import frames, names
from .proof import Read, Says

_INVALID = frozenset({"SlackObjectFormationError"})  # a message that cannot be built


def says(error: BaseException) -> Says | None:
    """Return what an error proves that slack_sdk raised; None where it did not, and where the
    client below decides."""
    known = names(error, "slack_sdk")
    if known & _INVALID:
        return Says.INVALID
    return Says.MAYBE if known or _once(error) is False else None


def read(error: BaseException) -> Read | None:
    """Return the answer that an error tells of, if it answered the only request of its call."""
    answer = getattr(error, "response", None)
    status = getattr(answer, "status_code", None)
    known = "SlackApiError" in names(error, "slack_sdk")
    if not known or not isinstance(status, int) or not _once(error):
        return None
    data = getattr(answer, "data", None)
    content = data if isinstance(data, bytes) else msgspec.json.encode(data)
    return status, {**getattr(answer, "headers", {})}, content


def _once(error: BaseException) -> bool | None:
    """Tell whether the client that raised it sends once; None where none of them did."""
    seen = [(f, frame) for m, f, frame in frames(error) if m.startswith("slack_sdk.")]
    if not seen:
        return None
    if any(function == "files_upload_v2" for function, _ in seen):
        return False
    clients: list[Any] = [frame.f_locals.get("self") for _, frame in seen]
    handlers = [c.retry_handlers for c in clients if hasattr(c, "retry_handlers")]
    return bool(handlers) and not any(handlers)

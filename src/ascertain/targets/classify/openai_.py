"""openai.

Source of openai 3.57.0, read 2026-11-29. By default it sends two more times after a time-out, a
lost connection, 408, 409, 429 and 5xx, without any key, and follows redirects. Each request
carries a header that counts.
"""

from __future__ import annotations

from typing import Any

from .chain import names
from .proof import Read, Says

_COUNT = "x-stainless-retry-count"


def says(error: BaseException) -> Says | None:
    """Return what an error of openai proves; None where it is none, and where the client below,
    which raised the cause, decides."""
    known = names(error, "openai")
    if not known:
        return None
    first = _first(getattr(error, "request", None))
    if "APIConnectionError" in known and error.__cause__ is not None and first:
        return None
    return Says.MAYBE


def read(error: BaseException) -> Read | None:
    """Return the answer that an error tells of, if it answered the only request of its call."""
    if "APIStatusError" not in names(error, "openai"):
        return None
    answer = getattr(error, "response", None)
    if answer is None or answer.history or not _first(answer.request):
        return None
    return answer.status_code, dict(answer.headers), answer.content


def _first(request: Any) -> bool:
    """Tell whether a request is the first of its call, by the header that counts."""
    count: Any = getattr(request, "headers", {}).get(_COUNT)
    return bool(count == "0")

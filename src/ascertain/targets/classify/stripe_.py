"""stripe.

Source of stripe 16.1.0, read 2026-11-29. By default it sends two more times after a lost
connection, 409 and 5xx, with the same Idempotency-Key: ours, or a random one of each call. It
follows redirects unseen, with the key.
"""

from __future__ import annotations

from typing import Any

from .chain import frames, names
from .proof import Read, Says

_TRIES = frozenset({"_request_with_retries_internal", "_request_with_retries_internal_async"})
_CALLS = frozenset({"request", "request_async"})


def says(error: BaseException) -> Says | None:
    """Return what an error of stripe proves; None where it is none, and where the client below,
    which raised the cause, decides."""
    known = names(error, "stripe")
    if not known:
        return None
    places = {function for module, function, _ in frames(error) if module.startswith("stripe.")}
    if "AuthenticationError" in known and "_args_for_request_with_retries" in places:
        return Says.NO_ACCESS  # no API key, said before anything is sent
    if "APIConnectionError" in known and error.__cause__ is not None and _tries(error) == 1:
        return None
    return Says.MAYBE


def read(error: BaseException) -> Read | None:
    """Return the answer that an error tells of, if it answered the only request of its call."""
    status = getattr(error, "http_status", None)
    if not names(error, "stripe") or not isinstance(status, int) or _tries(error) != 1:
        return None
    body = getattr(error, "http_body", None) or ""
    return status, getattr(error, "headers", None) or {}, str(body).encode()


def _tries(error: BaseException) -> int | None:
    """Return how many requests the call has sent at most; None where nothing tells."""
    for module, function, frame in reversed(list(frames(error))):
        known = frame.f_locals
        if module == "stripe._http_client" and function in _TRIES:
            tried = known.get("num_retries")
            return tried + 1 if isinstance(tried, int) else None
    for module, function, frame in frames(error):
        if module == "stripe._api_requestor" and function in _CALLS:
            most = _retries(frame.f_locals)
            return most + 1 if isinstance(most, int) else None
    return None


def _retries(known: dict[str, Any]) -> Any:
    most = (known.get("options") or {}).get("max_network_retries")
    if most is not None:
        return most
    return getattr(getattr(known.get("requestor"), "_options", None), "max_network_retries", None)

"""google-api-python-client, and google-auth and httplib2 below it.

Sources of google-api-python-client 2.202.0, google-auth 2.63.0, google-auth-httplib2 0.4.4 and
httplib2 0.32.1, read 2026-11-29. httplib2 sends any request once more where the connection was
closed without an answer, without a setting against it; google-auth sends it again, twice, after
a 401. `targets.sdk.google_http` does neither, so only there an answer is known to be the first.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from .chain import frames, names, part
from .proof import Read, Says

_SEVERAL = frozenset({"next_chunk", "_execute"})  # resumable uploads and batches
_AUTHORIZED = frozenset({
    "google_auth_httplib2", "google.auth.transport.requests", "google.auth.transport.urllib3"
})  # fmt: skip
_DENIED = frozenset({"RefreshError", "DefaultCredentialsError", "ReauthFailError"})

Places = Sequence[tuple[str, str, Mapping[str, Any]]]


def says(error: BaseException) -> Says | None:
    """Return what an error proves that one of these raised; None where none did."""
    places = [(module, function, frame.f_locals) for module, function, frame in frames(error)]
    below = any(module == "httplib2" for module, _, _ in places)
    denied = names(error, "google.auth")
    known = denied or names(error, "httplib2") or names(error, "googleapiclient")
    if names(error, "google.api_core"):  # the other clients of Google retry by themselves
        return Says.MAYBE
    if not known and not below:
        return None
    if _follows(places):
        return Says.MAYBE
    if any(f == "before_request" and m.startswith("google.") for m, f, _ in places):
        return _refused(error)  # a token was asked for, before the request itself
    if not denied and any(m in _AUTHORIZED and f == "__call__" for m, f, _ in places):
        return None  # inside the asking for a token: what google-auth made of it decides
    if "DefaultCredentialsError" in denied:
        return Says.NO_ACCESS
    opening = isinstance(error, OSError) and any(
        (module, function) == ("httplib2", "connect") for module, function, _ in places
    )
    if opening or "ServerNotFoundError" in names(error, "httplib2"):
        return Says.NEVER_SENT
    return Says.MAYBE


def read(error: BaseException) -> Read | None:
    """Return the answer that an error tells of, if it answered the only request of its call."""
    if "HttpError" not in names(error, "googleapiclient"):
        return None
    answer: Any = getattr(error, "resp", None)
    places = [(module, function, frame.f_locals) for module, function, frame in frames(error)]
    executed = [k for m, f, k in places if (m, f) == ("googleapiclient.http", "execute")]
    if len(executed) != 1 or _follows(places) or executed[0].get("num_retries") != 0:
        return None
    if getattr(executed[0].get("http"), "sends_once", None) is not True:
        return None
    return int(answer.status), dict(answer), getattr(error, "content", b"")


def _refused(error: BaseException) -> Says:
    """Return what a token that was not given proves: denied for good, or for now."""
    denied = names(error, "google.auth") & _DENIED and part(error, "retryable") is not True
    return Says.NO_ACCESS if denied else Says.NEVER_SENT


def _follows(places: Places) -> bool:
    """Tell whether the failed request may have followed another of the same call."""
    requests = 0
    for module, function, known in places:
        if module == "googleapiclient.http":
            if known.get("retry_num") or function in _SEVERAL:
                return True
        elif module in _AUTHORIZED and function in ("request", "urlopen"):
            if known.get("_credential_refresh_attempt") or "response" in known:
                return True
        elif module == "httplib2":
            requests += function == "_request"
            again = known.get("seen_bad_status_line") or known.get("i", 1) != 1
            if (function == "_conn_request" and again) or (
                function == "_request" and ("response" in known or requests > 1)
            ):
                return True
    return False

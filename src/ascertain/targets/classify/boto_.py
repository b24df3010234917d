"""botocore and boto3.

Source of botocore 1.44.8, read 2026-11-29. By default it sends up to four more times after a
lost connection or answer, throttling and 5xx; for S3 also after a redirect to another region,
whatever its settings are. It counts what it sent.
"""

from __future__ import annotations

import msgspec

from .chain import chain, frames, names
from .proof import Read, Says

_NEVER = frozenset({"EndpointConnectionError", "ConnectTimeoutError"})
_INVALID = frozenset({"ParamValidationError"})
# Said while the request is signed. Not what STS answers: that is a ClientError.
_NO_ACCESS = frozenset({
    "NoCredentialsError", "PartialCredentialsError", "CredentialRetrievalError",
    "NoAuthTokenError", "TokenRetrievalError",
})  # fmt: skip


def says(error: BaseException) -> Says | None:
    """Return what an error of botocore proves; None where it is none."""
    if names(error, "boto3") or names(error, "s3transfer"):
        return Says.MAYBE  # they send several requests, e.g. the parts of an upload
    known = names(error, "botocore")
    if not known:
        return None
    if _sent_before(error):
        return Says.MAYBE
    if known & _INVALID:
        return Says.INVALID
    if known & _NO_ACCESS:
        return Says.NO_ACCESS
    return Says.NEVER_SENT if known & _NEVER or _no_tls(error, known) else Says.MAYBE


def read(error: BaseException) -> Read | None:
    """Return the answer that an error tells of, if it answered the only request of its call.

    Its body is what botocore understood of it, as JSON: `{"Error": {"Code": …}}`.
    """
    said = getattr(error, "response", None)
    if "ClientError" not in names(error, "botocore") or not isinstance(said, dict):
        return None
    about = said.get("ResponseMetadata") or {}
    status = about.get("HTTPStatusCode")
    if about.get("RetryAttempts") != 0 or not isinstance(status, int) or _sent_before(error):
        return None
    body = {name: value for name, value in said.items() if name != "ResponseMetadata"}
    try:
        content = msgspec.json.encode(body)
    except (TypeError, ValueError):
        content = b""
    return status, about.get("HTTPHeaders") or {}, content


def _sent_before(error: BaseException) -> bool:
    """Tell whether the failed request was not the first of its call, or was made while a later
    one was signed, e.g. to ask for credentials."""
    return any(
        module == "botocore.endpoint"
        and function == "_send_request"
        and frame.f_locals.get("attempts") != 1
        for module, function, frame in frames(error)
    )


def _no_tls(error: BaseException, known: frozenset[str]) -> bool:
    """Tell whether the TLS handshake failed: SSLError stands for a broken session, too."""
    return "SSLError" in known and any(
        (module, function) == ("ssl", "do_handshake")
        for one in chain(error)
        for module, function, _ in frames(one)
    )

"""smtplib: a refusal before the message's end is proof; a connection lost during it is not.

RFC 5321 section 4.2.5: once the server has answered the final dot with 250 it is responsible;
until it answers, nobody knows. smtplib (CPython 3.11, read 2026-11-29) raises SMTPDataError
only for an answer to DATA or to the message.
"""

from __future__ import annotations

import sys

from ascertain.core.model import NotDoneKind

from .chain import frames

# smtplib's steps before the message: a connection lost in one of them carried none.
_BEFORE = frozenset({
    "connect", "ehlo", "helo", "ehlo_or_helo_if_needed", "starttls", "login", "auth", "mail", "rcpt"
})  # fmt: skip
_AFTER = frozenset({"data", "quit", "__exit__"})
_NO_ACCESS = frozenset({530, 534, 535, 538})  # RFC 4954 section 6


def refusal(error: BaseException) -> NotDoneKind | None:
    """Return how a server refused before taking the mail over, or None where it is unknown."""
    if "smtplib" not in sys.modules:  # then no error of it exists
        return None
    import smtplib

    match error:
        case smtplib.SMTPRecipientsRefused():
            codes = [code for code, _ in error.recipients.values()]
            return _kind(min(codes, default=500))
        case (
            smtplib.SMTPAuthenticationError()
            | smtplib.SMTPSenderRefused()
            | smtplib.SMTPDataError()
            | smtplib.SMTPHeloError()
            | smtplib.SMTPConnectError()
        ):
            return _kind(error.smtp_code)
        case smtplib.SMTPNotSupportedError():
            return NotDoneKind.INVALID
        case smtplib.SMTPServerDisconnected():
            steps = {f for module, f, _ in frames(error) if module == "smtplib"}
            return NotDoneKind.TRANSIENT if steps & _BEFORE and not steps & _AFTER else None
    return None


def _kind(code: int) -> NotDoneKind | None:
    """4yz is a passing refusal, 5yz a lasting one (RFC 5321 section 4.2.1); else no refusal."""
    if code in _NO_ACCESS:
        return NotDoneKind.UNAUTHORIZED
    if 400 <= code < 500:
        return NotDoneKind.TRANSIENT
    return NotDoneKind.REJECTED if 500 <= code < 600 else None

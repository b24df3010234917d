"""smtplib: a refusal before the message's end is proof; a connection lost during it is not.

RFC 5321 section 4.2.5: once the server has answered the final dot with 250 it is responsible;
until it answers, nobody knows. smtplib raises SMTPDataError only for an answer to the message.
"""

from __future__ import annotations

import smtplib

from ascertain.core.model import NotDoneKind


def refusal(error: BaseException) -> NotDoneKind | None:
    """Return how a server refused before taking the mail over, or None where it is unknown."""
    match error:
        case smtplib.SMTPAuthenticationError():
            return NotDoneKind.UNAUTHORIZED
        case smtplib.SMTPRecipientsRefused():
            codes = [code for code, _ in error.recipients.values()]
            return _kind(min(codes, default=500))
        case smtplib.SMTPSenderRefused() | smtplib.SMTPDataError() | smtplib.SMTPHeloError():
            return _kind(error.smtp_code)
        case smtplib.SMTPConnectError():
            return NotDoneKind.TRANSIENT
        case smtplib.SMTPNotSupportedError():
            return NotDoneKind.INVALID
    return None


def _kind(code: int) -> NotDoneKind:
    """4yz is a passing refusal, 5yz a lasting one (RFC 5321 section 4.2.1)."""
    return NotDoneKind.TRANSIENT if 400 <= code < 500 else NotDoneKind.REJECTED

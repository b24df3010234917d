"""Which exceptions prove "never sent", and under which condition (law 13). Total.

`classify` answers NotDone only with proof; whatever nobody listed is Unknown. The client
libraries are never imported here: an exception of theirs can only exist if they are loaded.
"""

from __future__ import annotations

from typing import Any

from ascertain.core.model import NotDone, NotDoneKind, Unknown

from . import families, smtp

LONGEST = 300  # characters of an exception's text that are kept


def classify(
    error: BaseException, trace: Any = None, single_request: bool = False
) -> NotDone | Unknown:
    """Return what an exception proves about an attempt's effect.

    `trace` is the wire's own record of the attempt's one effect request: if that was begun and
    no byte of it left, whatever was raised is proof. Without it, an exception type that a
    request can never have been sent under is proof only where the action declares that it
    makes a single request.
    """
    finding = getattr(error, "finding", None)
    if isinstance(finding, NotDone | Unknown):
        return finding  # the target answered, and the contract said what that means
    reason = f"{type(error).__name__}: {error}"[:LONGEST]
    if trace is not None and trace.requests:
        return NotDone(NotDoneKind.TRANSIENT, reason) if trace.sent_nothing else Unknown(reason)
    refused = smtp.refusal(error)
    if refused is not None and single_request:
        return NotDone(refused, reason)
    if single_request and families.never_sent(error):
        return NotDone(NotDoneKind.TRANSIENT, reason)
    return Unknown(reason)

"""An answer that an SDK turned into an exception: read out of it, and judged by the contract.

It speaks for the attempt only where it is known to have answered the one request of its call:
an earlier one, of the SDK's own retries or of a fall-back, may have had its effect. What an SDK
does not keep (redirects that urllib or requests followed) is not seen here.
"""

from __future__ import annotations

from collections.abc import Callable

from ascertain.core.contract import Contract
from ascertain.core.model import NotDone, Unknown
from ascertain.targets.answer import HttpAnswer

from . import boto_, google_, httpx_, openai_, requests_, slack_, stripe_
from .answers import finding_of
from .chain import chain, part
from .proof import Read

_READERS = (
    stripe_.read, boto_.read, openai_.read, slack_.read, google_.read, httpx_.read,
    requests_.read,
)  # fmt: skip


def answer_in(error: BaseException, told_by: Callable[[BaseException], bool]) -> HttpAnswer | None:
    """Return the answer that an exception tells of; None where it tells of none, or where
    another error of a client (`told_by`) stands in its chain: then that was another request.
    """
    errors = chain(error)
    if any(isinstance(e, BaseExceptionGroup) for e in errors):
        return None
    tellers = [e for e in errors if told_by(e)]
    read = _read(tellers[0]) if tellers else None
    if read is None:
        return None
    one, *others = (part(e, "response") for e in tellers)
    if any(one is None or other is not one for other in others):
        return None  # openai's error and httpx2's below it have one in common
    status, headers, content = read
    low = {str(name).lower(): _text(value) for name, value in headers.items()}
    return HttpAnswer(status=status, headers=low, content=content, url="")


def judged(answer: HttpAnswer, contract: Contract, reason: str) -> NotDone | Unknown:
    """Return what such an answer amounts to by the contract: a success that was raised as an
    exception is Unknown."""
    finding = finding_of(answer, contract)
    if isinstance(finding, NotDone | Unknown):
        return finding
    return Unknown(reason, evidence=answer.evidence())


def _read(error: BaseException) -> Read | None:
    """Return the first answer that a reader finds; what an SDK's other version keeps elsewhere
    is none."""
    for reader in _READERS:
        try:
            found = reader(error)
        except Exception:  # noqa: BLE001, S112 - total: an unreadable answer is unknown
            continue
        if found is not None:
            return found
    return None


def _text(value: object) -> str:
    """Return a header's value; urllib's are lists."""
    return ",".join(map(str, value)) if isinstance(value, list | tuple) else str(value)

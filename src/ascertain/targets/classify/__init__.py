"""Which exceptions prove "never sent", and under which condition (law 13). Total.

`classify` answers NotDone only with proof; whatever nobody listed is Unknown. The client
libraries are never imported here: an exception of theirs can only exist if they are loaded.
"""

from __future__ import annotations

from typing import Any, Protocol

from ascertain.core.model import NotDone, NotDoneKind, Unknown

from . import aiohttp_, httpx_, os_errors, requests_, smtp_
from .chain import carried, chain
from .proof import Says
from .redact import redacted

LONGEST = 300  # characters of an exception's text that are kept
_FAMILIES = (httpx_.says, requests_.says, aiohttp_.says, os_errors.says)
_CLIENTS = (httpx_.says, requests_.says, aiohttp_.says)


class Seen(Protocol):
    """The wire's own record of an attempt: `targets.base.SendTrace`."""

    requests: int
    finding: Any

    @property
    def sent_nothing(self) -> bool:
        """Whether no byte of an effect request has left."""


def classify(
    error: BaseException,
    trace: Seen | None = None,
    single_request: bool = False,  # noqa: FBT001, FBT002 - the third question, asked by position
) -> NotDone | Unknown:
    """Return what an exception proves about an attempt's effect.

    `trace`: given only where the runtime saw every byte of the attempt, i.e. the action sends
    through `call.http` alone; then it alone decides once an effect request was admitted: the
    answer's own finding, or "never sent" if no byte left. Without it, an exception proves
    "never sent" only by its type, and only where the action declares `single_request`.
    """
    finding = getattr(error, "finding", None)
    if isinstance(finding, NotDone | Unknown):
        return finding  # the target answered, and the contract said what that means
    reason = describe(error)
    if trace is not None and trace.requests:
        if isinstance(trace.finding, NotDone):
            return trace.finding  # the one effect request was refused, whatever came after
        if trace.sent_nothing:
            return NotDone(NotDoneKind.TRANSIENT, reason)
        return Unknown(reason, evidence=getattr(trace.finding, "evidence", {}))
    kind = never_sent(error) if single_request else None
    return NotDone(kind, reason) if kind is not None else Unknown(reason)


def describe(error: BaseException) -> str:
    """Return an exception in one bounded line, naming its type and what caused it, without
    credentials: clients put whole addresses into their texts."""
    text = _named(error)
    if error.__cause__ is not None:
        text += f" (from {_named(error.__cause__)})"
    return redacted(text)[:LONGEST]


def _named(error: BaseException) -> str:
    try:
        return f"{type(error).__name__}: {error}"[: 10 * LONGEST]
    except Exception:  # noqa: BLE001 - an exception that cannot say what it is
        return type(error).__name__


def never_sent(error: BaseException) -> NotDoneKind | None:
    """Return how an exception proves that its request never left, or None where it does not.

    Says nothing about other requests of the attempt, except that another client error in its
    chain (a fall-back after a lost answer) takes the proof away. An action's own exception
    speaks through what caused it; a group only if each of its members is proof.
    """
    if isinstance(error, BaseExceptionGroup):
        kinds = {never_sent(e) for e in error.exceptions}
        return None if None in kinds else kinds.pop()
    errors = chain(error)
    if error.__traceback__ is None:  # nothing shows what came before it
        return None
    if any(ask(e) is Says.MAYBE for e in errors for ask in _CLIENTS):
        return None
    for one in errors:
        if isinstance(one, BaseExceptionGroup):
            return never_sent(one)
        refused = smtp_.refusal(one)
        if refused is not None:
            return refused
        said = next((s for ask in _FAMILIES if (s := ask(one)) is not None), None)
        if said is Says.LOOK_INSIDE and not carried(one):
            return None
        if said is Says.MAYBE:
            return None
        if said in (Says.NEVER_SENT, Says.INVALID):
            return NotDoneKind.INVALID if said is Says.INVALID else NotDoneKind.TRANSIENT
    return None

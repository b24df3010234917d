"""Which exceptions prove "never sent", and under which condition (law 13). Total.

`classify` answers NotDone only with proof; whatever nobody listed is Unknown. The client
libraries are never imported here: an exception of theirs can only exist if they are loaded, and
is known by the names of its module and class, and by the frames that it passed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Protocol

from ascertain.core.contract import NO_CONTRACT, Contract
from ascertain.core.model import NotDone, NotDoneKind, Unknown

from . import (
    aiohttp_,
    boto_,
    google_,
    httpx_,
    openai_,
    os_errors,
    requests_,
    slack_,
    smtp_,
    stripe_,
)
from .chain import carried, chain, part
from .proof import Says
from .redact import redacted

LONGEST = 300  # characters of an exception's text that are kept
_CLIENTS = (
    stripe_.says, boto_.says, openai_.says, slack_.says, google_.says, httpx_.says,
    requests_.says, aiohttp_.says,
)  # fmt: skip
_FAMILIES = (*_CLIENTS, os_errors.says)
_KINDS = {
    Says.NEVER_SENT: NotDoneKind.TRANSIENT,
    Says.INVALID: NotDoneKind.INVALID,
    Says.NO_ACCESS: NotDoneKind.UNAUTHORIZED,
}


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
    contract: Contract = NO_CONTRACT,
) -> NotDone | Unknown:
    """Return what an exception proves about an attempt's effect.

    `trace`: given only where the runtime saw every byte of the attempt, i.e. the action sends
    through `call.http` alone; then it alone decides once an effect request was admitted: the
    answer's own finding, or "never sent" if no byte left. Without it, an exception proves
    "never sent" only by its type, and only where the action declares `single_request`. There an
    answer inside an SDK's exception counts too, as far as the contract goes.
    """
    finding = part(error, "finding")
    if isinstance(finding, NotDone | Unknown):
        return finding  # the target answered, and the contract said what that means
    reason = describe(error)
    if trace is not None and trace.requests:
        if isinstance(trace.finding, NotDone):
            return trace.finding  # the one effect request was refused, whatever came after
        if trace.sent_nothing:
            return NotDone(NotDoneKind.TRANSIENT, reason)
        return Unknown(reason, evidence=getattr(trace.finding, "evidence", {}))
    if not single_request:
        return Unknown(reason)
    from .answered import answer_in, judged  # which imports what imports this package

    answer = answer_in(error, _told)
    if answer is not None:
        return judged(answer, contract, reason)
    kind = never_sent(error)
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
    if any(_said(e, (ask,)) is Says.MAYBE for e in errors for ask in _CLIENTS):
        return None
    for one in errors:
        if isinstance(one, BaseExceptionGroup):
            return never_sent(one)
        refused = smtp_.refusal(one)
        if refused is not None:
            return refused
        said = _said(one, _FAMILIES)
        if said is Says.LOOK_INSIDE and not carried(one):
            return None
        if said is Says.MAYBE:
            return None
        if said in _KINDS:
            return _KINDS[said]
    return None


def _said(error: BaseException, families: Iterable[Callable[..., Says | None]]) -> Says | None:
    """Return what the first family says that knows an exception; None where none does. One that
    looks different from what a family has seen may have been sent."""
    try:
        return next((s for ask in families if (s := ask(error)) is not None), None)
    except Exception:  # noqa: BLE001 - total, also with another version of a client
        return Says.MAYBE


def _told(error: BaseException) -> bool:
    """Tell whether an exception is of a client, or of the system below it."""
    return _said(error, _FAMILIES) is not None

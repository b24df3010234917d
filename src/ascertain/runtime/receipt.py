"""What a caller gets: the state in words, the effect reference, who is next."""

from __future__ import annotations

from typing import Any

import msgspec

from ascertain.core import gates, words
from ascertain.core.contract import Terms, identity
from ascertain.core.draft import Case
from ascertain.core.errors import (
    AccessRejected,
    ApprovalMissing,
    AscertainError,
    GaveUp,
    InProgress,
    InputRejected,
    InReview,
    OperationNotDone,
    OutcomeUnknown,
    StillOpen,
    TargetHeld,
    TemporarilyRefused,
)
from ascertain.core.model import Reason, State, Status, WaitingOn
from ascertain.core.reconcile import World, protection_now


class Receipt(msgspec.Struct, frozen=True, kw_only=True):
    """The answer about one operation, durable when you hold it.

    `next_step` says what happens now and who does it; `user_message` (en, zh) is safe to show
    to an end user and never says done before it is. `assumptions` are what the recovery rests
    on beside the vendor's word; `verified` is the day on which a self-test found the contract to
    hold in this scope, or empty. Times in µs since 1970 UTC.
    """

    id: str
    namespace: str
    action: str
    key: str
    title: str
    state: State
    reason: Reason
    waiting_on: WaitingOn
    due_at: int | None
    owner: str
    ref: str | None
    result: Any
    reused: bool
    protection: str
    assumptions: tuple[str, ...]
    attempts: int
    lookups: int
    target_key: str
    confirmed_at: int | None
    confirmed_by: str
    next_step: dict[str, str]
    user_message: dict[str, str]
    run: str | None = None
    verified: str = ""
    warnings: tuple[str, ...] = ()  # what the key looks as if it held: run_id, uuid, clock

    @property
    def done(self) -> bool:
        """Whether the effect happened and its reference is known."""
        return self.state is State.DONE

    @property
    def unresolved(self) -> bool:
        """Whether it is not known what happened, or nobody has been able to tell."""
        return self.state in (State.UNKNOWN, State.RUNNING) or self.reason is Reason.LEFT

    def raise_for_state(self) -> Receipt:
        """Return itself if done or accepted, else raise the error of its state."""
        error = error_of(self)
        if error is not None:
            raise error
        return self


def receipt(
    case: Case, world: World, *, reused: bool = False, warnings: tuple[str, ...] = ()
) -> Receipt:
    """Build the receipt of an operation as it stands."""
    operation, status = case.operation, case.status
    return Receipt(
        id=operation.id,
        namespace=operation.namespace,
        action=operation.action,
        key=operation.key,
        title=operation.title,
        state=status.state,
        reason=status.reason,
        waiting_on=status.waiting_on,
        due_at=status.due_at,
        owner=status.owner,
        ref=status.ref,
        result=msgspec.json.decode(status.result) if status.result else None,
        reused=reused,
        protection=protection_now(status, case.terms, world).value,
        assumptions=assumptions(case.terms),
        attempts=status.attempts,
        lookups=status.lookups,
        target_key=status.target_key,
        confirmed_at=status.confirmed_at,
        confirmed_by=status.confirmed_by,
        next_step={lang: _next_step(status, world, lang) for lang in words.LANGUAGES},
        user_message={lang: words.user_message(status, lang) for lang in words.LANGUAGES},
        run=operation.run,
        verified=case.terms.verified,
        warnings=warnings,
    )


def _next_step(status: Status, world: World, lang: str) -> str:
    """Return the next step; where its target is paused, with who paused it and why."""
    text = words.next_step(status, lang)
    gate = (world.gates or {}).get(status.action)
    if gate is None or status.said not in gates.CODES or not gate.by:
        return text
    return text + words.paused(gate.by, gate.why, lang)


def assumptions(terms: Terms) -> tuple[str, ...]:
    """Name what is assumed about the target, with its value, e.g. `late=30s`."""
    shown = []
    for name in terms.assumed:
        value = getattr(terms, name, None)
        timed = isinstance(value, int) and not isinstance(value, bool)
        shown.append(f"{name}={words.duration(int(value or 0))}" if timed else name)
    if identity(terms) or terms.quiet is not None:  # else nothing is made again because it is gone
        shown.append("nobody_deletes")
    return tuple(shown)


_REFUSALS: dict[Reason, type[OperationNotDone]] = {
    Reason.INVALID: InputRejected,
    Reason.REJECTED: InputRejected,
    Reason.UNAUTHORIZED: AccessRejected,
    Reason.GAVE_UP: GaveUp,
}


def error_of(r: Receipt) -> AscertainError | None:
    """Return the error that a call raises for a state, or None where it returns a receipt."""
    kind: type[AscertainError]
    match r.state:
        case State.DONE | State.ACCEPTED:
            return None
        case State.RUNNING:
            kind = InProgress
        case State.UNKNOWN:
            kind = InReview if r.waiting_on is WaitingOn.REVIEW else OutcomeUnknown
        case State.PENDING if r.waiting_on is WaitingOn.APPROVAL:
            kind = ApprovalMissing
        case State.PENDING if r.waiting_on is WaitingOn.TARGET:
            kind = TargetHeld
        case State.PENDING:
            held = r.next_step.get("en", "").startswith(words.HELD)
            kind = StillOpen if held else TemporarilyRefused
        case _ if r.reason is Reason.LEFT:
            kind = OutcomeUnknown
        case _:
            kind = _REFUSALS.get(r.reason, OperationNotDone)
    text = f"{r.action} {r.key}: {r.next_step['en']}"
    return kind(text, operation=r.id, receipt=r, owner=r.owner, due_at=r.due_at)

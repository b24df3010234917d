"""What an answer amounts to by its contract (law 13). Total: what is not listed is Unknown."""

from __future__ import annotations

from typing import Any

from ascertain.core import matcher
from ascertain.core.contract import NO_CONTRACT, Contract
from ascertain.core.levels import doubts_success
from ascertain.core.model import Accepted, ActFinding, Done, NotDone, NotDoneKind, Unknown
from ascertain.targets.answer import HttpAnswer, retry_after


def says(text: str, answer: HttpAnswer) -> bool:
    """Tell whether an answer matches a matcher's text; an empty one matches nothing."""
    return matcher.matches(matcher.parse(text), answer.status, answer.headers, answer.body())


def exists(answer: HttpAnswer, contract: Contract) -> bool:
    """Tell whether the answer says that our identity exists already: read it back (law 6)."""
    return contract.protocol == "http" and says(contract.repeat.exists, answer)


def finding_of(answer: HttpAnswer, contract: Contract) -> ActFinding | None:
    """Return what an answer amounts to; None where it is a success by the contract.

    What speaks of an effect that may be there (exists, busy, mismatch) is looked at first, so
    that a broad `refused` cannot turn it into "not done". A refusal is proof only where the
    contract lists it as given before processing. Where nobody whose word counts says which answer
    is success, a 2xx is left to the action's own code to judge.
    """
    seen, line = answer.evidence(), f"HTTP {answer.status}"
    wait = retry_after(answer, contract.wait)
    if contract.protocol != "http":  # its words are not about this answer
        return Unknown(line, wait, evidence=seen)
    for text, reason in (
        (contract.repeat.exists, "the target says that it exists already"),
        (contract.repeat.busy, "the target is still working on it"),
        (contract.repeat.mismatch, "the target knows our key with another content"),
    ):
        if says(text, answer):
            return Unknown(f"{line}: {reason}", wait, evidence=seen)
    refused = contract.refused
    for kind, text in (
        (NotDoneKind.UNAUTHORIZED, refused.unauthorized),
        (NotDoneKind.THROTTLED, refused.throttled),
        (NotDoneKind.TRANSIENT, refused.transient),
        (NotDoneKind.INVALID, refused.invalid),
        (NotDoneKind.REJECTED, refused.rejected),
    ):
        if says(text, answer):
            stored = says(contract.repeat.stored, answer)
            return NotDone(kind, line, retry_after=wait, stored=stored, evidence=seen)
    success = contract is NO_CONTRACT or says(contract.ok.when, answer)
    if doubts_success(contract):  # what is said of it can only narrow what it may be
        success = success and answer.status // 100 == 2
    return None if success else Unknown(line, wait, evidence=seen)


def success_of(
    answer: HttpAnswer, contract: Contract, ref: Any = None
) -> Done | Accepted | Unknown:
    """Return what a success amounts to by the contract alone.

    It is Unknown without a contract, or where `ok.when` is only from memory or at second hand and
    not accepted: only the action's own code can say that it is done.
    """
    if doubts_success(contract):
        reason = f"HTTP {answer.status}: no contract that counts says that this is success"
        return Unknown(reason, evidence=answer.evidence())
    kind = Accepted if contract.ok.accepted else Done
    return kind(ref=ref, evidence=answer.evidence())

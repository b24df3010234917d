"""One root; one class is one stable code. The default message is the class docstring.

Every raised message names the operation and the next step. The code is the HTTP problem type,
the CLI text and the key of the English and Chinese sentences in `core.words`.
"""

from __future__ import annotations

from typing import Any


class AscertainError(Exception):
    """Something in Ascertain went wrong."""

    code = "error"

    def __init__(self, message: str = "", **facts: Any) -> None:
        """Keep the message (default: the class docstring) and the facts behind it."""
        self.facts = facts
        super().__init__(message or (type(self).__doc__ or "").strip())

    def __getattr__(self, name: str) -> Any:
        """Give a fact by its name, e.g. `error.operation`."""
        if name != "facts" and name in self.facts:
            return self.facts[name]
        raise AttributeError(name)


class UsageError(AscertainError):
    """The call is wrong; nothing was recorded and nothing was sent."""

    code = "usage"


class KeyRefused(UsageError):
    """The key cannot be used; make it from stable business data."""

    code = "key_refused"


class KeyMissing(UsageError):
    """The action's key is given by the caller, and none was given; nothing was recorded."""

    code = "key_missing"


class KeyMismatch(UsageError):
    """The key that was given is not the key of this input; nothing was recorded."""

    code = "key_mismatch"


class KeyWarning(UserWarning):
    """The key looks as if it changed on every retry; nothing protects against duplicates then."""


class InputRefused(UsageError):
    """The input cannot be stored as canonical JSON; nothing was recorded."""

    code = "input_refused"


class InputMismatch(UsageError):
    """The key exists with another input; supersede the operation to change it."""

    code = "input_mismatch"


class UnknownAction(UsageError):
    """No action of this name is registered here; import the module that declares it."""

    code = "unknown_action"


class UnknownOperation(UsageError):
    """No such operation in this namespace."""

    code = "unknown_operation"


class UnknownNamespace(UsageError):
    """This namespace is not served here."""

    code = "unknown_namespace"


class ActionInvalid(UsageError):
    """The action's declaration is wrong."""

    code = "action_invalid"


class ConfigInvalid(UsageError):
    """The configuration cannot be meant as it stands; `problems` has each with file and line."""

    code = "config_invalid"


class ContractInvalid(UsageError):
    """The contract is impossible or has a field that nobody knows."""

    code = "contract_invalid"


class NotAllowed(UsageError):
    """Who asks has not the right to do this; nothing was changed."""

    code = "not_allowed"


class ApprovalMissing(UsageError):
    """The operation waits for an approval; nothing was sent."""

    code = "approval_missing"


class ApprovalStale(UsageError):
    """What was approved is not what would be sent; ask for a new approval."""

    code = "approval_stale"


class Refused(UsageError):
    """The operation's state does not allow this."""

    code = "refused"


class Conflict(UsageError):
    """Something newer happened to the operation; read it again before deciding."""

    code = "conflict"


class SendRefused(UsageError):
    """The request was not sent: it would break a law of this attempt."""

    code = "send_refused"


class OperationNotDone(AscertainError):
    """Proven: the effect did not happen."""

    code = "not_done"


class InputRejected(OperationNotDone):
    """The target refused the input; submit a corrected one that supersedes this operation."""

    code = "input_rejected"


class AccessRejected(OperationNotDone):
    """The target refused the authorization; renew it and the operation becomes due."""

    code = "access_rejected"


class TemporarilyRefused(OperationNotDone):
    """Not done so far; it is tried again by itself."""

    code = "temporarily_refused"


class GaveUp(OperationNotDone):
    """Not done, and not tried again by itself."""

    code = "gave_up"


class OutcomeUnknown(AscertainError):
    """It is not known whether the effect happened; do not repeat it, it is being looked into."""

    code = "outcome_unknown"


class InProgress(AscertainError):
    """Another attempt is working on the operation; wait, or ask again later."""

    code = "in_progress"


class InReview(AscertainError):
    """A person has to decide; the operation waits in the review queue."""

    code = "in_review"


class LeaseLost(AscertainError):
    """This attempt no longer holds the operation; report what happened, send nothing more."""

    code = "lease_lost"


class StillOpen(AscertainError):
    """The version before is not settled yet; this one waits for it."""

    code = "still_open"


class TargetHeld(AscertainError):
    """The target is paused, or does not answer now; the operation waits for it, nothing is lost."""

    code = "paused"


class StoreError(AscertainError):
    """The store cannot be used."""

    code = "store"


class StoreBusy(StoreError):
    """The store is locked by another process; nothing was written."""

    code = "store_busy"


class StoreUnavailable(StoreError):
    """The store cannot be reached or written; nothing is sent until it can."""

    code = "store_unavailable"


class StoreCorrupt(StoreError):
    """The store's file is damaged; nothing is sent. Restore a copy, then say so with
    `ascertain store restored`."""

    code = "store_corrupt"


class SchemaMismatch(StoreError):
    """The store was written by another version of Ascertain."""

    code = "schema_mismatch"

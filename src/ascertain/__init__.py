"""Ascertain: know what happened before you try again.

Records the intent before acting, keeps "outcome unknown" as a state of its own, finds out from
the target what happened, repeats only what is proven not to have happened or what the target
protects, and hands the rest to a named person with the evidence.
"""

from typing import TYPE_CHECKING as _TYPE_CHECKING

from ascertain.config import from_config, from_config_async, read_config
from ascertain.contracts.catalogue import read as read_contracts
from ascertain.core.contract import Contract
from ascertain.core.errors import (
    AccessRejected,
    ActionInvalid,
    ApprovalMissing,
    ApprovalStale,
    AscertainError,
    ConfigInvalid,
    Conflict,
    ContractInvalid,
    GaveUp,
    InProgress,
    InputMismatch,
    InputRefused,
    InputRejected,
    InReview,
    KeyMismatch,
    KeyMissing,
    KeyRefused,
    KeyWarning,
    LeaseLost,
    OperationNotDone,
    OutcomeUnknown,
    Refused,
    SchemaMismatch,
    SendRefused,
    StillOpen,
    StoreBusy,
    StoreCorrupt,
    StoreError,
    StoreUnavailable,
    TargetHeld,
    TemporarilyRefused,
    UnknownAction,
    UnknownOperation,
    UsageError,
)
from ascertain.core.model import (
    Absent,
    Accepted,
    Done,
    NotDone,
    NotDoneKind,
    Reason,
    Request,
    Several,
    State,
    Unknown,
    WaitingOn,
)
from ascertain.core.people import Answer
from ascertain.runtime.ledger import Ledger
from ascertain.runtime.opening import open, open_async, open_store
from ascertain.runtime.receipt import Receipt
from ascertain.runtime.recovery import Report

if _TYPE_CHECKING:
    from ascertain.runtime.aio import AsyncLedger

__version__ = "0.1.0"

__all__ = [
    "Absent",
    "Accepted",
    "AccessRejected",
    "ActionInvalid",
    "Answer",
    "ApprovalMissing",
    "ApprovalStale",
    "AscertainError",
    "AsyncLedger",
    "ConfigInvalid",
    "Conflict",
    "Contract",
    "ContractInvalid",
    "Done",
    "GaveUp",
    "InProgress",
    "InReview",
    "InputMismatch",
    "InputRefused",
    "InputRejected",
    "KeyMismatch",
    "KeyMissing",
    "KeyRefused",
    "KeyWarning",
    "LeaseLost",
    "Ledger",
    "NotDone",
    "NotDoneKind",
    "OperationNotDone",
    "OutcomeUnknown",
    "Reason",
    "Receipt",
    "Refused",
    "Report",
    "Request",
    "SchemaMismatch",
    "SendRefused",
    "Several",
    "State",
    "StillOpen",
    "StoreBusy",
    "StoreCorrupt",
    "StoreError",
    "StoreUnavailable",
    "TargetHeld",
    "TemporarilyRefused",
    "Unknown",
    "UnknownAction",
    "UnknownOperation",
    "UsageError",
    "WaitingOn",
    "from_config",
    "from_config_async",
    "open",
    "open_async",
    "open_store",
    "read_config",
    "read_contracts",
]


def __getattr__(name: str) -> object:
    """Load asyncio only for those who use it: it is a third of the time of importing us."""
    if name == "AsyncLedger":
        from ascertain.runtime.aio import AsyncLedger

        return AsyncLedger
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

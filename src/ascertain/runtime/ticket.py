"""What a caller may say beside the input, and what an attempt in hand is."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from ascertain.core.draft import Case
from ascertain.core.model import Attempt, Record, Request

from .action import Definition

# What is written in the same commit as a new operation, by its id.
Beside = Callable[[str], tuple[tuple[str, Record], ...]]


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """What a caller may say beside the input; see `Action.using`."""

    run: str | None = None
    event: str | None = None
    title: str = ""
    supersedes: str | None = None  # operation id
    compensates: str | None = None
    repeats: str | None = None
    reason: str = ""
    override: str = ""  # who takes the risk of not waiting for the version before (law 10)
    source: str = ""
    due_at: int | None = None
    key: str | None = None  # instead of the template: repeat, compensate
    given_key: str | None = None  # what the caller gives for {key} in the template
    beside: Beside | None = None
    only_here: bool = False  # the caller holds what nobody else has, e.g. his own credentials


class Ticket(msgspec.Struct, kw_only=True):
    """A claimed attempt: what may be done now, and until when.

    `deadline` is on the local clock that counts suspend, from before the claim was queued.
    """

    case: Case
    attempt: Attempt
    definition: Definition
    input: dict[str, Any] | None
    request: Request | None
    deadline: int

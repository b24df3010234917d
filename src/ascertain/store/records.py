"""Rows to records and back: the columns of a table are the fields of its record."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, TypeVar

import msgspec

from ascertain.core.model import (
    Approval,
    Attempt,
    Control,
    Evidence,
    Expected,
    FrozenRequest,
    Incarnation,
    Operation,
    Record,
    Reference,
    Review,
    Run,
    Snapshot,
    State,
    Status,
)

# Every table by name, in the order of an export: what is spoken of comes before what speaks of it.
LEDGER: tuple[str, ...] = (
    "meta",
    "incarnation",
    "operation",
    "unsettled",
    "settled",
    "attempt",
    "evidence",
    "reference",
    "request",
    "review",
    "approval",
    "control",
    "run",
    "expected",
)
BOOKS: tuple[str, ...] = (  # core/books.py
    "event",
    "delivery",
    "subject",
    "account",
    "member",
    "session",
    "api_token",
    "link",
    "audit",
    "cost",
    "asset",
    "gate",
    "watch",
    "spooled",
    "blob",
    "bulk",
    "tally",
)
TABLES = (*LEDGER, *BOOKS)
R = TypeVar("R", bound=Record)
FLAGS = frozenset({"verify", "hard", "on_absence", "without_proof", "pruned", "beside"})


@cache
def fields(record: type[Record]) -> tuple[str, ...]:
    """Return the names of a record's fields in order."""
    return tuple(field.name for field in msgspec.structs.fields(record))


FIELDS: dict[type[Record], tuple[str, ...]] = {
    record: fields(record)
    for record in (
        Approval,
        Attempt,
        Control,
        Evidence,
        Expected,
        FrozenRequest,
        Incarnation,
        Operation,
        Reference,
        Review,
        Run,
        Status,
    )
}
WIDTH = len(FIELDS[Operation])


def named(names: Sequence[str], row: Sequence[Any]) -> dict[str, Any]:
    """Return a row by column name; SQLite's 0 and 1 become what they mean."""
    return {
        name: bool(value) if name in FLAGS else value
        for name, value in zip(names, row, strict=True)
    }


def read(record: type[R], row: Sequence[Any]) -> R:
    """Return a row as its record; a value that the record does not know is a damaged store."""
    values = named(FIELDS.get(record) or fields(record), row)
    if record is FrozenRequest:
        values["request"] = values["request"].encode()
    return msgspec.convert(values, record, builtin_types=(bytes,))


def snapshot(row: Sequence[Any]) -> Snapshot:
    """Return a joined row as the operation and its status."""
    return Snapshot(operation=read(Operation, row[:WIDTH]), status=read(Status, row[WIDTH:]))


def is_beside(reference: Reference, status: Status) -> bool:
    """Tell whether a reference is another than the one that the status names from now on: core
    never changes the reference of an operation that is done."""
    return status.state is not State.DONE or status.ref != reference.reference


def request_values(request: FrozenRequest) -> Mapping[str, Any]:
    """Return a frozen request as it is stored: its JSON as text, so that an auditor reads it."""
    return {
        "operation": request.operation,
        "epoch": request.epoch,
        "digest": request.digest,
        "request": request.request.decode(),
    }

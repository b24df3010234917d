"""What the calls of a batch share: one that raises stops no neighbour."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from ascertain.core.draft import Case

from .receipt import Receipt
from .ticket import Ticket

T = TypeVar("T")


def caught(function: Callable[..., T], *args: Any, **given: Any) -> T | Exception:
    """Return what a function returns, or the exception that it raises."""
    try:
        return function(*args, **given)
    except Exception as error:  # noqa: BLE001 - raised when the neighbours have ended
        return error


def all_or_first_error(done: Sequence[Receipt | Exception]) -> list[Receipt]:
    """Return the receipts of a batch that has ended, or raise its first exception."""
    for one in done:
        if isinstance(one, Exception):
            raise one
    return [one for one in done if isinstance(one, Receipt)]


def begun(
    started: Sequence[tuple[Ticket | Case, bool] | Exception],
) -> list[tuple[Ticket | Case, bool]]:
    """Return what did begin."""
    return [one for one in started if not isinstance(one, Exception)]

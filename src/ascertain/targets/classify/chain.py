"""Reading an exception: where it was raised, what it carries, what it followed."""

from __future__ import annotations

from collections.abc import Iterator
from types import FrameType
from typing import Any

MOST = 64  # exceptions of one chain, and frames of one traceback times ten, that are looked at


def place(error: BaseException) -> tuple[str, str]:
    """Return the package and class name of an exception, so that no client is imported."""
    kind = type(error)
    return kind.__module__.partition(".")[0], kind.__name__


def part(error: BaseException, name: str) -> Any:
    """Return an attribute of an exception; None where it has none, or computing it fails."""
    try:
        return getattr(error, name, None)
    except Exception:  # noqa: BLE001 - total: it is somebody else's code
        return None


def names(error: BaseException, package: str) -> frozenset[str]:
    """Return the names of the classes of a package (`botocore`, `google.auth`) that an exception
    is of; empty where it is of none. Subclasses made elsewhere count with what they are made of.
    """
    return frozenset(
        kind.__name__
        for kind in type(error).__mro__
        if f"{kind.__module__}.".startswith(f"{package}.")
    )


def frames(error: BaseException) -> Iterator[tuple[str, str, FrameType]]:
    """Yield module, function and frame of each place the exception passed, outermost first."""
    trace = error.__traceback__
    for _ in range(10 * MOST):
        if trace is None:
            return
        frame = trace.tb_frame
        yield str(frame.f_globals.get("__name__", "")), frame.f_code.co_name, frame
        trace = trace.tb_next


def chain(error: BaseException) -> list[BaseException]:
    """Return an exception, what it carries and what it followed, outermost first, each once."""
    found: list[BaseException] = []
    waiting = [error]
    while waiting and len(found) < MOST:
        one = waiting.pop(0)
        if any(one is known for known in found):
            continue
        found.append(one)
        waiting += [*carried(one), *(e for e in (one.__cause__, one.__context__) if e is not None)]
    return found


def carried(error: BaseException) -> list[BaseException]:
    """Return the exceptions inside one: its `reason`, its arguments, the members of a group."""
    inner = [part(error, "reason"), *error.args]
    if isinstance(error, BaseExceptionGroup):
        inner = [*error.exceptions]
    return [e for e in inner if isinstance(e, BaseException)]

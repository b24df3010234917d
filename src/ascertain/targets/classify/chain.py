"""Reading an exception: where it was raised, what it carries, what it followed."""

from __future__ import annotations

from collections.abc import Iterator
from types import FrameType

MOST = 64  # exceptions of one chain, and frames of one traceback times ten, that are looked at


def place(error: BaseException) -> tuple[str, str]:
    """Return the package and class name of an exception, so that no client is imported."""
    kind = type(error)
    return kind.__module__.partition(".")[0], kind.__name__


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
    inner = [getattr(error, "reason", None), *error.args]
    if isinstance(error, BaseExceptionGroup):
        inner = [*error.exceptions]
    return [e for e in inner if isinstance(e, BaseException)]

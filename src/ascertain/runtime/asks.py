"""What the ledger's own steps ask of whoever drives them: write this, read that.

A step is a generator that decides and asks; it never waits. So the same step runs in a thread,
which writes at once, on an event loop, which awaits the commit, and in a sweep, which lets many
commits wait for the disk together.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from typing import Any, TypeVar

import msgspec

from ascertain.core.model import Change
from ascertain.store.base import Commit, Store, Written

T = TypeVar("T")


class Write(msgspec.Struct, frozen=True):
    """Commit a change; answered with Written once it is known whether it is durable."""

    change: Change


class Read(msgspec.Struct, frozen=True):
    """Call a function that reads the store or runs the user's code; answered with its value."""

    what: Callable[[], Any]


Storing = Generator[Write | Read, Any, T]


def to_write(steps: Storing[Any], answer: Any, error: Exception | None) -> Write:
    """Run a step on to what it writes next, reading here and now; what goes wrong is raised
    within it. Raises StopIteration at its end."""
    asked = steps.send(answer) if error is None else steps.throw(error)
    while isinstance(asked, Read):
        try:
            answer = asked.what()
        except Exception as raised:  # noqa: BLE001 - thrown into what asked for it
            asked = steps.throw(raised)
        else:
            asked = steps.send(answer)
    return asked


def at_once(store: Store, steps: Storing[T]) -> T:
    """Run a step here and now."""
    answer, error = None, None
    while True:
        try:
            asked = to_write(steps, answer, error)
        except StopIteration as end:
            value: T = end.value
            return value
        answer = error = None
        try:
            [answer] = store.write([asked.change])
        except Exception as raised:  # noqa: BLE001 - thrown into what asked for it
            error = raised


def together(store: Store, steps: Sequence[Storing[T]]) -> list[T | Exception]:
    """Run many steps here and now, what they write in common commits; one that raises stops no
    neighbour. Returns what each came to, in order."""
    done: dict[int, T | Exception] = {}
    ready: list[tuple[int, Any, Exception | None]] = [(n, None, None) for n in range(len(steps))]
    while ready:
        writes: list[tuple[int, Commit[Written]]] = []
        for place, answer, error in ready:
            try:
                writes.append((place, store.put(to_write(steps[place], answer, error).change)))
            except StopIteration as end:
                done[place] = end.value
            except Exception as raised:  # noqa: BLE001 - returned
                done[place] = raised
        ready = [(place, *outcome(commit)) for place, commit in writes]
    return [done[place] for place in range(len(steps))]


def outcome(commit: Commit[Written]) -> tuple[Written | None, Exception | None]:
    """Wait for a commit; return its answer or what it raises."""
    try:
        return commit.result(), None
    except Exception as error:  # noqa: BLE001 - thrown into what asked for it
        return None, error

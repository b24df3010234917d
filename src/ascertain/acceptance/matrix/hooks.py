"""Where code that sends by other means than a socket of Python's stops or dies on its way."""

from __future__ import annotations

import signal

from ascertain.acceptance import plain

_armed: list[str] = []


def arm(moment: str) -> None:
    """Have the next write stop (``stop_before``) or kill (``kill_before``) this process first."""
    if moment not in ("stop_before", "kill_before"):
        raise ValueError(f"moment must be stop_before or kill_before, not {moment!r}")
    _armed[:] = [moment]


def before_write() -> None:
    """Called between the look at the deadline and the write."""
    if _armed:
        plain.halt(signal.SIGSTOP if _armed.pop() == "stop_before" else signal.SIGKILL)

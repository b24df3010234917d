"""How much requests hold: bytes of bodies, from the first one to the end of what they began.

A bound on each body is none on all of them together: many at once, or many that wait for a slow
target, would fill the memory.
"""

from __future__ import annotations

from contextvars import ContextVar

from .problems import ProblemError

HELD = 128 * 1024 * 1024  # bytes of bodies in one process
LATER = 1.0  # seconds after which a refused request may come again


class Bodies:
    """What all requests hold together."""

    def __init__(self) -> None:
        """Begin with nothing."""
        self.size = 0


class Hold:
    """What one request holds; `leave` is called once by it, and once by each who shares it."""

    def __init__(self, bodies: Bodies) -> None:
        """Begin with nothing."""
        self._bodies, self._size, self._by = bodies, 0, 1

    def take(self, size: int) -> None:
        """Hold more; ends the request where all hold too much together."""
        self._size += size
        self._bodies.size += size
        if self._bodies.size > HELD:
            raise ProblemError("overloaded", "too much is arriving at once", retry_after=LATER)

    def share(self) -> None:
        """Note that what the request began holds it too."""
        self._by += 1

    def leave(self, *_: object) -> None:
        """Let go of it; the last one gives it back."""
        self._by -= 1
        if not self._by:
            self._bodies.size -= self._size


holding: ContextVar[Hold | None] = ContextVar("ascertain_hold", default=None)


def taken(piece: bytes) -> bytes:
    """Note that a request holds a piece of its body, and return it."""
    hold = holding.get()
    if hold is not None:
        hold.take(len(piece))
    return piece

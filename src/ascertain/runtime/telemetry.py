"""What happens here, told to whoever listens: the runtime itself knows no logger and no tracer.

An event is a name and facts that may stand in a log: identifiers, states, durations; never an
input, a key that may be personal, a body, a credential.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from .clock import Clock

if TYPE_CHECKING:
    from .ticket import Ticket

T = TypeVar("T")
Facts = Mapping[str, Any]
Listener = Callable[[str, Facts], None]


class Tracer(Protocol):
    """Follows one request through this process and on to the target (W3C Trace Context)."""

    def span(self, name: str, facts: Facts) -> AbstractContextManager[Callable[[Facts], None]]:
        """Begin a span within the current one; what it yields adds facts to it."""

    def headers(self) -> dict[str, str]:
        """Return the headers that name the current span to a target."""


class Telemetry:
    """Who listens in this process."""

    def __init__(self) -> None:
        """Nobody yet."""
        self.tracer: Tracer | None = None
        self._listeners: tuple[Listener, ...] = ()
        self._clock = Clock()

    def listen(self, listener: Listener) -> Callable[[], None]:
        """Tell a listener of every event from now on; call what is returned to end that.

        It is called on the thread where something happened, and must neither wait nor raise.
        """
        self._listeners = (*self._listeners, listener)

        def end() -> None:
            self._listeners = tuple(one for one in self._listeners if one is not listener)

        return end

    def tell(self, event: str, /, **facts: Any) -> None:
        """Tell of an event, with what is bound here (see `bound`)."""
        if self._listeners:
            known = _bound.get() | facts
            for listener in self._listeners:
                listener(event, known)

    def headers(self) -> dict[str, str]:
        """Return the trace headers for a target: they lie outside what was frozen (law 11)."""
        return self.tracer.headers() if self.tracer is not None else {}

    def attempting(self, ticket: Ticket) -> AbstractContextManager[Attempting]:
        """Accompany an attempt: told when it has ended, with what it found."""
        if self.tracer is None and not self._listeners:
            return _NOBODY
        return self._accompanied(ticket)

    @contextmanager
    def _accompanied(self, ticket: Ticket) -> Iterator[Attempting]:
        attempt, operation = ticket.attempt, ticket.case.operation
        facts = {
            "namespace": operation.namespace,
            "action": operation.action,
            "operation": operation.id,
            "attempt": str(attempt.token),  # 63 bits: many readers of JSON round numbers
            "kind": attempt.kind.value,
            "number": ticket.case.status.attempts,
        }
        began, seen = self._clock.boottime(), Attempting()
        if self.tracer is None:
            span: Any = nullcontext(lambda _: None)
        else:
            span = self.tracer.span(f"{attempt.kind.value} {operation.action}", facts)
        with span as add:
            try:
                yield seen
            finally:
                spent = self._clock.boottime() - began
                found = {"found": seen.said, "ms": round(spent / 1000, 1)}
                add(found)
                self.tell("attempt", **facts, **found)


class Attempting:
    """One attempt under way."""

    def __init__(self) -> None:
        """Nothing is found yet: if it stays so, the attempt was interrupted."""
        self.said = "interrupted"

    def found(self, finding: T) -> T:
        """Take note of what an attempt found, and return it."""
        told = getattr(finding, "finding", finding)  # a look-up's report holds its finding
        self.said = "not_begun" if told is None else _snake(type(told).__name__)
        return finding


class _Unheard(Attempting):
    def found(self, finding: T) -> T:
        return finding


def _snake(name: str) -> str:
    return "".join(f"_{c.lower()}" if c.isupper() else c for c in name).lstrip("_")


_NOBODY = nullcontext(_Unheard())
_bound: ContextVar[dict[str, Any]] = ContextVar("bound", default={})  # noqa: B039 - never changed
telemetry = Telemetry()


@contextmanager
def bound(**facts: Any) -> Iterator[None]:
    """Have these facts told with every event of this context, e.g. the request's id."""
    token = _bound.set(_bound.get() | facts)
    try:
        yield
    finally:
        _bound.reset(token)


def bind(**facts: Any) -> None:
    """Add facts to what is told from here on, to the end of what `bound` surrounds."""
    _bound.set(_bound.get() | facts)

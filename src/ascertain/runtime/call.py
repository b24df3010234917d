"""What an action's code gets: who it is to the target, until when, and how to send once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ascertain.core import keys
from ascertain.core.errors import SendRefused
from ascertain.core.model import Request

from .clock import Clock


class Call:
    """One attempt, as its code sees it.

    `http` sends at most one effect request, by the deadline and never again by itself
    (laws 5, 17). `notes` and `costs` are kept with the finding as evidence.
    """

    def __init__(
        self,
        *,
        key: str,
        target_key: str,
        attempt: int,
        epoch: int,
        number: int,
        clock: Clock,
        deadline: Callable[[], int],
        extend: Callable[[int], None] | None,
        request: Request | None = None,
        http: Callable[[Any], Any],
    ) -> None:
        """Made by the runtime for each attempt and each look-up."""
        self.key, self.target_key = key, target_key
        self.attempt, self.epoch, self.number = attempt, epoch, number
        self.request = request
        self.notes: list[str] = []
        self.costs: list[dict[str, Any]] = []
        self._clock, self._deadline, self._extend = clock, deadline, extend
        self._make_http = http
        self._http: Any = None
        self._closed = False

    @property
    def http(self) -> Any:
        """The client for this attempt: one effect request, no hidden retries, no redirects."""
        if self._http is None:
            _sending.add(self)
            self._http = self._make_http(self)
        return self._http

    @property
    def http_used(self) -> Any | None:
        """The client if it was used, else None."""
        return self._http

    @property
    def seconds_left(self) -> float:
        """How long this attempt may still send, in seconds; 0 when its deadline has passed."""
        return max(self._deadline() - self._clock.boottime(), 0) / 1e6

    def key_as(self, form: str) -> str:
        """Return the target key in the form that a contract asks for, e.g. `uuid`."""
        return keys.format_key(self.target_key, form)

    def extend(self, seconds: float) -> None:
        """Lengthen the deadline to that many seconds from now; durable before it applies.

        Raises SendRefused where the lease is lost or the bound of extensions is reached.
        """
        if self._extend is None or self._closed:
            raise SendRefused(f"operation {self.key}: a look-up or an ended attempt cannot extend")
        self._extend(int(seconds * 1_000_000))

    def note(self, text: str) -> None:
        """Keep a sentence with this attempt's finding; no credentials, no personal records."""
        self.notes.append(text[:500])

    def cost(
        self, amount: str, currency: str, *, what: str = "", payer: str = "", asset: str = ""
    ) -> None:
        """Keep what this attempt cost: a decimal text, a currency (ISO 4217), with this attempt's
        finding; it becomes a line of cost in the same commit.

        `what`: call, generation or storage, else a note. `asset`: what it was for, if that is not
        the operation's key. What is no amount is kept as a line without a price; nothing is raised.
        """
        self.costs.append(
            {"amount": str(amount), "currency": currency, "what": what, "payer": payer}
            | ({"asset": asset} if asset else {})
        )

    def close(self) -> None:
        """End the attempt's sending: whatever connection it had is aborted."""
        self._closed = True
        _sending.discard(self)
        if self._http is not None:
            self._http.close()


_sending: set[Call] = set()  # of this process, that may be sending now


def cut() -> int:
    """End the sending of every attempt of this process now, and return of how many: a stop that
    is out of time. Each is settled by what it had sent, mostly as unknown (law 3)."""
    calls = list(_sending)
    for call in calls:
        call.close()
    return len(calls)


class Item:
    """One operation of a bulk action: its input and its identity at the target."""

    def __init__(self, key: str, target_key: str, values: dict[str, Any]) -> None:
        """Made by the runtime; `input` is what `batch` was given for it."""
        self.key, self.target_key, self.input = key, target_key, values

    def key_as(self, form: str) -> str:
        """Return the target key in the form that a contract asks for, e.g. `uuid`."""
        return keys.format_key(self.target_key, form)

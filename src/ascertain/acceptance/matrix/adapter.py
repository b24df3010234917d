"""What a system must say about itself so that every scenario can be played on it."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, ClassVar, Literal, Protocol

from ascertain import Contract, Done, Ledger, Request
from ascertain.acceptance import plain
from ascertain.acceptance.faults import HttpFaultProxy, TcpFaultProxy

from .expected import Ground

OWNER = "anna"
CONTROL = "control" + "0" * 19  # the target key of an object that each system is given first
TEXT = "Offer"
Look = Literal["", "denied", "blind"]


@dataclass(frozen=True)
class Times:
    """What a cell declares about time, in seconds; short, so that a whole table takes a minute."""

    timeout: float = 2.0
    late: float = 1.0
    first_delay: float = 0.1
    total: float = 40.0

    def to_json(self) -> str:
        """Return it as JSON, for a process of its own."""
        return json.dumps(asdict(self))

    @property
    def bounds(self) -> dict[str, Any]:
        """The bounds of an action."""
        return {
            "timeout": self.timeout,
            "first_delay": self.first_delay,
            "total": self.total,
            "accepted": self.total,
            "longest_delay": 0.6,
            "lookups": 60,
            "attempts": 8,
        }


class Storage(Protocol):
    """What is needed of a system: where it is, and what it holds."""

    @property
    def name(self) -> str:
        """Its name for people."""
        ...

    @property
    def port(self) -> int:
        """Its port on loopback."""
        ...

    def effects(self, marker: str) -> list[Any]:
        """Return what it holds now."""
        ...

    def creations(self, marker: str) -> int:
        """Count what was ever created."""
        ...


class Adapter(ABC):
    """One action on one system: how it is declared, counted and disturbed."""

    slug: ClassVar[str]
    title: ClassVar[str]
    contract: ClassVar[str | Contract]
    ground: ClassVar[Ground]
    method: ClassVar[str]  # of an effect request, as the proxies name it
    word: ClassVar[str] = ""  # how an effect request begins on the wire; "": see hooks.py
    simulator: ClassVar[bool] = False
    looks: ClassVar[bool] = True
    # What cannot be played here, with the reason; what ends otherwise than its ground says.
    impossible: ClassVar[Mapping[str, str]] = {}
    otherwise: ClassVar[Mapping[str, tuple[Any, str]]] = {}
    late: ClassVar[float] = 1.0

    def __init__(self, system: Any) -> None:
        self.system: Any = system

    def times(self, **more: float) -> Times:
        """Return the times of a cell on this system."""
        return Times(**{"late": self.late, **more})

    @abstractmethod
    def proxy(self) -> Any:
        """Start a fault proxy before the system."""

    @abstractmethod
    def place(self, port: int, look: Look = "") -> dict[str, Any]:
        """Say as JSON where the system is, and how a look-up that is ``look`` asks it."""

    @classmethod
    @abstractmethod
    def declare(cls, ledger: Ledger, times: Times, place: plain.Place) -> Any:
        """Register the action and its look-up, and return it."""

    @abstractmethod
    def put(self, key: str, mark: str) -> None:
        """Make an object with this key in our way, without the ledger."""

    def foreign(self, key: str, mark: str) -> None:
        """Make an object that has our id and is somebody else's."""
        self.put(key, mark)

    @abstractmethod
    def delete(self, key: str) -> None:
        """Delete the object with this key as a person does."""

    def disturb(self, proxy: Any, look: Look) -> None:
        """Have the proxy deny or empty the answers of look-ups, where the place does not."""

    def effects(self, mark: str) -> list[Any]:
        """Return what the system's own storage holds now that has a mark."""
        return list(self.system.effects(mark))

    def creations(self, *marks: str) -> int:
        """Count creations in the system's own storage, by the mark that gives most."""
        return max(int(self.system.creations(mark)) for mark in marks)

    def version(self) -> str:
        """Return what runs here, as it says itself."""
        return ""


class HttpAdapter(Adapter):
    """A system whose requests go through ``call.http``, frozen before they are sent."""

    set_host: ClassVar[bool] = False
    denied: ClassVar[int] = 403
    empty: ClassVar[tuple[int, bytes]] = (404, b"")
    more: ClassVar[Mapping[str, Any]] = {}  # what else the action declares

    def proxy(self) -> HttpFaultProxy:
        """Start an HTTP proxy."""
        return HttpFaultProxy(self.system.port, set_host=self.set_host)

    def disturb(self, proxy: HttpFaultProxy, look: Look) -> None:
        """Answer every GET with a refusal, or as if nothing were there."""
        answers = {"denied": (self.denied, b"{}"), "blind": self.empty}
        if look in answers:
            status, body = answers[look]
            kind = ("Content-Type", "application/json")
            proxy.answer(status, body, [kind], method="GET", standing=True)

    @classmethod
    @abstractmethod
    def request(cls, place: plain.Place, key: str, text: str) -> Request:
        """Return the request that creates, without credentials."""

    @classmethod
    def finding(cls, call: Any, place: plain.Place, answer: Any) -> Any:  # noqa: ARG003
        """Return what an answer amounts to that the contract calls a success."""
        return Done(ref=cls.ref(answer) or call.target_key)

    @classmethod
    def ref(cls, _answer: Any) -> str:
        """Return the reference in an answer that the contract calls a success; nothing where the
        name is ours."""
        return ""

    @classmethod
    @abstractmethod
    def look(cls, call: Any, place: plain.Place) -> Any:
        """Ask for the call's target key and return a finding."""

    @classmethod
    def declare(cls, ledger: Ledger, times: Times, place: plain.Place) -> Any:
        """Register the action: its request is frozen with the claim."""

        def request(made: Any, case: str, text: str) -> Request:
            return cls.request(place, made.target_key, f"{text} {case}")

        @ledger.action(
            f"{cls.slug}.create".replace("-", "_"),
            key="{case}",
            owner=OWNER,
            contract=cls.contract,
            scope=cls.slug,
            prepare=request,
            **times.bounds,
            **cls.more,
        )
        def create(call: Any, *, case: str, text: str) -> Any:  # noqa: ARG001 - see `request`
            answer = call.http.send(call.request, headers=place["headers"])
            return cls.finding(call, place, answer)

        if cls.looks:
            asked = create.lookup(lag=0, late=times.late, control=CONTROL)
            asked(lambda call: cls.look(call, place))
        return create

    def put(self, key: str, mark: str) -> None:
        """Send the request once, by the standard library."""
        place = self.place(self.system.port)
        made = self.request(place, key, f"{TEXT} {mark}")
        path = "/" + made.url.split("/", 3)[3]
        headers = {**dict(made.headers), **place["headers"]}
        status, said = plain.ask(place, made.method, path, made.body, kind=headers, within=10.0)
        if status >= 300:
            raise RuntimeError(f"{self.title}: {status} {said[:300]!r}")


class TcpAdapter(Adapter):
    """A system with a protocol of its own, to which the action's own code sends."""

    def proxy(self) -> TcpFaultProxy:
        """Start a TCP proxy."""
        return TcpFaultProxy(self.system.port)

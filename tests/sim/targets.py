"""A scripted target: requests arrive and take effect when the adversary wants, by its promise."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from .auditor import NEVER, Effect, Send
from .kinds import CONTROL, SECOND, KindOfTarget

Answer = tuple[int, dict[str, Any]]  # status and body


@dataclass
class Arriving:
    """One request on its way."""

    send: Send
    arrives: int
    works: int  # how long it works on it
    answer: Callable[[Answer], None]
    refuse: int = 0  # with this status, before processing
    stored: int = 0  # with this one, and it remembers
    lies: int = 0  # it does it, and answers this
    by: int = NEVER  # it has landed by then, whatever it does
    state: str = "on its way"


@dataclass
class Memory:
    since: int
    text: str
    answer: Answer | None  # None while it works on it


class Target:
    """The objects of one target, all requests, and who asked."""

    def __init__(self, world: Any, kind: KindOfTarget) -> None:
        self.world, self.kind = world, kind
        self.objects: list[Effect] = []
        self.memory: dict[str, Memory] = {}
        self.asked: list[Arriving] = []
        self.ignores_keys = self.forgets = False  # broken promises
        self.breaks: frozenset[str] = frozenset()  # what else may be broken
        self.people = True  # refusals that only a person can deal with are possible
        self.stores_failures = kind.protects == "remembers"
        self.finds_anything = False  # its look-up ignores the key
        self.made = 0
        self.control = Effect(0, "control", "control", CONTROL, None)

    def receive(self, asked: Arriving) -> None:
        self.asked.append(asked)
        if asked.arrives < NEVER:
            self.world.at(asked.arrives, lambda: self._arrive(asked))
        else:
            asked.state = "lost"

    def in_flight(self, name: str) -> bool:
        return any(a.send.name == name and a.state in ("on its way", "working") for a in self.asked)

    def of(self, name: str) -> list[Effect]:
        return [e for e in self.objects if e.name == name]

    # --- requests ---

    def _arrive(self, asked: Arriving) -> None:
        send, kind = asked.send, self.kind
        if asked.refuse:
            self._end(asked, "refused", (asked.refuse, {"code": "refused"}))
            return
        known = self._known(asked)
        if known is not None:
            self._end(asked, "absorbed", known)
            return
        if kind.protects == "remembers" and not self.ignores_keys:
            memory = Memory(self.world.now, send.text, None)
            self.memory[send.key] = memory
            if asked.stored:
                memory.answer = (asked.stored, {"code": "failed", "stored": True})
                self._end(asked, "refused", memory.answer)
                return
        asked.state = "working"
        self.world.at(self.world.now + asked.works, lambda: self._land(asked))

    def _known(self, asked: Arriving) -> Answer | None:
        if self.ignores_keys:
            return None
        send, kind = asked.send, self.kind
        if kind.protects == "unique":
            return self._exists(send)
        memory = self.memory.get(send.key) if kind.protects == "remembers" else None
        if memory is None:
            return None
        keeps = kind.keeps * SECOND // (4 if self.forgets else 1)
        if self.world.now >= memory.since + keeps:
            return None
        if memory.text != send.text:
            return (409, {"code": "mismatch"})
        if memory.answer is None:
            return (409, {"code": "busy"}) if kind.at_once else None
        return memory.answer

    def _exists(self, send: Send) -> Answer | None:
        for effect in self.objects:
            if effect.key == send.key:
                if self.kind.overwrites:
                    return (201, {"id": effect.ref})
                return (409, {"code": "exists"})
        return None

    def _land(self, asked: Arriving) -> None:
        send = asked.send
        if self.kind.protects == "unique" and self.kind.at_once and not self.ignores_keys:
            known = self._exists(send)
            if known is not None:
                self._end(asked, "absorbed", known)
                return
        now = self.world.now
        self.made += 1
        ref = f"{send.name.split('/')[0]}-{self.made}"
        effect = Effect(now, ref, send.name, send.key, send)
        send.lands = now
        if now > asked.by:
            self.world.story.broken[send.name].add("late")
        self.objects.append(effect)
        self.world.happened(self, effect)
        done = (202 if self.kind.accepts else 201, {"id": ref})
        if asked.lies:
            done = (asked.lies, {"code": "lied"})
        memory = self.memory.get(send.key)
        if memory is not None and self.kind.protects == "remembers":
            memory.answer = done
        self._end(asked, "landed", done)

    def _end(self, asked: Arriving, state: str, answer: Answer) -> None:
        asked.state = state
        asked.answer(answer)

    # --- look-ups ---

    def look(self, key: str, *, lag: int | None = None) -> list[Effect]:
        """What a look-up by this key shows now."""
        behind = self.kind.lag * SECOND if lag is None else lag
        if self.finds_anything:
            return self.objects[:1]
        if key == CONTROL:
            return [self.control]
        return [
            e for e in self.objects if e.key == key and e.at + behind <= self.world.now
            and not (self.kind.blind and len(e.ref) % 2)
        ]  # fmt: skip

"""Keeps workers under load, kills them at random moments, and remembers what they said.

The driver opens no store itself: it forks its workers, which costs a few milliseconds instead of
the start of a Python. What a worker wrote to its pipe before it was killed is read to the end.
"""

from __future__ import annotations

import os
import random
import selectors
import signal
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Self

from crash.worker import (
    STORE_GONE,
    Life,
    Plan,
    Stream,
    call_again,
    call_until_killed,
    forked,
    recover_until_killed,
    recover_until_quiet,
)

Key = tuple[str, str]  # kind of operation, business key
CALLERS, RECOVERERS = 5, 1
THREADS = 2  # callers within every second worker
AIMS = {"call": (None, None, "b", "c", "e"), "recover": (None, "c", "e", "l")}
AIM_WAIT = 0.25  # seconds that a kill waits for the line that it is aimed at
SHOWN_EVERY = 5.0
LOAD_WITHIN = 20.0
QUIET_WITHIN = 120.0


@dataclass
class Journal:
    """What all workers said, and what became of them."""

    begun: dict[Key, float] = field(default_factory=dict)
    told: dict[Key, str] = field(default_factory=dict)  # the last state that a caller was told
    done: dict[Key, tuple[str, float]] = field(default_factory=dict)  # the first: reference, when
    other: list[str] = field(default_factory=list)  # "done" with one reference, then another
    cut: list[tuple[str, str, str]] = field(default_factory=list)  # worker, kind, key
    killed: Counter[str] = field(default_factory=Counter)  # by the role of the worker
    errors: Counter[str] = field(default_factory=Counter)  # of the library, by name
    broken: list[str] = field(default_factory=list)  # what must never happen in a worker
    calls: int = 0

    def begin(self, key: Key) -> None:
        self.calls += 1
        self.begun.setdefault(key, time.time())

    def hear(self, key: Key, state: str, ref: str) -> None:
        self.told[key] = state
        if state == "done":
            first, _ = self.done.setdefault(key, (ref, time.time()))
            if ref != first:
                self.other.append(f"{key}: acknowledged as {first}, then as {ref}")


@dataclass
class Slot:
    """A place for a worker; when one is killed the next takes it."""

    role: str
    streams: list[Stream]
    lives: int = 0
    pid: int = 0
    name: str = ""
    pipe: int = -1
    rest: bytes = b""
    open: dict[str, Key] = field(default_factory=dict)  # by caller: begun and not told yet
    aim: str | None = None
    aimed_until: float = 0.0
    spoke: bool = False


class Driver:
    """Use as a context manager: no worker outlives it."""

    def __init__(
        self, plan: Plan, seed: int = 0, show: Callable[[str], None] = lambda _: None
    ) -> None:
        self.plan, self.random, self.show = plan, random.Random(seed), show
        self.journal = Journal()
        self.slots = [
            Slot("call", [Stream(f"{n}.{t}") for t in range(THREADS if n % 2 else 1)])
            for n in range(CALLERS)
        ] + [Slot("recover", []) for _ in range(RECOVERERS)]
        self._ready = selectors.DefaultSelector()
        self._shown = time.monotonic()
        self._extra: list[Slot] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for slot in [*self.slots, *self._extra]:
            self._end(slot)
        self._ready.close()

    # --- what a scenario does ---

    @contextmanager
    def load(self, plan: Plan | None = None) -> Iterator[None]:
        """Keep all workers going within this block; at its end all are killed at once."""
        self.plan = plan or self.plan
        for slot in self.slots:
            self._start(slot)
        yield
        for slot in self.slots:
            self._end(slot, "at the end")

    def run(self, seconds: float, told: int = 0) -> None:
        """Let them work for a while, and on a slow machine until so many calls more have ended."""
        begun, told = time.monotonic(), told + len(self.journal.told)
        while (spent := time.monotonic() - begun) < seconds or (
            len(self.journal.told) < told and spent < LOAD_WITHIN
        ):
            self._pump(min(max(seconds - spent, 0.01), 0.05))

    def kill(self, count: int, every: float = 0.04) -> None:
        """Kill so many workers, about one each `every` seconds, at moments chosen by chance."""
        killed, next_kill = 0, time.monotonic()
        while killed < count:
            self._pump(max(0.0, min(0.02, next_kill - time.monotonic())))
            now = time.monotonic()
            due = [s for s in self.slots if s.aimed_until and s.aimed_until <= now]
            if now >= next_kill:
                next_kill = now + self.random.expovariate(1 / every)
                slot = self.random.choice(self.slots)
                slot.aim = self.random.choice(AIMS[slot.role])
                slot.aimed_until = now if slot.aim is None else now + AIM_WAIT
                due += [slot] if slot.aim is None else []
            for slot in due:
                self._strike(slot)
            before, killed = killed, sum(self.journal.killed[r] for r in AIMS)
            if killed != before and now - self._shown > SHOWN_EVERY:
                self._shown = now
                self.show(f"{killed} of {count} kills, {self.journal.calls} calls")

    def settle(self, workers: int = 2) -> None:
        """After the storm: call everything again, as flows do, and recover until it is quiet."""
        keys = list(self.journal.begun)
        self._until_ended([
            partial(call_again, self.plan, keys=keys[n::workers]) for n in range(workers)
        ])  # fmt: skip
        self.quiet(workers)

    def quiet(self, workers: int = 2) -> None:
        """Recover until only people are next."""
        self._until_ended([partial(recover_until_quiet, self.plan)] * workers)

    # --- inside ---

    def _works(self, slot: Slot) -> Callable[[Life], None]:
        if slot.role == "call":
            return partial(call_until_killed, self.plan, streams=slot.streams)
        return partial(recover_until_killed, self.plan)

    def _start(self, slot: Slot, work: Callable[[Life], None] | None = None) -> None:
        slot.lives += 1
        number = (self.slots + self._extra).index(slot)
        slot.name = f"{slot.role}-{number}.{slot.lives}"
        slot.rest, slot.open, slot.aim, slot.aimed_until = b"", {}, None, 0.0
        slot.spoke = False
        slot.pipe, end = os.pipe()
        try:
            slot.pid = forked(work or self._works(slot), slot.name, end)
        finally:
            os.close(end)
        self._ready.register(slot.pipe, selectors.EVENT_READ, slot)

    def _strike(self, slot: Slot) -> None:
        self._end(slot, slot.role)
        self._start(slot)

    def _end(self, slot: Slot, counted_as: str = "") -> None:
        """Kill a worker, hear what it still said, and note which calls were cut."""
        if not slot.pid:
            return
        os.kill(slot.pid, signal.SIGKILL)
        code = os.waitstatus_to_exitcode(os.waitpid(slot.pid, 0)[1])
        slot.pid = 0
        self._drain(slot)
        if code == -signal.SIGKILL and counted_as:
            self.journal.killed[counted_as] += 1
            self.journal.cut += [(slot.name, *key) for key in slot.open.values()]
        elif code not in (0, STORE_GONE, -signal.SIGKILL):
            self.journal.broken.append(f"{slot.name} ended with {code}")

    def _drain(self, slot: Slot) -> None:
        while data := os.read(slot.pipe, 1 << 16):
            self._hear(slot, data)
        self._ready.unregister(slot.pipe)
        os.close(slot.pipe)

    def _pump(self, wait: float) -> None:
        """Hear the workers; one that ended by itself is started anew, as a supervisor does."""
        for ready, _ in self._ready.select(wait):
            slot: Slot = ready.data
            data = os.read(slot.pipe, 1 << 16)
            if data:
                self._hear(slot, data)
            else:
                self._end(slot)
                self._start(slot)

    def _hear(self, slot: Slot, data: bytes) -> None:
        *lines, slot.rest = (slot.rest + data).split(b"\n")
        aimed = False
        for line in lines:
            what, *words = line.decode().split(" ")
            aimed |= what == slot.aim
            self._note(slot, what, words)
        if aimed and slot.pid and slot.aimed_until:
            slot.aimed_until = time.monotonic()
            self._strike(slot)

    def _note(self, slot: Slot, what: str, words: Sequence[str]) -> None:
        slot.spoke = True
        if what == "!":
            self.journal.broken.append(f"{slot.name}: {' '.join(words)}")
        elif what == "x":
            self.journal.errors[words[0]] += 1
        elif what == "b":
            who, *key = words
            self.journal.begin((key[0], key[1]))
            slot.open[who] = (key[0], key[1])
            for stream in slot.streams:
                if stream.name == who and not key[1].startswith("all-"):
                    stream.next = int(key[1].rpartition("-")[2])
        elif what == "a":
            who, kind, name, state, ref = words
            slot.open.pop(who, None)
            self.journal.hear((kind, name), state, ref)

    def _until_ended(self, works: Sequence[Callable[[Life], None]]) -> None:
        """Run workers to their own end."""
        running = [Slot("settle", []) for _ in works]
        self._extra += running
        for slot, work in zip(running, works, strict=True):
            self._start(slot, work)
        until = time.monotonic() + QUIET_WITHIN
        while running:
            if time.monotonic() > until:
                self.journal.broken.append(f"not quiet within {QUIET_WITHIN} s")
                break
            for ready, _ in self._ready.select(0.1):
                slot = ready.data
                data = os.read(slot.pipe, 1 << 16)
                if data:
                    self._hear(slot, data)
                else:
                    code = os.waitstatus_to_exitcode(os.waitpid(slot.pid, 0)[1])
                    slot.pid = 0
                    self._drain(slot)
                    running.remove(slot)
                    if code:
                        self.journal.broken.append(f"{slot.name} ended with {code}")

"""Virtual time, actors as generators, and a store that an adversary stands in front of.

An actor yields how long it waits. A freeze inside a store call runs the rest of the world within
the call, so that it may fall between any two steps without a thread.
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable, Generator
from random import Random
from typing import Any

from ascertain.core.errors import StoreError, StoreUnavailable
from ascertain.runtime.clock import Clock

from .adversary import Adversary
from .auditor import Effect, Said, Story
from .kinds import SECOND

START = 1_700_000_000 * SECOND
STEP = 1000  # µs that a step takes if nothing is in the way
IDLE = -1  # yielded: until something is due
STEPS = 6000  # of one schedule at most
HORIZON = 9 * 24 * 3600 * SECOND
Steps = Generator[int, None, None]
PAUSES = (5_000, SECOND, 4 * SECOND, 9 * SECOND, 11 * SECOND, 25 * SECOND, 40 * SECOND,
          90 * SECOND, 400 * SECOND)  # fmt: skip


class Crash(BaseException):
    """The worker is no more; nothing of it runs."""


class Actor:
    def __init__(self, world: World, name: str, machine: int) -> None:
        self.world, self.name, self.machine = world, name, machine
        self.steps: Steps | None = None
        self.version = 0
        self.dead = self.busy = self.idle = False
        self.wakes = 0
        self.careful = False  # a person or a bystander: the adversary leaves it alone
        self.again: Callable[[], None] | None = None  # what follows its crash

    def crash(self) -> None:
        self.dead = True
        if self.again is not None:
            self.again()


class SimClock(Clock):
    """The clocks of one worker's machine."""

    def __init__(self, actor: Actor) -> None:
        self.actor, self.world = actor, actor.world
        self.offset = actor.machine * 77 * SECOND

    def boottime(self) -> int:
        return self.world.now + self.offset

    def wall(self) -> int:
        return self.world.store_now()

    def token(self) -> int:
        return self.world.chance.getrandbits(63) | 1

    def id_bits(self) -> int:
        return self.world.chance.getrandbits(80)

    def jitter(self) -> float:
        return self.world.chance.random()

    def boot_id(self) -> str:
        return f"boot-{self.actor.machine}"


class World:
    """Everything there is in one schedule."""

    def __init__(self, seed: int, adversary: Adversary, store: Any) -> None:
        self.seed, self.adversary, self.real = seed, adversary, store
        self.chance = Random(seed * 11 + 5)
        self.now, self.offset = 1000 * SECOND, START
        self.story = Story()
        self.quiet = False  # the adversary has gone
        self.steps = self.depth = self.attempts = 0
        self.trace: list[str] | None = None
        self.actors: dict[str, Actor] = {}
        self.due: dict[str, int] = {}  # by operation, on the store's clock
        self.names: dict[str, str] = {}  # operation to business name
        self.ids: dict[str, str] = {}
        self.tokens: set[int] = set()  # attempts in the store
        self.dead: dict[tuple[str, str], int] = {}  # (name, target key): a failure is stored
        self.settles: dict[int, Callable[[], None]] = {}  # told when an attempt's end is durable
        self.open_reviews: dict[str, set[str]] = {}
        self.watchers: list[Callable[[str, Any], None]] = []  # told of every durable change
        self.lands: list[Callable[[Any, Effect], None]] = []
        self._heap: list[tuple[int, int, Callable[[], None]]] = []
        self._count = itertools.count()

    def store_now(self) -> int:
        return self.now + self.offset

    def note(self, text: str) -> None:
        if self.trace is not None:
            self.trace.append(f"{(self.now - 1000 * SECOND) / 1e6:12.3f}  {text}")

    # --- time ---

    def at(self, when: int, what: Callable[[], None]) -> None:
        heapq.heappush(self._heap, (max(when, self.now), next(self._count), what))

    def run(self, until: int = HORIZON) -> None:
        """Let everything happen that happens by itself until then."""
        while self._heap and self._heap[0][0] <= until:
            if self.steps > STEPS:
                self.story.endless = True
                return
            when, _, what = heapq.heappop(self._heap)
            self.now = max(self.now, when)
            what()

    def freeze(self, actor: Actor, span: int) -> None:
        """Let the rest of the world go on for that long while this actor stands still."""
        until = self.now + span
        if self.depth > 3:
            return
        self.depth += 1
        try:
            self.run(until)
        finally:
            self.depth -= 1
        self.now = max(self.now, until)
        if actor.dead:
            raise Crash

    # --- actors ---

    def begin(self, actor: Actor, steps: Steps, after: int = 0) -> Actor:
        actor.steps = steps
        self.actors[actor.name] = actor
        self._wake_at(actor, self.now + after)
        return actor

    def _wake_at(self, actor: Actor, when: int) -> None:
        actor.version += 1
        version, actor.wakes = actor.version, when
        self.at(when, lambda: self._step(actor, version))

    def wake(self, actor: Actor) -> None:
        """Wake a waiting actor now: its answer is here."""
        if not actor.dead and not actor.busy:
            self._wake_at(actor, self.now)

    def _step(self, actor: Actor, version: int) -> None:
        if actor.dead or actor.busy or version != actor.version or actor.steps is None:
            return
        self.steps += 1
        actor.busy, actor.idle = True, False
        try:
            wait = next(actor.steps)
        except StopIteration:
            actor.dead = True
            return
        except (Crash, StoreError):
            self.note(f"{actor.name} crashes")
            if not actor.dead:
                actor.crash()
            return
        finally:
            actor.busy = False
        if actor.dead:
            return
        if wait == IDLE:
            actor.idle = True
            wait = self._until_due()
            if wait is None:
                actor.wakes = HORIZON * 2
                return
        self._wake_at(actor, self.now + max(wait, STEP))

    def _until_due(self) -> int | None:
        if not self.due:
            return None
        return max(min(self.due.values()) - self.store_now(), 0) + STEP

    def _rouse(self, due: int) -> None:
        when = self.now + max(due - self.store_now(), 0) + STEP
        for actor in list(self.actors.values()):
            if actor.idle and not actor.dead and actor.wakes > when:
                self._wake_at(actor, when)

    def rouse_all(self) -> None:
        for due in list(self.due.values()):
            self._rouse(due)

    def pause(self, actor: Actor, where: str, chance: float, longest: int = HORIZON) -> int:
        """Return how long an actor stands still at this point of its steps; may crash it."""
        if actor.careful or self.quiet:
            return STEP
        event = self.adversary.ask(f"{actor.name}:{where}", chance, lambda r: (
            ("crash",) if r.random() < 0.4 else ("freeze", min(r.choice(PAUSES), longest))
        ))  # fmt: skip
        if not event:
            return STEP
        self.note(f"{actor.name} {where}: {event}")
        if event[0] == "crash":
            raise Crash
        return event[1]

    # --- what the store's callers changed ---

    def happened(self, target: Any, effect: Effect) -> None:
        self.story.effects.append(effect)
        sent = effect.send.at if effect.send else 0
        if any(n == effect.name and a == "not_there" and at > sent for at, n, a in
               self.story.people):  # fmt: skip
            self.story.broken[effect.name].add("person")  # he took the risk, and was wrong
        self.note(f"EFFECT {effect.name} {effect.ref}")
        for told in self.lands:
            told(target, effect)

    def changed(self, change: Any) -> None:
        """A change is durable: this is what the ledger says from now on."""
        status, operation = change.status, change.operation
        ident = status.operation
        if operation is not None:
            name = f"{operation.action}/{operation.key}"
            self.names[ident], self.ids[name] = name, ident
            self.story.submitted.setdefault(name, self.now)
        name = self.names.get(ident, ident)
        for review in change.reviews:
            roads = self.open_reviews.setdefault(ident, set())
            if review.closed_at is None:
                roads.add(review.road)
            else:
                roads.discard(review.road)
        for token, outcome in change.ends:
            if outcome.value != "expired" and token in self.settles:
                self.settles.pop(token)()
        if status.waiting_on.value == "approval":
            self.story.approved.setdefault(name, [])
        took = ""
        if change.attempt is not None and change.attempt.worker != "restored":
            self.tokens.add(change.attempt.token)
            took = change.attempt.kind.value
            self.attempts += 1
        self.story.said.append(Said(
            at=self.now, name=name, state=status.state.value, reason=status.reason.value,
            waiting_on=status.waiting_on.value, due=status.due_at is not None,
            token=status.token, kind=status.kind.value if status.kind else "",
            review=bool(self.open_reviews.get(ident)), took=took,
        ))  # fmt: skip
        self.note(f"said {name} {status.state.value} {status.reason.value} {status.said} "
                  f"waits={status.waiting_on.value} took={took}")  # fmt: skip
        left = self.quiet and status.said == "waits_override"  # only a person changes that
        self.move_due(ident, None if left else status.due_at)
        for watcher in self.watchers:
            watcher(name, change)
        for other in change.also:
            self.changed(other)

    def move_due(self, ident: str, due: int | None) -> None:
        if due is None:
            self.due.pop(ident, None)
            return
        self.due[ident] = due
        self._rouse(due)


# How likely trouble is at a verb: `beside` is what every decision is made on.
WEIGHTS = {"write": 0.02, "beside": 0.02}


class Front:
    """The store as one actor sees it: before and after any call it may crash or freeze."""

    durability = "simulated"

    def __init__(self, world: World, actor: Actor) -> None:
        self.world, self.actor = world, actor

    def now(self) -> int:
        return self.world.store_now()

    def close(self) -> None:
        return None

    def _trouble(self, when: str, name: str) -> None:
        world, actor = self.world, self.actor
        if actor.careful or world.quiet:
            return
        weight = WEIGHTS.get(name, 0.004)
        event = world.adversary.ask(f"{actor.name}:{when}", weight, lambda r: (
            ("crash",) if (x := r.random()) < 0.4
            else ("down",) if x < 0.5 and when == "before"
            else ("freeze", r.choice(PAUSES))
        ))  # fmt: skip
        if not event:
            return
        world.note(f"{actor.name} {when} {name}: {event}")
        if event[0] == "crash":
            raise Crash
        if event[0] == "down":
            raise StoreUnavailable("the simulated store cannot be reached")
        world.freeze(actor, event[1])

    def write(self, changes: Any) -> Any:
        self._trouble("before", "write")
        answers = self.world.real.write(changes)
        for change, answer in zip(changes, answers, strict=True):
            if answer.applied:
                self.world.changed(change)
        self._trouble("after", "write")
        return answers

    def take(self, now: int, until: int, *rest: Any) -> Any:
        self._trouble("before", "take")
        taken = self.world.real.take(now, until, *rest)
        for snapshot in taken:
            self.world.move_due(snapshot.operation.id, until)
        self._trouble("after", "take")
        return taken

    def __getattr__(self, name: str) -> Any:
        method = getattr(self.world.real, name)

        def verb(*given: Any, **more: Any) -> Any:
            self._trouble("before", name)
            return method(*given, **more)

        setattr(self, name, verb)
        return verb

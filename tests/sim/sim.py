"""One schedule by its seed: who wants what, who works, what goes wrong, and what came of it."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Generator
from dataclasses import dataclass, replace
from random import Random
from typing import Any

from ascertain.core.errors import (
    AscertainError,
    InputMismatch,
    Refused,
    StoreError,
    UnknownOperation,
)
from ascertain.core.machine import is_settled
from ascertain.core.model import Done, State, WaitingOn
from ascertain.runtime.driving import driving
from ascertain.runtime.recovery import sweeping
from ascertain.runtime.ticket import Options
from ascertain.runtime.versions import check_undo
from ascertain.store.base import Filter
from ascertain.store.records import LEDGER
from ascertain.store.sqlite import SqliteStore

from .acting import ATTEMPTS, LEASE, NAMESPACE, Process
from .adversary import Adversary, Plan
from .auditor import NEVER, Effect, Final, Promise, Story, Verdict, judge
from .kinds import BY_NAME, KINDS, SECOND, KindOfTarget
from .targets import Target
from .world import IDLE, STEP, Actor, Steps, World

BREAKS = ("late", "stall", "lies", "twice", "lag", "foreign", "ignores keys", "forgets",
          "deletes", "wrong person", "unseen step")  # fmt: skip
PLANS = ("plain",) * 6 + ("versions", "undo", "approval", "repeat", "other input")
PEACE = 1500 * SECOND  # when the adversary goes


@dataclass(frozen=True)
class Setting:
    """What a seed stands for, before anything goes wrong."""

    seed: int
    kind: KindOfTarget
    scenario: str
    orders: int
    callers: int
    workers: int
    budget: int
    breaks: str
    webhooks: bool
    finds_anything: bool
    person: str  # what he does with a review: right, wrong, leaves
    often: str = ""  # where the adversary nearly always does something

    @property
    def alone(self) -> bool:
        return self.seed % 2 == 0


def setting(seed: int) -> Setting:
    r = Random(seed)
    alone = seed % 2 == 0
    kind = r.choice([k for k in KINDS if k.alone or not alone])
    broken = not alone and r.random() < 0.35
    breaks = r.choice(BREAKS) if broken else ""
    return Setting(
        seed=seed, kind=kind, scenario=r.choice(PLANS), orders=r.choice((1, 1, 2)),
        callers=r.choice((1, 1, 2, 3)), workers=r.choice((1, 2, 2)), budget=r.choice((1, 3, 5, 8)),
        breaks=breaks, webhooks=r.random() < 0.15,
        finds_anything=not alone and kind.looks and r.random() < 0.05,
        person="wrong" if breaks == "wrong person" else r.choice(("right", "right", "leaves")),
    )  # fmt: skip


@dataclass
class Outcome:
    setting: Setting
    story: Story
    verdicts: list[Verdict]
    plan: Plan
    trace: list[str]
    attempts: int
    steps: int
    needed_person: bool

    @property
    def wrong(self) -> list[Verdict]:
        return [v for v in self.verdicts if v.what != "found_after_broken_assumption"]


class Stores:
    """One store for all schedules of a process; each begins with it empty."""

    def __init__(self) -> None:
        self.world: World | None = None
        self.store = SqliteStore(":memory:", clock=lambda: self.world.store_now())  # noqa: PLW0108
        self.store.meta("secret", "ab" * 32)

    def copy(self) -> bytes:
        return self.store._writer._raw.serialize("main")

    def put(self, copy: bytes) -> None:
        self.store._writer._raw.deserialize("main", copy)

    def fresh(self, world: World) -> None:
        # Deleting keeps the prepared statements, which putting an empty copy would not.
        self.world, writer = world, self.store._writer
        writer.do("begin")
        for table in LEDGER:
            kept = " where name not in ('schema', 'secret')" if table == "meta" else ""
            writer.do(f'delete from "{table}"{kept}')
        writer.do("commit")


class Sim:
    """A schedule being played."""

    def __init__(self, given: Setting, world: World, stores: Any) -> None:
        self.given, self.world, self.stores = given, world, stores
        self.adversary, self.story = world.adversary, world.story
        kinds = {"shop.order": given.kind}
        if given.scenario == "approval":
            kinds["shop.order"] = replace(given.kind, declares={"approval": True})
        if given.scenario == "undo":
            kinds["shop.undo"] = BY_NAME["identified"]
        self.targets = {name: Target(world, kind) for name, kind in kinds.items()}
        for target in self.targets.values():
            target.people = not given.alone
            target.finds_anything = given.finds_anything and target.kind is given.kind
        self._break(self.targets["shop.order"])
        self.random = Random(given.seed * 3 + 2)
        self.desk: Process | None = None
        self.generation = 0
        self.needed: set[str] = set()
        self.visits: dict[str, int] = {}
        world.watchers.append(self.watch)
        if given.webhooks or given.kind.accepts:
            world.lands.append(self.webhook)
        if given.breaks == "deletes":
            world.lands.append(self.deletes)
        self.story.alone = given.alone

    def _break(self, target: Target) -> None:
        breaks = self.given.breaks
        target.breaks = frozenset({breaks})
        target.ignores_keys = breaks == "ignores keys" and target.kind.protects != "nothing"
        target.forgets = breaks == "forgets"
        if target.ignores_keys or target.forgets:
            self.broken_for_all("contract")
        if breaks == "wrong person":
            self.broken_for_all("person")

    def broken_for_all(self, what: str) -> None:
        broken = self.story.broken
        self.story.broken = _Always(what, broken)

    # --- actors ---

    def start(self, name: str, make: Callable[[Process], Steps], after: int, *,
              again: Callable[[], None] | None = None) -> Actor:  # fmt: skip
        actor = Actor(self.world, name, self.random.randrange(3))
        actor.again = again

        def steps() -> Steps:
            process = Process(self.world, actor, self.targets)
            yield STEP
            yield from make(process)

        return self.world.begin(actor, steps(), after)

    def worker(self, number: int, after: int = STEP, life: int = 0) -> None:
        name = f"worker-{number}.{self.generation}.{life}"

        def again() -> None:
            self.worker(number, 3 * SECOND + number * 20 * SECOND, life + 1)

        self.start(name, self.sweeps, after, again=again)

    def sweeps(self, p: Process) -> Steps:
        while True:
            try:
                yield from p.drive(sweeping(p.engine, 50))
            except StoreError:
                yield SECOND
            yield IDLE

    def caller(self, number: int, order: int, after: int, life: int = 0) -> None:
        name = f"caller-{order}-{number}.{self.generation}.{life}"

        def again() -> None:
            if life < 2 and (self.given.seed + number + life) % 3:
                self.caller(number, order, 15 * SECOND, life + 1)

        self.start(name, lambda p: self.calls(p, number, order), after, again=again)

    def calls(self, p: Process, number: int, order: int) -> Steps:
        values = {"order": f"o{order}"}
        if self.given.scenario == "other input" and number == 1:
            values["text"] = "another"
        yield from self.submit(p, "shop.order", values, Options(), execute=(order + number) % 3 > 0)
        if number or order:
            return
        match self.given.scenario:
            case "versions":
                yield 2 * SECOND
                yield from self.follows(p, "shop.order", {"order": "o0v2"}, "supersedes")
            case "undo":
                yield 20 * SECOND
                yield from self.follows(p, "shop.undo", {"order": "undo-o0"}, "compensates")
            case "repeat":
                yield 5 * SECOND
                yield from self.again(p)

    def submit(
        self, p: Process, action: str, values: dict[str, str], options: Options, *, execute: bool
    ) -> Generator[int, None, bool]:
        d = p.engine.definition(action)
        intent = d.intent(values, p.engine.store.now())
        try:
            started, _ = p.engine.begin(d, intent, options, execute=execute)
            text = f'"text": "{values.get("text", "")}"'
            case = started if hasattr(started, "operation") else started.case
            stored = case.operation.input or ""
            if ("another" in stored) != ("another" in text):
                self.story.merged.append(f"{action}/{intent.key}")
            yield p.pause("begun")
            if execute:
                until = p.clock.boottime() + 20 * SECOND
                yield from p.drive(driving(p.engine, started, values, until))
        except InputMismatch:
            return True
        except (StoreError, Refused, UnknownOperation):
            return False
        except AscertainError as error:
            p.world.note(f"{p.actor.name}: {type(error).__name__} {error}")
        return True

    def follows(self, p: Process, action: str, values: dict[str, str], how: str) -> Steps:
        for _ in range(60):
            ident = self.world.ids.get("shop.order/o0", "")
            options = Options(**{how: ident}, reason="a correction")
            try:
                p.engine.snapshot(ident)
                check_undo(p.engine, options.compensates)
                if (yield from self.submit(p, action, values, options, execute=True)):
                    return
            except Refused:
                self.story.refused[f"{action}/{values['order']}"] = self.world.now
            except (UnknownOperation, StoreError):
                pass
            yield 30 * SECOND

    def again(self, p: Process) -> Steps:
        for _ in range(5):
            try:
                key = ("shop.order", "o0#repeat-1")
                if p.engine.store.by_keys(NAMESPACE, [key])[0] is None:
                    ident = self.world.ids.get("shop.order/o0", "")
                    p.actions["shop.order"].repeat(of=ident, reason="the customer wants two")
                return
            except AscertainError:
                yield 10 * SECOND

    # --- people, and the target's own events ---

    def at_desk(self) -> Process:
        if self.desk is None:
            actor = Actor(self.world, "desk", 99)
            actor.careful = True
            self.desk = Process(self.world, actor, self.targets)
        return self.desk

    def watch(self, name: str, change: Any) -> None:
        status = change.status
        opened = any(r.closed_at is None for r in change.reviews)
        waits = status.waiting_on in (WaitingOn.APPROVAL, WaitingOn.AUTHORIZATION)
        if status.waiting_on is WaitingOn.REVIEW or opened:
            self.needed.add(name)
        if status.state is State.NOT_DONE and status.waiting_on is not WaitingOn.NOTHING:
            self.needed.add(name)
        if opened or (waits and status.due_at is None):
            ident = status.operation
            delay = (60 if waits else 600) * SECOND
            self.world.at(self.world.now + delay, lambda: self.visit(ident))

    def visit(self, ident: str) -> None:
        """A person looks at an operation that waits for one."""
        seen = self.visits[ident] = self.visits.get(ident, 0) + 1
        if seen > 12:
            return
        try:
            self._decide(ident)
        except UnknownOperation:
            return
        except AscertainError as error:
            self.world.note(f"person: {type(error).__name__} {error}")
            self.world.at(self.world.now + 1200 * SECOND, lambda: self.visit(ident))

    def _decide(self, ident: str) -> None:
        ledger, name = self.at_desk().ledger, self.world.names[ident]
        status = ledger.engine.snapshot(ident).status
        if status.waiting_on is WaitingOn.APPROVAL:
            self._approve(ident, name)
        elif status.waiting_on is WaitingOn.AUTHORIZATION and status.state is State.NOT_DONE:
            self.story.people.append((self.world.now, name, "renew"))
            ledger.renew(ident, by="it")
        elif status.waiting_on is WaitingOn.REVIEW and not self.given.alone:
            self._answer(ident, name, status.state is State.ACCEPTED)

    def _approve(self, ident: str, name: str) -> None:
        ledger, texts = self.at_desk().ledger, []
        for asked in ledger.asked(ident):
            if asked.state != "asked":
                continue
            body = json.dumps({"id": "KEY", "text": "", **asked.input})
            if asked.request is not None:
                body = base64.b64decode(asked.request["body"]).decode()
                for form in asked.request["key_forms"]:
                    body = body.replace(form, "KEY")
            ledger.approve(ident, by="boss", role=asked.role, digest=asked.digest)
            texts.append(body)
        self.story.approved.setdefault(name, []).extend((self.world.now, t) for t in texts if t)

    def _answer(self, ident: str, name: str, accepted: bool) -> None:
        ledger, target = self.at_desk().ledger, self.targets[name.split("/", maxsplit=1)[0]]
        there = target.of(name)
        person = self.given.person
        if person == "absent":
            return
        if target.in_flight(name) and person != "wrong":
            self.world.at(self.world.now + 1200 * SECOND, lambda: self.visit(ident))
            return
        if person == "wrong":
            answer = "not_there" if there and not accepted else "leave"
        elif person == "leaves" and not there:
            answer = "leave"
        else:
            answer = "there" if there else "leave" if accepted else "not_there"
        self.world.note(f"person decides {answer} on {name}")
        ref = there[0].ref if answer == "there" else None
        for by in ("anna", "bob"):
            self.story.people.append((self.world.now, name, answer))
            risk = {"accept_risk": True, "why": "looked"} if answer == "not_there" else {}
            status = ledger.engine.snapshot(ident).status
            if status.waiting_on is not WaitingOn.REVIEW or (by == "bob" and not risk):
                return
            ledger.decide(ident, answer, by=by, ref=ref, **risk)
        self.story.told += [(self.world.now, name, ref)] if ref else []

    def webhook(self, target: Target, effect: Effect) -> None:
        delays = (2 * SECOND, 45 * SECOND, 400 * SECOND)
        for place in range(self.random.choice((1, 1, 2))):
            delay = self.random.choice(delays)
            self.world.at(self.world.now + delay, lambda: self.says(effect, f"hook-{effect.ref}"))
            if not place:
                continue

    def says(self, effect: Effect, report: str) -> None:
        """The target says itself that an effect is there."""
        ledger, ident = self.at_desk().ledger, self.world.ids.get(effect.name)
        if ident is None:
            return
        try:
            ledger.report(ident, Done(ref=effect.ref), by="webhook", report=f"{report}-{ident}")
            self.story.told.append((self.world.now, effect.name, effect.ref))
        except AscertainError as error:
            self.world.note(f"webhook: {type(error).__name__} {error}")

    def deletes(self, target: Target, effect: Effect) -> None:
        self.story.broken[effect.name].add("deleted")
        self.world.at(self.world.now + 3 * SECOND, lambda: target.objects.remove(effect))

    # --- the store and the machines ---

    def disasters(self) -> None:
        """What happens to all of them at once."""
        ask, world = self.adversary.ask, self.world
        moment = lambda r: r.choice((8, 25, 70, 200)) * SECOND  # noqa: E731
        heals = self.given.kind.looks or self.given.kind.protects in ("unique", "repeatable")
        # What nobody has approved is not replayed after a restore, only looked up (laws 11, 21).
        approves = self.given.scenario in ("approval", "repeat") and not self.given.kind.looks
        restore = ask(
            "restore",
            0.0 if self.given.alone and approves else 0.06,
            lambda r: (moment(r), moment(r)),
        )
        order = self.targets["shop.order"]
        if restore and self.given.alone and not order.kind.looks:
            order.stores_failures = False  # which key is dead may be forgotten; then a person
        if restore and hasattr(self.stores, "copy"):
            world.at(world.now + restore[0], lambda: self.copy(restore[1]))
        restart = ask("restart", 0.06, lambda r: (moment(r),))
        if restart:
            world.at(world.now + restart[0], self.restart)
        allowed = not self.given.alone or heals
        step = ask("step", 0.08 if allowed else 0.0, lambda r: (
            moment(r), r.choice((-4000, -100, -15, 15, 60, 300, 4000)) * SECOND))  # fmt: skip
        if step:
            world.at(world.now + step[0], lambda: self.step(step[1]))

    def step(self, span: int) -> None:
        self.world.note(f"the store's clock steps by {span / 1e6:.0f} s")
        # Somebody who knew the clock before sees it at once: nobody can know of a step
        # that all witnesses of have gone.
        witness = self.at_desk()
        witness.engine.world()
        self.world.offset += span
        if self.given.breaks != "unseen step":
            witness.engine.world()
        else:
            self.broken_for_all("unseen step")
        self.world.rouse_all()

    def copy(self, after: int) -> None:
        gap, copy = self.world.store_now(), self.stores.copy()
        self.world.note("the store is copied")
        self.world.at(self.world.now + after, lambda: self.restore(copy, gap))

    def kill_all(self) -> None:
        for actor in self.world.actors.values():
            actor.dead = True
        self.generation += 1

    def restart(self) -> None:
        self.world.note("everything restarts")
        self.kill_all()
        self.people_it(first=False)

    def restore(self, copy: bytes, gap: int) -> None:
        self.world.note("the store is restored from the copy")
        self.kill_all()
        self.stores.put(copy)
        world = self.world
        world.due.clear()
        world.open_reviews.clear()
        self.story.restores.append(world.now)
        self.desk = None
        ledger = self.at_desk().ledger
        for snapshot in ledger.store.find(Filter(namespace=NAMESPACE, unsettled=True), "", 1000):
            ident = snapshot.operation.id
            world.move_due(ident, snapshot.status.due_at)
            roads = {r.road for r in ledger.reviews(ident)}
            world.open_reviews[ident] = roads
            if roads or snapshot.status.waiting_on is WaitingOn.APPROVAL:
                world.at(world.now + 60 * SECOND, lambda i=ident: self.visit(i))
        ledger.restored(gap, "from a copy")
        self.visits.clear()
        self.people_it(first=False)

    def people_it(self, *, first: bool) -> None:
        """Start everybody; callers come again with what they asked for."""
        for number in range(self.given.workers):
            self.worker(number, number * 7 * SECOND + STEP)
        for order in range(self.given.orders):
            for number in range(self.given.callers):
                after = self.random.randrange(12) * SECOND if number or not first else STEP
                self.caller(number, order, after)

    # --- the whole ---

    def play(self) -> None:
        world = self.world
        self.people_it(first=True)
        self.disasters()
        world.at(world.now + PEACE, self.peace)
        world.run()
        self.evidence_comes()
        self.ends()

    def peace(self) -> None:
        self.world.quiet = True

    def evidence_comes(self) -> None:
        """Where an assumption was broken, the target tells of everything that it did."""
        for effect in list(self.story.effects):
            count = len([e for e in self.story.effects if e.name == effect.name])
            if self.story.broken[effect.name] and count > 1:
                self.says(effect, f"end-{effect.ref}")
        self.world.run()

    def ends(self) -> None:
        ledger, story = self.at_desk().ledger, self.story
        names = {s.operation.id: f"{s.operation.action}/{s.operation.key}"
                 for s in ledger.store.find(Filter(namespace=NAMESPACE), "", 1000)}  # fmt: skip
        for ident, snapshot in ledger.store.snapshots(list(names)).items():
            operation, status = snapshot.operation, snapshot.status
            reviews = ledger.store.reviews(NAMESPACE, ident, closed=True)
            story.final[names[ident]] = Final(
                name=names[ident], state=status.state.value, reason=status.reason.value,
                waiting_on=status.waiting_on.value, due=status.due_at is not None, ref=status.ref,
                refs=ledger.references(ident),
                reviews=[r.road for r in reviews if r.closed_at is None or not story.alone],
                settled=is_settled(status), said=status.said,
                older=names.get(operation.supersedes or "", ""),
                undoes=names.get(operation.compensates or "", ""),
            )  # fmt: skip
        for name in {*story.submitted, *(s.name for s in story.sends)}:
            kind = self.targets[name.split("/")[0]].kind
            late = None if kind.late is None or kind.own else kind.late * SECOND
            story.promises[name] = Promise(
                protects=kind.protects, at_once=kind.at_once and not kind.overwrites,
                keeps=kind.keeps * SECOND if kind.protects == "remembers" else NEVER,
                late=late, lag=kind.lag * SECOND, attempts=ATTEMPTS,
            )  # fmt: skip


class _Always(dict[str, set[str]]):
    """Everything is broken."""

    def __init__(self, what: str, before: dict[str, set[str]]) -> None:
        super().__init__(before)
        self.what = what

    def __missing__(self, name: str) -> set[str]:
        self[name] = {self.what}
        return self[name]


_stores: list[Stores] = []


def simulate(
    seed: int, plan: Plan | None = None, *, trace: bool = False, stores: Any = None,
    given: Setting | None = None,
) -> Outcome:  # fmt: skip
    """Play one schedule, by its seed or by a plan of it, and judge it."""
    if stores is None:
        if not _stores:
            _stores.append(Stores())
        stores = _stores[0]
    given = given or setting(seed)
    world = World(seed, Adversary(seed, given.budget, plan, given.often), stores.store)
    stores.fresh(world)
    world.trace = [] if trace else None
    sim = Sim(given, world, stores)
    sim.play()
    verdicts = judge(world.story)
    return Outcome(
        setting=given, story=world.story, verdicts=verdicts, plan=world.adversary.did,
        trace=world.trace or [], attempts=world.attempts, steps=world.steps,
        needed_person=bool(sim.needed),
    )  # fmt: skip


__all__ = ["LEASE", "Outcome", "simulate"]

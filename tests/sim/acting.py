"""What a driver does, in steps: send an effect request, wait for its answer, look things up.

Between any two steps the adversary may freeze or crash the worker. The guards in the way are the
real ones: the deadline, one request per attempt, the frozen bytes, what an answer proves.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Generator
from concurrent.futures import Future
from random import Random
from typing import Any

import httpcore2

from ascertain.core.errors import AscertainError, SendRefused, StoreError
from ascertain.core.model import (
    Absent,
    Accepted,
    ActFinding,
    Change,
    Done,
    Kind,
    NotDone,
    Request,
    Several,
    Unknown,
)
from ascertain.core.reconcile import LookReport
from ascertain.runtime import perform
from ascertain.runtime.asks import Read, Write, outcome
from ascertain.runtime.driving import Act, Asked, Look, Queue, Sleep, Wait
from ascertain.runtime.ledger import Ledger
from ascertain.runtime.looking import start_looking
from ascertain.store.base import Written
from ascertain.targets.http import Answered, HttpAnswer
from ascertain.targets.wire import Wire

from .auditor import NEVER, Send
from .auditor import Look as Looked
from .kinds import CONTROL, SECOND, KindOfTarget
from .targets import Arriving, Target
from .world import HORIZON, STEP, Actor, Front, SimClock, World

LEASE = 10 * SECOND
NAMESPACE = "acme"
ATTEMPTS = 12
BOUNDS = {"timeout": LEASE / SECOND, "attempts": ATTEMPTS, "lookups": 25, "total": "2d",
          "longest_delay": "2m", "accepted": "2h", "extensions": 3}  # fmt: skip


def prepare(ident: Any, *, order: str, text: str = "") -> Request:
    body = {"id": ident.target_key, "text": text, "order": order}
    return Request(
        method="POST", url="https://target.example/things",
        headers=(("Idempotency-Key", ident.target_key),), body=json.dumps(body).encode(),
    )  # fmt: skip


class Process:
    """One process with a ledger: what a worker, a caller or a person works with."""

    def __init__(self, world: World, actor: Actor, targets: dict[str, Target]) -> None:
        self.world, self.actor, self.targets = world, actor, targets
        self.clock = SimClock(actor)
        self.ledger = Ledger(
            Front(world, actor), namespace=NAMESPACE, clock=self.clock, worker=actor.name
        )
        self.engine = self.ledger.engine
        if world.seed % 4:  # nobody here listens to alarms: they are looked for in some seeds
            self.engine.alarms_at = 2**62
        self.told: dict[int, Callable[[], None]] = {}  # by attempt, when its report is written
        self.actions = {name: self._register(name, t.kind) for name, t in targets.items()}

    def _register(self, name: str, kind: KindOfTarget) -> Any:
        own = {"sends": "own"} if kind.own else {"sends": "call", "prepare": prepare}

        @self.ledger.action(
            name, key="{order}", owner="anna", contract=kind.contract(), scope="acme",
            risky=kind.risky, **own, **BOUNDS, **kind.declares,
        )  # fmt: skip
        def action(call: Any, *, order: str, text: str = "") -> None:
            raise AssertionError("the simulator acts in its place")

        if kind.looks:
            late = f"{kind.late}s" if kind.assumed else None
            action.lookup(control=CONTROL if kind.control else None, late=late)(lambda _: None)
        return action

    def when_written(self, ticket: Any, tell: Callable[[], None]) -> None:
        self.told[ticket.attempt.token] = tell

    # --- what a driver carries out ---

    def carry_out(self, asked: Asked) -> Generator[int, None, Any]:
        match asked:
            case Act(ticket):
                return (yield from act(self, ticket))
            case Look(ticket):
                return (yield from look(self, ticket))
            case Sleep(duration):
                yield max(duration, STEP)
            case Read(what):
                return what()
            case Write(change):
                return (yield from self.write(change))
            case Queue(change):
                return (yield from self.queue(change))
            case Wait(commit):
                return outcome(commit)
        return None

    def write(self, change: Change) -> Generator[int, None, Written]:
        [written] = self.engine.store.write([change])
        reports = {e.attempt for e in change.evidence if e.kind != "expired"}
        for token in reports & self.told.keys() if written.applied else ():
            self.told.pop(token)()
            yield STEP
        return written

    def queue(self, change: Change) -> Generator[int, None, Future[Written]]:
        future: Future[Written] = Future()
        try:
            future.set_result((yield from self.write(change)))
        except StoreError as error:
            future.set_exception(error)
        return future

    def drive(self, steps: Any) -> Generator[int, None, Any]:
        answer, error = None, None
        while True:
            try:
                asked = steps.send(answer) if error is None else steps.throw(error)
            except StopIteration as end:
                return end.value
            answer = error = None
            try:
                answer = yield from self.carry_out(asked)
            except AscertainError as raised:
                error = raised

    def pause(self, where: str, chance: float = 0.02, longest: int = HORIZON) -> int:
        return self.world.pause(self.actor, where, chance, longest)


# --- effect requests ---


class Line:
    """A wire without a socket: its check of the deadline is the real one."""

    _cut = False

    def __init__(self, ticket: Any, clock: SimClock) -> None:
        self._deadline, self._clock = (lambda: ticket.deadline), clock.boottime

    def left(self) -> float:
        return Wire.left(self)

    def cut(self) -> None:
        self._cut = True


def act(p: Process, ticket: Any) -> Generator[int, None, ActFinding]:
    call = perform.make_call(p.engine, ticket, effect=True)
    d, world = ticket.definition, p.world
    target = p.targets[d.name]
    name = f"{d.name}/{ticket.case.operation.key}"
    send: list[Send] = []
    try:
        yield p.pause("claimed")
        answer = yield from request(p, ticket, call, target, send)
        finding: Any = finding_of_answer(answer, d.declared.contract)
    except Answered as error:
        finding = error.finding
        if perform.reads_back(error):
            found = yield from read_back(p, ticket, target)
            finding = perform.finding_of_read_back(found, error)
    except (httpcore2.NetworkError, httpcore2.TimeoutException, SendRefused) as error:
        finding = perform.finding_of_error(error, d, call)
    finally:
        call.close()
    closed = world.now  # nothing is sent after this
    yield p.pause("answered")
    world.settles[ticket.attempt.token] = lambda: settled(target, send, finding, closed, world)
    if isinstance(finding, Done | Accepted) and finding.ref is not None:
        ref = str(finding.ref)
        p.when_written(ticket, lambda: world.story.told.append((world.now, name, ref)))
    return finding


def settled(
    target: Target, sends: list[Send], finding: Any, closed: int, world: World
) -> None:  # fmt: skip
    """What the ledger knows of an attempt from now on, durably."""
    for send in sends:
        if isinstance(finding, NotDone):
            same = [s for s in world.story.sends if (s.name, s.key) == (send.name, send.key)]
            if finding.stored:
                world.dead.setdefault((send.name, send.key), world.now)
            for one in same if finding.stored else [send]:  # it speaks for its key, or for itself
                one.refused = one.refused or world.now
        elif isinstance(finding, Unknown) and not target.kind.own and target.kind.late is not None:
            send.latest = min(send.latest, closed + target.kind.late * SECOND)


def request(
    p: Process, ticket: Any, call: Any, target: Target, sends: list[Send]
) -> Generator[int, None, HttpAnswer]:
    """The one effect request of an attempt: admitted, checked, written, and answered or not."""
    world, kind = p.world, target.kind
    made = ticket.request or prepare(call, **ticket.input)
    http = call.http
    http._admit(made)
    fate = world.adversary.ask(f"{p.actor.name}:send", 0.0 if world.quiet else 0.5,
                               lambda r: choose(r, p, ticket, target))  # fmt: skip
    if fate:
        world.note(f"{p.actor.name} sends, and {fate}")
    if fate[:1] == ("connect",):
        raise httpcore2.ConnectError("refused")
    Line(ticket, p.clock).left()
    http.trace.start()
    ends = ticket.deadline - p.clock.offset  # on the real clock
    by = NEVER if kind.late is None or kind.own else ends + kind.late * SECOND
    checked = world.now
    if fate[:1] == ("stalls",):  # between the check and the write
        yield fate[1]
    else:
        yield p.pause("checked", 0.01, longest=max(min(by, HORIZON) - world.now, 0))
    send = Send(
        at=checked, token=ticket.attempt.token, name=f"{ticket.definition.name}/{call.key}",
        key=call.target_key, text=made.body.decode().replace(call.target_key, "KEY"), latest=by,
        durable=ticket.attempt.token in world.tokens, in_time=checked <= ends,
    )  # fmt: skip
    send.refused = world.dead.get((send.name, send.key))
    world.story.sends.append(send)
    sends.append(send)
    http.trace.whole = True
    world.note(f"{p.actor.name} SENT {send.name} {send.text} {send.key[:4]}")
    answer = yield from exchange(p, ticket, target, send, fate)
    status, body = answer
    got = HttpAnswer(
        status=status, headers={}, content=json.dumps(body).encode(), url="",
        seen={"status": status},
    )  # fmt: skip
    return http._judged(got, check=True)


def finding_of_answer(answer: HttpAnswer, contract: Any) -> Done | Accepted:
    kind = Accepted if contract.ok.accepted else Done
    return kind(ref=answer.json()["id"])


def exchange(
    p: Process, ticket: Any, target: Target, send: Send, fate: tuple[Any, ...]
) -> Generator[int, None, tuple[int, dict[str, Any]]]:
    """Hand a request to the target and wait for its answer until the deadline."""
    world = p.world
    got: list[Any] = []
    what, more = (fate[0], fate[1:]) if fate else ("", ())
    travels, works, back, resets = STEP, STEP, STEP, NEVER
    if what in ("slow", "answer lost", "late", "reset"):
        travels, works, back = (*more, NEVER, NEVER)[:3]
    if what == "reset":
        resets, back = back, NEVER
    if what != "late" and send.latest < NEVER:  # it was held up before it was written
        room = max(send.latest - world.now - 2, 0)
        travels = min(travels, room)
        works = min(works, room - travels)

    def answer(said: Any) -> None:
        if back < NEVER:
            world.at(world.now + back, lambda: (got.append(said), world.wake(p.actor)))

    arrives = NEVER if what == "lost" else world.now + travels
    by = send.latest
    asked = Arriving(send=send, arrives=arrives, works=works, answer=answer, by=by)
    if what in ("refused", "stored", "lies"):
        setattr(asked, {"refused": "refuse"}.get(what, what), more[0])
    if what == "lies":
        world.story.broken[send.name].add("refusal")
    if what == "twice":
        if not target.kind.at_once:
            world.story.broken[send.name].add("twice")
        copy = Arriving(send=send, arrives=world.now + more[0], works=works, answer=lambda _: None,
                     by=by)  # fmt: skip
        target.receive(copy)
    target.receive(asked)
    if resets < NEVER:
        yield max(resets, STEP)
        raise httpcore2.ReadError("connection reset")
    while not got:
        left = ticket.deadline - p.clock.boottime()
        if left <= 0:
            raise httpcore2.ReadTimeout("no answer before the deadline")
        yield left
    yield p.pause("got")
    return got[0]


def choose(r: Random, p: Process, ticket: Any, target: Target) -> tuple[Any, ...]:
    """What becomes of a request, within what the target promises unless told otherwise."""
    kind = target.kind
    left = max(ticket.deadline - p.clock.boottime(), 1)
    late = (kind.late if kind.late is not None else 600) * SECOND
    longest = left + late - 10 * STEP
    broken = target.breaks
    name = f"{ticket.definition.name}/{ticket.case.operation.key}"
    if broken and r.random() < 0.3:
        if "late" in broken:
            return ("late", STEP, longest + r.choice((1, 30, 400)) * SECOND)
        if "stall" in broken:
            return ("stalls", left + late + r.choice((1, 60)) * SECOND)
        if "lies" in broken:
            return ("lies", r.choice((429, 503)))
        if "twice" in broken:
            return ("twice", r.choice((STEP, 5 * SECOND)))
    part = r.choice((0.0, 0.3, 0.9, 1.0))
    travels = int(longest * part * r.choice((0.0, 0.5, 1.0)))
    works = int(longest * part) - travels
    happened = bool(target.of(name))
    unhappy = (401, 403, 422, 429) if target.people else (429, 503)
    codes = (401, 429, 503) if happened else unhappy
    resets = max(travels + works - late, 0) + r.choice((STEP, SECOND))
    options: list[tuple[Any, ...]] = [
        ("lost",), ("answer lost", travels, works), ("answer lost", travels, works),
        ("slow", travels, works, r.choice((STEP, SECOND, 30 * SECOND))),
        ("refused", r.choice(codes)), ("connect",),
    ]  # fmt: skip
    if resets < left:
        options.append(("reset", travels, works, resets))
    if target.stores_failures:
        options.append(("stored", r.choice((422, 503) if target.people else (503,))))
    if kind.at_once:
        options.append(("twice", r.choice((STEP, SECOND))))
    return r.choice(options)


# --- look-ups ---


def look(p: Process, ticket: Any) -> Generator[int, None, LookReport]:
    steps = start_looking(p.engine, ticket)
    world, target = p.world, p.targets[ticket.definition.name]
    name = f"{ticket.definition.name}/{ticket.case.operation.key}"
    began, key, whole = world.now, next(steps), True
    refs: set[str] = set()
    operation, epochs = ticket.case.operation, range(1, ticket.case.status.epoch + 2)
    own = {p.engine.target_key(operation.action, operation.key, e) for e in epochs}
    denied = world.adversary.ask(f"{p.actor.name}:denied", 0.0 if world.quiet else 0.04,
                                 lambda _: ("sees nothing",))  # fmt: skip
    while True:
        found = Absent() if denied else (yield from find(p, target, key, name))
        if isinstance(found, Done | Several | Accepted):
            given = found.refs if isinstance(found, Several) else [found.ref]
            refs |= {str(ref) for ref in given} if key in own else set()
        elif not isinstance(found, Absent) or not found.complete:
            whole = False
        try:
            key = steps.send(found)
        except StopIteration as end:
            report = end.value
            break
    if whole and not refs and not denied:  # e.g. without the right to read, all is 404
        world.story.looks.append(Looked(began, world.now, name))
    if isinstance(report.finding, Done | Several):  # else its controls took its worth away
        told = sorted(refs)
        p.when_written(
            ticket, lambda: world.story.told.extend((world.now, name, ref) for ref in told)
        )
    return report


def find(p: Process, target: Target, key: str, name: str) -> Generator[int, None, Any]:
    """One look-up by a target key, as it is answered."""
    world = p.world
    yield p.pause("looks", 0.01)
    fate = world.adversary.ask(f"{p.actor.name}:look", 0.0 if world.quiet else 0.08,
                               lambda r: choose_look(r, target))  # fmt: skip
    seen = target.look(key)
    if fate:
        world.note(f"{p.actor.name} looks, and {fate}")
        match fate[0]:
            case "error":
                yield STEP
                return Unknown("503")
            case "part":
                return Absent(complete=False)
            case "foreign":
                world.story.broken[name].add("foreign")
                others = [e for e in target.objects if e.name != name]
                seen = others[:1] or seen
            case "lags":
                world.story.broken[name].add("lag")
                seen = target.look(key, lag=600 * SECOND) if key != CONTROL else seen
    yield p.pause("looked", 0.01)
    world.note(f"{p.actor.name} looked {key[:4]}: {[e.ref for e in seen]}")
    refs = list(dict.fromkeys(e.ref for e in seen))
    if len(refs) > 1:
        return Several(refs)
    if not refs:
        return Absent()
    return Done(ref=refs[0])


def choose_look(r: Random, target: Target) -> tuple[Any, ...]:
    broken = target.breaks
    if "lag" in broken:
        return ("lags",)
    if target.finds_anything:  # a cut page for the invented key would hide that it does
        return ("error",)
    if "foreign" in broken and r.random() < 0.5:
        return ("foreign",)
    return r.choice((("error",), ("error",), ("part",)))


def read_back(p: Process, ticket: Any, target: Target) -> Generator[int, None, Any]:
    """Read an object that exists already by our own key (law 6)."""
    if not target.kind.looks:
        yield STEP
        key = ticket.case.status.target_key
        mine = [e for e in target.objects if e.key == key]
        return Done(ref=mine[0].ref) if mine else Absent()
    name = f"{ticket.definition.name}/{ticket.case.operation.key}"
    return (yield from find(p, target, ticket.case.status.target_key, name))


__all__ = ["Kind", "Process", "SendRefused", "act", "look"]

"""Events on their way in: recorded durably, answered, then made into operations exactly once.

In the order of an event's life: the event and its delivery are one posting, and only when that is
durable is the sender answered. Whoever is first then takes the event by moving its due time,
evaluates the mapping (which is pure), records the operations under their keys, and marks it. A
crash anywhere leaves it due; what was recorded already is found by its key and not made again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from ascertain.core import intake
from ascertain.core.books import Delivery, Event, Subject
from ascertain.core.errors import StoreError, UnknownAction
from ascertain.core.model import SECOND, Record
from ascertain.store.base import Posting, Store

from .action import Definition, Intent
from .asks import Storing, together
from .audit import AuditLog, Who
from .beginning import Begun, beginning
from .engine import Engine
from .hooks import Arrived, Hook
from .loop import posted
from .mapping import Evaluated, Plan, evaluate
from .ticket import Options, Ticket

BATCH = 50  # events that are processed together
HOLD = 30 * SECOND  # µs for which an event is taken: a killed process gives it back after that
LONGEST_DELAY = 3600 * SECOND  # µs between two tries of one that cannot be processed here
TEST = ".test"  # behind the name of a hook: what its test entry received
MOST_COUNTED = 1000  # names of hooks and reasons that are counted


class Made(msgspec.Struct, frozen=True, kw_only=True):
    """One operation that an event led to. `shared`: it was there before, of another event or
    of an earlier try."""

    action: str
    key: str
    operation: str
    shared: bool = False


class EventLine(Record, frozen=True, kw_only=True):
    """An event in a list: without its body, with how it arrived."""

    source: str
    id: str
    received_at: int
    topic: str
    state: str
    why: str
    signature: str
    subject: str
    ordinal: int | None
    operations: str
    processed_at: int | None
    deliveries: int
    arrivals: int
    subscriptions: int


class Wanted(msgspec.Struct, frozen=True):
    """One operation that an event asks for, checked: what would be recorded."""

    plan: Plan
    definition: Definition
    intent: Intent


class Intake:
    """The declared senders of some namespaces of one store."""

    def __init__(
        self, store: Store, engines: Mapping[str, Engine], hooks: Mapping[str, Hook]
    ) -> None:
        """Work on a store; `engines` by namespace, with the actions that are declared there."""
        self.store, self.engines, self.hooks = store, engines, hooks
        # Bounded: names of hooks are declared, what is counted are the words below.
        self.counts: Counter[tuple[str, str]] = Counter()

    def hook(self, name: str, namespace: str | None = None) -> Hook | None:
        """Return a declared hook, of a namespace if one is given."""
        found = self.hooks.get(name)
        if found is None or found.namespace not in self.engines:
            return None
        return found if namespace in (None, found.namespace) else None

    def count(self, hook: str, what: str) -> None:
        """Count what leaves no other trace, e.g. a wrong signature."""
        if (hook, what) in self.counts or len(self.counts) < MOST_COUNTED:
            self.counts[hook, what] += 1

    # --- receiving ---

    async def receive(
        self, hook: Hook, arrived: Arrived, *, test: bool = False, hold: int = 0
    ) -> bool:
        """Record an event and its delivery; both are durable when it returns. Returns whether
        the event is new. `test`: it is shown and never acted on; `hold`: µs until somebody else
        may process it."""
        posting = self.posting(hook, arrived, test=test, hold=hold)
        answer = await posted(self.store, posting)
        new = answer.rows[0] == 1
        self.count(hook.name, "received" if new else "repeated")
        return new

    def posting(
        self, hook: Hook, arrived: Arrived, *, test: bool = False, hold: int = 0
    ) -> Posting:
        """Return what is written of a delivery: the event, of which the first one stays, and
        the arrival, which is counted."""
        now = self.store.now()
        source = hook.name + TEST if test else hook.name
        event = Event(
            namespace=hook.namespace, source=source, id=arrived.event, received_at=now,
            topic=arrived.topic, state="shown" if test else "received",
            due_at=None if test else now + hold, signature=arrived.signature,
            subject=arrived.subject, ordinal=arrived.ordinal,
            headers=msgspec.json.encode(arrived.headers).decode(), body=arrived.text,
            processed_at=now if test else None,
        )  # fmt: skip
        delivery = Delivery(
            namespace=hook.namespace, source=source, id=arrived.delivery, event=arrived.event,
            first_at=now, last_at=now, subscription=arrived.subscription,
            body_hash=arrived.digest,
        )  # fmt: skip
        return Posting((("event_add", event), ("delivery_arrive", delivery)))

    # --- processing ---

    def process(self, limit: int = BATCH) -> int:
        """Process events that are due now, at most `limit` of each namespace; return how many.

        What an event leads to is durable when it returns. Safe in several processes, and to be
        killed at any moment.
        """
        return sum(self._process(engine, limit) for engine in self.engines.values())

    def _process(self, engine: Engine, limit: int) -> int:
        now = self.store.now()
        due = self.store.ask(Event, "events_due", namespace=engine.namespace, now=now, limit=limit)
        if not due:
            return 0
        taken = self._taken(due, now + HOLD)
        wanted: dict[int, list[Wanted]] = {}
        endings: list[Posting] = []
        for place, event in enumerate(taken):
            try:
                found = self._wanted(engine, event)
            except UnknownAction as error:
                endings.append(self.later(event, str(error)))
            except StoreError:
                raise
            except Exception as error:  # noqa: BLE001 - a person is next; its neighbours go on
                endings.append(self.ending(event, "failed", said(error)))
            else:
                if isinstance(found, str):
                    endings.append(self.ending(event, "ignored", found))
                else:
                    wanted[place] = found
        endings += self._older(taken, wanted)
        endings += self._recorded(engine, taken, wanted)
        self.store.post(endings)
        return len(taken)

    def _taken(self, due: Sequence[Event], until: int) -> list[Event]:
        """Take events by moving their due time; only who read the old one gets it."""
        answers = self.store.post([
            Posting(
                (("event_take", {
                    "namespace": e.namespace, "source": e.source, "id": e.id, "was": e.due_at,
                    "until": until,
                }),), must=(0,),
            )
            for e in due
        ])  # fmt: skip
        return [event for event, one in zip(due, answers, strict=True) if one.applied]

    def _wanted(self, engine: Engine, event: Event) -> list[Wanted] | str:
        """Return the operations that an event asks for, or why for none."""
        found = self.evaluated(event)
        if found.ignored:
            return found.ignored
        now = self.store.now()
        return [checked(engine, plan, now) for plan in found.plans]

    def evaluated(self, event: Event) -> Evaluated:
        """Return what the mapping says of an event; raises MappingFailed, UnknownAction where
        its hook is not declared here."""
        hook = self.hook(event.source.removesuffix(TEST), event.namespace)
        if hook is None:
            raise UnknownAction(
                f"no hook {event.source!r} is declared here: declare it again in ascertain.toml"
            )
        return evaluate(hook.rules, root(event))

    def _older(self, taken: Sequence[Event], wanted: dict[int, list[Wanted]]) -> list[Posting]:
        """Take away what is older than what was acted on; decided by one guarded statement
        each, never by a look before it."""
        places = [p for p in wanted if taken[p].subject and taken[p].ordinal is not None]
        raises = [self._raise(taken[place]) for place in places]
        stale = [
            place
            for place, one in zip(places, self.store.post(raises), strict=True)
            if not one.applied
        ]
        for place in stale:
            del wanted[place]
        return [self.ending(taken[place], "stale", intake.STALE) for place in stale]

    def _raise(self, event: Event) -> Posting:
        assert event.ordinal is not None
        line = Subject(
            namespace=event.namespace, source=event.source, id=event.subject,
            ordinal=event.ordinal, event=event.id, at=self.store.now(),
        )  # fmt: skip
        return Posting((("subject_raise", line),), must=(0,))

    def _recorded(
        self, engine: Engine, taken: Sequence[Event], wanted: Mapping[int, Sequence[Wanted]]
    ) -> list[Posting]:
        """Record the operations of many events, in common commits; return how each event ends."""
        flat = [(place, one) for place, many in wanted.items() for one in many]
        steps: list[Storing[Begun]] = [
            beginning(engine, one.definition, one.intent, _options(taken[place], one.plan),
                      execute=False)
            for place, one in flat
        ]  # fmt: skip
        made: dict[int, list[Made]] = {place: [] for place in wanted}
        wrong: dict[int, list[str]] = {}
        for (place, one), begun in zip(flat, together(self.store, steps), strict=True):
            if isinstance(begun, StoreError):
                raise begun  # what was recorded is found again by its key
            if isinstance(begun, Exception):
                wrong.setdefault(place, []).append(said(begun))
                continue
            made[place].append(_made(one, begun))
        return [self.outcome(taken[p], made[p], wrong.get(p, ())) for p in wanted]

    def ending(
        self, event: Event, state: intake.EventState, why: str = "", made: Sequence[Made] = ()
    ) -> Posting:
        """Return what is written when an event has been processed; the first ending stays."""
        return Posting((("event_finish", {
            "namespace": event.namespace, "source": event.source, "id": event.id,
            "state": state, "why": why[:1000], "processed_at": self.store.now(),
            "operations": msgspec.json.encode(made).decode(),
        }),))  # fmt: skip

    def outcome(self, event: Event, made: Sequence[Made], wrong: Sequence[str]) -> Posting:
        """Return what is written once an event's operations are recorded, or some cannot be."""
        return self.ending(event, "failed" if wrong else "processed", "; ".join(wrong), made)

    def later(self, event: Event, why: str) -> Posting:
        """Put an event off that cannot be processed here: another process may know how."""
        delay = min(SECOND << min(event.tries, 12), LONGEST_DELAY)
        return Posting((("event_postpone", {
            "namespace": event.namespace, "source": event.source, "id": event.id,
            "due_at": self.store.now() + delay, "why": why[:1000],
        }),))  # fmt: skip

    def again(self, namespace: str, source: str, ident: str, who: Who) -> bool:
        """Let an event that failed be processed again; durable, with its line in the audit. What
        it led to already has its key and is not made again. Returns whether it had failed."""
        line = {"namespace": namespace, "source": source, "id": ident}
        audit = AuditLog(self.store).line(
            who, namespace, "event.process", subject=f"{source}/{ident}", before="failed",
            after="received",
        )  # fmt: skip
        lines = (("event_again", {**line, "due_at": self.store.now()}), audit)
        return self.store.post([Posting(lines, must=(0,))])[0].applied

    # --- seeing ---

    def event(self, namespace: str, source: str, ident: str) -> Event | None:
        """Return an event."""
        found = self.store.ask(Event, "event_one", namespace=namespace, source=source, id=ident)
        return found[0] if found else None

    def deliveries(self, event: Event, limit: int = 1000) -> list[Delivery]:
        """Return how an event arrived, oldest first."""
        return self.store.ask(
            Delivery, "deliveries_of", namespace=event.namespace, source=event.source,
            event=event.id, limit=limit,
        )  # fmt: skip


def root(event: Event, data: Any = None) -> dict[str, Any]:
    """Return what expressions see of an event; raises NotAnEvent where its body is gone."""
    headers = msgspec.json.decode(event.headers)
    if data is None:
        body = event.body.encode()
        _, data = intake.decoded(body, headers.get("content-type", ""))
    return {
        "id": event.id, "source": event.source, "topic": event.topic, "subject": event.subject,
        "ordinal": event.ordinal, "headers": headers, "body": data,
    }  # fmt: skip


def checked(engine: Engine, plan: Plan, now: int) -> Wanted:
    """Return a plan with its key and input checked; nothing is recorded. Raises InputRefused,
    KeyRefused, UnknownAction."""
    if plan.flow and plan.action not in engine.actions:
        raise UnknownAction(
            f"the flow {plan.action!r} is code: a worker that knows it takes this up"
            " (ascertain work --app MODULE:LEDGER)"
        )
    definition = engine.definition(plan.action)
    return Wanted(plan, definition, definition.intent(plan.input, now, plan.key))


def _options(event: Event, plan: Plan) -> Options:
    return Options(event=event.id, given_key=plan.key)


def _made(one: Wanted, begun: Begun) -> Made:
    started, shared = begun
    case = started.case if isinstance(started, Ticket) else started
    return Made(
        action=one.plan.action, key=case.operation.key, operation=case.operation.id, shared=shared
    )


def said(error: Exception) -> str:
    """Return what went wrong on one line."""
    return " ".join(str(error).split()) or type(error).__name__

"""What a map would make of an event: shown, never recorded and never acted on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
from msgspec.structs import replace

from ascertain.core import intake
from ascertain.core.books import Event
from ascertain.core.errors import AscertainError, UnknownAction
from ascertain.core.signatures import Message

from .hooks import Hook
from .intake import Intake, checked, said
from .mapping import MappingFailed, Plan


class Pasted(msgspec.Struct, frozen=True, kw_only=True):
    """An event that somebody wants to try."""

    body: Any
    headers: dict[str, str] = {}
    id: str = ""
    topic: str = ""


class Planned(msgspec.Struct, frozen=True, kw_only=True):
    """One operation that is asked for: the one that exists under its key, or what is wrong."""

    action: str
    input: dict[str, Any]
    key: str = ""
    exists: str | None = None  # operation id
    state: str = ""
    wrong: str = ""


class Evaluation(msgspec.Struct, frozen=True, kw_only=True):
    """What the map makes of one event."""

    id: str
    source: str
    topic: str
    plans: tuple[Planned, ...] = ()
    ignored: str = ""
    wrong: str = ""


def evaluation(of: Intake, event: Event) -> Evaluation:
    """Evaluate a recorded event again, with the map as it is now."""
    return _evaluated(of, event)


def mapping(of: Intake, hook: Hook, pasted: Sequence[Pasted]) -> list[Evaluation]:
    """Evaluate pasted events, in order."""
    return [_try(of, hook, one) for one in pasted]


def shared(found: Sequence[Evaluation]) -> dict[tuple[str, str], list[str]]:
    """Return the keys that several events share, by action and key, with the events' ids."""
    by_key: dict[tuple[str, str], list[str]] = {}
    for one in found:
        for plan in one.plans:
            if plan.key:
                by_key.setdefault((plan.action, plan.key), []).append(one.id)
    return {key: events for key, events in by_key.items() if len(set(events)) > 1}


def _try(of: Intake, hook: Hook, pasted: Pasted) -> Evaluation:
    text = msgspec.json.encode(pasted.body)
    headers = {n.lower(): v for n, v in pasted.headers.items()} | {"content-type": ""}
    try:
        if pasted.id:
            arrived = hook.handed_in(pasted.id, pasted.topic, text.decode(), pasted.body)
        else:
            arrived = hook.arrived(Message(headers, text), "pasted")
    except (intake.NotAnEvent, MappingFailed) as error:
        return Evaluation(id=pasted.id, source=hook.name, topic=pasted.topic, wrong=said(error))
    kept = arrived.headers | ({} if not pasted.id else headers)
    event = Event(
        namespace=hook.namespace, source=hook.name, id=arrived.event, received_at=0,
        topic=pasted.topic or arrived.topic, subject=arrived.subject, ordinal=arrived.ordinal,
        headers=msgspec.json.encode(kept).decode(), body=arrived.text,
    )  # fmt: skip
    return _evaluated(of, event)


def _evaluated(of: Intake, event: Event) -> Evaluation:
    told = Evaluation(id=event.id, source=event.source, topic=event.topic)
    try:
        found = of.evaluated(event)
    except (MappingFailed, AscertainError, intake.NotAnEvent) as error:
        return replace(told, wrong=said(error))
    plans = tuple(_planned(of, event, plan) for plan in found.plans)
    return replace(told, plans=plans, ignored=found.ignored)


def _planned(of: Intake, event: Event, plan: Plan) -> Planned:
    engine = of.engines[event.namespace]
    try:
        key = checked(engine, plan, of.store.now()).intent.key
    except AscertainError as error:
        elsewhere = plan.flow and isinstance(error, UnknownAction)  # its code says the key
        wrong = "" if elsewhere else said(error)
        return Planned(action=plan.action, input=plan.input, wrong=wrong)
    [there] = of.store.by_keys(event.namespace, [(plan.action, key)])
    return Planned(
        action=plan.action, input=plan.input, key=key,
        exists=there.operation.id if there else None,
        state=str(there.status.state) if there else "",
    )  # fmt: skip

"""Everything about one operation, as its page and the decision beside it show it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from ascertain.core.books import Event
from ascertain.core.candidates import Seen
from ascertain.core.draft import Case
from ascertain.core.knowing import Known, knowledge
from ascertain.core.model import Attempt, Record, Run
from ascertain.runtime.approving import Frozen, shown_request
from ascertain.runtime.flow import Member, standing
from ascertain.runtime.intake import TEST
from ascertain.runtime.reviewing import link_of
from ascertain.server.serving import Serving
from ascertain.store.base import Filter
from ascertain.targets.classify.redact import redacted

from .hiding import hidden as hidden_in
from .person import Person
from .timeline import Line, timeline

CELLS = 120  # of a run, beside one of its operations
STANDS = 1000  # operations of a run whose standing is read for that
LONGEST = 8000  # characters of an input or a request that are shown


class _Told(Record, frozen=True):
    due_at: int | None


class Linked(msgspec.Struct, frozen=True, kw_only=True):
    """Another operation that this one is tied to: how, and which."""

    how: str  # supersedes, superseded, repeats, compensates
    operation: str
    title: str


class Strip(msgspec.Struct, frozen=True, kw_only=True):
    """The run that an operation belongs to: one cell for each key, the first CELLS of them; none
    where it has more than `total` operations."""

    run: Run
    cells: tuple[Member, ...]
    total: int
    counts: dict[str, int]


class Detail(msgspec.Struct, frozen=True, kw_only=True):
    """One operation with what is known about it. `shown` and `open`: what we can show, and what
    nobody can show yet; `hidden`: contents are kept from pages here."""

    case: Case
    target: str
    shown: list[str]
    open: list[str]
    history: list[Line]
    attempts: list[Attempt]
    request: Frozen | None
    sent: str
    input: str
    refs: list[tuple[str, str]]
    costs: list[Any]
    links: list[Linked]
    strip: Strip | None
    event: tuple[str, str] | None
    callback: str
    can_ask: bool
    hidden: bool


def detail_of(serving: Serving, me: Person, operation: str) -> Detail:
    """Read everything about an operation of the namespace; raises UnknownOperation."""
    space = serving.space(me.namespace)
    ledger, store, world = space.ledger, space.store, space.engine.world()
    case = ledger.case_of(operation)
    op, evidence = case.operation, store.evidence(operation)
    seen = [Seen(e.at, e.kind, msgspec.json.decode(e.data)) for e in evidence]
    known = knowledge(case, seen, world)
    attempts = store.attempts(operation)
    hidden, names = serving.table.hide_payloads, hidden_of(serving, op.action)
    requests = store.requests(operation)
    request = shown_request(requests[-1]) if requests else None
    manner = serving.manners.get(op.action)
    refs = [r.reference for r in store.references(operation)]
    refs += [case.status.ref] if case.status.ref and case.status.ref not in refs else []
    return Detail(
        case=case,
        target=serving.spaces.target_of(op.action),
        shown=[in_words(one, me, world.now) for one in known.shown],
        open=[in_words(one, me, world.now) for one in known.open],
        history=timeline(
            ledger.history(operation), attempts, me.reader.lang, hidden=hidden, names=names
        ),
        attempts=attempts,
        request=request,
        sent="" if hidden or request is None else _cut(redacted(_raw(request, names))),
        input="" if hidden or op.input is None else _cut(_formatted(hidden_in(op.input, names))),
        refs=[(ref, link_of(manner.open if manner else "", ref)) for ref in refs],
        costs=serving.spaces.costs.of_operation(me.namespace, operation),
        links=_links(space.engine, case),
        strip=_strip(space.engine, store, me.namespace, op.run),
        event=_event(serving, me.namespace, op.event),
        callback=_callback(store, operation),
        can_ask=case.terms.can_look_up,
        hidden=hidden,
    )


def hidden_of(serving: Serving, action: str) -> tuple[str, ...]:
    """Return the fields of an action's target whose values pages do not show."""
    target = serving.understood.targets.get(serving.spaces.target_of(action))
    return () if target is None else tuple(target.hide)


def in_words(known: Known, me: Person, now: int) -> str:
    """Return a statement as its reader writes times."""
    at, span = me.reader.time(known.at, now), known.span
    return known.says(me.reader.lang, at, "" if span is None else me.reader.age(span))


def _raw(request: Frozen, names: Sequence[str]) -> str:
    head = [f"{request.method} {request.url}", *(f"{n}: {v}" for n, v in request.headers)]
    body = request.body
    text = body.text if body.text is not None else f"[{body.size} B, SHA-256 {body.sha256}]"
    return "\n".join([*head, "", hidden_in(text, names) if body.size else ""])


def _formatted(stored: str) -> str:
    return redacted(msgspec.json.format(stored, indent=2))


def _cut(text: str) -> str:
    return text if len(text) <= LONGEST else text[:LONGEST] + "…"


def _links(engine: Any, case: Case) -> list[Linked]:
    op = case.operation
    named = {"supersedes": op.supersedes, "repeats": op.repeats, "compensates": op.compensates}
    if case.successor is not None:
        named["superseded"] = case.successor.operation
    found = engine.store.snapshots([ident for ident in named.values() if ident])
    return [
        Linked(how=how, operation=ident, title=found[ident].operation.title)
        for how, ident in named.items()
        if ident is not None and ident in found
    ]


def _strip(engine: Any, store: Any, namespace: str, run: str | None) -> Strip | None:
    found = [r for r in store.runs(namespace) if run in (r.id, r.name)] if run else []
    if not found:
        return None
    members = Filter(namespace=namespace, run=found[0].id)
    if store.how_many(members, "", STANDS + 1) > STANDS:
        return Strip(run=found[0], cells=(), total=STANDS, counts={})
    stands = standing(engine, found[0])
    counts: dict[str, int] = {}
    for one in stands.members:
        counts[one.standing] = counts.get(one.standing, 0) + 1
    cells = stands.members[:CELLS]
    return Strip(run=found[0], cells=cells, total=len(stands.members), counts=counts)


def events_of(serving: Serving, namespace: str, ident: str) -> list[Event]:
    """Return the events of an id: it is its sender's own, so two senders may use the same."""
    hooks = serving.intake.hooks
    names = [n for n, hook in hooks.items() if hook.namespace == namespace]
    found = (serving.intake.event(namespace, n + t, ident) for n in names for t in ("", TEST))
    return [event for event in found if event is not None]


def _event(serving: Serving, namespace: str, ident: str | None) -> tuple[str, str] | None:
    """Return the source and the id of the event that asked for it, where it came in here."""
    found = events_of(serving, namespace, ident) if ident else []
    return (found[0].source, found[0].id) if found else None


def _callback(store: Any, operation: str) -> str:
    """Return the state of a callback: told, waiting, or nothing. Its address lets in who has it."""
    found = store.ask(_Told, "watch_of", operation=operation)
    return "" if not found else "told" if found[0].due_at is None else "waiting"

"""Figures: what is counted, each by itself, for a time; and alarms: what should have happened."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any, Literal

import msgspec
from fastapi import APIRouter, Request
from starlette.responses import Response

from ascertain.config.spaces import Space
from ascertain.core import figures as rules
from ascertain.core import notices
from ascertain.core.contract import protection
from ascertain.core.model import SECOND
from ascertain.runtime.alarms import Alarm, alarms
from ascertain.runtime.figures import Counts, Period
from ascertain.runtime.loop import hop
from ascertain.server import shown
from ascertain.server.access import Reader
from ascertain.server.messages import answer, documented
from ascertain.server.periods import Asked, Span
from ascertain.server.serving import Serving

router = APIRouter(prefix="/v1", tags=["figures"])
GROUPS = 2000  # hours or days of one answer
UNKNOWN_CLASS = "not declared here"
By = Literal["action", "target", "run", "hour", "day"]


class Recovered(msgspec.Struct, frozen=True, kw_only=True):
    """Effects that were confirmed otherwise than by the first answer, by how."""

    again: int  # done again after proof that it had not happened
    late_answer: int
    look_up: int
    replay: int
    event: int
    person: int


class Figure(msgspec.Struct, frozen=True, kw_only=True):
    """What was submitted and received, and what became of it. Numbers of one figure stand apart:
    more attempts are not more operations."""

    name: str
    label: str = ""
    events: int = 0
    deliveries: int = 0
    arrivals: int = 0
    operations: int = 0
    attempts: int = 0
    look_ups: int = 0
    confirmed: int = 0
    accepted: int = 0
    waiting: int = 0
    unresolved: int = 0
    left: int = 0
    stopped: int = 0
    superseded: int = 0
    missing: int | None = None  # of runs only
    duplicates_prevented: int = 0
    repeats_answered: int = 0  # of these: the same key again, answered from the ledger
    found_done: int = 0  # of these: the outcome was not known, and it had happened
    duplicates_found: int = 0
    needed_person: int = 0
    recovered: Recovered


class ByClass(msgspec.Struct, frozen=True, kw_only=True):
    """How many operations of one protection class needed a person."""

    protection: str
    operations: int
    needed_person: int
    share: float | None


class HumanTime(msgspec.Struct, frozen=True, kw_only=True):
    """How long reviews were open until a person had decided; `capped`: the newest ones only."""

    median_seconds: float | None
    p95_seconds: float | None
    reviews: int
    capped: bool


class Now(msgspec.Struct, frozen=True, kw_only=True):
    """What stands open at this moment, whenever it was submitted."""

    unresolved: int
    oldest_unresolved_seconds: float | None
    accepted: int
    waiting: int
    reviews: int
    missing: int


class NoticesTold(msgspec.Struct, frozen=True, kw_only=True):
    """What became of our own notices of this time; they are in no other number."""

    told: int
    under_way: int
    given_up: int  # nobody was told


class FiguresShown(msgspec.Struct, frozen=True, kw_only=True):
    """The figures of a time, in whole hours. `complete` is false while roll-ups are behind: then
    some hours are not in it yet."""

    since: datetime | None = msgspec.field(name="from")
    until: datetime | None = msgspec.field(name="to")
    as_of: datetime | None
    complete: bool
    by: str
    total: Figure
    items: list[Figure]
    by_protection: list[ByClass]
    human_recovery: HumanTime
    notices: NoticesTold
    now: Now


class AlarmShown(msgspec.Struct, frozen=True, kw_only=True):
    """Something that should have happened and did not, or should not have happened."""

    kind: str
    severity: str
    action: str
    target: str
    key: str
    owner: str
    since: datetime | None
    operation: str | None
    run: str
    title: dict[str, str]
    says: dict[str, str]
    link: str | None


class Alarms(msgspec.Struct, frozen=True):
    """All alarms of a namespace, the gravest first."""

    items: list[AlarmShown]


@router.get("/figures", **documented(FiguresShown))
async def figures(request: Request, caller: Reader, span: Asked, *, by: By = "action") -> Response:
    """Return what was submitted and received in a time, and what has become of it by now.

    An operation counts in the hour of its submission, by what is known about it now, so nothing is
    counted twice. Hours and days are those of UTC; by hour or day the newest 2,000 of a time.
    """
    serving: Serving = request.app.state.serving
    unit = {"hour": rules.HOUR, "day": rules.DAY}.get(by)
    if unit is not None:
        span = Span(max(span.since, span.until - GROUPS * unit), span.until)
    return answer(await hop(figures_of, serving, serving.space(caller.namespace), span, by))


def figures_of(serving: Serving, space: Space, span: Span, by: By) -> FiguresShown:
    """Return the figures of a time, by action, target, run, hour or day; reads the store."""
    read, period = serving.spaces.figures, Period.of(span.since, span.until)
    counted = read.counts(space.namespace, period)
    actions: dict[str, Counts] = {str(name): c for name, c in counted.groups.items()}
    total: dict[Any, Counts] = {}
    for counts in actions.values():
        rules.add(total, "", counts)
    return FiguresShown(
        since=shown.time(counted.period.since),
        until=shown.time(period.until),
        as_of=shown.time(counted.as_of),
        complete=counted.complete,
        by=by,
        total=figure("", total.get("", {})),
        items=_items(serving, space, period, by, actions),
        by_protection=_by_class(space, actions),
        human_recovery=_human(read.recovery_times(space.namespace, period)),
        notices=_notices(counted.own),
        now=_now(serving, space),
    )


def _items(
    serving: Serving, space: Space, period: Period, by: By, actions: dict[str, Counts]
) -> list[Figure]:
    read = serving.spaces.figures
    if by == "run":
        return [
            figure(run.id, counts, label=run.name, missing=counts.get("missing", 0))
            for run, counts in read.runs(space.namespace, period)
        ]
    if by in ("hour", "day"):
        found = read.counts(space.namespace, period, "hour" if by == "hour" else "day").groups
        return [figure(_iso(int(at)), found[at]) for at in sorted(found, key=int)]
    if by == "target":
        return _grouped(actions, serving.spaces.target_of)
    return _grouped(actions, lambda name: name)


def _grouped(actions: dict[str, Counts], name_of: Callable[[str], str]) -> list[Figure]:
    groups: dict[Any, Counts] = {}
    for name, counts in actions.items():
        if any(
            counts.get(n) for n in rules.COUNTS if n not in ("events", "deliveries", "arrivals")
        ):
            rules.add(groups, name_of(name), counts)
    return [figure(name, groups[name]) for name in sorted(groups)]


def figure(name: str, c: Counts, label: str = "", missing: int | None = None) -> Figure:
    """Return counts as they are shown."""
    get = c.get
    found_done = get("by_look_up", 0) + get("by_late", 0)
    left, superseded = get("left_open", 0), get("superseded", 0)
    return Figure(
        name=name,
        label=label,
        events=get("events", 0),
        deliveries=get("deliveries", 0),
        arrivals=get("arrivals", 0),
        operations=get("operations", 0),
        attempts=get("attempts", 0),
        look_ups=get("lookups", 0),
        confirmed=get("done", 0),
        accepted=get("accepted", 0),
        waiting=get("pending", 0),
        unresolved=get("unknown", 0) + get("running", 0),
        left=left,
        stopped=get("not_done", 0) - left - superseded,
        superseded=superseded,
        missing=missing,
        duplicates_prevented=get("folded", 0) + found_done,
        repeats_answered=get("folded", 0),
        found_done=found_done,
        duplicates_found=get("duplicates", 0),
        needed_person=get("reviewed", 0),
        recovered=Recovered(
            again=get("again", 0),
            late_answer=get("by_late", 0),
            look_up=get("by_look_up", 0),
            replay=get("by_replay", 0),
            event=get("by_event", 0),
            person=get("by_person", 0),
        ),
    )


def _by_class(space: Space, actions: dict[str, Counts]) -> list[ByClass]:
    groups: dict[Any, Counts] = {}
    for name, counts in actions.items():
        definition = space.engine.actions.get(name)
        kind = UNKNOWN_CLASS
        if definition is not None:
            kind = protection(definition.terms, in_window=True).value
        if counts.get("operations"):
            rules.add(groups, kind, counts)
    return [
        ByClass(
            protection=name,
            operations=(many := counts.get("operations", 0)),
            needed_person=(needed := counts.get("reviewed", 0)),
            share=round(needed / many, 6) if many else None,
        )
        for name, counts in sorted(groups.items())
    ]


def _notices(own: Counts) -> NoticesTold:
    told, given_up = own.get("done", 0), own.get("not_done", 0)
    under_way = own.get("operations", 0) - told - given_up
    return NoticesTold(told=told, under_way=under_way, given_up=given_up)


def _human(times: Any) -> HumanTime:
    def seconds(took: int | None) -> float | None:
        return None if took is None else round(took / SECOND, 3)

    return HumanTime(
        median_seconds=seconds(times.median), p95_seconds=seconds(times.p95),
        reviews=times.reviews, capped=times.capped,
    )  # fmt: skip


def _now(serving: Serving, space: Space) -> Now:
    read, namespace = serving.spaces.figures, space.namespace
    open_ = read.open_now(namespace)
    unresolved = [one for one in open_ if one.state in ("unknown", "running")]
    oldest = min((one.oldest for one in unresolved), default=None)
    return Now(
        unresolved=sum(one.count for one in unresolved),
        oldest_unresolved_seconds=(
            None if oldest is None else round((serving.store.now() - oldest) / SECOND, 1)
        ),
        accepted=sum(one.count for one in open_ if one.state == "accepted"),
        waiting=sum(one.count for one in open_ if one.state == "pending"),
        reviews=serving.store.counts(namespace).get("reviews", 0),
        missing=len(read.missing(namespace)),
    )


def _iso(at: int) -> str:
    moment = shown.time(at)
    assert moment is not None
    return moment.isoformat().replace("+00:00", "Z")


@router.get("/alarms", **documented(Alarms))
async def alarms_now(request: Request, caller: Reader) -> Response:
    """List what is missing, who is late, what happened more than once, and which contract does
    not hold; at most a thousand of a kind."""
    serving: Serving = request.app.state.serving
    space = serving.space(caller.namespace)
    found = await hop(alarms, space.engine)
    now = await hop(serving.store.now)
    made = [alarm_shown(serving, caller.namespace, alarm, now) for alarm in found]
    made.sort(key=lambda one: -notices.LEVELS.index(one.severity))
    return answer(Alarms(made))


def alarm_shown(serving: Serving, namespace: str, alarm: Alarm, now: int) -> AlarmShown:
    """Return an alarm as it is shown."""
    notice = notices.Notice(
        kind=alarm.kind, subject="", namespace=namespace, since=alarm.since or now,
        action=alarm.action, key=alarm.key, owner=alarm.owner, run=alarm.run,
        operation=alarm.operation or "",
    )  # fmt: skip
    return AlarmShown(
        kind=alarm.kind,
        severity=notices.KINDS[alarm.kind],
        action=alarm.action,
        target=serving.spaces.target_of(alarm.action),
        key=alarm.key,
        owner=alarm.owner,
        since=shown.time(alarm.since),
        operation=alarm.operation,
        run=alarm.run,
        title={lang: notices.head(alarm.kind, lang) for lang in notices.LANGUAGES},
        says={lang: notices.text(notice, lang, now) for lang in notices.LANGUAGES},
        link=serving.link(alarm.operation) if alarm.operation else None,
    )

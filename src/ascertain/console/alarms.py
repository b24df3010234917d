"""What is overdue, as pages say it: the sentence of a notice, and where somebody goes on."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

import msgspec

from ascertain.core.model import SECOND
from ascertain.core.notices import KINDS
from ascertain.runtime.alarms import Alarm, alarms
from ascertain.server.routes.figures import alarm_shown
from ascertain.server.serving import Serving

from .person import Person

SHOWN = 20  # alarms of one page
KEPT = 30 * SECOND  # µs for which alarms are not read again: they are of minutes and hours
GRAVE = ("urgent",)


class Told(msgspec.Struct, frozen=True, kw_only=True):
    """One alarm in words. `grave`: something is missing or exists twice."""

    text: str
    link: str
    grave: bool


def alarms_of(app: Any, serving: Serving, me: Person) -> tuple[list[Told], int]:
    """Return the gravest alarms of a namespace, and how many there are; for threads."""
    now = serving.store.now()
    kept: dict[str, tuple[int, list[Alarm]]] = app.state.__dict__.setdefault("_alarms", {})
    at, found = kept.get(me.namespace, (0, []))
    if now - at > KEPT or at > now:
        found = alarms(serving.space(me.namespace).engine)
        kept[me.namespace] = (now, found)
    order = sorted(found, key=lambda a: (KINDS.get(a.kind) not in GRAVE, a.since or 0))
    shown = [(one, alarm_shown(serving, me.namespace, one, now)) for one in order[:SHOWN]]
    return [
        Told(text=said.says[me.reader.lang], link=_link(one), grave=said.severity in GRAVE)
        for one, said in shown
    ], len(found)


def _link(alarm: Alarm) -> str:
    if alarm.operation is not None:
        return f"/op/{alarm.operation}"
    if alarm.kind == "missing":
        return f"/runs/{quote(alarm.run, safe='')}"
    if alarm.kind == "event":
        return f"/event/{quote(alarm.action, safe='')}/{quote(alarm.key, safe='')}"
    return "/targets"

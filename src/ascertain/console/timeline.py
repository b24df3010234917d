"""Attempts and evidence as people read them: when, what was seen, and who says so."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import msgspec

from ascertain.core.model import SECOND, Attempt, Kind
from ascertain.core.words import LANGUAGES
from ascertain.runtime.desk import Entry

from .hiding import hidden as hidden_in
from .hiding import without

SHOWN = ("ref", "refs", "reason", "why", "status", "role", "note", "text")  # of an entry's data
MOST = 200  # characters of one value
FOLDED = 4000  # of what is folded
# Of an entry's kind: the glyph on its line, and who says so.
SOURCES = {
    "finding": ("send", "target"),
    "late_report": ("send", "target"),
    "outside": ("send", "target"),
    "look_up": ("look", "target"),
    "decision": ("apv", "person"),
    "approval": ("apv", "person"),
    "renewed": ("apv", "person"),
    "note": ("apv", "person"),
    "review": ("apv", "person"),
    "expired": ("rec", "rule"),  # nobody said so: its time was over
    "restored": ("rec", "rule"),
}
KINDS = {
    Kind.EXECUTE: ("Attempt {n} begins.", "第 {n} 次尝试开始。"),
    Kind.REPLAY: (
        "Attempt {n} begins: the same request again, under the same key.",
        "第 {n} 次尝试开始：同键重发同一请求。",
    ),
    Kind.LOOK_UP: ("The target is asked what happened.", "正在向目标系统查询结果。"),
}


class Line(msgspec.Struct, frozen=True, kw_only=True):
    """One line of the timeline. `offset` is in seconds from the first send, or nothing; `raw` is
    what the target answered, redacted, to be unfolded."""

    at: int
    offset: float | None
    glyph: str
    source: str
    sentence: str
    by: str
    facts: list[tuple[str, str]]
    tinted: bool
    anchor: str
    raw: str = ""


def timeline(
    history: Sequence[Entry], attempts: Sequence[Attempt], lang: str, *, hidden: bool = False,
    names: Sequence[str] = (),
) -> list[Line]:  # fmt: skip
    """Return attempts and evidence in one order: when, what, who says so. Values are shortened,
    and only those that say something about the outcome are shown; `hidden`: no contents; `names`:
    of fields whose values are not shown."""
    sends = [a.started_at for a in attempts if a.kind is not Kind.LOOK_UP]
    first = min(sends, default=None)
    lines = [
        *_begun(attempts, first, lang),
        *(
            _seen(n, entry, first, lang, raw="" if hidden else _raw(entry.data, names))
            for n, entry in enumerate(history, 1)
        ),
    ]
    return sorted(lines, key=lambda line: line.at)  # stable: what began comes before its answer


def _begun(attempts: Sequence[Attempt], first: int | None, lang: str) -> list[Line]:
    found, number = [], 0
    for attempt in attempts:
        number += attempt.kind is not Kind.LOOK_UP
        found.append(
            Line(
                at=attempt.started_at,
                offset=_offset(attempt.started_at, first),
                glyph="look" if attempt.kind is Kind.LOOK_UP else "send",
                source="record",
                sentence=KINDS[attempt.kind][LANGUAGES.index(lang)].format(n=number),
                by=attempt.worker,
                facts=[],
                tinted=False,
                anchor=f"att_{attempt.token}",
            )
        )
    return found


def _seen(number: int, entry: Entry, first: int | None, lang: str, *, raw: str) -> Line:
    glyph, source = SOURCES.get(entry.kind, ("rec", "record"))
    if source == "target" and entry.shows == "unknown" and not entry.data.get("status"):
        source = "record"  # no answer came: that is what we saw
    return Line(
        at=entry.at,
        offset=_offset(entry.at, first),
        glyph=glyph,
        source=source,
        sentence=entry.says[lang],
        by=entry.by,
        facts=[(name, _short(entry.data[name])) for name in SHOWN if entry.data.get(name)],
        tinted=entry.shows == "unknown",
        anchor=f"e{number}",
        raw=raw,
    )


def _offset(at: int, first: int | None) -> float | None:
    return None if first is None else (at - first) / SECOND


def _raw(data: dict[str, Any], names: Sequence[str]) -> str:
    """Return the kept part of an answer as it was said; credentials were never kept."""
    head = [str(data["line"])] if data.get("line") else []
    head += [f"{n}: {v}" for n, v in (data.get("headers") or {}).items()]
    more = {n: data[n] for n in ("sent", "searched", "differ") if data.get(n)}
    said = hidden_in(str(data.get("excerpt") or ""), names)
    told = json.dumps(without(more, names), ensure_ascii=False, indent=2) if more else ""
    text = "\n\n".join(part for part in ("\n".join(head), said, told) if part)
    return text if len(text) <= FOLDED else text[:FOLDED] + "…"


def _short(value: Any) -> str:
    text = ", ".join(map(str, value)) if isinstance(value, list) else str(value)
    return text if len(text) <= MOST else text[:MOST] + "…"

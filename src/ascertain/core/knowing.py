"""What can be shown about an operation, and what nobody can show yet, in words. Pure.

A person decides between the two lists: the first holds what is recorded, the second what the
contract and the evidence leave open. Nothing here says that an absence proves anything (law 5).
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from .candidates import Seen
from .draft import Case
from .model import Attempt, Kind, Reason, State
from .reconcile import World, quiet_end
from .words import LANGUAGES

SENTENCES: dict[str, tuple[str, str]] = {
    # what we can show
    "intent": (
        "The intent was recorded at {at}, before anything was sent.",
        "执行意图已于 {at} 记录在案，早于发送。",
    ),
    "one_at_a_time": (
        "Attempts so far: {count}. Never more than one at a time could act.",
        "至今共尝试 {count} 次，任何时刻只有一次可以执行。",
    ),
    "sent": (
        "We began to send the request.",
        "请求已开始发送。",
    ),
    "nothing_sent": (
        "Nothing has been sent so far.",
        "至今未发送任何内容。",
    ),
    "answered": (
        "The target answered with status {status}.",
        "目标系统答复了状态码 {status}。",
    ),
    "no_sending_after": (
        "Since {at} no attempt begins to send any more; what is on its way may still arrive.",
        "自 {at} 起，已有的尝试不会再开始发送；途中的请求仍可能到达。",
    ),
    "asked": (
        "The target was asked what happened, {count} in all, last at {at}.",
        "已向目标系统查询 {count} 次，最近一次在 {at}。",
    ),
    "same_key": (
        "Every attempt carries the same target key, {key}.",
        "每次尝试都使用同一目标键 {key}。",
    ),
    "reference": (
        "The target named {ref} as what was made.",
        "目标系统给出的结果编号为 {ref}。",
    ),
    # what nobody can show yet
    "whether": (
        "Whether it took effect at the target.",
        "它在目标系统中是否已生效。",
    ),
    "final": (
        "The final result: the target has taken it over, no more.",
        "最终结果：目标系统目前只是受理。",
    ),
    "whether_sent": (
        "Whether the request left us at all.",
        "请求是否真的发出。",
    ),
    "no_look_up": (
        "The target has no way to ask what happened; only somebody who looks there can tell.",
        "无法向目标系统查询结果，只有到那里查看的人才能判断。",
    ),
    "still_late": (
        "Until {at} a request may still take effect; not finding it proves nothing before.",
        "{at} 之前请求仍可能生效；在此之前未查到不能作为证据。",
    ),
    "late_unknown": (
        (
            "How late a request may still take effect here is not known; not finding it proves"
            " nothing."
        ),
        "不知道请求最晚何时还会生效，因此未查到不能作为证据。",
    ),
    "sending_unknown": (
        "When its code stopped sending is not known.",
        "不知道执行代码何时停止发送。",
    ),
    "lag": (
        "The list that is asked can be {span} behind.",
        "查询所用的列表最多可能滞后 {span}。",
    ),
    "blind": (
        "The look-up does not see: {what}.",
        "查询看不到：{what}。",
    ),
    "second": (
        "Which of those that were found is meant: there is more than one.",
        "找到的不止一个，无法判断哪一个才是。",
    ),
    "left": (
        "What happened in the end: it was given up before that was known.",
        "最终结果：在查明之前已放弃。",
    ),
}  # fmt: skip


class Known(msgspec.Struct, frozen=True, kw_only=True):
    """One statement by its code; `at` (µs since 1970) and `span` (µs) are written by who shows
    it, as his reader writes times."""

    code: str
    at: int | None = None
    span: int | None = None
    values: dict[str, str] = {}

    def says(self, lang: str, at: str = "", span: str = "") -> str:
        """Return the statement in words."""
        text = SENTENCES[self.code][LANGUAGES.index(lang)]
        return text.format(at=at, span=span, **self.values)


class Knowledge(msgspec.Struct, frozen=True):
    """What can be shown, and what nobody can show yet."""

    shown: list[Known]
    open: list[Known]


def knowledge(case: Case, evidence: Iterable[Seen], world: World) -> Knowledge:
    """Return both lists for an operation as it stands; `evidence` with its data, in order."""
    seen = list(evidence)
    return Knowledge(_shown(case, seen, world), _open(case, seen, world))


def _shown(case: Case, seen: list[Seen], world: World) -> list[Known]:
    status = case.status
    effects = [a for a in case.attempts if a.kind is not Kind.LOOK_UP]
    found = [_known("intent", at=(effects[0].started_at if effects else case.operation.created_at))]
    if status.attempts:
        found.append(_known("one_at_a_time", count=status.attempts))
    if _was_sent(seen):
        found.append(_known("sent"))
    elif not status.attempts:
        found.append(_known("nothing_sent"))
    answers = [s.data["status"] for s in seen if s.kind != "look_up" and s.data.get("status")]
    if answers:
        found.append(_known("answered", status=answers[-1]))
    if _stopped(effects, status.last_deadline, world):
        found.append(_known("no_sending_after", at=status.last_deadline))
    looked = [s for s in seen if s.kind == "look_up"]
    if looked:
        found.append(_known("asked", at=looked[-1].at, count=len(looked)))
    if status.attempts > 1 and status.epoch == 1 and case.terms.contract.key.at:
        found.append(_known("same_key", key=status.target_key))
    if status.ref:
        found.append(_known("reference", ref=status.ref))
    return found


def _was_sent(seen: list[Seen]) -> bool:
    return any(s.kind != "look_up" and (s.data.get("sent") or s.data.get("status")) for s in seen)


def _stopped(effects: list[Attempt], last: int | None, world: World) -> bool:
    """Tell whether none of the attempts can begin to send any more: by a deadline that we hold."""
    hard = bool(effects) and all(a.hard for a in effects)
    return hard and last is not None and last < world.now


def _open(case: Case, seen: list[Seen], world: World) -> list[Known]:
    status, terms = case.status, case.terms
    if status.state is State.ACCEPTED:
        return [_known("final")]
    if any(r.road == "duplicate" for r in case.reviews):
        return [_known("second")]
    if status.reason is Reason.LEFT:
        return [_known("left")]
    if status.state not in (State.UNKNOWN, State.RUNNING):
        return []
    found = [_known("whether")]
    if status.attempts and not _was_sent(seen):
        found.append(_known("whether_sent"))
    if not terms.can_look_up:
        found.append(_known("no_look_up"))
    quiet = quiet_end(status, terms, world)
    if quiet is None:
        found.append(_known("late_unknown"))
    elif world.now <= quiet:
        found.append(_known("still_late", at=quiet))
    if not all(a.hard for a in case.attempts):
        found.append(_known("sending_unknown"))
    if terms.can_look_up and terms.lag:
        found.append(_known("lag", span=terms.lag))
    blind = terms.contract.lookup.blind if terms.contract.lookup else ()
    if terms.can_look_up and blind:
        found.append(_known("blind", what=", ".join(blind)))
    if any(s.data.get("refs") for s in seen[-1:]):
        found.append(_known("second"))
    return found


def _known(code: str, *, at: int | None = None, span: int | None = None, **values: object) -> Known:
    told = {name: str(value) for name, value in values.items()}
    return Known(code=code, at=at, span=span, values=told)

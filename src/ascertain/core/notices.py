"""What people are told: kinds of alarms and notices, how grave each is, and their words. Pure.

A text says what happened in the world and who is next. It names an action and a key, which are made
without personal data; never an input, a title, a body, an address or a credential.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from .model import SECOND

LANGUAGES = ("en", "zh")
LEVELS = ("info", "notice", "warning", "urgent")  # the least grave first
DIGEST = "digest"
KINDS: dict[str, str] = {  # how grave
    "new_review": "notice",
    "approval_waiting": "notice",
    "response": "warning",
    "review": "warning",
    "approval": "warning",
    "held": "warning",
    "stumbled": "warning",
    "overdue": "warning",
    "backlog": "warning",
    "missing": "urgent",
    "event": "urgent",
    "duplicate": "urgent",
    "self_test": "urgent",
    DIGEST: "info",
}
TEXTS: dict[str, tuple[str, str]] = {
    "new_review": (
        "{what}: whether it happened could not be found out. {owner} decides.",
        "{what}：是否已执行无法自动查实，由 {owner} 核查。",
    ),
    "approval_waiting": (
        "{what} waits for an approval. Nothing has been sent.",
        "{what}：等待审批，尚未发送任何内容。",
    ),
    "response": (
        "{what}: its review has been open for {age} and nobody has taken it. It is with {owner}.",
        "{what}：待核查已 {age}，尚无人领取。负责人：{owner}。",
    ),
    "review": (
        "{what}: its review has been open for {age}, longer than agreed. It is with {owner}.",
        "{what}：待核查已 {age}，超过约定时限。负责人：{owner}。",
    ),
    "approval": (
        "{what} has waited {age} for an approval, longer than agreed. Nothing has been sent.",
        "{what}：等待审批已 {age}，超过约定时限，尚未发送任何内容。",
    ),
    "held": (
        "{what} has waited {age} for the version before it. Settle that one first.",
        "{what}：等待上一版本已 {age}，请先查实上一版本。",
    ),
    "stumbled": (
        "{what}: its own code has failed for {age} before anything could be sent. Mend the code.",
        "{what}：执行代码在发送之前出错已 {age}，请修复代码。",
    ),
    "overdue": (
        "{what} has been due for {age} and no worker takes it. Start a worker that knows it.",
        "{what}：到期已 {age} 仍无工作进程处理，请启动登记了此动作的工作进程。",
    ),
    "backlog": (
        "The oldest outcome that is not known is {age} old: {what}.",
        "最早一项结果不明的操作已有 {age}：{what}。",
    ),
    "missing": (
        "{what} was expected in run {run} and was never submitted.",
        "{what}：批次 {run} 应有此项，但从未提交。",
    ),
    "event": (
        "Event {key} of {action} came in {age} ago and its operations do not exist.",
        "{action} 的事件 {key} 在 {age} 前收到，对应的操作尚不存在。",
    ),
    "duplicate": (
        "{what} happened more than once. {owner} cleans up at the target.",
        "{what}：已重复执行，由 {owner} 在目标系统中处理。",
    ),
    "self_test": (
        "The contract of {action} did not hold in its self-test. Read the report before going on.",
        "{action} 的保护约定未通过自检，请先查看自检报告。",
    ),
}
MORE = (
    "{count} more of this kind, on {target}, the first: {keys}",
    "另有 {count} 项同类情况（{target}），最早的是：{keys}",
)
HEADS: dict[str, tuple[str, str]] = {
    "new_review": ("A review is open", "新的人工核查"),
    "approval_waiting": ("An approval is asked for", "有待审批"),
    "response": ("A review is not taken", "核查无人领取"),
    "review": ("A review is past its time", "核查超时"),
    "approval": ("An approval is past its time", "审批超时"),
    "held": ("A version is held", "版本等待过久"),
    "stumbled": ("Code fails before sending", "执行代码出错"),
    "overdue": ("Nobody takes what is due", "到期无人处理"),
    "backlog": ("Outcomes are not known for long", "结果不明积压"),
    "missing": ("An expected operation is missing", "应有的操作缺失"),
    "event": ("An event without its operations", "事件没有对应操作"),
    "duplicate": ("An effect happened twice", "发现重复执行"),
    "self_test": ("A contract does not hold", "保护约定自检未通过"),
    DIGEST: ("Daily summary", "每日摘要"),
}
_DIGEST = (
    (
        "{namespace}, the last 24 hours: {operations} operations, {done} confirmed.",
        "{namespace}，过去 24 小时：{operations} 项操作，已确认 {done} 项。",
    ),
    ("Recovered without a person: {recovered}.", "自动查实：{recovered}。"),
    (
        "Waiting now: {reviews} reviews, {approvals} approvals, {unknown} outcomes not known{age}.",
        "目前等待：人工核查 {reviews} 项，审批 {approvals} 项，结果不明 {unknown} 项{age}。",
    ),
    (
        "Missing: {missing}. Happened more than once: {duplicates}.",
        "缺失：{missing} 项。重复执行：{duplicates} 项。",
    ),
)
_HOW = {
    "again": ("done again after proof that it had not happened", "确认未执行后再执行"),
    "by_late": ("the answer came late", "答复迟到"),
    "by_look_up": ("found at the target", "在目标系统中查到"),
    "by_replay": ("sent again under the same key", "同键重发"),
    "by_event": ("the target said so", "目标系统通知"),
}
_OLDEST = (", the oldest for {age}", "，最早的已 {age}")
_NONE = ("none", "无")
_SPANS = ((86400, "d", "天"), (3600, "h", "小时"), (60, "min", "分钟"))
SHOWN = 5  # keys that a summary names


class Notice(msgspec.Struct, frozen=True, kw_only=True):
    """One thing to tell: `subject` names it, and it is told once per subject and channel."""

    kind: str
    subject: str
    namespace: str
    since: int  # µs since 1970
    action: str = ""
    key: str = ""
    target: str = ""
    owner: str = ""
    run: str = ""
    operation: str = ""


def text(notice: Notice, lang: str, now: int) -> str:
    """Return what happened, in one sentence or two."""
    place = LANGUAGES.index(lang)
    named = notice.key or notice.operation
    what = f"{notice.action} {named}".strip() if lang == "en" else f"“{named}”（{notice.action}）"
    facts = {
        "what": what,
        "action": notice.action,
        "key": named,
        "owner": notice.owner or ("nobody", "无人")[place],
        "run": notice.run,
        "age": age(now - notice.since, lang),
    }
    return TEXTS[notice.kind][place].format_map(facts)


def head(kind: str, lang: str) -> str:
    """Return what a notice is about, in a few words."""
    return HEADS[kind][LANGUAGES.index(lang)]


def summary(notices: Sequence[Notice], lang: str) -> str:
    """Return one text for many notices of one kind and target."""
    first = notices[0]
    names = [n.key or n.operation for n in notices[:SHOWN]]
    keys = (", ", "、")[LANGUAGES.index(lang)].join(names)
    target = first.target or first.action
    return MORE[LANGUAGES.index(lang)].format(count=len(notices), target=target, keys=keys)


def digest(facts: Mapping[str, Any], lang: str) -> str:
    """Return the daily summary; `facts` are counts, `oldest` the age of the oldest in µs."""
    place = LANGUAGES.index(lang)
    parts = [f"{facts[n]} {said[place]}" for n, said in _HOW.items() if facts.get(n)]
    oldest = facts.get("oldest")
    filled = dict(facts) | {
        "recovered": (", ", "、")[place].join(parts) or _NONE[place],
        "age": _OLDEST[place].format(age=age(oldest, lang)) if oldest is not None else "",
    }
    return (" ", "")[place].join(line[place].format_map(filled) for line in _DIGEST)


def age(span: int, lang: str) -> str:
    """Return a duration in µs as people say it, rounded down to its largest unit."""
    seconds = max(span, 0) // SECOND
    for size, unit, zh in _SPANS:
        if seconds >= size:
            return f"{seconds // size} {unit if lang == 'en' else zh}"
    return "less than 1 min" if lang == "en" else "不到 1 分钟"


def grave(kind: str, least: str) -> bool:
    """Tell whether a kind is at least so grave."""
    return LEVELS.index(KINDS[kind]) >= LEVELS.index(least)


# --- many at once --------------------------------------------------------------------------


WINDOW = 600 * SECOND  # µs within which notices of one kind and target are taken together
FIRST = 5  # of them told one by one, and at once; the rest together, once the window is over


class Bundle(msgspec.Struct, frozen=True):
    """What is told in one message: one notice, or several under a subject of their own."""

    subject: str
    notices: tuple[Notice, ...]


def bundled(notices: Iterable[Notice], now: int) -> list[Bundle]:
    """Return what is to be told now, so that a thousand at once are a handful of messages and
    none is left out: the first of a window one by one, the others in one message at its end."""
    windows: dict[tuple[str, str, int], list[Notice]] = {}
    for notice in notices:
        within = (notice.kind, notice.target or notice.action, notice.since // WINDOW)
        windows.setdefault(within, []).append(notice)
    found: list[Bundle] = []
    for (kind, target, window), many in windows.items():
        many.sort(key=lambda n: (n.since, n.subject))
        found += [Bundle(n.subject, (n,)) for n in many[:FIRST]]
        if len(many) > FIRST and (window + 1) * WINDOW <= now:
            subject = f"{target}@{window * WINDOW // SECOND}+"
            found.append(Bundle(subject, tuple(many[FIRST:])))
        assert kind in KINDS
    return found

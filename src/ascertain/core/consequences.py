"""What each decision would do, said before it is made, in English and Chinese. Pure.

The rules are those of `people`; here they are only put into words.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

import msgspec

from .draft import Case
from .model import SECOND, Reason
from .people import Answer, allowed, proven_absent
from .reconcile import World, quiet_end
from .words import LANGUAGES

SENTENCES: dict[str, tuple[str, str]] = {
    "there": (
        "It will be recorded as done with {ref}; nothing is sent.",
        "将记为已完成，结果编号 {ref}；不会发送任何内容。",
    ),
    "there_named": (
        "It will be recorded as done with the reference that you name; nothing is sent.",
        "将记为已完成，结果编号以您给出的为准；不会发送任何内容。",
    ),
    "there_known": (
        "It will be recorded as done with {ref}, which the target named; nothing is sent.",
        "将记为已完成，结果编号为目标系统给出的 {ref}；不会发送任何内容。",
    ),
    "not_there": (
        (
            "One more attempt is made: the observation period is over, so a missing effect"
            " counts as not done."
        ),
        "将再尝试一次：观察期已结束，目标系统中没有即视为未执行。",
    ),
    "risk_until": (
        (
            "One more attempt is made; because the observation period has not ended (it does at"
            " {until}) this counts as acting without proof, and the effect may then exist twice."
        ),
        "将再尝试一次；观察期尚未结束（{until} 结束），这属于无证据执行，结果可能重复。",
    ),
    "risk": (
        (
            "One more attempt is made; because no observation period is known here this counts as"
            " acting without proof, and the effect may then exist twice."
        ),
        "将再尝试一次；此处没有已知的观察期，这属于无证据执行，结果可能重复。",
    ),
    "risk_first": (
        (
            "Your word is kept and nothing is sent: on this target a second person has to say the"
            " same before one more attempt is made without proof."
        ),
        "将记下您的意见，不会发送任何内容：此目标系统须第二人同样确认，才会在无证据的情况下再试一次。",
    ),
    "risk_second": (
        (
            "You are the second person: one more attempt is made without proof, and the effect may"
            " then exist twice. {by} said the same before."
        ),
        "您是第二位确认人：将在无证据的情况下再试一次，结果可能重复。此前 {by} 已同样确认。",
    ),
    "cannot_tell": (
        "It stays open with the outcome unknown; nothing is sent.",
        "保持待核查，结果仍不明；不会发送任何内容。",
    ),
    "leave": (
        "It is given up: nothing is sent, nothing is proven, and it stays visible as left.",
        "将放弃：不会发送任何内容，也不证明任何结果；仍会显示为已放弃。",
    ),
    "leave_proven": (
        "It stays stopped as proven not done; nobody is asked to mend it any more.",
        "保持停止（确认未执行）；不再等待任何人处理。",
    ),
    "duplicate_settled": (
        (
            "The duplicate is recorded as dealt with at the target; nothing is sent, and all"
            " references are kept."
        ),
        "将记为重复结果已在目标系统中处理；不会发送任何内容，所有编号保留。",
    ),
    "match": (
        "{n} of {m} facts match.",
        "{m} 项信息中有 {n} 项一致。",
    ),
    "match_none": (
        "The evidence that is kept does not show what it holds: look at it in the target.",
        "留存的证据未显示其内容：请到目标系统中查看。",
    ),
    "approve": (
        "Exactly this request is sent, once nobody else is asked any more.",
        "其他审批也都完成后，将原样发送此请求。",
    ),
    "reject": (
        "It is stopped and nothing is sent; it is not asked for again.",
        "将停止，不会发送任何内容，也不再征求审批。",
    ),
    "respond": (
        "It goes back to its author with your note; nothing is sent.",
        "将附上您的说明退回作者；不会发送任何内容。",
    ),
    "edit": (
        "A new version is made that needs an approval of its own; this one is never sent.",
        "将生成一个需要重新审批的新版本；此版本不会发送。",
    ),
}
BULK: dict[str, tuple[str, str]] = {  # by the codes of people.BULK and people.bulk_refusal
    "look_up": (
        "The target of each is asked what happened; nothing is sent again by this.",
        "逐项向目标系统查询结果；此操作不会再次发送。",
    ),
    "take": ("The review of each is taken on.", "接手每一项核查。"),
    "hand_over": ("The review of each is handed over.", "转交每一项核查。"),
    "snooze": ("The review of each is put off.", "暂缓每一项核查。"),
    "leave": (
        "Each is given up: nothing is sent, nothing is proven, and they stay visible as left.",
        "逐项放弃：不会发送任何内容，也不证明任何结果；仍会显示为已放弃。",
    ),
    "renew": (
        "Each goes on with the renewed authorization, as its protection permits.",
        "授权更新后逐项继续，按各自的保护方式进行。",
    ),
    "no_bulk_action": ("This is never done in bulk.", "此操作不支持批量进行。"),
    "no_review": ("It is in no review.", "没有待核查项。"),
    "under_way": ("An attempt is under way.", "有一次尝试正在进行。"),
    "no_look_up": (
        "There is no way here to ask its target: a person decides each.",
        "这里无法向其目标系统查询：须由人逐项决定。",
    ),
    "nothing_to_leave": ("There is nothing to give up.", "没有可放弃的内容。"),
    "still_checked": ("It is still being checked by itself.", "仍在自动核查。"),
    "not_authorization": ("It does not wait for an authorization.", "并非在等待授权。"),
    "not_here": ("There is no such operation in this namespace.", "此空间中没有这项业务操作。"),
    "changed": ("Something newer is known than when this was planned.", "计划之后已有更新的情况。"),
    "stumbled": ("It could not be done; look at the operation.", "未能完成：请查看该业务操作。"),
    "done": ("Done.", "已完成。"),
}
APPROVAL = ("approve", "reject", "respond", "edit")


class Consequence(msgspec.Struct, frozen=True, kw_only=True):
    """One decision that is possible now: what it needs, and what will happen then.

    `needs_risk`: acting without proof, a right of its own; `needs_second`: a second person.
    """

    answer: str
    says: dict[str, str]
    needs_ref: bool = False
    needs_risk: bool = False
    needs_second: bool = False


def utc(at: int) -> str:
    """Return a time in µs since 1970 for who has named no time zone."""
    return datetime.fromtimestamp(at / SECOND, tz=UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def consequences(
    case: Case, world: World, first: str = "", written: Callable[[int], str] = utc
) -> list[Consequence]:
    """Return every decision that is possible now with what it would do; none while an attempt is
    under way. `first`: who has given the first of two people's word; `written`: a time as the
    reader writes it."""
    if case.status.token is not None:
        return []
    return [_consequence(case, world, answer, first, written) for answer in allowed(case)]


def of_approval() -> list[Consequence]:
    """Return what each answer to an approval would do."""
    return [Consequence(answer=answer, says=said(answer)) for answer in APPROVAL]


def said(code: str, **values: str) -> dict[str, str]:
    """Return a sentence in every language."""
    return {lang: SENTENCES[code][place].format(**values) for place, lang in enumerate(LANGUAGES)}


def of_bulk(code: str) -> dict[str, str]:
    """Return what a bulk action does, or why an operation is not part of it."""
    return dict(zip(LANGUAGES, BULK[code], strict=True))


def _consequence(
    case: Case, world: World, answer: Answer, first: str, written: Callable[[int], str]
) -> Consequence:
    status = case.status
    match answer:
        case Answer.THERE if status.ref:
            return Consequence(answer=answer, says=said("there_known", ref=status.ref))
        case Answer.THERE:
            return Consequence(answer=answer, says=said("there_named"), needs_ref=True)
        case Answer.NOT_THERE if not proven_absent(case, world):
            risky = case.terms.risky
            return Consequence(
                answer=answer,
                says=_risk(case, world, first, written),
                needs_risk=True,
                needs_second=risky and not first,
            )
        case Answer.LEAVE if status.reason not in (Reason.NONE, Reason.LEFT):
            return Consequence(answer=answer, says=said("leave_proven"))
    return Consequence(answer=answer, says=said(answer.value))


def _risk(case: Case, world: World, first: str, written: Callable[[int], str]) -> dict[str, str]:
    if case.terms.risky:
        return said("risk_second", by=first) if first else said("risk_first")
    quiet = quiet_end(case.status, case.terms, world)
    if quiet is None or world.now > quiet:
        return said("risk")
    return said("risk_until", until=written(quiet))

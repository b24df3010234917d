"""Every sentence about an operation, in English and Chinese, by its code. Pure data.

They say what happened in the world, not in the machine. `said` of a status or an entry of
evidence is a code of this page; tests fail on a code without a sentence and on an unused one.
"""

from __future__ import annotations

from .model import Reason, State, Status, WaitingOn

LANGUAGES = ("en", "zh")
HELD = "It waits for the version before it"

SENTENCES: dict[str, tuple[str, str]] = {
    # pending
    "due": (
        "It has not been sent yet; it will be sent next.",
        "尚未发送，即将执行。",
    ),
    "stumbled": (
        "Its own code fails before anything can be sent; nothing goes on until that is mended.",
        "执行代码在发送之前就出错；修复之前不会继续。",
    ),
    "waits_approval": (
        "It waits for an approval; nothing has been sent.",
        "等待审批，尚未发送任何内容。",
    ),
    "approved": (
        "It is approved and will be sent next.",
        "已获审批，即将发送。",
    ),
    "transient": (
        "The target could not be reached or was not ready; nothing was done. It is "
        "tried again by itself.",
        "目标系统暂时不可用，确认未执行；将自动再试。",
    ),
    "throttled": (
        "The target asked to wait; nothing was done. It is tried again at the time asked for.",
        "目标系统要求稍后再试，确认未执行；到时自动再试。",
    ),
    "absent": (
        "The target was asked after the observation period: it is not there. It is sent again.",
        "观察期过后已查实：目标系统中没有。将再次发送。",
    ),
    "not_there": (
        "A person found that it is not there; it is sent once more.",
        "人工确认不存在，将再发送一次。",
    ),
    "renewed": (
        "The authorization was renewed; it goes on.",
        "授权已更新，即将继续。",
    ),
    "waits_running": (
        HELD + ", which is being executed.",
        "等待上一版本：正在执行。",
    ),
    "waits_unknown": (
        HELD + ", whose outcome is not known yet.",
        "等待上一版本：结果不明。",
    ),
    "waits_accepted": (
        HELD + ", which the target has accepted but not confirmed.",
        "等待上一版本：已受理，尚未确认。",
    ),
    "waits_override": (
        HELD + ", which was left open: somebody must take the risk or settle it.",
        "等待上一版本：已放弃且结果仍不明，需有人承担风险或先核实。",
    ),
    "waits_undone": (
        "It waits until what it undoes is known to be there and none of its requests can land.",
        "等待被撤销的操作查实，且不再有请求可能生效。",
    ),
    "waits_quiet": (
        HELD + ": its last request may still land and overwrite this one.",
        "等待上一版本的观察期结束，以免被其覆盖。",
    ),
    # held by the gate of the target
    "gate_paused": (
        "The target is paused: nothing is sent to it until it is resumed.",
        "目标系统已暂停：恢复之前不会发送任何内容。",
    ),
    "gate_closed": (
        "The target does not answer now; it is tried again by itself, and then this goes on.",
        "目标系统目前没有响应；将自动再试，恢复后继续。",
    ),
    # unknown
    "unknown": (
        "No clear answer came: it may or may not have happened.",
        "没有得到明确答复：可能已执行，也可能没有。",
    ),
    "expired": (
        "The worker did not report back in time: it may or may not have happened.",
        "执行者未按时回报：可能已执行，也可能没有。",
    ),
    "not_proven": (
        "This attempt did nothing, but an earlier one may have.",
        "这次尝试没有执行，但之前的尝试可能已执行。",
    ),
    "restored": (
        "The ledger was restored from a copy: it may have been done in the lost time.",
        "账本由备份恢复：丢失的时段内可能已执行。",
    ),
    "look_up": (
        "The target is asked what happened.",
        "正在向目标系统查询结果。",
    ),
    "look_up_quiet": (
        "It is not there so far; the target is asked again when the observation period is over.",
        "目前未查到；观察期结束后再次查询。",
    ),
    "replay_identity": (
        "It is sent again under its own identity; the target cannot make a second one.",
        "以同一唯一编号重发；目标系统不会重复创建。",
    ),
    "replay_identity_quiet": (
        "After the observation period it is sent again under its own identity.",
        "观察期结束后以同一唯一编号重发。",
    ),
    "replay_key": (
        "It is sent again under the same key; the target recognises the repeat.",
        "同键重发；目标系统能识别重复。",
    ),
    "replay_key_quiet": (
        "After the observation period it is sent again under the same key.",
        "观察期结束后同键重发。",
    ),
    "redo": (
        "It is done again; a repeat has no outside effect.",
        "重新执行；重复不产生外部影响。",
    ),
    "forced": (
        "A person allowed one more attempt without proof.",
        "有人已批准在没有证据的情况下再试一次。",
    ),
    "risk": (
        "A person accepted the risk of a second effect; it is sent once more.",
        "有人已承担重复的风险，将再发送一次。",
    ),
    # why an absence proves nothing
    "quiet_period": (
        "It is not there, but a request may still be on its way.",
        "未查到，但请求可能仍在途中。",
    ),
    "quiet_unknown": (
        "It is not there, but how late this target acts is not known, so that proves nothing.",
        "未查到，但不知道该系统最晚何时生效，不能作为证据。",
    ),
    "deadline_unknown": (
        "It is not there, but when the code stopped sending is not known, so that proves nothing.",
        "未查到，但不知道代码何时停止发送，不能作为证据。",
    ),
    "incomplete": (
        "The target's answer was not complete, so not finding it proves nothing.",
        "查询结果不完整，未查到不能作为证据。",
    ),
    "epochs": (
        "Not every key that was sent has been looked up.",
        "尚未查完所有使用过的键。",
    ),
    "no_control": (
        "The look-up has not yet found a known object, so not finding this one proves nothing.",
        "查询尚未找到过已知对象，未查到不能作为证据。",
    ),
    "invented_found": (
        "The look-up also finds a key that was never sent, so it proves nothing.",
        "查询连从未发送过的键也能“查到”，不能作为证据。",
    ),
    "blind": (
        "The look-up cannot see everything (e.g. drafts, trash), so not finding it proves nothing.",
        "查询看不到全部内容（如草稿、回收站），未查到不能作为证据。",
    ),
    "accepted_before": (
        "It is not there, but the target had taken an attempt over, so that proves nothing.",
        "未查到，但目标系统曾受理过一次尝试，不能作为证据。",
    ),
    "other_scope": (
        "It is not there, but it was sent to another account or address, so that proves nothing.",
        "未查到，但它曾发往另一账户或地址，不能作为证据。",
    ),
    "look_up_failed": (
        "The target could not say what happened.",
        "目标系统未能给出结果。",
    ),
    "assumed_irreversible": (
        "It is not there, but that rests on an assumption and the effect cannot be "
        "undone: a person decides.",
        "未查到，但这依赖假设且结果无法撤销：由人决定。",
    ),
    # review
    "review_opaque": (
        "There is no way here to ask the target what happened: a person decides.",
        "这里无法向目标系统查询结果：由人决定。",
    ),
    "review_lookups": (
        "The target was asked as often as allowed without a clear answer: a person decides.",
        "已查询到上限仍无明确结果：由人决定。",
    ),
    "review_overdue": (
        "It could not be found out in the time allowed: a person decides.",
        "限定时间内未能查实：由人决定。",
    ),
    "review_accepted": (
        "The target accepted it and never confirmed: a person decides.",
        "目标系统已受理但一直未确认：由人决定。",
    ),
    "several": (
        "The target shows more than one object for it: a person decides.",
        "目标系统中有多个对应对象：由人决定。",
    ),
    "foreign": (
        "The object found belongs to another operation: a person decides.",
        "找到的对象属于另一项操作：由人决定。",
    ),
    "cannot_tell": (
        "A person looked and could not tell; it stays open.",
        "已人工核查，仍无法判断；保持待核查。",
    ),
    "waits_second": (
        "One person accepted the risk; a second person has to agree.",
        "一人已愿承担风险，还需第二人同意。",
    ),
    # accepted
    "accepted": (
        "The target took it over; the final result is not confirmed yet.",
        "目标系统已受理，最终结果尚未确认。",
    ),
    "look_up_accepted": (
        "The target took it over; it is asked for the final result.",
        "目标系统已受理，正在查询最终结果。",
    ),
    # done
    "done": (
        "It is done; the target confirmed it.",
        "已完成，目标系统已确认。",
    ),
    "found": (
        "It is done; it was found at the target.",
        "已完成，已在目标系统中查到。",
    ),
    "late_done": (
        "It is done; the confirmation arrived late.",
        "已完成，确认信息迟到。",
    ),
    "known_before": (
        "It is done; an earlier attempt's confirmation arrived late.",
        "已完成，较早尝试的确认信息迟到。",
    ),
    "there": (
        "It is done; a person found it at the target.",
        "已完成，由人工在目标系统中确认。",
    ),
    "verify": (
        "It is done; once more the target is asked whether there is a second one.",
        "已完成；还会再查一次是否重复。",
    ),
    "verified": (
        "It is done, and there is no second one.",
        "已完成，且确认没有重复。",
    ),
    "verify_impossible": (
        "It is done; whether there is a second one could not be asked.",
        "已完成；是否重复无法再查。",
    ),
    "duplicate": (
        "It happened more than once: all references are kept, a person cleans up.",
        "已重复执行：保留全部编号，由人处理。",
    ),
    "duplicate_settled": (
        "The second effect was dealt with at the target.",
        "重复的结果已在目标系统中处理。",
    ),
    # not done
    "invalid": (
        "The target refused the input; nothing was done. Submit a corrected version.",
        "目标系统拒绝了内容，确认未执行。请提交更正后的版本。",
    ),
    "rejected": (
        "The target refused it; nothing was done.",
        "目标系统拒绝执行，确认未执行。",
    ),
    "unauthorized": (
        "No valid authorization for the target; nothing was done. Renew it, then let it go on.",
        "没有有效的目标系统授权，确认未执行。更新授权后，请让它继续。",
    ),
    "gave_up": (
        "It was not done, as often as it was tried; it is not tried again by itself.",
        "多次尝试均确认未执行，不再自动再试。",
    ),
    "rejected_by_person": (
        "The approval was refused; nothing was sent.",
        "审批未通过，未发送任何内容。",
    ),
    "responded": (
        "It was sent back to its author with a note; nothing was sent. Submit a corrected version.",
        "已附说明退回作者，未发送任何内容。请提交更正后的版本。",
    ),
    "edited": (
        "A person made a new version of it; this one is not sent.",
        "已由人改成新版本，此版本不会发送。",
    ),
    "superseded": (
        "A newer version took its place; this one was never done.",
        "已被新版本取代，此版本未执行。",
    ),
    "failed_after_acceptance": (
        "The target accepted it and then reported that it failed.",
        "目标系统受理后报告失败。",
    ),
    "left": (
        "A person gave up on it; whether it happened is still not known.",
        "已放弃，结果仍不明。",
    ),
    "leave": (
        "A person gave up on it; whether it happened is still not known.",
        "已放弃，结果仍不明。",
    ),
    # shown by evidence only
    "taken": (
        "A person took the review on.",
        "已有人接手核查。",
    ),
    "handed_over": (
        "The review was handed over.",
        "核查已转交。",
    ),
    "snoozed": (
        "The review was put off.",
        "核查已暂缓。",
    ),
    "woken": (
        "The review is due again.",
        "核查已恢复。",
    ),
    "noted": (
        "A person left a note.",
        "有人留下备注。",
    ),
    "absent_seen": (
        "The target does not show it.",
        "目标系统中未查到。",
    ),
    "not_done": (
        "This attempt is known to have done nothing.",
        "已确定本次尝试未产生任何结果。",
    ),
}
HELD_CODES = tuple(
    code
    for code in SENTENCES
    if code.startswith("waits_") and code not in ("waits_approval", "waits_second")
)
STATES = {
    State.PENDING: (
        "not done yet",
        "待执行（确认未执行）",
    ),
    State.RUNNING: (
        "being executed",
        "执行中",
    ),
    State.UNKNOWN: (
        "outcome unknown",
        "结果不明",
    ),
    State.ACCEPTED: (
        "accepted",
        "已受理",
    ),
    State.DONE: (
        "done",
        "已完成",
    ),
    State.NOT_DONE: (
        "stopped, not done",
        "已停止（未执行）",
    ),
}
_USER = {
    State.PENDING: (
        "Your request is recorded and will be processed.",
        "您的请求已登记，将会处理。",
    ),
    State.RUNNING: (
        "Your request is being processed. Please do not submit it again.",
        "正在处理，请勿重复提交。",
    ),
    State.UNKNOWN: (
        "We are checking the result. Please do not submit it again.",
        "正在核对处理结果，请勿重复提交。",
    ),
    State.ACCEPTED: (
        "Your request was taken over and is being completed. Please do not submit it again.",
        "请求已受理，正在完成，请勿重复提交。",
    ),
    State.DONE: (
        "Done.",
        "已完成。",
    ),
    State.NOT_DONE: (
        "Your request was not carried out.",
        "您的请求没有执行。",
    ),
}
_LEFT = (
    "Your request could not be confirmed. Please contact us before you submit it again.",
    "无法确认处理结果，再次提交前请先联系我们。",
)
_RUNNING = ("An attempt is under way.", "正在执行。")
_PAUSED = (" Paused by {by}{why}.", "由 {by} 暂停{why}。")
_OWNER = (" It is with {owner}.", "负责人：{owner}。")


def say(code: str, lang: str = "en") -> str:
    """Return the sentence of a code; raises KeyError for one that has none."""
    return SENTENCES[code][LANGUAGES.index(lang)]


def state(status: Status, lang: str = "en") -> str:
    """Return the state in words; `left` never looks like proof."""
    if status.reason is Reason.LEFT:
        return ("left, outcome still unknown", "已放弃，结果仍不明")[LANGUAGES.index(lang)]
    return STATES[status.state][LANGUAGES.index(lang)]


def next_step(status: Status, lang: str = "en") -> str:
    """Say what is known, what happens next and with whom it is."""
    index = LANGUAGES.index(lang)
    if status.state is State.RUNNING:
        return _RUNNING[index]
    text = say(status.said, lang) if status.said else ""
    person = status.waiting_on in (
        WaitingOn.REVIEW,
        WaitingOn.INPUT,
        WaitingOn.AUTHORIZATION,
        WaitingOn.APPROVAL,
    )
    if person and status.owner:
        text += _OWNER[index].format(owner=status.owner)
    return text


def paused(by: str, why: str, lang: str = "en") -> str:
    """Say who paused a target and why."""
    index = LANGUAGES.index(lang)
    colon = (": ", "：")[index] if why else ""
    return _PAUSED[index].format(by=by, why=colon + why.rstrip(".。"))


def user_message(status: Status, lang: str = "en") -> str:
    """Return a sentence that is safe to show to an end user; it never says done before done."""
    index = LANGUAGES.index(lang)
    if status.reason in (Reason.LEFT, Reason.FAILED_AFTER_ACCEPTANCE):
        return _LEFT[index]
    return _USER[status.state][index]


def duration(span: int) -> str:
    """Return a duration in µs in short form, e.g. `30s`, `15m`, `forever`."""
    if span >= 2**62:
        return "forever"
    for size, unit in ((86_400_000_000, "d"), (3_600_000_000, "h"), (60_000_000, "m")):
        if span and span % size == 0:
            return f"{span // size}{unit}"
    return f"{span / 1_000_000:g}s"

"""What somebody did, and what it changed, in the words of the audit page. Pure."""

from __future__ import annotations

import re

from ascertain.core.words import LANGUAGES

from .reader import Reader

DID: dict[str, tuple[str, str]] = {
    "approval.approve": ("approved a request", "批准了请求"),
    "approval.edit": ("changed a text: a new version", "改成了新版本"),
    "approval.reject": ("rejected a request", "驳回了请求"),
    "approval.respond": ("sent a request back", "退回了请求"),
    "asset.accepted": ("accepted an asset", "验收通过了资产"),
    "asset.rejected": ("rejected an asset", "验收未通过资产"),
    "bulk.cancel": ("dropped a bulk plan", "取消了批量计划"),
    "bulk.end": ("a bulk action ended", "批量处理结束"),
    "bulk.plan": ("planned a bulk action", "制定了批量计划"),
    "bulk.run": ("started a bulk action", "开始了批量处理"),
    "event.process": ("had an event processed again", "重新处理了事件"),
    "link.end": ("ended a link", "停用了链接"),
    "link.first_user": ("made the link for the first person", "生成了首位成员的链接"),
    "link.guest": ("made a link for a guest", "生成了访客链接"),
    "link.sign_in": ("made a link for a password", "生成了设置密码的链接"),
    "member.end": ("took rights away", "撤销了权限"),
    "member.set": ("gave rights", "授予了权限"),
    "namespace.erase": ("erased a namespace", "清除了空间"),
    "operation.confirm": ("asked the target again", "再次查询了目标系统"),
    "operation.renew": ("went on with a renewed authorization", "授权更新后继续"),
    "operation.repeat": ("asked for a second effect", "有意再做一次"),
    "operation.report": ("reported an outcome", "上报了结果"),
    "person.confirm": ("confirmed a person after a restore", "恢复后确认了成员"),
    "person.disable": ("kept a person out", "停用了成员"),
    "person.edit": ("changed settings", "修改了设置"),
    "person.enable": ("let a person in again", "重新启用了成员"),
    "person.first": ("became the first person", "成为首位成员"),
    "person.new": ("added a person", "添加了成员"),
    "person.password": ("changed a password", "修改了密码"),
    "review.decide": ("decided a review", "作出了核查决定"),
    "review.first_word": ("gave the first of two words", "作出了两人确认中的首次确认"),
    "review.hand_over": ("handed a review over", "转交了核查"),
    "review.note": ("left a note", "写了备注"),
    "review.snooze": ("put a review off, or brought it back", "暂缓或恢复了核查"),
    "review.take": ("took a review on", "接手了核查"),
    "session.end": ("signed out", "退出了登录"),
    "session.end_all": ("signed other browsers out", "退出了其他浏览器"),
    "session.open": ("signed in", "登录了"),
    "target.pause": ("paused a target", "暂停了目标系统"),
    "target.resume": ("let a target be acted on again", "恢复了目标系统"),
    "token.confirm": ("confirmed a token after a restore", "恢复后确认了令牌"),
    "token.new": ("made a token", "创建了令牌"),
    "token.revoke": ("revoked a token", "吊销了令牌"),
}

_STATES = {
    "unknown": ("outcome unknown", "结果不明"),
    "running": ("under way", "执行中"),
    "pending": ("waiting", "待执行"),
    "accepted": ("accepted", "已受理"),
    "done": ("done", "已完成"),
    "not_done": ("not done", "未执行"),
}
_REASONS = {
    "invalid": ("the input is invalid", "输入无效"),
    "unauthorized": ("not authorized", "未获授权"),
    "rejected": ("rejected", "被拒绝"),
    "gave_up": ("no attempt is left", "尝试次数用尽"),
    "superseded": ("replaced by a newer version", "已被新版本取代"),
    "failed_after_acceptance": ("failed after it was accepted", "受理后失败"),
    "left": ("left, outcome unknown", "已放弃，结果仍不明"),
}
_WAITS = {
    "clock": ("waits for its time", "等待到时"),
    "approval": ("waits for an approval", "待审批"),
    "review": ("waits for a person", "待人工核查"),
    "input": ("waits for a corrected input", "待修正输入"),
    "authorization": ("waits for an authorization", "待恢复授权"),
    "target": ("waits for the target", "等待目标系统"),
}
_ANSWERS = {
    "there": ("it is there", "已存在"),
    "not_there": ("it is not there", "不存在"),
    "cannot_tell": ("cannot tell", "无法判断"),
    "leave": ("give up", "放弃"),
    "duplicate_settled": ("the second one is dealt with", "多出的一份已处理"),
}
# What stands before and after, by what it is about.
_CODES = {
    "asset": {
        "accepted": ("accepted", "验收通过"), "rejected": ("rejected", "验收未通过"),
    },
    "bulk": {
        "planned": ("planned", "已制定"), "running": ("under way", "处理中"),
        "cancelled": ("stopped", "已取消"), "done": ("carried out", "已处理"),
        "refused": ("was not possible", "无法处理"), "changed": ("changed meanwhile", "期间有变化"),
        "stumbled": ("could not be done", "处理出错"),
        "look_up": ("ask the target", "查询目标系统"), "take": ("take on", "接手"),
        "hand_over": ("hand over", "转交"), "leave": ("give up", "放弃"),
        "renew": ("go on after renewal", "授权更新后继续"), "snooze": ("put off", "暂缓"),
        "of": ("of", "/"),
    },
    "event": {
        "failed": ("needs a fix", "需修正"), "received": ("received", "已接收"),
    },
    "member": {
        "viewer": ("may look", "可查看"), "operator": ("may submit and pause", "可提交、可暂停"),
        "admin": ("may administer", "可管理"), "decides": ("decides reviews", "可判断核查"),
        "approves": ("approves requests", "可审批"),
        "overrides": ("may act without proof", "可在无证据时执行"),
    },
    "namespace": {"operations": ("operations", "项操作")},
    "target": {
        "open": ("may be acted on", "可以执行"), "paused": ("paused", "已暂停"),
        "closed": ("does not answer", "无响应"), "trying": ("is being tried", "试探中"),
    },
}  # fmt: skip
_STANDS = re.compile(r"(?:(\w+): )?([a-z_]+)(?:/([a-z_]+))?(?: (.*?))?(?:, waits on ([a-z]+))?")
_HELD = re.compile(r"(?:taken by (.+?)|not taken)(?:, put off until (\d+))?")


def told(did: str, text: str, reader: Reader) -> str:
    """Return what stands before or after in an audit line, in the reader's words."""
    place, about = LANGUAGES.index(reader.lang), did.partition(".")[0]
    if about in ("operation", "review"):
        return _held(text, reader) or _stands(text, reader)
    words = _CODES.get(about, {})

    def said(found: re.Match[str]) -> str:
        return words[found[0]][place] if found[0] in words else found[0]

    if about == "member":
        return reader.comma.join(re.sub(r"[a-z_]+", said, one) for one in text.split())
    return re.sub(r"[a-z_]+", said, text)


def answered(decision: str, lang: str) -> str:
    """Return what a person decided, in words."""
    return _ANSWERS[decision][LANGUAGES.index(lang)] if decision in _ANSWERS else decision


def _stands(text: str, reader: Reader) -> str:
    read, place = _STANDS.fullmatch(text), LANGUAGES.index(reader.lang)
    if read is None or read[2] not in _STATES:
        return text
    answer, state, reason, ref, waits = read.groups()
    parts = [_STATES[state][place] + (f" #{ref}" if ref else "")]
    if reason:
        parts.append(_REASONS.get(reason, (reason, reason))[place])
    if waits:
        parts.append(_WAITS.get(waits, (waits, waits))[place])
    found = reader.comma.join(parts)
    return f"{_ANSWERS[answer][place]}{reader.colon}{found}" if answer in _ANSWERS else found


def _held(text: str, reader: Reader) -> str:
    read = _HELD.fullmatch(text)
    if read is None:
        return ""
    english = reader.lang == "en"
    who = (f"taken by {read[1]}", f"由 {read[1]} 接手") if read[1] else ("not taken", "未接手")
    found = who[not english]
    if read[2]:
        until = reader.time(int(read[2]), 0)
        found += f", put off until {until}" if english else f"，暂缓至 {until}"
    return found

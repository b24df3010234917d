"""Which glyph and which words stand for an outcome: shape, word and colour, never colour alone."""

from __future__ import annotations

from ascertain.core.model import Reason, State, WaitingOn
from ascertain.core.words import LANGUAGES
from ascertain.runtime.receipt import Receipt

# Glyph: the words of a pill, in English and Chinese.
PILLS: dict[str, tuple[str, str]] = {
    "done": ("Done", "已完成"),
    "not": ("Not done", "未执行"),
    "unk": ("Outcome unknown", "结果不明"),
    "acc": ("Accepted", "已受理"),
    "fix": ("Needs a fix", "需修正"),
    "apv": ("Needs approval", "待审批"),
    "auto": ("Being checked", "自动核查中"),
    "wait": ("Waiting", "待执行"),
    "left": ("Left, outcome unknown", "已放弃，结果仍不明"),
}


def glyph(receipt: Receipt) -> str:
    """Return the glyph of an operation. One that is unknown is never shown as not done, and one
    that was left is shown as unknown: nothing is proven about it."""
    if receipt.reason is Reason.LEFT:
        return "left"
    match receipt.state:
        case State.DONE:
            return "done"
        case State.ACCEPTED:
            return "acc"
        case State.UNKNOWN:
            checking = receipt.due_at is not None and receipt.waiting_on is not WaitingOn.REVIEW
            return "auto" if checking else "unk"
        case State.RUNNING:
            return "auto"
    if receipt.waiting_on in (WaitingOn.INPUT, WaitingOn.AUTHORIZATION):
        return "fix"
    if receipt.waiting_on is WaitingOn.APPROVAL:
        return "apv"
    return "wait" if receipt.state is State.PENDING else "not"


def pill(receipt: Receipt, lang: str) -> tuple[str, str]:
    """Return the glyph of an operation and its words."""
    name = glyph(receipt)
    return name, PILLS[name][LANGUAGES.index(lang)]

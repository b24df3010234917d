"""What `ascertain contract` says, in English and Chinese, by code. Pure data.

Codes that `ascertain.core.words` has a sentence for are said by that one.
"""

from __future__ import annotations

from ascertain.core import advice_words, words
from ascertain.core.advice_words import ADVICE

CONTRACT_HELP: dict[str, tuple[str, str]] = {
    "help.contract": (
        "Contracts: what a target guarantees about repetition and look-up.",
        "保护约定：目标系统对重复与查询作出的保证。",
    ),
    "help.contract.list": (
        (
            "List the shipped contracts with their protection class.\nWithout --json sources are"
            " left out: see `contract show`."
        ),
        "列出内置的保护约定及其保护等级。\n不带 --json 时省略出处，见 `contract show`。",
    ),
    "help.contract.show": (
        "Show every claim of a contract, how well it is known, and from where.",
        "显示保护约定的每一条内容、可信程度和出处。",
    ),
    "help.contract.explain": (
        (
            "Say what is permitted after an unknown outcome, why, and what would be better.\nOnly"
            " what the vendor says counts, unless --accept names more; nothing is changed."
        ),
        (
            "说明结果不明后允许做什么、为什么、怎样更好。\n只有厂商自己的说法算数，除非用 --accept"
            " 指明；不做任何更改。"
        ),
    ),
    "opt.moment": (
        "So long after the first attempt, like 25h (else: after its window).",
        "首次尝试之后多久，例如 25h（默认：窗口结束之后）。",
    ),
    "opt.accept": (
        "Count this claim too, like repeat.atomic; may be repeated.",
        "同时采信此条，例如 repeat.atomic；可重复。",
    ),
    "opt.lag": (
        "Assume this time from effect to visible, like 0s.",
        "假设从生效到可查的最长时间，例如 0s。",
    ),
    "opt.late": (
        "Assume this longest time from deadline to effect, like 30s.",
        "假设从期限到生效的最长时间，例如 30s。",
    ),
    "opt.keeps": (
        "Assume that keys are kept for so long, like 24h.",
        "假设目标键的保留时间，例如 24h。",
    ),
}

CONTRACT_TEXTS: dict[str, tuple[str, str]] = {
    # --- columns and labels
    "label.contract": ("contract", "保护约定"),
    "label.title": ("title", "标题"),
    "label.status": ("status", "状态"),
    "label.date": ("date", "日期"),
    "label.class": ("class", "保护等级"),
    "label.after": ("after its window", "窗口结束后"),
    "label.needs": ("to be declared", "需声明"),
    "label.known": ("seen/second hand/memory", "厂商/转述/记忆"),
    "label.claim": ("claim", "条目"),
    "label.value": ("value", "内容"),
    "label.level": ("known from", "来源"),
    "label.counts": ("counts", "是否算数"),
    "label.then": ("class then", "采信后的等级"),
    "label.sources": ("Sources", "出处"),
    "label.note": ("note", "说明"),
    "label.now": ("Now", "现在"),
    "label.later": ("{span} after the first attempt", "首次尝试之后 {span}"),
    "label.better": ("What would be better", "怎样更好"),
    "label.offers": (
        'Not counted unless you accept it in ascertain.toml, [contracts."{id}"], accept = […]',
        '不算数；除非在 ascertain.toml 的 [contracts."{id}"] 中写 accept = […] 采信',
    ),
    "label.all": ("All of it accepted", "全部采信后"),
    "label.accepted": ("Assumed", "假设"),
    "label.yes": ("yes", "是"),
    "label.no": ("no", "否"),
    "label.only": ("notifications only", "仅为通知"),
    # --- how well it is known
    "status.verified": (
        "verified: a self-test against the real system showed it",
        "已验证：对真实系统的自检已证实",
    ),
    "status.documented": (
        "documented: the vendor says so, nobody here has tried it",
        "有文档：厂商如此说明，本项目未实测",
    ),
    "status.draft": (
        "draft: from memory or at second hand, so next to nothing of it counts",
        "草稿：来自记忆或转述，几乎都不算数",
    ),
    "level.vendor": ("the vendor", "厂商"),
    "level.second": ("second hand", "转述"),
    "level.memory": ("memory", "记忆"),
    **ADVICE,
}


def tell(code: str, lang: str, **values: object) -> str:
    """Return a text of this page, or the sentence that `words` has for a step or an absence."""
    found = CONTRACT_TEXTS.get(code)
    if found is None:
        return advice_words.tell(code, lang, **values)
    return found[words.LANGUAGES.index(lang)].format(**values)

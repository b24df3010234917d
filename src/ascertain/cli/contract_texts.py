"""What `ascertain contract` says, in English and Chinese, by code. Pure data.

Codes that `ascertain.core.words` has a sentence for are said by that one.
"""

from __future__ import annotations

from ascertain.core import words

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
    # --- what is permitted
    "permit.look_then_replay": (
        (
            "It is looked up first; if it is not found, it is sent again under the same key after"
            " the observation period."
        ),
        "先查询；未查到则在观察期后同键重发。",
    ),
    "permit.look_then_send": (
        "It is looked up; if it is not there after the observation period, it is sent again.",
        "先查询；观察期后仍未查到则再次发送。",
    ),
    "permit.look_only": (
        "It is looked up: found is proof, not found is not, and then a person decides.",
        "先查询：查到即证实，未查到不能作为证据，由人决定。",
    ),
    "permit.person": (
        "Nothing is sent again by itself: a person decides.",
        "不会自动重发：由人决定。",
    ),
    # --- why
    "why.repeatable": (
        "Doing it again has no outside effect.",
        "重做不产生外部影响。",
    ),
    "why.cost_only": (
        "A repeat only costs money, and the policy allows one.",
        "重复只多花钱，且策略允许一次。",
    ),
    "why.identity": (
        (
            "What is made carries our identity, and the target makes no second one of it, not even"
            " of two at once."
        ),
        "创建的对象带有我们的唯一编号，目标系统不会重复创建，同时两次也不会。",
    ),
    "why.overwrites": (
        (
            "What is made carries our identity, but a repeat overwrites what somebody may have"
            " changed meanwhile."
        ),
        "创建的对象带有我们的唯一编号，但重发会覆盖期间他人的修改。",
    ),
    "why.races": (
        "What is made carries our identity, but nobody promises that two at once make one.",
        "创建的对象带有我们的唯一编号，但无人保证同时两次只生成一个。",
    ),
    "why.remembers": (
        "The target remembers our key for {keeps}, also of two at once.",
        "目标系统在 {keeps} 内记住我们的键，同时两次也只执行一次。",
    ),
    "why.remembers_races": (
        "The target remembers our key for {keeps}, but nobody promises that two at once make one.",
        "目标系统在 {keeps} 内记住我们的键，但无人保证同时两次只执行一次。",
    ),
    "why.content": (
        "The target only merges what looks alike, and two deliberate ones may look alike.",
        "目标系统只按内容合并，而两次有意的操作可能看起来相同。",
    ),
    "why.keeps_unknown": (
        "The target takes our key, but for how long it remembers it is not stated.",
        "目标系统接受我们的键，但未说明记住多久。",
    ),
    "why.late_unknown": (
        (
            "The target remembers our key for {keeps}, but how late a request may still arrive is"
            " not stated, so a replay could arrive after that."
        ),
        "目标系统在 {keeps} 内记住我们的键，但未说明请求最晚何时到达，重发可能超出此时间。",
    ),
    "why.window_over": (
        "The target is sure to remember our key for {keeps} only, and less a margin that is over.",
        "目标系统只保证在 {keeps} 内记住我们的键；减去余量，时间已过。",
    ),
    "why.no_key": (
        "The target takes no key of ours.",
        "目标系统不接受我们的键。",
    ),
    "why.again": (
        "Nothing is known of what a repeat under our key does, so it counts as another effect.",
        "不知道同键重发会怎样，因此按再次执行处理。",
    ),
    # --- what would be better
    "better.ok_when": (
        (
            "Which answer is success rests on no vendor's word: your code has to judge it; a"
            " template needs ok.when accepted."
        ),
        "哪种答复算成功，没有厂商依据：由您的代码判断；模板动作需采信 ok.when。",
    ),
    "better.declare": (
        "Declare {value}, which the vendor does not state; it is printed as your assumption.",
        "声明 {value}（厂商未说明）；会作为您的假设列出。",
    ),
    "better.unseen": (
        "Say that nobody moves it where the look-up cannot see it: unseen = {value}.",
        "声明没有人会把它移到查询看不到的地方：unseen = {value}。",
    ),
    "better.trust": (
        (
            "It cannot be undone, so an absence that rests on assumptions goes to a person, unless"
            " you say trust_assumed_absence or reversible."
        ),
        "结果无法撤销，依赖假设的“未查到”由人决定；除非声明 trust_assumed_absence 或 reversible。",
    ),
    "better.keeps": (
        "Find out how long keys are kept, and declare keeps.",
        "查明键的保留时间，并声明 keeps。",
    ),
    "better.may_repeat": (
        "A repeat only costs money: allow one with repeatable=True.",
        "重复只多花钱：可用 repeatable=True 允许一次。",
    ),
    "better.unique_field": (
        "If the target can hold one, add a unique field `{value}` with our key.",
        "若目标系统支持，增加一个存放我们的键的唯一字段 `{value}`。",
    ),
    "better.prove_atomic": (
        "Show in a sandbox, or by a storage constraint, that two at once make one: {value}.",
        "在沙箱中或用存储约束证明同时两次只生成一个：{value}。",
    ),
    "better.look_up": (
        "Put our key into a field that can be searched, and register a look-up.",
        "把我们的键写入可查询的字段，并登记查询。",
    ),
    "better.fence": (
        "A person can make a late arrival harmless first: {value}.",
        "可先由人使迟到的请求失效：{value}。",
    ),
    "better.events": (
        "Report the target's own notifications, told apart by {value}: they settle it too.",
        "上报目标系统自己的通知（以 {value} 区分）：同样可以查实。",
    ),
    "better.then": (" Then {protection}: {permitted}", "则为{protection}：{permitted}"),
    "said.class": ("{protection}.", "{protection}。"),
}


def tell(code: str, lang: str, **values: object) -> str:
    """Return a text of this page, or the sentence that `words` has for a step or an absence."""
    found = CONTRACT_TEXTS.get(code)
    if found is None:
        return words.say(code.partition(".")[2], lang)
    return found[words.LANGUAGES.index(lang)].format(**values)

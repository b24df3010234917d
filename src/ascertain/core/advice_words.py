"""What `core.advice` says, in English and Chinese, by its codes. Pure data.

Codes that `words` has a sentence for are said by that one.
"""

from __future__ import annotations

from . import words

CLASSES: dict[str, tuple[str, str]] = {
    "class.repeatable": ("repeatable", "可重做"),
    "class.idempotent": ("idempotent", "窗口内防重"),
    "class.identified": ("identified", "唯一编号防重"),
    "class.not_race_free": ("identified, not race-free", "唯一编号（并发不保证）"),
    "class.searchable": ("searchable", "可查证"),
    "class.lagging": ("lagging", "查证有延迟"),
    "class.opaque": ("opaque", "无法查证"),
}
ADVICE: dict[str, tuple[str, str]] = {
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
    found = ADVICE.get(code) or CLASSES.get(code)
    if found is None:
        return words.say(code.partition(".")[2], lang)
    return found[words.LANGUAGES.index(lang)].format(**values)

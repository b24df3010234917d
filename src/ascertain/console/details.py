"""What an error says in detail, for a Chinese reader: of those that a form or an event meets.

An error's own message is English. Where it is none of these, the sentence of its code stands
before it (core/error_words.py). Pure.
"""

from __future__ import annotations

import re

# A pattern of the whole message, and what is said in its place; \1 is data.
DETAILS = (
    # forms
    (r"send the form of the page", "请使用页面上的表单提交"),
    (r"the form cannot be read", "无法读取提交的表单"),
    (r"there is nothing called '(.*)' to do here", r"此处没有“\1”这项操作"),
    (r"there is no answer '(.*)' to an approval", r"审批没有“\1”这种答复"),
    (r"there is no approval (.+) in this namespace", r"此空间中没有审批 \1"),
    (r"there is no review (.+) in this namespace", r"此空间中没有核查 \1"),
    (r"there is no bulk action (.+) in this namespace", r"此空间中没有批量处理 \1"),
    (r"there is no run '(.*)' in this namespace", r"此空间中没有批次“\1”"),
    (r"there is no event '(.*)' here", r"此空间中没有事件“\1”"),
    (r"there is no contract '(.*)'", r"没有保护约定“\1”"),
    (r"no hook '(.*)' is declared here: declare it again in ascertain\.toml",
     r"此处未声明入口“\1”：请在 ascertain.toml 中重新声明"),
    (r"no (?:target|hook) '(.*)' is declared .*", r"此处未声明“\1”"),
    (r"(\S+) may not do this here", r"\1 在此空间无权这样做"),
    (r"(\S+) may see no page here", r"\1 无权查看这里的页面"),
    (r"(\S+) may not approve here", r"\1 在此空间无权审批"),
    (r"(\S+) may not decide here", r"\1 在此空间无权判断核查"),
    (r"(\S+) may not act without proof", r"\1 无权在没有证据时执行"),
    (r"(\S+) may not read the audit here", r"\1 在此空间无权查看审计"),
    (r"(\S+) may not pause targets here", r"\1 在此空间无权暂停目标系统"),
    (r"(\S+) may not administer this namespace", r"\1 无权管理此空间"),
    # operations and reviews
    (r"say why it is done a second time", "请写明为什么要再做一次"),
    (r"say on what ground: why='…'", "请写明判断依据"),
    (r"say what its author should change: note='…'", "请写明作者需要修改什么"),
    (r"write a note of 1 to (\d+) characters", r"备注需为 1 至 \1 个字符"),
    (r"give the reason for the risk", "请写明承担此风险的理由"),
    (r"this is decided already", "此项已有决定"),
    (r"(\S+) already belongs to operation (\S+); look at that one",
     r"引用 \1 已属于操作 \2：请查看该操作"),
    (r"the reported reference already belongs to operation (\S+)", r"该引用已属于操作 \1"),
    (r"something newer is known: (.+) said '(.*)', and it is (\S+)(.*) now; look again",
     r"已有更新的情况：\1 作出了“\2”，目前状态为 \3\4；请重新查看"),
    (r"something newer is known; look again", "已有更新的情况，请重新查看"),
    (r"no approval is asked of role '(.*)' now(.*)", r"目前不需要“\1”这一角色审批\2"),
    (r"name the role that consents \((.*)\)", r"请指明以哪个角色同意（\1）"),
    (r"nothing is changed; approve it as it is, or change it",
     "内容没有变化：请按原样批准，或修改后再提交"),
    (r"it has more than (\d+) versions under this key; submit it under a key of its own",
     r"此标识下已超过 \1 个版本：请换一个标识提交"),
    (r"operation (\S+) has an attempt under way: decide when it has ended",
     r"操作“\1”有一次尝试正在进行：请待其结束后再判断"),
    (r"operation (\S+) is (\S+): (\S+) answers nothing that is open now \(possible: (.*)\)",
     r"操作“\1”现为 \2：目前没有待用“\3”回答的问题（可选：\4）"),
    (r"give the reference of what is there, so that it is known which object this operation made",
     "请填写已存在对象的引用，以便确认它是由此操作产生的"),
    (r"(\S+) has taken this review; ask for it, or hand it over to yourself",
     r"\1 已接手此项核查：请与其联系，或将其转交给自己"),
    (r"put it off until a time within the next (\d+) days", r"暂缓时间须在今后 \1 天以内"),
    (r"this review is closed; look at the operation", "此项核查已结束：请查看对应的操作"),
    (r"the observation period has not ended, .* Accept the risk explicitly, or wait",
     "观察期尚未结束或无法确知，此时按该回答执行可能造成重复：请明确接受风险，或继续等待"),
    # bulk actions
    (r"name the operations by ids, or by a filter: one of both",
     "请勾选操作，或使用筛选条件，二者取其一"),
    (r"at most (\d+) operations at once", r"一次最多 \1 项操作"),
    (r"(\w+): give the reason, why='…'", "请写明理由"),
    (r"snooze: say until when", "请选择暂缓到什么时候"),
    (r"bulk action (\S+) was planned by (\S+): plan one of your own",
     r"批量计划 \1 由 \2 制定：请自行制定一份"),
    (r"bulk action (\S+) cannot be run: its plan is older than 15 minutes: plan it again",
     r"批量计划 \1 制定已超过 15 分钟，请重新制定"),
    # people, tokens, links
    (r"there is no such person in this namespace", "此空间中没有这位成员"),
    (r"(\S+) belongs to more than you administer", r"\1 还属于您无权管理的空间"),
    (r"(\S+) is the last one who administers every namespace: give that to somebody else first",
     r"\1 是最后一位可管理所有空间的成员：请先将此权限授予他人"),
    (r"a name has at most (\d+) printable characters", r"名称最多 \1 个可见字符"),
    (r"say in which namespace the person may do something", "请指明该成员在哪个空间拥有权限"),
    (r"this needs the administration of namespace '(.*)'", r"这需要空间“\1”的管理权限"),
    (r"in namespace '(.*)' you may not give (.*): it takes the administration .*",
     r"在空间“\1”中您不能授予这些权限（\2）：须有该空间的管理权限，并自己拥有所授予的每一项权限"),
    (r"(\S+) has more rights in namespace '(.*)' than you: .*",
     r"\1 在空间“\2”中的权限多于您：请撤销其成员资格，或请拥有这些权限的人处理"),
    (r"(\S+) belongs to namespaces, or has rights, that you do not have: .*",
     r"\1 属于您没有权限的空间，或拥有您没有的权限：请联系可管理所有空间的人"),
    (r"the login '(.*)' is taken: choose another one", r"登录名“\1”已被使用：请另选一个"),
    (r"a token needs scopes, of (.*); not (.*)", r"令牌需要选择权限范围（可选：\1）；不能是：\2"),
    (r"in namespace '(.*)' you may not make a token with (.*): .*",
     r"在空间“\1”中您不能创建具有 \2 的令牌：能看到所有空间的权限，须可管理所有空间的人授予"),
    (r"a token needs a name of 1 to (\d+) printable characters",
     r"令牌名称需为 1 至 \1 个可见字符"),
    (r"the end of a token lies in the future", "令牌的到期时间须晚于现在"),
    (r"say to whom the link is given, in 1 to 100 printable characters",
     "请写明链接交给谁（1 至 100 个可见字符）"),
    (r"a guest's link is good for at most 30 days", "访客链接最多有效 30 天"),
    (r"this link was used already, or is over: ask for a new one",
     "此链接已使用或已失效：请索取新的链接"),
    (r"target (\S+): somebody else changes its gate all the time; look again",
     r"目标系统 \1：其他人正在更改其状态，请重新查看"),
    # events
    (r"it asks for (\d+) operations, at most (\d+)", r"映射提出了 \1 项操作，上限为 \2"),
    (r"each is no list but (\w+)", r"`each` 的结果不是列表，而是 \1"),
    (r"each gives (\d+) items, at most (\d+)", r"`each` 得到 \1 项，上限为 \2"),
    (r"the input of (\S+) must be an object, or a list of objects; it is (\w+)",
     r"动作 \1 的输入须为对象或对象列表，而得到的是 \2"),
    (r"the key of (\S+) is no text but (.*)", r"动作 \1 的标识不是文本，而是 \2"),
    (r"'(.*)' cannot be evaluated: (.*)", r"表达式“\1”无法求值：\2"),
    (r"the flow '(.*)' is code: a worker that knows it takes this up \((.*)\)",
     r"流程“\1”由代码实现：由加载了它的执行者处理（\2）"),
    (r"its ordinal is neither a whole number nor a date", "其序号既不是整数，也不是日期"),
    (r"its ordinal '(.*)' is neither a number nor a date", r"其序号“\1”既不是数字，也不是日期"),
    (r"it has no (.*)", r"其中没有 \1"),
    (r"its (.*) is longer than (\d+) characters or not printable",
     r"其 \1 超过 \2 个字符，或含不可见字符"),
    (r"the body holds a NUL character", "请求体中含有 NUL 字符"),
    (r"the body is neither JSON nor a form: (.*)", r"请求体既不是 JSON，也不是表单：\1"),
    (r"action (\S+): unknown input (.+); missing input (.+)\. It takes (.*)",
     r"动作 \1：没有名为 \2 的输入；缺少输入 \3。它的输入是 \4"),
    (r"action (\S+): unknown input (.+)\. It takes (.*)",
     r"动作 \1：没有名为 \2 的输入。它的输入是 \3"),
    (r"action (\S+): missing input (.+)\. It takes (.*)", r"动作 \1：缺少输入 \2。它的输入是 \3"),
    (r"key part '(.*)' is empty: two operations would share the key",
     r"标识的“\1”部分为空：两项操作会共用同一标识"),
)  # fmt: skip
_READ = [(re.compile(pattern, re.DOTALL), chinese) for pattern, chinese in DETAILS]
_OPERATION = re.compile(r"operation (.+?): (.+)", re.DOTALL)


def in_chinese(message: str) -> str:
    """Return what a message says in Chinese; nothing where it is none that is known."""
    for pattern, chinese in _READ:
        found = pattern.fullmatch(message)
        if found is not None:
            return f"{found.expand(chinese)}。"
    about = _OPERATION.fullmatch(message)
    said = in_chinese(about[2]) if about is not None else ""
    return f"操作“{about[1]}”：{said}" if about is not None and said else ""

"""What `ascertain contract test` says, in English and Chinese, by code. Pure data."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ascertain.core import words
from ascertain.core.model import SECOND

CONTRACT_TEST_HELP: dict[str, tuple[str, str]] = {
    "help.contract.test": (
        (
            "Try a contract in your own sandbox, claim by claim.\nACTION is declared in"
            " ascertain.toml or by --app. It says first what it will create, sends the same"
            " thing several times on purpose, and removes it again where it is told how."
        ),
        (
            "在自己的沙箱中逐条检验保护约定。\nACTION 在 ascertain.toml 或 --app 的应用中声明。"
            "先说明将创建什么，再有意多次发送同一内容；指明如何删除时会自行清理。"
        ),
    ),
    "opt.trial_input": (
        "The action's input, name=text or name:=JSON; {n} in it differs for each object.",
        "动作的输入，name=文本 或 name:=JSON；其中的 {n} 对每个对象各不相同。",
    ),
    "opt.trial_changed": (
        "What differs where the content is changed (else: one input outside the key).",
        "检验“内容改变”时所改的输入（默认：业务标识之外的一项）。",
    ),
    "opt.trial_undo": (
        "The action that removes an object; its only input is `ref`.",
        "用于删除对象的动作；其唯一输入为 `ref`。",
    ),
    "opt.sandbox": (
        "You say that the target is a sandbox; without it nothing is sent.",
        "由您声明目标系统是沙箱；否则不发送任何内容。",
    ),
    "opt.trial_yes": (
        "A person has read the plan: do not ask; needed where nothing can be undone.",
        "已有人读过计划：不再询问；无法撤销时必须给出。",
    ),
    "opt.wait_window": (
        "Wait for the end of a window longer than a minute, too.",
        "窗口超过一分钟时也等待其结束。",
    ),
    "trial.no_sandbox": (
        "Nothing was sent. If the target is a sandbox, say so: --sandbox",
        "未发送任何内容。若目标系统是沙箱，请声明：--sandbox",
    ),
    "trial.needs_yes": (
        (
            "Nothing was sent: it cannot be undone, is marked risky or needs an approval. A person"
            " must say --yes"
        ),
        "未发送任何内容：此动作无法撤销、标为有风险或需审批；须由人给出 --yes",
    ),
    "trial.not_asked": (
        "Nothing was sent: nobody is here to be asked. A person can say --yes",
        "未发送任何内容：此处无人可询问；可由人给出 --yes",
    ),
}

_TEXTS: dict[str, tuple[str, str]] = {
    "plan": (
        "Plan for {action} at {scope}, contract {contract}, protection class {protection}:",
        "{action} 的检验计划（{scope}，保护约定 {contract}，保护等级 {protection}）：",
    ),
    "plan.probe": ("{what}: {most} object(s) at most", "{what}：最多 {most} 个对象"),
    "plan.looks": ("{what}: no object", "{what}：不创建对象"),
    "plan.left": ("not tried: {what}: {why}", "不检验：{what}：{why}"),
    "plan.total": (
        (
            "It makes {creates} objects if the contract holds, {most} at most, and takes {longest}"
            " at most, if every request takes its whole time-out."
        ),
        "约定成立时创建 {creates} 个对象，最多 {most} 个；每次请求都用满时限时最长 {longest}。",
    ),
    "plan.undo": ("Afterwards {undo} removes them.", "之后由 {undo} 删除。"),
    "plan.by_hand": (
        "Nothing says how to remove them (--undo ACTION): they are listed for you.",
        "未指明如何删除（--undo 动作）：结束后逐一列出，由人删除。",
    ),
    # --- probes
    "probe.unknown": ("look up a key that was never sent", "查询从未发送的目标键"),
    "probe.known": ("create once and look it up", "创建一次并查询"),
    "probe.lag": ("create more and measure the lag", "再创建几个并测量延迟"),
    "probe.again": ("the same key again", "同一目标键再次发送"),
    "probe.changed": ("the same key, changed content", "同一目标键，内容改变"),
    "probe.at_once": ("the same key 8 times at once", "同一目标键同时发送 8 次"),
    "probe.window": (
        "a key shortly before and after the end of its window",
        "窗口结束前与结束后的同一目标键",
    ),
    "probe.removed": ("remove, then look up", "删除后查询"),
    "doing": ("… {what}", "… {what}"),
    # --- the report
    "line": ("{result}: {head}: {why}", "{result}：{head}：{why}"),
    "result.holds": ("holds", "成立"),
    "result.fails": ("DOES NOT HOLD", "不成立"),
    "result.untested": ("not tested", "未检验"),
    "all.holds": (
        "The contract holds as far as it was tried: {held} claims, {untested} not tested.",
        "就所检验的部分，保护约定成立：{held} 条成立，{untested} 条未检验。",
    ),
    "all.fails": ("The contract does not hold: {failed}.", "保护约定不成立：{failed}。"),
    "all.stopped": (
        "Stopped at: {what}. Nothing is verified.",
        "中止于：{what}。未核实任何内容。",
    ),
    "all.nothing": ("Nothing could be tested.", "没有可检验的内容。"),
    "class": (
        "Protection class as claimed: {now}, after the window {later}.",
        "按约定的保护等级：{now}，窗口结束后：{later}。",
    ),
    "class.without": (
        "Without what does not hold: {now}, after the window {later}.",
        "去掉不成立的部分：{now}，窗口结束后：{later}。",
    ),
    "made": (
        "Made: {count} object(s), removed {removed}.",
        "已创建 {count} 个对象，已删除 {removed} 个。",
    ),
    "left": ("To be removed by hand:", "请手动删除："),
    "left.one": ("{key}: {refs} (target key {target_key})", "{key}：{refs}（目标键 {target_key}）"),
    "left.perhaps": ("may exist, reference not known", "可能存在，结果编号不明"),
    "left.no_ref": ("no reference", "无结果编号"),
    "stamped": (
        "Verified on {on} in scope {scope}, revision {revision}; void when either changes.",
        "已于 {on} 在 {scope} 核实（修订 {revision}）；任一改变即失效。",
    ),
    "not_stamped": ("Not stamped as verified.", "未记为已核实。"),
    "no_scope": ("its target", "其目标系统"),
    # --- why
    "why.ok_success": ("the first answer is a success by the contract", "首次应答按约定为成功"),
    "why.ok_missed": (
        "the object is there, but its answer is no success by the contract: {reason}",
        "对象已创建，但按约定其应答不是成功：{reason}",
    ),
    "why.first_unknown": (
        "the outcome of the first request is unknown: {reason}",
        "首次请求结果不明：{reason}",
    ),
    "why.first_not_done": ("the first request was refused: {reason}", "首次请求被拒绝：{reason}"),
    "why.no_first": ("nothing was made that could be tried", "没有创建成功，无从检验"),
    "why.stopped": ("it was stopped before", "在此之前已中止"),
    "why.answer_first": ("what comes before it failed already", "其前提已不成立"),
    "why.look_finds_all": (
        "the look-up ignores the key, so finding means nothing",
        "查询不理会目标键，查到也不说明什么",
    ),
    "why.look_found": (
        "it found the object, {lag} after the answer",
        "应答后 {lag} 查到了该对象",
    ),
    "why.look_unanswered": ("the look-up was not answered: {reason}", "查询没有得到应答：{reason}"),
    "why.look_never_found": (
        "it did not find an object that exists, in {waited}: is it allowed to see it?",
        "{waited} 内未查到确实存在的对象：是否有权查看？",
    ),
    "why.look_within_lag": (
        "not found in {waited}, which the stated lag allows",
        "{waited} 内未查到，但未超出约定的延迟",
    ),
    "why.by_finds_all": ("it finds a key that was never sent", "它查到了从未发送的目标键"),
    "why.by_unanswered": (
        "the look-up of a key never sent was not answered: {reason}",
        "查询从未发送的目标键没有得到应答：{reason}",
    ),
    "why.no_control": (
        "no absence counts before an object known to exist has been found",
        "在查到已知存在的对象之前，查不到不算数",
    ),
    "why.by_partial": (
        "its absence is never complete, so it never counts",
        "查不到时总是不完整，因此不算数",
    ),
    "why.by_heeds": (
        "it finds what exists and not what was never sent",
        "查到存在的，查不到从未发送的",
    ),
    "why.look_first": ("no look-up that can be trusted", "没有可信的查询"),
    "why.lag_longer": (
        "it took {most}, stated are at most {claimed}",
        "用了 {most}，约定最多 {claimed}",
    ),
    "why.lag_within": (
        "measured {times} times: median {median}, longest {most}; no trial shows a bound",
        "测量 {times} 次：中位数 {median}，最长 {most}；检验不能证明上限",
    ),
    "why.blind_deleted": ("a deleted object is not found, as stated", "已删除的查不到，与约定一致"),
    "why.blind_untried": ("nothing of this kind was made", "未创建此类对象"),
    "why.uncountable": (
        "neither references nor a look-up say how many there are",
        "结果编号和查询都不能说明数量",
    ),
    "why.again_second": ("the same key makes a second object", "同一目标键生成第二个对象"),
    "why.again_once": (
        "the same key made no second object: better than stated",
        "同一目标键未生成第二个对象：好于约定",
    ),
    "why.answer_second": (
        "the same key made {count} objects: the target ignores it",
        "同一目标键生成了 {count} 个对象：目标系统不理会它",
    ),
    "why.second_busy": ("the target was still at work", "目标系统仍在处理"),
    "why.second_unknown": ("the outcome is unknown: {reason}", "结果不明：{reason}"),
    "why.answer_otherwise": (
        "one object, but another answer than stated: {reason}",
        "只有一个对象，但应答与约定不同：{reason}",
    ),
    "why.answer_success": (
        "the second request was a success, too: it overwrote or was not refused",
        "第二次请求也成功：发生了覆盖，或没有被拒绝",
    ),
    "why.answer_changed_second": (
        "with changed content the same key made {count} objects",
        "内容改变时同一目标键生成了 {count} 个对象",
    ),
    "why.answer_overwrote": (
        "with changed content it overwrote what was there",
        "内容改变时覆盖了已有对象",
    ),
    "why.answer_one": ("the same key made one object only", "同一目标键只生成一个对象"),
    "why.exists_said": ("the second answer says so as stated", "第二次应答与约定一致"),
    "why.exists_by_code": (
        "the action's own code judged the answer",
        "应答由动作自己的代码判断",
    ),
    "why.exists_other": (
        "the second answer is not the one stated: {reason}",
        "第二次应答不是约定的应答：{reason}",
    ),
    "why.mismatch_refused": ("changed content was refused", "内容改变时被拒绝"),
    "why.mismatch_second": (
        "changed content made {count} objects",
        "内容改变时生成了 {count} 个对象",
    ),
    "why.mismatch_absorbed": (
        "changed content was taken for the old, which stands",
        "改变的内容被当作原内容，原内容未变",
    ),
    "why.mismatch_overwrote": ("changed content overwrote the old", "改变的内容覆盖了原内容"),
    "why.mismatch_taken": (
        "changed content was not refused; which content stands is not seen",
        "内容改变时未被拒绝；看不到现存的是哪个内容",
    ),
    "why.mismatch_other": (
        "changed content was answered otherwise than stated: {reason}",
        "内容改变时的应答与约定不同：{reason}",
    ),
    "why.atomic_one": ("{sent} at once made one object", "同时发送 {sent} 次只生成一个对象"),
    "why.atomic_several": (
        "{sent} at once made {count} objects",
        "同时发送 {sent} 次生成了 {count} 个对象",
    ),
    "why.keeps_remembered": (
        "after {age} of {keeps} the key was still known",
        "{keeps} 中经过 {age}，目标键仍被记住",
    ),
    "why.keeps_forgot": (
        "after {age} of {keeps} the key was forgotten already",
        "{keeps} 中仅经过 {age}，目标键已被遗忘",
    ),
    "why.too_slow": ("the answers took too long to tell", "应答太慢，无法判断"),
    "why.undone": ("what was made is gone by the look-up, too", "所创建的已删除，查询也查不到"),
    "why.undo_answered": ("the target says that it is gone", "目标系统称已删除"),
    "why.undo_failed": ("it is not gone: {reason}", "未能删除：{reason}"),
    "why.nothing_to_undo": ("no reference of what was made is known", "所创建的没有已知的结果编号"),
    "why.no_undo": ("nothing says how (--undo ACTION)", "未指明如何删除（--undo 动作）"),
    "why.no_look_up": ("the action has no look-up", "该动作没有查询"),
    "why.late": ("no trial can show the longest time", "检验不能证明最长时间"),
    "why.not_provoked": ("it did not come up; nothing provokes it", "未出现；检验不去触发它"),
    "why.not_claimed": ("the contract does not claim it", "约定没有此项"),
    "why.one_key": (
        "each object needs its own input: put {{n}} into one",
        "每个对象需要不同的输入：请在某一项中写 {{n}}",
    ),
    "why.no_content": ("no input outside the key may change", "业务标识之外没有可改变的输入"),
    "why.forever": ("no trial lasts for ever", "检验不可能持续到永远"),
    "why.window_long": ("its window is long: --wait-window", "窗口较长：--wait-window"),
    # --- notes
    "note.lag_measured": (
        "Measured lag: median {median}, longest {most}; the contract states none.",
        "测得延迟：中位数 {median}，最长 {most}；约定没有说明。",
    ),
    "note.content_old": (
        "With another {name} under the same key the old content stands.",
        "同一目标键改变 {name} 时，原内容不变。",
    ),
    "note.content_new": (
        "With another {name} under the same key the new content stands.",
        "同一目标键改变 {name} 时，内容被更新。",
    ),
    "note.content_unclear": (
        "With another {name} under the same key: the look-up does not show which content stands.",
        "同一目标键改变 {name} 时：查询不显示现存的是哪个内容。",
    ),
    "note.forgotten": (
        "After the window the same key makes another object.",
        "窗口结束后，同一目标键会生成另一个对象。",
    ),
    "note.kept_longer": (
        "After the window the key was still known.",
        "窗口结束后目标键仍被记住。",
    ),
    "note.deleted_unseen": (
        "A deleted object looks like one that was never made.",
        "已删除的对象看起来与从未创建的一样。",
    ),
    "note.no_control": (
        "No positive control was found: no absence counts for this action.",
        "未查到已知对象：该动作的“查不到”均不算数。",
    ),
}
TENTH = SECOND // 10
_TIMES = frozenset({"lag", "waited", "claimed", "most", "median", "age", "keeps", "longest"})


def tell(code: str, lang: str, /, **values: object) -> str:
    """Return a text of this page, filled; durations in µs are written in short form."""
    return _TEXTS[code][words.LANGUAGES.index(lang)].format(**values)


def said(code: str, lang: str, facts: Mapping[str, Any]) -> str:
    """Return the sentence of a code with its facts."""
    shown = {n: span(v) if n in _TIMES else v for n, v in facts.items()}
    return tell(code, lang, **shown)


def span(length: int) -> str:
    """Write a duration in µs shortly, to the millisecond."""
    if length < SECOND:
        return f"{length // 1000}ms"
    return words.duration(length // TENTH * TENTH)

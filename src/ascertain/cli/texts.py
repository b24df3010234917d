"""Everything that the command line says, in English and Chinese, by its key. Pure data.

What a command does and what an option means stand in `help_texts`, sentences about operations in
`ascertain.core.words`. Tests fail on a key that nobody uses, and on one that is missing.
"""

from __future__ import annotations

from ascertain.core.advice_words import CLASSES
from ascertain.core.words import LANGUAGES

from .help_texts import HELP

TEXTS: dict[str, tuple[str, str]] = HELP | {
    "head.usage": ("Usage: ", "用法："),
    "head.options": ("Options", "选项"),
    "head.commands": ("Commands", "命令"),
    "ask": ("Go on?", "继续吗？"),
    "aborted": ("Stopped; nothing was changed.", "已中止，未做任何更改。"),
    "broken": (
        "This is a bug, here or in the application's code: {why}. Set {name}=1 to see where.",
        "程序错误（本工具或应用代码）：{why}。设置 {name}=1 可查看位置。",
    ),
    "demo.packages": (
        "WordPress needs packages that are missing: {names}. As root: {command}",
        "WordPress 缺少软件包：{names}。请以 root 身份运行：{command}",
    ),
    "demo.not_started": (
        "{name} could not be started, so nothing was shown. Next step: {hint}\n{why}",
        "{name} 未能启动，演示没有进行。下一步：{hint}\n{why}",
    ),
    "demo.apt_failed": ("{command} failed: {said}", "{command} 失败：{said}"),
    # --- columns
    "col.id": ("operation", "业务操作"),
    "col.action": ("action", "动作"),
    "col.key": ("key", "业务标识"),
    "col.state": ("state", "状态"),
    "col.ref": ("reference", "结果编号"),
    "col.next": ("next", "下一步"),
    "col.owner": ("owner", "负责人"),
    "col.age": ("waiting for", "已等待"),
    "col.why": ("why", "原因"),
    "col.question": ("question", "问题"),
    "col.kind": ("attempt", "技术尝试"),
    "col.started": ("started", "开始"),
    "col.deadline": ("deadline", "期限"),
    "col.outcome": ("outcome", "结局"),
    "col.worker": ("worker", "执行者"),
    # --- durations
    "span.day": ("{number} day{plural}", "{number} 天"),
    "span.hour": ("{number} hour{plural}", "{number} 小时"),
    "span.minute": ("{number} minute{plural}", "{number} 分钟"),
    "span.second": ("{number} second{plural}", "{number} 秒"),
    "span.moment": ("a moment", "片刻"),
    "span.ahead": ("in {span}", "{span}后"),
    "span.ago": ("{span} ago", "{span}前"),
    # --- opening
    "no_store": (
        (
            "There is no store at {path}. Name it with --store or ASCERTAIN_STORE, or make it with"
            " `ascertain store migrate`."
        ),
        (
            "{path} 处没有账本。请用 --store 或 ASCERTAIN_STORE 指定，或用"
            " `ascertain store migrate` 新建。"
        ),
    ),
    "app_needed": (
        (
            "This command needs the actions: name the application with --app module:ledger, or"
            " --config FILE; else ASCERTAIN_APP, ASCERTAIN_CONFIG or ascertain.toml here."
        ),
        "此命令需要动作：请用 --app 模块:账本 指定应用，或用 --config 指定 ascertain.toml。",
    ),
    "app_failed": (
        "The application {app} could not be loaded, nothing was done: {why}",
        "无法加载应用 {app}，未做任何事：{why}",
    ),
    "app_no_ledger": (
        "The application {app} is a {kind}; name its ledger, e.g. --app myapp:ledger.",
        "{app} 是 {kind}，不是账本；请指定其账本，例如 --app myapp:ledger。",
    ),
    "app_namespace": (
        (
            "The application works in namespace {has}, not in {namespace}: leave --namespace"
            " out, or"
            " name the ledger of that namespace."
        ),
        "应用的空间是 {has}，不是 {namespace}：请去掉 --namespace，或指定该空间的账本。",
    ),
    "app_store": (
        (
            "The application opened the store {has}, not {store}: leave --store out, or let it open"
            " the store that ASCERTAIN_STORE names."
        ),
        "应用打开的账本是 {has}，不是 {store}：请去掉 --store，或让应用使用 ASCERTAIN_STORE。",
    ),
    "several_keys": (
        "Several operations have the key {key}; name one by its id: {ids}",
        "业务标识 {key} 对应多项业务操作，请用编号指定：{ids}",
    ),
    # --- operations
    "op.none": ("No operation is like that.", "没有符合条件的业务操作。"),
    "op.now": ("{action} {key}: {state}{ref}. {next}", "{action} {key}：{state}{ref}。{next}"),
    "fact": ("{name}: {value}", "{name}：{value}"),
    "op.more": ("There may be more: --after {id}", "可能还有更多：--after {id}"),
    "no_run": (
        "There is no run {name} here; there are: {names}",
        "这里没有批次 {name}；现有：{names}",
    ),
    "show.title": ("title", "标题"),
    "show.due": ("due", "到期"),
    "show.class": ("protection class", "保护等级"),
    "show.not_here": (
        "not known here; name the application with --app",
        "此处未知；请用 --app 指定应用",
    ),
    "show.assumptions": ("assumptions", "假设"),
    "assume.sends_by_call": (
        "its code sends by call.http only (seen in it, not declared)",
        "只经 call.http 发送（由代码推断，未声明）",
    ),
    "assume.nobody_deletes": ("nobody deletes it at the target", "没有人在目标系统删除它"),
    "show.no_assumptions": ("none", "无"),
    "show.references": ("references", "结果编号"),
    "show.confirmed": ("confirmed", "确认"),
    "show.namespace": ("namespace", "空间"),
    "show.run": ("run", "批次"),
    "show.target_key": ("target key", "目标键"),
    "show.stamp": ("stamp", "版本戳"),
    "show.attempts": ("Attempts", "技术尝试"),
    "show.evidence": ("Evidence", "证据"),
    "show.by": ("by {name}", "来自 {name}"),
    **CLASSES,
    "kind.execute": ("execute", "执行"),
    "kind.replay": ("replay", "同键重发"),
    "kind.look_up": ("look-up", "查询"),
    "outcome.open": ("under way", "进行中"),
    "outcome.done": ("done", "已完成"),
    "outcome.accepted": ("accepted", "已受理"),
    "outcome.not_done": ("not done, proven", "确认未执行"),
    "outcome.unknown": ("unknown", "结果不明"),
    "outcome.expired": ("no report in time: unknown", "未按时回报：结果不明"),
    "outcome.released": ("never started", "从未开始"),
    "outcome.looked": ("looked up", "已查询"),
    "how.answer": ("by the target's answer", "经目标系统答复"),
    "how.look_up": ("by asking the target", "经向目标系统查询"),
    "how.replay": ("by sending it again under its key", "经同键重发"),
    "how.accepted": ("by the target, which took it over", "经目标系统受理"),
    "how.late_report": ("by a report that came late", "经迟到的回报"),
    "how.person": ("by a person", "经人工"),
    "how.event": ("by the target's own event", "经目标系统通知"),
    # --- work
    "work.recovered": (
        "{action} {key}: it was {before}, now it is {after}, found out {how}",
        "{action} {key}：原为“{before}”，现为“{after}”，{how}查实",
    ),
    "work.ref": (" (reference {ref})", "（结果编号 {ref}）"),
    "work.handed": (
        "{action} {key}: handed to a person. {why} `ascertain review decide {id} …`",
        "{action} {key}：转人工核查。{why} `ascertain review decide {id} …`",
    ),
    "alarm.missing": (
        "{action} {key}: a run expects it, its time is over, and nobody submitted it",
        "{action} {key}：批次要求的操作已过期限，仍无人提交（缺失）",
    ),
    "alarm.review": (
        "{action} {key}: has been in review for more than a day; it is with {owner}",
        "{action} {key}：待核查已超过一天；负责人：{owner}",
    ),
    "alarm.approval": (
        "{action} {key}: has waited for an approval for more than a day",
        "{action} {key}：待审批已超过一天",
    ),
    "alarm.held": (
        "{action} {key}: has waited for the version before it for more than a day",
        "{action} {key}：等待上一版本已超过一天",
    ),
    "alarm.stumbled": (
        "{action} {key}: its own code has failed for more than a day; nothing was sent by it",
        "{action} {key}：自身代码出错已超过一天，未因此发送任何内容",
    ),
    "alarm.overdue": (
        "{action} {key}: has been due for more than a day and no worker takes it",
        "{action} {key}：到期已超过一天，没有执行者处理",
    ),
    "work.progress": (
        (
            "worked {worked} · recovered {recovered} · handed to people {handed} · unknown"
            " {unknown}"
            " · in review {reviews}"
        ),
        (
            "已处理 {worked} · 已查实 {recovered} · 转人工 {handed} · 结果不明 {unknown}"
            " · 待核查 {reviews}"
        ),
    ),
    "work.summary": (
        (
            "Ended. Worked {worked}, recovered {recovered}, handed to people {handed}. Left:"
            " unknown"
            " {unknown}, running {running}, accepted {accepted}, pending {pending}, in review"
            " {reviews}, missing {missing}."
        ),
        (
            "已结束。处理 {worked}，查实 {recovered}，转人工 {handed}。尚余：结果不明 {unknown}，"
            "执行中 {running}，已受理 {accepted}，待执行 {pending}，待核查 {reviews}，缺失"
            " {missing}。"
        ),
    ),
    # --- reviews
    "review.none": ("Nothing waits for a decision.", "没有待核查的业务操作。"),
    "review.how": (
        "Decide: ascertain review decide {id} {answers} --by NAME",
        "决定：ascertain review decide {id} {answers} --by 姓名",
    ),
    "road.unknown": ("did it happen?", "是否已执行？"),
    "road.duplicate": ("does it exist twice?", "是否重复？"),
    "road.accepted": ("was it completed?", "是否最终完成？"),
    "decide.there": (
        (
            "{action} {key} will be recorded as done, with the reference {ref}, on {by}'s word;"
            " nothing is sent."
        ),
        "{action} {key} 将依据 {by} 的确认记为已完成，结果编号 {ref}；不会发送任何内容。",
    ),
    "decide.not_there": (
        "{action} {key} will be sent once more, on {by}'s word: the observation period is over.",
        "{action} {key} 将依据 {by} 的确认再发送一次：观察期已过。",
    ),
    "decide.risk": (
        (
            "{action} {key} will be sent once more without proof, and may then exist twice;"
            " the risk"
            " is recorded as {by}'s."
        ),
        "{action} {key} 将在没有证据的情况下再发送一次，可能因此重复；风险记在 {by} 名下。",
    ),
    "decide.risk_first": (
        (
            "{action} {key} needs a second person: {by}'s word is recorded, and nothing is"
            " sent until"
            " somebody else decides the same."
        ),
        "{action} {key} 需要第二人同意：先记录 {by} 的决定，在另一人作出同样决定之前不会发送。",
    ),
    "decide.risk_second": (
        (
            "{action} {key}: {by} is the second person. It will be sent once more without"
            " proof, and"
            " may then exist twice."
        ),
        "{action} {key}：{by} 是第二人。将在没有证据的情况下再发送一次，可能因此重复。",
    ),
    "decide.cannot_tell": (
        "{action} {key} stays in review, with {by}'s note; nothing is sent.",
        "{action} {key} 保持待核查，并记录 {by} 的说明；不会发送任何内容。",
    ),
    "decide.leave": (
        (
            "{action} {key} will be given up by {by}: nothing is sent any more, and whether"
            " it happened"
            " stays unknown."
        ),
        "{action} {key} 将由 {by} 放弃：不再发送，结果仍不明。",
    ),
    "decide.duplicate_settled": (
        (
            "The duplicate review of {action} {key} will be closed on {by}'s word that the second"
            " effect was dealt with at the target; nothing is sent."
        ),
        (
            "将依据 {by} 的确认（重复的结果已在目标系统中处理）关闭 {action} {key} 的重复核查；"
            "不会发送任何内容。"
        ),
    ),
    "decide.nothing": ("nothing", "无"),
    "decide.not_now": (
        "operation {key}: {answer} cannot be decided now; possible now: {answers}",
        "业务操作 {key}：现在不能决定 {answer}；可以决定的是：{answers}",
    ),
    "decide.newer": (
        "operation {key}: something newer is known; look again with `ascertain op show`",
        "业务操作 {key}：已有更新的情况，请用 `ascertain op show` 重新查看",
    ),
    "decide.ref_needed": (
        "operation {key}: name what is there, with --ref",
        "业务操作 {key}：请用 --ref 写明找到的结果编号",
    ),
    "decide.app_needed": (
        (
            "operation {key}: only the declaration of {action} says how long an absence"
            " proves nothing"
            " and whether a second person must agree; name the application with --app"
        ),
        (
            "业务操作 {key}：观察期多长、是否需要第二人同意，只有动作 {action} 的声明知道；"
            "请用 --app 指定应用"
        ),
    ),
    "decide.risk_needed": (
        (
            "operation {key}: the observation period has not ended, or none is known, so acting on"
            " this answer may make a second effect. Wait, or accept the risk with --accept-risk and"
            " --why"
        ),
        (
            "业务操作 {key}：观察期未结束或未知，据此再发送可能造成重复。请等待，或用 --accept-risk"
            " 和 --why 承担风险"
        ),
    ),
    "decide.why_needed": (
        "operation {key}: give the reason for the risk, with --why",
        "业务操作 {key}：请用 --why 写明承担风险的理由",
    ),
    # --- approvals
    "approval.none": ("Nothing waits for an approval.", "没有待审批的业务操作。"),
    "approval.role": ("role", "角色"),
    "approval.digest": ("digest", "摘要"),
    "approval.request": ("This is what would be sent:", "将要发送的内容："),
    "approval.input": ("This is the input; the request is not frozen:", "以下是输入；请求未冻结："),
    "approval.binary": (
        "[{size} bytes that are no text, SHA-256 {digest}]",
        "［{size} 字节非文本内容，SHA-256 {digest}］",
    ),
    "approval.will_approve": (
        "{by} consents, as {role}, to exactly this.",
        "{by} 以 {role} 身份同意以上内容。",
    ),
    "approval.will_reject": (
        "{by} refuses consent, as {role}: the operation is stopped, nothing is sent.",
        "{by} 以 {role} 身份拒绝：该业务操作停止，不会发送任何内容。",
    ),
    "approval.which": (
        "operation {key}: name the role that consents, with --role (asked now: {roles})",
        "业务操作 {key}：请用 --role 指定审批角色（当前待审批：{roles}）",
    ),
    # --- runs
    "run.is": ("{name}: {standing}", "{name}：{standing}"),
    "standing.done": ("done", "已完成"),
    "standing.accepted": ("accepted", "已受理"),
    "standing.waiting": ("not done yet", "待执行（确认未执行）"),
    "standing.running": ("being executed", "执行中"),
    "standing.unknown": ("outcome unknown", "结果不明"),
    "standing.not_done": ("stopped, not done", "已停止（未执行）"),
    "standing.missing": ("missing", "缺失"),
    # --- keys
    "key.rows": ("{count} rows were read.", "已读取 {count} 行。"),
    "key.good": ("{template} makes good keys.", "{template} 可以作为业务标识。"),
    "key.bad": ("{template} does not make good keys.", "{template} 不宜作为业务标识。"),
    "key.unique": (
        "unique: every operation has a key of its own.",
        "唯一：每项业务操作都有自己的业务标识。",
    ),
    "key.collides": (
        "collides: {key} is the key of the rows {rows}, which differ in {differ}.",
        "冲突：{key} 同时是第 {rows} 行的业务标识，这些行的 {differ} 不同。",
    ),
    "key.repeats": (
        "the same operation: {key} stands in the rows {rows}; it would be done once.",
        "同一业务操作：{key} 出现在第 {rows} 行，只会执行一次。",
    ),
    "key.unusable": (
        "no key: row {row} has {why} {column}",
        "无法生成业务标识：第 {row} 行{why} {column}",
    ),
    "bad.missing": ("no value named", "缺少"),
    "bad.empty": ("an empty value in", "为空值："),
    "bad.kind": ("neither text nor an integer in", "既非文本也非整数："),
    "bad.characters": (
        "control characters, blanks at the ends, or too many characters.",
        "含控制字符、首尾空白或过长。",
    ),
    "key.uses_personal": (
        "The template uses personal data ({columns}): keys outlive the input they name.",
        "模板使用了个人信息（{columns}）：业务标识的保存时间比输入更长。",
    ),
    "key.uses_unstable": (
        (
            "The template uses what changes on every retry ({columns}): nothing protects against"
            " duplicates then."
        ),
        "模板使用了每次重试都会变化的内容（{columns}）：将无法防止重复。",
    ),
    "key.personal": ("personal: {column}, e.g. {example}", "个人信息：{column}，例如 {example}"),
    "key.unstable": (
        "changes on a retry: {column} looks like {what}, e.g. {example}",
        "重试时会变化：{column} 像是{what}，例如 {example}",
    ),
    "looks.run_id": ("a run or request id", "批次或请求编号"),
    "looks.uuid": ("a random UUID", "随机 UUID"),
    "looks.clock": ("a timestamp", "时间戳"),
    "key.few": (
        "So few rows may be unique by chance: check more.",
        "行数太少，唯一可能只是巧合：请检查更多数据。",
    ),
    "key.suggests": (
        "Shortest templates that tell all operations apart: {templates}",
        "能区分所有业务操作的最短模板：{templates}",
    ),
    "key.no_suggestion": (
        "No combination of stable columns tells all operations apart: add a business number.",
        "没有稳定的列组合能区分所有业务操作：请增加一个业务编号。",
    ),
    "key.no_file": ("{file} cannot be read: {why}", "无法读取 {file}：{why}"),
    "key.not_utf8": ("{file} is not UTF-8; save it as that.", "{file} 不是 UTF-8，请另存。"),
    "key.too_big": (
        "{file} is too big; {most} rows are enough, take a sample.",
        "{file} 太大；取 {most} 行样本即可。",
    ),
    "key.no_rows": ("{file} has no rows.", "{file} 没有数据行。"),
    "key.bad_line": ("{file}, line {line}: {why}", "{file} 第 {line} 行：{why}"),
    "key.no_object": (
        "{file}, line {line}: each line must be one JSON object.",
        "{file} 第 {line} 行：每行必须是一个 JSON 对象。",
    ),
    "key.bad_head": (
        "{file}: the first line must name each column, and no two alike.",
        "{file}：首行必须给出每列的名称，且不得重复。",
    ),
    "key.bad_row": (
        "{file}, line {line}: it has {has} values, the head names {wants}.",
        "{file} 第 {line} 行：有 {has} 个值，首行有 {wants} 列。",
    ),
    # --- the store
    "store.sound": (
        "{store} is sound: schema {schema}, {durability}.",
        "{store} 完好：结构版本 {schema}，{durability}。",
    ),
    "store.wrong": (
        (
            "{store}: {count} things are wrong. Send nothing; restore a copy, then say so with"
            " `ascertain store restored`."
        ),
        "{store}：发现 {count} 处问题。请停止发送，恢复备份后运行 `ascertain store restored`。",
    ),
    "store.migrated": ("{store} now has schema {schema}.", "{store} 现为结构版本 {schema}。"),
    "store.current": (
        "{store} has schema {schema} already; nothing was changed.",
        "{store} 已是结构版本 {schema}，未作更改。",
    ),
    "store.exists": (
        "{file} exists and was not touched; name another file, or overwrite it with --force",
        "{file} 已存在，未作更改；请换一个文件名，或用 --force 覆盖",
    ),
    "store.no_file": ("{file} cannot be written: {why}", "无法写入 {file}：{why}"),
    "store.exported": ("{count} rows were written to {file}.", "已将 {count} 行写入 {file}。"),
    "store.progress": ("{count} rows", "{count} 行"),
    "store.bad_time": (
        "{time} is no time; write it like 2026-11-29T14:30:00+01:00",
        "{time} 不是时间；请写成 2026-11-29T14:30:00+08:00",
    ),
    "store.no_zone": (
        "{time} has no time zone; write it like 2026-11-29T14:30:00+01:00",
        "{time} 没有时区；请写成 2026-11-29T14:30:00+08:00",
    ),
    "store.gap_ahead": (
        "{time} lies ahead of the store's clock; name when the copy was taken.",
        "{time} 晚于账本的时钟；请写备份的时间。",
    ),
    "store.will_restore": (
        (
            "Everything written after {time} may be lost: each of the {count} open operations"
            " may have"
            " been done since, and becomes unknown until the target is asked."
        ),
        (
            "{time} 之后的记录可能已丢失：{count} 项未结束的业务操作可能已执行，将变为结果不明，"
            "直到向目标系统查询。"
        ),
    ),
    "store.no_app": (
        " Without --app nothing can be asked: all of them go to a person.",
        "未指定 --app，无法查询：将全部转人工核查。",
    ),
    "store.restored": (
        "{count} open operations were looked through; unknown are {unknown} now, {before} before.",
        "已检查 {count} 项未结束的业务操作；结果不明现有 {unknown} 项，之前 {before} 项。",
    ),
}


def say(key: str, lang: str, /, **values: object) -> str:
    """Return a text in a language, filled; raises KeyError for a key that there is not."""
    text = TEXTS[key][LANGUAGES.index(lang)]
    return text.format(**values) if values else text

"""What commands do and what options mean; see `texts`."""

from __future__ import annotations

from .config_texts import CONFIG
from .contract_test_texts import CONTRACT_TEST_HELP
from .contract_texts import CONTRACT_HELP
from .error_texts import ERROR
from .gate_texts import GATE, GATE_HELP
from .gateway_texts import GATEWAY
from .hook_texts import HOOK, HOOK_HELP
from .op_texts import OP
from .people_texts import PEOPLE, PEOPLE_HELP
from .serve_texts import SERVE_HELP
from .up_demo_texts import UP_DEMO

HELP: dict[str, tuple[str, str]] = {
    **PEOPLE_HELP,
    **PEOPLE,
    **CONFIG,
    **ERROR,
    **CONTRACT_HELP,
    **CONTRACT_TEST_HELP,
    **SERVE_HELP,
    **GATE,
    **GATE_HELP,
    **GATEWAY,
    **HOOK,
    **HOOK_HELP,
    **OP,
    **UP_DEMO,
    "help.ascertain": (
        (
            "Know what happened before you try again.\nExit codes: 0 fine, 2 wrong usage, 3"
            " something"
            " is still unresolved, 4 refused: nothing was changed."
        ),
        "先查结果，再补动作。\n退出码：0 正常，2 用法有误，3 仍有未查实，4 被拒绝（未更改）。",
    ),
    "help.demo": (
        "Real systems, lost answers, and what exists afterwards.",
        "真实系统、丢失的回执，以及最终结果。",
    ),
    "help.work": (
        (
            "Recover what is due, in a loop.\nRun it in any number of processes and machines."
            " SIGTERM"
            " or Ctrl-C lets the step under way finish; a second one does not."
        ),
        (
            "循环执行自动核查。\n可在任意多个进程和机器上运行。SIGTERM 或 Ctrl-C 会等当前步骤完成，"
            "再按一次则立即结束。"
        ),
    ),
    "help.op": ("Operations: what is known, and how.", "业务操作：已知什么，如何得知。"),
    "help.op.list": ("List operations, oldest first.", "列出业务操作，最早的在前。"),
    "help.op.show": (
        "Show one operation with its attempts and evidence.\nOPERATION is its id, or its key.",
        "显示一项业务操作及其技术尝试和证据。\nOPERATION 是其编号或业务标识。",
    ),
    "help.op.confirm": (
        (
            "Ask the target again what happened; needs --app.\nOPERATION is its id, or its"
            " key. Goes on"
            " as recovery would, within 10 seconds."
        ),
        (
            "再次向目标系统查询结果；需要 --app。\nOPERATION 是其编号或业务标识。"
            "10 秒内会像自动核查一样继续。"
        ),
    ),
    "help.review": ("Reviews: what only a person can decide.", "人工核查：只有人才能决定的事。"),
    "help.review.list": (
        "List what waits for a decision, oldest first.",
        "列出待核查的业务操作，最早的在前。",
    ),
    "help.review.decide": (
        (
            "Record a person's decision on what happened.\nOPERATION is its id, or its key. ANSWER:"
            " there (with --ref), not_there (needs --app), cannot_tell, leave, duplicate_settled."
        ),
        (
            "记录人工对结果的决定。\nOPERATION 是其编号或业务标识。ANSWER：there（存在，需"
            " --ref）、"
            "not_there（不存在，需 --app）、cannot_tell（无法判断）、leave（放弃）、"
            "duplicate_settled（重复已处理）。"
        ),
    ),
    "help.approval": ("Approvals: consent to exactly one request.", "审批：同意一个确切的请求。"),
    "help.approval.list": (
        "List what waits for consent, with what would be sent.",
        "列出待审批的业务操作及将要发送的内容。",
    ),
    "help.approval.approve": (
        "Consent to exactly what is shown.\nOPERATION is its id, or its key.",
        "同意所显示的内容。\nOPERATION 是其编号或业务标识。",
    ),
    "help.approval.reject": (
        "Refuse consent: the operation is stopped.\nOPERATION is its id, or its key.",
        "拒绝：该业务操作停止。\nOPERATION 是其编号或业务标识。",
    ),
    "help.run": ("Runs: is all of a batch done?", "批次：是否全部完成？"),
    "help.run.show": (
        (
            "Show where a run stands, key by key.\nNAME is its name or id. Exit code 3 unless"
            " all that"
            " it expects is done."
        ),
        "逐项显示批次的情况。\nNAME 是其名称或编号。未全部完成时退出码为 3。",
    ),
    "help.key": ("Keys: what tells operations apart.", "业务标识：如何区分业务操作。"),
    "help.key.check": (
        (
            "Check a key template against sample rows, or suggest one.\nFILE holds CSV with a"
            " head, or"
            " JSON lines; - is standard input. Nothing leaves this machine, nothing is recorded."
        ),
        (
            "用样本数据检查业务标识模板，或给出建议。\nFILE 是带表头的 CSV 或 JSON 行；- 为标"
            "准输入。"
            "数据不会离开本机，也不会记录。"
        ),
    ),
    "help.store": ("The store: check, migrate, export, restore.", "账本：检查、升级、导出、恢复。"),
    "help.store.check": ("Check that the store is sound.", "检查账本是否完好。"),
    "help.store.migrate": (
        "Make the store, or bring it to this version's schema.\nStop older users of it first.",
        "新建账本，或升级到本版本的结构。\n请先停止旧版本的使用者。",
    ),
    "help.store.export": (
        (
            'Write the ledger as lines {"table", "row"} of JSON.\nFILE appears when it is whole,'
            " readable by its owner; - or nothing is standard output. It holds inputs: keep"
            " it safe."
        ),
        (
            "将账本导出为 JSON 行（table、row）。\n写完后 FILE 才出现，仅所有者可读；"
            "- 或省略为标准输出。其中含有输入内容，请妥善保管。"
        ),
    ),
    "help.store.restored": (
        (
            "Say that the store was restored from a copy.\nStart no worker before. Open"
            " operations of"
            " all namespaces become unknown, since they may have been done in the lost time."
        ),
        (
            "声明账本由备份恢复。\n此前不要启动执行者。所有空间中未结束的业务操作都变为结果不明，"
            "因为丢失的时段内可能已执行。"
        ),
    ),
    # --- options
    "opt.help": ("Show this message and exit.", "显示帮助。"),
    "opt.version": ("Show the version and exit.", "显示版本。"),
    "opt.store": (
        "The store: a file, or postgresql://… (else ASCERTAIN_STORE, else ascertain.db).",
        "账本：文件或 postgresql://…（默认 ASCERTAIN_STORE，再默认 ascertain.db）。",
    ),
    "opt.namespace": ("Whose operations (else default).", "空间（默认 default）。"),
    "opt.app": (
        "The application that declares the actions (else ASCERTAIN_APP).",
        "声明动作的应用（默认 ASCERTAIN_APP）。",
    ),
    "opt.lang": ("Language (else LC_ALL, LANG).", "语言（默认 LC_ALL、LANG）。"),
    "opt.json": ("Print JSON.", "输出 JSON。"),
    "opt.once": ("End by itself.", "自行结束。"),
    "opt.keep": ("Keep what was made in this folder.", "将产生的内容保留在此文件夹。"),
    "opt.wordpress": (
        "Add WordPress; root installs its Debian packages where they are missing.",
        "加入 WordPress；缺少其 Debian 软件包时以 root 身份安装。",
    ),
    "opt.work_once": (
        "End when nothing more is due; exit code 3 if something is unresolved.",
        "没有到期的操作时结束；仍有未查实则退出码为 3。",
    ),
    "opt.work_listen": (
        "Where to tell how this worker stands: /healthz, /readyz, /metrics.",
        "提供此执行者状态的地址：/healthz、/readyz、/metrics。",
    ),
    "opt.every": (
        "Seconds between two looks when nothing is due (0.5).",
        "没有到期操作时的间隔秒数（0.5）。",
    ),
    "opt.states": ("Only these states; may be repeated.", "仅这些状态；可重复。"),
    "opt.action": ("Only this action.", "仅此动作。"),
    "opt.op_key": ("Only this key.", "仅此业务标识。"),
    "opt.given_key": (
        "What stands for {key} in the action's key template.",
        "动作的业务标识模板中 {key} 的值。",
    ),
    "opt.in_run": ("Only this run, by name or id.", "仅此批次（名称或编号）。"),
    "opt.text": ("Only with this text in key or title.", "仅业务标识或标题含此文本。"),
    "opt.unsettled": (
        "Only what somebody or something is still to act on.",
        "仅尚待处理的。",
    ),
    "opt.after": ("Go on after this operation.", "从此业务操作之后继续。"),
    "opt.limit": ("How many at most (50).", "最多几项（50）。"),
    "opt.by": ("Who decides.", "决定人。"),
    "opt.ref": ("The target's own id of what is there.", "目标系统中的结果编号。"),
    "opt.why": ("On what ground.", "理由。"),
    "opt.accept_risk": (
        "Act without proof, at your risk of a second effect; needs --why.",
        "在没有证据时行动并承担重复的风险；需要 --why。",
    ),
    "opt.seen": (
        "The stamp of what you saw; anything newer is refused.",
        "所见内容的版本戳；若已有更新则拒绝。",
    ),
    "opt.yes": ("Do not ask.", "不再询问。"),
    "opt.role": ("In which role.", "角色。"),
    "opt.digest": (
        "The digest of what you saw; anything else is refused.",
        "所见内容的摘要；若有不同则拒绝。",
    ),
    "opt.note": ("A note that is kept.", "附注。"),
    "opt.template": ("Like {order}/{purpose}.", "例如 {order}/{purpose}。"),
    "opt.with_secret": (
        "Also the secret behind the target keys.",
        "同时导出目标键的密钥。",
    ),
    "opt.all_namespaces": ("Of all namespaces.", "所有空间。"),
    "opt.force": ("Overwrite the file.", "覆盖文件。"),
    "opt.gap_from": (
        "When the copy was taken, with a time zone: 2026-11-29T14:30:00+01:00.",
        "备份的时间，含时区：2026-11-29T14:30:00+08:00。",
    ),
    "opt.restored_note": ("Why, for the record.", "说明，供记录。"),
}

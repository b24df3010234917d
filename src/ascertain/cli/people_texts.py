"""What `ascertain user`, `token` and `namespace` say, in English and Chinese. Pure data."""

from __future__ import annotations

PEOPLE_HELP: dict[str, tuple[str, str]] = {
    "help.user": ("People who sign in, and what they may do.", "登录人员及其权限。"),
    "help.user.add": (
        (
            "Add a person, and print the link by which he chooses a password.\nHe may act in the"
            " namespace of --namespace, or with --everywhere in all of them."
        ),
        (
            "添加人员，并显示供其设置密码的链接。\n权限限于 --namespace 所指的空间；"
            "用 --everywhere 则适用于所有空间。"
        ),
    ),
    "help.user.list": ("List all people and what each may do.", "列出所有人员及其权限。"),
    "help.user.passwd": (
        "Set a person's password, asked for twice; all his browsers are signed out.",
        "设置密码（输入两次）；该人员的所有浏览器均退出登录。",
    ),
    "help.user.link": (
        "Print a new one-time link by which a person chooses a password.",
        "显示新的一次性链接，供人员设置密码。",
    ),
    "help.user.grant": (
        "Give or change what a person may do in a namespace, or with --everywhere in all.",
        "授予或更改人员在某空间（或用 --everywhere 在所有空间）的权限。",
    ),
    "help.user.remove": (
        "Take a person out of a namespace; what he did stays in the audit.",
        "将人员移出空间；其操作仍保留在审计记录中。",
    ),
    "help.user.disable": (
        "Keep a person out from now on; his browsers are signed out at once.",
        "停用人员；其浏览器立即退出登录。",
    ),
    "help.user.enable": ("Let a disabled person sign in again.", "重新启用人员。"),
    "help.user.confirm": (
        (
            "Let people in again who are held since a restore.\nAfter a restore it is not known who"
            " was disabled in what was lost; you vouch for them. With --all for everybody."
        ),
        (
            "恢复备份后，确认人员可以重新登录。\n恢复之后无法得知丢失的时段里谁已被停用，由您确认；"
            "--all 表示全部。"
        ),
    ),
    "help.token": (
        "Tokens of machines: no scope approves or decides.",
        "机器令牌：均不可审批或裁定。",
    ),
    "help.token.new": (
        (
            "Make a token for the namespace, and print its secret this once.\nSCOPES: ops:read,"
            " ops:write, events:write, work, costs:write, operate, metrics:read."
        ),
        (
            "为空间新建令牌，密钥只显示一次。\n范围：ops:read、ops:write、events:write、work、"
            "costs:write、operate、metrics:read。"
        ),
    ),
    "help.token.list": ("List the tokens of the namespace.", "列出空间的令牌。"),
    "help.token.revoke": (
        "Revoke a token for good; servers know it within two seconds.",
        "永久吊销令牌；各服务器两秒内生效。",
    ),
    "help.token.confirm": (
        "Let tokens be used again that are held since a restore. With --all for all.",
        "恢复备份后，确认令牌可以重新使用；--all 表示全部。",
    ),
    "help.namespace": ("A client's or project's data.", "某个客户或项目的数据。"),
    "help.namespace.export": (
        (
            "Write all that a namespace has into a file, as lines of JSON.\nInputs, evidence,"
            " events, bodies, audit, costs, people. No passwords, and no secrets."
        ),
        (
            "将空间的全部数据写入文件（每行一条 JSON）。\n包括输入、证据、事件、正文、审计、"
            "费用和人员；不含密码和任何密钥。"
        ),
    ),
    "help.namespace.erase": (
        (
            "Erase a namespace's inputs, evidence, results, frozen requests, bodies, members and"
            " tokens.\nRefused while something is unresolved. Keys, states and references stay, so"
            " that nothing is done twice; so do the audit and the costs. Run it again if it was"
            " interrupted."
        ),
        (
            "清除空间的输入、证据、结果、冻结的请求、正文、成员和令牌。\n"
            "仍有未查实的内容时拒绝执行。业务标识、状态和结果编号保留以防重复；"
            "审计与费用也保留。中断后可再次运行。"
        ),
    ),
    "opt.user_role": ("viewer, operator or admin.", "viewer、operator 或 admin。"),
    "opt.user_name": ("What the person is called.", "姓名。"),
    "opt.everywhere": ("In every namespace.", "适用于所有空间。"),
    "opt.decides": ("May decide reviews.", "可裁定待核查项。"),
    "opt.approves": ("May approve and reject.", "可审批。"),
    "opt.overrides": (
        "May act without proof, as a recorded risk.",
        "可在无证据时行动（记录风险）。",
    ),
    "opt.stdin": ("Read the password from standard input.", "从标准输入读取密码。"),
    "opt.user_why": ("Why, for the audit.", "原因，供审计。"),
    "opt.confirm_all": ("All that are held.", "全部待确认项。"),
    "opt.scopes": ("What it may do, separated by blanks.", "可用范围，以空格分隔。"),
    "opt.days": ("After how many days it ends; else it does not.", "有效天数；默认不过期。"),
    "opt.confirm_name": (
        "The namespace's name once more, instead of being asked for it.",
        "再次写出空间名称，不再询问。",
    ),
}
PEOPLE: dict[str, tuple[str, str]] = {
    "user.none": (
        "There is nobody yet: `ascertain user add LOGIN --role admin --everywhere`.",
        "还没有人员：请用 `ascertain user add LOGIN --role admin --everywhere` 添加。",
    ),
    "user.unknown": (
        "There is nobody with the login {login}: see `ascertain user list`.",
        "没有登录名为 {login} 的人员：请看 `ascertain user list`。",
    ),
    "user.made": (
        "{login} may now choose a password, once, within three days: {link}",
        "{login} 可在三天内通过此链接设置密码（一次有效）：{link}",
    ),
    "user.set": ("{login}: {may} in {namespace}.", "{login}：在 {namespace} 为 {may}。"),
    "user.gone": (
        "{login} is no longer of namespace {namespace}.",
        "{login} 已移出空间 {namespace}。",
    ),
    "user.not_there": (
        "{login} has no membership of namespace {namespace}; nothing was changed.",
        "{login} 不属于空间 {namespace}，未做更改。",
    ),
    "user.password": (
        "The password of {login} is set; all browsers were signed out.",
        "已设置 {login} 的密码；所有浏览器已退出登录。",
    ),
    "user.disabled": ("{login} is disabled and signed out.", "{login} 已停用并退出登录。"),
    "user.enabled": ("{login} may sign in again.", "{login} 可以重新登录。"),
    "user.confirmed": ("{count} confirmed.", "已确认 {count} 项。"),
    "user.name_one": ("Name a login, or --all.", "请指定登录名，或用 --all。"),
    "user.ask": ("New password", "新密码"),
    "user.again": ("Once more", "再次输入"),
    "token.made": (
        "Token {id} for namespace {namespace}. Keep its secret, it is not shown again: {secret}",
        "空间 {namespace} 的令牌 {id}。请保存密钥，不再显示：{secret}",
    ),
    "token.unknown": (
        "There is no token {id} in namespace {namespace}: see `ascertain token list`.",
        "空间 {namespace} 中没有令牌 {id}：请看 `ascertain token list`。",
    ),
    "token.none": (
        "Namespace {namespace} has no tokens: `ascertain token new NAME --scopes …`.",
        "空间 {namespace} 没有令牌：请用 `ascertain token new NAME --scopes …` 新建。",
    ),
    "token.revoked": ("Token {id} is revoked for good.", "令牌 {id} 已永久吊销。"),
    "token.name_one": ("Name a token, or --all.", "请指定令牌，或用 --all。"),
    "namespace.open": (
        "{namespace} has what is not resolved yet, and nothing of that is ever deleted:",
        "{namespace} 仍有未查实的内容，未查实的内容永不删除：",
    ),
    "namespace.ask": (
        (
            "This erases inputs, evidence, results, bodies, memberships and tokens of {namespace}"
            " for good. Type its name"
        ),
        "将永久清除 {namespace} 的输入、证据、结果、正文、成员和令牌。请输入空间名称",
    ),
    "namespace.erased": (
        (
            "{namespace} is erased: {count} operations are tombstones now. Keys, states and"
            " references stay; so do the audit and the costs. Copies and exports are yours to"
            " delete."
        ),
        (
            "已清除 {namespace}：{count} 项业务操作仅保留业务标识、状态和结果编号；审计与费用保留。"
            "备份和导出文件请自行删除。"
        ),
    ),
    "col.login": ("login", "登录名"),
    "col.name": ("name", "名称"),
    "col.may": ("may", "权限"),
    "col.scopes": ("scopes", "范围"),
    "col.made_by": ("made by", "创建人"),
    "col.used": ("last used", "最近使用"),
    "col.ends": ("ends", "到期"),
    "standing.fine": ("fine", "正常"),
    "standing.disabled": ("disabled", "已停用"),
    "standing.held": ("held since a restore", "恢复后待确认"),
    "standing.no_password": ("no password yet", "尚未设置密码"),
    "standing.revoked": ("revoked", "已吊销"),
    "standing.over": ("over", "已过期"),
}

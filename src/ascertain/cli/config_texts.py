"""What the command line says about configurations and about doing what they describe."""

from __future__ import annotations

CONFIG: dict[str, tuple[str, str]] = {
    "help.do": (
        (
            "Do what an action is for, once, and say where it stands.\nACTION is declared in"
            " ascertain.toml or by --app. An INPUT is name=text, converted to the declared type,"
            " or name:=JSON. Running it again under the same key does nothing twice."
        ),
        (
            "执行一个动作（只一次），并说明结果。\nACTION 在 ascertain.toml 或 --app 的应用中声明。"
            "INPUT 写作 name=文本（按声明的类型转换）或 name:=JSON。"
            "同一业务标识再次运行不会重复执行。"
        ),
    ),
    "help.config": ("The configuration, ascertain.toml.", "配置文件 ascertain.toml。"),
    "help.config.check": (
        (
            "Say what was understood, or what is wrong on which line.\nFILE is else --config,"
            " ASCERTAIN_CONFIG or ascertain.toml. Nothing is opened, recorded or sent."
        ),
        (
            "显示配置的含义，或逐行指出错误。\nFILE 默认为 --config、ASCERTAIN_CONFIG 或"
            " ascertain.toml。不打开账本，不记录，也不发送。"
        ),
    ),
    "opt.config": (
        "The file that describes the actions (else ASCERTAIN_CONFIG, ascertain.toml).",
        "描述动作的配置文件（默认 ASCERTAIN_CONFIG、ascertain.toml）。",
    ),
    "opt.wait": (
        "Seconds to wait for an outcome that is not known at once (10).",
        "结果未能立即得知时最多等待的秒数（10）。",
    ),
    "app_and_config": (
        "Name --app or --config, not both: an application loads the file by itself.",
        "--app 与 --config 只能指定一个：应用会自行加载配置文件。",
    ),
    "config.fine": (
        "{file}: {count} action{plural}. The ledger: {store}, namespace {namespace}.",
        "{file}：{count} 个动作。账本：{store}，空间 {namespace}。",
    ),
    "config.wrong": ("{count} to correct; nothing of it is used.", "{count} 处需更正；均未生效。"),
    "config.ignored": (
        "{file} has {count} to correct, its actions are not loaded: `ascertain config check`",
        "{file} 有 {count} 处需更正，其中的动作未加载：`ascertain config check`",
    ),
    "config.unset": (
        "Target {target} cannot be asked now: {what}.",
        "目标系统 {target} 现在无法访问：{what}。",
    ),
    "config.hook_unset": (
        "Hook {hook} takes nothing now: {what}.",
        "发送方 {hook} 的通知现在无法接收：{what}。",
    ),
    "config.asks_nothing": ("nothing: it has no map", "无（没有 map）"),
    "col.hook": ("hook", "发送方"),
    "col.hook_kind": ("kind", "类型"),
    "col.hook_path": ("address", "地址"),
    "col.hook_space": ("namespace", "空间"),
    "col.hook_asks": ("asks for", "要求的动作"),
    "config.always_review": (
        "{action}: an unknown outcome always goes to a person; a look-up would find it out.",
        "{action}：结果不明时总是转人工核查；描述查询（lookup）即可自动查实。",
    ),
    "config.no_look_up": ("none: {owner} decides", "无：由 {owner} 决定"),
    "config.look_up": ("yes", "有"),
    "config.read_back": ("read back", "回读比较"),
    "col.target": ("target", "目标系统"),
    "col.contract": ("contract", "保护约定"),
    "col.class": ("protection class", "保护等级"),
    "col.look_up": ("look-up", "查询"),
    "col.assumes": ("assumes", "假设"),
    "do.no_action": (
        "No action {name} is declared here. There are: {names}",
        "此处没有声明动作 {name}。现有：{names}",
    ),
    "do.bad_input": (
        "{given} is no input: write name=text or name:=JSON. {action} takes {names}",
        "{given} 不是输入：请写 name=文本 或 name:=JSON。{action} 的输入有 {names}",
    ),
    "do.no_value": (
        "{name}: {given} is not {kind}. {action} takes {names}",
        "{name}：{given} 不是{kind}。{action} 的输入有 {names}",
    ),
    "do.int": ("a whole number", "整数"),
    "do.float": ("a number", "数字"),
    "do.bool": ("true or false", "true 或 false"),
    "do.json": ("JSON", "JSON"),
    "do.reused": (
        "It was there already under this key; nothing was sent again.",
        "该业务标识下已有此操作，未再次发送。",
    ),
}

"""What `ascertain hook` says, in English and Chinese, by code. Pure data."""

from __future__ import annotations

HOOK_HELP: dict[str, tuple[str, str]] = {
    "help.hook": ("Senders of events.", "事件的发送方。"),
    "help.hook.test": (
        (
            "Show what events would lead to; nothing is recorded.\nFILE holds the body of one"
            ' event, or a list of {"body", "headers", "id", "topic"}; - is standard input.'
        ),
        (
            "显示事件会产生什么；不记录任何内容。\nFILE 为一个事件的正文，或"
            ' {"body", "headers", "id", "topic"} 的列表；- 表示标准输入。'
        ),
    ),
    "opt.hook_id": (
        "The event's id, where it does not stand in the body.",
        "事件编号，若正文中没有。",
    ),
    "opt.hook_topic": ("The event's topic.", "事件的主题。"),
}
HOOK: dict[str, tuple[str, str]] = {
    "hook.new": (
        "{event}: {action} under the key {key}, which is new.",
        "{event}：{action}，业务标识 {key}（新的）。",
    ),
    "hook.exists": (
        "{event}: {action} under the key {key}: operation {operation} exists ({state}).",
        "{event}：{action}，业务标识 {key}：业务操作 {operation} 已存在（{state}）。",
    ),
    "hook.flow": (
        "{event}: the flow {action}; its code, which is not here, says under which key.",
        "{event}：流程 {action}；业务标识由其代码决定，此处没有该代码。",
    ),
    "hook.ignored": ("{event}: ignored: {why}.", "{event}：忽略：{why}。"),
    "hook.wrong": ("{event}: cannot be mapped: {why}.", "{event}：无法映射：{why}。"),
    "hook.shared": (
        "One operation of several events: {action}, key {key}: {events}.",
        "多个事件共用一项业务操作：{action}，业务标识 {key}：{events}。",
    ),
    "hook.none": (
        "No hook {name} is declared; there are {names}.",
        "没有声明发送方 {name}；现有 {names}。",
    ),
    "hook.file": (
        "The file is no event: {why}.",
        "文件不是事件：{why}。",
    ),
    "hook.config": (
        "Hooks are declared in ascertain.toml: name it with --config.",
        "发送方在 ascertain.toml 中声明：请用 --config 指定。",
    ),
}

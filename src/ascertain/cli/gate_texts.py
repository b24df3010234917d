"""What `ascertain pause` and `resume` say, in English and Chinese, by code. Pure data."""

from __future__ import annotations

GATE_HELP: dict[str, tuple[str, str]] = {
    "help.pause": (
        (
            "Let nothing new be sent to a target.\nOperations wait, nothing is lost; what has begun"
            " goes on, and look-ups are still made."
        ),
        "暂停向目标系统发送。\n操作等待，不会丢失；已开始的照常结束，仍可查询。",
    ),
    "help.resume": (
        "Let a target be acted on again; what waited for it is due at once.",
        "恢复向目标系统发送；等待中的操作立即到期。",
    ),
    "opt.pause_why": (
        "Why, for whoever meets an operation that waits.",
        "原因，供看到等待中操作的人参考。",
    ),
    "opt.pause_by": ("Who pauses or resumes it.", "由谁暂停或恢复。"),
}
GATE: dict[str, tuple[str, str]] = {
    "gate.paused": (
        "{target} is paused in namespace {namespace}: nothing new is sent to it.",
        "空间 {namespace}：目标系统 {target} 已暂停，不再发送新的内容。",
    ),
    "gate.open": (
        "{target} is open in namespace {namespace}.",
        "空间 {namespace}：目标系统 {target} 已恢复。",
    ),
    "gate.no_target": (
        "No target {target} is declared here; there are: {names}.",
        "此处没有声明目标系统 {target}；现有：{names}。",
    ),
    "gate.config": (
        "Targets are declared in ascertain.toml: name it with --config.",
        "目标系统在 ascertain.toml 中声明：请用 --config 指定。",
    ),
}

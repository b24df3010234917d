"""What the command line adds to errors: what a Chinese reader types next, since an English message
says it itself; and what is wrong with a command line. Pure data."""

from __future__ import annotations

from ascertain.core.error_words import ERRORS

NEXT: dict[str, str] = {  # by the error's code
    "unknown_action": "请用 --app 指定声明它的应用。",
    "unknown_operation": "请用 `ascertain op list` 查找。",
    "conflict": "请看 `ascertain op show`。",
    "in_review": "请看 `ascertain review list`。",
    "paused": "请看 `ascertain op show`。",
    "store_corrupt": "然后运行 `ascertain store restored`。",
    "schema_mismatch": "升级请运行 `ascertain store migrate`。",
    "config_invalid": "请运行 `ascertain config check`。",
}
ERROR: dict[str, tuple[str, str]] = {
    # Before an error's own message, for Chinese readers; in English the message says it all.
    **{
        f"error.{code}": (english, chinese + NEXT.get(code, ""))
        for code, (english, chinese) in ERRORS.items()
    },
    "error.detail": ("", "（{detail}）"),
    "no_operation": (
        "No operation {name} is in namespace {namespace}: look for it with `ascertain op list`.",
        "空间 {namespace} 中没有业务操作 {name}：请用 `ascertain op list` 查找。",
    ),
    "contract.none": (
        "No contract {name} is shipped. Like it: {names}. All of them: `ascertain contract list`.",
        "没有内置的保护约定 {name}。相近的：{names}。全部见 `ascertain contract list`。",
    ),
    "token.scopes": (
        "A token needs scopes, of {scopes}; not {given}.",
        "令牌的权限范围须取自 {scopes}；不能是 {given}。",
    ),
    "why.absent": ("there is no such file or folder", "文件或文件夹不存在"),
    "why.forbidden": ("this user may not do that", "当前用户没有权限"),
    "why.folder": ("it is a folder", "是文件夹"),
    "why.no_folder": ("a folder of its path is a file", "路径中有一部分是文件而不是文件夹"),
    "why.full": ("the disk is full", "磁盘已满"),
    "why.taken": ("the address is in use", "地址已被占用"),
    "click.no_option": ("no such option: {name}", "没有选项 {name}。"),
    "click.no_command": ("no such command: {name}", "没有命令 {name}。"),
    "click.meant": ("did you mean {names}?", "是否指 {names}？"),
    "click.missing": ("missing: {name}", "缺少 {name}。"),
    "click.choices": ("one of: {choices}.", "可选的是 {choices}。"),
    "click.bad_value": ("bad value for {name}: {why}", "{name} 的值无效：{why}。"),
    "click.choice": ("one of: {choices}", "可选的是 {choices}"),
    "click.number": ("a number", "应为数字"),
    "click.range": ("a number, {range}", "应为数字，{range}"),
    "click.other": ("usage: {why}", "用法有误：{why}"),
    "click.help": (" See `{path} --help`.", "　参见 `{path} --help`。"),
}

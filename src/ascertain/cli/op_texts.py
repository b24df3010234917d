"""What `ascertain op renew` says, in English and Chinese, by code. Pure data."""

from __future__ import annotations

OP: dict[str, tuple[str, str]] = {
    "help.op.renew": (
        (
            "Say that an authorization was renewed: what waits for it goes on; needs --app.\n"
            "OPERATION is its id, or its key. All of them are renewed, or none."
        ),
        (
            "声明目标系统的授权已更新：等待授权的业务操作随即继续；需要 --app。\n"
            "OPERATION 是其编号或业务标识。要么全部继续，要么一项也不变。"
        ),
    ),
    "opt.renew_by": ("Who renewed it.", "由谁更新。"),
    "opt.renew_action": (
        "All operations of this action that wait for it.",
        "此动作下等待授权的全部业务操作。",
    ),
    "op.renew_what": (
        "Name the operations that go on, or their --action.",
        "请指明要继续的业务操作，或用 --action 指定其动作。",
    ),
    "op.not_renewed": (
        "{action} {key}: {why} Nothing was changed.",
        "{action} {key}：{why}未做任何更改。",
    ),
}

"""What `up --demo` says, in English and Chinese, by code. Pure data."""

from __future__ import annotations

UP_DEMO: dict[str, tuple[str, str]] = {
    "opt.demo": (
        "With real systems on this machine and a day that was played on them; keeps nothing.",
        "附带本机上的真实系统，并在其上演示一天的业务；不保留任何内容。",
    ),
    "opt.demo_keep": (
        "With --demo: keep what was made in this folder.",
        "与 --demo 合用：将产生的内容保留在此文件夹。",
    ),
    "updemo.keep": ("--keep belongs to --demo.", "--keep 只与 --demo 合用。"),
    "updemo.own": (
        "The demo has a configuration of its own: leave out --config, --app and --namespace.",
        "演示使用自己的配置：请去掉 --config、--app 和 --namespace。",
    ),
    "updemo.used": (
        (
            "{store} holds something already: the demo wants a store of its own. Leave out --store,"
            " or name a file that does not exist, or an empty database."
        ),
        (
            "{store} 中已有内容，而演示需要独立的账本：请去掉 --store，或指定不存在的文件或空的"
            "数据库。"
        ),
    ),
    "updemo.starting": (
        "Starting a help desk (Roundup) and a calendar (Radicale) on this machine …",
        "正在本机启动客服系统（Roundup）和日历（Radicale）……",
    ),
    "updemo.started": (
        "They answer after {seconds} s. A day is played on them now: answers get lost on purpose.",
        "已在 {seconds} 秒后就绪。现在在其上演示一天的业务，并故意丢失回执。",
    ),
    "updemo.part": ("  {number} of {count}: {what}", "  {number}/{count}：{what}"),
    "updemo.batch": (
        "five tickets: A done, B unknown, C never asked for, D recovered by itself, E there twice",
        "五张工单：A 已完成，B 结果不明，C 未提交，D 已自动查清，E 存在两份",
    ),
    "updemo.tasks": (
        "two tasks: the answer to one was lost; it was sent again under its own name",
        "两项任务：其中一项丢失回执，已以同一编号重发",
    ),
    "updemo.answers": (
        "an answer to a customer: version 1 approved and sent, version 2 waits for you",
        "一份客户答复：第 1 版已审批并发送，第 2 版等待您审批",
    ),
    "updemo.events": (
        "events of a shop: one came three times and led to one task",
        "商店的事件：其中一个到达三次，只产生一项任务",
    ),
    "updemo.texts": (
        "a text, generated twice: the first one counts",
        "一段文本，生成了两次：以第一次为准",
    ),
    "updemo.wrong": (
        "Not everything went as it should: {why}",
        "演示未完全按预期进行：{why}",
    ),
    "updemo.played": (
        "All of it has happened, {seconds} s after the start.",
        "启动后 {seconds} 秒，以上均已发生。",
    ),
    "updemo.look": (
        (
            "The help desk itself, where you can see what is there: {desk}\nWhat is described:"
            " {file}\nCtrl-C ends all of it and throws it away."
        ),
        "客服系统本身，可查看其中有什么：{desk}\n配置文件：{file}\n按 Ctrl-C 全部结束并删除。",
    ),
    "updemo.colleague": (
        "A colleague, played by the demo",
        "演示中的同事",
    ),
    "updemo.kept": ("What was made lies in {folder}.", "产生的内容保留在 {folder}。"),
}

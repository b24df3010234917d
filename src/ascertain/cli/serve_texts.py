"""What `up`, `serve`, and the backup of a store say, in English and Chinese, by code. Pure data."""

from __future__ import annotations

SERVE_HELP: dict[str, tuple[str, str]] = {
    "help.up": (
        (
            "Start everything on this machine: server, console, worker.\nWrites a commented"
            " ascertain.toml if there is none, makes the store, and prints the address. Ctrl-C"
            " finishes what is in flight; a second one ends at once."
        ),
        (
            "在本机启动全部：服务器、控制台、执行者。\n没有 ascertain.toml 时写出带注释的一份，"
            "新建账本，并显示访问地址。Ctrl-C 会等在途操作结束，再按一次则立即结束。"
        ),
    ),
    "help.serve": (
        (
            "Start a server only; any number may share one store.\nWorkers run apart: `ascertain"
            " work`. Ctrl-C or SIGTERM finishes what is in flight; a second one ends at once."
        ),
        (
            "只启动服务器；可有任意多个共用一个账本。\n执行者另行启动：`ascertain work`。Ctrl-C 或"
            " SIGTERM 会等在途操作结束，再按一次则立即结束。"
        ),
    ),
    "opt.host": (
        "Where to listen (else [server] listen).",
        "监听地址（默认为 [server] listen）。",
    ),
    "opt.port": ("On which port; 0 chooses a free one.", "监听端口；0 表示任选空闲端口。"),
    "opt.insecure": (
        "Listen beyond this machine although nobody has an account yet.",
        "尚无任何账户也监听本机以外的地址。",
    ),
    "serve.no_extra": (
        "The server needs the extra: pip install 'ascertain[server]' ({name} is missing).",
        "服务器需要可选依赖：pip install 'ascertain[server]'（缺少 {name}）。",
    ),
    "serve.no_config": (
        (
            "There is no configuration. Name it with --config, or let `ascertain up` write an"
            " ascertain.toml to begin with."
        ),
        "没有配置文件。请用 --config 指定，或先运行 `ascertain up` 生成 ascertain.toml。",
    ),
    "serve.no_app": (
        "A server serves a configuration, not an application: leave out --app.",
        "服务器使用配置文件而不是应用：请去掉 --app。",
    ),
    "serve.bad_listen": (
        "{listen} is no address to listen on: write host:port, like 127.0.0.1:8321.",
        "{listen} 不是可监听的地址：请写成 主机:端口，例如 127.0.0.1:8321。",
    ),
    "serve.open": (
        (
            "{host} can be reached from other machines, and nobody has an account yet. Make one"
            " first (`ascertain user add`), or say --insecure if something else guards it."
        ),
        (
            "其他机器可以访问 {host}，而尚无任何账户。请先建立账户（`ascertain user add`），"
            "或在另有防护时使用 --insecure。"
        ),
    ),
    "serve.cannot_listen": (
        "{host}:{port} cannot be listened on: {why}. Choose another with --port.",
        "无法监听 {host}:{port}：{why}。请用 --port 另选端口。",
    ),
    "serve.wrote": (
        "Wrote {file}: what is acted on is described there.",
        "已写出 {file}：在其中描述要操作的系统。",
    ),
    "serve.listening": ("Ascertain answers at {url}", "Ascertain 地址：{url}"),
    "serve.first": (
        "Make the first account here, once: {link}",
        "请在此建立第一个账户（一次有效）：{link}",
    ),
    "work.listening": (
        "Answers at {address}: /healthz, /readyz and /metrics.",
        "状态地址 {address}：/healthz、/readyz、/metrics。",
    ),
    "work.listen_config": (
        "--listen needs a configuration: --config FILE, or ascertain.toml here.",
        "--listen 需要配置文件：请用 --config 指定，或在当前文件夹放置 ascertain.toml。",
    ),
    "serve.token": (
        "Programs such as n8n or curl need a token: {command}",
        "n8n、curl 等程序使用令牌，用此命令生成：{command}",
    ),
    "serve.stopped": ("Stopped; nothing was left half-way.", "已停止，没有操作中断在半途。"),
    "serve.left": (
        "Stopped; what was cut off is unknown now, and is looked into at the next start.",
        "已停止；被中断的操作现为结果不明，下次启动时自动核查。",
    ),
    # --- backup and restore
    "help.store.backup": (
        (
            "Copy the store into FILE while it is in use.\nFILE appears when it is whole and"
            " checked, readable by its owner. It holds everything, secrets too: keep it safe."
        ),
        (
            "在使用中将账本备份到 FILE。\n写完并核对后 FILE 才出现，仅所有者可读。其中包含全部内容"
            "和密钥，请妥善保管。"
        ),
    ),
    "help.store.restore": (
        (
            "Make a store from a backup, and say so to it.\nThe store named must not exist yet, or"
            " be empty. Open operations become unknown, since they may have been done after the"
            " backup was taken. Stop all servers and workers before."
        ),
        (
            "由备份生成账本，并在其中声明。\n指定的账本必须尚不存在或为空。未结束的业务操作变为结果"
            "不明，因为备份之后可能已执行。请先停止所有服务器和执行者。"
        ),
    ),
    "opt.restore_note": ("Why, for the record.", "说明，供记录。"),
    "store.backed_up": (
        "{count} rows were copied to {file} and checked; the copy is of {time}.",
        "已将 {count} 行备份到 {file} 并核对；备份时间 {time}。",
    ),
    "store.no_backup": ("{file} cannot be read: {why}", "无法读取 {file}：{why}"),
    "store.bad_backup": (
        "{file} is no whole backup of Ascertain ({why}); nothing was restored.",
        "{file} 不是完整的 Ascertain 备份（{why}），未恢复任何内容。",
    ),
    "store.other_backup": (
        (
            "{file} was taken with schema {schema}, this version has {known}: restore it with the"
            " version that took it, then run `ascertain store migrate`."
        ),
        (
            "{file} 的结构版本为 {schema}，本版本为 {known}：请用生成它的版本恢复，再运行"
            " `ascertain store migrate`。"
        ),
    ),
    "store.not_empty": (
        (
            "The store {store} is not empty, nothing was restored: name a file that does not exist,"
            " or an empty database."
        ),
        "账本 {store} 不是空的，未恢复任何内容：请指定不存在的文件或空的数据库。",
    ),
    "store.will_restore_copy": (
        "Writes into {store} the backup of {time}; {count} open operations become unknown.",
        "将 {time} 的备份写入 {store}；{count} 项未结束的业务操作将变为结果不明。",
    ),
    "store.restored_copy": (
        (
            "{count} rows of {time} were restored into {store} and checked; {unknown} operations"
            " are unknown now and are looked into. Sessions and links have ended; people and tokens"
            " are held until somebody confirms them."
        ),
        (
            "已将 {time} 的 {count} 行恢复到 {store} 并核对；{unknown} 项业务操作现为结果不明，"
            "将自动核查。所有登录和链接已失效；人员和令牌须经确认后才能使用。"
        ),
    ),
}

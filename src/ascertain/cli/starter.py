"""The `ascertain.toml` that `up` writes to begin with: nothing in it acts until it is edited.

A line that begins with `#` and a blank explains; one that begins with `#` alone is an example that
becomes valid by taking that away (a test does).
"""

from __future__ import annotations

import os
from pathlib import Path

_EN = """\
# Ascertain: what may be done, where, and under which protection. All keys: docs/config.md.
# `ascertain config check` says what this file means, and everything that is wrong with it.

[store]
# A file beside this one, or postgresql://user@host/database for several machines.
url = "ascertain.db"

[server]
# Other addresses than this machine's need an account first (`ascertain user add`).
listen = "127.0.0.1:8321"
# How people reach this server, for the links in messages.
#public_url = "https://ascertain.example.com"
# One for each client or project; people, tokens and lists never cross them.
#namespaces = ["default"]
# Seconds that what is in flight has when the server stops; then it is unknown, and looked into.
#stop_within = 20

[retention]
# How long details of what is settled are kept. Keys, states and references stay: so that the same
# key never acts twice.
#settled = "90d"
#events = "30d"

# --- A target: a system outside on which something is done. Secrets are named, never written here.
#[targets.cms]
#base = "https://cms.example.com"
#auth.bearer = { env = "CMS_TOKEN" }

# --- What the target guarantees about repetition and look-up. Shipped ones: `ascertain contract
# list`; this one says that a draft can be found by our key at once, and comes at most 60 s late.
#[[contract]]
#id = "cms.draft"
#ok = { when = "201" }
#key = { at = "body:external_id", kind = "content" }
#lookup = { call = "GET /drafts?external_id={key}", by = "key", lag = "0s" }
#late = { max = "60s" }
#refused = { invalid = "422", unauthorized = "401", throttled = "429" }

# --- An action: one kind of operation. Its key is made of business data and names the effect:
# the same key is never done twice.
#[actions."cms.create_draft"]
#target = "cms"
#contract = "cms.draft"
#key = "{article}/{language}"
#owner = "anna"
#inputs = { article = { type = "text" }, language = { type = "text" }, text = { type = "text" } }
#request.url = "/drafts"
#request.json = { external_id = "{target_key}", language = "{language}", text = "{text}" }
#lookup.url = "/drafts?external_id={target_key}"
#lookup.items = "drafts"
#lookup.ref = "id"
#lookup.by = "external_id"
#ref = "id"
#reversible = true

# --- First use: `ascertain token new first` prints a token, $TOKEN. Set CMS_TOKEN, and start
# `ascertain up` again, as after every change here. Sent twice, this makes one draft:
# curl http://127.0.0.1:8321/v1/operations -H "Authorization: Bearer $TOKEN" \\
#   -H "Content-Type: application/json" -d '{"action": "cms.create_draft",
#   "input": {"article": "a1", "language": "en", "text": "Hello"}}'
"""
_ZH = """\
# Ascertain（查实）：可以做什么、在哪里做、有何保护。所有的键见 docs/zh/config.md。
# `ascertain config check` 说明本文件的含义，并指出所有错误。

[store]
# 与本文件同目录的文件；多台机器使用 postgresql://用户@主机/数据库。
url = "ascertain.db"

[server]
# 监听本机以外的地址之前须先建立账户（`ascertain user add`）。
listen = "127.0.0.1:8321"
# 他人访问本服务器的地址，用于消息中的链接。
#public_url = "https://ascertain.example.com"
# 每个客户或项目一个空间；人员、令牌和列表互不相通。
#namespaces = ["default"]
# 停止时在途操作可用的秒数；超过则为结果不明，之后自动核查。
#stop_within = 20

[retention]
# 已结束的业务操作的细节保留多久。业务标识、状态和结果编号一直保留：同一标识不会执行两次。
#settled = "90d"
#events = "30d"

# --- 目标系统：要在其上操作的外部系统。密钥只写名称，不写在这里。
#[targets.cms]
#base = "https://cms.example.com"
#auth.bearer = { env = "CMS_TOKEN" }

# --- 目标系统对重复与查询的保证。内置的见 `ascertain contract list`；下面这份说明：
# 草稿可立即按我们的标识查到，最迟 60 秒后出现。
#[[contract]]
#id = "cms.draft"
#ok = { when = "201" }
#key = { at = "body:external_id", kind = "content" }
#lookup = { call = "GET /drafts?external_id={key}", by = "key", lag = "0s" }
#late = { max = "60s" }
#refused = { invalid = "422", unauthorized = "401", throttled = "429" }

# --- 动作：一种业务操作。业务标识由业务数据构成，指明要达到的结果：同一标识不会执行两次。
#[actions."cms.create_draft"]
#target = "cms"
#contract = "cms.draft"
#key = "{article}/{language}"
#owner = "anna"
#inputs = { article = { type = "text" }, language = { type = "text" }, text = { type = "text" } }
#request.url = "/drafts"
#request.json = { external_id = "{target_key}", language = "{language}", text = "{text}" }
#lookup.url = "/drafts?external_id={target_key}"
#lookup.items = "drafts"
#lookup.ref = "id"
#lookup.by = "external_id"
#ref = "id"
#reversible = true

# --- 首次使用：`ascertain token new first` 会给出令牌（即 $TOKEN）；修改本文件后须设置 CMS_TOKEN，
# 并重新启动 `ascertain up`。同样的请求发两次，也只建一份草稿：
# curl http://127.0.0.1:8321/v1/operations -H "Authorization: Bearer $TOKEN" \\
#   -H "Content-Type: application/json" -d '{"action": "cms.create_draft",
#   "input": {"article": "a1", "language": "en", "text": "Hello"}}'
"""
TEXT = {"en": _EN, "zh": _ZH}


def write(file: Path, lang: str) -> bool:
    """Write it, unless there is one; tell whether it was written. Raises OSError."""
    try:
        descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
    except FileExistsError:
        return False
    with os.fdopen(descriptor, "w", encoding="utf-8") as out:
        out.write(TEXT[lang])
    return True

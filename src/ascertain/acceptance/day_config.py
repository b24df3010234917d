"""The `ascertain.toml` of `up --demo`: what is acted on, to be read beside the pages."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from .systems import Radicale, Roundup

NAME = "ascertain.toml"
SECRET = "a secret of this demo alone"  # noqa: S105 - it signs made-up events on loopback
_SECRETS = ("desk.password", "crm.password", "shop.secret")
# What differs between the languages of the file: its comments, and the titles of operations.
_WORDS: Mapping[str, Mapping[str, str]] = {
    "en": {
        "head": "What `ascertain up --demo` acts on: two real systems, made on this machine and\n"
        "# thrown away at the end. Between them and Ascertain stand proxies that lose answers.",
        "desk": "A help desk (Roundup). Nothing protects a repeat there; our key can be looked up.",
        "ticket": "How late a ticket may still appear is not stated (`late`), so that an absence\n"
        "# proves nothing here: what is not found goes to a person.",
        "reply": "An answer to a customer cannot be looked up, and must be approved before it is\n"
        "# sent.",
        "crm": "Follow-up tasks in a calendar (Radicale). We choose the name, so a repeat is safe.",
        "shop": "A shop tells of its orders, each several times, as shops do.",
        "ticket_title": "Ticket for {item}: {title}",
        "reply_title": "Answer about {topic}, version {version}",
        "task_title": "Call about order {order}",
        "summary": "Call about order",
    },
    "zh": {
        "head": "`ascertain up --demo` 所操作的系统：两个真实系统，在本机新建，结束时删除。\n"
        "# 它们与 Ascertain 之间有代理，会故意丢失回执。",
        "desk": "客服系统（Roundup）：重复提交没有防护，但可按我们的标识查询。",
        "ticket": "工单最迟多久出现没有约定（`late`），因此查不到不能证明未执行：由人判断。",
        "reply": "给客户的答复无法查询，发送前须经审批。",
        "crm": "日历中的跟进任务（Radicale）：编号由我们选定，因此重发是安全的。",
        "shop": "商店通知订单，每个订单会通知多次，商店通常如此。",
        "ticket_title": "{item} 的工单：{title}",
        "reply_title": "关于{topic}的答复，第 {version} 版",
        "task_title": "电话跟进订单 {order}",
        "summary": "电话跟进订单",
    },
}
_TEXT = """\
# @head@

[store]
url = "@store@"

[prices."desk.ticket"]
amount = "0.02"
currency = "EUR"

[costs]
rate = "40"
currency = "EUR"

# --- @desk@
[targets.desk]
base = "http://127.0.0.1:@desk_proxy@"
headers = { X-Requested-With = "rest", Origin = "@desk_url@", Referer = "@desk_url@/helpdesk/" }
auth.basic = { user = "admin", password = { file = "desk.password" } }
open = "@desk_url@/helpdesk/issue{ref}"

[[contract]]
id = "desk.ticket.create"
ok = { when = "201" }
refused = { unauthorized = "401|403" }
lookup = { by = "opkey", lag = "0s" }
undo = "DELETE /helpdesk/rest/data/issue/{id}"

# @ticket@
[actions."desk.ticket"]
target = "desk"
contract = "desk.ticket.create"
key = "{campaign}/{item}"
owner = "anna"
title = "@ticket_title@"
timeout = "2s"
first_delay = "1500ms"
lookups = 2
ref = "data.id"
[actions."desk.ticket".inputs]
campaign = { type = "text" }
item = { type = "text" }
title = { type = "text" }
[actions."desk.ticket".request]
url = "/helpdesk/rest/data/issue"
json = { title = "{title}", opkey = "{target_key}" }
[actions."desk.ticket".lookup]
url = "/helpdesk/rest/data/issue?opkey:={target_key}&@fields=opkey,title&@verbose=0&@pretty=false"
items = "data.collection"
by = "opkey"
ref = "id"

# @reply@
[[contract]]
id = "desk.reply.create"
ok = { when = "201" }
refused = { unauthorized = "401|403" }

[actions."desk.reply"]
target = "desk"
contract = "desk.reply.create"
key = "{topic}/v{version}"
owner = "anna"
approval = "editor"
title = "@reply_title@"
content = ["text"]
timeout = "2s"
ref = "data.id"
[actions."desk.reply".inputs]
topic = { type = "text" }
version = { type = "integer" }
text = { type = "text" }
[actions."desk.reply".request]
url = "/helpdesk/rest/data/msg"
json = { content = "{text}" }

# --- @crm@
[targets.crm]
base = "http://127.0.0.1:@crm_proxy@"
auth.basic = { user = "crm", password = { file = "crm.password" } }

[actions."crm.task"]
target = "crm"
contract = "caldav.task.create"
key = "{order}"
owner = "anna"
title = "@task_title@"
inputs = { order = { type = "text" }, due = { type = "text", required = false, default = "" } }
ref = "{target_key}"
late = "1s"
timeout = "2s"
first_delay = "500ms"
[actions."crm.task".request]
method = "PUT"
url = "/crm/tasks/{target_key}.ics"
headers = { If-None-Match = "*", Content-Type = "text/calendar; charset=utf-8" }
escape = "ical"
text = \"\"\"
BEGIN:VCALENDAR
VERSION:2.0
PRODID:-//Ascertain//demo//EN
BEGIN:VTODO
UID:{target_key}
DTSTAMP:20260101T000000Z
SUMMARY:@summary@ {order}
END:VTODO
END:VCALENDAR
\"\"\"
[actions."crm.task".lookup]
url = "/crm/tasks/{target_key}.ics"
absent = "404"
line = "UID:{target_key}"
ref = "{target_key}"

# --- @shop@
[hooks.shop]
kind = "hmac"
secrets = [{ file = "shop.secret" }]
signature = { header = "X-Shop-Signature", algorithm = "sha256", encoding = "hex" }
event_id = "header:X-Shop-Event"
delivery_id = "header:X-Shop-Delivery"
topic = "header:X-Shop-Topic"
test = true

[[hooks.shop.map]]
when = "topic == 'order.paid'"
action = "crm.task"
input = { order = "body.order" }
"""


def write(
    folder: Path, lang: str, *, store: str, desk: Roundup, crm: Radicale, ports: Mapping[str, int]
) -> Path:
    """Write it, and the secrets that it names, into a folder; returns the file."""
    values = {
        **_WORDS[lang], "store": store.replace("\\", "\\\\").replace('"', '\\"'),
        "desk_url": desk.url, "desk_proxy": str(ports["desk"]), "crm_proxy": str(ports["crm"]),
    }  # fmt: skip
    text = _TEXT
    for name, value in values.items():
        text = text.replace(f"@{name}@", value)
    for name, secret in zip(_SECRETS, (desk.password, crm.password, SECRET), strict=True):
        file = folder / name
        file.touch(0o600)
        file.write_text(secret, "utf-8")
    made = folder / NAME
    made.touch(0o600)  # the store's address may hold a password
    made.write_text(text, "utf-8")
    return made

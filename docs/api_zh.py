"""What each route of the API does, in Chinese: one or two sentences. Pure data."""

from __future__ import annotations

TAGS = {
    "operations": "业务操作",
    "runs": "批次",
    "pins": "固定值",
    "contracts": "动作与保护约定",
    "health": "健康检查",
    "gateway": "网关",
    "hooks": "通知入口",
    "events": "事件",
    "people": "人员与会话",
    "tokens": "令牌",
    "approvals": "审批",
    "audit": "审计",
    "own code": "自有代码",
    "targets": "目标系统",
    "reviews": "人工核查",
    "bulk": "批量处理",
    "stream": "变更流",
    "costs": "费用与资产",
    "figures": "统计与告警",
    "metrics": "监控指标",
}
GATEWAY = (
    "以同一个 `Ascertain-Key` 把请求转给已声明的目标系统，只执行一次；返回目标系统自己的答复。"
)
ROUTES = {
    "POST /v1/operations": (
        "执行一次，并答复现状。200：已完成，或按其保护约定已受理；此前已提交过时 `reused` 为 true。"
        "202：尚未查实，且 `on_unresolved` 为 `accept`。400：动作要求业务标识而未给出。"
        "409：尚未查实：仍在执行、结果不明或在等人处理，problem 中说明由谁接手。"
        "422：同一业务标识已有不同的输入，或输入被拒绝。424：未执行。"
        "在 `wait` 之内答复；客户端断开不影响业务操作继续。"
    ),
    "GET /v1/operations": (
        "查找业务操作，默认从新到旧，`oldest_first` 则从旧到新。`q` 先在全部记录中精确查找编号、"
        "业务标识、结果编号、事件或批次，再查找业务标识和标题中的文字：先查未查实的全部，再查历史，"
        "查到何时见 `searched_to`，用 `next` 继续。`person`：轮到谁处理，或与其核查、审批有关。"
        "未给 `since`、也没有可直接定位的条件时，只列出最近 90 天。`total=true` 给出条数，最多数到 10,000。"
    ),
    "POST /v1/operations/batch": (
        "一次提交最多 1,000 项，按顺序逐项答复；某一项有误不影响其他项。"
        "正文可读时一律返回 200：请看每一项的 `status`，即单独提交时会得到的状态码。"
    ),
    "GET /v1/operations.csv": (
        "把查找结果导出为 CSV：带 BOM 的 UTF-8，单元格不会被当作公式，不含输入和结果；"
        "边读边发，最多 1,000,000 行。"
    ),
    "GET /v1/operations/{operation}": "返回一项业务操作的现状。",
    "GET /v1/operations/{operation}/history": "返回一项业务操作的全部证据，从旧到新。",
    "GET /v1/operations/{operation}/references": (
        "返回一项业务操作的全部结果编号，即目标系统自己给所生成对象的编号。"
    ),
    "POST /v1/runs": (
        "按名称打开批次（已有则重新打开），并加入预期的业务标识；已持久保存。"
        "提交时以 `run` 指明批次的业务操作属于该批次。"
    ),
    "GET /v1/runs": "列出批次，从新到旧；给出 `name` 时只列该名称的批次。",
    "GET /v1/runs/{run}": (
        "按编号或名称返回批次的现状：所有预期的业务标识和其中的全部业务操作，缺失的也列出。"
    ),
    "POST /v1/pins": (
        "固定一个值并返回已固定的值：同一业务标识下第一个值生效并持久保存，之后无论带来什么值，"
        "得到的都是它。最大 256 KiB。"
    ),
    "GET /v1/pins/{key}": "返回某业务标识下固定的值。",
    "GET /v1/actions": "返回此处声明的动作：输入、业务标识、保护等级和负责人。",
    "GET /v1/contracts": "返回内置的和此处声明的保护约定。",
    "GET /v1/contracts/{contract}": "返回保护约定允许做什么、依据是什么、每一条的可信程度。",
    "GET /healthz": "表明进程有响应。",
    "GET /readyz": "表明账本可用，且此服务器没有正在停止。",
    **{
        f"{method} /gateway/{{target}}/{{path}}": GATEWAY
        for method in ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")
    },
    "POST /hooks/{name}": "接收已声明的发送方 `name` 按其厂商方式签名的事件。",
    "POST /hooks/{name}/test": "在 `name` 的测试入口接收事件：只记录和展示，从不执行。",
    "POST /hooks/{name}/flow-action": (
        "执行 Shopify Flow 动作；正文中的 `action_run_id` 即事件编号。"
    ),
    "GET /v1/events": "列出事件，从新到旧；`after` 为上一页的 `next`。",
    "POST /v1/events": "以令牌代替签名递交事件；答复时已持久保存。",
    "POST /v1/events/{source}/{ident}/evaluate": (
        "展示映射现在会把事件变成什么、其中哪些已经存在；从不执行。"
    ),
    "POST /v1/events/{source}/{ident}/process": "重新处理未能处理的事件，例如映射已更正之后。",
    "GET /v1/events/{source}/{ident}": "返回一个事件：如何到达、产生了什么，或为何没有产生。",
    "GET /v1/hooks": "列出已声明的发送方及其计数：签名错误的通知只留下计数。",
    "POST /v1/hooks/{name}/test-mapping": (
        "对粘贴的事件展示会产生哪些业务标识、哪些事件共用同一个。"
    ),
    "POST /v1/session": "登录：答复设置 cookie，并给出不安全请求所需的令牌。",
    "DELETE /v1/session": "退出当前浏览器；会话在各处立即失效。",
    "GET /v1/me": "说明调用者是谁、在哪个空间、可以做什么。",
    "GET /v1/sessions": "列出本人已登录的浏览器；带 `person` 时列出所管理人员的。",
    "DELETE /v1/sessions": "退出本人其他所有浏览器；带 `person` 时退出所管理人员的全部浏览器。",
    "DELETE /v1/sessions/{session}": "退出某个浏览器。",
    "GET /v1/links/{secret}": "说明链接的用途；链接仍然有效。",
    "POST /v1/links/{secret}": "使用链接：第一个用户设定登录名和密码，其他人设定新密码。",
    "GET /v1/people": "列出在此空间有权限的人；带 `everywhere` 时列出所有人。",
    "POST /v1/people": "添加人员，返回供其设定密码的一次性链接。",
    "PATCH /v1/people/{person}": "更改某人的权限、停用，或给出设定密码的新链接。",
    "DELETE /v1/people/{person}": "把某人移出此空间；其所做的事仍留在审计记录中。",
    "POST /v1/me/password": "更改本人密码；其他浏览器全部退出。",
    "GET /v1/tokens": "列出此空间的令牌，包括已失效的。",
    "POST /v1/tokens": "为程序生成令牌；只在此空间有效。",
    "DELETE /v1/tokens/{token}": "永久吊销令牌：此处立即生效，其他服务器两秒之内生效。",
    "POST /v1/tokens/{token}/confirm": "让恢复之后被搁置的令牌重新可用。",
    "POST /v1/operations/{operation}/guest-link": (
        "给没有账号的人一个链接，用于审批恰好这一个请求。"
    ),
    "GET /v1/operations/{operation}/guest-links": "列出为某业务操作发出的链接。",
    "DELETE /v1/operations/{operation}/guest-links/{link}": "收回尚未使用的链接。",
    "GET /v1/guest": "向来宾展示需要其审批的确切内容。",
    "POST /v1/guest/approve": "同意恰好所展示的请求；链接随即用完。",
    "POST /v1/guest/reject": "拒绝所展示的请求：不发送任何内容，链接随即用完。",
    "GET /v1/audit": "列出此空间中做过的事，从新到旧；带 `everywhere` 时列出所有空间的。",
    "GET /v1/audit.csv": "把同样的内容导出为文件，最多一百万行；单元格不会被当作公式。",
    "POST /v1/work/claim": (
        "记录意图（若尚无），并领取现在可以做的事。没收到回答时，以同一 `claim` 再次领取会得到同一个许可。"
    ),
    "POST /v1/work/due": "领取到期的工作：执行、同键重发和查询的许可，只领取马上能开始的。",
    "POST /v1/work/{attempt}/extend": (
        "延长租约：生效前已持久保存。409 `lease_lost`：不要再发送任何内容，把已知情况报告上来。"
    ),
    "POST /v1/work/{attempt}/finding": "报告某次尝试的判定，租约是否还在都可以：迟到的事实不会丢。",
    "POST /v1/work/{attempt}/release": "交还尚未开始执行的领取：确认未发送。",
    "GET /v1/targets": "返回此空间的所有目标系统及其开关状态。",
    "POST /v1/targets/{name}/pause": "暂停向目标系统发送新内容，直到恢复；业务操作等待，不会丢失。",
    "POST /v1/targets/{name}/resume": "恢复对目标系统的执行；等待的业务操作立即到期。",
    "GET /v1/approvals": "列出审批：默认为当前等待中的，最早的业务操作在前。",
    "GET /v1/approvals/{approval}": "返回审批及其冻结的确切内容，以及与上一版本的差异。",
    "POST /v1/approvals/{approval}/approve": (
        "同意恰好所展示的内容。409 `approval_stale`：内容已经变了。"
    ),
    "POST /v1/approvals/{approval}/reject": "最终拒绝：业务操作停止，未发送任何内容。",
    "POST /v1/approvals/{approval}/respond": "附意见退回给提交者：未发送任何内容，等待新版本。",
    "POST /v1/approvals/{approval}/edit": "以另一输入生成新版本，需要另行审批。",
    "GET /v1/approvals/{approval}/inbox": "以 Agent Inbox 的格式返回审批。",
    "POST /v1/approvals/{approval}/inbox": "以 Agent Inbox 的格式答复审批。",
    "GET /v1/desk": "返回标题中显示的计数。",
    "GET /v1/reviews": "列出人工核查，每项附证据、候选对象，以及每种决定的后果。",
    "GET /v1/reviews/{review}": "返回一项人工核查，无论是否已关闭。",
    "POST /v1/reviews/{review}/take": "接手核查；已有他人接手时返回 409。",
    "POST /v1/reviews/{review}/hand-over": "把核查转给他人，或交还负责人。",
    "POST /v1/reviews/{review}/snooze": "推迟核查；业务操作自己的时限照常。",
    "POST /v1/reviews/{review}/note": "在证据旁留下备注；备注不证明任何事。",
    "POST /v1/reviews/{review}/decide": (
        "决定发生了什么。409 `conflict`：已有更新的情况，见 `newer`。"
    ),
    "POST /v1/reviews/{review}/confirm": "再次向目标系统核实；不会再次发送。",
    "POST /v1/bulk": "制定批量处理计划：多少项会做什么，哪些被拒绝及原因；尚不执行。",
    "GET /v1/bulk": "列出批量处理，从新到旧。",
    "GET /v1/bulk/{bulk}": "返回批量处理的进度，以及 `after` 之后各项的结果。",
    "POST /v1/bulk/{bulk}/run": "在后台执行计划；只限制定者本人，须在 15 分钟内。",
    "POST /v1/bulk/{bulk}/cancel": "在下一项之前停止批量处理；已做的保持不变。",
    "GET /v1/stream": "实时告知此空间的变化（约两秒之内）。",
    "POST /v1/costs": "登记费用，已持久保存；键已存在的费用按原样返回。",
    "GET /v1/costs": "列出某段时间的费用，或某业务操作的全部费用。",
    "GET /v1/costs.csv": "把某段时间的费用导出为文件，最多一百万行；单元格不会被当作公式。",
    "GET /v1/costs/report": "返回每个验收通过的资产的成本：公式、各部分，以及未计入的内容。",
    "GET /v1/assets": "列出某段时间内验收通过或未通过的资产。",
    "POST /v1/assets/{key}/accept": "验收通过；重复无影响，会记入审计。",
    "POST /v1/assets/{key}/reject": "验收不通过；重复无影响，会记入审计。",
    "GET /v1/assets/{key}": "返回资产是否验收通过。",
    "GET /v1/figures": "返回某段时间提交和收到的数量，以及至今的结果。",
    "GET /v1/alarms": "列出缺失的、超时的、重复发生的，以及哪些保护约定自检未通过。",
    "GET /metrics": "返回本进程和账本的监控指标，涵盖所服务的每个空间。",
}

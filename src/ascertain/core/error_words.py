"""One short sentence for each error's code, in English and Chinese. Pure data.

An error's own message is in English and names the operation and the next step; this is what a
Chinese reader is told before it, and the title of an HTTP problem: so it names no command and no
option, which who reads a page has not. What to type next is in `cli.error_texts`.
"""

from __future__ import annotations

ERRORS: dict[str, tuple[str, str]] = {
    "error": ("Something went wrong.", "出现错误。"),
    "usage": ("The call is wrong; nothing was recorded.", "用法有误，未记录也未发送。"),
    "key_refused": ("The key cannot be used.", "业务标识不可用，请用稳定的业务数据。"),
    "key_missing": ("No key was given.", "没有给出业务标识，未记录任何内容。"),
    "key_mismatch": ("The key is not the one of this input.", "业务标识与此输入不符。"),
    "input_refused": ("The input cannot be stored.", "输入不可用，未记录任何内容。"),
    "input_mismatch": (
        "The key exists with another input.",
        "同一业务标识已有不同的输入；如确需更改，请提交取代它的新版本。",
    ),
    "unknown_action": (
        "No action of this name is registered here.",
        "这里没有登记此动作。",
    ),
    "unknown_operation": (
        "No such operation in this namespace.",
        "此空间中没有这项业务操作。",
    ),
    "not_allowed": ("Who asks may not do this.", "您无权这样做，未做任何更改。"),
    "unknown_namespace": ("This namespace is not served here.", "这里不提供此空间。"),
    "action_invalid": ("The action's declaration is wrong.", "动作的声明有误。"),
    "contract_invalid": ("The contract is impossible.", "保护约定有误。"),
    "approval_missing": ("It waits for an approval.", "等待审批，尚未发送任何内容。"),
    "approval_stale": (
        "What was approved is not what would be sent.",
        "所审批的内容与将要发送的不一致：请重新查看后再审批。",
    ),
    "refused": ("Its state does not allow this.", "当前状态不允许这样做，未更改。"),
    "conflict": (
        "Something newer happened.",
        "已有更新的情况：请重新查看后再决定。",
    ),
    "send_refused": ("The request was not sent.", "请求没有发送：会违反规则。"),
    "not_done": ("Proven: it did not happen.", "确认未执行。"),
    "input_rejected": (
        "The target refused the input.",
        "目标系统拒绝了内容，确认未执行：请提交更正后的版本。",
    ),
    "access_rejected": (
        "No valid authorization for the target.",
        "没有有效的目标系统授权，确认未执行：请更新授权。",
    ),
    "temporarily_refused": ("Not done so far.", "暂未执行，将自动再试。"),
    "gave_up": ("Not done, not tried again.", "确认未执行，不再自动再试。"),
    "outcome_unknown": (
        "It is not known whether it happened.",
        "结果不明：请勿重复提交，正在核对。",
    ),
    "in_progress": ("Another attempt works on it.", "另一次尝试正在进行：请稍后再看。"),
    "in_review": ("A person has to decide.", "待人工核查，请勿重复提交。"),
    "lease_lost": ("This attempt lost its lease.", "此次尝试已失去执行权，请勿再发送。"),
    "still_open": (
        "The version before is not settled.",
        "上一版本尚未查实，此版本等待中。",
    ),
    "paused": (
        "The target is paused or does not answer.",
        "目标系统已暂停或没有响应，操作等待中，不会丢失。",
    ),
    "store": ("The store cannot be used.", "账本无法使用。"),
    "store_busy": (
        "The store is locked; nothing was written.",
        "账本被其他进程锁定，未写入任何内容：请稍后再试。",
    ),
    "store_unavailable": (
        "The store cannot be reached or written.",
        "账本无法读写，在此之前不会发送任何内容。",
    ),
    "store_corrupt": (
        "The store is damaged; nothing is sent.",
        "账本已损坏，不会发送任何内容：请恢复备份。",
    ),
    "schema_mismatch": (
        "The store was written by another version.",
        "账本由其他版本写入：请升级账本或换用相应版本。",
    ),
    "config_invalid": (
        "The configuration is wrong.",
        "配置有误，未记录也未发送。",
    ),
}
# What a key looks as if it held, by the codes of `keys.check_key`: it would change on every retry.
KEY_WARNINGS: dict[str, tuple[str, str]] = {
    "run_id": (
        (
            "The key looks like the id of a run or a request, which changes on every retry, and"
            " then protects nothing: use the order, the product, the period."
        ),
        (
            "业务标识看起来是一次执行或请求的编号，每次重试都会变化，起不到防重作用："
            "请改用订单、产品、周期等业务数据。"
        ),
    ),
    "uuid": (
        (
            "The key looks like a random UUID; made anew on every retry it protects nothing: use"
            " the order, the product, the period."
        ),
        (
            "业务标识看起来是随机 UUID，若每次重试都重新生成，就起不到防重作用："
            "请改用订单、产品、周期等业务数据。"
        ),
    ),
    "clock": (
        (
            "The key looks as if it held the time now, which changes on every retry, and then"
            " protects nothing: use the order, the product, the period."
        ),
        (
            "业务标识看起来含有当前时间，每次重试都会变化，起不到防重作用："
            "请改用订单、产品、周期等业务数据。"
        ),
    ),
}
# Of HTTP requests, before the ledger is asked.
REQUESTS: dict[str, tuple[str, str]] = {
    "body_malformed": ("The body cannot be read.", "请求正文无法读取。"),
    "body_invalid": ("The request is not as described.", "请求与接口说明不符。"),
    "unauthenticated": ("It is not known who calls.", "无法确认调用者身份。"),
    "forbidden": ("The caller may not do this.", "调用者无权这样做。"),
    "read_only": ("The server only reads now.", "服务器当前为只读。"),
    "unknown": ("There is nothing here.", "这里没有内容。"),
    "method_not_allowed": ("This cannot be done here.", "此处不支持该方法。"),
    "too_large": ("The request is too large.", "请求过大。"),
    "unsupported_media": ("This kind of body is not read.", "不支持这种正文格式。"),
    "too_many": ("Too many requests at once.", "请求过于频繁，请稍后再试。"),
    "not_begun": (
        "The time was over before this one was begun; nothing was recorded.",
        "时间已到，此项尚未开始，未记录任何内容：请再次提交。",
    ),
    "stopping": ("This server is being stopped.", "此服务器正在停止。"),
    "overloaded": (
        "The server has as much to do as it can; nothing was recorded.",
        "服务器已达处理上限，未记录任何内容：请稍后再试。",
    ),
    "signature_wrong": ("The signature does not verify.", "签名验证未通过，未记录任何内容。"),
    "signature_old": (
        "It was signed too long ago, or the clocks differ.",
        "签名时间超出允许范围，未记录任何内容：请检查双方时钟。",
    ),
    "secret_missing": (
        "Signatures cannot be verified here now.",
        "目前无法验证签名，未记录任何内容：请提供密钥。",
    ),
    "path_refused": (
        "The address could lead elsewhere.",
        "地址可能指向其他位置，未发送任何内容。",
    ),
    "target_unreachable": ("The target could not be asked.", "无法询问目标系统。"),
    "target_slow": ("The target did not answer in time.", "目标系统未能及时答复。"),
    "no_credentials": (
        "The target's credentials are not there; nothing was sent.",
        "缺少目标系统的凭据，未发送任何内容。",
    ),
    "too_slow": ("The request did not arrive in time.", "请求未能及时到达。"),
    "broken": (
        "Something is wrong in the server; whether anything was recorded shows by asking for it.",
        "服务器内部出错；是否已有记录，请查询确认。",
    ),
}

"""Tasks on a CalDAV server: we choose the name, and a create is made on a condition."""

from __future__ import annotations

import base64
from typing import Any

from ascertain import InputMismatch, State
from ascertain.acceptance.actions import stored_task
from ascertain.acceptance.auditor import Checks

from .base import TEXT, WITHIN, Ending, Scenario, Stage, recover, says, settled, the


def task_then_mail(stage: Stage) -> Ending:
    """The task is saved and its receipt lost; the mail that follows it has not been sent."""
    stage.set("task", "mail", timeout=2.0, late=1.0)
    task, mail = stage.mark("task"), stage.mark("mail")
    blind = stage.aside(_blind_task_then_mail, stage)
    caller = stage.worker("task", {"case": task, "text": TEXT})
    rule = stage.proxies["task"].hold(WITHIN, "PUT")
    caller.ready()
    caller.go()
    checks = Checks()
    checks.that(rule.landed.wait(WITHIN), "the task never reached the target")
    caller.kill()
    rule.release()
    ledger, actions = stage.open()
    first = the(ledger, task)
    checks.that(not ledger.find(key=mail), "the mail was begun too early")
    saved = actions["task"](case=task, text=TEXT, wait=WITHIN)
    checks.that(saved.id == first.id and saved.reused, "the task became another operation")
    sent = actions["mail"](case=mail, text="Your offer")
    checks.that(saved.state is State.DONE, "the task is not done")
    checks.that(sent.state is State.ACCEPTED, "the mail is not accepted")
    words = {
        "en": "The task exists under its own name and was not made again; the mail was taken over"
        " by the mail server, its delivery is not confirmed.",
        "zh": "任务按其唯一编号已存在，未重复创建；邮件已被邮件服务器受理，尚未确认送达。",
    }
    return Ending([saved, sent], blind.result(), checks, evidence=words)


def _blind_task_then_mail(stage: Stage) -> int:
    """Run both steps again from the start after the task's answer was lost."""
    task, mail = stage.proxy("task"), stage.place("mail", stage.proxy("mail"))
    place, mark = stage.place("task", task), stage.mark("blind")
    task.drop_response("PUT")
    if not stage.blind("task", place, mark):
        stage.blind("task", place, mark)
        stage.blind("mail", mail, mark)
    return stage.systems.radicale.creations(mark) + stage.systems.smtp.creations(mark)


def frozen_before_write(stage: Stage) -> Ending:
    """The caller freezes between its look at the deadline and the write, and is thawed after
    recovery: the target itself refuses the second create."""
    stage.set("task", timeout=1.5, late=0.8)
    blind = stage.aside(stage.blind_process("task", "stop_before"))
    caller = stage.worker("task", {"case": stage.mark(), "text": TEXT}, moment="stop_before")
    caller.ready()
    caller.go()
    caller.until_stopped()
    ledger, _ = stage.open()
    operation = the(ledger, stage.mark())
    recover(ledger, operation, lambda r: r.done)
    caller.thaw()
    [got] = caller.answer()
    receipt = recover(ledger, operation, settled)
    checks = Checks()
    checks.that(receipt.confirmed_by == "replay", "recovery did not send it under its own name")
    checks.that(got["ref"] == receipt.ref, "the thawed caller got another reference")
    late = [e for e in stage.proxies["task"].log if e.method == "PUT"]
    checks.that([e.status for e in late] == [201, 412], "the late write was not refused")
    return Ending([receipt], blind.result(), checks)


def replay_unauthorized(stage: Stage) -> Ending:
    """The effect landed, its answer was lost, and the replay is answered 401: that speaks for
    the replay alone, so the operation stays unknown until it is found."""
    stage.set("task", timeout=2.0, late=1.0, first_delay=1.0)
    blind = stage.aside(stage.blind_twice("task", "drop_response", "PUT"))
    proxy = stage.proxies["task"]
    proxy.drop_response("PUT")
    proxy.answer(401, b"token expired", method="PUT")
    ledger, actions = stage.open()
    first = actions["task"].submit(case=stage.mark(), text=TEXT, wait=0.0)
    refused = recover(ledger, first, lambda _: says(ledger, first, ["not_done"]), "a 401")
    checks = Checks()
    checks.that(refused.state is State.UNKNOWN, f"after the 401 it was {refused.state}")
    receipt = recover(ledger, first, settled)
    checks.that(receipt.attempts >= 2, "there was no replay")
    return Ending([receipt], blind.result(), checks)


def approval_then_crash(stage: Stage) -> Ending:
    """Approved, then the caller dies before it sends; what is sent later is what was approved."""
    stage.set("task", timeout=1.5, late=0.8, approval=True)
    blind = stage.aside(stage.blind_process("task", "kill_before"))
    ledger, actions = stage.open()
    given = {"case": stage.mark(), "text": TEXT}
    waiting = actions["task"].submit(**given, wait=0.0)
    [asked] = ledger.asked(waiting)
    assert asked.request is not None
    checks = Checks()
    checks.that(stage.proxies["task"].log == (), "something was sent before the approval")
    checks.that(_refused(actions, stage), "a changed text was let through before the approval")
    ledger.approve(waiting, by="ben", digest=asked.digest)
    caller = stage.worker("task", given, moment="kill_before")
    caller.ready()
    caller.go()
    caller.until_dead()
    checks.that(_refused(actions, stage), "a changed text was let through after the crash")
    receipt = recover(ledger, waiting, settled)
    stored = stored_task(stage.systems.radicale.collection_folder, str(receipt.ref))
    [again] = ledger.asked(waiting)
    assert again.request is not None
    checks.that(again.request == asked.request, "the frozen request changed")
    checks.that(TEXT.encode() in stored, "the approved text is not what is stored")
    checks.that(_body(asked.request["body"]) == stored, "the stored bytes are not the approved")
    checks.that(receipt.attempts >= 2, "it was not resumed by another attempt")
    checks.that(stage.sent("task") == 1, "it was sent more than once")
    words = {
        "en": "After the crash it was sent under its own name; the target holds exactly the"
        f" {len(stored)} bytes that ben approved, and a changed text was refused.",
        "zh": f"崩溃后以同一编号发送；目标系统中的 {len(stored)} 字节与 ben 审批的内容完全一致，"
        "改动过的文本被拒绝。",
    }
    return Ending([receipt], blind.result(), checks, evidence=words)


def _refused(actions: dict[str, Any], stage: Stage) -> bool:
    try:
        actions["task"].submit(case=stage.mark(), text="Another text", wait=0.0)
    except InputMismatch:
        return True
    return False


def _body(encoded: str | bytes) -> bytes:
    """Return the bytes of a request as `asked` shows them: JSON carries them as base64."""
    return base64.b64decode(encoded)


def request_lost(stage: Stage) -> Ending:
    """The request never arrives; nobody can tell that from a lost answer."""
    stage.set("task", timeout=2.0, late=1.0)
    blind = stage.aside(stage.blind_twice("task", "drop_request", "PUT"))
    stage.proxies["task"].drop_request("PUT")
    _, actions = stage.open()
    receipt = actions["task"](case=stage.mark(), text=TEXT, wait=WITHIN)
    checks = Checks()
    checks.that(stage.sent("task") == 2, "it was not sent again under its own name")
    return Ending([receipt], blind.result(), checks)


ALL = [
    Scenario(
        "frozen",
        {
            "en": "caller frozen between deadline check and write",
            "zh": "调用方在检查时限与写出之间停顿",
        },
        "Radicale (CalDAV)",
        frozen_before_write,
        6,
    ),
    Scenario(
        "approved",
        {"en": "approved, crashed, resumed", "zh": "审批后崩溃，再恢复"},
        "Radicale (CalDAV)",
        approval_then_crash,
        5,
    ),
    Scenario(
        "stages",
        {
            "en": "task saved, receipt lost, mail still to send",
            "zh": "任务已存、回执丢失，邮件待发",
        },
        "Radicale (CalDAV) + SMTP",
        task_then_mail,
        4,
    ),
    Scenario(
        "refused",
        {"en": "replay answered 401 after the effect", "zh": "已执行后，重发得到 401"},
        "Radicale (CalDAV)",
        replay_unauthorized,
        3,
    ),
    Scenario(
        "request",
        {"en": "request lost on its way", "zh": "请求在途中丢失"},
        "Radicale (CalDAV)",
        request_lost,
        2,
    ),
]

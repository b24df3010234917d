"""Tickets in Roundup: nothing protects a repeat, and our key can be looked up."""

from __future__ import annotations

from concurrent.futures import wait
from dataclasses import replace

from ascertain import Receipt
from ascertain.acceptance.auditor import Checks

from .base import TEXT, WITHIN, Ending, Scenario, Stage, recover, says, settled, the


def batch(stage: Stage, what: str = "ticket") -> Ending:
    """A is done with its receipt, B's answer is lost with the caller, C is never begun."""
    stage.set(what, timeout=2.0, late=1.0)
    cases = [stage.mark(name) for name in "abc"]
    inputs = [{"case": case, "text": TEXT} for case in cases]
    blind = stage.aside(_blind_batch, stage, what)
    caller = stage.worker(what, *inputs)
    proxy = stage.proxies[what]
    proxy.let_pass("POST")
    rule = proxy.hold(WITHIN, "POST")
    caller.ready()
    caller.go()
    checks = Checks()
    checks.that(rule.landed.wait(WITHIN), "B never reached the target")
    caller.kill()
    rule.release()
    ledger, actions = stage.open()
    before = the(ledger, cases[0])
    checks.that(not ledger.find(key=cases[2]), "C was begun in the first run")
    receipts = actions[what].batch(inputs, wait=WITHIN)
    checks.that(receipts[0].reused and receipts[0].ref == before.ref, "A did not keep its id")
    checks.that(receipts[1].confirmed_by == "look_up", "B was not found by look-up")
    checks.that(stage.sent(what) == 3, "more was sent than A, B and C once each")
    return Ending(receipts, blind.result(), checks, evidence=_batch_words(receipts))


def _batch_words(receipts: list[Receipt]) -> dict[str, str]:
    a, b, c = (r.ref for r in receipts)
    return {
        "en": f"A keeps its id {a}; B was found at the target as {b}; C was made now as {c}.",
        "zh": f"A 保留原编号 {a}；B 在目标系统中查到，编号 {b}；C 本次创建，编号 {c}。",
    }


def _blind_batch(stage: Stage, what: str) -> int:
    """Run A, B (its answer lost) and stop; then run all three again, as a script does."""
    proxy = stage.proxy(what)
    place = stage.place(what, proxy)
    marks = [stage.mark(f"blind-{name}") for name in "abc"]
    proxy.let_pass("POST")
    proxy.drop_response("POST")
    for mark in (*marks[:2], *marks):
        stage.blind(what, place, mark)
    return sum(stage.systems.of(what).creations(mark) for mark in marks)


def two_processes(stage: Stage) -> Ending:
    """Two processes submit the same operation at the same moment."""
    return _at_once(stage, "ticket", processes=2, threads=1)


def eight_at_once(stage: Stage, what: str = "ticket") -> Ending:
    """Eight callers in two processes submit the same operation at the same moment."""
    return _at_once(stage, what, processes=2, threads=4)


def _at_once(stage: Stage, what: str, processes: int, threads: int) -> Ending:
    stage.set(what, timeout=3.0, late=1.0)
    stage.proxies[what].hold(0.6, "POST")  # so that the others come while it is under way
    given = {"case": stage.mark(), "text": TEXT}
    callers = [
        stage.worker(what, *[given] * threads, wait=15.0, threads=threads) for _ in range(processes)
    ]
    for caller in callers:
        caller.ready()
    for caller in callers:
        caller.go()
    got = [answer for caller in callers for answer in caller.answer()]
    ledger, _ = stage.open()
    receipt = the(ledger, stage.mark())
    checks = Checks()
    checks.that(len(got) == processes * threads, "a caller got no receipt")
    checks.that({g["ref"] for g in got} == {receipt.ref}, "the callers got different references")
    place = stage.place(what, stage.proxy(what))
    sends = [
        stage.aside(stage.blind, what, place, stage.mark("blind"))
        for _ in range(processes * threads)
    ]
    wait(sends, WITHIN)
    blind = stage.systems.of(what).creations(stage.mark("blind"))
    return Ending([receipt], blind, checks)


def killed_before_receipt(stage: Stage, what: str = "ticket") -> Ending:
    """The caller is killed after the effect and before its receipt."""
    stage.set(what, timeout=2.0, late=1.0)
    blind = stage.aside(stage.blind_twice(what, "drop_response", "POST"))
    caller = stage.worker(what, {"case": stage.mark(), "text": TEXT})
    rule = stage.proxies[what].hold(WITHIN, "POST")
    caller.ready()
    caller.go()
    checks = Checks()
    checks.that(rule.landed.wait(WITHIN), "the request never reached the target")
    caller.kill()
    rule.release()
    ledger, _ = stage.open()
    receipt = recover(ledger, the(ledger, stage.mark()), settled)
    checks.that(receipt.confirmed_by == "look_up", "it was not found by look-up")
    return Ending([receipt], blind.result(), checks)


def late_commit(stage: Stage) -> Ending:
    """The target commits three seconds after the caller died; look-ups before that see nothing."""
    stage.set("ticket", timeout=2.0, late=4.0)
    blind = stage.aside(stage.blind_twice("ticket", "commit_late", 3.0, "POST"))
    caller = stage.worker("ticket", {"case": stage.mark(), "text": TEXT})
    rule = stage.proxies["ticket"].commit_late(3.0, "POST")
    caller.ready()
    caller.go()
    checks = Checks()
    checks.that(rule.seen.wait(WITHIN), "the request never left")
    caller.kill()
    ledger, _ = stage.open()
    operation = the(ledger, stage.mark())
    receipt = recover(ledger, operation, settled)
    checks.that(says(ledger, operation, ["absent"]), "nobody looked before it had landed")
    checks.that(stage.sent("ticket") == 1, "it was sent again")
    return Ending([receipt], blind.result(), checks)


def frozen_before_answer(stage: Stage) -> Ending:
    """The caller freezes between its claim and the claim's answer; recovery does the work."""
    stage.set("ticket", timeout=1.5, late=0.8)
    _make_control(stage)
    ledger, _ = stage.open()
    blind = stage.aside(stage.blind_process("ticket", "stop_before"))
    caller = stage.worker("ticket", {"case": stage.mark(), "text": TEXT}, moment="claimed")
    caller.ready()
    caller.go()
    caller.until_stopped()
    operation = the(ledger, stage.mark())
    recover(ledger, operation, lambda r: r.done)
    caller.thaw()
    [got] = caller.answer()
    receipt = recover(ledger, operation, settled)
    checks = Checks()
    checks.that(got["ref"] == receipt.ref, "the thawed caller got another reference")
    checks.that(stage.sent("ticket") == 2, "not sent once by recovery, beside the control")
    return Ending([receipt], blind.result(), checks)


def frozen_beyond_lateness(stage: Stage) -> Ending:
    """The caller freezes between its look at the deadline and the write, for longer than the
    assumed lateness: a second effect, which is found and shown."""
    stage.set("ticket", timeout=1.5, late=0.8)
    _make_control(stage)
    ledger, _ = stage.open()
    blind = stage.aside(stage.blind_process("ticket", "stop_before"))
    caller = stage.worker("ticket", {"case": stage.mark(), "text": TEXT}, moment="stop_before")
    caller.ready()
    caller.go()
    caller.until_stopped()
    operation = the(ledger, stage.mark())
    recover(ledger, operation, lambda r: r.done)
    caller.thaw()
    caller.answer()
    receipt = recover(ledger, operation, settled)
    checks = Checks()
    refs = sorted(ledger.references(operation))
    stored = sorted(effect.id for effect in stage.systems.roundup.effects(stage.mark()))
    reviews = [r for r in ledger.reviews(operation) if r.road == "duplicate"]
    checks.that(len(refs) == 2 and refs == stored, f"kept are {refs}, the target holds {stored}")
    checks.that(reviews and reviews[0].owner, "no duplicate review was opened")
    words = {
        "en": f"It happened twice, since the caller froze for longer than assumed: {refs[0]} and"
        f" {refs[-1]} are kept, a person cleans up.",
        "zh": f"调用方停顿超过假设时长，已重复执行：{refs[0]} 与 {refs[-1]} 均已保留，由人处理。",
    }
    return Ending([receipt], blind.result(), checks, broken=True, evidence=words)


def _make_control(stage: Stage) -> None:
    """Make what each look-up must find. Only an answer makes it that, so it may be slow to come."""
    short, stage.knobs = stage.knobs, replace(stage.knobs, timeout=WITHIN)
    _, actions = stage.open()
    actions["ticket"](case=stage.mark("control"), text=TEXT)
    stage.knobs = short


ALL = [
    Scenario(
        "late",
        {"en": "target commits 3 s late, caller dead", "zh": "目标系统迟 3 秒才生效，调用方已死"},
        "Roundup",
        late_commit,
        7,
    ),
    Scenario(
        "overdue",
        {"en": "caller frozen beyond the assumed lateness", "zh": "调用方停顿超过假设的最长延迟"},
        "Roundup",
        frozen_beyond_lateness,
        7,
    ),
    Scenario(
        "unanswered",
        {"en": "caller frozen before its claim's answer", "zh": "调用方在领取应答前停顿"},
        "Roundup",
        frozen_before_answer,
        7,
    ),
    Scenario(
        "batch",
        {
            "en": "batch: A done, B's answer lost, C not executed; run again",
            "zh": "批次：A 已完成，B 回执丢失，C 未执行；重新运行",
        },
        "Roundup",
        batch,
        5,
    ),
    Scenario(
        "killed",
        {"en": "caller killed after the effect", "zh": "执行后、回执前调用方被杀"},
        "Roundup",
        killed_before_receipt,
        4,
    ),
    Scenario(
        "eight",
        {"en": "eight callers at once", "zh": "八个调用方同时提交"},
        "Roundup",
        eight_at_once,
        3,
    ),
    Scenario(
        "two",
        {"en": "the same operation from two processes", "zh": "两个进程同时提交同一操作"},
        "Roundup",
        two_processes,
        3,
    ),
]

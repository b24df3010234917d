"""Messages in NATS JetStream: a repeat is absorbed, for two seconds."""

from __future__ import annotations

from ascertain import State, WaitingOn
from ascertain.acceptance.auditor import Checks

from .base import TEXT, WITHIN, Ending, Scenario, Stage, recover, the


def replay_in_window(stage: Stage) -> Ending:
    """The acknowledgement is lost; inside the window the same key is sent again and absorbed."""
    stage.set("message", timeout=1.0, late=0.2)
    blind = stage.aside(stage.blind_twice("message", "drop_publish_ack", "op."))
    stage.proxies["message"].drop_publish_ack("op.")
    _, actions = stage.open()
    receipt = actions["message"](case=stage.mark(), text=TEXT, wait=WITHIN)
    checks = Checks()
    # A busy machine may need longer than the window allows; then it is looked up instead.
    again = stage.sent("message") == 2
    checks.that(again or receipt.confirmed_by == "look_up", "it was neither repeated nor found")
    return Ending([receipt], blind.result(), checks, "idempotent")


def window_over(stage: Stage) -> Ending:
    """The caller dies after the publish; once the window is over nothing is sent, only asked."""
    stage.set("message", timeout=2.5, late=0.2)
    ending = _killed(stage)
    [receipt] = ending.receipts
    ending.checks.that(receipt.confirmed_by == "look_up", "it was not found by look-up")
    return ending


def window_over_nothing_to_ask(stage: Stage) -> Ending:
    """The same where nobody can ask: no replay after the window, a person decides."""
    stage.set("message", timeout=2.5, late=0.2, message_lookup=False)
    return _killed(stage)


def _killed(stage: Stage) -> Ending:
    blind = stage.aside(stage.blind_process("message", "kill_after"))
    caller = stage.worker("message", {"case": stage.mark(), "text": TEXT}, moment="kill_after")
    caller.ready()
    caller.go()
    caller.until_dead()
    ledger, _ = stage.open()
    operation = the(ledger, stage.mark())
    before = ledger.get(operation).protection
    receipt = recover(ledger, operation, lambda r: r.done or r.waiting_on is WaitingOn.REVIEW)
    checks = Checks()
    checks.that(stage.sent("message") == 1, "it was sent again after the window")
    if not stage.knobs.message_lookup:
        unknown = receipt.state is State.UNKNOWN
        checks.that(unknown, f"it is {receipt.state} though nobody could ask")
        checks.that(ledger.reviews(operation), "no review was opened")
    after = ledger.get(operation).protection
    kinds = dict.fromkeys((before, after))
    return Ending([receipt], blind.result(), checks, ", then ".join(kinds))


ALL = [
    Scenario(
        "window",
        {"en": "duplicate window over: only asked", "zh": "防重窗口已过：只查询"},
        "NATS JetStream",
        window_over,
        5,
    ),
    Scenario(
        "blindspot",
        {"en": "duplicate window over, nothing to ask", "zh": "防重窗口已过，且无法查询"},
        "NATS JetStream",
        window_over_nothing_to_ask,
        5,
    ),
    Scenario(
        "absorbed",
        {"en": "acknowledgement lost inside the window", "zh": "防重窗口内回执丢失"},
        "NATS JetStream",
        replay_in_window,
        2,
    ),
]

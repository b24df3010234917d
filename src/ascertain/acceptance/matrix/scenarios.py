"""The scenarios, each played in the same way on every system."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor

from ascertain import Ledger, Receipt

from .stage import WITHIN, Stage

Ending = tuple[Ledger, Receipt]
EARLY = 4.0  # seconds from submission to the review that ends a search in vain


def normal(stage: Stage) -> Ending:
    """Nothing goes wrong."""
    stage.set()
    ledger, action = stage.open()
    return ledger, stage.to_the_end(ledger, action.submit(wait=WITHIN / 5, **stage.given))


def duplicate(stage: Stage) -> Ending:
    """The same operation is submitted again, by another ledger on the same store, and again after
    it has ended."""
    stage.set()
    ledger, action = stage.open()
    first = action.submit(wait=WITHIN / 5, **stage.given)
    other, again = stage.open()
    second = again.submit(wait=WITHIN / 5, **stage.given)
    stage.checks.that(second.id == first.id and second.reused, "it became another operation")
    receipt = stage.to_the_end(ledger, first)
    third = again.submit(wait=0.0, **stage.given)
    stage.checks.that(third.ref == receipt.ref, "the third got another reference")
    return other, receipt


def response_lost(stage: Stage) -> Ending:
    """The target does it, and its answer is lost."""
    stage.set()
    stage.proxy.drop_response(stage.adapter.method)
    ledger, action = stage.open()
    return ledger, stage.to_the_end(ledger, action.submit(wait=0.0, **stage.given))


def request_lost(stage: Stage) -> Ending:
    """The request never arrives; nobody can tell that from a lost answer."""
    stage.set()
    stage.proxy.drop_request(stage.adapter.method)
    ledger, action = stage.open()
    return ledger, stage.to_the_end(ledger, action.submit(wait=0.0, **stage.given))


def eight(stage: Stage) -> Ending:
    """Eight callers on two ledgers submit the same operation at the same moment."""
    stage.set()
    opened = [stage.open() for _ in range(2)]
    with ThreadPoolExecutor(8) as pool:
        got = [
            pool.submit(opened[n % 2][1].submit, wait=WITHIN / 2, **stage.given) for n in range(8)
        ]
        receipts = [one.result() for one in got]
    ledger = opened[0][0]
    receipt = stage.to_the_end(ledger, receipts[0])
    refs = {r.ref for r in receipts} - {None}
    stage.checks.that({r.id for r in receipts} == {receipt.id}, "there is more than one operation")
    stage.checks.that(refs <= {receipt.ref}, "the callers got different references")
    return ledger, receipt


def killed(stage: Stage) -> Ending:
    """The caller is killed after the effect, before it has learned of it."""
    stage.set()
    _kill_after(stage)
    ledger, _ = stage.open()
    return ledger, stage.to_the_end(ledger, stage.operation(ledger))


def _kill_after(stage: Stage) -> None:
    caller = stage.caller()
    rule = stage.proxy.hold(WITHIN, stage.adapter.method)
    caller.go()
    stage.checks.that(rule.landed.wait(WITHIN), "the request never reached the target")
    caller.kill()
    rule.release()


def late_commit(stage: Stage) -> Ending:
    """The caller dies, and its request takes effect long after its deadline."""
    stage.set(timeout=1.0, late=max(2.5, stage.adapter.late))
    caller = stage.caller()
    rule = stage.proxy.commit_late(2.0, stage.adapter.method)
    caller.go()
    stage.checks.that(rule.seen.wait(WITHIN), "the request never left")
    caller.kill()
    ledger, _ = stage.open()
    receipt = stage.to_the_end(ledger, stage.operation(ledger))
    stage.checks.that(rule.finished.wait(WITHIN), "the late request never took effect")
    if not receipt.done:
        stage.wait_for_creation()
    return ledger, stage.to_the_end(ledger, receipt)


def frozen(stage: Stage) -> Ending:
    """The caller stops between its look at the deadline and its write, is recovered from, and
    goes on within the assumed lateness."""
    stage.set(timeout=1.5, late=max(2.0, stage.adapter.late))
    caller = stage.caller("stop_before")
    caller.go()
    caller.until_stopped()
    ledger, _ = stage.open()
    operation = stage.operation(ledger)
    until = time.monotonic() + stage.times.timeout + 0.8
    while time.monotonic() < until:  # well past its deadline, so that it cannot learn what it did
        if not stage.ended(ledger.get(operation)):
            ledger.recover()
        time.sleep(0.1)
    caller.thaw()
    caller.answer()
    return ledger, stage.to_the_end(ledger, operation)


def window_over(stage: Stage) -> Ending:
    """The caller is killed after the effect, and nobody looks until the target has forgotten
    our key."""
    stage.set()
    _kill_after(stage)
    time.sleep(stage.adapter.system.window + 0.2)
    ledger, _ = stage.open()
    receipt = stage.to_the_end(ledger, stage.operation(ledger))
    stage.checks.that(receipt.confirmed_by == "look_up", "it was not found by look-up")
    return ledger, receipt


def foreign(stage: Stage) -> Ending:
    """Somebody else's object has our id; where nothing protects us, our answer is lost too."""
    stage.set(total=EARLY)
    ledger, action = stage.open()
    key = stage.target_key(ledger, action)
    stage.adapter.foreign(key, stage.foreign)
    stage.wait_for_creation(key, stage.foreign)
    stage.others = stage.adapter.creations(key)
    if stage.adapter.ground in ("searchable", "delivered", "misled"):
        stage.proxy.drop_response(stage.adapter.method)
    receipt = stage.to_the_end(ledger, action.submit(wait=0.0, **stage.given))
    if not stage.adapter.otherwise.get("foreign"):
        stands = len(stage.adapter.effects(stage.foreign))
        stage.checks.that(stands == 1, f"somebody else's object is there {stands} times")
    return ledger, receipt


def denied(stage: Stage) -> Ending:
    """The answer is lost and the look-up is refused."""
    return _in_vain(stage, "denied")


def blind(stage: Stage) -> Ending:
    """The answer is lost and the look-up is shown nothing, whatever is there."""
    return _in_vain(stage, "blind")


def _in_vain(stage: Stage, look: str) -> Ending:
    stage.set("denied" if look == "denied" else "blind", total=EARLY)
    stage.proxy.drop_response(stage.adapter.method)
    ledger, action = stage.open()
    receipt = stage.to_the_end(ledger, action.submit(wait=0.0, **stage.given))
    stage.checks.that(ledger.reviews(receipt), "no review was opened")
    return ledger, receipt


def recreated(stage: Stage) -> Ending:
    """The caller is killed after the effect, and a person deletes what was made before anybody
    has looked."""
    stage.set()
    _kill_after(stage)
    ledger, action = stage.open()
    operation = stage.operation(ledger)
    stage.wait_for_creation()
    stage.adapter.delete(stage.target_key(ledger, action))
    receipt = stage.to_the_end(ledger, operation)
    if receipt.done:  # once it is known, nothing brings it back
        before = stage.creations(receipt.target_key)
        again = action.submit(wait=0.0, **stage.given)
        ledger.recover()
        same = again.reused and stage.creations(receipt.target_key) == before
        stage.checks.that(same, "what was done and deleted was made again")
    return ledger, receipt


PLAYS: Mapping[str, Callable[[Stage], Ending]] = {
    "normal": normal,
    "duplicate": duplicate,
    "response_lost": response_lost,
    "request_lost": request_lost,
    "eight": eight,
    "killed": killed,
    "late_commit": late_commit,
    "frozen": frozen,
    "window_over": window_over,
    "foreign": foreign,
    "denied": denied,
    "blind": blind,
    "recreated": recreated,
}

"""Mail: a server says accepted, and nothing can be asked afterwards."""

from __future__ import annotations

from ascertain import State, WaitingOn
from ascertain.acceptance.auditor import Checks

from .base import Ending, Scenario, Stage, recover


def opaque(stage: Stage) -> Ending:
    """The answer to the mail is lost and nobody can be asked: review, then a person's decision."""
    stage.set("mail", timeout=1.5)
    blind = stage.aside(stage.blind_twice("mail", "drop_after_data"))
    stage.proxies["mail"].drop_after_data()
    ledger, actions = stage.open()
    first = actions["mail"].submit(case=stage.mark(), text="Your offer", wait=0.0)
    waiting = recover(ledger, first, lambda r: r.waiting_on is WaitingOn.REVIEW, "a review")
    checks = Checks()
    checks.that(waiting.state is State.UNKNOWN, f"in review it is {waiting.state}")
    [review] = ledger.reviews(waiting)
    checks.that(review.owner == "anna", f"the review is with {review.owner!r}")
    # What anna does: she looks into the mailbox and says what she sees there.
    [seen] = stage.systems.smtp.effects(stage.mark())
    receipt = ledger.decide(
        waiting, "there", by="anna", ref=seen.id, why="it lies in the customer's mailbox"
    )
    checks.that(receipt.confirmed_by == "person", "the person's word did not count")
    checks.that(stage.sent("mail") == 1, "it was sent again")
    return Ending([receipt], blind.result(), checks)


ALL = [
    Scenario(
        "opaque",
        {"en": "mail, answer lost, nothing to ask", "zh": "邮件回执丢失，且无法查询"},
        "SMTP",
        opaque,
        3,
    )
]

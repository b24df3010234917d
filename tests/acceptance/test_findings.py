"""What the table of targets has shown to be wrong elsewhere, put right since."""

from __future__ import annotations

from pathlib import Path

import ascertain
from ascertain.contracts import catalogue


def test_a_receipt_says_that_nobody_may_delete_meanwhile(tmp_path: Path) -> None:
    with ascertain.open(str(tmp_path / "ledger.db")) as ledger:

        @ledger.action("crm.task", key="{case}", owner="anna", contract="caldav.task.create")
        def create(call, *, case):
            return ascertain.Done(ref=call.target_key)

        create.lookup(late=1)(lambda call: ascertain.Absent())
        receipt = create(case="lamp")
    assert any("delete" in text for text in receipt.assumptions)


def test_the_contract_of_tickets_names_what_its_look_up_does_not_see() -> None:
    rule = catalogue.find("roundup.issue.create").lookup
    assert rule is not None
    assert "retired issues" in rule.blind

"""What a decision goes on with after a write is what the store would read again."""

from __future__ import annotations

from typing import Any

import pytest

from ascertain.core.draft import Case
from ascertain.core.model import Change, State
from ascertain.runtime import attempts
from shop import Shop


def known(case: Case) -> Any:
    """A case without the order of its lists."""
    by_id = {r.id: r for r in case.reviews}
    return case.status, {a.token: a for a in case.attempts}, by_id


@pytest.mark.parametrize("fate", ["", "gone", "hang", "refuse:transient", "refuse:throttled"])
def test_after_a_write_nothing_need_be_read_again(
    shop: Shop, monkeypatch: pytest.MonkeyPatch, fate: str
) -> None:
    seen: list[Change] = []
    real = attempts.after

    def checked(case: Case, change: Change) -> Case:
        made = real(case, change)
        assert known(made) == known(shop.ledger.engine.again(made))
        seen.append(change)
        return made

    monkeypatch.setattr(attempts, "after", checked)
    if fate:
        shop.target.script(fate)
    receipt = shop.order.submit(order=1, wait=0)
    shop.settle()
    assert shop.get(receipt).state is State.DONE
    assert any(change.ends for change in seen), "an attempt's end went another way"

"""Guards of figures, costs and notices, each switched off once: a scenario says what goes wrong."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from ascertain import Done, Ledger, Unknown
from ascertain.core import costs
from ascertain.core.books import Tally
from ascertain.core.figures import HOUR, OWN, hour_of
from ascertain.core.model import Attempt, Kind, Operation
from ascertain.runtime import alarms, charging, tallies
from ascertain.runtime.alarms import PATIENCE
from ascertain.runtime.tallies import Tallies
from ascertain.store.base import Posting
from ascertain.store.sqlite import SqliteStore
from ascertain.testing import FakeClock

Patch = pytest.MonkeyPatch


def shop() -> tuple[Ledger, FakeClock]:
    clock = FakeClock()
    return Ledger(SqliteStore(":memory:", clock=clock.wall), clock=clock, wait=0), clock


def a_notice_raises_no_alarm() -> list[str]:
    ledger, clock = shop()

    @ledger.action(OWN + "notify.mail", key="{n}", owner="anna", sends="own")
    def tell(call: Any, *, n: int) -> Unknown:
        return Unknown(reason="no answer")

    tell.submit(n=1)
    clock.advance(PATIENCE / 1e6 + 1)
    return ["a notice tells of itself"] if alarms.alarms(ledger.engine) else []


def a_count_that_is_old_writes_nothing() -> list[str]:
    ledger, clock = shop()

    @ledger.action("a", key="{n}", owner="anna", sends="own")
    def act(call: Any, *, n: int) -> Done:
        return Done(ref=str(n))

    act(n=1)
    began = hour_of(clock.wall())
    clock.advance(7200)
    chore, other = Tallies(ledger.store, ["default"]), Tallies(ledger.store, ["default"])
    chore.run()  # it begins
    real = tallies.count_hours
    raced: list[bool] = []

    def late(*given: Any) -> list[Tally]:
        found = real(*given)
        if not raced:  # read, and then somebody else counts what is newer
            raced.append(True)
            other.run()
            return [msgspec.structs.replace(row, done=99) for row in found]
        return found

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tallies, "count_hours", late)
        chore.run()
    asked = {"span": "hour", "since": began, "until": began + HOUR}
    done = [row.done for row in ledger.store.ask(Tally, "tally_rows", **asked)]
    return [] if done == [1] else ["an old count took the place of a newer one"]


def a_line_of_cost_is_never_lazy() -> list[str]:
    ledger, _ = shop()
    ledger.engine.prices = {"a": costs.Price(amount="1", currency="EUR")}
    seen: list[bool] = []
    real = ledger.store.write

    def write(changes: Any) -> Any:
        seen.extend(change.lazy for change in changes if change.lines)
        return real(changes)

    ledger.store.write = write  # type: ignore[method-assign]

    @ledger.action("a", key="{n}", owner="anna", sends="own", settle="lazy")
    def act(call: Any, *, n: int) -> Done:
        return Done(ref=str(n))

    act.lookup(lag="0s", late="1s")(lambda call: Unknown())
    act(n=1)
    assert seen
    return ["a line of cost may be lost with its finding"] if any(seen) else []


def an_outcome_that_is_not_known_is_not_priced() -> list[str]:
    operation = Operation(id="o", namespace="n", action="a", key="k", fingerprint="f", input=None)
    attempt = Attempt(token=1, operation="o", kind=Kind.EXECUTE, epoch=1, started_at=0, deadline=1)
    price = costs.Price(amount="1", currency="EUR")
    made = costs.lines(operation, attempt, Unknown(), number=1, now=5, price=price)
    [(_, line)] = made
    return [] if (line.amount, line.doubt) == ("", 1) else ["a guess stands among the costs"]


def unguarded(patch: Patch) -> None:
    def turn(self: Tallies, at: Any, lines: Any, moved: Any) -> Any:
        values = {"turn": at.turn, "counted": at.counted, "seen": at.seen, **moved}
        self.store.post([Posting((("tally_turn", values), *lines))])
        return tallies.Mark(at.turn + 1, values["counted"], values["seen"])

    patch.setattr(Tallies, "_turn", turn)


def stays_lazy(patch: Patch) -> None:
    real = charging.charged

    def charged(engine: Any, ticket: Any, finding: Any, change: Any) -> Any:
        return msgspec.structs.replace(real(engine, ticket, finding, change), lazy=change.lazy)

    from ascertain.runtime import attempts

    patch.setattr(attempts, "charged", charged)


SCENARIOS: list[tuple[Callable[[Patch], None], Callable[[], list[str]], str]] = [
    (lambda patch: patch.setattr(alarms, "is_own", lambda _: False), a_notice_raises_no_alarm,
     "a notice tells of itself"),
    (unguarded, a_count_that_is_old_writes_nothing, "an old count took the place of a newer one"),
    (stays_lazy, a_line_of_cost_is_never_lazy, "a line of cost may be lost with its finding"),
    (lambda patch: patch.setattr(costs, "price_of", lambda *given: given[2].amount),
     an_outcome_that_is_not_known_is_not_priced, "a guess stands among the costs"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("mutant", "scenario", "verdict"), SCENARIOS, ids=[s[1].__name__ for s in SCENARIOS]
)
def test_a_guard_that_is_off_is_seen(
    mutant: Callable[[Patch], None], scenario: Callable[[], list[str]], verdict: str
) -> None:
    assert scenario() == []
    with pytest.MonkeyPatch.context() as patch:
        mutant(patch)
        assert scenario() == [verdict]

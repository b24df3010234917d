"""Each lie of a target is named by the verdict on exactly that claim."""

from __future__ import annotations

from typing import Any

import pytest

from ascertain import Refused, UnknownAction, selftest
from ascertain.selftest.planning import AT_ONCE
from selftest.sandbox import INPUT
from selftest.test_honest import result, run

LIES = [
    # the class that is claimed, the lie, the claim that fails, the class without it
    pytest.param("idempotent", {"lie": "ignores"}, "repeat.answer", "searchable", id="ignores"),
    pytest.param("identified", {"lie": "ignores"}, "repeat.answer", "searchable", id="no id"),
    pytest.param("idempotent", {"lie": "hides"}, "repeat.answer", "searchable", id="hides"),
    pytest.param("searchable", {"lie": "latest"}, "lookup.by", "opaque", id="the latest"),
    pytest.param("searchable", {"lie": "anything"}, "lookup.by", "opaque", id="anything"),
    pytest.param("searchable", {"lie": "denies"}, "lookup", "opaque", id="401"),
    pytest.param("searchable", {"lie": "nothing"}, "lookup", "opaque", id="404 for all"),
    pytest.param("idempotent", {"real_keeps": 10}, "repeat.keeps", "searchable", id="forgets"),
    pytest.param("identified", {"lie": "races"}, "repeat.atomic", "identified, not race-free",
                 id="races"),
    pytest.param("searchable", {"real_lag": 7}, "lookup.lag", "lagging", id="lags"),
    pytest.param("lagging", {"lag": 3, "real_lag": 9}, "lookup.lag", "lagging", id="lags more"),
    pytest.param("idempotent", {"lie": "takes", "mismatch": "x"}, "repeat.mismatch", "idempotent",
                 id="takes changed content"),
    pytest.param("idempotent", {"lie": "overwrites", "mismatch": "x"}, "repeat.mismatch",
                 "idempotent", id="overwrites instead of refusing"),
    pytest.param("idempotent", {"lie": "overwrites"}, "repeat.answer", "searchable",
                 id="overwrites instead of replaying"),
    pytest.param("idempotent", {"lie": "second"}, "repeat.answer", "searchable",
                 id="a second of changed content"),
    pytest.param("searchable", {"lie": "undeletes"}, "undo", "searchable", id="undeletes"),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "lie", "claim", "without"), LIES)
def test_a_lie_is_named_by_its_claim_and_nothing_else(trial, kind, lie, claim, without) -> None:
    made = trial(kind, **lie)
    found = run(made)
    assert found.failed == (claim,)
    assert not found.holds
    assert not found.stamped
    assert found.without[0] == without
    assert made.box.made <= found.plan.most
    assert made.box.effects() == [] or lie.get("lie") == "undeletes"


def test_what_is_ignored_in_turn_is_not_sent_eight_times(trial) -> None:
    made = trial("idempotent", lie="ignores")
    found = run(made)
    assert made.box.made < AT_ONCE
    whys = {v.claim: v.why for v in found.verdicts if v.result == "untested"}
    assert whys["repeat.atomic"] == whys["repeat.keeps"] == "answer_first"


@pytest.mark.parametrize(("lie", "why"), [("nothing", "no_control"), ("denies", "by_unanswered")])
def test_an_absence_is_no_verdict_before_a_control_was_found(trial, lie, why) -> None:
    found = run(trial("searchable", lie=lie))
    [by] = [v for v in found.verdicts if v.claim == "lookup.by"]
    assert (by.result, by.why) == ("untested", why)
    assert not found.control
    assert ("no_control", {}) in found.notes


def test_a_look_up_that_once_gave_no_answer_is_not_verified(trial) -> None:
    made = trial("searchable")
    look, asked = made.box.look, iter([ConnectionError("500")])

    def flaky(key: str) -> Any:
        for error in asked:
            raise error
        return look(key)

    made.box.look = flaky
    assert result(run(made))["lookup.by"] == "untested"


def test_a_partial_answer_never_verifies_an_absence(trial) -> None:
    made = trial("searchable")
    made.box.looks_fail = "partial"
    found = run(made)
    assert result(found)["lookup.by"] == "untested"


def test_a_duplicate_is_listed_with_all_references_and_removed(trial) -> None:
    made = trial("identified", lie="races")
    found = run(made, undo=None)
    [raced] = [t for t in found.left if t.probe == "at_once"]
    assert len(raced.refs) == AT_ONCE
    assert set(raced.refs) <= {ref for _, _, ref in made.box.effects()}


@pytest.mark.parametrize("fate", ["refuse:invalid", "hang", "gone", "drop"])
def test_a_first_request_that_is_no_success_ends_it(trial, fate) -> None:
    made = trial("idempotent")
    made.box.script(fate)
    found = run(made)
    assert made.box.made == 1
    assert not found.stamped
    assert result(found)["repeat.answer"] == "untested"
    if fate.startswith("refuse"):
        assert found.things == ()  # proven: nothing was made
    if fate in ("hang", "drop"):  # it is there, found by the look-up, and removed
        assert found.failed == ("ok.when",)
        assert made.box.effects() == []
    if fate == "gone":
        assert [t.certain for t in found.left] == [False]


def test_nothing_is_sent_without_leave(trial) -> None:
    made = trial("idempotent", contract={"undo": "none"})
    with pytest.raises(Refused, match="sandbox"):
        run(made, sandbox=False)
    assert not selftest.plan(made.ledger.engine.actions["box.order"], INPUT,
                             undo=made.ledger.engine.actions["box.remove"]).needs_yes  # fmt: skip
    with pytest.raises(Refused, match="--yes"):
        run(made, undo=None)
    with pytest.raises(Refused, match="--yes"):
        run(trial("idempotent", risky=True))
    with pytest.raises(Refused, match="--yes"):
        run(trial("idempotent", approval=True))  # an approval is not got round silently
    with pytest.raises(UnknownAction):
        run(made, undo="box.nobody")
    with pytest.raises(Refused, match="`ref`"):
        run(made, undo="box.order")
    assert made.box.made == 0
    assert run(made, undo=None, yes=True).stamped


@pytest.mark.parametrize("at", ["known", "again", "at_once", "window"])
def test_stopped_it_cleans_up_and_verifies_nothing(trial, at) -> None:
    made = trial("idempotent")

    def stop(probe: str) -> None:
        if probe == at:
            raise KeyboardInterrupt

    found = run(made, on=stop)
    assert found.stopped == at
    assert not found.holds
    assert not found.stamped
    assert made.box.effects() == []


def test_stopped_while_cleaning_up_it_lists_the_rest(trial) -> None:
    made = trial("idempotent")

    def stop(probe: str) -> None:
        if probe in ("at_once", "removed"):
            raise KeyboardInterrupt

    found = run(made, on=stop)
    assert {ref for t in found.left for ref in t.refs} == {r for _, _, r in made.box.effects()}
    assert found.left


def test_stopped_during_a_request_its_object_is_listed(trial) -> None:
    made = trial("searchable")
    send = made.box.send

    def killed(key: str, body: str = "") -> None:
        send(key, body)
        raise KeyboardInterrupt

    made.box.send = killed
    found = run(made, undo=None)
    [thing] = found.left
    assert not thing.certain
    assert thing.target_key == made.box.effects()[0][0]

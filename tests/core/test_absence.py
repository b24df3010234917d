"""Law 5: an absence counts only if everything holds; each condition is taken away once."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from ascertain.core.contract import LateRule, LookupRule, Terms
from ascertain.core.model import (
    SECOND,
    Absent,
    Attempt,
    Done,
    Kind,
    Outcome,
    State,
    Status,
    Unknown,
)
from ascertain.core.reconcile import FINAL, LookReport, World, absence_counts, epochs, quiet_end
from core.driver import contract, declared

DEADLINE = 160 * SECOND
QUIET = DEADLINE + 50 * SECOND  # the end of the quiet period: lag 30 s, late 20 s
TERMS = declared(
    contract(late=LateRule(max="20s"), lookup=LookupRule(by="meta", lag="30s")), can_look_up=True
)
STATUS = Status(
    operation="op", namespace="n", action="a", state=State.UNKNOWN, last_deadline=DEADLINE, epoch=2
)


def attempt(token: int, kind: Kind = Kind.EXECUTE, **more: Any) -> Attempt:
    given = {"started_at": 100 * SECOND, "deadline": DEADLINE, "epoch": 1, "scope": "acme"}
    return Attempt(token=token, operation="op", kind=kind, **{**given, **more})


LOOK = attempt(9, Kind.LOOK_UP, started_at=QUIET + 1)
FIRST = attempt(1, outcome=Outcome.EXPIRED)
REPORT = LookReport(finding=Absent(), epochs=frozenset({1, 2}), control="found")
WORLD = World(now=QUIET + SECOND)


def counts(**changed: Any) -> str:
    given = {
        "report": REPORT, "look": LOOK, "status": STATUS, "terms": TERMS, "attempts": [FIRST, LOOK],
        "world": WORLD, **changed,
    }  # fmt: skip
    return absence_counts(
        given["report"], given["look"], given["status"], given["terms"], given["attempts"],
        world=given["world"],
    )  # fmt: skip


def with_contract(terms: Terms, **parts: Any) -> Terms:
    return replace(terms, contract=replace(terms.contract, **parts))


BLIND = with_contract(TERMS, lookup=LookupRule(by="meta", lag="30s", blind=("drafts", "trash")))
MAIL = replace(with_contract(TERMS, undo="none"), assumed=("late", "deterministic"))


def test_with_everything_it_counts() -> None:
    assert counts() == ""


@pytest.mark.parametrize(
    ("why", "changed"),
    [
        ("look_up_failed", {"report": replace(REPORT, finding=Unknown("503"))}),
        ("look_up_failed", {"report": replace(REPORT, finding=Done("d"))}),
        ("quiet_unknown", {"terms": replace(TERMS, lag=None)}),
        ("quiet_unknown", {"terms": replace(TERMS, late=None)}),
        ("quiet_unknown", {"status": replace(STATUS, last_deadline=None)}),
        ("deadline_unknown", {"attempts": [replace(FIRST, hard=False)]}),
        ("quiet_period", {"look": replace(LOOK, started_at=QUIET)}),
        ("quiet_period", {"world": replace(WORLD, stepped_at=QUIET)}),
        ("quiet_period", {"status": replace(STATUS, last_deadline=DEADLINE + 2)}),
        ("incomplete", {"report": replace(REPORT, finding=Absent(complete=False))}),
        ("epochs", {"report": replace(REPORT, epochs=frozenset({2}))}),
        ("epochs", {"world": replace(WORLD, restored=True)}),
        ("invented_found", {"report": replace(REPORT, invented_found=True)}),
        ("no_control", {"report": replace(REPORT, control="none")}),
        ("no_control", {"report": replace(REPORT, control="missing")}),
        ("blind", {"terms": BLIND}),
        ("blind", {"terms": replace(BLIND, unseen=("trash",))}),
        ("assumed_irreversible", {"terms": MAIL}),
        ("accepted_before", {"attempts": [replace(FIRST, outcome=Outcome.ACCEPTED)]}),
        ("accepted_before", {"attempts": [replace(FIRST, outcome=Outcome.DONE)]}),
        ("other_scope", {"attempts": [replace(FIRST, scope="other")]}),
    ],
    ids=range(21),
)
def test_without_one_condition_it_proves_nothing(why: str, changed: dict[str, Any]) -> None:
    assert counts(**changed) == why


@pytest.mark.parametrize(
    "changed",
    [
        {"attempts": [replace(FIRST, hard=False, scope="x", outcome=Outcome.NOT_DONE)]},
        {"terms": replace(BLIND, unseen=("trash", "drafts"))},
        {"terms": replace(MAIL, trust_assumed_absence=True)},
        {"terms": replace(MAIL, assumed=("keeps", "deterministic"))},
        {"terms": with_contract(MAIL, harm="cost_only")},
        {"world": replace(WORLD, stepped_at=QUIET - 50 * SECOND - TERMS.bounds.longest)},
        {
            "report": replace(REPORT, epochs=frozenset({1, 2, 3})),
            "world": replace(WORLD, restored=True),
        },
    ],
    ids=range(7),
)
def test_what_takes_nothing_away(changed: dict[str, Any]) -> None:
    assert counts(**changed) == ""


def test_a_step_of_the_clock_moves_the_end_of_the_quiet_period() -> None:
    assert quiet_end(STATUS, TERMS, WORLD) == QUIET
    stepped = replace(WORLD, stepped_at=QUIET)
    after = QUIET + TERMS.bounds.longest + 50 * SECOND
    assert quiet_end(STATUS, TERMS, stepped) == after


def test_after_a_restore_one_more_epoch_is_searched() -> None:
    assert list(epochs(STATUS, WORLD)) == [1, 2]
    assert list(epochs(STATUS, replace(WORLD, restored=True))) == [1, 2, 3]


def test_what_looking_again_cannot_cure_goes_to_a_person() -> None:
    assert {
        "accepted_before", "deadline_unknown", "blind", "assumed_irreversible", "invented_found",
        "other_scope",
    } == FINAL  # fmt: skip

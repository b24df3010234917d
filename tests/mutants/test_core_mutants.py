"""Each guard of the core is switched off once; a scenario must say, by name, what goes wrong."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import run_state_machine_as_test
from msgspec.structs import replace

from ascertain.core import claims, machine, reconcile, settle
from ascertain.core.machine import Input
from ascertain.core.model import State, WaitingOn
from core.scenarios import SCENARIOS
from properties.test_core_model import Core

Patch = pytest.MonkeyPatch
Mutant = Callable[[Patch], None]


def says(module: Any, name: str, answer: Any) -> Mutant:
    """The guard answers the same whatever it is asked."""
    return lambda patch: patch.setattr(module, name, lambda *_, **__: answer)


def told(**facts: Any) -> Mutant:
    """The rule of absence is told that this condition holds."""

    def mutant(patch: Patch) -> None:
        real = reconcile.absence_counts

        def lenient(report: Any, *rest: Any, **more: Any) -> str:
            return real(replace(report, **facts), *rest, **more)

        patch.setattr(settle, "absence_counts", lenient)

    return mutant


def leads(given: Input, to: State) -> Mutant:
    """A cell of the table leads elsewhere."""

    def mutant(patch: Patch) -> None:
        cell = replace(machine.TABLE[State.RUNNING, given], to=to, waiting_on=WaitingOn.CLOCK)
        patch.setitem(machine.TABLE, (State.RUNNING, given), cell)

    return mutant


def no_quiet_period(patch: Patch) -> None:
    patch.setattr(reconcile, "quiet_end", lambda status, *_: status.last_deadline)


def no_clock_steps(patch: Patch) -> None:
    for name in ("quiet_end", "replay_protected"):
        real = getattr(reconcile, name)
        blind = _without_steps(real)
        patch.setattr(reconcile, name, blind)
        if hasattr(settle, name):
            patch.setattr(settle, name, blind)


def _without_steps(real: Any) -> Any:
    def blind(status: Any, terms: Any, world: Any, *rest: Any) -> Any:
        return real(status, terms, replace(world, stepped_at=None), *rest)

    return blind


def no_lateness(patch: Patch) -> None:
    patch.setattr(reconcile, "_lateness_end", lambda *given: given[-1].now - 1)


def no_own_deadline(patch: Patch) -> None:
    def lenient(status: Any, terms: Any, world: Any, begins: int) -> bool:
        end = reconcile.window_end(terms, status.first_claim_at or 0)
        return bool(end is not None and begins < end)

    patch.setattr(reconcile, "replay_protected", lenient)


def no_late_truth(patch: Patch) -> None:
    patch.setattr(settle, "_late", lambda draft, *_, **__: draft.move(Input.LATE_OTHER))


def no_invented_control(patch: Patch) -> None:
    real = settle.looked

    def lenient(case: Any, look: Any, given: Any, *rest: Any) -> Any:
        return real(case, look, replace(given, invented_found=False), *rest)

    patch.setattr(settle, "looked", lenient)


def no_page_unread(patch: Patch) -> None:
    def lenient(report: Any, *rest: Any, **more: Any) -> str:
        whole = replace(report, finding=replace(report.finding, complete=True))
        return real(whole, *rest, **more)

    real = reconcile.absence_counts
    patch.setattr(settle, "absence_counts", lenient)


def no_bound_to_what_is_trusted(patch: Patch) -> None:
    patch.setattr(reconcile, "_ABSENCE_RESTS_ON", frozenset())


def no_scope(patch: Patch) -> None:
    real = reconcile.absence_counts

    def lenient(report: Any, look: Any, status: Any, terms: Any, attempts: Any, **more: Any) -> str:
        same = [replace(a, scope=terms.scope) for a in attempts]
        return real(report, look, status, terms, same, **more)

    patch.setattr(settle, "absence_counts", lenient)


def no_blindness(patch: Patch) -> None:
    real = reconcile.absence_counts

    def lenient(report: Any, look: Any, status: Any, terms: Any, *rest: Any, **more: Any) -> str:
        return real(report, look, status, replace(terms, unseen=("drafts",)), *rest, **more)

    patch.setattr(settle, "absence_counts", lenient)


def no_word_for_the_risk(patch: Patch) -> None:
    real = settle._speaks_for_all

    def lenient(case: Any, attempt: Any, finding: Any) -> bool:
        return bool(real(case, replace(attempt, without_proof=False), finding))

    patch.setattr(settle, "_speaks_for_all", lenient)


def no_memory_of_acceptance(patch: Patch) -> None:
    real = settle.end_of_answered

    def forgetful(draft: Any, *, proven: bool) -> bool:
        return settle.answered(draft.case.status) and bool(real(draft, proven=proven))

    patch.setattr(settle, "end_of_answered", forgetful)


MUTANTS: list[tuple[Mutant, str, str]] = [
    (no_quiet_period, "not_found_before_the_quiet_period_proves_nothing",
     "an early absence counts"),
    (no_clock_steps, "not_found_right_after_a_clock_step_proves_nothing",
     "an absence after a clock step counts"),
    (no_clock_steps, "a_window_that_opened_before_a_clock_step_is_closed",
     "a window from before a clock step protects a replay"),
    (told(control="found"), "not_found_without_a_positive_control_proves_nothing",
     "an absence without a control counts"),
    (no_invented_control, "not_found_by_a_look_up_that_finds_anything_proves_nothing",
     "an absence of a look-up that ignores the key counts"),
    (no_invented_control, "found_by_a_look_up_that_finds_anything_proves_nothing",
     "a hit of a look-up that ignores the key counts"),
    (told(epochs=frozenset(range(9))), "not_found_in_part_of_the_epochs_proves_nothing",
     "an absence in part of the epochs counts"),
    (no_page_unread, "not_found_on_part_of_the_pages_proves_nothing",
     "an incomplete absence counts"),
    (says(reconcile, "deadlines_known", answer=True),
     "not_found_while_code_of_unknown_deadline_may_send_proves_nothing",
     "an absence without a deadline counts"),
    (no_blindness, "not_found_by_a_look_up_blind_to_drafts_proves_nothing",
     "a blind absence counts"),
    (no_scope, "not_found_in_one_account_says_nothing_about_another",
     "an absence in another scope counts"),
    (no_bound_to_what_is_trusted, "not_found_on_an_assumption_sends_no_mail_twice",
     "an assumed absence of an effect that cannot be undone counts"),
    (no_memory_of_acceptance, "not_found_after_the_target_took_it_over_proves_nothing",
     "an acceptance that came late is forgotten"),
    (no_own_deadline, "a_replay_that_would_land_outside_the_window_is_not_made",
     "a replay lands outside the window"),
    (says(reconcile, "_same_scope", answer=True), "a_replay_under_another_account_is_not_made",
     "a key is replayed in another scope"),
    (no_lateness, "overlapping_replays_wait_for_the_quiet_period",
     "a replay overlaps where that makes two"),
    (leads(Input.EXPIRED, State.PENDING), "a_lease_that_ran_out_leaves_the_outcome_unknown",
     "a lost attempt counts as not executed"),
    (leads(Input.UNKNOWN, State.PENDING), "what_nobody_classified_is_unknown",
     "an unclassified error counts as not executed"),
    (says(settle, "others_may_have_sent", answer=False),
     "a_replay_answered_401_after_a_lost_attempt_leaves_it_unknown",
     "a refused replay speaks for the lost attempt"),
    (says(settle, "others_may_have_sent", answer=False),
     "a_refusal_after_a_restore_says_nothing_about_what_was_lost",
     "a refusal speaks for attempts that a restore forgot"),
    (no_word_for_the_risk, "after_a_persons_risk_a_stored_refusal_speaks_for_nobody_else",
     "an attempt without proof speaks for an earlier one"),
    (no_late_truth, "done_reported_after_the_lease_makes_it_done", "a late done is thrown away"),
    (no_late_truth, "late_done_while_another_attempt_runs_closes_it_only_when_that_ended",
     "a late done is thrown away"),
    (says(claims, "_rests_on_absence", answer=False),
     "after_an_absence_a_second_effect_is_looked_for", "a second effect is not looked for"),
    (says(settle, "_second", answer=None), "a_second_reference_opens_a_duplicate_review",
     "a second effect is not shown"),
    (says(claims, "new_epoch_needed", answer=False),
     "a_stored_error_starts_a_new_epoch_only_after_proof", "a dead key is used again"),
]  # fmt: skip


@pytest.mark.parametrize(("mutant", "name", "verdict"), MUTANTS, ids=range(1, len(MUTANTS) + 1))
def test_a_guard_that_is_off_is_seen(mutant: Mutant, name: str, verdict: str) -> None:
    assert SCENARIOS[name]() == []
    with pytest.MonkeyPatch.context() as patch:
        mutant(patch)
        assert verdict in SCENARIOS[name]()


def lazy(name: str) -> Mutant:
    """What this function decides need not wait for the disk."""

    def mutant(patch: Patch) -> None:
        real = getattr(settle, name)
        patch.setattr(settle, name, lambda *a, **b: replace(real(*a, **b), lazy=True))

    return mutant


@pytest.mark.timeout(60)
@pytest.mark.parametrize(
    "mutant",
    [
        says(settle, "costs_a_look_up", answer=True),
        *(lazy(name) for name in ("report", "looked", "outside")),
    ],
    ids=["any finding", "any report", "a look-up", "an event"],
)
def test_the_model_finds_a_settlement_that_may_not_be_lazy(mutant: Mutant) -> None:
    looks = settings(
        max_examples=500, stateful_step_count=40, derandomize=True, database=None,
        phases=[Phase.generate], deadline=None, suppress_health_check=list(HealthCheck),
    )  # fmt: skip
    with pytest.MonkeyPatch.context() as patch:
        mutant(patch)
        with pytest.raises(AssertionError, match=r"lazy, and"):
            run_state_machine_as_test(Core, settings=looks)


@pytest.mark.timeout(60)
@pytest.mark.parametrize(
    "mutant",
    [
        leads(Input.EXPIRED, State.PENDING),
        leads(Input.UNKNOWN, State.PENDING),
    ],
    ids=["lease", "unclassified"],
)
def test_the_model_finds_a_guard_that_is_off_by_itself(mutant: Mutant) -> None:
    looks = settings(
        max_examples=2_000, stateful_step_count=40, derandomize=True, database=None,
        phases=[Phase.generate], deadline=None, suppress_health_check=list(HealthCheck),
    )  # fmt: skip
    with pytest.MonkeyPatch.context() as patch:
        mutant(patch)
        with pytest.raises(AssertionError, match=r"it happened"):
            run_state_machine_as_test(Core, settings=looks)

"""The 22 ways in which targets and clients make two of one, each with the tests that show what is
done about it. Those that nothing else shows stand below, by number."""

from __future__ import annotations

import ast
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from ascertain import Done, NotDone, NotDoneKind, State, Unknown
from ascertain.contracts import catalogue
from ascertain.core.advice import classes
from ascertain.core.contract import Class, load, terms
from ascertain.core.levels import acceptable, accepted
from ascertain.core.model import SECOND, Absent, Accepted, Reason, WaitingOn
from ascertain.core.reconcile import Do
from core.driver import LEASE, Ledger
from core.scenarios import LATE, idempotent, identified, lost
from shop import Shop

ROOT = Path(__file__).parents[2]
HERE = "tests/contracts/test_hazards.py"
ALL = "tests/contracts/test_enumeration.py"
ENUMERATED = f"{ALL}::test_nothing_forbidden_follows_an_unknown_outcome"
ABSENCE = f"{ALL}::test_an_absence_counts_only_if_it_was_earned_and_always_then"
VERSIONS = "tests/runtime/test_versions.py"

HAZARDS: dict[int, tuple[str, tuple[str, ...]]] = {
    1: ("a request lands after a look-up that found nothing", (
        "tests/peers/test_peers.py::test_7_killed_and_the_target_commits_late", ABSENCE)),
    2: ("the look-up's index lags", (
        "tests/cases/test_br_response.py::test_br_031_a_search_that_lags", ABSENCE)),
    3: ("a stored failure is answered again", (
        "tests/cases/test_br_response.py::test_br_052_a_stored_failure_needs_a_new_key",
        f"{HERE}::test_h03_a_failure_that_is_answered_again_is_no_proof_by_itself")),
    4: ("a corrected input under the old key", (
        f"{HERE}::test_h04_a_corrected_input_has_a_key_of_its_own",)),
    5: ("the target has forgotten the key", (
        "tests/cases/test_br_response.py::test_br_014_re_runs_beyond_the_window",
        "tests/core/test_reconcile.py::test_the_class_decays_when_the_window_ends", ENUMERATED)),
    6: ("the window is not stated, or stated twice", (
        f"{HERE}::test_h06_a_window_that_nobody_states_protects_nothing",
        f"{HERE}::test_h06_of_two_windows_the_shorter_counts")),
    7: ("the same key with other parameters", (
        "tests/cases/test_br_response.py::test_br_060_the_body_is_the_same_byte_for_byte",
        "tests/targets/test_answers.py::test_an_answer",
        f"{HERE}::test_h07_a_key_that_is_known_with_other_parameters_ends_with_a_person")),
    8: ("the target never sees the key", (
        "tests/targets/test_answers.py::test_evidence_keeps_what_helps",
        f"{HERE}::test_h08_a_key_that_a_proxy_strips_is_found_by_the_second_reference")),
    9: ("another account, region or address", (
        "tests/core/test_scenarios.py::test_scenario",
        "tests/runtime/test_approval.py::test_an_approval_of_another_scope_does_not_hold",
        ENUMERATED)),
    10: ("two workers at once", (
        "tests/peers/test_peers.py::test_4b_four_processes",
        "tests/cases/test_br_concurrent.py::test_br_027_two_parallel_runs_reach_the_write")),
    11: ("the first request is still at work", (
        f"{HERE}::test_h11_busy_means_the_same_key_later",
        f"{HERE}::test_h11_busy_to_the_end_is_a_persons")),
    12: ("it exists already, and is somebody else's", (
        "tests/targets/test_template.py::test_what_exists_already_is_compared_with_our_input",
        "tests/runtime/test_bad_input.py::test_a_foreign_object_goes_to_a_person")),
    13: ("a replay overwrites what a person changed", (
        f"{HERE}::test_h13_what_a_person_edited_meanwhile_is_not_overwritten",
        f"{VERSIONS}::test_an_overwriting_version_waits_until_the_older_can_land_no_more")),
    14: ("made, and then archived or deleted", (
        "tests/core/test_absence.py::test_without_one_condition_it_proves_nothing", ABSENCE)),
    15: ("a look-up without permission says that there is nothing", (
        "tests/runtime/test_bad_input.py::test_a_look_up_without_its_control_proves_nothing",
        "tests/cases/test_br_response.py::test_br_035_a_failing_look_up_is_not_absence")),
    16: ("200 with an error in it; accepted and failed later", (
        "tests/contracts/test_catalogue.py::test_what_an_answer_means",
        "tests/cases/test_br_response.py::test_br_025_a_job_that_is_accepted_and_runs_on",
        f"{HERE}::test_h16_what_was_accepted_and_failed_is_not_sent_again")),
    17: ("retries below us", (
        "tests/targets/test_hidden_retries.py::test_exactly_one_request_is_sent",
        "tests/cases/test_br_response.py::test_br_090_no_layer_below_repeats_a_create")),
    18: ("two deliberate ones look alike to the target", (
        f"{HERE}::test_h18_what_merges_by_content_protects_nothing",)),
    19: ("a batch is done in part", (
        "tests/cases/test_br_scope.py::test_br_046_one_bad_message_of_ten",
        "tests/runtime/test_runs.py::test_a_bulk_action_reports_each_item")),
    20: ("the look-up finds several", (
        "tests/core/test_settle.py::test_several_are_never_picked_from",
        "tests/targets/test_template.py::test_two_of_a_kind")),
    21: ("undoing does not undo", (
        f"{VERSIONS}::test_undoing_is_an_operation_of_its_own",
        f"{VERSIONS}::test_nothing_is_undone_while_a_request_may_still_land")),
    22: ("a redirect or a reset repeats the request", (
        "tests/targets/test_hidden_retries.py::test_exactly_one_request_is_sent",
        "tests/cases/test_br_response.py::test_br_092_a_reset_on_a_connection_sends_nothing_again",
    )),
}  # fmt: skip


@cache
def names_in(file: str) -> frozenset[str]:
    tree = ast.parse((ROOT / file).read_text("utf-8"))
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef)
    return frozenset(n.name for n in ast.walk(tree) if isinstance(n, kinds))


def test_every_hazard_names_tests_that_exist() -> None:
    assert list(HAZARDS) == list(range(1, 23))
    for number, (_, named) in HAZARDS.items():
        assert named, f"H{number}"
        for node in named:
            file, _, name = node.partition("::")
            assert name in names_in(file), f"H{number}: {node}"


def test_every_test_by_number_stands_in_the_table() -> None:
    own = {n for n in names_in(HERE) if n.startswith("test_h")}
    named = {node for _, nodes in HAZARDS.values() for node in nodes}
    assert own == {node.partition("::")[2] for node in named if node.startswith(HERE)}


# --- those that nothing else shows ---------------------------------------------------------


def test_h03_a_failure_that_is_answered_again_is_no_proof_by_itself() -> None:
    book = lost(idempotent(can_look_up=True, lag=30))
    for _ in range(4):  # the target replays a 500 without any mark
        book.wait(60).report(book.claim(Do.REPLAY), Unknown("HTTP 500"))
    assert (book.status.state, book.status.epoch) == (State.UNKNOWN, 1)
    assert book.step.do is Do.LOOK_UP  # found out, not tried under a new key
    book.wait(LATE + 30 + 1).look(Absent())
    assert book.status.state in (State.PENDING, State.NOT_DONE)
    assert book.status.reason in (Reason.NONE, Reason.GAVE_UP)


def test_h04_a_corrected_input_has_a_key_of_its_own(make_shop: Callable[..., Shop]) -> None:
    shop = make_shop("idempotent")
    shop.target.script("stored:invalid")
    first = shop.order.submit(order=1, note="wrong", wait=0)
    assert first.state is State.NOT_DONE
    fixed = shop.order.using(supersedes=first, reason="corrected")
    second = fixed.submit(order="1/v2", note="right", wait=0)
    assert second.done
    assert second.target_key != first.target_key
    assert shop.effects(second) == 1


@pytest.mark.parametrize("ident", ["square.payments.create", "klaviyo.events",
                                   "salesforce.uiapi.records"])  # fmt: skip
def test_h06_a_window_that_nobody_states_protects_nothing(ident: str) -> None:
    whole = catalogue.find(ident)
    c = accepted(whole, acceptable(whole))
    assert c.repeat.keeps is None
    assert classes(c)[0] not in (Class.IDEMPOTENT, Class.IDENTIFIED)
    assumed = terms(c, keeps="24h", late="30s")
    assert "keeps" in assumed.assumed  # so it is printed on every receipt


def test_h06_of_two_windows_the_shorter_counts() -> None:
    brevo = catalogue.find("brevo.smtp.email")
    assert brevo.repeat.keeps == "15m"
    assert {"15 min", "30 min"} <= {
        n for n in ("15 min", "30 min") for s in brevo.sources if n in s
    }
    assert terms(brevo, keeps="30m").keeps == 900 * SECOND
    assert terms(brevo, keeps="5m").keeps == 300 * SECOND


@pytest.mark.parametrize("status", [400, 409, 422])
def test_h07_a_key_that_is_known_with_other_parameters_ends_with_a_person(status: int) -> None:
    book = lost(idempotent())
    while book.step.do is Do.REPLAY:
        said = f"HTTP {status}: the target knows our key with another content"
        book.wait(60).report(book.claim(Do.REPLAY), Unknown(said))
    assert (book.status.epoch, book.status.target_key) == (1, "key-1")
    assert book.status.waiting_on is WaitingOn.REVIEW


def test_h08_a_key_that_a_proxy_strips_is_found_by_the_second_reference() -> None:
    """Nothing can know it beforehand but a self-test; what it did is found and shown."""
    book = Ledger(idempotent()).submit()
    first = book.execute()
    book.lost(first).report(book.claim(Do.REPLAY), Done(ref="made-2"))
    book.report(first, Done(ref="made-1"))  # the first one's answer arrives after all
    assert book.refs == ["made-2", "made-1"]
    assert book.open_reviews == ["duplicate"]


def test_h11_busy_means_the_same_key_later() -> None:
    book = lost(idempotent())
    book.report(book.claim(Do.REPLAY), Unknown("HTTP 409: still working on it", retry_after=3))
    assert book.status.due_at == book.now + 3 * SECOND
    assert (book.step.do, book.status.epoch) == (Do.REPLAY, 1)
    book.wait(3).report(book.claim(Do.REPLAY), Done(ref="r"))
    assert (book.status.state, book.status.target_key) == (State.DONE, "key-1")


def test_h11_busy_to_the_end_is_a_persons() -> None:
    book = lost(idempotent())
    while book.step.do is Do.REPLAY:
        book.wait(3).report(book.claim(Do.REPLAY), Unknown("busy", retry_after=3))
    assert (book.status.state, book.status.waiting_on) == (State.UNKNOWN, WaitingOn.REVIEW)
    assert book.status.epoch == 1


def test_h13_what_a_person_edited_meanwhile_is_not_overwritten() -> None:
    book = lost(identified(answer="overwrite", can_look_up=True, lag=0))
    book.wait(LATE + 1)
    assert book.step.do is Do.LOOK_UP  # never sent again before it was looked for
    book.look(Done(ref="edited by a person"))
    assert (book.status.state, book.status.attempts) == (State.DONE, 1)


def test_h16_what_was_accepted_and_failed_is_not_sent_again() -> None:
    book = Ledger(idempotent()).submit()
    book.report(book.execute(), Accepted(ref="job-1"))
    book.event(NotDone(NotDoneKind.REJECTED, "the job failed"))
    assert book.status.reason is Reason.FAILED_AFTER_ACCEPTANCE
    assert book.wait(LEASE).step.do is Do.NOTHING


def test_h18_what_merges_by_content_protects_nothing() -> None:
    merging = [c for c in catalogue.shipped().values() if c.key.kind == "content"]
    assert {c.id for c in merging} == {"intercom.events", "wecom.message.send"}
    own = load({"id": "a.b", "key": {"at": "body:text", "kind": "content"},
                "repeat": {"answer": "absorbed", "keeps": "1h"}})  # fmt: skip
    for c in (*merging, own):
        whole: Any = replace(accepted(c, acceptable(c)), lookup=None)
        assert classes(whole) == (Class.OPAQUE, Class.OPAQUE)

"""Every cell of the table, written down a second time by hand from the laws."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from ascertain.core.errors import Refused
from ascertain.core.machine import PROVEN, TABLE, Input, is_settled, move
from ascertain.core.model import Kind, Reason, State, Status, WaitingOn

P, R, U, A, D, N = State
CLAIMS = (Input.EXECUTE, Input.REPLAY, Input.REDO, Input.FORCE)

# input: where it leads from which state. What is not here is refused.
EXPECTED: dict[Input, dict[State, State]] = {
    # Claims: an effect attempt starts from pending, or, protected, from unknown; nowhere else.
    Input.EXECUTE: {P: R},
    Input.REPLAY: {U: R},
    Input.REDO: {U: R},
    Input.FORCE: {U: R},
    Input.LOOK_UP: {P: P, U: U, A: A, D: D, N: N},  # law 14: it only looks
    Input.RELEASE: {P: P, R: P, U: U, A: A, D: D, N: N},  # law 2: back to where it was
    # Reports of the attempt that holds the lease.
    Input.DONE: {R: D},
    Input.ACCEPTED: {R: A},
    Input.UNKNOWN: {R: U},
    Input.EXPIRED: {R: U},  # law 3: never pending
    Input.NOT_PROVEN: {R: U, U: U},  # law 7
    Input.KNOWN_BEFORE: {R: D},  # law 8
    # All attempts are proven not done.
    Input.LATER: {R: P, U: P},
    Input.INVALID: {R: N, U: N},
    Input.UNAUTHORIZED: {R: N, U: N},
    Input.REJECTED: {R: N, U: N},
    Input.GAVE_UP: {P: N, R: N, U: N},
    # Look-ups: finding is proof everywhere; absence leads on only out of unknown (laws 5, 14).
    Input.FOUND: {P: D, R: R, U: D, A: D, D: D, N: D},
    Input.FOUND_ACCEPTED: {P: A, R: R, U: A, A: A, D: D, N: A},
    Input.ABSENT: {U: P},
    Input.NOT_EARNED: {P: P, R: R, U: U, A: A, D: D, N: N},
    Input.SEVERAL: {P: U, R: R, U: U, A: A, D: D, N: U},
    # Late truths are kept in every state (law 8); the lease of another is respected.
    Input.LATE_DONE: {P: D, R: R, U: D, A: D, D: D, N: D},
    Input.LATE_ACCEPTED: {P: A, R: R, U: A, A: A, D: D, N: A},
    Input.LATE_OTHER: {P: P, R: R, U: U, A: A, D: D, N: N},
    Input.FAILED: {A: N},
    # People.
    Input.APPROVE: {P: P, U: U},
    Input.ASK: {P: P, U: U},
    Input.REJECT: {P: N},
    Input.RESPOND: {P: N},
    Input.THERE: {P: D, U: D, A: D, D: D, N: D},
    Input.NOT_THERE: {U: P},
    Input.RISK: {U: U},  # it stays unknown
    Input.CANNOT_TELL: {U: U, A: A},
    Input.LEAVE: {U: N, A: N, N: N},
    Input.REVIEW: {U: U, A: A},
    Input.RENEW: {U: U, N: P},
    # Versions and the store.
    Input.SUPERSEDE: {P: N, N: N},
    Input.HOLD: {P: P},
    Input.RESTORED: {P: U, R: U, U: U, A: U, D: D, N: U},
}
WAITS = {
    **dict.fromkeys(
        [*CLAIMS, Input.UNKNOWN, Input.EXPIRED, Input.NOT_PROVEN, Input.LATER, Input.ABSENT,
         Input.APPROVE, Input.NOT_THERE, Input.RISK, Input.RENEW, Input.RESTORED],
        WaitingOn.CLOCK,
    ),
    **dict.fromkeys(
        [Input.DONE, Input.KNOWN_BEFORE, Input.FOUND, Input.LATE_DONE, Input.REJECT, Input.THERE,
         Input.LEAVE, Input.SUPERSEDE],
        WaitingOn.NOTHING,
    ),
    **dict.fromkeys(
        [Input.ACCEPTED, Input.FOUND_ACCEPTED, Input.LATE_ACCEPTED], WaitingOn.TARGET
    ),
    **dict.fromkeys([Input.SEVERAL, Input.CANNOT_TELL, Input.REVIEW], WaitingOn.REVIEW),
    **dict.fromkeys(
        [Input.INVALID, Input.REJECTED, Input.GAVE_UP, Input.FAILED, Input.RESPOND],
        WaitingOn.INPUT,
    ),
    Input.UNAUTHORIZED: WaitingOn.AUTHORIZATION,
    Input.ASK: WaitingOn.APPROVAL,
    **dict.fromkeys(
        [Input.LOOK_UP, Input.RELEASE, Input.NOT_EARNED, Input.LATE_OTHER, Input.HOLD], None
    ),
}  # fmt: skip
CELLS = [(state, given) for state in State for given in Input]
EVIDENCE_OR_PERSON = {
    Input.FOUND, Input.FOUND_ACCEPTED, Input.ABSENT, Input.LATE_DONE, Input.LATE_ACCEPTED,
    Input.LATER, Input.INVALID, Input.UNAUTHORIZED, Input.REJECTED, Input.GAVE_UP,
    Input.THERE, Input.NOT_THERE, Input.LEAVE,
}  # fmt: skip


def status(state: State, **more: Any) -> Status:
    given: dict[str, Any] = {"waiting_on": WaitingOn.APPROVAL, **more}
    if state is N and "reason" not in more:
        given["reason"] = Reason.UNAUTHORIZED
    return Status(operation="op", namespace="n", action="a", state=state, **given)


@pytest.mark.parametrize(("state", "given"), CELLS, ids=[f"{s}-{g}" for s, g in CELLS])
def test_a_cell_leads_where_the_laws_say_or_is_refused(state: State, given: Input) -> None:
    before = status(state)
    if state not in EXPECTED[given]:
        with pytest.raises(Refused, match=f"op .*{state}.*{given}"):
            move(before, given)
        return
    back = P if given is Input.RELEASE else None
    after = move(before, given, back=back)
    assert after.state is EXPECTED[given][state]
    waits = WAITS[given]
    assert after.waiting_on is (before.waiting_on if waits is None else waits)
    untouched = replace(
        after, state=before.state, reason=before.reason, waiting_on=before.waiting_on
    )
    assert untouched == before


def test_every_input_and_every_law_is_in_the_table() -> None:
    assert {given for _, given in TABLE} == set(Input) == set(EXPECTED)
    assert {law for cell in TABLE.values() for law in cell.laws} <= set(range(1, 22))


def test_effect_attempts_start_only_from_pending_or_unknown() -> None:
    starts = {state for (state, given), cell in TABLE.items() if cell.to is R and state is not R}
    assert starts == {P, U}
    assert {s for s, given in TABLE if given is Input.EXECUTE} == {P}


def test_only_evidence_or_a_person_leads_out_of_unknown() -> None:
    out = {given for (s, given), cell in TABLE.items() if s is U and cell.to not in (U, None)}
    assert out - set(CLAIMS) == EVIDENCE_OR_PERSON


def test_a_silent_end_never_gives_pending() -> None:
    for given in (Input.EXPIRED, Input.UNKNOWN, Input.NOT_PROVEN):
        assert TABLE[R, given].to is U


def test_done_is_never_left() -> None:
    assert {cell.to for (state, _), cell in TABLE.items() if state is D} <= {D, None}


def test_absence_moves_nothing_but_unknown() -> None:
    assert [s for s, given in TABLE if given is Input.ABSENT] == [U]


def test_a_released_attempt_goes_back_to_where_it_was_taken_from() -> None:
    assert move(status(R), Input.RELEASE, back=U).state is U
    assert move(status(R), Input.RELEASE, back=P).state is P


@pytest.mark.parametrize("reason", list(Reason))
def test_a_reason_says_what_may_follow(reason: Reason) -> None:
    stopped = status(N, reason=reason)
    expected = {
        Input.SUPERSEDE: reason in PROVEN,
        Input.RENEW: reason is Reason.UNAUTHORIZED,
        Input.RESTORED: reason is not Reason.SUPERSEDED,
        Input.LATE_DONE: True,
    }
    for given, possible in expected.items():
        if possible:
            move(stopped, given)
        else:
            with pytest.raises(Refused, match=f"{reason}.*{given}"):
                move(stopped, given)


@pytest.mark.parametrize("reason", sorted(PROVEN))
def test_what_is_proven_stays_proven_when_a_person_leaves_it(reason: Reason) -> None:
    assert move(status(N, reason=reason), Input.LEAVE).reason is reason


def test_reasons_come_and_go_with_the_state() -> None:
    assert move(status(U), Input.LEAVE).reason is Reason.LEFT
    assert move(status(A), Input.FAILED).reason is Reason.FAILED_AFTER_ACCEPTANCE
    assert move(status(P), Input.SUPERSEDE).reason is Reason.SUPERSEDED
    assert move(status(N, reason=Reason.LEFT), Input.LATE_DONE).reason is Reason.NONE


def test_left_is_not_proof() -> None:
    assert Reason.LEFT not in PROVEN
    assert Reason.FAILED_AFTER_ACCEPTANCE not in PROVEN


@pytest.mark.parametrize(
    ("made", "settled"),
    [
        (status(D, waiting_on=WaitingOn.NOTHING), True),
        (status(D, verify=True), False),
        (status(D, token=7, kind=Kind.LOOK_UP), False),
        (status(N, waiting_on=WaitingOn.NOTHING), True),
        (status(N, waiting_on=WaitingOn.INPUT), False),
        (status(P), False),
        (status(R), False),
        (status(U), False),
        (status(A), False),
    ],
    ids=range(9),
)
def test_settled_means_that_nobody_is_expected_to_act(made: Status, settled: bool) -> None:
    assert is_settled(made) is settled

"""The core against targets of every protection class, with everything that can go wrong.

Attempts crash, freeze and report late or twice; requests land as late as the contract allows;
keys are forgotten; look-ups lag; the store's clock steps and the store is restored. At most one
effect, nobody's truth lost, nothing unknown left lying.
"""

from __future__ import annotations

import copy

import msgspec
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)
from msgspec.structs import replace

from ascertain.core.contract import Bounds, Terms
from ascertain.core.machine import PROVEN, is_settled
from ascertain.core.model import (
    SECOND,
    Absent,
    Accepted,
    Attempt,
    Done,
    Kind,
    NotDone,
    NotDoneKind,
    Several,
    State,
    Unknown,
)
from ascertain.core.people import proven_absent
from ascertain.core.reconcile import Do, epochs
from core.driver import Ledger, contract, declared
from core.target import NEVER, Sent, Target

LATE, LAG, KEEPS = 20, 30, 210
BOUNDS = Bounds(
    lease=60 * SECOND, attempts=4, lookups=6, total=3600 * SECOND, longest_delay=30 * SECOND,
    extensions=2,
)  # fmt: skip
ACTIONS = (Do.EXECUTE, Do.REPLAY, Do.REDO, Do.FORCE)
REQUEST = {"at": "header:Idempotency-Key", "kind": "request"}
RESOURCE = {"at": "body:id", "kind": "resource"}
CLASSES = {
    "idempotent": (REQUEST, {"answer": "replay", "keeps": f"{KEEPS}s", "atomic": True}),
    "idempotent, races": (REQUEST, {"answer": "replay", "keeps": f"{KEEPS}s"}),
    "identified": (RESOURCE, {"answer": "exists", "keeps": "forever", "atomic": True}),
    "identified, races": (RESOURCE, {"answer": "exists", "keeps": "forever"}),
    "unprotected": (None, None),
}


def made(name: str, *, looks: bool, lag: int, hard: bool) -> tuple[Terms, Target]:
    key, repeat = CLASSES[name]
    parts = {"late": {"max": f"{LATE}s"}}
    if key is not None:
        parts |= {"key": key, "repeat": repeat}
    if looks:
        parts["lookup"] = {"by": "meta", "lag": f"{lag}s"}
    c = msgspec.convert(msgspec.to_builtins(contract()) | parts, type(contract()))
    kind = "ignores" if key is None else "remembers" if key is REQUEST else "identity"
    target = Target(
        kind, atomic=bool(repeat and repeat.get("atomic")), lag=lag * SECOND,
        keeps=KEEPS * SECOND if key is REQUEST else NEVER,
    )  # fmt: skip
    terms = declared(c, bounds=BOUNDS, same_bytes=True, can_look_up=looks, hard=hard)
    return replace(terms, lazy=True), target


class Core(RuleBasedStateMachine):
    @initialize(
        name=st.sampled_from(sorted(CLASSES)),
        looks=st.booleans(),
        lag=st.sampled_from([0, LAG]),
        hard=st.sampled_from([True, True, True, False]),
    )
    def begin(self, name: str, *, looks: bool, lag: int, hard: bool) -> None:
        terms, self.target = made(name, looks=looks, lag=lag, hard=hard)
        self.name, self.hard = name, hard
        self.real = 1_000_000 * SECOND
        self.ledger = Ledger(terms, now=1_000_000).submit()
        self.tickets: dict[int, tuple[Attempt, Sent]] = {}
        self.copy: Ledger | None = None
        self.risk = False
        self.steps = 0

    # --- time ---

    def let(self, span: int) -> None:
        self.real += span
        self.ledger.now += span
        self.target.pass_time(self.real)

    @rule(seconds=st.sampled_from([1, 3, 10, 25, 61, 130]))
    def wait(self, seconds: int) -> None:
        self.let(seconds * SECOND)

    @precondition(lambda self: self.steps < 2)
    @rule(seconds=st.sampled_from([-500, -50, 50, 500]))
    def the_clock_steps(self, seconds: int) -> None:
        self.steps += 1
        before = self.ledger.now
        self.ledger.now += seconds * SECOND
        # A second step counts like the first; the store remembers the latest reading.
        self.ledger.stepped_at = max(before, self.ledger.now, self.ledger.stepped_at or 0)

    # --- work ---

    @precondition(lambda self: self.ledger.status.due_at is not None)
    @rule(
        fate=st.sampled_from(["creates", "creates", "creates", "refused", "stored", "never"]),
        send=st.sampled_from([0.0, 0.9, 1.0]),
        travel=st.sampled_from([0.0, 0.3, 1.0]),
        work=st.sampled_from([0.0, 1.0]),
        shown=st.sampled_from(["all", "all", "all", "error", "part", "no control"]),
        freeze=st.booleans(),
    )
    def next_step(
        self, *, fate: str, send: float, travel: float, work: float, shown: str, freeze: bool
    ) -> None:
        """Wait until somebody is due, and let him do it."""
        ledger = self.ledger
        self.let(max(ledger.status.due_at - ledger.now, 0))
        if ledger.status.token is not None:
            ledger.expire()
            return
        step = ledger.step
        if step.at > ledger.now or step.do not in (*ACTIONS, Do.LOOK_UP):
            ledger.advance()
        elif step.do is Do.LOOK_UP:
            look = ledger.claim(step.do)
            if freeze:  # it never reports; its lease runs out
                return
            self.shows(look, shown)
        else:
            attempt = ledger.claim(step.do)
            span = (BOUNDS.lease if self.hard else 900 * SECOND) * send
            sent = self.real + int(span)
            arrives = sent + int(LATE * SECOND * travel)
            lands = arrives + int((sent + LATE * SECOND - arrives) * work)
            if fate == "never":
                sent = arrives = lands = NEVER
            request = Sent(ledger.status.target_key, sent, arrives, lands, fate)
            self.tickets[attempt.token] = (attempt, self.target.send(request))
            self.target.pass_time(self.real)

    def shows(self, look: Attempt, shown: str) -> None:
        known = {f"key-{epoch}" for epoch in epochs(self.ledger.status, self.ledger.world)}
        refs = self.target.seen(self.real, known)
        finding = Several(refs) if len(refs) > 1 else Done(refs[0]) if refs else Absent()
        if shown == "error":
            finding = Unknown("503")
        elif shown == "part" and not refs:
            finding = Absent(complete=False)
        self.ledger.looked(look, finding, control="missing" if shown == "no control" else "found")

    @precondition(lambda self: self.tickets)
    @rule(data=st.data(), how=st.sampled_from(["answer", "answer", "lost", "accepted", "release"]))
    def an_attempt_reports(self, data: st.DataObject, how: str) -> None:
        """Whenever it wants: in time, after its lease, again, or after a restore."""
        token = data.draw(st.sampled_from(sorted(self.tickets)))
        attempt, request = self.tickets[token]
        holds = self.ledger.status.token == token
        if how == "release" and holds and request.sent > self.real:
            request.state = "cancelled"
            del self.tickets[token]
            self.ledger.release()
            return
        self.ledger.report(attempt, self.finding(attempt, request, how))

    def finding(self, attempt: Attempt, request: Sent, how: str) -> object:
        kinds = {"refused": NotDoneKind.THROTTLED, "stored": NotDoneKind.INVALID}
        if how == "answer" and request.state == "failed":
            stored = request.fate != "refused" and self.target.kind == "remembers"
            stored = stored and self.target.memory.get(request.key, (0, ""))[1] == "failed"
            kind = kinds.get(request.fate, NotDoneKind.INVALID)
            return NotDone(kind, stored=stored)
        if how == "answer" and request.fate == "never":
            return NotDone(NotDoneKind.TRANSIENT, "nothing was sent")
        ref = request.ref if request.state == "landed" else None
        if request.state == "absorbed":
            ref = self.target.ref_of(request.key)
        if how in ("answer", "accepted") and ref is not None:
            return Done(ref) if how == "answer" else Accepted(ref)
        if attempt.hard and request.sent > self.real:
            request.state = "cancelled"  # its connection is closed: it sends no more
        return Unknown("timeout")

    @precondition(lambda self: self.target.effects)
    @rule(data=st.data())
    def the_target_says_so(self, data: st.DataObject) -> None:
        _, _, ref = data.draw(st.sampled_from(self.target.effects))
        self.ledger.event(Done(ref), report=f"event-{self.ledger.stamps}")

    # --- people and the store ---

    @precondition(lambda self: "unknown" in self.ledger.open_reviews)
    @rule(answer=st.sampled_from(["look", "look", "risk", "cannot_tell"]))
    def a_person_decides(self, answer: str) -> None:
        ledger, effects = self.ledger, self.target.effects
        if ledger.status.token is not None or ledger.status.state is not State.UNKNOWN:
            return
        if answer == "cannot_tell":
            ledger.decide("cannot_tell")
        elif effects:
            ledger.decide("there", ref=effects[0][2])
        elif proven_absent(ledger.case, ledger.world):
            ledger.decide("not_there")
        elif answer == "risk":
            self.risk = True
            ledger.decide("not_there", without_proof=True)

    @precondition(lambda self: self.copy is None and not self.ledger.restored_once)
    @rule()
    def somebody_copies_the_store(self) -> None:
        self.copy = copy.deepcopy(self.ledger)

    @precondition(lambda self: self.copy is not None and not is_settled(self.copy.status))
    @rule()
    def the_store_is_restored_from_the_copy(self) -> None:
        lost, self.ledger, self.copy = self.ledger, self.copy, None
        gap = self.ledger.now
        self.ledger.stepped_at, self.ledger.stamps = lost.stepped_at, lost.stamps
        # The store's clock is not part of the copy.
        self.ledger.now = lost.now
        self.ledger.restore(gap // SECOND)

    # --- what holds ---

    @invariant()
    def the_promise_holds(self) -> None:
        """All in one, since hypothesis prints each one after each step."""
        effects, status = self.target.effects, self.ledger.status
        if self.name == "identified" or not self.risk:
            assert len(effects) <= 1, f"it happened {len(effects)} times: {effects}"
        proven = status.state is State.NOT_DONE and status.reason in PROVEN
        if proven or status.state is State.PENDING:
            assert not effects, f"{status.state} {status.reason}, and it happened"
        if status.state is State.DONE:
            assert effects, "done, and nothing is there"
        assert set(self.ledger.refs) <= {ref for _, _, ref in effects}
        for attempt in self.ledger.attempts.values():
            if attempt.kind is not Kind.LOOK_UP and attempt.worker != "restored":
                assert attempt.taken_from in (State.PENDING, State.UNKNOWN)


@pytest.mark.timeout(60)
def test_whatever_goes_wrong_there_is_at_most_one_effect_and_no_truth_is_lost() -> None:
    run_state_machine_as_test(Core, settings=settings(stateful_step_count=40))

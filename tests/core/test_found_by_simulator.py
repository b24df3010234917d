"""What the simulator found, each as a scenario that failed before it was put right."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from ascertain import Ledger, NotDone, NotDoneKind, State, WaitingOn
from ascertain.core import people
from ascertain.core.contract import Terms
from ascertain.core.model import Absent, Approval, Done, Unknown
from ascertain.core.reconcile import Do, LookReport
from ascertain.runtime import freezing
from ascertain.runtime.looking import looking
from ascertain.store.sqlite import SqliteStore
from ascertain.testing import FakeClock
from core.driver import Ledger as Book
from core.driver import contract, declared
from core.scenarios import idempotent, lost, opaque


def repeatable() -> Terms:
    return declared(contract("shop.render", harm="none"))


def report_of(answers: dict[str, Any], control: str | None = "control") -> LookReport:
    steps, answer = looking([(1, "own")], control, "invented"), None
    while True:
        try:
            answer = answers[steps.send(answer)]
        except StopIteration as end:
            return end.value


# --- law 5: whether a look-up heeds the key must be answered ---


def test_nothing_counts_where_the_key_that_was_never_sent_gave_no_answer() -> None:
    for own in (Absent(), Done("of-somebody-else")):
        found = report_of({"own": own, "invented": Unknown("503"), "control": Done("c")})
        assert isinstance(found.finding, Unknown)
        assert not found.invented_found  # it is asked again, not handed to a person


def test_an_unread_page_for_the_key_that_was_never_sent_is_an_unread_page() -> None:
    cut = Absent(complete=False)
    found = report_of({"own": Absent(), "invented": cut, "control": Done("c")}).finding
    assert isinstance(found, Absent)
    assert not found.complete


# --- law 7: a stored outcome is that of every attempt under its key, for good ---


def test_a_stored_failure_still_speaks_for_its_key_in_the_next_epoch() -> None:
    book = lost(idempotent())
    book.report(book.claim(Do.REPLAY), NotDone(NotDoneKind.TRANSIENT, stored=True))
    book.now = book.status.due_at or 0
    second = book.execute()
    assert second.epoch == 2
    book.report(second, NotDone(NotDoneKind.THROTTLED, "429"))
    assert book.status.state is State.PENDING


# --- law 8: where a repeat is no harm, a second is no duplicate ---


def test_a_second_of_what_may_be_repeated_needs_nobody() -> None:
    book = Book(repeatable()).submit()
    first = book.execute()
    book.lost(first)
    book.report(book.claim(Do.REDO), Done("b")).report(first, Done("a"))
    assert (book.open_reviews, book.refs) == ([], ["b", "a"])
    book = Book(repeatable()).submit()
    first = book.execute()
    book.lost(first)
    second = book.claim(Do.REDO)
    book.report(first, Done("a")).lost(second)
    assert (book.status.state, book.open_reviews) == (State.DONE, [])


# --- law 11: who must consent is asked, never waited for in silence ---


def approval(digest: str, state: str = "asked", ident: str = "1") -> Approval:
    return Approval(
        id=ident, operation="op", namespace="n", role="editor", digest=digest, state=state,
        asked_at=0,
    )  # fmt: skip


def test_a_stale_consent_is_asked_for_again() -> None:
    book = Book(opaque(approval=("editor",))).submit()
    stale = approval("old", "approved")
    book.apply(people.approve(
        book.case, [approval("old")], book.world, book.stamp(), role="editor", digest="old",
        by="eva", consent=True,
    ))  # fmt: skip
    asked = people.ask(
        book.case, [stale], book.world, book.stamp(), digest="new", until=book.now + 1
    )
    book.apply(asked)
    assert (book.status.waiting_on, book.status.due_at) == (WaitingOn.APPROVAL, None)
    [again] = asked.approvals
    assert (again.role, again.digest) == ("editor", "new")
    book.apply(people.approve(
        book.case, [stale, again], book.world, book.stamp(), role="editor", digest="new",
        by="eva", consent=True,
    ))  # fmt: skip
    assert book.step.do is Do.EXECUTE


def test_what_a_restore_made_unknown_can_be_approved() -> None:
    book = Book(opaque(approval=("editor",))).submit().restore(1000)
    book.decide("not_there", without_proof=True, why="nobody had approved it")
    before = [approval("d")]
    book.apply(people.ask(
        book.case, before, book.world, book.stamp(), digest="d", until=book.now + 1
    ))  # fmt: skip
    assert (book.status.waiting_on, book.status.due_at) == (WaitingOn.APPROVAL, book.now + 1)
    book.apply(people.approve(
        book.case, before, book.world, book.stamp(), role="editor", digest="d", by="eva",
        consent=True,
    ))  # fmt: skip
    assert book.step.do is Do.FORCE


def shop() -> tuple[Ledger, FakeClock, Any]:
    clock = FakeClock()
    ledger = Ledger(SqliteStore(":memory:", clock=clock.wall), clock=clock, wait=0)

    @ledger.action("shop.order", key="{order}", owner="anna", approval=True, sends="own")
    def order(call: Any, *, order: str) -> Done:
        return Done(ref=order)

    return ledger, clock, order


def test_recovery_asks_for_the_consent_that_a_changed_scope_needs() -> None:
    ledger, _, order = shop()
    waits = order.enqueue(order="1")
    ledger.approve(waits, by="eva")
    d = order.definition
    d.terms = replace(d.terms, scope="another account")
    ledger.recover()
    assert ledger.get(waits).waiting_on is WaitingOn.APPROVAL
    assert ledger.get(waits).due_at is None
    assert freezing.roles(d.terms, ledger.case_of(waits.id).operation) == ("approver",)
    ledger.approve(waits, by="eva")
    ledger.recover()
    assert ledger.get(waits).state is State.DONE


# --- law 15: waiting for the version before costs less and less ---


def test_a_version_that_waits_long_is_looked_at_rarely() -> None:
    clock = FakeClock()
    ledger = Ledger(SqliteStore(":memory:", clock=clock.wall), clock=clock, wait=0)

    @ledger.action("shop.order", key="{order}", owner="anna", sends="own")
    def order(call: Any, *, order: str) -> Any:
        return Unknown("lost")

    first = order.submit(order="1")
    second = order.using(supersedes=first, reason="wrong colour").enqueue(order="2")
    waits = []
    for _ in range(100):
        ledger.recover()
        due = ledger.get(second).due_at
        assert due is not None
        waits.append(due - clock.wall())
        clock.sleep(max(waits[-1], 0) + 1)
    assert waits[0] <= 2 * 10**6
    assert waits[-1] > 60 * 10**6

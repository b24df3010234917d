"""What every store must do: subclass StoreSuite in a pytest module that has a fixture `store`.

    class TestMyStore(StoreSuite):
        pass

Each test takes an empty store. `testing.story.dump` of two stores that were told the same story is
equal.
"""

# ruff: noqa: PLR2004 - expected values are literals
from __future__ import annotations

from collections.abc import Callable

import msgspec

from ascertain.core.errors import StoreError
from ascertain.core.model import (
    SECOND,
    Approval,
    Control,
    Expected,
    FrozenRequest,
    Incarnation,
    Outcome,
    Reason,
    Run,
    State,
)
from ascertain.store.base import Filter, Store
from ascertain.testing.store_books import BooksSuite
from ascertain.testing.store_kept import KeptSuite
from ascertain.testing.story import ACTION, NAMESPACE, NOW, ODD, Maker, state, story, write


class StoreSuite(BooksSuite, KeptSuite):
    """The conformance suite; every test takes an empty store by the fixture `store`."""

    # --- new operations --------------------------------------------------------------------

    def test_a_new_operation_is_read_back_whole(self, store: Store) -> None:
        """Every field, odd characters included."""
        change = Maker().claim("lamp/de", title=ODD, input='{"a":"\\u0000"}')
        assert write(store, change) == [True]
        assert change.operation is not None
        [found] = store.by_keys(NAMESPACE, [(ACTION, "lamp/de")])
        assert found is not None
        assert (found.operation, found.status) == (change.operation, change.status)
        assert store.attempts(found.operation.id) == [change.attempt]

    def test_a_key_is_won_once_and_the_loser_sees_the_winner(self, store: Store) -> None:
        """Law 2: decided by the store in one step."""
        make = Maker()
        first, second = make.claim("lamp/de"), make.claim("lamp/de")
        assert write(store, first) == [True]
        [answer] = store.write([second])
        assert not answer.applied
        assert answer.current is not None
        assert answer.current.status == first.status
        assert store.attempts(second.status.operation) == []
        elsewhere = make.claim("lamp/de", namespace="other")
        assert write(store, elsewhere, make.claim("lamp/de", action="cms.other")) == [True, True]

    def test_a_key_twice_in_one_group_is_won_by_the_first(self, store: Store) -> None:
        """A group is written in its order."""
        make = Maker()
        group = [make.claim("a"), make.claim("b"), make.claim("a"), make.claim("c")]
        answers = store.write(group)
        assert [answer.applied for answer in answers] == [True, True, False, True]
        assert answers[2].current is not None
        assert answers[2].current.operation == group[0].operation

    def test_writing_the_same_change_again_changes_nothing(self, store: Store) -> None:
        """A lost COMMIT is written again; stamps tell."""
        make = Maker()
        claim, other = make.claim("a"), make.claim("b")
        done = make.done(claim.status, "17")
        assert write(store, claim, other) == write(store, claim, other) == [True, True]
        assert write(store, done) == write(store, done) == [True]
        assert write(store, done, make.unknown(other.status)) == [True, True]
        assert len(store.evidence(claim.status.operation)) == 1
        # Another change came in between: the claim is not what the store holds now.
        assert write(store, claim) == [False]

    def test_a_successor_is_won_once(self, store: Store) -> None:
        """Law 10: one successor per operation."""
        make = Maker()
        old = make.claim("v1")
        write(store, old)
        first = make.claim("v2", supersedes=old.status.operation)
        second = make.claim("v2b", supersedes=old.status.operation)
        assert write(store, first) == [True]
        [answer] = store.write([second])
        assert (answer.applied, answer.taken_by) == (False, first.status.operation)
        assert store.by_keys(NAMESPACE, [(ACTION, "v2b")]) == [None]
        [found] = store.find(Filter(supersedes=old.status.operation))
        assert first.operation is not None
        assert found.operation == msgspec.structs.replace(first.operation, input=None)

    # --- guarded changes -------------------------------------------------------------------

    def test_a_guard_that_does_not_hold_writes_nothing(self, store: Store) -> None:
        """Not its references, not its evidence."""
        make = Maker()
        claim = make.claim("a")
        write(store, claim)
        done, late = make.done(claim.status, "17"), make.done(claim.status, "18")
        assert write(store, done) == [True]
        [answer] = store.write([late])
        assert not answer.applied
        assert answer.current is not None
        assert answer.current.status == done.status
        assert [row.reference for row in store.references(claim.status.operation)] == ["17"]
        assert len(store.evidence(claim.status.operation)) == 1

    def test_a_change_of_no_operation_is_answered_with_nothing(self, store: Store) -> None:
        """And raises nothing."""
        make = Maker()
        [answer] = store.write([make.done(make.claim("a").status, "17")])
        assert (answer.applied, answer.current, answer.taken_by) == (False, None, None)

    def test_settling_moves_an_operation_out_of_the_working_set(self, store: Store) -> None:
        """So that counts never scan history."""
        make = Maker()
        claims = [make.claim(key) for key in "abc"]
        write(store, *claims)
        assert store.counts(NAMESPACE) == {"running": 3, "reviews": 0}
        write(store, make.done(claims[0].status, "1"), make.unknown(claims[1].status))
        assert store.counts(NAMESPACE) == {"running": 1, "unknown": 1, "reviews": 0}
        assert [s.operation.key for s in store.find(Filter(unsettled=False))] == ["a"]
        assert [s.operation.key for s in store.find(Filter(unsettled=True))] == ["b", "c"]
        assert state(store, claims[0]).state is State.DONE

    def test_a_late_truth_about_a_settled_operation_is_kept(self, store: Store) -> None:
        """Law 8: also if it opens the operation again."""
        make = Maker()
        claim, other = make.claim("a"), make.claim("b")
        write(store, claim, other)
        left = make.stopped(claim.status, Reason.LEFT)
        done = make.done(left.status, "17", reason=Reason.NONE)
        again = make.next(done.status, verify=True, due_at=NOW)
        for change in (left, done, again):
            assert write(store, change, make.claim(f"beside {change.guard}")) == [True, True]
            assert state(store, claim) == change.status
        assert "done" in store.counts(NAMESPACE)  # open again: it is verified once
        assert store.check() == []

    def test_a_group_may_change_one_operation_twice(self, store: Store) -> None:
        """Each change sees what came before it."""
        make = Maker()
        claim = make.claim("a")
        done = make.done(claim.status, "17")
        assert write(store, claim, make.claim("b"), done, done) == [True] * 4
        assert state(store, claim) == done.status

    def test_also_is_all_or_nothing(self, store: Store) -> None:
        """Law 10: a start closes the version before, or does not happen."""
        make = Maker()
        old = make.claim("v1")
        write(store, old)
        closed = make.stopped(old.status, Reason.SUPERSEDED)
        moved = make.unknown(old.status)
        new = make.claim("v2", supersedes=old.status.operation)
        new = msgspec.structs.replace(new, also=(closed,))
        assert write(store, moved) == [True]
        [answer, beside] = store.write([new, make.claim("beside")])
        assert (answer.applied, answer.current, beside.applied) == (False, None, True)
        assert store.by_keys(NAMESPACE, [(ACTION, "v2")]) == [None]
        closed = make.stopped(moved.status, Reason.SUPERSEDED)
        new = msgspec.structs.replace(new, also=(closed,))
        assert write(store, new) == write(store, new) == [True]
        assert state(store, old) == closed.status

    # --- attempts, evidence and what belongs to an operation -------------------------------

    def test_an_outcome_is_never_overwritten_except_by_a_late_truth(self, store: Store) -> None:
        """Silence may become one; once."""
        make = Maker()
        claim = make.claim("a")
        write(store, claim, make.claim("b"))
        token, status = claim.status.token, claim.status
        assert token is not None
        told = []
        for outcome in (Outcome.EXPIRED, Outcome.UNKNOWN, Outcome.NOT_DONE, Outcome.DONE):
            change = make.next(status, state=State.UNKNOWN, token=None, kind=None)
            change = msgspec.structs.replace(change, ends=((token, outcome),))
            assert write(store, change, make.claim(outcome)) == [True, True]
            status = change.status
            told.append(store.attempts(status.operation)[0].outcome)
        assert told == [Outcome.EXPIRED, Outcome.EXPIRED, Outcome.NOT_DONE, Outcome.NOT_DONE]

    def test_a_deadline_moves_forwards_while_the_attempt_runs(self, store: Store) -> None:
        """Never backwards."""
        make = Maker()
        claim = make.claim("a")
        write(store, claim)
        token, later = claim.status.token, NOW + 90 * SECOND
        assert token is not None
        extended = make.next(claim.status, last_deadline=later)
        assert write(store, msgspec.structs.replace(extended, extends=(token, later))) == [True]
        assert store.attempts(claim.status.operation)[0].deadline == later
        back = make.next(extended.status)
        assert write(store, msgspec.structs.replace(back, extends=(token, NOW))) == [True]
        assert store.attempts(claim.status.operation)[0].deadline == later

    def test_reviews_and_approvals_are_written_whole(self, store: Store) -> None:
        """Opened, then changed."""
        make = Maker()
        claim = make.claim("a")
        review = make.review(claim.status)
        asked = Approval(
            id="a1",
            operation=claim.status.operation,
            namespace=NAMESPACE,
            role="editor",
            digest="d",
            asked_at=NOW,
        )
        opened = msgspec.structs.replace(claim, reviews=(review,), approvals=(asked,))
        assert write(store, opened, make.claim("b")) == [True, True]
        assert store.reviews(NAMESPACE) == store.reviews(None) == [review]
        assert store.reviews("other") == store.reviews("other", review.operation) == []
        assert store.counts(NAMESPACE)["reviews"] == 1
        closed = msgspec.structs.replace(review, closed_at=NOW + 1, closed_by="kim")
        approved = msgspec.structs.replace(asked, state="approved", decided_at=NOW + 1)
        change = make.unknown(claim.status)
        change = msgspec.structs.replace(change, reviews=(closed,), approvals=(approved,))
        assert write(store, change) == [True]
        assert store.reviews(NAMESPACE) == store.reviews(NAMESPACE, review.operation) == []
        assert store.reviews(None, review.operation, closed=True) == [closed]
        assert store.reviews(NAMESPACE, closed=True) == [closed]
        assert store.approvals(claim.status.operation) == [approved]

    def test_the_first_success_stays_the_positive_control(self, store: Store) -> None:
        """Law 5."""
        make = Maker()
        claims = [make.claim(key) for key in "ab"]
        controls = [
            Control(
                namespace=NAMESPACE,
                action=ACTION,
                scope="s",
                operation=claim.status.operation,
                target_key=claim.status.target_key,
            )
            for claim in claims
        ]
        for claim, control in zip(claims, controls, strict=True):
            write(store, msgspec.structs.replace(claim, control=control))
        assert store.control(NAMESPACE, ACTION, "s") == controls[0]
        assert store.control(NAMESPACE, ACTION, "") is None

    def test_requests_are_kept_by_epoch(self, store: Store) -> None:
        """Law 11: byte for byte."""
        make = Maker()
        claim = make.claim("a")
        frozen = [
            FrozenRequest(
                operation=claim.status.operation, epoch=epoch, digest="d", request=ODD.encode()
            )
            for epoch in (1, 2)
        ]
        write(store, msgspec.structs.replace(claim, request=frozen[0]), make.claim("b"))
        change = make.unknown(claim.status)
        write(store, msgspec.structs.replace(change, request=frozen[1]))
        assert store.requests(claim.status.operation) == frozen

    # --- due work --------------------------------------------------------------------------

    def test_due_work_is_taken_once_and_oldest_first(self, store: Store) -> None:
        """And given as it was before it was taken."""
        make = Maker()
        claims = [make.claim(key) for key in "abcd"]
        due = [NOW + 3, NOW + 1, NOW + 2, NOW + 9]
        for claim, at in zip(claims, due, strict=True):
            status = msgspec.structs.replace(claim.status, due_at=at)
            write(store, msgspec.structs.replace(claim, status=status))
        write(store, make.claim("x", namespace="other"), make.claim("y", action="other"))
        first = store.take(NOW + 5, NOW + 50, NAMESPACE, [ACTION], 2)
        assert [(s.operation.key, s.status.due_at) for s in first] == [
            ("b", NOW + 1),
            ("c", NOW + 2),
        ]
        rest = store.take(NOW + 5, NOW + 50, NAMESPACE, [ACTION, ACTION], 9)
        assert [s.operation.key for s in rest] == ["a"]
        assert store.take(NOW + 5, NOW + 50, NAMESPACE, [ACTION], 9) == []
        assert store.take(NOW + 5, NOW + 50, NAMESPACE, [], 9) == []
        # The stamp stays, so what was decided on the snapshot can still be written.
        assert write(store, make.unknown(first[0].status)) == [True]
        again = store.take(NOW + 50, NOW + 99, NAMESPACE, [ACTION, "other"], 9)
        assert [s.operation.key for s in again] == ["b", "d", "a", "c"]

    # --- reading ---------------------------------------------------------------------------

    def test_keys_and_ids_are_answered_in_order(self, store: Store) -> None:
        """Also what is asked twice, or is not there."""
        make = Maker()
        claims = [make.claim(key) for key in ("a", ODD)]
        write(store, *claims)
        pairs = [(ACTION, ODD), (ACTION, "none"), ("none", "a"), (ACTION, "a"), (ACTION, ODD)]
        found = store.by_keys(NAMESPACE, pairs)
        keys = [None if one is None else one.operation.key for one in found]
        assert keys == [ODD, None, None, "a", ODD]
        assert store.by_keys(NAMESPACE, []) == []
        ids = [claim.status.operation for claim in claims]
        assert set(store.snapshots([*ids, "none"])) == set(ids)
        assert store.snapshots([]) == {}

    def test_find_restricts_by_every_field(self, store: Store) -> None:
        """Text is plain: no pattern, ASCII letters in either case."""
        make = Maker()
        story(store, make)
        odd = make.claim("50%_off", title="Größe", event="e1", namespace="other")
        write(store, odd)
        expected: list[tuple[Filter, list[str]]] = [
            (Filter(namespace="other"), ["50%_off"]),
            (Filter(action=ACTION, run="run-1"), ["story/1", "story/2", "story/3"]),
            (Filter(key="story/2"), ["story/2"]),
            (Filter(namespace=NAMESPACE, action=ACTION, key="story/2"), ["story/2"]),
            (Filter(namespace="other", action=ACTION, key="story/2"), []),
            (Filter(event="e1"), ["50%_off"]),
            (Filter(ref="17"), ["story/1"]),
            (Filter(states=["done", "unknown"]), ["story/1", "story/2"]),
            (Filter(states=[]), []),
            (Filter(waiting_on="clock", unsettled=True), ["story/2", "story/4", "50%_off"]),
            (Filter(text="STORY/3"), ["story/3"]),
            (Filter(text="100 %"), ["story/1", "story/2", "story/3"]),
            (Filter(text="0%_"), ["50%_off"]),
            (Filter(text="GRöß"), ["50%_off"]),
            (Filter(unsettled=False), ["story/1", "story/3"]),
            (Filter(unsettled=False, states=["not_done"]), ["story/3"]),
            (Filter(title="größ"), ["50%_off"]),
            (Filter(title="story/3"), []),
        ]
        for what, keys in expected:
            assert [found.operation.key for found in store.find(what)] == keys, what
            few = msgspec.structs.replace(what, few=True)
            assert [found.operation.key for found in store.find(few)] == keys, few
            newest = msgspec.structs.replace(what, newest=True)
            assert [found.operation.key for found in store.find(newest)] == keys[::-1], newest
            assert store.how_many(what, "", 100) == len(keys), what
            assert store.how_many(what, "", 1) == min(len(keys), 1), what

    def test_find_goes_on_after_an_id(self, store: Store) -> None:
        """In the order of ids, however they were written."""
        make = Maker()
        claims = [make.claim(f"k{n}") for n in range(7)]
        write(store, *reversed(claims))
        seen: list[str] = []
        after = ""
        while page := store.find(Filter(namespace=NAMESPACE), after, 3):
            seen += [found.operation.key for found in page]
            after = page[-1].operation.id
        assert seen == [f"k{n}" for n in range(7)]
        assert store.find(Filter(), limit=0) == []
        ids = [claim.status.operation for claim in claims]
        for unsettled in (None, True):
            between = Filter(until=ids[5], unsettled=unsettled, newest=True)
            assert [s.operation.id for s in store.find(between, ids[1])] == ids[4:1:-1]
            assert store.how_many(between, ids[1], 100) == 3

    # --- runs, lives, settings -------------------------------------------------------------

    def test_a_run_is_opened_changed_and_expects_keys(self, store: Store) -> None:
        """A run never changes its namespace."""
        run = Run(id="r1", namespace=NAMESPACE, name="autumn", opened_at=NOW)
        wanted = [Expected(run="r1", namespace=NAMESPACE, action=ACTION, key=k) for k in "ab"]
        assert store.open_run(run, wanted[:1]) == run
        closed = msgspec.structs.replace(run, closed_at=NOW + 5, due_at=NOW + 9)
        assert store.open_run(closed, wanted) == closed
        assert store.expected("r1") == wanted
        later = Run(id="r2", namespace=NAMESPACE, name="winter", opened_at=NOW + 1)
        store.open_run(later, [])
        assert store.runs(NAMESPACE) == [later, closed]
        assert store.runs(NAMESPACE, "autumn") == [closed]
        assert store.runs("other") == []
        stolen = msgspec.structs.replace(run, namespace="other")
        assert _refused(lambda: store.open_run(stolen, []))
        assert store.runs(NAMESPACE, "autumn") == [closed]

    def test_lives_and_settings(self, store: Store) -> None:
        """The secret is made with the store."""
        assert store.incarnations() == []
        first = Incarnation(number=1, began_at=NOW, gap_from=NOW - 5, note=ODD)
        second = Incarnation(number=2, began_at=NOW + 1)
        assert store.incarnations(first) == [first]
        assert store.incarnations(second) == [first, second]
        assert store.incarnations(msgspec.structs.replace(second, note="x")) == [first, second]
        assert store.meta("colour") is None
        assert store.meta("colour", ODD) == store.meta("colour") == ODD
        assert store.meta("colour", "") == ""
        assert len(store.meta("secret") or "") == 64

    # --- groups, futures, errors -----------------------------------------------------------

    def test_a_future_resolves_once_it_is_durable(self, store: Store) -> None:
        """By the committer's thread."""
        make = Maker()
        claims = [make.claim(f"k{n}") for n in range(50)]
        futures = [store.put(claim) for claim in claims]
        assert all(future.result(20).applied for future in futures)
        assert store.counts(NAMESPACE)["running"] == 50

    def test_many_changes_are_written_in_several_groups(self, store: Store) -> None:
        """More than one transaction may hold."""
        make = Maker()
        claims = [make.claim(f"k{n}") for n in range(1203)]
        assert write(store, *claims) == [True] * 1203
        assert write(store) == []

    def test_a_bad_change_fails_alone(self, store: Store) -> None:
        """The error holds the answers of the others."""
        make = Maker()
        good, other = make.claim("a"), make.claim("b")
        assert good.operation is not None
        stolen = msgspec.structs.replace(good.operation, key="c")
        bad = msgspec.structs.replace(good, operation=stolen)
        try:
            store.write([good, bad, other])
        except StoreError as error:
            answers = error.facts["written"]
        assert [getattr(answer, "applied", None) for answer in answers] == [True, None, True]
        found = store.by_keys(NAMESPACE, [(ACTION, key) for key in "abc"])
        assert [one is not None for one in found] == [True, True, False]


def _refused(call: Callable[[], object]) -> bool:
    try:
        call()
    except StoreError:
        return True
    return False

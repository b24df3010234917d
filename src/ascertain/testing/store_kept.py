"""The part of the conformance suite about what is kept for ever: references and tombstones."""

# ruff: noqa: PLR2004 - expected values are literals
from __future__ import annotations

import msgspec

from ascertain.core.model import Reference, State
from ascertain.store.base import Filter, Store
from ascertain.testing.story import ACTION, NAMESPACE, NOW, Maker, dump, state, story, write


class KeptSuite:
    """What `StoreSuite` asks about effect references, retention, export and integrity."""

    # --- effect references -----------------------------------------------------------------

    def test_a_reference_belongs_to_one_operation_per_contract(self, store: Store) -> None:
        """A collision fails no neighbour."""
        make = Maker()
        first, second, third = (make.claim(key) for key in "abc")
        write(store, first, second, third, make.claim("d"))
        assert write(store, make.done(first.status, "17")) == [True]
        taken, fine = make.done(second.status, "17"), make.done(third.status, "18")
        [no, yes] = store.write([taken, fine])
        assert (no.applied, no.taken_by) == (False, first.status.operation)
        assert yes.applied
        assert state(store, second) == second.status
        assert store.evidence(second.status.operation) == []
        other = Reference(contract="x", reference="17", operation=second.status.operation, at=NOW)
        change = msgspec.structs.replace(make.unknown(second.status), references=(other,))
        assert write(store, change) == [True]
        assert [s.operation.key for s in store.find(Filter(ref="17"))] == ["a", "b"]

    def test_a_reference_reported_again_by_its_operation_is_fine(self, store: Store) -> None:
        """Accepted first, done later."""
        make = Maker()
        claims = [make.claim(key) for key in "ab"]
        write(store, *claims)
        accepted = [make.done(c.status, c.status.operation, state=State.ACCEPTED) for c in claims]
        assert write(store, *accepted) == [True, True]
        done = [make.done(c.status, c.status.operation) for c in accepted]
        assert write(store, *done) == [True, True]
        assert len(store.references(claims[0].status.operation)) == 1

    def test_all_references_of_an_operation_are_found(self, store: Store) -> None:
        """Also one that its status no longer names, never named, or names under two contracts."""
        make = Maker()
        claim, beside = make.claim("a"), make.claim("b")
        write(store, claim, beside)
        accepted = make.done(claim.status, "1", state=State.ACCEPTED, token=claim.status.token)
        done = make.done(accepted.status, "2")
        late = make.done(done.status, "3")
        late = msgspec.structs.replace(late, status=msgspec.structs.replace(late.status, ref="2"))
        again = make.next(late.status, verify=True, due_at=NOW)
        under = Reference(contract="x", reference="2", operation=claim.status.operation, at=NOW + 1)
        again = msgspec.structs.replace(again, references=(under,))
        unnamed = make.done(beside.status, "4")
        unnamed = msgspec.structs.replace(
            unnamed, status=msgspec.structs.replace(unnamed.status, ref=None)
        )
        told = []
        for change in (accepted, done, late, again):
            assert write(store, change, make.claim(f"beside {change.guard}")) == [True, True]
            told.append([row.reference for row in store.references(claim.status.operation)])
        assert told == [["1"], ["1", "2"], ["1", "2", "3"], ["1", "2", "3", "2"]]
        assert write(store, unnamed) == [True]
        assert [row.reference for row in store.references(beside.status.operation)] == ["4"]
        store.prune(2 * NOW, 10)
        assert len(store.references(claim.status.operation)) == 4
        assert store.check() == []

    def test_two_of_one_group_that_name_one_reference(self, store: Store) -> None:
        """The first has it."""
        make = Maker()
        claims = [make.claim(key) for key in "ab"]
        write(store, *claims)
        answers = store.write([make.done(claim.status, "17") for claim in claims])
        assert [answer.applied for answer in answers] == [True, False]
        assert answers[1].taken_by == claims[0].status.operation

    # --- retention, export, integrity ------------------------------------------------------

    def test_a_tombstone_keeps_what_prevents_duplicates(self, store: Store) -> None:
        """Law 19; nothing unresolved is touched."""
        make = Maker()
        claims = [make.claim(key) for key in "abcd"]
        write(store, *claims)
        done = [make.done(claim.status, claim.status.operation) for claim in claims[:3]]
        done[1] = msgspec.structs.replace(done[1], reviews=(make.review(done[1].status),))
        write(store, *done)
        assert store.prune(NOW, 10) == 0
        assert store.prune(NOW + 2, 1) == 1
        assert store.prune(NOW + 2, 10) == 1  # not the one under review, not the running one
        assert store.prune(NOW + 2, 10) == 0
        [pruned] = store.by_keys(NAMESPACE, [(ACTION, "a")])
        assert pruned is not None
        assert (pruned.operation.input, pruned.operation.fingerprint) == (None, "f" * 64)
        assert pruned.status == msgspec.structs.replace(done[0].status, result=None)
        gone = pruned.operation.id
        assert (store.attempts(gone), store.evidence(gone)) == ([], [])
        assert len(store.references(gone)) == 1
        assert write(store, make.claim("a")) == [False]
        late = make.next(pruned.status, confirmed_by="event")
        assert write(store, late) == [True]
        assert [entry.seq for entry in store.evidence(gone)] == [2]
        assert store.check() == []

    def test_many_are_pruned_page_by_page(self, store: Store) -> None:
        """One call goes on where its last page ended; what is young by its id is not even read."""
        make = Maker()
        claims = [make.claim(f"k{n}") for n in range(250)]
        done = [make.done(claim.status, claim.status.operation) for claim in claims]
        young = make.claim("young", id="z" * 26)
        done.append(make.done(young.status, "young"))
        assert all(write(store, *claims, young))
        assert all(write(store, *done))
        assert store.prune(NOW + 2, 130) == 130
        assert store.prune(NOW + 2, 500) == 120
        assert store.prune(NOW + 2, 500) == 0
        assert len(store.evidence("z" * 26)) == 1
        assert store.check() == []

    def test_everything_is_exported_in_a_fixed_order(self, store: Store) -> None:
        """As plain values that JSON can hold."""
        story(store)
        rows = dump(store)
        assert rows == dump(store)
        tables = [table for table, _ in rows]
        assert set(tables) == {
            *("meta", "incarnation", "operation", "unsettled", "settled", "attempt", "evidence"),
            *("reference", "request", "review", "approval", "control", "run", "expected"),
        }
        assert tables == sorted(tables, key=tables.index)
        assert msgspec.json.decode(msgspec.json.encode(rows)) == [list(row) for row in rows]
        assert store.check() == []

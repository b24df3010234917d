"""The part of the conformance suite about the books: records beside the ledger."""

from __future__ import annotations

import msgspec
import pytest

from ascertain.core import books
from ascertain.core.errors import StoreError
from ascertain.core.model import Record
from ascertain.store.base import Posting, Store
from ascertain.testing.story import NAMESPACE, NOW, ODD, Maker, state, write

GATE = books.Gate(namespace=NAMESPACE, target="cms", state="paused", since=NOW, by=ODD)


def samples() -> dict[str, Record]:
    """Return one record of every book, by the name of its table, with odd characters."""
    found: dict[str, Record] = {}
    for kind in vars(books).values():
        if isinstance(kind, type) and issubclass(kind, Record) and kind is not Record:
            fields = msgspec.structs.fields(kind)
            given = {f.name: NOW if "int" in str(f.type) else f"{f.name} {ODD}" for f in fields}
            name = "".join(f"_{c.lower()}" if c.isupper() else c for c in kind.__name__)
            found[name.removeprefix("_")] = kind(**given)
    return found


class BooksSuite:
    """What `StoreSuite` asks about postings."""

    def test_every_book_is_read_back_whole(self, store: Store) -> None:
        """Every field, odd characters included; the first one stays."""
        written = samples()
        posting = Posting(tuple((f"{name}_add", record) for name, record in written.items()))
        [first, again] = store.post([posting, posting])
        assert (first.applied, set(first.rows)) == (True, {1})
        assert (again.applied, set(again.rows)) == (True, {0})
        rows = {table: row for table, row in store.rows() if table in written}
        assert rows == {name: msgspec.structs.asdict(record) for name, record in written.items()}

    def test_a_line_that_must_change_a_row_undoes_the_posting(self, store: Store) -> None:
        """The first writer wins; the loser writes nothing at all."""
        opened = {**msgspec.structs.asdict(GATE), "state": "open", "was": "paused"}
        store.post([Posting((("gate_add", GATE),))])
        late = Posting(
            (("gate_add", books.Gate(namespace="x", target="y", state="open", since=NOW)),
             ("gate_write", {**opened, "was_since": NOW + 1})),
            must=(1,),
        )  # fmt: skip
        [no, yes] = store.post([late, Posting((("gate_write", {**opened, "was_since": NOW}),))])
        assert (no.applied, yes.applied) == (False, True)
        assert [(g.target, g.state) for g in store.ask(books.Gate, "gates")] == [("cms", "open")]

    def test_postings_and_changes_are_committed_together(self, store: Store) -> None:
        """Each is answered by itself, in order; a bad one fails alone."""
        make = Maker()
        claims = [make.claim(f"k/{n}") for n in range(6)]
        commits = [store.put(claim) for claim in claims]
        fine = store.put(Posting((("gate_add", GATE),)))
        wrong = msgspec.structs.replace(GATE, target=None)
        bad = store.put(Posting((("gate_add", wrong),)))
        assert [commit.result(10).applied for commit in commits] == [True] * 6
        assert fine.result(10).rows == (1,)
        with pytest.raises(StoreError):
            bad.result(10)
        assert [state(store, claim) for claim in claims] == [claim.status for claim in claims]
        assert write(store, make.claim("k/7")) == [True]

    def test_lines_of_a_change_are_written_with_it(self, store: Store) -> None:
        """All or nothing: what was not applied leaves no line."""
        make = Maker()
        lines = (("gate_add", GATE),)
        first = msgspec.structs.replace(make.claim("a"), lines=lines)
        other = (("gate_add", msgspec.structs.replace(GATE, target="other")),)
        loser = msgspec.structs.replace(make.claim("a"), lines=other)
        assert write(store, *(make.claim(f"k/{n}") for n in range(5)), first, loser) == [
            *[True] * 6, False,
        ]  # fmt: skip
        assert store.ask(books.Gate, "gates") == [GATE]

    def test_only_the_books_are_asked_by_name(self, store: Store) -> None:
        """The ledger has its own verbs."""
        with pytest.raises(StoreError):
            store.ask(books.Gate, "snapshot_by_id", id="x")

"""A group's rows in few statements: the store holds the same as after one change at a time."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Any

import pytest
from msgspec.structs import replace

from ascertain.core.machine import is_settled
from ascertain.core.model import Change, Reason, Status
from ascertain.store import rows, sqlite
from ascertain.store.sqlite import SqliteStore
from ascertain.testing.story import Maker


def story(seed: int, groups: int) -> Iterator[list[Change]]:
    """Groups of changes that meet now and then: a key twice, an old guard, another's reference."""
    chance, make = Random(seed), Maker()
    known: list[Status] = []
    taken: list[str] = []
    for _ in range(groups):
        group: list[Change] = []
        for _ in range(chance.choice((3, 5, 17, 30, 90))):
            if not known or chance.random() < 0.5:
                change = make.claim(f"k{chance.randrange(10**6)}" if known else "k0")
                group.append(change)
                known.append(change.status)
                if chance.random() < 0.02:
                    group.append(replace(make.claim("k0")))
                continue
            open_ = [n for n, s in enumerate(known) if not is_settled(s)]
            late = not open_ or chance.random() < 0.003  # a late truth of a settled operation
            place = chance.choice(range(len(known)) if late else open_)
            before = known[place]
            ref = f"r{make.number()}" if not taken or chance.random() < 0.995 else taken[-1]
            made = [make.next, lambda b: make.stopped(b, Reason.REJECTED)]
            if before.token is not None:
                made += [make.unknown, lambda b, r=ref: make.done(b, r)] * 3
            change = chance.choice(made)(before)
            taken += [r.reference for r in change.references]
            group.append(change)
            if chance.random() < 0.995:  # else the next change has an old guard
                known[place] = change.status
        yield group


def write(store: SqliteStore, group: list[Change]) -> list[tuple[bool, Any]]:
    """Write a group at once, and say of each whether it was applied or what it raised."""
    answers = store._commit(group, lambda: None)
    return [(a.applied, a.taken_by) if hasattr(a, "applied") else (False, type(a)) for a in answers]


@pytest.mark.parametrize("seed", range(12))
def test_a_group_writes_what_its_changes_would_write_alone(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    together, alone = SqliteStore(":memory:"), SqliteStore(":memory:")
    plain = 0
    real = rows.Rows._write

    def counted(*given: Any) -> None:
        nonlocal plain
        real(*given)
        plain += 1

    monkeypatch.setattr(rows.Rows, "_write", counted)
    for group in story(seed, groups=12):
        wide = write(together, group)
        with monkeypatch.context() as patch:
            patch.setattr(sqlite, "LEAST", 10**9)
            assert write(alone, group) == wide
    kept = [[(table, row) for table, row in s.rows() if table != "meta"] for s in (together, alone)]
    assert kept[0] == kept[1]
    assert plain >= 5, "hardly a group went together"
    assert together.check() == []


def test_a_row_that_meets_another_undoes_the_group_before_each_goes_alone() -> None:
    store, make = SqliteStore(":memory:"), Maker()
    first = make.claim("taken")
    assert store.write([first])[0].applied
    group = [make.claim(f"k{n}") for n in range(8)]
    group.insert(4, make.claim("taken"))
    answers = store._commit(group, lambda: None)
    assert [a.applied for a in answers] == [True] * 4 + [False] + [True] * 4
    assert answers[4].current.operation.id == first.status.operation
    assert store.check() == []


def test_a_group_of_many_is_a_dozen_statements() -> None:
    store, make = SqliteStore(":memory:"), Maker()
    store.write([make.claim("warm")])
    writer = store._write_connection()
    seen: list[str] = []
    writer._raw.trace_v2(1, lambda event: seen.append(event["sql"]))
    claims = [make.claim(f"k{n}") for n in range(64)]
    store._commit(claims, lambda: None)
    store._commit([make.done(c.status, f"r{c.status.operation}") for c in claims], lambda: None)
    writer._raw.trace_v2(0, None)
    assert len(seen) < 20, seen
    assert store.counts("default") == {"running": 1, "reviews": 0}

"""The retention job (law 19): details of what is over go after their time, and nothing else."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from ascertain import open_store, read_config
from ascertain.config import checked
from ascertain.config.chores import chores
from ascertain.config.spaces import Spaces
from ascertain.core.books import Audit, Bulk, Delivery, Event, Watch
from ascertain.core.model import SECOND
from ascertain.runtime.retention import AT_ONCE, Keeps, Retention
from ascertain.store.base import Posting, Store
from ascertain.store.sqlite import SqliteStore
from ascertain.testing.story import NAMESPACE, Maker
from server.house import SHOP

DAY = 24 * 3600 * SECOND
NOW = 1_900_000_000 * SECOND
KEEPS = Keeps(settled=90 * DAY, events=30 * DAY, audit=365 * DAY)


class Clock:
    now = NOW

    def __call__(self) -> int:
        return self.now


@pytest.fixture(params=["sqlite", "postgres"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    if request.param == "sqlite":
        made: Store = SqliteStore(str(tmp_path / "ledger.db"), clock=Clock())
    else:
        from ascertain.store.postgres import PostgresStore

        made = PostgresStore(request.getfixturevalue("postgres_database"), clock=Clock())
    with closing(made):
        yield made


def rows(store: Store, table: str) -> list[dict[str, Any]]:
    return [row for name, row in store.rows() if name == table]


def event(name: str, age: int, state: str, **more: Any) -> Event:
    return Event(namespace="default", source="shop", id=name, received_at=NOW - age, state=state,
                 headers='{"x": 1}', body="private", **more)  # fmt: skip


def add(store: Store, *lines: tuple[str, Any]) -> None:
    assert store.post([Posting(tuple(lines))])[0].applied


def test_the_body_of_an_old_event_goes_and_its_identity_stays(store: Store) -> None:
    old = [event(state, 31 * DAY, state) for state in ("processed", "ignored", "stale", "shown")]
    kept = [
        event("young", 29 * DAY, "processed"),
        event("received", 99 * DAY, "received", due_at=NOW),
        event("failed", 99 * DAY, "failed"),
        event("again", 99 * DAY, "processed", due_at=NOW),
    ]
    add(store, *(("event_add", one) for one in (*old, *kept)))
    delivery = {"namespace": "default", "source": "shop", "first_at": NOW - 99 * DAY}
    for name, of, at in (("d1", "processed", 31), ("d2", "received", 99), ("d3", "processed", 1)):
        made = Delivery(id=name, event=of, last_at=NOW - at * DAY, **delivery)
        add(store, ("delivery_add", made))
    assert Retention(store, KEEPS, ["default"]).run() == 5
    left = {row["id"]: (row["body"], row["headers"]) for row in rows(store, "event")}
    assert {n for n, (body, _) in left.items() if body == "private"} == {e.id for e in kept}
    assert {left[one.id] for one in old} == {("", "{}")}
    assert {row["id"] for row in rows(store, "delivery")} == {"d2", "d3"}
    assert Retention(store, KEEPS, ["default"]).run() == 0


def test_settled_operations_become_tombstones_and_open_ones_stay(store: Store) -> None:
    make = Maker()
    store.write([make.claim(f"open/{n}") for n in range(3)])
    before = rows(store, "operation")
    assert Retention(store, KEEPS, [NAMESPACE]).run() == 0
    assert rows(store, "operation") == before


def test_what_was_told_and_what_is_over_goes_and_the_rest_stays(store: Store) -> None:
    old = NOW - 91 * DAY
    watch = {"namespace": "default", "url": "http://127.0.0.1/", "asked_at": old}
    add(store, ("watch_add", Watch(operation="told", **watch)),
        ("watch_add", Watch(operation="due", due_at=NOW, **watch)))  # fmt: skip
    for name, state in (("b1", "done"), ("b2", "running"), ("b3", "cancelled"), ("b4", "planned")):
        made = Bulk(id=name, namespace="default", made_at=old, by="anna", did="leave", state=state)
        add(store, ("bulk_add", made))
    assert Retention(store, KEEPS, ["default"]).run() == 4
    assert [row["operation"] for row in rows(store, "watch")] == ["due"]
    assert [row["id"] for row in rows(store, "bulk")] == ["b2"]  # a plan nobody ran is over too


def test_the_audit_has_an_end_only_where_one_is_given(store: Store) -> None:
    for name, age in (("a1", 400), ("a2", 300)):
        made = Audit(id=name, namespace="default", at=NOW - age * DAY, actor="anna", did="x")
        add(store, ("audit_add", made))
    for_good = Keeps(settled=0, events=0, audit=None)
    assert Retention(store, for_good, ["default"]).run() == 0
    assert Retention(store, KEEPS, ["default"]).run() == 1
    assert [row["id"] for row in rows(store, "audit")] == ["a2"]


def test_one_turn_does_a_bounded_share(store: Store) -> None:
    add(store, *(("event_add", event(f"e{n}", 40 * DAY, "processed")) for n in range(AT_ONCE + 7)))
    retention = Retention(store, KEEPS, ["default"])
    assert [retention.run() for _ in range(3)] == [AT_ONCE, 7, 0]


def test_it_is_declared_in_days_and_refused_with_its_line(tmp_path: Path) -> None:
    file = tmp_path / "ascertain.toml"
    file.write_text('[retention]\nsettled = "1d"\nevents = "2h"\naudit = "1d"\n')
    keeps = read_config(file).retention
    assert (keeps.settled, keeps.events, keeps.audit) == (DAY, 7200 * SECOND, DAY)
    file.write_text("")
    keeps = read_config(file).retention
    assert (keeps.settled, keeps.events, keeps.audit) == (90 * DAY, 30 * DAY, None)
    file.write_text('[retention]\nsettled = "90 days"\n')
    [problem] = read_config(file).problems
    assert (problem.line, "settled is '90 days'" in problem.why) == (2, True)
    file.write_text('[retention]\nsettld = "90d"\n')
    [problem] = read_config(file).problems
    assert "did you mean 'settled'" in problem.why


def test_workers_do_it(tmp_path: Path) -> None:
    file = tmp_path / "ascertain.toml"
    file.write_text(SHOP.format(target="http://127.0.0.1:9"))
    with closing(open_store(str(tmp_path / "ascertain.db"))) as kept:
        understood = checked(read_config(file))
        found = chores(understood, Spaces(kept, understood, ["default"]))
        [retention] = [chore for chore in found if chore.name == "retention"]
        assert retention.run() == 0

"""Figures: every operation in one hour and one state, whatever is rolled up when and by whom."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from ascertain.core import figures as rules
from ascertain.core.books import Delivery, Event, Tally
from ascertain.core.figures import DAY, HOUR, first_id, hour_of, hours_of, place_of, time_of
from ascertain.core.keys import new_id
from ascertain.core.model import SECOND, Expected, Reason, Review, Run, State, Status
from ascertain.runtime import tallies
from ascertain.runtime.figures import Figures, Period
from ascertain.runtime.tallies import Doors, Tallies, Turned
from ascertain.store.base import Posting
from ascertain.store.postgres import PostgresStore
from ascertain.store.sqlite import SqliteStore
from ascertain.testing import FakeClock
from ascertain.testing.story import CLOSED, Maker

SPACE = "default"
BEGIN = 1_699_999_200 * SECOND  # 22:00 UTC, so that a day ends within


class World:
    """A store on a virtual clock, and operations in it at will."""

    def __init__(self, store: Any, clock: FakeClock) -> None:
        self.store, self.clock, self.make = store, clock, Maker()
        self.chance = random.Random(7)
        self.chore = Tallies(store, [SPACE])
        self.doors = Doors(store, "p1")
        self.read = Figures(store, [SPACE], clock, self.doors)
        self.known: list[Status] = []

    def submit(self, action: str = "cms.create_draft", **more: Any) -> Status:
        now = self.clock.wall()
        key = more.pop("key", f"k{self.make.number()}")
        change = self.make.claim(
            key, id=new_id(now, self.chance.getrandbits(80)), action=action,
            created_at=now, **more,
        )  # fmt: skip
        status = msgspec.structs.replace(change.status, started_at=now, updated_at=now)
        [written] = self.store.write([msgspec.structs.replace(change, status=status)])
        assert written.applied
        self.known.append(status)
        return status

    def change(self, before: Status, reviews: tuple[Review, ...] = (), **given: Any) -> Status:
        change = self.make.next(before, updated_at=self.clock.wall(), **given)
        [written] = self.store.write([msgspec.structs.replace(change, reviews=reviews)])
        assert written.applied
        self.known = [change.status if s.operation == before.operation else s for s in self.known]
        return change.status

    def done(self, before: Status, by: str = "answer", **more: Any) -> Status:
        return self.change(before, **CLOSED, state=State.DONE, confirmed_by=by, **more)

    def total(self, since: int = BEGIN, until: int | None = None) -> dict[str, int]:
        until = until or self.clock.wall() + 1
        self.clock.advance(6)  # what was counted live is not good enough any more
        found = self.read.counts(SPACE, Period.of(since, until))
        assert found.complete
        sums: dict[Any, dict[str, int]] = {}
        for counts in found.groups.values():
            rules.add(sums, "", counts)
        return sums.get("", {})


@pytest.fixture(params=["sqlite", "postgres"])
def world(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[World]:
    clock = FakeClock(BEGIN)
    if request.param == "sqlite":
        store: Any = SqliteStore(tmp_path / "ascertain.db", clock=clock.wall)
    else:
        store = PostgresStore(request.getfixturevalue("postgres_database"), clock=clock.wall)
    yield World(store, clock)
    store.close()


def run(world: World) -> None:
    for _ in range(200):
        if not world.chore.run():
            return
    raise AssertionError("the chore never comes to rest")


def test_each_number_stands_apart(world: World) -> None:
    world.done(world.submit())
    world.done(world.submit(), attempts=3)
    world.done(world.submit(), by="look_up", lookups=2)
    world.done(world.submit(), by="stripe")
    world.change(world.submit(), state=State.UNKNOWN, token=None, kind=None)
    world.change(world.submit(), **CLOSED, state=State.NOT_DONE, reason=Reason.LEFT)
    world.submit(action="ascertain.notify.mail")  # ours: nobody's business
    expected = {
        "operations": 6, "attempts": 8, "lookups": 2, "done": 4, "unknown": 1, "not_done": 1,
        "left_open": 1, "by_answer": 2, "again": 1, "by_look_up": 1, "by_event": 1,
    }  # fmt: skip
    assert world.total() == expected
    world.clock.advance(3 * 3600)
    run(world)
    assert world.total() == expected


def test_a_late_truth_moves_a_number_within_its_hour(world: World) -> None:
    unknown = world.change(world.submit(), state=State.UNKNOWN, token=None, kind=None)
    done = world.done(world.submit())
    world.clock.advance(30 * 3600)
    run(world)
    rolled = world.total()
    assert (rolled["unknown"], rolled["done"]) == (1, 1)
    world.done(unknown, by="look_up")
    world.change(done, state=State.DONE, verify=True)  # open once more
    for _ in range(2):
        assert world.total() == {
            "operations": 2, "attempts": 2, "done": 2, "by_answer": 1, "by_look_up": 1,
        }  # fmt: skip
        assert world.total(until=BEGIN + HOUR)["operations"] == 2
        world.clock.advance(600)
        run(world)
    [hour] = [r for r in rows(world) if r.span == "hour" and r.part == rules.LEDGER]
    assert (hour.at, hour.done) == (BEGIN, 2)


def rows(world: World) -> list[Tally]:
    return [msgspec.convert(row, Tally) for table, row in world.store.rows() if table == "tally"]


def brute(world: World, since: int, until: int) -> dict[str, int]:
    """The same counts, one operation after the other."""
    sums: dict[Any, dict[str, int]] = {}
    for status in world.known:
        if since <= time_of(status.operation) < until and not rules.is_own(status.action):
            group = rules.Group(
                SPACE, status.action, status.state, status.reason, status.confirmed_by,
                int(status.attempts > 1), 1, status.attempts, status.lookups,
            )  # fmt: skip
            rules.add(sums, "", rules.counted(group))
    return sums.get("", {})


@pytest.mark.timeout(120)
@pytest.mark.parametrize("seed", range(4))
def test_roll_ups_and_the_live_rest_are_the_same_as_counting_one_by_one(
    world: World, seed: int
) -> None:
    chance = random.Random(seed)
    for _ in range(120):
        act = chance.random()
        if act < 0.4:
            world.submit(action=chance.choice(["a", "b", "ascertain.notify.mail"]))
        elif act < 0.75 and world.known:
            before = chance.choice(world.known)
            by = chance.choice(["answer", "look_up", "replay", "person", "late_report"])
            new = chance.choice([State.UNKNOWN, State.ACCEPTED, State.DONE, State.NOT_DONE])
            if new in (State.UNKNOWN, State.ACCEPTED):
                world.change(before, state=new, token=None, kind=None, confirmed_by="")
            elif new is State.DONE:
                world.done(before, by, attempts=before.attempts + chance.randint(0, 1))
            else:
                reason = chance.choice([Reason.LEFT, Reason.REJECTED])
                world.change(before, **CLOSED, state=new, reason=reason, confirmed_by="")
        elif act < 0.9:
            world.clock.advance(chance.choice([1, 400, 3000, 9000, 40_000]))
        else:
            world.chore.run()
        if chance.random() < 0.2:
            until = hour_of(world.clock.wall()) + HOUR
            since = BEGIN + HOUR * chance.randint(0, max((until - BEGIN) // HOUR - 1, 0))
            if (until - since) // HOUR <= 40 or chance.random() < 0.5:
                run(world)
            assert world.total(since) == brute(world, since, hour_of(world.clock.wall()) + HOUR)
    run(world)
    assert world.total() == brute(world, BEGIN, world.clock.wall() + HOUR)
    by_day = world.read.counts(SPACE, Period.of(BEGIN, world.clock.wall() + 1), "day").groups
    by_hour = world.read.counts(SPACE, Period.of(BEGIN, world.clock.wall() + 1), "hour").groups
    days: dict[Any, dict[str, int]] = {}
    for hour, counts in by_hour.items():
        rules.add(days, int(hour) - int(hour) % DAY, counts)
    assert days == by_day


def test_of_two_that_count_at_once_one_writes(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.done(world.submit())
    world.clock.advance(3 * 3600)
    world.chore.run()  # begins
    real, other = tallies.count_hours, Tallies(world.store, [SPACE])
    raced: list[int] = []

    def slow(*given: Any) -> list[Tally]:
        found = real(*given)
        if not raced:
            raced.append(0)
            raced[0] = other.run()
        return found

    monkeypatch.setattr(tallies, "count_hours", slow)
    assert world.chore.run() == 0  # the other was first: nothing of ours was written
    assert raced[0] > 0
    assert world.total()["done"] == 1


def test_a_turn_that_is_over_writes_nothing(world: World) -> None:
    world.chore.run()
    at = tallies.mark(world.store)
    assert at is not None
    world.chore._turn(at, (), {})
    late = rules.tally({"done": 9}, namespace=SPACE, span="hour", at=BEGIN, part=rules.LEDGER)
    with pytest.raises(Turned):
        world.chore._turn(at, (("tally_add", late),), {})
    assert [r for r in rows(world) if r.span == "hour"] == []


def test_repeats_are_counted_at_the_door_and_written_twice_they_are_the_same(
    world: World,
) -> None:
    world.submit(action="a")
    for _ in range(3):
        world.doors.repeated(SPACE, "a")
    world.doors.repeated(SPACE, "ascertain.notify.mail")
    assert world.total()["folded"] == 3
    key = next(iter(world.doors._counted))
    world.doors._unwritten.add(key)  # its commit lost its connection, and is written again
    assert world.total()["folded"] == 3
    other = Doors(world.store, "p2")
    other.repeated(SPACE, "a")
    other.repeated(SPACE, "a")
    commit = other.flush()
    assert commit is not None
    commit.result()  # and with it the one before
    assert world.total()["folded"] == 5
    world.clock.advance(26 * 3600)
    run(world)
    assert world.total()["folded"] == 5
    assert world.total(until=BEGIN + HOUR)["folded"] == 5


def test_events_and_how_often_they_arrived(world: World) -> None:
    now = world.clock.wall()
    event = Event(namespace=SPACE, source="shop", id="e1", received_at=now)
    test = msgspec.structs.replace(event, id="e2", state="shown")
    first = Delivery(
        namespace=SPACE, source="shop", id="d1", event="e1", first_at=now, last_at=now, arrivals=3
    )
    second = msgspec.structs.replace(first, id="d2", arrivals=1)
    names = ("event_add", "event_add", "delivery_add", "delivery_add")
    lines = tuple(zip(names, (event, test, first, second), strict=True))
    world.store.post([Posting(lines)])
    expected = {"events": 1, "deliveries": 2, "arrivals": 4}
    assert world.total() == expected
    world.clock.advance(3 * 3600)
    run(world)
    assert world.total() == expected
    again = msgspec.structs.replace(first, id="d3")  # repeated hours later: counted at midnight
    world.store.post([Posting((("delivery_add", again),))])
    world.clock.advance(24 * 3600)
    run(world)
    assert world.total()["arrivals"] == 7


def test_how_long_people_took_and_who_needed_one(world: World) -> None:
    for took in (60, 120, 300):
        before = world.submit()
        review = Review(
            id=f"{before.operation}-unknown-1", operation=before.operation, namespace=SPACE,
            road="unknown", owner="anna", opened_at=world.clock.wall(),
        )  # fmt: skip
        unknown = world.change(before, (review,), state=State.UNKNOWN, token=None, kind=None)
        world.clock.advance(took)
        closed = msgspec.structs.replace(
            review, closed_at=world.clock.wall(), closed_by="anna", decision="there"
        )
        world.change(unknown, (closed,), **CLOSED, state=State.DONE, confirmed_by="person")
    twice = world.submit()
    duplicate = Review(
        id=f"{twice.operation}-duplicate-1", operation=twice.operation, namespace=SPACE,
        road="duplicate", owner="anna", opened_at=world.clock.wall(),
    )  # fmt: skip
    world.change(twice, (duplicate,), **CLOSED, state=State.DONE, confirmed_by="look_up")
    found = world.read.recovery_times(SPACE, Period.of(BEGIN, world.clock.wall() + 1))
    assert (found.median, found.p95, found.reviews) == (120 * SECOND, 300 * SECOND, 3)
    total = world.total()
    assert (total["reviewed"], total["duplicates"], total["by_person"]) == (4, 1, 3)


def test_runs_and_what_they_miss(world: World) -> None:
    now = world.clock.wall()
    late = Run(id="r1", namespace=SPACE, name="autumn", opened_at=now, due_at=now + SECOND)
    wanted = [Expected(run="r1", namespace=SPACE, action="a", key=k) for k in ("x", "y")]
    world.store.open_run(late, wanted)
    world.done(world.submit(action="a", key="x", run="r1"))
    world.clock.advance(60)
    [(found, counts)] = world.read.runs(SPACE, Period.of(BEGIN, world.clock.wall() + 1))
    assert (found.name, counts["done"], counts["missing"]) == ("autumn", 1, 1)
    assert [m.key for m in world.read.missing(SPACE)] == ["y"]
    world.submit(action="a", key="y")
    assert world.read.missing(SPACE) == []


def test_history_without_roll_ups_says_that_it_is_not_all(world: World) -> None:
    world.done(world.submit())
    world.clock.advance(60 * 3600)
    assert not world.read.counts(SPACE, Period.of(BEGIN, world.clock.wall() + 1)).complete
    run(world)
    assert world.total()["done"] == 1


def test_identifiers_say_their_time() -> None:
    chance = random.Random(1)
    for _ in range(200):
        at = chance.randrange(BEGIN, BEGIN + 400 * DAY)
        ident = new_id(at, chance.getrandbits(80))
        assert time_of(ident) == at // 1000 * 1000
        assert first_id(at) <= ident < first_id(at + 1000)
        assert hour_of(at) in hours_of(ident[: rules.PREFIX])
    assert hours_of("00000!") == set()


def test_a_quantile_is_the_nearest_rank() -> None:
    assert [place_of(n, 0.5) for n in (0, 1, 2, 3, 100)] == [0, 0, 0, 1, 49]
    assert [place_of(n, 0.95) for n in (0, 1, 20, 100, 101)] == [0, 0, 18, 94, 95]

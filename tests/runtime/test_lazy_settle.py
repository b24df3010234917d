"""`settle="lazy"`: refused without a look-up, printed, and only an own outcome skips the disk."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import apsw
import psycopg
import pytest
from msgspec.structs import replace

import ascertain
from ascertain import ActionInvalid, State
from ascertain.store.bulk import parts
from ascertain.testing.story import Maker, write
from shop import Shop, register

FIRST = 3  # operations before counting: the log's header, the control, the pages of a new file


def declare(ledger: Any, settle: str = "lazy", *, looks: bool = True) -> Any:
    @ledger.action("shop.note", key="{order}", owner="anna", sends_within=5, settle=settle)
    def note(call, *, order, finding=None):
        return ascertain.Done(ref=f"note-{order}") if finding is None else finding(order)

    if looks:
        note.lookup(lag=0, late=1)(lambda call: ascertain.Absent())
    return note


# --- what is declared ----------------------------------------------------------------------


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Any]:
    with ascertain.open(tmp_path / "a.db") as opened:
        yield opened


def test_without_a_look_up_it_is_refused_and_nothing_is_recorded(ledger: Any) -> None:
    note = declare(ledger, looks=False)
    with pytest.raises(ActionInvalid, match=r"shop.note: settle='lazy' needs a look-up.*@….lookup"):
        note(order=1)
    assert ledger.find() == []


def test_another_word_is_refused(ledger: Any) -> None:
    with pytest.raises(ActionInvalid, match=r"settle is 'fast': say 'durable' or 'lazy'"):
        declare(ledger, "fast")


def test_it_is_printed_among_the_assumptions(ledger: Any) -> None:
    assert "settle=lazy" in declare(ledger)(order=1).assumptions


# --- what the disk has ---------------------------------------------------------------------


class Counting(apsw.VFS):
    """The default file system, which counts how often the log is forced to the disk."""

    def __init__(self, syncs: Counter[str]) -> None:
        self.syncs, self.under = syncs, apsw.vfs_names()[0]
        super().__init__("counting", self.under, makedefault=True)

    def xOpen(self, name: Any, flags: list[int]) -> Any:  # noqa: N802 - apsw's name
        return _File(self.under, name, flags, self.syncs)


class _File(apsw.VFSFile):
    def __init__(self, under: str, name: Any, flags: list[int], syncs: Counter[str]) -> None:
        super().__init__(under, name, flags)
        path = name.filename() if isinstance(name, apsw.URIFilename) else str(name)
        self.syncs, self.kind = syncs, path.rpartition("-")[2]

    def xSync(self, flags: int) -> None:  # noqa: N802 - apsw's name
        self.syncs[self.kind] += 1
        super().xSync(flags)


@pytest.fixture
def syncs() -> Iterator[Counter[str]]:
    counted: Counter[str] = Counter()
    vfs = Counting(counted)
    yield counted
    vfs.unregister()


@pytest.mark.parametrize(("settle", "each"), [("durable", 2), ("lazy", 1)])
def test_on_sqlite_a_lazy_settlement_does_not_wait(
    syncs: Counter[str], tmp_path: Path, settle: str, each: int
) -> None:
    with ascertain.open(tmp_path / "a.db") as ledger:
        note = declare(ledger, settle)
        for order in range(FIRST):
            note(order=order)
        syncs.clear()
        for order in range(FIRST, FIRST + 10):
            assert note(order=order).state is State.DONE
        assert syncs["wal"] == 10 * each


@pytest.mark.parametrize(
    "finding",
    [ascertain.Unknown("?"), ascertain.NotDone(ascertain.NotDoneKind.INVALID, "no")],
    ids=["unknown", "not_done"],
)
def test_on_sqlite_what_is_not_known_to_have_happened_waits(
    syncs: Counter[str], ledger: Any, finding: Any
) -> None:
    note, written = declare(ledger), []
    note(order=1)
    write = ledger.store.write
    ledger.store.write = lambda changes: written.extend(changes) or write(changes)
    note.definition.function = lambda call, *, order, finding=None, found=finding: found
    syncs.clear()
    note.submit(order=2, wait=0)
    assert syncs["wal"] == len(written) >= 2


def test_on_sqlite_other_writes_wait_after_a_lazy_one(syncs: Counter[str], tmp_path: Path) -> None:
    with ascertain.open(tmp_path / "a.db") as ledger:
        declare(ledger)(order=1)
        syncs.clear()
        ledger.store.meta("colour", "red")
        assert syncs["wal"] == 1


def test_a_group_with_one_durable_change_is_durable(syncs: Counter[str], tmp_path: Path) -> None:
    store, make = ascertain.open_store(tmp_path / "a.db"), Maker()
    claims = [make.claim(key) for key in "abcd"]
    write(store, *claims)
    ends = [replace(make.done(c.status, c.status.operation), lazy=True) for c in claims]
    syncs.clear()
    write(store, ends[0], ends[1])
    assert syncs["wal"] == 0
    mixed = [ends[2], replace(ends[3], lazy=False)]
    write(store, *mixed)
    assert syncs["wal"] == 1
    store.close()
    # PostgreSQL writes a group by one statement, which says for all of it whether it waits.
    assert [parts(g)[1]["synchronous_commit"] for g in (ends[:2], mixed)] == ["off", "on"]


SPY = """
create table seen (tab text, waits text);
create function spy() returns trigger language plpgsql as $$ begin
    insert into seen values (tg_table_name, current_setting('synchronous_commit')); return null;
end $$;
create trigger spy after insert on attempt for each row execute function spy();
create trigger spy after insert on settled for each row execute function spy();
"""


@pytest.mark.parametrize(("settle", "waits"), [("durable", "on"), ("lazy", "off")])
def test_on_postgresql_only_the_settlement_does_not_wait(
    postgres_database: str, settle: str, waits: str
) -> None:
    with (
        ascertain.open(postgres_database) as ledger,
        psycopg.connect(postgres_database, autocommit=True) as admin,
    ):
        admin.execute(SPY)
        note = declare(ledger, settle)
        for order in range(3):
            note(order=order)
        ledger.store.meta("colour", "red")
        rows = admin.execute("select distinct tab, waits from seen order by tab").fetchall()
    assert rows == [("attempt", "on"), ("settled", waits)]


# --- what is lost --------------------------------------------------------------------------


def test_a_settlement_that_a_power_cut_took_is_looked_up(shop: Shop) -> None:
    lazy = register(shop.ledger, shop.target, name="shop.lazy", settle="lazy")
    writer, lost = shop.ledger.store, []
    write = writer.write

    def cut(changes: Any) -> Any:
        if any(change.lazy for change in changes):
            lost.extend(changes)
            return [ascertain.store.base.Written(applied=True)] * len(changes)
        return write(changes)

    writer.write = cut
    told = lazy.submit(order=1)
    writer.write = write
    assert (told.state, len(lost)) == (State.DONE, 1)
    assert shop.get(told).state is State.RUNNING
    shop.clock.advance(60)
    shop.settle()
    again = shop.get(told)
    assert (again.state, again.ref, again.confirmed_by) == (State.DONE, told.ref, "look_up")
    assert shop.effects(told) == 1

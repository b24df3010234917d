"""Guards of operation, each switched off once: a stop, a restore, a slow target, a retention."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ascertain import Done, Ledger
from ascertain.core.books import Event
from ascertain.core.errors import SchemaMismatch
from ascertain.runtime import chores
from ascertain.runtime.call import Call
from ascertain.runtime.chores import Chore, Runner
from ascertain.runtime.retention import Keeps, Retention
from ascertain.runtime.telemetry import Telemetry, telemetry
from ascertain.store import backup, loader, open_store
from ascertain.store.base import Posting
from ascertain.store.reads import SharedVerbs

Patch = pytest.MonkeyPatch
Scenario = Callable[[Path], None]
WITHIN = 5.0


# --- scenarios: what must hold ---


def a_restore_that_stopped_half_way_is_no_store(folder: Path) -> None:
    kept, file = open_store(folder / "a.db"), folder / "copy.gz"
    with file.open("wb") as out:
        backup.take(kept, out)
    kept.close()
    half = open_store(folder / "b.db")
    backup.fill(half, file, backup.examine(file))
    half.close()
    try:
        open_store(folder / "b.db").close()
    except SchemaMismatch:
        return
    raise AssertionError("a store that was never told of its restore can be used (law 21)")


def a_copy_that_was_changed_is_refused(folder: Path) -> None:
    import gzip

    kept, file = open_store(folder / "a.db"), folder / "copy.gz"
    kept.meta("note", "before")
    with file.open("wb") as out:
        backup.take(kept, out)
    kept.close()
    file.write_bytes(
        gzip.compress(gzip.decompress(file.read_bytes()).replace(b"before", b"beford"))
    )
    try:
        backup.examine(file)
    except backup.BadBackup:
        return
    raise AssertionError("what was restored is not what was kept")


def slow_chores_leave_a_thread_to_the_others(_: Path) -> None:
    gate, done, began = threading.Event(), threading.Event(), time.monotonic()
    slow = Chore(name="slow", every=0.01, run=lambda: int(gate.wait(WITHIN)) * 0, at_once=9)

    def quick() -> int:
        if time.monotonic() - began > 1:  # by now the slow one has all the threads that it gets
            done.set()
        return 0

    runner = Runner([slow, Chore(name="quick", every=0.2, run=quick)], threads=4)
    runner.start()
    seen = done.wait(3)
    gate.set()
    runner.stop(WITHIN)
    assert seen, "the slow target of one namespace holds up all the others"


def an_event_that_waits_keeps_its_body(folder: Path) -> None:
    store = open_store(folder / "a.db")
    waits = Event(namespace="default", source="shop", id="1", received_at=0, due_at=0, body="x")
    store.post([Posting((("event_add", waits),))])
    Retention(store, Keeps(settled=0, events=0, audit=0), ["default"]).run()
    [body] = [row["body"] for table, row in store.rows() if table == "event"]
    store.close()
    assert body == "x", "an event that was received and not processed is lost (laws 16, 19)"


def a_cut_ends_what_is_being_sent(folder: Path) -> None:
    with Ledger(open_store(folder / "a.db")) as ledger:
        ended: list[bool] = []

        @ledger.action("slow", key="{name}", owner="anna", timeout=5)
        def slow(call: Call, *, name: str) -> Done:
            assert call.http is not None
            chores.cut()
            ended.append(call._closed)
            return Done(ref=name)

        slow.submit(name="a", wait=0)
    assert ended == [True], "a server that stops leaves its requests behind"


def who_listens_is_told_no_input(folder: Path) -> None:
    told: list[Any] = []
    end = telemetry.listen(lambda event, facts: told.append((event, dict(facts))))
    try:
        with Ledger(open_store(folder / "a.db")) as ledger:

            @ledger.action("one", key="{order}", owner="anna", repeatable=True)
            def one(call: Call, *, order: str, note: str) -> Done:
                return Done(ref="x")

            one.submit(order="1", note="a secret wish", wait=0)
    finally:
        end()
    assert "secret" not in str(told), "an input stands in the log"
    assert told


# --- mutants: what must be noticed ---


def a_half_restored_store_looks_whole(patch: Patch) -> None:
    real = SharedVerbs.fill
    newest = loader.migrations("sqlite")[-1][0]
    patch.setattr(SharedVerbs, "fill", lambda self, groups, _: real(self, groups, newest))


def copies_are_not_compared(patch: Patch) -> None:
    patch.setattr(backup._Digest, "digest", property(lambda _: "0"))


def slow_chores_take_every_thread(patch: Patch) -> None:
    def greedy(self: Runner, now: int) -> Any:
        due = [k for k in self._known if k.due <= now and k.running < k.chore.at_once]
        return min(due, key=lambda k: (k.running, k.due), default=None)

    patch.setattr(Runner, "_next", greedy)


def retention_does_not_ask_whether_it_is_over(patch: Patch) -> None:
    real = Retention._end

    def careless(self: Retention, before: int, *names: str, **more: str) -> int:
        gone = real(self, before, *names, **more)
        rows = [row for table, row in self.store.rows() if table == "event"]
        if "retention_events" in names and rows:
            patched = self.store._transaction  # type: ignore[attr-defined]
            patched(lambda session: session.do("update event set body = ''", ()))
        return gone

    patch.setattr(Retention, "_end", careless)


def nobody_knows_what_is_sending(patch: Patch) -> None:
    patch.setattr(chores, "cut", lambda: 0)


def everything_is_told(patch: Patch) -> None:
    real = Telemetry.attempting

    def talkative(self: Telemetry, ticket: Any) -> Any:
        self.tell("attempt.begun", input=ticket.input)
        return real(self, ticket)

    patch.setattr(Telemetry, "attempting", talkative)


CAUGHT: dict[Callable[[Patch], None], Scenario] = {
    a_half_restored_store_looks_whole: a_restore_that_stopped_half_way_is_no_store,
    copies_are_not_compared: a_copy_that_was_changed_is_refused,
    slow_chores_take_every_thread: slow_chores_leave_a_thread_to_the_others,
    retention_does_not_ask_whether_it_is_over: an_event_that_waits_keeps_its_body,
    nobody_knows_what_is_sending: a_cut_ends_what_is_being_sent,
    everything_is_told: who_listens_is_told_no_input,
}


@pytest.mark.parametrize("mutant", CAUGHT, ids=lambda mutant: mutant.__name__)
def test_a_guard_that_is_gone_is_seen(
    mutant: Callable[[Patch], None], monkeypatch: Patch, tmp_path: Path
) -> None:
    mutant(monkeypatch)
    with pytest.raises(AssertionError):
        CAUGHT[mutant](tmp_path)


@pytest.mark.parametrize("scenario", CAUGHT.values(), ids=lambda scenario: scenario.__name__)
def test_it_holds_with_the_guard(scenario: Scenario, tmp_path: Path) -> None:
    scenario(tmp_path)

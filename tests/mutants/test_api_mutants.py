"""Guards of the API's own verbs, each switched off once: a scenario over the real ledger must say
that something is wrong, and must pass with the guard in place."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import ascertain
from ascertain.core import keys
from ascertain.core.model import Run
from ascertain.runtime import action, beginning, pins, runs, searching
from ascertain.runtime.searching import Searching, Wanted
from ascertain.server.inflight import InFlight

Patch = pytest.MonkeyPatch
Scenario = Callable[[Path], None]


def made(call: Any, shop: str) -> ascertain.Done:
    return ascertain.Done(ref=f"{shop} {call.key}")


# --- scenarios: what must hold ---


def another_key_than_that_of_the_input_is_refused(folder: Path) -> None:
    with ascertain.open(folder / "a.db") as ledger:
        act = ledger.action("own", key="{shop}", owner="anna", repeatable=True)(made)
        try:
            act.using(key="y")(shop="x")
        except ascertain.KeyMismatch:
            return
        raise AssertionError("a caller was answered under a key that is not the operation's")


def a_caller_who_gives_no_key_is_refused(folder: Path) -> None:
    with ascertain.open(folder / "a.db") as ledger:
        act = ledger.action("given", key="{key}", owner="anna", repeatable=True)(made)
        try:
            act(shop="x")
        except ascertain.KeyMissing:
            return
        raise AssertionError("two operations without a key would be one")


def a_given_key_cannot_reach_into_its_neighbour(folder: Path) -> None:
    with ascertain.open(folder / "a.db") as ledger:
        act = ledger.action("given", key="{shop}/{key}", owner="anna", repeatable=True)(made)
        act.using(key="b/c")(shop="a")
        try:
            other = act.using(key="c")(shop="a/b")
        except ascertain.InputMismatch as error:
            raise AssertionError("two operations share a key (law 16)") from error
        assert not other.reused


def what_is_written_beside_comes_with_the_operation(folder: Path) -> None:
    with ascertain.open(folder / "a.db") as ledger:
        act = ledger.action("own", key="{shop}", owner="anna", repeatable=True)(made)
        run = Run(id="0" * 26, namespace="default", name="beside", opened_at=1)
        act.using(beside=lambda _: (("run_first", run),))(shop="x")
        assert [one.name for one in ledger.runs()] == ["beside"], "its callback is lost"


def two_who_open_a_run_at_once_come_to_one(folder: Path) -> None:
    async def opened(ledger: Any) -> None:
        several = [runs.Runs(ledger.engine) for _ in range(2)]
        patch_find = [one.find for one in several]  # both look before either has written
        gate = asyncio.Event()

        async def one(here: runs.Runs, find: Any) -> str:
            found = find("autumn")
            here.find = lambda _: found  # type: ignore[method-assign]
            await gate.wait()
            return await here.named("autumn")

        tasks = [asyncio.create_task(one(*pair)) for pair in zip(several, patch_find, strict=True)]
        await asyncio.sleep(0)
        gate.set()
        assert len({await task for task in tasks}) == 1, "half of a run is in another one"

    with ascertain.open(folder / "a.db") as ledger:
        asyncio.run(opened(ledger))


def the_first_pinned_value_wins(folder: Path) -> None:
    with ascertain.open(folder / "a.db") as ledger:
        pinned = pins.Pins(ledger)

        async def both() -> list[Any]:
            return [(await pinned.pin("k", text)).result for text in ("first", "second")]

        try:
            found = asyncio.run(both())
        except ascertain.InputMismatch as error:
            raise AssertionError("a later caller gets no text") from error
        assert found == ["first", "first"], "two callers go on with different texts"


def pages_miss_nothing(folder: Path) -> None:
    with ascertain.open(folder / "a.db") as ledger, Patch.context() as patch:
        patch.setattr(searching, "WINDOW", 3)
        patch.setattr(searching, "FEW", 0)
        act = ledger.action("own", key="{shop}", owner="anna", repeatable=True)(made)
        names = [act(shop=f"n{number}").key for number in range(12)]
        found = [one.key for page in Searching(ledger).all(Wanted(), 100, 10) for one in page]
        assert found == names[::-1], "an operation is on no page"


def what_is_under_way_goes_on_without_its_client(_: Path) -> None:
    async def left() -> None:
        flight, ended = InFlight(), asyncio.Event()

        async def work() -> str:
            await ended.wait()
            return "done"

        client = asyncio.create_task(flight.within(work(), 60))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        client.cancel()
        await asyncio.wait([client])
        assert len(flight) == 1, "the effect was cancelled with its client (law 3)"
        ended.set()
        await flight.close()

    asyncio.run(left())


# --- mutants: a guard is gone ---


def any_key_will_do(patch: Patch) -> None:
    real = action.Definition._key

    def lax(self: Any, values: Any, now: int, given: str | None) -> Any:
        return real(self, values, now, given if self.takes_key else None)

    patch.setattr(action.Definition, "_key", lax)


def no_key_is_a_key(patch: Patch) -> None:
    real = action.Definition._key

    def lax(self: Any, values: Any, now: int, given: str | None) -> Any:
        return real(self, values, now, given or "none")

    patch.setattr(action.Definition, "_key", lax)


def given_keys_are_not_escaped(patch: Patch) -> None:
    patch.setattr(keys, "_escaped", lambda text, _: text)


def nothing_is_written_beside(patch: Patch) -> None:
    real = beginning.new

    def forgetful(engine: Any, d: Any, intent: Any, options: Any, world: Any) -> Any:
        from msgspec.structs import replace

        return real(engine, d, intent, replace(options, beside=None), world)

    patch.setattr(beginning, "new", forgetful)


def everybody_opens_a_run_of_his_own(patch: Patch) -> None:
    numbers = iter("abcdefgh")
    patch.setattr(runs, "run_id", lambda *_: next(numbers) * 26)


def the_value_is_part_of_who_it_is(patch: Patch) -> None:
    patch.setattr(
        action.Definition, "_fingerprint", lambda self, values, data, _: keys.fingerprint_of(data)
    )


def a_page_ends_at_an_operation(patch: Patch) -> None:
    patch.setattr(searching, "_before", lambda ident: ident)


def a_client_takes_the_work_with_him(patch: Patch) -> None:
    async def within(self: InFlight, work: Any, seconds: float) -> Any:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._ended)
        await asyncio.wait_for(task, seconds)
        return task

    patch.setattr(InFlight, "within", within)


CAUGHT: dict[Callable[[Patch], None], Scenario] = {
    any_key_will_do: another_key_than_that_of_the_input_is_refused,
    no_key_is_a_key: a_caller_who_gives_no_key_is_refused,
    given_keys_are_not_escaped: a_given_key_cannot_reach_into_its_neighbour,
    nothing_is_written_beside: what_is_written_beside_comes_with_the_operation,
    everybody_opens_a_run_of_his_own: two_who_open_a_run_at_once_come_to_one,
    the_value_is_part_of_who_it_is: the_first_pinned_value_wins,
    a_page_ends_at_an_operation: pages_miss_nothing,
    a_client_takes_the_work_with_him: what_is_under_way_goes_on_without_its_client,
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

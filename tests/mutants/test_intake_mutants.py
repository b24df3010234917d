"""Each guard of the intake is switched off once; a scenario over the real store must say by name
what goes wrong (laws 9, 16, 20)."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from msgspec.structs import replace as but

from ascertain import Ledger
from ascertain.core import signatures
from ascertain.core.signatures import SHOPIFY, STRIPE, Message, NotSigned, verify
from ascertain.runtime import intake
from ascertain.runtime.hooks import Hook
from ascertain.runtime.mapping import Rule
from ascertain.store.sqlite import SqliteStore
from server import signing

Patch = pytest.MonkeyPatch
Mutant = Callable[[Patch], None]


class Killed(BaseException):
    """The process ends here."""


def world(key: str = "{event}/{item}", **places: str) -> tuple[intake.Intake, Ledger]:
    """An intake over a store in memory; each event asks for two orders."""
    ledger = Ledger(SqliteStore(":memory:"), wait=0)

    @ledger.action("shop.order", key=key, owner="anna", sends="own")
    def order(call: Any, *, event: str, item: str) -> None:
        """Never begun here."""

    rule = Rule("shop.order", {"event": "id", "item": "item"}, each="body.items")
    hook = Hook("shop", "token", "default", places=places, rules=[rule], test=True)
    engines = {"default": ledger.engine}
    return intake.Intake(ledger.store, engines, {"shop": hook}), ledger


def hand_in(of: intake.Intake, ident: str, *, test: bool = False, **data: Any) -> None:
    data = {"items": ["a", "b"], **data}
    arrived = of.hooks["shop"].handed_in(ident, "made", str(data).replace("'", '"'), data)
    of.store.post([of.posting(of.hooks["shop"], arrived, test=test)])


def states(of: intake.Intake) -> dict[str, str]:
    return {row["id"]: row["state"] for table, row in of.store.rows() if table == "event"}


def later(of: intake.Intake) -> None:
    """Let the time pass for which a killed process holds what it took."""
    at, store = of.store.now() + 2 * intake.HOLD, of.store
    store.now = lambda: at  # type: ignore[method-assign]


def a_wrong_signature_is_refused() -> list[str]:
    body = b'{"id": "evt_1"}'
    given = Message(
        {n.lower(): v for n, v in signing.shopify(body, "e", secret="no").items()}, body
    )
    try:
        verify(SHOPIFY, given, [b"yes"], time.time(), 300)
    except NotSigned:
        return []
    return ["anybody can send events"]


def an_old_signature_is_refused() -> list[str]:
    body = b'{"id": "evt_1"}'
    signed = signing.stripe(body, at="1700000000")
    given = Message({n.lower(): v for n, v in signed.items()}, body)
    try:
        verify(STRIPE, given, [signing.SECRET.encode()], 1_700_000_000 + 3600, 300)
    except NotSigned:
        return []
    return ["a captured delivery can be sent again"]


def what_was_received_is_processed() -> list[str]:
    of, ledger = world()
    hand_in(of, "e1")
    of.process()
    there = len(ledger.find()) == 2 and states(of) == {"e1": "processed"}
    return [] if there else ["an event without its operations"]


def a_crash_loses_nothing() -> list[str]:
    of, ledger = world()
    hand_in(of, "e1")

    def killed(*_: Any) -> Any:
        raise Killed

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(intake.Intake, "_recorded", killed)
        with pytest.raises(Killed):
            of.process()
    later(of)
    of.process()
    return [] if len(ledger.find()) == 2 else ["a crash loses an event"]


def a_test_entry_never_acts() -> list[str]:
    of, ledger = world()
    hand_in(of, "e1", test=True)
    of.process()
    return [] if not ledger.find() else ["a test entry acts"]


def older_news_have_no_effect() -> list[str]:
    of, ledger = world(subject="body:about", ordinal="body:v")
    for ident, version in (("e2", 2), ("e1", 1)):
        hand_in(of, ident, about="plan", v=version)
        of.process()
    good = states(of) == {"e1": "stale", "e2": "processed"} and len(ledger.find()) == 2
    return [] if good else ["older news have an effect"]


def what_cannot_be_mapped_is_seen() -> list[str]:
    of, ledger = world()
    hand_in(of, "e1", items="none")
    of.process()
    seen = [a.kind for a in ledger.alarms()] == ["event"] and states(of) == {"e1": "failed"}
    return [] if seen else ["an event without its operations raises no alarm"]


def two_events_of_one_key_and_other_input_are_seen() -> list[str]:
    of, _ = world("{event}")
    of.hooks["shop"].rules = (Rule("shop.order", {"event": "'x'", "item": "body.items[0]"}),)
    for ident, item in (("e1", "a"), ("e2", "b")):
        hand_in(of, ident, items=[item])
        of.process()
    good = states(of) == {"e1": "processed", "e2": "failed"}
    return [] if good else ["another input under the same key is taken for done"]


# --- mutants --------------------------------------------------------------------------------------


def every_signature_verifies(patch: Patch) -> None:
    patch.setattr(signatures.hmac, "compare_digest", lambda *_: True)


def no_time_is_looked_at(patch: Patch) -> None:
    real = signatures.verify
    patch.setitem(globals(), "verify", lambda *given: real(*given[:-1], float("inf")))


def nothing_is_due(patch: Patch) -> None:
    real = intake.Intake.posting

    def undue(self: Any, *given: Any, **more: Any) -> Any:
        posting = real(self, *given, **more)
        (name, event), *rest = posting.lines
        return but(posting, lines=((name, but(event, due_at=None)), *rest))

    patch.setattr(intake.Intake, "posting", undue)


def marked_before_its_operations_are_recorded(patch: Patch) -> None:
    real = intake.Intake._taken

    def early(self: Any, due: Any, until: int) -> Any:
        taken = real(self, due, until)
        self.store.post([self.ending(event, "processed") for event in taken])
        return taken

    patch.setattr(intake.Intake, "_taken", early)


def the_test_entry_is_as_any_other(patch: Patch) -> None:
    real = intake.Intake.posting

    def acts(self: Any, hook: Any, arrived: Any, **_: Any) -> Any:
        return real(self, hook, arrived)

    patch.setattr(intake.Intake, "posting", acts)


def nothing_is_older(patch: Patch) -> None:
    patch.setattr(intake.Intake, "_older", lambda *_: [])


def what_fails_is_ignored(patch: Patch) -> None:
    real = intake.Intake.ending

    def quiet(self: Any, event: Any, state: Any, *more: Any) -> Any:
        return real(self, event, "ignored" if state == "failed" else state, *more)

    patch.setattr(intake.Intake, "ending", quiet)


def what_goes_wrong_is_left_out(patch: Patch) -> None:
    real = intake.Intake.outcome
    patch.setattr(intake.Intake, "outcome",
                  lambda self, event, made, _: real(self, event, made, ()))  # fmt: skip


GUARDS: Sequence[tuple[Mutant, Callable[[], list[str]], str]] = [
    (every_signature_verifies, a_wrong_signature_is_refused, "anybody can send events"),
    (no_time_is_looked_at, an_old_signature_is_refused, "a captured delivery can be sent again"),
    (nothing_is_due, what_was_received_is_processed, "an event without its operations"),
    (marked_before_its_operations_are_recorded, a_crash_loses_nothing, "a crash loses an event"),
    (the_test_entry_is_as_any_other, a_test_entry_never_acts, "a test entry acts"),
    (nothing_is_older, older_news_have_no_effect, "older news have an effect"),
    (what_fails_is_ignored, what_cannot_be_mapped_is_seen,
     "an event without its operations raises no alarm"),
    (what_goes_wrong_is_left_out, two_events_of_one_key_and_other_input_are_seen,
     "another input under the same key is taken for done"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("mutant", "scenario", "verdict"), GUARDS, ids=[g[0].__name__ for g in GUARDS]
)
def test_a_guard_that_is_off_is_seen(
    mutant: Mutant, scenario: Callable[[], list[str]], verdict: str
) -> None:
    assert scenario() == []
    with pytest.MonkeyPatch.context() as patch:
        mutant(patch)
        assert scenario() == [verdict]

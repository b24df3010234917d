"""Contracts: impossible ones are refused, and what they protect depends on the time."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pytest
from msgspec.structs import replace

from ascertain.core.contract import (
    NO_CONTRACT,
    Class,
    Contract,
    KeyRule,
    LateRule,
    LookupRule,
    RepeatRule,
    always_review,
    duration,
    load,
    problems,
    protection,
    race_free,
    terms,
    window_end,
)
from ascertain.core.errors import ContractInvalid
from ascertain.core.model import FOREVER, SECOND
from core.driver import declared

KEY = {"at": "header:Idempotency-Key", "kind": "request"}
HOUR = 3600 * SECOND


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("30s", 30 * SECOND), ("1.5h", 5400 * SECOND), ("250ms", 250_000), ("7d", 7 * 24 * HOUR),
        ("15m", 900 * SECOND), ("forever", FOREVER), (0.5, 500_000), (0, 0),
        (dt.timedelta(minutes=1), 60 * SECOND),
    ],
    ids=range(9),
)  # fmt: skip
def test_durations(given: Any, expected: int) -> None:
    assert duration(given) == expected


@pytest.mark.parametrize("given", ["", "30", "s", "-1s", "1 h", "1e3s", True, None, "99999999d"])
def test_a_duration_that_nobody_understands_is_refused(given: Any) -> None:
    with pytest.raises(ContractInvalid, match="lag"):
        duration(given, "lag")


@pytest.mark.parametrize("given", [-1, 1e9, float("nan"), float("inf")])
def test_a_duration_out_of_bounds_is_refused(given: float) -> None:
    with pytest.raises(ContractInvalid, match="30 years"):
        duration(given)


@pytest.mark.parametrize(
    ("parts", "problem"),
    [
        ({"id": "Vendor"}, "vendor.operation"),
        ({"repeat": {"keeps": "soon", "answer": "replay"}, "key": KEY}, "repeat.keeps is 'soon'"),
        ({"late": {"max": "forever"}}, "late.max cannot be forever"),
        ({"assume": {"lag": "forever"}}, "assume.lag cannot be forever"),
        ({"repeat": {"keeps": "1h"}, "key": KEY}, "repeat.keeps means nothing"),
        ({"assume": {"keeps": "1h"}}, "repeat.keeps means nothing"),
        ({"repeat": {"atomic": True}, "key": KEY}, "repeat.atomic cannot be true"),
        ({"key": {"at": "header:X"}}, "both be none"),
        ({"key": {"kind": "request"}}, "both be none"),
        ({"key": {"at": "somewhere", "kind": "request"}}, "key.at is 'somewhere'"),
        ({"repeat": {"answer": "replay"}}, "needs a key"),
        (
            {"key": {"at": "body:x", "kind": "content"},
             "repeat": {"answer": "absorbed", "atomic": True}},
            "only look alike",
        ),
        ({"key": {**KEY, "max": 20}}, "shorter than a target key"),
        ({"lookup": {"call": "GET /x"}}, "lookup.by"),
        ({"class": "idempotent"}, "unknown field"),
        ({"harm": "little"}, "harm"),
    ],
    ids=range(16),
)  # fmt: skip
def test_an_impossible_contract_is_refused(parts: dict[str, Any], problem: str) -> None:
    with pytest.raises(ContractInvalid, match=problem) as caught:
        load({"id": "shop.order", **parts}, "shop.toml")
    assert "shop.toml" in str(caught.value)


def test_a_possible_contract_is_loaded() -> None:
    data = {
        "id": "shop.v1.order", "key": {**KEY, "max": 20, "form": "natural"},
        "repeat": {"answer": "replay", "keeps": "24h"}, "lookup": {"by": "meta", "lag": "1h"},
    }  # fmt: skip
    made = load(data)
    assert problems(made) == []
    assert made.revision != replace(made, title="other").revision
    assert len(made.revision) == 12


# --- what is stated, assumed, or only remembered by somebody ---


def stated(**parts: Any) -> Contract:
    return load({
        "id": "shop.order", "key": KEY, "late": {"max": "20s"},
        "repeat": {"answer": "replay", "keeps": "24h", "atomic": True},
        "lookup": {"by": "meta", "lag": "30s"}, **parts,
    })  # fmt: skip


def test_what_the_vendor_states_is_no_assumption() -> None:
    made = terms(stated())
    assert (made.lag, made.late, made.keeps) == (30 * SECOND, 20 * SECOND, 24 * HOUR)
    assert made.assumed == ()
    assert made.quiet == 50 * SECOND


def test_a_declared_time_may_only_lengthen_what_is_stated() -> None:
    longer, shorter = terms(stated(), lag="1m", late=60), terms(stated(), lag="1s", late=1)
    assert (longer.lag, longer.late, longer.assumed) == (60 * SECOND, 60 * SECOND, ("lag", "late"))
    assert (shorter.lag, shorter.late, shorter.assumed) == (30 * SECOND, 20 * SECOND, ())


@pytest.mark.parametrize("weak", ["memory", "second"])
def test_a_claim_from_memory_or_at_second_hand_is_an_assumption(weak: str) -> None:
    c = stated(**{weak: ["lookup.lag", "repeat.keeps"]})
    assert terms(c).assumed == ("lag", "keeps")
    assert terms(replace(c, assume=replace(c.assume, keeps="1h"))).keeps == HOUR
    assert not race_free(terms(stated(**{weak: ["repeat.atomic"]})))


def test_a_repeat_that_only_memory_vouches_for_protects_nothing() -> None:
    made = declared(stated(memory=["repeat.answer"]), same_bytes=True)
    assert protection(made, in_window=True) is Class.OPAQUE


def test_the_operators_assumption_fills_what_the_vendor_leaves_open() -> None:
    c = load({"id": "shop.order", "assume": {"lag": "1m", "late": "15m"}})
    made = terms(c)
    assert (made.quiet, made.assumed) == (960 * SECOND, ("lag", "late"))
    assert terms(Contract(id="a.b")).quiet is None
    assert terms(Contract(id="a.b"), lag=1).quiet is None


def test_a_quiet_period_cannot_be_forever() -> None:
    with pytest.raises(ContractInvalid, match="lag cannot be forever"):
        terms(stated(), lag="forever")


def test_owners_and_undo() -> None:
    made = declared(owners={"": "anna", "duplicate": "bob"})
    assert (made.owner("unknown"), made.owner("duplicate")) == ("anna", "bob")
    assert made.reversible
    assert not declared(NO_CONTRACT).reversible
    assert declared(replace(NO_CONTRACT, harm="cost_only")).reversible


# --- the class over time ---


def of(kind: str, answer: str, atomic: bool | None = None, **more: Any) -> Any:
    c = Contract(
        id="shop.order", key=KeyRule(at="body:id", kind=kind),
        repeat=RepeatRule(answer=answer, keeps="24h", atomic=atomic),
        lookup=LookupRule(by="id", lag=more.pop("lag", None)), late=LateRule(max="20s"),
    )  # fmt: skip
    return declared(c, **{"same_bytes": True, **more})


@pytest.mark.parametrize(
    ("made", "inside", "outside"),
    [
        (of("request", "replay", atomic=True), Class.IDEMPOTENT, Class.OPAQUE),
        (of("request", "replay", lag="0s", can_look_up=True), Class.IDEMPOTENT, Class.SEARCHABLE),
        (of("request", "replay", lag="5s", can_look_up=True), Class.IDEMPOTENT, Class.LAGGING),
        (of("request", "replay", can_look_up=True), Class.IDEMPOTENT, Class.LAGGING),
        (of("request", "replay", same_bytes=False), Class.OPAQUE, Class.OPAQUE),
        (of("request", "again"), Class.OPAQUE, Class.OPAQUE),
        (of("resource", "exists", atomic=True), Class.IDENTIFIED, Class.OPAQUE),
        (of("condition", "exists", atomic=True), Class.IDENTIFIED, Class.OPAQUE),
        (of("resource", "exists"), Class.NOT_RACE_FREE, Class.OPAQUE),
        (of("resource", "overwrite", atomic=True), Class.NOT_RACE_FREE, Class.OPAQUE),
        (of("content", "absorbed"), Class.OPAQUE, Class.OPAQUE),
        (declared(Contract(id="a.b", harm="none")), Class.REPEATABLE, Class.REPEATABLE),
        (declared(Contract(id="a.b", harm="cost_only")), Class.OPAQUE, Class.OPAQUE),
        (
            declared(Contract(id="a.b", harm="cost_only"), may_repeat=True),
            Class.REPEATABLE, Class.REPEATABLE,
        ),
    ],
    ids=range(14),
)  # fmt: skip
def test_the_class_is_derived(made: Any, inside: Class, outside: Class) -> None:
    assert protection(made, in_window=True) is inside
    assert protection(made, in_window=False) is outside


def test_the_window_ends_with_a_margin() -> None:
    made = of("request", "replay")
    assert window_end(made, 100) == 100 + 24 * HOUR * 9 // 10
    assert window_end(replace(made, keeps=10 * SECOND), 0) == 5 * SECOND  # less the skew
    assert window_end(replace(made, keeps=None), 0) is None
    assert window_end(replace(made, keeps=FOREVER), 0) == FOREVER


@pytest.mark.parametrize(
    ("made", "never"),
    [
        (of("request", "replay", atomic=True), False),
        (of("request", "replay"), False),
        (of("request", "replay", same_bytes=False), True),
        (of("request", "replay", hard=False), True),
        (replace(of("request", "replay", atomic=True), late=None), True),
        (replace(of("request", "replay", atomic=True), keeps=60 * SECOND), True),
        (replace(of("request", "replay"), late=24 * HOUR), True),
        (replace(of("request", "replay"), late=11 * HOUR), True),
        (replace(of("request", "replay", atomic=True), late=11 * HOUR), False),
        (replace(of("request", "replay", atomic=True), keeps=FOREVER, late=None), False),
        (replace(of("request", "replay"), keeps=FOREVER, late=None), True),
        (replace(of("request", "replay"), keeps=FOREVER), False),
        (of("request", "replay", same_bytes=False, can_look_up=True), False),
        (of("resource", "exists"), False),
    ],
    ids=range(14),
)
def test_a_replay_that_can_never_be_reached_is_told_at_registration(made: Any, never: bool) -> None:
    assert always_review(made) is never

"""Wrong calls, wrong declarations, wrong answers of code: a clear error, and nothing lost."""

from __future__ import annotations

import datetime as dt
import decimal
from pathlib import Path
from typing import Any

import pytest

import ascertain
from ascertain import (
    ActionInvalid,
    Contract,
    ContractInvalid,
    Done,
    InputMismatch,
    InputRefused,
    KeyRefused,
    KeyWarning,
    State,
    WaitingOn,
)
from ascertain.core.contract import load
from shop import LEASE, Shop, declared, register


def nothing_is_recorded(shop: Shop) -> None:
    assert shop.ledger.find() == []
    assert len(shop.target.effects()) == 1  # the control


# --- contracts and declarations -----------------------------------------------------------------


@pytest.mark.parametrize(
    ("data", "names"),
    [
        pytest.param({"id": "a.b", "repeats": {}}, "repeats", id="unknown field"),
        pytest.param({"id": "a.b", "repeat": {"keep": "1h"}}, "keep", id="unknown inner field"),
        pytest.param({"id": "nodot"}, "vendor.operation", id="id"),
        pytest.param({"id": "a.b", "repeat": {"keeps": "1h"}}, "repeat.keeps", id="again keeps"),
        pytest.param({"id": "a.b", "repeat": {"answer": "replay"}}, "key.at", id="no key"),
        pytest.param({"id": "a.b", "late": {"max": "soon"}}, "late.max", id="duration"),
        pytest.param({"id": "a.b", "late": {"max": "forever"}}, "forever", id="late forever"),
        pytest.param(
            {"id": "a.b", "lookup": {"call": "GET /x"}}, "lookup.by", id="look-up by nothing"
        ),
    ],
)
def test_an_impossible_contract_is_refused(data: dict[str, Any], names: str) -> None:
    with pytest.raises(ContractInvalid, match=names) as caught:
        load(data, "shop.toml")
    assert "shop.toml" in str(caught.value)


def test_an_unknown_contract_is_refused_by_name(shop: Shop) -> None:
    with pytest.raises(ContractInvalid, match=r"no contract 'shop\.nothing'"):
        shop.ledger.action("x", key="{a}", owner="anna", contract="shop.nothing")


def code(call, *, order, note=""):
    return Done(ref="r")


@pytest.mark.parametrize(
    ("more", "says"),
    [
        pytest.param({"owner": None}, "has no owner", id="no owner"),
        pytest.param({"owner": "  "}, "has no owner", id="blank owner"),
        pytest.param({"key": None}, "has no key", id="no key"),
        pytest.param({"key": "{order}/{brief}"}, "brief", id="template names a missing field"),
        pytest.param({"content": ["text"]}, "content names no parameter", id="content"),
        pytest.param({"content": ["order"]}, "cannot be key", id="content in the key"),
        pytest.param({"attemps": 3}, "attemps", id="unknown bound"),
        pytest.param({"timeout": 0}, "more than 0", id="bound of nothing"),
        pytest.param({"timeout": 5, "sends_within": 6}, "sends_within", id="sends for longer"),
    ],
)
def test_a_wrong_declaration_names_the_action_and_the_fix(
    shop: Shop, more: dict[str, Any], says: str
) -> None:
    given = {"key": "{order}", "owner": "anna", **more}
    with pytest.raises(ActionInvalid, match=says) as caught:
        shop.ledger.action("shop.wrong", **given)(code)
    assert "shop.wrong" in str(caught.value) or "bound" in str(caught.value)


@pytest.mark.parametrize(
    "template", ["fixed", "{order", "{order}{note}", "{order:>9}", "{0}", "{order.real}", "{}"]
)
def test_a_wrong_key_template_is_refused(shop: Shop, template: str) -> None:
    with pytest.raises((KeyRefused, ActionInvalid)):
        shop.ledger.action("shop.wrong", key=template, owner="anna")(code)


def test_a_second_action_of_the_same_name_is_refused(shop: Shop) -> None:
    with pytest.raises(ActionInvalid, match=r"shop\.order is registered twice"):
        register(shop.ledger, shop.target)


def test_a_function_of_the_wrong_shape_is_refused(shop: Shop) -> None:
    def no_call(*, order):
        return Done()

    def anything(call, **given):
        return Done()

    def takes_wait(call, *, order, wait):
        return Done()

    for wrong in (no_call, anything, takes_wait):
        with pytest.raises(ActionInvalid, match=r"shop\.wrong"):
            shop.ledger.action("shop.wrong", key="{order}", owner="anna")(wrong)


def test_another_key_template_on_history_is_refused(shop: Shop) -> None:
    """Keys made anew would do everything again."""
    shop.order.submit(order=1)
    other = shop.another()
    with pytest.raises(ActionInvalid, match="keys_from"):
        register(other, shop.target, key="{order}/{note}")
    with_note = shop.another()
    same = register(with_note, shop.target, key="order-{order}", keys_from=["{order}"])
    again = same.submit(order=1)
    assert again.reused
    assert shop.effects(again) == 1


# --- input and keys -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "says"),
    [
        pytest.param(float("nan"), "no such number", id="NaN"),
        pytest.param(float("inf"), "no such number", id="infinity"),
        pytest.param("a\ud800b", "lone surrogate", id="lone surrogate"),
        pytest.param({1: "one"}, "object keys must be text", id="non-string key"),
        pytest.param({"a": {2: 3}}, "object keys must be text", id="inner non-string key"),
        pytest.param(2**53, "pass it as text", id="large integer"),
        pytest.param(dt.datetime(2026, 1, 1, tzinfo=dt.UTC), "isoformat", id="datetime"),
        pytest.param(decimal.Decimal(1), "str", id="Decimal"),
        pytest.param(b"bytes", "pass text", id="bytes"),
        pytest.param({1, 2}, "plain JSON", id="set"),
        pytest.param("x" * (1024 * 1024 + 1), "bound is 1048576", id="too large"),
    ],
)
def test_input_that_is_no_json_is_refused_before_anything(
    shop: Shop, value: Any, says: str
) -> None:
    with pytest.raises(InputRefused, match=says) as caught:
        shop.order.submit(order=1, note=value)
    assert "shop.order" in str(caught.value)
    nothing_is_recorded(shop)


def test_missing_and_unknown_input_is_named(shop: Shop) -> None:
    with pytest.raises(InputRefused, match="missing input order"):
        shop.order.submit(note="x")
    with pytest.raises(InputRefused, match=r"unknown input ordr.*It takes order, note"):
        shop.order.submit(order=1, ordr=1)
    nothing_is_recorded(shop)


@pytest.mark.parametrize("value", ["", "   ", None, 1.5, True, "a\ud800"])
def test_a_key_part_that_is_no_key_is_refused(shop: Shop, value: Any) -> None:
    with pytest.raises((KeyRefused, InputRefused), match=r"shop\.order"):
        shop.order.submit(order=value)
    nothing_is_recorded(shop)


@pytest.mark.parametrize("made", [7, None, "", " a ", "x" * 513, "a\nb"])
def test_a_key_function_that_makes_no_key_is_refused(shop: Shop, made: Any) -> None:
    def key(order, note):
        return made

    odd = shop.ledger.action("shop.odd", key=key, owner="anna")(code)
    with pytest.raises(KeyRefused, match=r"shop\.odd"):
        odd.submit(order=1)
    nothing_is_recorded(shop)


@pytest.mark.parametrize("value", ["anna@example.com", "+49 170 1234567"])
def test_a_key_with_personal_data_is_refused(shop: Shop, value: str) -> None:
    with pytest.raises(KeyRefused, match="personal data"):
        shop.order.submit(order=value)
    nothing_is_recorded(shop)
    mail = register(shop.ledger, shop.target, name="shop.mail", personal_key=True)
    assert mail.submit(order=value).done


@pytest.mark.parametrize(
    "value",
    ["run-4f9a7c21", "5f0c6a52-2f0b-4c63-9a2c-0f4d1c5b8e11", "2026-11-29T10:15", "1700000000"],
)
def test_a_key_that_changes_on_every_retry_is_warned_of_once(shop: Shop, value: str) -> None:
    with pytest.warns(KeyWarning, match="protects nothing"):
        shop.order.submit(order=value)
    shop.order.submit(order=value)  # the second time is silent


@pytest.mark.parametrize("value", ["4711", 815004711, "DE-2026-000123", "9783161484100"])
def test_an_order_number_is_fine(shop: Shop, value: Any) -> None:
    assert shop.order.submit(order=value).done


def test_the_same_key_with_another_input_is_refused(shop: Shop) -> None:
    first = shop.order.submit(order=1, note="red")
    with pytest.raises(InputMismatch, match="note differ") as caught:
        shop.order.submit(order=1, note="blue")
    assert caught.value.operation == first.id
    assert caught.value.fields == ["note"]
    assert shop.effects(first) == 1


def test_slashes_do_not_join_two_keys(shop: Shop) -> None:
    pair = register(shop.ledger, shop.target, name="shop.pair", key="{order}/{note}")
    one, two = pair.submit(order="a/b", note="c"), pair.submit(order="a", note="b/c")
    assert one.id != two.id
    assert len(shop.target.effects()) == 2 + 1


def test_input_that_is_not_kept_is_supplied_again(shop: Shop) -> None:
    @shop.ledger.action("shop.secret", **declared("searchable", store_input="none"))
    def order(call, *, order, note=""):
        return shop.target.send(call.target_key, note)

    order.lookup(control="control")(lambda call: shop.target.look(call.target_key))
    shop.target.script("refuse:transient")
    first = order.submit(order=1, note="secret", wait=0)
    assert first.state is State.PENDING
    shop.clock.advance(5)
    report = shop.ledger.recover()
    assert "supplies it" in report.errors[0]
    assert shop.get(first).due_at > shop.clock.wall()
    with pytest.raises(InputMismatch):
        order.submit(order=1, note="else", wait=0)
    shop.clock.advance(900)
    done = order.submit(order=1, note="secret")
    assert done.done
    assert shop.target.effects(done.target_key)[0][1] == "secret"


# --- what code returns and raises ---------------------------------------------------------------


@pytest.mark.parametrize("value", [None, {"id": 1}, "r-1", 3, [Done(ref="r")], ascertain.Absent()])
def test_an_action_that_returns_no_finding_is_unknown(shop: Shop, value: Any) -> None:
    @shop.ledger.action("shop.odd", key="{order}", owner="anna", sends="own")
    def odd(call, *, order):
        shop.target.send(call.target_key)
        return value

    lost = odd.submit(order=1)
    assert lost.state is State.UNKNOWN
    assert lost.waiting_on is WaitingOn.REVIEW
    [entry] = [e for e in shop.ledger.history(lost) if e.kind == "finding"]
    assert f"returned {type(value).__name__}" in entry.data["reason"]
    assert shop.effects(lost) == 1
    assert odd.submit(order=1).attempts == 1


class Strange(Exception):
    """An exception of nobody's list."""


def test_a_returned_value_that_is_no_finding_is_the_cause_of_what_is_raised(shop: Shop) -> None:
    @shop.ledger.action("shop.odd", **declared("searchable"))
    def odd(call, *, order):
        return "task-1"

    with pytest.raises((ascertain.OutcomeUnknown, ascertain.InReview)) as raised:
        odd(order=1, wait=0)
    assert isinstance(raised.value.__cause__, ActionInvalid)
    assert "Done(ref=" in str(raised.value.__cause__)


@pytest.mark.parametrize("error", [Strange("x"), ValueError("x"), KeyError("x"), OSError("x")])
def test_an_exception_that_nobody_classified_is_unknown(shop: Shop, error: Exception) -> None:
    @shop.ledger.action("shop.odd", **declared("searchable"))
    def odd(call, *, order):
        raise error

    assert odd.submit(order=1, wait=0).state is State.UNKNOWN


@pytest.mark.parametrize("interrupt", [KeyboardInterrupt, SystemExit])
def test_an_interrupt_is_recorded_and_goes_on(shop: Shop, interrupt: type[BaseException]) -> None:
    def fail(call, *, order):
        shop.target.send(call.target_key)
        raise interrupt

    odd = shop.ledger.action("shop.odd", **declared("searchable"))(fail)
    odd.lookup(control="control")(lambda call: shop.target.look(call.target_key))
    with pytest.raises(interrupt):
        odd.submit(order=1)
    [stands] = shop.ledger.find(key="1")
    assert stands.state is State.UNKNOWN
    shop.settle()
    assert shop.get(stands).done
    assert shop.effects(stands) == 1


def test_a_result_that_cannot_be_kept_hides_no_effect(shop: Shop) -> None:
    @shop.ledger.action("shop.odd", key="{order}", owner="anna", sends="own")
    def odd(call, *, order):
        return Done(ref="r", result=float("nan"))

    done = odd.submit(order=1)
    assert done.done
    assert done.result is None
    assert "result" in shop.ledger.history(done)[0].data


@pytest.mark.parametrize(
    ("answer", "shows"),
    [
        pytest.param(Strange("500"), "unknown", id="raises"),
        pytest.param(None, "unknown", id="nothing"),
        pytest.param("yes", "unknown", id="no finding"),
        pytest.param(ascertain.Absent(complete=False), "absent", id="a page unread"),
    ],
)
def test_a_look_up_that_cannot_tell_proves_nothing(shop: Shop, answer: Any, shows: str) -> None:
    @shop.ledger.action("shop.odd", **declared("searchable", lookups=3))
    def odd(call, *, order):
        return shop.target.send(call.target_key)

    @odd.lookup(control="control")
    def look(call):
        if isinstance(answer, Exception):
            raise answer
        return answer

    shop.target.script("gone")
    lost = odd.submit(order=1, wait=0)
    shop.settle()
    end = shop.get(lost)
    assert (end.state, end.waiting_on) == (State.UNKNOWN, WaitingOn.REVIEW)
    assert end.attempts == 1
    assert end.lookups == 3
    looked = [e for e in shop.ledger.history(lost) if e.kind == "look_up"]
    assert {e.shows for e in looked} == {shows}


def test_a_look_up_that_finds_anything_is_seen_through(shop: Shop) -> None:
    @shop.ledger.action("shop.odd", **declared("searchable"))
    def odd(call, *, order):
        return shop.target.send(call.target_key)

    @odd.lookup(control="control")
    def look(call):
        return Done(ref="anything")

    shop.target.script("gone")
    lost = odd.submit(order=1, wait=0)
    shop.settle()
    end = shop.get(lost)
    assert (end.state, end.waiting_on) == (State.UNKNOWN, WaitingOn.REVIEW)
    assert end.ref is None


def test_a_look_up_without_its_control_proves_nothing(shop: Shop) -> None:
    @shop.ledger.action("shop.odd", **declared("searchable"))
    def odd(call, *, order):
        return shop.target.send(call.target_key)

    odd.lookup(control="not there")(lambda call: shop.target.look(call.target_key))
    shop.target.script("gone")
    lost = odd.submit(order=1, wait=0)
    shop.settle()
    end = shop.get(lost)
    assert (end.state, end.waiting_on) == (State.UNKNOWN, WaitingOn.REVIEW)
    assert shop.effects(lost) == 0


def test_a_foreign_object_goes_to_a_person(shop: Shop) -> None:
    """The reference found belongs to another operation."""
    first = shop.order.submit(order=1)
    shop.target.script("gone")
    lost = shop.order.submit(order=2, wait=0)

    def foreign(call: Any) -> Any:
        return Done(ref=first.ref) if call.target_key == lost.target_key else (
            shop.target.look(call.target_key))  # fmt: skip

    other = shop.another()
    action = other.action("shop.order", **declared("searchable"))(code)
    action.lookup(control="control")(foreign)
    shop.settle(other)
    end = shop.get(lost)
    assert (end.state, end.waiting_on) == (State.UNKNOWN, WaitingOn.REVIEW)
    assert "another operation" in end.next_step["en"]
    assert shop.ledger.references(first) == [first.ref]
    assert shop.effects(lost) == 0


# --- stores -------------------------------------------------------------------------------------


def test_a_store_from_a_newer_version_is_refused(shop: Shop) -> None:
    import sqlite3

    shop.order.submit(order=1)
    path = shop.folder / "ledger.db"
    shop.ledger.close()
    with sqlite3.connect(path) as raw:
        raw.execute("update meta set value = '999' where name = 'schema'")
    raw.close()
    with pytest.raises(ascertain.SchemaMismatch, match="999"):
        ascertain.open(path)


def test_a_damaged_or_missing_store_is_named(tmp_path: Path) -> None:
    (tmp_path / "bad.db").write_bytes(b"this is no database" * 1000)
    with pytest.raises(ascertain.StoreError, match=r"bad\.db"):
        ascertain.open(tmp_path / "bad.db")
    with pytest.raises(ascertain.StoreUnavailable, match="does not exist"):
        ascertain.open(tmp_path / "no" / "such.db")
    with pytest.raises(ascertain.StoreUnavailable, match="folder"):
        ascertain.open(tmp_path)


def test_a_contract_object_is_taken_as_it_is(shop: Shop) -> None:
    made = shop.ledger.action(
        "shop.plain", key="{order}", owner="anna", contract=Contract(id="a.b"), timeout=LEASE
    )(code)
    assert made(order=1).protection == "opaque"

"""Keys, canonical JSON, fingerprints and target keys (laws 9, 16, 19)."""

from __future__ import annotations

import datetime as dt
import re
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest
import rfc8785
from hypothesis import given
from hypothesis import strategies as st

from ascertain.core import keys
from ascertain.core.errors import InputRefused, KeyRefused
from ascertain.core.keys import KeyTemplate, check_key, forms

NOW = 1_796_000_000  # seconds, late in 2026
TEXT = st.text(min_size=1, max_size=6).filter(
    lambda t: bool(t.strip()) and not any("\ud800" <= c <= "\udfff" for c in t)
)


# --- templates ---


def test_a_key_is_made_of_business_data() -> None:
    template = KeyTemplate("{product}/{language}/v{version}")
    assert template.fields == ("product", "language", "version")
    assert template.render({"product": "lamp", "language": "de", "version": 3}) == "lamp/de/v3"
    assert KeyTemplate("{order}").render({"order": "2026-0012"}) == "2026-0012"
    assert KeyTemplate("{name}").render({"name": "Öl und 茶"}) == "Öl und 茶"


@given(st.lists(TEXT, min_size=3, max_size=3), st.lists(TEXT, min_size=3, max_size=3))
def test_two_operations_never_share_a_key(one: list[str], two: list[str]) -> None:
    for text in ("{a}/{b}/{c}", "{a}-{b}:v{c}", "{a} {b}{{}}-{c}"):
        template = KeyTemplate(text)
        made = [template.render(dict(zip("abc", v, strict=True))) for v in (one, two)]
        assert (made[0] == made[1]) == (one == two)


def test_what_separates_values_is_escaped_within_them() -> None:
    slash = KeyTemplate("{a}/{b}")
    assert slash.render({"a": "a/b", "b": "c"}) == "a%2Fb/c"
    assert slash.render({"a": "a", "b": "b/c"}) == "a/b%2Fc"
    dash = KeyTemplate("{a}-{b}")
    assert dash.render({"a": "x-y", "b": "z"}) != dash.render({"a": "x", "b": "y-z"})
    assert slash.render({"a": "100%", "b": "\x00é\n"}) == "100%25/%00é%0A"


@pytest.mark.parametrize(
    ("template", "values"),
    [("{key}", {"key": "#1001"}), ("{key}", {"key": "shop/#1001"}),
     ("{a}/{b}", {"a": "#1001", "b": "r&d"}), ("{a}-{b}", {"a": "茶", "b": "1"}),
     ("{key}", {"key": "plain"})],
)  # fmt: skip
def test_a_key_is_stored_in_one_of_the_forms_of_how_it_is_written(template, values) -> None:
    written = template.format(**values)
    stored = KeyTemplate(template).render(values)
    assert stored in forms(written)
    assert forms(stored)[0] == stored
    assert forms("\ud800") == ["\ud800"]


@pytest.mark.parametrize(
    "text",
    ["order", "{}", "{0}", "{a.b}", "{a[0]}", "{a!r}", "{a:03}", "{a", "{a}{b}", "{a}v{b}",
     "{a}%{b}", ""],
)  # fmt: skip
def test_a_template_that_cannot_work_is_refused(text: str) -> None:
    with pytest.raises(KeyRefused, match="key template"):
        KeyTemplate(text)


@pytest.mark.parametrize("value", [None, "", "  ", 1.5, True, Decimal(1), [], b"x", "\ud800"])
def test_a_value_that_makes_no_key_is_refused(value: Any) -> None:
    with pytest.raises(KeyRefused, match="key part 'a'"):
        KeyTemplate("{a}").render({"a": value})


def test_a_missing_value_is_refused() -> None:
    with pytest.raises(KeyRefused, match="needs 'a'"):
        KeyTemplate("{a}").render({"b": 1})


# --- what a key may hold ---


@pytest.mark.parametrize(
    "key", ["", " a", "a ", "a\nb", "a\x7fb", "a\ud800", "x" * (keys.KEY_LENGTH + 1)]
)
def test_an_unusable_key_is_refused(key: str) -> None:
    with pytest.raises(KeyRefused):
        check_key(key)


@pytest.mark.parametrize(
    "key",
    [
        "anna@example.com",
        "user/anna.b@mail.example.org/3",
        "anna%40example.com",
        "+49 171 2345678",
        "customer/+86-138-0013-8000",
        "(030) 1234 5678",
        "tel:01712345678",
    ],
)
def test_personal_data_is_refused_unless_declared(key: str) -> None:
    with pytest.raises(KeyRefused, match="personal data"):
        check_key(key)
    assert check_key(key, personal=True) == []


@pytest.mark.parametrize("field", ["email", "e_mail", "customer_phone", "手机号"])
def test_a_field_that_names_personal_data_is_refused(field: str) -> None:
    with pytest.raises(KeyRefused, match=field):
        check_key("x", fields=(field,))


@pytest.mark.parametrize(
    "key",
    ["lamp/de/v3", "order-4500012345", "2026-11-29", "SKU+12", "a@b", "4006381333931", "0049-12",
     "2026/11/invoice-000123456789"],
)  # fmt: skip
def test_business_numbers_are_fine(key: str) -> None:
    assert check_key(key, now=NOW * 1_000_000) == []


@pytest.mark.parametrize(
    ("key", "fields", "code"),
    [
        ("x", ("run_id",), "run_id"),
        ("x", ("execution",), "run_id"),
        ("x", ("timestamp",), "run_id"),
        ("n8n/exec_0001a2b3", (), "run_id"),
        ("a/trace-00ff00ff00", (), "run_id"),
        ("6a2f41a3-c54c-4e1b-8c4c-1d2e3f405162", (), "uuid"),
        ("order/6a2f41a3c54c4e1b8c4c1d2e3f405162", (), "uuid"),
        ("2026-11-29T16:00:01", (), "clock"),
        ("20261129 1600", (), "clock"),
        (f"order-{NOW}", (), "clock"),
        (f"{NOW * 1000}", (), "clock"),
        (f"{NOW * 1_000_000 + 7}/x", (), "clock"),
    ],
    ids=range(12),
)
def test_what_changes_on_every_retry_is_warned_of(
    key: str, fields: tuple[str, ...], code: str
) -> None:
    assert check_key(key, fields=fields, now=NOW * 1_000_000) == [code]


def test_a_long_order_number_is_no_clock() -> None:
    for number in (NOW - 10**7, 10**9, NOW + 3 * 24 * 3600, 10**15):
        assert check_key(f"order-{number}", now=NOW * 1_000_000) == []
    assert check_key(f"order-{NOW}") == []  # without a clock nobody can tell


def test_uuids_that_are_made_from_names_are_stable() -> None:
    for version in "358":
        digits = UUID(f"6a2f41a3-c54c-{version}e1b-8c4c-1d2e3f405162")
        assert check_key(str(digits)) == []


# --- canonical JSON ---

PLAIN = st.none() | st.booleans() | st.integers(-(2**53) + 1, 2**53 - 1)
PLAIN |= st.floats(allow_nan=False, allow_infinity=False)
PLAIN |= st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"))
NAMES = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"))
JSON = st.recursive(PLAIN, lambda of: st.lists(of) | st.dictionaries(NAMES, of), max_leaves=12)


@given(JSON)
def test_the_fast_way_gives_the_same_bytes(value: Any) -> None:
    assert keys.canonical(value) == rfc8785.dumps(value)


def test_canonical_json_does_not_depend_on_order() -> None:
    assert keys.canonical({"b": [1, 2.5, None, True], "a": "é"}) == (
        '{"a":"é","b":[1,2.5,null,true]}'.encode()
    )
    assert keys.fingerprint({"a": 1, "b": (2,)}) == keys.fingerprint({"b": [2], "a": 1})
    assert re.fullmatch("[0-9a-f]{64}", keys.fingerprint({}))


@pytest.mark.parametrize(
    ("value", "fix"),
    [
        ({"a": {"b": [dt.datetime.fromtimestamp(0, dt.UTC)]}}, r"input\.a\.b\[0\] is.*isoformat"),
        (dt.date(2026, 1, 1), "isoformat"),
        (Decimal("1.10"), r"str\(value\)"),
        (b"x", "reference to the file"),
        ({1: 2}, "object keys must be text"),
        ({1, 2}, "plain JSON"),
        (2**53, "pass it as text"),
        (-(2**53), "pass it as text"),
        (float("nan"), "no such number"),
        (float("-inf"), "no such number"),
        (["\ud800"], "lone surrogate"),
        ({"\udfff": 1}, "lone surrogate"),
    ],
    ids=range(12),
)
def test_what_json_readers_disagree_on_is_refused(value: Any, fix: str) -> None:
    with pytest.raises(InputRefused, match=fix):
        keys.canonical(value)


def test_large_input_is_refused() -> None:
    assert keys.canonical(2**53 - 1) == b"9007199254740991"
    with pytest.raises(InputRefused, match="bound is 10"):
        keys.canonical("x" * 9, limit=10)


def test_differing_fields_are_named() -> None:
    assert keys.differing({"a": 1, "b": 2}, {"b": 3, "c": None}) == ["a", "b", "c"]
    assert keys.differing({"a": 1}, {"a": 1}) == []
    assert keys.differing([1], {"a": 1}) == ["input"]


# --- target keys ---


def test_a_target_key_fits_everywhere_and_depends_on_everything() -> None:
    base: tuple[Any, ...] = (b"secret", "acme", "cms.create", "lamp/de", 1)
    other = [(b"other", *base[1:])]
    other += [(*base[:i], f"{base[i]}x", *base[i + 1 :]) for i in (1, 2, 3)]
    other += [(*base[:4], 2), (b"secret", "acme/cms", ".create", "lamp/de", 1)]
    made = [keys.target_key(*parts) for parts in (base, *other)]
    assert len(set(made)) == len(made)
    assert all(re.fullmatch("[0-9a-v]{26}", key) for key in made)
    assert keys.target_key(*base) == made[0]


def test_a_target_key_as_uuid() -> None:
    key = keys.target_key(b"s", "n", "a", "k", 1)
    made = UUID(keys.format_key(key, "uuid"))
    assert (made.version, made.variant) == (5, "specified in RFC 4122")
    assert keys.format_key(key, "any") == key


@given(st.integers(0, 2**62), st.integers(0, 2**62), st.integers(0, 2**80 - 1))
def test_ids_sort_by_time(one: int, two: int, chance: int) -> None:
    first, second = keys.new_id(one, chance), keys.new_id(two, 0)
    assert re.fullmatch("[0-9a-v]{26}", first)
    if one // 1000 != two // 1000:
        assert (first < second) == (one < two)


def test_an_identifier_says_when_it_was_made():
    for now in (0, 1_000, 1_795_998_443_092_094, 2**45 * 1000):
        for chance in (0, 2**80 - 1):
            assert keys.time_of(keys.new_id(now, chance)) == now // 1000 * 1000
    assert keys.time_of(keys.new_id(NOW, 5)[:-1]) == NOW // 1000 * 1000  # a place between two


def test_a_run_has_one_identifier_wherever_it_is_opened():
    assert keys.run_id("default", "autumn") == keys.run_id("default", "autumn")
    others = {keys.run_id(*one) for one in (("default", "winter"), ("a", "b/c"), ("a/b", "c"))}
    assert len(others | {keys.run_id("default", "autumn")}) == 4
    assert all(len(one) == 26 for one in others)

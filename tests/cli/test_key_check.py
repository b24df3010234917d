from __future__ import annotations

import json
import time

import pytest

from ascertain import KeyRefused
from ascertain.cli.key_check import check, mask

NOW = 1_800_000_000_000_000


def rows(*lines: str) -> list[dict[str, str]]:
    head, *rest = [line.split() for line in lines]
    return [dict(zip(head, line, strict=True)) for line in rest]


ORDERS = rows(
    "order line purpose run_id email at",
    "10023 1 invoice run-aaaa0001 ann@example.org 2026-11-29T10:00:00",
    "10023 2 invoice run-aaaa0002 ann@example.org 2026-11-29T10:00:01",
    "10024 1 invoice run-aaaa0003 bob@example.org 2026-11-29T10:00:02",
    "10024 1 receipt run-aaaa0004 bob@example.org 2026-11-29T10:00:03",
    "10024 1 receipt run-aaaa0005 bob@example.org 2026-11-29T10:00:04",  # it comes again
)


def test_the_shortest_stable_combination_is_suggested() -> None:
    assert check(ORDERS, None, NOW).suggestions == ["{order}/{line}/{purpose}"]


def test_a_good_template_is_unique_and_a_repeat_is_no_collision() -> None:
    found = check(ORDERS, "{order}/{line}/{purpose}", NOW)
    assert (found.unique, found.good, found.collisions) == (True, True, [])
    assert [r.rows for r in found.repeats] == [[4, 5]]


def test_a_collision_names_its_rows_and_what_differs() -> None:
    [first, second] = check(ORDERS, "{order}", NOW).collisions
    assert (first.key, first.rows, first.differ) == ("10023", [1, 2], ["line"])
    assert (second.rows, second.differ) == ([3, 4, 5], ["purpose"])


def test_personal_columns_are_named_and_masked() -> None:
    found = check(ORDERS, "{email}/{purpose}/{order}/{line}", NOW)
    assert (found.unique, found.good, found.personal) == (True, False, ["email"])
    column = next(c for c in found.columns if c.name == "email")
    assert "ann@example.org" not in str(found)
    assert column.personal == "a***rg"


@pytest.mark.parametrize(
    ("column", "value", "code"),
    [
        ("job", "run-4f2a91bc", "run_id"),
        ("request_id", "77", "run_id"),
        ("ident", "0b8b6f0e-7f43-4a5c-9d3e-1f2a3b4c5d6e", "uuid"),
        ("moment", "2026-11-29T10:00:00Z", "clock"),
        ("moment", "29.11.2026 10:00", "clock"),
        ("created_at", "1600000000", "clock"),
        ("seen", "1800000001", "clock"),
    ],
)
def test_what_changes_on_a_retry_is_recognised(column, value, code) -> None:
    found = check([{column: value, "order": "1"}], f"{{{column}}}", NOW)
    assert found.unstable == [column]
    assert code in found.columns[0].looks_like
    assert not found.good


@pytest.mark.parametrize("value", ["4500001234", "2026-11-29", "DE-2026-000123", "王府井-12"])
def test_business_numbers_and_days_are_fine(value) -> None:
    assert check([{"order": value}], "{order}", NOW).good


@pytest.mark.parametrize(
    ("value", "why"),
    [(None, "empty"), (" ", "empty"), (1.5, "kind"), (True, "kind"), (["a"], "kind"),
     ("x" * 600, "characters")],
)  # fmt: skip
def test_a_row_that_makes_no_key_is_named(value, why) -> None:
    found = check([{"order": "1"}, {"order": value}], "{order}", NOW)
    assert [(u.row, u.why) for u in found.unusable] == [(2, why)]
    assert not found.good


def test_a_column_that_is_nowhere_is_refused() -> None:
    with pytest.raises(KeyRefused, match="nowhere"):
        check(ORDERS, "{nowhere}", NOW)


def test_many_rows_are_quick() -> None:
    many = [{"a": n % 400, "b": n // 400, "c": n % 7, "text": "same"} for n in range(40_000)]
    began = time.monotonic()
    assert check(many, None, NOW).suggestions == ["{a}/{b}"]
    assert time.monotonic() - began < 5


def test_numbers_without_a_stable_combination_have_no_suggestion() -> None:
    found = check([{"run_id": n, "kind": "a", "amount": 1.5 + n} for n in range(3)], None, NOW)
    assert (found.suggestions, found.good) == ([], False)


def test_every_address_of_a_text_is_masked() -> None:
    shown = mask("ann@example.org and bob@example.org, +49 30 1234567")
    assert "@" not in shown
    assert "1234567" not in shown


# --- the real console ----------------------------------------------------------------------

CSV = "\n".join(",".join(row) for row in [list(ORDERS[0]), *(r.values() for r in ORDERS)])


@pytest.mark.parametrize(
    ("lang", "words"),
    [
        ("en", ["collides: 10023", "rows 1, 2", "personal: email", "a run or request id"]),
        ("zh", ["冲突：10023", "第 1, 2 行", "个人信息：email", "批次或请求编号"]),
    ],
)
def test_the_console_says_what_is_wrong(cli, lang, words) -> None:
    (cli.folder / "rows.csv").write_text(CSV, "utf-8")
    done = cli.process("key", "check", "rows.csv", "--template", "{order}", "--lang", lang)
    assert done.returncode == 4, done.stderr
    for word in words:
        assert word in done.stdout
    assert "{order}/{line}/{purpose}" in done.stdout
    assert "ann@example.org" not in done.stdout
    good = "{order}/{line}/{purpose}"
    assert cli("key", "check", "rows.csv", "--template", good, "--lang", lang).exit_code == 0


def test_the_json_of_key_check_is_stable(cli) -> None:
    lines = "\n".join(json.dumps(r) for r in ORDERS)
    (cli.folder / "rows.jsonl").write_text(lines + "\n", "utf-8")
    data = cli.json("key", "check", "rows.jsonl", "--template", "{order}", code=4)
    assert set(data) == {
        "rows", "template", "unique", "good", "columns", "collisions", "repeats", "personal",
        "unstable", "unusable", "few", "suggestions",
    }  # fmt: skip
    assert set(data["columns"][0]) == {
        "name", "distinct", "personal", "looks_like", "example", "unusable"
    }  # fmt: skip
    assert set(data["collisions"][0]) == {"key", "rows", "differ"}
    stdin = cli("key", "check", "-", typed=lines)
    assert stdin.exit_code == 0, stdin.output


def test_heads_become_names_of_parameters_and_other_signs_divide(cli) -> None:
    (cli.folder / "a.csv").write_text("\ufeffOrder No;订单类型\n1;甲\n1;乙\n", "utf-8")
    data = cli.json("key", "check", "a.csv")
    assert data["suggestions"] == ["{订单类型}"]
    assert [c["name"] for c in data["columns"]] == ["order_no", "订单类型"]


@pytest.mark.parametrize("lang", ["en", "zh"])
@pytest.mark.parametrize(
    ("content", "where"),
    [
        pytest.param(b"", "a.csv", id="empty"),
        pytest.param(b"a,b\n1,2\n3\n", "3", id="a short row"),
        pytest.param(b"a,a\n1,2\n", "a.csv", id="a column twice"),
        pytest.param(b'{"a": 1}\n{"a": \n', "2", id="broken JSON"),
        pytest.param(b"[1]\n", "1", id="no object"),
        pytest.param(b"\xff\xfe", "UTF-8", id="another encoding"),
        pytest.param(None, "a.csv", id="no file"),
    ],
)
def test_a_bad_file_is_one_line_that_says_where(cli, content, where, lang) -> None:
    if content is not None:
        (cli.folder / "a.csv").write_bytes(content)
    done = cli("key", "check", "a.csv", "--lang", lang)
    assert (done.exit_code, done.stderr.count("\n")) == (2, 1)
    assert where in done.stderr

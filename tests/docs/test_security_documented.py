"""The pages about security say which rights each role, flag and scope has, as the code has it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from ascertain.core.books import Member
from ascertain.core.rights import EVERYWHERE, FLAGS, ROLES, SCOPES, Right, rights_of_member
from ascertain.runtime import hashing, links, sessions
from ascertain.server import signing

DOCS = Path(__file__).parents[2] / "docs"
PAGES = pytest.mark.parametrize(
    ("page", "yes", "everywhere"),
    [("security.md", "yes", "in `*` only"), ("zh/security.md", "是", "仅限 `*`")],
)


def rows(page: str, columns: int) -> dict[str, list[str]]:
    """The rows of tables of so many columns whose first cell is a word of the code."""
    text = (DOCS / page).read_text("utf-8")
    found = [[c.strip() for c in line.strip("|").split("|")] for line in text.splitlines()
             if line.startswith("| `")]  # fmt: skip
    return {row[0].strip("`"): row[1:] for row in found if len(row) == columns}


def held(role: str, namespace: str = "a", **flags: int) -> frozenset[Right]:
    return rights_of_member(Member(account="", namespace=namespace, role=role, **flags))


@PAGES
def test_the_table_of_rights_is_the_one_of_the_code(page, yes, everywhere) -> None:
    told = rows(page, 6)
    assert set(told) == {right.value for right in Right}
    for name, (_, *roles, flag) in told.items():
        right = Right(name)
        for role, cell in zip(ROLES, roles, strict=True):
            expected = yes if right in held(role) else ""
            if not expected and right in held(role, EVERYWHERE):
                expected = everywhere
            assert cell == expected, (name, role)
        flags = [n for n, gives in FLAGS.items() if gives is right]
        assert re.findall(r"`(\w+)`", flag) == flags, name


@PAGES
def test_the_table_of_scopes_is_the_one_of_the_code(page, yes, everywhere) -> None:
    told = {name: set(re.findall(r"`(\w+)`", cells[0])) for name, cells in rows(page, 2).items()}
    assert told == {scope: {right.value for right in given} for scope, given in SCOPES.items()}


@PAGES
def test_the_numbers_are_those_of_the_code(page, yes, everywhere) -> None:
    text = (DOCS / page).read_text("utf-8")
    hour = 3600 * 1_000_000
    numbers = {
        "64 MiB": hashing.MEMORY_KIB == 64 * 1024,
        "3": hashing.PASSES == 3,
        "12": sessions.IDLE // hour == 12,
        "7": sessions.LONGEST // hour == 7 * 24,
        "30": links.GUEST_LONGEST // hour == 30 * 24,
        "15": signing.WINDOW == 15 * 60,
        "10": signing.PER_PAIR == 10,
        "50": signing.PER_ADDRESS == 50,
        "100": signing.PER_LOGIN == 100,
    }
    for number, right in numbers.items():
        assert right, number
        assert number in text, number
    assert signing.HASHING == 2


def test_both_pages_have_the_same_sections() -> None:
    heads = [
        len(re.findall(r"^## ", (DOCS / page).read_text("utf-8"), re.MULTILINE))
        for page in ("security.md", "zh/security.md")
    ]
    assert heads[0] == heads[1]

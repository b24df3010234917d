"""Every claim of the page names a test that exists, and both languages make the same claims."""

from __future__ import annotations

import re
import tomllib

import pytest

from ascertain.cli.main import ascertain
from docs.test_claims import NAMED, ROOT, functions

PAGES = ("docs/howto/contract-test.md", "docs/zh/howto/contract-test.md")


def text(page: str) -> str:
    return (ROOT / page).read_text(encoding="utf-8")


@pytest.mark.parametrize("page", PAGES)
def test_every_claim_names_a_test_that_exists(page: str) -> None:
    named = NAMED.findall(text(page))
    assert len(named) >= 14
    assert not [f"{p}::{t}" for p, t in named if t not in functions(ROOT / p)]
    assert len(text(page).splitlines()) <= 150


def test_both_languages_say_the_same() -> None:
    english, chinese = map(text, PAGES)
    assert NAMED.findall(english) == NAMED.findall(chinese)
    for page in (english, chinese):
        [toml] = re.findall(r"```toml\n(.*?)```", page, re.DOTALL)
        assert list(tomllib.loads(toml)["actions"]) == ["desk.remove"]
    row = re.compile(r"^\|.*`(?:repeat|lookup|ok|undo).*\|$", re.MULTILINE)
    tables = [row.findall(page) for page in (english, chinese)]
    assert len(tables[0]) == len(tables[1]) == 8


@pytest.mark.parametrize("page", PAGES)
def test_every_option_exists(page: str) -> None:
    group = ascertain.get_command(None, "contract")  # type: ignore[arg-type]
    assert group is not None
    known = {o for p in group.commands["test"].params for o in p.opts}  # type: ignore[attr-defined]
    assert set(re.findall(r"(?<![\w-])--[a-z][a-z-]+", text(page))) <= known

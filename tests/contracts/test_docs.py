"""docs/contracts.md says what is true: its own contract loads, both languages show the same."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from ascertain.contracts import catalogue
from ascertain.core.advice import classes
from ascertain.core.contract import Class
from ascertain.core.levels import acceptable, accepted, stated

DOCS = Path(__file__).parents[2] / "docs"
PAGES = ("contracts.md", "zh/contracts.md")


def blocks(page: str, language: str) -> list[str]:
    text = (DOCS / page).read_text("utf-8")
    return re.findall(rf"```{language}\n(.*?)```", text, re.DOTALL)


@pytest.mark.parametrize("page", PAGES)
def test_the_page_is_short(page: str) -> None:
    assert len((DOCS / page).read_text("utf-8").splitlines()) <= 150


@pytest.mark.parametrize("language", ["toml", "sh"])
def test_both_languages_show_the_same(language: str) -> None:
    assert blocks(PAGES[0], language) == blocks(PAGES[1], language)


def test_its_contracts_load() -> None:
    stripe, accept, own = blocks(PAGES[0], "toml")
    [made] = catalogue.parse(own, "crm.toml").values()
    assert classes(made) == (Class.NOT_RACE_FREE, Class.NOT_RACE_FREE)
    [short] = catalogue.parse(stripe, "stripe.toml").values()
    whole = stated(catalogue.find("stripe.v1.post"))
    for path, value in stated(short).items():
        assert whole[path] == value or path == "lookup.call"
    names = re.findall(r'"([a-z.]+)"', accept.partition("accept = ")[2])
    assert set(names) <= set(acceptable(catalogue.find("stripe.v1.post")))
    assert accepted(catalogue.find("stripe.v1.post"), names).repeat.atomic


@pytest.mark.parametrize("page", PAGES)
def test_every_table_of_a_contract_is_explained(page: str) -> None:
    text = (DOCS / page).read_text("utf-8")
    tables = {p.partition(".")[0] for c in catalogue.shipped().values() for p in stated(c)}
    assert {t for t in tables if f"`{t}`" not in text} == set()

"""Every page exists in English and in Chinese, and leads to the other one."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"
ENGLISH_ALONE = {"performance.md"}  # figures, mostly
PAGES = sorted(
    str(page.relative_to(DOCS))
    for pattern in ("*.md", "howto/*.md")
    for page in DOCS.glob(pattern)
    if page.name not in ENGLISH_ALONE
)


def text(page: str) -> str:
    return (DOCS / page).read_text("utf-8")


@pytest.mark.parametrize("page", PAGES)
def test_a_page_and_its_twin_lead_to_each_other(page: str) -> None:
    up = "../" * page.count("/")
    assert f"]({up}zh/{page})" in text(page)
    assert f"]({up}../{page})" in text(f"zh/{page}")


def test_no_chinese_page_leads_to_an_english_one_that_has_a_twin() -> None:
    astray = [
        f"{page.relative_to(DOCS)}: {link}"
        for page in DOCS.glob("zh/**/*.md")
        for name, link in re.findall(r"\[([^\]]+)\]\(([^)#:]+\.md)\)", page.read_text("utf-8"))
        if (page.parent / link).resolve().is_relative_to(DOCS)
        and name != "English"
        and not (page.parent / link).resolve().is_relative_to(DOCS / "zh")
        and (DOCS / "zh" / (page.parent / link).resolve().relative_to(DOCS)).exists()
    ]
    assert astray == []


def test_both_have_the_same_laws_and_words() -> None:
    laws = [
        re.findall(r"^(\d+)\. ", text(p), re.MULTILINE) for p in ("semantics.md", "zh/semantics.md")
    ]
    assert laws[0] == laws[1] == [str(n) for n in range(1, 22)]
    words = [
        len(re.findall(r"^\| ", text(p), re.MULTILINE)) for p in ("glossary.md", "zh/glossary.md")
    ]
    assert words[0] == words[1] > 25

"""The API reference names every route, and says in Chinese what it does."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"


@pytest.fixture(autouse=True)
def beside_the_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", [str(DOCS), *sys.path])


def test_every_route_has_its_sentence_in_chinese_and_no_other() -> None:
    import api

    assert api.untranslated() == []


@pytest.mark.parametrize("page", ["api.md", "zh/api.md"])
def test_every_link_within_the_page_leads_somewhere(page: str) -> None:
    import re

    text = (DOCS / page).read_text("utf-8")
    heads = {head.lower() for head in re.findall(r"^###? (\w+)$", text, re.MULTILINE)}
    links = set(re.findall(r"\]\(#([^)]+)\)", text))
    assert links
    assert links <= heads

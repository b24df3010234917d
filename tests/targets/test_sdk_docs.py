"""What docs/howto/sdks.md says is shown by a test, and its settings are what the SDKs take."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from targets.sdk_calls import BOX, CALL

ROOT = Path(__file__).parents[2]
PAGES = ("docs/howto/sdks.md", "docs/zh/howto/sdks.md")
NAMED = re.compile(r"`(tests/[\w/]+\.py)::(test_\w+)`")


def text(page: str) -> str:
    return (ROOT / page).read_text(encoding="utf-8")


def blocks(page: str) -> list[str]:
    return re.findall(r"```python\n(.*?)```", text(page), re.DOTALL)


@pytest.mark.parametrize("page", PAGES)
def test_every_claim_names_a_test_that_exists(page: str) -> None:
    named = NAMED.findall(text(page))
    assert len(named) >= 15
    for file, name in named:
        tree = ast.parse((ROOT / file).read_text(encoding="utf-8"))
        assert name in {n.name for n in ast.walk(tree) if isinstance(n, ast.FunctionDef)}
    assert len(text(page).splitlines()) <= 150


def test_both_languages_say_the_same() -> None:
    one, other = PAGES
    assert blocks(one) == blocks(other)
    assert NAMED.findall(text(one)) == NAMED.findall(text(other))


@pytest.mark.filterwarnings("ignore::ResourceWarning")
@pytest.mark.parametrize("number", range(5))
def test_the_settings_are_what_the_sdks_take(number: int) -> None:
    document = {**BOX, "rootUrl": "http://127.0.0.1/"}
    known = {"call": CALL, "credentials": None, "document": document}
    exec(compile(blocks(PAGES[0])[number], PAGES[0], "exec"), known)
    made = [v for k, v in known.items() if k in ("client", "s3", "service")]
    assert len(made) == 1
    if hasattr(made[0], "close"):
        made[0].close()

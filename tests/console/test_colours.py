"""Contrast of every pair of tokens, by the formula of WCAG 2.2: axe does not look at glyphs."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from ascertain.core.people import Answer

CONSOLE = Path(__file__).parents[2] / "src" / "ascertain" / "console"
CSS = (CONSOLE / "static" / "app.css").read_text("utf-8")
MADE = ("g-", "b-", "v-", "then-")  # classes that a page puts together from a word
OUTCOMES = ("done", "not", "unk", "fix", "apv", "auto")


def tokens(head: str) -> dict[str, str]:
    body = CSS[CSS.index(head) :].partition("{")[2].partition("}")[0]
    return dict(re.findall(r"--([\w-]+):(#[0-9A-Fa-f]{6})", body))


THEMES = {
    "light": tokens(":root{"),
    "dark": tokens("[data-theme=dark]{"),
    "system, dark": tokens(":root[data-theme=system]{"),
}


def luminance(colour: str) -> float:
    parts = [int(colour[n : n + 2], 16) / 255 for n in (1, 3, 5)]
    linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    lighter, darker = sorted((luminance(one), luminance(other)), reverse=True)
    return (lighter + 0.05) / (darker + 0.05)


@pytest.mark.parametrize("theme", THEMES)
def test_text_is_readable(theme: str) -> None:
    own = THEMES[theme]
    pairs = [(ink, ground) for ink in ("ink", "ink2", "ink3") for ground in ("bg", "panel", "card")]
    pairs += [("btnink", "btn"), ("ink", "add"), ("ink", "del")]
    pairs += [(outcome, f"{outcome}-bg") for outcome in OUTCOMES]
    low = {pair: contrast(own[pair[0]], own[pair[1]]) for pair in pairs}
    assert {pair: ratio for pair, ratio in low.items() if ratio < 4.5} == {}


@pytest.mark.parametrize("theme", THEMES)
def test_glyphs_borders_and_focus_are_seen(theme: str) -> None:
    own = THEMES[theme]
    pairs = [(f"{outcome}-dot", "card") for outcome in OUTCOMES]
    pairs += [("ctl", "card"), ("focus", "bg"), ("focus", "card")]
    low = {pair: contrast(own[pair[0]], own[pair[1]]) for pair in pairs}
    assert {pair: ratio for pair, ratio in low.items() if ratio < 3} == {}


def test_the_dark_theme_is_the_same_by_choice_and_by_system() -> None:
    assert THEMES["dark"] == THEMES["system, dark"]


def test_no_style_is_left_over() -> None:
    """Every class of the style sheet is a word of a template, of the script or of their data."""
    files = [*CONSOLE.glob("templates/*.html"), *CONSOLE.glob("**/*.py"), CONSOLE / "static/app.js"]
    words = {
        word for file in files for word in re.findall(r"[a-z][\w-]*", file.read_text("utf-8"))
    } | {answer.value for answer in Answer}
    selectors = " ".join(re.findall(r"([^{}]+)\{", re.sub(r"/\*.*?\*/", "", CSS)))
    styled = set(re.findall(r"\.([a-z][\w-]*)", selectors))
    assert len(styled) > 100
    made = {f"{head}{word}" for head in MADE for word in words}
    assert styled - words - made == set()

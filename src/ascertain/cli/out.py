"""How things are printed: tables, times, durations, JSON. `rich` is imported when it is used."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import click
import msgspec

from ascertain.core import words
from ascertain.core.model import SECOND

from .base import Settings
from .texts import TEXTS, say

PIPED = 240  # columns of a table that is not printed on a terminal
ID = 26  # characters of an operation's id, which is never broken: people copy it
_ID = re.compile(rf"[0-9a-v]{{{ID}}}")
_UNITS = (
    ("day", 86_400 * SECOND),
    ("hour", 3_600 * SECOND),
    ("minute", 60 * SECOND),
    ("second", SECOND),
)


def emit(data: Any) -> None:
    """Print JSON, indented, with all scripts readable."""
    click.echo(msgspec.json.format(msgspec.json.encode(data), indent=2).decode())


def emit_line(data: Any) -> None:
    """Print one line of JSON."""
    click.echo(msgspec.json.encode(data).decode())


def clean(text: object) -> str:
    """Return a text without what could move the cursor or repaint a terminal."""
    return "".join(c if c.isprintable() else " " for c in str(text))


def short(text: object, most: int = 200) -> str:
    """Return a text of at most so many characters, on one line."""
    shown = clean(text)
    return shown if len(shown) <= most else shown[: most - 1] + "…"


def when(moment: int | None) -> str:
    """Return a time in µs in the reader's time zone, in ISO 8601."""
    if moment is None:
        return ""
    utc = datetime.fromtimestamp(moment / SECOND, tz=UTC)
    return utc.astimezone().isoformat(timespec="seconds")


def span(duration: int, lang: str) -> str:
    """Return a duration in µs in words, in its largest unit."""
    for name, size in _UNITS:
        if duration >= size:
            number = duration // size
            plural = "" if number == 1 else "s"
            return say(f"span.{name}", lang, number=number, plural=plural)
    return say("span.moment", lang)


def relative(moment: int, now: int, lang: str) -> str:
    """Say how far a time lies ahead or back."""
    key = "span.ahead" if moment > now else "span.ago"
    return say(key, lang, span=span(abs(moment - now), lang))


def how(settings: Settings, code: str) -> str:
    """Say how something was found out."""
    if f"how.{code}" in TEXTS:
        return settings.say(f"how.{code}")
    if code in words.SENTENCES:
        return words.say(code, settings.lang)
    return settings.say("show.by", name=code) if code else ""  # whoever reported it


def table(heads: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """Print a table; on a terminal as wide as that, else without line breaks in cells."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    terminal = sys.stdout.isatty()
    console = Console(
        file=sys.stdout,
        width=None if terminal else PIPED,
        highlight=False,
        emoji=False,
        markup=False,
    )
    made = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    for number, head in enumerate(heads):
        ids = all(_ID.fullmatch(str(row[number])) for row in rows)
        least = ID if ids else None
        made.add_column(Text(head), overflow="fold", no_wrap=ids, min_width=least)
    for row in rows:
        made.add_row(*(Text(clean(cell)) for cell in row))
    console.print(made)


def facts(settings: Settings, pairs: Sequence[tuple[str, object]]) -> None:
    """Print names and values, those without a value left out."""
    for name, value in pairs:
        if value not in (None, ""):
            click.echo(settings.say("fact", name=name, value=clean(value)))


def ask(settings: Settings, sentence: str, *, yes: bool) -> bool:
    """Say what will happen and ask whether it shall; with `--yes` only say it.

    On standard error, so that `--json` stays alone on standard output.
    """
    click.echo(sentence, err=True)
    if yes:
        return True
    return click.confirm(settings.say("ask"), err=True)

"""The console's words: which texts the pages use, and the compiled catalogue.

`console.po` is written by hand, one entry per text; `make docs` compiles `console.mo` from it.
"""

from __future__ import annotations

import io
from datetime import UTC, datetime
from pathlib import Path

from babel.messages.extract import extract_from_dir
from babel.messages.mofile import write_mo
from babel.messages.pofile import read_po

CONSOLE = Path(__file__).parents[1] / "src" / "ascertain" / "console"
WORDS = CONSOLE / "locale" / "zh" / "LC_MESSAGES" / "console.po"
COMPILED = WORDS.with_suffix(".mo")
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def used() -> set[str]:
    """Return every text that a template or the code of a page shows."""
    methods = [("templates/**.html", "jinja2"), ("**.py", "python")]
    options = {"templates/**.html": {"trimmed": "false", "silent": "false"}}
    found = extract_from_dir(CONSOLE, method_map=methods, options_map=options, keywords={"_": None})
    return {message for _, _, message, _, _ in found if isinstance(message, str)}


def translated() -> dict[str, str]:
    """Return the catalogue, text by text."""
    with WORDS.open("rb") as file:
        return {str(m.id): str(m.string) for m in read_po(file, locale="zh") if m.id}


def compiled() -> bytes:
    """Return the catalogue as the console reads it; the same words make the same bytes."""
    with WORDS.open("rb") as file:
        read = read_po(file, locale="zh")
    read.creation_date = EPOCH  # else Babel writes the minute in which it was compiled
    made = io.BytesIO()
    write_mo(made, read)
    return made.getvalue()

"""Every `ascertain …` that a page, an answer or the console shows exists, with its options."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from ascertain.cli import base
from ascertain.cli.main import ascertain

ROOT = Path(__file__).parents[2]
SHOWN = re.compile(r"`ascertain( [^`\n]+)`|^(?:<pre[^>]*>)?ascertain( .*)$", re.MULTILINE)


def options(command: click.Command) -> dict[str, int]:
    """Its options, and how many words follow each."""
    return {
        name: 0 if param.is_flag else param.nargs
        for param in command.params
        if isinstance(param, click.Option)
        for name in (*param.opts, *param.secondary_opts)
    }


COMMON = options(click.Command("", params=base.common())) | {"--help": 0, "--version": 0}


def places() -> Iterator[Path]:
    yield from ROOT.glob("*.md")
    for folder, kinds in (
        ("docs", ("md", "service", "py", "mjs")),
        ("src/ascertain", ("py", "html", "po", "toml")),
    ):
        for kind in kinds:
            yield from (ROOT / folder).rglob(f"*.{kind}")


def wrong(line: str) -> str | None:
    """What of a command line does not exist."""
    group: click.Command = ascertain
    known, values = dict(COMMON), 0
    for word in re.sub(r"[#|&>].*", "", line).split():
        option = re.match(r"--?[a-z][\w-]*", word)
        if option is not None:
            if option[0] not in known:
                return option[0]
            values = 0 if "=" in word else known[option[0]]
        elif values:
            values -= 1
        elif isinstance(group, click.Group) and re.fullmatch(r"[a-z][a-z-]*", word):
            found = group.get_command(click.Context(group), word)
            if found is None:
                return word
            group = found
            known |= options(group)
    return None


@pytest.mark.parametrize(
    ("line", "fault"),
    [
        ("token new first --scopes ops:read", None),
        ("token new first --scope ops:read", "--scope"),
        ("tokens new first", "tokens"),
        ("--lang zh op list --json  # all", None),
    ],
)
def test_what_does_not_exist_is_seen(line: str, fault: str | None) -> None:
    assert wrong(line) == fault


def test_every_command_that_is_shown_exists() -> None:
    seen, faults = 0, []
    for path in places():
        text = html.unescape(path.read_text("utf-8")).replace("\\\n", " ")
        for match in SHOWN.finditer(text):
            line = (match[1] or match[2]).strip()
            seen += 1
            if fault := wrong(line):
                faults.append(f"{path.relative_to(ROOT)}: ascertain {line}: {fault}")
    assert faults == []
    assert seen > 150

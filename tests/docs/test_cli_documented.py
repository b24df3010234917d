"""The pages of the command line name every command, option, answer and exit code."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from ascertain.cli import base
from ascertain.cli.main import ascertain
from ascertain.core.people import Answer

DOCS = Path(__file__).parents[2] / "docs"
PAGES = pytest.mark.parametrize("page", ["cli.md", "zh/cli.md"])


def commands(
    group: click.Group = ascertain, path: str = "ascertain"
) -> Iterator[tuple[str, click.Command]]:
    ctx = click.Context(group, info_name=path)
    for name in group.list_commands(ctx):
        command = group.get_command(ctx, name)
        assert command is not None
        if isinstance(command, click.Group):
            yield from commands(command, f"{path} {name}")
        else:
            yield f"{path} {name}", command


def sections(page: str) -> dict[str, str]:
    """Each command's section by the command's name."""
    text = (DOCS / page).read_text("utf-8")
    parts = re.split(r"^### `(ascertain [^`]+)`$", text, flags=re.MULTILINE)
    names = [re.sub(r" [\[A-Z].*", "", head) for head in parts[1::2]]
    return dict(zip(names, parts[2::2], strict=True))


@PAGES
def test_every_command_has_a_section_and_no_section_is_left_over(page) -> None:
    known = {name for name, _ in commands()} | {"ascertain demo"}
    assert set(sections(page)) == known


@PAGES
def test_every_option_is_documented_where_it_belongs(page) -> None:
    documented = sections(page)
    common = {o for p in base.common() for o in p.opts}
    for name, command in commands():
        for param in command.params:
            if isinstance(param, click.Option) and not common & set(param.opts):
                assert any(f"`{o}" in documented[name] for o in param.opts), (name, param.opts)
    head = (DOCS / page).read_text("utf-8").partition("### ")[0]
    for option in common | {"--version", "--help"}:
        assert re.search(rf"`[^`]*{option}\b", head), option


@PAGES
def test_no_documented_option_is_unknown(page) -> None:
    known = {o for p in base.common() for o in p.opts} | {"--help", "--version"}
    known |= {"--once", "--keep", "--wordpress"}  # of the demo, whether or not it is installed
    known |= {o for _, c in commands() for p in c.params for o in p.opts}
    text = (DOCS / page).read_text("utf-8")
    assert set(re.findall(r"(?<![\w-])--[a-z][a-z-]+", text)) <= known


@PAGES
def test_every_answer_and_every_exit_code_is_explained(page) -> None:
    text = (DOCS / page).read_text("utf-8")
    for answer in Answer:
        assert f"| `{answer.value}` |" in text
    for code in (base.FINE, base.USAGE, base.UNRESOLVED, base.REFUSED, base.BROKEN):
        assert f"| {code} |" in text


def test_both_pages_say_the_same_in_the_same_order() -> None:
    assert list(sections("cli.md")) == list(sections("zh/cli.md"))

"""`ascertain key check`: sample rows in, what they say about keys out."""

from __future__ import annotations

import csv
import io
import re
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import click
import msgspec

from ascertain.runtime.clock import Clock

from .base import FINE, REFUSED, Cmd, Grp, Settings, Told, option
from .key_check import Checked, Row, check
from .out import clean, emit, short

MOST = 100_000  # rows
BYTES = 64 * 1024 * 1024


@click.group("key", cls=Grp, key="key")
def key() -> None:
    """Keys."""


@key.command("check", cls=Cmd, key="key.check")
@click.argument("file")
@option("--template", metavar="TEMPLATE")
@click.pass_obj
def check_(settings: Settings, /, file: str, template: str | None) -> int:
    """Check a key template against sample rows, or suggest one."""
    rows = read(file)
    found = check(rows, template, Clock().wall())
    if settings.json:
        emit(found)
    else:
        _tell(settings, found)
    return FINE if found.good else REFUSED


# --- reading -------------------------------------------------------------------------------


def read(file: str) -> list[Row]:
    """Read rows of CSV (with a head) or JSON lines; raises UsageError naming the line."""
    try:
        raw = sys.stdin.buffer.read(BYTES + 1) if file == "-" else _bytes(Path(file))
        text = raw.decode("utf-8-sig")
    except OSError as error:
        raise Told("key.no_file", file=file, why=error) from error
    except UnicodeDecodeError as error:
        raise Told("key.not_utf8", file=file) from error
    if len(raw) > BYTES:
        raise Told("key.too_big", file=file, most=MOST)
    rows = _json_lines(text, file) if text.lstrip()[:1] in ("{", "[") else _csv(text, file)
    if not rows:
        raise Told("key.no_rows", file=file)
    if len(rows) > MOST:
        raise Told("key.too_big", file=file, most=MOST)
    return rows


def _bytes(path: Path) -> bytes:
    with path.open("rb") as source:
        return source.read(BYTES + 1)


def _json_lines(text: str, file: str) -> list[Row]:
    rows = []
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        try:
            row: Any = msgspec.json.decode(line)
        except msgspec.DecodeError as error:
            raise Told("key.bad_line", file=file, line=number, why=error) from error
        if not isinstance(row, dict):
            raise Told("key.no_object", file=file, line=number)
        rows.append({_name(n): v for n, v in row.items()})
    return rows


def _csv(text: str, file: str) -> list[Row]:
    head = text.partition("\n")[0]
    delimiter = max(",;\t", key=head.count)
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    try:
        names = [_name(n) for n in next(reader, [])]
        if len(set(names)) < len(names) or not all(names):
            raise Told("key.bad_head", file=file)
        rows = []
        for cells in reader:
            if cells and len(cells) != len(names):
                raise Told(
                    "key.bad_row", file=file, line=reader.line_num, has=len(cells),
                    wants=len(names),
                )  # fmt: skip
            if cells:
                rows.append(dict(zip(names, cells, strict=True)))
    except csv.Error as error:
        raise Told("key.bad_line", file=file, line=reader.line_num, why=error) from error
    return rows


def _name(column: str) -> str:
    """Return a column's name as a parameter of a function may be called: `Order No` is
    `order_no`."""
    name = re.sub(r"\W+", "_", column.strip()).strip("_")
    name = name if name == column else name.lower()
    return f"_{name}" if name[:1].isdigit() else name


# --- telling -------------------------------------------------------------------------------


def _tell(settings: Settings, found: Checked) -> None:
    say = settings.say
    lines = [say("key.rows", count=found.rows)]
    if found.template is not None:
        lines += _verdict(settings, found)
    for column in found.columns:
        if column.personal:
            lines.append(say("key.personal", column=column.name, example=column.personal))
        for code in column.looks_like:
            what = say(f"looks.{code}")
            lines.append(say("key.unstable", column=column.name, what=what, example=column.example))
    if found.few:
        lines.append(say("key.few"))
    if found.suggestions:
        lines.append(say("key.suggests", templates="   ".join(found.suggestions)))
    elif not found.good:
        lines.append(say("key.no_suggestion"))
    for line in lines:
        click.echo(short(line, 600))


def _verdict(settings: Settings, found: Checked) -> list[str]:
    say = settings.say
    lines = [say("key.good" if found.good else "key.bad", template=found.template)]
    if found.unique:
        lines.append(say("key.unique"))
    lines += [
        say("key.collides", key=clean(c.key), rows=_list(c.rows), differ=_list(c.differ))
        for c in found.collisions
    ]
    lines += [say("key.repeats", key=clean(c.key), rows=_list(c.rows)) for c in found.repeats]
    for bad in found.unusable:
        lines.append(say("key.unusable", row=bad.row, column=bad.column, why=say(f"bad.{bad.why}")))
    for names, name in (
        (found.personal, "key.uses_personal"),
        (found.unstable, "key.uses_unstable"),
    ):
        if names:
            lines.append(say(name, columns=_list(names)))
    return lines


def _list(values: Iterable[object]) -> str:
    return ", ".join(map(str, values))

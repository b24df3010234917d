"""Turns the tables of a TOML text into records, and says everything that is wrong in them.

What is wrong is taken out of its table, and the rest is read on; a key whose name is nearly one
that is known is read as that one. So one mistake hides no other.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import msgspec

from ascertain.core.nearest import meant, nearest

from .lines import Place, line_of
from .schema import inner, known

_PLACE = re.compile(r"^[\w.\-/]+")
_AT = re.compile(r" - at `\$\.?([^`]*)`$")
_KIND = re.compile(r"`([a-z]+(?: \| [a-z]+)*)`")
_KINDS = {
    "str": "a text", "int": "a whole number", "float": "a number", "bool": "true or false",
    "object": "a table", "array": "a list", "null": "nothing",
}  # fmt: skip


class Problem(msgspec.Struct, frozen=True):
    """One thing that cannot be meant, where it stands, and why."""

    file: str
    line: int
    where: str
    why: str

    def __str__(self) -> str:
        """Return it as compilers write it."""
        return f"{self.file}:{self.line}: {self.where}: {self.why}"


class Tables:
    """The tables of one file, with where everything stands, and what is wrong so far."""

    def __init__(self, path: Path) -> None:
        """Read nothing yet."""
        self.path = path
        self.lines: dict[Place, int] = {}
        self.data: dict[str, Any] = {}
        self.problems: list[Problem] = []

    def wrong(self, path: Place, why: str) -> None:
        """Say what is wrong at a place."""
        where = ".".join(str(p) if isinstance(p, str) else f"{p + 1}" for p in path)
        self.problem(self.path, line_of(self.lines, path), where or str(self.path.name), why)

    def problem(self, file: Path, line: int, where: str, why: str) -> None:
        """Say what is wrong on a line of a file, once."""
        made = Problem(str(file), line, where, why)
        if made not in self.problems:
            self.problems.append(made)

    def convert(self, table: Any, kind: Any, path: Place) -> Any:
        """Return a table as a record, or None where something that it needs is wrong or missing.

        Everything wrong in it is said, and taken out of it.
        """
        if isinstance(table, dict) and not self._fits(table, kind, path):
            return None
        return self._converted(table, kind, path)

    def _fits(self, table: dict[str, Any], kind: type[msgspec.Struct], path: Place) -> bool:
        """Say what is wrong in a table and take it out; tell whether all that it needs is there."""
        within, fits = inner(kind), True
        for key in [key for key in table if key not in within]:
            self._unknown(table, key, kind, path)
        for field in msgspec.structs.fields(kind):
            key = field.encode_name
            if key not in table:
                if field.required:
                    self.wrong(path, f"{key} is missing")
                    fits = False
            elif not self._field(table[key], field, within[key], (*path, key)):
                del table[key]
                fits = fits and not field.required
        return fits

    def _unknown(
        self, table: dict[str, Any], key: str, kind: type[msgspec.Struct], path: Place
    ) -> None:
        """Say that a key is unknown, and read it as the one that is meant, if that is not there."""
        self.wrong((*path, key), f"unknown key{nearest(key, known(kind))}")
        value, likely = table.pop(key), meant(key, known(kind))
        if likely is None or likely in table:
            return
        table[likely] = value
        length = len(path) + 1
        for place, line in [*self.lines.items()]:
            if place[:length] == (*path, key):
                self.lines.setdefault((*path, likely, *place[length:]), line)

    def _field(
        self, value: Any, field: Any, tables: list[tuple[type[msgspec.Struct], bool]], path: Place
    ) -> bool:
        """Say what is wrong in a value; tell whether it can be used without that."""
        found = []
        for kind, named in tables:
            if named and isinstance(value, dict):
                parts = [(value[name], (*path, name)) for name in value]
            elif isinstance(value, list):
                parts = [(one, (*path, number)) for number, one in enumerate(value)]
            else:
                parts = [(value, path)]
            found += [self._fits(v, kind, p) for v, p in parts if isinstance(v, dict)]
        return all(found) and self._converted(value, field.type, path) is not None

    def _converted(self, value: Any, kind: Any, path: Place) -> Any:
        try:
            return msgspec.convert(value, kind)
        except msgspec.ValidationError as error:
            at = _AT.search(str(error))
            why = _plain(_AT.sub("", str(error)))
            self.wrong(self.place(path, names(at[1]) if at else []), why)
            return None

    def place(self, path: Place, steps: list[str]) -> Place:
        """Return the longest path that is written, from a table on; names may hold dots."""
        best, name = path, ""
        for step in steps:
            name = f"{name}.{step}" if name else step
            for candidate in (name, int(name) if name.isdecimal() else name):
                if (*best, candidate) in self.lines:
                    best, name = (*best, candidate), ""
                    break
        return best


def steps(problem: str) -> list[str]:
    """Return the names of the place that a problem begins with."""
    found = _PLACE.match(problem)
    return found[0].strip(".").split(".") if found else []


def names(place: str) -> list[str]:
    """Return the names of a place as msgspec writes it."""
    return re.findall(r"[\w\-]+", place)


def _plain(why: str) -> str:
    """Say what msgspec says about a value in plain words."""
    return _KIND.sub(
        lambda found: " or ".join(_KINDS.get(word, word) for word in found[1].split(" | ")), why
    )

"""On which line of a TOML text each key and table stands: `tomllib` does not say.

Reads text that `tomllib` has accepted, so it never has to say what is wrong with it.
"""

from __future__ import annotations

import re
import tomllib

Place = tuple[str | int, ...]  # names, and numbers of elements of lists, from the top

_BLANK = re.compile(r"(?:[ \t\r\n]|#[^\n]*)*")
_BARE = re.compile(r"[A-Za-z0-9_-]+")
_STRING = re.compile(
    r'"""(?:\\.|[^\\])*?"""(?:"{0,2})' r"|'''.*?'''(?:'{0,2})"
    r'|"(?:\\.|[^"\\\n])*"' r"|'[^'\n]*'",
    re.DOTALL,
)  # fmt: skip
_SCALAR = re.compile(r"[^,\]}#\n]+")


def lines(text: str) -> dict[Place, int]:
    """Return the line of every key, table and element of a list, by its path."""
    return _Scan(text).run()


def line_of(found: dict[Place, int], path: Place) -> int:
    """Return the line of a path, or of the nearest table or key around it that is written."""
    for length in range(len(path), 0, -1):
        if path[:length] in found:
            return found[path[:length]]
    return 1


class _Scan:
    def __init__(self, text: str) -> None:
        self.text, self.at = text, 0
        self.found: dict[Place, int] = {}
        self.many: dict[Place, int] = {}  # arrays of tables, with how many there are so far

    def run(self) -> dict[Place, int]:
        table: Place = ()
        self.blank()
        while self.at < len(self.text):
            if self.text.startswith("[[", self.at):
                self.at += 2
                table = self.named(self.key())
                self.many[table] = self.many.get(table, 0) + 1
                self.note(table)
                table = (*table, self.many[table] - 1)
                self.note(table)
                self.skip("]]")
            elif self.text[self.at] == "[":
                self.at += 1
                table = self.named(self.key())
                self.note(table)
                self.skip("]")
            else:
                self.pair(table)
            self.blank()
        return self.found

    def named(self, names: list[str]) -> Place:
        """Return a table's path: a name of an array of tables means its last element."""
        path: Place = ()
        for place, name in enumerate(names):
            path = (*path, name)
            if path in self.many and place < len(names) - 1:
                path = (*path, self.many[path] - 1)
        return path

    def pair(self, table: Place) -> None:
        for name in self.key():
            table = (*table, name)
            self.note(table)
        self.skip("=")
        self.value(table)

    def value(self, path: Place) -> None:
        self.blank()
        opening = self.text[self.at]
        if opening == "{":
            self.at += 1
            while not self.closes("}"):
                self.pair(path)
        elif opening == "[":
            self.at += 1
            number = 0
            while not self.closes("]"):
                self.note((*path, number))
                self.value((*path, number))
                number += 1
        else:
            string = _STRING.match(self.text, self.at)
            scalar = string or _SCALAR.match(self.text, self.at)
            self.at = self.at + 1 if scalar is None else scalar.end()

    def closes(self, end: str) -> bool:
        """Go past blanks and a comma; tell whether a list or inline table ends here."""
        self.blank()
        if self.text[self.at] == ",":
            self.at += 1
            self.blank()
        if self.text[self.at] != end:
            return False
        self.at += 1
        return True

    def key(self) -> list[str]:
        names = []
        while True:
            self.blank()
            string = _STRING.match(self.text, self.at)
            if string:
                names.append(tomllib.loads(f"v = {string[0]}")["v"])
                self.at = string.end()
            else:
                bare = _BARE.match(self.text, self.at)
                assert bare is not None
                names.append(bare[0])
                self.at = bare.end()
            self.blank()
            if self.text[self.at] != ".":
                return names
            self.at += 1

    def blank(self) -> None:
        found = _BLANK.match(self.text, self.at)
        assert found is not None
        self.at = found.end()

    def skip(self, mark: str) -> None:
        self.blank()
        self.at += len(mark)

    def note(self, path: Place) -> None:
        self.found.setdefault(path, self.text.count("\n", 0, self.at) + 1)

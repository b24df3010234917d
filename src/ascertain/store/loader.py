"""Named queries from .sql files, checked when they are loaded.

A query is `-- name: x`, a line `-- why`, then one statement with `:named` parameters. A file for
one database overrides the shared one by name, so that what differs is in one place.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import cache
from importlib.resources import files
from operator import attrgetter
from typing import Any, Self

from ascertain.core.errors import SchemaMismatch, StoreError

UNFINISHED = 1_000_000  # the schema of a store while a backup is written into it
NAME = re.compile(r"^-- name: ([a-z0-9_]+)$", re.MULTILINE)
# A quoted text, a comment, a cast or a parameter: only the last is translated.
TOKEN = re.compile(r"'(?:[^']|'')*'|--[^\n]*|::|:([a-z][a-z0-9_]*)")


class Query(str):
    """One statement in a database's own form, with the names of its parameters in order."""

    __slots__ = ("name", "params")
    name: str
    params: tuple[str, ...]

    def __new__(cls, name: str, text: str, params: tuple[str, ...]) -> Self:
        """Keep the text as the string itself, so that drivers take it as it is."""
        query = super().__new__(cls, text)
        query.name = name
        query.params = params
        return query

    def values(self, given: Mapping[str, Any]) -> tuple[Any, ...]:
        """Return the parameters of a mapping in the order of this statement."""
        return tuple(given[name] for name in self.params)

    def reader(self, without: int = 0) -> Callable[[Any], tuple[Any, ...]]:
        """Return a function that reads the parameters from a record, except the last few."""
        names = self.params[: len(self.params) - without]
        read: Callable[[Any], tuple[Any, ...]] = attrgetter(*names)
        return read


class Queries(dict[str, Query]):
    """All statements of one database by name; those of `books` are used by their name alone."""

    def __init__(
        self,
        texts: Mapping[str, str],
        translate: Callable[[str, str], Query],
        books: Collection[str] = (),
    ) -> None:
        """Translate every text to the database's own form."""
        super().__init__({name: translate(name, text) for name, text in texts.items()})
        self.books = frozenset(books)
        self._texts = texts
        self._translate = translate
        self._joined: dict[tuple[str, ...], Query] = {}

    def joined(self, names: Sequence[str], separator: str) -> Query:
        """Return a statement made of named parts; the last follows on a line of its own."""
        made = (*names, separator)
        if made not in self._joined:
            body = separator.join(self._texts[name] for name in names[:-1])
            text = f"{body}\n{self._texts[names[-1]]}"
            self._joined[made] = self._translate(" ".join(names), text)
        return self._joined[made]

    def translated(self, name: str, text: str) -> Query:
        """Return a statement that stands in no file, in the database's own form."""
        return self._translate(name, text)

    def expect(self, names: Collection[str]) -> None:
        """Refuse to start with a statement missing or one that nobody uses."""
        missing = sorted(set(names) - set(self))
        unused = sorted(set(self) - set(names) - self.books)
        if missing or unused:
            raise StoreError(
                f"The SQL files do not match this version of Ascertain: missing {missing}, "
                f"unused {unused}; install the package again."
            )


def split(text: str, source: str) -> Iterator[tuple[str, str]]:
    """Yield (name, statement) of a file; a name twice or one without a reason is refused."""
    seen: set[str] = set()
    pieces = NAME.split(text)[1:]
    for name, body in zip(pieces[::2], pieces[1::2], strict=True):
        lines = body.strip().split("\n")
        statement = "\n".join(line for line in lines if not line.startswith("--"))
        if name in seen or not lines[0].startswith("-- ") or not statement.strip():
            raise StoreError(f"{source}: query {name} is there twice, empty, or says not why.")
        seen.add(name)
        yield name, statement.strip().removesuffix(";")


def numbered(name: str, text: str) -> Query:
    """Translate to SQLite's `?1`, so that values bind by position, the fastest way."""
    params: list[str] = []

    def place(match: re.Match[str]) -> str:
        param = match[1]
        if param is None:
            return match[0]
        if param not in params:
            params.append(param)
        return f"?{params.index(param) + 1}"

    return Query(name, TOKEN.sub(place, text), tuple(params))


def formatted(name: str, text: str) -> Query:
    """Translate to psycopg's `%(name)s`; a literal percent sign is doubled."""
    params: list[str] = []

    def place(match: re.Match[str]) -> str:
        param = match[1]
        if param is None:
            return match[0].replace("%", "%%")
        if param not in params:
            params.append(param)
        return f"%({param})s"

    parts: list[str] = []
    end = 0
    for match in TOKEN.finditer(text):
        parts += [text[end : match.start()].replace("%", "%%"), place(match)]
        end = match.end()
    parts.append(text[end:].replace("%", "%%"))
    return Query(name, "".join(parts), tuple(params))


def too_new(name: str, version: int, newest: int) -> SchemaMismatch:
    """Say of a store that it has a schema which this version does not know."""
    if version == UNFINISHED:
        return SchemaMismatch(
            f"A restore into the store {name} did not finish, so it is not to be used: make an "
            "empty one, and run `ascertain store restore` again."
        )
    return SchemaMismatch(
        f"The store {name} has schema {version}, this version of Ascertain knows {newest}; "
        "install the version that wrote it, or a newer one."
    )


@cache
def load(database: str) -> Queries:
    """Load the statements of `sqlite` or `postgres`; its own come over the shared ones."""
    translate = numbered if database == "sqlite" else formatted
    folder = files("ascertain.store") / "sql"
    texts: dict[str, str] = {}
    books: set[str] = set()
    for entry in sorted((folder / "books").iterdir(), key=lambda entry: entry.name):
        for name, text in split(entry.read_text("utf-8"), entry.name):
            if name in books:
                raise StoreError(f"{entry.name}: query {name} stands in two files.")
            books.add(name)
            texts[name] = text
    for source in ("queries.sql", f"{database}.sql"):
        texts.update(split((folder / source).read_text("utf-8"), source))
    return Queries(texts, translate, books)


@cache
def migrations(database: str) -> list[tuple[int, str, str]]:
    """Return (number, file name, text) of every migration, in order and without a gap."""
    folder = files("ascertain.store") / "sql" / "migrations" / database
    found = sorted(
        (int(entry.name[:4]), entry.name, entry.read_text("utf-8"))
        for entry in folder.iterdir()
        if entry.name.endswith(".sql")
    )
    if [number for number, _, _ in found] != list(range(1, len(found) + 1)):
        raise StoreError(f"The migrations of {database} are not numbered 1, 2, 3 …")
    return found

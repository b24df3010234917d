"""Strapi on SQLite: a field that is called unique, and drafts that a plain look-up does not see."""

from __future__ import annotations

import contextlib
import os
import shutil
import sqlite3
from collections.abc import Sequence

from .base import Effect, System, mentions
from .installed import home
from .web import answers

PARTS = ("config", "src", "package.json")
JOURNAL = """
create table if not exists journal (ref integer, op_key text, title text);
create trigger if not exists noted after insert on drafts begin
  insert into journal values (new.id, new.op_key, new.title); end;
"""


class Strapi(System):
    """Strapi with the content type ``draft``: ``title``, and ``op_key`` with ``"unique": true``.

    The uniqueness is not checked for drafts: two with one key are both answered 201. ``GET
    /api/drafts?filters[op_key][$eq]=K`` shows what is published, unless ``status=draft`` is said.
    Starts in about 5 s. Measured with Strapi 5.53.0 on 2026-11-29.
    """

    name = "Strapi"
    install = "make accept-full"

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        super().__init__(folder, ready_within=90.0)

    @property
    def authorization(self) -> str:
        """Value of the HTTP Authorization header."""
        return f"Bearer {(self.folder / 'token').read_text('ascii')}"

    def effects(self, marker: str) -> list[Effect]:
        """Return the drafts in the database that mention the marker."""
        return self._found(
            "select id, op_key, title from drafts where published_at is null", marker
        )

    def creations(self, marker: str) -> int:
        """Count the rows ever inserted as drafts, by a trigger's journal."""
        return len(self._found("select ref, op_key, title from journal", marker))

    def _found(self, asked: str, marker: str) -> list[Effect]:
        match = mentions(marker)
        with contextlib.closing(sqlite3.connect(self.folder / "data.db", timeout=10)) as database:
            rows = database.execute(asked).fetchall()
        return [
            Effect(str(number), None, f"row {number} of drafts")
            for number, key, title in rows
            if match(f"{key}\n{title}")
        ]

    def _prepare(self) -> None:
        app = self.folder / "app"
        if app.exists():
            return
        app.mkdir()
        for part in PARTS:
            source = home("strapi") / part
            (shutil.copytree if source.is_dir() else shutil.copy)(source, app / part)
        (app / "node_modules").symlink_to(home("strapi") / "node_modules")
        (app / "public" / "uploads").mkdir(parents=True)

    def _environment(self) -> dict[str, str]:
        said = {
            "PORT": str(self.port),
            "DATABASE_FILENAME": str(self.folder / "data.db"),
            "TOKEN_FILE": str(self.folder / "token"),
            "NODE_ENV": "production",
            "STRAPI_TELEMETRY_DISABLED": "true",
            "STRAPI_DISABLE_UPDATE_NOTIFICATION": "true",
        }
        return {**super()._environment(), **said}

    def _command(self) -> Sequence[str]:
        start = "process.chdir('app'); require('@strapi/strapi').createStrapi().start()"
        modules = self.folder / "app" / "node_modules" / "@strapi" / "strapi"
        start = start.replace("'@strapi/strapi'", repr(str(modules)))
        return ["node", "-e", start]

    def _answers(self) -> bool:
        if not (self.folder / "token").exists():
            return False
        return answers(self.port, "/api/drafts", {"Authorization": self.authorization})

    def _set_up(self) -> None:
        with contextlib.closing(sqlite3.connect(self.folder / "data.db", timeout=10)) as database:
            database.executescript(JOURNAL)

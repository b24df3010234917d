"""Directus on PostgreSQL: collections with and without a unique key, and its files."""

from __future__ import annotations

import contextlib
import os
import subprocess
from collections.abc import Sequence
from typing import Any

from .base import Effect, System, mentions
from .installed import home
from .web import answers, ask_json

TOKEN = "throw-away"  # noqa: S105 - a throw-away server on loopback
TABLES = ("drafts", "keyed", "directus_files")
# Written by triggers in the transaction of the row: Directus knows nothing of it.
JOURNAL = """
create table journal (what text, ref text, content text);
create function note_row() returns trigger language plpgsql as $$
begin insert into journal values (tg_table_name, new.id::text, row_to_json(new)::text);
return new; end $$;
create trigger noted after insert on drafts for each row execute function note_row();
create trigger noted after insert on keyed for each row execute function note_row();
create trigger noted after insert on directus_files for each row execute function note_row();
"""


class Directus(System):
    """Directus with collection ``drafts`` (a field ``op_key`` that is not unique) and ``keyed``
    (whose primary key is a string that the client chooses), on a PostgreSQL given by its facts.

    The same primary key is refused with 400 ``RECORD_NOT_UNIQUE``, of items and of files. An item
    that does not exist is answered 403 by its path, to an administrator too: ask by a filter.
    Starts in about 10 s. Measured with Directus 11.3.5 on 2026-11-29.
    """

    name = "Directus"
    install = "make accept-full"

    def __init__(self, folder: str | os.PathLike[str], *, dsn: str) -> None:
        super().__init__(folder, ready_within=90.0)
        self.dsn = dsn

    @property
    def authorization(self) -> str:
        """Value of the HTTP Authorization header."""
        return f"Bearer {TOKEN}"

    def effects(self, marker: str, tables: Sequence[str] = TABLES) -> list[Effect]:
        """Return the rows of these tables that mention the marker."""
        match = mentions(marker)
        found = []
        for table in tables:  # names of ours
            asked = f"select id::text, row_to_json(t)::text from {table} t"  # noqa: S608
            for ref, content in self._rows(asked):
                if match(content):
                    found.append(Effect(ref, None, f"row {ref} of {table}"))
        return found

    def creations(self, marker: str, tables: Sequence[str] = TABLES) -> int:
        """Count the rows ever inserted, deleted ones included, by the triggers' journal."""
        match = mentions(marker)
        rows = self._rows("select what, content from journal")
        return sum(what in tables and match(content) for what, content in rows)

    def _rows(self, statement: str) -> list[tuple[Any, ...]]:
        import psycopg

        with psycopg.connect(self.dsn, autocommit=True) as owner:
            return owner.execute(statement.encode()).fetchall()

    def _environment(self) -> dict[str, str]:
        from psycopg.conninfo import conninfo_to_dict

        facts = dict(conninfo_to_dict(self.dsn))
        said = {
            "DB_CLIENT": "pg",
            "DB_HOST": str(facts["host"]),
            "DB_PORT": str(facts["port"]),
            "DB_USER": str(facts["user"]),
            "DB_PASSWORD": "-",
            "DB_DATABASE": str(facts["dbname"]),
            "SECRET": TOKEN,
            "ADMIN_EMAIL": "admin@example.com",
            "ADMIN_PASSWORD": TOKEN,
            "ADMIN_TOKEN": TOKEN,
            "HOST": self.host,
            "PORT": str(self.port),
            "TELEMETRY": "false",
            "LOG_LEVEL": "warn",
            "PUBLIC_URL": self.url,
            "STORAGE_LOCAL_ROOT": str(self.folder / "uploads"),
            "EXTENSIONS_PATH": str(self.folder / "extensions"),
            "NODE_ENV": "production",
        }
        return {**super()._environment(), **said}

    def _prepare(self) -> None:
        if (self.folder / "bootstrapped").exists():
            return
        command = [*self._command()[:1], "bootstrap"]
        with self.log_file.open("ab") as log:
            subprocess.run(
                command, check=True, stdout=log, stderr=log, cwd=self.folder,
                env=self._environment(),
            )  # fmt: skip
        (self.folder / "bootstrapped").touch()

    def _command(self) -> Sequence[str]:
        return [str(home("directus") / "node_modules" / ".bin" / "directus"), "start"]

    def _answers(self) -> bool:
        return answers(self.port, "/server/ping")

    def _set_up(self) -> None:
        number = {"is_primary_key": True, "has_auto_increment": True}
        ids = {
            "drafts": {"field": "id", "type": "integer", "schema": number},
            "keyed": {"field": "id", "type": "string", "schema": {"is_primary_key": True}},
        }
        texts: list[dict[str, Any]] = [
            {"field": f, "type": "string", "schema": {}, "meta": {}} for f in ("op_key", "title")
        ]
        headers = {"Authorization": self.authorization}
        for name, first in ids.items():
            made = {"collection": name, "schema": {}, "meta": {}, "fields": [first, *texts]}
            status, said = ask_json(self.port, "POST", "/collections", made, headers=headers)
            if status != 200:
                raise RuntimeError(f"{self.name}: POST /collections {status} {said}")
        import psycopg

        with contextlib.closing(psycopg.connect(self.dsn, autocommit=True)) as owner:
            owner.execute(JOURNAL)

"""A table of one's own in PostgreSQL: a unique key, and a journal that no client can change."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from .base import LOOPBACK, Effect, mentions

# The journal is written by a trigger, in the transaction of the row, with the owner's rights.
SCHEMA = """
create table effect (
  id bigint generated always as identity primary key,
  op_key text not null unique,
  payload text not null,
  made_at timestamptz not null default now()
);
create table journal (effect bigint, op_key text, payload text);
create function note_effect() returns trigger language plpgsql security definer as $$
begin insert into journal values (new.id, new.op_key, new.payload); return new; end $$;
create trigger noted after insert on effect for each row execute function note_effect();
create role crm login;
grant select, insert, delete on effect to crm;
create role stranger login;
create role blind login;
grant select on effect to blind;
alter table effect enable row level security;
create policy crm_sees on effect to crm using (true) with check (true);
"""


@dataclass(frozen=True)
class PostgresTable:
    """The table ``effect`` in a database of a running server.

    Role ``crm`` works with it; ``stranger`` may not read it; ``blind`` may, and is shown nothing
    by the table's row security.
    """

    dsn: str  # the owner's, over TCP
    name = "PostgreSQL"

    @property
    def _facts(self) -> dict[str, Any]:
        from psycopg.conninfo import conninfo_to_dict

        return dict(conninfo_to_dict(self.dsn))

    @property
    def port(self) -> int:
        """The server's port on loopback."""
        return int(self._facts["port"])

    @property
    def database(self) -> str:
        """The database's name."""
        return str(self._facts["dbname"])

    def set_up(self) -> None:
        """Make the table, its journal and its roles, once on a server."""
        import psycopg

        with psycopg.connect(self.dsn, autocommit=True) as owner:
            for role in ("crm", "stranger", "blind"):
                owner.execute(f"drop role if exists {role}")
            owner.execute(SCHEMA)

    def effects(self, marker: str) -> list[Effect]:
        """Return the rows whose key or payload mentions the marker."""
        match = mentions(marker)
        rows = self._rows("select id, extract(epoch from made_at), op_key, payload from effect")
        return [
            Effect(str(number), float(made), f"row {number} of effect")
            for number, made, key, payload in rows
            if match(f"{key}\n{payload}")
        ]

    def creations(self, marker: str) -> int:
        """Count the rows ever committed, deleted ones included, by the trigger's journal."""
        match = mentions(marker)
        rows = self._rows("select op_key, payload from journal")
        return sum(match(f"{key}\n{payload}") for key, payload in rows)

    def version(self) -> str:
        """Return the server's version."""
        [(shown,)] = self._rows("show server_version")
        return str(shown)

    def _rows(self, statement: str) -> list[tuple[Any, ...]]:
        import psycopg

        with psycopg.connect(self.dsn, autocommit=True) as owner:
            return owner.execute(statement).fetchall()


def dsn_for(port: int, database: str, user: str) -> str:
    """Return the address as the proxy understands it: neither TLS nor GSS."""
    plain = "sslmode=disable gssencmode=disable"
    return f"host={LOOPBACK} port={port} dbname={database} user={user} {plain}"

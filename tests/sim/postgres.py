"""The same schedules on PostgreSQL, in a database of their own; without restores of a copy."""

from __future__ import annotations

import os
from typing import Any, Self
from urllib.parse import urlsplit, urlunsplit


class PostgresStores:
    """One store for all schedules; each begins with it empty."""

    def __init__(self, dsn: str) -> None:
        from ascertain.store.postgres import PostgresStore

        self.server, self.name = dsn, f"ascertain_sim_{os.getpid()}"
        self.dsn = urlunsplit(urlsplit(dsn)._replace(path=f"/{self.name}"))
        self._do(dsn, f"create database {self.name}")
        self.world: Any = None
        self.store = PostgresStore(self.dsn, clock=lambda: self.world.store_now())  # noqa: PLW0108
        self.store.meta("secret", "ab" * 32)

    def _do(self, dsn: str, *statements: str) -> list[Any]:
        import psycopg

        with psycopg.connect(dsn, autocommit=True) as db:
            return [db.execute(statement) and None for statement in statements]

    def fresh(self, world: Any) -> None:
        from ascertain.store.records import LEDGER

        self.world = world
        tables = ", ".join(f'"{table}"' for table in LEDGER if table != "meta")
        keep = "delete from meta where name not in ('schema', 'secret')"
        self._do(self.dsn, f"truncate {tables}", keep)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.store.close()
        self._do(self.server, f"drop database {self.name} with (force)")

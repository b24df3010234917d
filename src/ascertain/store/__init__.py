"""Where the ledger is kept: an SQLite file, or PostgreSQL for many machines."""

from __future__ import annotations

import os

from ascertain.core.errors import StoreUnavailable
from ascertain.store.base import Store


def open_store(url: str | os.PathLike[str], *, migrate: bool = True) -> Store:
    """Open the store at a path, or at a `postgresql://` address; made or migrated on return."""
    text = os.fspath(url)
    if text.startswith(("postgresql://", "postgres://")):
        try:
            from ascertain.store.postgres import PostgresStore
        except ImportError as error:
            raise StoreUnavailable(
                "A PostgreSQL store needs its driver: pip install 'ascertain[postgres]'"
            ) from error
        return PostgresStore(text, migrate=migrate)
    from ascertain.store.sqlite import SqliteStore

    return SqliteStore(text.removeprefix("sqlite:///"), migrate=migrate)

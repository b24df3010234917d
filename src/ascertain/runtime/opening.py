"""Opening a ledger: by path, by URL, or as the environment says."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from ascertain.store import open_store
from ascertain.store.base import Store

from .clock import Clock
from .ledger import WAIT, Ledger

if TYPE_CHECKING:
    from .aio import AsyncLedger

__all__ = ["open", "open_async", "open_store"]

DEFAULT = "ascertain.db"


def _store(store: str | os.PathLike[str] | Store | None) -> Store:
    if store is None:
        store = os.environ.get("ASCERTAIN_STORE", DEFAULT)
    if isinstance(store, str | os.PathLike):
        return open_store(os.fspath(store))
    return store


def open(
    store: str | os.PathLike[str] | Store | None = None,
    *,
    namespace: str = "default",
    wait: float = WAIT,
    worker: str = "",
    clock: Clock | None = None,
) -> Ledger:
    """Open a ledger for threads and scripts.

    `store`: a file (default `./ascertain.db`, or ASCERTAIN_STORE), or `postgresql://…`.
    `wait`: seconds that a call waits for an outcome by itself. Raises StoreError subclasses
    naming the file and the next step.
    """
    return Ledger(_store(store), namespace=namespace, clock=clock, wait=wait, worker=worker)


async def open_async(
    store: str | os.PathLike[str] | Store | None = None, **options: Any
) -> AsyncLedger:
    """Open a ledger for asyncio; the options of `open`."""
    from .aio import AsyncLedger

    return await AsyncLedger.open(_store, store, **options)

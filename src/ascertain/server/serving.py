"""What a running server holds: the store, the namespaces, who may come in, and what ends it."""

from __future__ import annotations

from typing import Any, Self

from ascertain.config.schema import ServerTable
from ascertain.config.spaces import Space, Spaces
from ascertain.runtime.accounts import Accounts
from ascertain.runtime.loop import hop
from ascertain.store.base import Store

from .access import Door, TokenDoor


class Serving:
    """Everything that routes need, as `request.app.state.serving`."""

    def __init__(self, store: Store, understood: Any, *, public_url: str = "") -> None:
        """Serve a store by what a configuration says. Opens nothing else."""
        table: ServerTable = understood.server
        self.store, self.understood, self.table = store, understood, table
        self.public_url = (public_url or table.public_url).rstrip("/")
        names = table.namespaces or (understood.namespace,)
        self.spaces = Spaces(store, understood, names, wait=table.wait)
        self.accounts = Accounts(store)
        self.doors: list[Door] = [TokenDoor(self.accounts)]
        self.stopping = False

    async def __aenter__(self) -> Self:
        """Begin to serve."""
        return self

    async def __aexit__(self, *_: object) -> None:
        """Let go of the store, once nothing is in flight any more."""
        await hop(self.store.close)

    def link(self, operation: str) -> str:
        """Return the address at which a person sees an operation."""
        return f"{self.public_url}/op/{operation}"

    def space(self, namespace: str) -> Space:
        """Return a namespace."""
        return self.spaces[namespace]

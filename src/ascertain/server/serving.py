"""What a running server holds: the store, the namespaces, who may come in, and what ends it."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

from ascertain.config.hooks import intake_of
from ascertain.config.manners import manners
from ascertain.config.schema import ServerTable
from ascertain.config.spaces import Space, Spaces
from ascertain.runtime.accounts import Accounts
from ascertain.runtime.feed import Feed
from ascertain.runtime.loop import hop
from ascertain.store.base import Store

from .access import Door, TokenDoor
from .inflight import InFlight
from .meters import Meters
from .receiving import Receiving
from .signing import GuestDoor, SessionDoor, Signing, Site

if TYPE_CHECKING:
    from .gateway import Gateway


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
        self.site = Site(self.public_url)
        self.signing = Signing(self.accounts, self.site)
        self.tokens = TokenDoor(self.accounts)
        self.doors: list[Door] = [
            self.tokens,
            GuestDoor(self.accounts, self.site),
            SessionDoor(self.accounts, self.site, lambda: self.spaces.names),
        ]
        self.read_only = table.read_only
        self.in_flight = InFlight()
        self.intake = intake_of(understood, self.spaces)
        self.receiving = Receiving(self.intake, self.in_flight, lambda: self.stopping)
        self.feed, self.manners = Feed(store), manners(understood)
        self.stopping = False
        self.meters = Meters(self)
        # What is ended before the store is let go of.
        self.endings: list[Callable[[], Any]] = [self.spaces.flush, self.meters.close]

    async def __aenter__(self) -> Self:
        """Begin to serve."""
        self.receiving.begin()
        return self

    async def __aexit__(self, *_: object) -> None:
        """Let go of the store, once nothing is in flight any more."""
        await self.in_flight.close()
        for end in self.endings:
            await hop(end)
        await hop(self.store.close)

    @cached_property
    def gateway(self) -> Gateway:
        """The way to the declared targets."""
        from .gateway import Gateway

        return Gateway(self)

    def link(self, operation: str) -> str:
        """Return the address at which a person sees an operation."""
        return f"{self.public_url}/op/{operation}"

    def link_to(self, secret: str) -> str:
        """Return the address of a one-time link."""
        return f"{self.public_url}/link/{secret}"

    def first_link(self) -> str:
        """Return the address of a one-time link for the first user, or nothing where there is
        somebody."""
        made = self.accounts.links.first()
        return self.link_to(made.secret) if made is not None else ""

    def space(self, namespace: str) -> Space:
        """Return a namespace."""
        return self.spaces[namespace]

"""Large bodies: durable in the store before the first byte goes to a target (law 11), part by
part, so that none is ever whole in memory."""

from __future__ import annotations

import base64
import binascii
import hashlib
from collections.abc import AsyncIterator, Iterator, Mapping
from typing import Any

from msgspec.structs import asdict

from ascertain.core import keys
from ascertain.core.books import Blob, Spooled
from ascertain.core.errors import InputRefused, StoreCorrupt
from ascertain.core.model import SECOND, Large, Operation, Record
from ascertain.store.base import Posting, Store

from .chores import Chore
from .clock import Clock
from .loop import hop, posted

PART_BYTES = 512 * 1024  # of one part, before base64
KEPT_WITHOUT = 24 * 3600 * SECOND  # µs that a body is kept which no operation names
CLEANED = 20  # bodies that one round of cleaning removes at most
EVERY = 600.0  # seconds between rounds


class _Body(Record, frozen=True, kw_only=True):
    """The name of a body."""

    body: str


class Spool:
    """The large bodies of one namespace."""

    def __init__(self, store: Store, namespace: str, clock: Clock) -> None:
        """Work on a store."""
        self.store, self.namespace, self._clock = store, namespace, clock

    async def keep(self, source: AsyncIterator[bytes], *, action: str, key: str) -> Large:
        """Keep what a source gives, for one key; durable, and whole, when it returns.

        The same content is stored once. Whatever the source raises is raised; then what was
        kept of it is nobody's, and a chore removes it.
        """
        body = keys.new_id(self.store.now(), self._clock.id_bits())
        digest, size, number, rest = hashlib.sha256(), 0, 0, bytearray()
        async for piece in source:
            digest.update(piece)
            size += len(piece)
            rest += piece
            while len(rest) >= PART_BYTES:
                await self._add(body, number, bytes(rest[:PART_BYTES]))
                del rest[:PART_BYTES]
                number += 1
        if rest or not number:
            await self._add(body, number, bytes(rest))
            number += 1
        made = Spooled(
            hash=digest.hexdigest(), namespace=self.namespace, action=action, key=key, body=body,
            size=size, parts=number, made_at=self.store.now(),
        )  # fmt: skip
        await self._name(made)
        return Large(sha256=made.hash, size=size)

    async def _add(self, body: str, number: int, data: bytes) -> None:
        part = {"body": body, "part": number, "data": base64.b64encode(data).decode()}
        try:
            await posted(self.store, Posting((("blob_add", part),)))
        finally:
            part.clear()  # it has landed; who still holds the posting would hold the part

    async def _name(self, made: Spooled) -> None:
        """Make a body somebody's; where the same content is there already, that one is used."""
        values = asdict(made)
        shared = Posting((("spooled_touch", values), ("spooled_share", values)), must=(0, 1))
        if not (await posted(self.store, shared)).applied:
            await posted(self.store, Posting((("spooled_keep", made),), must=(0,)))
        [kept] = await hop(
            self.store.ask, Spooled, "spooled_for",
            hash=made.hash, namespace=made.namespace, action=made.action, key=made.key,
        )  # fmt: skip
        if kept.body != made.body:
            await posted(self.store, Posting((("blob_drop", {"body": made.body}),)))

    def parts(self, large: Large) -> Iterator[bytes]:
        """Iterate over a body, part by part; raises InputRefused where it is not kept here.

        The last part is given only if the whole is what it says, so that a damaged body is
        never sent whole: StoreCorrupt.
        """
        found = self.store.ask(
            Spooled, "spooled_of", hash=large.sha256, namespace=self.namespace
        )  # fmt: skip
        if not found or found[0].size != large.size:
            raise InputRefused(f"no body of {large.size} bytes with SHA-256 {large.sha256} is kept")
        digest = hashlib.sha256()
        for number in range(found[0].parts):
            data = self._part(found[0].body, number)
            digest.update(data)
            if number == found[0].parts - 1 and digest.hexdigest() != large.sha256:
                raise StoreCorrupt(f"body {large.sha256} is damaged: it was not sent")
            yield data

    def _part(self, body: str, number: int) -> bytes:
        found = self.store.ask(Blob, "blob_part", body=body, part=number)
        try:
            return base64.b64decode(found[0].data, validate=True)
        except (IndexError, binascii.Error) as error:
            raise StoreCorrupt(f"part {number} of a large body is missing or damaged") from error


def named(operation: Operation, given: Mapping[str, Any]) -> tuple[tuple[str, Record], ...]:
    """Return the lines by which a new operation keeps the large body that its input names, also
    where that was handed in for another key: of an older version, or by whoever knew its hash."""
    body = given.get("body")
    if not (isinstance(body, dict) and body.keys() == {"sha256", "size"}):
        return ()
    values = Spooled(
        hash=str(body["sha256"]), namespace=operation.namespace, action=operation.action,
        key=operation.key, body="", size=0, parts=0, made_at=operation.created_at,
    )  # fmt: skip
    return ("spooled_touch", values), ("spooled_share", values)


def cleaning(store: Store) -> Chore:
    """Return the chore that removes bodies which no operation names any more: because their
    upload ended half-way, or because retention has emptied what they were for (law 19)."""
    return Chore(name="spool", every=EVERY, run=lambda: clean(store))


def clean(store: Store) -> int:
    """Remove what nobody has named for a day, and return how many bodies that were."""
    before = store.now() - KEPT_WITHOUT
    stale = store.ask(Spooled, "spooled_stale", before=before, limit=CLEANED)
    drops = [{**asdict(one), "before": before} for one in stale]
    store.post([Posting((("spooled_drop", values),)) for values in drops])
    oldest = keys.new_id(before, 0)
    orphans = store.ask(_Body, "blob_orphans", before=oldest, limit=CLEANED)
    store.post([Posting((("blob_drop", {"body": one.body}),)) for one in orphans])
    return len(stale) + len(orphans)

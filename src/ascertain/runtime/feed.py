"""What changes, told to whoever listens: one reader per process and namespace, however many do.

It reads the store, so what workers, other servers and the library write is seen too, within about
EVERY. Windows of time overlap and each change is told once by its stamp, since a change may be
seen later than the time it carries. Nobody listens: nothing is read. A stream is a hint to look
again, never the truth: whoever is too slow, or was away too long, is told to reload.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
from collections import deque
from typing import Any

import msgspec

from ascertain.core.errors import AscertainError
from ascertain.core.model import SECOND, Record, Review
from ascertain.store.base import Store

from .loop import hop
from .telemetry import telemetry

EVERY = 1.0  # seconds between two looks
OVERLAP = 10 * SECOND  # µs that a commit may be later than the time in it
RECENT = 10 * 60 * SECOND  # µs of events and runs that are looked at for what became of them
AWAY = 10 * 60 * SECOND  # µs after which a listener that was away reloads
MOST = 1000  # changes of one kind that are told one by one at a time
QUEUE = 500  # that wait for one listener; then it is dropped
LISTENERS = 1000  # of one process
SLOWER = 5.0  # seconds until the next look where the store did not answer


class Moved(Record, frozen=True, kw_only=True):
    """An operation that changed, as it is now."""

    id: str
    action: str
    key: str
    title: str
    run: str | None
    state: str
    reason: str
    waiting_on: str
    ref: str | None
    stamp: int
    updated_at: int


class Arrived(Record, frozen=True, kw_only=True):
    """An event that arrived lately."""

    source: str
    id: str
    topic: str
    state: str
    why: str
    received_at: int
    processed_at: int | None


class Opened(Record, frozen=True, kw_only=True):
    """A run that was opened lately."""

    id: str
    name: str
    opened_at: int
    closed_at: int | None


class News(msgspec.Struct, frozen=True):
    """One thing to tell. `kind`: operation, review.opened, review.changed, review.closed, event,
    run; many: more changed than is told one by one; reload: you missed some, this is the last.
    `at`: a listener that names it later is told all since."""

    kind: str
    at: int
    what: Moved | Review | Arrived | Opened | None = None


class Batch(msgspec.Struct, frozen=True, kw_only=True):
    """What one look at the store gave; `at` is the store's time before it."""

    at: int
    moved: list[Moved]
    reviews: list[Review]  # open ones, and those closed lately
    events: list[Arrived]
    runs: list[Opened]

    @property
    def full(self) -> bool:
        """Whether there may be more than was read."""
        return any(len(some) >= MOST for some in (self.moved, self.events, self.runs))


def look(store: Store, namespace: str, since: int) -> Batch:
    """Read what changed in a namespace since a time."""
    here: dict[str, Any] = {"namespace": namespace, "limit": MOST}
    at = store.now()
    recent = at - RECENT
    moved = [
        *store.ask(Moved, "feed_open", since=since, **here),
        *store.ask(Moved, "feed_settled", since=since, **here),
    ]
    closed = store.ask(Review, "reviews_settled", since=since, **here)
    return Batch(
        at=at,
        moved=sorted(moved, key=lambda m: m.updated_at)[-MOST:],
        reviews=[*store.reviews(namespace), *closed],
        events=store.ask(Arrived, "feed_events", since=recent, **here)[::-1],
        runs=store.ask(Opened, "feed_runs", since=recent, **here)[::-1],
    )


class Listener:
    """One client's queue. Iterate over it; it ends after a `reload`."""

    def __init__(self) -> None:
        """Wait for news."""
        self._waiting: deque[News] = deque()
        self._there = asyncio.Event()
        self._dropped = False

    def tell(self, news: News) -> None:
        """Queue one thing; a listener whose queue is full is dropped, with a last word."""
        if self._dropped:
            return
        if len(self._waiting) >= QUEUE:
            self._waiting.clear()
            news, self._dropped = News("reload", news.at), True
        self._waiting.append(news)
        self._there.set()

    async def next(self, within: float) -> News | None:
        """Return the next thing to tell, or None after so many seconds without one."""
        if not self._waiting:
            self._there.clear()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(within):
                    await self._there.wait()
        return self._waiting.popleft() if self._waiting else None


class Channel:
    """One namespace: its listeners, and what they were told of."""

    def __init__(self, store: Store, namespace: str, every: float) -> None:
        """Read nothing yet."""
        self.listeners: set[Listener] = set()
        self.looks = 0
        self._store, self._namespace, self._every = store, namespace, every
        self._known: dict[tuple[str, str], Any] = {}
        self._since = 0
        self._task: asyncio.Task[None] | None = None

    async def join(self, listener: Listener) -> int:
        """Add a listener, who is told what changes from now on; returns the time of now."""
        self.listeners.add(listener)
        if self._task is None or self._task.done():
            ready = asyncio.get_running_loop().create_future()
            # In a context of its own: it is not part of the request of whoever came first.
            self._task = asyncio.get_running_loop().create_task(
                self._run(ready), context=contextvars.Context()
            )
            self._ready = ready
        await asyncio.shield(self._ready)
        return self._since + OVERLAP

    def leave(self, listener: Listener) -> None:
        """Remove a listener; without any nothing is read any more."""
        self.listeners.discard(listener)
        if not self.listeners and self._task is not None:
            self._task.cancel()
            self._task = None

    async def _run(self, ready: asyncio.Future[None]) -> None:
        self._known = {}
        first = True
        while True:
            try:
                since = self._store.now() - OVERLAP if first else self._since
                batch = await hop(look, self._store, self._namespace, since)
            except AscertainError as error:
                telemetry.tell("stream.stumbled", error=str(error)[:300])
                if not ready.done():
                    ready.set_exception(error)
                    return
                await asyncio.sleep(SLOWER)
                continue
            self.looks += 1
            news = self._new(batch)
            if not first:
                self._tell(news)
            first = False
            self._since = batch.at - OVERLAP
            if not ready.done():
                ready.set_result(None)
            await asyncio.sleep(self._every)

    def _tell(self, news: list[News]) -> None:
        for one in news:
            for listener in self.listeners:
                listener.tell(one)

    def _new(self, batch: Batch) -> list[News]:
        """Return what was not told before, and remember what was read: the next look overlaps."""
        told = changes(batch, self._known)
        self._known = signatures(batch)
        if batch.full:
            told.append(News("many", batch.at))
        return told


def signatures(batch: Batch) -> dict[tuple[str, str], Any]:
    """Return what tells one state of each thing from another."""
    known: dict[tuple[str, str], Any] = {("operation", m.id): m.stamp for m in batch.moved}
    known |= {("review", r.id): _held(r) for r in batch.reviews}
    known |= {("event", f"{e.source}/{e.id}"): (e.state, e.why) for e in batch.events}
    known |= {("run", r.id): (r.closed_at, r.name) for r in batch.runs}
    return known


def changes(batch: Batch, known: dict[tuple[str, str], Any]) -> list[News]:
    """Return what of a look is not known yet."""
    at = batch.at
    return [
        *(
            News("operation", at, m)
            for m in batch.moved
            if known.get(("operation", m.id)) != m.stamp
        ),
        *(
            News(f"review.{_change(r, known.get(('review', r.id)))}", at, r)
            for r in batch.reviews
            if known.get(("review", r.id)) != _held(r)
        ),
        *(
            News("event", at, e)
            for e in batch.events
            if known.get(("event", f"{e.source}/{e.id}")) != (e.state, e.why)
        ),
        *(
            News("run", at, run)
            for run in batch.runs
            if known.get(("run", run.id)) != (run.closed_at, run.name)
        ),
    ]


def _held(r: Review) -> tuple[Any, ...]:
    return (r.owner, r.taken_by, r.snoozed_until, r.closed_at, r.said)


def _change(r: Review, before: Any) -> str:
    if r.closed_at is not None:
        return "closed"
    return "opened" if before is None else "changed"


class Feed:
    """All channels of one process."""

    def __init__(self, store: Store, *, every: float = EVERY) -> None:
        """Work on a store; `every` in seconds."""
        self._store, self._every = store, every
        self._channels: dict[str, Channel] = {}

    @property
    def listeners(self) -> int:
        """How many listen."""
        return sum(len(c.listeners) for c in self._channels.values())

    def looks(self, namespace: str) -> int:
        """Return how often a namespace was read, for figures and tests."""
        channel = self._channels.get(namespace)
        return channel.looks if channel else 0

    async def listen(self, namespace: str, after: int | None) -> tuple[Listener, int]:
        """Begin to listen; returns the listener, and the time of now.

        `after` is the time that it was told last: it is told first what changed since, some of
        it perhaps again; who was away too long, or missed too much, is told to reload.
        """
        channel = self._channels.get(namespace)
        if channel is None:
            channel = self._channels[namespace] = Channel(self._store, namespace, self._every)
        listener = Listener()
        try:
            now = await channel.join(listener)
            if after is not None:
                await self._caught_up(listener, namespace, after)
        except BaseException:
            channel.leave(listener)
            raise
        return listener, now

    async def _caught_up(self, listener: Listener, namespace: str, after: int) -> None:
        batch = await hop(look, self._store, namespace, after - OVERLAP)
        missed = changes(batch, {}) if batch.at - after <= AWAY else []
        since = after - OVERLAP
        missed = [news for news in missed if _at(news) >= since]
        if batch.at - after > AWAY or batch.full or len(missed) >= QUEUE:
            listener.tell(News("many", batch.at))
            return
        for news in missed:
            listener.tell(news)

    def leave(self, namespace: str, listener: Listener) -> None:
        """Stop listening."""
        self._channels[namespace].leave(listener)


def _at(news: News) -> int:
    """Return when something happened, of what a look gives whether it is new or not."""
    what = news.what
    if isinstance(what, Review):
        return max(what.opened_at, what.closed_at or 0)
    if isinstance(what, Arrived):
        return max(what.received_at, what.processed_at or 0)
    if isinstance(what, Opened):
        return max(what.opened_at, what.closed_at or 0)
    return what.updated_at if what is not None else 0

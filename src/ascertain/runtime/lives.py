"""The lives of a store: its secret, its restores, and steps of its clock (laws 5, 21)."""

from __future__ import annotations

import msgspec

from ascertain.core.errors import StoreCorrupt
from ascertain.core.model import Incarnation
from ascertain.core.reconcile import World
from ascertain.store.base import Store

from .clock import Clock

STEP_MARGIN = 2_000_000  # µs by which the store's clock may differ from even running
FRESH = 1_000_000  # µs that what other processes found may be unseen where keys first come
WATCH = 7 * 24 * 3600 * 1_000_000  # how long after a restore a new key may have been lost


class Lives:
    """What a ledger must know about the past of its store."""

    def __init__(self, store: Store, clock: Clock) -> None:
        """Read the store's secret, restores and last known clock; raises StoreCorrupt."""
        self._store, self._clock = store, clock
        secret = store.meta("secret")
        if not secret:
            raise StoreCorrupt(
                "the store has lost its secret, so target keys cannot be made: restore a copy"
            )
        self.secret = bytes.fromhex(secret)
        self.incarnations = store.incarnations()
        self._read_at = clock.boottime()
        self.stepped_at: int | None = None
        self._offset: int | None = None
        self._recall()

    def _recall(self) -> None:
        """Compare with what the last process of this boot saw: a step while nobody ran shows
        only there."""
        stepped = self._store.meta("stepped_at")
        self.stepped_at = int(stepped) if stepped else None
        saved = self._store.meta("clock")
        boot = self._clock.boot_id()
        if saved and boot:
            seen = msgspec.json.decode(saved)
            if seen["boot"] == boot:
                self._offset = seen["offset"]
        self.watch()
        self.remember()

    def remember(self) -> None:
        """Keep the clock's offset for the next process; durable when it returns."""
        boot = self._clock.boot_id()
        if boot:
            seen = {"boot": boot, "offset": self._offset}
            self._store.meta("clock", msgspec.json.encode(seen).decode())

    def watch(self) -> int:
        """Return the store's time, taking note of a step of its clock beyond the margin."""
        local = self._clock.boottime()
        now = self._store.now()
        offset = now - local
        if self._offset is not None and abs(offset - self._offset) > STEP_MARGIN:
            # The later of both readings: after a step back, what was opened on the old time
            # must not look as if it began after the step.
            self.stepped_at = max(now, local + self._offset, self.stepped_at or 0)
            self._store.meta("stepped_at", str(self.stepped_at))
        self._offset = offset
        return now

    def world(self, worker: str) -> World:
        """Return what one decision knows."""
        return World(
            now=self.watch(),
            jitter=self._clock.jitter(),
            stepped_at=self.stepped_at,
            restored=any(life.gap_from is not None for life in self.incarnations),
            worker=worker,
        )

    def refresh(self) -> None:
        """Read again what other processes found: restores and steps."""
        self._read_at = self._clock.boottime()
        self.incarnations = self._store.incarnations()
        stepped = self._store.meta("stepped_at")
        if stepped:
            self.stepped_at = max(self.stepped_at or 0, int(stepped))

    @property
    def stale(self) -> bool:
        """Whether to `refresh` before a new key is judged: a restore that another process
        declares is seen within FRESH."""
        return self._clock.boottime() - self._read_at >= FRESH

    def gap_for_new(self, now: int) -> int | None:
        """Return since when writes may be lost, if a key first seen now may be one of them."""
        for life in reversed(self.incarnations):
            if life.gap_from is not None and now < life.began_at + WATCH:
                return life.gap_from
        return None

    def begin(self, gap_from: int, note: str) -> Incarnation:
        """Start a new life after a restore; durable when it returns."""
        now = self.watch()
        life = Incarnation(
            number=max((i.number for i in self.incarnations), default=0) + 1,
            began_at=now,
            gap_from=gap_from,
            note=note,
        )
        self.incarnations = self._store.incarnations(life)
        return life

"""The target of the crash tests: files of lines that only grow; one line is one effect.

It outlives every worker, knows nothing of the ledger, and every line names the business key, so
that what is counted does not rest on the target keys that the ledger made. A line has a fixed
length that divides a page: the system writes it whole or, if the writer is killed, not at all.
"""

from __future__ import annotations

import fcntl
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from ascertain import Absent, Done, NotDone, NotDoneKind, Several
from shop import CONTROL

LINE = 128
SHARDS = 64  # files, so that a look-up reads a part only
ONCE = ("identified", "idempotent")  # kinds of operation for which it keeps our key unique


class Effect(NamedTuple):
    target_key: str
    ref: str
    kind: str
    key: str
    token: str  # the attempt's
    worker: str


class Outside:
    """Takes requests of all kinds of operations; `plain` ones make an effect each time."""

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder) / "outside"

    def prepare(self) -> None:
        """Make the files, with the object that look-ups find as their control."""
        self.folder.mkdir()
        for number in range(SHARDS):
            (self.folder / str(number)).touch()
        with self._held(CONTROL) as file:
            self._append(file, Effect(CONTROL, "control", "control", CONTROL, "0", "-"))

    def send(self, call: Any, kind: str, worker: str) -> Done | NotDone:
        """One effect request; it never lands after its attempt's deadline."""
        with self._held(call.target_key) as file:
            if not call.seconds_left:
                return NotDone(NotDoneKind.TRANSIENT, "its time was over before it was sent")
            known = self._read(file, call.target_key)
            if known and kind in ONCE:
                return Done(ref=known[0].ref, evidence={"exists": True})
            ref = secrets.token_hex(8)
            self._append(
                file, Effect(call.target_key, ref, kind, call.key, str(call.attempt), worker)
            )
        return Done(ref=ref)

    def look(self, target_key: str) -> Done | Absent | Several:
        with self._held(target_key) as file:
            refs = [e.ref for e in self._read(file, target_key)]
        if not refs:
            return Absent()
        return Done(ref=refs[0]) if len(refs) == 1 else Several(refs=refs)

    def add(self, kind: str, key: str, worker: str) -> str:
        """Make an effect as a program without a ledger does: the auditor's own test."""
        ref = secrets.token_hex(8)
        with self._held(key) as file:
            self._append(file, Effect("-", ref, kind, key, "0", worker))
        return ref

    def effects(self) -> list[Effect]:
        """Everything that ever happened, but the control."""
        found = []
        for number in range(SHARDS):
            with (self.folder / str(number)).open("rb") as file:
                found += self._read(file.fileno())
        return [effect for effect in found if effect.kind != "control"]

    @contextmanager
    def _held(self, name: str) -> Iterator[int]:
        """Hold the file of a key; the lock ends with its holder."""
        number = sum(name.encode()) % SHARDS
        file = os.open(self.folder / str(number), os.O_RDWR | os.O_APPEND)
        try:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield file
        finally:
            os.close(file)

    def _append(self, file: int, effect: Effect) -> None:
        line = " ".join(effect).encode().ljust(LINE - 1) + b"\n"
        assert len(line) == LINE, effect
        assert os.write(file, line) == LINE
        os.fdatasync(file)

    def _read(self, file: int, target_key: str = "") -> list[Effect]:
        """Read the effects in a file, of one target key or all."""
        size = os.fstat(file).st_size
        data, begins = os.pread(file, size, 0), target_key.encode()
        assert size % LINE == 0, "a line is torn"
        lines = (data[at : at + LINE] for at in range(0, size, LINE))
        return [Effect(*line.decode().split()) for line in lines if line.startswith(begins)]

"""A disk that fails, and that forgets what was not synced: a layer under SQLite's file layer.

Writes go to the real file, which stands for what the system shows to all processes. Beside it is
kept what the disk itself holds: a sync moves there what was written since the last one. When a
sync fails, what it should have moved never gets there, although the system goes on showing it,
and the next sync is said to succeed: so Linux does. `after_power_cut` makes the files that are
found afterwards: of what was not synced, nothing, all or a part by chance survives.
"""

from __future__ import annotations

import random
import threading
from pathlib import Path
from typing import Any, Self

import apsw

SECTOR = 512
NAME = "ascertain-failing"


class Held:
    """What the disk holds of one file, and what was written since its last sync."""

    def __init__(self) -> None:
        self.durable = bytearray()
        self.pending: list[tuple[int, bytes | None]] = []  # where, what; None: cut off there

    def sync(self) -> None:
        for change in self.pending:
            _apply(self.durable, *change)
        self.pending.clear()

    def after_power_cut(self, chance: random.Random | None) -> bytearray:
        found = bytearray(self.durable)
        if chance is None:
            return found
        for at, data in self.pending:
            for start in range(0, len(data or b" "), SECTOR):
                if chance.random() < 0.5:
                    part = None if data is None else data[start : start + SECTOR]
                    _apply(found, at + start, part)
        return found


def _apply(content: bytearray, at: int, data: bytes | None) -> None:
    if data is None:
        del content[at:]
        return
    content.extend(bytes(max(0, at + len(data) - len(content))))
    content[at : at + len(data)] = data


class FailingDisk(apsw.VFS):
    """Under what is opened in one folder within `with FailingDisk() as disk`; see `lies_in`."""

    def __init__(self) -> None:
        super().__init__(NAME, base="unix", makedefault=True)
        self.folder = ""
        self.files: dict[str, Held] = {}
        self.mutex = threading.RLock()
        self.failed: list[str] = []
        self.counted = 0
        self._armed: tuple[str, int, str] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        apsw.set_default_vfs("unix")
        self.unregister()

    def lies_in(self, folder: Path) -> None:
        """Fail, and keep account, only of the files in this folder from now on."""
        self.folder = str(folder)
        self.files.clear()

    def arm(self, what: str, at: int, path: str = "") -> None:
        """Fail once at the n-th from now: a `sync`, a `write`, or a write for lack of room
        (`full`), of files that end like this."""
        with self.mutex:
            self._armed, self.counted = (what, at, path), 0

    def heal(self) -> None:
        """Fail no more. Also before closing: SQLite ignores what fails then, but Python does
        not ignore what is raised in here."""
        self._armed = None

    def pass_by(self, what: str, path: str) -> None:
        if self._armed is None or not path.endswith(self._armed[2]):
            return
        kind, at, _ = self._armed
        if what != ("sync" if kind == "sync" else "write"):
            return
        self.counted += 1
        if self.counted == at:
            self.failed.append(f"{kind} {Path(path).name}")
            raise _error(kind)

    def after_power_cut(self, folder: Path, chance: random.Random | None = None) -> Path:
        """Write the files as they are found afterwards into a folder; returns the database."""
        folder.mkdir()
        with self.mutex:
            for path, held in self.files.items():
                (folder / Path(path).name).write_bytes(held.after_power_cut(chance))
        return folder / "ledger.db"

    # --- what SQLite calls ---

    def xOpen(self, name: Any, flags: list[int]) -> apsw.VFSFile:  # noqa: N802
        path = name.filename() if isinstance(name, apsw.URIFilename) else str(name)
        if str(Path(path).parent) == self.folder:
            return File(self, path, name, flags)
        return apsw.VFSFile("unix", name, flags)

    def xDelete(self, filename: str, syncdir: bool) -> None:  # noqa: N802
        super().xDelete(filename, syncdir)
        with self.mutex:
            self.files.pop(filename, None)


class File(apsw.VFSFile):
    """One open file of a `FailingDisk`."""

    def __init__(self, disk: FailingDisk, path: str, name: Any, flags: list[int]) -> None:
        super().__init__("unix", name, flags)
        self.disk, self.path = disk, path
        with disk.mutex:
            self.held = disk.files.setdefault(self.path, Held())

    def xWrite(self, data: bytes, offset: int) -> None:  # noqa: N802
        with self.disk.mutex:
            self.disk.pass_by("write", self.path)
            super().xWrite(data, offset)
            self.held.pending.append((offset, bytes(data)))

    def xTruncate(self, newsize: int) -> None:  # noqa: N802
        with self.disk.mutex:
            super().xTruncate(newsize)
            self.held.pending.append((newsize, None))

    def xSync(self, flags: int) -> None:  # noqa: N802
        with self.disk.mutex:
            try:
                self.disk.pass_by("sync", self.path)
            except apsw.IOError:
                self.held.pending.clear()
                raise
            self.held.sync()


def _error(kind: str) -> apsw.Error:
    if kind == "full":
        return apsw.FullError("no space left on device")
    error = apsw.IOError(f"{kind} failed")
    error.extendedresult = apsw.SQLITE_IOERR_FSYNC if kind == "sync" else apsw.SQLITE_IOERR_WRITE
    return error

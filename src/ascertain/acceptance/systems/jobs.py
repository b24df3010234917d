"""A job server, a simulator: it takes over and does later, or takes many and answers for some."""

from __future__ import annotations

import contextlib
import json
import secrets
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from .base import Effect, System, mentions
from .web import ask_json

SERVER = Path(__file__).with_name("_jobs_server.py")


class Jobs(System):
    """A simulator of queued work (``/jobs``) and of partial batches (``/bulk``).

    Its answers are those that generation services, refunds and bulk endpoints give: 202 for what
    is queued, 207 with a result for some of the items. Nothing is de-duplicated.
    """

    name = "job server simulator"
    install = "nothing"

    def effects(self, marker: str) -> list[Effect]:
        """Return the lines of the journal that mention the marker."""
        match = mentions(marker)
        return [
            Effect(row["id"], row["at"], f"line {number} of the journal")
            for number, row in self._rows()
            if match(f"{row['key']}\n{row.get('text', '')}")
        ]

    def creations(self, marker: str) -> int:
        """Count the lines; nothing is ever taken out of the journal."""
        return len(self.effects(marker))

    def _rows(self) -> Iterator[tuple[int, dict[str, Any]]]:
        with contextlib.suppress(FileNotFoundError):
            text = (self.folder / "jobs.jsonl").read_text("utf-8")
            for number, line in enumerate(text.splitlines(), 1):
                yield number, json.loads(line)

    def _prepare(self) -> None:
        self._greeting = f"jobs-{secrets.token_hex(4)}"

    def _command(self) -> Sequence[str]:
        where = [str(self.folder), self.host, str(self.port), self._greeting]
        return [sys.executable, "-P", "-B", str(SERVER), *where]

    def _answers(self) -> bool:
        with contextlib.suppress(OSError):
            return ask_json(self.port, "GET", "/") == (200, self._greeting)
        return False

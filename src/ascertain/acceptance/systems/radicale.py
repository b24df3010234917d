"""Radicale, a real CalDAV server: follow-up tasks with a conditional create."""

from __future__ import annotations

import ast
import contextlib
import http.client
import re
import sys
from collections.abc import Iterator, Sequence
from datetime import datetime
from pathlib import Path

from .base import PROBE_SECONDS, Effect, System, mentions

MKCALENDAR = (
    b'<?xml version="1.0" encoding="utf-8"?>'
    b'<C:mkcalendar xmlns:D="DAV:" xmlns:C="urn:ietf:params:xml:ns:caldav"><D:set><D:prop>'
    b'<C:supported-calendar-component-set><C:comp name="VTODO"/>'
    b"</C:supported-calendar-component-set></D:prop></D:set></C:mkcalendar>"
)
# Radicale 3.9.0, radicale/app/__init__.py, 2026-11-29:
# [2026-11-29 16:48:14 +0000] [1/Thread-2 (…)] [INFO] PUT response status for '/crm/tasks/k.ics'
# in 0.008 seconds: 201 Created      (written before the answer goes out)
CREATED = re.compile(
    r"^\[(?P<when>[^\]]+)\] .*\bPUT response status for (?P<path>'.*') in .*: 201\b"
)


class Radicale(System):
    """A CalDAV server with the task collection ``/crm/tasks/`` of user ``crm``.

    Starts in about 0.3 s on two cores. A PUT with ``If-None-Match: *`` answers 201, or 412 where
    the task exists; without it an existing task is overwritten (204); the same UID under another
    name is refused (409). Text after an unescaped comma in a property is lost: escape it
    (RFC 5545, 3.3.11). Quotation marks in a name are refused (400). Eight connections at once may
    overflow its backlog of 5, which costs one of them a second; a wrong password costs as much.
    Measured with Radicale 3.9.0 on 2026-11-29.
    """

    name = "Radicale"
    modules = ("radicale",)
    install = "radicale"
    user = "crm"
    password = "pw"  # noqa: S105 - a throw-away server on loopback
    collection_path = "/crm/tasks/"

    @property
    def collection_url(self) -> str:
        """Address of the task collection, with its final slash."""
        return self.url + self.collection_path

    @property
    def collection_folder(self) -> Path:
        """Where the server keeps one ``.ics`` file per task."""
        return self.folder / "data" / "collection-root" / "crm" / "tasks"

    def effects(self, marker: str) -> list[Effect]:
        """Return the tasks on disk whose file name or text mentions the marker."""
        created = dict(self._creations())  # the last one wins
        return [
            Effect(name, created.get(name), f"file {self.collection_path}{name}.ics")
            for name in self._stored(marker)
        ]

    def creations(self, marker: str) -> int:
        """Count creations by the server's request log, deleted tasks included.

        The storage keeps no history of its own, and a file on disk does not tell a task that was
        deleted and made again. The log does: it says 201 only for a task that did not exist, and
        204 for one that was overwritten. A deleted task counts only if its *name* mentions the
        marker, since its text is gone.
        """
        stored = set(self._stored(marker))
        match = mentions(marker)
        logged = [name for name, _ in self._creations() if name in stored or match(name)]
        return len(logged) + len(stored.difference(logged))

    def _stored(self, marker: str) -> list[str]:
        match = mentions(marker)
        found = []
        for file in sorted(self.collection_folder.glob("*.ics")):
            text = ""
            with contextlib.suppress(FileNotFoundError):  # deleted meanwhile
                text = file.read_text("utf-8", "replace")
            if match(file.stem) or match(re.sub(r"\r?\n[ \t]", "", text)):
                found.append(file.stem)
        return found

    def _creations(self) -> Iterator[tuple[str, float]]:
        for line in self.log_file.read_text("utf-8", "replace").splitlines():
            if hit := CREATED.match(line):
                path = str(ast.literal_eval(hit["path"]))
                if path.startswith(self.collection_path) and path.endswith(".ics"):
                    name = path.removeprefix(self.collection_path).removesuffix(".ics")
                    when = datetime.strptime(hit["when"], "%Y-%m-%d %H:%M:%S %z")
                    yield name, when.timestamp()

    def _prepare(self) -> None:
        (self.folder / "users").write_text(f"{self.user}:{self.password}\n")

    def _command(self) -> Sequence[str]:
        options = {
            "server-hosts": f"{self.host}:{self.port}",
            "server-max-connections": "64",  # 8 by default: fewer than a race needs
            "auth-type": "htpasswd",
            "auth-htpasswd-filename": str(self.folder / "users"),
            "auth-htpasswd-encryption": "plain",
            "storage-filesystem-folder": str(self.folder / "data"),
            "logging-level": "info",  # the auditor reads it
        }
        flags = [part for key, value in options.items() for part in (f"--{key}", value)]
        return [sys.executable, "-P", "-m", "radicale", "--config", "", *flags]

    def _answers(self) -> bool:
        return self._ask("GET", "/.web/", within=PROBE_SECONDS) is not None

    def _set_up(self) -> None:
        if self.collection_folder.is_dir():  # a restart
            return
        self._ask("MKCALENDAR", self.collection_path, MKCALENDAR)
        if not self.collection_folder.is_dir():
            raise RuntimeError(f"{self.name}: {self.url} did not make {self.collection_folder}")

    def _ask(self, method: str, path: str, body: bytes = b"", *, within: float = 5.0) -> int | None:
        connection = http.client.HTTPConnection(self.host, self.port, timeout=within)
        with contextlib.closing(connection):
            try:
                connection.request(method, path, body, {"Authorization": self.authorization})
                return connection.getresponse().status
            except (OSError, http.client.HTTPException):
                return None

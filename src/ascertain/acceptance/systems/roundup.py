"""Roundup, a real help desk: tickets over REST, with a look-up and no protection at all."""

from __future__ import annotations

import contextlib
import http.client
import os
import pwd
import secrets
import sqlite3
import sys
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

from .base import PROBE_SECONDS, Effect, System, mentions

NOBODY = "nobody"
SERVER = Path(__file__).with_name("_roundup_server.py")
# Bits of CapEff (include/uapi/linux/capability.h). The second can also write everywhere, so it is
# used only where the first is missing, as in Docker's default set (docs.docker.com, 2026-11-29);
# without either, an interpreter that everybody may read still works.
READ_CAPABILITIES = (("dac_read_search", 1 << 2), ("dac_override", 1 << 1))


class Roundup(System):
    """A help-desk tracker ("classic") on SQLite, whose tickets may repeat.

    Starts in about 0.55 s, the making of the tracker included. Tickets are created by
    ``POST /helpdesk/rest/data/issue``; two identical ones make two tickets. Issues have a text
    field ``opkey`` beside ``title``; ``?opkey:=K`` finds K itself, while ``?opkey=K`` finds
    whatever contains it in any case. Four wrong passwords lock the account's REST access for up to
    ten minutes (429). Through a proxy the server must see its own Host, Origin and Referer, or it
    answers 400. Measured with Roundup 2.6.0 on 2026-11-29.
    """

    name = "Roundup"
    modules = ("roundup",)
    install = "roundup"
    user = "admin"
    tracker = "helpdesk"

    def __init__(
        self,
        folder: str | os.PathLike[str],
        *,
        ready_within: float = 20.0,
        stop_within: float = 5.0,
    ) -> None:
        super().__init__(folder, ready_within=ready_within, stop_within=stop_within)
        # By chance, so that only this tracker, not a stranger on its port, answers to it.
        self.password = secrets.token_hex(8)

    @property
    def rest_url(self) -> str:
        """Address of the REST interface, without a final slash."""
        return f"{self.url}/{self.tracker}/rest"

    @property
    def issues_path(self) -> str:
        """Path for creating and finding tickets."""
        return f"/{self.tracker}/rest/data/issue"

    @property
    def headers(self) -> Mapping[str, str]:
        """Headers that every changing request must carry, the account's included."""
        return {
            "Authorization": self.authorization,
            "X-Requested-With": "rest",
            "Origin": self.url,
            "Referer": f"{self.url}/{self.tracker}/",
            "Accept": "application/json",
        }

    @property
    def database(self) -> Path:
        """The tracker's SQLite file."""
        return self.folder / "tracker" / "home" / "db" / "db"

    def effects(self, marker: str) -> list[Effect]:
        """Return the tickets in the database, not retired, whose title or key has the marker."""
        return [effect for effect, retired in self._rows(marker) if not retired]

    def creations(self, marker: str) -> int:
        """Count the tickets in the database, retired ones included.

        Deleting over REST or the web only retires a row, so every creation stays visible.
        """
        return len(self._rows(marker))

    def _rows(self, marker: str) -> list[tuple[Effect, bool]]:
        match = mentions(marker)
        address = f"{self.database.as_uri()}?mode=ro"
        with contextlib.closing(sqlite3.connect(address, uri=True, timeout=10)) as database:
            rows = database.execute(
                "select id, _title, _opkey, _creation, __retired__ from _issue order by id"
            ).fetchall()
        return [
            (Effect(str(number), _seconds(created), f"row {number} of _issue"), bool(retired))
            for number, title, opkey, created, retired in rows
            if match(f"{title or ''}\n{opkey or ''}")
        ]

    def _prepare(self) -> None:
        home = self.folder / "tracker"
        home.mkdir(exist_ok=True)
        if os.geteuid() == 0:
            nobody = pwd.getpwnam(NOBODY)
            os.chown(home, nobody.pw_uid, nobody.pw_gid)

    def _command(self) -> Sequence[str]:
        server = [sys.executable, "-P", "-B", str(SERVER), str(self.folder / "tracker" / "home")]
        arguments = [self.host, str(self.port), self.password]
        return [*self._as_nobody(), *server, *arguments]

    def _as_nobody(self) -> list[str]:
        """Return the prefix that takes root's user away, since Roundup refuses to run as root.

        The interpreter, this package and the data may lie under root's home, which nobody may not
        enter; so the one capability to read and to enter folders stays, as an ambient one, because
        it must survive the exec of a program without file capabilities (capabilities(7)).
        """
        if os.geteuid() != 0:
            return []
        held = _effective_capabilities()
        keep = next((f"-all,+{name}" for name, bit in READ_CAPABILITIES if held & bit), "-all")
        group = str(pwd.getpwnam(NOBODY).pw_gid)
        return [
            "setpriv",
            f"--reuid={NOBODY}",
            f"--regid={group}",
            "--clear-groups",
            f"--inh-caps={keep}",
            f"--ambient-caps={keep}",
        ]

    def _environment(self) -> dict[str, str]:
        return {**super()._environment(), "HOME": str(self.folder / "tracker")}

    def _answers(self) -> bool:
        connection = http.client.HTTPConnection(self.host, self.port, timeout=PROBE_SECONDS)
        with contextlib.closing(connection):
            try:
                connection.request("GET", self.issues_path, headers=dict(self.headers))
                return connection.getresponse().status == http.client.OK
            except (OSError, http.client.HTTPException):
                return False


def _seconds(stamp: str | None) -> float | None:
    """Read Roundup's own form of a UTC time, such as ``20261129164843.555``."""
    if not stamp:
        return None
    whole, _, part = stamp.partition(".")
    moment = datetime.strptime(whole, "%Y%m%d%H%M%S").replace(tzinfo=UTC)
    return moment.timestamp() + float(f"0.{part or 0}")


def _effective_capabilities() -> int:
    for line in Path("/proc/self/status").read_text("ascii").splitlines():
        if line.startswith("CapEff:"):
            return int(line.split()[1], 16)
    return 0

"""Matrix Synapse, a chat server: a transaction id is remembered for a day."""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import json
import sqlite3
import subprocess
import urllib.parse
from collections.abc import Iterator, Sequence

from .base import Effect, System, mentions
from .installed import home
from .web import answers, ask_json

SECRET = "throw-away"  # noqa: S105 - a throw-away server on loopback
CONFIG = """server_name: t.local
listeners:
- port: {port}
  bind_addresses: ['{host}']
  type: http
  tls: false
  resources: [{{names: [client], compress: false}}]
database: {{name: sqlite3, args: {{database: {folder}/hs.db}}}}
media_store_path: {folder}/media
signing_key_path: {folder}/sign.key
registration_shared_secret: {secret}
macaroon_secret_key: {secret}
form_secret: {secret}
report_stats: false
trusted_key_servers: []
rc_message: {{per_second: 1000, burst_count: 1000}}
rc_login: {{address: {{per_second: 1000, burst_count: 1000}}}}
"""


class Synapse(System):
    """A home server with one user, one device and one room, on SQLite.

    The same transaction id by the same device gives the same event, for 24 hours, whatever the
    body says. Starts in about 5 s. Measured with Synapse 1.163.2 on 2026-11-29.
    """

    name = "Matrix Synapse"
    install = "make accept-full"
    token = ""
    room = ""

    @property
    def authorization(self) -> str:
        """Value of the HTTP Authorization header."""
        return f"Bearer {self.token}"

    @property
    def room_path(self) -> str:
        """Path of the room, with its final slash."""
        return f"/_matrix/client/v3/rooms/{urllib.parse.quote(self.room)}/"

    def effects(self, marker: str) -> list[Effect]:
        """Return the messages in the database that mention the marker and are not redacted."""
        return [effect for effect, gone in self._events(marker) if not gone]

    def creations(self, marker: str) -> int:
        """Count the messages in the database; a redaction leaves the event."""
        return len(list(self._events(marker)))

    def _events(self, marker: str) -> Iterator[tuple[Effect, bool]]:
        match = mentions(marker)
        address = f"file:{self.folder}/hs.db?mode=ro"
        with contextlib.closing(sqlite3.connect(address, uri=True, timeout=10)) as database:
            rows = database.execute(
                "select e.event_id, e.origin_server_ts, j.json, r.event_id from events e"
                " join event_json j on j.event_id = e.event_id"
                " left join redactions r on r.redacts = e.event_id"
                " where e.type = 'm.room.message'"
            ).fetchall()
        for event, moment, text, redaction in rows:
            if match(json.dumps(json.loads(text)["content"], ensure_ascii=False)):
                yield Effect(event, moment / 1000, f"event {event}"), redaction is not None

    def _prepare(self) -> None:
        facts = {"port": self.port, "host": self.host, "folder": self.folder, "secret": SECRET}
        (self.folder / "hs.yaml").write_text(CONFIG.format(**facts))
        keys = [*self._command(), "--generate-keys"]
        subprocess.run(keys, check=True, capture_output=True, cwd=self.folder)

    def _command(self) -> Sequence[str]:
        python = str(home("synapse") / "bin" / "python")
        return [python, "-m", "synapse.app.homeserver", "-c", str(self.folder / "hs.yaml")]

    def _answers(self) -> bool:
        return answers(self.port, "/health")

    def _set_up(self) -> None:
        _, said = ask_json(self.port, "GET", "/_synapse/admin/v1/register")
        parts = [said["nonce"].encode(), b"bot", b"pw", b"admin"]
        mac = hmac.new(SECRET.encode(), b"\0".join(parts), hashlib.sha1).hexdigest()
        account = {"nonce": said["nonce"], "username": "bot", "password": "pw"}
        account |= {"admin": True, "mac": mac}
        ask_json(self.port, "POST", "/_synapse/admin/v1/register", account)
        who = {"type": "m.id.user", "user": "bot"}
        login = {"type": "m.login.password", "identifier": who, "password": "pw"}
        login |= {"device_id": "OPS"}  # the scope of a transaction id
        _, said = ask_json(self.port, "POST", "/_matrix/client/v3/login", login)
        self.token = said["access_token"]
        headers = {"Authorization": self.authorization}
        path = "/_matrix/client/v3/createRoom"
        _, said = ask_json(self.port, "POST", path, {"name": "desk"}, headers=headers)
        self.room = said["room_id"]

"""WordPress on MariaDB, the real content system: drafts and media, and nothing that protects."""

from __future__ import annotations

import base64
import contextlib
import http.client
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from .base import PROBE_SECONDS, Effect, NotStarted, System, mentions
from .packages import INSTALL

SERVER = Path(__file__).with_name("_wordpress_server.py")
SOCKET_BYTES = 107  # sun_path of unix(7), less its final zero
READ_SECONDS = 15.0
KINDS = ("post", "attachment")  # revisions, auto-drafts and menus are no effects
# The columns of wp_posts that may carry a mark; the fields of wp_postmeta are joined to them.
_ROWS = """select p.ID, p.post_status, unix_timestamp(p.post_date),
 hex(concat_ws('\\n', p.post_title, p.post_name, p.post_content, p.post_excerpt, p.guid,
  (select group_concat(m.meta_value separator '\\n') from wp.wp_postmeta m
   where m.post_id = p.ID and m.meta_key in ('_op_key', '_wp_attached_file'))))
 from wp.wp_posts p where p.post_type in ('post', 'attachment') and p.post_status <> 'auto-draft'
 order by p.ID"""
_INSERTED = re.compile(r"INSERT INTO `wp_(posts|postmeta)` \(([^)]*)\) VALUES \((.*)\)", re.DOTALL)
_VALUE = re.compile(r"'((?:[^'\\]|\\.|'')*)'|([^',\s]+)", re.DOTALL)
# What WordPress adds to the name of a second file, at the end of a path or an address.
_AGAIN = re.compile(r"(?<=/)([^/\s]+)-\d+(\.\w+)$", re.MULTILINE)


@dataclass(frozen=True)
class _Row:
    """A post or a medium as the tables hold it now."""

    id: str
    status: str
    created_at: float | None
    text: str


class WordPress(System):
    """WordPress served by PHP's own server with eight workers, its tables in a private MariaDB.

    Starts in about 2 s from nothing. Drafts are made by ``POST /?rest_route=/wp/v2/posts``, media
    by the bytes of a file to ``…/media``; both may repeat: a second draft gets its own id, a second
    file the name with ``-1``. MariaDB has a socket in the folder and no port. The folder is closed
    to other users, since whoever reaches the socket owns the database. Measured with WordPress
    6.1.9, MariaDB 10.11.19 and PHP 8.2.36 on 2026-11-29.
    """

    name = "WordPress"
    install = INSTALL
    user = "admin"

    def __init__(
        self,
        folder: str | os.PathLike[str],
        *,
        ready_within: float = 60.0,
        stop_within: float = 8.0,
    ) -> None:
        super().__init__(folder, ready_within=ready_within, stop_within=stop_within)

    @property
    def authorization(self) -> str:
        """Value of the HTTP Authorization header: the account with its application password."""
        password = (self.folder / "password").read_text("ascii")
        return "Basic " + base64.b64encode(f"{self.user}:{password}".encode()).decode()

    @property
    def posts_path(self) -> str:
        """Path for creating and finding posts."""
        return "/?rest_route=/wp/v2/posts"

    @property
    def media_path(self) -> str:
        """Path for uploading and finding media."""
        return "/?rest_route=/wp/v2/media"

    @property
    def uploads(self) -> Path:
        """Where WordPress keeps the files that were uploaded."""
        return self.folder / "site" / "wp-content" / "uploads"

    def effects(self, marker: str) -> list[Effect]:
        """Return the posts and media in MariaDB, those in the trash included, with the marker."""
        match = mentions(marker)
        return [
            Effect(row.id, row.created_at, f"row {row.id} of wp_posts ({row.status})")
            for row in self._rows()
            if _marked(match, row.text)
        ]

    def creations(self, marker: str) -> int:
        """Count creations by MariaDB's binary log, deleted ones included, beside rows and files.

        A row that was deleted for good leaves its id unused, yet a gap does not say whose it was:
        revisions take ids of the same table. The binary log does: it holds each committed INSERT
        as its statement, with the AUTO_INCREMENT id before it, and no client of WordPress can
        change it. An id counts once, whatever else mentions the marker. Files without a row count
        too: an upload that broke off between the two has happened.
        """
        match = mentions(marker)
        ids = {effect.id for effect in self.effects(marker)}
        kinds: dict[str, str] = {}
        marked = set()
        for table, id_, values in self._inserted():
            owner = values["post_id"] if table == "postmeta" else id_
            if table == "posts":
                kinds[owner] = values.get("post_type", "post")  # the table's default
            elif values["meta_key"] not in ("_op_key", "_wp_attached_file"):
                continue
            if _marked(match, "\n".join(values.values())):
                marked.add(owner)
        ids |= {id_ for id_ in marked if kinds.get(id_) in KINDS}
        return max(len(ids), len(self.files(marker)))

    def files(self, marker: str) -> list[Path]:
        """Return the uploaded files whose name has the marker, the second and later included."""
        match = mentions(marker)
        found = (path for path in self.uploads.rglob("*") if path.is_file())
        return sorted(path for path in found if _marked(match, f"/{path.name}"))

    def _rows(self) -> Iterator[_Row]:
        asked = f"set session time_zone = '+00:00', group_concat_max_len = 1000000; {_ROWS}"
        for line in self._ask(asked):
            id_, status, created, text = line.split("\t")
            moment = None if created == "NULL" else float(created)
            yield _Row(id_, status, moment, bytes.fromhex(text).decode("utf-8", "replace"))

    def _inserted(self) -> Iterator[tuple[str, str, dict[str, str]]]:
        """Yield each committed INSERT as table, AUTO_INCREMENT id, and its named values."""
        for file in self._ask("show binary logs"):
            id_ = ""
            for line in self._ask(f"show binlog events in '{file.split()[0]}'"):
                kind, told = line.split("\t")[2], line.split("\t")[5]
                if kind == "Intvar" and told.startswith("INSERT_ID="):
                    id_ = told.removeprefix("INSERT_ID=")
                elif kind == "Query" and (hit := _INSERTED.search(_unescaped(told))):
                    names = re.findall(r"`(\w+)`", hit[2])
                    values = [text or plain for text, plain in _VALUE.findall(hit[3])]
                    yield hit[1], id_, dict(zip(names, values, strict=False))

    def _ask(self, statements: str) -> list[str]:
        """Ask MariaDB by its own client over the socket; values are divided by tabs."""
        client = ["mariadb", "--no-defaults", "-uroot", "-S", str(self.folder / "sock"), "-N", "-B"]
        done = subprocess.run(
            [*client, "--default-character-set=utf8mb4", "-e", statements],
            check=False,
            capture_output=True,
            timeout=READ_SECONDS,
        )
        if done.returncode:
            said = done.stderr.decode("utf-8", "replace").strip()
            raise RuntimeError(f"{self.name}: MariaDB's storage cannot be read: {said}")
        return done.stdout.decode("utf-8", "replace").split("\n")[:-1]

    def _prepare(self) -> None:
        self.folder.chmod(0o700)
        used = len(os.fsencode(self.folder / "sock"))
        if used > SOCKET_BYTES:
            reason = f"the path of its socket has {used} bytes, a socket may have {SOCKET_BYTES}"
            raise NotStarted(self, reason, "use a folder with a shorter path (TMPDIR, or --keep)")

    def _command(self) -> Sequence[str]:
        where = [str(self.folder), self.host, str(self.port)]
        return [sys.executable, "-P", "-B", str(SERVER), *where]

    def _answers(self) -> bool:
        if not (self.folder / "password").is_file():
            return False
        path = "/?rest_route=/wp/v2/users/me"
        connection = http.client.HTTPConnection(self.host, self.port, timeout=5 * PROBE_SECONDS)
        with contextlib.closing(connection):
            try:
                connection.request("GET", path, headers={"Authorization": self.authorization})
                return connection.getresponse().status == http.client.OK
            except (OSError, http.client.HTTPException):
                return False


def _marked(match: Callable[[str], bool], text: str) -> bool:
    """Tell whether a text has the mark, a second file's name taken for the first's."""
    return match(text) or match(_AGAIN.sub(r"\1\2", text))


def _unescaped(text: str) -> str:
    """Undo what the client's batch mode writes for tabs, line ends and backslashes."""
    marks = {"t": "\t", "n": "\n", "0": "\0"}
    return re.sub(r"\\(.)", lambda hit: marks.get(hit[1], hit[1]), text)

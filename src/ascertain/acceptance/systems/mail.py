"""Postfix with Dovecot: real mail, taken over at once and delivered a moment later."""

from __future__ import annotations

import contextlib
import imaplib
import os
import secrets
import shutil
import sys
from collections.abc import Iterator, Sequence
from email import message_from_bytes, policy
from email.message import EmailMessage
from pathlib import Path

from .base import LOOPBACK, Effect, System, free_port, mentions

SERVER = Path(__file__).with_name("_postfix_server.py")
NEEDED = {
    "postfix": "/usr/lib/postfix/sbin/master",
    "dovecot-imapd": "/usr/lib/dovecot/imap",
    "dovecot-lmtpd": "/usr/lib/dovecot/lmtp",
}
INSTALL = f"apt-get install -y --no-install-recommends {' '.join(NEEDED)}"
BOX = "customer"


class Mail(System):
    """A mail server with the mailbox ``customer``, which can be searched over IMAP.

    Postfix takes a mail over (250) before Dovecot has it: what was sent is visible 20 to 200 ms
    later. A repeated Message-ID is delivered again. Mail to an address without a mailbox is taken
    over too and bounces to ``ops``. Needs root, and Debian's packages. Measured with Postfix
    3.7.11 and Dovecot 2.3.19 on 2026-11-29.
    """

    name = "Postfix + Dovecot"
    install = INSTALL
    scheme = "smtp"

    def __init__(
        self,
        folder: str | os.PathLike[str],
        *,
        ready_within: float = 30.0,
        stop_within: float = 8.0,
    ) -> None:
        super().__init__(folder, ready_within=ready_within, stop_within=stop_within)
        self.password = secrets.token_hex(8)
        self.imap_port = self._lmtp_port = 0

    def effects(self, marker: str) -> list[Effect]:
        """Return the messages in the mailbox, not expunged, that mention the marker."""
        return [effect for effect, file in self._found(marker) if file.exists()]

    def creations(self, marker: str) -> int:
        """Count the deliveries into the mailbox, expunged ones included.

        Dovecot removes the file of an expunged message, so each look keeps a hard link of what it
        sees; a message that came and went between two looks would not be counted.
        """
        return len(list(self._found(marker)))

    def keep(self) -> None:
        """Link every message now in the mailbox, so that it counts though it be expunged."""
        kept = self.folder / "kept"
        kept.mkdir(exist_ok=True)
        for file in self._files():
            with contextlib.suppress(FileExistsError, FileNotFoundError):
                os.link(file, kept / file.name.partition(":")[0])

    def _found(self, marker: str) -> Iterator[tuple[Effect, Path]]:
        self.keep()
        match = mentions(marker)
        now = {file.name.partition(":")[0]: file for file in self._files()}
        for link in sorted((self.folder / "kept").iterdir()):
            if match(_text(link.read_bytes())):
                when = link.stat().st_mtime
                where = now.get(link.name, self.folder / "gone")
                yield Effect(link.name, when, f"file {where.name}"), where

    def _files(self) -> list[Path]:
        box = self.folder / "mail" / BOX
        return sorted([*box.glob("new/*"), *box.glob("cur/*")])

    def expunge(self, key: str) -> None:
        """Delete the messages with a key for good, as a person does."""
        self.keep()
        with self.imap() as box:
            for number in search(box, key):
                box.store(number, "+FLAGS", "\\Deleted")
            box.expunge()

    @contextlib.contextmanager
    def imap(self) -> Iterator[imaplib.IMAP4]:
        """Open the mailbox over IMAP."""
        with open_box(self.imap_port, BOX, self.password, "INBOX") as box:
            yield box

    def _prepare(self) -> None:
        self.folder.chmod(0o755)
        if not self.imap_port:
            self.imap_port, self._lmtp_port = free_port(), free_port()

    def _command(self) -> Sequence[str]:
        ports = map(str, (self.port, self.imap_port, self._lmtp_port))
        where = [str(self.folder), self.host, *ports, self.password]
        return [sys.executable, "-P", "-B", str(SERVER), *where]

    def _answers(self) -> bool:
        import smtplib

        try:
            with smtplib.SMTP(self.host, self.port, timeout=2) as client:
                if b"mail.test" not in client.ehlo()[1]:
                    return False
            with self.imap():
                return True
        except (OSError, smtplib.SMTPException, imaplib.IMAP4.error):
            return False


@contextlib.contextmanager
def open_box(port: int, user: str, password: str, folder: str) -> Iterator[imaplib.IMAP4]:
    """Log in and select a folder; raises imaplib's errors."""
    client = imaplib.IMAP4(LOOPBACK, port, timeout=5)
    try:
        client.login(user, password)
        status, said = client.select(folder)
        if status != "OK":
            raise imaplib.IMAP4.error(f"{folder}: {said!r}")
        yield client
    finally:
        with contextlib.suppress(imaplib.IMAP4.error, OSError):
            client.logout()
        with contextlib.suppress(OSError):  # logout leaves the socket open where it fails
            client.shutdown()


def search(box: imaplib.IMAP4, key: str) -> list[str]:
    """Return the numbers of the messages that carry a key in their header."""
    status, found = box.search(None, "HEADER", "X-Operation-Key", key)
    if status != "OK":
        raise imaplib.IMAP4.error(f"SEARCH: {found!r}")
    return (found[0] or b"").decode("ascii").split()


def missing() -> str:
    """Say what is missing on this machine; nothing where it can be started."""
    lacking = [package for package, part in NEEDED.items() if not Path(part).exists()]
    if lacking:
        return f"{', '.join(lacking)} ({INSTALL})"
    if os.geteuid() != 0:
        return "root, as whom Postfix starts"
    return "" if shutil.which("dovecot") else "dovecot on the path"


def _text(content: bytes) -> str:
    message = message_from_bytes(content, policy=policy.default)
    assert isinstance(message, EmailMessage)
    headers = "\n".join(str(value) for value in message.values())
    body = message.get_body(("plain",))
    return f"{headers}\n{body.get_content() if body else ''}"

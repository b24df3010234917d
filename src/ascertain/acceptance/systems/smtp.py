"""A mail server with a mailbox on disk: accepted is all that it ever says."""

from __future__ import annotations

import contextlib
import json
import secrets
import socket
import sys
from collections.abc import Sequence
from email import message_from_bytes, policy
from email.message import EmailMessage
from pathlib import Path

from .base import PROBE_SECONDS, Effect, System, mentions

SERVER = Path(__file__).with_name("_mail_server.py")
JOURNAL = "deliveries.jsonl"
KEY_HEADER = "X-Operation-Key"


class Smtp(System):
    """An SMTP server (aiosmtpd) that files each accepted message in a Maildir.

    Starts in about 0.2 s. Repeated messages are all kept, also under the same Message-ID. The
    recipient ``unknown@…`` is refused with 550. A message is durable before its 250. Measured with
    aiosmtpd 1.4.6 on 2026-11-29.
    """

    name = "SMTP"
    modules = ("aiosmtpd",)
    install = "aiosmtpd"
    scheme = "smtp"

    @property
    def mailbox(self) -> Path:
        """The Maildir (``new`` holds what came, ``cur`` what somebody has read)."""
        return self.folder / "mailbox"

    def effects(self, marker: str) -> list[Effect]:
        """Return the files in the mailbox whose key header, or else any text, has the marker."""
        match = mentions(marker)
        return [
            # A mail reader moves a file to cur and adds flags after a colon: the same message.
            Effect(
                file.name.partition(":")[0],
                _received(file.name),
                f"file {file.parent.name}/{file.name}",
            )
            for file in self._files()
            if match(_text(file))
        ]

    def creations(self, marker: str) -> int:
        """Count the messages ever accepted, those deleted from the mailbox included.

        The server's journal has a line for each, with key header, Message-ID and subject. A server
        killed between file and line leaves the file, which counts too.
        """
        match = mentions(marker)
        names = {effect.id for effect in self.effects(marker)}
        with contextlib.suppress(FileNotFoundError):
            for line in (self.mailbox / JOURNAL).read_text("utf-8").splitlines():
                facts: dict[str, str] = json.loads(line)
                if match("\n".join(facts.values())):
                    names.add(facts["file"])
        return len(names)

    def _files(self) -> list[Path]:
        return sorted([*self.mailbox.glob("new/*"), *self.mailbox.glob("cur/*")])

    def _prepare(self) -> None:
        # By chance, so that only this server's greeting, not a stranger's, counts as ready.
        self._greeting = f"ascertain-{secrets.token_hex(4)}"

    def _command(self) -> Sequence[str]:
        arguments = [str(self.mailbox), self.host, str(self.port), self._greeting]
        return [sys.executable, "-P", "-B", str(SERVER), *arguments]

    def _answers(self) -> bool:
        try:
            with socket.create_connection(
                (self.host, self.port), timeout=PROBE_SECONDS
            ) as connection:
                line = connection.makefile("rb").readline()
                connection.sendall(b"QUIT\r\n")
        except OSError:
            return False
        return self._greeting.encode() in line


def _received(name: str) -> float | None:
    moment = name.partition(".")[0]
    return int(moment) / 1e9 if moment.isdigit() else None


def _text(file: Path) -> str:
    try:
        message = message_from_bytes(file.read_bytes(), policy=policy.default)
    except FileNotFoundError:  # read meanwhile: moved from new to cur, or deleted
        return ""
    assert isinstance(message, EmailMessage)
    headers = "\n".join(str(value) for value in message.values())
    body = message.get_body(("plain", "html"))
    return f"{headers}\n{body.get_content() if body else ''}"

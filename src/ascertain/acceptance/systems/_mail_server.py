"""An SMTP server that keeps each accepted message as one file of a Maildir.

Usage: ``python -P -B _mail_server.py FOLDER HOST PORT NAME``. Run by path, so that the target does
not load the package under test; ``-P`` because this folder holds a ``smtp.py`` of its own.

A message is on disk (file and folder synced) before its 250 goes out, as RFC 5321, 4.2.5 asks.
Nothing is de-duplicated, as with any mail server. Local part ``unknown`` is refused with 550.
"""

import asyncio
import itertools
import json
import os
import sys
import time
from email import message_from_bytes, policy
from pathlib import Path
from typing import Any

FOLDERS = ("tmp", "new", "cur")
JOURNAL = "deliveries.jsonl"
NUMBERS = itertools.count(1)


class Mailbox:
    """Write messages to a Maildir, and a line for each to the journal beside it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        for name in FOLDERS:
            (folder / name).mkdir(parents=True, exist_ok=True)

    def deliver(self, content: bytes, recipients: list[str]) -> str:
        """Store one message durably and return its file name."""
        name = f"{time.time_ns()}.{os.getpid()}_{next(NUMBERS)}.localhost"
        message = message_from_bytes(content, policy=policy.default)
        lines = "".join(f"Delivered-To: {address}\r\n" for address in recipients)
        _write(self.folder / "tmp" / name, lines.encode("utf-8") + content, "xb")
        (self.folder / "tmp" / name).rename(self.folder / "new" / name)
        _sync(self.folder / "new")
        facts = {
            "file": name,
            "key": str(message.get("X-Operation-Key", "")),
            "message_id": str(message.get("Message-ID", "")),
            "subject": str(message.get("Subject", "")),
        }
        _write(self.folder / JOURNAL, json.dumps(facts).encode() + b"\n", "ab")
        return name

    async def handle_RCPT(  # noqa: N802 - aiosmtpd's name
        self, _server: Any, _session: Any, envelope: Any, address: str, _options: Any
    ) -> str:
        """Accept any recipient but ``unknown``."""
        if address.partition("@")[0].lower() == "unknown":
            return "550 5.1.1 No such mailbox here"
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(self, _server: Any, _session: Any, envelope: Any) -> str:  # noqa: N802
        """Store the message, then answer with the name under which it lies."""
        name = self.deliver(envelope.content, envelope.rcpt_tos)
        return f"250 2.0.0 Accepted as {name}"


def _write(path: Path, content: bytes, mode: str) -> None:
    with path.open(mode) as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def _sync(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


async def _serve(folder: Path, host: str, port: int, name: str) -> None:
    from aiosmtpd.smtp import SMTP

    mailbox = Mailbox(folder)
    loop = asyncio.get_running_loop()
    server = await loop.create_server(
        lambda: SMTP(mailbox, hostname="localhost", ident=name, loop=loop), host, port
    )
    async with server:
        await server.serve_forever()


def main() -> None:
    """Serve until a signal ends the process."""
    folder, host, port, name = sys.argv[1:5]
    asyncio.run(_serve(Path(folder), host, int(port), name))


if __name__ == "__main__":
    main()

"""Senders without a ledger: what an ordinary script sends, and how it can be killed or frozen.

Of the standard library alone, and run by path (``python -P -B plain.py JSON``), so that a blind
sender loads nothing of the package under test. The actions use the same NATS and SMTP code, which
sends by itself.
"""

from __future__ import annotations

import base64
import contextlib
import ctypes
import http.client
import json
import os
import secrets
import signal
import smtplib
import socket
import struct
import sys
import threading
import zlib
from collections.abc import Mapping
from email.message import EmailMessage
from typing import Any, Self

HOST = "127.0.0.1"
PR_SET_PDEATHSIG = 1  # prctl(2), Linux
MOMENTS = ("stop_before", "kill_before", "kill_after")
Place = Mapping[str, Any]  # where a target is: port, path, headers, user, …


def end_with_parent(parent: int) -> None:
    """Have this process killed when the thread that made it ends, frozen or not (Linux)."""
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        raise SystemExit(1)


def halt(number: int) -> None:
    """Stop or kill this process before this thread does anything more.

    A signal to the process may be taken by another thread, and this one would run on for a
    moment; one to this thread is taken when the call returns.
    """
    signal.pthread_kill(threading.get_ident(), number)


def arm(moment: str, word: str) -> None:
    """Let this process stop or kill itself at its first write that begins with ``word``.

    ``stop_before`` lies exactly between a sender's look at its deadline and the write.
    """
    if moment not in MOMENTS:
        raise ValueError(f"moment must be one of {', '.join(MOMENTS)}, not {moment!r}")
    start = word.encode()
    used: list[bool] = []

    def guarded(original: Any) -> Any:
        def write(sock: socket.socket, data: Any, *flags: int) -> Any:
            hit = not used and bytes(data[: len(start)]) == start
            if hit:
                used.append(True)
            if hit and moment == "kill_before":
                halt(signal.SIGKILL)
            if hit and moment == "stop_before":
                halt(signal.SIGSTOP)
            sent = original(sock, data, *flags)
            if hit and moment == "kill_after":
                halt(signal.SIGKILL)
            return sent

        return write

    for name in ("send", "sendall"):
        setattr(socket.socket, name, guarded(getattr(socket.socket, name)))


# What is sent


def task(uid: str, text: str) -> bytes:
    """Return a CalDAV task; its lines are in the order in which Radicale 3.9 stores them."""
    lines = ["BEGIN:VCALENDAR", "VERSION:2.0", "PRODID:-//Ascertain//demo//EN", "BEGIN:VTODO"]
    lines += ["DTSTAMP:20260101T000000Z", f"SUMMARY:{text}", f"UID:{uid}"]
    return "\r\n".join([*lines, "END:VTODO", "END:VCALENDAR", ""]).encode()


def mail(text: str, key: str = "") -> bytes:
    """Return a mail to one customer, with our key in a header if there is one."""
    message = EmailMessage()
    message["From"], message["To"] = "ops@example.com", "customer@example.com"
    message["Subject"] = text
    if key:
        message["X-Operation-Key"], message["Message-ID"] = key, f"<{key}@example.com>"
    message.set_content("Please find our offer enclosed.")
    return message.as_bytes()


def picture(text: str) -> bytes:
    """Return a small PNG file with a text in it; the same text gives the same bytes."""
    pixels = zlib.compress(b"\0\x20\x60\xa0")  # one row of one pixel
    header = struct.pack(">IIBBBBB", 1, 1, 8, 2, 0, 0, 0)
    comment = b"Comment\0" + text.encode("latin-1", "replace")
    parts = ((b"IHDR", header), (b"tEXt", comment), (b"IDAT", pixels), (b"IEND", b""))
    whole = b"\x89PNG\r\n\x1a\n"
    for kind, body in parts:
        check = struct.pack(">I", zlib.crc32(kind + body))
        whole += struct.pack(">I", len(body)) + kind + body + check
    return whole


def media_headers(name: str) -> dict[str, str]:
    """Return the headers that say what a file is and its name."""
    shown = f'attachment; filename="{name}.png"'
    return {"Content-Type": "image/png", "Content-Disposition": shown}


def ask(
    place: Place,
    method: str,
    path: str,
    body: bytes,
    *,
    kind: str | Mapping[str, str],
    within: float,
) -> tuple[int, bytes]:
    """Send one HTTP request and return status and body; `kind` is its type, or its headers."""
    connection = http.client.HTTPConnection(HOST, place["port"], timeout=within)
    with contextlib.closing(connection):
        own = {"Content-Type": kind} if isinstance(kind, str) else kind
        connection.request(method, path, body, {**place["headers"], **own})
        answer = connection.getresponse()
        return answer.status, answer.read()


def submit_mail(place: Place, content: bytes, within: float) -> str:
    """Hand a mail over and return the name that the server gave it."""
    with smtplib.SMTP(HOST, place["port"], timeout=within) as client:
        client.ehlo()
        code, said = client.mail("ops@example.com")
        if code == 250:
            code, said = client.rcpt("customer@example.com")
        if code == 250:
            code, said = client.data(content)
        if code != 250:
            raise smtplib.SMTPDataError(code, said)
        return said.decode("utf-8", "replace").rpartition(" ")[2]


class NatsLink:
    """As much of the NATS protocol as one request takes (docs.nats.io, client protocol)."""

    def __init__(self, place: Place, within: float) -> None:
        self.sock = socket.create_connection((HOST, place["port"]), timeout=within)
        self.file = self.sock.makefile("rb")
        self.file.readline()  # INFO
        self.inbox = f"_INBOX.{secrets.token_hex(8)}"
        options = {
            "user": place["user"],
            "pass": place["password"],
            "verbose": False,
            "pedantic": False,
            "headers": True,
            "no_responders": True,
            "lang": "python",
            "version": "0",
            "protocol": 1,
        }
        self.sock.sendall(f"CONNECT {json.dumps(options)}\r\nSUB {self.inbox} 1\r\n".encode())

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Let go of the connection."""
        self.file.close()
        self.sock.close()

    def request(self, subject: str, body: bytes, headers: Mapping[str, str] | None = None) -> Any:
        """Publish with a reply address and return the JSON of the answer."""
        lines = "".join(f"{name}: {value}\r\n" for name, value in (headers or {}).items())
        head = f"NATS/1.0\r\n{lines}\r\n".encode()
        sizes = f"{len(head)} {len(head) + len(body)}"
        start = f"HPUB {subject} {self.inbox} {sizes}\r\n".encode()
        self.sock.sendall(start + head + body + b"\r\n")
        while line := self.file.readline():
            words = line.split()
            if words[:1] == [b"PING"]:
                self.sock.sendall(b"PONG\r\n")
            elif words[:1] == [b"-ERR"]:
                raise ConnectionError(line.decode("utf-8", "replace"))
            elif words[:1] in ([b"MSG"], [b"HMSG"]):
                content = self.file.read(int(words[-1]) + 2)
                return json.loads(content[int(words[-2]) if words[0] == b"HMSG" else 0 :])
        raise ConnectionResetError("the connection ended before the answer")


def publish(place: Place, subject: str, body: bytes, *, key: str = "", within: float) -> int:
    """Publish to the stream and return the sequence number that the server acknowledged."""
    with NatsLink(place, within) as link:
        said = link.request(subject, body, {"Nats-Msg-Id": key} if key else None)
    if "seq" not in said:
        raise ConnectionError(f"the stream refused the message: {said}")
    return int(said["seq"])


def last_message(place: Place, subject: str, within: float) -> tuple[int, str] | None:
    """Return the last message of a subject, its number and headers; None where there is none."""
    with NatsLink(place, within) as link:
        asked = json.dumps({"last_by_subj": subject}).encode()
        said = link.request(f"$JS.API.STREAM.MSG.GET.{place['stream']}", asked)
    if said.get("error", {}).get("code") == 404:
        return None
    found = said["message"]
    return int(found["seq"]), base64.b64decode(found.get("hdrs", "")).decode()


# Blind


def blind(what: str, place: Place, marker: str, within: float) -> bool:
    """Send once as a script without key, condition or look-up does; False if no answer came.

    A task gets a fresh name each time, as CalDAV clients give them; nothing else carries a name.
    """
    text = f"Offer {marker}"
    try:
        if what == "task":
            name = secrets.token_hex(13)
            path = f"{place['path']}{name}.ics"
            status, _ = ask(
                place, "PUT", path, task(name, text), kind="text/calendar", within=within
            )
            return status < 300
        if what == "media":
            kinds = media_headers(marker)
            status, _ = ask(place, "POST", place["path"], picture(text), kind=kinds, within=within)
            return status < 300
        if what in ("ticket", "post"):
            body = json.dumps({"title": text}).encode()  # WordPress makes a draft of it
            status, _ = ask(
                place, "POST", place["path"], body, kind="application/json", within=within
            )
            return status < 300
        if what == "message":
            publish(place, f"op.blind.{secrets.token_hex(8)}", text.encode(), within=within)
        else:
            submit_mail(place, mail(text), within)
    except (OSError, http.client.HTTPException, smtplib.SMTPException):
        return False
    return True


def main() -> None:
    """Send blindly once, as the JSON on the command line says, and stop or die on the way."""
    told = json.loads(sys.argv[1])
    end_with_parent(told["parent"])
    if told["moment"]:
        arm(told["moment"], told["word"])
    blind(told["what"], told["place"], told["marker"], told["within"])


if __name__ == "__main__":
    main()

"""Tells people: a signed webhook, a mail, a message of a Feishu (Lark) bot; each once per call.

What is told twice is folded by whoever receives it: a webhook by its id (Standard Webhooks), a mail
by its Message-ID. Addresses and secrets are read when something is sent, and are in no finding: a
bot's address is a credential.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import os
import smtplib
import ssl
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from email.message import EmailMessage
from email.utils import format_datetime
from typing import Any, Literal

import msgspec

from ascertain.core.model import ActFinding, Done, NotDone, NotDoneKind, Unknown

from .credentials import NoCredential, Source, text_of

SECONDS = 10  # of one message
ANSWER_BYTES = 64 * 1024  # of an answer that is read
SUBJECT = 150  # characters of a mail's subject
FEISHU_BUSY = (9499, 11232)  # open.feishu.cn, custom bots, "frequency limited" (2026-11-30)
PREFIX = "whsec_"  # Standard Webhooks 1.0: the rest is base64


class Channel(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Where people are told: one of `webhook`, `mail`, `feishu`, and what it needs."""

    kind: Literal["webhook", "mail", "feishu"]
    url: str | Source = ""
    secret: Source | None = None
    host: str = ""
    port: int = 0  # 0: 465 with tls = "implicit", else 587
    tls: Literal["starttls", "implicit", "none"] = "starttls"
    user: str | Source = ""
    password: Source | None = None
    sender: str = ""
    to: tuple[str, ...] = ()


class Message(msgspec.Struct, frozen=True, kw_only=True):
    """What is told: a head and a text per language, where to look, and facts for machines."""

    kind: str
    heads: dict[str, str]
    texts: dict[str, str]
    link: str = ""
    data: dict[str, Any] = {}


class Sending(msgspec.Struct, frozen=True, kw_only=True):
    """One sending: `ident` is the same however often a message is sent; `now` in seconds."""

    ident: str
    now: int
    environ: Mapping[str, str]
    seconds: float


def deliver(
    channel: Channel,
    message: Message,
    *,
    ident: str,
    now: int,
    environ: Mapping[str, str] = os.environ,
    seconds: float = SECONDS,
) -> ActFinding:
    """Send a message once and return what is known about it. `now` in seconds since 1970;
    `ident` is the same however often it is sent."""
    send = {"webhook": _webhook, "mail": _mail, "feishu": _feishu}[channel.kind]
    sending = Sending(ident=ident, now=now, environ=environ, seconds=seconds)
    try:
        return send(channel, message, sending)
    except NoCredential as error:
        return NotDone(NotDoneKind.TRANSIENT, error.reason)


def signature(secret: str, ident: str, now: int, body: bytes) -> str:
    """Return the signature of a webhook (Standard Webhooks 1.0, symmetric)."""
    key = secret.encode()
    if secret.startswith(PREFIX):
        key = base64.b64decode(secret.removeprefix(PREFIX))
    signed = f"{ident}.{now}.".encode() + body
    return "v1," + base64.b64encode(hmac.digest(key, signed, hashlib.sha256)).decode()


def feishu_sign(secret: str, now: int) -> str:
    """Return the signature of a Feishu bot: the text is the key, and what is signed is empty
    (open.feishu.cn, custom bots, read on 2026-11-30)."""
    return base64.b64encode(hmac.digest(f"{now}\n{secret}".encode(), b"", hashlib.sha256)).decode()


def _webhook(channel: Channel, message: Message, sending: Sending) -> ActFinding:
    body = msgspec.json.encode(
        {
            "type": f"ascertain.{message.kind}",
            "timestamp": f"{datetime.fromtimestamp(sending.now, tz=UTC):%Y-%m-%dT%H:%M:%SZ}",
            "data": {**message.data, "heads": message.heads, "texts": message.texts,
                     "link": message.link},
        }
    )  # fmt: skip
    headers = {
        "content-type": "application/json",
        "webhook-id": f"msg_{sending.ident}",
        "webhook-timestamp": str(sending.now),
    }
    if channel.secret is not None:
        secret = channel.secret.read(sending.environ)
        headers["webhook-signature"] = signature(secret, f"msg_{sending.ident}", sending.now, body)
    return _post(
        text_of(channel.url, sending.environ), body, headers, sending.seconds, lambda _: None
    )


def _feishu(channel: Channel, message: Message, sending: Sending) -> ActFinding:
    lines = [f"{message.heads[lang]}\n{said}" for lang, said in message.texts.items()]
    text = "\n\n".join([*lines, message.link] if message.link else lines)
    made: dict[str, Any] = {"msg_type": "text", "content": {"text": text}}
    if channel.secret is not None:
        secret = channel.secret.read(sending.environ)
        made |= {"timestamp": str(sending.now), "sign": feishu_sign(secret, sending.now)}
    headers = {"content-type": "application/json; charset=utf-8"}
    body = msgspec.json.encode(made)
    return _post(
        text_of(channel.url, sending.environ), body, headers, sending.seconds, _feishu_said
    )


def _feishu_said(body: bytes) -> ActFinding | None:
    """Return what a bot's answer of status 200 refuses, or None."""
    try:
        said = msgspec.json.decode(body)
        code = said.get("code", said.get("StatusCode"))
    except (msgspec.DecodeError, AttributeError):
        return Unknown(reason="the bot's answer is none of Feishu's")
    if code == 0:
        return None
    kind = NotDoneKind.TRANSIENT if code in FEISHU_BUSY else NotDoneKind.REJECTED
    return NotDone(kind, f"the bot refused it: code {code}")


def _post(
    url: str,
    body: bytes,
    headers: Mapping[str, str],
    seconds: float,
    said: Callable[[bytes], ActFinding | None],
) -> ActFinding:
    """Send once: no redirects, no retries, no proxy from the environment."""
    import httpx2

    try:
        with (
            httpx2.Client(
                timeout=seconds, trust_env=False, follow_redirects=False,
                headers={"user-agent": "ascertain"},
            ) as client,
            client.stream("POST", url, content=body, headers=dict(headers)) as answer,
        ):  # fmt: skip
            status, seen = answer.status_code, b""
            for part in answer.iter_bytes():
                seen += part
                if len(seen) > ANSWER_BYTES:
                    break
    except httpx2.ConnectError as error:
        return NotDone(NotDoneKind.TRANSIENT, f"no connection: {type(error).__name__}")
    except (httpx2.HTTPError, httpx2.InvalidURL, OSError) as error:
        return Unknown(reason=f"no answer: {type(error).__name__}")  # its text may name the address
    if 200 <= status < 300:
        return said(seen) or Done(result={"status": status})
    again = status >= 500 or status in (408, 425, 429)
    kind = NotDoneKind.TRANSIENT if again else NotDoneKind.REJECTED
    return NotDone(kind, f"HTTP {status}")


def _mail(channel: Channel, message: Message, sending: Sending) -> ActFinding:
    mail = EmailMessage()
    mail["From"], mail["To"] = channel.sender, ", ".join(channel.to)
    mail["Subject"] = _one_line(" / ".join(message.heads.values()))[:SUBJECT]
    domain = channel.sender.rpartition("@")[2].strip("> ") or "ascertain.invalid"
    mail["Message-ID"] = f"<{sending.ident}@{domain}>"
    mail["Date"] = format_datetime(datetime.fromtimestamp(sending.now, tz=UTC))
    mail["Auto-Submitted"] = "auto-generated"  # RFC 3834: nobody's absence answers it
    texts = "\n\n".join(message.texts.values())
    mail.set_content(f"{texts}\n\n{message.link}\n" if message.link else f"{texts}\n")
    user = text_of(channel.user, sending.environ)
    password = channel.password.read(sending.environ) if channel.password is not None else ""
    began = False
    try:
        with _connected(channel, sending.seconds) as server:
            if user:
                server.login(user, password)
            began = True
            refused = server.send_message(mail)
    except smtplib.SMTPRecipientsRefused:
        return NotDone(NotDoneKind.REJECTED, "every recipient was refused")
    except smtplib.SMTPResponseException as error:
        again = 400 <= error.smtp_code < 500 or isinstance(error, smtplib.SMTPAuthenticationError)
        kind = NotDoneKind.TRANSIENT if again else NotDoneKind.REJECTED
        return NotDone(kind, f"SMTP {error.smtp_code}")
    except (OSError, smtplib.SMTPException) as error:
        if began:
            return Unknown(reason=f"the mail server did not answer: {type(error).__name__}")
        return NotDone(NotDoneKind.TRANSIENT, f"no connection: {type(error).__name__}")
    return Done(result={"refused": len(refused)})


def _connected(channel: Channel, seconds: float) -> smtplib.SMTP:
    context = ssl.create_default_context()
    if channel.tls == "implicit":
        return smtplib.SMTP_SSL(channel.host, channel.port or 465, timeout=seconds, context=context)
    server = smtplib.SMTP(channel.host, channel.port or 587, timeout=seconds)
    if channel.tls == "starttls":
        try:
            server.starttls(context=context)
        except BaseException:
            server.close()
            raise
    return server


def _one_line(text: str) -> str:
    return "".join(letter if letter.isprintable() else " " for letter in text)

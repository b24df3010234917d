"""Callbacks: a waiting flow is told when an operation has settled, itself by an operation.

An address to resume, like `$execution.resumeUrl` of n8n, works once: 404, 409 and 410 mean that
nobody waits there any more, so there is nothing left to do. A crash between any two steps tells
it again under the same key, with the same content; a callback has no callback of its own.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any
from urllib.parse import urlsplit

from ascertain.core.books import Watch
from ascertain.core.contract import Contract, KeyRule
from ascertain.core.errors import UsageError
from ascertain.core.model import SECOND, ActFinding, Done, NotDone, NotDoneKind, Unknown
from ascertain.store.base import Posting

from .engine import Engine
from .ledger import Action
from .receipt import Receipt
from .ticket import Options

NAME = "ascertain.callback"
MOST = 100  # watches that are told at once
URL = 2000  # characters of an address
PLACE = 16  # digits of its hash, by which the callbacks of one operation are told apart
OWNER = "operator"
LOOPBACK = ("localhost", "127.0.0.1", "[::1]")
GONE = (404, 409, 410)  # nobody waits there any more
RETRIES = {"timeout": "30s", "attempts": 20, "total": "24h", "longest_delay": "1h"}
CONTRACT = Contract(
    id=NAME,
    title="a flow that waits is resumed",
    harm="none",  # a second call of an address that works once does nothing
    key=KeyRule(at="header:Idempotency-Key", kind="request"),
)
_TIMES = ("due_at", "confirmed_at")
_LEFT_OUT = ("reused", "target_key", "warnings")


class Watches:
    """Who is told about the operations of one namespace."""

    def __init__(self, engine: Engine, hosts: Sequence[str], public_url: str = "") -> None:
        """`hosts` are those that may be called: `host` or `host:port` by https, and
        `http://host:port` without; on this machine by either."""
        self._engine, self._public_url = engine, public_url.rstrip("/")
        self._hosts = frozenset(h.lower().rstrip("/") for h in hosts)

    def check(self, url: str) -> None:
        """Refuse an address whose host is not declared, or that could lead elsewhere; raises
        UsageError naming what is wrong, never the address, which lets in who has it."""
        why = self._wrong(url)
        if why:
            raise UsageError(f"callback: {why}; declare it as callback_hosts in [server]")

    def _wrong(self, url: str) -> str:
        if len(url) > URL or not url.isascii() or not url.isprintable() or " " in url:
            return f"an address of up to {URL} plain characters is needed"
        try:
            parts = urlsplit(url)
            port = parts.port
        except ValueError:
            return "this is no address"
        if parts.scheme not in ("http", "https") or not parts.hostname or "\\" in url:
            return "this is no address by https"
        if parts.username is not None or parts.password is not None:
            return "an address with a login is not called"
        name = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
        usual = {"http": 80, "https": 443}[parts.scheme]
        host = name if port in (None, usual) else f"{name}:{port}"
        secure = parts.scheme == "https" or name in LOOPBACK
        if (host in self._hosts and secure) or f"{parts.scheme}://{host}" in self._hosts:
            return ""
        return f"host {host!r} is not one that may be called by {parts.scheme}"

    def line(self, operation: str, url: str) -> tuple[str, Watch]:
        """Return the line by which an address is kept with an operation: each flow that waits for
        it is called once, however many do."""
        now = self._engine.store.now()
        return "watch_add", Watch(
            operation=operation, namespace=self._engine.namespace, url=url, asked_at=now, due_at=now
        )

    # --- telling ---

    def tell(self) -> int:
        """Record a callback for each operation that is done, accepted or stopped, whoever found
        that out; a worker makes the calls. Durable when it returns; returns how many."""
        store = self._engine.store
        ready = store.ask(Watch, "watch_ready", namespace=self._engine.namespace, most=MOST)
        action = Action(self._engine, self._engine.definition(NAME), Options())
        for watch in ready:
            body = shown(self._receipt(watch.operation), self._public_url)
            place = _place(watch.url)
            action.enqueue(operation=watch.operation, place=place, url=watch.url, body=body)
            told = {"operation": watch.operation, "url": watch.url}
            store.post([Posting((("watch_told", told),))])
        return len(ready)

    def _receipt(self, operation: str) -> Receipt:
        from .desk import Desk

        return Desk(self._engine).get(operation)


def shown(receipt: Receipt, public_url: str) -> dict[str, Any]:
    """Return what is told: the operation as the API shows it."""
    told: dict[str, Any] = {n: getattr(receipt, n) for n in receipt.__struct_fields__}
    told = {n: v for n, v in told.items() if n not in _LEFT_OUT}
    for name in _TIMES:
        if told[name] is not None:
            at = datetime.fromtimestamp(told[name] / SECOND, tz=UTC)
            told[name] = at.isoformat().replace("+00:00", "Z")
    told["assumptions"] = list(receipt.assumptions)
    told["link"] = f"{public_url}/op/{receipt.id}"
    return {n: str(v) if isinstance(v, str) else v for n, v in told.items()}


def register(ledger: Any, watches: Watches) -> None:
    """Register the action by which a ledger calls back."""

    def call_back(
        call: Any, *, operation: str, place: str, url: str, body: dict[str, Any]
    ) -> ActFinding:
        assert place == _place(url), "the key names the address"
        watches.check(url)  # what may be called is for the configuration of now to say
        answer = call.http.request(
            "POST", url, json={"operation_id": operation, **body}, check=False,
            headers={"Idempotency-Key": call.target_key},
        )  # fmt: skip
        return judged(answer)

    ledger.action(
        NAME, key="{operation}/{place}", owner=OWNER, contract=CONTRACT, content=["body"],
        on_changed="reuse", sends="call", title="callback {operation}", **RETRIES,
    )(call_back)  # fmt: skip


def _place(url: str) -> str:
    """Return what stands for an address in a key, which lets in nobody."""
    return hashlib.sha256(url.encode()).hexdigest()[:PLACE]


def judged(answer: Any) -> ActFinding:
    """Return what the answer to a callback means."""
    status, seen = answer.status, answer.evidence()
    if 200 <= status < 300:  # noqa: PLR2004 - HTTP
        return Done(result={"resumed": True}, evidence=seen)
    if status in GONE:
        return Done(result={"resumed": False, "status": status}, evidence=seen)
    wait = _seconds(answer.headers.get("retry-after", ""))
    if status == 429:  # noqa: PLR2004 - HTTP
        return NotDone(NotDoneKind.THROTTLED, f"HTTP {status}", wait, evidence=seen)
    if 400 <= status < 500:  # noqa: PLR2004 - HTTP
        return NotDone(NotDoneKind.REJECTED, f"HTTP {status}", evidence=seen)
    return Unknown(f"HTTP {status}", wait, evidence=seen)


def _seconds(text: str) -> float | None:
    return float(text) if text.isdecimal() else None

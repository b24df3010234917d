"""An ordinary day, played for real: a client submits, answers are lost, a shop repeats itself.

Everything goes over HTTP to a running server, and from there through fault proxies to real systems.
What its pages show then is what happened; nothing is written into the store past the server.
"""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import http.client
import json
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

from . import day_config
from .faults import HttpFaultProxy
from .systems import Radicale, Roundup, running

RUN = {"en": "autumn-offer", "zh": "秋季报价"}
CAMPAIGN = "autumn"
TICKETS = "/helpdesk/rest/data/issue"
LATE = 8.0  # seconds that B's request is held up on its way: the caller has long given up
SOON = 5.0  # seconds until C, which nobody asks for, is missing
WITHIN = 20.0  # seconds that the day waits for something to become known
POLL = 0.2
OWN = "ascertain"
HTTP_WITHIN = 15.0
TEXTS: Mapping[str, Mapping[str, str]] = {
    "en": {
        "A": "Offer for autumn lamps", "B": "Offer for winter lamps",
        "D": "Offer for garden lamps", "E": "Offer for desk lamps", "copy": "Copy of a ticket",
        "topic": "the delivery date",
        "v1": "Dear customer, your lamps arrive on Friday. Kind regards, the service team.",
        "v2": "Dear customer, your lamps arrive on Monday, free of charge. Kind regards, the"
        " service team.",
        "reason": "The carrier has moved the date.",
        "pinned": "A warm lamp for cold evenings.", "other": "Warm light when evenings grow cold.",
        "checked": "checked and used",
    },
    "zh": {
        "A": "秋季灯具报价", "B": "冬季灯具报价", "D": "庭院灯具报价", "E": "台灯报价",
        "copy": "工单副本", "topic": "到货日期",
        "v1": "尊敬的客户：您订购的灯具将于周五送达。客服团队敬上。",
        "v2": "尊敬的客户：您订购的灯具将于周一送达，运费全免。客服团队敬上。",
        "reason": "承运方调整了日期。",
        "pinned": "寒夜里的一盏暖灯。", "other": "天凉了，点一盏暖灯。", "checked": "已检查并采用",
    },
}  # fmt: skip
Approve = Callable[[str], None]  # the operation's id: a colleague consents


class NotAsExpectedError(RuntimeError):
    """Something in the day went otherwise than it should; says what."""


class EndedError(RuntimeError):
    """The demo was told to end meanwhile."""


@dataclass(frozen=True)
class Place:
    """Where the day takes place: two real systems, and the proxies before them."""

    own: Path  # a folder for configuration, secrets and store, which nobody else may enter
    desk: Roundup
    crm: Radicale
    desk_proxy: HttpFaultProxy
    crm_proxy: HttpFaultProxy

    def configured(self, lang: str, store: str) -> Path:
        """Write the configuration that describes it; returns the file."""
        ports = {"desk": self.desk_proxy.port, "crm": self.crm_proxy.port}
        return day_config.write(
            self.own, lang, store=store, desk=self.desk, crm=self.crm, ports=ports
        )


@contextlib.contextmanager
def place(folder: Path) -> Iterator[Place]:
    """Start both systems and the proxies; end them at the end of the block."""
    desk, crm = Roundup(folder / "desk"), Radicale(folder / "crm")
    with (
        running([desk, crm]),
        HttpFaultProxy(desk.port, set_host=True) as desk_proxy,
        HttpFaultProxy(crm.port) as crm_proxy,
    ):
        own = folder / OWN
        own.mkdir(0o700, exist_ok=True)
        yield Place(own, desk, crm, desk_proxy, crm_proxy)


class Day:
    """One day; `play` takes about ten seconds."""

    def __init__(self, where: Place, url: str, token: str, *, lang: str, approve: Approve) -> None:
        """Work with a server at `url` by a token of its own; `approve` is a colleague's consent,
        since no token may give one."""
        self.where, self.lang, self.words = where, lang, TEXTS[lang]
        self._host = urlsplit(url).netloc
        self._token, self._approve = token, approve
        self._over = threading.Event()

    def end(self) -> None:
        """Have it end before its next step."""
        self._over.set()

    @property
    def ended(self) -> bool:
        """Whether it was told to end."""
        return self._over.is_set()

    def play(self, tell: Callable[[str], None]) -> None:
        """Play it; `tell` is given the code of each part that has happened. Raises EndedError."""
        parts = (self._batch, self._tasks, self._answers, self._events, self._texts)
        with ThreadPoolExecutor(len(parts)) as pool:
            waiting = {pool.submit(part): part.__name__.strip("_") for part in parts}
            for future in as_completed(waiting):
                future.result()
                tell(waiting[future])

    # --- what happens ---

    def _batch(self) -> None:
        """A run: A is done, B's request is held up on its way, D's answer is lost, E exists twice
        since a colleague copies the ticket; C is expected, and nobody ever asks for it."""
        due = datetime.now(UTC) + timedelta(seconds=SOON)
        keys = [{"action": "desk.ticket", "key": f"{CAMPAIGN}/{item}"} for item in "ABCDE"]
        self._ask("POST", "/v1/runs", name=RUN[self.lang], expects=keys, due=due.isoformat())
        desk = self.where.desk_proxy
        first = self._ticket("A")
        self._until_done(first, "A is done")  # before a fault is set up for another one
        self._ticket("A")  # again: nothing is sent
        held = desk.hold(LATE, "POST", TICKETS)  # its answer; the caller waits for two seconds
        twice = self._ticket("E", wait=1)
        self._until(held.landed.is_set, "E has reached the help desk")
        self._copied()
        dropped = desk.drop_response("POST", TICKETS)
        self._ticket("D", wait=1)
        self._until(dropped.seen.is_set, "D has left")
        late = desk.commit_late(LATE, "POST", TICKETS)
        unknown = self._ticket("B")
        for item in "ABDE":  # everything again, as a workflow does that is run a second time
            self._ticket(item, wait=0)
        for one, item in ((unknown, "B"), (twice, "E")):
            self._until(partial(self._waits, one["id"]), f"{item} waits for a person")
        self._until(late.landed.is_set, "B has reached the help desk after all")

    def _ticket(self, item: str, wait: float = 3) -> dict[str, Any]:
        given = {"campaign": CAMPAIGN, "item": item, "title": self.words[item]}
        return self._submit("desk.ticket", given, run=RUN[self.lang], wait=wait)

    def _copied(self) -> None:
        """Let a colleague copy E's ticket by hand at the help desk itself, our key with it."""
        [ticket] = self._desk("GET", f"?title={quote(self.words['E'])}&@fields=opkey,title")
        copy = {"title": f"{self.words['copy']}: {ticket['title']}", "opkey": ticket["opkey"]}
        self._desk("POST", "", copy)

    def _desk(self, method: str, query: str, body: Any = None) -> Any:
        """Ask the help desk itself, past the proxy."""
        desk = self.where.desk
        headers = {**desk.headers, "Content-Type": "application/json"}
        status, data = self._http(
            f"{desk.host}:{desk.port}", method, desk.issues_path + query, body, headers
        )
        if status not in (200, 201):
            raise NotAsExpectedError(f"the help desk answered {status}: {data[:200]!r}")
        return json.loads(data)["data"].get("collection")

    def _tasks(self) -> None:
        """Two follow-up tasks: the answer to one is lost, and it is sent again under its name."""
        first = self._submit("crm.task", {"order": "R-1001"})
        self._until_done(first, "the first task is done")
        self.where.crm_proxy.drop_response("PUT")
        lost = self._submit("crm.task", {"order": "R-1002"})
        self._until_done(lost, "the task was recovered")

    def _answers(self) -> None:
        """An answer is approved by a colleague and sent; a second version waits for consent."""
        topic, words = self.words["topic"], self.words
        first = self._submit("desk.reply", {"topic": topic, "version": 1, "text": words["v1"]})
        self._approve(first["id"])
        self._until_done(first, "the first version was sent")
        self._submit(
            "desk.reply", {"topic": topic, "version": 2, "text": words["v2"]},
            supersedes=first["id"], reason=words["reason"],
        )  # fmt: skip

    def _events(self) -> None:
        """The shop tells of one paid order three times, of another once, and of what nobody asked
        about."""
        for order, topic, times in (
            ("R-2001", "order.paid", 3), ("R-2002", "order.paid", 1), ("R-2003", "cart.seen", 1),
        ):  # fmt: skip
            body = json.dumps({"order": order, "total": "49.00"}).encode()
            for number in range(1, times + 1):
                headers = {
                    "Content-Type": "application/json", "X-Shop-Event": f"evt-{order}",
                    "X-Shop-Topic": topic, "X-Shop-Delivery": f"dlv-{order}-{number}",
                    "X-Shop-Signature": signature(body),
                }  # fmt: skip
                status, told = self._http(self._host, "POST", "/hooks/shop", body, headers)
                if status != 200:
                    raise NotAsExpectedError(f"an event was answered {status}: {told[:200]!r}")

    def _texts(self) -> None:
        """A text is generated, and generated anew on a second run: the first one counts. It is
        accepted, as an asset that was paid for."""
        for text in ("pinned", "other"):
            self._ask("POST", "/v1/pins", key="lamp-text-v1", value=self.words[text])
        self._ask("POST", "/v1/assets/lamp-text-v1/accept", note=self.words["checked"])

    # --- over HTTP ---

    def _submit(self, action: str, given: dict[str, Any], **more: Any) -> dict[str, Any]:
        asked = {"action": action, "input": given, "on_unresolved": "accept", **more}
        return self._ask("POST", "/v1/operations", **asked)

    def _until_done(self, operation: Mapping[str, Any], what: str) -> None:
        path = f"/v1/operations/{operation['id']}"
        self._until(lambda: self._ask("GET", path)["state"] == "done", what)

    def _waits(self, operation: str) -> bool:
        return bool(self._ask("GET", f"/v1/operations/{operation}")["waiting_on"] == "review")

    def _ask(self, method: str, path: str, /, **body: Any) -> dict[str, Any]:
        headers = {"Authorization": f"Bearer {self._token}", "Content-Type": "application/json"}
        status, data = self._http(self._host, method, path, body or None, headers)
        if status >= 300:
            raise NotAsExpectedError(f"{method} {path} was answered {status}: {data[:300]!r}")
        answer: dict[str, Any] = json.loads(data)
        return answer

    def _http(
        self, host: str, method: str, path: str, body: Any, headers: Mapping[str, str]
    ) -> tuple[int, bytes]:
        if self._over.is_set():
            raise EndedError
        data = body if isinstance(body, bytes | None) else json.dumps(body).encode()
        connection = http.client.HTTPConnection(host, timeout=HTTP_WITHIN)
        with contextlib.closing(connection):
            connection.request(method, path, data, dict(headers))
            answer = connection.getresponse()
            return answer.status, answer.read()

    def _until(self, holds: Callable[[], Any], what: str) -> None:
        end = time.monotonic() + WITHIN
        while not holds():
            if time.monotonic() > end:
                raise NotAsExpectedError(f"waited {WITHIN:g} s until {what}")
            if self._over.wait(POLL):
                raise EndedError


def signature(body: bytes) -> str:
    """Return what the shop signs a delivery with."""
    return hmac.digest(day_config.SECRET.encode(), body, hashlib.sha256).hex()

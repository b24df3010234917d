"""The stream of changes: one reader for all clients, nothing lost on the way, nothing hangs."""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from ascertain import Ledger, open_store
from ascertain.core.model import Expected
from ascertain.runtime import feed as runtime_feed
from ascertain.runtime.feed import QUEUE, Feed, Listener, News
from ascertain.server.routes import stream
from server.desk import DESK, Desk
from server.house import house
from server.target import Shop

WITHIN = 8.0  # seconds that a change may take on a busy machine; usually one


@pytest.fixture(params=["sqlite", "postgres"])
def desk(request: Any, tmp_path: Path, target: Shop) -> Iterator[Desk]:
    config = DESK.format(target=target.url) + '\n[server]\nnamespaces = ["default", "other"]\n'
    store, url = None, str(tmp_path / "ascertain.db")
    if request.param == "postgres":
        url = request.getfixturevalue("postgres_database")
        store = open_store(url)
    with house(tmp_path, config, store=store) as home:
        made = Desk(home)
        made.url = url
        yield made


class Client:
    """One stream, read by a thread of its own."""

    def __init__(self, desk: Desk, **headers: str) -> None:
        port = int(desk.home.url.rpartition(":")[2])
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=20)
        given = {"Host": "x", "X-Person": "anna", "Accept": "text/event-stream", **headers}
        head = "".join(f"{n}: {v}\r\n" for n, v in given.items())
        self.socket.sendall(f"GET /v1/stream HTTP/1.1\r\n{head}\r\n".encode())
        self.told: list[tuple[str, str, Any]] = []  # kind, id, data
        self.head = ""
        self.ended = threading.Event()
        self.thread = threading.Thread(target=self._read, daemon=True)
        self.thread.start()
        self.wait(lambda: self.kinds() == ["hello"] or "hello" in self.kinds())

    def _read(self) -> None:
        text = ""
        try:
            while part := self.socket.recv(65536):
                text += part.decode()
                *whole, text = text.split("\n\n")
                for one in whole:
                    self._one(one)
        except OSError:
            pass
        self.ended.set()

    def _one(self, text: str) -> None:
        fields = dict(
            line.split(": ", 1) for line in text.splitlines() if line.split(":")[0] in
            ("event", "id", "data") and ": " in line
        )  # fmt: skip
        self.head = self.head or text
        if "event" in fields:
            self.told.append((fields["event"], fields["id"], json.loads(fields["data"])))

    def kinds(self) -> list[str]:
        return [kind for kind, _, _ in self.told]

    def of(self, kind: str) -> list[Any]:
        return [data for k, _, data in list(self.told) if k == kind]

    def wait(self, holds: Callable[[], bool]) -> None:
        until = time.monotonic() + WITHIN
        while not holds():
            assert time.monotonic() < until, self.told
            time.sleep(0.02)

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self.socket.shutdown(socket.SHUT_RDWR)  # else its reader keeps it open
        self.socket.close()


@pytest.fixture
def client(desk: Desk) -> Iterator[Callable[..., Client]]:
    made: list[Client] = []

    def make(**headers: str) -> Client:
        made.append(Client(desk, **headers))
        return made[-1]

    yield make
    for one in made:
        one.close()


def test_what_changes_is_told_also_if_another_process_wrote_it(
    desk: Desk, client: Callable[..., Client], target: Shop
) -> None:
    listening = client()
    assert "200" in listening.head
    target.fates["A"] = ["drop"]
    lost = desk.submit("blind", name="A")
    listening.wait(lambda: bool(listening.of("review.opened")))
    [opened] = listening.of("review.opened")
    assert (opened["operation"], opened["owner"], opened["taken_by"]) == (lost, "anna", "")
    moved = [m for m in listening.of("operation") if m["id"] == lost][-1]
    assert (moved["state"], moved["waiting_on"], moved["key"]) == ("unknown", "review", "A")
    desk.as_("ben").post(f"/v1/reviews/{opened['id']}/take", json={})
    listening.wait(lambda: bool(listening.of("review.changed")))
    assert listening.of("review.changed")[0]["taken_by"] == "ben"
    # Another program on the same store, as a worker or the library is.
    with Ledger(open_store(desk.url)) as other:
        other.decide(lost, "there", by="cleo", ref="1")
        other.run("import", expects=[Expected(run="", namespace="", action="blind", key="A")])
    listening.wait(lambda: bool(listening.of("review.closed") and listening.of("run")))
    assert listening.of("review.closed")[0]["closed_by"] == "cleo"
    done = [m for m in listening.of("operation") if m["id"] == lost][-1]
    assert (done["state"], done["ref"]) == ("done", "1")
    assert listening.of("run")[0]["name"] == "import"
    stamps = [(m["id"], m["stamp"]) for m in listening.of("operation")]
    assert len(stamps) == len(set(stamps)), "a change was told twice"


def test_who_was_away_is_told_what_he_missed(
    desk: Desk, client: Callable[..., Client], target: Shop
) -> None:
    first = client()
    last = first.told[-1][1]
    first.close()
    ident = desk.submit("order", name="B")
    again = client(**{"Last-Event-ID": last})
    again.wait(lambda: ident in [m["id"] for m in again.of("operation")])
    long_ago = client(**{"Last-Event-ID": "1"})
    long_ago.wait(lambda: "many" in long_ago.kinds())
    odd = client(**{"Last-Event-ID": "²x"[1:] + "'; drop"})
    assert odd.kinds() == ["hello"]


def test_nothing_of_another_namespace_is_told(desk: Desk, client: Callable[..., Client]) -> None:
    elsewhere, here = client(**{"X-Space": "other"}), client()
    ident = desk.submit("order", name="C")
    here.wait(lambda: ident in [m["id"] for m in here.of("operation")])
    time.sleep(1.5)  # a look of the other one
    assert elsewhere.kinds() == ["hello"]


def test_a_stream_needs_a_caller_and_no_token_in_the_address(desk: Desk) -> None:
    nobody = desk.home.as_token(None)
    assert nobody.get("/v1/stream").status_code == 401
    assert nobody.get(f"/v1/stream?token={desk.home.secret}").status_code == 401
    assert desk.as_("anna", "write").get("/v1/stream").status_code == 403


def test_a_hundred_listen_to_one_reader_and_without_any_nothing_is_read(
    desk: Desk, client: Callable[..., Client], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stream, "BEAT", 0.2)
    feed = desk.serving.feed
    listening = [client() for _ in range(100)]
    assert feed.listeners == 100
    before = feed.looks("default")
    ident = desk.submit("order", name="D")
    for one in listening:
        one.wait(lambda one=one: ident in [m["id"] for m in one.of("operation")])
    spent = feed.looks("default") - before
    assert spent <= WITHIN * 2, "each client had the store read"
    for one in listening:
        one.close()
    until = time.monotonic() + WITHIN
    while feed.listeners:
        assert time.monotonic() < until
        time.sleep(0.05)
    read = feed.looks("default")
    time.sleep(2.5)
    assert feed.looks("default") == read


def test_the_server_stops_although_streams_are_open(tmp_path: Path, target: Shop) -> None:
    with house(tmp_path, DESK.format(target=target.url)) as home:
        client = Client(Desk(home))
        began = time.monotonic()
    assert time.monotonic() - began < 6
    assert client.ended.wait(2)
    client.close()


def test_who_is_too_slow_is_dropped_with_a_last_word() -> None:
    async def slow() -> list[str]:
        listener = Listener()
        for n in range(QUEUE + 50):
            listener.tell(News("operation", n))
        told = []
        while (news := await listener.next(0.01)) is not None:
            told.append(news.kind)
        return told

    assert asyncio.run(slow()) == ["reload"]


def test_more_than_is_told_one_by_one_is_said_in_one_word(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, target: Shop
) -> None:
    monkeypatch.setattr(runtime_feed, "MOST", 3)

    async def listen() -> list[str]:
        feed = Feed(desk.serving.store, every=0.05)
        listener, _ = await feed.listen("default", None)
        await asyncio.to_thread(lambda: [desk.submit("order", name=f"M{n}") for n in range(5)])
        kinds = []
        while "many" not in kinds:
            news = await listener.next(WITHIN)
            assert news is not None
            kinds.append(news.kind)
        feed.leave("default", listener)
        return kinds

    assert "many" in asyncio.run(listen())


def test_a_store_that_does_not_answer_is_asked_again_later(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    from ascertain.core.errors import StoreUnavailable

    real, broken = runtime_feed.look, [False]

    def look(*given: Any) -> Any:
        if broken[0]:
            raise StoreUnavailable("gone")
        return real(*given)

    monkeypatch.setattr(runtime_feed, "look", look)
    monkeypatch.setattr(runtime_feed, "SLOWER", 0.05)

    async def listen() -> None:
        feed = Feed(desk.serving.store, every=0.05)
        broken[0] = True
        with pytest.raises(StoreUnavailable):
            await feed.listen("default", None)
        assert feed.listeners == 0
        broken[0] = False
        listener, _ = await feed.listen("default", None)
        broken[0] = True
        await asyncio.sleep(0.2)
        ident = await asyncio.to_thread(desk.submit, "order", name="S")
        broken[0] = False
        while True:
            news = await listener.next(WITHIN)
            assert news is not None, "what changed meanwhile was lost"
            if getattr(news.what, "id", "") == ident:
                break
        feed.leave("default", listener)

    asyncio.run(listen())

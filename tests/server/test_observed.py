"""Around the application: what is refused before it, and what a mistake of ours amounts to."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import msgspec
import pytest

from ascertain.server.observed import Observed
from server.house import SHOP, house
from server.target import Shop


class Answer:
    def __init__(self) -> None:
        self.status, self.headers, self.body = 0, {}, b""

    async def send(self, message: Any) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            self.headers = {n.decode().lower(): v.decode() for n, v in message["headers"]}
        else:
            self.body += message.get("body", b"")

    @property
    def code(self) -> str:
        return str(msgspec.json.decode(self.body)["code"])


async def ask(app: Observed, path: str = "/v1/operations") -> Answer:
    answer = Answer()
    scope = {"type": "http", "method": "GET", "path": path, "headers": []}
    await app(scope, _nothing, answer.send)
    return answer


async def _nothing() -> Any:
    return {"type": "http.disconnect"}


async def fine(_: Any, __: Any, send: Any) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b"fine"})


def test_more_than_can_be_done_is_refused_and_may_come_again() -> None:
    async def played() -> tuple[Answer, Answer, Answer]:
        gate = asyncio.Event()

        async def slow(scope: Any, receive: Any, send: Any) -> None:
            if scope["path"] == "/slow":
                await gate.wait()
            await fine(scope, receive, send)

        app = Observed(slow, at_once=2)
        waiting = [asyncio.create_task(ask(app, "/slow")) for _ in range(2)]
        await asyncio.sleep(0)
        refused, healthy = await ask(app), await ask(app, "/readyz")
        gate.set()
        assert [(await one).status for one in waiting] == [200, 200]
        return refused, healthy, await ask(app)

    refused, healthy, after = asyncio.run(played())
    assert (refused.status, refused.code, refused.headers["retry-after"]) == (
        503,
        "overloaded",
        "1",
    )
    assert refused.headers["connection"] == "close"
    assert (healthy.status, after.status) == (200, 200)


def test_a_request_that_is_cut_by_a_stop_says_what_to_do() -> None:
    async def played() -> Answer:
        async def endless(*_: Any) -> None:
            await asyncio.Event().wait()

        app = Observed(endless)
        task = asyncio.create_task(ask(app))
        await asyncio.sleep(0)
        app.stop()
        task.cancel()
        return await task

    answer = asyncio.run(played())
    assert (answer.status, answer.code) == (503, "stopping")
    assert "under the same key" in msgspec.json.decode(answer.body)["detail"]


def test_a_cancellation_for_another_reason_is_not_answered() -> None:
    async def played() -> None:
        async def endless(*_: Any) -> None:
            await asyncio.Event().wait()

        task = asyncio.create_task(ask(Observed(endless)))
        await asyncio.sleep(0)
        task.cancel()
        await task

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(played())


def test_a_mistake_of_ours_is_a_problem_without_its_words() -> None:
    async def wrong(*_: Any) -> None:
        raise KeyError("asc_secret")

    answer = asyncio.run(ask(Observed(wrong)))
    assert (answer.status, answer.code) == (500, "broken")
    assert "KeyError" in msgspec.json.decode(answer.body)["detail"]
    assert b"secret" not in answer.body


def test_a_mistake_in_a_route_is_a_problem_too(
    tmp_path: Path, target: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    with house(tmp_path, SHOP.format(target=target.url)) as home:
        monkeypatch.setattr(home.serving, "space", None)
        answer = home.client.get("/v1/operations/0123456789abcdef0123456789")
        assert (answer.status_code, answer.json()["code"]) == (500, "broken")
        assert "NoneType" not in answer.text

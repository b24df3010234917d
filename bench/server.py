"""The server over a SQLite file against the library in this process: 64 connections against 64
tasks, and its batches against the library's own.

The server and its client are processes of their own; the action costs nothing, so what remains is
HTTP, the checks of the request and the ledger.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from itertools import count
from pathlib import Path
from typing import Any

from bench.common import TEXT, Place, median, noop, paired, ratio
from bench.crowd import CALLERS, asynchronous, closing_loop, tasks

BATCH = 1000
CONCURRENCY = 32  # of a batch, on both sides
STARTS_WITHIN = 20  # seconds


def server(at: Place, *, quick: bool) -> dict[str, float]:
    """Measure single submits and batches, each in turn with the library."""
    seconds, rounds = (0.5, 2) if quick else (1.0, 7)
    with ExitStack() as open_, closing_loop() as loop:
        ledger = open_.enter_context(at.ledger("sqlite"))
        act = asynchronous(ledger, loop)
        address = open_.enter_context(at.address("sqlite"))
        client = open_.enter_context(running(Path(address)))
        singles = {"server": client("single"), "library": tasks(act, loop)}
        rates = paired(singles, seconds, rounds)
        many = {"server": client("batch"), "library": batches(act, loop)}
        batched = paired(many, seconds, rounds)
    return {
        "server_64_connections_to_library": ratio(rates, "server", "library"),
        "server_64_connections_per_s": median(rates["server"]),
        "server_64_tasks_per_s": median(rates["library"]),
        "server_batch_to_library": ratio(batched, "server", "library"),
        "server_batch_per_s": median(batched["server"]),
        "server_library_batch_per_s": median(batched["library"]),
    }


def batches(act: Any, loop: asyncio.AbstractEventLoop) -> Callable[[float], float]:
    """Make a side of the library's own batches."""
    numbers = count(10**9)

    async def run(seconds: float) -> float:
        done, start = 0, time.perf_counter()
        while (spent := time.perf_counter() - start) < seconds:
            inputs = [{"number": next(numbers), "text": TEXT} for _ in range(BATCH)]
            receipts = await act.batch(inputs, concurrency=CONCURRENCY)
            done += sum(receipt.done for receipt in receipts)
        return done / spent

    return lambda seconds: loop.run_until_complete(run(seconds))


@contextmanager
def running(store: Path) -> Iterator[Callable[[str], Callable[[float], float]]]:
    """Start a server on a store and a client before it; give sides by what the client does."""
    config = store.with_suffix(".toml")
    config.write_text(f'[store]\nurl = "{store}"\n')
    with process("serve", str(config)) as serving:
        port, secret = answer_of(serving).split()
        with process("load", port, secret) as client:
            answer_of(client)

            def side(what: str) -> Callable[[float], float]:
                def run(seconds: float) -> float:
                    client.stdin.write(f"{what} {seconds}\n")
                    client.stdin.flush()
                    return float(answer_of(client))

                return run

            yield side


@contextmanager
def process(*arguments: str) -> Iterator[Any]:
    """Run this file in a process of its own; it ends when its input does."""
    command = [sys.executable, "-m", "bench.server", *arguments]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        cwd=Path(__file__).parents[1],
    ) as started:  # fmt: skip
        try:
            yield started
        finally:
            started.stdin.close()
            started.wait(STARTS_WITHIN)


def answer_of(started: Any) -> str:
    """Return the next line that a process says."""
    line = started.stdout.readline()
    if not line:
        raise RuntimeError("a process of the measure ended early")
    return str(line)


# --- the server's process ---


def serve(config: str) -> None:
    """Serve until the input ends; say the port and a token first."""
    import socket
    import threading

    from ascertain import open_store
    from ascertain.config import checked, read_config
    from ascertain.server.running import server as uvicorn_server
    from ascertain.server.serving import Serving

    understood = checked(read_config(config))
    serving = Serving(open_store(understood.store_url), understood)
    noop(serving.space(understood.namespace).tasks, asynchronous=True)
    secret = serving.accounts.new_token("default", "bench", "ops:write", by="bench").secret
    listening = socket.socket()
    listening.bind(("127.0.0.1", 0))
    listening.listen(256)
    running_ = uvicorn_server(serving, "127.0.0.1", 0)

    def ends() -> None:
        sys.stdin.read()
        running_.should_exit = True

    threading.Thread(target=ends, daemon=True).start()
    print(listening.getsockname()[1], secret, flush=True)
    running_.run(sockets=[listening])


# --- the client's process ---


class Connection:
    """One kept-alive connection: a request out, an answer in."""

    async def open(self, port: int, secret: str) -> Connection:
        """Connect."""
        self.reader, self.writer = await asyncio.open_connection("127.0.0.1", port, limit=2**24)
        self.head = f"Host: 127.0.0.1\r\nAuthorization: Bearer {secret}\r\n"
        return self

    async def post(self, path: str, body: bytes) -> bytes:
        """Post JSON and return the body of a good answer."""
        self.writer.write(
            f"POST {path} HTTP/1.1\r\n{self.head}Content-Type: application/json\r\n"
            f"Content-Length: {len(body)}\r\n\r\n".encode()
            + body
        )
        head = await self.reader.readuntil(b"\r\n\r\n")
        size = int(head.lower().partition(b"content-length:")[2].partition(b"\r\n")[0])
        answer = await self.reader.readexactly(size)
        if not head.startswith(b"HTTP/1.1 200"):
            raise RuntimeError(f"{head!r} {answer[:500]!r}")
        return answer


class Load:
    """What the client does on request."""

    def __init__(self) -> None:
        self.numbers = count(1)

    def submit(self) -> dict[str, Any]:
        """One operation that nobody asked for before."""
        return {"action": "bench.noop", "input": {"number": next(self.numbers), "text": TEXT}}

    async def single(self, connections: list[Connection], seconds: float) -> int:
        """Each connection submits one after the other."""
        start = time.perf_counter()

        async def one(connection: Connection) -> int:
            done = 0
            while time.perf_counter() - start < seconds:
                await connection.post("/v1/operations", json.dumps(self.submit()).encode())
                done += 1
            return done

        return sum(await asyncio.gather(*map(one, connections)))

    async def batch(self, connections: list[Connection], seconds: float) -> int:
        """One connection submits batches."""
        done, start = 0, time.perf_counter()
        while time.perf_counter() - start < seconds:
            items = [self.submit() for _ in range(BATCH)]
            body = json.dumps({"items": items, "concurrency": CONCURRENCY}).encode()
            answer = await connections[0].post("/v1/operations/batch", body)
            done += sum(item["status"] == 200 for item in json.loads(answer)["items"])
        return done


async def load(port: int, secret: str) -> None:
    """Do what the input asks for, line by line, and say the rate of each."""
    connections = [await Connection().open(port, secret) for _ in range(CALLERS)]
    doing = Load()
    print("ready", flush=True)
    while line := await asyncio.get_running_loop().run_in_executor(None, sys.stdin.readline):
        what, seconds = line.split()
        start = time.perf_counter()
        done = await getattr(doing, what)(connections, float(seconds))
        print(done / (time.perf_counter() - start), flush=True)


if __name__ == "__main__":
    if sys.argv[1] == "serve":
        serve(sys.argv[2])
    else:
        asyncio.run(load(int(sys.argv[2]), sys.argv[3]))

"""Webhooks per second: signed, recorded durably, answered; the load comes from another process.

The server is one process with uvicorn; the client speaks over raw sockets, keep-alive, one request
after the other on each connection. Every event is new and asks for one operation, which the server
records meanwhile; `processed` is which part of them it had recorded when a load at that rate ended.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
import json
import os
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from bench.common import Place, median

CONNECTIONS = 64
SECRET = "bench-secret"
CONFIG = """
[targets.nobody]
base = "http://127.0.0.1:9"

[actions."bench.order"]
target = "nobody"
key = "{number}"
owner = "bench"
inputs = { number = { type = "text" }, total = { type = "text" } }
request = { url = "/orders", json = { number = "{number}", total = "{total}" } }

[hooks.shop]
kind = "shopify"
secrets = [{ env = "BENCH_SECRET" }]
[[hooks.shop.map]]
when = "topic == 'orders/paid'"
action = "bench.order"
input = { number = "body.name", total = "body.total_price" }
"""
LINES = [{"id": n, "sku": f"LAMP-{n}", "quantity": 1, "price": "19.00"} for n in range(8)]


def requests(first: int, count: int) -> list[bytes]:
    """Make signed deliveries, before the clock runs: about 800 bytes of body each."""
    made = []
    for number in range(first, first + count):
        order = {"id": number, "name": f"#{number}", "total_price": "152.00", "line_items": LINES}
        body = json.dumps(order).encode()
        signature = hmac.new(SECRET.encode(), body, hashlib.sha256).digest()
        head = (
            "POST /hooks/shop HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
            f"X-Shopify-Hmac-Sha256: {base64.b64encode(signature).decode()}\r\n"
            f"X-Shopify-Topic: orders/paid\r\nX-Shopify-Event-Id: e{number}\r\n"
            f"X-Shopify-Webhook-Id: d{number}\r\nX-Shopify-Shop-Domain: acme.myshopify.com\r\n"
            f"X-Shopify-API-Version: 2026-10\r\nUser-Agent: Shopify-Captain-Hook\r\n"
            f"Content-Length: {len(body)}\r\n\r\n"
        )
        made.append(head.encode() + body)
    return made


class Client(asyncio.Protocol):
    """One connection: sends, and wakes who waits when the whole answer is there."""

    def __init__(self) -> None:
        self.data = b""
        self.waiter: asyncio.Future[bytes] | None = None
        self.transport: Any = None

    def connection_made(self, transport: Any) -> None:
        """Keep what to write to."""
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        """Gather one answer: its head, and as much body as it announces."""
        self.data += data
        end = self.data.find(b"\r\n\r\n")
        if end < 0 or self.waiter is None:
            return
        head = self.data[:end].lower()
        at = head.find(b"content-length:")
        length = int(head[at + 15 :].split(b"\r\n", 1)[0])
        if len(self.data) >= end + 4 + length and not self.waiter.done():
            self.data = b""
            self.waiter.set_result(head[9:12])

    def ask(self, request: bytes) -> asyncio.Future[bytes]:
        """Send one request; the future is its status."""
        self.waiter = asyncio.get_running_loop().create_future()
        self.transport.write(request)
        return self.waiter


async def load(port: int, first: int, seconds: float, rate: float) -> dict[str, float]:
    """Send for so many seconds; `rate` per second in all, or as fast as it goes with 0."""
    loop = asyncio.get_running_loop()
    ready = requests(first, int(seconds * (rate or 6000) * 1.2) + CONNECTIONS)
    clients = [
        (await loop.create_connection(Client, "127.0.0.1", port))[1] for _ in range(CONNECTIONS)
    ]
    waits: list[float] = []
    wrong = 0
    start = loop.time()

    async def one(place: int, client: Client) -> None:
        nonlocal wrong
        number = 0
        while (now := loop.time()) < start + seconds and ready:
            if rate:  # by the plan, not after the last answer: a slow server is not spared
                due = start + (number * CONNECTIONS + place) / rate
                if due > now:
                    await asyncio.sleep(due - now)
                began = due
            else:
                began = now
            wrong += await client.ask(ready.pop()) != b"200"
            waits.append(loop.time() - began)
            number += 1

    await asyncio.gather(*(one(n, c) for n, c in enumerate(clients)))
    spent = loop.time() - start
    waits.sort()
    return {
        "per_s": len(waits) / spent, "p50_ms": waits[len(waits) // 2] * 1e3,
        "p99_ms": waits[int(len(waits) * 0.99)] * 1e3, "wrong": wrong, "sent": len(waits),
    }  # fmt: skip


def serve(config: str, store: str) -> None:
    """Serve the configuration on a port of its own, which is printed."""
    from ascertain import open_store
    from ascertain.config import checked, read_config
    from ascertain.server.running import loaded_for_good, server
    from ascertain.server.serving import Serving

    listening = socket.socket()
    listening.bind(("127.0.0.1", 0))
    listening.listen(1024)
    serving = Serving(open_store(store), checked(read_config(config)))
    print(listening.getsockname()[1], flush=True)
    running = server(serving, "127.0.0.1", 0)
    running.ready = loaded_for_good  # as `ascertain serve` does
    running.run(sockets=[listening])


def intake(at: Place, kind: str, *, quick: bool) -> dict[str, float]:
    """Measure what is kept up with at 1,000 per second, then as fast as it goes, then the waits at
    2,000 per second."""
    config = at.folder / "intake.toml"
    config.write_text(CONFIG, "utf-8")
    environ = os.environ | {"BENCH_SECRET": SECRET}
    seconds, rounds = (2.0, 1) if quick else (5.0, 3)
    found: dict[str, list[float]] = {}
    with at.address(kind) as address:
        command = [sys.executable, "-m", "bench.intake", "serve", str(config), address]
        with subprocess.Popen(command, env=environ, stdout=subprocess.PIPE, text=True) as running:
            assert running.stdout is not None
            port = int(running.stdout.readline())
            try:
                told(port, 90_000_000, seconds, 1000.0)  # warms up too
                found["at_1000_processed_part"] = [processed(address)]
                for number in range(rounds + 1):  # the first one only warms up
                    for place, rate in enumerate((0.0, 2000.0)):
                        before = cpu(running.pid)
                        said = told(port, (2 * number + place) * 1_000_000, seconds, rate)
                        assert not said["wrong"], said
                        said["cpu_us"] = (cpu(running.pid) - before) * 1e6 / said["sent"]
                        name = "full" if not rate else "at_2000"
                        for what in ("per_s", "p50_ms", "p99_ms", "cpu_us"):
                            if number:
                                found.setdefault(f"{name}_{what}", []).append(said[what])
                        time.sleep(0.5)
            finally:
                running.terminate()
                running.wait(30)
        return {f"{kind}_intake_{n}": median(v) for n, v in found.items()}


def cpu(pid: int) -> float:
    """Return the seconds that a process has computed, which a busy machine changes little."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def told(port: int, first: int, seconds: float, rate: float) -> dict[str, float]:
    """Run the client as a process of its own."""
    given = [str(x) for x in (port, first, seconds, rate)]
    command = [sys.executable, "-m", "bench.intake", "load", *given]
    said = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    figures: dict[str, float] = json.loads(said)
    return figures


def processed(address: str) -> float:
    """Return which part of the events has its operation."""
    from ascertain import open_store

    store = open_store(address)
    try:
        rows = {True: 0, False: 0}
        for table, row in store.rows():
            if table == "event":
                rows[row["state"] == "processed"] += 1
    finally:
        store.close()
    return rows[True] / max(1, sum(rows.values()))


if __name__ == "__main__":
    if sys.argv[1] == "serve":
        serve(*sys.argv[2:])
    else:
        port, first, seconds, rate = sys.argv[2:]
        print(json.dumps(asyncio.run(load(int(port), int(first), float(seconds), float(rate)))))

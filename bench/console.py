"""The console's pages on a long history: a month of operations and 10,000 reviews that are open.

Each page is asked for over HTTP by a signed-in person, one after the other; the time is that of the
server and the connection, after one request that compiles its templates. The slowest page counts.
"""

from __future__ import annotations

import re
import socket
import statistics
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import httpx2
from bench.common import Place
from bench.counting import SPACE, fill, run_many

import ascertain
from ascertain.config import checked, read_config
from ascertain.console.app import attach
from ascertain.core.books import Member
from ascertain.runtime.audit import Who
from ascertain.runtime.tallies import Tallies
from ascertain.server.running import loaded_for_good, server
from ascertain.server.serving import Serving

CONFIG = f"""
[server]
namespaces = ["{SPACE}"]

[targets.shop]
base = "http://127.0.0.1:9"

[actions.action0]
target = "shop"
key = "{{number}}"
owner = "anna"
inputs = {{ number = {{ type = "text" }} }}
request = {{ url = "/orders", json = {{ number = "{{number}}" }} }}
"""
OPEN = "select operation, started_at from unsettled where namespace = 'bench'"
REVIEW = (
    "insert into review (id, operation, namespace, road, owner, opened_at, said, taken_by,"
    " closed_by, decision) values (?, ?, 'bench', 'unknown', 'anna', ?, 'unknown', '', '', '')"
)
PAGES = ("/", "/review", "/approvals", "/operations", "/operations?q=no+such+words",
         "/operations?state=unknown", "/operations?state=done", "/operations?target=shop",
         "/operations?found_by=look_up", "/operations?reviewed=any", "/runs", "/runs?missing=1",
         "/events", "/costs",
         "/dashboard?period=24h", "/dashboard?period=30d", "/targets", "/audit", "/people",
         "/settings")  # fmt: skip


def console(at: Place, *, size: int, quick: bool) -> dict[str, float]:
    """Give the p95 of every page in ms, and of the slowest."""
    rounds = 8 if quick else 30
    with at.address("sqlite") as address, tempfile.TemporaryDirectory() as folder:
        store = ascertain.open_store(address)
        fill(store, "sqlite", size)
        rows = store._write_connection().ask(OPEN)
        run_many(store, True, REVIEW, [(f"{i}-unknown-0", i, at_) for i, at_ in rows])
        chore = Tallies(store, [SPACE])
        while chore.run():
            pass
        file = Path(folder) / "ascertain.toml"
        file.write_text(CONFIG, "utf-8")
        serving = Serving(store, checked(read_config(file)))
        client = _served(serving)
        operation, review = rows[0][0], f"{rows[0][0]}-unknown-0"
        found = {}
        for path in (*PAGES, f"/op/{operation}", f"/review/{review}"):
            spent = []
            assert client.get(path).status_code == 200, path  # compiles the page's templates
            for _ in range(rounds):
                began = time.perf_counter()
                answer = client.get(path)
                spent.append((time.perf_counter() - began) * 1e3)
                assert answer.status_code == 200, (path, answer.status_code)
            found[f"console_{_named(path)}_p95_ms"] = statistics.quantiles(spent, n=20)[-1]
        client.close()
        store.close()
    return {"console_slowest_p95_ms": max(found.values())} | found


def _named(path: str) -> str:
    kind, _, one = path[1:].partition("/")
    return re.sub(r"\W", "_", f"{kind}_detail" if one else kind) or "home"


def _served(serving: Serving) -> httpx2.Client:
    """Serve in a thread of this process, and sign a person in."""
    listening = socket.socket()
    listening.bind(("127.0.0.1", 0))
    running = server(serving, "127.0.0.1", 0, attach)
    running.ready = loaded_for_good  # as `ascertain serve` does
    threading.Thread(target=running.run, kwargs={"sockets": [listening]}, daemon=True).start()
    while not running.started:
        time.sleep(0.01)
    who, rights = Who(actor="bench"), {"decides": 1, "approves": 1, "overrides": 1}
    member = Member(account="", namespace="*", role="admin", **rights)
    account = serving.accounts.people.add("anna", "Anna", [member], who=who, granter=[member])
    opened = serving.accounts.sessions.open(account, who)
    port = listening.getsockname()[1]
    client: Any = httpx2.Client(base_url=f"http://127.0.0.1:{port}", timeout=60, trust_env=False)
    client.cookies.set(serving.site.cookie, opened.secret)
    return client

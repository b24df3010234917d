"""A real server on loopback, in a thread of this process, over a real store.

with house(tmp_path, CONFIG.format(target=shop.url)) as home:
    answer = home.client.post("/v1/operations", json={...})
"""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx2

from ascertain import open_store
from ascertain.config import checked, read_config
from ascertain.server.running import server
from ascertain.server.serving import Serving

SCOPES = "ops:read ops:write events:write work costs:write operate metrics:read"
READY_WITHIN = 10  # seconds
# Two ways to ask the shop of target.py for an order: it remembers the key, or can be searched.
SHOP = """
[[contract]]
id = "shop.order"
ok = {{ when = "201" }}
key = {{ at = "header:Idempotency-Key", kind = "request" }}
repeat = {{ answer = "replay", keeps = "24h", failed = "rerun", atomic = true }}
late = {{ max = "2s" }}
refused = {{ invalid = "422", throttled = "429", transient = "500" }}

[[contract]]
id = "shop.searched"
ok = {{ when = "201" }}
key = {{ at = "body:key", kind = "content" }}
lookup = {{ call = "GET /orders?key={{key}}", by = "key", lag = "0s" }}
late = {{ max = "1s" }}
refused = {{ invalid = "422", throttled = "429", transient = "500" }}

[targets.shop]
base = "{target}"

[actions.order]
target = "shop"
contract = "shop.order"
key = "{{name}}"
owner = "anna"
inputs = {{ name = {{ type = "text" }}, note = {{ required = false, default = "" }} }}
request.url = "/orders"
request.json = {{ name = "{{name}}", note = "{{note}}" }}
request.headers = {{ Idempotency-Key = "{{target_key}}" }}
ref = "id"
first_delay = "100ms"

[actions.searched]
target = "shop"
contract = "shop.searched"
key = "{{name}}"
owner = "anna"
inputs = {{ name = {{ type = "text" }} }}
request = {{ url = "/orders", json = {{ name = "{{name}}", key = "{{target_key}}" }} }}
lookup = {{ url = "/orders?key={{target_key}}", items = "orders", ref = "id", by = "key" }}
ref = "id"
timeout = "1s"
reversible = true
first_delay = "100ms"
"""


class Home:
    """A running server: `client` sends its token; `serving` is what the server holds."""

    def __init__(self, serving: Serving, url: str, secret: str) -> None:
        self.serving, self.url, self.secret = serving, url, secret
        self._clients: list[httpx2.Client] = []
        self.client = self.as_token(secret)

    def as_token(self, secret: str | None) -> httpx2.Client:
        """A client with a token of its own, or with none."""
        headers = {"Authorization": f"Bearer {secret}"} if secret else {}
        made = httpx2.Client(base_url=self.url, headers=headers, timeout=15, trust_env=False)
        self._clients.append(made)
        return made

    def close(self) -> None:
        """Close every client."""
        for client in self._clients:
            client.close()

    def token(self, scopes: str = SCOPES, namespace: str = "default", **more: Any) -> str:
        """A new token's secret."""
        made = self.serving.accounts.new_token(namespace, "test", scopes, by="test", **more)
        return made.secret


@contextmanager
def house(
    folder: Path, config: str, *, store: Any = None, scopes: str = SCOPES, pages: Any = None
) -> Iterator[Home]:
    """Serve a configuration, with a file in the folder or the store given, until left; `pages`
    adds the console's."""
    file = folder / "ascertain.toml"
    file.write_text(config, "utf-8")
    understood = checked(read_config(file))
    serving = Serving(store or open_store(str(folder / "ascertain.db")), understood)
    listening = socket.socket()
    listening.bind(("127.0.0.1", 0))
    running = server(serving, "127.0.0.1", 0, pages)
    thread = threading.Thread(target=running.run, kwargs={"sockets": [listening]}, daemon=True)
    thread.start()
    until = time.monotonic() + READY_WITHIN
    while not running.started:
        if not thread.is_alive() or time.monotonic() > until:
            raise RuntimeError("the server did not start")
        time.sleep(0.005)
    home = Home(serving, f"http://127.0.0.1:{listening.getsockname()[1]}", "")
    home.secret = home.token(scopes)
    home.client = home.as_token(home.secret)
    try:
        yield home
    finally:
        home.close()
        running.should_exit = True
        thread.join(READY_WITHIN)
        listening.close()

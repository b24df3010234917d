"""A server with hooks of every kind, over the shop of target.py."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from server.house import SHOP, Home, house
from server.signing import SECRET, STANDARD_SECRET
from server.target import Shop

ENVIRON = {"SECRET": SECRET, "STANDARD_SECRET": STANDARD_SECRET, "OLD_SECRET": "the-old-one"}
WITHIN = 8.0  # seconds in which an event is processed
MAP = """
[[hooks.NAME.map]]
when = "topic == 'orders/paid'"
action = "order"
input = { name = "body.name" }
"""
HOOKS = """
[hooks.shop]
kind = "shopify"
secrets = [{ env = "SECRET" }, { env = "OLD_SECRET" }]
test = true
""" + MAP.replace("NAME", "shop")
OTHERS = """
[hooks.standard]
kind = "standard_webhooks"
secrets = [{ env = "STANDARD_SECRET" }]
[[hooks.standard.map]]
action = "order"
input = { name = "body.name" }

[hooks.stripe]
kind = "stripe"
secrets = [{ env = "SECRET" }]
[[hooks.stripe.map]]
action = "order"
input = { name = "body.data.object.id" }

[hooks.woo]
kind = "woocommerce"
secrets = [{ env = "SECRET" }]
[[hooks.woo.map]]
action = "order"
input = { name = "join('-', ['order', to_string(body.id)])" }

[hooks.code]
kind = "github"
secrets = [{ env = "SECRET" }]
event_id = ["header:X-GitHub-Event", "body:repository.full_name", "body:after"]
[[hooks.code.map]]
action = "order"
input = { name = "body.after" }

[hooks.chat]
kind = "slack"
secrets = [{ env = "SECRET" }]
[[hooks.chat.map]]
action = "order"
input = { name = "body.event.text" }

[hooks.lark]
kind = "feishu"
secrets = [{ env = "SECRET" }]
[[hooks.lark.map]]
action = "order"
input = { name = "body.event.text" }

[hooks.larkplain]
kind = "feishu"
token = { env = "SECRET" }
[[hooks.larkplain.map]]
action = "order"
input = { name = "body.event.text" }

[hooks.cms]
kind = "contentful"
secrets = [{ env = "SECRET" }]
[[hooks.cms.map]]
action = "order"
input = { name = "body.sys.id" }

[hooks.own]
kind = "hmac"
secrets = [{ env = "SECRET" }]
signature = { header = "X-Sign", signed = "{header:X-Time}.{body}", timestamp = "X-Time" }
event_id = "body:number"
max_body = 5000
[[hooks.own.map]]
action = "order"
input = { name = "body.number" }

[hooks.bare]
kind = "none"
secrets = [{ env = "SECRET" }]
event_id = "body:number"
[[hooks.bare.map]]
action = "order"
input = { name = "body.number" }

[hooks.inside]
kind = "token"
[[hooks.inside.map]]
when = "topic == 'made'"
action = "order"
input = { name = "body.name" }
"""


@contextmanager
def hooked(
    folder: Path, target: Shop, patch: pytest.MonkeyPatch, config: str = HOOKS, **more: Any
) -> Iterator[Home]:
    """Serve hooks, with their secrets in the environment."""
    for name, value in ENVIRON.items():
        patch.setenv(name, value)
    with house(folder, SHOP.format(target=target.url) + config, **more) as home:
        yield home


def body(**fields: Any) -> bytes:
    return json.dumps(fields).encode()


def send(home: Home, path: str, data: bytes, headers: Any, **more: Any) -> Any:
    """Send a delivery as a sender does: without a token."""
    headers = {"Content-Type": "application/json", **headers, **more}
    if not hasattr(home, "sender"):
        home.sender = home.as_token(None)  # type: ignore[attr-defined]
    return home.sender.post(path, content=data, headers=headers)  # type: ignore[attr-defined]


def event(home: Home, source: str, ident: str) -> Any:
    """An event as the API shows it."""
    answer = home.client.get(f"/v1/events/{source}/{ident}")
    assert answer.status_code == 200, answer.text
    return answer.json()


def settled(home: Home, source: str, ident: str) -> Any:
    """An event once it has been processed: that is after the answer."""
    until = time.monotonic() + WITHIN
    while (found := event(home, source, ident))["state"] == "received":
        assert time.monotonic() < until, "it was not processed"
        time.sleep(0.01)
    return found


def worked(home: Home) -> None:
    """Let a worker do what is due: the intake only records operations."""
    for space in home.serving.spaces:
        space.ledger.recover()


def effects(target: Shop) -> dict[str, int]:
    return dict(target.made())

"""One effect by each vendor's SDK, with its defaults and with our settings, at a local server."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import json
import socket
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import boto3
import botocore.config
import googleapiclient.discovery
import openai
import slack_sdk
import slack_sdk.web.async_client
import stripe

from ascertain.targets import sdk
from targets.serving import Server, answer, refused, reset

KEY = "0123456789abcdefghijklmnop"  # like a target key
CALL = SimpleNamespace(target_key=KEY)


class Patience:
    """Seconds that a client waits: few only where it waits in vain."""

    seconds = 5.0


BOX = {
    "kind": "discovery#restDescription", "name": "box", "version": "v1", "servicePath": "",
    "batchPath": "batch", "parameters": {}, "schemas": {"Thing": {"id": "Thing", "type": "object"}},
    "resources": {"things": {"methods": {"insert": {
        "id": "box.things.insert", "path": "things", "httpMethod": "POST", "parameters": {},
        "request": {"$ref": "Thing"}, "response": {"$ref": "Thing"},
    }}}},
}  # fmt: skip
Send = Callable[[str, bool], Any]


def stripe_client(url: str, **more: Any) -> stripe.StripeClient:
    return stripe.StripeClient("sk_test_x", base_addresses={"api": url}, **more)


def by_stripe(url: str, ours: bool) -> Any:
    http = stripe.RequestsClient(timeout=Patience.seconds)
    options = sdk.stripe_options(CALL) if ours else {}
    return stripe_client(url, http_client=http).v1.customers.create({"name": "x"}, options)


def by_stripe_module(url: str, ours: bool) -> Any:
    """The older way, by the module's own settings: these retry."""
    kept = stripe.api_base, stripe.default_http_client, stripe.api_key
    stripe.api_base, stripe.api_key = url, "sk_test_x"
    stripe.default_http_client = stripe.RequestsClient(timeout=Patience.seconds)
    options: dict[str, Any] = sdk.stripe_options(CALL) if ours else {}
    try:
        return stripe.Customer.create(name="x", **options)
    finally:
        stripe.api_base, stripe.default_http_client, stripe.api_key = kept


def by_stripe_async(url: str, ours: bool) -> Any:
    async def send() -> Any:
        http = stripe.HTTPXClient(timeout=Patience.seconds)
        try:
            customers = stripe_client(url, http_client=http).v1.customers
            return await customers.create_async({"name": "x"}, sdk.stripe_options(CALL))
        finally:
            await http.close_async()

    return asyncio.run(send())


@functools.cache
def aws() -> boto3.session.Session:
    """One session: it reads its files of data once."""
    return boto3.session.Session("x", "x", region_name="eu-west-1")


def put(url: str, config: Any, **values: Any) -> Any:
    with contextlib.closing(aws().client("s3", endpoint_url=url, config=config)) as client:
        return client.put_object(**{"Bucket": "box", "Key": "thing", "Body": b"x", **values})


def by_boto(url: str, ours: bool, **more: Any) -> Any:
    make = sdk.boto_config if ours else botocore.config.Config
    return put(url, make(connect_timeout=Patience.seconds, read_timeout=Patience.seconds, **more))


def by_openai(url: str, ours: bool) -> Any:
    more = sdk.openai_options() if ours else {}
    with openai.OpenAI(base_url=url, api_key="x", timeout=Patience.seconds, **more) as client:
        return client.images.generate(prompt="a lamp")


def by_openai_async(url: str, ours: bool) -> Any:
    async def send() -> Any:
        more = sdk.openai_options(asynchronous=True)
        async with openai.AsyncOpenAI(
            base_url=url, api_key="x", timeout=Patience.seconds, **more
        ) as c:
            return await c.images.generate(prompt="a lamp")

    return asyncio.run(send())


def by_slack(url: str, ours: bool) -> Any:
    more = sdk.slack_options() if ours else {}
    client = slack_sdk.WebClient("xoxb-x", base_url=url, timeout=Patience.seconds, **more)
    return client.chat_postMessage(channel="C1", text="hello")


def by_slack_async(url: str, ours: bool) -> Any:
    kind = slack_sdk.web.async_client.AsyncWebClient
    client = kind("xoxb-x", base_url=url, timeout=Patience.seconds, **sdk.slack_options())
    return asyncio.run(client.chat_postMessage(channel="C1", text="hello"))


def google(url: str, http: Any) -> Any:
    described = json.dumps({**BOX, "rootUrl": f"{url}/"})
    return googleapiclient.discovery.build_from_document(described, http=http)


def by_google(url: str, ours: bool) -> Any:
    import httplib2

    http = (
        sdk.google_http(timeout=Patience.seconds)
        if ours
        else httplib2.Http(timeout=Patience.seconds)
    )
    with google(url, http) as box:
        return box.things().insert(body={"name": "x"}).execute()


SDKS: dict[str, Send] = {
    "stripe": by_stripe_module, "StripeClient": by_stripe, "boto3": by_boto,
    "openai": by_openai, "slack_sdk": by_slack, "google": by_google,
}  # fmt: skip
ASYNC: dict[str, Send] = {
    "stripe async": by_stripe_async, "openai async": by_openai_async,
    "slack_sdk async": by_slack_async,
}  # fmt: skip


# --- what goes wrong ---


def plain(status: str, **headers: str) -> bytes:
    body = json.dumps({"ok": False, "error": {"message": "no", "code": "no"}}).encode()
    more = {"Content_Type": "application/json", "Connection": "close", **headers}
    return answer(status, body, **more)


def unread(conn: socket.socket) -> None:
    """Reset a connection on which bytes have come that nobody reads."""
    conn.recv(1, socket.MSG_PEEK)
    reset(conn)


FAULTS: dict[str, Any] = {
    "reset, unread": unread,
    "reset": "resets",
    "closed": "hangs_up",
    "time-out": "silent",
    "cut": b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 99\r\n\r\n{",
    "401": plain("401 Unauthorized"),
    "409": plain("409 Conflict"),
    "429": plain("429 Too Many Requests"),
    "500": plain("500 Internal Server Error"),
    "503": plain("503 Service Unavailable"),
    "307": plain("307 Temporary Redirect", Location="/elsewhere"),
}


@contextlib.contextmanager
def at(fault: str) -> Iterator[tuple[str, Server | None]]:
    """Yield an address where a fault is played, and who plays it: nobody if it is refused."""
    if fault == "refused":
        with refused() as port:
            yield f"http://127.0.0.1:{port}", None
        return
    Patience.seconds = 0.3 if fault == "time-out" else 5.0
    try:
        with Server(FAULTS[fault]) as server:
            yield f"http://127.0.0.1:{server.port}", server
    finally:
        Patience.seconds = 5.0


def effects(server: Server) -> list[bytes]:
    """The requests that may have had an effect."""
    return [r for r in server.requests if not r.startswith((b"GET", b"HEAD"))]


def raised(send: Send, url: str, ours: bool) -> BaseException:
    try:
        got = send(url, ours)
    except Exception as error:
        return error
    raise AssertionError(f"nothing was raised, but {got!r} returned")

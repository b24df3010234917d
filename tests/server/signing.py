"""How senders sign, computed here from the words of their pages and not by what is tested."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import os
import time
from collections.abc import Mapping
from typing import Any

SECRET = "s3cret-of-the-sender"
STANDARD_SECRET = "whsec_" + base64.b64encode(b"24 bytes of a secret key").decode()


def mac(key: str | bytes, *parts: str | bytes, of: str = "sha256") -> bytes:
    raw = [p.encode() if isinstance(p, str) else p for p in parts]
    return hmac.new(key.encode() if isinstance(key, str) else key, b"".join(raw), of).digest()


def b64(raw: bytes) -> str:
    return base64.b64encode(raw).decode()


def now(shift: float = 0) -> str:
    return str(int(time.time() + shift))


def standard(body: bytes, ident: str, *, secret: str = STANDARD_SECRET, at: str = "") -> Any:
    at = at or now()
    key = base64.b64decode(secret.removeprefix("whsec_"))
    return {
        "webhook-id": ident, "webhook-timestamp": at,
        "webhook-signature": "v1,AAAA v1," + b64(mac(key, f"{ident}.{at}.", body)),
    }  # fmt: skip


def stripe(body: bytes, *, secret: str = SECRET, at: str = "") -> Any:
    at = at or now()
    return {"Stripe-Signature": f"t={at},v1={mac(secret, at, '.', body).hex()},v0=00"}


def shopify(
    body: bytes, event: str, delivery: str = "", *, topic: str = "orders/paid",
    secret: str = SECRET,
) -> Any:  # fmt: skip
    return {
        "X-Shopify-Hmac-Sha256": b64(mac(secret, body)), "X-Shopify-Topic": topic,
        "X-Shopify-Event-Id": event, "X-Shopify-Webhook-Id": delivery or f"d-{event}",
        "X-Shopify-Shop-Domain": "acme.myshopify.com",
    }  # fmt: skip


def woocommerce(
    body: bytes, delivery: str, *, subscription: str = "1", topic: str = "order.updated",
    secret: str = SECRET,
) -> Any:  # fmt: skip
    return {
        "X-WC-Webhook-Signature": b64(mac(secret, body)), "X-WC-Webhook-Topic": topic,
        "X-WC-Webhook-Delivery-ID": delivery, "X-WC-Webhook-ID": subscription,
    }  # fmt: skip


def github(body: bytes, delivery: str, *, hook: str = "1", secret: str = SECRET) -> Any:
    return {
        "X-Hub-Signature-256": "sha256=" + mac(secret, body).hex(), "X-GitHub-Event": "push",
        "X-GitHub-Delivery": delivery, "X-GitHub-Hook-ID": hook,
    }  # fmt: skip


def slack(body: bytes, *, secret: str = SECRET, at: str = "", retry: int = 0) -> Any:
    at = at or now()
    signed = {
        "X-Slack-Signature": "v0=" + mac(secret, "v0:", at, ":", body).hex(),
        "X-Slack-Request-Timestamp": at,
    }
    return signed | ({"X-Slack-Retry-Num": str(retry)} if retry else {})


def feishu(body: bytes, *, secret: str = SECRET, at: str = "") -> Any:
    at = at or now()
    digest = hashlib.sha256(at.encode() + b"n0nce" + secret.encode() + body).hexdigest()
    return {
        "X-Lark-Signature": digest, "X-Lark-Request-Timestamp": at, "X-Lark-Request-Nonce": "n0nce",
    }  # fmt: skip


def sealed(data: Any, *, secret: str = SECRET) -> bytes:
    """A body as Feishu encrypts it."""
    from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

    raw, iv = json.dumps(data).encode(), os.urandom(16)
    size = 16 - len(raw) % 16
    writer = Cipher(
        algorithms.AES(hashlib.sha256(secret.encode()).digest()), modes.CBC(iv)
    ).encryptor()
    text = writer.update(raw + bytes([size]) * size) + writer.finalize()
    return json.dumps({"encrypt": b64(iv + text)}).encode()


def contentful(
    body: bytes, ident: str, path: str, *, secret: str = SECRET, at: str = "",
    more: Mapping[str, str] | None = None,
) -> Any:  # fmt: skip
    at = at or now()
    headers = {
        "x-contentful-idempotency-key": ident,
        "x-contentful-topic": "ContentManagement.Entry.publish",
        "x-contentful-timestamp": at + "000",
        **(more or {}),
    }
    names = sorted([*headers, "x-contentful-signed-headers"])
    headers["x-contentful-signed-headers"] = ",".join(names)
    listed = ";".join(f"{n}:{headers[n]}" for n in names)
    signature = mac(secret, f"POST\n{path}\n{listed}\n", body).hex()
    return headers | {"x-contentful-signature": signature}

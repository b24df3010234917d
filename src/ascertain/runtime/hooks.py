"""One sender of events as it is declared: its secrets, where it writes what, what it asks for."""

from __future__ import annotations

import hmac
import os
import time
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from ascertain.core import intake, signatures
from ascertain.core.signatures import Message, NotSigned, Scheme
from ascertain.targets.credentials import NoCredential, Source

from . import feishu
from .mapping import Places, Rule

READ_AGAIN = 10.0  # seconds that secrets are used without being read again
READ_AGAIN_WRONG = 1.0  # where one did not verify: it may just have been exchanged
MAX_BODY = 1024 * 1024  # bytes of a delivery, unless the hook says otherwise
MOST_HEADERS = 500  # names that are remembered
TOLERANCE = 300.0  # seconds between signing and arriving; what Stripe, Slack and Svix recommend


class SecretMissing(Exception):
    """None of the hook's secrets can be read: nothing can be verified."""


class Secrets:
    """The secrets of one hook, any of which verifies: the new and the old one for a while.

    They are read again from time to time, so that they can be exchanged without a restart.
    """

    def __init__(
        self, sources: Sequence[Source], scheme: Scheme | None,
        environ: Mapping[str, str] = os.environ,
    ) -> None:  # fmt: skip
        """Read nothing yet."""
        self._sources, self._scheme, self._environ = sources, scheme, environ
        self._keys: list[bytes] = []
        self._read_at: float | None = None

    def keys(self, *, older_than: float = READ_AGAIN) -> list[bytes]:
        """Return the keys, read again if they are older than so many seconds; raises
        SecretMissing naming where one should stand."""
        now = time.monotonic()
        if self._read_at is None or now - self._read_at > older_than:
            self._keys, why = [], []
            for source in self._sources:
                try:
                    secret = source.read(self._environ)
                except NoCredential as error:
                    why.append(error.reason)
                else:
                    self._keys.append(self._scheme.key(secret) if self._scheme else secret.encode())
            self._read_at = now
            if not self._keys:
                self._read_at = None
                raise SecretMissing("; ".join(why) or "no secret is declared")
        return self._keys

    def unset(self) -> str:
        """Return why none of them can be read now, or nothing."""
        try:
            self.keys(older_than=0)
        except SecretMissing as error:
            return str(error)
        return ""

    def stale(self) -> bool:
        """Tell whether they would be worth reading again after a wrong signature."""
        return self._read_at is not None and time.monotonic() - self._read_at > READ_AGAIN_WRONG


class Arrived(msgspec.Struct, frozen=True, kw_only=True):
    """What a delivery says: who the event and the delivery are, and what the event is about."""

    event: str
    delivery: str
    topic: str = ""
    subscription: str = ""
    subject: str = ""
    ordinal: int | None = None
    headers: dict[str, str] = {}
    text: str = ""  # the body
    digest: str = ""
    data: Any = None
    signature: str = ""


class Hook:
    """A declared sender. Compiled once; pure but for reading its secrets."""

    def __init__(
        self, name: str, kind: str, namespace: str, *, secrets: Sequence[Source] = (),
        signature: signatures.Generic | None = None, token: Source | None = None,
        tolerance: float = TOLERANCE, max_body: int = MAX_BODY, test: bool = False,
        places: Mapping[str, str | Sequence[str]] | None = None, headers: Sequence[str] = (),
        rules: Sequence[Rule] = (), environ: Mapping[str, str] = os.environ,
    ) -> None:  # fmt: skip
        """Compile it; raises UsageError or ValueError saying what is wrong."""
        self.name, self.kind, self.namespace = name, kind, namespace
        self.tolerance, self.max_body, self.test = tolerance, max_body, test
        self.rules = tuple(rules)
        self._defaults = intake.KINDS[kind]
        given = dict(places or {})
        self.places = {
            part: Places(given.get(part) or tuple(getattr(self._defaults, part, ())))
            for part in ("event_id", "delivery_id", "subscription", "topic", "subject", "ordinal")
        }
        self._flow = {
            part: Places(getattr(intake.FLOW_ACTION, part)) for part in ("event_id", "topic")
        }
        read = {h for p in self.places.values() for h in p.headers}
        self._kept = frozenset({"content-type", *read, *(h.lower() for h in headers)})
        self._known: dict[str, bool] = {}  # which headers are kept, by name
        self._scheme = signatures.generic(signature) if signature else signatures.SCHEMES.get(kind)
        self._secrets = Secrets(secrets, self._scheme, environ)
        self._token = Secrets((token,), None, environ) if token is not None else None
        if kind == "feishu" and secrets:
            feishu.ready()
        self.signed = bool(secrets)

    def unset(self) -> str:
        """Return why nothing can be verified now, or nothing."""
        proofs = [self._secrets if self.signed else None, self._token]
        return "; ".join(filter(None, [one.unset() for one in proofs if one is not None]))

    # --- who sent it ---

    def verified(self, message: Message, now: float) -> str:
        """Return by what a delivery was verified; raises NotSigned or SecretMissing."""
        if not self.signed or self._scheme is None:
            return self._by_token(message)
        try:
            number = self._verify(message, now, self._secrets.keys())
        except NotSigned as error:
            if error.old or not self._secrets.stale():
                raise
            number = self._verify(message, now, self._secrets.keys(older_than=0))
        return f"{self.kind}, secret {number}"

    def _verify(self, message: Message, now: float, keys: Sequence[bytes]) -> int:
        assert self._scheme is not None
        return signatures.verify(self._scheme, message, keys, now, self.tolerance)

    def _by_token(self, message: Message) -> str:
        """Verify the token that Feishu writes into a body that it does not sign."""
        if self._token is None:
            raise NotSigned("this hook takes nothing here: hand events in at /v1/events")
        _, data = intake.decoded(message.body, "")
        self._token_in(data)
        return f"{self.kind}, token"

    def _token_in(self, data: Any) -> None:
        if self._token is None:
            return
        head = data.get("header") if isinstance(data, dict) else None
        given = (head if isinstance(head, dict) else data if isinstance(data, dict) else {}).get(
            "token"
        )
        [expected] = self._token.keys()
        if not isinstance(given, str) or not hmac.compare_digest(given.encode(), expected):
            raise NotSigned("the verification token in its body is not the one of this hook")

    # --- what is answered without being an event ---

    def challenge(self, message: Message, now: float) -> dict[str, str] | None:
        """Return the answer to a sender's question whether we are there, or None; what is asked
        without proof raises NotSigned."""
        if self.kind == "woocommerce" and message.body.startswith(b"webhook_id="):
            bare = message.body[len(b"webhook_id=") :].isdigit()
            return {} if bare else None  # an unsigned ping when the webhook is saved
        if self.kind not in ("slack", "feishu") or len(message.body) > MAX_BODY:
            return None
        if b"challenge" not in message.body and b"encrypt" not in message.body:
            return None
        data = self._opened(message)
        if not isinstance(data, dict) or data.get("type") != "url_verification":
            return None
        if self.kind == "slack" or b"challenge" in message.body:
            self.verified(message, now)
        self._token_in(data)  # whoever could encrypt it has the Encrypt Key: Feishu signs it not
        return {"challenge": str(data.get("challenge", ""))}

    def _opened(self, message: Message) -> Any:
        try:
            data = msgspec.json.decode(message.body)
        except (msgspec.MsgspecError, RecursionError):
            return None
        if self.kind == "feishu" and self.signed:
            inner = feishu.opened(data, self._secrets.keys())
            return data if inner is None else msgspec.json.decode(inner)
        return data

    # --- what it says ---

    def arrived(self, message: Message, signature: str, *, flow: bool = False) -> Arrived:
        """Return who an event and its delivery are; raises NotAnEvent, and MappingFailed where
        a place cannot be evaluated. `flow`: as a Shopify Flow action."""
        headers = self._named(message.headers)
        body, media = message.body, headers.get("content-type", "")
        digest = intake.body_hash(body)
        text, data = intake.decoded(body, media)
        if self.kind == "feishu" and self.signed and isinstance(data, dict) and "encrypt" in data:
            inner = feishu.opened(data, self._secrets.keys())
            if inner is None:
                raise intake.NotAnEvent("its body cannot be decrypted with this hook's Encrypt Key")
            text, data = intake.decoded(inner, "")
            self._token_in(data)
        found = {n: place(headers, data, digest) for n, place in self.places.items() if place}
        if flow:
            found = {n: place(headers, data, digest) for n, place in self._flow.items()}
        event = intake.ident(found.get("event_id"), "event id")
        delivery = found.get("delivery_id")
        subject = found.get("subject")
        number = found.get("ordinal")
        return Arrived(
            event=event,
            delivery=event if delivery is None else intake.ident(delivery, "delivery id"),
            topic=intake.FLOW_TOPIC if flow else intake.short(found.get("topic")),
            subscription=intake.short(found.get("subscription")),
            subject="" if subject is None else intake.ident(subject, "subject"),
            ordinal=None if number is None else intake.ordinal(number),
            headers={n: v for n, v in headers.items() if self._keeps(n)},
            text=text,
            digest=digest,
            data=data,
            signature=signature,
        )

    def _keeps(self, name: str) -> bool:
        known = self._known.get(name)
        if known is None:
            known = intake.keeps_header(name, self._defaults.keeps, self._kept)
            if len(self._known) < MOST_HEADERS:
                self._known[name] = known
        return known

    def _named(self, headers: Mapping[str, str]) -> dict[str, str]:
        if not self._defaults.also:
            return dict(headers)
        found = dict(headers)
        for begins, name in self._defaults.also:
            for header in [h for h in found if h.startswith(begins)]:
                found.setdefault(name + header[len(begins) :], found[header])
        return found

    def handed_in(self, ident: str, topic: str, text: str, data: Any) -> Arrived:
        """Return an event that was handed in by whoever has a token, without a delivery of its
        own; raises NotAnEvent, and MappingFailed where a place cannot be evaluated."""
        digest = intake.body_hash(text.encode())
        found = {n: self.places[n]({}, data, digest) for n in ("subject", "ordinal")
                 if self.places[n]}  # fmt: skip
        number, subject = found.get("ordinal"), found.get("subject")
        return Arrived(
            event=intake.ident(ident, "event id"),
            delivery=ident,
            topic=intake.short(topic),
            subject="" if subject is None else intake.ident(subject, "subject"),
            ordinal=None if number is None else intake.ordinal(number),
            text=text,
            digest=digest,
            data=data,
            signature="token",
        )

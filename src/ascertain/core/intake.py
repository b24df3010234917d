"""What comes in from outside: where each sender writes who an event is, and which one is older.

Three identities (law 16): the delivery is one arrival, the event is what happened, the operation
is what is to be done about it. Here are the first two; the mapping makes the third. Pure.
"""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime
from typing import Any, Literal
from urllib.parse import parse_qsl

import msgspec

from .model import SECOND

ID_LENGTH = 255  # characters of an event's, a delivery's or a subject's id
SHORT = 200  # characters of a topic or the name of a subscription
FORM_FIELDS = 1000
FORM = "application/x-www-form-urlencoded"
EventState = Literal["received", "processed", "ignored", "stale", "failed", "shown"]
# Why nothing is done by an event, by the English in which it is kept.
NO_MAPS = "this hook has no map: nothing is asked for"
NO_MAP = "no map of this hook is for it: none of their `when` holds"
NOTHING = "the map that is for it asks for nothing: `each` is empty"
STALE = "something newer about the same subject was acted on before it arrived"
TOPIC = "; topic "  # before the topic of an event that no map is for
WHY_ZH = {
    NO_MAPS: "此入口没有声明映射，不会提出任何操作",
    NO_MAP: "此入口的映射都不适用于它：没有一条 `when` 成立",
    NOTHING: "适用的映射没有提出任何操作：`each` 为空",
    STALE: "同一对象的更新消息已先行处理",
}


def why_in(lang: str, why: str) -> str:
    """Return why nothing was done by an event, in a language; an error's own words as they are."""
    kept, joint, topic = why.partition(TOPIC)
    if lang != "zh" or kept not in WHY_ZH:
        return why
    return WHY_ZH[kept] + (f"；主题 {topic}" if joint else "")


class NotAnEvent(Exception):
    """A delivery of which no event can be made; it is refused, so the sender keeps it."""

    def __init__(self, why: str, *, malformed: bool = False) -> None:
        """`malformed`: it cannot be read at all."""
        self.why, self.malformed = why, malformed
        super().__init__(why)


class Kind(msgspec.Struct, frozen=True, kw_only=True):
    """Where a kind of sender writes what, unless the hook says otherwise.

    A place is `header:NAME`, `body:JMESPATH`, `sha256` (of the raw body), or a list of these,
    whose values are joined by a slash. `keeps`: the beginning of headers that are kept.
    """

    event_id: tuple[str, ...] = ()
    delivery_id: tuple[str, ...] = ()  # none: an arrival is known by its event alone
    subscription: tuple[str, ...] = ()
    topic: tuple[str, ...] = ()
    keeps: str = ""
    also: tuple[tuple[str, str], ...] = ()  # other names of headers, by the beginning of each


# Sources: the vendors' pages in CONTRACTS and in core/signatures.py, read on 2026-11-30.
KINDS: dict[str, Kind] = {
    # The id is the same on every try, so it is the event's.
    "standard_webhooks": Kind(
        event_id=("header:webhook-id",), topic=("body:type",), keeps="webhook-",
        also=(("svix-", "webhook-"),),
    ),
    "stripe": Kind(event_id=("body:id",), topic=("body:type",)),
    # The event id is shared by all subscriptions of an event, the webhook id names one delivery.
    "shopify": Kind(
        event_id=("header:x-shopify-event-id",), delivery_id=("header:x-shopify-webhook-id",),
        topic=("header:x-shopify-topic",), keeps="x-shopify-",
    ),
    # It sends no event id. X-WC-Webhook-ID is the subscription. What is deleted has no date.
    "woocommerce": Kind(
        event_id=(
            "header:x-wc-webhook-topic", "body:id",
            "body:date_modified_gmt || date_modified || 'none'",
        ),
        delivery_id=("header:x-wc-webhook-delivery-id",),
        subscription=("header:x-wc-webhook-id",), topic=("header:x-wc-webhook-topic",),
        keeps="x-wc-webhook-",
    ),
    # The id is unique per event, and the same when it is delivered again (github/docs issue 32822).
    "github": Kind(
        event_id=("header:x-github-delivery",),
        delivery_id=("header:x-github-delivery", "header:x-github-hook-id"),
        subscription=("header:x-github-hook-id",),
        topic=("header:x-github-event",),
        keeps="x-github-",
    ),
    "slack": Kind(
        event_id=("body:event_id",), delivery_id=("body:event_id", "header:x-slack-retry-num"),
        subscription=("body:api_app_id",), topic=("body:event.type || type",), keeps="x-slack-",
    ),
    "feishu": Kind(
        event_id=("body:header.event_id || uuid",), subscription=("body:header.app_id",),
        topic=("body:header.event_type || event.type",), keeps="x-lark-request-",
    ),
    "contentful": Kind(
        event_id=("header:x-contentful-idempotency-key",), topic=("header:x-contentful-topic",),
        subscription=("header:x-contentful-webhook-name",), keeps="x-contentful-",
    ),
    "hmac": Kind(),
    "none": Kind(),
    "token": Kind(),  # only handed in by POST /v1/events
}  # fmt: skip
# A Shopify Flow action: the run's id is in the body, and the same when Flow asks again.
# shopify.dev/docs/apps/build/flow/actions/endpoints, read on 2026-11-30.
FLOW_ACTION = Kind(
    event_id=("body:action_run_id",),
    topic=("body:handle || action_definition_id",),
    keeps="x-shopify-",
)
FLOW_TOPIC = "flow.action"
SECRET_PARTS = ("signature", "hmac", "authorization", "cookie", "token", "secret", "api-key")


def keeps_header(name: str, keeps: str, more: frozenset[str]) -> bool:
    """Tell whether a header is kept with an event: never one that holds a secret."""
    wanted = (bool(keeps) and name.startswith(keeps)) or name in more
    return wanted and not any(part in name for part in SECRET_PARTS)


def decoded(body: bytes, media: str) -> tuple[str, Any]:
    """Return a body as text and as data, from JSON or a form; raises NotAnEvent."""
    try:
        text = body.decode("utf-8")
        if media.partition(";")[0].strip().lower() != FORM:
            return text, msgspec.json.decode(body)
        if "\x00" in text:
            raise NotAnEvent("the body holds a NUL character", malformed=True)
        fields = dict(parse_qsl(text, keep_blank_values=True, max_num_fields=FORM_FIELDS))
        # GitHub and Slack send JSON in the one field "payload".
        whole = fields.keys() == {"payload"}
        return text, msgspec.json.decode(fields["payload"]) if whole else fields
    except (ValueError, msgspec.MsgspecError, RecursionError) as error:
        why = "it is nested too deeply" if isinstance(error, RecursionError) else str(error)
        raise NotAnEvent(f"the body is neither JSON nor a form: {why}", malformed=True) from error


def ident(value: Any, what: str) -> str:
    """Return an id of a sender as text; raises NotAnEvent where it can be none."""
    text = "" if value is None or isinstance(value, bool | dict | list) else str(value)
    if not text:
        raise NotAnEvent(f"it has no {what}")
    if len(text) > ID_LENGTH or not text.isprintable():
        raise NotAnEvent(f"its {what} is longer than {ID_LENGTH} characters or not printable")
    return text


def short(value: Any) -> str:
    """Return a topic or the name of a subscription as text that can be shown."""
    text = "" if value is None else str(value)[:SHORT]
    return text if text.isprintable() else "".join(c for c in text if c.isprintable())


def ordinal(value: Any) -> int:
    """Return a version or a date as a number, larger is newer; raises NotAnEvent."""
    if isinstance(value, str):
        text = value.strip()
        if text.removeprefix("-").isdecimal() and len(text) < 19:  # noqa: PLR2004 - of 64 bits
            return int(text)
        try:
            at = datetime.fromisoformat(text)
        except ValueError:
            raise NotAnEvent(f"its ordinal {text[:40]!r} is neither a number nor a date") from None
        at = at if at.tzinfo else at.replace(tzinfo=UTC)
        return int(at.timestamp() * SECOND)
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) < 2**63:
        return value
    raise NotAnEvent("its ordinal is neither a whole number nor a date")


def body_hash(body: bytes) -> str:
    """Return the SHA-256 of a raw body."""
    return hashlib.sha256(body).hexdigest()

"""Signatures: the vendors' own vectors, their own libraries, and what must not verify."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any

import pytest
import slack_sdk.signature
import stripe as stripe_sdk

from ascertain.core.signatures import (
    CONTENTFUL,
    FEISHU,
    GITHUB,
    NONE,
    SCHEMES,
    SHOPIFY,
    SLACK,
    STANDARD,
    STRIPE,
    Generic,
    Message,
    NotSigned,
    generic,
    verify,
)
from server import signing
from server.signing import SECRET, STANDARD_SECRET

BODY = b'{"id": "evt_1", "text": "na\xc3\xafve"}'
AT = 1_700_000_000.0
PATH = "/hooks/cms?a=1"


def message(headers: Any, body: bytes = BODY, path: str = PATH) -> Message:
    return Message({n.lower(): v for n, v in headers.items()}, body, path)


# Each scheme with a delivery that verifies; time as the schemes sign it.
SIGNED: dict[str, tuple[str, Callable[[], Any]]] = {
    "standard_webhooks": (
        STANDARD_SECRET, lambda: signing.standard(BODY, "msg_1", at="1700000000")),
    "stripe": (SECRET, lambda: signing.stripe(BODY, at="1700000000")),
    "shopify": (SECRET, lambda: signing.shopify(BODY, "e1")),
    "woocommerce": (SECRET, lambda: signing.woocommerce(BODY, "d1")),
    "github": (SECRET, lambda: signing.github(BODY, "g1")),
    "slack": (SECRET, lambda: signing.slack(BODY, at="1700000000")),
    "feishu": (SECRET, lambda: signing.feishu(BODY, at="1700000000")),
    "contentful": (SECRET, lambda: signing.contentful(BODY, "i1", PATH, at="1700000000")),
}  # fmt: skip
TIMED = ("standard_webhooks", "stripe", "slack", "feishu", "contentful")


def check(kind: str, given: Message, *secrets: str, now: float = AT, tolerance: float = 300) -> int:
    scheme = SCHEMES[kind]
    return verify(scheme, given, [scheme.key(s) for s in secrets], now, tolerance)


# --- vectors that the vendors publish -------------------------------------------------------------


def test_the_vector_of_github_s_page() -> None:
    signature = "757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17"
    given = message({"X-Hub-Signature-256": f"sha256={signature}"}, b"Hello, World!")
    assert verify(GITHUB, given, [b"It's a Secret to Everybody"], AT, 300) == 1


def test_the_vector_of_slack_s_page() -> None:
    body = (
        b"token=xyzz0WbapA4vBCDEFasx0q6G&team_id=T1DC2JH3J&team_domain=testteamnow"
        b"&channel_id=G8PSS9T3V&channel_name=foobar&user_id=U2CERLKJA&user_name=roadrunner"
        b"&command=%2Fwebhook-collect&text=&response_url=https%3A%2F%2Fhooks.slack.com%2Fcommands"
        b"%2FT1DC2JH3J%2F397700885554%2F96rGlfmibIGlgcZRskXaIFfN"
        b"&trigger_id=398738663015.47445629121.803a0bc887a14d10d2c447fce8b6703c"
    )
    headers = {
        "X-Slack-Request-Timestamp": "1531420618",
        "X-Slack-Signature": "v0=a2114d57b48eac39b9ad189dd8316235a7b4a8d21a10bd27519666489c69b503",
    }
    key = b"8f742231b10e8888abcd99yyyzzz85a5"
    assert verify(SLACK, message(headers, body), [key], 1_531_420_618, 300) == 1


@pytest.mark.parametrize(
    "vector",
    [
        (  # of the specification's own test suite
            "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "msg_p5jXN8AQM9LWM0D4loKWxJek", 1614265330,
            b'{"test": 2432232314}', "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
        ),
        (  # of Svix's page about verifying by hand
            "whsec_plJ3nmyCDGBKInavdOK15jsl", "msg_loFOjxBNrRLzqYUf", 1731705121,
            b'{"event_type":"ping","data":{"success":true}}',
            "v1,rAvfW3dJ/X/qxhsaXPOyyCGmRKsaKWcsNccKXlIktD0=",
        ),
    ],
)  # fmt: skip
@pytest.mark.parametrize("name", ["webhook", "svix"])
def test_the_vectors_of_standard_webhooks(
    name: str, vector: tuple[str, str, int, bytes, str]
) -> None:
    secret, ident, at, body, signature = vector
    headers = {f"{name}-id": ident, f"{name}-timestamp": str(at), f"{name}-signature": signature}
    assert verify(STANDARD, message(headers, body), [STANDARD.key(secret)], at, 300) == 1


# --- their own libraries --------------------------------------------------------------------------


def test_stripe_s_library_makes_what_we_verify_and_takes_what_we_do() -> None:
    made = stripe_sdk.WebhookSignature._compute_signature(f"1700000000.{BODY.decode()}", SECRET)
    given = message({"Stripe-Signature": f"t=1700000000,v1={made}"})
    assert verify(STRIPE, given, [SECRET.encode()], AT, 300) == 1
    headers = signing.stripe(BODY)
    assert stripe_sdk.WebhookSignature.verify_header(
        BODY.decode(), headers["Stripe-Signature"], SECRET, 300
    )


def test_slack_s_library_makes_what_we_verify() -> None:
    made = slack_sdk.signature.SignatureVerifier(SECRET).generate_signature(
        timestamp="1700000000", body=BODY
    )
    headers = {"X-Slack-Signature": made, "X-Slack-Request-Timestamp": "1700000000"}
    assert verify(SLACK, message(headers), [SECRET.encode()], AT, 300) == 1


# --- every scheme ---------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", SIGNED)
def test_what_is_signed_verifies_by_any_secret(kind: str) -> None:
    secret, made = SIGNED[kind]
    other = "whsec_b3RoZXI=" if kind == "standard_webhooks" else "other"
    assert check(kind, message(made()), secret) == 1
    assert check(kind, message(made()), other, secret) == 2  # an old secret still counts
    with pytest.raises(NotSigned):
        check(kind, message(made()), other)


@pytest.mark.parametrize("kind", SIGNED)
def test_another_body_does_not_verify(kind: str) -> None:
    secret, made = SIGNED[kind]
    for body in (BODY + b" ", BODY.replace(b"evt_1", b"evt_2"), b""):
        with pytest.raises(NotSigned):
            check(kind, message(made(), body), secret)


@pytest.mark.parametrize("kind", SIGNED)
def test_without_any_one_of_its_headers_it_does_not_verify(kind: str) -> None:
    secret, made = SIGNED[kind]
    unsigned = {"x-shopify-topic", "x-shopify-event-id", "x-shopify-webhook-id",
                "x-shopify-shop-domain", "x-wc-webhook-topic", "x-wc-webhook-delivery-id",
                "x-wc-webhook-id", "x-github-event", "x-github-delivery",
                "x-github-hook-id"}  # fmt: skip
    for name in made():
        left = {n: v for n, v in made().items() if n != name}
        if name.lower() in unsigned:  # only the body is signed: the operation's key protects
            assert check(kind, message(left), secret) == 1
            continue
        with pytest.raises(NotSigned):
            check(kind, message(left), secret)


@pytest.mark.parametrize("kind", TIMED)
@pytest.mark.parametrize("shift", [-301, 301])
def test_what_was_signed_too_long_ago_or_ahead_is_refused(kind: str, shift: int) -> None:
    secret, made = SIGNED[kind]
    with pytest.raises(NotSigned) as refused:
        check(kind, message(made()), secret, now=AT - shift)
    assert refused.value.old
    assert check(kind, message(made()), secret, now=AT - shift, tolerance=302) == 1


@pytest.mark.parametrize("kind", TIMED)
def test_its_time_cannot_be_exchanged(kind: str) -> None:
    secret, made = SIGNED[kind]
    late = {n: v.replace("1700000000", "1700000900") for n, v in made().items()}
    with pytest.raises(NotSigned) as refused:
        check(kind, message(late), secret, now=AT + 900)
    assert not refused.value.old


@pytest.mark.parametrize("kind", SIGNED)
@pytest.mark.parametrize(
    "value", ["", "v1,", "v0=", "sha256=", "t=,v1=", "é" * 20, "A" * 9000, "0"]
)
def test_a_senseless_signature_is_refused_and_breaks_nothing(kind: str, value: str) -> None:
    secret, made = SIGNED[kind]
    signature = next(n for n in made() if "ignature" in n.lower() or "hmac" in n.lower())
    with pytest.raises(NotSigned):
        check(kind, message({**made(), signature: value}), secret)


def test_contentful_must_sign_its_time_and_its_list() -> None:
    headers = signing.contentful(BODY, "i1", PATH, at="1700000000")
    body = BODY.decode()
    signed = f"x-contentful-topic:{headers['x-contentful-topic']}"
    made = signing.mac(SECRET, f"POST\n{PATH}\n{signed}\n{body}").hex()
    loose = {**headers, "x-contentful-signed-headers": "x-contentful-topic",
             "x-contentful-signature": made}  # fmt: skip
    with pytest.raises(NotSigned, match="are not signed"):
        verify(CONTENTFUL, message(loose), [SECRET.encode()], AT, 300)
    with pytest.raises(NotSigned):  # the path is signed
        verify(CONTENTFUL, message(headers, BODY, "/hooks/other"), [SECRET.encode()], AT, 300)


def test_feishu_signs_by_a_plain_hash() -> None:
    made = hashlib.sha256(b"1700000000" + b"n0nce" + b"key" + BODY).hexdigest()
    headers = {"X-Lark-Signature": made, "X-Lark-Request-Timestamp": "1700000000",
               "X-Lark-Request-Nonce": "n0nce"}  # fmt: skip
    assert verify(FEISHU, message(headers), [b"key"], AT, 300) == 1


def test_shopify_s_preview_names_its_header_otherwise() -> None:
    made = signing.b64(signing.mac(SECRET, BODY))
    assert verify(SHOPIFY, message({"Shopify-Hmac-Sha256": made}), [SECRET.encode()], AT, 300)


def test_without_a_signature_the_secret_stands_in_the_query() -> None:
    keys = [b"first", b"second"]
    assert verify(NONE, Message({}, BODY, PATH, {"secret": "second"}), keys, AT, 300) == 2
    for query in ({}, {"secret": ""}, {"secret": "third"}):
        with pytest.raises(NotSigned):
            verify(NONE, Message({}, BODY, PATH, query), keys, AT, 300)


# --- generic --------------------------------------------------------------------------------------


@pytest.mark.parametrize("algorithm", ["sha1", "sha256", "sha384", "sha512"])
@pytest.mark.parametrize("encoding", ["hex", "base64"])
def test_a_generic_hmac(algorithm: str, encoding: str) -> None:
    scheme = generic(Generic(
        header="X-Signature", algorithm=algorithm, encoding=encoding, prefix="v2=",
        signed="v2:{header:X-Time}:{body}", timestamp="X-Time",
    ))  # fmt: skip
    raw = signing.mac(SECRET, "v2:1700000000:", BODY, of=algorithm)
    text = raw.hex() if encoding == "hex" else signing.b64(raw)
    headers = {"X-Signature": f"v2={text}", "X-Time": "1700000000"}
    assert verify(scheme, message(headers), [SECRET.encode()], AT, 300) == 1
    for wrong in ({**headers, "X-Time": "1700000001"}, {**headers, "X-Signature": text},
                  {"X-Signature": f"v2={text}"}):  # fmt: skip
        with pytest.raises(NotSigned):
            verify(scheme, message(wrong), [SECRET.encode()], AT, 300)
    with pytest.raises(NotSigned) as refused:
        verify(scheme, message(headers), [SECRET.encode()], AT + 301, 300)
    assert refused.value.old


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"algorithm": "md5"}, "algorithm"),
        ({"encoding": "utf8"}, "encoding"),
        ({"signed": "{header:X-Time}"}, "must hold {body}"),
        ({"signed": "{body}{now}"}, "only"),
        ({"timestamp": "X-Time"}, "proves no time"),
    ],
)
def test_a_generic_hmac_that_cannot_be_meant_is_refused(given: Any, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        generic(Generic(header="X-Signature", **given))

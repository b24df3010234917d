"""Settings that make a vendor's SDK send one request per call, or every one under our key.

An SDK's own retries repeat an effect below the ledger, where nobody sees it (law 17). Each
function returns what is passed to the SDK; nothing is imported before it is called. Give a
time-out, too, shorter than the action's `sends_within`, and declare `single_request=True`.

Versions seen, 2026-11-29: stripe 16.1.0, botocore and boto3 1.44.8, openai 3.57.0,
slack_sdk 3.48.0, google-api-python-client 2.202.0 with httplib2 0.32.1. What each does by
default is counted in tests/targets/test_sdk_*.py.
"""

from __future__ import annotations

from typing import Any, Protocol


class Keyed(Protocol):
    """What is asked of an attempt: `Call`."""

    @property
    def target_key(self) -> str:
        """Our identity as the target sees it."""


def stripe_options(call: Keyed) -> dict[str, Any]:
    """Return the options of one call: our key, and no retries. `options=` of a StripeClient's
    methods, or keywords: `stripe.PaymentIntent.create(…, **sdk.stripe_options(call))`.

    stripe follows redirects; what it sends then carries our key.
    """
    return {"idempotency_key": call.target_key, "max_network_retries": 0}


def boto_config(**more: Any) -> Any:
    """Return a `botocore.config.Config` for one request per call:
    `boto3.client("s3", config=sdk.boto_config(connect_timeout=3, read_timeout=5))`.

    S3 alone still sends again where an answer names another region for the bucket.
    """
    from botocore.config import Config

    return Config(**{**more, "retries": {"total_max_attempts": 1}})


def openai_options(*, asynchronous: bool = False) -> dict[str, Any]:
    """Return the arguments of `openai.OpenAI`, or of AsyncOpenAI: no retries, no redirects.
    The client closes what it is given here."""
    import openai

    kind = openai.DefaultAsyncHttpxClient if asynchronous else openai.DefaultHttpxClient
    return {"max_retries": 0, "http_client": kind(follow_redirects=False)}


def slack_options() -> dict[str, Any]:
    """Return the arguments of `slack_sdk.WebClient`, or of AsyncWebClient: no retries.

    Of the SDK's urllib a redirect cannot be switched off: it follows 301 to 303 by a GET.
    """
    return {"retry_handlers": []}


def google_http(credentials: Any = None, **more: Any) -> Any:
    """Return the `http=` of `googleapiclient.discovery.build`: sends once, follows nothing.

    `more` is for `httplib2.Http`, e.g. `timeout=5`. With credentials a token that has expired
    is renewed before the request; after a 401 the request is not sent again.
    """
    from .httplib2_once import OnceHttp, authorized

    http = OnceHttp(**more)
    return http if credentials is None else authorized(credentials, http)

"""How often the SDKs people use send one effect: by default, and with our settings (law 17).

The numbers of the defaults are the hazard; each stands for the version beside its name.
"""

from __future__ import annotations

import importlib.metadata
import re
import subprocess
import sys
import time
from typing import Any

import google_auth_httplib2
import httplib2
import pytest
from google.auth import credentials as auth

from ascertain.targets import sdk
from targets.sdk_calls import (
    ASYNC,
    FAULTS,
    KEY,
    SDKS,
    Patience,
    at,
    by_boto,
    by_stripe_module,
    effects,
    google,
    plain,
    raised,
)
from targets.serving import Server

# urllib3, httplib2 and urllib leave the socket of a failed try to the garbage collector.
pytestmark = [
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
    # stripe 16.1.0 hands the body over in a way that httpx 0.28 no longer likes.
    pytest.mark.filterwarnings("ignore:Use 'content=:DeprecationWarning"),
]

VERSIONS = {
    "stripe": "16.1.0", "botocore": "1.44.8", "openai": "3.57.0", "slack_sdk": "3.48.0",
    "google-api-python-client": "2.202.0", "httplib2": "0.32.1",
}  # fmt: skip
# Effect requests by default; where nothing stands it is one. `stripe` is the module with its own
# settings, and repeats under one random key; a StripeClient does not repeat at all.
LOST = {"reset, unread": 3, "reset": 3, "closed": 3, "time-out": 3, "409": 3, "500": 3, "503": 3}
DEFAULTS: dict[str, dict[str, int]] = {
    "stripe": {**LOST, "307": 31},  # requests follows 30 redirects
    "StripeClient": {"307": 31},
    "boto3": {**LOST, "409": 1, "429": 3, "cut": 3},
    "openai": {**LOST, "429": 3, "cut": 3, "307": 63},  # 3 times 20 redirects
    "slack_sdk": {"reset, unread": 2, "reset": 2, "closed": 2},
    "google": {"closed": 2},  # by httplib2, without a setting against it
}
# What no setting of ours stops: stripe's redirects carry our key, aiohttp's nothing.
OURS: dict[str, dict[str, int]] = {
    "stripe": {"307": 31}, "StripeClient": {"307": 31}, "slack_sdk async": {"307": 10},
}  # fmt: skip


@pytest.fixture(autouse=True)
def _no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    """All five wait by time.sleep before they send again."""
    monkeypatch.setattr(time, "sleep", lambda _: None)


def sent(name: str, fault: str, ours: bool) -> Server:
    with at(fault) as (url, server):
        raised({**SDKS, **ASYNC}[name], url, ours)
        assert server is not None
    return server


def count(server: Server, fault: str) -> int:
    """The effect requests; connections, where nobody read what came over them."""
    return server.connections if fault == "reset, unread" else len(effects(server))


@pytest.mark.parametrize("package", VERSIONS)
def test_the_numbers_are_those_of_the_version_named(package: str) -> None:
    """With another version: read its source, run these tests, correct versions and documents."""
    assert importlib.metadata.version(package) == VERSIONS[package]


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("name", SDKS)
def test_by_default_it_is_sent_so_many_times(name: str, fault: str) -> None:
    assert count(sent(name, fault, ours=False), fault) == DEFAULTS[name].get(fault, 1)


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("name", [*SDKS, *ASYNC])
def test_with_our_settings_it_is_sent_once(name: str, fault: str) -> None:
    server = sent(name, fault, ours=True)
    assert count(server, fault) == OURS.get(name, {}).get(fault, 1)
    if name.lower().startswith("stripe"):
        assert {key_of(r) for r in server.requests} <= {KEY}


def key_of(request: bytes) -> str:
    found = re.search(rb"(?i)idempotency-key: (\S+)", request)
    return found[1].decode() if found else ""


def test_stripe_repeats_under_one_key_of_the_call_that_the_next_call_does_not_know() -> None:
    keys = []
    for _ in range(2):
        with at("reset") as (url, server):
            raised(by_stripe_module, url, False)
        keys.append({key_of(r) for r in server.requests})
    assert [len(k) for k in keys] == [1, 1]
    assert keys[0] != keys[1]


def test_openai_sends_no_key_at_all() -> None:
    server = sent("openai", "reset", ours=False)
    assert {key_of(r) for r in server.requests} == {""}


@pytest.mark.parametrize(("mode", "times"), [("legacy", 5), ("standard", 3), ("adaptive", 3)])
def test_botocore_by_its_modes(mode: str, times: int, monkeypatch: pytest.MonkeyPatch) -> None:
    with at("reset") as (url, server):
        raised(lambda u, _: by_boto(u, False, retries={"mode": mode}), url, False)
    assert len(effects(server)) == times
    with at("reset") as (url, server):
        raised(lambda u, _: by_boto(u, True, retries={"mode": mode}), url, False)
    assert len(effects(server)) == 1


def test_s3_sends_again_where_an_answer_names_another_region() -> None:
    """Whatever the settings are; the first was refused, and the second is counted."""
    moved = plain("301 Moved Permanently", x_amz_bucket_region="us-west-2")
    with Server(moved, plain("403 Forbidden")) as server:
        error: Any = raised(by_boto, f"http://127.0.0.1:{server.port}", True)
    assert len(effects(server)) == 2
    assert error.response["ResponseMetadata"]["RetryAttempts"] == 1


class Token(auth.Credentials):
    """A credential that is always there."""

    def refresh(self, request: Any) -> None:
        self.token = "t"


@pytest.mark.parametrize(("ours", "times"), [(False, 3), (True, 1)])
def test_google_auth_sends_again_after_a_401(ours: bool, times: int) -> None:
    def send(url: str, _: bool) -> Any:
        plain = httplib2.Http(timeout=Patience.seconds)
        http = (
            sdk.google_http(Token(), timeout=Patience.seconds)
            if ours
            else google_auth_httplib2.AuthorizedHttp(Token(), http=plain)
        )
        with google(url, http) as box:
            return box.things().insert(body={"name": "x"}).execute()

    with at("401") as (url, server):
        raised(send, url, ours)
    assert len(effects(server)) == times
    assert all(b"Bearer t" in r for r in server.requests)


def test_a_kept_connection_that_broke_is_not_used_again_by_google_http() -> None:
    """httplib2 keeps connections, and sends again over a new one where a kept one broke."""
    done = plain("200 OK")
    with Server(done) as server:
        http = sdk.google_http(timeout=Patience.seconds)
        for _ in range(2):
            with google(f"http://127.0.0.1:{server.port}", http) as box:
                box.things().insert(body={"name": "x"}).execute()
    assert (server.connections, len(server.requests)) == (2, 2)


def test_none_of_them_is_imported_before_it_is_used() -> None:
    heavy = {"stripe", "boto3", "botocore", "openai", "slack_sdk", "googleapiclient", "httplib2"}
    code = (
        "import sys, ascertain.targets.sdk, ascertain.targets.classify as c;"
        "c.classify(OSError(1), None, True);"
        f"print(*sorted({heavy} & set(sys.modules)))"
    )
    loaded = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)
    assert loaded.stdout.split() == []

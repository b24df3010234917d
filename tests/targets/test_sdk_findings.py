"""What the exceptions of the SDKs prove, and what they do not (law 13)."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import boto3
import botocore.exceptions
import google_auth_httplib2
import googleapiclient.errors
import httplib2
import httpx2
import openai
import pytest
import requests
import slack_sdk
import stripe
from google.auth import credentials as auth
from google.auth import exceptions as refusals

import ascertain
from ascertain.core.contract import NO_CONTRACT, Contract, load
from ascertain.core.model import NotDone, Unknown
from ascertain.targets import sdk
from ascertain.targets.classify import boto_, classify, google_, openai_, slack_, stripe_
from targets.sdk_calls import (
    ASYNC,
    CALL,
    FAULTS,
    SDKS,
    Patience,
    at,
    aws,
    by_boto,
    by_slack,
    by_stripe_module,
    google,
    plain,
    put,
    raised,
    stripe_client,
)
from targets.serving import CREATED, Server, answer, refused, reset

pytestmark = [  # as in test_sdk_retries.py
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
    # stripe 16.1.0 hands the body over in a way that httpx 0.28 no longer likes.
    pytest.mark.filterwarnings("ignore:Use 'content=:DeprecationWarning"),
]

LISTED = load({
    "id": "vendor.create", "ok": {"when": "200"},
    "refused": {"unauthorized": "401", "throttled": "429", "transient": "503"},
})  # fmt: skip
# With our settings all say the same; "" is Unknown.
PROVES = {
    "refused": "transient", "reset, unread": "", "reset": "", "closed": "", "time-out": "",
    "cut": "", "401": "unauthorized", "409": "", "429": "throttled", "500": "", "503": "transient",
    "307": "",
}  # fmt: skip
ALL = {**SDKS, **ASYNC}


@pytest.fixture(autouse=True)
def _no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "sleep", lambda _: None)


def proof(error: BaseException, contract: Contract = LISTED) -> str:
    """The kind of a NotDone where the action sends once; never without that."""
    assert isinstance(classify(error, None, False, contract), Unknown)
    found = classify(error, None, True, contract)
    return found.kind.value if isinstance(found, NotDone) else ""


@pytest.mark.parametrize("fault", PROVES)
@pytest.mark.parametrize("name", ALL)
def test_what_each_fault_proves_with_our_settings(name: str, fault: str) -> None:
    with at(fault) as (url, _):
        error = raised(ALL[name], url, True)
    assert proof(error) == PROVES[fault]
    only_sent = PROVES[fault] if fault == "refused" else ""
    assert proof(error, NO_CONTRACT) == only_sent, "an answer is proof only by a contract"


@pytest.mark.parametrize("fault", PROVES)
@pytest.mark.parametrize("name", SDKS)
def test_by_default_nothing_is_proof_that_was_sent_more_than_once(name: str, fault: str) -> None:
    with at(fault) as (url, server):
        error = raised(SDKS[name], url, False)
    if proof(error):
        assert server is None or server.connections == 1
        assert PROVES[fault] == proof(error)


@pytest.mark.parametrize("name", SDKS)
@pytest.mark.parametrize("first", ["reset", "closed"])
@pytest.mark.parametrize("then", ["refused", "429"])
def test_a_retry_hides_what_came_before(name: str, first: str, then: str) -> None:
    """The first request is read, and may have had its effect; the last one proves nothing."""

    def once(conn: Any) -> None:
        if then == "refused":
            server.stop()
        getattr(server, FAULTS[first])(conn)

    with Server(once, FAULTS["429"]) as server:
        error = raised(SDKS[name], f"http://127.0.0.1:{server.port}", False)
    assert len(server.requests) >= 1
    assert proof(error) == ""


def lost_then_refused(send: Any, ours: bool) -> str:
    """What is proven where the first request is read, and nobody listens any more."""

    def once(conn: Any) -> None:
        server.stop()
        server.hangs_up(conn)

    with Server(once) as server:
        error = raised(send, f"http://127.0.0.1:{server.port}", ours)
    assert len(server.requests) == 1
    return proof(error)


def moved_to_nobody(send: Any, ours: bool) -> str:
    """What is proven where the first request is answered by 303, to where nobody listens."""
    with refused() as port:
        moved = plain("303 See Other", Location=f"http://127.0.0.1:{port}/")
        with Server(moved) as server:
            error = raised(send, f"http://127.0.0.1:{server.port}", ours)
    assert len(server.requests) >= 1
    return proof(error)


def google_retrying(url: str, ours: bool) -> Any:
    http = sdk.google_http(timeout=Patience.seconds)
    with google(url, http) as box:
        return box.things().insert(body={"name": "x"}).execute(num_retries=2)


@pytest.mark.parametrize("name", SDKS)
@pytest.mark.parametrize("ours", [False, True])
def test_a_redirect_to_where_nobody_listens_proves_nothing(name: str, ours: bool) -> None:
    assert moved_to_nobody(SDKS[name], ours) == ""


def test_retries_asked_for_hide_what_came_before() -> None:
    assert lost_then_refused(google_retrying, False) == ""


GUARDS: dict[str, tuple[Any, str, Any, Callable[[], str]]] = {
    "stripe": (stripe_, "_tries", 1, lambda: lost_then_refused(SDKS["stripe"], False)),
    "boto3": (boto_, "_sent_before", False, lambda: lost_then_refused(SDKS["boto3"], False)),
    "openai": (openai_, "_first", True, lambda: lost_then_refused(SDKS["openai"], False)),
    "slack_sdk": (slack_, "_once", None, lambda: lost_then_refused(SDKS["slack_sdk"], False)),
    "google": (google_, "_follows", False, lambda: moved_to_nobody(SDKS["google"], False)),
    "google, asked": (google_, "_follows", False, lambda: lost_then_refused(google_retrying, True)),
}


@pytest.mark.parametrize("guard", GUARDS)
def test_each_guard_is_needed(guard: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """With one switched off, something that was sent would count as never sent."""
    module, name, answer, scenario = GUARDS[guard]
    assert scenario() == ""
    monkeypatch.setattr(module, name, lambda *_: answer)
    assert scenario() == "transient"


@pytest.mark.parametrize("name", SDKS)
def test_an_untrusted_certificate_is_proof(name: str) -> None:
    with Server(CREATED, tls=True) as server:
        error = raised(SDKS[name], f"https://localhost:{server.port}", True)
    assert server.requests == []
    assert proof(error) == "transient"


@pytest.mark.parametrize("name", ALL)
def test_what_came_before_in_the_chain_takes_the_proof_away(name: str) -> None:
    def falls_back() -> None:
        try:
            with at("closed") as (url, _):
                ALL[name](url, True)
        except Exception:
            with at("429") as (url, _):
                ALL[name](url, True)

    assert proof(raised(lambda *_: falls_back(), "", True)) == ""


@pytest.mark.parametrize("name", ALL)
def test_an_error_of_ones_own_speaks_through_its_cause(name: str) -> None:
    def wraps() -> None:
        try:
            with at("429") as (url, _):
                ALL[name](url, True)
        except Exception as error:
            raise LookupError("shop") from error

    assert proof(raised(lambda *_: wraps(), "", True)) == "throttled"


def test_an_answer_keeps_its_evidence_and_how_long_to_wait() -> None:
    for name, send in ALL.items():
        with Server(plain("429 Too Many Requests", Retry_After="7")) as server:
            error = raised(send, f"http://127.0.0.1:{server.port}", True)
        found = classify(error, None, True, LISTED)
        assert (found.retry_after, found.evidence["status"]) == (7, 429), name


def test_a_webhook_of_slack_sends_twice_by_default_and_then_proves_nothing() -> None:
    def send(url: str, ours: bool) -> Any:
        more = sdk.slack_options() if ours else {}
        return slack_sdk.WebhookClient(url, timeout=Patience.seconds, **more).send(text="hello")

    def once(conn: Any) -> None:
        server.stop()
        server.resets(conn)

    with Server(once) as server:
        assert proof(raised(send, f"http://127.0.0.1:{server.port}", False)) == ""
    assert len(server.requests) == 1
    with at("refused") as (url, _):
        assert proof(raised(send, url, True)) == "transient"


def test_an_answer_while_a_second_request_of_botocore_is_signed_proves_nothing() -> None:
    """Credentials may be asked for then, and throttled: the first request was lost before."""
    about = {"HTTPStatusCode": 429, "HTTPHeaders": {}, "RetryAttempts": 0}
    signed = []

    def sign(**_: Any) -> None:
        signed.append(1)
        if len(signed) == tries:
            raise botocore.exceptions.ClientError({"ResponseMetadata": about}, "AssumeRole")

    for tries, kind in ((1, "throttled"), (2, "")):
        signed.clear()
        with at("reset") as (url, server):
            s3 = aws().client("s3", endpoint_url=url)
            s3.meta.events.register("before-sign.s3", sign)
            error = raised(lambda *_: s3.put_object(Bucket="b", Key="k"), url, False)  # noqa: B023
        assert len(server.requests) == tries - 1
        assert proof(error) == kind


def broken(_: Any) -> Any:
    raise RuntimeError("another version")


@pytest.mark.parametrize(
    "kind",
    [stripe.StripeError, botocore.exceptions.ClientError, botocore.exceptions.SSLError,
     openai.APIStatusError, openai.APIConnectionError, slack_sdk.errors.SlackApiError,
     googleapiclient.errors.HttpError, refusals.RefreshError, requests.HTTPError,
     httpx2.HTTPStatusError],
)  # fmt: skip
def test_an_error_that_looks_different_from_what_was_seen_proves_nothing(kind: Any) -> None:
    parts = ("response", "request", "resp", "http_status", "headers", "args", "kwargs", "reason")
    for part in ({p: property(broken) for p in parts if p != "args"}, dict.fromkeys(parts, ())):
        odd = type("Odd", (kind,), part)
        error = odd.__new__(odd)
        assert proof(raised(lambda *_: throw(error), "", True)) == ""  # noqa: B023


def throw(error: BaseException) -> None:
    raise error


# --- by the contract, each in its words ---


def test_slack_says_no_in_a_200() -> None:
    contract = load({
        "id": "slack.post", "ok": {"when": "200 body:ok=true"},
        "refused": {"invalid": "200 body:error=channel_not_found"},
    })  # fmt: skip
    for word, kind in (("channel_not_found", "invalid"), ("internal_error", "")):
        said = answer("200 OK", b'{"ok":false,"error":"%s"}' % word.encode(), Connection="close")
        with Server(said) as server:
            error = raised(by_slack, f"http://127.0.0.1:{server.port}", True)
        assert proof(error, contract) == kind


def test_s3_says_its_code() -> None:
    contract = load({
        "id": "s3.put", "ok": {"when": "200"}, "repeat": {"exists": "412"},
        "key": {"at": "path:key", "kind": "condition"},
        "refused": {"invalid": "404 body:Error.Code=NoSuchBucket", "rejected": "4xx"},
    })  # fmt: skip
    body = b"<Error><Code>NoSuchBucket</Code></Error>"
    for status, kind in (("404 Not Found", "invalid"), ("412 Precondition Failed", "")):
        with Server(answer(status, body, Connection="close")) as server:
            error = raised(by_boto, f"http://127.0.0.1:{server.port}", True)
        assert proof(error, contract) == kind


def test_a_stored_answer_of_stripe_speaks_for_its_key() -> None:
    contract = load({
        "id": "stripe.create", "ok": {"when": "200"},
        "key": {"at": "header:Idempotency-Key", "kind": "request"},
        "repeat": {"answer": "replay", "failed": "replayed",
                   "stored": "4xx header:Idempotent-Replayed=true"},
        "refused": {"invalid": "400"},
    })  # fmt: skip
    with Server(plain("400 Bad Request", Idempotent_Replayed="true")) as server:
        error = raised(by_stripe_module, f"http://127.0.0.1:{server.port}", True)
    found = classify(error, None, True, contract)
    assert isinstance(found, NotDone)
    assert found.stored


def test_s3_in_another_region_proves_nothing() -> None:
    moved = plain("301 Moved Permanently", x_amz_bucket_region="us-west-2")
    with Server(moved, plain("401 Unauthorized")) as server:
        error = raised(by_boto, f"http://127.0.0.1:{server.port}", True)
    assert proof(error) == ""


@pytest.mark.parametrize("client", ["requests", "httpx2"])
def test_raise_for_status_counts_by_the_contract_unless_it_followed_another(client: str) -> None:
    def send(url: str, _: bool) -> Any:
        if client == "requests":
            requests.post(url, data=b"x", timeout=Patience.seconds).raise_for_status()
        else:
            httpx2.post(url, content=b"x", follow_redirects=True).raise_for_status()

    for script, kind in (
        (["429"], "throttled"), (["409"], ""), (["307", "429"], ""),
    ):  # fmt: skip
        with Server(*[FAULTS[s] for s in script]) as server:
            error = raised(send, f"http://127.0.0.1:{server.port}/", True)
        assert len(server.requests) == len(script)
        assert proof(error) == kind


# --- nothing was sent, since something was missing ---


def test_without_credentials_or_with_wrong_parameters_nothing_is_sent(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", "/nowhere")
    monkeypatch.setenv("AWS_CONFIG_FILE", "/nowhere")
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    with Server(CREATED) as server:
        url = f"http://127.0.0.1:{server.port}"
        s3 = boto3.session.Session(region_name="eu-west-1").client("s3", endpoint_url=url)
        error = raised(lambda *_: s3.put_object(Bucket="box", Key="thing"), url, True)
        assert proof(error) == "unauthorized"
        error = raised(lambda *_: put(url, sdk.boto_config(), Body=7), url, True)
        assert proof(error) == "invalid"
        monkeypatch.setattr(stripe, "api_base", url)
        monkeypatch.setattr(stripe, "api_key", None)
        create = stripe.Customer.create
        error = raised(lambda *_: create(**sdk.stripe_options(CALL)), url, True)
        assert proof(error) == "unauthorized"
    assert server.connections == 0


class Expired(auth.Credentials):
    """A credential whose token must be asked for, from where `token_url` says."""

    token_url = ""
    refusal: Exception | None = None

    def refresh(self, request: Any) -> None:
        if self.refusal is not None:
            raise self.refusal
        request(url=self.token_url, method="POST", body=b"grant")
        self.token = "t"


@pytest.mark.parametrize("ours", [True, False])
def test_a_token_of_google_that_is_not_given_is_proof(ours: bool) -> None:
    def send(url: str, credentials: Any) -> Any:
        http = httplib2.Http(timeout=Patience.seconds)
        made = google_auth_httplib2.AuthorizedHttp(credentials, http=http)
        with google(url, sdk.google_http(credentials) if ours else made) as box:
            return box.things().insert(body={"name": "x"}).execute()

    with Server(CREATED) as server, refused() as port, Server("resets") as token:
        url = f"http://127.0.0.1:{server.port}"
        for refusal, kind in (
            (refusals.RefreshError("invalid_grant"), "unauthorized"),
            (refusals.RefreshError("later", retryable=True), "transient"),
            (refusals.TransportError("no"), "transient"),
        ):
            expired = Expired()
            expired.refusal = refusal
            assert proof(raised(send, url, expired)) == kind
        for where in (port, token.port):  # also where the token's own answer was lost
            expired = Expired()
            expired.token_url = f"http://127.0.0.1:{where}/token"
            assert proof(raised(send, url, expired)) == "transient"
    assert server.connections == 0


def test_a_token_that_is_not_renewed_after_a_401_is_no_proof() -> None:
    """The request was answered, if only by 401, which no contract was asked about."""

    class Once(Expired):
        def refresh(self, request: Any) -> None:
            if self.token:
                raise refusals.RefreshError("invalid_grant")
            self.token = "t"

    def send(url: str, _: bool) -> Any:
        http = httplib2.Http(timeout=Patience.seconds)
        with google(url, google_auth_httplib2.AuthorizedHttp(Once(), http=http)) as box:
            return box.things().insert(body={"name": "x"}).execute()

    with at("401") as (url, server):
        assert proof(raised(send, url, False)) == ""
    assert len(server.requests) == 1


# --- with the ledger ---


PAYMENT = {
    "id": "stripe.customer", "ok": {"when": "200"},
    "key": {"at": "header:Idempotency-Key", "kind": "request"},
    "repeat": {"answer": "replay", "keeps": "24h", "atomic": True},
    "refused": {"throttled": "429"}, "assume": {"late": "30s"},
}  # fmt: skip


def test_the_ledger_repeats_under_the_same_key_and_waits_where_the_contract_says() -> None:
    ledger = ascertain.open(":memory:", wait=0.5)
    url = ""

    @ledger.action(
        "shop.customer", key="{name}", owner="anna", contract=load(PAYMENT), sends="own",
        sends_within=5, single_request=True, deterministic=True,
    )  # fmt: skip
    def create(call: Any, *, name: str) -> Any:
        http = stripe.RequestsClient(timeout=Patience.seconds)
        customers = stripe_client(url, http_client=http).v1.customers
        made = customers.create({"name": name}, sdk.stripe_options(call))
        return ascertain.Done(ref=made.id)

    done = answer("200 OK", b'{"id":"cus_1","object":"customer"}', Connection="close")

    def lost(conn: Any) -> None:
        server.requests.append(conn.recv(65536))
        reset(conn)

    with Server(lost, done) as server:
        url = f"http://127.0.0.1:{server.port}"
        receipt = create(name="anna")
    keys = {line for r in server.requests for line in r.split(b"\r\n") if b"dempotency-Key" in line}
    assert (receipt.state, receipt.ref, len(server.requests)) == ("done", "cus_1", 2)
    assert len(keys) == 1
    with Server(plain("429 Too Many Requests", Retry_After="60")) as server:
        url = f"http://127.0.0.1:{server.port}"
        receipt = create.submit(name="ben")
    assert (receipt.state, len(server.requests)) == ("pending", 1)
    ledger.close()

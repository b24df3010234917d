"""What an answer proves by its contract (laws 6, 7, 13)."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ascertain.core.contract import NO_CONTRACT, load
from ascertain.core.model import Accepted, Done, NotDone, Unknown
from ascertain.targets.answer import LONGEST_WAIT, HttpAnswer, evidence_of, retry_after
from ascertain.targets.classify.answers import exists, finding_of, success_of
from targets.serving import shop

KEYED = {
    "id": "pay.create", "ok": {"when": "200|201 body:id"},
    "key": {"at": "header:Idempotency-Key", "kind": "request"},
    "repeat": {"answer": "replay", "keeps": "24h", "failed": "replayed",
               "exists": "409 body:code=exists", "busy": "409 body:code=busy",
               "mismatch": "400 body:code=other",
               "stored": "400|402 header:Idempotent-Replayed=true"},
    "refused": {"invalid": "400|409", "rejected": "402", "unauthorized": "401",
                "throttled": "429", "transient": "503 body:code=maintenance"},
}  # fmt: skip


def said(status: int, body: Any = None, **headers: str) -> HttpAnswer:
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    named = {n.replace("_", "-").lower(): v for n, v in headers.items()}
    return HttpAnswer(status=status, headers=named, content=content, url="http://h/")


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (said(200, {"id": 1}), "success"), (said(200, {"ok": False}), "unknown"),
        (said(200, b"<html>captive portal"), "unknown"), (said(204), "unknown"),
        (said(400, {"code": "bad"}), "invalid"), (said(401), "unauthorized"),
        (said(402), "rejected"), (said(429), "throttled"),
        (said(503, {"code": "maintenance"}), "transient"), (said(503), "unknown"),
        (said(500), "unknown"), (said(404), "unknown"), (said(302), "unknown"),
        # A broad refusal does not hide that an effect may be there.
        (said(409, {"code": "exists"}), "unknown"), (said(409, {"code": "busy"}), "unknown"),
        (said(400, {"code": "other"}), "unknown"), (said(409, {"code": "x"}), "invalid"),
    ],
    ids=range(17),
)  # fmt: skip
def test_an_answer(answer: HttpAnswer, expected: str) -> None:
    found = finding_of(answer, load(KEYED))
    if expected == "success":
        assert found is None
    elif expected == "unknown":
        assert isinstance(found, Unknown)
    else:
        assert isinstance(found, NotDone)
        assert found.kind == expected
        assert not found.stored


def test_the_stored_outcome_of_a_key_speaks_for_every_attempt() -> None:
    found = finding_of(said(402, {}, Idempotent_Replayed="true"), load(KEYED))
    assert isinstance(found, NotDone)
    assert found.stored
    unproven = finding_of(said(500, {}, Idempotent_Replayed="true"), load(KEYED))
    assert isinstance(unproven, Unknown)


def test_exists_is_for_reading_back() -> None:
    assert exists(said(409, {"code": "exists"}), load(KEYED))
    assert not exists(said(409, {"code": "busy"}), load(KEYED))
    spoken = load({"id": "x.y", "protocol": "nats", "repeat": {"exists": "so it says"}})
    assert not exists(said(409), spoken)
    assert isinstance(finding_of(said(200), spoken), Unknown)


def test_without_a_contract_nobody_promised_anything() -> None:
    assert finding_of(said(200), NO_CONTRACT) is None
    assert isinstance(success_of(said(200), NO_CONTRACT), Unknown)
    for status in (400, 401, 404, 409, 429, 500, 503):
        assert isinstance(finding_of(said(status), NO_CONTRACT), Unknown)


def test_a_success_may_mean_taken_over_only() -> None:
    assert isinstance(success_of(said(201), shop()), Done)
    accepted = shop(ok={"when": "201", "accepted": True})
    assert isinstance(success_of(said(201), accepted), Accepted)


def test_only_what_a_contract_lists_is_proof() -> None:
    listed = {200: None, 201: None, 400: "invalid", 409: "invalid", 402: "rejected",
              401: "unauthorized", 429: "throttled"}  # fmt: skip
    for status in range(100, 600):
        found = finding_of(said(status, {"id": 1}), load(KEYED))
        kind = found.kind if isinstance(found, NotDone) else None
        assert kind == listed.get(status)
        assert (found is None) is (status in (200, 201))


DATE = "Sun, 29 Nov 2026 10:00:00 GMT"


@pytest.mark.parametrize(
    ("answer", "wait", "seconds"),
    [
        (said(429, Retry_After="7"), "", 7), (said(429, Retry_After="0.5"), "", 0.5),
        (said(429), "", None), (said(429, Retry_After="soon"), "", None),
        (said(429, Retry_After="nan"), "", None), (said(429, Retry_After="inf"), "", None),
        (said(429, Retry_After="-5"), "", None), (said(429, Retry_After="1e12"), "", LONGEST_WAIT),
        (said(429, Retry_After="Sun, 29 Nov 2026 10:01:00 GMT", Date=DATE), "", 60),
        (said(429, Retry_After="Sun, 29 Nov 2026 09:00:00 GMT", Date=DATE), "", 0),
        (said(429, Retry_After=DATE), "", None),
        (said(429, X_Wait="9", Retry_After="7"), "header:X-Wait", 9),
        (said(429, {"error": {"wait": 3}}), "body:error.wait", 3),
        (said(429, {"error": 3}, Retry_After="7"), "body:error.wait", None),
    ],
    ids=range(14),
)  # fmt: skip
def test_how_long_to_wait(answer: HttpAnswer, wait: str, seconds: float | None) -> None:
    assert retry_after(answer, wait) == seconds


@pytest.mark.parametrize("content", [b"[" * 100_000, b"\xff\xfe", b"", b'"\\ud800"', b"null"])
def test_a_body_of_any_bytes_can_be_looked_at(content: bytes) -> None:
    answer = said(200, content)
    assert isinstance(finding_of(answer, load(KEYED)), Unknown)
    assert len(answer.evidence()["excerpt"]) <= 300


@pytest.mark.parametrize(
    "text",
    [
        "https://me:s3cret@shop.example/", '{"access_token": "s3cret"}', "?api_key=s3cret&x=1",
        "Authorization: Bearer s3cret0", "password='s3cret'", '{"client_secret":"s3cret"}',
        "Basic s3cret0==", "x" * 295 + " known-s3cret",
    ],
)  # fmt: skip
def test_evidence_holds_no_credentials(text: str) -> None:
    seen = evidence_of(500, text, {"location": text}, text.encode(), ["known-s3cret"])
    assert "s3cret" not in str(seen)


def test_evidence_keeps_what_helps() -> None:
    seen = evidence_of(409, "Conflict", {"etag": '"7"', "set-cookie": "s=1"}, b'{"id": "ord-5"}')
    assert seen["headers"] == {"etag": '"7"'}
    assert seen["excerpt"] == '{"id": "ord-5"}'
    assert seen["line"] == "409 Conflict"


@pytest.mark.parametrize(
    ("sent", "kept"),
    [
        ({"title": "暖光台灯"}, '{"title": "暖光台灯"}'),
        ({"title": "🏮"}, '{"title": "🏮"}'),  # a pair
        ({"title": 'a "b"\n\u0007'}, '{"title": "a \\"b\\"\\n\\u0007"}'),
        ({"path": "C:\\u67e5"}, '{"path": "C:\\\\u67e5"}'),  # a backslash, no letter
        ({"half": "\ud83c"}, '{"half": "\\ud83c"}'),
    ],
)
def test_letters_are_kept_written_out(sent: dict[str, str], kept: str) -> None:
    content = json.dumps(sent).encode()
    seen = evidence_of(200, "OK", {}, content)["excerpt"]
    assert seen == kept
    assert json.loads(seen) == sent

"""Errors as RFC 9457 problems: the `type` is the error's stable code, the words are for people."""

from __future__ import annotations

from typing import Any

import msgspec
from starlette.responses import Response

from ascertain.core.error_words import ERRORS, REQUESTS
from ascertain.core.errors import AscertainError, StoreError
from ascertain.runtime.receipt import Receipt
from ascertain.runtime.telemetry import telemetry

from .shown import Newer, Warned, newer, warned

TYPE = "urn:ascertain:problem:"  # before the code: a type is a URI (RFC 9457 section 3.1.1)
MEDIA = "application/problem+json"
STATUS = {  # of an error's code; what is not here is 409: the state of things stands in the way
    "usage": 400, "key_refused": 400, "key_missing": 400, "body_malformed": 400,
    "unauthenticated": 401, "forbidden": 403, "not_allowed": 403, "read_only": 403,
    "unknown_action": 404, "unknown_operation": 404, "unknown_namespace": 404, "unknown": 404,
    "method_not_allowed": 405, "too_large": 413, "unsupported_media": 415,
    "input_refused": 422, "input_mismatch": 422, "input_rejected": 422, "key_mismatch": 422,
    "body_invalid": 422, "action_invalid": 422, "contract_invalid": 422, "config_invalid": 422,
    "access_rejected": 424, "gave_up": 424, "not_done": 424,
    "signature_wrong": 401, "signature_old": 401, "secret_missing": 503,
    "too_many": 429,
    "store": 503, "store_busy": 503, "store_unavailable": 503, "store_corrupt": 503,
    "schema_mismatch": 503, "stopping": 503, "overloaded": 503,
    "too_slow": 408, "path_refused": 400,
    "target_unreachable": 502, "target_slow": 504, "no_credentials": 503, "broken": 500,
    "not_begun": 503,
}  # fmt: skip
WORDS = ERRORS | REQUESTS
STORE = (
    "the store cannot be used now: ask again later, with the same key; what is wrong with it stands"
    " in the server's log"
)
# What an end user may be told where no operation stands behind a problem.
USER = {
    "en": "The request was not accepted; nothing was done.",
    "zh": "请求未被接受，未执行任何操作。",
}


class Problem(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What stands in the way (RFC 9457). `user_message` is safe to show to an end user."""

    type: str
    code: str
    title: str
    status: int
    detail: str
    user_message: dict[str, str]
    title_zh: str = ""
    operation: str | None = None
    state: str | None = None
    next_step: dict[str, str] | None = None
    owner: str | None = None
    link: str | None = None
    waiting_on: str | None = None
    retry_after: float | None = None  # seconds
    warnings: list[Warned] | None = None
    fields: list[str] | None = None  # that differ, or are wrong
    newer: Newer | None = None  # of a decision on what is not so any more


class ProblemError(Exception):
    """Ends a request with a problem; for what is not an error of the ledger."""

    def __init__(
        self, code: str, detail: str, *, headers: dict[str, str] | None = None, **more: Any
    ) -> None:
        """`code` stands in STATUS and in the texts of errors; `more` are fields of Problem."""
        self.code, self.detail, self.headers, self.more = code, detail, headers or {}, more
        super().__init__(detail)


def problem_of(
    error: AscertainError | ProblemError, link: str | None = None, why: str = ""
) -> Problem:
    """Return the problem that an error is; an operation's own words where one stands behind it.
    `why`: the reason that its last attempt gave."""
    more: dict[str, Any] = {"user_message": USER}
    if isinstance(error, ProblemError):
        detail = error.detail
        more |= error.more
    elif isinstance(error, StoreError):
        detail = STORE  # its own words name hosts, files and rows: they are for the operator
        telemetry.tell("store.failed", code=error.code, error=" ".join(str(error).split()))
    else:
        detail = " ".join(str(error).split()) + (f" Last attempt: {why}." if why else "")
        more |= {n: error.facts[n] for n in ("operation", "fields") if error.facts.get(n)}
        if error.facts.get("newer") is not None:
            more["newer"] = newer(error.facts["newer"])
        receipt = error.facts.get("receipt")
        if isinstance(receipt, Receipt):
            more |= {
                "state": receipt.state,
                "next_step": receipt.next_step,
                "user_message": receipt.user_message,
                "owner": receipt.owner,
                "waiting_on": receipt.waiting_on or None,
                "warnings": warned(receipt.warnings) or None,
            }
    if link is not None:
        more["link"] = link
    english, chinese = WORDS[error.code]
    return Problem(
        type=TYPE + error.code,
        code=error.code,
        title=english,
        title_zh=chinese,
        status=STATUS.get(error.code, 409),
        detail=detail,
        **more,
    )


def problem_answer(problem: Problem, headers: dict[str, str] | None = None) -> Response:
    """Return the HTTP answer of a problem."""
    headers = dict(headers or {})
    if problem.retry_after is not None:
        headers.setdefault("Retry-After", str(max(1, round(problem.retry_after))))
    body = msgspec.json.encode(problem)
    return Response(body, status_code=problem.status, media_type=MEDIA, headers=headers)

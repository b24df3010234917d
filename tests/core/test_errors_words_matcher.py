"""What the core says: error codes, sentences in both languages, and matchers of answers."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from ascertain.core import errors, matcher, words
from ascertain.core.model import Reason, State, Status, WaitingOn

CORE = Path(words.__file__).parent


def kinds(root: type[errors.AscertainError]) -> list[type[errors.AscertainError]]:
    return [root, *(k for child in root.__subclasses__() for k in kinds(child))]


def test_every_error_has_its_own_code_and_a_default_sentence() -> None:
    found = [k for k in kinds(errors.AscertainError) if k.__module__ == errors.__name__]
    assert len({k.code for k in found}) == len(found)
    assert all(str(k()) == (k.__doc__ or "").strip() != "" for k in found)


def test_an_error_carries_its_facts() -> None:
    error = errors.InReview("It waits.", operation="op-1")
    assert (error.operation, error.facts, str(error)) == (
        "op-1", {"operation": "op-1"}, "It waits.",
    )  # fmt: skip
    with pytest.raises(AttributeError):
        _ = error.owner


# --- sentences ---


def status(state: State = State.UNKNOWN, **more: Any) -> Status:
    return Status(operation="op", namespace="n", action="a", state=state, **more)


def test_every_code_that_the_core_uses_has_a_sentence() -> None:
    text = "".join(p.read_text() for p in CORE.glob("*.py") if p.name != "words.py")
    used = set(re.findall(r'said="([a-z_]+)"|, "(review_[a-z]+|look_up[a-z_]*)"', text))
    codes = {code for pair in used for code in pair if code}
    assert codes <= set(words.SENTENCES)
    assert all(len(s) == 2 and all(s) for s in words.SENTENCES.values())


def test_what_is_said_about_an_operation() -> None:
    review = status(said="review_opaque", waiting_on=WaitingOn.REVIEW, owner="anna")
    assert words.next_step(review).endswith("It is with anna.")
    assert words.next_step(review, "zh").endswith("负责人：anna。")
    assert "anna" not in words.next_step(status(said="look_up", owner="anna"))
    assert words.next_step(status()) == ""
    assert words.next_step(status(State.RUNNING)) == "An attempt is under way."


def test_left_never_looks_like_proof() -> None:
    left = status(State.NOT_DONE, reason=Reason.LEFT)
    assert "unknown" in words.state(left)
    assert "不明" in words.state(left, "zh")
    assert "could not be confirmed" in words.user_message(left)
    assert words.state(status(State.DONE)) == "done"


@pytest.mark.parametrize("state", [s for s in State if s is not State.DONE])
def test_an_end_user_is_never_told_done_before_done(state: State) -> None:
    assert not words.user_message(status(state)).startswith("Done")
    assert words.user_message(status(State.UNKNOWN), "zh") == "正在核对处理结果，请勿重复提交。"


@pytest.mark.parametrize(
    ("span", "text"),
    [(0, "0s"), (30_000_000, "30s"), (90_000_000, "90s"), (900_000_000, "15m"),
     (3_600_000_000, "1h"), (604_800_000_000, "7d"), (250_000, "0.25s"), (2**62, "forever")],
    ids=range(8),
)  # fmt: skip
def test_durations_in_short(span: int, text: str) -> None:
    assert words.duration(span) == text


# --- matchers ---

BODY = {
    "error": {"code": "dup", "n": 5, "ok": False, "none": None},
    "items": [{"id": 1}, {"id": 2}],
}


@pytest.mark.parametrize(
    ("text", "holds"),
    [
        ("", False), ("409", True), ("200|409", True), ("4xx", True), ("5xx|200", False),
        ("header:Retry-After", True), ("header:retry-after=7", True), ("header:X=1", False),
        ("body:error.code=dup", True), ("409 body:error.code=other", False),
        ("200 body:error", False),
        ("body:error.n=5", True), ("body:error.ok=false", True), ("body:error.none=", True),
        ("body:items.id=2", True), ("body:items.1.id=1", False), ("body:items.9", False),
        ("body:nothing.there", False),
    ],
    ids=range(18),
)  # fmt: skip
def test_a_matcher(text: str, holds: bool) -> None:
    made = matcher.parse(text)
    assert matcher.matches(made, 409, {"Retry-After": "7"}, BODY) is holds


def test_a_matcher_writes_true_as_json_does() -> None:
    assert matcher.matches(matcher.parse("body:ok=true"), 200, {}, {"ok": True})


@pytest.mark.parametrize("text", ["409 410", "600", "code=4", "header:", "body:=x", "cookie:a"])
def test_a_matcher_that_nobody_understands_is_refused(text: str) -> None:
    with pytest.raises(errors.ContractInvalid, match="matcher"):
        matcher.parse(text)

"""`ascertain contract`: what is listed, shown and explained, in both languages."""

from __future__ import annotations

import json
from typing import Any

import pytest
from click.testing import CliRunner

from ascertain.cli.main import ascertain

LANGS = pytest.mark.parametrize("lang", ["en", "zh"])


def run(*args: str, code: int = 0) -> str:
    done = CliRunner().invoke(ascertain, ["contract", *args])
    assert done.exit_code == code, done.output
    return done.output


def data(*args: str) -> Any:
    return json.loads(run(*args, "--json"))


def test_the_list_has_every_contract_with_sources_and_status() -> None:
    listed = data("list")["contracts"]
    assert len(listed) >= 65
    assert sum(1 for c in listed if c["sources"]) >= 65
    for c in listed:
        assert c["status"] in ("verified", "documented", "draft")
        assert c["date"]
        assert sum(c["claims"].values()) > 0
        assert (c["class"] is None) == (c["class_if_accepted"] is None)
    [stripe] = [c for c in listed if c["id"] == "stripe.v1.post"]
    assert stripe["class"] == {"now": "idempotent", "after": "lagging"}
    assert stripe["needs"] == ["late"]


@LANGS
def test_the_list_is_a_table(lang: str) -> None:
    shown = run("list", "--lang", lang)
    assert "caldav.task.create" in shown
    assert {"en": "notifications only", "zh": "仅为通知"}[lang] in shown
    assert {"en": "identified, not race-free", "zh": "唯一编号（并发不保证）"}[lang] in shown


@LANGS
def test_a_contract_is_shown_claim_by_claim(lang: str) -> None:
    shown = run("show", "square.payments.create", "--lang", lang)
    assert "IDEMPOTENCY_KEY_REUSED" in shown
    assert {"en": "second hand", "zh": "转述"}[lang] in shown
    assert "square/connect-api-specification" in shown
    claims = {c["claim"]: c for c in data("show", "square.payments.create")["claims"]}
    assert claims["repeat.answer"] == {
        "claim": "repeat.answer", "value": "current", "level": "second", "counts": False,
    }  # fmt: skip
    assert claims["key.max"]["counts"]
    assert data("show", "shopify.webhook")["class"] is None


@LANGS
def test_a_contract_is_explained_in_plain_sentences(lang: str) -> None:
    shown = run("explain", "stripe.v1.post", "--late", "30s", "--after", "25h", "--lang", lang)
    expected = {
        "en": ["Now: idempotent. It is looked up first", "25h after the first attempt: lagging.",
               "The target is sure to remember our key for 1d only", "repeat.atomic",
               "Not counted unless you accept it", "late"],
        "zh": ["现在：窗口内防重。先查询", "首次尝试之后 25h：查证有延迟。", "repeat.atomic",
               "不算数；除非", "late"],
    }  # fmt: skip
    for text in expected[lang]:
        assert text in shown


def test_what_is_accepted_counts() -> None:
    before = data("explain", "stripe.v1.post", "--late", "30s")
    after = data("explain", "stripe.v1.post", "--late", "30s", "--accept", "repeat.atomic")
    assert before["now"]["permitted"] == "look_then_replay"
    assert after["now"]["permitted"] == "replay_key"
    assert "repeat.atomic" in after["assumed"]
    assert {o["claim"] for o in before["offers"]} - {o["claim"] for o in after["offers"]} == {
        "repeat.atomic"
    }
    assert before["all_accepted"] == {"now": "idempotent", "after": "lagging"}
    assert data("explain", "caldav.task.create")["all_accepted"] is None
    better = data("explain", "roundup.issue.create")["better"]
    assert "identified" in {b["class"] for b in better}


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (("show", "no.such"), "is shipped. Like it: -. All of them: `ascertain contract list`"),
        (("explain", "no.such"), "is shipped"),
        (("explain", "shopify.webhook"), "not about an effect"),
        (("explain", "stripe.v1.post", "--after", "soon"), "--after is 'soon'"),
        (("explain", "stripe.v1.post", "--accept", "key.at"), "cannot be accepted"),
        (("explain", "stripe.v1.post", "--late", "forever"), "late cannot be forever"),
    ],
)
def test_wrong_usage_is_said_in_one_line(args: tuple[str, ...], said: str) -> None:
    assert said in run(*args, code=2)

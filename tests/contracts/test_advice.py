"""What is said about a contract is what the rule would do, in sentences that exist."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from ascertain.cli import contract_texts
from ascertain.contracts import catalogue
from ascertain.core import advice, words
from ascertain.core.advice import advise, classes, needs, terms_of
from ascertain.core.contract import Class, duration, load, window_end
from ascertain.core.levels import accepted
from ascertain.core.model import FOREVER

EFFECTS = sorted(c.id for c in catalogue.shipped().values() if not (c.inbound and c.inbound.only))
AFTER = duration("25h")


def said(ident: str, **given: Any) -> tuple[tuple[str, str], tuple[str, str] | None]:
    made = advise(catalogue.find(ident), **given)
    now = (made.now.protection.value, made.now.permitted)
    return now, None if made.later is None else (made.later.protection.value, made.later.permitted)


@pytest.mark.parametrize(
    ("ident", "given", "now", "later"),
    [
        ("caldav.task.create", {}, ("identified", "replay_identity"), None),
        ("roundup.issue.create", {"unseen": ("retired issues",)},
         ("searchable", "look_then_send"), None),
        ("smtp.submit", {}, ("lagging", "look_only"), None),
        ("smtp.submit", {"trust_assumed_absence": True}, ("lagging", "look_then_send"), None),
        ("twilio.messages", {}, ("opaque", "person"), None),
        ("stripe.v1.post", {}, ("lagging", "look_only"), ("lagging", "look_only")),
        ("stripe.v1.post", {"late": "30s"}, ("idempotent", "look_then_replay"),
         ("lagging", "look_only")),
        ("stripe.v1.post", {"late": "30s", "accept": ["repeat.atomic", "undo"]},
         ("idempotent", "replay_key"), ("lagging", "look_then_send")),
        ("stripe.v2.post", {"late": "30s", "after": AFTER}, ("idempotent", "replay_key_quiet"),
         ("idempotent", "replay_key_quiet")),
        ("stripe.v2.post", {"late": "30s"}, ("idempotent", "replay_key_quiet"),
         ("opaque", "person")),
        ("salesforce.upsert", {"late": "30s", "lag": "10s"},
         ("identified, not race-free", "look_then_replay"), None),
        ("openai.images.generate", {"may_repeat": True}, ("repeatable", "redo"), None),
        ("square.payments.create", {"late": "30s", "keeps": "24h",
                                    "accept": ["repeat.answer"]},
         ("idempotent", "look_then_replay"), ("lagging", "look_then_send")),
    ],
    ids=range(13),
)  # fmt: skip
def test_what_is_permitted(
    ident: str, given: dict[str, Any], now: tuple[str, str], later: tuple[str, str] | None
) -> None:
    assert said(ident, **given) == (now, later)


@pytest.mark.parametrize(
    ("ident", "given", "why", "absence"),
    [
        ("stripe.v1.post", {}, "late_unknown", "quiet_unknown"),
        ("stripe.v1.post", {"late": "30s"}, "remembers_races", ""),
        ("stripe.v1.post", {"late": "1s", "accept": ["repeat.atomic"]}, "remembers", ""),
        ("square.payments.create", {"accept": ["repeat.answer"]}, "keeps_unknown",
         "quiet_unknown"),
        ("caldav.task.create", {}, "identity", ""),
        ("salesforce.upsert", {"late": "1s", "lag": "1s"}, "overwrites", ""),
        ("sql.insert_unique", {"late": "1s"}, "races", ""),
        ("wecom.message.send", {"accept": ["key.at", "repeat.answer", "key.form"]}, "content", ""),
        ("twilio.messages", {}, "no_key", ""),
        ("klaviyo.events", {}, "keeps_unknown", ""),
        ("feishu.im.message.create", {}, "again", ""),
        ("openai.images.generate", {"may_repeat": True}, "cost_only", ""),
        ("jira.issues.create", {"late": "1s", "lag": "1s"}, "no_key", "blind"),
        ("wordpress.posts.create", {"undoable": False}, "no_key", ""),
    ],
    ids=range(14),
)  # fmt: skip
def test_why(ident: str, given: dict[str, Any], why: str, absence: str) -> None:
    made = advise(catalogue.find(ident), **given).now
    assert (made.why, made.absence) == (why, absence)


def test_later_is_when_the_window_is_over_or_when_somebody_asks() -> None:
    c = catalogue.find("stripe.v2.post")
    end = window_end(terms_of(accepted(c)), 0)
    assert end is not None
    over = advise(c, late="30s").later
    assert over is not None
    assert (over.at, over.why) == (end, "window_over")
    asked = advise(c, late="30s", after=AFTER).later
    assert asked is not None
    assert (asked.at, asked.why) == (AFTER, "remembers_races")


def test_what_would_be_better_is_tried_before_it_is_said() -> None:
    better = {b.code: b for b in advise(catalogue.find("roundup.issue.create")).better}
    unique = better["unique_field"]
    assert (unique.value, unique.protection) == ("op_key", Class.IDENTIFIED)
    judge, *jira = advise(catalogue.find("jira.issues.create")).better
    assert judge.code == "ok_when"  # "201" is from memory
    assert [b.code for b in jira][:3] == ["declare", "unseen", "trust"]
    assert [b.permitted for b in jira][:3] == ["", "", "look_then_send"]
    assert jira[0].value == "lag, late"
    assert jira[1].value == "deleted"
    declared = advise(catalogue.find("stripe.v1.post"), late="30s", trust_assumed_absence=True)
    assert declared.better == ()
    raced = {b.code: b for b in advise(catalogue.find("sql.insert_unique"), late="1s").better}
    assert raced["prove_atomic"].protection is Class.IDENTIFIED
    told = {b.code: b.value for b in advise(catalogue.find("wechatpay.order"),
            accept=["late.fence"]).better}  # fmt: skip
    assert told["fence"].endswith("/close")
    image = {b.code: b for b in advise(catalogue.find("openai.images.generate")).better}
    assert image["may_repeat"].permitted == "redo"
    kept = advise(catalogue.find("klaviyo.events")).better[0]
    assert (kept.code, kept.protection) == ("keeps", Class.IDEMPOTENT)
    assert "ok_when" not in {b.code for b in advise(catalogue.find("klaviyo.events")).better}
    assert {b.code for b in advise(catalogue.find("feishu.im.message.create"),
            accept=["repeat.answer"]).better} >= {"keeps", "look_up", "events"}  # fmt: skip


def test_what_could_be_accepted_is_named_with_its_class() -> None:
    made = advise(catalogue.find("wechatpay.order"))
    assert {o.path for o in made.offers} == {
        "repeat.answer", "repeat.keeps", "late.fence", "refused.throttled", "undo", "ok.when",
    }  # fmt: skip
    assert made.all_accepted is not None
    assert made.all_accepted.now is Class.NOT_RACE_FREE
    taken = advise(catalogue.find("wechatpay.order"), accept=["repeat.answer"])
    assert "repeat.answer" not in {o.path for o in taken.offers}
    assert "repeat.answer" in taken.terms.assumed
    sure = advise(catalogue.find("caldav.task.create"))
    assert (sure.offers, sure.all_accepted) == ((), None)


def test_what_has_to_be_declared() -> None:
    assert needs(accepted(catalogue.find("caldav.task.create"))) == ()
    assert needs(accepted(catalogue.find("stripe.v2.post"))) == ("late",)
    assert needs(accepted(catalogue.find("jira.issues.create"))) == ("late", "lag")
    assert needs(load({"id": "a.b", "harm": "none"})) == ()
    assert classes(load({"id": "a.b", "harm": "none"})) == (Class.REPEATABLE, Class.REPEATABLE)


@pytest.mark.parametrize("ident", EFFECTS)
def test_every_contract_is_explained_in_sentences_that_exist(ident: str) -> None:
    c = catalogue.find(ident)
    names = [o.path for o in advise(c).offers]
    for given in ({}, {"late": "30s"}, {"late": "30s", "lag": "10s", "accept": names}):
        made = advise(c, **given)
        for moment in (made.now, made.later):
            if moment is None:
                assert window_end(made.terms, 0) in (None, FOREVER)
                continue
            for lang in words.LANGUAGES:
                assert contract_texts.tell(f"permit.{moment.permitted}", lang)
                assert contract_texts.tell(f"why.{moment.why}", lang, keeps="24h")
                if moment.absence:
                    assert contract_texts.tell(f"absence.{moment.absence}", lang)
        for better in made.better:
            assert contract_texts.tell(f"better.{better.code}", "zh", value=better.value)


def test_every_sentence_is_used_and_says_the_same_in_both_languages() -> None:
    code = Path(advice.__file__).read_text("utf-8")
    code += (Path(contract_texts.__file__).parent / "contract.py").read_text("utf-8")
    for key, (english, chinese) in contract_texts.CONTRACT_TEXTS.items():
        group, _, name = key.partition(".")
        assert f'"{name}"' in code or f'"{key}"' in code or group in ("status", "level"), key
        values = [set(re.findall(r"{(\w+)}", text)) for text in (english, chinese)]
        assert values[0] == values[1], key
        assert re.search("[\u4e00-\u9fff]", chinese) or key == "said.class", key
        assert not re.search("[\u4e00-\u9fff]", english), key

from __future__ import annotations

import pytest

from ascertain.runtime.audit import Wanted

LANGS = pytest.mark.parametrize("lang", ["en", "zh"])
SENTENCE = {
    "there": ("recorded as done", "记为已完成"),
    "cannot_tell": ("stays in review", "保持待核查"),
    "leave": ("stays unknown", "结果仍不明"),
    "not_there": ("without proof", "没有证据"),
}


@pytest.fixture
def lost(cli):
    cli.fate("gone")
    return cli.app().opaque.submit(order="lamp", wait=0)


@LANGS
@pytest.mark.parametrize("answer", list(SENTENCE))
def test_a_decision_says_first_what_will_happen(cli, lost, answer, lang) -> None:
    more = {"there": ["--ref", "o-1"], "not_there": ["--accept-risk", "--why", "looked"]}
    args = ["review", "decide", lost.id, answer, "--by", "bo", *more.get(answer, [])]
    app = answer == "not_there"
    said = SENTENCE[answer][lang == "zh"]
    declined = cli(*args, "--lang", lang, app=app, typed="n\n")
    assert (declined.exit_code, said in declined.stderr) == (4, True), declined.output
    assert cli.json("op", "show", lost.id)["decisions"][0] == "there"  # nothing was changed
    agreed = cli(*args, "--lang", lang, app=app, typed="y\n")
    assert agreed.exit_code == 0, agreed.output
    after = cli.json("op", "show", lost.id)
    assert after["evidence"][-1]["by"] == "bo"
    state = {"there": "done", "leave": "not_done"}.get(answer, "unknown")
    assert after["operation"]["state"] == state


def test_a_decision_answers_json_with_the_receipt(cli, lost) -> None:
    args = ("review", "decide", lost.id, "there", "--by", "bo", "--ref", "o-1", "--yes")
    assert cli.json(*args)["operation"]["ref"] == "o-1"


@pytest.mark.parametrize(
    ("args", "code", "error"),
    [
        pytest.param(["there"], 2, "usage", id="there without a reference"),
        pytest.param(["duplicate_settled"], 4, "refused", id="there is no duplicate"),
        pytest.param(["leave", "--seen", "1"], 4, "conflict", id="something newer"),
        pytest.param(["not_there"], 4, "refused", id="its declaration is not loaded"),
    ],
)
def test_what_cannot_be_decided_is_refused_and_changes_nothing(
    cli, lost, args, code, error
) -> None:
    before = cli.json("op", "show", lost.id)
    told = cli.json("review", "decide", lost.id, *args, "--by", "bo", "--yes", code=code)
    assert told["error"]["code"] == error
    assert cli.json("op", "show", lost.id) == before


def test_the_stamp_that_was_shown_decides(cli, lost) -> None:
    stamp = cli.json("review", "list")["reviews"][0]["stamp"]
    done = cli("review", "decide", lost.id, "leave", "--by", "bo", "--seen", stamp, "--yes")
    assert done.exit_code == 0


def test_the_risk_needs_a_reason_and_on_a_risky_target_a_second_person(cli) -> None:
    cli.fate("gone")
    lost = cli.app().risky.submit(order="lamp", wait=0)
    args = ["review", "decide", lost.id, "not_there", "--yes"]

    def decide(*more: str) -> tuple[int, str]:
        done = cli(*args, *more, app=True)
        return done.exit_code, done.stderr

    code, said = decide("--by", "bo")
    assert (code, "--accept-risk" in said) == (4, True)
    code, said = decide("--by", "bo", "--accept-risk")
    assert (code, "--why" in said) == (2, True)
    risk = ("--accept-risk", "--why", "looked twice")
    assert "needs a second person" in decide("--by", "bo", *risk)[1]
    assert "needs a second person" in decide("--by", "bo", *risk)[1]
    assert "is the second person" in decide("--by", "cy", *risk)[1]
    assert cli.json("op", "show", lost.id)["operation"]["waiting_on"] == "clock"


# --- approvals -----------------------------------------------------------------------------


@LANGS
def test_an_approval_shows_exactly_what_would_be_sent(cli, lang) -> None:
    asked = cli.app().frozen.submit(order="lamp")
    for done in (
        cli("approval", "list", "--lang", lang),
        cli("approval", "approve", asked.id, "--by", "cy", "--lang", lang, typed="n\n"),
    ):
        assert "POST http://127.0.0.1:9/orders" in done.output
        assert f'{{"order": "lamp", "op": "{asked.target_key}"}}' in done.output
    assert cli.json("op", "show", asked.id)["operation"]["waiting_on"] == "approval"
    agreed = cli("approval", "approve", asked.id, "--by", "cy", "--lang", lang, "--yes")
    assert {"en": "will be sent next", "zh": "即将发送"}[lang] in agreed.stdout
    none = cli("approval", "list", "--lang", lang).output
    assert {"en": "Nothing waits", "zh": "没有待审批"}[lang] in none


@LANGS
def test_a_rejection_stops_the_operation(cli, lang) -> None:
    asked = cli.app().approved.submit(order="lamp")
    args = ("approval", "reject", asked.id, "--by", "cy", "--note", "no", "--lang", lang, "--yes")
    done = cli(*args)
    assert done.exit_code == 0
    assert {"en": "nothing was sent", "zh": "未发送任何内容"}[lang] in done.stdout
    again = cli(*args)
    assert again.exit_code == 4


def test_another_digest_than_the_one_seen_is_refused(cli) -> None:
    asked = cli.app().frozen.submit(order="lamp")
    [listed] = cli.json("approval", "list")["approvals"]
    assert set(listed) == {
        "operation", "action", "key", "title", "role", "digest", "state", "asked_at", "by",
        "request", "input", "body",
    }  # fmt: skip
    args = ("approval", "approve", asked.id, "--by", "cy", "--yes", "--digest")
    assert cli.json(*args, "0" * 64, code=4)["error"]["code"] == "approval_stale"
    assert cli.json(*args, listed["digest"])["operation"]["waiting_on"] == "clock"


def test_what_is_decided_here_is_audited_as_done_here(cli, lost) -> None:
    from ascertain.runtime.audit import Wanted

    cli.json("review", "decide", lost.id, "leave", "--by", "bo", "--why", "old", "--yes")
    [line] = cli.app().ledger.log.find("default", Wanted(subject=lost.id))
    assert (line.did, line.actor, line.via, line.reason) == ("review.decide", "bo", "cli", "old")
    assert line.before != line.after


# --- a renewed authorization ---------------------------------------------------------------


@LANGS
def test_what_waits_for_an_authorization_goes_on_once_it_is_said_to_be_renewed(cli, lang) -> None:
    app = cli.app()
    cli.fate("closed")
    refused = [app.order.submit(order=name, wait=0) for name in ("a", "b")]
    cli.fate("gone")
    lost = app.opaque.submit(order="lamp", wait=0)
    cli.fate("ok")
    renew = ("op", "renew", "--by", "it", "--lang", lang)
    nothing = cli(*renew, refused[0].id, lost.id, app=True)
    assert nothing.exit_code == 4
    assert {"en": "wait for an authorization", "zh": "并非在等待授权"}[lang] in nothing.stderr
    assert app.ledger.get(refused[0].id).waiting_on == "authorization"  # none, or all of them
    said = cli(*renew, "a", app=True).output
    assert {"en": "will be sent next", "zh": "即将执行"}[lang] in said
    [other] = cli.json(*renew, "--action", "shop.order", app=True)["operations"]
    assert other["id"] == refused[1].id
    assert cli("work", "--once", app=True).exit_code == 3  # the lost one is with a person
    assert {app.ledger.get(r.id).state for r in refused} == {"done"}
    audit = app.ledger.log.find("default", Wanted(did="operation.renew"))
    assert [(line.actor, line.via) for line in audit] == [("it", "cli")] * 2
    assert cli(*renew, "--action", "shop.order", app=True).exit_code == 0  # none is left
    assert cli(*renew, app=True).exit_code == 2
    assert cli(*renew, "--action", "shop.odrer", app=True).exit_code == 2

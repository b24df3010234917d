from __future__ import annotations

import pytest

from ascertain import Done

LANGS = pytest.mark.parametrize("lang", ["en", "zh"])
RECEIPT = {
    "id", "namespace", "action", "key", "title", "state", "reason", "waiting_on", "due_at",
    "owner", "ref", "result", "reused", "protection", "assumptions", "attempts", "lookups",
    "verified", "target_key", "confirmed_at", "confirmed_by", "next_step", "user_message", "run",
    "warnings",
}  # fmt: skip


@LANGS
def test_operations_are_listed_with_their_state_in_words(cli, lang) -> None:
    app = cli.app()
    cli.fate("gone")
    app.opaque.submit(order="lamp", wait=0)
    cli.fate("ok")
    app.order.submit(order="chair", wait=0)
    shown = cli("op", "list", "--lang", lang).output
    assert {"en": "outcome unknown", "zh": "结果不明"}[lang] in shown
    assert {"en": "done", "zh": "已完成"}[lang] in shown
    assert "ref-chair" in shown


def test_the_list_is_filtered_and_goes_on_page_by_page(cli) -> None:
    app = cli.app()
    with app.ledger.run("autumn"):
        ids = [app.order.submit(order=f"o{n}", wait=0).id for n in range(3)]
    cli.fate("gone")
    other = app.opaque.submit(order="lamp", wait=0)

    def listed(*args: str) -> list[str]:
        return [r["id"] for r in cli.json("op", "list", *args)["operations"]]

    assert listed() == [*ids, other.id]
    assert listed("--state", "unknown", "--state", "running") == [other.id]
    assert listed("--action", "shop.order") == ids
    assert listed("--key", "o1") == [ids[1]]
    assert listed("--text", "LAM") == [other.id]
    assert listed("--unsettled") == [other.id]
    assert listed("--run", "autumn") == ids
    page = cli.json("op", "list", "--limit", "2")
    assert (page["next"], len(page["operations"])) == (ids[1], 2)
    assert listed("--after", ids[1]) == [ids[2], other.id]
    assert cli.json("op", "list", "--namespace", "other") == {"operations": [], "next": None}


def test_the_json_of_a_receipt_is_stable(cli) -> None:
    cli.app().order.submit(order="lamp", wait=0)
    [bare] = cli.json("op", "list")["operations"]
    assert set(bare) == RECEIPT
    assert bare["protection"] is None  # its declaration is not loaded: better none than a wrong one
    assert bare["assumptions"] is None
    [whole] = cli.json("op", "list", app=True)["operations"]
    assert whole["protection"] == "searchable"
    assert "lag=0s" in whole["assumptions"]


@LANGS
def test_one_operation_is_shown_with_attempts_and_evidence(cli, lang) -> None:
    cli.fate("lost")
    receipt = cli.app().opaque.submit(order="lamp", wait=0)
    shown = cli("op", "show", receipt.id, "--lang", lang, app=True).output
    words = {
        "en": ["outcome unknown", "opaque", "sends_within=1s", "Evidence", "execute",
               "No clear answer came", "TimeoutError"],
        "zh": ["结果不明", "无法查证", "sends_within=1s", "证据", "执行", "没有得到明确答复",
               "TimeoutError"],
    }  # fmt: skip
    for word in words[lang]:
        assert word in shown
    assert "+03:30" in shown  # the reader's time zone


@LANGS
def test_a_race_and_the_targets_own_report_have_their_words(cli, lang) -> None:
    app = cli.app()
    cli.fate("lost")
    lost = app.racy.submit(order="lamp", wait=0)
    app.ledger.report(lost, Done(ref="r-1"), by="crm-webhook", report="e-1")
    shown = cli("op", "show", lost.id, "--lang", lang, app=True)
    assert shown.exit_code == 0, shown.output
    assert {"en": "not race-free", "zh": "并发不保证"}[lang] in shown.output
    assert {"en": "by crm-webhook", "zh": "来自 crm-webhook"}[lang] in shown.output


def test_the_json_of_an_operation_is_stable(cli) -> None:
    cli.fate("lost")
    receipt = cli.app().opaque.submit(order="lamp", wait=0)
    data = cli.json("op", "show", "lamp")
    assert set(data) == {
        "operation", "references", "attempts", "evidence", "reviews", "decisions"
    }  # fmt: skip
    assert set(data["operation"]) == RECEIPT | {"stamp"}
    assert data["operation"]["id"] == receipt.id
    assert set(data["attempts"][0]) == {
        "token", "kind", "outcome", "epoch", "started_at", "ended_at", "deadline", "worker"
    }  # fmt: skip
    assert set(data["evidence"][0]) == {"at", "kind", "shows", "attempt", "by", "says", "data"}
    assert data["attempts"][0]["token"] == data["evidence"][0]["attempt"]  # text: 63 bits
    assert set(data["reviews"][0]) == {"id", "road", "owner"}
    assert data["decisions"] == ["there", "not_there", "cannot_tell", "leave"]


def test_a_key_of_several_actions_asks_for_the_id(cli) -> None:
    app = cli.app()
    ids = [app.order.submit(order="lamp", wait=0).id, app.approved.submit(order="lamp").id]
    done = cli("op", "show", "lamp")
    assert done.exit_code == 2
    assert all(ident in done.stderr for ident in ids)


def test_what_others_wrote_cannot_repaint_the_terminal(cli) -> None:
    cli.app().order.using(title="\x1b[2J[red]lamp[/red]").submit(order="a", wait=0)
    shown = cli("op", "show", "a").output
    assert "\x1b" not in shown
    assert "[red]lamp[/red]" in shown


@LANGS
def test_confirm_asks_the_target_again(cli, lang) -> None:
    cli.fate("lost")
    app = cli.app()
    lost = app.order.enqueue(order="lamp")
    done = cli("op", "confirm", lost.id, "--lang", lang, app=True)
    assert done.exit_code == 0, done.output
    cli.fate("gone")
    gone = app.opaque.submit(order="chair", wait=0)
    refused = cli("op", "confirm", gone.id, "--lang", lang, app=True)
    assert refused.exit_code == 4
    assert gone.key in refused.stderr


@LANGS
def test_reviews_are_listed_with_question_owner_and_reason(cli, lang) -> None:
    assert cli("review", "list", "--lang", lang).exit_code == 2  # no store yet
    cli.fate("gone")
    cli.app().opaque.submit(order="lamp", wait=0)
    shown = cli("review", "list", "--lang", lang).output
    words = {"en": ["did it happen?", "anna", "no way here to ask"],
             "zh": ["是否已执行？", "anna", "无法向目标系统查询结果"]}  # fmt: skip
    for word in words[lang]:
        assert word in shown


def test_the_json_of_a_review_is_stable(cli) -> None:
    cli.fate("gone")
    cli.app().opaque.submit(order="lamp", wait=0)
    [review] = cli.json("review", "list")["reviews"]
    assert set(review) == {
        "id", "operation", "action", "key", "title", "state", "road", "owner", "taken_by",
        "opened_at", "snoozed_until", "says", "decisions", "stamp",
    }  # fmt: skip
    assert set(review["says"]) == {"en", "zh"}


@LANGS
def test_a_run_is_green_only_when_all_it_expects_is_done(cli, lang) -> None:
    app = cli.app()
    expects = [app.order.expected(order=o) for o in ("lamp", "chair")]
    with app.ledger.run("autumn", expects=expects):
        app.order.submit(order="lamp", wait=0)
    missing = cli("run", "show", "autumn", "--lang", lang)
    assert missing.exit_code == 3
    assert {"en": "missing", "zh": "缺失"}[lang] in missing.output
    with app.ledger.run("autumn"):
        app.order.submit(order="chair", wait=0)
    green = cli("run", "show", "autumn", "--lang", lang)
    assert green.exit_code == 0
    assert {"en": "autumn: done", "zh": "autumn：已完成"}[lang] in green.output
    data = cli.json("run", "show", "autumn")
    assert set(data) == {"run", "name", "standing", "members", "green"}
    assert set(data["members"][0]) == {"action", "key", "standing", "operation", "ref"}
    nowhere = cli("run", "show", "spring", "--lang", lang)
    assert nowhere.exit_code == 2
    assert "autumn" in nowhere.stderr


def test_a_key_is_found_as_people_write_it_and_as_it_is_stored(cli) -> None:
    app = cli.app()
    one = app.order.submit(order="#1001", wait=0)
    assert one.key == "%231001"
    for written in ("#1001", "%231001"):
        assert cli.json("op", "show", written)["operation"]["id"] == one.id
        [found] = cli.json("op", "list", "--key", written)["operations"]
        assert found["id"] == one.id
        [receipt] = app.ledger.find(key=written)
        assert receipt.id == one.id
    assert cli("op", "show", "#1002").exit_code == 2

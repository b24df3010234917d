"""What a person sees of one operation, and of many: details, filters, saved views, alarms."""

from __future__ import annotations

import gzip
import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from ascertain.console import pages, saved
from ascertain.console.app import attach
from ascertain.console.assumed import MEANINGS, assumed
from ascertain.console.did import DID
from ascertain.console.hiding import MARK, hidden, hidden_facts
from ascertain.console.reader import Reader
from ascertain.console.timeline import timeline
from ascertain.core import intake
from ascertain.core.candidates import Candidate, Fact
from ascertain.core.contract import Terms
from ascertain.runtime.audit import FIRST_MOMENT, LAST_MOMENT, Wanted
from ascertain.runtime.desk import Entry
from ascertain.store.base import Posting
from console.conftest import CONFIG, Browser, Office
from server.house import house
from server.processes import until
from server.target import Shop

DAY = 86_400_000_000  # µs
GROUPS = "approval|bulk|event|link|member|namespace|operation|person|review|session|target|token"
LOGGED = rf'"((?:{GROUPS})\.[a-z_]+)"'


@pytest.fixture
def anna(office: Office) -> Browser:
    return office.person("anna", overrides=1)


def lost(
    office: Office, target: Shop, name: str = "lamp", action: str = "draft", **more: Any
) -> str:
    """An operation that was done, and whose answer was lost."""
    target.fates[name] = ["drop"]
    made = office.submit(action, name=name, **more)
    return str(made["id"])


# --- one operation ---------------------------------------------------------------------------


def test_a_decision_shows_what_is_known_and_what_is_not(
    office: Office, anna: Browser, target: Shop
) -> None:
    lost(office, target)
    page = anna.get("/review")
    known, unknown = page.split("What nobody can show yet")
    assert "The intent was recorded at" in known
    assert "We began to send the request." in known
    assert "Whether it took effect at the target." in unknown
    assert "only somebody who looks there can tell" in unknown


class Twice(list[dict[str, Any]]):
    """What a target made, each of it twice."""

    def append(self, order: dict[str, Any]) -> None:
        super().append(order)
        super().append({**order, "id": f"{order['id']}-2"})


def test_what_will_happen_is_said_in_the_readers_time(
    office: Office, anna: Browser, target: Shop
) -> None:
    anna.client.cookies.set("zone", "Asia/Shanghai")
    target.orders = Twice()
    ident = lost(office, target, action="late")
    case = office.serving.space("default").ledger.case_of(ident)
    reader = Reader(zone="Asia/Shanghai")
    ends = (case.status.last_deadline or 0) + 2 * 30 * 60 * 1_000_000
    page = anna.get("/review")
    now = office.serving.store.now()
    assert f"has not ended (it does at {reader.time(ends, now)})" in page
    assert "Is “Order lamp” in shop?" in page
    assert "UTC)" not in page.replace("(UTC+8)", "")


def test_attempts_and_evidence_are_one_timeline_with_places_to_link_to(
    office: Office, anna: Browser, target: Shop
) -> None:
    ident = lost(office, target)
    [attempt] = office.serving.store.attempts(ident)
    page = anna.get(f"/op/{ident}")
    assert page.index(f'id="att_{attempt.token}"') < page.index('id="e1"')
    assert "Attempt 1 begins." in page
    assert "RemoteProtocolError" in page
    assert "body_sha256" in page  # what was sent, folded
    assert re.search(r"POST http://[\d.:]+/orders", page)


def test_contents_are_kept_from_pages_where_the_server_says_so(
    office: Office, anna: Browser, target: Shop
) -> None:
    ident = office.submit("order", name="lamp", note="a private remark")["id"]
    assert "a private remark" in anna.get(f"/op/{ident}")
    office.serving.table = replace(office.serving.table, hide_payloads=True)
    page = anna.get(f"/op/{ident}")
    assert "a private remark" not in page
    assert "body_sha256" not in page
    assert "This server shows no contents on its pages." in page


def test_a_field_that_a_target_hides_is_shown_nowhere(
    office: Office, anna: Browser, target: Shop
) -> None:
    targets = office.serving.understood.targets
    targets["shop"] = replace(targets["shop"], hide=("name",))
    ident = office.submit("order", name="Erika", note="a remark")["id"]
    page = anna.get(f"/op/{ident}")
    folded = page[page.index('id="evidence"') :]
    assert "a remark" in folded
    assert "Erika" not in folded
    assert MARK in folded


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ('{"a": {"email": "x@y"}, "b": 1}', '{"a":{"email":"[hidden]"},"b":1}'),
        ('[{"email": ["x"]}]', '[{"email":"[hidden]"}]'),
        ('{"n": 1, "email": "x@\\"y", "b', '{"n": 1, "email": "[hidden]", "b'),
        ('{"email": 12, "b": [', '{"email": "[hidden]", "b": ['),
        ('{"email": "unfinis', '{"email": "[hidden]"'),
        ('{"n": 1, "email": {"home": "x@y"}, "b', '{"n": 1, "email": [hidden]…'),
        ("plain words", "plain words"),
    ],
)
def test_a_field_is_hidden_in_whole_and_in_cut_off_answers(text: str, shown: str) -> None:
    assert hidden(text, ("email",)) == shown
    assert hidden(text, ()) == text


def test_hidden_facts_still_match() -> None:
    facts = [Fact(name="to.email", sent="x@y", found="x@y", match=True), Fact(name="n", sent="1")]
    [one] = hidden_facts([Candidate(ref="1", at=0, source="look_up", facts=facts)], ("email",))
    assert [(f.sent, f.found, f.match) for f in one.facts] == [
        (MARK, MARK, True), ("1", None, None),
    ]  # fmt: skip


def test_a_credential_in_an_input_is_not_shown(office: Office, anna: Browser) -> None:
    ident = office.submit("order", name="lamp", note="api_key=sk-very-secret-value")["id"]
    assert "sk-very-secret-value" not in anna.get(f"/op/{ident}")


def test_an_operation_is_found_by_its_key(office: Office, anna: Browser) -> None:
    ident = office.submit("order", name="spring/lamp")["id"]
    for path in ("/op/spring/lamp", "/op/spring%252Flamp"):
        anna.get(path)
        assert f"/op/{ident}" in anna.page
    office.submit("draft", name="vase")
    office.submit("order", name="vase")
    assert "Create the draft vase" in anna.get("/op/vase")  # of two actions: their list
    assert '<input id="q" type="search" name="q" value="vase"' in anna.page
    anna.get("/op/nothing-like-it", 404)


def test_an_event_is_found_by_its_id_alone(tmp_path: Path, target: Shop) -> None:
    hooks = "".join(
        f"\n[hooks.{name}]\nkind = 'hmac'\nsecrets = [{{{{ env = 'HOOK' }}}}]\n"
        "event_id = 'header:X-Event'\nsignature = {{ header = 'X-Signature' }}\n"
        for name in ("shop", "till")
    )
    with house(tmp_path, (CONFIG + hooks).format(target=target.url), pages=attach) as home:
        home.__class__ = Office
        assert isinstance(home, Office)
        home.browsers = []
        anna, li = home.person("anna"), home.person("li", lang="zh")
        for source, ident in (("shop", "a/1?x"), ("shop", "b"), ("till", "b")):
            given = {"source": source, "id": ident, "data": {}}
            assert home.client.post("/v1/events", json=given).status_code == 200
        until(lambda: intake.NO_MAPS in anna.get("/event/till/b"))
        anna.get("/event/a%2F1%3Fx")
        assert "<code>a/1?x</code>" in anna.page
        anna.get("/event/b")
        assert "Several senders" in anna.page
        assert 'href="/event/shop/b"' in anna.page
        assert 'href="/event/till/b"' in anna.page
        for source in ("shop", "till"):
            assert "<code>b</code>" in anna.get(f"/event/{source}/b")
        assert intake.WHY_ZH[intake.NO_MAPS] in li.get("/event/till/b")
        assert intake.WHY_ZH[intake.NO_MAPS] in li.get("/events")
        assert "What would it lead to now?" in anna.get("/event/till/b")
        tried = anna.get("/event/till/b?tried=1").partition('id="tried"')[2]
        assert intake.NO_MAPS in tried.partition("How it arrived")[0]
        no_map = f"{intake.NO_MAP}{intake.TOPIC}'paid'"
        assert intake.why_in("zh", no_map) == f"{intake.WHY_ZH[intake.NO_MAP]}；主题 'paid'"
        assert [intake.why_in("en", no_map), intake.why_in("zh", "KeyError")] == [
            no_map,
            "KeyError",
        ]
        anna.get("/event/c", 404)
        anna.get("/event/shop/c", 404)
        eve = home.person("eve", namespace="other")
        eve.get("/event/b", 404)
        for browser in home.browsers:
            browser.client.close()


def test_a_link_into_another_namespace_leads_there(office: Office, anna: Browser) -> None:
    ident = office.submit("order", name="lamp")["id"]
    boss = office.person("boss", namespace="*")
    boss.get("/prefer?namespace=other")
    assert "lamp" not in boss.get("/operations")
    assert "lamp" in boss.get(f"/op/{ident}")
    assert "lamp" in boss.get("/operations")  # and stays there
    eve = office.person("eve", namespace="other")
    eve.get(f"/op/{ident}", 404)
    eve.get("/prefer?namespace=default")  # chosen, but he has no right there
    assert "lamp" not in eve.get("/operations")


def test_a_second_effect_on_purpose_is_a_new_operation_with_its_own_approval(
    office: Office, anna: Browser, target: Shop
) -> None:
    ident = office.submit("order", name="lamp")["id"]
    assert "A second one on purpose" in anna.get(f"/op/{ident}")
    anna.send(f"/op/{ident}", do="repeat", why="")
    assert "say why" in anna.page
    anna.send(f"/op/{ident}", do="repeat", why="the first one broke")
    assert "It is sent once somebody has approved it." in anna.page
    assert "Needs approval" in anna.page
    assert ident in anna.page  # what it repeats
    assert target.made() == {"lamp": 1}
    lines = office.serving.accounts.log.find("default", before="", limit=20, wanted=_everything())
    assert "operation.repeat" in {line.did for line in lines}


def _everything() -> Wanted:
    return Wanted(actor=None, did=None, subject=None, since=FIRST_MOMENT, until=LAST_MOMENT)


def test_the_target_is_asked_again(office: Office, anna: Browser, target: Shop) -> None:
    ident = office.submit("searched", name="lamp")["id"]
    before = len(target.asked)
    anna.get(f"/op/{ident}")
    anna.send(f"/op/{ident}", do="confirm")
    assert "what it answered stands in the evidence" in anna.page
    asked = target.asked[before:]
    assert asked
    assert {one["method"] for one in asked} == {"GET"}  # nothing was sent again


def test_who_may_only_look_changes_nothing(office: Office, anna: Browser, target: Shop) -> None:
    ident = office.submit("searched", name="lamp")["id"]
    looker = office.person("vera", role="viewer", decides=0, approves=0)
    page = looker.get(f"/op/{ident}")
    assert 'name="do"' not in page.replace('name="do" value="others"', "")
    for do in ("confirm", "repeat", "renew"):
        looker.send(f"/op/{ident}", 403, do=do, why="x")
    anna.get(f"/op/{ident}")
    anna.send(f"/op/{ident}", 422, do="nonsense")


def test_a_decision_is_corrected_by_a_later_one(
    office: Office, anna: Browser, target: Shop
) -> None:
    ident = lost(office, target)
    review = re.search(r'action="(/review/[^"]+)"', anna.get("/review"))[1]
    anna.send(review, do="leave", seen=anna.field("seen"), why="nobody knows")
    assert "Correct this decision" in anna.get(review)
    given = {"seen": anna.field("seen"), "other_ref": "1", "why": "I found it"}
    anna.send(review, do="there", correct="1", **given)
    state = office.client.get(f"/v1/operations/{ident}").json()
    assert (state["state"], state["ref"]) == ("done", "1")
    page = anna.get(f"/op/{ident}")
    assert "nobody knows" in page  # what was decided first stays


# --- approvals -------------------------------------------------------------------------------


def test_a_guest_gets_a_link_to_exactly_this_request(
    office: Office, anna: Browser, target: Shop
) -> None:
    office.submit("publish", name="lamp", body="A warm lamp.", version=1)
    ask = re.search(r'action="(/approvals/[^"]+)"', anna.get("/approvals"))[1]
    anna.send(ask, do="guest", to="Client, Inc.", days="3")
    link = re.search(r"/link/[\w-]+", anna.page)[0]
    anna.get(ask)
    assert link not in anna.page  # shown once
    assert "Client, Inc." in anna.page
    guest = office.browser()
    assert "A warm lamp." in guest.get(link)
    guest.send(link, digest=guest.field("digest"), note="", answer="approve")
    assert "You approved exactly this." in guest.page
    looker = office.person("vera", role="viewer", decides=0, approves=0)
    looker.get(ask)
    looker.send(ask, 403, do="guest", to="me", days="1")


# --- lists -----------------------------------------------------------------------------------


def test_reviews_are_listed_by_with_whom_they_are(
    office: Office, anna: Browser, target: Shop
) -> None:
    lost(office, target, "lamp")
    lost(office, target, "vase")
    ben = office.person("ben")
    assert "Nothing matches." in anna.get("/review?group=others")
    review = re.search(r'action="(/review/[^"]+)"', ben.get("/review"))[1]
    ben.send(review, do="take")
    assert len(re.findall('<li class="row', anna.get("/review?group=others"))) == 1
    assert "Handed to others<span>1</span>" in anna.page
    assert "Nothing matches." in anna.get("/review?owner=nobody")
    assert len(re.findall('<li class="row', anna.get("/review?owner=ben"))) == 1
    assert "(2) Review queue" in anna.page


def test_a_time_filter_is_of_the_readers_days(office: Office, anna: Browser) -> None:
    office.submit("order", name="lamp")
    today = datetime.fromtimestamp(office.serving.store.now() / 1e6, tz=UTC).strftime("%Y-%m-%d")
    assert "/op/" in re.sub('href="/op/"', "", anna.get(f"/operations?since={today}&until={today}"))
    assert "Nothing matches." in anna.get("/operations?until=2020-01-01")
    file = re.search(r'href="(/v1/operations\.csv\?[^"]+)"', anna.get(f"/operations?since={today}"))
    assert file is not None
    answer = anna.client.get(file[1].replace("&amp;", "&"))
    assert answer.status_code == 200, answer.text
    assert answer.text.startswith("\ufeffid,")
    assert "lamp" in answer.text
    shanghai = Reader(zone="Asia/Shanghai")
    assert shanghai.day("2026-11-30") == Reader().day("2026-11-30") - 8 * DAY // 24
    assert shanghai.day("2026-11-30", end=True) == shanghai.day("2026-12-01")
    assert [Reader().day(text) for text in ("", "tomorrow", "2026-13-01")] == [None] * 3


def test_the_audit_is_filtered_and_goes_into_a_file(office: Office, anna: Browser) -> None:
    anna.get("/targets")
    anna.send("/targets/shop", do="pause", why="=1+1")
    page = anna.get("/audit?did=target.pause&actor=anna")
    assert "=1+1" in page
    assert "member.set" not in page
    file = re.search(r'href="(/v1/audit\.csv\?[^"]+)"', page)
    assert file is not None
    answer = anna.client.get(file[1].replace("&amp;", "&"))
    assert "'=1+1" in answer.text
    assert "member.set" not in answer.text
    assert "Nothing matches." in anna.get("/audit?until=2020-01-01")


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_the_audit_says_in_words_who_did_what_and_from_where(
    office: Office, target: Shop, lang: str
) -> None:
    lost(office, target)
    li = office.person("li", lang=lang)
    review = re.search(r'action="(/review/[^"]+)"', li.get("/review"))
    assert review is not None
    li.send(review[1], do="take")
    page = li.get("/audit")
    assert f"{DID['review.take'][lang == 'zh']}<small>review.take</small>" in page
    assert re.search(r"session:\w+ · 127\.0\.0\.1", page)


def test_everything_that_is_logged_has_its_words() -> None:
    """Codes stand in the code as they are written, or as a group and a verb."""
    runtime = Path(__file__).parents[2] / "src" / "ascertain" / "runtime"
    logged = {
        code
        for file in runtime.glob("*.py")
        for code in re.findall(LOGGED, file.read_text("utf-8"))
    }
    assert logged <= set(DID)
    assert "review.decide" in logged


def test_a_server_that_only_reads_says_so(office: Office, anna: Browser) -> None:
    office.serving.read_only = True
    assert "This server only reads now" in anna.get("/operations")


def test_a_list_is_kept_under_a_name_and_forgotten(office: Office, anna: Browser) -> None:
    anna.get("/operations?q=lamp&state=done")
    anna.send("/operations/views", do="keep", query="q=lamp&state=done&after=x", name=" My  lamps ")
    assert '<a class="chip view" href="/operations?q=lamp&amp;state=done"' in anna.page
    assert "My lamps" in anna.get("/operations")
    [name] = [n for n in anna.client.cookies if n.startswith("views-")]
    ben = office.person("ben")
    ben.client.cookies.set(name, anna.client.cookies[name])  # the same browser, somebody else
    assert "My lamps" not in ben.get("/operations")
    anna.send("/operations/views", do="forget", name="My lamps", query="")
    assert "My lamps" not in anna.get("/operations")


def test_saved_views_fit_into_a_cookie() -> None:
    views: list[saved.View] = []
    for number in range(30):
        views = saved.with_view(views, f"列表 {number} " + "x" * 60, {"q": "灯" * 30})
        kept = saved.kept(views)
        assert len(kept) <= saved.BYTES
    names = [view.name for view in saved.views_of({saved.cookie_of("a"): kept}, "a")]
    assert names[0].startswith("列表 29")
    assert len(names) > 1
    assert saved.views_of({saved.cookie_of("a"): "!"}, "a") == []
    assert saved.views_of({saved.cookie_of("a"): kept}, "b") == []
    assert saved.with_view([], "", {"q": "x"}) == saved.with_view([], "x", {}) == []


def test_a_target_that_does_not_answer_is_named_beside_the_queue(
    office: Office, anna: Browser, target: Shop
) -> None:
    lost(office, target)
    gates = office.serving.space("default").engine.gates
    gate = gates.of("shop")
    closed = replace(gate, state="closed", since=office.serving.store.now())
    added = Posting((("gate_add", closed),))
    office.serving.store.post([added])
    assert "We cannot check shop now" in anna.get("/review")


def test_of_a_very_large_run_no_cells_are_drawn(
    office: Office, anna: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("lamp", "vase"):
        ident = office.submit("order", name=name, run="autumn")["id"]
    assert anna.get(f"/op/{ident}").count('class="done"') == 2
    monkeypatch.setattr("ascertain.console.detail.STANDS", 1)
    assert "more than 1 items" in anna.get(f"/op/{ident}")


# --- targets, alarms -------------------------------------------------------------------------


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_a_target_says_what_its_contracts_permit(office: Office, lang: str) -> None:
    office.submit("order", name="lamp")
    anna = office.person("anna", lang=lang)
    page = anna.get("/targets")
    for words in {
        "en": ("After a lost answer", "nobody deletes it at the target", "ms in the middle"),
        "zh": ("答复丢失后", "期间没有人在目标系统中删除它", "中位数"),
    }[lang]:
        assert words in page
    page = anna.get("/contracts/shop.order")
    assert "repeat.keeps" in page
    assert {"en": "1 d", "zh": "1 天"}[lang] in page
    assert {"en": "2 s", "zh": "2 秒"}[lang] in page
    assert "True" not in page
    anna.get("/contracts/no.such", 404)
    nothing = {"en": "no contract: nothing is protected", "zh": "没有保护约定：不受任何保护"}[lang]
    assert f"<h2>{nothing}</h2>" in anna.get("/contracts/none.opaque")


def test_every_assumption_that_may_be_printed_is_said_in_words() -> None:
    source = Path(__file__).parents[2] / "src" / "ascertain" / "runtime" / "action.py"
    printed = {*re.findall(r'extra\.append\("(\w+)', source.read_text("utf-8"))}
    listed = re.search(r"for n in \((.*?)\) if getattr\(declared, n\)", source.read_text("utf-8"))
    assert listed is not None
    printed |= {*re.findall(r'"(\w+)"', listed[1]), "late", "lag", "keeps", "nobody_deletes"}
    assert printed == set(MEANINGS)
    terms = Terms(late=30_000_000, assumed=("late", "ok.when"))
    assert assumed(terms, Reader(lang="en"))[0].endswith("30 s after the time for sending is over")
    assert "30 秒内" in assumed(terms, Reader(lang="zh"))[0]
    assert "ok.when" in assumed(terms, Reader(lang="zh"))[1]


@pytest.mark.parametrize(
    ("kind", "shows", "source"),
    [
        ("finding", "done", "target"),
        ("finding", "unknown", "record"),  # no answer came
        ("decision", "unknown", "person"),
        ("review", "", "person"),
        ("expired", "unknown", "rule"),
        ("restored", "unknown", "rule"),
        ("superseded", "", "record"),
    ],
)
def test_every_line_of_the_evidence_says_its_source(kind: str, shows: str, source: str) -> None:
    says = {"en": "x", "zh": "x"}
    seen = Entry(at=1, kind=kind, shows=shows, attempt=None, by="", says=says, data={})
    assert [line.source for line in timeline([seen], [], "en")] == [source]


def test_what_is_missing_is_said_on_the_first_page(office: Office, anna: Browser) -> None:
    due = {"name": "autumn", "due": "2020-01-01T00:00:00Z"}
    expects = [{"action": "draft", "key": "lamp"}]
    assert office.client.post("/v1/runs", json={**due, "expects": expects}).status_code < 300
    vera = office.person("vera", namespace="other")
    assert "Overdue or missing" not in vera.get("/")
    page = anna.get("/")
    assert "draft lamp was expected in run autumn and was never submitted." in page
    link = re.search(r'<li class="grave"><a href="(/runs/[^"]+)"', page)
    assert link is not None
    assert "Nobody has asked for it" in anna.get(link[1])
    assert "was expected in run autumn" in anna.get("/dashboard")


# --- sizes -----------------------------------------------------------------------------------


def test_pages_are_light(office: Office, anna: Browser, target: Shop) -> None:
    lost(office, target)
    css, js = (pages.static(name)[0] for name in ("app.css", "app.js"))
    assert len(css) <= 30_000
    assert len(js) <= 20_000
    weight = sum(len(gzip.compress(part)) for part in (css, js, anna.get("/review").encode()))
    assert weight <= 60_000

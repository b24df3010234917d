"""People are told: once per subject, in both languages, and of nothing secret."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import os
import ssl
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from ascertain import Ledger, Unknown, open_store
from ascertain.config import checked, read_config, spaces
from ascertain.config.figuring import notices_of
from ascertain.config.reading import read
from ascertain.config.spaces import Spaces
from ascertain.core import notices as rules
from ascertain.core.model import SECOND, Done, NotDone
from ascertain.core.notices import FIRST, KINDS, TEXTS, WINDOW, Notice, bundled
from ascertain.runtime.alarms import alarms
from ascertain.runtime.figures import Period
from ascertain.runtime.notices import ACTION, last_time
from ascertain.store.sqlite import SqliteStore
from ascertain.targets.credentials import Source
from ascertain.targets.notify import Channel, Message, deliver, feishu_sign, signature
from ascertain.testing import FakeClock
from server.house import SHOP
from server.target import Shop
from server.told import mailbox, receiver

SECRET = "whsec_" + base64.b64encode(b"s" * 32).decode()
HOOK = """
[server]
public_url = "https://ascertain.example"

[targets.shop]
base = "{target}"
respond_within = "10m"
decide_within = "4h"

[notify.ops]
kind = "webhook"
url = {{ env = "OPS_URL" }}
secret = {{ env = "OPS_SECRET" }}
digest = "08:00"
zone = "Asia/Shanghai"
"""
PEM = Path(__file__).parents[1] / "targets" / "tls.pem"


class Company:
    """A configuration over a store on a virtual clock, and as many processes as a test wants."""

    def __init__(self, file: Path, clock: FakeClock) -> None:
        self.file, self.clock = file, clock
        self.understood = checked(read_config(file))
        self.store = SqliteStore(file.parent / "ascertain.db", clock=clock.wall)
        self.spaces = self.process()
        self.ledger = self.spaces["default"].ledger

    def process(self) -> Spaces:
        with pytest.MonkeyPatch.context() as patch:  # the one clock of all
            patch.setattr(spaces, "Ledger", partial(Ledger, clock=self.clock))
            return Spaces(self.store, self.understood, ["default"])

    def tell(self, at: Spaces | None = None) -> int:
        """One turn of the chore, and everything that is due then."""
        at = at or self.spaces
        begun = notices_of(self.understood, at).run()
        at["default"].ledger.recover()
        return begun

    def unknown(self, name: str, *, note: str = "") -> Any:
        """An operation whose outcome nobody can find out: a review."""

        space = self.spaces["default"]
        if "shop.opaque" not in space.engine.actions:

            @space.ledger.action("shop.opaque", key="{name}", owner="anna", title="{note}")
            def opaque(call: Any, *, name: str, note: str) -> Unknown:
                return Unknown(reason="no answer")

            self.opaque = opaque
        return self.opaque.submit(name=name, note=note)

    def notes(self) -> list[Any]:
        return [r for r in self.ledger.find(limit=1000) if r.action.startswith(ACTION)]


@contextmanager
def company(
    folder: Path, monkeypatch: pytest.MonkeyPatch, url: str, config: str = HOOK
) -> Iterator[Company]:
    monkeypatch.setenv("OPS_URL", url)
    monkeypatch.setenv("OPS_SECRET", SECRET)
    shop = SHOP.replace('[targets.shop]\nbase = "{target}"\n', config)
    (folder / "ascertain.toml").write_text(shop.format(target="http://127.0.0.1:9"), "utf-8")
    made = Company(folder / "ascertain.toml", FakeClock())
    try:
        yield made
    finally:
        made.store.close()


@pytest.fixture
def ops(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Company, Any]]:
    with receiver() as got, company(tmp_path, monkeypatch, got.url) as made:
        yield made, got


def kinds(got: Any) -> list[str]:
    return [body["data"]["kind"] for body in got.bodies()]


def test_a_review_is_told_once_however_many_workers_there_are(ops: Any) -> None:
    made, got = ops
    review = made.unknown("lamp/de", note="to Ms. Li, li@example.com")
    others = [made.process() for _ in range(3)]
    threads = [threading.Thread(target=notices_of(made.understood, other).run) for other in others]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for _ in range(3):
        made.tell()
        made.clock.advance(60)
    assert kinds(got) == ["new_review"]
    [(headers, body)] = got.got
    told = json.loads(body)
    assert told["type"] == "ascertain.new_review"
    assert told["data"]["link"] == f"https://ascertain.example/op/{review.id}"
    assert "lamp%2Fde" in told["data"]["texts"]["en"]
    assert "由 anna 核查" in told["data"]["texts"]["zh"]
    assert "li@example.com" not in body.decode()  # a title may hold anything
    signed = signature(SECRET, headers["webhook-id"], int(headers["webhook-timestamp"]), body)
    assert headers["webhook-signature"] == signed
    key = base64.b64decode(SECRET.removeprefix("whsec_"))
    said = f"{headers['webhook-id']}.{headers['webhook-timestamp']}.".encode() + body
    mac = base64.b64encode(hmac.new(key, said, hashlib.sha256).digest()).decode()
    assert signed == f"v1,{mac}"


def test_an_address_that_is_a_secret_is_kept_nowhere(ops: Any) -> None:
    made, got = ops
    got.script += [500, "cut", 404]
    made.unknown("a")
    for _ in range(6):
        made.tell()
        made.clock.advance(120)
    text = str(list(made.store.rows()))
    assert "secret-of-the-bot" not in text
    assert SECRET not in text


def test_what_cannot_be_told_is_tried_within_bounds_and_then_seen(ops: Any) -> None:
    made, got = ops
    got.script += [500] * 50
    made.unknown("a")
    for _ in range(60):
        made.tell()
        made.clock.advance(1800)
    [note] = [n for n in made.notes() if n.key.startswith("new_review/")]
    assert (note.state, note.reason) == ("not_done", "gave_up")
    since = Period.of(0, made.clock.wall())
    own = made.spaces.figures.counts("default", since).own
    assert own["not_done"] >= 1  # it is counted, apart from everything else
    ids = {headers["webhook-id"] for headers, body in got.got if b"new_review" in body}
    assert len(ids) == 1  # whoever receives it can fold what comes twice


def test_an_answer_that_never_came_is_sent_again_under_the_same_id(ops: Any) -> None:
    made, got = ops
    got.script += ["cut"]
    made.unknown("a")
    for _ in range(3):
        made.tell()
        made.clock.advance(120)
    assert [n.state for n in made.notes()] == ["done"]
    assert len({headers["webhook-id"] for headers, _ in got.got}) == 1
    assert len(got.got) == 2


def test_notices_never_tell_of_themselves(ops: Any) -> None:
    made, got = ops
    got.script += ["cut"] * 500  # nothing is ever answered: their own outcomes are not known
    made.unknown("a")
    for _ in range(80):
        made.tell()
        made.clock.advance(3600)
    engine = made.spaces["default"].engine
    assert any(r.action.startswith(ACTION) for r in made.ledger.find(states=["unknown"]))
    reviews = {r.operation for r in made.store.reviews("default")}
    assert reviews & {n.id for n in made.notes()}  # a person may see them
    assert not [a for a in alarms(engine) if a.action.startswith("ascertain.")]
    told = {body["data"].get("action", "") for body in got.bodies()}
    assert not [action for action in told if action.startswith("ascertain.")]
    assert made.spaces.figures.open_now("default")
    assert not [o for o in made.spaces.figures.open_now("default") if "notify" in o.action]


def test_times_of_people_are_those_of_the_target(tmp_path: Path, monkeypatch: Any) -> None:
    with receiver() as got, company(tmp_path, monkeypatch, got.url) as made:
        engine = made.spaces["default"].engine
        engine.times = {**engine.times, "shop.opaque": engine.times["order"]}
        made.unknown("a")
        expected = [(0, ["new_review"]), (11 * 60, ["new_review", "response"]),
                    (4 * 3600, ["new_review", "response", "review"])]  # fmt: skip
        for seconds, told in expected:
            made.clock.advance(seconds)
            made.tell()
            assert [k for k in kinds(got) if k != "digest"] == told
        [review] = made.store.reviews("default")
        assert alarms(engine)[0].owner == review.owner == "anna"


def test_a_thousand_at_once_are_a_handful_of_messages_and_none_is_left_out() -> None:
    many = [
        Notice(kind="new_review", subject=f"s{n:04d}", namespace="default", since=5 * SECOND + n,
               action="a", key=f"k{n:04d}", target="shop")
        for n in range(1000)
    ]  # fmt: skip
    at_once = bundled(many, 6 * SECOND)
    assert [b.subject for b in at_once] == [f"s{n:04d}" for n in range(FIRST)]
    later = bundled(many, WINDOW + SECOND)
    assert len(later) == FIRST + 1
    assert sorted(n.subject for b in later for n in b.notices) == [n.subject for n in many]
    assert "995 more" in rules.summary(later[-1].notices, "en")
    assert "k0005" in rules.summary(later[-1].notices, "zh")


def test_a_storm_through_everything(ops: Any) -> None:
    made, got = ops
    for number in range(30):
        made.unknown(f"k{number}")
    made.tell()
    assert len(got.got) == FIRST
    for _ in range(3):
        made.clock.advance(601)
        made.tell()
    found = [b["data"] for b in got.bodies() if b["data"]["kind"] == "new_review"]
    assert [one["count"] for one in found] == [1] * FIRST + [25]


def test_the_digest_says_what_recovered_by_itself_and_what_waits(
    ops: Any,
) -> None:
    made, got = ops
    made.unknown("a")
    space = made.spaces["default"]

    @space.ledger.action("ok", key="{n}", owner="anna")
    def ok(call: Any, *, n: int) -> Done:
        return Done(ref=str(n))

    ok(n=1)
    due = last_time("08:00", "Asia/Shanghai", made.clock.wall())
    assert time.strftime("%H:%M", time.gmtime(due / 1e6)) == "00:00"
    made.clock.advance((due + 24 * 3600 * SECOND - made.clock.wall()) / 1e6 + 60)
    for _ in range(3):
        made.tell()
        made.clock.advance(60)
    [digest] = [b["data"] for b in got.bodies() if b["data"]["kind"] == "digest"]
    assert (digest["operations"], digest["done"], digest["reviews"]) == (2, 1, 1)
    assert "自动查实" in digest["texts"]["zh"]
    assert "1 reviews" in digest["texts"]["en"]


def test_who_is_told_what(tmp_path: Path, monkeypatch: Any) -> None:
    config = HOOK + 'kinds = ["review"]\nlanguages = ["zh"]\nnamespaces = ["default"]\n'
    with receiver() as got, company(tmp_path, monkeypatch, got.url, config) as made:
        made.unknown("a")
        made.tell()
        assert kinds(got) == []
        made.clock.advance(25 * 3600)
        made.tell()
        found = [b["data"] for b in got.bodies() if b["data"]["kind"] != "digest"]
        assert [one["kind"] for one in found] == ["review"]
        assert list(found[0]["texts"]) == ["zh"]


def message(text: str = "well") -> Message:
    return Message(
        kind="review", heads={"en": "Head", "zh": "标题"}, texts={"en": text, "zh": "正文"},
        link="https://ascertain.example/op/1",
    )  # fmt: skip


def test_a_mail_is_real_mail_over_tls(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(PEM))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(PEM)
    with mailbox(context) as box:
        channel = Channel(
            kind="mail", host="localhost", port=box.port, sender="a@acme.example",
            to=("li@acme.example", "bo@acme.example"),
        )  # fmt: skip
        found = deliver(channel, message(), ident="abc", now=1_700_000_000)
        assert isinstance(found, Done), found
    [mail] = box.mails
    assert mail["Message-ID"] == "<abc@acme.example>"
    assert mail["Subject"] == "Head / 标题"
    assert mail["To"] == "li@acme.example, bo@acme.example"
    assert mail.get_content().splitlines()[:3] == ["well", "", "正文"]


def test_a_mail_server_without_tls_gets_nothing() -> None:
    with mailbox() as box:
        channel = Channel(kind="mail", host="127.0.0.1", port=box.port, sender="a@b.example",
                          to=("c@d.example",))  # fmt: skip
        found = deliver(channel, message(), ident="abc", now=1_700_000_000)
        assert isinstance(found, NotDone)
        assert box.mails == []


@pytest.mark.parametrize(("answer", "kind"), [("451 later", "transient"), ("554 no", "rejected")])
def test_a_mail_that_is_refused(answer: str, kind: str) -> None:
    with mailbox() as box:
        box.refuse.append(answer)
        channel = Channel(kind="mail", host="127.0.0.1", port=box.port, tls="none",
                          sender="a@b.example", to=("c@d.example",))  # fmt: skip
        found = deliver(channel, message("x\r\nBcc: evil@e.example"), ident="i", now=1)
        assert isinstance(found, NotDone)
        assert found.kind == kind


@pytest.mark.parametrize(
    ("says", "expected"),
    [
        ('{"code":0,"msg":"success"}', "done"),
        ('{"StatusCode":0,"StatusMessage":"success"}', "done"),
        ('{"code":19021,"msg":"sign match fail"}', "rejected"),
        ('{"code":11232,"msg":"frequency limited"}', "transient"),
        ("<html>", "unknown"),
    ],
)
def test_a_feishu_bot_by_a_simulator(
    monkeypatch: pytest.MonkeyPatch, says: str, expected: str
) -> None:
    monkeypatch.setenv("BOT", "shared")
    with receiver(says) as got:
        channel = Channel(kind="feishu", url=got.url, secret=Source(env="BOT"))
        found = deliver(channel, message(), ident="i", now=1_700_000_000)
    shown = found.kind if isinstance(found, NotDone) else found.__struct_config__.tag
    assert shown == expected
    [body] = got.bodies()
    assert body["msg_type"] == "text"
    assert "标题\n正文" in body["content"]["text"]
    assert (body["timestamp"], body["sign"]) == ("1700000000", feishu_sign("shared", 1_700_000_000))


@pytest.mark.parametrize(
    ("answer", "expected"),
    [(200, "done"), (204, "done"), (302, "rejected"), (410, "rejected"), (429, "transient"),
     (503, "transient"), ("cut", "unknown")],
)  # fmt: skip
def test_what_a_receiver_answers(answer: Any, expected: str) -> None:
    with receiver() as got:
        got.script.append(answer)
        found = deliver(Channel(kind="webhook", url=got.url), message(), ident="i", now=1)
    shown = found.kind if isinstance(found, NotDone) else found.__struct_config__.tag
    assert shown == expected
    assert len(got.got) == 1  # sent once: whoever tries again is the ledger


def test_a_secret_that_is_not_set_sends_nothing() -> None:
    with receiver() as got:
        channel = Channel(kind="webhook", url=got.url, secret=Source(env="NOT_SET_ANYWHERE"))
        found = deliver(channel, message(), ident="i", now=1)
        assert isinstance(found, NotDone)
        assert "NOT_SET_ANYWHERE" in found.reason
        assert got.got == []


def test_every_kind_has_words_in_both_languages() -> None:
    assert TEXTS.keys() | {"digest"} == KINDS.keys() == rules.HEADS.keys()
    notice = Notice(kind="review", subject="s", namespace="n", since=0, action="a", key="k")
    for kind in TEXTS:
        for lang in rules.LANGUAGES:
            told = rules.text(type(notice)(**{**_fields(notice), "kind": kind}), lang, 3 * 10**9)
            assert told
            assert "{" not in told
            assert "!" not in told + rules.head(kind, lang)


def _fields(notice: Notice) -> dict[str, Any]:
    return {name: getattr(notice, name) for name in notice.__struct_fields__}


@pytest.mark.parametrize(
    ("table", "says"),
    [
        ('[notify.x]\nkind = "webhook"\nurl = "https://a.example"', "secret is missing"),
        ('[notify.x]\nkind = "webhook"\nurl = "http://a.example"\nsecret = { env = "S" }', "https"),
        ('[notify.x]\nkind = "mail"\nhost = "h"\nsender = "a@b.c"', "to is missing"),
        (
            '[notify.x]\nkind = "feishu"\nurl = "https://a.example"\nkinds = ["revew"]',
            "did you mean",
        ),
        ('[notify.x]\nkind = "feishu"\nurl = "https://a.example"\ndigest = "8"', "time of day"),
        ('[notify.x]\nkind = "feishu"\nurl = "https://a.example"\nzone = "Mars"', "time zone"),
        (
            '[notify.x]\nkind = "feishu"\nurl = "https://a.example"\nnamespaces = ["b"]',
            "not served",
        ),
        ('[prices.nothing]\namount = "1"\ncurrency = "EUR"', "no action"),
        ('[costs]\nrate = "60"', "belong together"),
        ('[alarms]\nbacklog = "soon"', "write it like"),
        ('[targets.x]\nbase = "https://a.example"\nclient_approves = ["y"]', "no action 'y'"),
    ],
)
def test_what_cannot_be_meant_is_said_with_its_line(tmp_path: Path, table: str, says: str) -> None:
    (tmp_path / "ascertain.toml").write_text(table, "utf-8")
    problems = read(tmp_path / "ascertain.toml", os.environ).problems
    assert says in " ".join(map(str, problems))


def test_what_a_client_must_approve_waits_for_him(tmp_path: Path, target: Shop) -> None:
    config = SHOP.replace('base = "{target}"', 'base = "{target}"\nclient_approves = ["order"]')
    (tmp_path / "ascertain.toml").write_text(config.format(target=target.url), "utf-8")
    understood = checked(read_config(tmp_path / "ascertain.toml"))
    served = Spaces(open_store(str(tmp_path / "a.db")), understood, ["default"])
    from ascertain.runtime.ledger import Action
    from ascertain.runtime.ticket import Options

    space = served["default"]
    order = Action(space.engine, space.engine.definition("order"), Options())
    r = order.submit(name="A", wait=0)
    assert (r.waiting_on, [a.role for a in space.ledger.asked(r)]) == ("approval", ["client"])
    assert target.made() == {}
    served.store.close()

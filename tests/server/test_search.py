"""Finding operations: exact words over everything, plain text as far as it says, pages, CSV."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ascertain import open_store
from ascertain.core import keys
from ascertain.runtime import searching
from ascertain.runtime.searching import Searching, Wanted
from server.house import SHOP, Home, house
from server.own import OWN
from server.target import Shop
from server.test_operations import submit

DAY = 86_400 * 1_000_000
TITLED = SHOP.replace('ref = "id"\nfirst', 'ref = "id"\ntitle = "Lamp {{name}}"\nfirst', 1)


@pytest.fixture
def home(request: pytest.FixtureRequest, tmp_path: Path, target: Shop) -> Iterator[Home]:
    """A server on a file, or where a test asks for it on PostgreSQL."""
    store = None
    if getattr(request, "param", "sqlite") == "postgres":
        store = open_store(request.getfixturevalue("postgres_database"))
    with house(tmp_path, TITLED.format(target=target.url), store=store) as running:
        yield running


both = pytest.mark.parametrize("home", ["sqlite", "postgres"], indirect=True)


def found(home: Home, **what: Any) -> list[str]:
    """The keys of one page."""
    return [one["key"] for one in page(home, **what)["items"]]


def page(home: Home, **what: Any) -> dict[str, Any]:
    answer = home.client.get("/v1/operations", params=what)
    assert answer.status_code == 200, answer.text
    read: dict[str, Any] = answer.json()
    return read


def every(home: Home, **what: Any) -> list[str]:
    """The keys of all pages."""
    names: list[str] = []
    for _ in range(200):
        one = page(home, **what)
        names += [item["key"] for item in one["items"]]
        if one["next"] is None:
            return names
        what["after"] = one["next"]
    raise AssertionError("it has no end")


# --- exact words ---


@both
def test_exact_words_lead_to_it(home: Home) -> None:
    a = submit(home, "A", event="evt-7", run="autumn").json()
    submit(home, "B", event="evt-8", run="winter")
    submit(home, "A", "searched")
    assert found(home, key="A", action="order") == ["A"]
    assert len(found(home, key="A")) == 2
    assert found(home, ref=a["ref"]) == ["A"]
    assert found(home, event="evt-8") == ["B"]
    assert found(home, run=a["run"]) == ["A"]
    for word in (a["id"], "evt-7", a["run"], a["ref"]):
        assert found(home, q=word) == ["A"], word
    assert found(home, key="C") == found(home, q="0" * 26) == []


@both
def test_exact_words_and_other_conditions_hold_together(home: Home, target: Shop) -> None:
    target.fates["B"] = ["bad"]
    submit(home, "A", event="evt")
    submit(home, "B", event="evt")
    assert found(home, event="evt", state="not_done") == ["B"]
    assert found(home, key="A", state="not_done") == []
    assert found(home, key="A", unsettled="true") == []
    assert found(home, q="A", state="done") == ["A"]
    assert found(home, key="A", ref="1") == ["A"]
    assert found(home, key="A", ref="2") == []
    assert found(home, key="A", title="lamp") == ["A"]
    assert found(home, key="A", q="lamp") == ["A"]
    assert found(home, key="A", q="another") == []
    assert found(home, key="A", until="2000-01-01T00:00:00Z") == []


@pytest.mark.parametrize("store", ["sqlite", "postgres"])
def test_a_reference_is_found_beside_those_of_neighbours(
    tmp_path: Path, target: Shop, request: pytest.FixtureRequest, store: str
) -> None:
    """Of many clients with a post 17 each, those who came first filled the answer."""
    names = ["beta", "acme/x", "acme", "acmf"]
    config = f"[server]\nnamespaces = {names}\n" + OWN.format(target=target.url, lease="30s")
    kept = open_store(request.getfixturevalue("postgres_database")) if store != "sqlite" else None
    with house(tmp_path, config, store=kept) as home:
        clients = {name: home.as_token(home.token(namespace=name)) for name in names}
        for client in clients.values():
            made = client.post("/v1/work/claim", json={"action": "own", "input": {"name": "A"}})
            done = {"operation": made.json()["operation"]["id"], "report": "1",
                    "result": {"finding": "done", "ref": 17}}  # fmt: skip
            client.post(f"/v1/work/{made.json()['attempt']}/finding", json=done)
        for name, client in clients.items():
            for asked in ({"q": "17", "limit": 1}, {"ref": "17"}):
                items = client.get("/v1/operations", params=asked).json()["items"]
                assert [(one["namespace"], one["ref"]) for one in items] == [(name, "17")]


def test_an_exact_word_is_found_however_old(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(searching, "WINDOW", 3)
    monkeypatch.setattr(searching, "FEW", 0)
    for number in range(20):
        submit(home, f"n{number}", event=f"evt{number}")
    assert found(home, key="n0") == found(home, event="evt0") == ["n0"]
    assert found(home, q="n0") == found(home, q="evt0") == ["n0"]


# --- lists and pages ---

OTHER = """
[targets.mill]
base = "{target}"

[actions.grind]
target = "mill"
key = "{{name}}"
owner = "anna"
inputs = {{ name = {{ type = "text" }} }}
request = {{ url = "/orders", json = {{ name = "{{name}}" }} }}
ref = "id"
"""


@pytest.mark.parametrize("store", ["sqlite", "postgres"])
def test_by_target_class_and_how_it_became_known(
    tmp_path: Path, target: Shop, request: pytest.FixtureRequest, store: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    kept = open_store(request.getfixturevalue("postgres_database")) if store != "sqlite" else None
    config = (TITLED + OTHER).format(target=target.url)
    with house(tmp_path, config, store=kept) as home:
        target.fates |= {"B": ["drop"], "L": ["drop"]}
        for action, name in (("order", "A"), ("searched", "C"), ("searched", "B"), ("grind", "M")):
            submit(home, name, action)
        submit(home, "L", "grind", on_unresolved="accept")
        submit(home, "B", "order")
        assert page(home, target="shop", total="true")["total"] == {"total": 4, "capped": False}
        assert set(found(home, target="shop")) == {"A", "B", "C"}
        assert set(found(home, target="mill")) == {"L", "M"}
        assert found(home, target="none") == found(home, target="-") == []
        assert found(home, q="B", target="mill") == found(home, key="A", target="mill") == []
        assert found(home, q="M", target="mill") == found(home, key="M", target="mill") == ["M"]
        assert set(found(home, protection="opaque")) == {"L", "M"}
        assert found(home, protection="-") == []
        assert found(home, found_by="look_up") == found(home, key="B", found_by="look_up") == ["B"]
        answered = found(home, target="shop", found_by=["answer", "late_report"], state="done")
        assert set(answered) == {"A", "B", "C"}
        assert found(home, found_by="event") == found(home, key="A", found_by="event") == []
        assert len(found(home, found_by=["answer", "event"])) == 4
        assert found(home, reviewed="any") == found(home, reviewed="unknown") == ["L"]
        assert found(home, reviewed="duplicate") == found(home, key="A", reviewed="any") == []
        assert found(home, key="L", reviewed="any", own="false") == ["L"]
        monkeypatch.setattr(searching, "WINDOW", 2)  # one that lies far back is found by its review
        monkeypatch.setattr(searching, "FEW", 0)
        for number in range(5):
            submit(home, f"n{number}")
        assert found(home, reviewed="any") == ["L"]
        assert found(home, reviewed="any", target="shop") == []
        total = page(home, reviewed="any", state="unknown", total="true")["total"]
        assert total == {"total": 1, "capped": False}


@pytest.fixture(params=[(3, 0), (10_000, 5_000), (10_000, 0)], ids=["windows", "few", "many"])
def windows(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """A window that is shorter than the history, and one that is not."""
    monkeypatch.setattr(searching, "WINDOW", request.param[0])
    monkeypatch.setattr(searching, "FEW", request.param[1])


@both
@pytest.mark.usefixtures("windows")
def test_pages_give_each_once_in_order(home: Home, target: Shop) -> None:
    names = [f"n{number:02}" for number in range(25)]
    for number, name in enumerate(names):
        target.fates[name] = ["bad"] if number % 5 == 0 else ["busy"] if number % 5 == 1 else []
        submit(home, name, wait=0)
    bad, busy = names[::5], names[1::5]
    for limit in (1, 4, 100):
        assert every(home, limit=limit) == names[::-1]
        assert every(home, limit=limit, oldest_first="true") == names
        assert every(home, limit=limit, state="not_done") == bad[::-1]
        assert every(home, limit=limit, unsettled="true") == sorted(bad + busy)[::-1]
        assert every(home, limit=limit, state="pending", oldest_first="true") == busy
        assert every(home, limit=limit, state=["pending", "not_done"]) == sorted(bad + busy)[::-1]
        assert every(home, limit=limit, waiting_on="input") == bad[::-1]
        assert every(home, limit=limit, title="lamp N1") == names[19:9:-1]
        assert every(home, limit=limit, unsettled="false", action="searched") == []


@both
@pytest.mark.usefixtures("windows")
def test_plain_text_gives_the_unsettled_first_and_each_once(home: Home, target: Shop) -> None:
    names = [f"n{number:02}" for number in range(20)]
    target.fates["n03"] = ["busy"]
    for name in names:
        submit(home, name, wait=0)
    for limit in (1, 3, 100):
        assert every(home, q="LAMP n", limit=limit) == ["n03", *reversed(names[:3] + names[4:])]
        assert every(home, q="n0", limit=limit) == ["n03", *reversed(names[:3] + names[4:10])]
        assert every(home, q="n05", limit=limit) == ["n05"]
        assert every(home, q="%", limit=limit) == every(home, q="_", limit=limit) == []
        assert every(home, q="n0", limit=limit, unsettled="true") == ["n03"]
        assert every(home, q="n0", limit=limit, state="pending") == ["n03"]


def test_a_page_says_how_far_it_looked(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(searching, "WINDOW", 5)
    monkeypatch.setattr(searching, "FEW", 0)
    ids = [submit(home, f"n{number:02}").json()["id"] for number in range(20)]
    first = page(home, q="n00")  # found as a key at once
    assert [one["key"] for one in first["items"]] == ["n00"]
    text = page(home, q="lamp n00")
    assert text["items"] == []
    assert text["next"]
    assert text["searched_to"][:19] <= page(home, key="n14")["items"][0]["confirmed_at"][:19]
    assert keys.time_of(ids[14]) // 1000 == keys.time_of(text["next"].partition(".")[2]) // 1000
    assert every(home, q="lamp n00") == ["n00"]
    assert page(home, q="nothing like it", after=text["next"])["next"] != text["next"]


def test_lists_are_bounded_in_time_unless_told(home: Home) -> None:
    submit(home, "A")
    now = home.serving.store.now()
    since = page(home)["since"]
    assert since is not None
    space = home.serving.space("default")
    assert space.searching.page(Wanted()).since == pytest.approx(now - 90 * DAY, abs=10**8)
    for what in ({"key": "A"}, {"q": "A"}, {"unsettled": "true"}):
        assert page(home, **what)["since"] is None
    assert page(home, since="2001-01-01T00:00:00Z")["since"] == "2001-01-01T00:00:00Z"
    assert found(home, since="2001-01-01T00:00:00Z", until="2001-01-02T00:00:00Z") == []
    assert found(home, since="2999-01-01T00:00:00Z") == []


@both
def test_totals_are_counted_and_capped(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(12):
        submit(home, f"n{number:02}")
    assert page(home)["total"] is None
    asked = page(home, total="true", limit=2)
    assert asked["total"] == {"total": 12, "capped": False}
    assert page(home, total="true", title="n1")["total"] == {"total": 2, "capped": False}
    assert page(home, total="true", key="n01")["total"] == {"total": 1, "capped": False}
    assert page(home, total="true", q="n0")["total"] == {"total": 10, "capped": False}
    assert page(home, total="true", unsettled="true")["total"] == {"total": 0, "capped": False}
    monkeypatch.setattr(searching, "CAP", 5)
    assert page(home, total="true", limit=2)["total"] == {"total": 5, "capped": True}


@both
@pytest.mark.usefixtures("windows")
def test_a_total_is_the_same_with_its_page(home: Home, target: Shop) -> None:
    target.fates["n03"] = ["busy"]
    for number in range(8):
        submit(home, f"n{number:02}", wait=0)
    space = home.serving.space("default")
    for more in (
        {}, {"q": "lamp"}, {"q": "n03"}, {"q": "nothing"}, {"key": "n03"}, {"reviewed": "any"},
        {"person": "anna"}, {"unsettled": True}, {"target": "shop"}, {"target": "-"},
    ):  # fmt: skip
        wanted = Wanted(newest=True, **more)
        total = space.searching.total(wanted)
        for limit in (1, 3, 100):
            here, counted = space.searching.counted(wanted, None, limit)
            alone = space.searching.page(wanted, None, limit)
            assert [r.id for r in here.receipts] == [r.id for r in alone.receipts], more
            assert (here.next, counted) == (alone.next, total), more


# --- people ---


def test_a_persons_work_is_found(tmp_path: Path, target: Shop) -> None:
    opaque = """
[actions.opaque]
target = "shop"
key = "{{name}}"
owner = "berta"
inputs = {{ name = {{ type = "text" }} }}
request = {{ url = "/orders", json = {{ name = "{{name}}" }} }}
ref = "id"

[actions.asked]
target = "shop"
contract = "shop.order"
key = "{{name}}"
owner = "anna"
approval = true
inputs = {{ name = {{ type = "text" }} }}
request = {{ url = "/orders", json = {{ name = "{{name}}" }} }}
ref = "id"
"""
    with house(tmp_path, (SHOP + opaque).format(target=target.url)) as home:
        target.script = ["drop", "drop"]
        lost = [submit(home, name, "opaque", wait=0).json()["operation"] for name in ("X", "Y")]
        asked = submit(home, "Z", "asked", wait=0).json()["operation"]
        submit(home, "A")
        desk = home.serving.space("default").ledger
        assert found(home, person="berta") == ["Y", "X"]
        desk.decide(lost[0], "there", ref="77", by="clara")
        desk.approve(asked, by="dora")
        assert found(home, person="clara") == ["X"]
        assert found(home, person="dora") == ["Z"]
        assert found(home, person="berta") == ["Y", "X"]  # whose review it was
        assert found(home, person="berta", unsettled="true") == ["Y"]
        assert every(home, person="berta", limit=1) == ["Y", "X"]
        assert found(home, person="berta", q="x") == ["X"]
        assert found(home, person="nobody else") == []


# --- refusals ---


@pytest.mark.parametrize(
    ("what", "status"),
    [
        ({"limit": 0}, 422), ({"limit": 1001}, 422), ({"state": "lost"}, 422), ({"q": ""}, 422),
        ({"after": "x"}, 400), ({"after": "l.xyz"}, 400), ({"after": "h." + "0" * 26}, 400),
        ({"key": "a\x00"}, 422), ({"q": "x" * 513}, 422), ({"since": "2026-01-01T00:00:00"}, 422),
        ({"since": "yesterday"}, 422), ({"waiting_on": "godot"}, 422),
    ],
)  # fmt: skip
def test_what_cannot_be_meant_is_refused(home: Home, what: Any, status: int) -> None:
    answer = home.client.get("/v1/operations", params=what)
    assert answer.status_code == status
    assert answer.headers["content-type"] == "application/problem+json"


# --- CSV ---


def test_csv_is_the_list_without_formulas_or_bodies(home: Home, target: Shop) -> None:
    for name in ("A", "=1+1", "+1", "-1", "@x", "灯"):
        submit(home, name, title=name)
    submit(home, "N", title="N")
    asked = {"action": "order", "input": {"name": "S", "note": "secret words"}}
    home.client.post("/v1/operations", json=asked)
    answer = home.client.get("/v1/operations.csv", params={"oldest_first": "true"})
    assert answer.headers["content-type"] == "text/csv; charset=utf-8"
    assert answer.content.startswith(b"\xef\xbb\xbfid,action,key,")
    rows = list(csv.DictReader(io.StringIO(answer.content.decode("utf-8-sig"))))
    assert [row["title"] for row in rows] == [
        "A", "'=1+1", "'+1", "'-1", "'@x", "灯", "N", "Lamp S"]  # fmt: skip
    assert all(not value.startswith(("=", "+", "-", "@")) for row in rows for value in row.values())
    assert "secret" not in answer.text
    assert {row["state"] for row in rows} == {"done"}
    only = home.client.get("/v1/operations.csv", params={"key": "A"})
    assert len(only.text.splitlines()) == 2


def test_csv_streams_page_after_page(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(searching, "WINDOW", 3)
    monkeypatch.setattr(searching, "FEW", 0)
    names = [f"n{number:02}" for number in range(11)]
    for name in names:
        submit(home, name)
    rows = csv.DictReader(
        io.StringIO(home.client.get("/v1/operations.csv").content.decode("utf-8-sig"))
    )
    assert [row["key"] for row in rows] == names[::-1]
    desk = home.serving.space("default").ledger
    pages = list(Searching(desk).all(Wanted(title="n00"), most=100, size=2))
    assert [len(one) for one in pages].count(0) >= 2  # windows without a match go on
    assert sum(map(len, pages)) == 1

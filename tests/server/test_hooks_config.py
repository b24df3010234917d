"""`[hooks.NAME]`: what cannot be meant is said with its line, before anything is received."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from ascertain.config import read_config
from server.hooked import HOOKS, OTHERS, body, hooked, send, settled
from server.house import SHOP
from server.signing import SECRET, shopify
from server.target import Shop

GOOD = """
[hooks.shop]
kind = "shopify"
secrets = [{ env = "SECRET" }]
[[hooks.shop.map]]
action = "order"
input = { name = "body.name" }
"""


def problems(tmp_path: Path, text: str, head: str = "") -> list[str]:
    file = tmp_path / "ascertain.toml"
    file.write_text(head + SHOP.format(target="http://127.0.0.1:1") + text, "utf-8")
    lines = file.read_text("utf-8").splitlines()
    return [f"{lines[p.line - 1].strip()} | {p.why}" for p in read_config(file).problems]


def test_what_is_right_is_understood(tmp_path: Path) -> None:
    assert problems(tmp_path, HOOKS + OTHERS) == []


MD5 = """kind = "hmac"
event_id = "body:id"
signature = { header = "X", algorithm = "md5" }"""


def test_without_jmespath_the_extra_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delitem(sys.modules, "ascertain.runtime.hooks")
    monkeypatch.delitem(sys.modules, "ascertain.runtime.mapping")
    monkeypatch.setitem(sys.modules, "jmespath", None)
    [problem] = problems(tmp_path, GOOD)
    assert "ascertain[server]" in problem


WRONG: list[tuple[str, str, str, str]] = [
    ('kind = "shopify"', 'kind = "shopfy"', "kind =", "did you mean 'shopify'"),
    ('secrets = [{ env = "SECRET" }]', "", "[hooks.shop]", "anybody could send events"),
    ('{ env = "SECRET" }', "{ }", "secrets =", "name one place"),
    ('{ env = "SECRET" }', '{ env = "A", file = "b" }', "secrets =", "name one place"),
    ('kind = "shopify"', 'kind = "shopify"\ntolerance = "soon"', "tolerance =", "tolerance"),
    ('kind = "shopify"', 'kind = "shopify"\nsubject = "body:id"', "subject =", "belong together"),
    ('kind = "shopify"', 'kind = "shopify"\nmax_body = 0', "max_body =", "between 1 and"),
    ('kind = "shopify"', 'kind = "shopify"\nnamespace = "other"', "namespace =", "not served"),
    ('kind = "shopify"', 'kind = "shopify"\nevent_id = "id"', "event_id =", "is no place"),
    ('kind = "shopify"', 'kind = "shopify"\nevents = 1', "events =", "unknown key"),
    ('kind = "shopify"', 'kind = "shopify"\ntoken = { env = "A" }', "token =", "Feishu"),
    ('kind = "shopify"', 'kind = "hmac"', "[hooks.shop]", "belongs to the kind hmac"),
    ('kind = "shopify"', 'kind = "none"', "[hooks.shop]", "does not say where it is"),
    ('kind = "shopify"', 'kind = "token"', "secrets =", "has none"),
    ('kind = "shopify"', MD5, "signature =", "algorithm must be"),
    ('action = "order"', 'action = "oder"', "action =", "did you mean 'order'"),
    ('action = "order"', "", "[[hooks.shop.map]]", "names one of"),
    ('action = "order"', 'action = "order"\nflow = "x"', "[[hooks.shop.map]]", "names one of"),
    ('action = "order"', 'action = "order"\nwhen = "topic =="', "when =", "JMESPath"),
    ('action = "order"', 'action = "order"\nif = "x"', "if =", "unknown key"),
    ('action = "order"', 'forward = "order"', "forward =", "must name {id}"),
    ("body.name", "body.[", "input =", "is no JMESPath"),
    ("[hooks.shop]", '[hooks."a b"]', '[hooks."a b"]', "stands in a path"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("old", "new", "line", "says"), WRONG, ids=[f"{n} {w[3]}" for n, w in enumerate(WRONG)]
)
def test_what_cannot_be_meant(tmp_path: Path, old: str, new: str, line: str, says: str) -> None:
    text = GOOD.replace(old, new)
    if "a b" in new:
        text = text.replace("[[hooks.shop.map]]", '[[hooks."a b".map]]')
    found = problems(tmp_path, text)
    assert any(one.startswith(line) and says in one for one in found), found


def test_an_action_of_another_namespace_is_refused(tmp_path: Path) -> None:
    text = GOOD.replace("[hooks.shop]", '[hooks.shop]\nnamespace = "b"')
    file = tmp_path / "ascertain.toml"
    shop = SHOP.format(target="http://127.0.0.1:1").replace(
        "[targets.shop]", '[targets.shop]\nnamespaces = ["a"]'
    )
    file.write_text('[server]\nnamespaces = ["a", "b"]\n' + shop + text, "utf-8")
    [problem] = read_config(file).problems
    assert "is not for 'b'" in problem.why


# --- namespaces, lists ----------------------------------------------------------------------------

TWO = '[server]\nnamespaces = ["default", "other"]\n'


def test_events_never_cross_a_namespace(
    tmp_path: Path, target: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = HOOKS.replace('kind = "shopify"', 'kind = "shopify"\nnamespace = "other"')
    paid = body(name="A")
    with hooked(tmp_path, target, monkeypatch, config + TWO) as home:
        assert send(home, "/hooks/shop", paid, shopify(paid, "e1")).status_code == 200
        other = home.as_token(home.token(namespace="other"))
        assert [e["id"] for e in other.get("/v1/events").json()["items"]] == ["e1"]
        assert [h["name"] for h in other.get("/v1/hooks").json()["items"]] == ["shop"]
        tried = {"events": [{"body": {}, "id": "x"}]}
        given = {"source": "shop", "id": "x", "data": {}}
        asked: list[Any] = [
            home.client.get("/v1/events/shop/e1"),
            home.client.post("/v1/events/shop/e1/evaluate"),
            home.client.post("/v1/events/shop/e1/process"),
            home.client.post("/v1/hooks/shop/test-mapping", json=tried),
            home.client.post("/v1/events", json=given),
        ]
        assert [a.status_code for a in asked] == [404] * 5
        assert home.client.get("/v1/events").json()["items"] == []
        assert home.client.get("/v1/hooks").json()["items"] == []
        assert other.get("/v1/events/shop/e1").status_code == 200


def test_events_are_listed_newest_first_in_pages(
    tmp_path: Path, target: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    with hooked(tmp_path, target, monkeypatch) as home:
        for number in range(5):
            data = body(name=f"n{number}")
            topic = "orders/paid" if number % 2 else "orders/create"
            send(home, "/hooks/shop", data, shopify(data, f"e{number}", topic=topic, secret=SECRET))
            settled(home, "shop", f"e{number}")
        seen, after = [], None
        while True:
            page = home.client.get("/v1/events", params={"limit": 2, **(
                {"after": after} if after else {})}).json()  # fmt: skip
            seen += [e["id"] for e in page["items"]]
            if (after := page["next"]) is None:
                break
        assert seen == ["e4", "e3", "e2", "e1", "e0"]

        def ids(**params: Any) -> list[str]:
            answer = home.client.get("/v1/events", params=params)
            assert answer.status_code == 200, answer.text
            return [e["id"] for e in answer.json()["items"]]

        assert ids(state="ignored") == ["e4", "e2", "e0"]
        assert ids(topic="orders/paid", source="shop") == ["e3", "e1"]
        assert ids(source="no") == ids(subject="no") == []
        assert ids(since="2100-01-01T00:00:00Z") == []
        assert ids(since="2000-01-01T00:00:00Z") == seen
        for path in ("/v1/events/shop/%00", "/v1/events/%00/e1"):
            assert home.client.get(path).status_code == 404
        for wrong in (
            {"source": "\x00"},
            {"after": "x"},
            {"after": "é"},
            {"limit": 0},
            {"since": "soon"},
        ):
            assert home.client.get("/v1/events", params=wrong).status_code == 422


def test_everything_wrong_with_a_hook_is_said_at_once(tmp_path: Path) -> None:
    text = GOOD.replace('kind = "shopify"', 'kind = "shopify"\ntolerence = "soon"\ntopic = "x"')
    text = text.replace('action = "order"', 'action = "oder"\nwen = "topic =="\neach = "a ["')
    found = problems(tmp_path, text.replace('"body.name"', '"body.["'))
    assert [one.partition(" ")[0] for one in found] == [
        "tolerence", "tolerence", "topic", "action", "wen", "wen", "each", "input",
    ]  # fmt: skip

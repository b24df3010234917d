"""Where the key goes, what makes it, what is sent, and what is compared: by real requests."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import pytest

import ascertain
from ascertain import InputRefused, Reason, State
from ascertain.core import keys
from ascertain.core.errors import ConfigInvalid
from ascertain.targets import placeholders as slots
from targets.api import Api, api
from targets.serving import Server, answer

HEAD = """
[store]
url = "ledger.db"

[targets.crm]
base = "{base}"

[[contract]]
id = "crm.thing"
ok = {{ when = "200|201" }}
undo = "DELETE"
late = {{ max = "0s" }}
{contract}

[actions.thing]
target = "crm"
contract = "crm.thing"
key = "{{name}}"
owner = "anna"
first_delay = "200ms"
timeout = "2s"
"""
IDENTITY = """
[contract.repeat]
answer = "exists"
keeps = "forever"
exists = "409"
atomic = true
"""


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.delenv("ASCERTAIN_STORE", raising=False)
    with api() as made:
        yield made


def opened(folder: Path, base: str, contract: str, action: str) -> Any:
    text = HEAD.format(base=base, contract=contract) + action
    (folder / "ascertain.toml").write_text(text, "utf-8")
    return ascertain.from_config(folder / "ascertain.toml")


def key_at(at: str, form: str = "any", kind: str = "request") -> str:
    return f'key = {{ at = "{at}", form = "{form}", kind = "{kind}" }}'


def sent(folder: Path, server: Api, contract: str, action: str, **given: Any) -> dict[str, Any]:
    """Do it once and return what the server was asked, with our target key."""
    with opened(folder, server.url, contract, action) as ledger:
        receipt = ledger.actions["thing"](**{"name": "a", **given})
    [asked] = server.effects()
    return {**asked, "key": receipt.target_key}


NAMED = 'inputs.name = {}\nref = "id"\n'


@pytest.mark.parametrize("form", ["any", "uuid", "[0-9a-z]"])
@pytest.mark.parametrize(
    ("at", "request_", "found"),
    [
        ("header:Idempotency-Key", 'json = { n = "{name}" }',
         lambda a: a["headers"]["Idempotency-Key"]),
        ("body:meta.op", 'json = { n = "{name}" }', lambda a: json.loads(a["body"])["meta"]["op"]),
        ("body:/meta/a~1b", 'json = { n = "{name}" }',
         lambda a: json.loads(a["body"])["meta"]["a/b"]),
        ("body:inputs.0.id", 'json = { inputs = [{ n = "{name}" }] }',
         lambda a: json.loads(a["body"])["inputs"][0]["id"]),
        ("body:op", 'form = { n = "{name}" }', lambda a: parse_qs(a["body"])["op"][0]),
        ("query:op", 'json = { n = "{name}" }', lambda a: a["query"]["op"]),
        ("graphql:input.op", "graphql = 'mutation M($input: I!) { m(input: $input) { id } }'",
         lambda a: json.loads(a["body"])["variables"]["input"]["op"]),
        ("input:op", 'json = { op = "{target_key}" }', lambda a: json.loads(a["body"])["op"]),
    ],
    ids=["header", "body", "pointer", "list", "form", "query", "graphql", "named"],
)  # fmt: skip
def test_the_key_goes_where_the_contract_says(
    tmp_path, server, at, form, *, request_, found
) -> None:
    action = f'{NAMED}[actions.thing.request]\nurl = "/things"\n{request_}\n'
    asked = sent(tmp_path, server, key_at(at, form), action)
    assert found(asked) == keys.format_key(asked["key"], form)


def test_the_key_in_the_path(tmp_path, server) -> None:
    action = f'{NAMED}request = {{ url = "/things/{{target_key}}", method = "PUT" }}'
    asked = sent(tmp_path, server, key_at("path:name", kind="resource"), action)
    assert asked["path"] == f"/things/{asked['key']}"


@pytest.mark.parametrize(
    ("at", "request_", "says"),
    [
        ("body:op", 'json = { op = "fixed" }', "request.json has something else at op"),
        ("body:op", 'form = { op = "{name}" }', "request.form has something else at op"),
        ("header:X-Op", 'headers = { x-op = "7" }', "request.headers has something else at X-Op"),
        ("graphql:op", "graphql = '{ a }'\nvariables = { op = 1 }",
         "request.variables has something else at op"),
        ("body:op", "text = 'x'\nheaders = { Content-Type = 'text/plain' }", "must hold {target_"),
        ("body:op", "text = '{target_key}'", "what kind of text it is"),
        ("graphql:@idempotent(key:)", "graphql = '{ a }'", "must hold {target_key}"),
    ],
    ids=range(7),
)  # fmt: skip
def test_nothing_else_may_stand_where_the_key_belongs(tmp_path, at, request_, says) -> None:
    action = f'{NAMED}[actions.thing.request]\nurl = "/things"\n{request_}\n'
    with pytest.raises(ConfigInvalid) as caught:
        opened(tmp_path, "http://127.0.0.1:1", key_at(at), action)
    assert says in str(caught.value)


# --- bodies ---

BODY = 'inputs = { name = {}, more = { required = false } }\n[actions.thing.request]\nurl = "/t"\n'


def test_a_form_leaves_out_what_is_not_given_and_repeats_lists(tmp_path, server) -> None:
    action = f'{BODY}form = {{ n = "{{name}} & co", more = "{{more}}", two = [1, true] }}'
    asked = sent(tmp_path, server, "", action)
    assert asked["headers"]["Content-Type"] == "application/x-www-form-urlencoded"
    assert parse_qs(asked["body"]) == {"n": ["a & co"], "two": ["1", "true"]}


def test_the_text_of_graphql_is_never_touched(tmp_path, server) -> None:
    query = "mutation ($n: String!) { make(name: $n) { id } }"
    action = f"{BODY}graphql = '{query}'\nvariables = {{ n = '{{name}}', m = '{{more}}' }}"
    asked = sent(tmp_path, server, "", action, name='") { drop } #')
    assert json.loads(asked["body"]) == {"query": query, "variables": {"n": '") { drop } #'}}


@pytest.mark.parametrize(
    ("escape", "name", "body"),
    [
        ("ical", "a,b;c\\d\r\ne", "S:a\\,b\\;c\\\\d\\ne"),
        ("xml", "<a & 'b'>", "S:&lt;a &amp; &apos;b&apos;&gt;"), ("", "plain, {x}", "S:plain, {x}"),
        ("", "two\nlines", None), ("xml", "two\nlines", None), ("", "tab\t", None),
    ],
    ids=range(6),
)  # fmt: skip
def test_a_value_within_text_cannot_add_a_line(tmp_path, server, escape, name, body) -> None:
    action = f"{BODY}headers = {{ Content-Type = 'text/x' }}\ntext = 'S:{{name}}'\n"
    action += f'escape = "{escape}"\n'
    with opened(tmp_path, server.url, "", action) as ledger:
        thing = ledger.actions["thing"]
        if body is None:
            with pytest.raises(InputRefused, match="line break"):
                thing(name=name)
            assert (ledger.find(), server.asked) == ([], [])
        else:
            thing.submit(name=name)
            assert server.effects()[0]["body"] == body


# --- inputs ---


@pytest.mark.parametrize("approval", ["", 'approval = "chef"\n'], ids=["at once", "approved"])
@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"name": "a"}, "missing input size"), ({"name": "a", "size": None}, "missing input size"),
        ({"name": "a", "size": ""}, "missing input size"),
        ({"name": "a", "size": "  "}, "missing input size"),
        ({"name": "a", "size": "big"}, "input size is str, not integer"),
        ({"name": "a", "size": True}, "input size is bool, not integer"),
        ({"name": "a", "size": 1.5}, "input size is float, not integer"),
        ({"name": "a", "size": 1, "x": 2}, "unknown input x"),
    ],
    ids=range(8),
)  # fmt: skip
def test_a_wrong_input_is_named_and_nothing_recorded(
    tmp_path, server, given, says, approval
) -> None:
    action = f"{approval}inputs = {{ name = {{}}, size = {{ type = 'integer' }} }}\n"
    action += 'request = { url = "/t", json = { n = "{name}", s = "{size}" } }'
    with opened(tmp_path, server.url, "", action) as ledger:
        for verb in (ledger.actions["thing"].submit, ledger.actions["thing"].enqueue):
            with pytest.raises(InputRefused, match=says):
                verb(**given)
        assert ledger.find() == []
    assert server.asked == []


# --- natural keys ---

MEMBER = """
inputs = { name = {}, email = {}, age = { required = false } }
natural = "md5(lower(strip({email})))"
ref = "{natural_key}"

[actions.thing.request]
method = "PUT"
url = "/members/{natural_key}"
json = { email = "{email}", age = "{age}" }

[actions.thing.read_back]
url = "/members/{natural_key}"
ref = "{natural_key}"
same = { email = "{email}", age = "{age}" }
ignore_case = ["email"]
"""
NATURAL = key_at("input:email", "natural", "resource") + IDENTITY
HASH = hashlib.md5(b"me@lamp.example").hexdigest()


def test_a_natural_key_is_made_of_the_input(tmp_path, server) -> None:
    asked = sent(tmp_path, server, NATURAL, MEMBER, email=" Me@Lamp.example ")
    assert asked["path"] == f"/members/{HASH}"
    assert asked["key"] not in asked["body"] + asked["raw"]


@pytest.mark.parametrize(
    ("there", "differ"),
    [
        ({"email": "me@lamp.example", "age": 5}, {}),
        ({"email": "ME@LAMP.EXAMPLE", "age": "5.0"}, {}),
        ({"email": "me@lamp.example", "age": 6}, {"age": {"sent": 5, "found": 6}}),
        ({"email": "me@lamp.example"}, {"age": {"sent": 5, "found": None}}),
        ({"email": "you@lamp.example", "age": True},
         {"email": {"sent": "Me@lamp.example", "found": "you@lamp.example"},
          "age": {"sent": 5, "found": True}}),
    ],
    ids=range(5),
)  # fmt: skip
def test_what_exists_is_ours_only_if_it_is_equal(tmp_path, there, differ, monkeypatch) -> None:
    monkeypatch.delenv("ASCERTAIN_STORE", raising=False)
    back = answer("200 OK", json.dumps(there).encode())
    with Server(*[answer("409 Conflict"), back] * 5) as target:
        action = "attempts = 2\n" + MEMBER
        with opened(tmp_path, target.url.removesuffix("/orders"), NATURAL, action) as ledger:
            receipt = ledger.actions["thing"].submit(name="a", email="Me@lamp.example", age=5)
            kept = [e.data["differ"] for e in ledger.history(receipt.id) if "differ" in e.data]
            if differ:
                assert receipt.state is State.UNKNOWN
                assert [r.road for r in ledger.reviews()] == ["unknown"]
                assert kept[0] == differ
            else:
                assert (receipt.state, receipt.ref) == (State.DONE, HASH)
    assert all(b"PUT" in r or b"GET" in r for r in target.requests)


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("md5(lower(strip({email})))", "md6({email})", "md6 is not one of lower, upper, strip"),
        ("md5(lower(strip({email})))", "md5({mail})", "natural names {mail}"),
        ("md5(lower(strip({email})))", "md5(fixed)", "natural must be made of inputs"),
        ('natural = "md5(lower(strip({email})))"\n', "", "natural says how the target's own key"),
        ('/members/{natural_key}"\njson', '/members/{target_key}"\njson', "names {target_key}"),
        ('same = { email = "{email}", age = "{age}" }', "same = {}", "read_back.same must name"),
        ('ignore_case = ["email"]', 'ignore_case = ["mail"]', "which is not compared in same"),
        ("[actions.thing.read_back]",
         '[actions.thing.lookup]\nurl = "/{target_key}"\nref = "id"\n[actions.thing.read_back]',
         "describe read_back instead"),
    ],
    ids=range(8),
)  # fmt: skip
def test_natural_keys_that_cannot_be_meant(tmp_path, old, new, says) -> None:
    assert old in MEMBER
    with pytest.raises(ConfigInvalid) as caught:
        opened(tmp_path, "http://127.0.0.1:1", NATURAL, MEMBER.replace(old, new, 1))
    assert says in str(caught.value)


def test_an_empty_natural_key_is_refused_before_anything_is_recorded(tmp_path, server) -> None:
    action = MEMBER.replace("md5(lower(strip({email})))", "lower({email})")
    action = action.replace("email = {}", 'email = { required = false, default = " " }')
    with opened(tmp_path, server.url, NATURAL, action) as ledger:
        with pytest.raises(InputRefused, match="natural key is empty"):
            ledger.actions["thing"](name="a")
        assert ledger.find() == []
    assert server.asked == []


@pytest.mark.parametrize(
    ("found", "expected", "ignore_case", "equal"),
    [
        (5, "5", False, True), ("12.50", 12.5, False, True), (12.5, "12.500", False, True),
        ("5", "5.0", False, False), (True, "true", False, True), (True, 1, False, False),
        (None, "", False, True), ("A", "a", False, False), ("A", "a", True, True),
        ("Straße", "STRASSE", True, True), ([1, 2], [1, 2], False, True), ([1], 1, False, False),
        ("1e2", 100, False, True), ("NaN", 5, False, False), ("x", 5, False, False),
    ],
    ids=range(15),
)  # fmt: skip
def test_what_is_equal(found, expected, ignore_case, equal) -> None:
    both = slots.sent_and_found({"v": found}, "v", "{e}", {"e": expected}, ignore_case=ignore_case)
    assert (both is None) is equal


# --- other places of a reference ---


def test_a_reference_in_a_header(tmp_path) -> None:
    said = b"HTTP/1.1 201 Created\r\nLocation: /things/7\r\nContent-Length: 0\r\n\r\n"
    with Server(said) as target:
        action = NAMED.replace('"id"', '"header:Location"') + 'request.url = "/things"\n'
        base = target.url.removesuffix("/orders")
        with opened(tmp_path, base, "", action) as ledger:
            assert ledger.actions["thing"](name="a").ref == "/things/7"


def test_a_reference_is_known_beforehand_only_where_the_name_is_ours(tmp_path) -> None:
    action = NAMED.replace('"id"', '"{target_key}"') + 'request.url = "/things"\n'
    with pytest.raises(ConfigInvalid, match="only where the object's own name is our key"):
        opened(tmp_path, "http://127.0.0.1:1", key_at("header:K"), action)


def test_an_identity_whose_answer_is_lost_is_sent_again_under_the_same_key(tmp_path, server):
    server.lose = 1
    action = NAMED + 'request = { url = "/things", json = {} }\n'
    contract = key_at("body:op", kind="resource") + IDENTITY
    with opened(tmp_path, server.url, contract, action) as ledger:
        receipt = ledger.actions["thing"](name="a")
    assert (receipt.confirmed_by, receipt.attempts) == ("replay", 2)
    assert server.effects()[0]["body"] == server.effects()[1]["body"]
    assert receipt.reason is Reason.NONE

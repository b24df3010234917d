"""`ascertain.toml`: what is understood, and for everything else file, line, table and fix."""

from __future__ import annotations

import inspect
import re
import tomllib
from pathlib import Path
from typing import Any

import msgspec
import pytest

import ascertain
from ascertain.config import read_config, schema
from ascertain.config.declaring import definitions
from ascertain.config.lines import line_of, lines
from ascertain.core.contract import Bounds
from ascertain.core.errors import ConfigInvalid
from ascertain.runtime.declare import Declaring

CONTRACTS = sorted((Path(ascertain.__file__).parent / "contracts").glob("*.toml"))
WHOLE = """\
[store]
url = "ledger.db"
namespace = "lamp"

[contracts."monday.mutations"]
accept = ["ok.when"]

[[contract]]
id = "shop.order"
ok = { when = "201" }
undo = "DELETE"
key = { at = "body:meta.op", kind = "resource" }
repeat = { answer = "exists", keeps = "forever", exists = "409", atomic = true }
lookup = { by = "op", lag = "0s" }

[targets.shop]
base = "https://shop.example/api"
headers = { Origin = "{base}" }
auth.bearer = { env = "SHOP_TOKEN" }

[actions."shop.order"]
target = "shop"
contract = "shop.order"
key = "{order}"
owner = { default = "anna", authorization = "ops" }
inputs = { order = {}, amount = { type = "integer" }, note = { required = false } }
approval = "chef"
timeout = "5s"
late = "1s"
ref = "id"

[actions."shop.order".request]
url = "/orders"
json = { order = "{order}", amount = "{amount}", lines = [
  "{note}",
  { n = 1 },
] }

[actions."shop.order".lookup]
url = "/orders?op={target_key}"
items = "data"
by = "meta.op"
ref = "id"

[actions."board.item"]
target = "shop"
contract = "monday.mutations"
key = "{name}"
owner = "ben"
inputs.name.type = "text"
request.url = "/graphql"
request.variables = { name = "{name}" }
request.graphql = '''
mutation ($name: String!) { create_item(name: $name) { id } }
'''
"""


@pytest.fixture(autouse=True)
def _environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("ASCERTAIN_STORE", "ASCERTAIN_CONFIG", "SHOP_TOKEN"):
        monkeypatch.delenv(name, raising=False)


def written(folder: Path, text: str) -> Path:
    file = folder / "ascertain.toml"
    file.write_text(text, "utf-8")
    return file


def wrong(folder: Path, text: str) -> list[Any]:
    return read_config(written(folder, text)).problems


# --- what is understood ---


def test_a_whole_file_is_understood(tmp_path) -> None:
    found = read_config(written(tmp_path, WHOLE))
    assert found.problems == []
    assert (found.store_url, found.namespace) == (str(tmp_path / "ledger.db"), "lamp")
    order, item = definitions(found).values()
    assert order.terms.owner("authorization") == "ops"
    assert order.terms.scope == "https://shop.example/api"
    assert order.terms.approval == ("chef",)
    assert (order.terms.bounds.lease, order.terms.lag, order.terms.late) == (
        5_000_000,
        0,
        1_000_000,
    )
    assert order.terms.assumed == ("late",)
    assert order.terms.can_look_up
    assert "ok.when" in item.terms.assumed
    assert item.terms.owner("unknown") == "ben"


def test_a_ledger_is_opened_beside_the_file_with_its_actions(tmp_path, monkeypatch) -> None:
    file = written(tmp_path, WHOLE)
    with ascertain.from_config(file) as ledger:
        assert set(ledger.actions) == {"shop.order", "board.item"}
        assert ledger.engine.namespace == "lamp"
    assert (tmp_path / "ledger.db").exists()
    with ascertain.open(tmp_path / "other.db") as own:
        assert ascertain.from_config(file, ledger=own) is own
        assert set(own.actions) == {"shop.order", "board.item"}
    monkeypatch.setenv("ASCERTAIN_CONFIG", str(file))
    with ascertain.from_config(store=tmp_path / "third.db") as ledger:
        receipt = ledger.actions["shop.order"].submit(order="1", amount=2)
    assert receipt.waiting_on == "approval"
    assert (tmp_path / "third.db").exists()


def test_what_is_wrong_is_said_before_anything_is_opened(tmp_path) -> None:
    text = WHOLE.replace("late =", "latte =").replace("{amount}", "{amont}")
    with pytest.raises(ConfigInvalid) as caught:
        ascertain.from_config(written(tmp_path, text))
    assert len(caught.value.problems) == 2  # an unknown key hides nothing
    assert not (tmp_path / "ledger.db").exists()


def test_contracts_may_stand_in_files_of_their_own(tmp_path) -> None:
    (tmp_path / "own.toml").write_text('[[contract]]\nid = "a.b"\nok = { when = "201" }\n')
    found = read_config(written(tmp_path, '[contracts]\nfiles = ["own.toml"]\n'))
    assert found.problems == []
    (tmp_path / "own.toml").write_text('[[contract]]\nid = "a.b"\n\nok = { wen = "201" }\n')
    [problem] = wrong(tmp_path, '[contracts]\nfiles = ["own.toml"]\n')
    assert str(problem).startswith(f"{tmp_path}/own.toml:4: contract.1.ok.wen: unknown key;")


# --- what is wrong ---


@pytest.mark.parametrize(
    ("old", "new", "where", "says"),
    [
        ("[store]", "[stores]", "[stores]", "unknown table; did you mean 'store'?"),
        ('url = "ledger.db"', "url = 5", "url = 5", "store.url: Expected a text, got a whole num"),
        ("namespace", "name_space", "name_space", "did you mean 'namespace'?"),
        ('accept = ["ok.when"]', 'accept = ["ok.wen"]', "accept", "'ok.wen' cannot be accepted"),
        ('[contracts."monday.mutations"]', '[contracts."shop.order"]', "[contracts",
         "counts as it stands"),
        ('[contracts."monday.mutations"]', '[contracts."monday.mutation"]', "accept",
         "did you mean 'monday.mutations'?"),
        ('id = "shop.order"', 'id = "shop order"', "id =", "must look like vendor.operation"),
        ("keeps = ", "keep = ", "repeat =", "did you mean 'keeps'?"),
        ('when = "201"', 'when = "sometimes"', "ok =", "ok.when: matcher"),
        ("https://shop.example/api", "shop.example", "base =", "base must be the target's whole"),
        ('base = "https://shop.example/api"', 'base = { env = "NOBODY_SET_IT" }', "base =",
         "NOBODY_SET_IT is not set"),
        ('base = "https://shop.example/api"\n', "", "[targets.shop]", "base is missing"),
        ('Origin = "{base}"', 'Origin = "{order}"', "headers =", "here only {base} is known"),
        ('Origin = "{base}"', 'X-Api-Key = "abc"', "headers =", "is a credential: name it under"),
        ('bearer = { env = "SHOP_TOKEN" }', 'bearer = { env = "A", file = "b" }', "auth.bearer",
         "must name one place"),
        ('auth.bearer = { env = "SHOP_TOKEN" }', "auth.bearer = {}", "auth.bearer",
         "must name one place"),
        ('auth.bearer = { env = "SHOP_TOKEN" }', 'auth.bearr = { env = "X" }', "auth.bearr",
         "did you mean 'bearer'?"),
        ('auth.bearer = { env = "SHOP_TOKEN" }', 'auth.headers.X-Shop = { env = "X" }',
         "auth.headers", "no credential by its name"),
        ('target = "shop"\ncontract = "shop', 'target = "shp"\ncontract = "shop', "target =",
         "no target 'shp'; did you mean 'shop'?"),
        ('contract = "shop.order"', 'contract = "shop.ordr"', "contract =",
         "did you mean 'shop.order'?"),
        ('key = "{order}"', 'key = "{ordr}"', "key =", "the key template names ordr"),
        ('owner = "ben"\n', "", '[actions."board', "owner is missing"),
        ('owner = "ben"', "owner = 5", "owner = 5", "Expected a text or a table, got a whole numb"),
        ('approval = "chef"', "aproval = true", "aproval", "did you mean 'approval'?"),
        ('timeout = "5s"', 'timeout = "soon"', "timeout", "write it like '30s'"),
        ("timeout", "sends_within", "sends_within", "it is for own code"),
        ('late = "1s"', 'late = "forever"', "late =", "late cannot be forever"),
        ('type = "integer"', 'type = "int"', "inputs =", "Invalid enum value 'int'"),
        ("order = {}", "order = { default = 1 }", "inputs =", "say required = false"),
        ('url = "/orders"', 'url = "orders"', 'url = "orders"', "must begin with one /"),
        ('"{amount}"', '"{amont}"', "json =", "names {amont}, which is not one of amount"),
        ('[actions."shop.order".lookup]', '[actions."shop.order".look_up]',
         '[actions."shop.order".look_up]', "did you mean 'lookup'?"),
        ('by = "meta.op"\n', "", '[actions."shop.order".lookup]', "lookup.by must name"),
        ('by = "meta.op"\nref = "id"', 'by = "meta.op"', '[actions."shop.order".lookup]',
         "ref is missing"),
        ("?op={target_key}", "?op={order}", "/orders?op=", "lookup.url names {order}"),
        ("mutation (", "mutation {target_key} (", "", ""),
        ('variables = { name = "{name}" }', 'json = { name = "{name}" }', "request.graphql",
         "a request has one body"),
    ],
    ids=range(37),
)  # fmt: skip
def test_each_problem_names_its_line_and_the_fix(tmp_path, old, new, where, says) -> None:
    assert old in WHOLE
    text = WHOLE.replace(old, new, 1)
    problems = wrong(tmp_path, text)
    if not says:  # braces within GraphQL are its own
        assert problems == []
        return
    assert problems
    first = problems[0]
    assert says in f"{first.where}: {first.why}"
    assert where in text.splitlines()[first.line - 1]
    assert str(first).startswith(f"{tmp_path}/ascertain.toml:{first.line}: ")


@pytest.mark.parametrize(
    ("text", "line", "says"),
    [
        ("[store\n", 1, "this is no TOML"), ("a = 1\n\na = 2\n", 3, "this is no TOML"),
        ("store = 5\n", 1, "Expected a table"), ("actions = []\n", 1, "write [actions.NAME]"),
        ("[actions]\nx = 1\n", 2, "it must be a table: [actions.x]"),
        ("[contract]\nid = 'a.b'\n", 1, "write [[contract]]"),
        ("[contracts]\nfiles = 'a'\n", 2, "write a list of files"),
        ("[[contract]]\nid='a.b'\n[[contract]]\nid='a.b'\n", 3, "declared twice"),
        ("\xff", 1, "this is no TOML"),
    ],
    ids=range(9),
)  # fmt: skip
def test_files_that_are_no_configuration(tmp_path, text, line, says) -> None:
    file = tmp_path / "ascertain.toml"
    file.write_bytes(text.encode("latin-1"))
    problems = read_config(file).problems
    assert (problems[0].line, says in problems[0].why) == (line, True), problems


def test_a_file_that_is_not_there_says_so(tmp_path) -> None:
    [problem] = read_config(tmp_path / "none.toml").problems
    assert "No such file" in problem.why


def test_all_problems_are_said_at_once(tmp_path) -> None:
    text = WHOLE.replace("{amount}", "{amont}").replace('{ name = "{name}"', '{ name = "{nme}"')
    text = text.replace('url = "/orders"', 'url = "orders"').replace("namespace", "nspace")
    assert [p.line for p in wrong(tmp_path, text)] == [3, 33, 34, 52]


def test_one_mistake_hides_no_other(tmp_path) -> None:
    """Of each kind of table several, each on its line, with the nearest known word."""
    text = WHOLE
    for old, new in (
        ("keeps = ", "keep = "), ('when = "201"', 'when = "sometimes"'),  # of one contract
        ('base = "https://shop.example/api"', 'base = 5\nscop = "x"'),  # of its target
        ('contract = "shop.order"', 'contract = "shop.order"\naproval = true\ntitel = "{x}"'),
        ('timeout = "5s"', 'timeout = "soon"\nattempts = "many"'),
        ("{amount}", "{amont}"), ('key = "{name}"', 'key = "{nme}"\nlate = "late"'),
        ('contract = "monday.mutations"', 'contract = "monday.mutation"'),
    ):  # fmt: skip
        assert old in text, old
        text = text.replace(old, new, 1)
    said = {(p.where, p.why.partition(";")[0][:40]) for p in wrong(tmp_path, text)}
    assert {where for where, _ in said} >= {
        "contract.1.repeat.keep", "contract.1.ok.when", "targets.shop.base", "targets.shop.scop",
        "actions.shop.order.aproval", "actions.shop.order.titel", "actions.shop.order.timeout",
        "actions.shop.order.attempts", "actions.shop.order.request.json",
        "actions.board.item.contract", "actions.board.item.key",
    }, said  # fmt: skip
    # What is named rightly is there, though it has mistakes: nobody is told otherwise.
    assert not [why for _, why in said if why.startswith(("no target", "no contract 'shop"))]


@pytest.mark.parametrize("by", ["server", "client"])
def test_an_input_has_no_name_that_no_code_could_take(tmp_path, by) -> None:
    text = WHOLE.replace("order = {}", "from = {}")
    if by == "client":
        own = '[actions.own]\nby = "client"\ntarget = "shop"\nkey = "{from}"\nowner = "ben"\n'
        text = WHOLE + own + "inputs.from = {}\n"
    found = [p.why for p in wrong(tmp_path, text)]
    assert [why for why in found if "inputs.from is no possible name" in why] != []


def test_an_issued_key_is_refused_with_the_way_out(tmp_path) -> None:
    text = WHOLE.replace('"monday.mutations"', '"google.drive.files.create"')
    text = text.replace('accept = ["ok.when"]', "accept = []")
    [problem] = wrong(tmp_path, text)
    assert "the target issues first" in problem.why
    assert "ledger.step" in problem.why


# --- the words are those of the rest ---


def test_an_action_has_the_options_of_ledger_action_that_need_no_code() -> None:
    taken = set(inspect.signature(Declaring.action).parameters) - {"self", "name", "bounds"}
    code = {"prepare", "batch", "sends", "callers_credentials"}
    bounds = set(msgspec.structs.fields(Bounds)[0].name and Bounds.__struct_fields__)
    options = set(schema.known(schema.ActionTable)) - schema.DESCRIBES - {"target", "by"}
    assert options | {"key", "title", "contract"} == (
        taken - code | (bounds - {"lease"} | {"timeout"})
    )


# --- lines ---


def every_path(node: Any, path: tuple[Any, ...] = ()) -> Any:
    items = node.items() if isinstance(node, dict) else enumerate(node)
    for name, item in items:
        yield (*path, name)
        if isinstance(item, dict | list):
            yield from every_path(item, (*path, name))


TRICKY = '''\
# [no.table]
a.b = 1 # = [x]
"q.\\"uote" = """one
[fake]
two = 3""" # end
[ t . 'u v' ] # blank
list = [ # comment ]
  1, "]", [2, # x
  3], { k = 'a}b', "d.e" = [ true ] },
]
date = 2026-11-29T10:00:00Z
lit = \'\'\'
x = "\'\'\'
[[many]]
n = 1
[many.sub]
m = { o.p = 2 }
[[many]]
[[many.inner]]
z = -1.5e3
[[many.inner]]
z = 2
'''


@pytest.mark.parametrize(
    "text", [WHOLE, TRICKY, *(f.read_text("utf-8") for f in CONTRACTS)],
    ids=["whole", "tricky", *(f.stem for f in CONTRACTS)],
)  # fmt: skip
def test_every_key_is_found_on_its_line(text) -> None:
    found, rows = lines(text), text.splitlines()
    for path in every_path(tomllib.loads(text)):
        names = [n for n in path if isinstance(n, str)]
        row = rows[line_of(found, path) - 1]
        if path in found and isinstance(path[-1], str):
            assert re.sub(r'"', "", names[-1]) in re.sub(r'\\?"', "", row), path
        else:  # a table that only its parts are written of, or an element
            assert path in found or any(k[: len(path)] == path for k in found), path


def test_lines_of_a_tricky_text() -> None:
    found = lines(TRICKY)
    assert found["t", "u v", "list", 3, "d.e"] == 9
    assert found["many", 1, "inner", 1, "z"] == 22
    assert line_of(found, ("many", 1, "nothing")) == 18
    assert line_of(found, ("nothing",)) == 1

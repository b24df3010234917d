"""Actions of own code, breakers and callbacks in `ascertain.toml`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ascertain import Refused, from_config, read_config
from ascertain.core.gates import Breaker
from ascertain.core.model import SECOND
from ascertain.selftest.driving import run

FILE = """
[store]
url = "own.db"

[targets.shop]
base = "https://shop.example"
{target}

[actions.order]
by = "client"
target = "shop"
key = "{{name}}"
owner = "anna"
inputs.name.type = "text"
{action}
"""


def written(folder: Path, action: str = "", target: str = "") -> Path:
    file = folder / "ascertain.toml"
    file.write_text(FILE.format(action=action, target=target))
    return file


def test_own_code_is_declared_without_a_request(tmp_path: Path) -> None:
    options = (
        'lookup = true\nsends_within = "5s"\ntimeout = "10s"\ndeterministic = true\nlag = "0s"'
    )
    with from_config(written(tmp_path, options)) as ledger:
        d = ledger.engine.definition("order")
        assert (d.remote, d.terms.can_look_up, d.terms.hard) == (True, True, True)
        assert d.terms.scope == "https://shop.example"
        assert {"sends_within", "deterministic"} <= set(d.terms.assumed)
        with pytest.raises(Refused, match="client_suite"):
            run(ledger, "order", {"name": "A"}, sandbox=True)


def test_own_code_has_no_deadline_unless_it_declares_one(tmp_path: Path) -> None:
    with from_config(written(tmp_path)) as ledger:
        d = ledger.engine.definition("order")
        assert (d.terms.hard, d.terms.can_look_up, d.terms.same_bytes) == (False, False, False)


@pytest.mark.parametrize(
    ("action", "line", "why"),
    [
        ('request = { url = "/orders" }', "actions.order.request", "for the server's requests"),
        ('ref = "id"', "actions.order.ref", "for the server's requests"),
        ('lookup = { url = "/o", ref = "id" }', "actions.order.lookup", "write true or false"),
        ('by_whom = "x"', "actions.order.by_whom", "unknown key"),
    ],
)
def test_what_own_code_cannot_have(tmp_path: Path, action: str, line: str, why: str) -> None:
    [problem] = read_config(written(tmp_path, action)).problems
    assert (problem.where, why in problem.why) == (line, True), problem


@pytest.mark.parametrize(
    ("more", "line", "why"),
    [
        ("", "actions.order", "request is missing"),
        ('request.url = "/o"\nlookup = true', "actions.order.lookup", "is for own code"),
        ('request.url = "/o"\nsends_within = "5s"', "actions.order.sends_within", "own code"),
    ],
)
def test_what_the_server_cannot_do_without(tmp_path: Path, more: str, line: str, why: str) -> None:
    file = written(tmp_path, more)
    file.write_text(file.read_text().replace('by = "client"\n', ""))
    [problem] = read_config(file).problems
    assert (problem.where, why in problem.why) == (line, True), problem


def test_a_breaker_and_its_defaults(tmp_path: Path) -> None:
    for text, breaker in (
        ("breaker = {}", Breaker()),
        ('breaker = { failures = 2, within = "5s", retry_after = "500ms" }',
         Breaker(failures=2, within=5 * SECOND, retry_after=SECOND // 2)),
    ):  # fmt: skip
        with from_config(written(tmp_path, target=text)) as ledger:
            assert ledger.engine.gates._breakers == {"shop": breaker}


@pytest.mark.parametrize("text", ['breaker.within = "soon"', "breaker.failures = 0"])
def test_a_breaker_that_cannot_be_meant(tmp_path: Path, text: str) -> None:
    [problem] = read_config(written(tmp_path, target=text)).problems
    assert problem.where.startswith("targets.shop.breaker")


def test_callbacks_are_an_action_where_hosts_are_declared(tmp_path: Path) -> None:
    file = written(tmp_path)
    known: dict[bool, Any] = {}
    for declared in (False, True):
        if declared:
            file.write_text('[server]\ncallback_hosts = ["n8n.acme.example"]\n' + file.read_text())
        with from_config(file) as ledger:
            known[declared] = "ascertain.callback" in ledger.engine.actions
    assert known == {False: False, True: True}

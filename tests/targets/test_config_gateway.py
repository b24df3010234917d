"""`[[targets.NAME.gateway]]`: what cannot be meant is told with its line."""

from __future__ import annotations

from pathlib import Path

import pytest

from ascertain.config import read_config

FINE = """\
[targets.shop]
base = "https://shop.example/api"

[[targets.shop.gateway]]
match = "POST /orders"
contract = "shop.order"
owner = "anna"

[[targets.shop.gateway]]
match = "GET /**"
read = true

[[contract]]
id = "shop.order"
key = { at = "header:Idempotency-Key", kind = "request" }

[[contract]]
id = "shop.named"
key = { at = "path:name", kind = "resource" }

[[contract]]
id = "shop.issued"
key = { at = "input:id", kind = "resource", form = "issued" }

[[contract]]
id = "shop.graph"
key = { at = "graphql:input.key", kind = "request" }

[[contract]]
id = "shop.plain"
lookup = { call = "GET /orders", by = "op", lag = "0s" }
"""
SECOND = """\
[[targets.shop.gateway]]
match = "PUT /x"
action = "gateway.shop.1"
owner = "a"
"""
LOOKUP = 'lookup = { url = "/orders?op={target_key}", items = "orders", by = "op", ref = "id" }'


def told(tmp_path: Path, text: str) -> list[tuple[int, str]]:
    file = tmp_path / "ascertain.toml"
    file.write_text(text, "utf-8")
    return [(p.line, f"{p.where}: {p.why}") for p in read_config(file).problems]


def test_a_fine_one_is_understood(tmp_path: Path) -> None:
    assert told(tmp_path, FINE) == []
    understood = read_config(tmp_path / "ascertain.toml")
    assert [(p.target, p.pattern.text, p.action) for p in understood.passages] == [
        ("shop", "POST /orders", "gateway.shop.1"), ("shop", "GET /**", ""),
    ]  # fmt: skip
    assert understood.actions["gateway.shop.1"].options["scope"] == "https://shop.example/api"


@pytest.mark.parametrize(
    ("old", "new", "line", "why"),
    [
        ('match = "POST /orders"', 'match = "POST orders"', 5, "write method and path"),
        ('match = "POST /orders"', 'match = "* /orders"', 5, "one method"),
        ('match = "POST /orders"', 'match = "POST /{target_key}"', 6, "is at header:"),
        ('contract = "shop.order"', 'contract = "shop.other"', 6, "no contract"),
        ('contract = "shop.order"', 'contract = "shop.named"', 6, "must hold {target_key}"),
        ('contract = "shop.order"', 'contract = "shop.issued"', 6, "under [actions]"),
        ('contract = "shop.order"', 'contract = "shop.graph"', 6, "under [actions]"),
        ('contract = "shop.order"', 'contract = "shop.order"\nstamp = "body:op"', 7, "leave stamp"),
        ('contract = "shop.order"', 'contract = "shop.plain"\nstamp = "op"', 7, "write it like"),
        ('contract = "shop.order"', f'contract = "shop.plain"\n{LOOKUP}', 7, "does not carry"),
        ('owner = "anna"', "", 4, "no owner"),
        ('owner = "anna"', 'owner = "anna"\nowners = "x"', 8, "unknown key"),
        ('owner = "anna"', 'owner = "anna"\nmax_body = 0', 8, "between 1 and"),
        ('owner = "anna"', 'owner = "anna"\ntimeout = "soon"', 8, "timeout"),
        ('owner = "anna"', 'owner = "anna"\nlookup = { url = "/", refs = "" }', 8, "unknown key"),
        ("read = true", 'read = true\nowner = "anna"', 12, "leave it out"),
        ('match = "GET /**"', 'match = "DELETE /**"', 11, "may change something"),
        ("read = true", f"read = true\n{SECOND}", 14, "another action"),
        ('api"', 'api"\npass_credentials = true\nauth.bearer = { env = "X" }', 3, "whose"),
        ('api"', 'api"\ngateway = "all"', 3, ""),
    ],
)  # fmt: skip
def test_what_cannot_be_meant_is_told_with_its_line(
    tmp_path: Path, old: str, new: str, line: int, why: str
) -> None:
    assert old in FINE
    text = FINE.replace(old, new, 1)
    if new.endswith('"all"'):
        text = text.replace("[[targets.shop.gateway]]", "[[targets.x.gateway]]")
    found = told(tmp_path, text)
    assert any(at == line and why in said for at, said in found), found


def test_with_the_callers_credentials_nobody_else_acts(tmp_path: Path) -> None:
    own = FINE.replace('api"', 'api"\npass_credentials = true', 1)
    assert told(tmp_path, own) == []
    later = own.replace('owner = "anna"', 'owner = "anna"\napproval = true')
    assert any("comes later" in why for _, why in told(tmp_path, later))
    look = own.replace('"shop.order"', '"shop.plain"', 1).replace(
        'owner = "anna"', f'owner = "anna"\nstamp = "body:op"\n{LOOKUP}'
    )
    assert any("no use with pass_credentials" in why for _, why in told(tmp_path, look))

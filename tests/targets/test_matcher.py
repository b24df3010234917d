"""Matchers as contracts use them: checked at load, and only where they are about HTTP."""

from __future__ import annotations

from typing import Any

import pytest

from ascertain.contracts import catalogue
from ascertain.core.contract import load, matchers, problems
from ascertain.core.errors import ContractInvalid
from ascertain.core.matcher import matches, parse, places

BODY = {"codes": ["A", "B"], "error": None, "said": "not found", "list": [{"id": 1}, {"id": 2}]}


@pytest.mark.parametrize(
    ("text", "holds"),
    [
        ("body:codes=B", True), ("body:codes=C", False), ("body:error", False),
        ("body:said=not%20found", True), ("body:said", True), ("body:list.1.id=2", True),
        ("body:list.id=2", True), ("body:list.²", False), ("4xx body:codes", True),
        ("409 body:codes=A body:codes=B", True), ("409 body:codes=A header:X", False),
    ],
    ids=range(11),
)  # fmt: skip
def test_a_condition(text: str, holds: bool) -> None:
    assert matches(parse(text), 409, {}, BODY) is holds


@pytest.mark.parametrize("body", [None, "text", 5, [], [[]], {"codes": {}}])
def test_a_body_of_any_kind_is_looked_at(body: Any) -> None:
    assert not matches(parse("body:codes=A"), 200, {}, body)
    assert places(body, "") == [body]


@pytest.mark.parametrize(
    "text", ["ack", "200 OK", "body:a..b", "body:.", "header:X Y", "header:A:b", "2xx 3xx", "²00"]
)
def test_what_nobody_understands_is_refused(text: str) -> None:
    with pytest.raises(ContractInvalid, match="matcher"):
        parse(text)


@pytest.mark.parametrize("field", sorted(matchers(load({"id": "shop.order"}))))
def test_every_matcher_of_a_contract_is_checked_at_load(field: str) -> None:
    table, _, name = field.partition(".")
    parts = {table: {name: "ack"}}
    if name == "stored":
        parts["repeat"] |= {"failed": "replayed"}
    with pytest.raises(ContractInvalid, match=f"(?s){field}.*ack.*protocol"):
        load({"id": "shop.order", **parts})
    spoken = load({"id": "shop.order", "protocol": "nats", **parts})
    assert problems(spoken) == []


@pytest.mark.parametrize(
    ("parts", "problem"),
    [
        ({"ok": {"when": " "}}, "ok.when must say"),
        ({"protocol": "gopher"}, "protocol"),
        ({"wait": "when it likes"}, "wait is"),
        ({"repeat": {"stored": "400"}}, "must be 'replayed'"),
        ({"protcol": "http"}, "unknown field"),
    ],
)
def test_an_impossible_contract_is_refused(parts: dict[str, Any], problem: str) -> None:
    with pytest.raises(ContractInvalid, match=problem):
        load({"id": "shop.order", **parts})


def test_the_shipped_contracts_say_whose_words_they_use() -> None:
    spoken = {c.id: c.protocol for c in catalogue.shipped().values()}
    assert spoken["smtp.submit"] == "smtp"
    assert spoken["nats.jetstream.publish"] == "nats"
    assert spoken["caldav.task.create"] == spoken["wordpress.posts.create"] == "http"

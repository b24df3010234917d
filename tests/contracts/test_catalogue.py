"""The shipped contracts: whole, dated, with their sources, and none says more than it may."""

from __future__ import annotations

import re
import tomllib
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from ascertain.contracts import catalogue
from ascertain.core import keys
from ascertain.core.advice import classes
from ascertain.core.contract import Class, load, matchers, problems
from ascertain.core.errors import ContractInvalid
from ascertain.core.levels import acceptable, accepted, level, stated
from ascertain.core.matcher import matches, parse

FOLDER = Path(catalogue.__file__).parent
FILES = sorted(FOLDER.glob("*.toml"))
VERIFIED = {
    "caldav.task.create", "nats.jetstream.publish", "roundup.issue.create", "smtp.submit",
    "wordpress.posts.create", "wordpress.media.create",
}  # fmt: skip
ALL = catalogue.shipped()


def test_there_are_as_many_operations_as_were_looked_up() -> None:
    assert len(ALL) >= 77
    assert sum(1 for c in ALL.values() if c.sources) >= 65
    verified = {c.id for c in ALL.values() if c.status == "verified"}
    assert verified >= VERIFIED
    for ident in verified:  # by a test here, against the real system
        assert any(s.startswith("tests/") for s in ALL[ident].sources), ident


@pytest.mark.parametrize("file", FILES, ids=lambda f: f.stem)
def test_a_file_is_readable(file: Path) -> None:
    lines = file.read_text("utf-8").splitlines()
    assert lines[0].startswith("# "), "the first line says whose it is"
    long = [n for n, line in enumerate(lines, 1) if len(line) > 100 and "://" not in line]
    assert long == []
    for table in tomllib.loads(file.read_text("utf-8"))["contract"]:
        assert table["id"].startswith(f"{file.stem}.")


@pytest.mark.parametrize("ident", sorted(ALL))
def test_a_contract_says_since_when_and_from_where(ident: str) -> None:
    c = ALL[ident]
    assert re.fullmatch(r"\d{4}-\d\d-\d\d", c.date)
    assert c.title
    assert c.sources or c.status == "draft"
    seen = [p for p in stated(c) if level(c, p) == "vendor"]
    if c.status == "draft":  # what is left of it decides nothing
        assert set(seen) <= {"key.kind", "lookup.by"}, seen
    else:
        assert seen
    assert not c.accepted


@pytest.mark.parametrize("ident", sorted(ALL))
def test_what_is_left_of_a_contract_is_possible(ident: str) -> None:
    c = ALL[ident]
    for names in ((), *[(name,) for name in acceptable(c)], acceptable(c)):
        left = problems(accepted(c, names))
        assert [p for p in left if not p.startswith("ok.when must say")] == []


STRENGTH = list(Class)


@pytest.mark.parametrize("ident", sorted(ALL))
def test_accepting_more_never_makes_a_class_weaker(ident: str) -> None:
    c = ALL[ident]
    if c.inbound is not None and c.inbound.only:
        return
    bare, whole = classes(accepted(c)), classes(accepted(c, acceptable(c)))
    for before, after in zip(bare, whole, strict=True):
        assert STRENGTH.index(after) <= STRENGTH.index(before)


def test_the_classes_are_those_that_the_research_found() -> None:
    """Counted without what only memory or somebody else vouches for, and with it."""
    bare = Counter(classes(accepted(c))[0] for c in outbound())
    whole = Counter(classes(accepted(c, acceptable(c)))[0] for c in outbound())
    once = {c.id for c in outbound() if classes(accepted(c))[0] is Class.IDENTIFIED}
    assert once >= {"caldav.task.create", "aws.s3.put_if_absent"}  # by storage constraints
    assert len(once) < bare.total() // 10
    assert bare[Class.OPAQUE] > whole[Class.OPAQUE]
    assert bare.total() == whole.total() == len(outbound()) >= 73


def outbound() -> list[Any]:
    return [c for c in ALL.values() if c.inbound is None or not c.inbound.only]


@pytest.mark.parametrize("ident", sorted(ALL))
def test_a_target_key_fits(ident: str) -> None:
    c = ALL[ident]
    if c.key.form in ("natural", "issued") or c.key.max is None:
        return
    made = keys.format_key(keys.target_key(b"s", "n", "a", "k", 1), c.key.form)
    assert len(made) <= c.key.max


@pytest.mark.parametrize(
    ("ident", "status", "headers", "body", "means"),
    [
        ("shopify.admin.upsert", 200, {}, {"data": {"productSet": {"userErrors": []}}}, "ok.when"),
        ("shopify.admin.upsert", 200, {}, {"data": {"productSet": {"userErrors": [{"m": 1}]}}}, ""),
        ("shopify.admin.upsert", 200, {}, {"data": {"productSet": {}}}, ""),
        ("shopify.admin.upsert", 200, {},
         {"errors": [{"message": "x"}], "data": {"productSet": {"userErrors": []}}}, ""),
        ("shopify.admin.upsert", 200, {},
         {"errors": [{"extensions": {"code": "THROTTLED"}}]}, "refused.throttled"),
        ("shopify.admin.idempotent_directive", 200, {},
         {"data": {"a": {"userErrors": [{"code": "IDEMPOTENCY_CONCURRENT_REQUEST"}]}}},
         "repeat.busy"),
        ("monday.mutations", 200, {}, {"data": {}}, "ok.when"),
        ("monday.mutations", 200, {}, {"errors": [{}]}, ""),
        ("monday.mutations", 409, {"Retry-After": "3"}, {}, "repeat.busy"),
        ("monday.mutations", 409, {}, {}, ""),
        ("slack.chat.postMessage", 200, {}, {"ok": False}, ""),
        ("slack.chat.postMessage", 200, {}, {"ok": True}, "ok.when"),
        ("wecom.message.send", 200, {}, {"errcode": 40001}, ""),
        ("adyen.checkout.post", 422, {}, {"errorCode": "704"}, "repeat.busy"),
        ("adyen.checkout.post", 503, {}, {"errorCode": "703"}, ""),
        ("google.calendar.events.insert", 409, {}, {}, "repeat.exists"),
        ("aws.s3.put_if_absent", 412, {}, "<Error/>", "repeat.exists"),
        ("directus.items.create", 400, {},
         {"errors": [{"extensions": {"code": "RECORD_NOT_UNIQUE"}}]}, "repeat.exists"),
    ],
    ids=range(18),
)  # fmt: skip
def test_what_an_answer_means(ident: str, status: int, headers: Any, body: Any, means: str) -> None:
    said = [n for n, m in matchers(ALL[ident]).items() if matches(parse(m), status, headers, body)]
    assert said == ([means] if means else [])


@pytest.mark.parametrize(
    ("text", "body", "holds"),
    [
        ("!body:a", {}, True), ("!body:a", {"a": None}, True), ("!body:a", {"a": []}, False),
        ("!body:a=1", {"a": 2}, True), ("!body:a=1", {"a": [2, 1]}, False),
        ("body:a=", {"a": []}, True), ("body:a=", {"a": [1]}, False), ("body:a=", {}, False),
        ("body:*.b=1", {"x": {"b": 1}, "y": 5}, True), ("body:*.b=1", {"x": {"c": 1}}, False),
        ("body:*", {}, False), ("body:*=2", {"x": 1, "y": 2}, True), ("!header:A", {}, False),
        ("!header:A=2", {}, True), ("200 !body:a", {"a": 1}, False),
    ],
    ids=range(15),
)  # fmt: skip
def test_a_condition_of_graphql_answers(text: str, body: Any, holds: bool) -> None:
    assert matches(parse(text), 200, {"A": "1"}, body) is holds


@pytest.mark.parametrize("text", ["!409", "!", "!!body:a", "200 !", "!body:"])
def test_only_a_condition_can_be_turned_round(text: str) -> None:
    with pytest.raises(ContractInvalid, match="matcher"):
        parse(text)


# --- what a file must not say --------------------------------------------------------------

KEY = {"at": "header:Idempotency-Key", "kind": "request"}
GOOD = {"status": "documented", "date": "2026-11-29", "sources": ["the vendor's page"]}


@pytest.mark.parametrize(
    ("parts", "problem"),
    [
        ({"memory": ["repeat.colour"]}, "no field of a contract"),
        ({"memory": ["late.max"]}, "does not claim"),
        ({"memory": ["key"], "second": ["key.at"]}, "listed under second and under memory"),
        ({"accepted": ["key.at"]}, "said by the operator"),
        ({"date": "29.11.2026"}, "write it like 2026-11-29"),
        ({"status": "documented"}, "needs sources"),
        ({"status": "verified", "sources": ["x"]}, "needs the date"),
        ({**GOOD, "memory": ["ok", "key", "repeat"]}, "no claim was seen"),
        ({"key": {**KEY, "form": "short"}}, "key.form is 'short'"),
        ({"key": {**KEY, "form": "[0-9]"}}, "has all of a target key's"),
        ({"key": {**KEY, "form": "[z-a]"}}, "has all of a target key's"),
        ({"key": {**KEY, "form": "uuid", "max": 32}}, "cannot be 'uuid'"),
        ({"key": {"at": "body:email", "kind": "resource", "form": "natural"}}, "not ours to make"),
        ({"key": KEY, "repeat": {"answer": "overwrite"}}, "key.kind 'resource'"),
        ({"key": KEY, "repeat": {"answer": "replay", "failed_rerun_if": "503"}},
         "the exception to"),
        ({"key": KEY, "repeat": {"answer": "replay", "failed": "replayed", "stored": "400",
                                 "failed_rerun_if": "503"}}, "narrow repeat.stored"),
        ({"key": KEY, "repeat": {"answer": "replay", "failed": "replayed",
                                 "failed_rerun_if": "some"}}, "repeat.failed_rerun_if: matcher"),
        ({"undo": ""}, "undo is empty"),
        ({"inbound": {"event_id": "the id"}}, "inbound.event_id is 'the id'"),
        ({"inbound": {"event_id": "body:id", "delivery_id": "body:id"}}, "two things"),
        ({"inbound": {"only": True}, "key": KEY, "repeat": {"answer": "replay"}}, "no effect of"),
    ],
    ids=range(21),
)  # fmt: skip
def test_a_contradiction_is_refused_with_its_file_field_and_fix(
    parts: dict[str, Any], problem: str
) -> None:
    with pytest.raises(ContractInvalid, match=re.escape(problem)) as caught:
        load({"id": "shop.order", **parts}, "shop.toml")
    assert str(caught.value).startswith("shop.toml: shop.order: ")


def test_a_contract_of_another_vendors_file_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(catalogue, "parse", lambda *_: {"shop.order": load({"id": "shop.order"})})
    with pytest.raises(ContractInvalid, match="belongs into another file"):
        catalogue._of_vendor.__wrapped__("caldav")


@pytest.mark.parametrize("ident", ["", "no.such", "../x.y", "stripe", "stripe.v9", ".v1"])
def test_what_is_not_shipped_is_named_with_what_is_like_it(ident: str) -> None:
    with pytest.raises(ContractInvalid, match="is shipped") as caught:
        catalogue.resolve(ident)
    said = str(caught.value)
    assert ("did you mean 'stripe." in said) == ident.startswith("stripe")
    assert ("`ascertain contract list`" in said, len(said) < 400) == (True, True)


def test_a_contract_about_notifications_is_none_for_an_action() -> None:
    with pytest.raises(ContractInvalid, match="not about an effect"):
        catalogue.resolve("shopify.webhook")


def test_a_contract_counts_without_what_nobody_vouches_for() -> None:
    bare = catalogue.resolve("stripe.v1.post")
    assert (bare.repeat.atomic, bare.undo, bare.accepted) == (None, "none", ())
    more = catalogue.resolve("stripe.v1.post", {"stripe.v1.post": ["repeat.atomic"]})
    assert (more.repeat.atomic, more.accepted) == (True, ("repeat.atomic",))
    assert bare.revision != more.revision

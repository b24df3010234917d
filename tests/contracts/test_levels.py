"""What is not known well enough does not count, and taking it away never promises more."""

from __future__ import annotations

import itertools
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from ascertain import open_store
from ascertain.contracts import catalogue
from ascertain.core.contract import Contract, OkRule, load, race_free, terms
from ascertain.core.errors import ContractInvalid
from ascertain.core.levels import KEPT, acceptable, accepted, known_paths, level, stated
from ascertain.core.model import Accepted, Done, NotDone, Unknown
from ascertain.runtime.receipt import assumptions
from ascertain.targets.answer import HttpAnswer
from ascertain.targets.classify.answers import finding_of, success_of

FULL: dict[str, Any] = {
    "id": "shop.order",
    "ok": {"when": "201"},
    "key": {"at": "header:Key", "kind": "request", "max": 40, "scope": "account"},
    "repeat": {"answer": "replay", "keeps": "24h", "failed": "replayed", "stored": "400 header:R",
               "exists": "409 body:code=exists", "mismatch": "422", "busy": "409 body:code=busy",
               "atomic": True},
    "lookup": {"call": "GET /x", "by": "body:op", "lag": "0s", "blind": ["trash"]},
    "late": {"max": "10s", "fence": "close it"},
    "refused": {"invalid": "400|409", "unauthorized": "401", "throttled": "429",
                "transient": "503", "rejected": "402"},
    "inbound": {"event_id": "body:id", "delivery_id": "header:D", "sig": "header:S"},
    "wait": "body:wait", "undo": "DELETE", "harm": "cost_only", "sdk": "retries twice",
}  # fmt: skip


def without(*paths: str, accept: tuple[str, ...] = ()) -> Contract:
    return accepted(load({**FULL, "memory": list(paths)}), accept)


def test_every_field_of_a_contract_may_be_doubted() -> None:
    claims = stated(load(FULL))
    never = {"ok.accepted", "key.form", "repeat.failed_rerun_if"}
    assert set(claims) == {p for p in known_paths() if "." in p or p in (
        "wait", "undo", "harm", "sdk")} - never  # fmt: skip


@pytest.mark.parametrize(
    ("path", "where", "left"),
    [
        ("ok.when", "ok.when", "201"),  # it only narrows what the code may call success
        ("key.at", "key.kind", "none"), ("key.at", "repeat.answer", "again"),
        ("key.kind", "key.at", "none"), ("key.scope", "key.scope", ""), ("key.max", "key.max", 40),
        ("repeat.answer", "repeat.answer", "again"), ("repeat.answer", "repeat.keeps", None),
        ("repeat.answer", "repeat.atomic", None), ("repeat.answer", "key.at", "header:Key"),
        ("repeat.keeps", "repeat.keeps", None), ("repeat.failed", "repeat.stored", ""),
        ("repeat.atomic", "repeat.atomic", None), ("repeat.busy", "repeat.busy", ""),
        ("repeat.busy", "refused.invalid", ""), ("repeat.busy", "refused.rejected", "402"),
        ("repeat.mismatch", "refused.invalid", "400|409"),
        ("lookup.call", "lookup.call", ""), ("lookup.call", "lookup.lag", None),
        ("lookup.call", "lookup.blind", ("trash",)), ("lookup.lag", "lookup.lag", None),
        ("lookup.blind", "lookup.blind", ("trash",)), ("lookup.by", "lookup.by", "body:op"),
        ("lookup", "lookup.blind", ("trash",)), ("lookup", "lookup.lag", None),
        ("late.max", "late.max", None), ("late.fence", "late.fence", ""),
        ("refused.transient", "refused.transient", ""), ("refused", "refused.invalid", ""),
        ("wait", "wait", ""), ("undo", "undo", "none"), ("harm", "harm", "outside"),
        ("sdk", "sdk", "retries twice"), ("inbound.sig", "inbound.sig", ""),
    ],
)  # fmt: skip
def test_what_is_left_without_a_claim(path: str, where: str, left: Any) -> None:
    made, group, name = without(path), *where.rpartition(".")[::2]
    assert getattr(getattr(made, group) if group else made, name) == left


def answer(status: int, body: bytes) -> HttpAnswer:
    return HttpAnswer(status=status, headers={}, content=body, url="")


@pytest.mark.parametrize(("status", "body", "judged"), [
    (200, b'{"errcode": 0}', "code"), (200, b'{"errcode": 40001}', "unknown"),
    (409, b'{"errcode": 0}', "unknown"), (201, b"{}", "unknown"),
])  # fmt: skip
def test_a_doubted_success_only_rules_out(status: int, body: bytes, judged: str) -> None:
    """What memory calls success narrows the 2xx that the code may call one; alone it is none."""
    own = {"id": "chat.send", "ok": {"when": "200|409 body:errcode=0"}, "memory": ["ok.when"]}
    for c in (accepted(load(own)), load(own)):
        finding = finding_of(answer(status, body), c)
        assert isinstance(finding, Unknown) if judged == "unknown" else finding is None
        assert isinstance(success_of(answer(status, body), c, "1"), Unknown)
    counts = accepted(load(own), ["ok.when"])
    assert isinstance(success_of(answer(200, b'{"errcode": 0}'), counts, "1"), Done)


def test_whole_tables_go_together() -> None:
    assert without("inbound").inbound is None
    bare = load({**FULL, "lookup": {"call": "GET /x", "by": "body:op"}, "memory": ["lookup"]})
    assert accepted(bare).lookup is None
    taken = load({**FULL, "ok": {"when": "202"}, "memory": ["ok"]})
    assert accepted(taken).ok == OkRule(when="202")


def test_what_is_accepted_counts_and_is_printed() -> None:
    made = without("repeat", "lookup.lag", "undo", accept=("repeat.atomic", "repeat.answer",
                   "repeat.keeps", "lookup.lag"))  # fmt: skip
    assert made.accepted == ("repeat.answer", "repeat.keeps", "repeat.atomic", "lookup.lag")
    t = terms(made)
    assert race_free(t)
    assert assumptions(t)[:4] == ("lag=0s", "keeps=1d", "repeat.answer", "repeat.atomic")
    whole = without("repeat", accept=("repeat",))
    assert whole.repeat == load(FULL).repeat
    assert "repeat.busy" in whole.accepted


def test_what_only_makes_more_careful_keeps_its_level() -> None:
    made = accepted(load({**FULL, "second": ["key.max"], "memory": ["lookup.blind"]}))
    assert (made.second, made.memory) == (("key.max",), ("lookup.blind",))
    assert level(made, "key.max") == "second"
    assert level(made, "key.at") == "vendor"


@pytest.mark.parametrize("name", ["repeat.busy", "nothing.there", "undo", ""])
def test_only_a_doubted_claim_can_be_accepted(name: str) -> None:
    with pytest.raises(ContractInvalid, match=r"there are: repeat\.atomic"):
        without("repeat.atomic", accept=(name,))


def test_accepting_nothing_of_what_is_certain_changes_nothing() -> None:
    certain = load(FULL)
    assert accepted(certain) == certain


# --- a claim that is taken away never promises more ----------------------------------------

STATUSES = (200, 201, 202, 204, 300, 400, 401, 402, 403, 404, 409, 412, 422, 429, 500, 503, 529)
BODIES: list[Any] = [
    {}, {"code": "busy"}, {"code": "exists"}, {"error": {"type": "idempotency_error"}},
    {"ok": True}, {"errcode": 0}, {"errcode": 45009}, {"code": 0}, {"code": 10000},
    {"error": {"code": "idempotency_key_in_use"}}, {"data": {"status": "success"}},
    {"errors": [{"extensions": {"code": "THROTTLED"}}]}, {"ErrorCode": 0},
    {"errors": [{"extensions": {"code": "RECORD_NOT_UNIQUE"}}]}, {"sys": {"id": "VersionMismatch"}},
    {"data": {"x": {"userErrors": []}}}, {"name": "concurrent_idempotent_requests"},
]  # fmt: skip


def answers() -> list[HttpAnswer]:
    return [
        HttpAnswer(status=s, headers=h, content=msgspec.json.encode(b), url="http://x/")
        for s, h, b in itertools.product(STATUSES, ({}, {"r": "1", "retry-after": "3"}), BODIES)
    ]


ANSWERS = answers()


def said(answer: HttpAnswer, c: Contract) -> tuple[str, Any]:
    found = finding_of(answer, c) or success_of(answer, c)
    kind = type(found).__name__
    return kind, (found.kind, found.stored) if isinstance(found, NotDone) else None


HTTP = [c for c in catalogue.shipped().values() if c.protocol == "http"]


@pytest.mark.parametrize("c", [load(FULL), *HTTP], ids=lambda c: c.id)
def test_no_answer_proves_more_without_a_claim(c: Contract) -> None:
    doubted = [(p,) for p in stated(c)] if c.id == "shop.order" else [c.memory + c.second]
    for paths in doubted:
        less = accepted(replace(c, memory=paths, second=()))
        if c.id != "shop.order":
            less = accepted(c)
        for answer in ANSWERS:
            before, after = said(answer, c), said(answer, less)
            proves = after[0] in (Done.__name__, Accepted.__name__, NotDone.__name__)
            weaker = (before[0], after[0]) == (Done.__name__, Accepted.__name__)
            assert not proves or after == before or weaker or _less_stored(before, after)


def _less_stored(before: tuple[str, Any], after: tuple[str, Any]) -> bool:
    """A refusal may stop speaking for the whole key, never begin to."""
    return before[0] == after[0] == "NotDone" and before[1][0] == after[1][0] and before[1][1]


def test_nothing_is_quieter_or_sees_more_without_a_claim() -> None:
    for c in catalogue.shipped().values():
        less, whole = accepted(c), terms(c)
        made = terms(less)
        for name in ("lag", "late"):
            assert getattr(made, name) in (None, getattr(whole, name)) or name in made.assumed
        blind = set(c.lookup.blind) if c.lookup else set()
        assert blind == (set(less.lookup.blind) if less.lookup else set())
        assert made.reversible <= whole.reversible
        assert set(acceptable(less)) <= KEPT


def test_a_receipt_prints_what_was_accepted(tmp_path: Any) -> None:
    from ascertain import Ledger

    names = ["repeat.atomic", "undo"]
    chosen = catalogue.resolve("stripe.v1.post", {"stripe.v1.post": names})
    with Ledger(open_store(tmp_path / "a.db")) as ledger:

        @ledger.action("pay", key="{order}", owner="anna", contract=chosen, late="30s")
        def pay(call: Any, *, order: str) -> Done:
            return Done(ref=order)

        receipt = pay(order="1")
    assert {"repeat.atomic", "undo", "late=30s"} <= set(receipt.assumptions)

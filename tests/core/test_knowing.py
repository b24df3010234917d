"""What can be shown and what nobody can show yet: both follow from contract and evidence alone."""

from __future__ import annotations

import re
from typing import Any

import pytest
from msgspec.structs import replace

from ascertain.core.candidates import Seen
from ascertain.core.contract import Contract, LookupRule, Terms
from ascertain.core.draft import Case
from ascertain.core.knowing import SENTENCES, knowledge
from ascertain.core.model import (
    SECOND,
    Attempt,
    Kind,
    Operation,
    Outcome,
    Reason,
    Review,
    State,
    Status,
)
from ascertain.core.reconcile import World

NOW = 10_000 * SECOND
SENT = Seen(NOW, "finding", {"sent": {"method": "POST"}, "reason": "no answer"})
LOOKED = Seen(NOW, "look_up", {"status": 200})
BLIND = Contract(id="shop.list", lookup=LookupRule(call="GET /", lag="30s", blind=("drafts",)))


def case(state: State = State.UNKNOWN, **more: Any) -> Case:
    terms = {"lag": 30 * SECOND, "late": 60 * SECOND, "can_look_up": True}
    terms |= {name: more.pop(name) for name in ("lag", "late", "can_look_up", "contract")
              if name in more}  # fmt: skip
    attempt = Attempt(
        token=1, operation="o", kind=Kind.EXECUTE, epoch=1, started_at=NOW - 100 * SECOND,
        deadline=NOW - 70 * SECOND, outcome=Outcome.UNKNOWN, hard=more.pop("hard", True),
    )  # fmt: skip
    attempts = (attempt,) if more.pop("attempted", True) else ()
    status = {"attempts": len(attempts), "last_deadline": attempt.deadline if attempts else None}
    return Case(
        operation=Operation(
            id="o", namespace="n", action="a", key="k", fingerprint="f", input=None
        ),
        status=Status(operation="o", namespace="n", action="a", state=state, **status, **more),
        terms=Terms(**terms),
        attempts=attempts,
    )  # fmt: skip


def codes(given: Case, *seen: Seen, now: int = NOW) -> tuple[set[str], set[str]]:
    found = knowledge(given, seen, World(now=now))
    return {one.code for one in found.shown}, {one.code for one in found.open}


def test_a_lost_answer() -> None:
    shown, unknown = codes(case(), SENT, LOOKED)
    assert shown == {"intent", "one_at_a_time", "sent", "no_sending_after", "asked"}
    assert unknown == {"whether", "still_late", "lag"}


@pytest.mark.parametrize(
    ("more", "code"),
    [
        ({"can_look_up": False}, "no_look_up"),
        ({"late": None}, "late_unknown"),
        ({"hard": False}, "sending_unknown"),
        ({"contract": BLIND}, "blind"),
    ],
)
def test_what_the_contract_leaves_open_is_said(more: dict[str, Any], code: str) -> None:
    assert code not in codes(case(), SENT)[1]
    assert code in codes(case(**more), SENT)[1]


def test_no_deadline_that_we_do_not_hold_is_said_to_be_over() -> None:
    assert "no_sending_after" in codes(case(), SENT)[0]
    assert "no_sending_after" not in codes(case(hard=False), SENT)[0]
    assert "no_sending_after" not in codes(case(), SENT, now=NOW - 80 * SECOND)[0]


def test_that_it_was_sent_is_only_said_where_it_was_seen() -> None:
    """A worker that died may have sent it, or not: a look-up's answer says nothing about that."""
    shown, unknown = codes(case(), LOOKED)
    assert "sent" not in shown
    assert "whether_sent" in unknown
    shown, unknown = codes(case(State.PENDING, attempted=False))
    assert (shown, unknown) == ({"intent", "nothing_sent"}, set())


def test_an_answer_is_one_to_what_was_sent() -> None:
    assert "answered" not in codes(case(), LOOKED)[0]
    assert "answered" in codes(case(), replace_data(SENT, status=500))[0]


def replace_data(seen: Seen, **data: Any) -> Seen:
    return replace(seen, data={**seen.data, **data})


def test_after_the_quiet_period_nothing_is_late_any_more() -> None:
    assert "still_late" not in codes(case(), SENT, now=NOW + 200 * SECOND)[1]


def test_what_is_settled_leaves_nothing_open_but_what_was_given_up() -> None:
    assert codes(case(State.DONE, ref="7"), SENT)[1] == set()
    assert "reference" in codes(case(State.DONE, ref="7"), SENT)[0]
    assert codes(case(State.NOT_DONE, reason=Reason.LEFT), SENT)[1] == {"left"}
    assert codes(case(State.NOT_DONE, reason=Reason.INVALID), SENT)[1] == set()
    assert codes(case(State.ACCEPTED), SENT)[1] == {"final"}


def test_of_several_nobody_knows_which() -> None:
    assert "second" in codes(case(), SENT, Seen(NOW, "look_up", {"refs": ["1", "2"]}))[1]
    review = Review(id="r", operation="o", namespace="n", road="duplicate", owner="x", opened_at=1)
    assert codes(replace(case(State.DONE, ref="1"), reviews=(review,)), SENT)[1] == {"second"}


@pytest.mark.parametrize("code", SENTENCES)
def test_every_sentence_is_in_both_languages(code: str) -> None:
    english, chinese = SENTENCES[code]
    assert sorted(re.findall(r"\{\w+\}", english)) == sorted(re.findall(r"\{\w+\}", chinese))
    assert re.search("[\u4e00-\u9fff]", chinese)
    assert "！" not in chinese

"""Partial batches: one operation for each item, a finding for each, and only the missing again."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import ascertain
from ascertain import (
    Absent,
    Contract,
    Done,
    NotDone,
    NotDoneKind,
    Reason,
    Several,
    State,
    Unknown,
    WaitingOn,
)
from ascertain.acceptance.faults import HttpFaultProxy
from ascertain.acceptance.scenarios.base import recover, settled
from ascertain.acceptance.systems.jobs import Jobs
from ascertain.core.contract import LookupRule, OkRule

BULK = Contract(
    id="simulator.items.bulk",
    title="many items, an answer for some",
    ok=OkRule(when="207"),
    undo="DELETE",
    lookup=LookupRule(call="GET /items?key={key}", by="body:key", lag="0s"),
)
CONTROL = "control" + "0" * 19


@pytest.fixture
def jobs(tmp_path: Path) -> Iterator[Jobs]:
    with tempfile.TemporaryDirectory(prefix="jobs-") as made, Jobs(made) as system:
        from ascertain.acceptance.systems.web import ask_json

        control = {"items": [{"key": CONTROL, "text": "control"}]}
        assert ask_json(system.port, "POST", "/bulk", control)[0] == 207
        yield system


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[ascertain.Ledger]:
    with ascertain.open(str(tmp_path / "ledger.db")) as opened:
        yield opened


def declare(ledger: Any, port: int, sent: list[list[str]]) -> Any:
    base = f"http://127.0.0.1:{port}"

    @ledger.action(
        "shop.add_items",
        key="{row}",
        owner="anna",
        contract=BULK,
        batch=True,
        sends="call",
        timeout=2,
        first_delay=0.1,
        longest_delay=0.3,
        lookups=60,
        total=60,
    )
    def add(call: Any, items: Any) -> list[Any]:
        sent.append([item.key for item in items])
        asked = [{"key": item.target_key, "text": item.input["row"]} for item in items]
        answer = call.http.post(f"{base}/bulk", json={"items": asked})
        results = {result["key"]: result for result in answer.json()["results"]}
        return [finding(results.get(item.target_key)) for item in items]

    @add.lookup(late=1, control=CONTROL)
    def find(call: Any) -> Any:
        answer = call.http.get(f"{base}/items?key={call.target_key}")
        refs = [item["id"] for item in answer.json()] if answer.status == 200 else []
        if len(refs) > 1:
            return Several(refs=refs)
        return Done(ref=refs[0]) if refs else Absent()

    return add


def finding(result: dict[str, Any] | None) -> Any:
    """An item that the answer leaves out may have been made: it is unknown, never failed."""
    if result is None:
        return Unknown("the answer says nothing about this item")
    if result["status"] == 201:
        return Done(ref=result["id"])
    return NotDone(NotDoneKind.INVALID, result["error"])


ROWS = [{"row": f"row-{word}"} for word in ("made", "refused", "silent", "lost")]


def test_each_item_has_its_own_outcome_and_only_the_missing_is_done_later(
    jobs: Jobs, ledger: Any
) -> None:
    sent: list[list[str]] = []
    add = declare(ledger, jobs.port, sent)
    made, refused, silent, lost = add.batch(ROWS, wait=0)
    assert made.state is State.DONE
    assert (refused.state, refused.reason) == (State.NOT_DONE, Reason.INVALID)
    assert refused.waiting_on is WaitingOn.INPUT
    assert {silent.state, lost.state} <= {State.UNKNOWN, State.DONE}
    assert lost.state is State.UNKNOWN
    silent = recover(ledger, silent, settled)
    assert silent.confirmed_by == "look_up"
    lost = recover(ledger, lost, settled)
    assert (lost.done, lost.attempts) == (True, 2)
    assert sent == [["row-made", "row-refused", "row-silent", "row-lost"], ["row-lost"]]
    assert [jobs.creations(row["row"]) for row in ROWS] == [1, 0, 1, 1]


def test_the_same_batch_with_one_more_sends_only_that_one(jobs: Jobs, ledger: Any) -> None:
    sent: list[list[str]] = []
    add = declare(ledger, jobs.port, sent)
    first = add.batch(ROWS[:3], wait=0)
    recover(ledger, first[2], settled)
    again = add.batch([*ROWS[:3], {"row": "row-new"}], wait=0)
    assert [r.reused for r in again] == [True, True, True, False]
    assert sent[1:] == [["row-new"]]
    assert [jobs.creations(r.key) for r in again] == [1, 0, 1, 1]


def test_a_batch_whose_whole_answer_is_lost_is_looked_up_item_by_item(
    jobs: Jobs, ledger: Any
) -> None:
    sent: list[list[str]] = []
    with HttpFaultProxy(jobs.port) as proxy:
        proxy.drop_response("POST")
        add = declare(ledger, proxy.port, sent)
        taken = add.batch(ROWS, wait=0)
        ended = [recover(ledger, r, lambda now: settled(now) or refused(now)) for r in taken]
    assert [r.state for r in ended] == [State.DONE, State.NOT_DONE, State.DONE, State.DONE]
    assert [jobs.creations(row["row"]) for row in ROWS] == [1, 0, 1, 1]
    resent = [key for keys in sent[1:] for key in keys]
    assert set(resent) == {"row-lost", "row-refused"}, "only what was looked for and is not there"
    assert resent.count("row-lost") == 1


def refused(receipt: Any) -> bool:
    return receipt.state is State.NOT_DONE

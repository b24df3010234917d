"""Own code in any language: it claims, acts under the same laws, and reports over HTTP."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from ascertain import open_store
from ascertain.core.model import Kind, State
from ascertain.runtime.ledger import Driver
from ascertain.runtime.recovery import sweeping
from ascertain.runtime.remote import Client, RemoteWork
from ascertain.runtime.ticket import Options
from server.house import SHOP, Home, house
from server.own import OWN
from server.target import Shop

Answer = dict[str, Any]
EFFECTS = ("own", "own_searched", "own_opaque")


@pytest.fixture
def own(tmp_path: Path, target: Shop) -> Iterator[Home]:
    with house(tmp_path, OWN.format(target=target.url, lease="30s")) as running:
        yield running


@pytest.fixture(params=["sqlite", "postgres"])
def anywhere(request: Any, tmp_path: Path, target: Shop) -> Iterator[Home]:
    store = None
    if request.param == "postgres":
        store = open_store(request.getfixturevalue("postgres_database"))
    with house(tmp_path, OWN.format(target=target.url, lease="30s"), store=store) as running:
        yield running


@pytest.fixture
def brief(tmp_path: Path, target: Shop) -> Iterator[Home]:
    """Leases that end soon, for what happens then."""
    with house(tmp_path, OWN.format(target=target.url, lease="300ms")) as running:
        yield running


def ask(home: Home, path: str, **body: Any) -> httpx2.Response:
    return home.client.post(f"/v1/work/{path}", json=body)


def claim(home: Home, action: str = "own", name: str = "A", **more: Any) -> Answer:
    answer = ask(home, "claim", action=action, input={"name": name}, **more)
    assert answer.status_code == 200, answer.text
    found: Answer = answer.json()
    return found


def claim_when_due(home: Home, action: str = "own", name: str = "A") -> Answer:
    """Claim as a client does: again after each wait."""
    until = time.monotonic() + 10
    while (permit := claim(home, action, name, wait=5))["permit"] == "wait":
        assert time.monotonic() < until, permit
    return permit


def report(home: Home, permit: Answer, report: str = "r1", **result: Any) -> httpx2.Response:
    return ask(home, f"{permit['attempt']}/finding", operation=permit["operation"]["id"],
               report=report, result=result)  # fmt: skip


def sweep(home: Home) -> Any:
    engine = home.serving.space("default").engine
    return Driver(engine).drive(sweeping(engine, 100))


def after(home: Home, permit: Answer) -> Answer:
    found: Answer = home.client.get(f"/v1/operations/{permit['operation']['id']}").json()
    return found


def lapse(home: Home, permit: Answer) -> None:
    """Wait until the lease is over, and let a worker see it."""
    time.sleep(permit["lease_in"] + 0.05)
    sweep(home)


# --- one operation ---


def test_a_permit_says_all_that_own_code_needs(own: Home) -> None:
    permit = claim(own)
    assert permit["permit"] == "execute"
    assert permit["operation"]["state"] == "running"
    assert permit["input"] == {"name": "A", "note": ""}
    assert (permit["key"], permit["epoch"]) == ("A", 1)
    assert len(permit["target_key"]) == 26
    assert 28 < permit["deadline_in"] <= permit["lease_in"] <= 30


def test_done_once_and_then_reused(own: Home) -> None:
    permit = claim(own)
    told = report(own, permit, finding="done", ref="7", result={"n": 1}).json()
    assert (told["state"], told["ref"], told["result"]) == ("done", "7", {"n": 1})
    again = claim(own)
    assert (again["permit"], again["operation"]["ref"]) == ("reuse", "7")
    assert "attempt" not in again


def test_while_one_acts_another_waits(own: Home) -> None:
    claim(own)
    second = claim(own)
    assert second["permit"] == "wait"
    assert second["retry_after"] > 0
    assert second["next_step"]["en"] == "An attempt is under way."


def test_a_wait_ends_with_the_result(own: Home) -> None:
    import threading

    permit = claim(own)
    found: list[Answer] = []
    waiting = threading.Thread(target=lambda: found.append(claim(own, wait=10)))
    waiting.start()
    report(own, permit, finding="done", ref="7")
    waiting.join(10)
    assert found[0]["permit"] == "reuse"


def test_another_input_under_the_same_key_is_refused(own: Home) -> None:
    claim(own)
    answer = ask(own, "claim", action="own", input={"name": "A", "note": "other"})
    assert (answer.status_code, answer.json()["code"]) == (422, "input_mismatch")


def test_an_operation_is_claimed_by_its_key_alone(own: Home) -> None:
    made = own.client.post(
        "/v1/operations", json={"action": "own", "input": {"name": "A"}, "wait": 0,
                                "on_unresolved": "accept"},
    )  # fmt: skip
    assert made.status_code == 202
    assert made.json()["attempts"] == 0  # the server never runs own code
    answer = ask(own, "claim", action="own", key="A")
    assert answer.json()["permit"] == "execute"
    assert answer.json()["input"] == {"name": "A", "note": ""}
    assert ask(own, "claim", action="own", key="Z").status_code == 404
    claim(own, name="#1001")
    for written in ("#1001", "%231001"):
        assert ask(own, "claim", action="own", key=written).json()["operation"]["key"] == "%231001"


def test_not_done_is_tried_again_when_it_says(own: Home) -> None:
    permit = claim(own)
    told = report(own, permit, finding="not_done", kind="throttled", retry_after=60).json()
    assert told["state"] == "pending"
    second = claim(own)
    assert second["permit"] == "wait"
    assert 50 < second["retry_after"] <= 60


def test_a_refused_input_is_a_problem_for_the_next_claim(own: Home) -> None:
    report(own, claim(own), finding="not_done", kind="invalid", reason="no such thing")
    answer = ask(own, "claim", action="own", input={"name": "A"})
    assert (answer.status_code, answer.json()["code"]) == (422, "input_rejected")


def test_released_it_was_never_sent(own: Home) -> None:
    permit = claim(own)
    body = {"operation": permit["operation"]["id"]}
    told = ask(own, f"{permit['attempt']}/release", **body)
    assert (told.json()["state"], told.json()["attempts"]) == ("pending", 0)
    assert ask(own, f"{permit['attempt']}/release", **body).json()["state"] == "pending"
    assert claim(own)["permit"] == "execute"


# --- unknown: replay, look-up, a person ---


def test_an_unknown_outcome_is_replayed_under_the_same_key(own: Home) -> None:
    permit = claim(own)
    told = report(own, permit, finding="unknown", reason="no answer").json()
    assert told["state"] == "unknown"
    second = claim_when_due(own)
    assert second["permit"] == "replay"
    assert second["target_key"] == permit["target_key"]
    assert second["attempt"] != permit["attempt"]


def test_an_unknown_outcome_that_nothing_can_settle_goes_to_a_person(own: Home) -> None:
    report(own, claim(own, "own_opaque"), finding="unknown")
    answer = ask(own, "claim", action="own_opaque", input={"name": "A"})
    assert (answer.status_code, answer.json()["code"]) == (409, "in_review")
    assert answer.json()["owner"] == "anna"


def keys_of(permit: Answer, role: str) -> list[str]:
    return [k["target_key"] for k in permit["target_keys"] if k["role"] == role]


def look(home: Home, permit: Answer, **found: dict[str, Any]) -> Answer:
    """Report a look-up: what each role's key gave; absent unless said."""
    reports = [
        {"target_key": k["target_key"], **found.get(k["role"], {"finding": "absent"})}
        for k in permit["target_keys"]
    ]
    answer = ask(home, f"{permit['attempt']}/finding", operation=permit["operation"]["id"],
                 report="l1", look_up=reports)  # fmt: skip
    assert answer.status_code == 200, answer.text
    told: Answer = answer.json()
    return told


def lost(home: Home, name: str = "A") -> Answer:
    """An outcome is lost; the look-up that follows is claimed once its absence may count."""
    first = claim(home, "own_searched", "control")
    report(home, first, finding="done", ref="c")
    report(home, claim(home, "own_searched", name), finding="unknown")
    return claim_when_due(home, "own_searched", name)


def test_a_look_up_that_finds_it_settles_it(own: Home) -> None:
    permit = lost(own)
    assert permit["permit"] == "look_up"
    assert len(keys_of(permit, "epoch")) == len(keys_of(permit, "invented")) == 1
    told = look(own, permit, epoch={"finding": "done", "ref": "9"})
    assert (told["state"], told["ref"], told["confirmed_by"]) == ("done", "9", "look_up")


def settled_look(home: Home) -> Answer:
    """A look-up that began after the quiet period, with the positive control."""
    permit = lost(home)
    for _ in range(20):
        if keys_of(permit, "control"):
            return permit
        look(home, permit)
        permit = claim_when_due(home, "own_searched")
    raise AssertionError("no look-up after the quiet period")


def test_an_earned_absence_allows_one_more_execute(brief: Home) -> None:
    permit = settled_look(brief)
    told = look(brief, permit, control={"finding": "done", "ref": "c"})
    assert told["state"] == "pending"
    assert claim(brief, "own_searched")["permit"] == "execute"


@pytest.mark.parametrize(
    "found",
    [
        {},  # the control was not found
        {"control": {"finding": "done", "ref": "c"}, "epoch": {"finding": "absent",
                                                              "complete": False}},
        {"control": {"finding": "done", "ref": "c"}, "invented": {"finding": "done", "ref": "x"}},
        {"control": {"finding": "done", "ref": "c"}, "invented": {"finding": "unknown"}},
    ],
)  # fmt: skip
def test_an_absence_that_is_not_earned_proves_nothing(
    brief: Home, found: dict[str, dict[str, Any]]
) -> None:
    assert look(brief, settled_look(brief), **found)["state"] == "unknown"


def test_a_key_that_was_not_reported_proves_nothing(brief: Home) -> None:
    permit = settled_look(brief)
    found = [
        {"target_key": k["target_key"], "finding": "done" if k["role"] == "control" else "absent"}
        for k in permit["target_keys"]
        if k["role"] != "epoch"
    ]
    answer = ask(brief, f"{permit['attempt']}/finding", operation=permit["operation"]["id"],
                 report="l1", look_up=found)  # fmt: skip
    assert answer.json()["state"] == "unknown"


def test_several_go_to_a_person(own: Home) -> None:
    told = look(own, lost(own), epoch={"finding": "several", "refs": ["1", "2"]})
    assert (told["state"], told["waiting_on"]) == ("unknown", "review")


# --- leases, fences and late truths ---


def test_a_lease_is_extended_and_refused_beyond_the_bounds(own: Home) -> None:
    permit = claim(own)
    body = {"operation": permit["operation"]["id"]}
    answer = ask(own, f"{permit['attempt']}/extend", by=60, **body)
    assert 58 < answer.json()["lease_in"] <= 60
    answer = ask(own, f"{permit['attempt']}/extend", by=3600, **body)
    assert (answer.status_code, answer.json()["code"]) == (409, "refused")


def test_a_lost_lease_is_not_extended_and_its_outcome_is_unknown(brief: Home) -> None:
    permit = claim(brief, "own_opaque")
    lapse(brief, permit)
    assert after(brief, permit)["state"] == "unknown"
    body = {"operation": permit["operation"]["id"]}
    answer = ask(brief, f"{permit['attempt']}/extend", by=60, **body)
    assert (answer.status_code, answer.json()["code"]) == (409, "lease_lost")


def test_a_late_report_is_kept_and_twice_changes_nothing(brief: Home) -> None:
    permit = claim(brief, "own_opaque")
    lapse(brief, permit)
    for _ in range(3):
        told = report(brief, permit, finding="done", ref="7").json()
        assert (told["state"], told["ref"]) == ("done", "7")
    history = brief.client.get(f"/v1/operations/{permit['operation']['id']}/history").json()
    assert [e["kind"] for e in history["items"]].count("late_report") == 1


def test_an_older_report_repeated_after_a_newer_one_changes_nothing(own: Home) -> None:
    permit = claim(own, "own_opaque")
    report(own, permit, "r1", finding="unknown")
    report(own, permit, "r2", finding="done", ref="7")
    before = own.client.get(f"/v1/operations/{permit['operation']['id']}/history").json()
    told = report(own, permit, "r1", finding="unknown").json()
    assert told["state"] == "done"
    now = own.client.get(f"/v1/operations/{permit['operation']['id']}/history").json()
    assert now == before


def test_a_token_speaks_for_its_own_operation_only(own: Home) -> None:
    first, second = claim(own, name="A"), claim(own, name="B")
    mixed = {**first, "operation": second["operation"]}
    assert report(own, mixed, finding="done", ref="7").status_code == 404
    wrong = {**first, "attempt": str(int(first["attempt"]) ^ 1)}
    assert report(own, wrong, finding="done", ref="7").status_code == 404
    assert [after(own, p)["state"] for p in (first, second)] == ["running", "running"]


def test_another_namespace_sees_nothing(own: Home) -> None:
    permit = claim(own)
    stranger = own.as_token(own.token("work", namespace="other"))
    for verb, body in (("extend", {"by": 5}), ("release", {}),
                       ("finding", {"report": "r", "result": {"finding": "unknown"}})):  # fmt: skip
        answer = stranger.post(f"/v1/work/{permit['attempt']}/{verb}",
                               json={"operation": permit["operation"]["id"], **body})  # fmt: skip
        assert answer.status_code == 404
    assert after(own, permit)["state"] == "running"


def test_what_the_server_carries_out_is_not_for_own_code(tmp_path: Path, target: Shop) -> None:
    with house(tmp_path, SHOP.format(target=target.url)) as home:
        answer = ask(home, "claim", action="order", input={"name": "A"})
        assert (answer.status_code, answer.json()["code"]) == (409, "refused")
        home.client.post("/v1/operations", json={"action": "order", "input": {"name": "A"}})
        [row] = [r for t, r in home.serving.store.rows() if t == "attempt"]
        answer = ask(home, f"{row['token']}/finding", operation=row["operation"], report="r",
                     result={"finding": "done", "ref": "666"})  # fmt: skip
        assert (answer.status_code, answer.json()["code"]) == (409, "refused")


# --- a claim that has a name ---

MINE, OTHER = "claim-of-mine-0001", "claim-of-another-1"


@pytest.mark.parametrize("kind", ["execute", "look_up"])
def test_the_same_claim_again_gets_the_same_permit(own: Home, kind: str) -> None:
    """While its lease lasts; by another name, worker or token it is somebody else's."""
    action = "own" if kind == "execute" else "own_searched"
    if kind == "look_up":
        early = lost(own)
        ask(own, f"{early['attempt']}/release", operation=early["operation"]["id"])
    first = claim(own, action, claim=MINE, worker="w")
    assert first["permit"] == kind
    again = claim(own, action, claim=MINE, worker="w")
    same = ("permit", "attempt", "target_key", "epoch", "key", "input", "target_keys")
    assert [again.get(n) for n in same] == [first.get(n) for n in same]
    assert 0 < again["lease_in"] < first["lease_in"]
    assert again["deadline_in"] < first["deadline_in"]
    for other in ({"claim": OTHER, "worker": "w"}, {"claim": MINE}, {"worker": "w"}):
        assert claim(own, action, **other)["permit"] == "wait"
    stranger = own.as_token(own.token("work ops:read"))
    body = {"action": action, "input": {"name": "A"}, "claim": MINE, "worker": "w"}
    assert stranger.post("/v1/work/claim", json=body).json()["permit"] == "wait"
    by_key = ask(own, "claim", action=action, key="A", claim=MINE, worker="w").json()
    assert by_key["attempt"] == first["attempt"]
    kept = json.dumps([row for _, row in own.serving.store.rows()], default=str)
    assert MINE not in kept


def test_a_claim_that_has_ended_gives_its_permit_no_more(own: Home) -> None:
    first = claim(own, claim=MINE)
    assert ask(own, f"{first['attempt']}/release",
               operation=first["operation"]["id"]).status_code == 200  # fmt: skip
    second = claim(own, claim=MINE)
    assert (second["permit"], second["attempt"] != first["attempt"]) == ("execute", True)
    report(own, second, finding="done", ref="7")
    assert claim(own, claim=MINE)["permit"] == "reuse"


def test_a_claim_whose_lease_is_over_gives_its_permit_no_more(brief: Home) -> None:
    first = claim(brief, claim=MINE)
    time.sleep(first["lease_in"] + 0.05)
    second = claim(brief, claim=MINE)
    assert second["permit"] in ("wait", "replay")
    assert second.get("attempt") != first["attempt"]


def test_due_work_is_given_again_to_the_same_claim(anywhere: Home) -> None:
    for name in "ABC":
        anywhere.client.post(
            "/v1/operations", json={"action": "own", "input": {"name": name}, "wait": 0}
        )
    first, again, other, last = (
        ask(anywhere, "due", actions=["own"], limit=2, claim=name).json()["items"]
        for name in (MINE, MINE, OTHER, "x" * 16)
    )
    assert [p["key"] for p in first] == ["A", "B"]
    assert [p["attempt"] for p in again] == [p["attempt"] for p in first]
    assert ([p["key"] for p in other], last) == (["C"], [])


def test_a_claim_with_a_name_is_not_given_back_for_who_went_away(own: Home) -> None:
    """The same claim may come again at this moment, and act: nobody may say that it did not."""
    work = RemoteWork(own.serving.space("default").engine)

    async def gone(client: Client) -> str:
        async def granted(_: Any) -> Any:
            raise asyncio.CancelledError

        work._granted = granted  # type: ignore[method-assign]
        with pytest.raises(asyncio.CancelledError):
            await work.claim("own", {"name": client.shown}, None, client=client,
                             options=Options(), wait=0)  # fmt: skip
        [found] = own.serving.space("default").ledger.find(key=client.shown)
        return str(found.state)

    assert asyncio.run(gone(Client.of("a", "", None))) == "pending"
    assert asyncio.run(gone(Client.of("b", "", MINE))) == "running"


def test_the_name_of_a_claim_is_long_enough_to_be_nobody_elses(own: Home) -> None:
    answer = ask(own, "claim", action="own", input={"name": "A"}, claim="1")
    assert (answer.status_code, answer.json()["code"]) == (422, "body_invalid")


def test_work_needs_its_own_right(own: Home) -> None:
    reader = own.as_token(own.token("ops:read ops:write"))
    assert reader.post("/v1/work/claim", json={"action": "own"}).status_code == 403


# --- due work ---


def test_due_work_is_claimed_as_far_as_it_can_start(own: Home) -> None:
    for name in "ABC":
        own.client.post("/v1/operations", json={"action": "own", "input": {"name": name},
                                                "wait": 0})  # fmt: skip
    first = ask(own, "due", actions=["own"], limit=2).json()["items"]
    second = ask(own, "due", actions=["own"], limit=2).json()["items"]
    assert [p["key"] for p in (*first, *second)] == ["A", "B", "C"]
    assert ask(own, "due", actions=["own"]).json() == {"items": []}
    running = own.client.get("/v1/operations").json()["items"]
    assert [r["state"] for r in running] == ["running"] * 3


def test_a_sweep_ends_leases_and_claims_nothing(brief: Home) -> None:
    """The server's workers end what is over and hand over to people, and act for nobody."""
    permits = [claim(brief, action) for action in EFFECTS]
    brief.client.post("/v1/operations", json={"action": "own", "input": {"name": "B"}, "wait": 0})
    time.sleep(0.4)
    for _ in range(3):
        assert sweep(brief).errors == []
    states = [after(brief, p) for p in permits]
    assert [s["state"] for s in states] == ["unknown"] * 3
    assert [s["waiting_on"] for s in states] == ["clock", "clock", "review"]
    rows = [r for t, r in brief.serving.store.rows() if t == "attempt"]
    assert [r["kind"] for r in rows] == [Kind.EXECUTE] * 3
    # Their due times are left alone: own code finds them at once.
    due = ask(brief, "due", actions=["own", "own_searched"], limit=5).json()["items"]
    assert sorted(p["permit"] for p in due) == ["execute", "look_up", "replay"]


def test_an_input_that_is_not_kept_is_left_to_who_has_it(tmp_path: Path, target: Shop) -> None:
    config = OWN.format(target=target.url, lease="30s").replace(
        "deterministic = true", 'deterministic = true\nstore_input = "none"'
    )
    with house(tmp_path, config) as home:
        home.client.post("/v1/operations", json={"action": "own", "input": {"name": "A"},
                                                 "wait": 0})  # fmt: skip
        assert ask(home, "due", actions=["own"]).json() == {"items": []}
        [row] = home.client.get("/v1/operations").json()["items"]
        assert row["state"] == State.PENDING


# --- a target that does not answer ---


def test_own_code_waits_for_a_target_that_does_not_answer_and_one_tries(own: Home) -> None:
    for name in "ABC":  # nobody reached it
        report(own, claim(own, "own_opaque", name), finding="not_done", kind="transient",
               retry_after=60)  # fmt: skip
    held = claim(own, name="D")
    assert held["permit"] == "wait"
    assert "does not answer" in held["next_step"]["en"]
    own.client.post("/v1/operations", json={"action": "own", "input": {"name": "E"}, "wait": 0})
    assert ask(own, "due", actions=["own"], limit=5).json() == {"items": []}
    trial = claim_when_due(own, name="D")  # after a second one of them may
    assert trial["permit"] == "execute"
    assert claim(own, name="E")["permit"] == "wait"
    report(own, trial, finding="done", ref="1")
    assert claim(own, name="E")["permit"] == "execute"


def test_a_paused_target_gives_no_permit_but_to_look(brief: Home) -> None:
    permit = lost(brief)
    look(brief, permit)
    brief.client.post("/v1/targets/shop/pause", json={"why": "moving"})
    held = claim(brief, name="new")
    assert held["permit"] == "wait"
    assert "moving" in held["next_step"]["zh"]
    assert claim_when_due(brief, "own_searched")["permit"] == "look_up"
    brief.client.post("/v1/targets/shop/resume", json={})
    assert claim(brief, name="new")["permit"] == "execute"


# --- what it says is untrusted ---


def test_evidence_is_redacted_and_bounded(own: Home) -> None:
    permit = claim(own)
    told = {"line": "POST https://u:secret-pw@x.test/?api_key=abc123456", "big": "x" * 400_000}
    report(own, permit, finding="unknown", reason="Authorization: Bearer tok_abcdef123456",
           evidence=told)  # fmt: skip
    kept = own.client.get(f"/v1/operations/{permit['operation']['id']}/history").text
    assert len(kept) < 300_000
    for secret in ("secret-pw", "abc123456", "tok_abcdef123456"):
        assert secret not in kept


@pytest.mark.parametrize("depth", [50, 400, 5000])
def test_what_is_nested_deeply_is_cut_or_refused(own: Home, depth: int) -> None:
    permit = claim(own)
    deep = json.dumps({"a": 1}).replace("1", '{"a":[' * depth + "1" + "]}" * depth)
    asked = json.dumps({"operation": permit["operation"]["id"], "report": "r", "costs": ["COST"],
                        "result": {"finding": "unknown", "evidence": "EVIDENCE"}})  # fmt: skip
    body = asked.replace('"COST"', deep).replace('"EVIDENCE"', deep)
    answer = own.client.post(f"/v1/work/{permit['attempt']}/finding", content=body,
                             headers={"Content-Type": "application/json"})  # fmt: skip
    assert answer.status_code in (200, 400), answer.text
    text = '{"action": "own", "input": {"name": "B", "note": ' + deep + "}}"
    answer = own.client.post("/v1/work/claim", content=text,
                             headers={"Content-Type": "application/json"})  # fmt: skip
    assert answer.status_code in (200, 400, 422), answer.text


def test_nothing_is_claimed_for_a_client_that_is_gone(own: Home) -> None:
    """A permit is claimed at once or not at all: its seconds count from before the request."""
    permit = claim(own)
    with pytest.raises(httpx2.TimeoutException):
        own.client.post("/v1/work/claim", json={"action": "own", "input": {"name": "A"},
                                                "wait": 30}, timeout=0.3)  # fmt: skip
    time.sleep(0.3)
    report(own, permit, finding="not_done", kind="throttled", retry_after=0)
    time.sleep(0.3)
    assert after(own, permit)["state"] == "pending"


@pytest.mark.parametrize(
    "body",
    [
        {"result": {"finding": "not_done"}},
        {"result": {"finding": "absent"}},
        {"result": {"finding": "exploded"}},
        {"result": {"finding": "done", "ref": "x" * 501}},
        {"result": {"finding": "done", "ref": 10**30}},
        {"result": {"finding": "done"}, "look_up": []},
        {"look_up": [{"target_key": "k", "finding": "not_done", "kind": "invalid"}]},
        {},
        {"result": {"finding": "done", "more": 1}},
    ],
)
def test_a_finding_that_is_none_changes_nothing(own: Home, body: dict[str, Any]) -> None:
    permit = claim(own)
    answer = ask(own, f"{permit['attempt']}/finding", operation=permit["operation"]["id"],
                 report="r", **body)  # fmt: skip
    assert answer.status_code == 422, answer.text
    assert after(own, permit)["state"] == "running"


def test_a_look_up_and_an_effect_are_reported_each_in_its_own_way(own: Home) -> None:
    permit = lost(own)
    assert report(own, permit, finding="done", ref="1").status_code == 409
    acting = claim(own)
    answer = ask(own, f"{acting['attempt']}/finding", operation=acting["operation"]["id"],
                 report="r", look_up=[])  # fmt: skip
    assert answer.status_code == 409


@pytest.mark.parametrize("token", ["0", "x", str(2**63), "-1"])
def test_a_token_that_is_none_is_refused(own: Home, token: str) -> None:
    assert ask(own, f"{token}/release", operation="x").status_code == 422

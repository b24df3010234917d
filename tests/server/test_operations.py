"""Submitting one operation: what each state is answered with, and that no client is needed."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from ascertain import open_store
from server.house import SHOP, Home, house
from server.target import Shop

LONGEST = 10  # seconds that a test waits for something to have happened


def submit(home: Home, name: str, action: str = "order", **more: Any) -> Any:
    asked = {"action": action, "input": {"name": name}, **more}
    return home.client.post("/v1/operations", json=asked)


def soon(holds: Callable[[], Any]) -> Any:
    """Wait until something holds, and return it."""
    until = time.monotonic() + LONGEST
    while not (found := holds()):
        assert time.monotonic() < until, "it did not come to that"
        time.sleep(0.01)
    return found


def find(home: Home, **what: Any) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = home.client.get("/v1/operations", params=what).json()["items"]
    return found


# --- answers by state ---


def test_done_and_reused_are_200(home: Home, target: Shop) -> None:
    first, again = submit(home, "A"), submit(home, "A")
    assert [a.status_code for a in (first, again)] == [200, 200]
    assert [a.json()["reused"] for a in (first, again)] == [False, True]
    assert first.json()["user_message"].keys() == {"en", "zh"}
    assert first.json()["link"].endswith(f"/op/{first.json()['id']}")
    assert target.made() == Counter(A=1)


def test_unknown_is_a_409_that_says_what_happens_next(home: Home, target: Shop) -> None:
    target.fates["B"] = ["drop"] * 50
    answer = submit(home, "B", wait=0)
    problem = answer.json()
    assert (answer.status_code, problem["code"]) == (409, "outcome_unknown")
    assert problem["type"] == "urn:ascertain:problem:outcome_unknown"
    assert problem["state"] == "unknown"
    assert problem["next_step"]["zh"]
    assert problem["link"].endswith(problem["operation"])
    assert "请勿重复提交" in problem["user_message"]["zh"]
    assert int(answer.headers["retry-after"]) >= 1


def test_who_accepts_what_is_not_resolved_gets_202(home: Home, target: Shop) -> None:
    target.fates["B"] = ["drop"] * 50
    answer = submit(home, "B", wait=0, on_unresolved="accept")
    assert (answer.status_code, answer.json()["state"]) == (202, "unknown")


def test_a_lost_answer_is_found_within_the_wait(home: Home, target: Shop) -> None:
    target.fates["B"] = ["drop"]
    answer = submit(home, "B", wait=8)
    assert (answer.status_code, answer.json()["state"]) == (200, "done")
    assert target.made() == Counter(B=1)


def test_a_refused_input_is_422_and_not_done(home: Home, target: Shop) -> None:
    target.fates["C"] = ["bad"]
    answer = submit(home, "C")
    assert (answer.status_code, answer.json()["code"]) == (422, "input_rejected")
    assert answer.json()["state"] == "not_done"
    accepting = submit(home, "C", on_unresolved="accept")
    assert accepting.status_code == 422  # proven not done is resolved


def test_a_proven_failure_that_is_tried_again_is_409(home: Home, target: Shop) -> None:
    target.fates["C"] = ["busy"]
    answer = submit(home, "C", wait=0)
    assert (answer.status_code, answer.json()["code"]) == (409, "temporarily_refused")
    assert answer.json()["state"] == "pending"


def test_waiting_for_an_approval_is_409(tmp_path: Path, target: Shop) -> None:
    owned = 'owner = "anna"'
    config = SHOP.format(target=target.url).replace(owned, f"{owned}\napproval = true")
    with house(tmp_path, config) as home:
        answer = submit(home, "A", wait=0)
        assert (answer.status_code, answer.json()["code"]) == (409, "approval_missing")
        assert answer.json()["waiting_on"] == "approval"
        assert "retry-after" not in answer.headers  # a person is next
        assert target.made() == Counter()


def test_not_before_its_time(home: Home, target: Shop) -> None:
    answer = submit(home, "A", due="2999-01-01T00:00:00Z", wait=0, on_unresolved="accept")
    assert (answer.status_code, answer.json()["state"]) == (202, "pending")
    assert answer.json()["due_at"] == "2999-01-01T00:00:00Z"
    assert target.made() == Counter()
    assert submit(home, "B", due="2999-01-01T00:00:00", wait=0).status_code == 422  # no zone


def test_a_correction_supersedes_with_a_reason(home: Home, target: Shop) -> None:
    target.fates["C"] = ["bad"]
    old = submit(home, "C").json()["operation"]
    without = submit(home, "C2", supersedes=old)
    assert (without.status_code, without.json()["fields"]) == (422, ["reason"])
    better = submit(home, "C2", supersedes=old, reason="the name was wrong")
    assert (better.status_code, better.json()["state"]) == (200, "done")
    assert home.client.get(f"/v1/operations/{old}").json()["reason"] == "superseded"


def test_the_answer_comes_within_the_wait(home: Home, target: Shop) -> None:
    target.fates["A"] = ["slow:3"]
    start = time.monotonic()
    answer = submit(home, "A", wait=0.2)
    assert time.monotonic() - start < 2
    assert (answer.status_code, answer.json()["code"]) == (409, "in_progress")
    assert answer.json()["state"] == "running"
    assert int(answer.headers["retry-after"]) >= 1
    again = submit(home, "A", wait=8)  # waits for the first, and sends nothing
    assert (again.status_code, again.json()["reused"]) == (200, True)
    assert target.made() == Counter(A=1)
    assert len(target.effects()) == 1


def test_wrong_requests_are_refused_and_nothing_is_recorded(home: Home) -> None:
    post = home.client.post
    wrong = [
        ({"action": "nothing", "input": {}}, 404, "unknown_action"),
        ({"action": "order", "input": {"nome": "A"}}, 422, "input_refused"),
        ({"action": "order", "input": {"name": "A"}, "wait": 301}, 422, "body_invalid"),
        ({"action": "order", "input": {"name": "A"}, "what": 1}, 422, "body_invalid"),
        ({"action": "order", "input": {"name": "A", "wait": 1}}, 422, "input_refused"),
        ({"action": "order", "input": {"name": "A", "self": 1}}, 422, "input_refused"),
        ({"action": "order", "input": {"name": "A\x00"}}, 422, "input_refused"),
        ({"action": "order", "input": {"name": "A"}, "run": "a\nb"}, 422, "body_invalid"),
        ({"action": "order", "input": {"name": "A"}, "supersedes": "x", "reason": "y"}, 404,
         "unknown_operation"),
    ]  # fmt: skip
    for asked, status, code in wrong:
        answer = post("/v1/operations", json=asked)
        assert (answer.status_code, answer.json()["code"]) == (status, code), asked
        assert answer.headers["content-type"] == "application/problem+json"
    deep = '{"action": "order", "input": {"name": ' + "[" * 5000 + "]" * 5000 + "}}"
    answer = post("/v1/operations", content=deep, headers={"Content-Type": "application/json"})
    assert (answer.status_code, answer.json()["code"]) == (400, "body_malformed")
    assert find(home) == []


def test_another_input_under_the_same_key_is_refused_without_its_values(home: Home) -> None:
    assert submit(home, "A").status_code == 200
    other = {"action": "order", "input": {"name": "A", "note": "a secret value"}}
    answer = home.client.post("/v1/operations", json=other)
    assert (answer.status_code, answer.json()["code"]) == (422, "input_mismatch")
    assert answer.json()["fields"] == ["note"]
    assert answer.json()["operation"]
    assert "secret" not in answer.text


# --- callbacks ---


def watched(home: Home) -> dict[str, str]:
    rows = home.serving.store.rows()
    return {row["operation"]: row["url"] for table, row in rows if table == "watch"}


def test_a_callback_is_kept_with_its_operation(tmp_path: Path, target: Shop) -> None:
    config = '[server]\ncallback_hosts = ["n8n.example"]\n' + SHOP.format(target=target.url)
    with house(tmp_path, config) as home:
        url = "https://n8n.example/webhook-waiting/17"
        target.fates["A"] = ["drop"] * 50
        unknown = submit(home, "A", callback=url, wait=0).json()["operation"]
        assert watched(home) == {unknown: url}
        old = submit(home, "B").json()["id"]
        submit(home, "B", callback=url)  # of one that existed
        assert watched(home) == {unknown: url, old: url}
        for wrong in ("https://evil.example/x", "http://n8n.example/x", "file:///etc/passwd"):
            answer = submit(home, "C", callback=wrong)
            assert (answer.status_code, answer.json()["code"]) == (400, "usage")
            assert wrong not in answer.text
        assert find(home, key="C") == []


# --- the client is not needed ---


def rough(home: Home, asked: dict[str, Any]) -> socket.socket:
    """Send a submit on a socket of its own, and return that."""
    body = json.dumps(asked).encode()
    host, _, port = home.url.removeprefix("http://").partition(":")
    connection = socket.create_connection((host, int(port)))
    head = f"POST /v1/operations HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {home.secret}\r\n"
    head += f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    connection.sendall(head.encode() + body)
    return connection


@pytest.mark.parametrize("how", ["closed", "reset"])
def test_a_client_that_goes_away_loses_and_cancels_nothing(
    home: Home, target: Shop, how: str
) -> None:
    target.fates["A"] = ["slow:1"]
    connection = rough(home, {"action": "order", "input": {"name": "A"}})
    soon(target.effects)  # it is acting
    if how == "reset":
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\0\0\0\0\0\0\0")
    connection.close()
    [done] = soon(lambda: find(home, key="A", state="done"))
    evidence = home.client.get(f"/v1/operations/{done['id']}/history").json()["items"]
    assert [one["shows"] for one in evidence if one["shows"]] == ["done"]  # never unknown
    assert len(target.effects()) == 1


def test_a_client_that_goes_away_before_the_body_ends_did_not_ask(home: Home) -> None:
    host, _, port = home.url.removeprefix("http://").partition(":")
    with socket.create_connection((host, int(port))) as connection:
        head = f"POST /v1/operations HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {home.secret}\r\n"
        connection.sendall((head + 'Content-Length: 90\r\n\r\n{"action": "order"').encode())
    assert home.client.get("/healthz").status_code == 200
    assert find(home) == []


def test_a_server_that_stops_ends_what_is_under_way(tmp_path: Path, target: Shop) -> None:
    target.fates["A"] = ["slow:1"]
    with house(tmp_path, SHOP.format(target=target.url)) as home:
        connection = rough(home, {"action": "order", "input": {"name": "A"}})
        soon(target.effects)
        connection.close()
    with house(tmp_path, SHOP.format(target=target.url)) as home:
        assert find(home, key="A")[0]["state"] == "done"


# --- at once ---


def test_many_at_once_under_one_key_make_one(home: Home, target: Shop) -> None:
    target.fates["A"] = ["slow:0.3"]
    gate = threading.Barrier(12)

    def one(_: int) -> Any:
        gate.wait()
        return submit(home, "A", wait=8)

    with ThreadPoolExecutor(12) as pool:
        answers = list(pool.map(one, range(12)))
    assert {a.status_code for a in answers} == {200}
    assert len({a.json()["id"] for a in answers}) == 1
    assert sorted(a.json()["reused"] for a in answers) == [False] + [True] * 11
    assert target.made() == Counter(A=1)
    assert len(target.effects()) == 1


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_many_at_once_at_two_servers_make_one(
    tmp_path: Path, target: Shop, kind: str, request: pytest.FixtureRequest
) -> None:
    """BR-004: the same business operation asked for at the same moment, at several entries."""
    where = str(tmp_path / "ascertain.db")
    if kind == "postgres":
        where = request.getfixturevalue("postgres_database")
    config = SHOP.format(target=target.url)
    target.fates["A"] = ["slow:0.2"]
    gate = threading.Barrier(12)

    def one(home: Home) -> Any:
        gate.wait()
        return submit(home, "A", wait=10)

    with (
        house(tmp_path, config, store=open_store(where)) as first,
        house(tmp_path, config, store=open_store(where)) as second,
        ThreadPoolExecutor(12) as pool,
    ):
        answers = list(pool.map(one, [first, second] * 6))
    assert {a.status_code for a in answers} == {200}
    assert len({a.json()["id"] for a in answers}) == 1
    assert sum(not a.json()["reused"] for a in answers) == 1
    assert len(target.effects()) == 1


# --- what is known of it ---


def test_history_and_references(home: Home) -> None:
    ident = submit(home, "A").json()["id"]
    [entry] = home.client.get(f"/v1/operations/{ident}/history").json()["items"]
    assert (entry["kind"], entry["shows"]) == ("finding", "done")
    assert entry["says"].keys() == {"en", "zh"}
    assert home.client.get(f"/v1/operations/{ident}/references").json() == {"items": ["1"]}


@pytest.mark.parametrize("of", ["", "/history", "/references"])
@pytest.mark.parametrize("ident", ["0" * 26, "x", "%00", "x" * 300])
def test_what_is_not_there_is_404(home: Home, ident: str, of: str) -> None:
    answer = home.client.get(f"/v1/operations/{ident}{of}")
    assert (answer.status_code, answer.json()["code"]) == (404, "unknown_operation")


def test_another_namespace_is_not_there(tmp_path: Path, target: Shop) -> None:
    config = '[server]\nnamespaces = ["default", "other"]\n' + SHOP.format(target=target.url)
    with house(tmp_path, config) as home:
        other = home.as_token(home.token(namespace="other"))
        ident = submit(home, "A").json()["id"]
        for of in ("", "/history", "/references"):
            assert other.get(f"/v1/operations/{ident}{of}").status_code == 404
        for what in ({"q": ident}, {"key": "A"}, {"ref": "1"}, {"q": "A"}, {"q": "1"}, {}):
            assert other.get("/v1/operations", params=what).json()["items"] == []
            assert len(home.client.get("/v1/operations", params=what).json()["items"]) == 1
        assert ident not in other.get("/v1/operations.csv").text
        again = other.post("/v1/operations", json={"action": "order", "input": {"name": "A"}})
        assert (again.status_code, again.json()["reused"]) == (200, False)


def test_who_only_reads_may_not_submit(home: Home) -> None:
    reader = home.as_token(home.token("ops:read"))
    asked = {"action": "order", "input": {"name": "A"}}
    for path, body in (("", asked), ("/batch", {"items": [asked]})):
        answer = reader.post("/v1/operations" + path, json=body)
        assert (answer.status_code, answer.json()["code"]) == (403, "forbidden")
    assert reader.get("/v1/operations").json()["items"] == []

"""What broke when somebody tried to break it: each of these was possible once."""

from __future__ import annotations

import time
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any

import httpx2
import pytest

from ascertain import open_store
from ascertain.console.app import attach
from ascertain.core.model import SECOND
from ascertain.core.rights import Right
from ascertain.runtime import spool
from ascertain.runtime.approving import Approving
from ascertain.runtime.audit import Who
from ascertain.runtime.ledger import Driver
from ascertain.runtime.recovery import sweeping
from ascertain.server import gateway, submitting
from ascertain.server.routes import pins
from ascertain.store.base import Posting
from server.desk import DESK, Desk
from server.gateways import MIRROR, Mirror, mirror
from server.house import Home, house
from server.own import OWN
from server.persons import person
from server.target import Shop
from server.test_callbacks import SERVER, Flow, waiting

Answer = dict[str, Any]
LARGE = bytes(range(256)) * 2048  # larger than what stands in an operation's input


@pytest.fixture
def own(tmp_path: Path, target: Shop) -> Iterator[Home]:
    with house(tmp_path, OWN.format(target=target.url, lease="30s")) as running:
        yield running


def work(home: Home, path: str, **body: Any) -> httpx2.Response:
    return home.client.post(f"/v1/work/{path}", json=body)


def states(home: Home, **filters: str) -> dict[str, str]:
    found = home.client.get("/v1/operations", params=filters).json()["items"]
    return {one["key"]: one["state"] for one in found}


# --- own code ---


@pytest.mark.parametrize("wrong", ["no_such_action", "ascertain.callback"])
def test_a_wrong_name_among_the_actions_claims_nothing(own: Home, wrong: str) -> None:
    """The permit that came before it was lost with the answer, and what nobody had begun became
    unknown (law 2)."""
    made = work(own, "claim", action="own", input={"name": "A"}).json()
    work(own, f"{made['attempt']}/release", operation=made["operation"]["id"])
    assert states(own) == {"A": "pending"}
    time.sleep(0.1)
    answer = work(own, "due", actions=["own", wrong], limit=2)
    assert answer.status_code in (404, 409), answer.text
    assert states(own) == {"A": "pending"}


@pytest.mark.parametrize(
    ("contract", "state"), [("", "unknown"), ('failed = "replayed"', "not_done")]
)
def test_a_refusal_speaks_for_another_attempt_only_by_the_contract(
    tmp_path: Path, target: Shop, contract: str, state: str
) -> None:
    """Own code said that it was the stored outcome, and that was enough: what the first attempt
    may have done was closed as not done (law 7)."""
    config = OWN.format(target=target.url, lease="30s")
    if contract:
        config = config.replace('"replay", keeps', f'"replay", {contract}, keeps')
    with house(tmp_path, config) as own:
        first = work(own, "claim", action="own", input={"name": "A"}).json()
        ident = first["operation"]["id"]
        lost: Answer = {"finding": "unknown", "reason": "the connection broke"}
        work(own, f"{first['attempt']}/finding", operation=ident, report="1", result=lost)
        until = time.monotonic() + 10
        again: Answer = {"permit": "wait"}
        while again["permit"] == "wait" and time.monotonic() < until:
            again = work(own, "claim", action="own", key="A", wait=1).json()
        assert again["permit"] == "replay"
        refused: Answer = {"finding": "not_done", "kind": "invalid", "stored": True}
        work(own, f"{again['attempt']}/finding", operation=ident, report="2", result=refused)
        assert states(own) == {"A": state}


# --- the same key ---


@pytest.mark.parametrize("door", ["operations", "gateway"])
def test_other_content_is_never_answered_by_what_was_done_before(
    files: tuple[Home, Mirror], monkeypatch: pytest.MonkeyPatch, door: str
) -> None:
    """Where the store was slower than the caller's time, the operation of that key was told as
    his, whatever he had asked for (law 9)."""
    home, target = files
    path = "/gateway/mirror/files/a"
    head = {"Ascertain-Key": "k", "Ascertain-Wait": "0"}
    assert home.client.post(path, content=b"first", headers={"Ascertain-Key": "k"}).is_success
    monkeypatch.setattr(submitting, "GRACE", 0.0)
    monkeypatch.setattr(gateway, "GRACE", 0.0)
    if door == "gateway":
        answer = home.client.post(path, content=b"second", headers=head)
    else:
        given = {"key": "k", "method": "POST", "path": "/files/b"}
        asked = {"action": "files", "input": given, "wait": 0}
        answer = home.client.post("/v1/operations", json=asked)
    assert (answer.status_code, answer.json()["code"]) == (422, "input_mismatch")
    assert [a["body"] for a in target.asked] == [b"first"]


# --- large bodies ---


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Home, Mirror]]:
    monkeypatch.setenv("MIRROR_PASSWORD", "password-0123456789")
    monkeypatch.setenv("MIRROR_TOKEN", "token-0123456789")
    with mirror() as target:
        config = MIRROR.format(target=target.url, port=target.server_port)
        with house(tmp_path, config) as running:
            yield running, target


def written(home: Home) -> str:
    """An upload that waits for its approval; returns its operation."""
    answer = home.client.post(
        "/gateway/mirror/written", content=LARGE, headers={"Ascertain-Key": "k"}
    )
    assert answer.json()["code"] == "approval_missing"
    return answer.headers["ascertain-operation"]


def cleaned(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the chore removes once a day has passed."""
    monkeypatch.setattr(spool, "KEPT_WITHOUT", -SECOND)
    while spool.clean(home.serving.store):
        pass


def test_a_new_version_keeps_the_large_body_of_the_old_one(
    files: tuple[Home, Mirror], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was kept for the old key alone, and went with that one's details (laws 11, 19)."""
    home, target = files
    ledger = home.serving.space("default").ledger
    approving = Approving(ledger)
    [ask] = approving.find(operation=written(home))
    made = approving.edit(ask, {"query": "v=2"}, who=Who(actor="mia"), why="the second place")
    ledger.approve(made.id, role="chef", by="mia")
    target.answers = [(502, {}, b"")] * 3
    Driver(ledger.engine).drive(sweeping(ledger.engine, 10))
    assert ledger.get(made.id).state == "unknown"
    assert ledger.prune(-1) == 1, "the old one is superseded"
    cleaned(home, monkeypatch)
    until = time.monotonic() + 8
    while ledger.get(made.id).state == "unknown" and time.monotonic() < until:
        Driver(ledger.engine).drive(sweeping(ledger.engine, 10))
        time.sleep(0.05)
    assert ledger.get(made.id).state == "done"
    assert {a["path"].partition("&")[0] for a in target.asked} == {"/base/written?v=2"}
    assert {a["sha256"] for a in target.asked} == {sha256(LARGE).hexdigest()}


def test_erasing_leaves_the_body_of_what_came_meanwhile(files: tuple[Home, Mirror]) -> None:
    """What was submitted after nothing was open any more lost its body (law 19)."""
    home, target = files
    ident = written(home)
    store, ledger = home.serving.store, home.serving.space("default").ledger
    store.post([Posting((("erase_spooled", {"namespace": "default", "limit": 100}),))])
    ledger.approve(ident, role="chef", by="mia")
    Driver(ledger.engine).drive(sweeping(ledger.engine, 10))
    assert ledger.get(ident).state == "done"
    assert [a["sha256"] for a in target.asked] == [sha256(LARGE).hexdigest()]


# --- what PostgreSQL cannot be asked for ---

NUL_PATHS = [
    "/v1/assets/%00", "/v1/assets?after=%00", "/v1/audit?after=a%00b", "/v1/audit.csv?did=%00",
    "/v1/operations/%00/guest-links", "/v1/costs?cause=%00", "/v1/operations?q=%00",
]  # fmt: skip


def test_a_nul_is_refused_before_the_store_is_asked(
    tmp_path: Path, target: Shop, postgres_database: str
) -> None:
    """PostgreSQL refused it, which was told as a store that cannot be used (503)."""
    config = OWN.format(target=target.url, lease="30s")
    with house(tmp_path, config, store=open_store(postgres_database)) as home:
        desk = Desk(home)
        anna = desk.as_("anna", " ".join(Right))
        found = {path: anna.get(path) for path in NUL_PATHS}
        told = {path: one.status_code for path, one in found.items()}
        assert told == {path: 422 if "?" in path else 404 for path in NUL_PATHS}
        claimed = work(home, "claim", action="own", key="a\x00")
        assert (claimed.status_code, claimed.json()["code"]) == (400, "key_refused")
        cost = {"key": "a\x00", "kind": "normal", "cause": "call"}
        for path, body, status in (
            ("runs", {"name": "r", "expects": [{"action": "own", "key": "a\x00"}]}, 400),
            ("targets/shop/pause", {"why": "a\x00"}, 422),
            ("costs", {"lines": [cost]}, 422),
        ):
            assert home.client.post(f"/v1/{path}", json=body).status_code == status, path


# --- what may pass ---


def test_a_credential_in_a_query_is_kept_nowhere(files: tuple[Home, Mirror]) -> None:
    """It was frozen with the request, and stood in the input, the evidence and every export."""
    home, target = files
    for number, name in enumerate(("access_token", "api_key", "consumer%5Fsecret", "Password")):
        answer = home.client.post(
            f"/gateway/mirror/files/a?{name}=s3cr3t-s3cr3t", content=b"x",
            headers={"Ascertain-Key": f"k{number}"},
        )  # fmt: skip
        assert (answer.status_code, answer.json()["code"]) == (422, "input_refused"), name
        assert "s3cr3t" not in answer.text
    assert not any("s3cr3t" in str(row) for _, row in home.serving.store.rows())
    assert target.asked == []
    more = home.client.post(
        "/gateway/mirror/files/a?page_token=7", content=b"x", headers={"Ascertain-Key": "k"}
    )
    assert more.status_code == 200


def test_a_form_does_not_name_another_method(files: tuple[Home, Mirror]) -> None:
    """Rails and Symfony take it from the body as from the query, which alone was looked at."""
    home, target = files
    answer = home.client.post(
        "/gateway/mirror/files/a", content=b"x=1&%5Fmethod=DELETE",
        headers={"Ascertain-Key": "k", "Content-Type": "application/x-www-form-urlencoded"},
    )  # fmt: skip
    assert (answer.status_code, target.asked) == (422, [])


@pytest.mark.parametrize(
    "headers", [None, 5, "ab", [["a"]], [["a", 1]], [{"a": 1, "b": 2}], {"a": 1}]
)
def test_headers_that_are_none_are_refused(files: tuple[Home, Mirror], headers: Any) -> None:
    """As the input of its action, without the gateway, they were a 500."""
    given = {"key": "k", "method": "POST", "path": "/files/a", "headers": headers}
    answer = files[0].client.post("/v1/operations", json={"action": "files", "input": given})
    assert (answer.status_code, answer.json()["code"]) == (422, "input_refused")


@pytest.mark.parametrize(
    ("path", "body", "status"),
    [("/files/a", {"json": {"a": 1}, "text": "b"}, 422), ("/small", {"text": "x" * 1001}, 413)],
)
def test_a_request_to_a_target_has_one_body_within_its_bound(
    files: tuple[Home, Mirror], path: str, body: Answer, status: int
) -> None:
    """Of two bodies one was sent without a word; the bound was that of the gateway alone."""
    home, target = files
    asked = {"target": "mirror", "key": "k", "request": {"path": path, **body}}
    answer = home.client.post("/v1/operations", json=asked)
    assert (answer.status_code, target.asked) == (status, [])


# --- whose consent it is ---


@pytest.fixture
def desk(tmp_path: Path, target: Shop) -> Iterator[Desk]:
    with house(tmp_path, DESK.format(target=target.url)) as home:
        yield Desk(home)


def test_nobody_consents_in_a_role_that_is_not_his_through_a_guest(desk: Desk) -> None:
    """Who approves, but not as the role, gave himself a guest's link for it (law 11)."""
    operation = desk.submit("contract", name="A")
    path = f"/v1/operations/{operation}/guest-link"
    refused = desk.as_("anna").post(path, json={"to": "a friend", "role": "legal"})
    assert (refused.status_code, refused.json()["code"]) == (403, "forbidden")
    assert desk.as_("lea").post(path, json={"to": "the client", "role": "legal"}).status_code == 201


def test_nobody_consents_in_a_role_that_is_not_his_by_a_page(tmp_path: Path, target: Shop) -> None:
    """The API asked [approvers], the page asked only whether he approves at all (law 11)."""
    with house(tmp_path, DESK.format(target=target.url), pages=attach) as home:
        desk, ben = Desk(home), person(home, "ben", "viewer", approves=1)
        operation = desk.submit("contract", name="A")
        asks = {a.role: a for a in Approving(desk.ledger).find(operation=operation)}
        for do in ("approve", "reject", "guest"):
            given = {"do": do, "digest": asks["legal"].digest, "to": "a friend", "days": "1"}
            answer = ben.post(f"/approvals/{asks['legal'].id}", data=given)
            assert answer.status_code == 403, do
        assert {a.state for a in desk.ledger.asked(operation)} == {"asked"}
        given = {"do": "approve", "digest": asks["editor"].digest}
        assert ben.post(f"/approvals/{asks['editor'].id}", data=given).status_code == 303


# --- what is kept can be shown ---


def test_a_time_after_the_last_date_is_shown_as_the_last_one(own: Home) -> None:
    """It was stored, and every list that held it was a 500 from then on."""
    late = "9999-12-31T23:59:59-14:00"
    made = own.client.post("/v1/runs", json={"name": "r", "due": late})
    listed = own.client.get("/v1/runs")
    found = own.client.get("/v1/operations", params={"since": late})
    assert (made.status_code, listed.status_code, found.status_code) == (200, 200, 200)
    assert listed.json()["items"][0]["due_at"] == "9999-12-31T23:59:59Z"


def test_a_pin_that_takes_longer_than_it_is_waited_for_is_under_way(
    tmp_path: Path, target: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was a 500, with `wait = 0` for every pin."""
    config = "[server]\nwait = 0.0\n" + OWN.format(target=target.url, lease="30s")
    with house(tmp_path, config) as home:
        asked = {"key": "text/lamp", "value": "A lamp"}
        assert home.client.post("/v1/pins", json=asked).status_code == 200
        monkeypatch.setattr(pins, "GRACE", 0.0)
        answer = home.client.post("/v1/pins", json={"key": "text/desk", "value": "A desk"})
        assert (answer.status_code, answer.json()["code"]) == (409, "in_progress")


# --- our own actions ---


@pytest.fixture
def waited(tmp_path: Path, target: Shop) -> Iterator[tuple[Home, Flow]]:
    with waiting() as flow:
        config = SERVER.format(port=flow.server_port) + OWN.format(target=target.url, lease="30s")
        with house(tmp_path, config) as home:
            yield home, flow


def finished(home: Home, flow: Flow, name: str) -> str:
    """An operation that a flow waits for, and that is done."""
    made = home.client.post("/v1/operations", json={
        "action": "own", "input": {"name": name}, "callback": f"{flow.url}&{name}", "wait": 0,
        "on_unresolved": "accept",
    }).json()  # fmt: skip
    permit = work(home, "claim", action="own", key=name).json()
    result = {"finding": "done", "ref": name}
    work(home, f"{permit['attempt']}/finding", operation=made["id"], report="1", result=result)
    return str(made["id"])


@pytest.mark.parametrize("door", ["operations", "batch"])
def test_nobody_calls_back_in_our_name(waited: tuple[Home, Flow], door: str) -> None:
    """A token could say to a waiting flow that something is done, and under the key of the true
    callback, which then stopped every later one of the namespace."""
    home, flow = waited
    ident = finished(home, flow, "A")
    forged = {
        "action": "ascertain.callback",
        "wait": 0,
        "on_unresolved": "accept",
        "input": {"operation": ident, "url": f"{flow.url}&forged", "body": {"state": "done"}},
    }
    path = "/v1/operations"
    if door == "batch":
        answer = home.client.post(f"{path}/batch", json={"items": [forged]}).json()["items"][0]
        refused = answer["problem"]["code"]
    else:
        refused = home.client.post(path, json=forged).json()["code"]
    assert refused == "unknown_action"
    space = home.serving.space("default")
    space.watches.tell()
    Driver(space.engine).drive(sweeping(space.engine, 10))
    assert [told["operation_id"] for _, told in flow.told] == [ident]

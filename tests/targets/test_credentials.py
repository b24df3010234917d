"""Credentials beside the request: renewed outside it, kept nowhere, and their failure is proof
that nothing was sent."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import ascertain
from ascertain import Reason, State, WaitingOn
from ascertain.core.errors import ConfigInvalid, SendRefused
from targets.api import Api, api
from targets.serving import Server, answer, client

SECRETS = ("c1ient-s3cret", "access-", "r0-refresh", "t0ken-bearer", "passw0rd")
FILE = """
[store]
url = "ledger.db"

[targets.crm]
base = "{base}"
{auth}

[[contract]]
id = "crm.task"
ok = {{ when = "201" }}
undo = "DELETE"
refused = {{ unauthorized = "401" }}
lookup = {{ by = "key", lag = "0s" }}
late = {{ max = "0s" }}

[actions."crm.task"]
target = "crm"
contract = "crm.task"
key = "{{name}}"
owner = {{ default = "anna", authorization = "ops" }}
inputs = {{ name = {{}} }}
request = {{ url = "/tasks", json = {{ name = "{{name}}", key = "{{target_key}}" }} }}
ref = "id"
lookup = {{ url = "/tasks?key={{target_key}}", by = "key", ref = "id", items = "" }}
timeout = "2s"
first_delay = "300ms"
"""
CLIENT = """
[targets.crm.auth.oauth]
grant = "client_credentials"
url = "{base}/token"
client_id = "me"
client_secret = {{ env = "CRM_SECRET" }}
"""
REFRESH = """
[targets.crm.auth.oauth]
grant = "refresh_token"
url = "{base}/token"
client_id = "me"
refresh_token = {{ file = "refresh" }}
"""


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.delenv("ASCERTAIN_STORE", raising=False)
    monkeypatch.setenv("CRM_SECRET", "c1ient-s3cret")
    monkeypatch.setenv("CRM_TOKEN", "t0ken-bearer")
    with api() as made:
        yield made


def config(folder: Path, server: Api, auth: str) -> Path:
    file = folder / "ascertain.toml"
    auth = auth.format(base=server.url)
    file.write_text(FILE.format(base=server.url, auth=auth), "utf-8")
    return file


def ledger(folder: Path, server: Api, auth: str) -> Any:
    return ascertain.from_config(config(folder, server, auth))


def nowhere(folder: Path, *secrets: str) -> None:
    """No secret is in any file of the store, nor in what is kept as evidence."""
    for file in folder.glob("ledger.db*"):
        data = file.read_bytes()
        assert not [s for s in (*SECRETS, *secrets) if s.encode() in data], file


# --- fixed credentials ---


@pytest.mark.parametrize(
    ("auth", "header", "value"),
    [
        ('auth.bearer = {{ env = "CRM_TOKEN" }}', "Authorization", "Bearer t0ken-bearer"),
        ('auth.bearer = {{ file = "token" }}', "Authorization", "Bearer passw0rd"),
        ('auth.basic = {{ user = "me", password = {{ file = "token" }} }}', "Authorization",
         "Basic bWU6cGFzc3cwcmQ="),
        ('auth.headers.X-Api-Key = {{ env = "CRM_TOKEN", before = "k " }}', "X-Api-Key",
         "k t0ken-bearer"),
    ],
)  # fmt: skip
def test_credentials_from_the_environment_or_a_file(tmp_path, server, auth, header, value) -> None:
    (tmp_path / "token").write_text("passw0rd\n")
    with ledger(tmp_path, server, auth) as opened:
        assert opened.actions["crm.task"](name="a").ref == "n1"
    assert server.effects()[0]["headers"][header] == value
    nowhere(tmp_path)


def test_a_credential_in_the_query_is_outside_the_frozen_request(tmp_path, server) -> None:
    auth = 'auth.query = {{ api_key = {{ env = "CRM_TOKEN" }} }}'
    server.lose = 1
    with ledger(tmp_path, server, auth) as opened:
        receipt = opened.actions["crm.task"](name="a")
        assert receipt.confirmed_by == "look_up"
    assert server.effects()[0]["query"] == {"api_key": "t0ken-bearer"}
    [looked, *_] = [a for a in server.asked if a["method"] == "GET"]
    assert looked["query"] == {"key": receipt.target_key, "api_key": "t0ken-bearer"}
    nowhere(tmp_path)


def test_a_missing_credential_stops_it_and_waits_for_its_owner(tmp_path, server, monkeypatch):
    monkeypatch.delenv("CRM_TOKEN")
    with ledger(tmp_path, server, 'auth.bearer = {{ env = "CRM_TOKEN" }}') as opened:
        receipt = opened.actions["crm.task"].submit(name="a")
        assert (receipt.state, receipt.reason) == (State.NOT_DONE, Reason.UNAUTHORIZED)
        assert (receipt.waiting_on, receipt.owner) == (WaitingOn.AUTHORIZATION, "ops")
        says = str([e.data for e in opened.history(receipt.id)])
        assert "CRM_TOKEN is not set; nothing was sent" in says
    assert server.asked == []


# --- access tokens ---


def test_a_token_is_got_once_and_used_again(tmp_path, server) -> None:
    server.guarded = True
    with ledger(
        tmp_path, server, CLIENT + 'scope = "write"\nmore = {{ audience = "x" }}'
    ) as opened:
        for name in "abc":
            assert opened.actions["crm.task"](name=name).done
    [form] = server.tokens
    assert form | {"authorization": ""} == {
        "grant_type": "client_credentials", "client_id": "me", "client_secret": "c1ient-s3cret",
        "scope": "write", "audience": "x", "authorization": "",
    }  # fmt: skip
    nowhere(tmp_path)


def test_the_client_may_be_named_by_basic(tmp_path, server) -> None:
    with ledger(tmp_path, server, CLIENT + 'client_in = "basic"') as opened:
        assert opened.actions["crm.task"](name="a").done
    assert server.tokens[0]["authorization"] == "Basic bWU6YzFpZW50LXMzY3JldA=="
    assert "client_secret" not in server.tokens[0]


@pytest.mark.parametrize(("life", "asked"), [(0.001, 3), (None, 1), ("soon", 1), (3600, 1)])
def test_it_is_renewed_before_it_ends(tmp_path, server, life, asked) -> None:
    server.guarded, server.life = True, life
    with ledger(tmp_path, server, CLIENT) as opened:
        for name in "abc":
            assert opened.actions["crm.task"](name=name).done
    assert len(server.tokens) == asked
    assert len(server.made) == 3


def test_a_refused_token_is_renewed_once_and_the_next_attempt_uses_it(tmp_path, server) -> None:
    server.guarded = True
    with ledger(tmp_path, server, CLIENT) as opened:
        assert opened.actions["crm.task"](name="a").done
        server.good.clear()  # revoked before its time
        receipt = opened.actions["crm.task"](name="b")
        assert (receipt.done, receipt.attempts) == (True, 2)
        server.token_answer = (200, {"access_token": "never-good"})
        server.good.clear()
        stopped = opened.actions["crm.task"].submit(name="c")
    assert (stopped.state, stopped.reason) == (State.NOT_DONE, Reason.UNAUTHORIZED)
    assert len(server.tokens) == 3
    refused = [a for a in server.effects() if a["headers"]["Authorization"] == "Bearer never-good"]
    assert (len(refused), len(server.made)) == (1, 2)
    nowhere(tmp_path, "never-good")


def test_a_look_up_with_a_refused_token_renews_it_at_once(tmp_path, server) -> None:
    server.guarded = True
    with ledger(tmp_path, server, CLIENT) as opened:
        receipt = opened.actions["crm.task"](name="a")
        server.good.clear()
        found = opened.confirm(receipt)
        assert opened.history(receipt.id)[-1].data["ref"] == "n1"
    assert (found.ref, found.attempts, len(server.tokens)) == ("n1", 1, 2)
    assert len(server.effects()) == 1


@pytest.mark.parametrize(
    ("answered", "state", "reason"),
    [
        ((401, {"error": "invalid_client"}), State.NOT_DONE, Reason.UNAUTHORIZED),
        ((400, {"error": "invalid_scope"}), State.NOT_DONE, Reason.UNAUTHORIZED),
        ((403, {}), State.NOT_DONE, Reason.UNAUTHORIZED),
        ((200, {"no": "token"}), State.NOT_DONE, Reason.UNAUTHORIZED),
        ((200, {"access_token": "a b"}), State.NOT_DONE, Reason.UNAUTHORIZED),
        ((200, {"access_token": "x", "token_type": "mac"}), State.NOT_DONE, Reason.UNAUTHORIZED),
        ((200, b"<html>c1ient-s3cret"), State.NOT_DONE, Reason.UNAUTHORIZED),
        ((500, {"error": "c1ient-s3cret"}), State.PENDING, Reason.NONE),
        ((429, {}), State.PENDING, Reason.NONE),
        ((200, b"x" * (1024 * 1024 + 1)), State.PENDING, Reason.NONE),
    ],
    ids=range(10),
)
def test_without_a_token_it_is_proven_not_sent(tmp_path, server, answered, state, reason) -> None:
    server.token_answer = answered
    with ledger(tmp_path, server, CLIENT) as opened:
        receipt = opened.actions["crm.task"].submit(name="a", wait=0)
        assert (receipt.state, receipt.reason) == (state, reason)
        kept = str([e.data for e in opened.history(receipt.id)])
    assert server.effects() == []
    assert "no token from http://127.0.0.1:" in kept
    nowhere(tmp_path)


def test_no_token_endpoint_is_a_passing_trouble(tmp_path, server) -> None:
    auth = CLIENT.replace("{base}", "http://127.0.0.1:1")
    with ledger(tmp_path, server, auth) as opened:
        receipt = opened.actions["crm.task"].submit(name="a", wait=0)
    assert receipt.state is State.PENDING
    assert server.asked == []


def test_threads_that_ask_together_renew_once(tmp_path, server) -> None:
    server.guarded, server.gate = True, threading.Event()
    with ledger(tmp_path, server, CLIENT) as opened, ThreadPoolExecutor(6) as pool:
        work = [pool.submit(opened.actions["crm.task"], name=n) for n in "abcdef"]
        server.gate.set()
        assert all(w.result().done for w in work)
    assert len(server.tokens) == 1


# --- refresh tokens ---


def test_a_replaced_refresh_token_is_written_back_for_its_owner_only(tmp_path, server) -> None:
    server.guarded, server.rotates, server.refresh = True, True, "r0-refresh"
    file = tmp_path / "refresh"
    file.write_text("r0-refresh\n")
    file.chmod(0o644)
    server.life = 0.001
    with ledger(tmp_path, server, REFRESH) as opened:
        for name in "abc":
            assert opened.actions["crm.task"](name=name).done
    assert [t["refresh_token"] for t in server.tokens] == ["r0-refresh", "r1", "r2"]
    assert file.read_text() == "r3\n"
    assert file.stat().st_mode & 0o777 == 0o600
    assert sorted(p.name for p in tmp_path.glob("*refresh*")) == ["refresh", "refresh.lock"]
    assert list(tmp_path.glob(".refresh*")) == []
    nowhere(tmp_path)


def test_two_processes_renew_one_after_the_other(tmp_path, server) -> None:
    """Two targets stand for two processes: each has its own token and shares only the file."""
    server.guarded, server.rotates, server.life = True, True, 0.001
    (tmp_path / "refresh").write_text("r0")
    one, two = (ledger(tmp_path, server, REFRESH) for _ in "12")
    with one, two, ThreadPoolExecutor(4) as pool:
        work = [pool.submit((one, two)[n % 2].actions["crm.task"], name=f"n{n}") for n in range(8)]
        assert all(w.result().done for w in work)
    given = [t["refresh_token"] for t in server.tokens]
    assert given == [f"r{n}" for n in range(len(given))]


def test_a_file_that_cannot_be_kept_is_found_out_before_the_token_is_used(
    tmp_path, server, monkeypatch
) -> None:
    (tmp_path / "refresh").write_text("r0")

    def full(*_: Any, **__: Any) -> Any:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("ascertain.targets.oauth.tempfile.NamedTemporaryFile", full)
    with ledger(tmp_path, server, REFRESH) as opened:
        receipt = opened.actions["crm.task"].submit(name="a")
        kept = str([e.data for e in opened.history(receipt.id)])
    assert receipt.reason is Reason.UNAUTHORIZED
    assert "No space left" in kept
    assert server.asked == []


def test_a_refresh_token_that_is_no_longer_good_waits_for_a_person(tmp_path, server) -> None:
    (tmp_path / "refresh").write_text("old")
    with ledger(tmp_path, server, REFRESH) as opened:
        receipt = opened.actions["crm.task"].submit(name="a")
        kept = str([e.data for e in opened.history(receipt.id)])
    assert receipt.waiting_on is WaitingOn.AUTHORIZATION
    assert "HTTP 400 invalid_grant" in kept
    assert "s3cret words" not in kept
    assert (tmp_path / "refresh").read_text() == "old"


def test_one_in_the_environment_is_only_for_targets_that_never_replace_it(
    tmp_path, server, monkeypatch
) -> None:
    monkeypatch.setenv("CRM_REFRESH", "r0")
    auth = REFRESH.replace('file = "refresh"', 'env = "CRM_REFRESH"')
    with pytest.raises(ConfigInvalid, match="cannot be written back"):
        ledger(tmp_path, server, auth)
    with ledger(tmp_path, server, auth + "rotates = false") as opened:
        assert opened.actions["crm.task"](name="a").done
    server.rotates = True
    with ledger(tmp_path, server, auth + "rotates = false") as opened:
        receipt = opened.actions["crm.task"].submit(name="b")
        assert receipt.reason is Reason.UNAUTHORIZED
    assert len(server.made) == 1


# --- asyncio ---


def test_the_same_for_coroutines(tmp_path, server) -> None:
    server.guarded, server.lose = True, 1

    async def work() -> list[Any]:
        opened = await ascertain.from_config_async(config(tmp_path, server, CLIENT))
        async with opened:
            action = opened.actions["crm.task"]
            return list(await asyncio.gather(*(action(name=n) for n in "abc")))

    assert {r.state for r in asyncio.run(work())} == {State.DONE}
    assert (len(server.tokens), len(server.made)) == (1, 3)


# --- what a refusal proves ---


def refusing(folder: Path, server: Api, old: str, new: str) -> Any:
    """A target that lets no token in, under another contract."""
    server.guarded, server.token_answer = True, (200, {"access_token": "never-good"})
    file = config(folder, server, CLIENT)
    text = file.read_text("utf-8")
    assert old in text
    file.write_text(text.replace(old, new), "utf-8")
    with ascertain.from_config(file) as opened:
        return opened.actions["crm.task"].submit(name="a", wait=1)


def test_a_refusal_that_the_contract_does_not_list_proves_nothing(tmp_path, server) -> None:
    receipt = refusing(tmp_path, server, 'refused = { unauthorized = "401" }\n', "")
    assert receipt.state is State.UNKNOWN
    assert len(server.effects()) == 1  # looked up, never sent again


def test_a_refusal_that_is_the_stored_outcome_of_the_key_is_not_tried_again(
    tmp_path, server
) -> None:
    stored = 'key = { at = "header:K", kind = "request" }\n'
    stored += 'repeat = { answer = "replay", keeps = "1h", failed = "replayed", stored = "401" }\n'
    receipt = refusing(tmp_path, server, "refused =", f"{stored}refused =")
    assert (receipt.state, receipt.reason) == (State.NOT_DONE, Reason.UNAUTHORIZED)
    assert (len(server.effects()), len(server.tokens)) == (1, 1)


def test_a_credential_cannot_change_what_was_approved(server) -> None:
    with pytest.raises(SendRefused, match="has api_key already"):
        client().get(f"{server.url}/tasks?api_key=1", query={"api_key": "2"})
    answered = client().get(f"{server.url}/tasks?a=1", query={"k&y": "a b"})
    assert answered.status == 200
    assert [a["raw"] for a in server.asked] == ["/tasks?a=1&k%26y=a%20b"]


def test_an_echoed_credential_is_not_kept() -> None:
    body = b'{"said": "t0ken-bearer, t0ken-query!, t0ken-query%21"}'
    with Server(answer("400 Bad", body)) as target:
        said = client().get(
            target.url,
            query={"key": "t0ken-query!"},
            headers={"Authorization": "Bearer t0ken-bearer"},
        )
    assert "t0ken" not in str(said.evidence())

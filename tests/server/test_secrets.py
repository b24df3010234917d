"""Credentials of targets, and secrets of ours, are found nowhere: not in the store, its evidence,
exports and backups, not in answers, problems and the API's description, not in logs.

The target is a hostile one: whatever it answers, it says all that it was sent again, credentials
included, in bodies, headers and ids.
"""

from __future__ import annotations

import base64
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, quote

import httpx2
import pytest

from ascertain import open_store
from ascertain.core.books import Member
from ascertain.runtime.accounts import Accounts
from ascertain.runtime.audit import Who
from ascertain.runtime.hashing import hash_of
from ascertain.targets.classify.redact import redacted
from server.processes import Process, process, until

# Each is planted once; each is long, so that no chance finds it.
MARKS = {
    "bearer": "zirkon-bearer-000000000001", "header": "zirkon-header-000000000002",
    "basic": "zirkon-basic-0000000000003", "client": "zirkon-client-000000000004",
    "access": "zirkon-access-000000000005", "query": "zirkon-query-0000000000006",
    "hook": "zirkon-hook-00000000000007", "password": "zirkon-password-0000000008",
    "callers": "zirkon-callers-00000000009",
}  # fmt: skip
CONFIG = """
[server]
metrics_open = true

[targets.bearer]
base = "{target}"
auth.bearer = {{ env = "M_BEARER" }}

[targets.header]
base = "{target}"
auth.headers = {{ X-Api-Key = {{ file = "key.txt" }} }}

[targets.basic]
base = "{target}"
auth.basic = {{ user = "user", password = {{ env = "M_BASIC" }} }}

[targets.query]
base = "{target}"
auth.query = {{ key = {{ env = "M_QUERY" }} }}

[targets.oauth]
base = "{target}"
[targets.oauth.auth.oauth]
grant = "client_credentials"
url = "{target}/token"
client_id = "us"
client_secret = {{ env = "M_CLIENT" }}

[hooks.events]
kind = "github"
secrets = [{{ env = "M_HOOK" }}]
[[hooks.events.map]]
action = "do-bearer"
input = {{ name = "body.name" }}

[actions.blind]
target = "bearer"
key = "{{name}}"
owner = "anna"
inputs = {{ name = {{ type = "text" }} }}
request = {{ url = "/do", json = {{ name = "{{name}}" }} }}
ref = "id"
timeout = "1s"
"""
ACTION = """
[actions.do-{name}]
target = "{name}"
key = "{{name}}"
owner = "anna"
inputs = {{ name = {{ type = "text" }} }}
request = {{ url = "/do", json = {{ name = "{{name}}", key = "{{target_key}}" }} }}
lookup = {{ url = "/find?key={{target_key}}", by = "key", ref = "id" }}
ref = "id"
timeout = "1s"
late = "100ms"
lag = "0s"
first_delay = "50ms"
reversible = true
"""
TARGETS = ("bearer", "header", "basic", "query", "oauth")
FATES = ("ok", "refused", "invalid", "broken", "lost", "cut-short", "moved", "no-json")


class Echo(ThreadingHTTPServer):
    """Says again whatever it is sent; what it does is the beginning of the name."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Echo)
        self.seen: list[str] = []


class _Echo(BaseHTTPRequestHandler):
    server: Echo
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0))).decode()
        if self.path == "/token":
            assert parse_qs(body)["client_secret"] == [MARKS["client"]]
            told = {"access_token": MARKS["access"], "token_type": "bearer", "expires_in": 3600}
            return self.say(200, told)
        return self.echo(json.loads(body)["name"], body)

    def do_GET(self) -> None:
        self.echo("ok", "")

    def echo(self, name: str, body: str) -> None:
        sent = {"path": self.path, "headers": dict(self.headers), "body": body}
        self.server.seen.append(json.dumps(sent))
        again = {"id": f"id-{name}", "said": sent, "error": json.dumps(sent), "list": [sent]}
        fate = next((f for f in FATES if name.startswith(f)), "ok")
        status = {"ok": 201, "refused": 401, "invalid": 422, "broken": 500, "moved": 302}
        if fate == "lost":
            self.close_connection = True
            return self.connection.close()
        if fate in ("cut-short", "no-json"):
            return self.say(201 if fate == "no-json" else 500, json.dumps(sent) + "{", cut=1000)
        return self.say(status[fate], again)

    def say(self, status: int, value: Any, cut: int = 0) -> None:
        data = value.encode() if isinstance(value, str) else json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("X-Request-Id", self.headers.get("Authorization", "none"))
        self.send_header("Location", f"http://{self.path}?{quote(str(self.headers))}")
        self.send_header("WWW-Authenticate", self.headers.get("Authorization", "none"))
        self.send_header("Content-Length", str(len(data) + (cut if status == 500 else 0)))
        self.end_headers()
        self.wfile.write(data)
        self.close_connection = bool(cut)

    def log_message(self, *_: Any) -> None:
        """Say nothing."""


@contextmanager
def echo() -> Iterator[Echo]:
    with Echo() as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()


def forms() -> dict[str, bytes]:
    """Every form in which a planted secret could stand somewhere."""
    found = {}
    for name, mark in MARKS.items():
        found[name] = mark.encode()
        for shift in range(3):  # base64 of it, wherever it begins within a text
            coded = base64.b64encode(b"x" * shift + mark.encode())
            found[f"{name} as base64 {shift}"] = coded[4:-4]
        found[f"{name} in hex"] = mark.encode().hex().encode()
        found[f"{name} as SHA-256"] = hash_of(mark).encode()
    pair = base64.b64encode(f"user:{MARKS['basic']}".encode())
    return found | {"basic pair": pair, "file's form": MARKS["header"][::-1].encode()}


def nowhere(what: str, data: bytes) -> None:
    for name, form in forms().items():
        at = data.find(form)
        assert at < 0, f"{name} stands in {what}: {data[max(0, at - 200) : at + 100]!r}"


def scenario(up: Process, folder: Path, secret: str, answers: list[bytes]) -> None:
    """Success, refusals, lost answers, look-ups, reviews, decisions, exports, problems, events."""
    bearer = {"Authorization": f"Bearer {secret}"}
    with httpx2.Client(base_url=up.url, headers=bearer, timeout=30, trust_env=False) as client:

        def ask(method: str, path: str, **more: Any) -> httpx2.Response:
            answer = client.request(method, path, **more)
            answers.append(str(answer.headers).encode() + answer.content)
            return answer

        items = [
            {"action": f"do-{target}", "input": {"name": f"{fate}-{target}"}}
            for target in TARGETS
            for fate in FATES
        ]
        items += [{"action": "blind", "input": {"name": f"{fate}-blind"}} for fate in FATES]
        told = ask("POST", "/v1/operations/batch", json={"items": items, "wait": 3}).json()
        again = ask("POST", "/v1/operations/batch", json={"items": items, "wait": 1}).json()
        ask("POST", "/v1/operations", json=items[0] | {"wait": 1})
        ids = [
            (item.get("operation") or {}).get("id") or (item.get("problem") or {}).get("operation")
            for item in [*told["items"], *again["items"]]
        ]
        ids = sorted({ident for ident in ids if ident})
        assert len(ids) >= len(TARGETS) * 3
        for ident in ids:
            for part in ("", "/history", "/references"):
                ask("GET", f"/v1/operations/{ident}{part}")
        for path in (
            "/v1/openapi.json", "/metrics", "/v1/operations", "/v1/operations.csv", "/v1/reviews",
            "/v1/approvals", "/v1/contracts", "/v1/targets", "/v1/alarms", "/v1/hooks",
            "/v1/actions", "/v1/figures", "/v1/operations/none", "/v1/nothing", "/healthz",
            "/readyz", "/v1/runs",
        ):  # fmt: skip
            ask("GET", path)
        for wrong in (b"{", b'{"action": "none"}', b'{"action": "do-bearer", "input": {}}'):
            ask("POST", "/v1/operations", content=wrong,
                headers={"Content-Type": "application/json"})  # fmt: skip
        ask("POST", "/hooks/events", content=b"{}", headers={"X-Hub-Signature-256": "sha256=0"})
        own = {"X-Api-Key": MARKS["callers"], "Cookie": f"a={MARKS['callers']}"}
        ask("POST", "/gateway/bearer/do", json={"name": "ok"}, headers=own)
        ask("GET", f"/v1/operations?text={MARKS['callers'][:3]}")


@pytest.mark.timeout(180)
def test_no_planted_secret_is_found_anywhere(tmp_path: Path) -> None:
    env = {f"M_{name.upper()}": mark for name, mark in MARKS.items()}
    (tmp_path / "key.txt").write_text(MARKS["header"] + "\n")
    answers: list[bytes] = []
    with echo() as target:
        url = f"http://127.0.0.1:{target.server_port}"
        config = CONFIG.format(target=url) + "".join(ACTION.format(name=n) for n in TARGETS)
        (tmp_path / "ascertain.toml").write_text(config, "utf-8")
        with process(tmp_path, "up", "--port", "0", "--json", env=env) as up:
            told = up.listening()
            store = open_store(str(tmp_path / "ascertain.db"))
            accounts = Accounts(store)
            secret = accounts.new_token("default", "t", "ops:read ops:write", by="t").secret
            member = Member(account="", namespace="*", role="admin", decides=1)
            who = Who(actor="test")
            anna = accounts.people.add("anna", "", [member], who=who, granter=None)
            accounts.people.set_password(anna, MARKS["password"], who=who)
            scenario(up, tmp_path, secret, answers)
            sessions = people(up, answers)
            until(lambda: len(target.seen) > len(TARGETS) * len(FATES), 20)
            up.send()
            up.ended()
            store.close()
        # The planted ones did go where they belong: else nothing was shown.
        sent = "".join(target.seen)
        for name in ("bearer", "header", "query", "access"):
            assert MARKS[name] in sent, name
        assert base64.b64encode(f"user:{MARKS['basic']}".encode()).decode() in sent
    kept = tmp_path / "kept"
    for words in (("store", "export", str(kept / "a.jsonl")),
                  ("store", "backup", str(kept / "b.jsonl")),
                  ("namespace", "export", "default", str(kept / "c.jsonl")),
                  ("op", "list", "--json"), ("review", "list", "--json"),
                  ("config", "check", "--json"),
                  ("contract", "list"), ("user", "list"), ("token", "list")):  # fmt: skip
        kept.mkdir(exist_ok=True)
        with process(tmp_path, *words, env=env) as run:
            code = run.ended(60)
            answers.append(run.out.encode())
            assert code in (0, 3), (words, run.log())
    assert len(answers) > 100
    for answer in answers:
        nowhere("an answer", answer)
    nowhere("what it says at its start", json.dumps(told).encode())
    files = [f for f in tmp_path.rglob("*") if f.is_file() and f.name != "key.txt"]
    assert {"ascertain.db", "a.jsonl", "b.jsonl", "c.jsonl"} <= {f.name for f in files}
    assert any(f.name.startswith("stderr") and f.stat().st_size for f in files)
    for file in files:
        nowhere(file.name, file.read_bytes())
        for own in (secret, *sessions):
            assert own.encode() not in file.read_bytes(), f"a secret of ours stands in {file.name}"


def people(up: Process, answers: list[bytes]) -> list[str]:
    """A person signs in, looks and decides; return the secrets that only his browser has."""
    own = {"Sec-Fetch-Site": "same-origin"}
    with httpx2.Client(base_url=up.url, headers=own, timeout=30, trust_env=False) as browser:
        for password in ("wrong", MARKS["password"]):
            asked = {"login": "anna", "password": password}
            answer = browser.post("/v1/session", json=asked)
            answers.append(answer.content)
        browser.headers["Ascertain-CSRF"] = answer.json()["csrf"]
        reviews = until(lambda: browser.get("/v1/reviews").json()["items"], 20)
        for review in reviews:
            answers.append(browser.get(f"/v1/reviews/{review['id']}").content)
            decision = {"answer": "cannot_tell", "why": "not seen",
                        "seen": str(review.get("seen", ""))}  # fmt: skip
            answer = browser.post(f"/v1/reviews/{review['id']}/decide", json=decision)
            answers.append(answer.content)
        made = browser.post("/v1/people", json={"login": "eve", "membership": {"role": "viewer"}})
        shown = ("/v1/audit?everywhere=true", "/v1/audit.csv", "/v1/people", "/v1/tokens",
                 "/v1/sessions")  # fmt: skip
        answers.extend(browser.get(path).content for path in shown)
        return [browser.cookies["ascertain"], made.json()["link"].rpartition("/")[2]]


PAIR = "Basic " + base64.b64encode('user:p"ss/wörd & x'.encode()).decode()


@pytest.mark.parametrize(
    "said",
    [
        PAIR, quote(PAIR, safe=""), quote(PAIR, safe="").replace("%3D", "%3d"),
        PAIR.partition(" ")[2],
        quote('p"ss/wörd & x', safe=""), json.dumps('p"ss/wörd & x'), "p&quot;ss/wörd &amp; x",
        json.dumps('p"ss/wörd & x', ensure_ascii=False),
    ],
)  # fmt: skip
def test_a_credential_is_hidden_however_a_target_says_it_again(said: str) -> None:
    found = redacted(f"a target says {said}, and more", [PAIR])
    assert "[redacted]" in found
    for part in ("dXNl", "dxnl", "p%22ss", 'p"ss', "ss/w"):
        assert part not in found

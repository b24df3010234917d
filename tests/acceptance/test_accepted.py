"""Accepted is not done: what was taken over is followed until it is known, and not sent again.

A generation job and a refund at a simulator, and mail by the real Postfix and Dovecot.
"""

from __future__ import annotations

import http.server
import json
import tempfile
import threading
import time
from collections.abc import Iterator
from email import message_from_bytes
from pathlib import Path
from typing import Any, Self

import pytest

import ascertain
from ascertain import (
    Absent,
    Accepted,
    Contract,
    Done,
    NotDone,
    NotDoneKind,
    Reason,
    Receipt,
    Several,
    State,
    Unknown,
    WaitingOn,
)
from ascertain.acceptance import plain
from ascertain.acceptance.faults import HttpFaultProxy
from ascertain.acceptance.scenarios.base import recover, until
from ascertain.acceptance.systems import mail
from ascertain.acceptance.systems.jobs import Jobs
from ascertain.core.contract import LookupRule, OkRule

QUEUED = Contract(
    id="simulator.jobs.create",
    title="a job is queued",
    ok=OkRule(when="202", accepted=True),
    lookup=LookupRule(call="GET /jobs?key={key}", by="body:key", lag="0s"),
)
BOUNDS: dict[str, Any] = {
    "timeout": 2,
    "first_delay": 0.1,
    "longest_delay": 0.3,
    "lookups": 60,
    "attempts": 6,
}


@pytest.fixture(scope="module")
def jobs() -> Iterator[Jobs]:
    with tempfile.TemporaryDirectory(prefix="jobs-") as made, Jobs(made) as system:
        yield system


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[ascertain.Ledger]:
    with ascertain.open(str(tmp_path / "ledger.db")) as opened:
        yield opened


def finding_of(answer: Any) -> Any:
    """What a look-up may say: a job that failed is no absence, and is told by the target's word."""
    if answer.status != 200:
        return Unknown(f"HTTP {answer.status}")
    found = answer.json()
    if not found:
        return Absent()
    if len(found) > 1:
        return Several(refs=[job["id"] for job in found])
    [job] = found
    if job["status"] == "failed":
        return Unknown(f"{job['id']} has failed at the target")
    return (Done if job["status"] == "done" else Accepted)(ref=job["id"])


def declare(ledger: ascertain.Ledger, port: int, name: str = "images.generate", **more: Any) -> Any:
    bounds = {**BOUNDS, "accepted": 30, "total": 60, **more}
    base = f"http://127.0.0.1:{port}"

    @ledger.action(name, key="{case}", owner="anna", contract=QUEUED, sends="call", **bounds)
    def create(call: Any, *, case: str, fate: str, after: float = 0.0, tell: str = "") -> Accepted:
        job = {"key": call.target_key, "text": case, "fate": fate, "after": after, "tell": tell}
        return Accepted(ref=call.http.post(f"{base}/jobs", json=job).json()["id"])

    @create.lookup(late=1)
    def find(call: Any) -> Any:
        return finding_of(call.http.get(f"{base}/jobs?key={call.target_key}"))

    return create


def watch(ledger: ascertain.Ledger, seconds: float) -> None:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        ledger.recover()
        time.sleep(0.05)


def test_a_queued_job_is_followed_until_it_is_done(jobs: Jobs, ledger: Any) -> None:
    create = declare(ledger, jobs.port)
    taken = create(case="image-done", fate="done", after=1.0)
    assert (taken.state, taken.waiting_on) == (State.ACCEPTED, WaitingOn.TARGET)
    assert "done" not in taken.user_message["en"].lower()
    assert "已完成" not in taken.user_message["zh"]
    done = recover(ledger, taken, lambda r: r.done)
    assert (done.ref, done.confirmed_by) == (taken.ref, "look_up")
    assert (done.attempts, jobs.creations("image-done")) == (1, 1)


@pytest.mark.parametrize("name", ["images.generate", "payments.refund"])
def test_a_lost_answer_to_what_was_taken_over_is_found_and_followed(
    jobs: Jobs, ledger: Any, name: str
) -> None:
    case = f"lost-{name.replace('.', '-')}"
    with HttpFaultProxy(jobs.port) as proxy:
        create = declare(ledger, proxy.port, name)
        proxy.drop_response("POST")
        first = create.submit(case=case, fate="done", after=1.2, wait=0)
        taken = recover(ledger, first, lambda r: r.state is State.ACCEPTED)
        assert taken.confirmed_by == "accepted"
        done = recover(ledger, first, lambda r: r.done)
    assert (done.attempts, jobs.creations(case)) == (1, 1)


class Listener:
    """Takes the target's own events and reports them, as a webhook of yours does."""

    def __init__(self, ledger: Any) -> None:
        self.heard: list[dict[str, str]] = []
        listener = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                told = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                listener.report(ledger, told)
                self.send_response(204)
                self.end_headers()

            def log_message(self, *_: object) -> None: ...

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}/"
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.05,))

    def report(self, ledger: Any, told: dict[str, str]) -> None:
        [operation] = until(lambda: ledger.find(ref=told["id"]), "the operation of an event")
        failed = NotDone(NotDoneKind.REJECTED, f"{told['id']} failed at the target")
        finding = failed if told["status"] == "failed" else Done(ref=told["id"])
        ledger.report(operation, finding, by="webhook", report=told["event"])
        self.heard.append(told)

    def __enter__(self) -> Self:
        self.thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.server.shutdown()
        self.thread.join()
        self.server.server_close()


def test_a_job_that_fails_later_is_told_by_its_event_and_not_sent_again(
    jobs: Jobs, ledger: Any
) -> None:
    create = declare(ledger, jobs.port)
    with Listener(ledger) as listener:
        taken = create(case="image-failed", fate="failed", after=1.0, tell=listener.url)
        assert taken.state is State.ACCEPTED
        until(lambda: len(listener.heard) == 2, "the event, twice")
    failed = ledger.get(taken)
    assert (failed.state, failed.reason) == (State.NOT_DONE, Reason.FAILED_AFTER_ACCEPTANCE)
    assert failed.owner == "anna"
    told = [e for e in ledger.history(taken) if e.by == "webhook"]
    assert len(told) == 1, "the second delivery of one event is the same event"
    watch(ledger, 0.8)
    again = create.submit(case="image-failed", fate="failed", after=1.0, tell=listener.url, wait=0)
    assert (again.state, again.reused) == (State.NOT_DONE, True)
    assert jobs.creations("image-failed") == 1


def test_a_job_that_is_done_by_its_event_does_not_wait_for_a_look_up(
    jobs: Jobs, ledger: Any
) -> None:
    create = declare(ledger, jobs.port, first_delay=20, longest_delay=30)
    with Listener(ledger) as listener:
        taken = create(case="image-told", fate="done", after=0.2, tell=listener.url)
        until(lambda: len(listener.heard) == 2, "the event, twice")
    done = ledger.get(taken)
    assert (done.state, done.confirmed_by, done.attempts) == (State.DONE, "webhook", 1)


@pytest.mark.parametrize("fate", ["stuck", "failed"])
def test_what_is_never_confirmed_ends_with_a_person_at_its_bound(
    jobs: Jobs, ledger: Any, fate: str
) -> None:
    create = declare(ledger, jobs.port, accepted=1.2)
    taken = create(case=f"image-{fate}-unheard", fate=fate)
    waiting = recover(ledger, taken, lambda r: r.waiting_on is WaitingOn.REVIEW)
    assert (waiting.state, waiting.owner) == (State.ACCEPTED, "anna")
    [review] = ledger.reviews(taken)
    assert review.owner == "anna"
    if fate == "failed":
        shown = [str(e.data) for e in ledger.history(taken) if e.kind == "look_up"]
        assert any("has failed at the target" in text for text in shown)
    watch(ledger, 0.8)
    assert (ledger.get(taken).attempts, jobs.creations(f"image-{fate}-unheard")) == (1, 1)


# Mail: taken over at once, bounced a moment later


@pytest.fixture(scope="module")
def postfix() -> Iterator[mail.Mail]:
    if lacking := mail.missing():
        pytest.skip(f"NOT PLAYED: a mail that bounces; missing here: {lacking}")
    with tempfile.TemporaryDirectory(prefix="ml-") as made:
        Path(made).chmod(0o755)
        with mail.Mail(Path(made) / "mail") as system:
            yield system


def bounces(system: mail.Mail) -> dict[str, str]:
    """Return what came back to the sender: our key, and the mail server's words."""
    found = {}
    with mail.open_box(system.imap_port, "ops", system.password, "INBOX") as box:
        for number in (box.search(None, "ALL")[1][0] or b"").split():
            content = message_from_bytes(box.fetch(number.decode(), "(RFC822)")[1][0][1])
            parts = list(content.walk())
            keys = [p["X-Operation-Key"] for p in parts if p["X-Operation-Key"]]
            said = [p["Diagnostic-Code"] for p in parts if p["Diagnostic-Code"]]
            if keys:
                found[keys[0]] = " ".join(str(said[0]).split()) if said else "bounced"
    return found


def send_to(ledger: Any, system: mail.Mail) -> Any:
    @ledger.action(
        "mail.send",
        key="{case}",
        owner="anna",
        contract="smtp.submit",
        sends_within=2,
        **{**BOUNDS, "accepted": 30, "total": 60},
    )
    def send(call: Any, *, case: str, to: str) -> Accepted:
        content = plain.mail(case, call.target_key).replace(b"customer@", f"{to}@".encode())
        import smtplib

        with smtplib.SMTP("127.0.0.1", system.port, timeout=2) as client:
            client.sendmail("ops@example.com", [f"{to}@example.com"], content)
        return Accepted(ref=f"<{call.target_key}@example.com>")

    @send.lookup(lag=0.5, late=1)
    def find(call: Any) -> Any:
        with system.imap() as box:
            found = mail.search(box, call.target_key)
        return Done(ref=f"<{call.target_key}@example.com>") if found else Absent()

    return send


@pytest.mark.timeout(60)
def test_a_mail_that_bounces_failed_after_acceptance_and_is_not_sent_again(
    postfix: mail.Mail, ledger: Any
) -> None:
    send = send_to(ledger, postfix)
    good = send(case="offer-good", to="customer")
    bad = send(case="offer-bad", to="nobody-here")
    assert good.state in (State.ACCEPTED, State.DONE)  # it may be in the mailbox already
    assert bad.state is State.ACCEPTED
    assert recover(ledger, good, lambda r: r.done).confirmed_by == "look_up"
    said = until(lambda: bounces(postfix).get(bad.target_key), "the bounce")
    assert "550" in said
    for _ in range(2):  # the watcher reads the mailbox again and again
        report = NotDone(NotDoneKind.REJECTED, said)
        ledger.report(bad, report, by="bounce", report=f"bounce-{bad.target_key}")
    failed: Receipt = ledger.get(bad)
    assert (failed.state, failed.reason) == (State.NOT_DONE, Reason.FAILED_AFTER_ACCEPTANCE)
    assert len([e for e in ledger.history(bad) if e.by == "bounce"]) == 1
    watch(ledger, 1.0)
    assert send.submit(case="offer-bad", to="nobody-here", wait=0).reused
    assert ledger.get(bad).attempts == 1
    assert list(bounces(postfix)) == [bad.target_key]

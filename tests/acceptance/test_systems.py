"""Each real system: what it creates, what it refuses, and what its own storage says afterwards."""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import json
import os
import select
import signal
import smtplib
import socket
import subprocess
import sys
import textwrap
import threading
import time
import uuid
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from email.message import EmailMessage
from pathlib import Path
from typing import TypeVar
from urllib.parse import quote

import nats as nats_client
import pytest
from nats.js.errors import APIError
from nats.js.errors import BadRequestError as NatsRefused

from ascertain.acceptance.systems import (
    Effect,
    Nats,
    NotStarted,
    Radicale,
    Roundup,
    Smtp,
    System,
    base,
    free_port,
    start_all,
)

T = TypeVar("T")


def key() -> str:
    return f"op-{uuid.uuid4().hex[:20]}"


def at_once(work: Callable[[], T], times: int = 8) -> list[T]:
    """Do the same in several threads that are let go together."""
    barrier = threading.Barrier(times)

    def one(_: int) -> T:
        barrier.wait()
        return work()

    with ThreadPoolExecutor(times) as pool:
        return list(pool.map(one, range(times)))


def put(
    radicale: Radicale, name: str, *, uid: str = "", text: str = "Call", condition: bool = True
) -> int:
    lines = ["BEGIN:VCALENDAR", "VERSION:2.0", "PRODID:-//test//EN", "BEGIN:VTODO"]
    lines += [f"UID:{uid or name}", "DTSTAMP:20260101T000000Z", f"SUMMARY:{text}"]
    body = "\r\n".join([*lines, "END:VTODO", "END:VCALENDAR", ""]).encode()
    headers = {"If-None-Match": "*"} if condition else {}
    return ask(radicale, "PUT", name, body, {"Content-Type": "text/calendar", **headers})


def ask(
    radicale: Radicale,
    method: str,
    name: str,
    body: bytes = b"",
    headers: dict[str, str] | None = None,
) -> int:
    path = radicale.collection_path + quote(name) + ".ics"
    connection = http.client.HTTPConnection(radicale.host, radicale.port, timeout=10)
    with contextlib.closing(connection):
        everything = {"Authorization": radicale.authorization, **(headers or {})}
        connection.request(method, path, body, everything)
        return connection.getresponse().status


# Starting and stopping


def test_all_four_are_ready_soon_when_started_together(four: Sequence[System]) -> None:
    assert all(0 < system.ready_seconds < 6 for system in four)
    # The threads that started them have ended since; the servers must not end with them.
    for system in four:
        with socket.create_connection((system.host, system.port), timeout=5):
            assert system.pid is not None


def test_they_listen_on_loopback_only(four: Sequence[System]) -> None:
    table = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    addresses = {row[1].rpartition(":")[::2] for row in table if row[3] == "0A"}
    table6 = [line.split() for line in Path("/proc/net/tcp6").read_text().splitlines()[1:]]
    ports6 = {row[1].rpartition(":")[2] for row in table6 if row[3] == "0A"}
    for system in four:
        port = f"{system.port:04X}"
        assert [host for host, at in addresses if at == port] == ["0100007F"]
        assert port not in ports6


def test_stop_and_start_keep_port_data_and_history(tmp_path: Path) -> None:
    with Radicale(tmp_path) as radicale:
        name, port = key(), radicale.port
        assert put(radicale, name) == 201
        radicale.stop()
        radicale.stop()  # not running: nothing to do
        assert radicale.pid is None
        radicale.start()
        assert radicale.port == port
        assert put(radicale, name) == 412
        assert (len(radicale.effects(name)), radicale.creations(name)) == (1, 1)
        with pytest.raises(RuntimeError, match="already running"):
            radicale.start()


def test_a_killed_parent_takes_its_servers_along(tmp_path: Path) -> None:
    code = f"""
        from ascertain.acceptance.systems import Roundup, Smtp, start_all
        systems = start_all([Roundup({str(tmp_path / "a")!r}), Smtp({str(tmp_path / "b")!r})])
        print(*(s.pid for s in systems), *(s.port for s in systems), flush=True)
        input()
    """
    parent = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(code)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    with parent:
        assert parent.stdout is not None
        first, second, *ports = map(int, parent.stdout.readline().split())
        guards = [os.pidfd_open(pid) for pid in (first, second)]
        parent.send_signal(signal.SIGKILL)
    for guard in guards:
        waiting = select.poll()
        waiting.register(guard, select.POLLIN)
        assert waiting.poll(5_000), "the guard outlived its parent"
        os.close(guard)
    for port in ports:
        with pytest.raises(ConnectionRefusedError):
            until_refused(port)


def until_refused(port: int) -> None:
    """Connect until nobody listens any more; the kernel ends a killed group in any order."""
    until = time.monotonic() + 5
    while time.monotonic() < until:
        with socket.create_connection(("127.0.0.1", port), timeout=1) as connection:
            connection.settimeout(0.05)
            with contextlib.suppress(OSError):
                connection.recv(1)


class Program(System):
    """A server that is whatever code the test wants."""

    name = "Program"
    install = "nothing"
    code = ""

    def effects(self, marker: str) -> list[Effect]:
        return []

    def creations(self, marker: str) -> int:
        return 0

    def _command(self) -> Sequence[str]:
        return [sys.executable, "-c", self.code, str(self.port)]

    def _answers(self) -> bool:
        return "ready" in self.log_tail()


def test_a_server_that_ends_at_once_is_reported_with_its_log(tmp_path: Path) -> None:
    system = Program(tmp_path)
    system.code = "print('no space left in the attic'); raise SystemExit(3)"
    with pytest.raises(NotStarted) as caught:
        system.start()
    text = str(caught.value)
    assert "Program did not start: the server ended at once" in text
    assert "no space left in the attic" in text
    assert "ended with code 3" in text
    assert "next step: " in text
    assert system.pid is None


def test_a_server_that_never_answers_is_given_up_in_time(tmp_path: Path) -> None:
    system = Program(tmp_path, ready_within=0.3)
    system.code = "input_never = __import__('threading').Event().wait()"
    with pytest.raises(NotStarted, match=r"within 0\.3 s") as caught:
        system.start()
    assert "raise ready_within" in caught.value.next_step
    assert system.pid is None


def test_a_server_deaf_to_sigterm_is_killed_with_its_children(tmp_path: Path) -> None:
    system = Program(tmp_path, stop_within=0.3)
    system.code = textwrap.dedent("""
        import os, signal, threading
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        child = os.fork()
        if child:
            print(child, flush=True)
            print("ready", flush=True)
        threading.Event().wait()
    """)
    system.start()
    child = os.pidfd_open(int(system.log_tail()[0]))
    system.stop()
    waiting = select.poll()
    waiting.register(child, select.POLLIN)
    assert waiting.poll(5_000)
    os.close(child)


def test_a_missing_package_is_named_with_its_installation(tmp_path: Path) -> None:
    system = Program(tmp_path)
    system.modules = ("not_there_at_all",)  # type: ignore[misc]
    system.install = "not-there"  # type: ignore[misc]
    with pytest.raises(NotStarted, match="next step: pip install not-there"):
        system.start()


@pytest.mark.parametrize("kind", [Radicale, Nats, Roundup, Smtp])
def test_a_taken_port_is_left_for_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: type[System]
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as stranger:
        taken = int(stranger.getsockname()[1])
        ports = iter([taken])
        monkeypatch.setattr(base, "free_port", lambda: next(ports, None) or free_port())
        with kind(tmp_path) as system:
            assert system.port != taken


def test_one_failure_stops_all(tmp_path: Path) -> None:
    good, bad = Smtp(tmp_path / "good"), Program(tmp_path / "bad")
    bad.code = "raise SystemExit"
    with pytest.raises(NotStarted, match="Program"):
        start_all([good, bad])
    assert good.pid is None


# Radicale


def test_a_task_is_created_once_and_the_second_create_refused(radicale: Radicale) -> None:
    name = key()
    before = time.time()
    assert [put(radicale, name), put(radicale, name)] == [201, 412]
    [effect] = radicale.effects(name)
    assert effect.id == name
    assert effect.created_at is not None
    assert before - 1 <= effect.created_at <= time.time()  # whole seconds in the server's log
    assert effect.where == f"file /crm/tasks/{name}.ics"
    assert radicale.creations(name) == 1


def test_one_of_eight_simultaneous_creates_wins(radicale: Radicale) -> None:
    name = key()
    assert sorted(at_once(lambda: put(radicale, name))) == [201, *[412] * 7]
    assert (len(radicale.effects(name)), radicale.creations(name)) == (1, 1)


def test_an_overwritten_task_is_no_second_creation(radicale: Radicale) -> None:
    name = key()
    assert [put(radicale, name), put(radicale, name, condition=False)] == [201, 204]
    assert (len(radicale.effects(name)), radicale.creations(name)) == (1, 1)


def test_a_task_deleted_and_made_again_counts_twice(radicale: Radicale) -> None:
    name = key()
    assert [put(radicale, name), ask(radicale, "DELETE", name)] == [201, 200]
    assert (len(radicale.effects(name)), radicale.creations(name)) == (0, 1)
    assert put(radicale, name) == 201
    assert (len(radicale.effects(name)), radicale.creations(name)) == (1, 2)


def test_a_task_is_found_by_its_text_too(radicale: Radicale) -> None:
    marker = key()
    text = "A long line that the server folds in the middle of a word, so it must be unfolded"
    text = text.replace(",", "\\,") + " " + marker
    assert [put(radicale, key(), text=text), put(radicale, key(), text=text)] == [201, 201]
    assert (len(radicale.effects(marker)), radicale.creations(marker)) == (2, 2)


def test_a_marker_is_a_whole_word(radicale: Radicale) -> None:
    marker = key()
    assert [put(radicale, f"{marker}-b"), put(radicale, f"{marker}2")] == [201, 201]
    assert (radicale.effects(marker), radicale.creations(marker)) == ([], 0)
    with pytest.raises(ValueError, match="empty marker"):
        radicale.effects("")


def test_names_beyond_ascii_are_read_from_the_log(radicale: Radicale) -> None:
    name = f"{key()} Rückruf"
    assert [put(radicale, name), ask(radicale, "DELETE", name)] == [201, 200]
    assert radicale.creations(name) == 1


def test_the_same_uid_under_another_name_is_refused(radicale: Radicale) -> None:
    name = key()
    assert [put(radicale, name), put(radicale, key(), uid=name)] == [201, 409]
    assert len(radicale.effects(name)) == 1


# NATS


async def publish(nats: Nats, *messages: tuple[str, bytes, dict[str, str]]) -> list[object]:
    """Publish at the same time; each result is the answer or the exception."""
    client = await nats_client.connect(nats.url, user=nats.user, password=nats.password)
    try:
        stream = client.jetstream()
        sends = [stream.publish(s, body, headers=headers) for s, body, headers in messages]
        return await asyncio.gather(*sends, return_exceptions=True)
    finally:
        await client.close()


def test_a_message_repeated_in_the_window_is_stored_once_and_after_it_twice(nats: Nats) -> None:
    marker = key()
    message = ("op.task", b"hello", {"Nats-Msg-Id": marker})
    before = time.time()
    [first] = asyncio.run(publish(nats, message))
    [again] = asyncio.run(publish(nats, ("op.task", b"another body", message[2])))
    assert (first.duplicate, again.duplicate, again.seq) == (None, True, first.seq)
    [effect] = nats.effects(marker)
    assert effect.id == str(first.seq)
    assert effect.created_at is not None
    assert before - 0.1 <= effect.created_at <= time.time() + 0.1
    time.sleep(nats.window + 0.3)  # the window is the server's, so only waiting shows its end
    [late] = asyncio.run(publish(nats, message))
    assert late.seq > first.seq
    assert (len(nats.effects(marker)), nats.creations(marker)) == (2, 2)


def test_eight_simultaneous_messages_with_one_id_are_one(nats: Nats) -> None:
    marker = key()
    answers = asyncio.run(publish(nats, *[("op.race", b"", {"Nats-Msg-Id": marker})] * 8))
    assert len({answer.seq for answer in answers}) == 1
    assert (len(nats.effects(marker)), nats.creations(marker)) == (1, 1)


def test_messages_without_an_id_are_found_by_subject_and_by_body(nats: Nats) -> None:
    marker = key()
    asyncio.run(publish(nats, (f"op.{marker}", b"", {}), ("op.x", f"re {marker}".encode(), {})))
    assert (len(nats.effects(marker)), nats.creations(marker)) == (2, 2)


def test_a_conditional_publish_is_refused_the_second_time(nats: Nats) -> None:
    marker = key()
    message = (f"op.{marker}", b"", {"Nats-Expected-Last-Subject-Sequence": "0"})
    [first] = asyncio.run(publish(nats, message))
    [second] = asyncio.run(publish(nats, message))
    assert first.seq
    assert isinstance(second, NatsRefused)
    assert second.err_code == 10071
    assert nats.creations(marker) == 1


def test_the_stream_refuses_deletion_so_no_creation_is_hidden(nats: Nats) -> None:
    async def delete() -> None:
        [answer] = await publish(nats, ("op.kept", marker.encode(), {}))
        client = await nats_client.connect(nats.url, user=nats.user, password=nats.password)
        try:
            await client.jetstream().delete_msg(nats.stream, answer.seq)
        finally:
            await client.close()

    marker = key()
    with pytest.raises(APIError):
        asyncio.run(delete())
    assert nats.creations(marker) == 1


def test_the_stream_can_be_audited_from_inside_a_running_loop(nats: Nats) -> None:
    async def inside() -> int:
        return nats.creations(key())

    assert asyncio.run(inside()) == 0


# Roundup


def rest(
    roundup: Roundup, method: str, path: str, body: object = None, **more: str
) -> tuple[int, dict[str, object], str]:
    headers = {**roundup.headers, "Content-Type": "application/json"}
    headers |= {name.replace("_", "-"): value for name, value in more.items()}
    connection = http.client.HTTPConnection(roundup.host, roundup.port, timeout=10)
    with contextlib.closing(connection):
        connection.request(method, path, json.dumps(body) if body else None, headers)
        answer = connection.getresponse()
        return answer.status, json.loads(answer.read() or b"{}"), answer.getheader("ETag", "")


def test_two_equal_tickets_are_two(roundup: Roundup) -> None:
    marker = key()
    before = time.time()
    for _ in range(2):
        status, answer, _ = rest(roundup, "POST", roundup.issues_path, {"title": f"Help {marker}"})
        assert status == 201
    first, second = roundup.effects(marker)
    assert second.id == answer["data"]["id"]
    assert first.created_at is not None
    assert before - 1 <= first.created_at <= time.time() + 1
    assert roundup.creations(marker) == 2


def test_a_retired_ticket_still_counts_as_created(roundup: Roundup) -> None:
    marker = key()
    ticket = {"title": "Help", "opkey": marker}
    _, answer, _ = rest(roundup, "POST", roundup.issues_path, ticket)
    path = f"{roundup.issues_path}/{answer['data']['id']}"
    _, _, tag = rest(roundup, "GET", path)
    assert rest(roundup, "DELETE", path, If_Match=tag)[0] == 200
    assert (roundup.effects(marker), roundup.creations(marker)) == ([], 1)
    assert rest(roundup, "POST", roundup.issues_path, ticket)[0] == 201
    assert (len(roundup.effects(marker)), roundup.creations(marker)) == (1, 2)


def test_a_ticket_is_found_over_rest_by_its_key(roundup: Roundup) -> None:
    def found(query: str) -> list[str]:
        status, answer, _ = rest(roundup, "GET", f"{roundup.issues_path}?{query}")
        assert status == 200
        return [ticket["id"] for ticket in answer["data"]["collection"]]

    marker = key()
    for opkey in (marker, f"{marker}-b"):
        rest(roundup, "POST", roundup.issues_path, {"title": "Help", "opkey": opkey})
    assert found(f"opkey:={marker}") == [effect.id for effect in roundup.effects(marker)]
    assert len(found(f"opkey={marker.upper()}")) == 2  # contains, in any case: another's as well
    assert found(f"opkey:={key()}") == []


def test_the_tracker_does_not_run_as_root(roundup: Roundup) -> None:
    assert roundup.database.stat().st_uid != 0
    children = Path(f"/proc/{roundup.pid}/task/{roundup.pid}/children").read_text().split()
    status = Path(f"/proc/{children[0]}/status").read_text()
    [owner] = [line.split()[1] for line in status.splitlines() if line.startswith("Uid:")]
    assert owner != "0"


@pytest.mark.parametrize("missing", ["X-Requested-With", "Origin"])
def test_a_change_without_its_headers_is_refused(roundup: Roundup, missing: str) -> None:
    marker = key()
    headers = {name: value for name, value in roundup.headers.items() if name != missing}
    headers["Content-Type"] = "application/json"
    connection = http.client.HTTPConnection(roundup.host, roundup.port, timeout=10)
    with contextlib.closing(connection):
        body = json.dumps({"title": marker})
        connection.request("POST", roundup.issues_path, body, headers)
        assert connection.getresponse().status == 400
    assert roundup.creations(marker) == 0


# SMTP


def mail(marker: str, to: str = "anna@example.com", *, header: bool = True) -> EmailMessage:
    message = EmailMessage()
    message["From"], message["To"], message["Subject"] = "ops@example.com", to, "Offer"
    if header:
        message["X-Operation-Key"], message["Message-ID"] = marker, f"<{marker}@example.com>"
    message.set_content("Hello." if header else f"Hello, this is about {marker}.")
    return message


def send(smtp: Smtp, message: EmailMessage) -> None:
    with smtplib.SMTP(smtp.host, smtp.port, timeout=10) as client:
        client.send_message(message)


def test_a_repeated_mail_is_kept_twice(smtp: Smtp) -> None:
    marker = key()
    before = time.time()
    send(smtp, mail(marker))
    send(smtp, mail(marker))
    first, _ = smtp.effects(marker)
    assert first.created_at is not None
    assert before <= first.created_at <= time.time()
    assert smtp.creations(marker) == 2


def test_a_mail_read_or_deleted_still_counts_as_created(smtp: Smtp) -> None:
    marker = key()
    send(smtp, mail(marker))
    send(smtp, mail(marker))
    first, second = (smtp.mailbox / "new" / effect.id for effect in smtp.effects(marker))
    first.unlink()
    second.rename(smtp.mailbox / "cur" / f"{second.name}:2,S")
    assert (len(smtp.effects(marker)), smtp.creations(marker)) == (1, 2)


def test_a_mail_without_the_header_is_found_by_its_text(smtp: Smtp) -> None:
    marker = key()
    send(smtp, mail(marker, header=False))
    assert (len(smtp.effects(marker)), smtp.creations(marker)) == (1, 1)


def test_an_unknown_recipient_is_refused_and_nothing_kept(smtp: Smtp) -> None:
    marker = key()
    with pytest.raises(smtplib.SMTPRecipientsRefused) as caught:
        send(smtp, mail(marker, "unknown@example.com"))
    assert caught.value.recipients["unknown@example.com"][0] == 550
    assert smtp.creations(marker) == 0

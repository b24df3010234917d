"""Each fault does what it says: to the client, and to what the real target stores."""

from __future__ import annotations

import contextlib
import http.client
import http.server
import json
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
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from email.message import EmailMessage

import pytest

from ascertain.acceptance.faults import HttpFaultProxy, TcpFaultProxy
from ascertain.acceptance.systems import Nats, Radicale, Roundup, Smtp, free_port

WAIT = 10.0


def key() -> str:
    return f"op-{uuid.uuid4().hex[:20]}"


def task(name: str) -> bytes:
    lines = ["BEGIN:VCALENDAR", "VERSION:2.0", "PRODID:-//test//EN", "BEGIN:VTODO", f"UID:{name}"]
    lines += ["DTSTAMP:20260101T000000Z", "SUMMARY:Call", "END:VTODO", "END:VCALENDAR", ""]
    return "\r\n".join(lines).encode()


@pytest.fixture
def caldav(radicale: Radicale) -> Iterator[HttpFaultProxy]:
    with HttpFaultProxy(radicale.port) as proxy:
        yield proxy


def put(port: int, radicale: Radicale, name: str) -> int:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=WAIT)
    with contextlib.closing(connection):
        headers = {"Authorization": radicale.authorization, "If-None-Match": "*"}
        headers["Content-Type"] = "text/calendar"
        connection.request("PUT", f"{radicale.collection_path}{name}.ics", task(name), headers)
        return connection.getresponse().status


def raw_put(radicale: Radicale, name: str) -> bytes:
    body = task(name)
    head = f"PUT {radicale.collection_path}{name}.ics HTTP/1.1\r\nHost: x\r\n"
    head += f"Authorization: {radicale.authorization}\r\nIf-None-Match: *\r\n"
    head += f"Content-Type: text/calendar\r\nContent-Length: {len(body)}\r\n\r\n"
    return head.encode() + body


# HTTP: what passes


class Echo(http.server.BaseHTTPRequestHandler):
    """Answers with what it received."""

    protocol_version = "HTTP/1.1"

    def __getattr__(self, name: str) -> object:
        if name.startswith("do_"):
            return self.reply
        raise AttributeError(name)

    def log_message(self, *_: object) -> None:
        pass

    def reply(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        seen = {"line": self.requestline, "headers": self.headers.items(), "body": body.hex()}
        content = json.dumps(seen).encode()
        self.send_response(204 if "/empty" in self.path else 200)
        for value in ("a=1", "b=2"):
            self.send_header("Set-Cookie", value)
        self.send_header("Connection", "X-Hop")
        self.send_header("X-Hop", "for one hop only")
        if "/empty" in self.path:
            content = b""
        else:
            self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)


@pytest.fixture
def echo() -> Iterator[int]:
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Echo)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    yield server.server_address[1]
    server.shutdown()
    server.server_close()
    thread.join()


def talk(port: int, request: bytes) -> bytes:
    with socket.create_connection(("127.0.0.1", port), timeout=WAIT) as connection:
        connection.sendall(request)
        return b"".join(iter(lambda: connection.recv(65536), b""))


def test_a_request_passes_unchanged(echo: int) -> None:
    request = (
        b"REPORT /a%20b/?x=%2F&y HTTP/1.1\r\nHost: crm.example:1\r\nX-Odd-Case: V\xe4lue\r\n"
        b"Accept: a\r\nAccept: b\r\nX-Hop: 1\r\nConnection: close, X-Hop\r\nTE: trailers\r\n"
        b"Transfer-Encoding: chunked\r\n\r\n3;ext=1\r\nabc\r\n2\r\nde\r\n0\r\nT: 1\r\n\r\n"
    )
    with HttpFaultProxy(echo) as proxy:
        head, _, body = talk(proxy.port, request).partition(b"\r\n\r\n")
    seen = json.loads(body)
    assert seen["line"] == "REPORT /a%20b/?x=%2F&y HTTP/1.1"
    assert bytes.fromhex(seen["body"]) == b"abcde"
    assert seen["headers"] == [
        ["Host", "crm.example:1"],
        ["X-Odd-Case", "V\xe4lue"],
        ["Accept", "a"],
        ["Accept", "b"],
        ["Content-Length", "5"],
    ]
    assert head.startswith(b"HTTP/1.1 200 OK")
    assert head.count(b"Set-Cookie: ") == 2
    assert b"for one hop only" not in head
    [exchange] = proxy.log
    assert (exchange.action, exchange.outcome, exchange.status) == ("pass", "answered", 200)
    assert exchange.began_at <= exchange.ended_at


def test_host_becomes_the_targets_own_on_request(echo: int) -> None:
    with HttpFaultProxy(echo, set_host=True) as proxy:
        answer = talk(proxy.port, b"GET / HTTP/1.1\r\nHost: crm\r\nConnection: close\r\n\r\n")
    seen = json.loads(answer.partition(b"\r\n\r\n")[2])
    assert seen["headers"] == [["Host", f"127.0.0.1:{echo}"]]


def test_head_and_answers_without_a_body_leave_the_connection_usable(echo: int) -> None:
    with HttpFaultProxy(echo) as proxy:
        connection = http.client.HTTPConnection("127.0.0.1", proxy.port, timeout=WAIT)
        with contextlib.closing(connection):
            for method, path, status in [
                ("HEAD", "/", 200),
                ("DELETE", "/empty", 204),
                ("GET", "/", 200),
            ]:
                connection.request(method, path)
                answer = connection.getresponse()
                content = answer.read()
                assert (answer.status, bool(content)) == (status, method == "GET")


def test_roundup_accepts_what_comes_through_with_its_host_set_back(roundup: Roundup) -> None:
    marker = key()
    for set_host, status in ((False, 400), (True, 201)):
        with HttpFaultProxy(roundup.port, set_host=set_host) as proxy:
            connection = http.client.HTTPConnection("127.0.0.1", proxy.port, timeout=WAIT)
            with contextlib.closing(connection):
                headers = {**roundup.headers, "Content-Type": "application/json"}
                body = json.dumps({"title": marker})
                connection.request("POST", roundup.issues_path, body, headers)
                assert connection.getresponse().status == status
    assert roundup.creations(marker) == 1


def test_a_dead_target_is_answered_502() -> None:
    with HttpFaultProxy(free_port()) as proxy:
        answer = talk(proxy.port, b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
    assert answer.startswith(b"HTTP/1.1 502 ")
    assert [exchange.outcome for exchange in proxy.log] == ["target_failed"]


# HTTP: what goes wrong


def test_a_dropped_response_leaves_the_effect(caldav: HttpFaultProxy, radicale: Radicale) -> None:
    name = key()
    rule = caldav.drop_response("PUT", "/crm/")
    with pytest.raises(ConnectionResetError):
        put(caldav.port, radicale, name)
    assert rule.landed.is_set()
    assert (len(radicale.effects(name)), radicale.creations(name)) == (1, 1)
    assert put(caldav.port, radicale, name) == 412
    assert [(e.action, e.outcome, e.forwarded, e.status) for e in caldav.log] == [
        ("drop_response", "answer_dropped", True, 201),
        ("pass", "answered", True, 412),
    ]


def test_a_dropped_request_leaves_nothing(caldav: HttpFaultProxy, radicale: Radicale) -> None:
    name = key()
    rule = caldav.drop_request("PUT")
    with pytest.raises(ConnectionResetError):
        put(caldav.port, radicale, name)
    assert rule.seen.is_set()
    assert not rule.landed.is_set()
    assert radicale.creations(name) == 0
    assert [(e.outcome, e.forwarded, e.status) for e in caldav.log] == [
        ("request_dropped", False, None)
    ]
    assert put(caldav.port, radicale, name) == 201


@pytest.mark.parametrize("ending", ["close", "reset"])
def test_a_late_commit_lands_after_the_client_has_gone(
    caldav: HttpFaultProxy, radicale: Radicale, ending: str
) -> None:
    name = key()
    rule = caldav.commit_late(WAIT, "PUT")
    with socket.create_connection(("127.0.0.1", caldav.port), timeout=WAIT) as client:
        client.sendall(raw_put(radicale, name))
        assert rule.seen.wait(WAIT)
        if ending == "reset":
            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
    assert radicale.creations(name) == 0
    rule.release()
    assert rule.finished.wait(WAIT)
    assert radicale.creations(name) == 1
    assert [(e.outcome, e.forwarded, e.status) for e in caldav.log] == [
        ("committed_late", True, 201)
    ]


def test_a_late_commit_lands_after_the_caller_was_killed(
    caldav: HttpFaultProxy, radicale: Radicale
) -> None:
    name = key()
    rule = caldav.commit_late(0.4, "PUT")
    code = f"""
        import socket
        client = socket.create_connection(("127.0.0.1", {caldav.port}))
        client.sendall({raw_put(radicale, name)!r})
        client.recv(1)
    """
    with subprocess.Popen([sys.executable, "-c", textwrap.dedent(code)]) as caller:
        assert rule.seen.wait(WAIT)
        caller.send_signal(signal.SIGKILL)
    assert caller.returncode == -signal.SIGKILL
    assert radicale.creations(name) == 0
    assert rule.finished.wait(WAIT)
    assert radicale.creations(name) == 1
    [exchange] = caldav.log
    assert exchange.ended_at - exchange.began_at >= 0.4


def test_a_patient_client_gets_the_answer_of_a_late_commit(
    caldav: HttpFaultProxy, radicale: Radicale
) -> None:
    caldav.commit_late(0.05, "PUT")
    assert put(caldav.port, radicale, key()) == 201


def test_a_held_answer_comes_after_the_effect(caldav: HttpFaultProxy, radicale: Radicale) -> None:
    name = key()
    rule = caldav.hold(WAIT, "PUT")
    with ThreadPoolExecutor(1) as pool:
        answer = pool.submit(put, caldav.port, radicale, name)
        assert rule.landed.wait(WAIT)
        assert radicale.creations(name) == 1
        assert not answer.done()
        rule.release()
        assert answer.result(WAIT) == 201


def test_an_answer_instead_reaches_no_target(caldav: HttpFaultProxy, radicale: Radicale) -> None:
    name = key()
    assert put(caldav.port, radicale, name) == 201
    caldav.answer(401, b"no", [("WWW-Authenticate", "Basic"), ("Retry-After", "1")], method="PUT")
    answer = talk(
        caldav.port, raw_put(radicale, name).replace(b"Host: x", b"Host: x\r\nConnection: close")
    )
    assert answer.startswith(b"HTTP/1.1 401 Unauthorized\r\nWWW-Authenticate: Basic\r\nRetry-After")
    assert answer.endswith(b"\r\n\r\nno")
    assert [(e.outcome, e.forwarded) for e in caldav.log][1:] == [("answered_instead", False)]
    assert radicale.creations(name) == 1


def test_rules_are_one_shot_in_order_and_for_what_they_name(
    caldav: HttpFaultProxy, radicale: Radicale
) -> None:
    names = [key() for _ in range(3)]
    caldav.answer(500, path="/elsewhere/")
    caldav.let_pass("PUT")
    caldav.answer(503, method="PUT", path=names[1])
    assert [put(caldav.port, radicale, name) for name in names] == [201, 503, 201]
    assert [rule.status for rule in caldav.armed] == [500]
    caldav.disarm()
    assert caldav.armed == ()
    assert [e.number for e in caldav.log] == [1, 2, 3]


def test_an_incomplete_request_is_never_forwarded(
    caldav: HttpFaultProxy, radicale: Radicale
) -> None:
    name = key()
    with socket.create_connection(("127.0.0.1", caldav.port), timeout=WAIT) as client:
        client.sendall(raw_put(radicale, name)[:-10])
        client.shutdown(socket.SHUT_WR)
        assert client.recv(1) == b""
    assert [(e.outcome, e.forwarded) for e in caldav.log] == [("incomplete", False)]
    assert radicale.creations(name) == 0


def test_eight_at_once_pass_and_one_of_them_wins(
    caldav: HttpFaultProxy, radicale: Radicale
) -> None:
    name = key()
    with ThreadPoolExecutor(8) as pool:
        statuses = pool.map(lambda _: put(caldav.port, radicale, name), range(8))
        assert sorted(statuses) == [201, *[412] * 7]
    assert len(caldav.log) == 8
    assert radicale.creations(name) == 1


def test_a_stopped_proxy_forwards_nothing_more(radicale: Radicale) -> None:
    names = [key(), key()]
    proxy = HttpFaultProxy(radicale.port)
    late, held = proxy.commit_late(60), proxy.hold(60)
    clients = []
    for rule, name in zip((late, held), names, strict=True):
        clients.append(socket.create_connection((proxy.host, proxy.port), timeout=WAIT))
        clients[-1].sendall(raw_put(radicale, name))
        assert rule.seen.wait(WAIT)
    idle = socket.create_connection((proxy.host, proxy.port), timeout=WAIT)
    assert held.landed.wait(WAIT)
    began = time.monotonic()
    proxy.stop()
    assert time.monotonic() - began < 20
    assert sorted((e.action, e.outcome, e.forwarded) for e in proxy.log) == [
        ("commit_late", "abandoned", False),
        ("hold", "abandoned", True),
    ]
    assert [radicale.creations(name) for name in names] == [0, 1]
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection((proxy.host, proxy.port), timeout=WAIT)
    for client in (*clients, idle):
        client.close()
    assert not [t for t in threading.enumerate() if t.name == "fault-proxy"]


# SMTP


@pytest.fixture
def relay(smtp: Smtp) -> Iterator[TcpFaultProxy]:
    with TcpFaultProxy(smtp.port) as proxy:
        yield proxy


def send(proxy: TcpFaultProxy, marker: str, text: str = "Hello.") -> None:
    message = EmailMessage()
    message["From"], message["To"] = "ops@example.com", "anna@example.com"
    message["X-Operation-Key"] = marker
    message.set_content(text)
    with smtplib.SMTP(proxy.host, proxy.port, timeout=WAIT) as client:
        client.send_message(message)


def test_a_lost_reply_to_the_final_dot_leaves_the_mail(relay: TcpFaultProxy, smtp: Smtp) -> None:
    marker = key()
    rule = relay.drop_after_data()
    with pytest.raises((smtplib.SMTPServerDisconnected, ConnectionResetError)):
        send(relay, marker)
    assert rule.landed.is_set()
    assert smtp.creations(marker) == 1
    send(relay, marker)
    assert (len(smtp.effects(marker)), smtp.creations(marker)) == (2, 2)
    assert [(e.method, e.action, e.outcome, e.status) for e in relay.log] == [
        ("DATA", "drop_after_data", "answer_dropped", 250),
        ("DATA", "pass", "forwarded", None),
    ]


def test_a_long_mail_with_dots_passes_whole(relay: TcpFaultProxy, smtp: Smtp) -> None:
    marker = key()
    send(relay, marker, ".\n..\nDATA\n" + "a line of text\n" * 40_000)
    [effect] = smtp.effects(marker)
    stored = (smtp.mailbox / "new" / effect.id).read_text()
    assert stored.count("a line of text") == 40_000
    assert len(relay.log) == 1


def test_the_client_sees_a_reset_not_an_orderly_end(relay: TcpFaultProxy) -> None:
    relay.drop_after_data()
    with socket.create_connection((relay.host, relay.port), timeout=WAIT) as client:
        lines = client.makefile("rb")
        assert lines.readline().startswith(b"220 ")
        for command in (b"HELO x", b"MAIL FROM:<a@x.example>", b"RCPT TO:<b@x.example>", b"DATA"):
            client.sendall(command + b"\r\n")
            lines.readline()
        client.sendall(b"Subject: x\r\n\r\nhello\r\n.\r\n")
        with pytest.raises(ConnectionResetError):
            lines.readline()


@pytest.mark.parametrize(
    ("fault", "stored", "outcome"),
    [("drop_request", 0, "request_dropped"), ("drop_response", 1, "answer_dropped")],
)
def test_either_side_of_a_mail_can_be_lost(
    relay: TcpFaultProxy, smtp: Smtp, fault: str, stored: int, outcome: str
) -> None:
    marker = key()
    rule = getattr(relay, fault)("DATA")
    with pytest.raises((smtplib.SMTPServerDisconnected, ConnectionResetError)):
        send(relay, marker)
    assert rule.finished.wait(WAIT)
    assert [(e.action, e.outcome, e.forwarded) for e in relay.log] == [
        (fault, outcome, bool(stored))
    ]
    send(relay, key())  # the next one passes, and the server has settled the one before
    assert smtp.creations(marker) == stored


def test_a_mail_takes_effect_after_its_sender_has_gone(relay: TcpFaultProxy, smtp: Smtp) -> None:
    marker = key()
    rule = relay.commit_late(WAIT, "DATA")
    with socket.create_connection((relay.host, relay.port), timeout=WAIT) as client:
        lines = client.makefile("rb")
        lines.readline()
        for command in (b"HELO x", b"MAIL FROM:<a@x.example>", b"RCPT TO:<b@x.example>", b"DATA"):
            client.sendall(command + b"\r\n")
            lines.readline()
        client.sendall(f"Subject: {marker}\r\n\r\nhello\r\n.\r\n".encode())
        assert rule.seen.wait(WAIT)
        lines.close()
    assert smtp.creations(marker) == 0
    rule.release()
    until = time.monotonic() + WAIT
    while not smtp.creations(marker) and time.monotonic() < until:
        time.sleep(0.02)
    assert smtp.creations(marker) == 1
    assert [e.outcome for e in relay.log] == ["committed_late"]


def test_a_held_answer_keeps_its_sender_waiting_until_it_is_released(
    relay: TcpFaultProxy, smtp: Smtp
) -> None:
    marker = key()
    rule = relay.hold(WAIT, "DATA")
    with ThreadPoolExecutor(1) as pool:
        sending = pool.submit(send, relay, marker)
        assert rule.landed.wait(WAIT)
        assert smtp.creations(marker) == 1
        assert not sending.done()
        rule.release()
        with pytest.raises((smtplib.SMTPServerDisconnected, ConnectionResetError)):
            sending.result(WAIT)


# PostgreSQL


@pytest.mark.parametrize(("fault", "stored"), [("drop_request", 0), ("drop_response", 1)])
def test_either_side_of_a_commit_can_be_lost(
    postgres_database: str, fault: str, stored: int
) -> None:
    import psycopg
    from psycopg.conninfo import conninfo_to_dict, make_conninfo

    facts = conninfo_to_dict(postgres_database)
    with psycopg.connect(postgres_database, autocommit=True) as owner:
        owner.execute("create table t (a text)")
        with TcpFaultProxy(int(facts["port"])) as proxy:
            plain = {"port": proxy.port, "sslmode": "disable", "gssencmode": "disable"}
            rule = getattr(proxy, fault)("SQL", "COMMIT")
            with psycopg.connect(make_conninfo(**{**facts, **plain})) as client:
                client.execute("insert into t values ('COMMIT')")  # a value is no request
                assert not rule.seen.is_set()
                with pytest.raises(psycopg.OperationalError):
                    client.commit()
            assert rule.finished.wait(WAIT)
        with owner.transaction():
            owner.execute("lock table t")  # waits for the other session to end
            [(count,)] = owner.execute("select count(*) from t").fetchall()
    assert count == stored


def test_a_standing_answer_meets_every_request(radicale: Radicale) -> None:
    with HttpFaultProxy(radicale.port) as proxy:
        proxy.answer(403, method="GET", standing=True)
        got = [talk(proxy.port, b"GET /.web/ HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")]
        got += [talk(proxy.port, b"GET /x HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")]
        assert [b"403" in said.split(b"\r\n", 1)[0] for said in got] == [True, True]
        assert len(proxy.armed) == 1
        proxy.disarm()
        assert proxy.armed == ()


# NATS


class Wire:
    """A NATS client by hand, so that the test sees every byte."""

    def __init__(self, nats: Nats, port: int) -> None:
        self.socket = socket.create_connection((nats.host, port), timeout=WAIT)
        self.lines = self.socket.makefile("rb")
        assert self.lines.readline().startswith(b"INFO ")
        login = {"verbose": False, "user": nats.user, "pass": nats.password, "headers": True}
        self.socket.sendall(b"CONNECT " + json.dumps(login).encode() + b"\r\nPING\r\n")
        assert self.lines.readline() == b"PONG\r\n"
        self.socket.sendall(b"SUB _INBOX.x 1\r\n")

    def publish(self, marker: str, body: bytes = b"hello", subject: str = "op.task") -> None:
        head = f"NATS/1.0\r\nNats-Msg-Id: {marker}\r\n\r\n".encode()
        sizes = f"{len(head)} {len(head) + len(body)}"
        self.socket.sendall(f"HPUB {subject} _INBOX.x {sizes}\r\n".encode() + head + body + b"\r\n")

    def answer(self) -> dict[str, object]:
        size = int(self.lines.readline().split()[-1])
        return json.loads(self.lines.read(size + 2))

    def close(self) -> None:
        self.lines.close()
        self.socket.close()


@pytest.fixture
def wire(nats: Nats) -> Iterator[tuple[TcpFaultProxy, Wire]]:
    with TcpFaultProxy(nats.port) as proxy, contextlib.closing(Wire(nats, proxy.port)) as wire:
        yield proxy, wire


def test_a_lost_acknowledgement_leaves_the_message(
    nats: Nats, wire: tuple[TcpFaultProxy, Wire]
) -> None:
    proxy, client = wire
    marker = key()
    rule = proxy.drop_publish_ack()
    client.publish(marker)
    with pytest.raises(ConnectionResetError):
        client.answer()
    assert rule.landed.is_set()
    assert nats.creations(marker) == 1
    with contextlib.closing(Wire(nats, proxy.port)) as again:
        again.publish(marker)
        assert again.answer()["duplicate"] is True
    assert nats.creations(marker) == 1
    assert [(e.method, e.path, e.action, e.outcome) for e in proxy.log] == [
        ("PUB", "op.task", "drop_publish_ack", "answer_dropped"),
        ("PUB", "op.task", "pass", "forwarded"),
    ]


def test_a_publish_rule_waits_for_its_subject_and_reads_no_payload(
    nats: Nats, wire: tuple[TcpFaultProxy, Wire]
) -> None:
    proxy, client = wire
    marker = key()
    rule = proxy.drop_publish_ack("op.wanted")
    client.publish(key(), b"\r\nPUB op.wanted 5\r\nhello\r\n")
    assert client.answer()["stream"] == nats.stream
    client.socket.sendall(b"PUB $JS.API.INFO _INBOX.x 0\r\n\r\n")
    assert client.answer()["type"]
    assert not rule.seen.is_set()
    client.publish(marker, b"x" * 200_000, "op.wanted.one")
    with pytest.raises(ConnectionResetError):
        client.answer()
    assert nats.creations(marker) == 1


def test_a_stopped_tcp_proxy_ends_its_connections(
    nats: Nats, wire: tuple[TcpFaultProxy, Wire]
) -> None:
    proxy, client = wire
    began = time.monotonic()
    proxy.stop()
    assert time.monotonic() - began < 20
    assert select.select([client.socket], [], [], WAIT)[0]
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection((proxy.host, proxy.port), timeout=WAIT)
    assert not [t for t in threading.enumerate() if t.name == "fault-proxy"]


def test_a_tcp_proxy_without_a_target_resets() -> None:
    with TcpFaultProxy(free_port()) as proxy, pytest.raises(ConnectionResetError):
        talk(proxy.port, b"")  # the reset may already come while connecting

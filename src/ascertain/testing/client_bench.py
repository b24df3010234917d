"""What `ClientSuite` runs a client against: a scripted target, and a proxy before the server that
writes down what the client says and can lose answers. Standard library only."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import signal
import socket
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

LEASE = 1.0  # seconds of an attempt of the suite's actions
WITHIN = 20.0  # seconds in which a client must have come to an end
LONGEST = 8.0  # seconds that the target holds a request at most
Answer = dict[str, Any]
# What the server under test has to be configured with; {target} is `Bench.target.url`.
CONFIG = """
[[contract]]
id = "suite.order"
undo = "DELETE /orders/{{id}}"
key = {{ at = "header:Idempotency-Key", kind = "request" }}
repeat = {{ answer = "replay", keeps = "24h", atomic = true }}
late = {{ max = "200ms" }}

[[contract]]
id = "suite.searched"
undo = "DELETE /orders/{{id}}"
key = {{ at = "body:key", kind = "content" }}
lookup = {{ call = "GET /orders?key={{key}}", by = "key", lag = "0s" }}
late = {{ max = "200ms" }}

[targets.suite]
base = "{target}"

[actions.order]
by = "client"
target = "suite"
contract = "suite.order"
key = "{{name}}"
owner = "anna"
inputs = {{ name = {{ type = "text" }} }}
deterministic = true
timeout = "1s"
sends_within = "1s"
first_delay = "50ms"
longest_delay = "200ms"

[actions.searched]
by = "client"
target = "suite"
contract = "suite.searched"
key = "{{name}}"
owner = "anna"
inputs = {{ name = {{ type = "text" }} }}
lookup = true
timeout = "1s"
sends_within = "1s"
first_delay = "50ms"
longest_delay = "200ms"
lookups = 40
"""


class _Quiet(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def body(self) -> bytes:
        return self.rfile.read(int(self.headers.get("Content-Length", 0)))

    def say(self, status: int, data: bytes, **headers: str) -> None:
        with contextlib.suppress(OSError):
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            for name, value in headers.items():
                self.send_header(name.replace("_", "-"), value)
            self.end_headers()
            self.wfile.write(data)

    def cut(self) -> None:
        self.close_connection = True
        with contextlib.suppress(OSError):
            self.connection.shutdown(socket.SHUT_RDWR)

    def log_message(self, *_: Any) -> None:
        """Say nothing."""


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, *_: Any) -> None:
        """A client that is killed leaves its connection; that is what is tested."""


class SuiteTarget(_Server):
    """POST /orders makes one order per Idempotency-Key; GET /orders?key=K finds them; GET
    /before?name=N is asked before each.

    `fates` of a name, in order: `ok`; `drop` (saved, the answer is lost); `twice` (so too, but
    two are made); `hang` (never saved, cut); `slow:S` (saved, answered S seconds later);
    `garbage` (saved, an answer that is no JSON); `bad` (422), `busy` (429, Retry-After: 1),
    `closed` (401). `holds`: seconds that /before takes for a name, once.
    """

    def __init__(self) -> None:
        """Listen on loopback."""
        super().__init__(("127.0.0.1", 0), _Target)
        self.lock = threading.Lock()
        self.fates: dict[str, list[str]] = {}
        self.holds: dict[str, float] = {}
        self.orders: list[dict[str, Any]] = []
        self.requests: list[dict[str, Any]] = []  # effect requests, as they came

    @property
    def url(self) -> str:
        """Its address."""
        return f"http://127.0.0.1:{self.server_port}"

    def made(self) -> Counter[str]:
        """How many orders there are, by name."""
        return Counter(order["name"] for order in self.orders)

    def sent(self, name: str) -> list[dict[str, Any]]:
        """The effect requests for a name."""
        return [r for r in self.requests if r["name"] == name]


class _Target(_Quiet):
    server: SuiteTarget

    def do_GET(self) -> None:
        """Answer a look-up, or the question before an order."""
        asked = parse_qs(urlsplit(self.path).query)
        if self.path.startswith("/before"):
            with self.server.lock:
                held = self.server.holds.pop(asked.get("name", [""])[0], 0.0)
            time.sleep(min(held, LONGEST))
            return self.say(200, b"{}")
        wanted = asked.get("key", [""])[0]
        with self.server.lock:
            found = [o for o in self.server.orders if o["key"] == wanted]
        return self.say(200, json.dumps({"orders": found}).encode())

    def do_POST(self) -> None:
        """Meet the fate of an order."""
        body, key = self.body(), self.headers.get("Idempotency-Key", "")
        name = str(json.loads(body).get("name"))
        with self.server.lock:
            self.server.requests.append({"name": name, "key": key, "body": body})
            script = self.server.fates.get(name)
            fate = script.pop(0) if script else "ok"
        word, _, more = fate.partition(":")
        if word in ("bad", "busy", "closed"):
            status = {"bad": 422, "busy": 429, "closed": 401}[word]
            return self.say(status, b'{"error": "refused"}', Retry_After="1")
        if word == "hang":
            return self.cut()
        order = self._save(name, key)
        if word == "twice":
            with self.server.lock:
                self.server.orders.append({**order, "id": f"{order['id']}b"})
        if word in ("drop", "twice"):
            return self.cut()
        time.sleep(min(float(more or 0), LONGEST))
        return self.say(201, b"<oops" if word == "garbage" else json.dumps(order).encode())

    def _save(self, name: str, key: str) -> dict[str, Any]:
        with self.server.lock:
            for order in self.server.orders:
                if order["key"] == key:
                    return order
            made = {"id": str(len(self.server.orders) + 1), "key": key, "name": name}
            self.server.orders.append(made)
            return made


class Proxy(_Server):
    """Passes everything on to the server; `lose` counts the answers to lose by the last part of
    the path, `refuse` those requests that never arrive."""

    def __init__(self, server: str) -> None:
        """Stand before a server."""
        super().__init__(("127.0.0.1", 0), _Proxied)
        self.to = urlsplit(server)
        self.seen: list[tuple[str, Answer, int]] = []  # path, body, status
        self.lose: Counter[str] = Counter()
        self.refuse: Counter[str] = Counter()

    @property
    def url(self) -> str:
        """Its address."""
        return f"http://127.0.0.1:{self.server_port}"

    def said(self, verb: str) -> list[Answer]:
        """The bodies of the requests of one verb, in order."""
        return [body for path, body, _ in self.seen if path.rpartition("/")[2] == verb]


class _Proxied(_Quiet):
    server: Proxy

    def do_POST(self) -> None:
        """Pass it on."""
        body, verb = self.body(), self.path.rpartition("/")[2]
        if self.server.refuse[verb] > 0:
            self.server.refuse[verb] -= 1
            return self.cut()
        to = http.client.HTTPConnection(self.server.to.hostname or "", self.server.to.port)
        sent = {n: v for n, v in self.headers.items() if n in ("Authorization", "Content-Type")}
        try:
            to.request(self.command, self.path, body or None, sent)
            answer = to.getresponse()
            data = answer.read()
        finally:
            to.close()
        self.server.seen.append((self.path, json.loads(body or b"{}"), answer.status))
        if self.server.lose[verb] > 0:
            self.server.lose[verb] -= 1
            return self.cut()
        return self.say(answer.status, data)

    do_GET = do_POST  # noqa: N815 - as the base class names it


@contextlib.contextmanager
def serving(server: ThreadingHTTPServer) -> Iterator[None]:
    """Serve in a thread until left."""
    with server:
        thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
        thread.start()
        try:
            yield
        finally:
            server.shutdown()
            thread.join()


class Bench:
    """A client program between a server and a target. `command` starts it; it reads ASCERTAIN_URL,
    ASCERTAIN_TOKEN, TARGET_URL, ACTION, and NAME where it is to work on one operation only."""

    def __init__(self, command: Sequence[str], url: str, token: str, target: SuiteTarget) -> None:
        """`url` and `token`: of a server with CONFIG for this target, and its scopes `work`,
        `ops:read` and `ops:write`."""
        self.command, self.token, self.target = list(command), token, target
        self.proxy = Proxy(url)
        self._started: list[subprocess.Popen[str]] = []

    @contextlib.contextmanager
    def open(self) -> Iterator[Bench]:
        """Use it; every client that was started is ended."""
        with serving(self.proxy):
            try:
                yield self
            finally:
                for client in self._started:
                    self.end(client, signal.SIGKILL)

    def start(self, action: str, name: str = "") -> subprocess.Popen[str]:
        """Start the client: as a worker for due operations, or for one."""
        env = {n: v for n, v in os.environ.items() if not n.lower().endswith("_proxy")}
        env |= {
            "ASCERTAIN_URL": self.proxy.url, "ASCERTAIN_TOKEN": self.token,
            "TARGET_URL": self.target.url, "ACTION": action, "NAME": name,
        }  # fmt: skip
        client = subprocess.Popen(
            self.command, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        self._started.append(client)
        return client

    def end(self, client: subprocess.Popen[str], how: int = signal.SIGTERM) -> tuple[str, str]:
        """End a client; returns what it wrote, empty where that was read before."""
        if client.poll() is None:
            client.send_signal(how)
        if client.stdout is None or client.stdout.closed:
            return "", ""
        return client.communicate(timeout=WITHIN)

    def one(self, action: str, name: str) -> Answer:
        """Let the client work on one operation until it is over; returns its last line."""
        return self.last_line(self.start(action, name))

    def last_line(self, client: subprocess.Popen[str]) -> Answer:
        """Wait for the end of a client; returns its last line as JSON."""
        out, err = client.communicate(timeout=WITHIN)
        assert client.returncode == 0, f"the client ended with {client.returncode}: {err}"
        found: Answer = json.loads(out.strip().splitlines()[-1])
        return found

    # --- the server, as the runner uses it ---

    def ask(self, method: str, path: str, body: Answer | None = None) -> Answer:
        """Ask the server directly, past the proxy."""
        to = self.proxy.to
        connection = http.client.HTTPConnection(to.hostname or "", to.port, timeout=WITHIN)
        headers = {"Authorization": f"Bearer {self.token}", "Content-Type": "application/json"}
        try:
            data = None if body is None else json.dumps(body)
            connection.request(method, path, data, headers)
            found: Answer = json.loads(connection.getresponse().read())
        finally:
            connection.close()
        return found

    def submit(self, action: str, name: str) -> str:
        """Record an operation for whoever works on due ones; returns its id."""
        asked = {"action": action, "input": {"name": name}, "wait": 0, "on_unresolved": "accept"}
        told: Answer = {}

        def recorded() -> bool:
            nonlocal told
            told = self.ask("POST", "/v1/operations", asked)
            return told.get("code") != "in_progress"  # a slow machine is still at it: ask again

        self.until(recorded, f"{action} {name} is recorded")
        return str(told["id"])

    def state(self, ident: str) -> Answer:
        """Return an operation as it is."""
        return self.ask("GET", f"/v1/operations/{ident}")

    def kinds(self, ident: str) -> list[str]:
        """Return the kinds of an operation's evidence."""
        return [e["kind"] for e in self.ask("GET", f"/v1/operations/{ident}/history")["items"]]

    def until(self, true: Callable[[], Any], what: str) -> None:
        """Wait until something is so; the suite's only waiting."""
        end = time.monotonic() + WITHIN
        while not true():
            assert time.monotonic() < end, f"not within {WITHIN:g} s: {what}"
            time.sleep(0.02)

    def until_state(self, ident: str, *states: str) -> Answer:
        """Wait until an operation is in one of these states."""
        self.until(lambda: self.state(ident)["state"] in states, f"{ident} is {states}")
        return self.state(ident)

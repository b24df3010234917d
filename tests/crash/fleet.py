"""Three servers and four workers over one PostgreSQL, killed, stopped and frozen at random under
load; clients that only know HTTP ask again, under the same key, at whichever server answers.

Everything is forked from here, where no store is open and no thread runs: a server's start then
costs its own work only. The target and the clients are never killed: they are the world outside.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import random
import selectors
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Self
from urllib.parse import parse_qs, urlsplit

from ascertain import Absent, open_store
from crash.auditor import Audit, command
from crash.driver import Journal
from crash.outside import Outside
from crash.scenarios import Field, Setting
from crash.worker import Life, Plan, Stream, forked
from postgres import free_port

SERVERS, WORKERS, CLIENTS, THREADS = 3, 4, 2, 4
KINDS = ("searchable", "idempotent", "identified")  # the last by way of the gateway
EVERY = (0.3, 1.1)  # seconds between two blows
FREEZE = (0.3, 1.5)  # seconds; `late` below covers a longer pause
TRIES = 40  # of one key, then a client goes on to the next: workers find out
PAUSE = 0.05
ASK_AGAIN = (200, 202, 409, 424, 500, 502, 503, 504)  # the target's own errors among them
ASKS_WITHIN = 5.0  # seconds that a client waits for one answer
SETTLE_WITHIN = 120.0
STOP_WITHIN = 30.0
# Imported before forking, so that a start costs its own work only.
PRELOADED = (
    "ascertain.cli.serve", "ascertain.cli.work", "ascertain.cli.working", "ascertain.cli.telling",
    "ascertain.server.running", "ascertain.server.logs", "ascertain.server.tracing",
    "ascertain.store.postgres", "httpx2", "rich.console",
)  # fmt: skip
CONFIG = """
[[contract]]
id = "crash.idempotent"
ok = { when = "201" }
key = { at = "header:Idempotency-Key", kind = "request" }
repeat = { answer = "replay", keeps = "24h", failed = "rerun", atomic = true }
late = { max = "3s" }
refused = { transient = "500" }

[[contract]]
id = "crash.searchable"
ok = { when = "201" }
key = { at = "body:key", kind = "content" }
lookup = { call = "GET /searchable?key={key}", by = "key", lag = "0s" }
late = { max = "3s" }
refused = { transient = "500" }

[server]
stop_within = 5

[targets.outside]
base = "TARGET"
private = true

[[targets.outside.gateway]]
match = "POST /identified"
action = "crash.identified"
contract = "crash.idempotent"
owner = "anna"
ref = "id"

[actions."crash.idempotent"]
target = "outside"
contract = "crash.idempotent"
key = "{order}"
owner = "anna"
inputs = { order = { type = "text" } }
request.url = "/idempotent"
request.json = { order = "{order}", key = "{target_key}" }
request.headers = { Idempotency-Key = "{target_key}" }
ref = "id"

[actions."crash.searchable"]
target = "outside"
contract = "crash.searchable"
key = "{order}"
owner = "anna"
inputs = { order = { type = "text" } }
request = { url = "/searchable", json = { order = "{order}", key = "{target_key}" } }
lookup = { url = "/searchable?key={target_key}", items = "orders", ref = "id", by = "key" }
ref = "id"
reversible = true
"""
BOUNDS = """
timeout = "1s"
first_delay = "50ms"
longest_delay = "400ms"
attempts = 1000
lookups = 1000
"""


# --- the target ----------------------------------------------------------------------------


def target_until_killed(folder: str, port: int, _: Life) -> None:
    """Take orders into files, with the faults of a real network."""
    signal.signal(signal.SIGPIPE, signal.SIG_IGN)  # of clients that were killed
    handler = partial(_Handler, Outside(folder), random.Random())
    _Target(("127.0.0.1", port), handler).serve_forever()


class _Target(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 256

    def handle_error(self, *_: Any) -> None:
        """Say nothing of clients that were killed."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def __init__(self, outside: Outside, chance: random.Random, *given: Any) -> None:
        self.outside, self.chance = outside, chance
        super().__init__(*given)

    def do_GET(self) -> None:
        key = parse_qs(urlsplit(self.path).query).get("key", [""])[0]
        if self.chance.random() < 0.05:
            self._cut()
            return
        found = self.outside.look(key)
        refs = [] if isinstance(found, Absent) else getattr(found, "refs", None) or [found.ref]
        self._say(200, {"orders": [{"id": ref, "key": key} for ref in refs]})

    def do_POST(self) -> None:
        given = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        fate = self.chance.random()
        if fate < 0.08:
            self._cut() if fate < 0.04 else self._say(500, {"error": "transient"})
            return
        call = SimpleNamespace(
            target_key=self.headers.get("Idempotency-Key") or given["key"],
            key=given["order"],
            attempt="0",
            seconds_left=1,
        )
        done = self.outside.send(call, self.path.strip("/"), "-")
        if fate < 0.16:
            self._cut()
            return
        if fate < 0.30:
            time.sleep(self.chance.uniform(0.01, 0.2))
        self._say(201, {"id": done.ref})

    def _say(self, status: int, value: Any) -> None:
        data = json.dumps(value).encode()
        with contextlib.suppress(OSError):
            self.send_response(status)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

    def _cut(self) -> None:
        self.close_connection = True

    def log_message(self, *_: Any) -> None:
        """Say nothing."""


# --- the processes under test, as operators start them -------------------------------------


def command_until_killed(folder: str, words: list[str], _: Life) -> None:
    """Run `ascertain` with its output in a file."""
    from ascertain.cli.main import main

    signal.signal(signal.SIGPIPE, signal.SIG_IGN)  # as Python begins
    log = os.open(f"{folder}/{words[0]}.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.dup2(log, 1)
    os.dup2(log, 2)
    sys.stdout, sys.stderr = os.fdopen(1, "w"), os.fdopen(2, "w")
    sys.argv = ["ascertain", "--config", f"{folder}/ascertain.toml", *words]
    main()


# --- the clients ---------------------------------------------------------------------------


@dataclass
class World:
    """What clients know: where servers may be, and their token."""

    ports: list[int]
    secret: str


def ask_until_killed(world: World, streams: list[Stream], life: Life) -> None:
    """Ask for key after key, in a thread for each stream."""
    from crash.worker import _in_threads

    def endless(stream: Stream) -> None:
        number = 0
        with _client(world) as client:
            while True:
                kind, key = KINDS[number % len(KINDS)], stream.key(number)
                _ask(client, world, life, (stream.name, kind, key))
                number += 1

    _in_threads(endless, streams)


def ask_again(world: World, keys: list[tuple[str, str]], life: Life) -> None:
    """Ask once more for these keys, as flows do that run again from their start."""
    with _client(world) as client:
        for kind, key in keys:
            _ask(client, world, life, ("-", kind, key))


def _client(world: World) -> Any:
    import httpx2

    headers = {"Authorization": f"Bearer {world.secret}"}
    return httpx2.Client(headers=headers, timeout=ASKS_WITHIN, trust_env=False)


def _ask(client: Any, world: World, life: Life, what: tuple[str, str, str]) -> None:
    """Ask until it is done, at any server, always under the same key."""
    import httpx2

    who, kind, key = what
    state = ""
    life.say(f"b {who} {kind} {key}")
    for _ in range(TRIES):
        url = f"http://127.0.0.1:{random.choice(world.ports)}"
        try:
            answer, told = _asked(client, url, kind, key)
        except (httpx2.HTTPError, ValueError) as error:
            life.say(f"s {type(error).__name__}")
            time.sleep(PAUSE)
            continue
        life.say(f"s {answer.status_code}")
        state = told["state"] or state
        if answer.status_code in (200, 201) and told["state"] == "done":
            life.say(f"a {who} {kind} {key} done {told['ref']}")
            return
        if answer.status_code not in ASK_AGAIN:
            life.say(f"! {answer.status_code} {' '.join(answer.text.split())[:300]}")
        time.sleep(PAUSE)
    if state:
        life.say(f"a {who} {kind} {key} {state} -")


def _asked(client: Any, url: str, kind: str, key: str) -> tuple[Any, dict[str, Any]]:
    """Ask one server, and return its answer with the state and the reference that it names."""
    if kind != "identified":
        asked = {"action": f"crash.{kind}", "input": {"order": key}, "wait": 1}
        answer = client.post(f"{url}/v1/operations", json=asked)
        told = answer.json()
        return answer, {"state": told.get("state"), "ref": told.get("ref")}
    answer = client.post(
        f"{url}/gateway/outside/identified",
        json={"order": key},
        headers={"Ascertain-Key": key, "Ascertain-Wait": "1"},
    )
    ours = {"state": answer.headers.get("ascertain-state"), "ref": None}
    return answer, ours | ({"ref": answer.json()["id"]} if answer.status_code == 201 else {})


# --- the fleet -----------------------------------------------------------------------------


@dataclass
class Member:
    """One place in the fleet."""

    role: str
    work: Callable[[Life], None]
    pid: int = 0
    lives: int = 0


@dataclass
class Fleet:
    """All processes; use as a context manager: none outlives it."""

    plan: Plan
    world: World
    chance: random.Random
    show: Callable[[str], None]
    journal: Journal = field(default_factory=Journal)
    statuses: Counter[str] = field(default_factory=Counter)
    blows: Counter[str] = field(default_factory=Counter)
    target: int = 0  # its process

    def __post_init__(self) -> None:
        folder = self.plan.folder
        serve = [["serve", "--port", str(port)] for port in self.world.ports]
        work = [["work", "--every", "0.1"]] * WORKERS
        self.members = [
            Member(words[0], partial(command_until_killed, folder, words))
            for words in (*serve, *work)
        ]
        self._pipes: dict[int, bytes] = {}
        self._ready = selectors.DefaultSelector()
        self._others: list[int] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for pid in [*(m.pid for m in self.members), *self._others]:
            if pid:
                with contextlib.suppress(ProcessLookupError, ChildProcessError):
                    os.kill(pid, signal.SIGKILL)
                    os.waitpid(pid, 0)
        self._ready.close()

    def start(self) -> None:
        for member in self.members:
            self._start(member)

    def _start(self, member: Member) -> None:
        member.lives += 1
        with Path("/dev/null").open("wb") as nobody:
            name = f"{member.role}.{member.lives}"
            member.pid = forked(member.work, name, nobody.fileno())

    def aside(self, work: Callable[[Life], None], name: str) -> int:
        """Start a process that is heard, and not struck."""
        pipe, end = os.pipe()
        pid = forked(work, name, end)
        os.close(end)
        self._pipes[pipe] = b""
        self._ready.register(pipe, selectors.EVENT_READ)
        self._others.append(pid)
        return pid

    def end(self, pid: int) -> None:
        """End a process started aside, and hear what it still said."""
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        self._others.remove(pid)

    # --- blows ---

    def storm(self, seconds: float) -> None:
        """Strike at random for so many seconds."""
        until, shown = time.monotonic() + seconds, time.monotonic()
        while (now := time.monotonic()) < until:
            self.hear(min(self.chance.uniform(*EVERY), until - now))
            self._supervise()
            self.strike(self.chance.choice(self.members))
            if time.monotonic() - shown > 15:
                shown = time.monotonic()
                self.show(f"{dict(self.blows)}, {len(self.journal.done)} done")

    def _supervise(self) -> None:
        """Nobody ends by himself."""
        for member in self.members:
            pid, status = os.waitpid(member.pid, os.WNOHANG)
            if pid:
                code = os.waitstatus_to_exitcode(status)
                self.journal.broken.append(f"{member.role} ended by itself with {code}")
                self._start(member)
        if self.target and os.waitpid(self.target, os.WNOHANG)[0]:
            self.target = 0
            self.journal.broken.append("the target ended: what follows shows nothing")

    def strike(self, member: Member) -> None:
        fate = self.chance.random()
        if fate < 0.70:
            self._ended(member, signal.SIGKILL)
        elif fate < 0.85:
            self._ended(member, signal.SIGTERM)
        else:
            os.kill(member.pid, signal.SIGSTOP)
            self.hear(self.chance.uniform(*FREEZE))
            os.kill(member.pid, signal.SIGCONT)
            self.blows[f"{member.role} frozen"] += 1
            return
        self._start(member)

    def _ended(self, member: Member, how: signal.Signals) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(member.pid, how)
        until, code = time.monotonic() + STOP_WITHIN, None
        while code is None:
            pid, status = os.waitpid(member.pid, os.WNOHANG)
            if pid:
                code = os.waitstatus_to_exitcode(status)
            elif time.monotonic() > until:
                self.journal.broken.append(f"{member.role} did not stop within {STOP_WITHIN} s")
                os.kill(member.pid, signal.SIGKILL)
                code = os.waitstatus_to_exitcode(os.waitpid(member.pid, 0)[1])
            else:
                self.hear(0.02)
        member.pid = 0
        # A SIGTERM may meet a process that does not listen for it yet.
        if code not in (0, -how):
            self.journal.broken.append(f"{member.role} ended with {code} after {how.name}")
        killed = how is signal.SIGKILL
        self.journal.killed[member.role if killed else f"{member.role} stopped"] += 1
        self.blows[f"{member.role} {'killed' if killed else 'stopped'}"] += 1

    def stop(self) -> None:
        """Stop everything as operators do."""
        for member in self.members:
            self._ended(member, signal.SIGTERM)

    # --- what clients say ---

    def hear(self, seconds: float) -> None:
        until = time.monotonic() + seconds
        while True:
            left = until - time.monotonic()
            for ready, _ in self._ready.select(max(left, 0)):
                pipe = ready.fd
                data = os.read(pipe, 1 << 16)
                if not data:
                    self._ready.unregister(pipe)
                    os.close(pipe)
                    continue
                *lines, self._pipes[pipe] = (self._pipes[pipe] + data).split(b"\n")
                for line in lines:
                    self._note(line.decode())
            if left <= 0:
                return

    def _note(self, line: str) -> None:
        what, *words = line.split(" ")
        if what == "!":
            self.journal.broken.append(" ".join(words))
        elif what == "s":
            self.statuses[words[0]] += 1
        elif what == "b":
            self.journal.begin((words[1], words[2]))
        elif what == "a":
            _, kind, key, state, ref = words
            self.journal.hear((kind, key), state, ref)

    # --- rest ---

    def settle(self) -> None:
        """Everything is asked for once more, and workers find out what is not known."""
        keys = list(self.journal.begun)
        again = [
            self.aside(partial(ask_again, self.world, keys[n::4]), f"again-{n}") for n in range(4)
        ]
        until = time.monotonic() + SETTLE_WITHIN
        while again and time.monotonic() < until:
            self.hear(0.1)
            for pid in list(again):
                if os.waitpid(pid, os.WNOHANG)[0]:
                    again.remove(pid)
                    self._others.remove(pid)
        while time.monotonic() < until:
            self._supervise()
            listed = json.loads(command(self.plan, "--json", "op", "list", "--unsettled"))
            if not listed["operations"]:
                return
            self.hear(0.3)
        self.journal.broken.append(f"not settled within {SETTLE_WITHIN} s")


def fleet(setting: Setting, seconds: float) -> Audit:
    """Servers and workers are struck for so many seconds; then all is asked for again."""
    for module in PRELOADED:
        importlib.import_module(module)
    with Field(setting) as where:
        plan = where.plan(where.url("postgres"))
        port = free_port()
        config = CONFIG.replace("TARGET", f"http://127.0.0.1:{port}")
        config = (
            config.replace('ref = "id"\n', f'ref = "id"\n{BOUNDS}')
            + f'\n[store]\nurl = "{plan.url}"\n'
        )
        (where.folder / "ascertain.toml").write_text(config)
        secret = _secret(plan)
        world = World([free_port() for _ in range(SERVERS)], secret)
        made = Fleet(plan, world, random.Random(setting.seed), setting.show)
        with made as running:
            target = partial(target_until_killed, plan.folder, port)
            running.target = running.aside(target, "target")
            running.start()
            running.hear(3.0)
            clients = [running.aside(partial(ask_until_killed, world, streams), f"client-{n}")
                       for n, streams in enumerate(_streams())]  # fmt: skip
            running.storm(seconds)
            for pid in clients:
                running.end(pid)
            running.hear(0.2)
            setting.show("the storm is over; everything is asked for again")
            running.settle()
            running.stop()
        told = {"statuses": dict(running.statuses), "blows": dict(running.blows)}
        return where.judged(running, **told)  # type: ignore[arg-type]


def _streams() -> Iterator[list[Stream]]:
    for n in range(CLIENTS):
        yield [Stream(f"{n}.{t}") for t in range(THREADS)]


def _secret(plan: Plan) -> str:
    """Make a token, in a process of its own: this one opens no store."""
    file = Path(plan.folder) / "secret"

    def work(_: Life) -> None:
        from ascertain.runtime.accounts import Accounts

        store = open_store(plan.url)
        made = Accounts(store).new_token("default", "crash", "ops:read ops:write", by="crash")
        file.write_text(made.secret)
        store.close()

    with Path("/dev/null").open("wb") as nobody:
        pid = forked(work, "token", nobody.fileno())
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    return file.read_text()

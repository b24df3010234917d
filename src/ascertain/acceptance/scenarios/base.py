"""The stage of a scenario: its ledger, proxies, processes, and the blind twin that is measured."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Self

import ascertain
from ascertain import Ledger, Receipt
from ascertain.acceptance import auditor, plain
from ascertain.acceptance.actions import Knobs, declare
from ascertain.acceptance.faults import HttpFaultProxy, TcpFaultProxy
from ascertain.acceptance.systems import Nats, Radicale, Roundup, Smtp, System, WordPress

PLAIN = Path(plain.__file__)
WITHIN = 25.0  # seconds until a scenario gives up waiting for something
POLL = 0.05
CALLER_SECONDS = 8.0  # how long a caller waits; on a busy machine it may have to send again
BLIND_SECONDS = 0.8  # how long a blind sender waits for its answer
TEXT = "Call customer about offer"
# How an effect request of each kind begins on the wire.
HTTP_WORDS = {"task": "PUT ", "ticket": "POST ", "post": "POST ", "media": "POST "}
WORDS = {**HTTP_WORDS, "message": "HPUB ", "mail": "DATA"}

HttpProxy = HttpFaultProxy
Words = Mapping[str, str]  # language to text


@dataclass(frozen=True)
class Systems:
    """The four real systems, running; WordPress only where it was asked for."""

    radicale: Radicale
    nats: Nats
    roundup: Roundup
    smtp: Smtp
    wordpress: WordPress | None = None

    @classmethod
    def in_folder(cls, folder: Path, *, wordpress: bool = False) -> Systems:
        """Return them, not started yet, each with a folder of its own."""
        return cls(
            Radicale(folder / "radicale"),
            Nats(folder / "nats"),
            Roundup(folder / "roundup"),
            Smtp(folder / "smtp"),
            WordPress(folder / "wordpress") if wordpress else None,
        )

    @property
    def all(self) -> list[System]:
        """All of them."""
        optional = [self.wordpress] if self.wordpress else []
        return [self.radicale, self.nats, self.roundup, self.smtp, *optional]

    def of(self, what: str) -> System:
        """Return the system on which an action acts."""
        names = {"task": "radicale", "ticket": "roundup", "message": "nats", "mail": "smtp"}
        names |= {"post": "wordpress", "media": "wordpress"}
        system: System = getattr(self, names[what])
        return system


@dataclass(frozen=True)
class Scenario:
    """One story, with its names for people and the code that plays it."""

    slug: str
    name: Words
    target: str
    play: Callable[[Stage], Ending]
    seconds: float = 5.0  # about; the longest are begun first


@dataclass
class Ending:
    """How a scenario ended, before the auditor has judged it."""

    receipts: list[Receipt]
    blind: int
    checks: auditor.Checks
    protection: str = ""
    broken: bool = False  # the assumption was broken on purpose: a second effect is expected
    evidence: Words | None = None


@dataclass(frozen=True)
class Result:
    """One row of the report."""

    slug: str
    name: Words
    target: str
    protection: str
    effects: int
    wanted: int
    blind_effects: int
    state: str
    evidence: Words
    next: Words
    duplicates: int = 0
    found: int = 0
    lost: int = 0
    failed: tuple[str, ...] = ()
    seconds: float = 0.0

    @property
    def ok(self) -> bool:
        """Whether everything was as expected."""
        return not self.failed


class Worker:
    """A process that submits; it may be frozen, thawed and killed. Ends with its scenario."""

    def __init__(self, command: list[str], log: Path) -> None:
        self.log = log
        with log.open("a") as errors:
            self.process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, text=True
            )

    def ready(self) -> None:
        """Wait until it has opened its ledger."""
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if line != "ready\n":
            raise RuntimeError(f"a worker did not start, it said {line!r}")

    def go(self) -> None:
        """Let it submit."""
        assert self.process.stdin is not None
        self.process.stdin.write("go\n")
        self.process.stdin.flush()

    def until_stopped(self) -> None:
        """Wait until it has frozen itself."""
        until = time.monotonic() + WITHIN
        while time.monotonic() < until:
            seen = os.waitid(
                os.P_PID, self.process.pid, os.WSTOPPED | os.WEXITED | os.WNOHANG | os.WNOWAIT
            )
            if seen is not None and seen.si_code == os.CLD_STOPPED:
                return
            if seen is not None:
                raise RuntimeError("a worker that was to freeze has ended")
            time.sleep(POLL)
        raise TimeoutError("a worker that was to freeze did not")

    def thaw(self) -> None:
        """Let a frozen one go on."""
        os.kill(self.process.pid, 18)

    def kill(self) -> None:
        """End it at once, frozen or not (SIGKILL)."""
        self.process.kill()
        self.process.wait(WITHIN)

    def until_dead(self) -> None:
        """Wait until it has ended, e.g. by its own hand."""
        self.process.wait(WITHIN)

    def answer(self) -> list[dict[str, Any]]:
        """Wait for what it got."""
        out, _ = self.process.communicate(timeout=WITHIN)
        got: list[dict[str, Any]] = json.loads(out) if out.strip() else []
        return got

    def close(self) -> None:
        """End it if it has not ended."""
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait(WITHIN)
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe is not None:
                with contextlib.suppress(OSError):
                    pipe.close()


@dataclass
class Stage:
    """What one scenario works with; everything on it ends with it."""

    systems: Systems
    store: str
    namespace: str
    slug: str
    log: Path  # what its processes say on standard error
    stack: contextlib.ExitStack = field(default_factory=contextlib.ExitStack)
    knobs: Knobs = field(default_factory=Knobs)
    proxies: dict[str, Any] = field(default_factory=dict)

    def __enter__(self) -> Self:
        """Return itself."""
        self._aside = self.stack.enter_context(ThreadPoolExecutor(4))
        return self

    def __exit__(self, *_: object) -> None:
        """End processes, proxies and ledgers, the latest first."""
        self.stack.close()

    # --- the ledger's side ---

    def mark(self, name: str = "") -> str:
        """Return a word by which an effect of this scenario is known at its target."""
        return f"case-{self.slug}-{name}" if name else f"case-{self.slug}"

    def set(self, *whats: str, **knobs: Any) -> None:
        """Put a proxy of our own before each target, and declare the times."""
        places = {what: self.place(what, self.proxy(what)) for what in whats}
        self.knobs = replace(Knobs(**knobs), places=places)

    def proxy(self, what: str) -> Any:
        """Start a fault proxy before a target."""
        system = self.systems.of(what)
        made: Any
        if what in HTTP_WORDS:
            made = HttpFaultProxy(system.port, set_host=what != "task")
        else:
            made = TcpFaultProxy(system.port)
        self.proxies.setdefault(what, made)
        return self.stack.enter_context(made)

    def place(self, what: str, proxy: Any) -> dict[str, Any]:
        """Say where a target is, through a proxy."""
        s, port = self.systems, proxy.port
        if what == "task":
            headers = {"Authorization": s.radicale.authorization}
            return {"port": port, "path": s.radicale.collection_path, "headers": headers}
        if what == "ticket":
            headers = {**s.roundup.headers}
            return {"port": port, "path": s.roundup.issues_path, "headers": headers}
        if what in ("post", "media"):
            assert s.wordpress is not None
            path = s.wordpress.posts_path if what == "post" else s.wordpress.media_path
            return {
                "port": port,
                "path": path,
                "headers": {"Authorization": s.wordpress.authorization},
            }
        if what == "message":
            return {
                "port": port,
                "user": s.nats.user,
                "password": s.nats.password,
                "stream": s.nats.stream,
                "window": s.nats.window,
            }
        return {"port": port}

    def sent(self, what: str) -> int:
        """Count the effect requests that reached a proxy of ours on their way to the target."""
        method = {"message": "PUB", "mail": "DATA"}.get(what) or HTTP_WORDS[what].strip()
        return sum(e.method == method for e in self.proxies[what].log)

    def open(self) -> tuple[Ledger, dict[str, Any]]:
        """Open the scenario's ledger in this process, which is not the caller's."""
        ledger = self.stack.enter_context(ascertain.open(self.store, namespace=self.namespace))
        return ledger, declare(ledger, self.knobs)

    def worker(
        self,
        action: str,
        *inputs: dict[str, Any],
        moment: str = "",
        wait: float = CALLER_SECONDS,
        threads: int = 1,
    ) -> Worker:
        """Start a caller in a process of its own; it submits after ``go``."""
        told = {
            "parent": os.getpid(),
            "store": self.store,
            "namespace": self.namespace,
            "knobs": self.knobs.to_json(),
            "action": action,
            "inputs": inputs,
            "moment": moment,
            "word": WORDS[action],
            "wait": wait,
            "threads": threads,
        }
        command = [sys.executable, "-P", "-m", "ascertain.acceptance.worker", json.dumps(told)]
        made = Worker(command, self.log)
        self.stack.callback(made.close)
        return made

    # --- the blind side ---

    def aside(self, play: Callable[..., Any], *args: Any) -> Future[Any]:
        """Do something beside the scenario, e.g. its blind twin."""
        return self._aside.submit(play, *args)

    def blind(self, what: str, place: plain.Place, mark: str) -> bool:
        """Send once without key, condition or look-up, in this process."""
        return plain.blind(what, place, mark, BLIND_SECONDS)

    def blind_twice(self, what: str, fault: str, *args: Any) -> Callable[[], int]:
        """Return the measurement of a blind retry: sent, the fault, sent again, counted."""
        mark = self.mark("blind")

        def play() -> int:
            proxy = self.proxy(what)
            place = self.place(what, proxy)
            rule = getattr(proxy, fault)(*args)
            self.blind(what, place, mark)
            self.blind(what, place, mark)
            rule.finished.wait(WITHIN)
            return self.systems.of(what).creations(mark)

        return play

    def blind_process(self, what: str, moment: str) -> Callable[[], int]:
        """Return the same measurement with a sender that is frozen or killed on its way; a
        frozen one goes on after the retry."""
        mark = self.mark("blind")

        def play() -> int:
            place = self.place(what, self.proxy(what))
            told = {
                "parent": os.getpid(),
                "moment": moment,
                "word": WORDS[what],
                "what": what,
                "place": place,
                "marker": mark,
                "within": 30.0,
            }
            sender = Worker([sys.executable, "-P", "-B", str(PLAIN), json.dumps(told)], self.log)
            self.stack.callback(sender.close)
            if moment == "stop_before":
                sender.until_stopped()
                self.blind(what, place, mark)
                sender.thaw()
            sender.until_dead()
            if moment != "stop_before":
                self.blind(what, place, mark)
            return self.systems.of(what).creations(mark)

        return play


def until(test: Callable[[], Any], what: str, within: float = WITHIN) -> Any:
    """Wait until something holds and return it; raises TimeoutError naming it."""
    end = time.monotonic() + within
    while time.monotonic() < end:
        if got := test():
            return got
        time.sleep(POLL)
    raise TimeoutError(f"waited {within:g} s for: {what}")


def the(ledger: Ledger, case: str) -> Receipt:
    """Return the operation of a case, once it is in the ledger."""
    found: list[Receipt] = until(lambda: ledger.find(key=case), f"operation {case} in the ledger")
    return found[0]


def recover(
    ledger: Ledger, operation: Receipt, test: Callable[[Receipt], Any], what: str = "recovered"
) -> Receipt:
    """Recover as a worker does until an operation is as wanted."""
    errors: list[str] = []

    def sweep() -> Receipt | None:
        errors[:] = ledger.recover().errors or errors
        now = ledger.get(operation)
        return now if test(now) else None

    try:
        got: Receipt = until(sweep, f"{operation.key}: {what}")
    except TimeoutError as error:
        now = ledger.get(operation)
        seen = [entry.says["en"] for entry in ledger.history(operation)]
        said = f"{now.state}, {now.next_step['en']} after {seen}, errors {errors}"
        raise TimeoutError(f"{error}; it is {said}") from None
    return got


def settled(receipt: Receipt) -> bool:
    """Tell whether an operation is done and nothing more is looked for."""
    return receipt.done and receipt.due_at is None


def says(ledger: Ledger, operation: Receipt, shows: Iterable[str]) -> list[Any]:
    """Return the entries of evidence that show one of these."""
    wanted = set(shows)
    return [entry for entry in ledger.history(operation) if entry.shows in wanted]

"""What a worker process does: call actions under business keys, or recover; and tell a journal.

It tells before each call (`b`), from within it (`c` the code runs, `e` the effect is made, `l` a
look-up), and what the ledger told it (`a`, or `x` an error of the store). The journal is a pipe
whose other end is held by the driver, so it keeps what a killed worker said. A line is one write.
"""

from __future__ import annotations

import ctypes
import itertools
import os
import random
import resource
import signal
import threading
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from ascertain import AscertainError, Ledger, StoreError, open_store
from ascertain.runtime import recovery
from crash.outside import Outside
from shop import CONTROL, LOOKS, declared

LEASE, LATE = 0.6, 0.6  # seconds; the target refuses what comes after the deadline by itself
TIMES = {
    "lease": LEASE, "late": LATE, "first_delay": 0.05, "longest_delay": 0.3,
    "attempts": 1000, "lookups": 1000, "extensions": 1,
}  # fmt: skip
QUIET = LEASE * 2 + LATE  # after a restore nothing of the lost time can still land
# Of operations; a `lazy` one is searchable, and its settlement need not be on the disk.
KINDS = ("searchable", "identified", "opaque", "lazy", "idempotent")
NEED_NOBODY = ("searchable", "lazy", "identified", "idempotent")  # all others may need a person
HOLD = 300_000  # µs for which a recovering worker keeps what it took
TRANSIT = 0.002  # seconds at most to the target, and again back
SHARED = 7  # every so many-th key is one that all workers submit
TRIES, PAUSE = 30, 0.1  # while the store cannot be used; then the worker ends, to be started anew
STORE_GONE = 3  # its exit code then
DIES_WITH_PARENT = 1  # PR_SET_PDEATHSIG

Say = Callable[[str], None]


@dataclass(frozen=True)
class Plan:
    """Where everything is, and what is wrong with the workers: `blind` ones act without a
    ledger, `hasty` ones take an outcome for granted before the call."""

    url: str
    folder: str
    wrong: str = ""
    limit: int = 0  # bytes that a file may have at most, if not 0


@dataclass
class Stream:
    """The keys of one caller, in order; a new worker goes on where the killed one was."""

    name: str
    next: int = 0

    def key(self, number: int) -> str:
        return f"all-{number}" if number % SHARED == 3 else f"{self.name}-{number}"


@dataclass
class Life:
    """One worker process: its name is the one in the ledger's attempts and the target's lines."""

    name: str
    say: Say = field(repr=False)


def registered(plan: Plan, ledger: Ledger, life: Life) -> dict[str, Any]:
    """Register one action of each kind of contract."""
    target = Outside(plan.folder)
    return {kind: _action(ledger, target, kind, life) for kind in KINDS}


def _action(ledger: Ledger, target: Outside, kind: str, life: Life) -> Any:
    contract = "searchable" if kind == "lazy" else kind
    more = {"settle": "lazy"} if kind == "lazy" else {}

    @ledger.action(f"crash.{kind}", **declared(contract, **TIMES, **more))
    def order(call: Any, *, order: str) -> Any:
        life.say(f"c {kind} {order}")
        time.sleep(random.random() * TRANSIT)
        done = target.send(call, kind, life.name)
        life.say(f"e {kind} {order}")
        time.sleep(random.random() * TRANSIT)
        return done

    if contract in LOOKS:

        @order.lookup(control=CONTROL)
        def find(call: Any) -> Any:
            life.say(f"l {kind} {call.key}")
            return target.look(call.target_key)

    return order


def app() -> Ledger:
    """The application as `ascertain --app crash.worker:app` loads it."""
    plan = Plan(os.environ["ASCERTAIN_STORE"], os.environ["CRASH_FOLDER"])
    ledger = Ledger(open_store(plan.url))
    registered(plan, ledger, Life("operator", lambda _: None))
    return ledger


def opened(plan: Plan, life: Life) -> tuple[Ledger, dict[str, Any]]:
    """Open the ledger, waiting for a store that cannot be used now."""
    if plan.limit:
        resource.setrlimit(resource.RLIMIT_FSIZE, (plan.limit, plan.limit))
    for _ in range(TRIES):
        try:
            ledger = Ledger(open_store(plan.url), worker=life.name)
            return ledger, registered(plan, ledger, life)
        except StoreError as error:
            life.say(f"x {type(error).__name__} - opening")
            time.sleep(PAUSE)
    os._exit(STORE_GONE)


def call_until_killed(plan: Plan, life: Life, streams: list[Stream]) -> None:
    """Submit key after key, in a thread for each stream."""
    ledger, actions = opened(plan, life)

    def endless(stream: Stream) -> None:
        for number in itertools.count(stream.next):
            kind = KINDS[number % len(KINDS)]
            _submit(plan, life, actions, stream.name, (kind, stream.key(number)))

    _in_threads(endless, streams)
    ledger.close()


def call_again(plan: Plan, life: Life, keys: list[tuple[str, str]]) -> None:
    """Submit these (kind, key) once more: a flow that runs again from its start."""
    ledger, actions = opened(plan, life)
    for key in keys:
        _submit(plan, life, actions, "-", key)
    ledger.close()


def _submit(
    plan: Plan, life: Life, actions: dict[str, Any], who: str, what: tuple[str, str]
) -> None:
    kind, key = what
    life.say(f"b {who} {kind} {key}")
    if plan.wrong == "blind":
        ref = Outside(plan.folder).add(kind, key, life.name)
        time.sleep(TRANSIT)
        return life.say(f"a {who} {kind} {key} done {ref}")
    if plan.wrong == "hasty":
        life.say(f"a {who} {kind} {key} done -")
    for _ in range(TRIES):
        try:
            told = actions[kind].submit(order=key, wait=0)
        except StoreError as error:
            life.say(f"x {type(error).__name__} {kind} {key}")
            time.sleep(PAUSE)
        else:
            return life.say(f"a {who} {kind} {key} {told.state} {told.ref or '-'}")
    os._exit(STORE_GONE)


def recover_until_killed(plan: Plan, life: Life) -> None:
    """Recover in a loop, as `ascertain work` does."""
    ledger, _ = opened(plan, life)
    while True:
        report = ledger.recover(limit=50)
        life.say(f"r {report.worked} {len(report.errors)}")
        if not report.worked:
            time.sleep(0.02)


def recover_until_quiet(plan: Plan, life: Life) -> None:
    """Recover until only people are next."""
    ledger, _ = opened(plan, life)
    while True:
        report = ledger.recover()
        life.say(f"r {report.worked} {len(report.errors)}")
        for error in report.errors:
            life.say(f"! {' '.join(error.split())[:300]}")
        if report.errors or not _anything_due(ledger):
            break
        time.sleep(0.03)
    ledger.close()


def _anything_due(ledger: Ledger) -> bool:
    after = ""
    while page := ledger.find(unsettled=True, limit=1000, after=after):
        if any(receipt.due_at is not None for receipt in page):
            return True
        after = page[-1].id
    return False


def _in_threads(work: Callable[[Any], None], things: list[Any]) -> None:
    def careful(thing: Any) -> None:
        try:
            work(thing)
        except BaseException:
            threading.excepthook = lambda _: None
            os.write(2, traceback.format_exc().encode())
            os._exit(1)

    threads = [threading.Thread(target=careful, args=(thing,)) for thing in things[1:]]
    for thread in threads:
        thread.start()
    careful(things[0])
    for thread in threads:
        thread.join()


def forked(work: Callable[[Life], None], name: str, journal: int) -> int:
    """Start a worker that ends with its parent; returns its process id."""
    parent = os.getpid()
    child = os.fork()
    if child:
        return child
    code = 1
    try:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)
        ctypes.CDLL(None).prctl(DIES_WITH_PARENT, signal.SIGKILL)
        if os.getppid() != parent:
            os._exit(1)
        recovery.HOLD = HOLD
        work(Life(name, lambda line: _tell(journal, line)))
        code = 0
    except SystemExit as end:
        code = int(end.code or 0)
    except AscertainError as error:
        _tell(journal, f"! {type(error).__name__}: {' '.join(str(error).split())[:300]}")
    except BaseException:
        os.write(2, traceback.format_exc().encode())
    finally:
        os._exit(code)


def _tell(journal: int, line: str) -> None:
    os.write(journal, line.encode() + b"\n")

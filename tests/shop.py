"""A ledger, a counting target and one clock for both: what most tests of the library need."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Self

import pytest

from ascertain import AsyncLedger, Contract, Ledger, NotDone, NotDoneKind, Receipt, open_store
from ascertain.core.contract import KeyRule, LateRule, LookupRule, RepeatRule
from ascertain.store.sqlite import SqliteStore
from ascertain.testing import FakeClock
from counting import Target

LEASE, LATE = 10.0, 5.0  # seconds of virtual time
CONTROL = "control"  # the target key of an object that is known to exist
LOOKS = ("searchable", "lagging")
TARGETS = {"identified": "unique", "idempotent": "remembers"}


def contract(kind: str, *, late: float = LATE, lag: float = 30, keeps: str = "1h") -> Contract:
    """What the target promises, in one protection class; its effects can be undone."""
    parts: dict[str, Any] = {}
    if kind in LOOKS:
        visible = f"{lag}s" if kind == "lagging" else "0s"
        parts = {"key": KeyRule(at="body:op", kind="resource"),
                 "lookup": LookupRule(by="op", lag=visible)}  # fmt: skip
    elif kind == "identified":
        parts = {"key": KeyRule(at="body:op", kind="resource"),
                 "repeat": RepeatRule(answer="exists", atomic=True, keeps="forever")}  # fmt: skip
    elif kind == "idempotent":
        parts = {"key": KeyRule(at="header:Idempotency-Key", kind="request"),
                 "repeat": RepeatRule(answer="replay", atomic=True, keeps=keeps)}  # fmt: skip
    return Contract(id=f"shop.{kind}", undo="DELETE", late=LateRule(max=f"{late}s"), **parts)


def declared(kind: str, lease: float = LEASE, **more: Any) -> dict[str, Any]:
    """The declaration of an action of this class whose code sends by itself, in time."""
    times = {n: more.pop(n) for n in ("late", "lag", "keeps") if n in more}
    same = {"deterministic": True} if kind in TARGETS else {}
    return {
        "contract": contract(kind, **times),
        "owner": "anna",
        "key": "{order}",
        "scope": "acme",
        "timeout": lease,
        "sends_within": lease,
        **same,
        **more,
    }


def register(ledger: Any, target: Target, kind: str = "searchable", **more: Any) -> Any:
    """Register `shop.order` (or `name`): it sends once, and not after its deadline."""
    name = more.pop("name", "shop.order")

    @ledger.action(name, **declared(kind, **more))
    def order(call, *, order, note=""):
        return send(target, call, f"{order}:{note}")

    if kind in LOOKS:
        order.lookup(control=CONTROL)(lambda call: target.look(call.target_key))
    return order


def send(target: Target, call: Any, body: str = "") -> Any:
    """Send as an honest action does: never after the deadline of its attempt."""
    if not call.seconds_left:
        return NotDone(NotDoneKind.TRANSIENT, "its time was over before it was sent")
    return target.send(call.target_key, body)


class Shop:
    """One store, one target, one virtual clock; `order` is an action of the class `kind`."""

    def __init__(self, folder: Path, kind: str = "searchable", *, url: str = "", **more: Any):
        self.folder, self.clock, self.url = folder, FakeClock(), url
        keeps = more.pop("target_keeps", 3600)
        self.target = Target(
            folder / "target.db", TARGETS.get(kind, "plain"), keeps=keeps,
            lag=more.get("lag", 30) if kind == "lagging" else 0,
            clock=self.clock.wall, sleep=self.clock.advance,
        )  # fmt: skip
        self.target.put(CONTROL)
        self.ledgers: list[Any] = []
        self.ledger = self.another()
        self.order = register(self.ledger, self.target, kind, **more)

    def another(self, namespace: str = "default", worker: str = "") -> Ledger:
        """A ledger as another process has it: its own store object on the same database."""
        made = Ledger(self.store(), namespace=namespace, clock=self.clock, worker=worker)
        self.ledgers.append(made)
        return made

    def store(self) -> Any:
        if not self.url:
            return SqliteStore(self.folder / "ledger.db", clock=self.clock.wall)
        from ascertain.store.postgres import PostgresStore

        return PostgresStore(self.url, clock=self.clock.wall)

    def aio(self) -> AsyncLedger:
        """An asynchronous ledger on the same store and clock."""
        return AsyncLedger(self.another())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for ledger in self.ledgers:
            ledger.close()

    # --- short words for tests ---

    def lose(self, order: Any = 1, fate: str = "hang", **more: Any) -> Receipt:
        """Submit one whose answer is lost, and stop there."""
        self.target.script(fate)
        return self.order.submit(order=order, wait=0, **more)

    def die(self, order: Any = 1, *, sent: bool, fate: str = "ok", action: Any = None) -> Receipt:
        """A caller is killed after its claim, or after it sent: it reports nothing, ever."""
        action = action or self.order
        given = action.definition.intent({"order": order}, self.clock.wall())
        ticket, _ = self.ledger.engine.begin(action.definition, given, action.options, execute=True)
        if sent:
            self.target.script(fate)
            with contextlib.suppress(OSError):
                self.target.send(ticket.case.status.target_key, str(order))
        return self.ledger.get(ticket.case.operation.id)

    def get(self, receipt: Receipt) -> Receipt:
        return self.ledger.get(receipt)

    def effects(self, receipt: Receipt) -> int:
        return len(self.target.effects(receipt.target_key))

    def reviews(self) -> list[str]:
        return [review.road for review in self.ledger.reviews()]

    def settle(self, ledger: Ledger | None = None, rounds: int = 100, most: float = 1e9) -> None:
        """Recover in a loop, going from due time to due time, until nobody but people is next
        or `most` virtual seconds are over."""
        ledger, until = ledger or self.ledger, self.clock.wall() + round(most * 1e6)
        for _ in range(rounds):
            report = ledger.recover()
            assert not report.errors, report.errors
            due = [r.due_at for r in ledger.find(unsettled=True, limit=1000) if r.due_at]
            if not due or min(due) > until:
                return
            self.clock.sleep(max(min(due) - self.clock.wall(), 0) + 1)
        raise AssertionError("recovery does not come to an end")


@pytest.fixture
def make_shop(tmp_path: Path) -> Iterator[Callable[..., Shop]]:
    """Makes shops of any class, each in a folder of its own."""
    with contextlib.ExitStack() as stack:

        def make(kind: str = "searchable", **more: Any) -> Shop:
            folder = tmp_path / f"shop-{len(list(tmp_path.iterdir()))}"
            folder.mkdir()
            return stack.enter_context(Shop(folder, kind, **more))

        yield make


@pytest.fixture
def shop(make_shop: Callable[..., Shop]) -> Shop:
    """One shop of the class `searchable`."""
    return make_shop()


def open_real(url: str, namespace: str = "default", **more: Any) -> Ledger:
    """A ledger on the real clock, for tests with processes."""
    return Ledger(open_store(url), namespace=namespace, **more)

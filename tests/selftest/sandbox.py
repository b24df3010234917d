"""A target to try contracts on: honest in every class, or lying in exactly one way."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

from ascertain import Absent, Done, Ledger, NotDone, NotDoneKind
from ascertain.core.contract import Contract, KeyRule, LookupRule, RepeatRule
from ascertain.selftest.planning import AT_ONCE
from ascertain.store.sqlite import SqliteStore
from ascertain.testing import FakeClock
from counting import Target

KINDS = {"idempotent": "remembers", "identified": "unique"}
INPUT = {"order": "T-1", "note": "hello"}


class Sandbox(Target):
    """A counting target that shows content, can delete, and tells one lie at most: `ignores`
    its key, `hides` a second one, finds `anything` or the `latest`, `denies` or shows `nothing`
    to look-ups, `races`, `overwrites` or `takes` changed content, makes a `second` of it, keeps
    what it `undeletes`."""

    lie = ""
    mismatch = False  # refuse changed content, as an honest one may say

    def __init__(self, path: Path, kind: str = "plain", **more: Any) -> None:
        super().__init__(path, kind, **more)
        self.meeting = threading.Barrier(AT_ONCE)
        self.made = 0

    def send(self, key: str, body: str = "") -> Any:
        self.made += 1
        if self.lie == "ignores":
            return Done(ref=self.put(key, body))
        if self.lie == "races" and not self.effects(key):
            try:
                self.meeting.wait(timeout=0.3)
            except threading.BrokenBarrierError:  # nobody else came: one request alone
                self.meeting.reset()
            return Done(ref=self.put(key, body))
        known = [b for _, b, _ in self.effects(key)]
        changed = bool(known) and known[0] != body
        if known and self.lie == "hides":
            self.put(key, body)
            return Done(ref=self.effects(key)[0][2])
        if changed and self.mismatch and self.lie not in ("takes", "overwrites"):
            return NotDone(NotDoneKind.REJECTED, "known with another content")
        if changed and self.lie == "second":
            return Done(ref=self.put(key, body))
        if changed and self.lie == "overwrites":
            with self._open() as db:
                db.execute("update effect set body = ? where key = ?", (body, key))
        return super().send(key, body)

    def look(self, key: str) -> Any:
        if self.lie == "denies":
            raise PermissionError("401 Unauthorized")
        if self.lie == "nothing":
            return Absent()
        if self.lie == "anything":
            return Done(ref="ref-1")
        if self.lie == "latest" and self.effects():
            return Done(ref=self.effects()[-1][2])
        found = super().look(key)
        if isinstance(found, Done):
            return Done(ref=found.ref, result=self.effects(key)[0][1])
        return found

    def delete(self, ref: str) -> Any:
        if self.lie != "undeletes":
            with self._open() as db:
                db.execute("delete from effect where ref = ?", (ref,))
        return Done(ref=ref)


class Trial:
    """A ledger, a sandbox and a virtual clock; `box.order` is tried, `box.remove` cleans up."""

    def __init__(self, folder: Path, kind: str, *, lie: str = "", **more: Any) -> None:
        self.clock = FakeClock()
        self.lag, looks = more.pop("lag", 0), more.pop("looks", True)
        keeps = more.pop("keeps", "40s")
        mismatch = more.pop("mismatch", "")
        self.box = Sandbox(
            folder / "box.db", KINDS.get(kind, "plain"), clock=self.clock.wall,
            lag=more.pop("real_lag", self.lag), keeps=more.pop("real_keeps", 40),
        )  # fmt: skip
        self.box.lie, self.box.mismatch = lie, bool(mismatch)
        store = SqliteStore(folder / "ledger.db", clock=self.clock.wall)
        self.ledger = Ledger(store, clock=self.clock)
        parts: dict[str, Any] = {}
        if kind == "idempotent":
            parts = {"key": KeyRule(at="header:Key", kind="request"),
                     "repeat": RepeatRule(answer="replay", keeps=keeps, atomic=True,
                                          mismatch=mismatch)}  # fmt: skip
        elif kind == "identified":
            parts = {"key": KeyRule(at="body:op", kind="resource"),
                     "repeat": RepeatRule(answer="exists", keeps="forever",
                                          atomic=True)}  # fmt: skip
        if looks:
            parts["lookup"] = LookupRule(by="op", lag=f"{self.lag}s", blind=("deleted",))
        made = {"undo": "DELETE", "protocol": "sql", **more.pop("contract", {})}
        self.contract = Contract(id=f"box.{kind}", **parts, **made)
        self.declare(self.ledger, looks=looks, **more)

    def declare(self, ledger: Ledger, *, looks: bool = True, **more: Any) -> Any:
        given = {"contract": self.contract, "scope": "sandbox", "timeout": 10, "sends_within": 10,
                 "deterministic": True, **more}  # fmt: skip

        @ledger.action("box.order", key="{order}", owner="anna", **given)
        def order(call: Any, *, order: str, note: str = "") -> Any:
            return self.box.send(call.target_key, f"{order}:{note}")

        @ledger.action("box.remove", key="{ref}", owner="anna", sends_within=10, timeout=10)
        def remove(call: Any, *, ref: str) -> Any:
            return self.box.delete(ref)

        if looks:
            order.lookup(late=1)(lambda call: self.box.look(call.target_key))
        return order

"""What a worker tells: a line of each operation that recovered or was handed on, and of alarms."""

from __future__ import annotations

import sys
import threading
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import click
import msgspec

from ascertain import Ledger, Receipt, Report, StoreError
from ascertain.core import words
from ascertain.core.model import State
from ascertain.runtime.recovery import Recovered

from .base import FINE, UNRESOLVED, Settings
from .out import emit_line, how, short, when


class Telling:
    """What is told of one worker, over all the ledgers that it works on. Safe to use from
    several threads."""

    def __init__(self, settings: Settings, ledgers: Sequence[Ledger]) -> None:
        """Nothing is told yet. The first ledger's clock dates the lines."""
        self.settings, self.ledgers = settings, ledgers
        self.worked = self.recovered = self.handed = 0
        self._several = len(ledgers) > 1
        self._lock = threading.Lock()
        self._missing: dict[str, int] = {}  # by namespace
        self._told: dict[str, set[str]] = {}  # what was wrong in the sweep before
        self._wrong: set[str] = set()  # and in this one

    def told(self, ledger: Ledger, report: Report) -> None:
        """Tell what a sweep did."""
        with self._lock:
            self._tell(ledger, report)

    def _tell(self, ledger: Ledger, report: Report) -> None:
        self._namespace = ledger.engine.namespace
        self.worked += report.worked
        self.recovered += len(report.recovered)
        self.handed += len(report.reviews)
        for recovered in report.recovered:
            self._recovered(recovered)
        for ident in report.reviews:
            with suppress(StoreError):  # it is in the list of reviews all the same
                self._handed(ledger.get(ident))
        for text in report.errors:
            self._alarm("error", text, message=text)
        self._missing[self._namespace] = sum(a.kind == "missing" for a in report.alarms)
        for a in report.alarms:
            text = self.settings.say(f"alarm.{a.kind}", action=a.action, key=a.key, owner=a.owner)
            self._alarm("alarm", text, **msgspec.to_builtins(a))
        self._told[self._namespace], self._wrong = self._wrong, set()
        self._progress()

    def _recovered(self, r: Recovered) -> None:
        say = self.settings.say
        states = {
            n: words.STATES[s][words.LANGUAGES.index(self.settings.lang)]
            for n, s in (("before", r.before), ("after", r.after))
        }
        found = how(self.settings, r.how)
        text = say("work.recovered", action=r.action, key=r.key, how=found, **states)
        self._line(
            "recovered",
            text + (say("work.ref", ref=r.ref) if r.ref else ""),
            operation=r.operation,
            action=r.action,
            key=r.key,
            before=r.before,
            after=r.after,
            how=r.how,
            ref=r.ref,
        )

    def _handed(self, r: Receipt) -> None:
        text = self.settings.say(
            "work.handed", action=r.action, key=r.key, id=r.id, why=r.next_step[self.settings.lang]
        )
        self._line(
            "review", text, operation=r.id, action=r.action, key=r.key, owner=r.owner,
            next_step=r.next_step,
        )  # fmt: skip

    def _alarm(self, event: str, text: str, **data: Any) -> None:
        """Tell what is wrong once, until a sweep no longer finds it."""
        self._wrong.add(text)
        if text not in self._told.get(self._namespace, ()):
            self._line(event, text, **data)

    def _line(self, event: str, text: str, **data: Any) -> None:
        now = self.ledgers[0].engine.clock.wall()
        named = self._several and event != "summary"
        if self.settings.json:
            more = {"namespace": self._namespace} if named else {}
            emit_line({"event": event, "at": now, **more, **data})
            return
        text = f"{self._namespace}  {text}" if named else text
        if sys.stderr.isatty():
            click.echo("\r\x1b[K", nl=False, err=True)
        click.echo(f"{when(now)}  {short(text, 400)}", err=event == "error")
        sys.stdout.flush()

    def _progress(self) -> None:
        if self.settings.json or not sys.stderr.isatty():
            return
        try:
            counts = self._counts()
        except StoreError:
            return  # the next sweep says so
        text = self.settings.say(
            "work.progress",
            worked=self.worked,
            recovered=self.recovered,
            handed=self.handed,
            unknown=counts.get(State.UNKNOWN, 0),
            reviews=counts.get("reviews", 0),
        )
        click.echo(f"\r\x1b[K{text}", nl=False, err=True)

    def _counts(self) -> Counter[str]:
        return sum((Counter(ledger.counts()) for ledger in self.ledgers), Counter[str]())

    def end(self, *, once: bool) -> int:
        """Tell what is left, and return the exit code."""
        counts = self._counts()
        missing = sum(self._missing.values())
        did = {"worked": self.worked, "recovered": self.recovered, "handed": self.handed}
        left = {s.value: counts[s.value] for s in State if s not in (State.DONE, State.NOT_DONE)}
        left |= {"reviews": counts["reviews"], "missing": missing}
        self._line("summary", self.settings.say("work.summary", **did, **left), **did, left=left)
        open_ones = ("unknown", "running", "reviews", "missing")
        return UNRESOLVED if once and any(left[name] for name in open_ones) else FINE

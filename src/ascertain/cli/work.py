"""`ascertain work`: recovery in a loop, in any number of processes."""

from __future__ import annotations

import signal
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Any

import click
import msgspec

from ascertain import Ledger, Receipt, Report, StoreError
from ascertain.core import words
from ascertain.core.model import SECOND, State
from ascertain.runtime.recovery import ALARMS_EVERY, Recovered, sweeping

from .base import FINE, UNRESOLVED, Cmd, Settings, option
from .opening import opened
from .out import emit_line, how, short, when

BATCH = 50  # operations of one sweep; what happened to them is told when it ends
SLICE = SECOND // 10  # how long a signal may wait while nothing is due


@click.command("work", cls=Cmd, key="work")
@option("--once", is_flag=True, key="work_once")
@option("--every", type=click.FloatRange(0.01, 3600), default=0.5, metavar="SECONDS")
@click.pass_obj
def work(settings: Settings, /, once: bool, every: float) -> int:
    """Recover what is due, again and again."""
    with opened(settings, app=True) as ledger:
        return _Work(ledger, settings).run(every, once=once)


class _Work:
    """One worker's loop and what it tells."""

    def __init__(self, ledger: Ledger, settings: Settings) -> None:
        self.ledger, self.settings = ledger, settings
        self.stopping = False
        self.worked = self.recovered = self.handed = self.missing = 0
        self._told: set[str] = set()  # what was wrong in the sweep before
        self._wrong: set[str] = set()  # and in this one

    def run(self, every: float, *, once: bool) -> int:
        """Sweep until stopped, or with `once` until nothing more is due."""
        with self._signals():
            try:
                while not self.stopping:
                    report = self._sweep()
                    self._tell(report)
                    if report.worked >= BATCH:
                        continue
                    if once:
                        break
                    if not report.worked:
                        self._wait(every)
            except KeyboardInterrupt:
                pass  # asked twice: what was under way is recorded as unknown (law 3)
        return self._end(once=once)

    # --- stopping ---

    @contextmanager
    def _signals(self) -> Iterator[None]:
        before = {s: signal.signal(s, self._stop) for s in (signal.SIGTERM, signal.SIGINT)}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def _stop(self, number: int, frame: FrameType | None) -> None:
        if self.stopping:
            raise KeyboardInterrupt
        self.stopping = True

    def _wait(self, every: float) -> None:
        clock = self.ledger.engine.clock
        left = int(every * SECOND * (0.5 + clock.jitter()))
        while left > 0 and not self.stopping:
            clock.sleep(min(left, SLICE))
            left -= SLICE

    def _sweep(self) -> Report:
        """Do what is due. Once stopping, the step under way is finished and the next one,
        claimed already, is given back as never started (law 2)."""
        steps = sweeping(
            self.ledger.engine, BATCH, lambda: self.stopping, alarms_every=ALARMS_EVERY
        )
        return self.ledger.driver.drive(steps)

    # --- telling ---

    def _tell(self, report: Report) -> None:
        self.worked += report.worked
        self.recovered += len(report.recovered)
        self.handed += len(report.reviews)
        for recovered in report.recovered:
            self._recovered(recovered)
        for ident in report.reviews:
            with suppress(StoreError):  # it is in the list of reviews all the same
                self._handed(self.ledger.get(ident))
        for text in report.errors:
            self._alarm("error", text, message=text)
        self.missing = sum(a.kind == "missing" for a in report.alarms)
        for a in report.alarms:
            text = self.settings.say(f"alarm.{a.kind}", action=a.action, key=a.key, owner=a.owner)
            self._alarm("alarm", text, **msgspec.to_builtins(a))
        self._told, self._wrong = self._wrong, set()
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
        if text not in self._told:
            self._line(event, text, **data)

    def _line(self, event: str, text: str, **data: Any) -> None:
        now = self.ledger.engine.clock.wall()
        if self.settings.json:
            emit_line({"event": event, "at": now, **data})
            return
        if sys.stderr.isatty():
            click.echo("\r\x1b[K", nl=False, err=True)
        click.echo(f"{when(now)}  {short(text, 400)}", err=event == "error")
        sys.stdout.flush()

    def _progress(self) -> None:
        if self.settings.json or not sys.stderr.isatty():
            return
        try:
            counts = self.ledger.counts()
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

    def _end(self, *, once: bool) -> int:
        counts = Counter(self.ledger.counts())
        did = {"worked": self.worked, "recovered": self.recovered, "handed": self.handed}
        left = {s.value: counts[s.value] for s in State if s not in (State.DONE, State.NOT_DONE)}
        left |= {"reviews": counts["reviews"], "missing": self.missing}
        self._line("summary", self.settings.say("work.summary", **did, **left), **did, left=left)
        open_ones = ("unknown", "running", "reviews", "missing")
        return UNRESOLVED if once and any(left[name] for name in open_ones) else FINE

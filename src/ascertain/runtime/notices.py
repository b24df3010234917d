"""Notices: what people are to be told becomes an operation per subject and channel.

An operation is what makes it once: its key is `{kind}/{subject}/{channel}`, so any number of
workers tell a thing once. Its action is repeatable, since receivers fold what comes twice. Our own
operations are told about nowhere: no alarm, no notice, no figure names them.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import msgspec

from ascertain.core import figures, notices
from ascertain.core.model import SECOND, ActFinding, NotDone, NotDoneKind, WaitingOn
from ascertain.core.notices import DIGEST, KINDS, Bundle, Notice
from ascertain.store.base import Filter
from ascertain.targets.notify import SECONDS, Channel, Message, deliver

from .alarms import LIMIT, alarms
from .declare import REPEATABLE
from .engine import Engine
from .figures import Figures, Period
from .ledger import Action
from .ticket import Options

ACTION = figures.OWN + "notify."
FRESH = 24 * 3600 * SECOND  # µs after which what is open is no news: its alarm tells of it
LATE = 6 * 3600 * SECOND  # µs that a digest may be late
MOST = 50  # messages that one turn begins per channel
EVERY = 15.0  # seconds between two turns
OWNER = "operator"
BOUNDS: dict[str, Any] = {
    "timeout": "30s", "attempts": 8, "total": "24h", "first_delay": "30s", "longest_delay": "1h",
}  # fmt: skip


class Told(msgspec.Struct, frozen=True, kw_only=True):
    """A channel, and what is told on it to whom."""

    name: str
    channel: Channel
    kinds: tuple[str, ...] = ()  # empty: all
    namespaces: tuple[str, ...] = ()  # empty: all
    languages: tuple[str, ...] = notices.LANGUAGES
    severity: str = "notice"
    digest: str = ""  # the time of day, e.g. "08:00"; empty: none
    zone: str = "UTC"

    def wants(self, kind: str, namespace: str) -> bool:
        """Tell whether a kind of notice of a namespace is told here."""
        if self.namespaces and namespace not in self.namespaces:
            return False
        if kind == DIGEST:
            return bool(self.digest)
        return (not self.kinds or kind in self.kinds) and notices.grave(kind, self.severity)


def register(
    ledger: Any,
    channels: Mapping[str, Told],
    *,
    now: Callable[[], int],
    environ: Mapping[str, str] = os.environ,
) -> None:
    """Register the actions that tell; they need the channels' credentials when they run."""
    for kind in sorted({told.channel.kind for told in channels.values()}):

        def tell(
            call: Any, *, kind: str, subject: str, channel: str, message: dict[str, Any]
        ) -> ActFinding:
            del kind, subject  # they are what it is called, not what is told
            told = channels.get(channel)
            if told is None:
                return NotDone(NotDoneKind.REJECTED, f"no channel {channel!r} is declared any more")
            made = msgspec.convert(message, Message)
            at = now() // SECOND
            return deliver(told.channel, made, ident=call.target_key, now=at, environ=environ)

        ledger.action(
            ACTION + kind,
            key="{kind}/{subject}/{channel}",
            owner=OWNER,
            contract=REPEATABLE,
            repeatable=True,
            personal_key=True,  # nothing personal stands in it; digits of a time look like a phone
            sends="own",
            sends_within=3 * SECONDS,
            title="{kind}",
            **BOUNDS,
        )(tell)


class Notices:
    """The chore that finds what is to be told in the namespaces, and has it told."""

    def __init__(
        self,
        engines: Sequence[Engine],
        channels: Mapping[str, Told],
        read: Figures,
        *,
        target_of: Callable[[str], str] = lambda _: "",
        link: Callable[[str], str] = lambda _: "",
    ) -> None:
        """`link`: of an operation, or with an empty text of the whole."""
        self.engines, self.channels, self.read = tuple(engines), dict(channels), read
        self.target_of, self.link = target_of, link

    def run(self) -> int:
        """Begin the messages that are due; durable when it returns how many."""
        if not self.channels:
            return 0
        return sum(self._of(engine) for engine in self.engines)

    def _of(self, engine: Engine) -> int:
        now, namespace = engine.store.now(), engine.namespace
        found = list(self.found(engine, now))
        begun = 0
        for told in self.channels.values():
            wanted = [n for n in found if told.wants(n.kind, namespace)]
            messages = [
                (b.notices[0].kind, b.subject, self._message(told, b, now))
                for b in notices.bundled(wanted, now)
            ]
            messages += self._digest(engine, told, now)
            begun += self._begin(engine, told, messages)
        return begun

    def found(self, engine: Engine, now: int) -> Iterable[Notice]:
        """Find what is worth telling of a namespace now; nothing of our own."""
        namespace = engine.namespace
        for alarm in alarms(engine):
            since = alarm.since or 0
            about = alarm.operation or _short(alarm.run, alarm.action, alarm.key)
            yield Notice(
                kind=alarm.kind, subject=f"{about}.{since // SECOND}", namespace=namespace,
                since=since or now, action=alarm.action, target=self.target_of(alarm.action),
                key=self._key(engine, alarm.action, alarm.key), owner=alarm.owner, run=alarm.run,
                operation=alarm.operation or "",
            )  # fmt: skip
        reviews = [
            r for r in engine.store.reviews(namespace)
            if r.road != "duplicate" and r.opened_at > now - FRESH
        ]  # fmt: skip
        known = engine.store.snapshots([r.operation for r in reviews])
        for review in reviews:
            if review.operation in known:
                yield from self._about(
                    engine, "new_review", known[review.operation], review.opened_at, review.owner
                )
        asked = Filter(namespace=namespace, unsettled=True, waiting_on=WaitingOn.APPROVAL.value)
        for snapshot in engine.store.find(asked, "", LIMIT):
            if snapshot.status.started_at > now - FRESH:
                since, owner = snapshot.status.started_at, snapshot.status.owner
                yield from self._about(engine, "approval_waiting", snapshot, since, owner)

    def _about(
        self, engine: Engine, kind: str, snapshot: Any, since: int, owner: str
    ) -> Iterable[Notice]:
        operation = snapshot.operation
        if figures.is_own(operation.action):
            return
        yield Notice(
            kind=kind, subject=f"{operation.id}.{since // SECOND}", namespace=engine.namespace,
            since=since, action=operation.action, target=self.target_of(operation.action),
            key=self._key(engine, operation.action, operation.key), owner=owner,
            operation=operation.id,
        )  # fmt: skip

    def _key(self, engine: Engine, action: str, key: str) -> str:
        """Return a key as it may be told: one that may name a person is not."""
        definition = engine.actions.get(action)
        return "" if definition is not None and definition.declared.personal_key else key

    def _message(self, told: Told, bundle: Bundle, now: int) -> Message:
        first, many = bundle.notices[0], len(bundle.notices) > 1
        shown = {
            lang: notices.summary(bundle.notices, lang) if many else notices.text(first, lang, now)
            for lang in told.languages
        }
        data = {
            "kind": first.kind, "severity": KINDS[first.kind], "namespace": first.namespace,
            "action": first.action, "target": first.target, "count": len(bundle.notices),
        }  # fmt: skip
        if not many:
            data |= {"key": first.key, "operation": first.operation, "owner": first.owner}
        return Message(
            kind=first.kind,
            heads={lang: notices.head(first.kind, lang) for lang in told.languages},
            texts=shown,
            link=self.link("" if many else first.operation),
            data=data,
        )

    def _begin(
        self, engine: Engine, told: Told, messages: Sequence[tuple[str, str, Message]]
    ) -> int:
        """Submit those that were not told yet, at most MOST."""
        name = ACTION + told.channel.kind
        definition = engine.definition(name)
        begun = 0
        action = Action(engine, definition, Options())
        for start in range(0, len(messages), LIMIT):
            some = messages[start : start + LIMIT]
            given = [
                {"kind": kind, "subject": subject, "channel": told.name,
                 "message": msgspec.to_builtins(message)}
                for kind, subject, message in some
            ]  # fmt: skip
            pairs = [(name, definition.key(one, engine.store.now())) for one in given]
            there = engine.store.by_keys(engine.namespace, pairs)
            for one, old in zip(given, there, strict=True):
                if old is None and begun < MOST:
                    action.enqueue(**one)
                    begun += 1
        return begun

    # --- the digest ---

    def _digest(self, engine: Engine, told: Told, now: int) -> list[tuple[str, str, Message]]:
        if not told.wants(DIGEST, engine.namespace):
            return []
        due = last_time(told.digest, told.zone, now)
        if now - due > LATE:
            return []
        day = datetime.fromtimestamp(due / SECOND, tz=ZoneInfo(told.zone)).date().isoformat()
        name = ACTION + told.channel.kind
        key = f"{DIGEST}/{day}/{told.name}"
        if engine.store.by_keys(engine.namespace, [(name, key)])[0] is not None:
            return []  # told already: nothing is counted for it
        facts = self.facts(engine, due)
        message = Message(
            kind=DIGEST,
            heads={lang: notices.head(DIGEST, lang) for lang in told.languages},
            texts={lang: notices.digest(facts, lang) for lang in told.languages},
            link=self.link(""),
            data={"kind": DIGEST, "severity": KINDS[DIGEST], **facts},
        )
        return [(DIGEST, day, message)]

    def facts(self, engine: Engine, until: int) -> dict[str, Any]:
        """Count what a digest says of the day before a time."""
        namespace = engine.namespace
        counted = self.read.counts(namespace, Period.of(until - 24 * figures.HOUR, until))
        sums: dict[Any, dict[str, int]] = {}
        for counts in counted.groups.values():
            figures.add(sums, "", counts)
        total = dict.fromkeys(figures.COUNTS, 0) | sums.get("", {})
        waiting = self.read.open_now(namespace)
        unknown = [one for one in waiting if one.state == "unknown"]
        approvals = Filter(namespace=namespace, unsettled=True, waiting_on=WaitingOn.APPROVAL.value)
        oldest = min((one.oldest for one in unknown), default=None)
        return {
            "namespace": namespace,
            **{n: total[n] for n in ("operations", "done", "duplicates", "again", "by_late",
                                     "by_look_up", "by_replay", "by_event")},
            "reviews": len(engine.store.reviews(namespace)),
            "approvals": len(engine.store.find(approvals, "", LIMIT)),
            "unknown": sum(one.count for one in unknown),
            "missing": len(self.read.missing(namespace)),
            "oldest": None if oldest is None else engine.store.now() - oldest,
        }  # fmt: skip


def last_time(clock: str, zone: str, now: int) -> int:
    """Return when a time of day was last, in µs since 1970."""
    here = datetime.fromtimestamp(now / SECOND, tz=ZoneInfo(zone))
    hour, minute = (int(part) for part in clock.split(":"))
    due = here.replace(hour=hour, minute=minute, second=0, microsecond=0)
    if due > here:
        due -= timedelta(days=1)
    return int(due.astimezone(UTC).timestamp() * SECOND)


def _short(*parts: str) -> str:
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:26]

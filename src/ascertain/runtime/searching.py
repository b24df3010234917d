"""Finds operations for people: exact words over everything, plain text as far as time allows.

Every page looks through a window of so many rows and no more, however long the history is; where
it ended says `searched_to`, and the cursor goes on from there. So a page may hold fewer than asked
for, or none, and there may still be more. Reads only; for threads.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import Literal

import msgspec
from msgspec.structs import replace

from ascertain.core import figures, keys
from ascertain.core.contract import protection
from ascertain.core.errors import UsageError
from ascertain.core.machine import is_settled
from ascertain.core.model import SECOND, Record, Snapshot, State
from ascertain.store.base import PAGE, Filter

from .desk import Desk
from .receipt import Receipt

WINDOW = 10_000  # rows that one page looks through
FEW = 5_000  # operations of a namespace that are found by it, wherever they lie in the history
CAP = 10_000  # totals are counted so far
SETTLED = {State.DONE, State.NOT_DONE}  # what is settled is in one of these
DAYS = 90  # how far back a list goes unless it is told
NEWEST, OLDEST = "v" * 26, ""  # beyond every identifier
_ID = re.compile(r"[0-9a-v]{26}")
_CURSOR = re.compile(r"([ewhl])\.([0-9a-v]{25,26}|)")
NONE = "-"  # the target, or class, of what has none that is declared here
How = Literal["answer", "late_report", "look_up", "replay", "event", "person"]
Phase = Literal["e", "w", "h", "l"]  # exact words, the working set, history; or one plain list


class _Id(Record, frozen=True, kw_only=True):
    id: str


class _Number(Record, frozen=True, kw_only=True):
    number: int


class Wanted(msgspec.Struct, frozen=True, kw_only=True):
    """What is looked for; what is left at None does not restrict. Times in µs since 1970.

    `q`: an id, key, effect reference, event or run, else plain text within key or title.
    `person`: who is next, or owns, holds or has decided its review, or gave its approval.
    `target`, `protection`: of the actions that have it, by what is declared here. `found_by`: done,
    and found out so. `reviewed`: it has a review, "any" or of this road. `own`: our notices too.
    """

    q: str | None = None
    key: str | None = None
    action: str | None = None
    ref: str | None = None
    event: str | None = None
    run: str | None = None
    title: str | None = None
    person: str | None = None
    states: tuple[State, ...] | None = None
    waiting_on: str | None = None
    target: str | None = None
    protection: str | None = None
    found_by: tuple[How, ...] | None = None
    reviewed: str | None = None
    own: bool = True
    unsettled: bool | None = None
    since: int | None = None
    until: int | None = None
    newest: bool = True

    @property
    def exact(self) -> bool:
        """Whether an index leads to all of it, however old."""
        return any(x is not None for x in (self.key, self.ref, self.event, self.run))

    @property
    def in_words(self) -> bool:
        """Whether its text leads to it, and not something else that it must also fit."""
        return self.q is not None and self.person is None and self.key is None and self.ref is None


class Found(msgspec.Struct, frozen=True, kw_only=True):
    """One page. `next`: where to go on, None at the end; `searched_to`: how far it looked, in µs,
    None if nothing is left in that direction; `since`: how far back it would go."""

    receipts: list[Receipt]
    next: str | None
    searched_to: int | None
    since: int | None


class Total(msgspec.Struct, frozen=True):
    """How many there are; `capped`: there may be more."""

    total: int
    capped: bool


class Searching:
    """Finds the operations of one namespace."""

    def __init__(self, desk: Desk) -> None:
        """Search with a ledger's reading verbs."""
        self._desk, self._engine, self._store = desk, desk.engine, desk.engine.store
        self._namespace = desk.engine.namespace

    def page(self, wanted: Wanted, cursor: str | None = None, limit: int = 100) -> Found:
        """Return a page; raises UsageError for a cursor that is none."""
        wanted = self._bounded(wanted)
        if wanted.q is not None or wanted.person is not None or wanted.reviewed is not None:
            wanted = replace(wanted, newest=True)
        phase, place = self._place(wanted, cursor)
        if phase == "l":
            found, end = self._listed(wanted, place, limit)
            return self._shown(wanted, found, None if end is None else f"l.{end}", end)
        found = []
        for here in "ewh"["ewh".index(phase) :]:
            more, end = self._searched(wanted, here, place, limit - len(found))
            found += more
            if end is not None:
                return self._shown(wanted, found, f"{here}.{end}", end)
            if here == "e" and any(one.operation.id == wanted.q for one in found):
                break  # nothing else is called so
            place = NEWEST
            if len(found) >= limit and here != "h":
                following = "ewh"["ewh".index(here) + 1]
                return self._shown(wanted, found, f"{following}.{NEWEST}", None)
        return self._shown(wanted, found, None, None)

    def counted(
        self, wanted: Wanted, cursor: str | None = None, limit: int = 100
    ) -> tuple[Found, Total]:
        """Return a page, and the total of the whole list: by the first page itself where that is
        not full."""
        found = self.page(wanted, cursor, limit)
        number, more = len(found.receipts), found.next is not None
        if cursor is None and number < limit and (_read_to_count(wanted) or not more):
            return found, Total(number, more)
        return found, self.total(wanted)

    def total(self, wanted: Wanted) -> Total:
        """Count what a plain list would find, as far as one window and the cap go."""
        wanted = self._bounded(wanted)
        if _read_to_count(wanted):
            found = self.page(wanted, limit=PAGE)
            return Total(len(found.receipts), found.next is not None)
        after, until = self._span(wanted, NEWEST if wanted.newest else OLDEST)
        number, capped = 0, False
        for part in self._parts(wanted):
            low, high = self._window(part, wanted, after, until)
            number += self._store.how_many(replace(part, until=high), low, CAP + 1)
            capped = capped or (low, high) != (after, until)
        return Total(min(number, CAP), capped or number > CAP)

    def all(self, wanted: Wanted, most: int, size: int = 500) -> Iterator[list[Receipt]]:
        """Give everything, page by page, at most so many pages' rows."""
        cursor: str | None = None
        given = 0
        while given < most:
            found = self.page(wanted, cursor, min(size, most - given))
            given += len(found.receipts)
            yield found.receipts
            cursor = found.next
            if cursor is None:
                return

    # --- bounds and cursors ---

    def _bounded(self, wanted: Wanted) -> Wanted:
        """Return it with how far back it goes: a list that says nothing is bounded."""
        if wanted.since is not None or wanted.exact or wanted.q is not None:
            return wanted
        if wanted.unsettled or (wanted.states and not {*wanted.states} & SETTLED):
            return wanted  # all of it lies in the working set
        return replace(wanted, since=self._store.now() - DAYS * 86_400 * SECOND)

    def _place(self, wanted: Wanted, cursor: str | None) -> tuple[str, str]:
        start = NEWEST if wanted.newest else OLDEST
        if cursor is None:
            return ("e" if wanted.in_words else "l"), start
        read = _CURSOR.fullmatch(cursor)
        if read is None or (read[1] == "l") == wanted.in_words:
            raise UsageError(f"{cursor!r} is no cursor of this list: pass `next` as it was given")
        return read[1], read[2] or start

    def _span(self, wanted: Wanted, place: str) -> tuple[str, str]:
        """Return the identifiers between which a page lies, neither included."""
        after = OLDEST if wanted.since is None else keys.new_id(max(wanted.since, 0), 0)
        until = NEWEST if wanted.until is None else keys.new_id(max(wanted.until, 0), 0)
        return (after, min(until, place)) if wanted.newest else (max(after, place), until)

    def _shown(
        self, wanted: Wanted, found: Sequence[Snapshot], cursor: str | None, end: str | None
    ) -> Found:
        searched = None if end in (None, NEWEST, OLDEST) else keys.time_of(str(end))
        receipts = self._desk.shown(found)
        return Found(receipts=receipts, next=cursor, searched_to=searched, since=wanted.since)

    # --- lists ---

    def _listed(self, wanted: Wanted, place: str, limit: int) -> tuple[list[Snapshot], str | None]:
        """Return a page of a list, and where the next begins; None at the end."""
        after, until = self._span(wanted, place)
        if wanted.person is not None:
            return self._of_person(wanted, after, until, limit)
        if wanted.key is not None or wanted.ref is not None:
            return self._named(wanted, after, until, limit)
        if wanted.reviewed is not None:
            return self._with_review(wanted, after, until, limit)
        parts = self._parts(wanted)
        spans = [self._window(part, wanted, after, until) for part in parts]
        # Of several parts the shortest window counts, so that they are in one order.
        low, high = max(s[0] for s in spans), min(s[1] for s in spans)
        found = [
            one for part in parts for one in self._store.find(replace(part, until=high), low, limit)
        ]
        found = sorted(found, key=_by_id, reverse=wanted.newest)[:limit]
        if len(found) == limit:
            return found, found[-1].operation.id
        whole = (low, high) == (after, until)
        return found, None if whole else low if wanted.newest else high

    def _parts(self, wanted: Wanted) -> list[Filter]:
        """Return the filters that together are what is wanted: by the smallest tables."""
        states = wanted.states
        base = replace(
            self._narrowed(wanted), newest=wanted.newest, unsettled=wanted.unsettled,
            few=self._few(),
        )  # fmt: skip
        if wanted.event is not None or wanted.run is not None or wanted.unsettled is not None:
            return [base]
        if wanted.waiting_on:
            return [replace(base, unsettled=True)]  # what is settled waits for nothing
        found = [replace(base, unsettled=True, few=False)]  # the smaller table first
        if states is None or State.DONE in states:
            found.append(replace(base, unsettled=False))
        elif State.NOT_DONE in states:
            found.append(replace(base, unsettled=False, states=(State.NOT_DONE,), few=False))
        return found

    def _narrowed(self, wanted: Wanted) -> Filter:
        """Return the filter of everything that is no text, name or person."""
        actions, no_actions = self._actions(wanted)
        found_by, not_found_by = figures.ways(wanted.found_by)
        return Filter(
            namespace=self._namespace, action=wanted.action, event=wanted.event, run=wanted.run,
            title=wanted.title, waiting_on=wanted.waiting_on, states=wanted.states,
            actions=actions, no_actions=no_actions, found_by=found_by, not_found_by=not_found_by,
            reviewed=wanted.reviewed, no_own=not wanted.own,
        )  # fmt: skip

    def _of(self, action: str, wanted: Wanted) -> bool:
        """Tell whether an action is of the target and class that are wanted."""
        engine, definition = self._engine, self._engine.actions.get(action)
        kind = NONE if definition is None else protection(definition.terms, in_window=True).value
        target = engine.gates.target_of(action) or NONE
        asked = ((wanted.target, target), (wanted.protection, kind))
        return all(one in (None, there) for one, there in asked) and (
            wanted.own or not figures.is_own(action)
        )

    def _actions(self, wanted: Wanted) -> tuple[list[str] | None, list[str] | None]:
        """Return the actions of which one is wanted, or else those of which none is; None: any."""
        if wanted.target is None and wanted.protection is None:
            return None, None
        known = self._engine.actions
        if self._of("", wanted):  # so is what is not declared here
            return None, [one for one in known if not self._of(one, wanted)]
        return [one for one in known if self._of(one, wanted)], None

    def _few(self) -> bool:
        found = self._store.ask(_Number, "search_few", namespace=self._namespace, most=FEW + 1)
        return found[0].number <= FEW

    def _window(self, part: Filter, wanted: Wanted, after: str, until: str) -> tuple[str, str]:
        """Return between which identifiers one page may look for a part."""
        only_not_done = part.unsettled is False and part.states == (State.NOT_DONE,)
        if part.event is not None or part.run is not None or part.few or only_not_done:
            return after, until
        table = "_open" if part.unsettled else ""
        if wanted.newest:
            ends = self._store.ask(_Id, f"search_floor{table}", until=until, window=WINDOW)
            return (max(after, _before(ends[0].id)) if ends else after), until
        ends = self._store.ask(_Id, f"search_ceiling{table}", after=after, window=WINDOW)
        return after, (min(until, _before(ends[0].id)) if ends else until)

    # --- by names and people ---

    def _named(
        self, wanted: Wanted, after: str, until: str, limit: int
    ) -> tuple[list[Snapshot], str | None]:
        """Return what a key or a reference leads to: as many as there are actions."""
        if wanted.key is not None:
            idents = self._by_key(wanted.key)
        else:
            idents = self._by_ref(wanted.ref, PAGE)
        found = [s for s in self._read(idents) if self._fits(s, wanted)]
        found = [s for s in found if after < s.operation.id < until]
        found = sorted(found, key=_by_id, reverse=wanted.newest)
        return found[:limit], found[limit - 1].operation.id if len(found) > limit else None

    def _by_key(self, key: str) -> list[str]:
        """Find a key as it is stored, and as people write it."""
        asked = [
            self._store.ask(_Id, "search_key", namespace=self._namespace, key=form, limit=PAGE)
            for form in keys.forms(key)
        ]
        return [*dict.fromkeys(one.id for found in asked for one in found)]

    def _by_ref(self, ref: str | None, limit: int) -> list[str]:
        namespace = self._namespace
        found = self._store.ask(_Id, "search_ref", namespace=namespace, ref=ref, limit=limit)
        return [one.id for one in found]

    def _of_person(
        self, wanted: Wanted, after: str, until: str, limit: int
    ) -> tuple[list[Snapshot], str | None]:
        """Return what a person has to do with, the newest first."""
        given = {"namespace": self._namespace, "person": wanted.person, "until": until}
        low = self._low(after, until, "open", "review", "approval")
        asked = [
            *self._store.ask(_Id, "search_owned", **given, after=low, limit=PAGE),
            *self._store.ask(_Id, "search_reviewed", **given, window=WINDOW, limit=PAGE),
            *self._store.ask(_Id, "search_approved", **given, window=WINDOW, limit=PAGE),
        ]
        return self._of_ids(wanted, asked, low, after, limit)

    def _with_review(
        self, wanted: Wanted, after: str, until: str, limit: int
    ) -> tuple[list[Snapshot], str | None]:
        """Return what a person was asked about, the newest first: by the reviews, of which there
        are few."""
        low = self._low(after, until, "review")
        asked = self._store.ask(
            _Id, "search_with_review", namespace=self._namespace, road=wanted.reviewed,
            until=until, window=WINDOW, limit=PAGE,
        )  # fmt: skip
        # That they have one is known of all of them: nobody asks for it one by one.
        return self._of_ids(replace(wanted, reviewed=None), asked, low, after, limit)

    def _low(self, after: str, until: str, *tables: str) -> str:
        """Return how far back one page may look in these tables, the newest first."""
        floors = [
            _before(ends[0].id)
            for table in tables
            if (ends := self._store.ask(
                _Id, f"search_floor_{table}", until=until, window=WINDOW))
        ]  # fmt: skip
        return max([after, *floors])

    def _of_ids(
        self, wanted: Wanted, asked: Sequence[_Id], low: str, after: str, limit: int
    ) -> tuple[list[Snapshot], str | None]:
        """Return those that are also what else is wanted, the newest first, and where to go on."""
        idents = sorted({one.id for one in asked if one.id > low}, reverse=True)[:PAGE]
        found: list[Snapshot] = []
        for start in range(0, len(idents), limit):
            several = idents[start : start + limit]
            found += [s for s in self._read(several) if self._fits(s, wanted)]
            if len(found) >= limit:
                return found[:limit], found[limit - 1].operation.id
        if len(idents) == PAGE:
            return found, idents[-1]
        return found, low if low != after else None

    def _read(self, idents: Sequence[str]) -> list[Snapshot]:
        found = self._store.snapshots(idents)
        here = [found[one] for one in idents if one in found]
        return [s for s in here if s.operation.namespace == self._namespace]

    def _fits(self, snapshot: Snapshot, wanted: Wanted) -> bool:
        """Tell whether an operation that was found by its name is what else is wanted."""
        operation, status = snapshot.operation, snapshot.status
        same: tuple[tuple[object, object], ...] = (
            (wanted.action, operation.action),
            (wanted.event, operation.event),
            (wanted.run, operation.run),
            (wanted.waiting_on, status.waiting_on),
            (wanted.unsettled, not is_settled(status)),
        )
        if any(asked is not None and asked != there for asked, there in same):
            return False
        if not self._of(operation.action, wanted):
            return False
        if not figures.found_so(status.state, status.confirmed_by, wanted.found_by):
            return False
        if wanted.reviewed is not None:
            reviews = self._store.reviews(None, operation.id, closed=True)
            if wanted.reviewed not in {"any" if reviews else "", *(r.road for r in reviews)}:
                return False
        if wanted.key is not None and wanted.ref is not None:
            references = self._store.references(operation.id)
            if wanted.ref not in {one.reference for one in references}:
                return False
        if wanted.q is not None and not wanted.in_words:
            texts = (operation.key.lower(), operation.title.lower())
            inside = any(wanted.q.lower() in text for text in texts)
            if not inside and not _is_exactly(snapshot, wanted.q):
                return False
        title = wanted.title is None or wanted.title.lower() in operation.title.lower()
        return title and (wanted.states is None or status.state in wanted.states)

    # --- words ---

    def _searched(
        self, wanted: Wanted, phase: str, place: str, limit: int
    ) -> tuple[list[Snapshot], str | None]:
        """Return what a phase of a search finds, and where to go on in it; None at its end."""
        assert wanted.q is not None
        after, until = self._span(wanted, place)
        if phase == "e":
            exact = self._exactly(wanted.q, limit)
            fitting = (s for s in exact if self._fits(s, wanted))
            return [s for s in fitting if after < s.operation.id < until][:limit], None
        if limit <= 0 or (phase == "h" and wanted.unsettled):
            return [], None
        part = replace(
            self._narrowed(wanted), text=wanted.q, newest=True, unsettled=phase == "w",
            few=phase == "h" and self._few(),
        )  # fmt: skip
        if phase == "w" and wanted.unsettled is False:
            return [], None
        low, high = self._window(part, wanted, after, until)
        found = self._store.find(replace(part, until=high), low, limit)
        end = found[-1].operation.id if len(found) == limit else low if low != after else None
        return [s for s in found if not _is_exactly(s, wanted.q)], end

    def _exactly(self, word: str, limit: int) -> list[Snapshot]:
        """Return what a word leads to as an id, key, reference, event or run, the newest first."""
        idents = [word] if _ID.fullmatch(word) else []
        idents += self._by_key(word)
        idents += self._by_ref(word, limit)
        found = self._read([*dict.fromkeys(idents)])
        several: Sequence[Callable[[Filter], Filter]] = (
            lambda f: replace(f, event=word),
            lambda f: replace(f, run=word),
        )
        base = Filter(namespace=self._namespace, newest=True, until=NEWEST)
        for narrowed in several:
            found += self._store.find(narrowed(base), "", limit)
        once = {one.operation.id: one for one in found}
        return [*islice(sorted(once.values(), key=_by_id, reverse=True), limit)]


def _before(ident: str) -> str:
    """Return a place just before an operation, at which no identifier lies: so that what looks
    on either side of it misses nothing, and finds nothing twice."""
    return ident[:-1]


def _is_exactly(snapshot: Snapshot, word: str) -> bool:
    """Tell whether a word is one of its names, so that it was found by that already."""
    operation, status = snapshot.operation, snapshot.status
    names = (operation.id, operation.key, operation.event, operation.run, status.ref)
    return word in names


def _read_to_count(wanted: Wanted) -> bool:
    """Tell whether what is wanted is counted by reading it, since no index counts it."""
    named = wanted.q is not None or wanted.key or wanted.ref
    return bool(named) or wanted.person is not None or wanted.reviewed is not None


def _by_id(snapshot: Snapshot) -> str:
    return snapshot.operation.id

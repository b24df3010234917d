"""A target that counts: one committed row per effect in a file of its own, scripted faults.

Fates of the next requests, in order: `ok`; `drop`, `hang` (saved, then the connection or the
answer is lost); `gone` (lost on the way); `refuse:KIND` (nothing saved, and it says so);
`stored:KIND` (so too, and the key remembers it); `late:S` (the answer is lost, it lands S
seconds later); `slow:S` (so too, and the caller waits for it); `block` (saved, never answered),
`block:S` (lands S seconds later, never answered); `busy` (key in use, nothing more is said).
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from ascertain import Absent, Done, NotDone, NotDoneKind, Several, Unknown

SECOND = 1_000_000
NEVER = 2**61
_SCHEMA = """
create table if not exists request (
  number integer primary key, key text, body text, at int, lands int, state text, ref text);
create table if not exists effect (
  number integer primary key, key text, body text, at int, ref text);
create table if not exists memory (key text primary key, since int, number int, failed text);
create table if not exists script (number integer primary key, fate text);
create table if not exists look (number integer primary key, key text, at int);
"""


def wall() -> int:
    return time.time_ns() // 1000


class Target:
    """`plain` makes an effect of every request; `unique` one per key, by a constraint;
    `remembers` answers a key again as before for `keeps` seconds. Look-ups lag by `lag`."""

    def __init__(
        self, path: Path | str, kind: str = "plain", *, lag: float = 0, keeps: float = 3600,
        clock: Callable[[], int] = wall, sleep: Callable[[float], None] = time.sleep,
    ) -> None:  # fmt: skip
        self.path, self.kind, self.clock, self.sleep = str(path), kind, clock, sleep
        self.lag, self.keeps = round(lag * SECOND), round(keeps * SECOND)
        self.looks_fail = ""  # "error", "partial" or "foreign"
        with self._open() as db:
            db.executescript(_SCHEMA)

    @contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        with closing(sqlite3.connect(self.path, timeout=30, isolation_level=None)) as db:
            db.execute("pragma synchronous = off")
            db.execute("begin immediate")
            yield db
            db.execute("commit") if db.in_transaction else None

    # --- what a test says and asks ---

    def script(self, *fates: str) -> None:
        with self._open() as db:
            db.executemany("insert into script (fate) values (?)", [(f,) for f in fates])

    def effects(self, key: str | None = None) -> list[tuple[str, str, str]]:
        """(key, body, reference) of everything that happened, of one key or all."""
        with self._open() as db:
            self._land(db)
            rows = db.execute("select key, body, ref from effect order by number").fetchall()
        return [row for row in rows if key in (None, row[0])]

    def requests(self, key: str | None = None) -> int:
        with self._open() as db:
            rows = db.execute("select key from request").fetchall()
        return len([1 for (k,) in rows if key in (None, k)])

    def looks(self, key: str | None = None) -> int:
        with self._open() as db:
            rows = db.execute("select key from look").fetchall()
        return len([1 for (k,) in rows if key in (None, k)])

    def put(self, key: str, body: str = "") -> str:
        """Make an object directly, e.g. a positive control."""
        with self._open() as db:
            return self._effect(db, key, body, 0)

    # --- what its callers do ---

    def send(self, key: str, body: str = "") -> Done | NotDone | Unknown:
        """One effect request; raises what a client library would."""
        with self._open() as db:
            self._land(db)
            fate, _, more = self._next(db).partition(":")
            known = self._known(db, key)
            if known is not None and fate in ("ok", "refuse", "stored"):
                return known
            if fate == "refuse":
                self._request(db, key, body, NEVER, "refused")
                return NotDone(NotDoneKind(more), "refused before processing")
            if fate == "stored":
                number = self._request(db, key, body, NEVER, "failed")
                db.execute("insert or replace into memory values (?, ?, ?, ?)",
                           (key, self.clock(), number, more))  # fmt: skip
                return NotDone(NotDoneKind(more), "stored failure", stored=True)
            delay = round(float(more or 0) * SECOND)
            lands = NEVER if fate in ("gone", "busy") else self.clock() + delay
            number = self._request(db, key, body, lands, "arrived")
            if self.kind == "remembers" and fate not in ("gone", "busy"):
                db.execute("insert or ignore into memory values (?, ?, ?, '')",
                           (key, self.clock(), number))  # fmt: skip
            self._land(db)
            ref = self._ref(db, number)
        return self._answer(fate, delay, number, ref)

    def look(self, key: str) -> Done | Absent | Several | Unknown:
        """Read by key what is visible."""
        with self._open() as db:
            self._land(db)
            now = self.clock()
            db.execute("insert into look (key, at) values (?, ?)", (key, now))
            rows = db.execute("select distinct ref from effect where key = ? and at + ? <= ?",
                              (key, self.lag, now)).fetchall()  # fmt: skip
        if self.looks_fail == "error":
            raise ConnectionError("500 Internal Server Error")
        if self.looks_fail == "foreign":
            return Done(ref="somebody-elses")
        if not rows:
            return Absent(complete=self.looks_fail != "partial")
        return Done(ref=rows[0][0]) if len(rows) == 1 else Several(refs=[r for (r,) in rows])

    # --- inside ---

    def _next(self, db: sqlite3.Connection) -> str:
        row = db.execute("select number, fate from script order by number limit 1").fetchone()
        if row is None:
            return "ok"
        db.execute("delete from script where number = ?", (row[0],))
        return str(row[1])

    def _known(self, db: sqlite3.Connection, key: str) -> Done | NotDone | Unknown | None:
        """What it answers because it has seen the key before."""
        if self.kind == "unique":
            row = db.execute("select ref from effect where key = ?", (key,)).fetchone()
            if row:
                self._request(db, key, "", NEVER, "exists")
                return Done(ref=row[0], evidence={"exists": True})
        if self.kind == "remembers":
            row = db.execute("select since, number, failed from memory where key = ?",
                             (key,)).fetchone()  # fmt: skip
            if row and self.clock() < row[0] + self.keeps:
                self._request(db, key, "", NEVER, "replayed")
                if row[2]:
                    return NotDone(NotDoneKind(row[2]), "stored failure", stored=True)
                ref = self._ref(db, row[1])
                return Done(ref=ref) if ref else Unknown("in progress")
            db.execute("delete from memory where key = ?", (key,))
        return None

    def _request(self, db: sqlite3.Connection, *row: object) -> int:
        key, body, lands, state = row
        done = db.execute("insert into request (key, body, at, lands, state) values (?,?,?,?,?)",
                          (key, body, self.clock(), lands, state))  # fmt: skip
        return int(done.lastrowid or 0)

    def _land(self, db: sqlite3.Connection) -> None:
        """Let everything take effect that is due, in its order."""
        due = db.execute("select number, key, body, lands from request where state = 'arrived'"
                         " and lands <= ? order by lands, number", (self.clock(),))  # fmt: skip
        for number, key, body, lands in due.fetchall():
            has = db.execute("select ref from effect where key = ?", (key,)).fetchone()
            ref = has[0] if has and self.kind == "unique" else self._effect(db, key, body, lands)
            db.execute("update request set state = 'landed', ref = ? where number = ?",
                       (ref, number))  # fmt: skip

    def _effect(self, db: sqlite3.Connection, key: str, body: str, at: int) -> str:
        count = db.execute("select count(*) from effect").fetchone()[0]
        ref = f"ref-{count + 1}"
        db.execute("insert into effect (key, body, at, ref) values (?, ?, ?, ?)",
                   (key, body, at, ref))  # fmt: skip
        return ref

    def _ref(self, db: sqlite3.Connection, number: int) -> str | None:
        return db.execute("select ref from request where number = ?", (number,)).fetchone()[0]

    def _answer(self, fate: str, delay: int, number: int, ref: str | None) -> Done | Unknown:
        if fate == "drop":
            raise ConnectionResetError("connection reset by peer")
        if fate in ("hang", "gone", "late"):
            raise TimeoutError("no answer")
        if fate == "busy":
            return Unknown("409: the key has been used, and no more is said")
        while fate == "block":
            self.sleep(3600)
        if fate == "slow":
            self.sleep(delay / SECOND + 0.01)
            with self._open() as db:
                self._land(db)
                ref = self._ref(db, number)
        return Done(ref=ref)

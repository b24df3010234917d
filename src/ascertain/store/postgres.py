"""The ledger in PostgreSQL, for many machines: READ COMMITTED, also behind PgBouncer."""

from __future__ import annotations

import os
import secrets
import time
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, TypeVar

import psycopg

from ascertain.core.books import Audit
from ascertain.core.errors import (
    AscertainError,
    SchemaMismatch,
    StoreBusy,
    StoreUnavailable,
    UsageError,
)
from ascertain.core.model import Attempt, Change, Review, Snapshot
from ascertain.store import apply, reads
from ascertain.store.base import PAGE, Beside, Posted, Posting, Written
from ascertain.store.bulk import apart, parts
from ascertain.store.committer import Answer, Committer, Item
from ascertain.store.loader import Query, load, migrations, too_new
from ascertain.store.pg_driver import (
    UNPREPARED,
    Kind,
    Pool,
    Raw,
    Row,
    ServerClock,
    Session,
    explain,
    kind_of,
    name_of,
)
from ascertain.store.records import TABLES, named, read, snapshot

T = TypeVar("T")

READERS = 4  # connections that read at the same time, per process
TIMEOUT = 10.0  # seconds to wait for a connection, and to reconnect
LOCK_GROUP = 500  # ms that a group waits for a row that somebody holds
LOCK_APART = 50  # ms that one change waits by itself, so that it hardly stalls the others
LOCK_AGAIN = 10_000  # ms after a lost connection: the same commit may still be in flight
MIGRATION_LOCK = 0x41534354
USES = (
    *apply.USES,
    *reads.USES,
    *("group_begin", "group_fresh", "group_gone", "group_won_fresh", "group_won_gone"),
    *("group_won_both", "group_unsettled", "group_settled", "group_attempt", "group_ends"),
    *("group_evidence", "group_reference", "group_request", "group_review", "group_approval"),
    *("group_control", "group_end", "clock", "begin", "snapshots", "snapshots_by_key"),
    *("attempts_of", "reviews_of", "successors_of"),
    *("take", "migration_lock", "meta_exists", "isolation", "await_standby", "audit_there"),
)


class PostgresStore(reads.SharedVerbs):
    """Keeps the ledger in a PostgreSQL database; its tables are made in the search path."""

    durability = "PostgreSQL, synchronous_commit=on"

    def __init__(
        self,
        dsn: str,
        clock: Callable[[], int] | None = None,
        *,
        migrate: bool = True,
        readers: int = READERS,
        timeout: float = TIMEOUT,
        prepare: bool | None = None,
    ) -> None:
        """Connect, making or migrating the tables; durable on return.

        `prepare`: whether the server may keep the plans of writing statements, which makes one
        caller nearly twice as fast. None: on a direct connection, not behind a pooler that hands
        sessions out by transaction, such as PgBouncer, which is noticed.

        Raises StoreUnavailable, StoreBusy or SchemaMismatch, each naming the database and the
        next step.
        """
        self.name = name_of(dsn)
        self.queries = load("postgres")
        self.queries.expect(USES)
        self._dsn = dsn
        self._clock = clock
        self._readers = readers
        self._timeout = timeout
        self._prepare = prepare
        self._applier = apply.Applier(self.queries, alone=False)
        self._closed = False
        self._start()
        try:
            with self._explained():
                self._migrate(allowed=migrate)
        except BaseException:
            self.close()
            raise
        _stores.add(self)

    # --- opening and closing ---------------------------------------------------------------

    def _start(self) -> None:
        self._pool = Pool(self._dsn, self._readers, self._timeout)
        # The committer's own connection.
        self._writers = Pool(self._dsn, 1, self._timeout, prepare=self._prepare)
        self._server_clock = ServerClock()
        self._committer = Committer(self._commit, self.name)

    def _migrate(self, *, allowed: bool) -> None:
        steps = migrations("postgres")
        newest = steps[-1][0]
        with self._pool.use() as raw, raw.transaction():
            session = Session(raw)
            self._check_server(session)
            if self._version(session) == newest:
                return
            session.ask(self.queries["migration_lock"], (MIGRATION_LOCK,))
            version = self._version(session)
            if version > newest:
                raise too_new(self.name, version, newest)
            if version < newest and not allowed:
                raise SchemaMismatch(
                    f"The store {self.name} has schema {version}, this version of Ascertain "
                    f"needs {newest}; stop its older users, then run `ascertain store migrate`."
                )
            for number, name, text in steps:
                if number > version:
                    session.do(Query(name, text.replace("%", "%%"), ()), ())
            session.do(self.queries["meta_set"], ("schema", str(newest)))
            # Made once, at the store's creation: all machines derive the same target keys from it.
            session.do(self.queries["meta_first"], ("secret", secrets.token_hex(32)))

    def _check_server(self, session: Session) -> None:
        [(isolation, standby)] = session.ask(self.queries["isolation"], ())
        if isolation != "read committed":
            raise StoreUnavailable(
                f"The store {self.name} has {isolation.upper()} as its default isolation, under "
                "which the loser of a key would not see the winner; set "
                "default_transaction_isolation to 'read committed' for this user."
            )
        if standby:
            raise StoreUnavailable(
                f"The store {self.name} is a read-only standby; name the primary server."
            )

    def _version(self, session: Session) -> int:
        if not session.ask(self.queries["meta_exists"], ())[0][0]:
            return 0
        rows = session.ask(self.queries["meta_get"], ("schema",))
        return int(rows[0][0]) if rows else 0

    def close(self) -> None:
        """Write what is queued, then let go of the database."""
        _stores.discard(self)
        self._committer.close()
        self._closed = True
        with self._committer.exclusive():
            self._writers.drop()
        self._pool.drop()

    def reborn(self) -> None:
        """Go on after a fork, in the child: with its own connections, thread and queue."""
        _inherited.extend((*self._pool.inherited(), *self._writers.inherited()))
        _inherited_pools.extend((self._pool, self._writers))
        self._committer.forget()
        self._start()

    @contextmanager
    def _explained(self) -> Iterator[None]:
        if self._closed:
            raise StoreUnavailable(f"The store {self.name} is closed; open it again.")
        try:
            yield
        except psycopg.Error as error:
            raise explain(error, self.name) from error

    # --- time ------------------------------------------------------------------------------

    def now(self) -> int:
        """Return the server's time in µs, mostly without asking it."""
        if self._clock is not None:
            return self._clock()
        with self._explained():
            return self._server_clock.now(self._ask_time)

    def _ask_time(self) -> int:
        return int(self._ask(self.queries["clock"], {})[0][0])

    # --- writing ---------------------------------------------------------------------------

    def _commit(self, changes: Sequence[Item], waiting: Callable[[], None]) -> list[Answer]:
        """Write one group, again and again while the connection is lost; then answer each.

        A change whose own stamp is found was written before the loss; the run that finds it
        waits for a commit that is still in flight, as for any other's row.
        """
        until = time.monotonic() + self._timeout
        pause, lost = 0.01, False
        while True:
            try:
                with self._writers.use() as raw:
                    answers = self._items(raw, changes, waiting, again=lost)
                    if lost:
                        answers = self._said_before(raw, changes, answers)
                        # What is found may have been committed before the loss, and wait for
                        # a standby still: a commit of ours waits until that one is durable too.
                        Session(raw).do(self.queries["await_standby"], ())
                    raw.check()
                    return answers
            except psycopg.Error as error:
                failure = explain(error, self.name)
                if kind_of(error) is not Kind.LOST or time.monotonic() > until:
                    return [failure] * len(changes)
            waiting()
            self._writers.drop()
            time.sleep(pause)
            pause, lost = min(1.0, pause * 2), True

    def _items(
        self, raw: Raw, items: Sequence[Item], waiting: Callable[[], None], *, again: bool
    ) -> list[Answer]:
        """Write a group of changes, then the postings among them in one transaction."""
        changes = [item for item in items if not isinstance(item, Posting)]
        postings = [item for item in items if isinstance(item, Posting)]
        written = iter(self._group(raw, changes, waiting, again=again) if changes else ())
        posted = iter(self._posted(raw, postings, waiting) if postings else ())
        return [next(posted if isinstance(item, Posting) else written) for item in items]

    def _said_before(
        self, raw: Raw, items: Sequence[Item], answers: Sequence[Answer]
    ) -> list[Answer]:
        """Answer as applied what a person did where its own line of the audit is there: it was
        committed before the connection was lost, and somebody has gone on from it since."""
        session, query, found = Session(raw), self.queries["audit_there"], list(answers)
        for place, (item, answer) in enumerate(zip(items, answers, strict=True)):
            lines = [line for _, line in item.lines if isinstance(line, Audit)]
            refused = not isinstance(answer, AscertainError) and not answer.applied
            if lines and refused and session.ask(query, (lines[0].id,)):
                posted = Posted(applied=True, rows=(1,) * len(item.lines))
                found[place] = posted if isinstance(item, Posting) else Written(applied=True)
        return found

    def _posted(
        self, raw: Raw, postings: Sequence[Posting], waiting: Callable[[], None]
    ) -> list[Answer]:
        waiting()
        try:
            with raw.transaction():
                session = Session(raw)
                self._begin(session, LOCK_GROUP, lazy=all(posting.lazy for posting in postings))
                return [self._applier.post(session, posting) for posting in postings]
        except psycopg.Error as error:
            if kind_of(error) is Kind.LOST:
                raise
            if len(postings) == 1:
                return [explain(error, self.name)]
        # One is bad or blocked: each for itself, so that it fails alone.
        return [answer for one in postings for answer in self._posted(raw, [one], waiting)]

    def _group(
        self, raw: Raw, changes: Sequence[Change], waiting: Callable[[], None], *, again: bool
    ) -> list[Answer]:
        together, rest = apart(changes)
        names, values = parts([changes[place] for place in together]) if together else ([], {})
        waiting()
        answers: dict[int, Answer] = {}
        if together:
            try:
                values["lock_timeout"] = f"{LOCK_AGAIN if again else LOCK_GROUP}ms"
                won = self._together(raw, names, values)
                rest += [p for p in together if changes[p].status.operation not in won]
            except psycopg.Error as error:
                if kind_of(error) not in (Kind.ITEM, Kind.BLOCKED):
                    raise
                # One is bad or blocked: each for itself, so that it fails alone.
                rest += together
            else:
                applied = Written(applied=True)
                answers = dict.fromkeys(set(together) - set(rest), applied)
                answers |= self._met(raw, changes, [p for p in rest if p in set(together)])
        wait = LOCK_AGAIN if again else LOCK_GROUP if len(changes) == 1 else LOCK_APART
        for place in sorted(set(rest) - set(answers)):
            answers[place] = self._alone(raw, changes[place], wait)
        return [answers[place] for place in range(len(changes))]

    def _together(self, raw: Raw, names: Sequence[str], values: Mapping[str, Any]) -> set[str]:
        """Write a group by one statement; return the operations whose guards held."""
        query = self.queries.joined(names, ", ")
        sent = ServerClock.local()
        try:
            rows = Session(raw, prepare=True).ask(query, query.values(values))
        except UNPREPARED:
            # Somebody between us and the server shares its sessions out after all.
            raw.prepare_threshold, self._writers.prepare = None, False
            rows = Session(raw).ask(query, query.values(values))
        if rows:
            self._server_clock.learn(sent, rows[0][1])
        return {row[0] for row in rows}

    def _met(
        self, raw: Raw, changes: Sequence[Change], places: Sequence[int]
    ) -> dict[int, Written]:
        """Answer changes that met something newer, by new statements; others stay open.

        The statement that met it may have begun before the other's commit, and not see it.
        """
        session, answers = Session(raw), {}
        moving = [changes[p].status.operation for p in places if changes[p].guard is not None]
        found: dict[Any, Snapshot] = dict(self._by_ids(session, moving)) if moving else {}
        new = [operation for p in places if (operation := changes[p].operation) is not None]
        for namespace in dict.fromkeys(operation.namespace for operation in new):
            pairs = [(o.action, o.key) for o in new if o.namespace == namespace]
            for current in self._by_pairs(session, namespace, pairs).values():
                is_ = current.operation
                found[is_.namespace, is_.action, is_.key] = current
        for place in places:
            change, guard = changes[place], changes[place].guard
            met = found.get(_identity(change) if guard is None else change.status.operation)
            if met is not None and met.status.stamp != guard:
                answers[place] = Written(applied=apply.is_ours(change, met), current=met)
        return answers

    def _alone(self, raw: Raw, change: Change, wait: int) -> Answer:
        try:
            with raw.transaction():
                session = Session(raw)
                self._begin(session, wait, lazy=change.lazy)
                return self._applier.apply(session, change)
        except psycopg.Error as error:
            if kind_of(error) is Kind.LOST:
                raise
            failure = explain(error, self.name)
            if isinstance(failure, StoreBusy):
                failure = StoreBusy(f"Operation {change.status.operation}: {failure}")
            return failure
        except AscertainError as error:
            return error

    def _transaction(self, work: Callable[[apply.Session], T]) -> T:
        with self._explained(), self._pool.use() as raw:
            with raw.transaction():
                session = Session(raw)
                self._begin(session, LOCK_AGAIN)
                result = work(session)
            raw.check()
            return result

    def _begin(self, session: Session, wait: int, *, lazy: bool = False) -> None:
        values = {"lock_timeout": f"{wait}ms", "synchronous_commit": "off" if lazy else "on"}
        query = self.queries["begin"]
        session.ask(query, query.values(values))

    def take(
        self, now: int, until: int, namespace: str, actions: Sequence[str], limit: int
    ) -> list[Snapshot]:
        """Take due work: unsettled, `due_at` <= now; oldest first, no row twice at once."""
        values = {
            "now": now,
            "until": until,
            "namespace": namespace,
            "actions": list(actions),
            "limit": max(0, min(limit, PAGE)),
        }
        with self._explained(), self._pool.use() as raw:
            query = self.queries["take"]
            return [snapshot(row) for row in Session(raw).ask(query, query.values(values))]

    def join(self, connection: Any, changes: Sequence[Change]) -> list[Written]:
        """Write changes in the caller's own open transaction; they are durable once he commits."""
        if not isinstance(connection, psycopg.Connection):
            raise UsageError("join() needs a psycopg.Connection that is in a transaction.")
        in_error = psycopg.pq.TransactionStatus.INERROR
        idle = psycopg.pq.TransactionStatus.IDLE
        status = connection.info.transaction_status
        if status == in_error or (status == idle and connection.autocommit):
            raise UsageError(
                "join() needs an open transaction: use `with connection.transaction():`."
            )
        with self._explained():
            session = Session(connection)
            isolation = session.ask(self.queries["isolation"], ())[0][0]
            if isolation != "read committed":
                raise UsageError(
                    f"join() needs READ COMMITTED, this transaction is {isolation.upper()}: it "
                    "would not see who won a key. Set the connection's isolation level."
                )
            # In the order of identities, as every batch, so that nobody waits in a circle.
            order = sorted(range(len(changes)), key=lambda place: _identity(changes[place]))
            answers = {place: self._applier.apply(session, changes[place]) for place in order}
        return [answers[place] for place in range(len(changes))]

    # --- reading ---------------------------------------------------------------------------

    def _read(self, work: Callable[[Session], T]) -> T:
        with self._explained():
            return self._pool.again(lambda raw: work(Session(raw)))

    def _ask(self, query: Query, values: Mapping[str, Any]) -> list[Row]:
        given = query.values(values)
        return self._read(lambda session: session.ask(query, given))

    def _by_ids(self, session: Session, ids: Sequence[str]) -> dict[str, Snapshot]:
        rows = session.ask(self.queries["snapshots"], (list(ids),))
        return {found.operation.id: found for found in map(snapshot, rows)}

    def _by_pairs(
        self, session: Session, namespace: str, pairs: Sequence[tuple[str, str]]
    ) -> dict[tuple[str, str], Snapshot]:
        query = self.queries["snapshots_by_key"]
        wanted = list(dict.fromkeys(pairs))
        actions, keys = [action for action, _ in wanted], [key for _, key in wanted]
        values = {"namespace": namespace, "actions": actions, "keys": keys}
        found = map(snapshot, session.ask(query, query.values(values)))
        return {(one.operation.action, one.operation.key): one for one in found}

    def snapshots(self, ids: Sequence[str]) -> dict[str, Snapshot]:
        """Read operations with their status, settled or not, by id."""
        return self._read(lambda session: self._by_ids(session, ids))

    def by_keys(self, namespace: str, pairs: Sequence[tuple[str, str]]) -> list[Snapshot | None]:
        """Read operations by (action, key), in order; None where there is none."""
        found = self._read(lambda session: self._by_pairs(session, namespace, pairs))
        return [found.get(pair) for pair in pairs]

    def beside(self, ids: Sequence[str]) -> dict[str, Beside]:
        """Read what a decision about each of these operations needs beside its status."""

        def work(session: Session) -> tuple[list[Row], list[Row], list[Row]]:
            given = (list(ids),)
            ask, queries = session.ask, self.queries
            return (
                ask(queries["attempts_of"], given),
                ask(queries["reviews_of"], given),
                ask(queries["successors_of"], given),
            )

        attempts, reviews, successors = self._read(work)
        tried, asked = map(partial(read, Attempt), attempts), map(partial(read, Review), reviews)
        mine: dict[str, tuple[list[Attempt], list[Review]]] = {one: ([], []) for one in ids}
        for attempt in tried:
            mine[attempt.operation][0].append(attempt)
        for review in asked:
            mine[review.operation][1].append(review)
        newer = {one.operation.supersedes: one for one in map(snapshot, successors)}
        return {one: Beside(*found, newer.get(one)) for one, found in mine.items()}

    def rows(self) -> Iterator[tuple[str, dict[str, Any]]]:
        """Iterate over everything as (table, row) in one read snapshot, for export."""
        with self._explained():
            raw = self._pool.connect()
            try:
                raw.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
                raw.read_only = True
                with raw.transaction():
                    for table in TABLES:
                        with raw.cursor(f"export_{table}") as cursor:
                            cursor.itersize = PAGE
                            cursor.execute(str(self.queries[f"export_{table}"]))
                            names = [column.name for column in cursor.description or ()]
                            for row in cursor:
                                yield table, named(names, row)
            finally:
                raw.close()

    def check(self) -> list[str]:
        """Check the ledger's integrity and return what is wrong, in words; empty when sound."""
        return self._inconsistencies()


def _identity(change: Change) -> tuple[str, str, str]:
    new = change.operation
    if new is None:
        return (change.status.namespace, change.status.action, change.status.operation)
    return (new.namespace, new.action, new.key)


# --- forks: a child must neither use nor end its parent's sessions ----------------------------

_stores: weakref.WeakSet[PostgresStore] = weakref.WeakSet()
_inherited: list[Raw] = []
_inherited_pools: list[Pool] = []


def _after_fork_in_child() -> None:
    for store in list(_stores):
        store.reborn()


os.register_at_fork(after_in_child=_after_fork_in_child)

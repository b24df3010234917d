"""The verbs that both databases share: every reading one, and the rare writing ones."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, TypeVar

from ascertain.core.errors import StoreError
from ascertain.core.keys import new_id
from ascertain.core.model import (
    Approval,
    Attempt,
    Change,
    Control,
    Evidence,
    Expected,
    FrozenRequest,
    Incarnation,
    Record,
    Reference,
    Review,
    Run,
    Snapshot,
    State,
)
from ascertain.store.apply import Session
from ascertain.store.base import PAGE, Beside, Filter, Posted, Posting, Written
from ascertain.store.committer import Committer, Item, Ticket
from ascertain.store.loader import Queries, Query
from ascertain.store.records import TABLES, read, snapshot

T = TypeVar("T")
R = TypeVar("R", bound=Record)
PRUNED_AT_ONCE = 100  # operations in one transaction

# The statements that this module uses.
USES = (
    *("find", "find_end", "find_namespace", "find_action", "find_key", "find_run", "find_event"),
    *("find_ref", "find_states", "find_waiting_on", "find_supersedes", "find_text"),
    *("find_open", "find_settled", "find_identity", "find_not_done", "find_few", "find_title"),
    *("find_actions", "find_no_actions", "find_found_by", "find_not_found_by", "find_reviewed"),
    "find_no_own",
    *("find_until", "find_open_until", "find_newest", "find_open_newest", "find_open_end"),
    *("find_count", "find_count_open", "find_count_settled", "find_count_not_done"),
    "find_count_end",
    *("attempts", "evidence", "references", "requests", "approvals", "control"),
    *("reviews_of_operation", "reviews_open", "reviews_open_anywhere"),
    *("reviews_all", "reviews_all_anywhere"),
    *("run_write", "run_by_id", "runs", "runs_by_name", "expected", "expected_insert"),
    *("counts", "counts_reviews", "incarnations", "incarnation_insert"),
    *("meta_get", "meta_set", "meta_first", "meta_clear"),
    *("prune_due", "prune_operation", "prune_settled", "prune_attempt", "prune_evidence"),
    *("prune_request", "prune_approval"),
    *("check_no_status", "check_two_statuses", "check_no_operation", "check_evidence"),
    "check_reference",
    *(f"export_{table}" for table in TABLES),
)
CHECKS = {
    "check_no_status": "operation {} has no status",
    "check_two_statuses": "operation {} is both settled and unsettled",
    "check_no_operation": "something is stored about operation {}, which is not there",
    "check_evidence": "operation {} has more evidence than its status counts",
    "check_reference": "an effect reference of operation {} is not the one that its status names",
}
# Which statement a filter begins with, by whether it is about the unsettled and about nothing but
# what is settled as not done, for which there is an index.
HEADS = {
    (None, False): "find", (None, True): "find",
    (True, False): "find_open", (True, True): "find_open",
    (False, False): "find_settled", (False, True): "find_not_done",
}  # fmt: skip
OPEN = (
    "find_open",
    "find_not_done",
    "find_count_open",
    "find_count_not_done",
)  # these begin with a status
IDENTITY = {"namespace", "action", "key"}
SAME = (
    "namespace", "action", "key", "run", "event", "ref", "supersedes", "waiting_on", "reviewed",
)  # fmt: skip
LISTS = ("actions", "no_actions", "found_by", "not_found_by")
BAR = "\n"  # between the names of a list: in no name


def _only_not_done(what: Filter) -> bool:
    return what.states is not None and {*map(str, what.states)} == {State.NOT_DONE.value}


class SharedVerbs(ABC):
    """What a store does the same way on every database, over three means of its own."""

    queries: Queries
    _committer: Committer

    @abstractmethod
    def _ask(self, query: Query, values: Mapping[str, Any]) -> list[tuple[Any, ...]]:
        """Read outside any transaction."""

    @abstractmethod
    def _transaction(self, work: Callable[[Session], T]) -> T:
        """Run work in a write transaction; durable on return, undone if it raises."""

    def _records(self, record: type[R], name: str, /, **values: Any) -> list[R]:
        return [read(record, row) for row in self._ask(self.queries[name], values)]

    def put(self, change: Item, landed: Callable[[], None] | None = None) -> Ticket[Any]:
        """Queue one change or posting for the committer; `landed` is called once it is answered."""
        return self._committer.put(change, landed)

    def write(self, changes: Sequence[Change]) -> list[Written]:
        """Write changes, each all or nothing, and return when they are durable."""
        return self._committer.write(changes)

    def post(self, postings: Sequence[Posting]) -> list[Posted]:
        """Write postings, each all or nothing, and return when they are durable; in order."""
        return self._committer.write(postings)

    def ask(self, record: type[R], query: str, /, **values: Any) -> list[R]:
        """Read rows of the books by a named query; its columns are the record's fields."""
        if query not in self.queries.books:
            raise StoreError(f"There is no query {query!r} of the books: install the package again")
        return self._records(record, query, **values)

    def find(self, what: Filter, after: str = "", limit: int = 100) -> list[Snapshot]:
        """Read operations by filter, ordered by id (time), between `after` and `until`."""
        if what.states is not None and not what.states:
            return []
        head = HEADS[what.unsettled, _only_not_done(what)]
        end = f"find{'_open' if head in OPEN else ''}{'_newest' if what.newest else '_end'}"
        values = {"after": after, "limit": max(0, min(limit, PAGE))}
        query, given = self._found(what, head, end)
        return [snapshot(row) for row in self._ask(query, values | given)]

    def how_many(self, what: Filter, after: str, most: int) -> int:
        """Count what `find` would find, up to so many."""
        if what.states is not None and not what.states:
            return 0
        head = HEADS[what.unsettled, _only_not_done(what)]
        query, given = self._found(what, head.replace("find", "find_count"), "find_count_end")
        [[number]] = self._ask(query, {"after": after, "limit": most} | given)
        return int(number)

    def _found(self, what: Filter, head: str, end: str) -> tuple[Query, dict[str, Any]]:
        """Return the statement of a filter and its values."""
        names = [name for name in SAME if getattr(what, name) is not None]
        values: dict[str, Any] = {name: getattr(what, name) for name in names}
        if what.states is not None:
            states = [*dict.fromkeys(str(state) for state in what.states)]
            names.append("states")
            padded = (states * len(State))[: len(State)]
            values |= {f"state{place}": state for place, state in enumerate(padded, 1)}
        if what.no_own:
            names.append("no_own")
        for name in LISTS:
            if (listed := getattr(what, name)) is not None:
                names.append(name)
                values |= {name: BAR.join(("", *listed, "")), "bar": BAR}
        for name in ("text", "title"):
            if text := getattr(what, name):
                names.append(name)
                values[name] = "".join(c.lower() if c.isascii() else c for c in text)
        if set(names) >= IDENTITY:
            names = ["identity", *(name for name in names if name not in IDENTITY)]
        elif what.few and what.namespace is not None:
            names = ["few", *(name for name in names if name != "namespace")]
        if what.until is not None:
            names.append("open_until" if head in OPEN else "until")
            values["until"] = what.until
        conditions = [f"find_{name}" for name in names]
        return self.queries.joined([head, *conditions, end], " and\n    "), values

    def beside(self, ids: Sequence[str]) -> dict[str, Beside]:
        """Read what a decision about each of these operations needs beside its status."""
        return {one: self._beside(one) for one in ids}

    def _beside(self, operation: str) -> Beside:
        newer = self.find(Filter(supersedes=operation), limit=1)
        reviews = self.reviews(None, operation)
        return Beside(self.attempts(operation), reviews, newer[0] if newer else None)

    def attempts(self, operation: str) -> list[Attempt]:
        """Read all attempts of an operation, oldest first."""
        return self._records(Attempt, "attempts", operation=operation)

    def evidence(self, operation: str) -> list[Evidence]:
        """Read the evidence of an operation in order."""
        return self._records(Evidence, "evidence", operation=operation)

    def references(self, operation: str) -> list[Reference]:
        """Read the effect references of an operation, oldest first."""
        return self._records(Reference, "references", operation=operation)

    def requests(self, operation: str) -> list[FrozenRequest]:
        """Read the frozen requests of an operation by epoch."""
        return self._records(FrozenRequest, "requests", operation=operation)

    def approvals(self, operation: str) -> list[Approval]:
        """Read the approvals asked for an operation, oldest first."""
        return self._records(Approval, "approvals", operation=operation)

    def reviews(
        self, namespace: str | None, operation: str | None = None, *, closed: bool = False
    ) -> list[Review]:
        """Read reviews, oldest first: open ones, or with `closed` all."""
        if operation is not None:
            found = self._records(Review, "reviews_of_operation", operation=operation)
            return [
                review
                for review in found
                if namespace in (None, review.namespace) and (closed or review.closed_at is None)
            ]
        name = "reviews_all" if closed else "reviews_open"
        if namespace is None:
            return self._records(Review, f"{name}_anywhere", limit=PAGE)
        return self._records(Review, name, namespace=namespace, limit=PAGE)

    def control(self, namespace: str, action: str, scope: str) -> Control | None:
        """Read the positive control of an action in a scope."""
        found = self._records(Control, "control", namespace=namespace, action=action, scope=scope)
        return found[0] if found else None

    def open_run(self, run: Run, expected: Sequence[Expected]) -> Run:
        """Write a run (or change the one of this id) and add keys that it expects; durable."""
        write, add = self.queries["run_write"], self.queries["expected_insert"]

        def work(session: Session) -> None:
            if not session.do(write, write.reader()(run)):
                raise StoreError(
                    f"Run {run.id} belongs to another namespace than {run.namespace!r}; "
                    "give it an id of its own."
                )
            for key in expected:
                session.do(add, add.reader()(key))

        self._transaction(work)
        return self._records(Run, "run_by_id", id=run.id)[0]

    def runs(self, namespace: str, name: str | None = None) -> list[Run]:
        """Read runs, newest first, of one name or all."""
        if name is None:
            return self._records(Run, "runs", namespace=namespace, limit=PAGE)
        return self._records(Run, "runs_by_name", namespace=namespace, name=name, limit=PAGE)

    def expected(self, run: str) -> list[Expected]:
        """Read the keys that a run expects."""
        return self._records(Expected, "expected", run=run)

    def counts(self, namespace: str) -> dict[str, int]:
        """Count the working set by state, and open reviews as `reviews`; never scans history."""
        rows = self._ask(self.queries["counts"], {"namespace": namespace})
        counts = {str(state): int(number) for state, number in rows}
        rows = self._ask(self.queries["counts_reviews"], {"namespace": namespace})
        return counts | {"reviews": int(rows[0][0])}

    def incarnations(self, new: Incarnation | None = None) -> list[Incarnation]:
        """Read the lives of the store, oldest first, after adding `new` if given; durable."""
        if new is not None:
            query = self.queries["incarnation_insert"]
            self._transaction(lambda session: session.do(query, query.reader()(new)))
        return self._records(Incarnation, "incarnations")

    def meta(self, name: str, value: str | None = None) -> str | None:
        """Read a named setting of the store, after setting it if given; then it is durable.

        `secret` is made at the store's creation and can be replaced, never lost to a race.
        """
        if value is not None:
            if name == "schema":
                raise StoreError("The schema version is set by migrations alone.")
            query = self.queries["meta_set"]
            values = query.values({"name": name, "value": value})
            self._transaction(lambda session: session.do(query, values))
        rows = self._ask(self.queries["meta_get"], {"name": name})
        return str(rows[0][0]) if rows else None

    def fill(self, groups: Iterable[tuple[str, Sequence[Mapping[str, Any]]]], schema: int) -> None:
        """Write the rows of a backup, by table, into an empty store; in one transaction, durable
        on return. `schema` is what the store says of itself from then on."""
        clear, meta = self.queries["meta_clear"], self.queries["meta_set"]
        made: dict[tuple[str, int], Query] = {}

        def work(session: Session) -> None:
            session.do(clear, ())
            for table, rows in groups:
                shape = (table, len(rows))
                if shape not in made:
                    made[shape] = self._inserting(table, tuple(rows[0]), len(rows))
                session.do(made[shape], [row[name] for row in rows for name in rows[0]])
            session.do(meta, ("schema", str(schema)))

        self._transaction(work)

    def filled(self, schema: int) -> None:
        """Say after `fill` of which schema the store really is; durable on return."""
        meta = self.queries["meta_set"]
        self._transaction(lambda session: session.do(meta, ("schema", str(schema))))

    def _inserting(self, table: str, columns: Sequence[str], rows: int) -> Query:
        width = len(columns)
        places = ", ".join(
            "(" + ", ".join(f":v{row * width + n}" for n in range(width)) + ")"
            for row in range(rows)
        )
        # Names of a backup that was examined: tables that we know, columns of letters alone.
        text = f"insert into {table} ({', '.join(columns)}) values {places}"  # noqa: S608
        return self.queries.translated(f"fill_{table}_{rows}", text)

    def prune(self, before: int, limit: int) -> int:
        """Turn settled operations last changed before that time into tombstones (law 19).

        Removes input, result, attempts, evidence, requests and approvals; keeps key,
        fingerprint, state and effect references. Returns how many; at most `limit`. Written in
        pages, each durable by itself, so that nobody waits long for the write lock.
        """
        query, pruned = self.queries["prune_due"], 0
        bounds = {"after": "", "until": new_id(before, 0), "before": before}
        while pruned < limit:
            size = min(limit - pruned, PRUNED_AT_ONCE)
            due = [row[0] for row in self._ask(query, bounds | {"limit": size})]
            if not due:
                break
            pruned += self._transaction(partial(self._bury, due=due, before=before))
            bounds["after"] = due[-1]
        return pruned

    def _bury(self, session: Session, due: Sequence[str], before: int) -> int:
        """Make tombstones of what is still as it was when it was read; return of how many."""
        settled, buried = self.queries["prune_settled"], 0
        parts = ("attempt", "evidence", "request", "approval", "operation")
        for operation in due:
            values = settled.values({"operation": operation, "before": before})
            if session.do(settled, values):
                for part in parts:
                    session.do(self.queries[f"prune_{part}"], (operation,))
                buried += 1
        return buried

    def _inconsistencies(self) -> list[str]:
        return [
            words.format(row[0])
            for name, words in CHECKS.items()
            for row in self._ask(self.queries[name], {})
        ]

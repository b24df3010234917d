"""Group commit: one transaction for everything that waits, at once, without a timer.

While one commit waits for the disk, the next batch gathers; so the disk itself is the window.
A caller who finds nobody else commits by himself, because a hop to another thread costs a tenth
of the whole; as soon as callers meet, the committer's thread takes over. Those it has answered are
woken just before the next wait for the disk, not while the next statements run: awake, they would
fight with them for Python's lock (measured with 64 threads: docs/decisions/0004).
"""

from __future__ import annotations

import atexit
import threading
import weakref
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Generic, TypeVar

from ascertain.core.errors import AscertainError, StoreError, StoreUnavailable
from ascertain.core.model import Change
from ascertain.store.base import BATCH, Posted, Posting, Written

Item = Change | Posting
Answer = Written | Posted | AscertainError
Commit = Callable[[Sequence[Item], Callable[[], None]], list[Answer]]
A = TypeVar("A", Written, Posted)
CLOSE_WAIT = 30.0  # seconds that close() waits for what is queued


class Ticket(Generic[A]):
    """Some changes or postings on their way: `result` waits until they are durable.

    `landed` is called once they are answered, on the thread that committed them: it must not
    wait for the store.
    """

    __slots__ = ("answers", "changes", "gate", "landed")

    def __init__(self, changes: Sequence[Item], landed: Callable[[], None] | None = None) -> None:
        """Begin on the way; nobody can take them back."""
        self.changes, self.landed = changes, landed
        self.answers: Sequence[Answer] = ()
        self.gate = threading.Lock()
        self.gate.acquire()

    def wake(self) -> None:
        """Let the caller have the answers."""
        self.gate.release()
        if self.landed is not None:
            self.landed()

    def wait(self, timeout: float | None = None) -> Sequence[Answer]:
        """Return the answers once they are there; raises TimeoutError after so many seconds."""
        if not self.gate.acquire(timeout=-1 if timeout is None else timeout):
            raise TimeoutError("the changes are still on their way")
        self.gate.release()
        return self.answers

    def result(self, timeout: float | None = None) -> A:
        """Return the answer to the one change once it is durable, or raise what it met."""
        [answer] = self.wait(timeout)
        if isinstance(answer, AscertainError):
            raise _own(answer)
        return answer  # type: ignore[return-value]  # a change is answered by Written, and so on


class Committer:
    """Queues changes and commits them in groups; `commit` writes one group and answers each.

    `commit` must answer every change, with an error where one could not be written, and leave
    no transaction open, whatever happens. It is never called twice at the same time. It calls
    its second argument before anything that may wait: the disk, a lock, the network.
    """

    def __init__(self, commit: Commit, name: str) -> None:
        """Start with nothing queued and without a thread."""
        self._commit = commit
        self._name = name
        self._turn = threading.Lock()  # held by whoever commits
        self._mutex = threading.Lock()  # guards the fields below
        self._work = threading.Condition(self._mutex)
        self._queue: deque[Ticket[Any]] = deque()
        self._crowded = False  # the last batch held more than one caller's changes
        self._answered: list[Ticket[Any]] = []  # durable, and not woken yet
        self._thread: threading.Thread | None = None
        self._closed = False
        # A process that ends with changes queued still writes them.
        self._at_exit = partial(_close_quietly, weakref.ref(self))
        atexit.register(self._at_exit)

    def put(self, change: Item, landed: Callable[[], None] | None = None) -> Ticket[Any]:
        """Queue one change or posting; the ticket's `result` waits until it is durable.

        `landed` is called then, on the committer's thread: it must not wait for the store.
        """
        ticket: Ticket[Any] = Ticket((change,), landed)
        self._enqueue([ticket])
        return ticket

    def write(self, changes: Sequence[Item]) -> list[Any]:
        """Commit changes or postings and return their answers; durable on return.

        Raises the first error among the answers once all of them are known; `written` of the
        error holds the others.
        """
        tickets: list[Ticket[Any]] = [
            Ticket(changes[start : start + BATCH]) for start in range(0, len(changes), BATCH)
        ]
        if len(tickets) == 1 and self._idle():
            self._commit_own(tickets[0])
        elif tickets:
            self._enqueue(tickets)
        answers: list[Answer] = []
        for ticket in tickets:
            answers += ticket.wait()
        for answer in answers:
            if isinstance(answer, AscertainError):
                raise _own(answer, written=answers) from answer
        return answers

    def exclusive(self) -> threading.Lock:
        """Return the lock that whoever uses the committing connection must hold."""
        return self._turn

    def forget(self) -> None:
        """Leave the queue alone after a fork, in the child: it is the parent's."""
        atexit.unregister(self._at_exit)

    def close(self) -> None:
        """Write what is queued and end the thread; later calls are refused."""
        atexit.unregister(self._at_exit)
        with self._mutex:
            self._closed = True
            thread = self._thread
            self._work.notify_all()
        if thread is not None and thread is not threading.current_thread():
            thread.join(CLOSE_WAIT)

    # --- the caller's own commit -----------------------------------------------------------

    def _idle(self) -> bool:
        """Take the turn if nobody commits, waits or came in a crowd just now."""
        if self._crowded or self._queue or self._closed:
            return False
        return self._turn.acquire(blocking=False)

    def _commit_own(self, ticket: Ticket[Any]) -> None:
        try:
            self._run([ticket], _nothing)
        finally:
            self._turn.release()
        ticket.wake()

    # --- the committer's thread ------------------------------------------------------------

    def _enqueue(self, tickets: Sequence[Ticket[Any]]) -> None:
        with self._mutex:
            if self._closed:
                raise StoreUnavailable(f"The store {self._name} is closed; open it again.")
            self._queue.extend(tickets)
            self._wake()

    def _wake(self) -> None:
        if self._thread is None:
            self._thread = threading.Thread(
                target=self._serve, name=f"ascertain-committer {self._name}", daemon=True
            )
            self._thread.start()
        self._work.notify()

    def _serve(self) -> None:
        while True:
            if not self._queue:
                self._wake_answered()
            with self._mutex:
                while not self._queue and not self._closed:
                    self._work.wait()
                if not self._queue:
                    return
            if not self._turn.acquire(blocking=False):
                self._wake_answered()
                self._turn.acquire()
            try:
                # Drained only now, so that all who came while another committed go together.
                batch = self._drain()
                self._crowded = len(batch) > 1
                self._run(batch, self._wake_answered)
            finally:
                self._turn.release()
                self._wake_answered()
                self._answered = batch

    def _wake_answered(self) -> None:
        while self._answered:
            self._answered.pop().wake()

    def _drain(self) -> list[Ticket[Any]]:
        batch: list[Ticket[Any]] = []
        size = 0
        with self._mutex:
            while self._queue and (not batch or size + len(self._queue[0].changes) <= BATCH):
                ticket = self._queue.popleft()
                size += len(ticket.changes)
                batch.append(ticket)
        return batch

    def _run(self, batch: Sequence[Ticket[Any]], waiting: Callable[[], None]) -> None:
        changes = [change for ticket in batch for change in ticket.changes]
        try:
            answers = self._commit(changes, waiting)
        except StoreError as error:
            answers = [error] * len(changes)
        except Exception as error:  # noqa: BLE001 - nobody may wait for an answer for ever
            failure = StoreUnavailable(f"Writing to the store failed: {error!r}; open it again.")
            failure.__cause__ = error
            answers = [failure] * len(changes)
        start = 0
        for ticket in batch:
            end = start + len(ticket.changes)
            ticket.answers = answers[start:end]
            start = end


def _nothing() -> None:
    """Wake nobody: an idle caller has none before him."""


def _own(error: AscertainError, **facts: Any) -> AscertainError:
    """Return a caller's own copy: one error may answer many, and raising it marks it."""
    return type(error)(str(error), **(error.facts | facts))


def _close_quietly(committer: weakref.ref[Committer]) -> None:
    if (alive := committer()) is not None:
        alive.close()

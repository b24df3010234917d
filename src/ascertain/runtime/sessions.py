"""Signed-in browsers. Of a session's secret only the SHA-256 is kept. Verbs are durable."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from typing import Any

from ascertain.core.books import Account, Session
from ascertain.core.errors import StoreError
from ascertain.core.model import SECOND, Record
from ascertain.store.base import Posting, Store

from .audit import AuditLog, Who
from .hashing import hash_of, new_secret

IDLE = 12 * 3600 * SECOND  # after which a session is over if it was not used
LONGEST = 7 * 24 * 3600 * SECOND  # after which it is over in any case
SEEN_EVERY = 5 * 60 * SECOND  # how coarsely it is kept when it was last used
MOST = 20  # sessions of a person; the one not used for longest goes
AGENT_LENGTH = 200  # characters of a browser's name that are kept
ID = 16  # characters of a session's hash by which it is named
EVERYWHERE = "*"  # whose audit it is: a person's sign-in belongs to no one namespace
Line = tuple[str, Record | Mapping[str, Any]]


class SignedIn(Record, frozen=True, kw_only=True):
    """A session with its person."""

    hash: str
    account: str
    opened_at: int
    seen_at: int
    ends_at: int
    address: str
    agent: str
    login: str
    name: str
    disabled_at: int | None
    held_at: int | None
    lang: str
    zone: str

    @property
    def id(self) -> str:
        """What it is called in lists and in the audit; of no use to who wants in."""
        return self.hash[:ID]


class Opened:
    """A session about to be opened: its secret, and the lines that open it."""

    def __init__(self, secret: str, session: Session, lines: tuple[Line, ...]) -> None:
        """Keep them until they are posted."""
        self.secret, self.session, self.lines = secret, session, lines


class Sessions:
    """The browsers that may use a store."""

    def __init__(self, store: Store, log: AuditLog) -> None:
        """Work on a store."""
        self._store, self._log = store, log

    def opening(self, account: str, who: Who, agent: str = "") -> Opened:
        """Return a new session, to be posted with what allows it. Its secret is always new, so
        nobody can fix one in a browser before its person signs in."""
        now, secret = self._store.now(), new_secret()
        session = Session(
            hash=hash_of(secret), account=account, opened_at=now, seen_at=now,
            ends_at=now + LONGEST, address=who.address, agent=agent[:AGENT_LENGTH],
        )  # fmt: skip
        lines: tuple[Line, ...] = (
            ("session_add", session),
            ("sessions_bound", {"account": account, "most": MOST}),
            ("sessions_over", {"idle": now - IDLE}),
            self._log.line(who, EVERYWHERE, "session.open", subject=f"session:{session.hash[:ID]}"),
        )
        return Opened(secret, session, lines)

    def open(self, account: Account, who: Who, agent: str = "", *, instead: str = "") -> Opened:
        """Sign a person in; the session `instead` (a hash) that the browser had is ended."""
        made = self.opening(account.id, who, agent)
        lines = made.lines
        if instead:
            lines = (*lines, ("session_end", {"hash": instead, "account": account.id}))
        self._store.post([Posting(lines)])
        return made

    def of(self, secret: str) -> SignedIn | None:
        """Return the session of a secret if it may be used now. It is read every time: who is
        disabled, or whose session is ended anywhere, is out with the next request."""
        now = self._store.now()
        for found in self._store.ask(SignedIn, "session_of", hash=hash_of(secret)):
            fresh = now < found.ends_at and now - found.seen_at < IDLE
            if fresh and found.disabled_at is None and found.held_at is None:
                return found
        return None

    def seen(self, session: SignedIn) -> None:
        """Keep that a session was used, coarsely and without waiting; this may be lost."""
        now = self._store.now()
        if now - session.seen_at < SEEN_EVERY:
            return
        values = {"hash": session.hash, "seen_at": now, "before": now - SEEN_EVERY}
        with contextlib.suppress(StoreError):
            self._store.put(Posting((("session_seen", values),), lazy=True))

    def list(self, account: str) -> list[Session]:
        """Return the sessions of a person that are not over, the one used last first."""
        now = self._store.now()
        found = self._store.ask(Session, "sessions_of", account=account)
        return [s for s in found if now < s.ends_at and now - s.seen_at < IDLE]

    def end(self, account: str, ident: str, *, who: Who) -> bool:
        """End one session of a person by its hash or its id; returns whether it was there."""
        for session in self._store.ask(Session, "sessions_of", account=account):
            if len(ident) >= ID and session.hash.startswith(ident):
                line = self._log.line(
                    who, EVERYWHERE, "session.end", subject=f"session:{session.hash[:ID]}"
                )
                values = {"hash": session.hash, "account": account}
                self._store.post([Posting((("session_end", values), line), must=(0,))])
                return True
        return False

    def end_all(self, account: str, *, who: Who, but: str = "") -> None:
        """End all sessions of a person, but perhaps the one of a hash."""
        line = self._log.line(who, EVERYWHERE, "session.end_all", subject=f"account:{account}")
        values = {"account": account, "but": but}
        self._store.post([Posting((("sessions_end_of", values), line))])

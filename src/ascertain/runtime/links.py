"""One-time links: for the first user, to sign in, and for a guest who answers one request.

Of a link's secret only the SHA-256 is kept. Every verb is durable when it returns.
"""

from __future__ import annotations

import msgspec
from msgspec.structs import asdict

from ascertain.core.books import Account, Link, Member
from ascertain.core.errors import Refused, UsageError
from ascertain.core.keys import new_id
from ascertain.core.logins import login_of
from ascertain.core.model import SECOND
from ascertain.core.rights import EVERYWHERE
from ascertain.store.base import Posting, Store

from .audit import AuditLog, Who
from .clock import Clock
from .hashing import hash_of, new_secret
from .people import People
from .sessions import Line, Opened, Sessions

PREFIX = "asl"  # of a link's secret, for scanners
FIRST_FOR = 24 * 3600 * SECOND  # how long the first user's link is good
SIGN_IN_FOR = 3 * 24 * 3600 * SECOND
GUEST_FOR, GUEST_LONGEST = 3 * 24 * 3600 * SECOND, 30 * 24 * 3600 * SECOND
TO_LENGTH = 100  # characters of whom a guest's link is given to
KEPT = 90 * 24 * 3600 * SECOND  # after its end
ID = 16  # characters of a link's hash by which it is named


class MadeLink(msgspec.Struct, frozen=True):
    """A new link, and its secret, which is shown this once."""

    link: Link
    secret: str


class Links:
    """The links that were given out."""

    def __init__(
        self, store: Store, log: AuditLog, clock: Clock, people: People, sessions: Sessions
    ) -> None:
        """Work on a store."""
        self._store, self._log, self._clock = store, log, clock
        self._people, self._sessions = people, sessions

    def of(self, secret: str) -> Link | None:
        """Return the link of a secret if it may be used now."""
        now = self._store.now()
        for link in self._store.ask(Link, "link_of", hash=hash_of(secret)):
            if link.used_at is None and link.ends_at > now:
                return link
        return None

    def first(self) -> MadeLink | None:
        """Return a link by which the first user makes his account, if there is nobody yet. Those
        made before, e.g. by another server, stay good until the first account is made."""
        if self._people.any():
            return None
        return self._made("first_user", FIRST_FOR, Who(actor="server", via="start"), EVERYWHERE)

    def sign_in(self, account: Account, *, who: Who) -> MadeLink:
        """Return a link by which a person sets a password and signs in. It takes the place of
        the one before. Whoever asks must be allowed to administer the person."""
        return self._made(
            "sign_in", SIGN_IN_FOR, who, EVERYWHERE, subject=account.id,
            before=(("links_end_sign_in", {"subject": account.id}),),
        )  # fmt: skip

    def guest(
        self, namespace: str, operation: str, digest: str, *, role: str, to: str, who: Who,
        lasts: int = GUEST_FOR,
    ) -> MadeLink:  # fmt: skip
        """Return a link by which one person, who has no account, answers one request.

        It shows the request of this digest and no other; `lasts` in µs, at most 30 days.
        """
        if not to.strip() or len(to) > TO_LENGTH or not to.isprintable():
            raise UsageError("say to whom the link is given, in 1 to 100 printable characters")
        if not 0 < lasts <= GUEST_LONGEST:
            raise UsageError("a guest's link is good for at most 30 days")
        return self._made(
            "guest", lasts, who, namespace, subject=operation, role=role, to=to.strip(),
            digest=digest,
        )  # fmt: skip

    def _made(
        self, purpose: str, lasts: int, who: Who, namespace: str, *, subject: str = "",
        role: str = "", to: str = "", digest: str = "", before: tuple[Line, ...] = (),
    ) -> MadeLink:  # fmt: skip
        now, secret = self._store.now(), f"{PREFIX}_{new_secret()}"
        link = Link(
            hash=hash_of(secret), purpose=purpose, namespace=namespace, subject=subject, role=role,
            who=to, made_by=who.actor, made_at=now, ends_at=now + lasts, digest=digest,
        )  # fmt: skip
        line = self._log.line(
            who, namespace, f"link.{purpose}", subject=subject,
            after=f"link:{link.hash[:ID]} {to}".strip(),
        )  # fmt: skip
        over: Line = ("links_over", {"before": now - KEPT})
        self._store.post([Posting((*before, ("link_add", link), over, line))])
        return MadeLink(link, secret)

    def list(self, namespace: str, operation: str) -> list[Link]:
        """Return the guests' links to an operation, newest first; at most 100."""
        return self._store.ask(Link, "links_of", namespace=namespace, subject=operation, limit=100)

    def end(self, link: Link, *, who: Who) -> None:
        """Take a link back that was not used."""
        line = self._log.line(
            who, link.namespace, "link.end", subject=link.subject, before=f"link:{link.hash[:ID]}"
        )
        values = {"hash": link.hash, "namespace": link.namespace}
        self._store.post([Posting((("link_end", values), line), must=(0,))])

    def use(self, link: Link, who: Who) -> None:
        """Use up a guest's link after his answer."""
        values = {
            "hash": link.hash, "purpose": "guest", "used_at": self._store.now(),
            "used_by": who.via,
        }  # fmt: skip
        self._store.post([Posting((("link_use", values),))])

    # --- redeeming ---

    def redeem_first(
        self, link: Link, login: str, name: str, password: str, *, who: Who, agent: str = ""
    ) -> Opened:
        """Make the first account, with every right in every namespace, and sign it in.

        Of two at once one wins; raises Refused for the other, UsageError for a login or a
        password that cannot be.
        """
        folded, now = login_of(login), self._store.now()
        account = Account(
            id=new_id(now, self._clock.id_bits()), login=folded, name=name.strip() or folded,
            password=self._people.hashed(folded, password), made_at=now,
        )  # fmt: skip
        me = msgspec.structs.replace(who, actor=folded, role="admin")
        opened = self._sessions.opening(account.id, me, agent)
        member = Member(
            account=account.id, namespace=EVERYWHERE, role="admin", decides=1, approves=1,
            overrides=1,
        )  # fmt: skip
        used = {"hash": link.hash, "used_at": now, "used_by": opened.session.hash}
        line = self._log.line(
            me, EVERYWHERE, "person.first", subject=f"account:{account.id}", after=folded
        )
        self._won(
            Posting(
                (("links_use_first", used), ("account_first", account),
                 ("member_set", asdict(member)), *opened.lines, line),
                must=(0, 1),
            ),
            opened,
        )  # fmt: skip
        return opened

    def redeem_sign_in(
        self, link: Link, account: Account, password: str, *, who: Who, agent: str = ""
    ) -> Opened:
        """Set a password by a link, end every session of before, and sign in.

        Of two at once one wins; raises Refused for the other, UsageError for a password that is
        too weak: the link stays good then.
        """
        hashed, now = self._people.hashed(account.login, password), self._store.now()
        me = msgspec.structs.replace(who, actor=account.login)
        opened = self._sessions.opening(account.id, me, agent)
        used = {
            "hash": link.hash, "purpose": "sign_in", "used_at": now,
            "used_by": opened.session.hash,
        }  # fmt: skip
        line = self._log.line(me, EVERYWHERE, "person.password", subject=f"account:{account.id}")
        self._won(
            Posting(
                (("link_use", used), ("account_password", {"id": account.id, "password": hashed}),
                 ("sessions_end_of", {"account": account.id, "but": opened.session.hash}),
                 *opened.lines, line),
                must=(0,),
            ),
            opened,
        )  # fmt: skip
        return opened

    def _won(self, posting: Posting, opened: Opened) -> None:
        """Write it, or raise Refused where somebody else used the link up first."""
        if self._store.post([posting])[0].applied:
            return
        if self._sessions.of(opened.secret) is None:  # else it is our own, written before
            raise Refused("this link was used already, or is over: ask for a new one")

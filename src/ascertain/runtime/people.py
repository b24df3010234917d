"""The people who sign in, and what each may do where. Every verb is durable when it returns.

`granter`: the memberships of who asks; None for the command line, whose user holds the store.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
from msgspec.structs import asdict

from ascertain.core import rights
from ascertain.core.books import Account, Member
from ascertain.core.errors import NotAllowed, Refused, UsageError
from ascertain.core.keys import new_id
from ascertain.core.logins import folded_login, login_of, password_of
from ascertain.core.rights import EVERYWHERE, FLAGS, ROLES
from ascertain.store.base import PAGE, Posting, Store

from .audit import AuditLog, Who
from .clock import Clock
from .hashing import Passwords
from .sessions import Line

NAME_LENGTH = 100  # characters
Granter = Sequence[Member] | None
LOCK: Line = ("account_lock", {})


class Person(msgspec.Struct, frozen=True):
    """A person with all memberships that who asks may see."""

    account: Account
    members: tuple[Member, ...]


class People:
    """The people who may use a store."""

    def __init__(self, store: Store, log: AuditLog, clock: Clock, passwords: Passwords) -> None:
        """Work on a store."""
        self._store, self._log, self._clock = store, log, clock
        self.passwords = passwords

    # --- reading ---

    def any(self) -> bool:
        """Tell whether there is anybody."""
        return bool(self._store.ask(Account, "account_any"))

    def by_login(self, login: str) -> Account | None:
        """Return the account of a login, however it is spelled."""
        folded = folded_login(login)
        if "\x00" in folded:  # PostgreSQL cannot be asked for it, so it is nobody's
            return None
        found = self._store.ask(Account, "account_by_login", login=folded)
        return found[0] if found else None

    def by_id(self, ident: str) -> Account | None:
        """Return an account."""
        found = self._store.ask(Account, "account_by_id", id=ident)
        return found[0] if found else None

    def members(self, account: str) -> list[Member]:
        """Return what a person may do, in every namespace."""
        return self._store.ask(Member, "members_of", account=account)

    def list(self, namespace: str | None, after: str = "", limit: int = 100) -> list[Person]:
        """Return the people of a namespace and those of all, or with None everybody. Of a
        namespace's people only what they may do there is told."""
        limit = min(limit, PAGE + 1)
        if namespace is None:
            found = self._store.ask(Account, "accounts", after=after, limit=limit)
        else:
            found = self._store.ask(
                Account, "accounts_in", namespace=namespace, after=after, limit=limit
            )
        if not found:
            return []
        members = self._store.ask(Member, "members_between", first=found[0].id, last=found[-1].id)
        shown = (namespace, EVERYWHERE)
        return [
            Person(a, tuple(
                m for m in members
                if m.account == a.id and (namespace is None or m.namespace in shown)
            ))
            for a in found
        ]  # fmt: skip

    # --- people ---

    def add(
        self, login: str, name: str, members: Sequence[Member], *, who: Who, granter: Granter
    ) -> Account:
        """Add a person, who cannot sign in before a password is set.

        `members` name no account yet. Raises UsageError for a login that cannot be, Refused for
        one that is taken, NotAllowed for rights that the granter may not give.
        """
        folded = login_of(login)
        if not members:
            raise UsageError("say in which namespace the person may do something")
        account = Account(
            id=new_id(self._store.now(), self._clock.id_bits()), login=folded,
            name=_name(name) or folded, made_at=self._store.now(),
        )  # fmt: skip
        lines: list[Line] = [("account_add", account)]
        for member in members:
            lines += self._giving(account, msgspec.structs.replace(member, account=account.id),
                                  who, granter)  # fmt: skip
        lines.append(
            self._log.line(
                who, EVERYWHERE, "person.new", subject=f"account:{account.id}", after=folded
            )
        )
        if not self._store.post([Posting(tuple(lines), must=(0,))])[0].applied:
            there = self.by_login(folded)
            if there is None or there.id != account.id:
                raise Refused(f"the login {folded!r} is taken: choose another one")
        return account

    def edit(self, account: Account, *, name: str, lang: str, zone: str, who: Who) -> None:
        """Change what a person is called and how he reads."""
        values = {"id": account.id, "name": _name(name), "lang": lang[:8], "zone": zone[:64]}
        line = self._log.line(
            who, EVERYWHERE, "person.edit", subject=f"account:{account.id}", before=account.name,
            after=_name(name),
        )  # fmt: skip
        self._store.post([Posting((("account_edit", values), line))])

    def disable(self, account: Account, *, who: Who, granter: Granter, why: str = "") -> None:
        """Keep a person out from now on, and end all his sessions and links to sign in.

        Raises NotAllowed, and Refused for the last one who administers every namespace.
        """
        self._may_administer(account, granter)
        line = self._log.line(
            who, EVERYWHERE, "person.disable", subject=f"account:{account.id}", reason=why,
            before=account.login,
        )  # fmt: skip
        lines: tuple[Line, ...] = (
            LOCK,
            ("account_disable", {"id": account.id, "disabled_at": self._store.now()}),
            ("sessions_end_of", {"account": account.id, "but": ""}),
            ("links_end_sign_in", {"subject": account.id}),
            line,
        )
        if not self._store.post([Posting(lines, must=(1,))])[0].applied:
            now = self.by_id(account.id)
            if now is None or now.disabled_at is None:
                raise _last(account)

    def enable(self, account: Account, *, who: Who, granter: Granter) -> None:
        """Let a disabled person sign in again."""
        self._back(account, "enable", who, granter)

    def confirm(self, account: Account, *, who: Who, granter: Granter) -> None:
        """Let a person in again who is held since a restore, because somebody knows that he was
        not disabled in what was lost (law 21)."""
        self._back(account, "confirm", who, granter)

    def _back(self, account: Account, verb: str, who: Who, granter: Granter) -> None:
        self._may_administer(account, granter)
        line = self._log.line(
            who, EVERYWHERE, f"person.{verb}", subject=f"account:{account.id}", after=account.login
        )
        self._store.post([Posting(((f"account_{verb}", {"id": account.id}), line), must=(0,))])

    # --- what they may do ---

    def grant(self, account: Account, member: Member, *, who: Who, granter: Granter) -> None:
        """Give or change a membership. Raises NotAllowed, and Refused where it would leave
        nobody who administers every namespace."""
        lines = (LOCK, *self._giving(account, member, who, granter))
        if self._store.post([Posting(lines, must=(1,))])[0].applied:
            return
        if member not in self.members(account.id):
            raise _last(account)

    def end(self, account: Account, namespace: str, *, who: Who, granter: Granter) -> bool:
        """Take a membership away; returns whether there was one. Raises as `grant` does."""
        before = [m for m in self.members(account.id) if m.namespace == namespace]
        if granter is not None and not rights.may_remove(granter, namespace):
            raise NotAllowed(f"this needs the administration of namespace {namespace!r}")
        if not before:
            return False
        line = self._log.line(
            who, namespace, "member.end", subject=f"account:{account.id}", before=told(before[0])
        )
        values = {"account": account.id, "namespace": namespace}
        lines: tuple[Line, ...] = (LOCK, ("member_end", values), line)
        if not self._store.post([Posting(lines, must=(1,))])[0].applied and any(
            m.namespace == namespace for m in self.members(account.id)
        ):
            raise _last(account)
        return True

    def _giving(
        self, account: Account, member: Member, who: Who, granter: Granter
    ) -> tuple[Line, ...]:
        """Return the lines that give a membership, or raise NotAllowed."""
        if member.role not in ROLES:
            raise UsageError(f"a role is one of {', '.join(ROLES)}, not {member.role!r}")
        if not member.namespace:
            raise UsageError("name the namespace, or * for all")
        if granter is not None and not rights.may_grant(granter, member):
            raise NotAllowed(
                f"in namespace {member.namespace!r} you may not give {told(member)}: it takes the"
                " administration of it, and every right that is given"
            )
        was = [m for m in self.members(account.id) if m.namespace == member.namespace]
        given = msgspec.structs.replace(member, account=account.id)
        if was and granter is not None and not rights.may_grant(granter, was[0]):
            raise NotAllowed(
                f"{account.login} has more rights in namespace {member.namespace!r} than you:"
                " take the membership away, or ask somebody who has them"
            )
        line = self._log.line(
            who, member.namespace, "member.set", subject=f"account:{account.id}",
            before=told(was[0]) if was else "", after=told(given),
        )  # fmt: skip
        return ("member_set", asdict(given)), line

    # --- passwords ---

    def check(self, login: str, password: str) -> Account | None:
        """Return the person of a login and password who may sign in now; takes as long for a
        login that there is not. About 0.1 s and 64 MiB."""
        account = self.by_login(login)
        kept = account.password if account is not None else ""
        if not self.passwords.right(kept, password) or account is None:
            return None
        if account.disabled_at is not None or account.held_at is not None:
            return None
        if self.passwords.stale(kept):
            made = self.passwords.hash(password)
            values = {"id": account.id, "password": made, "was": kept}
            self._store.post([Posting((("account_rehash", values),))])
        return account

    def hashed(self, login: str, password: str) -> str:
        """Return the hash of a new password; raises UsageError for one that is too weak."""
        return self.passwords.hash(password_of(password, login))

    def set_password(self, account: Account, password: str, *, who: Who, but: str = "") -> None:
        """Set a password, and end all sessions but perhaps the one of a hash, and all links to
        sign in. Raises UsageError for one that is too weak."""
        values = {"id": account.id, "password": self.hashed(account.login, password)}
        line = self._log.line(
            who, EVERYWHERE, "person.password", subject=f"account:{account.id}",
        )  # fmt: skip
        lines: tuple[Line, ...] = (
            ("account_password", values),
            ("sessions_end_of", {"account": account.id, "but": but}),
            ("links_end_sign_in", {"subject": account.id}),
            line,
        )
        self._store.post([Posting(lines)])

    # --- shared ---

    def may_administer(self, account: Account, granter: Granter) -> bool:
        """Tell whether who asks may act as this person's administrator."""
        return granter is None or rights.may_administer(granter, self.members(account.id))

    def _may_administer(self, account: Account, granter: Granter) -> None:
        if not self.may_administer(account, granter):
            raise NotAllowed(
                f"{account.login} belongs to namespaces, or has rights, that you do not have:"
                " ask somebody who administers all of them"
            )


def told(member: Member) -> str:
    """Say a membership in a few words, for the audit."""
    return " ".join([member.role, *(name for name in FLAGS if getattr(member, name))])


def _name(name: str) -> str:
    shown = name.strip()
    if len(shown) > NAME_LENGTH or not shown.isprintable():
        raise UsageError(f"a name has at most {NAME_LENGTH} printable characters")
    return shown


def _last(account: Account) -> Refused:
    return Refused(
        f"{account.login} is the last one who administers every namespace: give that to somebody"
        " else first"
    )

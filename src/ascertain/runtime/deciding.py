"""What people decide about an operation: consent, what happened, who renewed what.

Each verb is durable when it returns, and its line of the audit is in the same commit. `who` says
by which session or token a person came; without it the library is named.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec
from msgspec.structs import replace

from ascertain.core import gates, people, settle
from ascertain.core.contract import Terms
from ascertain.core.draft import Case
from ascertain.core.errors import Conflict, Refused, UnknownAction, UsageError
from ascertain.core.model import (
    Accepted,
    Approval,
    Change,
    Done,
    Evidence,
    NotDone,
    Record,
    Snapshot,
    Status,
)
from ascertain.core.people import SECOND_PERSON, Answer

from .attempts import Taken
from .audit import AuditLog, Who
from .engine import Engine
from .receipt import Receipt, receipt
from .storable import storable

NEWEST = 3  # entries among which a decision is named as what is newer


class Newer(msgspec.Struct, frozen=True, kw_only=True):
    """What somebody else, or the target, did meanwhile. `at` in µs since 1970."""

    by: str
    said: str  # code of the sentence (core.words)
    at: int
    kind: str
    state: str


class _Saying(msgspec.Struct, frozen=True):
    """A person's answer to an ask: what for the audit, by whom, in which role, to what."""

    did: str
    who: Who
    role: str | None
    digest: str | None
    note: str


class Deciding:
    """Consent and decisions over one namespace."""

    def __init__(self, engine: Engine) -> None:
        """Work on the engine of a ledger."""
        self.engine = engine
        self.log = AuditLog(engine.store, engine.clock)

    # --- approvals ---

    def approve(
        self,
        operation: str | Receipt,
        *,
        by: str,
        role: str | None = None,
        digest: str | None = None,
        note: str = "",
        who: Who | None = None,
    ) -> Receipt:
        """Consent in one role to exactly what `asked` shows (law 11).

        `digest` names what the person saw; raises ApprovalStale if it is something else now.
        """
        person = _person(by, who)

        def decide(case: Case, asked: list[Approval], role: str, digest: str) -> Change:
            return people.approve(
                case, asked, self.engine.world(), self.engine.clock.token(),
                role=role, digest=digest, by=by, consent=True, note=note,
            )  # fmt: skip

        saying = _Saying("approval.approve", person, role, digest, note)
        return self._answered(operation, decide, saying)

    def reject(
        self,
        operation: str | Receipt,
        *,
        by: str,
        role: str | None = None,
        note: str = "",
        digest: str | None = None,
        who: Who | None = None,
    ) -> Receipt:
        """Refuse consent: the operation is stopped, nothing was sent."""
        person = _person(by, who)

        def decide(case: Case, asked: list[Approval], role: str, digest: str) -> Change:
            return people.approve(
                case, asked, self.engine.world(), self.engine.clock.token(),
                role=role, digest=digest, by=by, consent=False, note=note,
            )  # fmt: skip

        saying = _Saying("approval.reject", person, role, digest, note)
        return self._answered(operation, decide, saying)

    def respond(
        self,
        operation: str | Receipt,
        *,
        by: str,
        note: str,
        role: str | None = None,
        digest: str | None = None,
        who: Who | None = None,
    ) -> Receipt:
        """Send a request back to its author with a note: nobody is asked any more, nothing was
        sent, and a corrected version is what it waits for."""
        person = _person(by, who)
        if not note.strip():
            raise UsageError("say what its author should change: note='…'")

        def decide(case: Case, asked: list[Approval], role: str, digest: str) -> Change:
            return people.respond(
                case, asked, self.engine.world(), self.engine.clock.token(),
                role=role, digest=digest, by=by, note=note,
            )  # fmt: skip

        saying = _Saying("approval.respond", person, role, digest, note)
        return self._answered(operation, decide, saying)

    def _answered(
        self,
        operation: str | Receipt,
        decide: Callable[[Case, list[Approval], str, str], Change],
        saying: _Saying,
    ) -> Receipt:
        ident, engine = ident_of(operation), self.engine

        def answer(case: Case) -> Change:
            approvals = [a for a in engine.store.approvals(ident) if a.role != SECOND_PERSON]
            mine, shown = self._role(case, approvals, saying.role, saying.digest)
            change = decide(case, approvals, mine, shown)
            line = self.line(
                saying.who, saying.did, case, change, reason=saying.note, role=mine
            )  # fmt: skip
            return replace(change, lines=(line,))

        return self._done(engine.write(self.case_of(ident), answer))

    def _role(
        self, case: Case, approvals: list[Approval], role: str | None, digest: str | None
    ) -> tuple[str, str]:
        """Return in which role a person answers, and to what."""
        open_roles = [a.role for a in approvals if a.state == "asked"]
        mine = role or (open_roles[0] if len(open_roles) == 1 else None)
        if mine is not None and mine in open_roles:
            now = [a.digest for a in approvals if a.role == mine and a.state == "asked"]
            return mine, digest or now[-1]
        if mine is None and open_roles:
            why = f"name the role that consents ({', '.join(open_roles)})"
            raise Refused(f"operation {case.operation.key}: {why}", operation=case.operation.id)
        told = self._newer(case.operation.id) if any(a.by for a in approvals) else None
        who = f"; {told.by} said {told.said!r}, and it is {told.state} now" if told else ""
        raise Refused(
            f"operation {case.operation.key}: no approval is asked of role {mine!r} now{who}",
            operation=case.operation.id,
            newer=told,
        )

    # --- decisions ---

    def decide(
        self,
        operation: str | Receipt,
        answer: str | Answer,
        *,
        by: str,
        ref: str | int | None = None,
        why: str = "",
        accept_risk: bool = False,
        seen: int | None = None,
        who: Who | None = None,
    ) -> Receipt:
        """Apply a person's decision on what happened.

        `answer`: there (with `ref`), not_there, cannot_tell, leave, duplicate_settled. `seen`
        is the stamp of what the person saw: raises Conflict, with `newer`, if something newer is
        known. Before the observation period has ended "not there" acts without proof, and needs
        `accept_risk` and `why`; on a target marked risky also a second person's same answer.
        """
        person = _person(by, who)
        ident, given = ident_of(operation), Answer(answer)
        case = self.case_of(ident)
        if seen is not None and case.status.stamp != seen:
            raise self.conflict(case)
        if accept_risk and not why:
            raise UsageError(f"operation {case.operation.key}: give the reason for the risk")
        engine = self.engine
        words: tuple[Approval, ...] = ()
        if given is Answer.NOT_THERE and not people.proven_absent(case, engine.world()):
            waiting, words = self._second_person(
                case, by, accept_risk=accept_risk, why=why, who=person
            )
            if waiting is not None:
                return waiting
        change = people.decide(
            case,
            given,
            engine.world(),
            engine.clock.token(),
            by=by,
            ref=None if ref is None else str(ref),
            why=why,
            without_proof=accept_risk,
        )
        line = self.line(person, "review.decide", case, change, reason=why, said=given.value)
        change = replace(change, approvals=words, lines=(line,))
        return self._done(self._written(case, change, ref))

    def _second_person(
        self, case: Case, by: str, *, accept_risk: bool, why: str = "", who: Who | None = None
    ) -> tuple[Receipt | None, tuple[Approval, ...]]:
        """On a risky target keep the first person's word until a second says the same.

        Returns the receipt if this was the first; else the words that the decision uses up,
        so that they allow one attempt and no other.
        """
        if not (case.terms.risky and accept_risk):
            return None, ()
        engine, ident = self.engine, case.operation.id
        now = engine.world().now
        asked = [a for a in engine.store.approvals(ident) if a.role == SECOND_PERSON]
        open_words = first_words(asked, case.status)
        if any(a.by != by for a in open_words):
            return None, tuple(
                replace(a, state="approved", decided_at=now, note=f"used with {by}")
                for a in open_words
            )
        first = Approval(
            id=f"{ident}-second-{len(asked)}",
            operation=ident,
            namespace=engine.namespace,
            role=SECOND_PERSON,
            digest=people.same_question(case.status),
            asked_at=now,
            by=by,
        )
        change = people.first_word(case, engine.world(), engine.clock.token(), by=by, why=why)
        line = self.line(
            who or _person(by, None), "review.first_word", case, change, reason=why
        )  # fmt: skip
        # Not decided again on newer facts: another first word may have come between.
        return self._done(
            self._written(case, replace(change, approvals=(first,), lines=(line,)), None)
        ), ()

    def _written(self, case: Case, change: Change, ref: str | int | None) -> Case:
        """Write a decision on what was seen, once; raises Conflict where it is not that now."""
        [written] = self.engine.store.write([change])
        if written.taken_by is not None:
            raise Conflict(
                f"operation {case.operation.key}: {ref} already belongs to operation"
                f" {written.taken_by}; look at that one",
                operation=case.operation.id,
                other=written.taken_by,
            )
        if not written.applied:
            raise self.conflict(case)
        return replace(case, status=change.status)

    def renew(self, operation: str | Receipt, *, by: str, who: Who | None = None) -> Receipt:
        """Say that the authorization was renewed: the operation goes on (laws 7, 13)."""
        engine, person = self.engine, _person(by, who)

        def decide(case: Case) -> Change:
            change = people.renew(case, engine.world(), engine.clock.token(), by)
            return replace(change, lines=(self.line(person, "operation.renew", case, change),))

        return self._done(engine.write(self.case_of(ident_of(operation)), decide))

    def report(
        self,
        operation: str | Receipt,
        finding: Done | Accepted | NotDone,
        *,
        by: str,
        report: str,
        who: Who | None = None,
    ) -> Receipt:
        """Record what the target itself says about an operation, e.g. its webhook (law 8).

        `report` is the id of that report: the same one twice changes nothing. It is no decision
        of a person, so it is in the audit only where `who` is given.
        """
        engine, ident = self.engine, ident_of(operation)
        if any(e.id == report for e in engine.store.evidence(ident)):
            return receipt(self.case_of(ident), engine.world())
        case, kept = self.case_of(ident), storable(finding)

        def decide(case: Case) -> Change:
            change = settle.outside(
                case, kept, engine.world(), engine.clock.token(), by=by, report=report
            )
            if who is None:
                return change
            return replace(change, lines=(self.line(who, "operation.report", case, change),))

        try:
            after = engine.write(case, decide)
        except Taken as taken:
            raise Conflict(
                f"operation {case.operation.key}: the reported reference already belongs to"
                f" operation {taken.other}",
                operation=ident,
                other=taken.other,
            ) from None
        return self._done(after)

    # --- shared ---

    def line(
        self, who: Who, did: str, case: Case, change: Change, *, reason: str = "", role: str = "",
        said: str = "",
    ) -> tuple[str, Record]:  # fmt: skip
        """Return the audit line of a change, with where the operation stood before and after."""
        after = in_short(change.status)
        return self.log.line(
            replace(who, role=role or who.role),
            self.engine.namespace,
            did,
            subject=case.operation.id,
            reason=reason,
            before=in_short(case.status),
            after=f"{said}: {after}" if said else after,
        )

    def conflict(self, case: Case) -> Conflict:
        """Return the error of a decision on what is not so any more: who did what, and when."""
        ident = case.operation.id
        newer = self._newer(ident)
        told = "something newer is known"
        if newer is not None:
            told += f": {newer.by} said {newer.said!r}, and it is {newer.state} now"
        return Conflict(
            f"operation {case.operation.key}: {told}; look again", operation=ident, newer=newer
        )

    def _newer(self, ident: str) -> Newer | None:
        last = self.engine.store.evidence(ident)[-NEWEST:]
        if not last:
            return None
        status = self.engine.snapshot(ident).status
        decided = [e for e in last if e.kind in ("decision", "approval")]
        one: Evidence = (decided or last)[-1]
        return Newer(by=one.by, said=one.said, at=one.at, kind=one.kind, state=in_short(status))

    def case_of(self, ident: str) -> Case:
        """Read an operation with everything that a decision about it needs."""
        snapshot = self.engine.snapshot(ident)
        return self.engine.case(snapshot, self.terms_of(snapshot))

    def terms_of(self, snapshot: Snapshot) -> Terms:
        """Return the terms of an action, or the strictest ones where its code is not here: a
        person may always decide, but nothing counts as proof then, and it counts as risky."""
        try:
            return self.engine.definition(snapshot.operation.action).terms
        except UnknownAction:
            return Terms(owners={"": snapshot.status.owner or "nobody"}, hard=False, risky=True)

    def _receipt(self, snapshot: Snapshot) -> Receipt:
        if snapshot.status.said in gates.CODES and self.engine.gates.stale:
            self.engine.gates.refresh()  # who paused it, and why
        case = Case(
            operation=snapshot.operation, status=snapshot.status, terms=self.terms_of(snapshot)
        )
        return receipt(case, self.engine.world())

    def _done(self, case: Case) -> Receipt:
        return receipt(case, self.engine.world())


def first_words(approvals: list[Approval], status: Status) -> list[Approval]:
    """Return the first of two people's words that still count: of the question as it is now."""
    asked = people.same_question(status)
    return [
        a for a in approvals if a.role == SECOND_PERSON and a.state == "asked" and a.digest == asked
    ]


def in_short(status: Status) -> str:
    """Return where an operation stands, for a line of the audit."""
    reason = f"/{status.reason}" if status.reason else ""
    waits = f", waits on {status.waiting_on}" if status.waiting_on else ""
    ref = f" {status.ref}" if status.ref else ""
    return f"{status.state}{reason}{ref}{waits}"


def ident_of(operation: str | Receipt) -> str:
    """Return the id of an operation that is named by it or by a receipt."""
    return operation if isinstance(operation, str) else operation.id


def _person(by: str, who: Who | None) -> Who:
    if not by or not by.strip():
        raise UsageError("name the person who decides: by='anna'")
    return who or Who(actor=by, via="library")


__all__ = ["Deciding", "Newer", "first_words", "ident_of", "in_short"]

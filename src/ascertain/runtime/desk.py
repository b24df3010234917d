"""The verbs of people and of reading: no code of an action runs here.

Shared by both ledgers. Every verb that writes is durable when it returns.
"""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec.structs import replace

from ascertain.core import claims, people, settle, words
from ascertain.core.contract import Terms
from ascertain.core.draft import Case
from ascertain.core.errors import Conflict, Refused, UnknownAction, UsageError
from ascertain.core.model import Accepted, Approval, Done, NotDone, Reason, Review, Snapshot
from ascertain.core.people import Answer
from ascertain.store.base import Filter

from .alarms import Alarm, alarms
from .attempts import Taken
from .engine import Engine
from .receipt import Receipt, receipt
from .storable import storable


class Entry(msgspec.Struct, frozen=True, kw_only=True):
    """One entry of an operation's history: when, what was seen, by whom, and what it shows."""

    at: int
    kind: str
    shows: str
    attempt: int | None
    by: str
    says: dict[str, str]
    data: dict[str, Any]


class Asked(msgspec.Struct, frozen=True, kw_only=True):
    """A consent that is asked for, with exactly what would be sent or done."""

    operation: str
    action: str
    key: str
    title: str
    role: str
    digest: str
    state: str
    asked_at: int
    by: str
    request: dict[str, Any] | None
    input: Any


class Desk:
    """Reading, approving and deciding over one namespace."""

    def __init__(self, engine: Engine) -> None:
        """Work on the engine of a ledger."""
        self.engine = engine

    # --- reading ---

    def get(self, operation: str | Receipt) -> Receipt:
        """Return the receipt of an operation by id; raises UnknownOperation."""
        return self._receipt(self.engine.snapshot(_id(operation)))

    def find(self, *, limit: int = 100, after: str = "", **what: Any) -> list[Receipt]:
        """Find operations by action, key, run, event, ref, states, waiting_on, text.

        Ordered by time; `after` is the id of the last one of the page before.
        """
        asked = Filter(namespace=self.engine.namespace, **what)
        return [self._receipt(s) for s in self.engine.store.find(asked, after, limit)]

    def history(self, operation: str | Receipt) -> list[Entry]:
        """Return the evidence of an operation in order, each entry with its sentence."""
        ident = self.engine.snapshot(_id(operation)).operation.id
        return [
            Entry(
                at=e.at,
                kind=e.kind,
                shows=e.shows,
                attempt=e.attempt,
                by=e.by,
                says={lang: _sentence(e.kind, e.said, lang) for lang in words.LANGUAGES},
                data=msgspec.json.decode(e.data),
            )
            for e in self.engine.store.evidence(ident)
        ]

    def references(self, operation: str | Receipt) -> list[str]:
        """Return every effect reference of an operation; several where it was duplicated."""
        ident = self.engine.snapshot(_id(operation)).operation.id  # of this namespace only
        found = self.engine.store.references(ident)
        return [r.reference for r in found]

    def reviews(self, operation: str | Receipt | None = None) -> list[Review]:
        """Return what waits for a person's decision, oldest first."""
        ident = None if operation is None else _id(operation)
        return self.engine.store.reviews(self.engine.namespace, ident)

    def counts(self) -> dict[str, int]:
        """Count what is not settled, by state, and the open reviews."""
        return self.engine.store.counts(self.engine.namespace)

    def alarms(self) -> list[Alarm]:
        """Return what is missing, and whom an approval or a review waits for too long."""
        return alarms(self.engine)

    # --- approvals ---

    def asked(self, operation: str | Receipt) -> list[Asked]:
        """Return the consents asked for an operation, with exactly what was frozen."""
        snapshot = self.engine.snapshot(_id(operation))
        frozen = self.engine.store.requests(snapshot.operation.id)
        shown = msgspec.json.decode(frozen[-1].request) if frozen else None
        stored = snapshot.operation.input
        return [
            Asked(
                operation=a.operation,
                action=snapshot.operation.action,
                key=snapshot.operation.key,
                title=snapshot.operation.title,
                role=a.role,
                digest=a.digest,
                state=a.state,
                asked_at=a.asked_at,
                by=a.by,
                request=shown,
                input=msgspec.json.decode(stored) if stored else None,
            )
            for a in self.engine.store.approvals(snapshot.operation.id)
        ]

    def approve(
        self,
        operation: str | Receipt,
        *,
        by: str,
        role: str | None = None,
        digest: str | None = None,
        note: str = "",
    ) -> Receipt:
        """Consent in one role to exactly what `asked` shows (law 11).

        `digest` names what the person saw; raises ApprovalStale if it is something else now.
        """
        return self._consent(operation, by, role, digest, note, consent=True)

    def reject(
        self, operation: str | Receipt, *, by: str, role: str | None = None, note: str = ""
    ) -> Receipt:
        """Refuse consent: the operation is stopped, nothing was sent."""
        return self._consent(operation, by, role, None, note, consent=False)

    def _consent(
        self,
        operation: str | Receipt,
        by: str,
        role: str | None,
        digest: str | None,
        note: str,
        *,
        consent: bool,
    ) -> Receipt:
        _person(by)
        ident = _id(operation)
        engine = self.engine

        def decide(case: Case) -> Any:
            approvals = engine.store.approvals(ident)
            open_roles = [a.role for a in approvals if a.state == "asked"]
            mine = role or (open_roles[0] if len(open_roles) == 1 else None)
            if mine is None:
                raise Refused(
                    f"operation {case.operation.key}: name the role that consents"
                    f" ({', '.join(open_roles) or 'none is asked now'})",
                    operation=ident,
                )
            now = [a.digest for a in approvals if a.role == mine and a.state == "asked"]
            return people.approve(
                case,
                approvals,
                engine.world(),
                engine.clock.token(),
                role=mine,
                digest=digest or (now[-1] if now else ""),
                by=by,
                consent=consent,
                note=note,
            )

        return self._done(engine.write(self.case_of(ident), decide))

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
    ) -> Receipt:
        """Apply a person's decision on what happened.

        `answer`: there (with `ref`), not_there, cannot_tell, leave, duplicate_settled. `seen`
        is the stamp of what the person saw: raises Conflict if something newer is known. Before
        the observation period has ended "not there" acts without proof, and needs
        `accept_risk` and `why`; on a target marked risky also a second person's same answer.
        """
        _person(by)
        ident, given = _id(operation), Answer(answer)
        case = self.case_of(ident)
        if seen is not None and case.status.stamp != seen:
            raise Conflict(
                f"operation {case.operation.key}: something newer is known; look again",
                operation=ident,
            )
        if accept_risk and not why:
            raise UsageError(f"operation {case.operation.key}: give the reason for the risk")
        engine = self.engine
        words: tuple[Approval, ...] = ()
        if given is Answer.NOT_THERE and not people.proven_absent(case, engine.world()):
            waiting, words = self._second_person(case, by, accept_risk=accept_risk)
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
        change = replace(change, approvals=words)
        [written] = engine.store.write([change])
        if written.taken_by is not None:
            raise Conflict(
                f"operation {case.operation.key}: {ref} already belongs to operation"
                f" {written.taken_by}; look at that one",
                operation=ident,
                other=written.taken_by,
            )
        if not written.applied:
            raise Conflict(
                f"operation {case.operation.key}: somebody else, or the target, was first; look"
                " again",
                operation=ident,
            )
        return self._done(replace(case, status=change.status))

    def _second_person(
        self, case: Case, by: str, *, accept_risk: bool
    ) -> tuple[Receipt | None, tuple[Approval, ...]]:
        """On a risky target keep the first person's word until a second says the same.

        Returns the receipt if this was the first; else the words that the decision uses up,
        so that they allow one attempt and no other.
        """
        if not (case.terms.risky and accept_risk):
            return None, ()
        engine, ident = self.engine, case.operation.id
        now = engine.world().now
        asked = [a for a in engine.store.approvals(ident) if a.role == "second_person"]
        open_words = [a for a in asked if a.state == "asked"]
        if any(a.by != by for a in open_words):
            return None, tuple(
                replace(a, state="approved", decided_at=now, note=f"used with {by}")
                for a in open_words
            )
        first = Approval(
            id=f"{ident}-second-{len(asked)}",
            operation=ident,
            namespace=engine.namespace,
            role="second_person",
            digest="",
            asked_at=now,
            by=by,
        )

        def keep(c: Case) -> Any:
            change = people.first_word(c, engine.world(), engine.clock.token(), by=by)
            return replace(change, approvals=(first,))

        return self._done(engine.write(case, keep)), ()

    def renew(self, operation: str | Receipt, *, by: str) -> Receipt:
        """Say that the authorization was renewed: the operation goes on (laws 7, 13)."""
        engine = self.engine
        return self._done(
            engine.write(
                self.case_of(_id(operation)),
                lambda c: people.renew(c, engine.world(), engine.clock.token(), by),
            )
        )

    def report(
        self,
        operation: str | Receipt,
        finding: Done | Accepted | NotDone,
        *,
        by: str,
        report: str,
    ) -> Receipt:
        """Record what the target itself says about an operation, e.g. its webhook (law 8).

        `report` is the id of that report: the same one twice changes nothing.
        """
        engine, ident = self.engine, _id(operation)
        if any(e.id == report for e in engine.store.evidence(ident)):
            return self.get(ident)
        case, kept = self.case_of(ident), storable(finding)
        try:
            after = engine.write(
                case,
                lambda c: settle.outside(
                    c, kept, engine.world(), engine.clock.token(), by=by, report=report
                ),
            )
        except Taken as taken:
            raise Conflict(
                f"operation {case.operation.key}: the reported reference already belongs to"
                f" operation {taken.other}",
                operation=ident,
                other=taken.other,
            ) from None
        return self._done(after)

    # --- the store's lives ---

    def restored(self, gap_from: int, note: str = "") -> int:
        """Start a new life of the store after a restore; returns how many became unknown.

        Of every namespace. `gap_from` in µs since 1970: writes after it may have been lost
        (law 21). Every open operation may have been acted on since; keys first seen from now on
        for a week too.
        """
        engine = self.engine
        engine.lives.begin(gap_from, note)
        everything = (Filter(unsettled=True), Filter(states=["not_done"], unsettled=False))
        return sum(self._all_unknown(what, gap_from) for what in everything)

    def _all_unknown(self, what: Filter, gap_from: int) -> int:
        engine, count, after = self.engine, 0, ""
        while page := engine.store.find(what, after, 500):
            for snapshot in page:
                if snapshot.status.reason is not Reason.SUPERSEDED:
                    engine.write(
                        engine.case(snapshot, self._terms(snapshot)),
                        lambda c: claims.restored(
                            c, engine.world(), engine.clock.token(), gap_from
                        ),
                    )
                    count += 1
            after = page[-1].operation.id
        return count

    def prune(self, older_than: float, limit: int = 10_000) -> int:
        """Turn settled operations untouched for that many seconds into tombstones (law 19).

        Key, fingerprint, state and references stay. Returns how many.
        """
        before = self.engine.store.now() - int(older_than * 1_000_000)
        return self.engine.store.prune(before, limit)

    # --- shared ---

    def case_of(self, ident: str) -> Case:
        """Read an operation with everything that a decision about it needs."""
        snapshot = self.engine.snapshot(ident)
        return self.engine.case(snapshot, self._terms(snapshot))

    def _terms(self, snapshot: Snapshot) -> Terms:
        """Return the terms of an action, or the strictest ones where its code is not here: a
        person may always decide, but nothing counts as proof then, and it counts as risky."""
        try:
            return self.engine.definition(snapshot.operation.action).terms
        except UnknownAction:
            return Terms(owners={"": snapshot.status.owner or "nobody"}, hard=False, risky=True)

    def _receipt(self, snapshot: Snapshot) -> Receipt:
        case = Case(
            operation=snapshot.operation, status=snapshot.status, terms=self._terms(snapshot)
        )
        return receipt(case, self.engine.world())

    def _done(self, case: Case) -> Receipt:
        return receipt(case, self.engine.world())


def _id(operation: str | Receipt) -> str:
    return operation if isinstance(operation, str) else operation.id


def _person(by: str) -> None:
    if not by or not by.strip():
        raise UsageError("name the person who decides: by='anna'")


def _sentence(kind: str, said: str, lang: str) -> str:
    for code in (said, kind):
        if code in words.SENTENCES:
            return words.say(code, lang)
    return said or kind

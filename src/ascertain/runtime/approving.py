"""Approvals over one namespace: what is asked, exactly what would be sent, and a new version.

Every verb that writes is durable when it returns, with its line of the audit in the same commit.
"""

from __future__ import annotations

import hashlib
import itertools
import re
from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec.structs import replace

from ascertain.core import people
from ascertain.core.contract import Terms
from ascertain.core.diff import FieldDiff, fields_diff
from ascertain.core.draft import Case
from ascertain.core.errors import Refused
from ascertain.core.machine import PROVEN
from ascertain.core.model import (
    Approval,
    Change,
    FrozenRequest,
    Operation,
    Reason,
    Record,
    Request,
    Snapshot,
    State,
)
from ascertain.core.people import SECOND_PERSON

from . import freezing
from .action import Definition, Intent
from .audit import Who
from .beginning import has_successor, new
from .deciding import Deciding
from .receipt import Receipt, receipt
from .ticket import Options

SHOWN_BYTES = 256 * 1024  # of a body that is shown; its hash is of all of it
VERSIONS = 50  # versions before it that are looked at, and new keys that are tried
STATES = ("asked", "approved", "rejected", "responded", "withdrawn")
_VERSION = re.compile(r"#v\d+$")


class Ask(Record, frozen=True, kw_only=True):
    """A consent that is or was asked for, with the names of its operation."""

    id: str
    operation: str
    namespace: str
    role: str
    digest: str
    asked_at: int
    state: str
    decided_at: int | None
    by: str
    note: str
    action: str
    key: str
    title: str


class Body(msgspec.Struct, frozen=True, kw_only=True):
    """The body of a frozen request: its text where it is text, and what it is for sure.

    `kind`: empty, json, text, binary, or large (kept in parts). `cut`: the text goes on.
    """

    kind: str
    size: int
    sha256: str
    text: str | None = None
    cut: bool = False


class Frozen(msgspec.Struct, frozen=True, kw_only=True):
    """Exactly what would be sent; credentials, Date and trace headers lie outside (law 11)."""

    method: str
    url: str
    headers: list[tuple[str, str]]
    body: Body
    digest: str


class Full(msgspec.Struct, frozen=True, kw_only=True):
    """All about one ask. `exact`: what is shown is what the consent would bind.

    `changes` are word by word against `approved`, the last version that this role approved.
    """

    ask: Ask
    exact: bool
    request: Frozen | None
    input: Any
    asks: list[Approval]
    stamp: int
    why: str
    supersedes: str | None
    approved: str | None
    changes: list[FieldDiff]


class Approving:
    """The approvals of one namespace."""

    def __init__(self, desk: Deciding) -> None:
        """Work on a ledger."""
        self.desk, self.engine = desk, desk.engine
        self.store, self.namespace = self.engine.store, self.engine.namespace

    def find(
        self, *, state: str = "asked", role: str | None = None, operation: str | None = None,
        after: str = "", limit: int = 100,
    ) -> list[Ask]:  # fmt: skip
        """List asks of a state, oldest operation first, after the one of that id."""
        query = "approvals_asked" if state == "asked" else "approvals_answered"
        more = {} if state == "asked" else {"state": state}
        return self.store.ask(
            Ask, query, namespace=self.namespace, role=role, operation=operation, after=after,
            limit=limit, **more,
        )  # fmt: skip

    def ask(self, ident: str) -> Ask | None:
        """Return an ask by its id, or None."""
        found = self.store.ask(Ask, "approval_here", id=ident, namespace=self.namespace)
        return found[0] if found else None

    def full(self, ask: Ask) -> Full:
        """Return all about an ask, with exactly what was frozen."""
        snapshot = self.engine.snapshot(ask.operation)
        operation = snapshot.operation
        frozen, exact = self._bound(snapshot, ask.digest)
        asks = [a for a in self.store.approvals(operation.id) if a.role != SECOND_PERSON]
        before = self._last_approved(operation, ask.role)
        return Full(
            ask=ask,
            exact=exact,
            request=None if frozen is None else shown_request(frozen),
            input=decoded(operation.input),
            asks=asks,
            stamp=snapshot.status.stamp,
            why=operation.why,
            supersedes=operation.supersedes,
            approved=before.id if before else None,
            changes=self._changes(before, operation, frozen) if before else [],
        )

    def _bound(self, snapshot: Snapshot, digest: str) -> tuple[FrozenRequest | None, bool]:
        """Return the frozen request that a digest is of, and whether it is of what is known."""
        operation = snapshot.operation
        scopes = {operation.scope, self.desk.terms_of(snapshot).scope}
        every: list[FrozenRequest | None] = [*reversed(self.store.requests(operation.id))]
        for frozen in every or [None]:
            for scope in scopes:
                if freezing.approval_digest(operation, Terms(scope=scope), frozen) == digest:
                    return frozen, True
        return (every[0] if every else None), False

    def _last_approved(self, operation: Operation, role: str) -> Operation | None:
        """Return the newest version before this one that the same role approved."""
        ident = operation.supersedes
        for _ in range(VERSIONS):
            if ident is None:
                return None
            older = self.engine.snapshot(ident).operation
            asked = self.store.approvals(older.id)
            if any(a.role == role and a.state == "approved" for a in asked):
                return older
            ident = older.supersedes
        return None

    def _changes(
        self, before: Operation, after: Operation, frozen: FrozenRequest | None
    ) -> list[FieldDiff]:
        if before.input is not None and after.input is not None:
            return fields_diff(decoded(before.input), decoded(after.input))
        old = self.store.requests(before.id)
        if frozen is None or not old:
            return []
        texts = [shown_request(f).body.text or "" for f in (old[-1], frozen)]
        return fields_diff({"body": texts[0]}, {"body": texts[1]})

    # --- a new version ---

    def edit(
        self, ask: Ask, given: Mapping[str, Any], *, who: Who, why: str, title: str = ""
    ) -> Receipt:
        """Make a new version of an operation that waits for this ask, with other input; it needs
        an approval of its own, and the old one is never sent (laws 10, 11).

        Both are one commit. `given` replaces fields of the input. Raises InputRefused, KeyRefused,
        Refused where nothing changes or the operation has gone another way, Conflict.
        """
        engine, case = self.engine, self.desk.case_of(ask.operation)
        d = engine.definition(ask.action)
        if engine.lives.stale:
            engine.lives.refresh()
        intent = self._intent(d, case.operation, given)
        closing = self._closing(case, ask, who, why)
        named = case.operation.title != case.operation.key
        for key in self._keys(d, case.operation, intent):
            options = Options(
                run=case.operation.run,
                event=case.operation.event,
                title=title or (case.operation.title if named else ""),
                supersedes=case.operation.id,
                repeats=case.operation.repeats,
                reason=why,
                source=f"edit:{who.actor}"[:200],
                key=key,
            )
            change, made = new(engine, d, intent, options, engine.world())
            line = self.desk.line(
                replace(who, role=ask.role), "approval.edit", case, closing or change,
                reason=why, said=f"version {made.operation.id}",
            )  # fmt: skip
            also = () if closing is None else (closing,)
            whole = replace(change, also=(*change.also, *also), lines=(*change.lines, line))
            [written] = self.store.write([whole])
            if written.applied:
                return receipt(made, engine.world())
            if written.taken_by is not None:
                raise has_successor(intent, options)
            if written.current is None:
                raise self.desk.conflict(case)
        raise Refused(
            f"operation {case.operation.key}: it has more than {VERSIONS} versions under this"
            " key; submit it under a key of its own",
            operation=case.operation.id,
        )

    def _intent(self, d: Definition, old: Operation, given: Mapping[str, Any]) -> Intent:
        known = decoded(old.input) if d.declared.store_input == "all" else None
        values = {**known, **given} if isinstance(known, dict) else dict(given)
        intent = d.intent(values, self.engine.store.now())
        if (intent.fingerprint, intent.content_hash) == (old.fingerprint, old.content_hash):
            raise Refused(
                f"operation {old.key}: nothing is changed; approve it as it is, or change it",
                operation=old.id,
            )
        return intent

    def _closing(self, case: Case, ask: Ask, who: Who, why: str) -> Change | None:
        """Return the change that ends the ask for the old version; None where it has ended."""
        status = case.status
        if status.state is State.NOT_DONE and status.reason in PROVEN - {Reason.SUPERSEDED}:
            return None
        approvals = [a for a in self.store.approvals(ask.operation) if a.role != SECOND_PERSON]
        return people.respond(
            case, approvals, self.engine.world(), self.engine.clock.token(),
            role=ask.role, digest=ask.digest, by=who.actor, note=why, said="edited",
        )  # fmt: skip

    def _keys(self, d: Definition, old: Operation, intent: Intent) -> list[str]:
        """Return keys for the new version, to be tried in order: the one of its own input where
        that is another, else the old one with a number."""
        base = _VERSION.sub("", old.key)
        numbered = (f"{base}#v{n}" for n in itertools.count(2))
        own = [] if intent.key in (old.key, base) else [intent.key]
        keys = [*own, *itertools.islice(numbered, VERSIONS)]
        known = self.store.by_keys(self.namespace, [(d.name, k) for k in keys])
        return [k for k, found in zip(keys, known, strict=True) if found is None]


def shown_request(frozen: FrozenRequest) -> Frozen:
    """Return a frozen request as a person is shown it."""
    request = freezing.request_of(frozen)
    assert request is not None
    return Frozen(
        method=request.method,
        url=request.url,
        headers=list(request.headers),
        body=_body(request),
        digest=frozen.digest,
    )


def _body(request: Request) -> Body:
    if request.large is not None:
        return Body(kind="large", size=request.large.size, sha256=request.large.sha256)
    body = request.body
    text = _text(body[:SHOWN_BYTES])
    declared = next((v for n, v in request.headers if n.lower() == "content-type"), "")
    kind = "json" if "json" in declared else "text"
    if not body or text is None:
        kind = "binary" if body else "empty"
    return Body(
        kind=kind,
        size=len(body),
        sha256=hashlib.sha256(body).hexdigest(),
        text=text or None,
        cut=text is not None and len(body) > SHOWN_BYTES,
    )


def _text(body: bytes) -> str | None:
    """Return bytes as text, or None where they are none; the last character may be cut off."""
    for end in range(4):
        try:
            text = body[: len(body) - end].decode("utf-8")
        except UnicodeDecodeError:
            continue
        return None if "\x00" in text else text
    return None


def decoded(stored: str | None) -> Any:
    """Return a stored input, None where only its hash is kept."""
    return None if stored is None else msgspec.json.decode(stored)

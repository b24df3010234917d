"""Changes to write into a store, the same in every run, and a story that has one of everything."""

from __future__ import annotations

import itertools
from typing import Any

import msgspec

from ascertain.core.model import (
    SECOND,
    Approval,
    Attempt,
    Change,
    Control,
    Evidence,
    Expected,
    FrozenRequest,
    Incarnation,
    Kind,
    Operation,
    Outcome,
    Reason,
    Reference,
    Review,
    Run,
    State,
    Status,
    WaitingOn,
)
from ascertain.store.base import Store

NOW = 1_700_000_000 * SECOND
NAMESPACE = "default"
ACTION = "cms.create_draft"
CONTRACT = "wordpress.posts.create"
ODD = "100 % 'x' \"y\" \\ :name %s {} 查实 \u2028"  # what a careless quoting would spoil
# A status that nobody has to act on.
CLOSED = {"token": None, "kind": None, "due_at": None, "waiting_on": WaitingOn.NOTHING}


class Maker:
    """Makes changes with ids, tokens and stamps that are the same in every run."""

    def __init__(self, first: int = 1) -> None:
        """Count from `first`, so that two makers for one store do not meet."""
        self._numbers = itertools.count(first)

    def number(self) -> int:
        """Return a new number; large, as the random ones are."""
        return 2**62 + next(self._numbers)

    def claim(self, key: str, **given: Any) -> Change:
        """Make a new operation with its first attempt; `given` are fields of the operation."""
        number, token = self.number(), self.number()
        fields: dict[str, Any] = {
            "id": f"{number:020d}",
            "namespace": NAMESPACE,
            "action": ACTION,
            "key": key,
            "fingerprint": "f" * 64,
            "input": '{"body":"…"}',
            "contract": CONTRACT,
            "created_at": NOW,
        }
        operation = Operation(**(fields | given))
        status = Status(
            operation=operation.id,
            namespace=operation.namespace,
            action=operation.action,
            state=State.RUNNING,
            waiting_on=WaitingOn.CLOCK,
            due_at=NOW + 60 * SECOND,
            stamp=self.number(),
            token=token,
            kind=Kind.EXECUTE,
            attempts=1,
            target_key="k" * 26,
            first_claim_at=NOW,
            last_deadline=NOW + 30 * SECOND,
            owner="content",
            started_at=NOW,
            updated_at=NOW,
        )
        attempt = Attempt(
            token=token,
            operation=operation.id,
            kind=Kind.EXECUTE,
            epoch=1,
            started_at=NOW,
            deadline=NOW + 30 * SECOND,
            worker="w1",
        )
        return Change(status=status, guard=None, operation=operation, attempt=attempt)

    def entry(self, status: Status, kind: str = "finding", shows: str = "") -> Evidence:
        """Make the next evidence entry of a status, which must count it."""
        number = self.number()
        return Evidence(
            operation=status.operation,
            seq=status.entries,
            id=f"e{number}",
            at=status.updated_at,
            kind=kind,
            shows=shows,
            by="w1",
        )

    def next(self, before: Status, **given: Any) -> Change:
        """Make a change of a status, guarded by its stamp, with one evidence entry."""
        counted = {
            "stamp": self.number(),
            "entries": before.entries + 1,
            "updated_at": before.updated_at + 1,
        }
        status = msgspec.structs.replace(before, **(counted | given))
        shows = str(status.state)
        return Change(
            status=status, guard=before.stamp, evidence=(self.entry(status, shows=shows),)
        )

    def done(self, before: Status, ref: str, **given: Any) -> Change:
        """Make the change that closes an attempt as done."""
        fields = CLOSED | {"state": State.DONE, "ref": ref, "confirmed_by": "answer"} | given
        change = self.next(before, **fields)
        ends = () if before.token is None else ((before.token, Outcome.DONE),)
        mine = Reference(contract=CONTRACT, reference=ref, operation=before.operation, at=NOW)
        return msgspec.structs.replace(change, ends=ends, references=(mine,))

    def unknown(self, before: Status, outcome: Outcome = Outcome.EXPIRED) -> Change:
        """Make the change that closes an attempt without knowing what it did."""
        change = self.next(before, state=State.UNKNOWN, token=None, kind=None)
        assert before.token is not None
        return msgspec.structs.replace(change, ends=((before.token, outcome),))

    def stopped(self, before: Status, reason: Reason) -> Change:
        """Make the change that closes an operation as not done."""
        return self.next(before, **CLOSED, state=State.NOT_DONE, reason=reason)

    def review(self, status: Status, road: str = "unknown") -> Review:
        """Make an open review of an operation."""
        return Review(
            id=f"r{self.number()}",
            operation=status.operation,
            namespace=status.namespace,
            road=road,
            owner="content",
            opened_at=NOW,
        )


def write(store: Store, *changes: Change) -> list[bool]:
    """Write changes together and return which were applied."""
    return [written.applied for written in store.write(list(changes))]


def state(store: Store, change: Change) -> Status:
    """Return what the store holds of a change's operation."""
    return store.snapshots([change.status.operation])[change.status.operation].status


def story(store: Store, maker: Maker | None = None) -> None:
    """Write one of everything, singly and in groups."""
    make = maker or Maker()
    one, two, three = (make.claim(f"story/{n}", title=ODD, run="run-1") for n in (1, 2, 3))
    frozen = FrozenRequest(operation=one.status.operation, epoch=1, digest="d", request=b'{"a":1}')
    assert write(store, msgspec.structs.replace(one, request=frozen), two, three) == [True] * 3
    done, unknown = make.done(one.status, "17"), make.unknown(two.status)
    control = Control(
        namespace=NAMESPACE,
        action=ACTION,
        scope="",
        operation=one.status.operation,
        target_key="k",
        ref="17",
    )
    done = msgspec.structs.replace(done, control=control)
    unknown = msgspec.structs.replace(unknown, reviews=(make.review(two.status),))
    assert write(store, done, unknown) == [True, True]
    asked = Approval(
        id="a1",
        operation=three.status.operation,
        namespace=NAMESPACE,
        role="editor",
        digest="d",
        asked_at=NOW,
    )
    waiting = make.unknown(three.status, Outcome.UNKNOWN)
    assert write(store, msgspec.structs.replace(waiting, approvals=(asked,))) == [True]
    successor = make.claim("story/4", supersedes=three.status.operation, why=ODD)
    closed = make.stopped(waiting.status, Reason.SUPERSEDED)
    assert write(store, msgspec.structs.replace(successor, also=(closed,))) == [True]
    run = Run(id="run-1", namespace=NAMESPACE, name="autumn", opened_at=NOW)
    wanted = Expected(run="run-1", namespace=NAMESPACE, action=ACTION, key="story/9")
    store.open_run(run, [wanted])
    store.incarnations(Incarnation(number=1, began_at=NOW, note=ODD))
    store.meta("note", ODD)


def dump(store: Store) -> list[tuple[str, dict[str, Any]]]:
    """Return all rows of a store, except its secret."""
    return [
        (table, row)
        for table, row in store.rows()
        if (table, row.get("name")) != ("meta", "secret")
    ]

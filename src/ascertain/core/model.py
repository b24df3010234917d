"""The words of the project as frozen records; nothing here decides anything.

Times are integer microseconds since 1970 UTC on the store's clock; durations are integer
microseconds. Identifiers are text, tokens and stamps are random 63-bit integers.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Any

import msgspec

SECOND = 1_000_000  # µs
FOREVER = 2**62  # a window that never ends, larger than any time


class State(StrEnum):
    """What is known about the effect."""

    PENDING = "pending"  # proven not to have happened so far
    RUNNING = "running"  # one attempt holds the lease and may be acting
    UNKNOWN = "unknown"  # it may or may not have happened, or may still happen
    ACCEPTED = "accepted"  # the target took it over; the final result is not confirmed
    DONE = "done"  # it happened, and the effect reference is stored
    NOT_DONE = "not_done"  # not tried again by itself; see Reason


class WaitingOn(StrEnum):
    """Who or what is next."""

    NOTHING = ""
    CLOCK = "clock"
    APPROVAL = "approval"
    REVIEW = "review"
    INPUT = "input"
    AUTHORIZATION = "authorization"
    TARGET = "target"


class Reason(StrEnum):
    """Why an operation is `not_done`."""

    NONE = ""
    INVALID = "invalid"
    UNAUTHORIZED = "unauthorized"
    REJECTED = "rejected"
    GAVE_UP = "gave_up"
    SUPERSEDED = "superseded"
    FAILED_AFTER_ACCEPTANCE = "failed_after_acceptance"
    LEFT = "left"  # a person gave up on it; nothing is proven


class Kind(StrEnum):
    """What an attempt does."""

    EXECUTE = "execute"
    REPLAY = "replay"
    LOOK_UP = "look_up"


class Outcome(StrEnum):
    """How an attempt ended; an attempt without one may still be acting."""

    DONE = "done"
    ACCEPTED = "accepted"
    NOT_DONE = "not_done"  # proven: this attempt had and will have no effect
    UNKNOWN = "unknown"
    EXPIRED = "expired"  # its lease ran out before it reported: as unknown
    RELEASED = "released"  # claimed, never started: proven not sent
    LOOKED = "looked"  # a look-up, whatever it found


class NotDoneKind(StrEnum):
    """Which road a proven refusal takes (law 13)."""

    INVALID = "invalid"
    UNAUTHORIZED = "unauthorized"
    THROTTLED = "throttled"
    TRANSIENT = "transient"
    REJECTED = "rejected"


class Record(msgspec.Struct, frozen=True, kw_only=True):
    """Base of all stored records. Those that every operation writes leave their defaults out of
    JSON (`omit_defaults`), because PostgreSQL reads a row faster than its names and values."""


# --- findings: what an attempt established -------------------------------------------------


class Done(msgspec.Struct, frozen=True, tag="done"):
    """It happened. `ref` is the target's own id of what was made, `result` any JSON value."""

    ref: str | int | None = None
    result: Any = None
    evidence: dict[str, Any] = {}


class Accepted(msgspec.Struct, frozen=True, tag="accepted"):
    """The target took it over; the final result is not confirmed."""

    ref: str | int | None = None
    result: Any = None
    evidence: dict[str, Any] = {}


class NotDone(msgspec.Struct, frozen=True, tag="not_done"):
    """Proven: this attempt had no effect. `retry_after` is in seconds.

    `stored` says that by the contract this answer is the stored outcome of the target key, so
    it speaks for every attempt under that key, and the key is dead (laws 7, 12).
    """

    kind: NotDoneKind
    reason: str = ""
    retry_after: float | None = None
    stored: bool = False
    evidence: dict[str, Any] = {}


class Unknown(msgspec.Struct, frozen=True, tag="unknown"):
    """It cannot be said whether it happened. `retry_after` is in seconds."""

    reason: str = ""
    retry_after: float | None = None
    evidence: dict[str, Any] = {}


class Absent(msgspec.Struct, frozen=True, tag="absent"):
    """A look-up found nothing. Whether that proves anything is for law 5 to say.

    `complete` is False if an answer was partial: an unread page, a permission gap.
    """

    complete: bool = True
    evidence: dict[str, Any] = {}


class Several(msgspec.Struct, frozen=True, tag="several"):
    """A look-up found more than one; never pick one."""

    refs: list[str | int] = []
    evidence: dict[str, Any] = {}


ActFinding = Done | Accepted | NotDone | Unknown
LookFinding = Done | Accepted | Absent | Several | Unknown
Finding = Done | Accepted | NotDone | Unknown | Absent | Several


# --- the frozen request --------------------------------------------------------------------


class Large(msgspec.Struct, frozen=True, kw_only=True):
    """A body that is too large to stand in a request: kept in parts, named by its content."""

    sha256: str
    size: int  # bytes


class Request(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """An HTTP request as it will be sent, byte for byte (law 11).

    Credentials, Date and trace headers lie outside. `key_forms` are the literal texts in which
    the target key occurs in it, so that its places are named: `digest` leaves them out, and a
    new epoch replaces exactly them. `large` stands in place of `body`; its hash is what is frozen.
    """

    method: str
    url: str
    headers: tuple[tuple[str, str], ...] = ()
    body: bytes = b""
    key_forms: tuple[str, ...] = ()
    large: Large | None = None


# --- stored records ------------------------------------------------------------------------


class Operation(Record, frozen=True, kw_only=True, omit_defaults=True):
    """One intended effect on one target. Immutable; identity is (namespace, action, key)."""

    id: str
    namespace: str
    action: str
    key: str
    fingerprint: str
    input: str | None  # canonical JSON, or None where only the hash is kept
    content_hash: str = ""  # fingerprint of the part declared as content, with on_changed=reuse
    contract: str = ""
    scope: str = ""
    title: str = ""
    run: str | None = None
    event: str | None = None
    supersedes: str | None = None
    compensates: str | None = None
    repeats: str | None = None
    why: str = ""  # reason given for superseding, compensating or repeating
    source: str = ""
    created_at: int = 0


class Status(Record, frozen=True, kw_only=True, omit_defaults=True):
    """What is known about an operation now; replaced as a whole by every change.

    `stamp` names the last change: every write is guarded by the stamp it was decided on.
    """

    operation: str
    namespace: str
    action: str
    state: State
    reason: Reason = Reason.NONE
    waiting_on: WaitingOn = WaitingOn.NOTHING
    due_at: int | None = None  # when somebody acts by itself; a lease's end while one is held
    stamp: int = 0
    token: int | None = None  # the attempt that holds the lease
    kind: Kind | None = None  # what that attempt does
    attempts: int = 0  # effect attempts so far
    lookups: int = 0
    epoch: int = 1
    target_key: str = ""
    first_claim_at: int | None = None  # of this epoch
    last_deadline: int | None = None  # latest over all effect attempts
    owner: str = ""
    ref: str | None = None
    result: str | None = None  # JSON
    confirmed_at: int | None = None
    confirmed_by: str = ""  # answer, look_up, replay, person, event
    said: str = ""  # code of the sentence that explains this status (core.words)
    entries: int = 0  # evidence entries so far
    verify: bool = False  # done, and one look-up for a second effect is still due (law 8)
    forced_by: str = ""  # a person allowed one attempt without proof (recorded risk)
    started_at: int = 0  # when the operation was submitted: bounds count from here
    updated_at: int = 0


class Attempt(Record, frozen=True, kw_only=True, omit_defaults=True):
    """One technical try; written in its claim's commit, closed once by its outcome."""

    token: int
    operation: str
    kind: Kind
    epoch: int
    started_at: int
    deadline: int  # no effect request of this attempt begins to be written after this
    hard: bool = True  # False: we do not control its sending, so no absence counts (law 5)
    taken_from: State = State.PENDING
    on_absence: bool = False  # rests on an absence, or a replay that is not race-free (law 8)
    without_proof: bool = False  # a person's risk: its "not done" speaks for nobody else
    revision: str = ""
    scope: str = ""
    worker: str = ""
    outcome: Outcome | None = None
    ended_at: int | None = None


class Evidence(Record, frozen=True, kw_only=True, omit_defaults=True):
    """What was seen, when, by which attempt, rule or person. Append-only, ordered by `seq`."""

    operation: str
    seq: int
    id: str
    at: int
    kind: str  # finding, look_up, late_report, decision, approval, expired, note, restored …
    shows: str = ""  # done, accepted, not_done, unknown, absent, several or nothing
    attempt: int | None = None
    by: str = ""  # worker, person or rule
    said: str = ""  # code of the sentence (core.words)
    data: str = "{}"  # JSON; never credentials


class Reference(Record, frozen=True, kw_only=True):
    """An effect reference; belongs to one operation per contract."""

    contract: str
    reference: str
    operation: str
    at: int


class Review(Record, frozen=True, kw_only=True):
    """A question that only a person can decide now; it has an owner from the start."""

    id: str
    operation: str
    namespace: str
    road: str  # unknown, duplicate, accepted
    owner: str
    opened_at: int
    said: str = ""
    taken_by: str = ""
    snoozed_until: int | None = None
    closed_at: int | None = None
    closed_by: str = ""
    decision: str = ""


class Approval(Record, frozen=True, kw_only=True):
    """A person's consent, in one role, to one exact request."""

    id: str
    operation: str
    namespace: str
    role: str
    digest: str  # of scope and frozen request, or of the input where nothing is frozen
    asked_at: int
    state: str = "asked"  # asked, approved, rejected, responded, withdrawn
    decided_at: int | None = None
    by: str = ""
    note: str = ""


class Run(Record, frozen=True, kw_only=True):
    """One execution of a flow or a batch: a group of operations with the keys it expects."""

    id: str
    namespace: str
    name: str
    opened_at: int
    closed_at: int | None = None
    due_at: int | None = None  # expected keys absent after this are missing (law 20)


class Expected(Record, frozen=True, kw_only=True):
    """A key that a run expects."""

    run: str
    namespace: str
    action: str
    key: str


class FrozenRequest(Record, frozen=True, kw_only=True):
    """The frozen request of an operation in one epoch (law 11)."""

    operation: str
    epoch: int
    digest: str
    request: bytes  # msgspec JSON of Request


class Incarnation(Record, frozen=True, kw_only=True):
    """A life of the store; a restore starts a new one (law 21)."""

    number: int
    began_at: int
    gap_from: int | None = None  # writes after this may have been lost
    note: str = ""
    until: int | None = None  # last deadline assumed for what may have been lost
    epochs: int = 0


class Control(Record, frozen=True, kw_only=True):
    """An action's first confirmed success in a scope: the positive control of law 5."""

    namespace: str
    action: str
    scope: str
    operation: str
    target_key: str
    ref: str | None = None


class Snapshot(Record, frozen=True, kw_only=True):
    """An operation and its status, read together."""

    operation: Operation
    status: Status


class Change(Record, frozen=True, kw_only=True):
    """What one decision writes, all or nothing.

    `guard` is the stamp of the status it was decided on; None for a new operation, which
    applies only if (namespace, action, key) does not exist. `also` are changes to other
    operations in the same transaction, e.g. the one that is superseded (law 10).
    `lazy`: the store may answer before the disk has it; set by `settle.report` alone.
    """

    status: Status
    guard: int | None
    operation: Operation | None = None
    attempt: Attempt | None = None
    ends: tuple[tuple[int, Outcome], ...] = ()  # attempts that this closes
    evidence: tuple[Evidence, ...] = ()
    references: tuple[Reference, ...] = ()
    reviews: tuple[Review, ...] = ()  # written whole: opened or changed
    approvals: tuple[Approval, ...] = ()  # written whole
    extends: tuple[int, int] | None = None  # (token, new deadline) of a running attempt
    request: FrozenRequest | None = None
    control: Control | None = None  # kept only if the scope has none yet
    also: tuple[Change, ...] = ()
    lazy: bool = False
    lines: tuple[tuple[str, Record], ...] = ()  # of the books, in the same transaction

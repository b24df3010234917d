"""Records beside the ledger: events, people, credentials of ours, the audit, costs, gates.

What happened to an effect stands in `model`; these say who may ask, what came in from outside,
and what is counted. Times are integer microseconds since 1970 UTC on the store's clock; texts that
hold JSON are written and read whole.
"""

from __future__ import annotations

from .model import Record


class Event(Record, frozen=True, kw_only=True):
    """Something that happened elsewhere and asks for operations (law 16).

    `state`: received (not processed yet), processed, ignored, stale, failed (a person is next),
    shown (of a test entry: recorded, never acted on).
    """

    namespace: str
    source: str
    id: str  # the business event id
    received_at: int
    topic: str = ""
    state: str = "received"
    why: str = ""  # why it is ignored, stale or failed
    due_at: int | None = None  # when it is processed; None: nothing more to do
    tries: int = 0
    signature: str = ""  # how it was verified, e.g. stripe, or the reason why not
    subject: str = ""  # what it is about, e.g. an order: older news about it are stale
    ordinal: int | None = None  # of that subject, larger is newer
    headers: str = "{}"  # JSON of selected headers, no signature
    body: str = ""  # the raw body as text
    operations: str = "[]"  # JSON: [{"action", "key", "operation"}]
    processed_at: int | None = None


class Delivery(Record, frozen=True, kw_only=True):
    """The arrivals of an event under one delivery id, counted."""

    namespace: str
    source: str
    id: str
    event: str
    first_at: int
    last_at: int
    arrivals: int = 1
    subscription: str = ""
    body_hash: str = ""
    note: str = ""


class Subject(Record, frozen=True, kw_only=True):
    """What events are about, and the newest of them that was acted on (BR-077)."""

    namespace: str
    source: str
    id: str
    ordinal: int
    event: str
    at: int


class Account(Record, frozen=True, kw_only=True):
    """A person who signs in. `password` is an argon2 hash, empty until it is set."""

    id: str
    login: str
    name: str
    password: str = ""
    made_at: int = 0
    disabled_at: int | None = None
    held_at: int | None = None  # since a restore, until somebody confirms it (law 21)
    lang: str = ""
    zone: str = ""


class Member(Record, frozen=True, kw_only=True):
    """What a person may do in a namespace (`*`: in every one). Flags are 0 or 1."""

    account: str
    namespace: str
    role: str  # viewer, operator, admin
    decides: int = 0
    approves: int = 0
    overrides: int = 0


class Session(Record, frozen=True, kw_only=True):
    """A signed-in browser; only the SHA-256 of its secret is kept."""

    hash: str
    account: str
    opened_at: int
    seen_at: int
    ends_at: int
    address: str = ""
    agent: str = ""


class ApiToken(Record, frozen=True, kw_only=True):
    """A machine's credential at our own door; only the SHA-256 of its secret is kept."""

    id: str
    namespace: str
    name: str
    hash: str
    scopes: str  # separated by blanks
    made_by: str
    made_at: int
    ends_at: int | None = None
    used_at: int | None = None
    revoked_at: int | None = None
    held_at: int | None = None  # since a restore, until somebody confirms it (law 21)


class Link(Record, frozen=True, kw_only=True):
    """A one-time or one-item link; only the SHA-256 of its secret is kept.

    `purpose`: first_user, sign_in (an account), guest (an operation's approval in one role).
    """

    hash: str
    purpose: str
    namespace: str = ""
    subject: str = ""  # account or operation
    role: str = ""
    who: str = ""  # whom it was given to, for the audit
    made_by: str = ""
    made_at: int = 0
    ends_at: int = 0
    used_at: int | None = None
    used_by: str = ""  # hash of the session that it opened: of two at once, one wins
    digest: str = ""  # of the request that a guest may answer; another one makes it stale


class Audit(Record, frozen=True, kw_only=True):
    """Who did what, when, why, and what was before and after. Append-only."""

    id: str
    namespace: str
    at: int
    actor: str
    did: str  # a code such as review.decide, token.new
    role: str = ""
    via: str = ""  # session, token, link, cli, with its id
    subject: str = ""  # operation, event, account …
    reason: str = ""
    before: str = ""
    after: str = ""
    address: str = ""


class Cost(Record, frozen=True, kw_only=True):
    """One line of cost. `amount` is a decimal number as text, or empty where no price is known."""

    id: str
    namespace: str
    at: int
    kind: str  # normal, repeat, recovery, clean_up
    cause: str  # call, generation, storage, platform, orchestration, people
    amount: str = ""
    currency: str = ""
    payer: str = ""
    operation: str = ""
    asset: str = ""
    minutes: str = ""  # of people, decimal
    evidence: str = ""
    doubt: int = 0  # 1: whether it was incurred rests on an outcome that is not known


class Asset(Record, frozen=True, kw_only=True):
    """Whether something that was made passed acceptance."""

    namespace: str
    key: str
    state: str  # accepted, rejected
    by: str
    at: int
    note: str = ""


class Gate(Record, frozen=True, kw_only=True):
    """Whether a target may be acted on now: paused by a person, or closed by its failures."""

    namespace: str
    target: str
    state: str  # open, paused, closed (by the circuit breaker), trying
    since: int
    until: int | None = None  # when a closed one is tried again
    by: str = ""
    why: str = ""
    failures: int = 0


class Watch(Record, frozen=True, kw_only=True):
    """Who is told when an operation settles or a person has decided."""

    operation: str
    namespace: str
    url: str
    asked_at: int
    due_at: int | None = None  # when it is looked at; None: told


class Blob(Record, frozen=True, kw_only=True):
    """One part of a large body; `data` is base64. It is nobody's until a Spooled names it."""

    body: str
    part: int
    data: str


class Spooled(Record, frozen=True, kw_only=True):
    """A large body that is durable, by the SHA-256 of the whole, and the key that it is for.

    Several keys may share one `body`; `made_at` is when it was last handed in for this one.
    """

    hash: str
    namespace: str
    action: str
    key: str
    body: str
    size: int  # bytes
    parts: int
    made_at: int


class Bulk(Record, frozen=True, kw_only=True):
    """A bulk action over many operations: planned first, then run, with progress."""

    id: str
    namespace: str
    made_at: int
    by: str
    did: str  # the action, e.g. look_up, leave, take
    state: str  # planned, running, done, cancelled
    what: str = "{}"  # JSON: the filter or the ids, and the reason
    plan: str = "{}"  # JSON: how many would do what, and why not
    progress: str = "{}"  # JSON
    due_at: int | None = None


class Tally(Record, frozen=True, kw_only=True):
    """Counts of one hour or day: what was submitted or received in it, and what became of it.

    `span`: hour, total (an hour, all actions), day, or door (what one process counted at its
    door). `part`: ledger, intake, own, all, or the process. Every operation is in exactly one
    hour: that of its submission.
    """

    namespace: str
    span: str
    at: int  # µs since 1970, of its beginning
    action: str
    part: str
    operations: int = 0
    attempts: int = 0  # that may have had an effect
    lookups: int = 0
    done: int = 0  # confirmed effects
    accepted: int = 0
    pending: int = 0
    running: int = 0
    unknown: int = 0
    not_done: int = 0
    left_open: int = 0  # given up by a person: nothing is proven
    superseded: int = 0
    by_answer: int = 0  # done: how it was confirmed
    again: int = 0  # of these, after more than one attempt
    by_late: int = 0  # by an answer that came late
    by_replay: int = 0
    by_look_up: int = 0
    by_event: int = 0
    by_person: int = 0
    reviewed: int = 0  # operations that needed a person
    duplicates: int = 0  # operations whose effect was found more than once
    folded: int = 0  # submissions of what was there already
    events: int = 0
    deliveries: int = 0
    arrivals: int = 0

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
    """One arrival of an event under one delivery id; a repeated id is counted."""

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


class Account(Record, frozen=True, kw_only=True):
    """A person who signs in. `password` is an argon2 hash, empty until it is set."""

    id: str
    login: str
    name: str
    password: str = ""
    made_at: int = 0
    disabled_at: int | None = None
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
    """One part of a large body, by the SHA-256 of the whole; `data` is base64."""

    hash: str
    part: int
    data: str


class Spooled(Record, frozen=True, kw_only=True):
    """A large body that is durable: its size in bytes, and in how many parts."""

    hash: str
    size: int
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
    """A count of one hour, made once the hour is over."""

    namespace: str
    hour: int  # µs since 1970, of its beginning
    action: str
    name: str  # what is counted, e.g. done, duplicate_prevented
    value: int

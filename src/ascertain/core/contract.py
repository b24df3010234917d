"""What a target guarantees about repetition and look-up for one kind of operation.

A contract is data with the source of each claim. What is not stated is None, and None is never
read as zero, yes or forever. The protection class is derived at a moment, never written.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from enum import StrEnum
from typing import Any, Literal

import msgspec

from . import contradictions, matcher
from .errors import ContractInvalid
from .model import FOREVER, SECOND

_UNITS = {"ms": 1_000, "s": SECOND, "m": 60 * SECOND, "h": 3600 * SECOND, "d": 86400 * SECOND}
_DURATION = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h|d)")


def duration(value: str | float, what: str = "duration") -> int:
    """Return a duration in µs from `"30s"`, `"1h"`, `"forever"`, seconds or a timedelta."""
    if hasattr(value, "total_seconds"):
        value = value.total_seconds()
    if value == "forever":
        return FOREVER
    if isinstance(value, int | float) and not isinstance(value, bool):
        length = value * SECOND
    else:
        found = _DURATION.fullmatch(str(value))
        if not found:
            raise ContractInvalid(f"{what} is {value!r}: write it like '30s', '15m', '24h' or '7d'")
        length = float(found[1]) * _UNITS[found[2]]
    if not 0 <= length < 1e9 * SECOND:
        raise ContractInvalid(f"{what} is {value!r}: it must be between 0 and 30 years")
    return round(length)


class Class(StrEnum):
    """Protection classes, strongest first; see `protection`."""

    REPEATABLE = "repeatable"
    IDEMPOTENT = "idempotent"
    IDENTIFIED = "identified"
    NOT_RACE_FREE = "identified, not race-free"
    SEARCHABLE = "searchable"
    LAGGING = "lagging"
    OPAQUE = "opaque"


class _Part(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A table of the TOML file; a field that nobody knows is refused."""


class OkRule(_Part, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which answer is success, as a matcher; `accepted` where it only means taken over."""

    when: str = "200|201|204"
    accepted: bool = False


class KeyRule(_Part, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Where our identity goes, e.g. `header:Idempotency-Key`, and what it is there.

    `form`: `any` (our 26 characters), `uuid`, a set of characters like `[a-z0-9]`, or an identity
    that is not ours to make: `natural` (business data) or `issued` by the target before the write.
    """

    at: str = "none"
    kind: Literal["request", "resource", "condition", "content", "none"] = "none"
    max: int | None = None
    form: str = "any"
    scope: str = ""


class RepeatRule(_Part, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What the target does when the same key comes again.

    `keeps`: how long it remembers. `failed`: whether a failure is stored and `replayed`, or
    `rerun`. `atomic`: two at once make one, by the vendor's word or a storage constraint.
    Matchers: `exists`, `mismatch` (known with another content), `busy` (still at work), and
    `stored`: by this mark a refusal is the stored outcome of the key, so it speaks for every
    attempt under it (laws 7, 12); `failed_rerun_if`: failures that are run again all the same.
    """

    answer: Literal["replay", "current", "exists", "noop", "overwrite", "absorbed", "again"] = (
        "again"
    )
    keeps: str | None = None
    failed: Literal["replayed", "rerun"] | None = None
    exists: str = ""
    mismatch: str = ""
    busy: str = ""
    stored: str = ""
    failed_rerun_if: str = ""
    atomic: bool | None = None


class LookupRule(_Part, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How our key is found; `blind` names what the look-up cannot see."""

    call: str = ""
    by: str = ""
    lag: str | None = None
    blind: tuple[str, ...] = ()


class LateRule(_Part, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`max`: the longest time from an attempt's deadline to its effect; `fence`: a call that
    makes a later arrival harmless, for a person to use: the ledger does not send it."""

    max: str | None = None
    fence: str = ""


class RefusedRule(_Part, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Answers that the vendor gives before processing, so they prove "not done" (law 13).

    Matchers; the first that matches, in this order: unauthorized, throttled, transient,
    invalid, rejected.
    """

    invalid: str = ""
    unauthorized: str = ""
    throttled: str = ""
    transient: str = ""
    rejected: str = ""


class InboundRule(_Part, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Where the target's own notifications carry what tells them apart (law 16).

    `event_id` is the same for one business event, `delivery_id` for one delivery; `sig` is where
    the signature stands. `only`: the contract is about notifications, no effect of ours.
    """

    only: bool = False
    event_id: str = ""
    delivery_id: str = ""
    sig: str = ""


class AssumeRule(_Part, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What the operator assumes where the vendor is silent; printed on the receipt."""

    lag: str | None = None
    late: str | None = None
    keeps: str | None = None


class Contract(_Part, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The contract of one kind of operation, as loaded from TOML.

    `protocol` says in whose words its answers are written (`ok`, `refused`, `repeat.exists`
    …). Those of HTTP are matchers, checked at load and judged by `call.http`. Those of another
    protocol are for the reader: the action's own code judges the answer, and `call.http`
    refuses to send under such a contract.
    """

    id: str
    title: str = ""
    protocol: Literal["http", "smtp", "nats", "sql", "kafka"] = "http"
    ok: OkRule = OkRule()
    key: KeyRule = KeyRule()
    repeat: RepeatRule = RepeatRule()
    lookup: LookupRule | None = None
    late: LateRule = LateRule()
    refused: RefusedRule = RefusedRule()
    assume: AssumeRule = AssumeRule()
    wait: str = ""  # where the answer says how many seconds: "header:Retry-After", "body:wait"
    undo: str = "none"  # the call that undoes it, or none
    harm: Literal["outside", "cost_only", "none"] = "outside"
    inbound: InboundRule | None = None
    sdk: str = ""  # retries hidden in the usual client: switch them off, or give them our key
    status: Literal["verified", "documented", "draft"] = "draft"
    second: tuple[str, ...] = ()  # claims seen only in somebody else's text
    memory: tuple[str, ...] = ()  # claims from memory
    accepted: tuple[str, ...] = ()  # of both, what the operator accepts (core.levels)
    note: str = ""
    sources: tuple[str, ...] = ()
    date: str = ""

    @property
    def revision(self) -> str:
        """The revision that an attempt is judged under: a hash of everything that counts."""
        return hashlib.sha256(msgspec.json.encode(self)).hexdigest()[:12]


def load(data: dict[str, Any], where: str = "contract") -> Contract:
    """Return a validated contract; raises ContractInvalid naming the file, field and fix."""
    try:
        contract = msgspec.convert(data, Contract)
    except msgspec.ValidationError as error:
        raise ContractInvalid(f"{where}: {error}") from error
    for problem in wrong_in(contract):
        raise ContractInvalid(f"{where}: {contract.id}: {problem}")
    return contract


def wrong_in(contract: Contract) -> Iterator[str]:
    """Say everything that a file may not say of a contract, in words."""
    yield from problems(contract)
    yield from contradictions.of_file(contract)


def problems(c: Contract) -> list[str]:
    """List what makes a contract impossible, in words."""
    found = []
    if not re.fullmatch(r"[a-z0-9_]+(\.[A-Za-z0-9_]+)+", c.id):
        found.append("id must look like vendor.operation")
    for name, value in durations(c).items():
        try:
            if value is not None and duration(value, name) >= FOREVER and "keeps" not in name:
                found.append(f"{name} cannot be forever: leave it out where no limit is known")
        except ContractInvalid as error:
            found.append(str(error))
    found += contradictions.within(c)
    if c.protocol == "http":
        found += _unreadable(c)
    return found


def matchers(c: Contract) -> dict[str, str]:
    """Return the texts that are matchers where the contract is about HTTP, by their field."""
    kinds = ("unauthorized", "throttled", "transient", "invalid", "rejected")
    marks = ("exists", "mismatch", "busy", "stored")
    return {
        "ok.when": c.ok.when,
        **{f"refused.{kind}": getattr(c.refused, kind) for kind in kinds},
        **{f"repeat.{mark}": getattr(c.repeat, mark) for mark in marks},
    }


def _unreadable(c: Contract) -> list[str]:
    found = []
    for field, text in matchers(c).items():
        try:
            matcher.parse(text)
        except ContractInvalid as error:
            found.append(f"{field}: {error} (if it is not about HTTP, name its protocol)")
    try:
        matcher.parse(c.repeat.failed_rerun_if)
    except ContractInvalid as error:
        found.append(f"repeat.failed_rerun_if: {error}")
    if not c.ok.when.strip():
        found.append("ok.when must say which answer is success, like 201")
    if c.wait and not re.fullmatch(r"(header|body):\S+", c.wait):
        found.append(f"wait is {c.wait!r}: write it like 'header:Retry-After' or 'body:wait'")
    return found


def durations(c: Contract) -> dict[str, str | None]:
    """Return the durations that a contract states, by where they stand."""
    return {
        "repeat.keeps": c.repeat.keeps,
        "lookup.lag": c.lookup.lag if c.lookup else None,
        "late.max": c.late.max,
        "assume.lag": c.assume.lag,
        "assume.late": c.assume.late,
        "assume.keeps": c.assume.keeps,
    }


NO_CONTRACT = Contract(id="none.opaque", title="no contract: nothing is protected")


class Bounds(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The bounds of an action (law 15); durations in µs, counts in attempts."""

    lease: int = 60 * SECOND  # how long one attempt may take; its deadline
    attempts: int = 5
    lookups: int = 12
    total: int = 24 * 3600 * SECOND  # from submission to the review that ends the search
    first_delay: int = SECOND
    longest_delay: int = 15 * 60 * SECOND
    extensions: int = 10
    skew: int = 5 * SECOND  # margin between our clock and the target's
    accepted: int = 24 * 3600 * SECOND  # how long the target may take to confirm

    @property
    def longest(self) -> int:
        """The longest deadline in µs: of an attempt that was extended as often as allowed."""
        return self.lease * (1 + self.extensions)


class Terms(msgspec.Struct, frozen=True, kw_only=True):
    """Everything declared about an action that bears on a decision.

    `lag`, `late` and `keeps` in µs, None where neither stated nor assumed; `assumed` names
    those that rest on an assumption.
    """

    contract: Contract = NO_CONTRACT
    bounds: Bounds = Bounds()
    lag: int | None = None
    late: int | None = None
    keeps: int | None = None
    assumed: tuple[str, ...] = ()
    can_look_up: bool = False
    same_bytes: bool = False  # frozen request, or declared deterministic
    hard: bool = True  # the deadline of its sending is enforced, or declared
    sends_within: int | None = None  # declared: how long code that sends by itself may send
    single_request: bool = False
    may_repeat: bool = False  # policy: a repeat only costs money, and one is allowed
    trust_assumed_absence: bool = False  # opt-in for effects that cannot be undone
    undoable: bool = False  # declared: the effect can be undone, whatever the contract says
    unseen: tuple[str, ...] = ()  # what the look-up is blind to and the operator accepts
    risky: bool = False  # decisions without proof need a second person
    lazy: bool = False  # opt-in: a settlement need not wait for the disk
    approval: tuple[str, ...] = ()  # roles that must consent
    owners: dict[str, str] = {}  # road -> person; "" is the default person
    scope: str = ""
    verified: str = ""  # the day on which a self-test found this contract to hold in this scope

    @property
    def quiet(self) -> int | None:
        """The quiet period in µs: how long after the last possible send absence proves
        nothing. None where lag or lateness is not known."""
        if self.lag is None or self.late is None:
            return None
        return self.lag + self.late

    @property
    def sending(self) -> int:
        """How long after its claim an attempt may begin to write an effect request, in µs: its
        lease, which the runtime enforces, or what its code declares."""
        return self.bounds.lease if self.sends_within is None else self.sends_within

    @property
    def reversible(self) -> bool:
        """Whether the effect can be undone; not stated counts as no."""
        return self.undoable or self.contract.undo != "none" or self.contract.harm != "outside"

    def owner(self, road: str) -> str:
        """The person of a road: unknown, input, authorization, duplicate."""
        return self.owners.get(road) or self.owners[""]


def terms(
    contract: Contract, *, lag: Any = None, late: Any = None, keeps: Any = None, **rest: Any
) -> Terms:
    """Join a contract with what an action declares.

    What is declared is an assumption: `lag` and `late` may only lengthen what the vendor
    states, `keeps` only shorten it, as a stream's own window does. Claims listed under
    `memory` or `second` count as assumptions too, as does what the operator has accepted.
    """
    weak = {*contract.memory, *contract.second, *contract.accepted}
    stated = {
        "lag": contract.lookup.lag if contract.lookup else None,
        "late": contract.late.max,
        "keeps": contract.repeat.keeps,
    }
    field = {"lag": "lookup.lag", "late": "late.max", "keeps": "repeat.keeps"}
    given = {"lag": lag, "late": late, "keeps": keeps}
    values: dict[str, int | None] = {}
    assumed = []
    for name, value in stated.items():
        fallback = getattr(contract.assume, name)
        length = duration(value, name) if value is not None else None
        believed = length is not None and field[name] not in weak
        guess = given[name] if given[name] is not None else fallback
        if guess is not None:
            guessed = duration(guess, name)
            safer = length is not None and (
                guessed < length if name == "keeps" else guessed > length
            )
            if not believed or safer:
                length, believed = guessed, False
        if name != "keeps" and length is not None and length >= FOREVER:
            raise ContractInvalid(f"{name} cannot be forever: leave it out where no limit is known")
        values[name] = length
        if length is not None and not believed:
            assumed.append(name)
    assumed += [name for name in contract.accepted if name not in field.values()]
    known: dict[str, Any] = {**values, **rest}
    return Terms(contract=contract, assumed=tuple(assumed), **known)


def window_end(t: Terms, first_claim: int) -> int | None:
    """Return when the target may forget our key, with a margin; None where not stated."""
    if t.keeps is None:
        return None
    if t.keeps >= FOREVER:
        return FOREVER
    return first_claim + min(t.keeps * 9 // 10, t.keeps - t.bounds.skew)


def identity(t: Terms) -> bool:
    """Tell whether the created thing itself carries our key, so that a second cannot exist."""
    return t.contract.key.kind in ("resource", "condition") and _answers_once(t.contract)


def remembered(t: Terms) -> bool:
    """Tell whether the target remembers our request key for a known time."""
    return t.contract.key.kind == "request" and _answers_once(t.contract) and t.keeps is not None


def _answers_once(c: Contract) -> bool:
    # A claim from memory counts as absent until somebody has seen it in the vendor's words.
    return c.repeat.answer != "again" and not _listed(("repeat.answer", "key.kind"), c.memory)


def race_free(t: Terms) -> bool:
    """Tell whether overlapping requests make one effect, by the vendor's own word or a storage
    constraint; a claim from memory or at second hand is no word of the vendor."""
    c = t.contract
    return bool(c.repeat.atomic) and not _listed(("repeat.atomic",), (*c.memory, *c.second))


def _listed(fields: tuple[str, ...], claims: tuple[str, ...]) -> bool:
    return any(field in claims or field.split(".")[0] in claims for field in fields)


def repeatable(t: Terms) -> bool:
    """Tell whether doing it again is no harm, or one that the policy allows."""
    return t.contract.harm == "none" or (t.contract.harm == "cost_only" and t.may_repeat)


def protection(t: Terms, *, in_window: bool) -> Class:
    """Derive the protection class at a moment: `in_window` says whether a replay that begins
    now would still land while the target remembers our key."""
    c = t.contract
    if repeatable(t):
        return Class.REPEATABLE
    if t.same_bytes and in_window and identity(t):
        overwrites = c.repeat.answer == "overwrite"
        return Class.IDENTIFIED if race_free(t) and not overwrites else Class.NOT_RACE_FREE
    if t.same_bytes and in_window and remembered(t):
        return Class.IDEMPOTENT
    if not t.can_look_up:
        return Class.OPAQUE
    return Class.SEARCHABLE if t.lag == 0 else Class.LAGGING


def always_review(t: Terms) -> bool:
    """Tell whether a replay can never be reached: the quiet period is longer than the window,
    so an unknown outcome always ends with a person; said at registration (law 6)."""
    if not remembered(t) or t.can_look_up:
        return False
    if not t.same_bytes:
        return True
    end = window_end(t, 0)
    if end is None or (end == FOREVER and race_free(t)):
        return False
    if t.late is None or not t.hard:
        return True
    begins = 0 if race_free(t) else t.late + (t.lag or 0)
    return begins + t.sending + t.late >= end

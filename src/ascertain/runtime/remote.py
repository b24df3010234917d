"""Own code in any language: it claims over the network, acts under the same laws, and reports.

No rules of its own: a claim is the step that `driving` names, a report is settled as that of any
attempt. The code's word counts as that of a Python action does; everything it says is bounded,
and its evidence is redacted. It is never run here.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, Literal, TypeVar

import msgspec
from msgspec.structs import replace

from ascertain.core import keys
from ascertain.core.contract import Contract
from ascertain.core.draft import Case
from ascertain.core.errors import AscertainError, Conflict, LeaseLost, Refused, UnknownOperation
from ascertain.core.model import (
    ActFinding,
    Attempt,
    Finding,
    Kind,
    LookFinding,
    NotDone,
    Outcome,
    State,
    Unknown,
)
from ascertain.core.reconcile import LookReport
from ascertain.targets.classify.redact import redacted

from . import recovery
from .action import Definition
from .aio import AsyncDriver
from .asks import Read, Storing
from .attempts import ending, extending, finding_out, finishing, heard, releasing
from .beginning import beginning
from .driving import moving_on
from .engine import Engine
from .looking import LookedFor, looked_for, looking
from .loop import hop
from .receipt import Receipt, error_of, receipt
from .storable import storable
from .ticket import Options, Ticket

MOST = 16  # permits of one claim
STEPS = 20  # that one claim takes an operation on: an expiry, a review, a due time, the claim
OVER = 4  # so many times more due operations are read than permits are asked for
POLL = 100_000  # µs between looks at an operation that a claim waits for
LONGEST_WAIT = 60.0  # seconds that a claim may wait
MARK = 32  # characters of the hash by which a claim that has a name is known again
T = TypeVar("T")


class Client(msgspec.Struct, frozen=True):
    """Who claims: as it is shown beside an attempt, and by which mark a claim that was named is
    known when it comes again; its name is not kept."""

    shown: str
    mark: str = ""

    @classmethod
    def of(cls, actor: str, worker: str, claim: str | None) -> Client:
        """Return who claims, by the name of this claim if it has one."""
        mark = "" if claim is None else f"#{keys.fingerprint([actor, worker, claim])[:MARK]}"
        return cls(" ".join(filter(None, (actor, worker, mark))), mark)


class Granted(msgspec.Struct, frozen=True, kw_only=True):
    """What a claim came to. With a `ticket` the code may act (`execute`, `replay`) or look
    (`look_up`, for `keys`); `reuse`: it happened; `wait`: not now."""

    permit: Literal["execute", "replay", "look_up", "reuse", "wait"]
    receipt: Receipt
    ticket: Ticket | None = None
    keys: LookedFor | None = None


# --- what the code reports ---


def clean(value: Any) -> Any:
    """Return a JSON value with credentials in its texts made unreadable."""
    if isinstance(value, str):
        return redacted(value)
    if isinstance(value, dict):
        return {redacted(str(name)): clean(item) for name, item in value.items()}
    return [clean(item) for item in value] if isinstance(value, list) else value


def cleaned(finding: Finding, more: Mapping[str, Any]) -> Any:
    """Return a finding of own code as it may be kept: bounded, without credentials, and with
    `more` in its evidence, before anything that could push it out."""
    rest = {n: v for n, v in finding.evidence.items() if n not in more}
    kept = storable(replace(finding, evidence={**more, **rest}))
    facts: dict[str, Any] = {"evidence": clean(kept.evidence)}
    reason = getattr(kept, "reason", None)
    if isinstance(reason, str):
        facts["reason"] = redacted(reason)
    return replace(kept, **facts)


def granted_by(contract: Contract, finding: ActFinding) -> ActFinding:
    """Return a finding in which a refusal speaks for other attempts of its key only where the
    contract says that the target keeps refusals (law 7): no code's word is enough for that."""
    keeps = contract.repeat.stored or contract.repeat.failed == "replayed"
    if isinstance(finding, NotDone) and finding.stored and not keeps:
        return replace(finding, stored=False)
    return finding


class RemoteWork:
    """Claims and reports of own code in one namespace; for the event loop."""

    def __init__(self, engine: Engine) -> None:
        """Work for one engine."""
        self.engine = engine
        self._driver = AsyncDriver(engine)

    # --- claiming ---

    async def claim(
        self, action: str, given: Mapping[str, Any], key: str | None, *, client: Client,
        options: Options, wait: float,
    ) -> Granted:  # fmt: skip
        """Record an intent unless it is there, and take what may be done about it now; the same
        claim again, by its name, gets the same permit while its lease lasts.

        The intent, and with a permit the lease, are durable when it returns. Where nothing may be
        done now it waits up to `wait` seconds until that may have changed. Raises what a
        submission raises, and the error of a state that a person has to end.
        """
        d = self.definition(action)
        until = self.engine.until(min(max(wait, 0.0), LONGEST_WAIT))
        intent = d.intent(given, self.engine.store.now(), key)

        def steps() -> Storing[Ticket | Case]:
            at, existed = yield from beginning(
                self.engine, d, intent, options, execute=True, client=client.shown
            )
            other = not isinstance(at, Ticket) and at.operation.content_hash != intent.content_hash
            values = None if existed and other else intent.input
            return (yield from self._going_on(at, values, client))

        at = await self._finished(steps(), client)
        return await self._waited(at, until, client)

    async def claim_known(self, action: str, key: str, *, client: Client, wait: float) -> Granted:
        """Do what `claim` does for an operation that is there; raises UnknownOperation, and
        KeyRefused for what can be no key."""
        d = self.definition(action)
        keys.check_key(key, personal=True)
        until = self.engine.until(min(max(wait, 0.0), LONGEST_WAIT))
        named = [(d.name, form) for form in keys.forms(key)]
        known = await hop(self.engine.store.by_keys, self.engine.namespace, named)
        found = next((one for one in known if one is not None), None)
        if found is None:
            raise UnknownOperation(f"action {action}: no operation has the key {key!r}; send input")
        case = await hop(self.engine.case, found, d.terms)
        at = await self._finished(self._going_on(case, None, client), client)
        return await self._waited(at, until, client)

    async def claim_due(
        self, actions: Sequence[str], limit: int, *, client: Client
    ) -> list[Granted]:
        """Take due work of these actions, the oldest first: at most `limit` permits, and no more
        than the code can start now (law 2); or what this claim has taken before. The leases are
        durable when it returns."""
        taken: list[Ticket] = []
        engine = self.engine
        every = [self.definition(name) for name in actions]  # all of them, before any is claimed
        try:
            for d in every if client.mark else ():
                taken += await hop(self._taken, d, client, limit)
            for d in every if not taken else ():
                rows = await hop(
                    engine.store.ask, recovery.Due, "work_due", namespace=engine.namespace,
                    action=d.name, now=engine.store.now(), most=limit * OVER,
                )  # fmt: skip
                for row in rows:
                    at = await self._one_due(row.operation, d, client)
                    if isinstance(at, Ticket):
                        taken.append(at)
                    if len(taken) >= limit:
                        break
                if len(taken) >= limit:
                    break
            return [await self._granted(one) for one in taken]
        except BaseException:
            await self._unheard(client, *taken)
            raise

    def _taken(self, d: Definition, client: Client, limit: int) -> list[Ticket]:
        """Return the attempts of an action that a claim has taken before."""
        rows = self.engine.store.ask(
            recovery.Due, "work_taken", namespace=self.engine.namespace, action=d.name,
            worker=client.shown, most=limit,
        )  # fmt: skip
        cases = [self.engine.case(self.engine.snapshot(row.operation), d.terms) for row in rows]
        held = [self._held(case, None, client) for case in cases]
        return [one for one in held if isinstance(one, Ticket)]

    async def _one_due(self, ident: str, d: Definition, client: Client) -> Ticket | Case | None:
        case = await hop(lambda: self.engine.case(self.engine.snapshot(ident), d.terms))
        try:
            return await self._finished(self._going_on(case, None, client, due=True), client)
        except recovery.STORE_DOWN:
            raise
        except AscertainError as error:  # e.g. its input is not kept: seen again later
            report = recovery.Report(errors=[])
            await hop(recovery.stumbled, self.engine, case, error, report)
            return None

    def definition(self, action: str) -> Definition:
        """Return an action of own code; raises UnknownAction, or Refused for another one."""
        d = self.engine.definition(action)
        if not d.remote:
            raise Refused(
                f"action {action} is carried out by the server: submit it; own code claims only"
                ' what is declared with by = "client"'
            )
        return d

    def _going_on(
        self, at: Ticket | Case, given: dict[str, Any] | None, client: Client, *, due: bool = False
    ) -> Storing[Ticket | Case]:
        """Take an operation on to its next permit, or as far as it goes now."""
        for _ in range(STEPS):
            if isinstance(at, Ticket):
                break
            if at.status.state in (State.DONE, State.ACCEPTED) and not due:
                break  # whoever asks by key has his answer
            moved = yield from moving_on(self.engine, at, given, client.shown)
            if moved is None:
                return self._held(at, given, client)
            at = moved
        return at

    def _held(self, at: Case, given: dict[str, Any] | None, client: Client) -> Ticket | Case:
        """Return the attempt under way if this very claim took it and its answer was lost: with
        what is left of its lease, by the store's clock. Nobody can claim it by another name."""
        engine, status, local = self.engine, at.status, self.engine.clock.boottime()
        own = next((a for a in at.attempts if a.token == status.token), None)
        if not client.mark or own is None or own.worker != client.shown or status.due_at is None:
            return at
        left = min(status.due_at - engine.store.now(), status.due_at - own.started_at)
        if left <= 0:
            return at
        d = self.definition(at.operation.action)
        values = None if own.kind is Kind.LOOK_UP else d.restore_input(at.operation, given)
        return Ticket(
            case=at, attempt=own, definition=d, input=values, request=None, deadline=local + left
        )

    async def _waited(self, at: Ticket | Case, until: int, client: Client) -> Granted:
        """Return what a claim came to, where that is `wait` once it may be something else.

        Nothing is claimed after a wait: the seconds of a permit count from before its request,
        and whoever asked may be gone meanwhile. He claims again.
        """
        engine = self.engine
        try:
            granted = await self._granted(at)
        except BaseException:
            await self._unheard(client, *([at] if isinstance(at, Ticket) else []))
            raise
        while granted.permit == "wait" and (left := until - engine.clock.boottime()) > 0:
            await asyncio.sleep(min(left, POLL) / 1e6)
            assert isinstance(at, Case)
            at = await hop(engine.again, at)
            granted = await self._granted(at)
            if at.status.due_at is not None and at.status.due_at <= engine.store.now():
                break
        return granted

    async def _unheard(self, client: Client, *tickets: Ticket) -> None:
        """Give claims back that nobody will hear of: proven not sent (law 2). Of a claim with a
        name somebody may: by the same claim again, perhaps at this moment."""
        for one in tickets if not client.mark else ():
            with suppress(AscertainError):  # else its time runs out
                await self._driver.give_back(one)

    async def _granted(self, at: Ticket | Case) -> Granted:
        engine = self.engine
        if isinstance(at, Ticket):
            shown = receipt(at.case, engine.world())
            if at.attempt.kind is Kind.LOOK_UP:
                asked = await hop(looked_for, engine, at)
                return Granted(permit="look_up", receipt=shown, ticket=at, keys=asked)
            kind = "replay" if at.attempt.kind is Kind.REPLAY else "execute"
            return Granted(permit=kind, receipt=shown, ticket=at)  # type: ignore[arg-type]
        shown = receipt(at, engine.world(), reused=True)
        if at.status.state in (State.DONE, State.ACCEPTED):
            return Granted(permit="reuse", receipt=shown)
        if at.status.token is None and at.status.due_at is None:
            error = error_of(shown)
            assert error is not None
            raise error
        return Granted(permit="wait", receipt=shown)

    # --- reporting ---

    async def check(self, operation: str, token: int) -> None:
        """Raise UnknownOperation where an operation has no such attempt."""
        await hop(self._ticket, operation, token)

    async def extend(self, operation: str, token: int, by: float) -> Ticket:
        """Lengthen a lease to `by` seconds from now; durable before it applies. Raises LeaseLost,
        or Refused beyond the bounds."""
        ticket = await hop(self._ticket, operation, token)
        await self._finished(extending(self.engine, ticket, int(by * 1e6)))
        return ticket

    async def report(
        self, operation: str, token: int, finding: ActFinding, *, report: str, costs: list[Any]
    ) -> Receipt:
        """Settle an attempt by what the code found; durable when it returns. Matched by the
        operation, with or without the lease (law 8); twice the same changes nothing."""
        ticket = await hop(self._ticket, operation, token)
        if ticket.attempt.kind is Kind.LOOK_UP:
            raise Refused(
                f"operation {operation}: this attempt is a look-up: report what it found by"
                " `look_up`, one finding for each target key"
            )
        more = {"report": report, **({"costs": costs} if costs else {})}
        kept = cleaned(granted_by(ticket.case.terms.contract, finding), more)
        return await self._settled(self._reporting(ticket, kept, report), receipt)

    def _reporting(self, ticket: Ticket, finding: ActFinding, report: str) -> Storing[Case]:
        ended = ticket.attempt.outcome is not None
        if ended and (yield Read(partial(self._known, ticket, report))):
            return ticket.case
        case = yield from finishing(self.engine, ticket, finding)
        if not ended:
            yield from heard(self.engine, ticket, finding)
        return case

    def _known(self, ticket: Ticket, report: str) -> bool:
        """Tell whether this very report of an attempt was settled before."""
        entries = self.engine.store.evidence(ticket.case.operation.id)
        own = [e for e in entries if e.attempt == ticket.attempt.token]
        return any(msgspec.json.decode(e.data).get("report") == report for e in own)

    async def looked(self, operation: str, token: int, found: Mapping[str, LookFinding]) -> Receipt:
        """Settle a look-up by what each target key gave; a key that is not reported was not
        answered, which proves nothing (laws 5, 14). Durable when it returns."""
        ticket = await hop(self._ticket, operation, token)
        if ticket.attempt.kind is not Kind.LOOK_UP:
            raise Refused(f"operation {operation}: this attempt acts: report its `finding`")
        if ticket.attempt.outcome is Outcome.LOOKED:
            return receipt(ticket.case, self.engine.world())
        kept = {key: cleaned(one, {}) for key, one in found.items()}
        return await self._settled(self._finding_out(ticket, kept), receipt)

    def _finding_out(self, ticket: Ticket, found: Mapping[str, Any]) -> Storing[Case]:
        asked: LookedFor = yield Read(partial(looked_for, self.engine, ticket))
        given = joined(asked, found)
        held = ticket.attempt.outcome is None
        case = yield from finding_out(self.engine, ticket, given)
        if held:
            yield from heard(self.engine, ticket, given.finding)
        return case

    async def release(self, operation: str, token: int) -> Receipt:
        """Give back a claim whose action never started: proven not sent (law 2). Durable when it
        returns. Raises LeaseLost for a look-up that is over."""
        ticket = await hop(self._ticket, operation, token)
        return await self._settled(self._releasing(ticket), receipt)

    def _releasing(self, ticket: Ticket) -> Storing[Case]:
        if ticket.attempt.outcome not in (None, Outcome.EXPIRED):
            return ticket.case  # it has said something else before, or just this
        if ticket.attempt.kind is Kind.LOOK_UP:
            try:
                case = yield from releasing(self.engine, ticket)
            except Conflict as error:
                raise LeaseLost(operation=ticket.case.operation.id) from error
        else:
            case = yield from ending(self.engine, ticket, None)
        yield from heard(self.engine, ticket, None)
        return case

    def _ticket(self, operation: str, token: int) -> Ticket:
        """Return an attempt of an operation of this namespace as if it had just been claimed.

        Raises UnknownOperation where there is none with this token.
        """
        snapshot = self.engine.snapshot(operation)
        d = self.definition(snapshot.operation.action)
        case = self.engine.case(snapshot, d.terms)
        attempt: Attempt | None = next((a for a in case.attempts if a.token == token), None)
        if attempt is None:
            raise UnknownOperation(
                f"operation {operation} has no such attempt: report with the `attempt` and the"
                " `operation` of one permit",
                operation=operation,
            )
        return Ticket(
            case=case, attempt=attempt, definition=d, input=None, request=None,
            deadline=self.engine.clock.boottime(),
        )  # fmt: skip

    # --- shared ---

    async def _settled(self, steps: Storing[Case], shown: Callable[..., Receipt]) -> Receipt:
        return shown(await self._finished(steps), self.engine.world())

    async def _finished(self, steps: Storing[T], client: Client | None = None) -> T:
        """Carry a step out to its end; a claim for a caller who is cancelled is given back."""
        value, cancelled = await self._driver.finished(steps)
        if cancelled is not None:
            if isinstance(value, Ticket) and client is not None:
                await self._unheard(client, value)
            raise cancelled
        return value


def joined(asked: LookedFor, found: Mapping[str, Finding]) -> LookReport:
    """Return what a look-up amounts to, by the same rule as one that is run here."""
    steps = looking(asked.targets, asked.control, asked.invented)
    key = next(steps)
    while True:
        try:
            key = steps.send(found.get(key, Unknown("the look-up did not report on this key")))
        except StopIteration as end:
            report: LookReport = end.value
            return report


def seconds_left(engine: Engine, ticket: Ticket) -> tuple[float, float]:
    """Return how many seconds are left to send anything, and of the lease.

    They count from before the claim was queued. The client takes them as from before it sent
    the claim, so the network only makes them shorter.
    """
    now, bounds = engine.clock.boottime(), ticket.case.terms.bounds
    lease = ticket.deadline - now
    sends = lease
    if ticket.attempt.kind is not Kind.LOOK_UP:
        sends = lease - bounds.lease + ticket.case.terms.sending
    return max(sends, 0) // 1000 / 1000, max(lease, 0) // 1000 / 1000

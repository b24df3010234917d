"""From what an action's code returned or raised to a finding. Total: the rest is Unknown."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from ascertain.core.errors import ActionInvalid, SendRefused, UsageError
from ascertain.core.model import (
    Accepted,
    ActFinding,
    Done,
    Finding,
    Kind,
    LookFinding,
    NotDone,
    NotDoneKind,
    Unknown,
)
from ascertain.targets.classify import classify, describe

from .action import Definition, is_async
from .call import Call
from .clock import Clock
from .engine import Engine
from .spool import Spool
from .storable import storable
from .telemetry import telemetry
from .ticket import Ticket


class NotStarted(Exception):
    """The code of an attempt was not begun, since it might send after its deadline."""


def in_time(ticket: Ticket, clock: Clock) -> bool:
    """Tell whether the code of an attempt may still begin: what sends by itself is bounded from
    its claim, however long it waited for a thread (law 5)."""
    terms = ticket.case.terms
    return clock.boottime() < ticket.deadline - terms.bounds.lease + terms.sending


def finding_of(value: Any, d: Definition, call: Call) -> ActFinding:
    """Return the finding that an action's code returned, with its notes.

    A value that is no finding is Unknown: the code ran, and what it did nobody can say.
    """
    if d.declared.kind in ("step", "flow"):
        return _with_notes(Done(result=value), call)
    if isinstance(value, Done | Accepted | NotDone | Unknown):
        return _with_notes(value, call)
    reason = (
        f"action {d.name} returned {type(value).__name__}: return ascertain.Done(ref=…),"
        " Accepted, NotDone or Unknown. What it did is not known"
    )
    return _with_notes(Unknown(reason=reason), call)


def note_wrong(value: Any, finding: ActFinding, errors: list[BaseException] | None) -> None:
    """Keep what is wrong with a value that is no finding, as the cause that the caller sees."""
    if errors is not None and isinstance(finding, Unknown) and not isinstance(value, Unknown):
        errors.append(ActionInvalid(finding.reason))


def _with_notes(finding: ActFinding, call: Call) -> ActFinding:
    finding = storable(finding)
    more: dict[str, Any] = {}
    if call.notes:
        more["notes"] = call.notes
    if call.costs:
        more["costs"] = call.costs
    if call.http_used is not None and call.http_used.trace.sent:
        more["sent"] = call.http_used.trace.sent
        if call.http_used.trace.sent_nothing:  # it was to be sent, and no byte of it has left
            more["unsent"] = True
    return replace(finding, evidence={**finding.evidence, **more}) if more else finding


def finding_of_error(error: BaseException, d: Definition, call: Call) -> ActFinding:
    """Return what an exception of an action's code proves (law 13): mostly nothing."""
    if d.declared.kind in ("step", "flow"):
        return _of_flow(error)
    http = call.http_used
    call.close()  # a thread that its code left behind sends nothing any more: the trace is final
    trace = http.trace if http is not None else None
    if isinstance(error, SendRefused) and trace is not None and trace.finding is not None:
        first: ActFinding = trace.finding  # the first request's answer stands (law 17)
        return _with_notes(first, call)
    nothing = trace is None or trace.sent_nothing
    if nothing and _declared(d) and not d.sends_itself:
        # Every byte goes through call.http by declaration, and none has left (law 13).
        late = getattr(error, "code", "") == "deadline_passed"
        wrong = isinstance(error, UsageError) and not late
        kind = NotDoneKind.INVALID if wrong else NotDoneKind.TRANSIENT
        found = classify(error, None, single_request=False)
        proven = found if isinstance(found, NotDone) else NotDone(kind, _reason(error))
        return _with_notes(proven, call)
    seen = trace if d.terms.hard and d.declared.sends_within is None else None
    declared = d.declared
    found = classify(error, seen, declared.single_request, declared.contract)
    return _with_notes(found, call)


def _declared(d: Definition) -> bool:
    """Tell whether the action says, itself or by its prepared request, that only `call.http`
    sends; what was inferred from its code alone is no proof of "never sent", and a prepared
    request may be sent by other means too."""
    if d.declared.sends is not None:
        return d.declared.sends == "call"
    return d.declared.prepare is not None and d.uses_call_http


def _reason(error: BaseException) -> str:
    return describe(error)  # bounded, without credentials


def reads_back(error: BaseException) -> bool:
    """Tell whether the target said that our identity exists already: read it back (law 6)."""
    return bool(getattr(error, "exists", False))


def finding_of_read_back(found: LookFinding | Finding, error: BaseException) -> ActFinding:
    """Return what reading back amounts to: only an object with our target key is ours."""
    if isinstance(found, Done | Accepted):
        return found
    reason = f"the target says that it exists, and reading it back gave {type(found).__name__}"
    return Unknown(reason=reason, evidence=getattr(error, "finding", Unknown()).evidence)


def _of_flow(error: BaseException) -> ActFinding:
    """A flow or step has no outside effect of its own: what stops it is not an effect."""
    reason = _reason(error)
    if isinstance(error, UsageError):
        return NotDone(NotDoneKind.INVALID, reason)
    return NotDone(NotDoneKind.TRANSIENT, reason)


def finding_of_look_error(error: BaseException, d: Definition) -> LookFinding:
    """A look-up's error is Unknown, never Absent (law 14)."""
    return Unknown(reason=f"the look-up of {d.name} raised {_reason(error)}"[:500])


def saw_sending(d: Definition, call: Call, finding: ActFinding) -> None:
    """Take note of an action that acted although `call.http` sent nothing: its sending is not
    ours to bound (law 5)."""
    unused = call.http_used is None
    if d.declared.kind == "action" and isinstance(finding, Done | Accepted) and unused:
        d.saw_own_sending()


def findings_of_bulk(value: Any, d: Definition, call: Call, count: int) -> list[ActFinding]:
    """Return a finding for each item of a bulk call; another number of them says nothing."""
    if isinstance(value, list | tuple) and len(value) == count:
        found = []
        for one in value:
            found.append(finding_of(one, d, call))
            call.costs = []  # what the one call cost stands with its first item, and once
        return found
    reason = (
        f"bulk action {d.name} returned {type(value).__name__} for {count} items: return a list"
        " with one finding for each, in order"
    )
    return [Unknown(reason=reason)] * count


def make_call(engine: Engine, ticket: Ticket, *, effect: bool, key: str | None = None) -> Call:
    """Return what the code of one attempt gets."""
    status = ticket.case.status
    used = [0]
    outside = telemetry.headers()  # here, within the attempt's span: it may send in any thread

    def extend(by: int) -> None:
        used[0] += 1
        if used[0] > ticket.case.terms.bounds.extensions:
            raise SendRefused(
                f"operation {ticket.case.operation.key}: extended as often as allowed"
            )
        engine.extend(ticket, by)

    return Call(
        key=ticket.case.operation.key,
        target_key=key or status.target_key,
        attempt=ticket.attempt.token,
        epoch=ticket.attempt.epoch,
        number=status.attempts,
        clock=engine.clock,
        deadline=lambda: ticket.deadline,
        extend=extend if effect and ticket.attempt.kind is not Kind.LOOK_UP else None,
        request=ticket.request if effect else None,
        http=lambda call: make_http(call, ticket, engine, effect=effect, outside=outside),
    )


def make_http(
    call: Call,
    ticket: Ticket,
    engine: Engine,
    *,
    effect: bool,
    outside: dict[str, str] | None = None,
) -> Any:
    """Return the client of one attempt; needs the extra `http`. `outside`: trace headers."""
    try:
        from ascertain.targets.http import AsyncEffectHttp, EffectHttp
    except ModuleNotFoundError as error:
        if error.name not in ("httpx2", "httpcore2"):
            raise
        raise UsageError("call.http needs the extra: pip install 'ascertain[http]'") from error
    d = ticket.definition
    inner = EffectHttp(
        deadline=lambda: ticket.deadline,
        clock=engine.clock.boottime,
        contract=d.declared.contract,
        request=call.request,
        effect=effect,
        outside=outside,
        bodies=Spool(engine.store, engine.namespace, engine.clock).parts,
    )
    function = d.function if effect or d.look is None else d.look.function
    return AsyncEffectHttp(inner) if is_async(function) else inner

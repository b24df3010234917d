"""THE TABLE: what may happen to an operation, as data. Everything not in it is refused.

Rows are inputs, columns the states they meet. A cell names the state that follows: `=` stays,
`back` is the state that the attempt was taken from, `.` is refused. The next column says what
the operation waits on afterwards (`=` as before); the last one cites the laws of
docs/semantics.md. Which input a finding amounts to is decided in `settle`, by rules that are
cited there; what to do next about an unknown outcome in `reconcile`.
"""

from __future__ import annotations

from enum import StrEnum

import msgspec

from .errors import Refused
from .model import Reason, State, Status, WaitingOn

# fmt: off
_TABLE = """
input          | pending   running   unknown   accepted  done      not_done  | waits on       laws
--- claims
execute        | running   .         .         .         .         .         | clock          1 2
replay         | .         .         running   .         .         .         | clock          4 6
redo           | .         .         running   .         .         .         | clock          4
force          | .         .         running   .         .         .         | clock          4
look_up        | =         .         =         =         =         =         | =              14
release        | =         back      =         =         =         =         | =              2
--- what the attempt that holds the lease reports
done           | .         done      .         .         .         .         | nothing        1
accepted       | .         accepted  .         .         .         .         | target         13
unknown        | .         unknown   .         .         .         .         | clock          3 13
expired        | .         unknown   .         .         .         .         | clock          3
not_proven     | .         unknown   =         .         .         .         | clock          7
known_before   | .         done      .         .         .         .         | nothing        8
--- every attempt is proven not done, and this was the last
later          | .         pending   pending   .         .         .         | clock          7 13
invalid        | .         not_done  not_done  .         .         .         | input          7 13
unauthorized   | .         not_done  not_done  .         .         .         | authorization  7 13
rejected       | .         not_done  not_done  .         .         .         | input          7 13
gave_up        | not_done  not_done  not_done  .         .         .         | input          15
--- what a look-up found
found          | done      =         done      done      =         done      | nothing        4 8
found_accepted | accepted  =         accepted  =         =         accepted  | target         14
absent         | .         .         pending   .         .         .         | clock          5
not_earned     | =         =         =         =         =         =         | =              5 14
several        | unknown   =         =         =         =         unknown   | review         8
--- late reports and the target's own events
late_done      | done      =         done      done      =         done      | nothing        8
late_accepted  | accepted  =         accepted  =         =         accepted  | target         8
late_other     | =         =         =         =         =         =         | =              7 8
failed         | .         .         .         not_done  .         .         | input          13
--- people
approve        | =         .         =         .         .         .         | clock          11
ask            | =         .         =         .         .         .         | approval       11
reject         | not_done  .         .         .         .         .         | nothing        11
respond        | not_done  .         .         .         .         .         | input          11
there          | done      .         done      done      =         done      | nothing        4
not_there      | .         .         pending   .         .         .         | clock          4
risk           | .         .         =         .         .         .         | clock          4
cannot_tell    | .         .         =         =         .         .         | review         4
leave          | .         .         not_done  not_done  .         =         | nothing        4
review         | .         .         =         =         .         .         | review         15
renew          | .         .         =         .         .         pending   | clock          7 13
--- versions and the store
supersede      | not_done  .         .         .         .         not_done  | nothing        10
hold           | =         .         .         .         .         .         | =              10
restored       | unknown   unknown   unknown   unknown   =         unknown   | clock          21
"""
# fmt: on


class Input(StrEnum):
    """What can happen to an operation; the rows of the table."""

    EXECUTE = "execute"
    REPLAY = "replay"
    REDO = "redo"
    FORCE = "force"
    LOOK_UP = "look_up"
    RELEASE = "release"
    DONE = "done"
    ACCEPTED = "accepted"
    UNKNOWN = "unknown"
    EXPIRED = "expired"
    NOT_PROVEN = "not_proven"
    KNOWN_BEFORE = "known_before"
    LATER = "later"
    INVALID = "invalid"
    UNAUTHORIZED = "unauthorized"
    REJECTED = "rejected"
    GAVE_UP = "gave_up"
    FOUND = "found"
    FOUND_ACCEPTED = "found_accepted"
    ABSENT = "absent"
    NOT_EARNED = "not_earned"
    SEVERAL = "several"
    LATE_DONE = "late_done"
    LATE_ACCEPTED = "late_accepted"
    LATE_OTHER = "late_other"
    FAILED = "failed"
    APPROVE = "approve"
    ASK = "ask"
    REJECT = "reject"
    RESPOND = "respond"
    THERE = "there"
    NOT_THERE = "not_there"
    RISK = "risk"
    CANNOT_TELL = "cannot_tell"
    LEAVE = "leave"
    REVIEW = "review"
    RENEW = "renew"
    SUPERSEDE = "supersede"
    HOLD = "hold"
    RESTORED = "restored"


class Move(msgspec.Struct, frozen=True):
    """One cell of the table. `to` None means back to where the attempt was taken from;
    `waiting_on` None means as before."""

    to: State | None
    waiting_on: WaitingOn | None
    laws: tuple[int, ...]


def _parse(table: str) -> dict[tuple[State, Input], Move]:
    head, *lines = [line for line in table.strip().splitlines() if not line.startswith("---")]
    states = [State(name) for name in head.split("|")[1].split()]
    moves = {}
    for line in lines:
        name, cells, rest = (part.strip() for part in line.split("|"))
        waits, *laws = rest.split()
        waiting = None if waits == "=" else WaitingOn("" if waits == "nothing" else waits)
        for state, cell in zip(states, cells.split(), strict=True):
            if cell == ".":
                continue
            to = None if cell == "back" else state if cell == "=" else State(cell)
            moves[state, Input(name)] = Move(to, waiting, tuple(map(int, laws)))
    return moves


TABLE = _parse(_TABLE)

# Proven not to have happened: these may be superseded without anybody's risk (law 10).
PROVEN = frozenset({
    Reason.INVALID, Reason.UNAUTHORIZED, Reason.REJECTED, Reason.GAVE_UP, Reason.SUPERSEDED,
})  # fmt: skip
_REASONS = {
    Input.INVALID: Reason.INVALID,
    Input.UNAUTHORIZED: Reason.UNAUTHORIZED,
    Input.REJECTED: Reason.REJECTED,
    Input.REJECT: Reason.REJECTED,
    Input.RESPOND: Reason.REJECTED,
    Input.GAVE_UP: Reason.GAVE_UP,
    Input.SUPERSEDE: Reason.SUPERSEDED,
    Input.FAILED: Reason.FAILED_AFTER_ACCEPTANCE,
    Input.LEAVE: Reason.LEFT,
}


def move(status: Status, given: Input, *, back: State | None = None) -> Status:
    """Return the status that follows, with state, reason and waiting_on set by the table.

    `back` is the state that a released attempt was taken from. Raises Refused, naming the
    operation, for whatever the table does not list.
    """
    cell = TABLE.get((status.state, given))
    if cell is None or not _reason_allows(status, given):
        raise Refused(
            f"operation {status.operation} ({status.action}) is {status.state}"
            f"{'/' + status.reason if status.reason else ''}: {given} is not possible now",
            operation=status.operation,
            state=status.state,
            input=given,
        )
    to = cell.to or back or status.state
    reason = status.reason if to is status.state else Reason.NONE
    if to is State.NOT_DONE and not (given is Input.LEAVE and reason in PROVEN):
        reason = _REASONS.get(given, reason)  # what is proven stays so when a person leaves it
    waiting = status.waiting_on if cell.waiting_on is None else cell.waiting_on
    return msgspec.structs.replace(status, state=to, reason=reason, waiting_on=waiting)


def _reason_allows(status: Status, given: Input) -> bool:
    """Tell what a `not_done` allows: only a proven one is superseded, only a refused
    authorization is renewed."""
    if status.state is not State.NOT_DONE:
        return True
    if given is Input.SUPERSEDE:
        return status.reason in PROVEN
    if given is Input.RENEW:
        return status.reason is Reason.UNAUTHORIZED
    if given is Input.RESTORED:
        return status.reason is not Reason.SUPERSEDED
    return True


def is_settled(status: Status) -> bool:
    """Tell whether nobody and nothing is expected to act on the operation any more."""
    if status.token is not None:
        return False
    if status.state is State.DONE:
        return not status.verify
    if status.state is State.NOT_DONE:
        return status.waiting_on is WaitingOn.NOTHING
    return False

"""What waits for another operation: a successor for the version before it, which its first
claim closes in the same commit (law 10), and an undoing for what it undoes (law 18)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ascertain.core import people
from ascertain.core.draft import Case, Draft
from ascertain.core.errors import Refused
from ascertain.core.machine import is_settled
from ascertain.core.model import Change, State
from ascertain.core.reconcile import World, quiet_end

if TYPE_CHECKING:
    from .engine import Engine

OLDER_POLL = 1_000_000  # µs between looks at the version before, at first
WAITED = 8  # the longer it has waited, the rarer the looks: an eighth of that, within bounds


def why_held(engine: Engine, case: Case, world: World) -> str:
    """Say why an operation must wait for the one that it follows or undoes; "" if it need not."""
    if case.status.attempts:
        return ""
    return _older_version(engine, case, world) or _undone(engine, case, world)


def hold(engine: Engine, case: Case, world: World, why: str) -> Change:
    """Hold an operation while the one that it follows or undoes may still act."""
    waited = max(world.now - case.status.started_at, 0)
    longest = max(case.terms.bounds.longest_delay, OLDER_POLL)
    until = world.now + min(max(waited // WAITED, OLDER_POLL), longest)
    return people.hold(case, world, engine.clock.token(), why=why, until=until)


def _older_version(engine: Engine, case: Case, world: World) -> str:
    ident = case.operation.supersedes
    if not ident or _overridden(case):
        return ""
    return _blocks(engine.case(engine.snapshot(ident)), world)


def _overridden(case: Case) -> bool:
    return case.operation.source.startswith("override:")


def _blocks(older: Case, world: World) -> str:
    overwrites = older.terms.contract.repeat.answer == "overwrite"
    return people.blocks(older, world, overwrites=overwrites)


def _undone(engine: Engine, case: Case, world: World) -> str:
    ident = case.operation.compensates
    return "" if ident is None or may_be_undone(engine, ident, world) else "waits_undone"


def may_be_undone(engine: Engine, ident: str, world: World) -> bool:
    """Tell whether an operation exists for sure and none of its requests can still land."""
    case = engine.case(engine.snapshot(ident))
    quiet = quiet_end(case.status, case.terms, world)
    return people.may_undo(case.status, case.attempts, quiet, world.now)


def check_undo(engine: Engine, ident: str | None) -> None:
    """Refuse to undo what may still land, or what is not known to exist (law 18)."""
    if ident is not None and not may_be_undone(engine, ident, engine.world()):
        operation, status = (s := engine.snapshot(ident)).operation, s.status
        raise Refused(
            f"operation {operation.key} is {status.state}: it can be undone only when it is done"
            " or accepted and none of its requests can still land",
            operation=ident,
        )


def closing_older(engine: Engine, case: Case, world: World) -> tuple[Change, ...] | str:
    """Return the change that closes the version before, for its successor's first claim; or why
    that has to wait after all: the version before may have begun since `why_held` looked."""
    assert case.operation.supersedes is not None
    older = engine.case(engine.snapshot(case.operation.supersedes))
    why = "" if _overridden(case) else _blocks(older, world)
    if why:
        return why
    if is_settled(older.status) and older.status.state is not State.NOT_DONE:
        return ()
    if older.status.state not in (State.PENDING, State.NOT_DONE):
        # Overridden while it acts: whoever settles it decides anew, and sees its successor.
        return (Draft(older, world, engine.clock.token()).change(),)
    try:
        change = people.supersede(
            older, world, engine.clock.token(), successor=case.operation.id
        )  # fmt: skip
    except Refused:
        return ()  # left or failed after acceptance, overridden: it stays as it is
    return (change,)

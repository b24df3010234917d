"""One version follows another (law 10): a successor waits for the version before it, and its
first claim closes that one in the same commit."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ascertain.core import people
from ascertain.core.draft import Case
from ascertain.core.errors import Refused
from ascertain.core.model import Change, State
from ascertain.core.reconcile import World

if TYPE_CHECKING:
    from .engine import Engine

OLDER_POLL = 1_000_000  # µs between looks at the version before


def held_by_older(engine: Engine, case: Case, world: World) -> Case | None:
    """Hold a successor while the version before may still act (law 10)."""
    ident = case.operation.supersedes
    if not ident or case.status.attempts or case.operation.source.startswith("override:"):
        return None
    older = engine.case(engine.snapshot(ident))
    overwrites = older.terms.contract.repeat.answer == "overwrite"
    why = people.blocks(older, world, overwrites=overwrites)
    if not why:
        return None
    return engine.write(
        case,
        lambda c: people.hold(
            c, world, engine.clock.token(), why=why, until=world.now + OLDER_POLL
        ),
    )


def closing_older(engine: Engine, case: Case, world: World) -> tuple[Change, ...]:
    """Return the change that closes the version before, for its successor's first claim."""
    assert case.operation.supersedes is not None
    older = engine.case(engine.snapshot(case.operation.supersedes))
    if older.status.state not in (State.PENDING, State.NOT_DONE):
        return ()
    try:
        change = people.supersede(
            older, world, engine.clock.token(), successor=case.operation.id
        )  # fmt: skip
    except Refused:
        return ()  # left or failed after acceptance, overridden: it stays as it is
    return (change,)
